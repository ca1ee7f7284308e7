//! Two openers of one file, and writers that know nothing of our lock.

use std::fs::{self, OpenOptions};
use std::io::Write;

use super::fixtures::*;
use crate::{SessionLog, StoreError};

#[test]
fn second_open_is_refused_with_owner_pid() {
    let (_dir, path) = on_disk(text(&all_entries()));
    let (log, _) = SessionLog::open(&path, "/").unwrap();
    match SessionLog::open(&path, "/").unwrap_err() {
        StoreError::Locked { pid, .. } => {
            assert!(pid.is_none_or(|pid| pid == std::process::id()), "{pid:?}");
            #[cfg(target_os = "linux")]
            assert!(pid.is_some() || !std::path::Path::new("/proc/locks").exists());
        }
        other => panic!("{other}"),
    }
    drop(log);
    SessionLog::open(&path, "/").unwrap();
    assert_eq!(
        fs::read_dir(path.parent().unwrap()).unwrap().count(),
        1,
        "a lock must leave nothing behind"
    );
}

#[test]
fn new_session_is_locked_at_first_write() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a/b/s.jsonl");
    let mut log = SessionLog::create(Some(path.clone()), crate::new_header("/", None)).unwrap();
    log.ensure_on_disk().unwrap();
    assert!(matches!(
        SessionLog::open(&path, "/").unwrap_err(),
        StoreError::Locked { .. }
    ));
    assert!(matches!(
        SessionLog::create(Some(path), crate::new_header("/", None)).unwrap_err(),
        StoreError::AlreadyExists { .. }
    ));
}

#[test]
fn foreign_lines_become_entries_without_moving_leaf() {
    let (_dir, path) = on_disk(text(&all_entries()));
    let (mut log, _) = SessionLog::open(&path, "/").unwrap();
    let ours = log.append(user("ours")).unwrap();
    let mut foreign = OpenOptions::new().append(true).open(&path).unwrap();
    writeln!(foreign, "{}", user_line("ffff0001", Some("aaaa0013"), "theirs")).unwrap();
    write!(foreign, "{{\"type\":\"mess").unwrap();
    let next = log.append(user("ours again")).unwrap();
    assert_eq!(next.parent_id.as_deref(), Some(ours.id.as_str()));
    assert!(log.entry("ffff0001").is_some());
    assert_eq!(log.damage().torn_bytes, 13);
    let seen = ids(&log);
    drop(log);
    let (log, damage) = SessionLog::open(&path, "/").unwrap();
    assert!(damage.is_none(), "{damage}");
    assert_eq!(ids(&log), seen);
    assert_eq!(log.children(Some("aaaa0013")).len(), 2);
}

#[test]
fn foreign_append_after_unterminated_line_is_read() {
    for glue in ["", "\n"] {
        let (_dir, path) = on_disk(text(&all_entries()).trim_end());
        let (mut log, damage) = SessionLog::open(&path, "/").unwrap();
        assert!(damage.unterminated);
        let mut foreign = OpenOptions::new().append(true).open(&path).unwrap();
        writeln!(
            foreign,
            "{glue}{}",
            user_line("ffff0001", Some("aaaa0013"), "theirs")
        )
        .unwrap();
        log.append(user("ours")).unwrap();
        assert_eq!(log.entries().len(), 14, "{glue:?}");
        drop(log);
        assert_eq!(
            SessionLog::open(&path, "/").unwrap().0.entries().len(),
            14,
            "{glue:?}"
        );
    }
}

#[test]
fn torn_foreign_append_keeps_unterminated_line() {
    let (_dir, path) = on_disk(text(&all_entries()).trim_end());
    let (mut log, _) = SessionLog::open(&path, "/").unwrap();
    let mut foreign = OpenOptions::new().append(true).open(&path).unwrap();
    write!(foreign, "{{\"type\":\"mess").unwrap();
    log.append(user("ours")).unwrap();
    drop(log);
    let (log, damage) = SessionLog::open(&path, "/").unwrap();
    assert!(damage.is_none(), "{damage}");
    assert_eq!(log.entries().len(), 13);
}

#[test]
fn truncated_or_replaced_file_is_not_written_to() {
    let content = text(&all_entries());
    let (dir, path) = on_disk(&content);
    let (mut log, _) = SessionLog::open(&path, "/").unwrap();
    fs::write(&path, &content[..content.len() / 2]).unwrap();
    assert!(matches!(
        log.append(user("x")).unwrap_err(),
        StoreError::Changed { .. }
    ));
    assert_eq!(log.entries().len(), 12);
    let other = dir.path().join("other");
    fs::write(&other, &content).unwrap();
    fs::rename(&other, &path).unwrap();
    assert!(matches!(
        log.append(user("x")).unwrap_err(),
        StoreError::Changed { .. }
    ));
    assert_eq!(fs::read_to_string(&path).unwrap(), content);
}

