//! Forks and clones (pi-core.md 2.9).

use std::fs;

use super::fixtures::*;
use crate::{ForkScope, SessionLog, StoreError, new_header};

#[test]
fn fork_copies_path_with_unknown_members_and_labels() {
    let mut lines = all_entries();
    // A member of a later version, and a branch that must not come along.
    lines[4] = lines[4].replacen(
        "\"timestamp\":1761991202000}",
        "\"timestamp\":1761991202000,\"thinkingLevel\":\"high\"}",
        1,
    );
    lines.push(user_line("bbbb0001", Some("aaaa0003"), "other branch"));
    let (dir, path) = on_disk(text(&lines));
    let (log, _) = SessionLog::open(&path, "/").unwrap();
    let new = dir.path().join("fork.jsonl");
    let header = new_header("/home/u/app", path.to_str());
    let mut fork = log
        .fork(Some(new.clone()), header, ForkScope::Path("aaaa0013"))
        .unwrap();
    assert!(!new.exists());
    fork.ensure_on_disk().unwrap();
    let added = fork.append(user("next")).unwrap();
    drop(fork);
    let (fork, damage) = SessionLog::open(&new, "/").unwrap();
    assert!(damage.is_none(), "{damage}");
    let got = ids(&fork);
    let path_ids: Vec<&str> = lines[1..13]
        .iter()
        .map(|l| l.split("\"id\":\"").nth(1).unwrap().split('"').next().unwrap())
        .collect();
    let kept: Vec<&str> = path_ids.into_iter().filter(|id| *id != "aaaa0009").collect();
    assert_eq!(got[..kept.len()], kept[..]);
    assert_eq!(got.len(), kept.len() + 2);
    assert_eq!(fork.label("aaaa0003"), Some("mark"));
    assert_eq!(
        fork.tree().nodes[2].label_timestamp.as_deref(),
        Some("2025-11-01T10:00:07.000Z")
    );
    assert_eq!(
        fork.branch(Some(&added.id)).len(),
        got.len(),
        "the label left a gap in the chain"
    );
    assert_eq!(fork.header().parent_session.as_deref(), path.to_str());
    let content = fs::read_to_string(&new).unwrap();
    assert!(content.contains("\"thinkingLevel\":\"high\""));
    assert!(
        content.lines().any(|line| line == lines[4]),
        "untouched lines are copied as they are"
    );
}

/// Without the label before it, an entry of an unknown type has another parent, in its own members as well.
#[test]
fn path_fork_relinks_entry_of_unknown_type() {
    let mut lines = all_entries();
    lines.push(r#"{"type":"label","id":"bbbb0001","parentId":"aaaa0013","timestamp":"2025-11-01T10:00:12.000Z","targetId":"aaaa0003","label":"new"}"#.into());
    lines.push(r#"{"type":"usage","id":"bbbb0002","parentId":"bbbb0001","timestamp":"2025-11-01T10:00:13.000Z","kind":"title"}"#.into());
    let (dir, path) = on_disk(text(&lines));
    let (log, _) = SessionLog::open(&path, "/").unwrap();
    let new = dir.path().join("fork.jsonl");
    let mut fork = log
        .fork(
            Some(new.clone()),
            new_header("/", None),
            ForkScope::Path("bbbb0002"),
        )
        .unwrap();
    let entry = std::sync::Arc::clone(fork.entry("bbbb0002").unwrap());
    let said = serde_json::to_value(&*entry).unwrap();
    assert_eq!(said["parentId"], "aaaa0013");
    fork.ensure_on_disk().unwrap();
    drop(fork);
    let (fork, _) = SessionLog::open(&new, "/").unwrap();
    assert_eq!(fork.entry("bbbb0002"), Some(&entry));
}

#[test]
fn path_fork_contains_mended_entries() {
    // After a label, and after a missing parent: both get another parent.
    let cut = text(&all_entries()).replace("branch text", "branch \\ud83d text");
    let mut orphan = text(&[HEADER.to_owned(), user_line("bbbb0001", Some("gone"), "caf#")]).into_bytes();
    for byte in orphan.iter_mut().filter(|byte| **byte == b'#') {
        *byte = 0xff;
    }
    for (content, leaf, mended) in [
        (cut.into_bytes(), "aaaa0013", "branch \u{fffd} text"),
        (orphan, "bbbb0001", "caf\u{fffd}"),
    ] {
        let (dir, path) = on_disk(content);
        let (log, _) = SessionLog::open(&path, "/").unwrap();
        let new = dir.path().join("fork.jsonl");
        let mut fork = log
            .fork(Some(new.clone()), new_header("/", None), ForkScope::Path(leaf))
            .unwrap();
        fork.ensure_on_disk().unwrap();
        drop(fork);
        let (fork, damage) = SessionLog::open(&new, "/").unwrap();
        assert!(damage.is_none(), "{damage}");
        assert!(fork.entry(leaf).is_some());
        assert!(fs::read_to_string(&new).unwrap().contains(mended));
    }
}

#[test]
fn unwritten_session_and_fork_can_be_forked() {
    let dir = tempfile::tempdir().unwrap();
    let mut log = SessionLog::create(Some(dir.path().join("a.jsonl")), new_header("/", None)).unwrap();
    let first = log.append(user("1")).unwrap();
    log.append(answer("2")).unwrap();
    let fork = log
        .fork(
            Some(dir.path().join("b.jsonl")),
            new_header("/", None),
            ForkScope::Path(&first.id),
        )
        .unwrap();
    assert_eq!(fork.entries(), [first]);
    let mut again = fork
        .fork(
            Some(dir.path().join("c.jsonl")),
            new_header("/", None),
            ForkScope::All,
        )
        .unwrap();
    again.append(user("3")).unwrap();
    again.ensure_on_disk().unwrap();
    let count = again.entries().len();
    drop(again);
    assert_eq!(
        SessionLog::open(&dir.path().join("c.jsonl"), "/")
            .unwrap()
            .0
            .entries()
            .len(),
        count
    );
    let memory = log.fork(None, new_header("/", None), ForkScope::All).unwrap();
    assert_eq!(memory.entries(), log.entries());
    assert!(matches!(
        log.fork(None, new_header("/", None), ForkScope::Path("nope"))
            .unwrap_err(),
        StoreError::NoEntry { .. }
    ));
}

#[test]
fn full_fork_copies_every_line_unchanged() {
    let mut lines = all_entries();
    lines.push(user_line("bbbb0001", Some("aaaa0003"), "other branch"));
    let (dir, path) = on_disk(text(&lines));
    let (mut log, _) = SessionLog::open(&path, "/").unwrap();
    log.append(user("written by us")).unwrap();
    let new = dir.path().join("copy.jsonl");
    let mut copy = log
        .fork(Some(new.clone()), new_header("/", None), ForkScope::All)
        .unwrap();
    copy.ensure_on_disk().unwrap();
    let body = |path| {
        fs::read_to_string(path)
            .unwrap()
            .split_once('\n')
            .unwrap()
            .1
            .to_owned()
    };
    assert_eq!(body(&new), body(&path));
    assert_eq!(copy.leaf_id(), log.leaf_id());
}
