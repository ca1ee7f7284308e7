//! Versions 1 and 2 (pi-core.md 2.6).

use std::fs;

use serde_json::Value;

use super::fixtures::*;
use crate::SessionLog;

fn v1() -> String {
    text(&[
        r#"{"type":"session","id":"old","timestamp":"2025-05-01T10:00:00.000Z","cwd":"/x","provider":"p","modelId":"m","thinkingLevel":"off","branchedFrom":"/parent.jsonl"}"#,
        r#"{"type":"message","timestamp":"2025-05-01T10:00:01.000Z","message":{"role":"user","content":"one","timestamp":1}}"#,
        "{damaged",
        r#"{"type":"message","timestamp":"2025-05-01T10:00:02.000Z","message":{"role":"user","content":"two","timestamp":2},"odd":[1]}"#,
        r#"{"type":"compaction","timestamp":"2025-05-01T10:00:03.000Z","summary":"sum","firstKeptEntryIndex":2,"tokensBefore":9}"#,
        r#"{"type":"message","timestamp":"2025-05-01T10:00:04.000Z","message":{"role":"hookMessage","customType":"x","content":"three","display":true,"timestamp":3}}"#,
    ])
}

#[test]
fn version_1_migration_adds_ids_and_keeps_compaction() {
    for torn in ["", "{\"type\":\"mess"] {
        let content = v1() + torn;
        let (_dir, path) = on_disk(&content);
        let (mut log, damage) = SessionLog::open(&path, "/").unwrap();
        assert_eq!((damage.migrated_from, damage.skipped_lines), (Some(1), 1));
        assert_eq!(damage.torn_bytes, torn.len() as u64);
        assert_eq!(fs::read_to_string(damage.backup.unwrap()).unwrap(), content);
        assert_eq!(log.header().version, Some(3));
        assert_eq!(log.header().parent_session.as_deref(), Some("/parent.jsonl"));
        assert_eq!(log.branch(log.leaf_id()).len(), 4);
        let texts: Vec<Value> = log
            .context(log.leaf_id())
            .messages
            .iter()
            .map(|m| serde_json::to_value(&**m).unwrap())
            .map(|m| m.get("summary").or(m.get("content")).unwrap().clone())
            .collect();
        assert_eq!(texts, ["sum", "two", "three"]);
        log.append(user("four")).unwrap();
        let seen = ids(&log);
        drop(log);
        let (log, damage) = SessionLog::open(&path, "/").unwrap();
        assert_eq!((damage.migrated_from, damage.torn_bytes), (None, 0));
        assert_eq!(ids(&log), seen);
        let now = fs::read_to_string(&path).unwrap();
        assert!(
            now.contains("\"odd\":[1]") && now.contains("\"modelId\":\"m\"") && now.contains("{damaged\n")
        );
        assert!(!now.contains("firstKeptEntryIndex") && !now.contains("hookMessage"));
    }
}

#[test]
fn version_2_migration_keeps_ids() {
    let lines = [
        HEADER.replace("\"version\":3", "\"version\":2"),
        user_line("aaaa0003", None, "q"),
        r#"{"type":"message","id":"aaaa0005","parentId":"aaaa0003","timestamp":"2025-11-01T10:00:03.000Z","message":{"role":"hookMessage","customType":"x","content":"from hook","display":true,"timestamp":1761991203000}}"#.into(),
    ];
    let (_dir, path) = on_disk(text(&lines));
    let (log, damage) = SessionLog::open(&path, "/").unwrap();
    assert_eq!(damage.migrated_from, Some(2));
    assert!(damage.is_none());
    drop(log);
    let expected = [
        HEADER.to_owned(),
        lines[1].clone(),
        lines[2].replace("hookMessage", "custom"),
    ];
    assert_eq!(fs::read_to_string(&path).unwrap(), text(&expected));
}

#[test]
fn migrated_file_is_locked_private_and_alone() {
    let (dir, path) = on_disk(v1());
    // Left by a process that was killed in the middle of it.
    let litter = dir
        .path()
        .join(format!(".{}.new", path.file_name().unwrap().to_str().unwrap()));
    fs::write(&litter, "half").unwrap();
    let (log, damage) = SessionLog::open(&path, "/").unwrap();
    assert!(matches!(
        SessionLog::open(&path, "/").unwrap_err(),
        crate::StoreError::Locked { .. }
    ));
    let names = fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(names, 2, "the session and its backup");
    drop(log);
    // A second migration keeps the first backup.
    fs::write(&path, v1()).unwrap();
    let (_, second) = SessionLog::open(&path, "/").unwrap();
    assert_ne!(damage.backup, second.backup);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
}

#[test]
fn newer_version_is_read_unchanged() {
    let content = text(&[
        HEADER.replace("\"version\":3", "\"version\":4"),
        user_line("e1", None, "q"),
    ]);
    let (_dir, path) = on_disk(&content);
    let (log, damage) = SessionLog::open(&path, "/").unwrap();
    assert!(damage.is_none());
    assert_eq!((log.header().version, log.entries().len()), (Some(4), 1));
    drop(log);
    assert_eq!(fs::read_to_string(&path).unwrap(), content);
}
