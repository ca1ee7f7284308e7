//! Disks that are full, that fail, that write half and that forget (GUARANTEES.md 11, 72).

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::fixtures::*;
use crate::{Durability, Medium, Presence, SessionLog, StoreError};

/// A disk in memory. Clones share it, as two processes share a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Memory(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    synced: usize,
    capacity: Option<usize>,
    fail_append: Option<io::ErrorKind>,
    /// The system's error number for all reads, or all writes, after so many bytes were taken.
    fail_reads: Option<i32>,
    fail_writes: Option<(usize, i32)>,
    /// Most bytes that one call takes.
    at_once: Option<usize>,
    fail_truncate: bool,
    fail_sync: bool,
    appends: usize,
    /// Bytes that another writer adds after this many size checks.
    arrives: Option<(usize, Vec<u8>)>,
}

impl Memory {
    pub(super) fn holding(content: &[u8]) -> Self {
        let disk = Self::default();
        disk.with(|s| (s.bytes, s.synced) = (content.to_vec(), content.len()));
        disk
    }

    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.0.lock().unwrap())
    }

    pub(super) fn content(&self) -> Vec<u8> {
        self.with(|s| s.bytes.clone())
    }

    pub(super) fn limit(&self, capacity: Option<usize>) {
        self.with(|s| s.capacity = capacity);
    }

    pub(super) fn fail_truncate(&self, fails: bool) {
        self.with(|s| s.fail_truncate = fails);
    }

    pub(super) fn appends(&self) -> usize {
        self.with(|s| s.appends)
    }

    pub(super) fn cut(&self, len: usize) {
        self.with(|s| s.bytes.truncate(len));
    }

    pub(super) fn add(&self, text: &str) {
        self.with(|s| s.bytes.extend(text.bytes()));
    }

    pub(super) fn arrive(&self, looks: usize, text: &str) {
        self.with(|s| s.arrives = Some((looks, text.as_bytes().to_vec())));
    }
}

impl Medium for Memory {
    fn size(&self) -> io::Result<u64> {
        Ok(self.with(|s| {
            match s.arrives.take() {
                Some((0, bytes)) => s.bytes.extend(bytes),
                Some((looks, bytes)) => s.arrives = Some((looks - 1, bytes)),
                None => {}
            }
            s.bytes.len() as u64
        }))
    }
    fn presence(&self) -> io::Result<Presence> {
        Ok(Presence::Same)
    }
    fn read_from(&self, offset: u64) -> io::Result<Vec<u8>> {
        self.with(|s| match s.fail_reads {
            Some(number) => Err(io::Error::from_raw_os_error(number)),
            None => Ok(s.bytes[offset as usize..].to_vec()),
        })
    }
    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let bytes = self.read_from(offset)?;
        bytes
            .get(..len)
            .map(<[u8]>::to_vec)
            .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.with(|s| {
            s.appends += 1;
            if let Some(kind) = s.fail_append.take() {
                return Err(kind.into());
            }
            let room = s
                .capacity
                .map_or(usize::MAX, |c| c - s.bytes.len())
                .min(bytes.len());
            if room == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let mut room = room.min(s.at_once.unwrap_or(usize::MAX));
            if let Some((left, number)) = &mut s.fail_writes {
                if *left == 0 {
                    return Err(io::Error::from_raw_os_error(*number));
                }
                room = room.min(*left);
                *left -= room;
            }
            s.bytes.extend_from_slice(&bytes[..room]);
            Ok(room)
        })
    }
    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.with(|s| {
            if s.fail_truncate {
                return Err(io::ErrorKind::Other.into());
            }
            s.bytes.truncate(len as usize);
            s.synced = s.synced.min(len as usize);
            Ok(())
        })
    }
    fn sync(&mut self) -> io::Result<()> {
        self.with(|s| {
            if s.fail_sync {
                return Err(io::ErrorKind::Other.into());
            }
            s.synced = s.bytes.len();
            Ok(())
        })
    }
    fn replace(&mut self, bytes: &[u8]) -> io::Result<Option<PathBuf>> {
        self.with(|s| (s.bytes, s.synced) = (bytes.to_vec(), bytes.len()));
        Ok(None)
    }
    fn restore(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn open(disk: &Memory) -> SessionLog {
    SessionLog::open_on(Box::new(disk.clone()), Path::new("s.jsonl"), "/")
        .unwrap()
        .0
}

fn bytes(disk: &Memory) -> Vec<u8> {
    disk.with(|s| s.bytes.clone())
}

#[test]
fn batch_is_written_at_once() {
    let disk = Memory::holding(text(&all_entries()).as_bytes());
    let mut log = open(&disk);
    log.append_batch(vec![user("1"), answer("2"), user("3")]).unwrap();
    log.append(user("4")).unwrap();
    assert_eq!(disk.with(|s| s.appends), 2);
}

#[test]
fn full_disk_keeps_file_whole_and_recovers() {
    let content = text(&all_entries()).into_bytes();
    // At every fill level of the disk, from no room at all to just one byte too little.
    let line = {
        let disk = Memory::holding(&content);
        open(&disk).append(user("x")).unwrap();
        bytes(&disk).len() - content.len()
    };
    for room in 0..line {
        let disk = Memory::holding(&content);
        disk.with(|s| s.capacity = Some(content.len() + room));
        let mut log = open(&disk);
        let error = log.append(user("x")).unwrap_err();
        assert!(matches!(error, StoreError::Io { .. }), "{error}");
        assert_eq!(bytes(&disk), content, "room {room}");
        assert_eq!(
            (log.entries().len(), log.leaf_id()),
            (12, Some("aaaa0013")),
            "room {room}"
        );
        disk.with(|s| s.capacity = None);
        let added = log.append(user("x")).unwrap();
        drop(log);
        let log = open(&disk);
        assert!(log.damage().is_none());
        assert_eq!(log.leaf_id(), Some(added.id.as_str()));
    }
}

#[test]
fn failing_disk_is_reported_per_call_and_recovers() {
    const EIO: i32 = 5;
    let content = text(&all_entries()).into_bytes();
    // At once, and after some bytes were written.
    for taken in [0, 1, 50] {
        let disk = Memory::holding(&content);
        let mut log = open(&disk);
        disk.with(|s| s.fail_writes = Some((taken, EIO)));
        for _ in 0..2 {
            let error = log.append(user("x")).unwrap_err();
            assert_eq!(
                error.to_string(),
                "cannot write s.jsonl: Input/output error (os error 5)"
            );
            assert_eq!((bytes(&disk), log.leaf_id()), (content.clone(), Some("aaaa0013")));
            disk.with(|s| s.fail_writes = Some((taken, EIO)));
        }
        disk.with(|s| s.fail_writes = None);
        log.append(user("x")).unwrap();
        drop(log);
        let log = open(&disk);
        assert_eq!((log.damage().is_none(), log.entries().len()), (true, 13));
    }
    // While another writer's lines are read, and on opening.
    let disk = Memory::holding(&content);
    let mut log = open(&disk);
    disk.with(|s| {
        s.bytes
            .extend(text(&[user_line("ffff0001", None, "theirs")]).bytes());
        s.fail_reads = Some(EIO);
    });
    let error = log.append(user("x")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read s.jsonl: Input/output error (os error 5)"
    );
    let error = SessionLog::open_on(Box::new(disk.clone()), Path::new("s.jsonl"), "/").unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot read s.jsonl: Input/output error (os error 5)"
    );
    disk.with(|s| s.fail_reads = None);
    log.append(user("x")).unwrap();
    assert_eq!((open(&disk).entries().len(), log.entries().len()), (14, 14));
}

