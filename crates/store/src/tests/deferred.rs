//! Sessions that are opened without the texts of their messages: what they say before and after the texts are read, and what damage
//! and other programs do to that.

use std::path::{Path, PathBuf};

use wire::{EntryBody, Message};

use super::faults::Memory;
use super::fixtures::*;
use super::variants::variants;
use crate::deferred::{load_texts, open_deferred};
use crate::open;
use crate::texts::Texts;
use crate::{ForkScope, SessionLog, StoreError};
use crate::{parse, usual};

fn opened(disk: &Memory, texts: Texts) -> SessionLog {
    let path = PathBuf::from(format!("x_{SESSION_ID}.jsonl"));
    open::open(Box::new(disk.clone()), &path, "/", texts).unwrap()
}

fn deferred(lines: &[String]) -> (Memory, SessionLog) {
    let disk = Memory::holding(text(lines).as_bytes());
    let log = opened(&disk, Texts::Deferred);
    assert!(log.is_deferred);
    (disk, log)
}

/// A conversation of several turns in the forms that agents write, the last answer with usage.
fn conversation() -> Vec<String> {
    let entry = |number: usize, message: &str| {
        let parent = number
            .checked_sub(1)
            .map_or("null".to_owned(), |parent| format!("\"c{parent}\""));
        format!(
            r#"{{"type":"message","id":"c{number}","parentId":{parent},"timestamp":"2025-11-01T10:00:01.000Z","message":{message}}}"#
        )
    };
    let usage = r#""usage":{"input":10,"output":5,"cacheRead":0,"cacheWrite":0,"totalTokens":15,"cost":{"input":0.1,"output":0.25,"cacheRead":0,"cacheWrite":0,"total":0.35}}"#;
    let about = format!(r#""api":"anthropic-messages","provider":"p","model":"m",{usage}"#);
    let messages = [
        r#"{"role":"user","content":[{"type":"text","text":"a \"quoted\" \\ \u00e9 \ud83d\ude00 é\n"},{"type":"image","data":"AAAA","mimeType":"image/png"}],"timestamp":1}"#.to_owned(),
        format!(r#"{{"role":"assistant","content":[{{"type":"thinking","thinking":"hm","thinkingSignature":"s"}},{{"type":"text","text":"calls"}},{{"type":"toolCall","id":"t1","name":"bash","arguments":{{"command":"ls","deep":[1,2.5,{{"a":null,"b":[true,false,{{}},[]]}}]}}}}],{about},"stopReason":"toolUse","timestamp":2,"responseId":"r","durationMs":12}}"#),
        r#"{"role":"toolResult","toolCallId":"t1","toolName":"bash","content":[{"type":"text","text":"out"}],"details":{"phases":[1]},"isError":false,"timestamp":3}"#.to_owned(),
        format!(r#"{{"role":"assistant","content":[],{about},"stopReason":"error","errorMessage":"failed","timestamp":4}}"#),
        format!(r#"{{"role":"assistant","content":[{{"type":"text","text":"done"}}],{about},"stopReason":"stop","timestamp":5}}"#),
        r#"{"role":"user","content":"plain text","timestamp":6}"#.to_owned(),
    ];
    let lines = messages
        .iter()
        .enumerate()
        .map(|(number, message)| entry(number, message));
    std::iter::once(HEADER.to_owned()).chain(lines).collect()
}

/// What a client can ask of a session whose texts are missing.
fn state(log: &SessionLog) -> impl PartialEq + std::fmt::Debug {
    let context = log.context(log.leaf_id());
    let roles: Vec<String> = context.messages.iter().map(|m| m.role().to_owned()).collect();
    (
        (ids(log), log.leaf_id().map(str::to_owned), log.damage().clone()),
        (context.model, context.thinking_level, context.kept, roles),
        (log.session_name().map(str::to_owned), log.lines),
    )
}

/// Both parsers read each line to the same entry. A parent of none is in the line, too.
fn compare_lines(content: &[u8], place: &str) {
    for line in content.split(|byte| *byte == b'\n') {
        if let Some(usual) = usual::line(line, Texts::Read) {
            let parse::Line::Entry(parsed) = parse::line(line) else {
                panic!("{place}: not an entry");
            };
            let found = (&parsed.entry, parsed.parent_known, parsed.quality);
            assert_eq!(
                (&usual.entry, usual.parent_known, usual.quality),
                found,
                "{place}"
            );
        }
    }
}

/// Opens a file in both ways and compares them before and after the texts are read. Returns true if the texts were left out.
fn compare(content: &[u8], place: &str) -> bool {
    let path = PathBuf::from(format!("x_{SESSION_ID}.jsonl"));
    let open = |texts| open::open(Box::new(Memory::holding(content)), &path, "/", texts);
    let (whole, mut log) = match (open(Texts::Read), open(Texts::Deferred)) {
        (Ok(whole), Ok(log)) => (whole, log),
        (Err(whole), Err(deferred)) => {
            assert_eq!(whole.to_string(), deferred.to_string(), "{place}");
            return false;
        }
        other => panic!("{place}: {other:?}"),
    };
    compare_lines(content, place);
    let was_deferred = log.is_deferred;
    assert_eq!(state(&log), state(&whole), "{place}");
    load_texts(&mut log).unwrap_or_else(|error| panic!("{place}: {error}"));
    assert_eq!(state(&log), state(&whole), "{place}");
    assert_eq!(log.entries(), whole.entries(), "{place}");
    was_deferred
}

#[test]
fn deferred_session_says_the_same_state() {
    let mut count = 0;
    let others = variants().into_iter().map(|variant| variant.lines);
    // Each migration of an old file draws ids of its own.
    let others = others.filter(|lines| lines[0].contains(r#""version":3"#));
    for lines in others.chain([all_entries(), conversation()]) {
        count += usize::from(compare(text(&lines).as_bytes(), &lines[0]));
    }
    assert!(count > 3, "{count}");
}

#[test]
fn texts_are_missing_until_they_are_read() {
    let (_, mut log) = deferred(&conversation());
    let first = |log: &SessionLog| match &log.entries()[0].body {
        EntryBody::Message(body) => match body.message.as_ref() {
            Message::User(user) => user.content.text(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    assert_eq!(first(&log), "");
    load_texts(&mut log).unwrap();
    assert_eq!(first(&log), "a \"quoted\" \\ \u{e9} \u{1f600} \u{e9}\n");
    assert!(!log.is_deferred);
}

#[test]
fn end_of_conversation_is_whole() {
    let (_, log) = deferred(&conversation());
    let context = log.context(log.leaf_id());
    let mut newest = context.messages.iter().rev();
    assert_eq!(
        newest.next().map(|m| format!("{m:?}").contains("plain text")),
        Some(true)
    );
    let answer = newest.next().and_then(|m| m.as_assistant()).unwrap();
    assert_eq!(answer.reported_tokens(), Some(15));
}

#[test]
fn every_flipped_bit_gives_the_same_session() {
    let whole = text(&conversation()).into_bytes();
    let mut count = 0;
    for at in 0..whole.len() {
        for bit in [0, 3, 5] {
            let mut content = whole.clone();
            content[at] ^= 1 << bit;
            count += usize::from(compare(&content, &format!("byte {at}, bit {bit}")));
        }
    }
    // A flip inside a text leaves the line whole.
    assert!(count > 500, "{count}");
}

#[test]
fn every_cut_gives_the_same_session() {
    let whole = text(&conversation()).into_bytes();
    for length in 0..whole.len() {
        compare(&whole[..length], &format!("{length} bytes"));
    }
}

#[test]
fn damaged_strings_and_numbers_are_not_deferred() {
    let user = |text: &str| [HEADER.to_owned(), user_line("a", None, text)];
    for text in [
        "\\ud800",
        "\\udc00\\ud800",
        "\\ud800x",
        "\\ud83d\\u0041",
        "\\x",
        "\\u12g4",
        "\\u+123",
        "tab\tin it",
        "\\",
        "\\u00",
    ] {
        assert!(
            !compare(super::fixtures::text(&user(text)).as_bytes(), text),
            "{text}"
        );
    }
    for number in [
        "01",
        "1.5",
        "-1",
        "1e3",
        "99999999999999999999",
        "",
        "\"1\"",
        "null",
    ] {
        let line = user_line("a", None, "x").replace("1761991212000", number);
        let content = super::fixtures::text(&[HEADER.to_owned(), line]);
        assert!(!compare(content.as_bytes(), number), "{number}");
    }
}

#[test]
fn append_reads_texts_first() {
    let (disk, mut log) = deferred(&conversation());
    let added = log.append(user("next")).unwrap();
    assert!(!log.is_deferred);
    assert_eq!(added.parent_id.as_deref(), Some("c5"));
    drop(log);
    assert_eq!(opened(&disk, Texts::Read).entries().len(), 7);
}

#[test]
fn changed_file_refuses_every_use() {
    let mut lines = conversation();
    let (disk, mut log) = deferred(&lines);
    lines[2] = lines[2].replacen("\"c1\"", "\"x1\"", 1);
    let content = text(&lines);
    disk.cut(0);
    disk.add(&content);
    let changed =
        |outcome: Result<(), StoreError>| assert!(matches!(outcome, Err(StoreError::Changed { .. })));
    changed(load_texts(&mut log));
    changed(log.append(user("next")).map(drop));
    changed(log.keep(vec![user("next")]));
    changed(
        log.fork(None, crate::new_header("/", None), ForkScope::All)
            .map(drop),
    );
    assert_eq!(log.waiting(), 0);
    drop(log);
    assert_eq!(disk.content(), content.as_bytes());
}

#[test]
fn shortened_file_cannot_be_read() {
    let (disk, mut log) = deferred(&conversation());
    disk.cut(100);
    assert!(load_texts(&mut log).is_err());
    assert!(log.is_deferred);
}

#[test]
fn entries_of_others_are_read_after_texts() {
    let (disk, mut log) = deferred(&conversation());
    disk.add(&text(&[user_line("other", Some("c5"), "x")]));
    log.catch_up().unwrap();
    assert_eq!(ids(&log).last().map(String::as_str), Some("other"));
    assert_eq!(log.leaf_id(), Some("c5"));
}

#[test]
fn small_file_is_read_at_once() {
    let (_dir, path) = on_disk(text(&conversation()));
    let log = open_deferred(Path::new(&path), "/", true).unwrap();
    assert!(!log.is_deferred);
    drop(log);
    let long = "x".repeat(2 << 20);
    let (_dir, path) = on_disk(text(&[
        HEADER.to_owned(),
        user_line("a", None, "x"),
        user_line("b", Some("a"), &long),
    ]));
    let log = open_deferred(&path, "/", true).unwrap();
    assert!(!log.is_deferred, "no answer says how large the context was");
}

#[test]
fn large_file_is_deferred() {
    let long = "x".repeat(2 << 20);
    let mut lines = conversation();
    lines[1] = lines[1].replacen("quoted", &long, 1);
    let (_dir, path) = on_disk(text(&lines));
    let mut log = open_deferred(&path, "/", true).unwrap();
    assert!(log.is_deferred && log.damage().is_none());
    load_texts(&mut log).unwrap();
    assert_eq!(
        log.entries(),
        SessionLog::open_on(Box::new(Memory::holding(text(&lines).as_bytes())), &path, "/")
            .unwrap()
            .0
            .entries()
    );
}
