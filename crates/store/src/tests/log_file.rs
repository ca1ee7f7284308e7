//! Tests of the file of a session by itself: bytes on a disk in memory, without entries.

use std::path::{Path, PathBuf};

use super::faults::Memory;
use crate::StoreError;
use crate::forest::Span;
use crate::load::Tail;
use crate::log_file::LogFile;

fn name() -> &'static Path {
    Path::new("s.jsonl")
}

fn read(disk: &Memory, torn: u64, unterminated: bool) -> LogFile {
    let tail = Tail {
        whole: disk.content().len() as u64 - torn,
        torn,
        unterminated,
    };
    LogFile::read(name(), Box::new(disk.clone()), tail)
}

#[test]
fn write_gives_the_place_of_lines() {
    let disk = Memory::holding(b"head\n");
    let mut file = read(&disk, 0, false);
    let written = file.write(b"one\n").unwrap();
    assert_eq!((written.offset, written.is_mixed), (5, false));
    assert_eq!(file.write(b"two\n").unwrap().offset, 9);
    assert_eq!(file.line(Span { offset: 9, len: 3 }).unwrap().unwrap(), b"two");
}

#[test]
fn missing_line_feed_goes_out_with_lines() {
    let disk = Memory::holding(b"head");
    let mut file = read(&disk, 0, true);
    assert_eq!(file.write(b"one\n").unwrap().offset, 5);
    assert_eq!(disk.content(), b"head\none\n");
    assert_eq!(disk.appends(), 1);
    assert_eq!(file.write(b"two\n").unwrap().offset, 9);
}

#[test]
fn line_feed_is_still_missing_after_failure() {
    let disk = Memory::holding(b"head");
    let mut file = read(&disk, 0, true);
    disk.limit(Some(6));
    file.write(b"one\n").unwrap_err();
    assert_eq!(disk.content(), b"head");
    disk.limit(None);
    assert_eq!(file.write(b"one\n").unwrap().offset, 5);
    assert_eq!(disk.content(), b"head\none\n");
}

#[test]
fn line_feed_is_still_missing_after_torn_bytes() {
    let disk = Memory::holding(b"head");
    let mut file = read(&disk, 0, true);
    disk.add("{\"th");
    file.advance(Tail {
        torn: 4,
        ..Tail::default()
    });
    file.cut_torn().unwrap();
    assert_eq!(file.write(b"one\n").unwrap().offset, 5);
    assert_eq!(disk.content(), b"head\none\n");
}

#[test]
fn other_writer_makes_a_write_mixed() {
    let disk = Memory::holding(b"head\n");
    let mut file = read(&disk, 0, false);
    disk.arrive(0, "theirs\n");
    assert!(file.write(b"ours\n").unwrap().is_mixed);
    let (from, rest) = file.rest().unwrap();
    assert_eq!((from, rest.as_slice()), (5, &b"ours\ntheirs\n"[..]));
    let whole = rest.len() as u64;
    file.advance(Tail {
        whole,
        ..Tail::default()
    });
    assert!(!file.has_news().unwrap());
    assert_eq!(file.write(b"more\n").unwrap().offset, 17);
}

#[test]
fn file_shorter_than_known_part_is_changed() {
    let disk = Memory::holding(b"head\none\n");
    let mut file = read(&disk, 0, false);
    disk.cut(3);
    let error = file.has_news().unwrap_err();
    assert!(matches!(error, StoreError::Changed { .. }), "{error}");
}

#[test]
fn torn_end_is_known_and_cut() {
    let disk = Memory::holding(b"head\n{\"ha");
    let mut file = read(&disk, 4, false);
    assert!(file.is_torn());
    assert!(!file.has_news().unwrap(), "torn bytes are no news");
    assert!(!file.has_grown().unwrap());
    disk.add("lf");
    assert!(file.has_news().unwrap() && file.has_grown().unwrap());
    let (_, rest) = file.rest().unwrap();
    let torn = Tail {
        torn: rest.len() as u64,
        ..Tail::default()
    };
    assert_eq!(file.advance(torn), 2, "only the new bytes count");
    file.cut_torn().unwrap();
    assert_eq!(disk.content(), b"head\n");
    assert!(!file.is_torn());
}

#[test]
fn first_write_cuts_a_torn_header() {
    let disk = Memory::holding(b"{\"ty");
    let mut file = LogFile::new(Some(PathBuf::from(name())), b"head\n".to_vec());
    file.adopt_empty(Box::new(disk.clone()), 4);
    let first = file.begin().unwrap().unwrap();
    assert_eq!(first.lines, b"head\n");
    assert_eq!(disk.content(), b"");
    file.write(&first.lines).unwrap();
    file.commit();
    assert!(file.is_committed());
    assert!(file.begin().unwrap().is_none(), "the first write is over");
}

#[test]
fn first_write_leaves_lines_of_others() {
    let disk = Memory::holding(b"{\"ty");
    let mut file = LogFile::new(Some(PathBuf::from(name())), b"head\n".to_vec());
    file.adopt_empty(Box::new(disk.clone()), 4);
    disk.add("pe\":\"theirs\"}\n");
    let error = file.begin().unwrap_err();
    assert!(matches!(error, StoreError::Changed { .. }), "{error}");
    assert_eq!(disk.content(), b"{\"type\":\"theirs\"}\n");
    let span = Span { offset: 0, len: 4 };
    assert_eq!(file.line(span).unwrap().unwrap(), b"head", "goes on waiting");
}

#[test]
fn given_up_first_write_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    let mut file = LogFile::new(Some(path.clone()), b"head\n".to_vec());
    let first = file.begin().unwrap().unwrap();
    assert!(path.exists());
    file.give_up(first);
    assert!(!path.exists());
    assert_eq!(file.begin().unwrap().unwrap().lines, b"head\n");
}

#[test]
fn session_in_memory_keeps_no_lines() {
    let mut file = LogFile::new(None, Vec::new());
    assert_eq!(file.note_pending(&[b"one\n".to_vec()]), 0);
    assert_eq!(file.note_pending(&[b"two\n".to_vec()]), 0);
    assert_eq!(file.span_len(b"one\n"), 0);
    assert!(file.begin().unwrap().is_none());
    assert_eq!(file.line(Span { offset: 0, len: 3 }).unwrap(), None);
}