#[test]
fn short_writes_are_completed() {
    let content = text(&all_entries()).into_bytes();
    for at_once in [1, 7, 100] {
        let disk = Memory::holding(&content);
        disk.with(|s| s.at_once = Some(at_once));
        let mut log = open(&disk);
        log.append_batch(vec![user("1"), answer("2")]).unwrap();
        log.append(user("3")).unwrap();
        let seen = log.entries().to_vec();
        drop(log);
        let log = open(&disk);
        assert!(log.damage().is_none());
        assert_eq!(log.entries(), seen);
    }
}

/// A directory in which even root cannot create files; none if the system has no such directory.
#[cfg(target_os = "linux")]
fn forbidden_dir() -> Option<PathBuf> {
    let dir = PathBuf::from("/sys");
    let probe = std::fs::File::create_new(dir.join("pinion-probe")).map_err(|e| e.kind());
    let refused = [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem];
    probe.is_err_and(|kind| refused.contains(&kind)).then_some(dir)
}

#[cfg(target_os = "linux")]
#[test]
fn unwritable_directory_is_an_error_and_keeps_entries() {
    let Some(forbidden) = forbidden_dir() else {
        // Not `println!`: the harness hides what a passing test prints.
        let line = b"skipped: no directory here refuses files\n";
        std::io::Write::write_all(&mut std::io::stderr(), line).unwrap();
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let link = place.path().join("sessions");
    std::os::unix::fs::symlink(&forbidden, &link).unwrap();
    let path = link.join("s.jsonl");
    let mut log = SessionLog::create(Some(path.clone()), crate::new_header("/", None)).unwrap();
    log.append(user("1")).unwrap();
    for _ in 0..2 {
        let error = log.ensure_on_disk().unwrap_err();
        let told = format!("cannot create {}: ", path.display());
        assert!(error.to_string().starts_with(&told), "{error}");
        assert!(!log.is_on_disk());
    }
    log.append(answer("2")).unwrap();
    // The directory may be written again.
    std::fs::remove_file(&link).unwrap();
    std::fs::create_dir(&link).unwrap();
    log.ensure_on_disk().unwrap();
    log.append(user("3")).unwrap();
    drop(log);
    let (log, damage) = SessionLog::open(&path, "/").unwrap();
    assert!(damage.is_none());
    assert_eq!(log.entries().len(), 3);
}

#[test]
fn batch_is_written_whole_or_not_at_all() {
    let content = text(&all_entries()).into_bytes();
    let disk = Memory::holding(&content);
    disk.with(|s| s.capacity = Some(content.len() + 300));
    let mut log = open(&disk);
    log.append_batch(vec![user("1"), user("2"), user("3")])
        .unwrap_err();
    assert_eq!(bytes(&disk), content);
    assert_eq!(log.entries().len(), 12);
}

#[test]
fn torn_write_is_truncated_by_next_append() {
    let content = text(&all_entries()).into_bytes();
    let disk = Memory::holding(&content);
    disk.with(|s| (s.capacity, s.fail_truncate) = (Some(content.len() + 20), true));
    let mut log = open(&disk);
    log.append(user("x")).unwrap_err();
    assert_eq!(bytes(&disk).len(), content.len() + 20);
    log.append(user("x")).unwrap_err();
    disk.with(|s| (s.capacity, s.fail_truncate) = (None, false));
    let added = log.append(user("y")).unwrap();
    let (fresh, damage) = SessionLog::open_on(Box::new(disk), Path::new("s.jsonl"), "/").unwrap();
    assert!(damage.is_none(), "{damage}");
    assert_eq!(fresh.entries().len(), 13);
    assert_eq!(fresh.leaf_id(), Some(added.id.as_str()));
}

#[test]
fn line_of_concurrent_writer_is_not_truncated() {
    let line = user_line("ffff0001", Some("aaaa0013"), "theirs") + "\n";
    let (half, rest) = line.split_at(60);
    for looks in 1..4 {
        let disk = Memory::holding((text(&all_entries()) + half).as_bytes());
        let mut log = open(&disk);
        disk.with(|s| s.arrives = Some((looks, rest.as_bytes().to_vec())));
        log.append(user("ours")).unwrap();
        assert_eq!(log.entries().len(), 14, "after {looks} looks");
        let log = open(&disk);
        assert!(log.damage().is_none(), "after {looks} looks: {}", log.damage());
        assert_eq!(log.entries().len(), 14, "after {looks} looks");
    }
}

#[test]
fn interrupted_writes_repeat_and_other_errors_fail() {
    let disk = Memory::holding(text(&all_entries()).as_bytes());
    let mut log = open(&disk);
    disk.with(|s| s.fail_append = Some(io::ErrorKind::Interrupted));
    log.append(user("1")).unwrap();
    disk.with(|s| s.fail_append = Some(io::ErrorKind::Other));
    log.append(user("2")).unwrap_err();
    disk.with(|s| s.fail_append = Some(io::ErrorKind::PermissionDenied));
    assert!(matches!(
        log.append(user("3")).unwrap_err(),
        StoreError::ReadOnly { .. }
    ));
    log.append(user("4")).unwrap();
    assert_eq!(open(&disk).entries().len(), 14);
}

#[test]
fn failed_first_write_is_retried() {
    let disk = Memory::default();
    let mut log = open(&disk);
    log.append(user("1")).unwrap();
    disk.with(|s| s.capacity = Some(30));
    log.ensure_on_disk().unwrap_err();
    assert_eq!(bytes(&disk), b"");
    assert!(!log.is_on_disk());
    log.append(user("2")).unwrap();
    disk.with(|s| s.capacity = None);
    log.ensure_on_disk().unwrap();
    log.append(answer("3")).unwrap();
    assert_eq!(open(&disk).entries().len(), 3);
}

#[test]
fn disk_durability_keeps_all_acknowledged_entries() {
    let disk = Memory::default();
    let mut log = open(&disk);
    log.set_durability(Durability::Disk);
    log.ensure_on_disk().unwrap();
    let mut random = 7_u64;
    let mut acknowledged = Vec::new();
    for round in 0..10_000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        disk.with(|s| s.fail_sync = (random >> 33).is_multiple_of(5));
        if let Ok(entry) = log.append(user(&round.to_string())) {
            acknowledged.push(entry.id.clone());
        }
        if (random >> 40).is_multiple_of(50) {
            // Power fails: unsynced bytes are lost.
            disk.with(|s| s.bytes.truncate(s.synced));
            drop(log);
            log = open(&disk);
            log.set_durability(Durability::Disk);
        }
    }
    disk.with(|s| s.bytes.truncate(s.synced));
    assert!(acknowledged.len() > 5_000);
    assert_eq!(ids(&open(&disk)), acknowledged);
}
