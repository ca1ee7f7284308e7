//! What new sessions look like on disk, and when.

use std::fs;
use std::path::Path;

use serde_json::Value;
use wire::EntryBody;
use wire::entry::{Label, ModelChange, SessionInfo, ThinkingLevelChange};

use super::fixtures::*;
use crate::{SessionLog, StoreError, iso_to_ms, new_header, paths};

fn first_entries() -> Vec<EntryBody> {
    vec![
        EntryBody::ModelChange(ModelChange {
            provider: "mock-anthropic".into(),
            model_id: "claude-mock".into(),
            model: None,
            extra: wire::Extra::default(),
        }),
        EntryBody::ThinkingLevelChange(ThinkingLevelChange {
            thinking_level: Some("medium".into()),
            extra: wire::Extra::default(),
        }),
    ]
}

#[test]
fn session_is_written_at_commit_then_per_entry() {
    let dir = tempfile::tempdir().unwrap();
    let header = new_header("/home/u/app", Some("/old.jsonl"));
    let path =
        paths::session_dir(dir.path(), &header.cwd).join(paths::file_name(&header.timestamp, &header.id));
    let mut log = SessionLog::create(Some(path.clone()), header).unwrap();
    log.append_batch(first_entries()).unwrap();
    log.append(user("First.")).unwrap();
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        0,
        "written before the commit point"
    );
    log.ensure_on_disk().unwrap();
    log.ensure_on_disk().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 4);
    log.append(answer("One.")).unwrap();
    let content = fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = content
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let keys = |n: usize| {
        lines[n]
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(keys(0), "type version id timestamp cwd parentSession");
    assert_eq!(keys(1), "type id parentId timestamp provider modelId");
    assert_eq!(keys(2), "type id parentId timestamp thinkingLevel");
    assert_eq!(keys(3), "type id parentId timestamp message");
    assert_eq!(lines[1]["parentId"], Value::Null);
    for n in 2..5 {
        assert_eq!(lines[n]["parentId"], lines[n - 1]["id"]);
        let id = lines[n]["id"].as_str().unwrap();
        assert!(id.len() == 8 && id.bytes().all(|b| b.is_ascii_hexdigit()), "{id}");
        assert!(iso_to_ms(lines[n]["timestamp"].as_str().unwrap()).is_some());
    }
    let seen = log.entries().to_vec();
    drop(log);
    let (log, damage) = SessionLog::open(&path, "/").unwrap();
    assert!(damage.is_none(), "{damage}");
    assert_eq!(log.entries(), seen);
}

#[cfg(unix)]
#[test]
fn session_files_and_directories_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sessions/--a--/s.jsonl");
    let mut log = SessionLog::create(Some(path.clone()), new_header("/a", None)).unwrap();
    log.ensure_on_disk().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (
            mode(&path),
            mode(path.parent().unwrap()),
            mode(&dir.path().join("sessions"))
        ),
        (0o600, 0o700, 0o700)
    );
}

#[test]
fn in_memory_session_never_touches_disk() {
    let mut log = SessionLog::create(None, new_header("/a", None)).unwrap();
    log.append(user("1")).unwrap();
    log.ensure_on_disk().unwrap();
    log.append(answer("2")).unwrap();
    assert_eq!(
        (log.path(), log.is_on_disk(), log.entries().len()),
        (None, false, 2)
    );
    assert_eq!(log.context(log.leaf_id()).messages.len(), 2);
}

#[cfg(unix)]
#[test]
fn create_never_follows_or_replaces_existing_file() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("target");
    let link = dir.path().join("link.jsonl");
    std::os::unix::fs::symlink(&target, &link).unwrap();
    assert!(matches!(
        SessionLog::create(Some(link), new_header("/", None)).unwrap_err(),
        StoreError::AlreadyExists { .. }
    ));
    // Put there after `create` and before the first write.
    let late = dir.path().join("late.jsonl");
    let mut log = SessionLog::create(Some(late.clone()), new_header("/", None)).unwrap();
    log.append(user("1")).unwrap();
    std::os::unix::fs::symlink(&target, &late).unwrap();
    assert!(matches!(
        log.ensure_on_disk().unwrap_err(),
        StoreError::AlreadyExists { .. }
    ));
    assert!(!target.exists());
    fs::remove_file(&late).unwrap();
    log.ensure_on_disk().unwrap();
    assert_eq!(fs::read_to_string(&late).unwrap().lines().count(), 2);
}

