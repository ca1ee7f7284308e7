//! Damaged files (pi-core.md 2.7): lost lines, reported lines, and that the next append is readable.

use std::fs;

use super::fixtures::*;
use crate::{SessionLog, SkipReason};

fn cut(lines: &[String], at: usize) {
    let whole = text(lines);
    let (_dir, path) = on_disk(&whole[..at]);
    let ends: Vec<usize> = lines
        .iter()
        .scan(0, |sum, line| {
            let end = *sum + line.len();
            *sum = end + 1;
            Some(end)
        })
        .collect();
    // A line counts as soon as its last byte is there, with or without the line feed.
    let heads = super::variants::heads(lines);
    let expected = ends.iter().filter(|end| **end <= at).count() - heads;
    let (log, damage) = SessionLog::open(&path, "/").unwrap();
    assert_eq!(log.entries().len(), expected, "cut at {at}");
    // A migration ends the last line.
    let unterminated = ends.contains(&at) && damage.migrated_from.is_none();
    assert_eq!(damage.unterminated, unterminated, "cut at {at}");
    let torn = if ends.contains(&at) {
        0
    } else {
        whole[..at].rsplit('\n').next().unwrap().len()
    };
    assert_eq!(damage.torn_bytes, torn as u64, "cut at {at}");
    drop(log);
    append_survives(&path);
}

#[test]
fn cut_at_any_byte_loses_only_cut_entry() {
    let variants = super::variants::variants().into_iter();
    let variants = variants
        .filter(|v| !v.name.starts_with("v1") && !v.name.ends_with("title") && !v.name.ends_with("slot"));
    let files: Vec<Vec<String>> = variants.map(|v| v.lines).chain([all_entries()]).collect();
    assert_eq!(files.len(), 7);
    // Every cut waits a little for another writer to go on, so many are tried at once.
    for lines in files {
        let (start, end) = (text(&lines[..lines.len() - 3]).len(), text(&lines).len());
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let lines = &lines;
                scope.spawn(move || {
                    (start..=end)
                        .skip(thread)
                        .step_by(8)
                        .for_each(|at| cut(lines, at))
                });
            }
        });
    }
}