#[test]
fn unlocked_file_can_be_opened_anew() {
    let (_dir, path) = on_disk(text(&all_entries()));
    let (mut log, _) = SessionLog::open(&path, "/").unwrap();
    let is_locked = || matches!(SessionLog::open(&path, "/"), Err(StoreError::Locked { .. }));
    assert!(is_locked());
    crate::unlock(&log);
    assert!(!is_locked());
    crate::lock_again(&mut log).unwrap();
    assert!(is_locked());
    crate::unlock(&log);
    let (other, _) = SessionLog::open(&path, "/").unwrap();
    assert!(matches!(
        crate::lock_again(&mut log).unwrap_err(),
        StoreError::Locked { .. }
    ));
    let error = log.append(user("x")).unwrap_err().to_string();
    assert!(error.contains("open in another process"), "{error}");
    drop(other);
    log.append(user("y")).unwrap();
    assert!(is_locked());
}

#[test]
fn removed_file_is_recreated_with_all_entries() {
    let (_dir, path) = on_disk(text(&all_entries()));
    let (mut log, _) = SessionLog::open(&path, "/").unwrap();
    fs::remove_file(&path).unwrap();
    log.append(user("x")).unwrap();
    assert!(matches!(
        SessionLog::open(&path, "/").unwrap_err(),
        StoreError::Locked { .. }
    ));
    drop(log);
    let (log, damage) = SessionLog::open(&path, "/").unwrap();
    assert!(damage.is_none());
    assert_eq!(log.entries().len(), 13);
}

#[test]
fn removed_empty_file_is_recreated_at_first_write() {
    let (_dir, path) = on_disk("");
    let (mut log, _) = SessionLog::open(&path, "/").unwrap();
    log.append(user("first")).unwrap();
    fs::remove_file(&path).unwrap();
    log.ensure_on_disk().unwrap();
    assert!(fs::read_to_string(&path).unwrap().contains("first"));
    assert!(matches!(
        SessionLog::open(&path, "/").unwrap_err(),
        StoreError::Locked { .. }
    ));
}

#[test]
fn replaced_empty_file_refuses_first_write() {
    let (dir, path) = on_disk("");
    let (mut log, _) = SessionLog::open(&path, "/").unwrap();
    log.append(user("first")).unwrap();
    let other = dir.path().join("other");
    fs::write(&other, "theirs").unwrap();
    fs::rename(&other, &path).unwrap();
    assert!(matches!(
        log.ensure_on_disk().unwrap_err(),
        StoreError::Changed { .. }
    ));
    assert_eq!(
        (log.waiting(), fs::read_to_string(&path).unwrap().as_str()),
        (1, "theirs")
    );
}

#[test]
fn concurrent_appends_of_two_writers_never_mix() {
    let (_dir, path) = on_disk(text(&[HEADER]));
    let (mut log, _) = SessionLog::open(&path, "/").unwrap();
    let other = path.clone();
    let foreign = std::thread::spawn(move || {
        for n in 0..3_000 {
            let mut file = OpenOptions::new().append(true).open(&other).unwrap();
            let line = user_line(&format!("f{n:07}"), None, &"f".repeat(n % 700)) + "\n";
            file.write_all(line.as_bytes()).unwrap();
        }
    });
    for n in 0..3_000 {
        log.append(user(&"o".repeat(n % 700))).unwrap();
    }
    foreign.join().unwrap();
    log.catch_up().unwrap();
    assert_eq!(log.entries().len(), 6_000);
    assert_eq!(log.branch(log.leaf_id()).len(), 3_000);
    drop(log);
    let (log, damage) = SessionLog::open(&path, "/").unwrap();
    assert!(damage.is_none(), "{damage}");
    assert_eq!(log.entries().len(), 6_000);
}

/// A process that knows nothing of our locks writes 50,000 lines, each in one call, while 50,000 entries are appended.
#[test]
#[ignore = "takes a minute; see docs/project/robustness.md"]
fn two_writers_in_two_processes_never_mix() {
    use std::process::{Command, Stdio};

    const COUNT: usize = 50_000;
    let (_dir, path) = on_disk(text(&[HEADER]));
    let (mut log, _) = SessionLog::open(&path, "/").unwrap();
    let mut other = Command::new("sh")
        .args([
            "-c",
            r#"while IFS= read -r line; do printf '%s\n' "$line" >> "$0"; done"#,
        ])
        .arg(&path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = other.stdin.take().unwrap();
    let feeder = std::thread::spawn(move || {
        for n in 0..COUNT {
            let line = user_line(&format!("f{n:07}"), None, &"f".repeat(n % 700)) + "\n";
            lines.write_all(line.as_bytes()).unwrap();
        }
    });
    for n in 0..COUNT {
        log.append(user(&"o".repeat(n % 700))).unwrap();
    }
    feeder.join().unwrap();
    assert!(other.wait().unwrap().success());
    log.catch_up().unwrap();
    assert_eq!(log.entries().len(), 2 * COUNT);
    assert_eq!(log.branch(log.leaf_id()).len(), COUNT);
    drop(log);
    let (log, damage) = SessionLog::open(&path, "/").unwrap();
    assert!(damage.is_none(), "{damage}");
    assert_eq!(log.entries().len(), 2 * COUNT);
}
