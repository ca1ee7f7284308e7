//! Session files as pi 0.74 and today's pi write them, and helpers to put them on disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use wire::{AssistantBlock, AssistantMessage, EntryBody, Message};

use crate::SessionLog;

pub(super) const SESSION_ID: &str = "01234567-89ab-7cde-8f01-23456789abcd";
pub(super) const HEADER: &str = r#"{"type":"session","version":3,"id":"01234567-89ab-7cde-8f01-23456789abcd","timestamp":"2025-11-01T10:00:00.000Z","cwd":"/home/u/app"}"#;

/// Every type of entry, in the key orders pi uses (golden `switch-session-all-entries`).
pub(super) fn all_entries() -> Vec<String> {
    let assistant = r#"{"role":"assistant","content":[{"type":"text","text":"Old answer"}],"api":"anthropic-messages","provider":"mock-anthropic","model":"claude-mock","usage":{"input":10,"output":5,"cacheRead":0,"cacheWrite":0,"totalTokens":15,"cost":{"input":0.1,"output":0.2,"cacheRead":0,"cacheWrite":0,"total":0.3}},"stopReason":"stop","timestamp":1761991202000}"#;
    [
        HEADER.to_owned(),
        r#"{"type":"model_change","id":"aaaa0001","parentId":null,"timestamp":"2025-11-01T10:00:00.001Z","provider":"mock-anthropic","modelId":"claude-mock"}"#.into(),
        r#"{"type":"thinking_level_change","id":"aaaa0002","parentId":"aaaa0001","timestamp":"2025-11-01T10:00:00.002Z","thinkingLevel":"low"}"#.into(),
        r#"{"type":"message","id":"aaaa0003","parentId":"aaaa0002","timestamp":"2025-11-01T10:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":"Old question"}],"timestamp":1761991201000}}"#.into(),
        format!(r#"{{"type":"message","id":"aaaa0004","parentId":"aaaa0003","timestamp":"2025-11-01T10:00:02.000Z","message":{assistant}}}"#),
        r#"{"type":"session_info","id":"aaaa0006","parentId":"aaaa0004","timestamp":"2025-11-01T10:00:04.000Z","name":"named session"}"#.into(),
        r#"{"type":"custom","customType":"ext","data":{"k":1},"id":"aaaa0007","parentId":"aaaa0006","timestamp":"2025-11-01T10:00:05.000Z"}"#.into(),
        r#"{"type":"custom_message","customType":"note","content":"custom text","display":true,"details":{"d":1},"id":"aaaa0008","parentId":"aaaa0007","timestamp":"2025-11-01T10:00:06.000Z"}"#.into(),
        r#"{"type":"label","id":"aaaa0009","parentId":"aaaa0008","timestamp":"2025-11-01T10:00:07.000Z","targetId":"aaaa0003","label":"mark"}"#.into(),
        r#"{"type":"branch_summary","id":"aaaa0010","parentId":"aaaa0009","timestamp":"2025-11-01T10:00:08.000Z","fromId":"aaaa0004","summary":"branch text"}"#.into(),
        r#"{"type":"message","id":"aaaa0011","parentId":"aaaa0010","timestamp":"2025-11-01T10:00:09.000Z","message":{"role":"bashExecution","command":"ls","output":"a\nb","exitCode":0,"cancelled":false,"truncated":false,"timestamp":1761991209000}}"#.into(),
        r#"{"type":"message","id":"aaaa0012","parentId":"aaaa0011","timestamp":"2025-11-01T10:00:10.000Z","message":{"role":"user","content":"String content","timestamp":1761991210000}}"#.into(),
        format!(r#"{{"type":"message","id":"aaaa0013","parentId":"aaaa0012","timestamp":"2025-11-01T10:00:11.000Z","message":{assistant}}}"#),
    ]
    .into()
}

/// Lines joined, each with its line feed.
pub(super) fn text(lines: &[impl AsRef<str>]) -> String {
    lines.iter().map(|line| format!("{}\n", line.as_ref())).collect()
}

pub(super) fn user_line(id: &str, parent: Option<&str>, text: &str) -> String {
    let parent = parent.map_or("null".to_owned(), |p| format!("\"{p}\""));
    format!(
        r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2025-11-01T10:00:12.000Z","message":{{"role":"user","content":[{{"type":"text","text":"{text}"}}],"timestamp":1761991212000}}}}"#
    )
}

pub(super) fn user(text: &str) -> EntryBody {
    EntryBody::message(Arc::new(Message::user(text, 1)))
}

pub(super) fn answer(text: &str) -> EntryBody {
    let mut message = AssistantMessage::begin("a", "p", "m", 1);
    message.content.push(AssistantBlock::text(text));
    EntryBody::message(Arc::new(Message::Assistant(message)))
}

/// A directory with one file in it.
pub(super) fn on_disk(content: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir
        .path()
        .join(format!("2025-11-01T10-00-00-000Z_{SESSION_ID}.jsonl"));
    fs::write(&path, content).unwrap();
    (dir, path)
}

pub(super) fn ids(log: &SessionLog) -> Vec<String> {
    log.entries().iter().map(|e| e.id.clone()).collect()
}

/// Opens, appends one message, and shows that a second opening finds everything and no damage at the end.
pub(super) fn append_survives(path: &Path) {
    let (mut log, at_first) = SessionLog::open(path, "/").unwrap();
    let before = ids(&log);
    let added = log.append(user("after the repair")).unwrap();
    drop(log);
    let (log, damage) = SessionLog::open(path, "/").unwrap();
    let after = ids(&log);
    assert_eq!(after[..before.len()], before[..]);
    assert_eq!(after.last(), Some(&added.id));
    assert_eq!((damage.torn_bytes, damage.unterminated), (0, false));
    assert_eq!(
        (damage.skipped_lines, damage.salvaged),
        (at_first.skipped_lines, at_first.salvaged)
    );
    assert!(fs::read(path).unwrap().ends_with(b"\n"));
}
