//! Well-formed files: what the entries are, what the context is, that nothing is written by looking.

use std::fs;

use serde_json::{Value, json};
use wire::EntryBody;

use super::fixtures::*;
use crate::{SessionLog, StoreError, new_header, open_read_only, seen_branch, seen_context};

fn messages(log: &SessionLog) -> Value {
    serde_json::to_value(log.context(log.leaf_id()).messages).unwrap()
}

#[test]
fn every_entry_type_is_read_as_in_pi() {
    let content = text(&all_entries());
    let (_dir, path) = on_disk(&content);
    let (log, damage) = SessionLog::open(&path, "/").unwrap();
    assert!(damage.is_none(), "{damage}");
    assert_eq!(log.header().id, SESSION_ID);
    assert_eq!(log.entries().len(), 12);
    assert_eq!(log.leaf_id(), Some("aaaa0013"));
    assert_eq!(log.session_name(), Some("named session"));
    assert_eq!(log.label("aaaa0003"), Some("mark"));
    let context = log.context(log.leaf_id());
    assert_eq!(context.thinking_level.as_deref(), Some("low"));
    assert_eq!(
        context.model,
        Some(("mock-anthropic".into(), "claude-mock".into()))
    );
    let messages = messages(&log);
    let roles: Vec<&str> = messages
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["role"].as_str().unwrap())
        .collect();
    let expected = [
        "user",
        "assistant",
        "custom",
        "branchSummary",
        "bashExecution",
        "user",
        "assistant",
    ];
    assert_eq!(roles, expected);
    let note = json!({"role": "custom", "customType": "note", "content": "custom text", "display": true,
        "details": {"d": 1}, "timestamp": 1_761_991_206_000_i64});
    assert_eq!(messages[2], note);
    let summary = json!({"role": "branchSummary", "summary": "branch text", "fromId": "aaaa0004",
        "timestamp": 1_761_991_208_000_i64});
    assert_eq!(messages[3], summary);
    drop(log);
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        content,
        "reading changed the file"
    );
}

