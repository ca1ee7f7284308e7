//! The line scanner: forms of line ends, fields, splits, sizes.

use crate::limits::{KEPT_BYTES, MAX_EVENT_BYTES};
use crate::sse::SseScanner;

fn scan(pieces: &[&[u8]]) -> Vec<(String, String)> {
    let mut scanner = SseScanner::default();
    let mut out = Vec::new();
    for piece in pieces {
        scanner.push(piece);
        while let Some(event) = scanner.next().unwrap() {
            out.push((event.name.to_owned(), event.data.to_owned()));
        }
    }
    if let Some(event) = scanner.finish() {
        out.push((event.name.to_owned(), event.data.to_owned()));
    }
    out
}

fn pair(name: &str, data: &str) -> (String, String) {
    (name.to_owned(), data.to_owned())
}

#[test]
fn sse_line_ends_and_splits_give_same_events() {
    let text = "\u{feff}: hello\nevent: a\ndata: one\n\ndata:two\ndata:  three\ndata\nid: 7\n\n\nevent: lost\n\ndata: ü€\nretry: 1\n\ndata: tail";
    let expected = [
        pair("a", "one"),
        pair("", "two\n three\n"),
        pair("", "ü€"),
        pair("", "tail"),
    ];
    for end in ["\n", "\r\n", "\r"] {
        let text = text.replace('\n', end);
        let bytes = text.as_bytes();
        assert_eq!(scan(&[bytes]), expected, "{end:?}");
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(scan(&single), expected, "{end:?} bytewise");
        for at in 0..bytes.len() {
            let (a, b) = bytes.split_at(at);
            assert_eq!(scan(&[a, b]), expected, "{end:?} split at {at}");
        }
    }
}

#[test]
fn sse_invalid_utf8_is_replaced() {
    assert_eq!(scan(&[b"data: a\xffb\n\n"]), [pair("", "a\u{fffd}b")]);
}

#[test]
fn sse_fields_with_data_prefix_are_ignored() {
    assert_eq!(scan(&[b"database: x\nevents: y\ndata: z\n\n"]), [pair("", "z")]);
}

/// The scanner must not look at a byte more than a few times; were it quadratic, this would take minutes.
#[test]
fn ten_megabyte_sse_event_is_scanned_linearly() {
    let mut text = b"data: ".to_vec();
    text.resize(10 << 20, b'x');
    text.extend_from_slice(b"\n\n");
    let pieces: Vec<&[u8]> = text.chunks(1000).collect();
    let events = scan(&pieces);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].1.len(), (10 << 20) - 6);
    let lines: Vec<u8> = b"data: 12345\n"
        .repeat(1 << 17)
        .into_iter()
        .chain(*b"\n")
        .collect();
    let pieces: Vec<&[u8]> = lines.chunks(777).collect();
    assert_eq!(scan(&pieces)[0].1.len(), (6 << 17) - 1);
}

#[test]
fn oversized_sse_lines_and_events_are_refused() {
    let mut scanner = SseScanner::default();
    scanner.push(&vec![b'x'; MAX_EVENT_BYTES + 1]);
    assert!(scanner.next().is_err());
    let mut scanner = SseScanner::default();
    let line: Vec<u8> = b"data: "
        .iter()
        .copied()
        .chain(std::iter::repeat_n(b'x', 1 << 20))
        .chain(*b"\n")
        .collect();
    let refused = (0..20).any(|_| {
        scanner.push(&line);
        scanner.next().is_err()
    });
    assert!(refused);
}

#[test]
fn comments_after_data_line_are_not_kept() {
    let mut scanner = SseScanner::default();
    scanner.push(b"data: one\n");
    let comment = b": x\n".repeat(1 << 10);
    for _ in 0..1 << 8 {
        scanner.push(&comment);
        assert_eq!(scanner.next(), Ok(None));
        assert!(scanner.buffered() <= KEPT_BYTES + 2 * comment.len());
    }
    scanner.push(b"data: two\n\n");
    let event = scanner.next().unwrap().unwrap();
    assert_eq!(event.data, "one\ntwo");
}
