//! Bytes to lines: every way to cut the stream, and lines that are too long.

use std::io::{self, Read};

use crate::codec::{Line, LineReader};
use crate::limits::READ_CHUNK;

/// Gives the bytes in pieces of these sizes, over and over, with an interrupted read between them.
struct Pieces<'a> {
    bytes: &'a [u8],
    sizes: Vec<usize>,
    turn: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.turn += 1;
        if self.turn.is_multiple_of(2) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let size = self.sizes[self.turn / 2 % self.sizes.len()];
        let size = size.min(buffer.len()).min(self.bytes.len());
        let (now, rest) = self.bytes.split_at(size);
        buffer[..size].copy_from_slice(now);
        self.bytes = rest;
        Ok(size)
    }
}

fn lines(bytes: &[u8], sizes: Vec<usize>, limit: usize) -> Vec<Option<Vec<u8>>> {
    let mut reader = LineReader::with_limit(
        Pieces {
            bytes,
            sizes,
            turn: 0,
        },
        limit,
    );
    let mut found = Vec::new();
    while let Some(line) = reader.next_line().unwrap() {
        found.push(match line {
            Line::Text(text) => Some(text.to_vec()),
            Line::TooLong => None,
        });
    }
    found
}

#[test]
fn line_splits_give_same_lines() {
    let bytes =
        "one\ntwo\r\n\n \r\r\nt\rhr\u{2028}ee\u{85}\n0123456789abcdef\n0123456789abcdefg\n\nlast".as_bytes();
    let want: Vec<Option<Vec<u8>>> = [
        Some("one"),
        Some("two"),
        Some(""),
        Some(" \r"),
        Some("t\rhr\u{2028}ee\u{85}"),
        Some("0123456789abcdef"),
        None,
        Some(""),
        Some("last"),
    ]
    .into_iter()
    .map(|line| line.map(|text| text.as_bytes().to_vec()))
    .collect();
    for first in 1..=bytes.len() {
        assert_eq!(
            lines(bytes, vec![first, bytes.len()], 16),
            want,
            "first piece of {first}"
        );
        assert_eq!(lines(bytes, vec![first], 16), want, "pieces of {first}");
    }
}

#[test]
fn unterminated_last_line_is_returned_or_too_long() {
    assert_eq!(lines(b"a\r", vec![1], 16), [Some(b"a".to_vec())]);
    assert_eq!(lines(b"a\n", vec![9], 16), [Some(b"a".to_vec())]);
    assert_eq!(lines(b"", vec![9], 16), []);
    assert_eq!(lines(b"aaaaaaaaa", vec![2], 4), [None]);
}

/// `x` without end, up to a count, then one short line.
struct Monster {
    left: u64,
    tail: &'static [u8],
    reads: u64,
}

impl Read for Monster {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reads += 1;
        if self.left == 0 {
            return self.tail.read(buffer);
        }
        let count = buffer.len().min(65_536).min(usize::try_from(self.left).unwrap());
        buffer[..count].fill(b'x');
        self.left -= count as u64;
        Ok(count)
    }
}

#[test]
fn oversized_line_is_refused_once_without_storing() {
    let limit = 1 << 20;
    let input = Monster {
        left: 64 << 20,
        tail: b"\nok\n",
        reads: 0,
    };
    let mut reader = LineReader::with_limit(input, limit);
    assert_eq!(reader.next_line().unwrap(), Some(Line::TooLong));
    assert!(reader.capacity() <= limit + READ_CHUNK);
    assert_eq!(reader.next_line().unwrap(), Some(Line::Text(b"ok")));
    assert!(reader.capacity() <= READ_CHUNK, "{}", reader.capacity());
    assert_eq!(reader.next_line().unwrap(), None);
}

#[test]
fn lines_near_limit_are_read_whole() {
    let limit = 100_000;
    let mut bytes = Vec::new();
    for size in [99_999, 60_000, 100_000, 1, 70_000, 99_990] {
        bytes.extend(std::iter::repeat_n(b'y', size));
        bytes.push(b'\n');
    }
    let found = lines(&bytes, vec![7_001, 13], limit);
    let sizes: Vec<usize> = found.iter().map(|line| line.as_ref().unwrap().len()).collect();
    assert_eq!(sizes, [99_999, 60_000, 100_000, 1, 70_000, 99_990]);
}