#[test]
fn compaction_keeps_from_first_kept_entry() {
    let mut lines = vec![
        HEADER.to_owned(),
        user_line("e1", None, "one"),
        user_line("e2", Some("e1"), "two"),
    ];
    lines.push(r#"{"type":"compaction","id":"c1","parentId":"e2","timestamp":"2025-11-01T10:00:00.500Z","summary":"sum","firstKeptEntryId":"e2","tokensBefore":7}"#.into());
    lines.push(user_line("e3", Some("c1"), "three"));
    let (_dir, path) = on_disk(text(&lines));
    let (log, _) = SessionLog::open(&path, "/").unwrap();
    let got = messages(&log);
    let first = json!({"role": "compactionSummary", "summary": "sum", "tokensBefore": 7, "timestamp": 1_761_991_200_500_i64});
    assert_eq!(got[0], first);
    assert_eq!(
        (
            got[1]["content"][0]["text"].as_str(),
            got[2]["content"][0]["text"].as_str()
        ),
        (Some("two"), Some("three"))
    );
    assert_eq!(got.as_array().unwrap().len(), 3);
    assert_eq!(log.context(Some("e2")).compaction, None);
    assert_eq!(log.context(Some("e2")).messages.len(), 2);
}

#[test]
fn summary_of_omp_has_its_members() {
    let entry = r#"{"type":"compaction","id":"c1","parentId":"e1","timestamp":"2025-11-01T10:00:00.500Z","summary":"sum","shortSummary":"s","firstKeptEntryId":"e1","tokensBefore":7,"tokensAfter":3,"method":"soft","preserveData":{}}"#;
    let lines = [HEADER.to_owned(), user_line("e1", None, "one"), entry.to_owned()];
    let (_dir, path) = on_disk(text(&lines));
    let (log, _) = SessionLog::open(&path, "/").unwrap();
    let summary = json!({
        "role": "compactionSummary", "summary": "sum", "tokensBefore": 7, "timestamp": 1_761_991_200_500_i64,
        "shortSummary": "s", "tokensAfter": 3, "method": "soft",
    });
    assert_eq!(messages(&log)[0], summary);
}

#[test]
fn last_compaction_with_unknown_first_kept_keeps_nothing() {
    let mut lines = vec![HEADER.to_owned(), user_line("e1", None, "one")];
    lines.push(r#"{"type":"compaction","id":"c1","parentId":"e1","timestamp":"2025-11-01T10:00:00.500Z","summary":"old","firstKeptEntryId":"e1","tokensBefore":7}"#.into());
    lines.push(user_line("e2", Some("c1"), "two"));
    lines.push(r#"{"type":"compaction","id":"c2","parentId":"e2","timestamp":"2025-11-01T10:00:00.700Z","summary":"new","firstKeptEntryId":"c2","tokensBefore":9}"#.into());
    let (_dir, path) = on_disk(text(&lines));
    let (log, _) = SessionLog::open(&path, "/").unwrap();
    let got = messages(&log);
    assert_eq!(got.as_array().unwrap().len(), 1);
    assert_eq!(got[0]["summary"], "new");
}

#[test]
fn seen_end_of_branch_has_same_messages() {
    let compaction = |id: &str, parent: &str, kept: &str| {
        format!(
            r#"{{"type":"compaction","id":"{id}","parentId":"{parent}","timestamp":"2025-11-01T10:00:00.500Z","summary":"sum {id}","firstKeptEntryId":"{kept}","tokensBefore":7}}"#
        )
    };
    for (first, second, seen) in [
        ("e2", "e3", vec!["e3", "c2", "e4"]),
        ("e2", "e2", vec!["e2", "c1", "e3", "c2", "e4"]),
        ("e2", "c2", vec!["c2", "e4"]),
        ("e2", "nowhere", vec!["c2", "e4"]),
        ("e2", "other", vec!["c2", "e4"]),
        ("nowhere", "e1", vec!["e1", "e2", "c1", "e3", "c2", "e4"]),
    ] {
        let lines = [
            HEADER.to_owned(),
            user_line("e1", None, "one"),
            user_line("other", Some("e1"), "another branch"),
            user_line("e2", Some("e1"), "two"),
            compaction("c1", "e2", first),
            user_line("e3", Some("c1"), "three"),
            compaction("c2", "e3", second),
            user_line("e4", Some("c2"), "four"),
        ];
        let (_dir, path) = on_disk(text(&lines));
        let (log, _) = SessionLog::open(&path, "/").unwrap();
        let branch = seen_branch(&log, Some("e4"));
        let ids: Vec<&str> = branch.iter().map(|entry| entry.id.as_str()).collect();
        assert_eq!(ids, seen, "{first} {second}");
        for leaf in ["e1", "other", "e2", "c1", "e3", "c2", "e4", "nothing"] {
            let (all, seen) = (log.context(Some(leaf)), seen_context(&log, Some(leaf)));
            assert_eq!(all.messages, seen.messages, "{first} {second} {leaf}");
            assert_eq!((all.kept, all.compaction), (seen.kept, seen.compaction));
        }
    }
}

#[test]
fn cleared_messages_are_not_seen() {
    let reset =
        r#"{"type":"reset_boundary","id":"r1","parentId":"e2","timestamp":"2025-11-01T10:00:00.600Z"}"#;
    let compaction = r#"{"type":"compaction","id":"c1","parentId":"e3","timestamp":"2025-11-01T10:00:00.700Z","summary":"sum","firstKeptEntryId":"e2","tokensBefore":7}"#;
    let lines = [
        HEADER.to_owned(),
        user_line("e1", None, "one"),
        user_line("e2", Some("e1"), "two"),
        reset.to_owned(),
        user_line("e3", Some("r1"), "three"),
        compaction.to_owned(),
    ];
    let (_dir, path) = on_disk(text(&lines));
    let (log, damage) = SessionLog::open(&path, "/").unwrap();
    assert!(damage.is_none(), "{damage}");
    // A later compaction decides again what the model sees, as in oh-my-pi.
    for (leaf, seen, count) in [
        ("e2", vec!["e1", "e2"], 2),
        ("r1", vec!["r1"], 0),
        ("e3", vec!["r1", "e3"], 1),
        ("c1", vec!["e2", "r1", "e3", "c1"], 3),
    ] {
        let branch = seen_branch(&log, Some(leaf));
        let ids: Vec<&str> = branch.iter().map(|entry| entry.id.as_str()).collect();
        assert_eq!(ids, seen);
        let context = log.context(Some(leaf));
        assert_eq!(context.messages.len(), count, "{leaf}");
        assert_eq!(
            context.messages,
            seen_context(&log, Some(leaf)).messages,
            "{leaf}"
        );
    }
}

#[test]
fn context_edits_of_current_pi_apply() {
    let edit = |id: &str, parent: &str, target: &str, replacement: &str| {
        format!(
            r#"{{"type":"context_edit","id":"{id}","parentId":"{parent}","timestamp":"2025-11-01T10:00:00.700Z","targetId":"{target}","replacement":{replacement}}}"#
        )
    };
    let mut lines = vec![
        HEADER.to_owned(),
        user_line("e1", None, "one"),
        user_line("e2", Some("e1"), "two"),
    ];
    lines.push(edit("x1", "e2", "e1", r#"{"content":"shorter"}"#));
    lines.push(edit("x2", "x1", "e2", "\"first try\""));
    lines.push(edit("x3", "x2", "e2", "null"));
    let (_dir, path) = on_disk(text(&lines));
    let (log, damage) = SessionLog::open(&path, "/").unwrap();
    assert!(damage.is_none(), "{damage}");
    let got = messages(&log);
    // Text stays text in a message of the user, as pi 1.5.2 reads it; answers and results hold blocks.
    assert_eq!(
        got,
        json!([{"role": "user", "content": "shorter", "timestamp": 1_761_991_212_000_i64}])
    );
}

#[test]
fn unknown_entries_and_roles_keep_position() {
    let mut lines = vec![HEADER.to_owned(), user_line("e1", None, "one")];
    lines.push(r#"{"type":"mode_change","id":"m1","parentId":"e1","timestamp":"2025-11-01T10:00:00.700Z","mode":"plan"}"#.into());
    lines.push(r#"{"type":"message","id":"m2","parentId":"m1","timestamp":"2025-11-01T10:00:00.700Z","message":{"role":"system","content":"be kind","timestamp":5}}"#.into());
    lines.push(user_line("e2", Some("m2"), "two"));
    let (_dir, path) = on_disk(text(&lines));
    let (log, damage) = SessionLog::open(&path, "/").unwrap();
    assert!(damage.is_none(), "{damage}");
    assert_eq!(log.branch(log.leaf_id()).len(), 4);
    assert!(matches!(&log.entries()[1].body, EntryBody::Other(map) if map["mode"] == "plan"));
    assert_eq!(log.context(log.leaf_id()).messages.len(), 3);
}

#[test]
fn non_session_file_is_refused_unchanged() {
    let long = "just text\n".repeat(10_000);
    let cases: [&[u8]; 9] = [
        b"hello\n", b"\n\nhello", b"{}", b"[1,2]\n", b"{\"type\":\"session\"}\n", b"{\"type\":\"session\",\"id\":7}\n",
        b"\0\0\0", long.as_bytes(), b"{\"type\":\"message\",\"id\":\"a\",\"parentId\":null,\"timestamp\":\"t\",\"message\":{\"role\":\"user\",\"content\":\"x\"}}\n",
    ];
    for content in cases {
        let (_dir, path) = on_disk(content);
        let error = SessionLog::open(&path, "/").unwrap_err();
        assert!(
            matches!(error, StoreError::NotASession { .. }),
            "{:?}: {error}",
            String::from_utf8_lossy(content)
        );
        assert_eq!(fs::read(&path).unwrap(), content);
    }
}

#[cfg(unix)]
#[test]
fn directories_fifos_and_devices_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo.jsonl");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let null = std::path::Path::new("/dev/null");
    for path in [dir.path(), &fifo, null] {
        let error = SessionLog::open(path, "/").unwrap_err();
        assert!(matches!(error, StoreError::NotAFile { .. }), "{error}");
    }
    let nul = dir.path().join("a\0b");
    assert!(SessionLog::open(&nul, "/").is_err());
    let missing = SessionLog::open(&dir.path().join("none"), "/").unwrap_err();
    assert!(matches!(missing, StoreError::Missing { .. }));
    assert!(!dir.path().join("none").exists());
}

/// An export reads a session that another writer has open: an old one is migrated in memory only.
#[test]
fn read_only_session_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let v1 = concat!(
        r#"{"type":"session","id":"a","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/"}"#,
        "\n",
        r#"{"type":"message","timestamp":"2025-01-01T00:00:01.000Z","message":{"role":"user","content":"hello"}}"#,
        "\n",
    );
    fs::write(&path, v1).unwrap();
    let mut log = open_read_only(&path).unwrap();
    assert_eq!(log.entries().len(), 1);
    assert!(!log.entries()[0].id.is_empty(), "migrated in memory");
    assert!(log.append(user("more")).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), v1);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    let (owner, _) = SessionLog::open(&path, "/").unwrap();
    assert_eq!(
        open_read_only(&path).unwrap().entries().len(),
        1,
        "also while it is open"
    );
    drop(owner);
}

#[test]
fn read_only_errors_are_worded_as_clients_know() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut log = SessionLog::create(Some(path.clone()), new_header("/", None)).unwrap();
    log.ensure_on_disk().unwrap();
    drop(log);
    let empty = open_read_only(&path).unwrap_err();
    assert!(matches!(empty, StoreError::Empty));
    assert_eq!(
        empty.to_string(),
        "Nothing to export yet - start a conversation first"
    );
    let missing = dir.path().join("none.jsonl");
    assert_eq!(
        open_read_only(&missing).unwrap_err().to_string(),
        format!("File not found: {}", missing.display())
    );
}
