//! The log of all clients: one order, merged deltas, readers at their own pace.

use std::sync::Arc;

use serde_json::Value;
use serve::Piece;

use crate::frame_text::{FrameText, OpenObject};
use crate::limits::WEB_UNREAD_BYTES;
use crate::log::{Delta, Entry, Gone, Log, Subject, Text};

fn line(text: &str) -> Entry {
    Entry {
        subject: Subject {
            name: "notice",
            session: None,
        },
        text: Text::Line(format!("{{\"type\":\"notice\",\"message\":\"{text}\"").into()),
    }
}

fn delta(session: Option<&str>, block: u32, text: &str) -> Entry {
    Entry {
        subject: Subject {
            name: "message_update",
            session: session.map(Arc::from),
        },
        text: Text::Delta(Delta {
            before: format!("{{\"index\":{block},\"delta\":\""),
            text: text.to_owned(),
            after: format!("\",\"usage\":{}", text.len()),
        }),
    }
}

fn read(log: &Log, place: u64) -> Vec<Value> {
    let mut frames: Vec<FrameText> = Vec::new();
    let end = log
        .read(place, log.last(), usize::MAX, |_| true, &mut frames)
        .unwrap();
    assert_eq!(end, log.last());
    frames
        .iter()
        .map(|frame| serde_json::from_str(&frame.text()).unwrap())
        .collect()
}

fn texts(frames: &[Value]) -> Vec<String> {
    let text = |frame: &Value| {
        let text = frame["delta"].as_str().or(frame["message"].as_str());
        format!("{}:{}", frame["seq"], text.unwrap())
    };
    frames.iter().map(text).collect()
}

#[test]
fn unread_deltas_merge_into_one_entry() {
    let mut log = Log::new(1 << 20, 100);
    for text in ["a", "\\n", "b"] {
        log.push(delta(None, 0, text));
    }
    log.push(delta(None, 1, "c"));
    log.push(line("x"));
    log.push(delta(None, 1, "d"));
    assert_eq!(log.last(), 0);
    log.publish(|| None);
    assert_eq!(texts(&read(&log, 0)), ["1:a\nb", "2:c", "3:x", "4:d"]);
}

#[test]
fn late_reader_gets_merged_deltas_with_last_number() {
    let mut log = Log::new(1 << 20, 100);
    for text in ["a", "b", "c"] {
        log.push(delta(None, 0, text));
        log.publish(|| None);
    }
    log.push(line("x"));
    log.push(delta(None, 0, "d"));
    log.publish(|| None);
    assert_eq!(texts(&read(&log, 0)), ["3:abc", "4:x", "5:d"]);
    assert_eq!(texts(&read(&log, 1)), ["3:bc", "4:x", "5:d"]);
    assert_eq!(
        read(&log, 0)[0]["usage"],
        1,
        "what follows the text is that of the last one"
    );
}

#[test]
fn deltas_of_different_sessions_stay_separate() {
    let mut log = Log::new(1 << 20, 100);
    for text in ["a", "b"] {
        log.push(delta(None, 0, text));
        log.push(delta(Some("s1"), 0, text));
    }
    log.publish(|| None);
    let frames = read(&log, 0);
    assert_eq!(texts(&frames), ["1:ab", "2:ab"]);
    assert_eq!(
        (&frames[0]["session"], &frames[1]["session"]),
        (&Value::Null, &Value::from("s1"))
    );
}

#[test]
fn log_is_bounded_and_reports_gaps() {
    let mut log = Log::new(1 << 20, 10);
    for number in 0..15 {
        log.push(line(&number.to_string()));
        log.publish(|| None);
    }
    assert_eq!(log.last(), 15);
    assert_eq!(log.count_after(5), Some(10));
    assert_eq!(log.count_after(4), None);
    assert_eq!(log.count_after(16), None);
    assert_eq!(log.read(4, 15, usize::MAX, |_| true, &mut Vec::new()), Err(Gone));
    let mut small = Log::new(100, 1000);
    for _ in 0..20 {
        small.push(line("0123456789"));
        small.publish(|| None);
    }
    assert!(small.count_after(18).is_some() && small.count_after(10).is_none());
}

#[test]
fn long_entries_stay_until_current_readers_read_them() {
    let mut log = Log::new(100, 1000);
    for _ in 0..3 {
        log.push(line(&"x".repeat(1000)));
        log.publish(|| Some(0));
    }
    assert_eq!(
        log.count_after(0),
        Some(3),
        "longer than the log, but nobody has read it"
    );
    log.push(line("y"));
    log.publish(|| Some(2));
    assert_eq!((log.count_after(1), log.count_after(2)), (None, Some(2)));
    log.push(line("z"));
    log.publish(|| None);
    assert_eq!(log.count_after(3), Some(2));
    // A reader that does not read keeps no more than so much, and so many.
    for _ in 0..3 {
        log.push(line(&"x".repeat(WEB_UNREAD_BYTES / 2)));
        log.publish(|| Some(3));
    }
    assert_eq!((log.count_after(5), log.count_after(7)), (None, Some(1)));
    let mut short = Log::new(10, 5);
    for _ in 0..10 {
        short.push(line("x"));
        short.publish(|| Some(0));
    }
    assert_eq!((short.count_after(4), short.count_after(5)), (None, Some(5)));
}

#[test]
fn shared_text_counts_once_until_its_last_entry() {
    const LONG: usize = 1 << 20;
    let text = Arc::new(vec![b'x'; LONG]);
    let repeat = || Entry {
        subject: Subject {
            name: "message_end",
            session: None,
        },
        text: Text::Line(OpenObject::of_pieces(
            vec![
                Piece::Own(b"{\"text\":\"".to_vec()),
                Piece::Shared(Arc::clone(&text)),
                Piece::Own(b"\",\"again\":\"".to_vec()),
                Piece::Shared(Arc::clone(&text)),
            ],
            b"\"".to_vec(),
        )),
    };
    let is_once = |bytes: usize| (LONG..LONG + 2_000).contains(&bytes);
    let mut log = Log::new(LONG / 2, 1000);
    for _ in 0..4 {
        log.push(repeat());
        log.push(line("between"));
    }
    log.publish(|| Some(0));
    assert!(is_once(log.bytes()), "{}", log.bytes());
    assert!(is_once(log.bytes_after(5)), "the newest repeat is still unread");
    assert!(log.bytes_after(7) < 2_000);
    // What all have read goes, the text with the last of its entries.
    log.publish(|| Some(6));
    assert!(is_once(log.bytes()) && log.count_after(6).is_some() && log.count_after(5).is_none());
    log.publish(|| Some(7));
    assert!(log.bytes() < 2_000 && log.count_after(7) == Some(1));
}

#[test]
fn log_reading_respects_filter_and_byte_limit() {
    let mut log = Log::new(1 << 20, 100);
    for _ in 0..10 {
        log.push(line("x"));
        log.push(delta(None, 0, "y"));
    }
    log.publish(|| None);
    let mut frames = Vec::new();
    let wanted = |subject: &Subject| subject.name == "notice";
    let place = log.read(0, 20, 60, wanted, &mut frames).unwrap();
    assert!(place < 20 && frames.len() == 2, "{place} {}", frames.len());
    let place = log.read(place, 10, usize::MAX, wanted, &mut frames).unwrap();
    assert_eq!((place, frames.len()), (10, 5));
}
