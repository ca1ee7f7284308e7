//! What listings remember: it is used, it is never believed too much, and nothing that happens to it can be seen.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use super::fixtures::*;
use crate::{Listing, SessionSummary, list, list_all};

/// A directory of sessions and a place for a cache.
struct Shelf {
    dir: TempDir,
    cache: PathBuf,
}

impl Shelf {
    fn new(sessions: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path().join("cache/sessions");
        let shelf = Self { dir, cache };
        for n in 0..sessions {
            shelf.put(&shelf.session(n), &content(n));
        }
        shelf
    }

    fn root(&self) -> PathBuf {
        self.dir.path().join("sessions")
    }

    fn session(&self, n: usize) -> PathBuf {
        self.root().join(format!("--{}--/{n}_s.jsonl", n % 3))
    }

    /// Writes a session that was last changed some time ago.
    fn put(&self, path: &Path, content: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        long_ago(path, 100);
    }

    fn cached(&self) -> Vec<SessionSummary> {
        list_all(&self.root(), Listing::Cached(&self.cache)).unwrap()
    }

    fn plain(&self) -> Vec<SessionSummary> {
        list_all(&self.root(), Listing::Plain).unwrap()
    }

    fn remembers(&self, n: usize) -> bool {
        let text = fs::read_to_string(&self.cache).unwrap();
        text.contains(&*self.session(n).to_string_lossy())
    }
}

fn long_ago(path: &Path, seconds: u64) {
    let file = File::options().append(true).open(path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 - seconds))
        .unwrap();
}

fn content(n: usize) -> String {
    let header = HEADER.replace("01234567", &format!("{n:08}"));
    let filler = "x".repeat(600);
    let mut lines = vec![header, user_line("e1", None, &format!("question {n}"))];
    lines.extend((0..n + 3).map(|k| user_line(&format!("f{k}"), None, &filler)));
    text(&lines)
}

fn append(path: &Path, bytes: &str) {
    let mut file = File::options().append(true).open(path).unwrap();
    file.write_all(bytes.as_bytes()).unwrap();
}

fn count(list: &[SessionSummary], path: &Path) -> u64 {
    list.iter().find(|s| s.path == path).unwrap().message_count
}

#[test]
fn listing_is_equal_with_and_without_cache() {
    let shelf = Shelf::new(10);
    let plain = shelf.plain();
    assert_eq!(plain.len(), 10);
    for _ in 0..3 {
        assert_eq!(shelf.cached(), plain);
    }
    assert!(shelf.remembers(9));
    // Written once: nothing changed since.
    let written = fs::metadata(&shelf.cache).unwrap().modified().unwrap();
    shelf.cached();
    assert_eq!(fs::metadata(&shelf.cache).unwrap().modified().unwrap(), written);
}

#[test]
fn unchanged_file_is_not_read_again() {
    let shelf = Shelf::new(3);
    let before = shelf.cached();
    // The same size, time and inode, so only reading could tell.
    let path = shelf.session(1);
    let changed = fs::read_to_string(&path).unwrap().replace("question", "Question");
    fs::write(&path, changed).unwrap();
    long_ago(&path, 100);
    assert_eq!(shelf.cached(), before);
    // Another time alone is reason enough to read it.
    long_ago(&path, 99);
    assert_eq!(shelf.cached(), shelf.plain());
    assert_ne!(shelf.cached(), before);
}

#[test]
fn grown_file_is_scanned_from_last_end() {
    let shelf = Shelf::new(3);
    let path = shelf.session(2);
    let before = count(&shelf.cached(), &path);
    // Were the first part read again, one message less would be found.
    let broken = fs::read_to_string(&path).unwrap().replacen(
        "\"id\":\"f1\",\"parentId\":null,\"timestamp\"",
        "\"id\":\"f1\",\"parentId\":null;\"timestamp\"",
        1,
    );
    fs::write(&path, broken).unwrap();
    append(&path, &text(&[user_line("g1", Some("f1"), "more"), "{\"type\":\"session_info\",\"id\":\"g2\",\"parentId\":\"g1\",\"timestamp\":\"t\",\"name\":\"grown\"}".into()]));
    long_ago(&path, 50);
    let grown = shelf.cached();
    assert_eq!(count(&grown, &path), before + 1);
    assert_eq!(count(&shelf.plain(), &path), before);
    let name = |list: &[SessionSummary]| list.iter().find(|s| s.path == path).unwrap().name.clone();
    assert_eq!(name(&grown).as_deref(), Some("grown"));
    assert_eq!(shelf.cached(), grown);
}

#[test]
fn rewritten_file_is_scanned_whole() {
    let shelf = Shelf::new(3);
    shelf.cached();
    let path = shelf.session(0);
    let other = content(7);
    fs::write(&path, &other).unwrap();
    long_ago(&path, 100);
    assert_eq!(shelf.cached(), shelf.plain());
    // The same beginning, another end.
    let longer = content(7).replace("\"id\":\"f9\"", "\"id\":\"h9\"") + &content(3);
    fs::write(&path, longer).unwrap();
    assert_eq!(shelf.cached(), shelf.plain());
    // Another file of the same name, size and time.
    let path = shelf.session(1);
    shelf.put(
        &shelf.root().join("other"),
        &content(1).replace("question", "QUESTION"),
    );
    fs::rename(shelf.root().join("other"), &path).unwrap();
    assert_eq!(shelf.cached(), shelf.plain());
}