#[test]
fn malformed_lines_are_skipped_reported_and_kept() {
    let mut lines = all_entries();
    lines.insert(1, "{broken json".into());
    lines.insert(5, String::new());
    lines.insert(6, "null trailing".into());
    lines.insert(7, "\0\0\0\0".into());
    lines.insert(8, r#"{"no":"id"}"#.into());
    let content = text(&lines);
    let (_dir, path) = on_disk(&content);
    let (mut log, damage) = SessionLog::open(&path, "/").unwrap();
    assert_eq!(log.entries().len(), 12);
    let found: Vec<(u64, u64, SkipReason)> = damage
        .skipped
        .iter()
        .map(|s| (s.line, s.bytes, s.reason))
        .collect();
    assert_eq!(
        found,
        [
            (2, 12, SkipReason::NotJson),
            (7, 13, SkipReason::NotJson),
            (8, 4, SkipReason::NotJson),
            (9, 11, SkipReason::NoId)
        ]
    );
    assert_eq!(damage.skipped[0].offset, lines[0].len() as u64 + 1);
    assert_eq!(
        (damage.skipped_lines, damage.skipped_bytes, damage.orphans),
        (4, 40, 0)
    );
    assert_eq!(damage.to_string(), "4 unreadable lines (40 bytes) skipped");
    log.append(user("more")).unwrap();
    assert!(fs::read_to_string(&path).unwrap().starts_with(&content));
}

#[test]
fn entry_with_missing_parent_becomes_root() {
    let lines = [
        HEADER.into(),
        user_line("e1", None, "1"),
        "garbage".into(),
        user_line("e3", Some("e2"), "3"),
    ];
    let (_dir, path) = on_disk(text(&lines));
    let (log, damage) = SessionLog::open(&path, "/").unwrap();
    assert_eq!(damage.orphans, 1);
    assert_eq!(log.branch(Some("e3")).len(), 1);
    assert_eq!(log.tree().roots, [0, 1]);
}

#[test]
fn entry_after_torn_line_is_recovered() {
    let torn = &user_line("e2", Some("e1"), "torn")[..50];
    let glued = format!("{torn}{}", user_line("e3", Some("e1"), "three"));
    let zeros = format!("\0\0\0\0\0{}", user_line("e4", Some("e3"), "four"));
    let (_dir, path) = on_disk(text(&[HEADER, &user_line("e1", None, "1"), &glued, &zeros]));
    let (log, damage) = SessionLog::open(&path, "/").unwrap();
    assert_eq!(ids(&log), ["e1", "e3", "e4"]);
    assert_eq!((damage.skipped_lines, damage.salvaged, damage.orphans), (2, 2, 0));
    assert_eq!(log.branch(log.leaf_id()).len(), 3);
    drop(log);
    append_survives(&path);
}

#[test]
fn entries_nested_in_damaged_line_are_not_entries() {
    let inner = user_line("inner", None, "of a subagent");
    let outer = format!(
        r#"{{"type":"custom","customType":"x","data":{{"first":{inner},"list":[{inner},{inner}]}},"id":"e2","parentId":"e1","timestamp":"t"}}"#
    );
    for damaged in [
        format!("{}\n", outer.replace("\"data\":", "\"data\";")),
        outer[..outer.len() - 30].to_owned(),
    ] {
        let (_dir, path) = on_disk(text(&[HEADER, &user_line("e1", None, "1")]) + &damaged);
        let (log, _) = SessionLog::open(&path, "/").unwrap();
        assert_eq!(ids(&log), ["e1"]);
    }
}

#[test]
fn copies_of_header_and_entries_are_ignored() {
    // What pi 0.74 leaves when it goes on with a file that has no answer yet.
    let lines = [
        HEADER,
        &user_line("e1", None, "1"),
        HEADER,
        &user_line("e1", None, "1"),
        &user_line("e2", Some("e1"), "2"),
    ];
    let (_dir, path) = on_disk(text(&lines));
    let (log, damage) = SessionLog::open(&path, "/").unwrap();
    assert_eq!(ids(&log), ["e1", "e2"]);
    assert_eq!((damage.duplicate_headers, damage.duplicate_entries), (1, 1));
}

#[test]
fn duplicate_ids_never_form_cycle() {
    let lines = [
        HEADER,
        &user_line("e1", Some("e2"), "1"),
        &user_line("e2", Some("e1"), "2"),
        &user_line("e1", Some("e2"), "3"),
        &user_line("e9", Some("e9"), "self"),
    ];
    let (_dir, path) = on_disk(text(&lines));
    let (mut log, damage) = SessionLog::open(&path, "/").unwrap();
    assert_eq!(log.entries().len(), 4);
    assert_eq!(
        damage.orphans, 2,
        "the forward reference and the reference to itself"
    );
    log.set_leaf(Some("e1")).unwrap();
    assert_eq!(log.branch(Some("e1")).len(), 3);
}

#[test]
fn invalid_utf8_lone_surrogates_and_nulls_are_mended() {
    let mut content = text(&[
        HEADER,
        &user_line("e1", None, "cut \\ud83d here \\ud83d\\ude00 \\\\ud83d"),
    ])
    .into_bytes();
    let latin = user_line("e2", Some("e1"), "caf?");
    content.extend(latin.bytes().map(|b| if b == b'?' { 0xe9 } else { b }));
    content.push(b'\n');
    let null = r#"{"type":"message","id":"e3","parentId":"e2","timestamp":"2025-11-01T10:00:11.000Z","message":{"role":"assistant","content":[{"type":"text","text":"hi"}],"usage":{"input":null,"output":5},"stopReason":"stop","timestamp":1}}"#;
    content.extend_from_slice(text(&[null, &user_line("e4", Some("e3"), "last")]).as_bytes());
    let (_dir, path) = on_disk(&content);
    let (log, damage) = SessionLog::open(&path, "/").unwrap();
    assert_eq!(
        (damage.mended, damage.skipped_lines, damage.opaque),
        (3, 0, 0),
        "{damage}"
    );
    let texts: Vec<String> = serde_json::to_value(log.context(log.leaf_id()).messages)
        .unwrap()
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["content"][0]["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        texts,
        ["cut \u{fffd} here \u{1f600} \\ud83d", "caf\u{fffd}", "hi", "last"]
    );
}

#[test]
fn unparsable_messages_keep_chain_connected() {
    let odd = r#"{"type":"message","id":"e2","parentId":"e1","timestamp":"2025-11-01T10:00:11.000Z","message":{"role":"user","content":{"not":"a list"},"timestamp":1}}"#;
    let deep = format!(
        r#"{{"type":"custom","id":"e3","parentId":"e2","timestamp":"t","customType":"x","data":{}1{}}}"#,
        "[".repeat(5000),
        "]".repeat(5000)
    );
    let lines = [
        HEADER,
        &user_line("e1", None, "1"),
        odd,
        &deep,
        &user_line("e4", Some("e3"), "4"),
    ];
    let (_dir, path) = on_disk(text(&lines));
    let (log, damage) = SessionLog::open(&path, "/").unwrap();
    assert_eq!(
        (damage.opaque, damage.orphans, damage.skipped_lines),
        (2, 0, 0),
        "{damage}"
    );
    assert_eq!(log.branch(log.leaf_id()).len(), 4);
}

#[test]
fn empty_file_becomes_session_with_one_header() {
    for content in ["", "\n\n", "{\"type\":\"session\",\"vers"] {
        let (_dir, path) = on_disk(content);
        let (mut log, damage) = SessionLog::open(&path, "/work").unwrap();
        assert_eq!(log.header().cwd, "/work");
        assert!(!log.is_on_disk());
        log.append(user("1")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), content, "written too early");
        log.ensure_on_disk().unwrap();
        log.append(answer("2")).unwrap();
        let id = log.header().id.clone();
        drop(log);
        assert_eq!(
            damage.torn_bytes,
            if content.starts_with('{') {
                content.len() as u64
            } else {
                0
            }
        );
        let (log, damage) = SessionLog::open(&path, "/").unwrap();
        assert!(damage.is_none(), "{content:?}: {damage}");
        assert_eq!((log.header().id.as_str(), log.entries().len()), (id.as_str(), 2));
    }
}