#[test]
fn acknowledged_entries_are_in_file_before_close() {
    let (_dir, path) = on_disk(text(&[HEADER]));
    let (mut log, _) = SessionLog::open(&path, "/").unwrap();
    for n in 1..=500 {
        let entry = log.append(user(&n.to_string())).unwrap();
        let content = fs::read_to_string(&path).unwrap();
        assert_eq!(content.lines().count(), n + 1);
        assert!(content.lines().last().unwrap().contains(&entry.id));
    }
    // As if killed: nothing is dropped, nothing flushed.
    std::mem::forget(log);
    let copy = path.with_extension("copy");
    fs::copy(&path, &copy).unwrap();
    assert_eq!(SessionLog::open(&copy, "/").unwrap().0.entries().len(), 500);
}

#[test]
fn last_name_and_label_win() {
    let mut log = SessionLog::create(None, new_header("/", None)).unwrap();
    let first = log.append(user("1")).unwrap();
    let name = |name: &str| {
        EntryBody::SessionInfo(SessionInfo {
            name: name.into(),
            extra: wire::Extra::default(),
        })
    };
    let label = |label: Option<&str>| {
        EntryBody::Label(Label {
            target_id: first.id.clone(),
            label: label.map(str::to_owned),
            extra: wire::Extra::default(),
        })
    };
    log.append(name("  a name ")).unwrap();
    assert_eq!(log.session_name(), Some("a name"));
    log.append(name("")).unwrap();
    assert_eq!(log.session_name(), None);
    log.append(label(Some("x"))).unwrap();
    log.append(label(Some("y"))).unwrap();
    assert_eq!(log.label(&first.id), Some("y"));
    log.append(label(None)).unwrap();
    assert_eq!(log.label(&first.id), None);
}

#[test]
fn directory_and_file_names_match_pi() {
    assert_eq!(paths::encode_cwd("/home/u/my.app"), "--home-u-my.app--");
    assert_eq!(paths::encode_cwd("C:\\work\\x"), "--C--work-x--");
    assert_eq!(paths::encode_cwd("/"), "----");
    let of_omp = |cwd: &str| {
        let home = Some(Path::new("/no/home"));
        paths::omp_directory(Path::new(cwd), home, Path::new("/no/tmp"))
    };
    let table = [
        ("/no/home/a/my.app", Some("-a-my.app")),
        ("/no/home", Some("-")),
        ("/no/tmp", Some("-tmp")),
        ("/no/tmp/a/b", Some("-tmp-a-b")),
        ("/no/homes/a", None),
    ];
    for (cwd, name) in table {
        assert_eq!(of_omp(cwd).as_deref(), name, "{cwd}");
    }
    let name = paths::file_name("2026-11-20T23:46:11.841Z", "01a1fb5a-7501-7c62-bc5c-cebc5d52d56c");
    assert_eq!(
        name,
        "2026-11-20T23-46-11-841Z_01a1fb5a-7501-7c62-bc5c-cebc5d52d56c.jsonl"
    );
    assert_eq!(
        paths::id_of_file_name(Path::new(&name)),
        Some("01a1fb5a-7501-7c62-bc5c-cebc5d52d56c")
    );
    for hostile in ["../../x", "a/b", "a\0b", "..", "\u{202e}x"] {
        let name = paths::file_name("t", hostile);
        assert!(
            !name.contains(['/', '\0', '\u{202e}']) && !name.contains(".."),
            "{name}"
        );
    }
    let (one, two) = (
        format!("/{}", "é".repeat(3000)),
        format!("/{}x", "é".repeat(3000)),
    );
    assert!(paths::encode_cwd(&one).len() <= 255);
    assert_ne!(paths::encode_cwd(&one), paths::encode_cwd(&two));
}

#[test]
fn external_entries_keep_ids_and_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.jsonl");
    let line = |id: &str, parent: &str, body: &str| {
        wire::Entry::from_json(&format!(
            r#"{{"id":"{id}","parentId":{parent},"timestamp":"t",{body}}}"#
        ))
        .unwrap()
    };
    let info = r#""type":"session_info","name":"n""#;
    let label = r#""type":"label","targetId":"aa","label":"x""#;
    let mut log = SessionLog::create(Some(path.clone()), new_header("/x", None)).unwrap();
    let made = vec![
        line("aa", "null", info),
        line("bb", r#""aa""#, label),
        line("aa", r#""bb""#, info),
        line("", "null", info),
    ];
    log.append_made(made).unwrap();
    log.ensure_on_disk().unwrap();
    log.append(user("More.")).unwrap();
    assert_eq!(log.entries().last().unwrap().parent_id.as_deref(), Some("bb"));
    log.append_made(vec![line("bb", "null", info)]).unwrap();
    drop(log);
    let (log, damage) = SessionLog::open(&path, "/x").unwrap();
    assert!(damage.is_none(), "{damage:?}");
    let ids: Vec<&str> = log
        .entries()
        .iter()
        .take(2)
        .map(|entry| entry.id.as_str())
        .collect();
    assert_eq!((ids, log.entries().len()), (vec!["aa", "bb"], 3));
}
