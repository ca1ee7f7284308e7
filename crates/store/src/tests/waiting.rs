//! Entries that wait for a disk to work again: they keep their ids and their order, and are in the file once.

use std::fs;
use std::path::Path;

use super::faults::Memory;
use super::fixtures::*;
use crate::{SessionLog, StoreError};

fn open(disk: &Memory) -> SessionLog {
    let opened = SessionLog::open_on(Box::new(disk.clone()), Path::new("s.jsonl"), "/");
    opened.unwrap().0
}

fn reread(disk: &Memory) -> SessionLog {
    let log = open(disk);
    assert!(log.damage().is_none(), "{}", log.damage());
    log
}

#[test]
fn kept_entries_reach_disk_later() {
    let content = text(&all_entries()).into_bytes();
    // How much of the first entry fits, and how it gets out again: by itself, or with the next entry.
    for room in [0, 1, 100, 250] {
        for by_next in [false, true] {
            let disk = Memory::holding(&content);
            let mut log = open(&disk);
            disk.limit(Some(content.len() + room));
            for number in 0..3 {
                let error = log
                    .keep(vec![user(&number.to_string()), answer("yes")])
                    .unwrap_err();
                assert!(matches!(error, StoreError::Io { .. }), "{error}");
                assert_eq!(log.waiting(), 2 * (number + 1));
            }
            assert_eq!(disk.content(), content, "room {room}");
            assert_eq!(log.entries().len(), 18);
            log.flush().unwrap_err();
            disk.limit(None);
            let writes = disk.appends();
            if by_next {
                log.keep(vec![user("last")]).unwrap();
            } else {
                log.flush().unwrap();
            }
            assert_eq!((log.waiting(), disk.appends()), (0, writes + 1));
            log.append(user("after")).unwrap();
            let seen = log.entries().to_vec();
            assert_eq!(reread(&disk).entries(), seen);
            assert_eq!(reread(&disk).leaf_id(), log.leaf_id());
        }
    }
}

#[test]
fn append_waits_for_kept_entries() {
    let content = text(&all_entries()).into_bytes();
    let disk = Memory::holding(&content);
    let mut log = open(&disk);
    disk.limit(Some(content.len()));
    log.keep(vec![user("kept")]).unwrap_err();
    log.append(user("refused")).unwrap_err();
    assert_eq!((log.waiting(), log.entries().len()), (1, 13));
    disk.limit(None);
    log.append(user("taken")).unwrap();
    assert_eq!((log.waiting(), ids(&reread(&disk))), (0, ids(&log)));
    assert_eq!(log.entries().len(), 14);
}

/// A write that failed half-way and cannot be taken back: whole lines of it are not written twice.
#[test]
fn lines_left_in_file_are_not_written_twice() {
    let content = text(&all_entries()).into_bytes();
    let disk = Memory::holding(&content);
    let mut log = open(&disk);
    disk.limit(Some(content.len() + 400));
    disk.fail_truncate(true);
    log.keep(vec![user("1"), user("2"), user("3")]).unwrap_err();
    let left = disk.content().len() - content.len();
    assert_eq!(left, 400, "more than one line");
    disk.limit(None);
    disk.fail_truncate(false);
    log.flush().unwrap();
    assert_eq!(log.waiting(), 0);
    let fresh = reread(&disk);
    assert_eq!(fresh.entries(), log.entries());
    assert!(log.damage().is_none() || log.damage().duplicate_entries == 0);
}

#[test]
fn retried_entries_keep_lines_of_other_writer() {
    let content = text(&all_entries()).into_bytes();
    let disk = Memory::holding(&content);
    let mut log = open(&disk);
    disk.limit(Some(content.len()));
    log.keep(vec![user("ours")]).unwrap_err();
    disk.limit(None);
    disk.add(&text(&[user_line("ffff0001", Some("aaaa0013"), "theirs")]));
    // One more comes between our look at the file and our write.
    disk.arrive(1, &text(&[user_line("ffff0002", Some("aaaa0013"), "theirs")]));
    log.flush().unwrap();
    log.append(user("ours too")).unwrap();
    let fresh = reread(&disk);
    assert_eq!((fresh.entries().len(), log.entries().len()), (16, 16));
    let mut both = (ids(&fresh), ids(&log));
    both.0.sort();
    both.1.sort();
    assert_eq!(both.0, both.1);
    let fork = log.fork(None, crate::new_header("/", None), crate::ForkScope::All);
    assert_eq!(fork.unwrap().entries().len(), 16);
}

#[test]
fn session_without_creatable_file_waits_as_whole() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("sessions");
    fs::write(&dir, "in the way").unwrap();
    let path = dir.join("s.jsonl");
    let mut log = SessionLog::create(Some(path.clone()), crate::new_header("/", None)).unwrap();
    log.keep(vec![user("1"), answer("2")]).unwrap();
    assert_eq!(log.waiting(), 0, "nobody wants it on disk yet");
    log.ensure_on_disk().unwrap_err();
    log.keep(vec![user("3")]).unwrap();
    assert_eq!(log.waiting(), 3);
    fs::remove_file(&dir).unwrap();
    log.flush().unwrap();
    assert_eq!(log.waiting(), 0);
    drop(log);
    let (log, damage) = SessionLog::open(&path, "/").unwrap();
    assert!(damage.is_none());
    assert_eq!(log.entries().len(), 3);
}

#[test]
fn dropped_log_writes_waiting_entries() {
    let content = text(&all_entries()).into_bytes();
    let disk = Memory::holding(&content);
    let mut log = open(&disk);
    disk.limit(Some(content.len()));
    log.keep(vec![user("1")]).unwrap_err();
    disk.limit(None);
    let seen = log.entries().to_vec();
    drop(log);
    assert_eq!(reread(&disk).entries(), seen);
}

#[test]
fn removed_directory_is_recreated_with_whole_session() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("a/b");
    let path = dir.join("s.jsonl");
    let mut log = SessionLog::create(Some(path.clone()), crate::new_header("/", None)).unwrap();
    log.append(user("1")).unwrap();
    log.ensure_on_disk().unwrap();
    log.append(answer("2")).unwrap();
    fs::remove_dir_all(place.path().join("a")).unwrap();
    log.append(user("3")).unwrap();
    // It is locked again.
    let error = SessionLog::open(&path, "/").unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    let seen = log.entries().to_vec();
    drop(log);
    let (log, damage) = SessionLog::open(&path, "/").unwrap();
    assert!(damage.is_none());
    assert_eq!(log.entries(), seen);
}

#[test]
fn open_existing_refuses_empty_files() {
    for content in ["", "\n", " \n\t\n"] {
        let (_dir, path) = on_disk(content);
        let error = SessionLog::open_existing(&path, "/").unwrap_err();
        assert!(matches!(error, StoreError::NotASession { .. }), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
    let (_dir, path) = on_disk("{\"type\":\"session\",\"vers");
    SessionLog::open_existing(&path, "/").unwrap();
}