#[test]
fn missing_header_is_rebuilt_once_with_backup() {
    let good = text(&all_entries());
    let bad = good.replacen("\"type\":\"session\"", "\"typ\":\"session\"", 1);
    let (_dir, path) = on_disk(&bad);
    let (log, damage) = SessionLog::open(&path, "/").unwrap();
    assert!(damage.header_rebuilt);
    assert_eq!(
        (log.header().id.as_str(), log.header().cwd.as_str()),
        (SESSION_ID, "/home/u/app")
    );
    assert_eq!(log.entries().len(), 12);
    assert_eq!(fs::read_to_string(damage.backup.unwrap()).unwrap(), bad);
    drop(log);
    let (_, damage) = SessionLog::open(&path, "/").unwrap();
    assert!(damage.is_none(), "{damage}");
    assert_eq!(fs::read_to_string(&path).unwrap(), good);
}

#[test]
fn wrong_header_version_is_reported_without_migration() {
    let lines = all_entries();
    let mut bytes = text(&lines).into_bytes();
    let at = text(&lines).find("\"version\"").unwrap() + 2;
    bytes[at] = 0xde;
    let (_dir, path) = on_disk(&bytes);
    let (log, damage) = SessionLog::open(&path, "/").unwrap();
    assert_eq!((damage.mended, damage.migrated_from), (1, None));
    assert_eq!(log.entries().len(), lines.len() - 1);
    drop(log);
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

/// Listings take such a header, too.
#[test]
fn header_with_odd_member_is_read() {
    let mut lines = all_entries();
    lines[0] = HEADER.replace("\"2025-11-01T10:00:00.000Z\"", "1761991200000");
    let (_dir, path) = on_disk(text(&lines));
    let (log, damage) = SessionLog::open(&path, "/").unwrap();
    assert_eq!(
        (log.header().id.as_str(), log.header().cwd.as_str()),
        (SESSION_ID, "/home/u/app")
    );
    assert_eq!((log.entries().len(), damage.mended), (12, 1));
    assert_eq!(fs::read_to_string(&path).unwrap(), text(&lines));
}