#[test]
fn unfinished_or_recent_lines_are_not_cached() {
    let shelf = Shelf::new(2);
    let (torn, fresh) = (shelf.session(0), shelf.session(1));
    let line = user_line("g1", None, "half");
    let (half, rest) = line.split_at(40);
    append(&torn, half);
    long_ago(&torn, 100);
    let file = File::options().append(true).open(&fresh).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(60))
        .unwrap();
    let before = count(&shelf.cached(), &torn);
    assert!(!shelf.cache.exists() || !shelf.remembers(0) && !shelf.remembers(1));
    append(&torn, rest);
    long_ago(&torn, 100);
    assert_eq!(count(&shelf.cached(), &torn), before + 1, "whole, if not ended");
    append(&torn, "\n");
    long_ago(&torn, 100);
    assert_eq!(count(&shelf.cached(), &torn), before + 1);
    assert!(shelf.remembers(0));
}

#[test]
fn damaged_cache_is_ignored() {
    let shelf = Shelf::new(4);
    let plain = shelf.plain();
    shelf.cached();
    let good = fs::read(&shelf.cache).unwrap();
    let mut damaged: Vec<Vec<u8>> = (0..good.len())
        .step_by(7)
        .map(|cut| good[..cut].to_vec())
        .collect();
    damaged.extend((0..good.len()).step_by(3).map(|at| {
        let mut bytes = good.clone();
        bytes[at] ^= 1 << (at % 8);
        bytes
    }));
    damaged.push([good.as_slice(), b"{}"].concat());
    for bytes in damaged {
        fs::write(&shelf.cache, &bytes).unwrap();
        assert_eq!(shelf.cached(), plain, "{:?}", String::from_utf8_lossy(&bytes));
        assert_eq!(fs::read(&shelf.cache).unwrap().len(), good.len(), "made anew");
    }
    fs::remove_file(&shelf.cache).unwrap();
    assert_eq!(shelf.cached(), plain);
}

#[test]
fn unwritable_cache_is_no_error() {
    let shelf = Shelf::new(2);
    let plain = shelf.plain();
    let file = shelf.dir.path().join("file");
    fs::write(&file, "x").unwrap();
    for cache in [
        file.join("below"),
        shelf.root(),
        PathBuf::from("/proc/self/cache"),
    ] {
        assert_eq!(
            list_all(&shelf.root(), Listing::Cached(&cache)).unwrap(),
            plain,
            "{}",
            cache.display()
        );
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "x");
}

#[test]
fn cache_forgets_removed_files_and_keeps_others() {
    let shelf = Shelf::new(6);
    shelf.cached();
    fs::remove_file(shelf.session(3)).unwrap();
    fs::remove_file(shelf.session(4)).unwrap();
    let own = shelf.session(0);
    let found = list(own.parent().unwrap(), Listing::Cached(&shelf.cache)).unwrap();
    assert_eq!(found.len(), 1);
    assert!(!shelf.remembers(3), "it was in the directory that was listed");
    assert!(shelf.remembers(4) && shelf.remembers(5), "they were not");
    fs::remove_dir_all(shelf.session(1).parent().unwrap()).unwrap();
    assert_eq!(shelf.cached().len(), 3);
    assert!(!shelf.remembers(1) && !shelf.remembers(4) && shelf.remembers(5));
}

#[test]
fn oversized_cache_rows_are_still_listed() {
    let shelf = Shelf::new(2);
    let long = "y".repeat(crate::limits::CACHE_ROW);
    shelf.put(&shelf.session(0), &text(&[HEADER, &user_line("e1", None, &long)]));
    for _ in 0..2 {
        let found = shelf.cached();
        assert!(found.iter().any(|s| s.first_message == long));
    }
    assert!(!shelf.remembers(0) && shelf.remembers(1));
    assert!(fs::metadata(&shelf.cache).unwrap().len() < 2 * crate::limits::CACHE_ROW as u64);
}

#[cfg(unix)]
#[test]
fn listing_cache_is_private_without_leftovers() {
    use std::os::unix::fs::PermissionsExt;
    let shelf = Shelf::new(2);
    let litter = shelf.cache.with_file_name(".sessions.new");
    fs::create_dir_all(litter.parent().unwrap()).unwrap();
    fs::write(&litter, "half").unwrap();
    shelf.cached();
    assert!(!shelf.cache.exists(), "another process is at it");
    long_ago(&litter, 1);
    shelf.cached();
    let mode = fs::metadata(&shelf.cache).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode, litter.exists()), (0o600, false));
}

#[test]
fn concurrent_listings_and_writer_agree() {
    let shelf = Shelf::new(12);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..30 {
                    assert_eq!(shelf.cached().len(), 12);
                }
            });
        }
        for n in 0..200 {
            append(
                &shelf.session(n % 12),
                &text(&[user_line(&format!("w{n}"), None, "w")]),
            );
        }
    });
    let plain = shelf.plain();
    assert_eq!(
        plain.iter().map(|s| s.message_count).sum::<u64>(),
        (0..12).map(|n| n + 4).sum::<u64>() + 200
    );
    assert_eq!(shelf.cached(), plain);
    assert_eq!(shelf.cached(), plain);
}
