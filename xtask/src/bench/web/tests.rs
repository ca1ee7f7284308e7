//! Tests of the client that measures the web server: it finds events however the stream is split.

use super::intake::{Way, head};

/// Everything that is found when the bytes come in pieces of this length.
fn found(way: Way, bytes: &[u8], piece: usize) -> Vec<String> {
    let (mut pending, mut events) = (Vec::new(), Vec::new());
    for piece in bytes.chunks(piece) {
        pending.extend_from_slice(piece);
        way.drain(&mut pending, |event| events.push(event.to_owned()));
    }
    events
}

#[test]
fn split_websocket_frames_are_found() {
    let long = "x".repeat(300);
    let mut bytes = vec![0x81, 2, b'{', b'}', 0x89, 1, b'p', 0x81, 126, 1, 44];
    bytes.extend(long.as_bytes());
    for piece in [1, 3, 7, 1_000] {
        assert_eq!(found(Way::Socket, &bytes, piece), ["{}", long.as_str()]);
    }
}

#[test]
fn stream_events_are_found_across_chunks() {
    let text = "1a\r\nid: 1\ndata: {\"a\":1}\n\n\r\n9\r\n: still here\n\ndata: {}\n\n\r\n";
    for piece in [1, 5, 1_000] {
        assert_eq!(found(Way::Stream, text.as_bytes(), piece), ["{\"a\":1}", "{}"]);
    }
}

#[test]
fn http_head_is_parsed_when_complete() {
    let answer = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\nrest";
    assert_eq!(head(answer), Some((503, answer.len() - 4)));
    assert_eq!(
        head(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n"),
        None
    );
}
