//! Lines of bounded length from the output of a child. What a line means is decided by who reads it.

use std::io;

use tokio::io::AsyncReadExt as _;
use wire::lines::{Found, LineBuffer};

use crate::child::Output;
use crate::limits::READ_CHUNK;

/// What [`LineReader::next`] found.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A line without its line feed.
    Whole(Vec<u8>),
    /// The beginning of a line that is longer than the limit; its rest is skipped.
    TooLong(Vec<u8>),
}

/// Cuts the output of a child into lines. Bytes after the last line feed are no line: the child ended while it wrote them.
pub struct LineReader {
    source: Output,
    lines: LineBuffer,
}

impl LineReader {
    /// A reader of lines of at most `limit` bytes.
    #[must_use]
    pub fn new(source: Output, limit: usize) -> Self {
        Self {
            source,
            lines: LineBuffer::new(limit, READ_CHUNK),
        }
    }

    /// The next line; `None` at the end of the output. Cancel-safe.
    ///
    /// # Errors
    /// When reading fails.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            match self.lines.find() {
                Some(Found::Line(line)) => return Ok(Some(Line::Whole(self.lines.get(line).to_vec()))),
                Some(Found::TooLong(start)) => {
                    return Ok(Some(Line::TooLong(self.lines.get(start).to_vec())));
                }
                None => {}
            }
            // Nothing is awaited between the read and `filled`, so a future that is dropped loses no bytes.
            match self.source.read(self.lines.room()).await? {
                0 => return Ok(None),
                count => self.lines.filled(count),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn cancelled_reads_lose_no_byte() {
        let (mut child, output) = tokio::io::duplex(16);
        let mut lines = LineReader::new(Box::new(output), 8);
        child.write_all(b"on").await.unwrap();
        let cancelled = tokio::time::timeout(std::time::Duration::from_millis(20), lines.next()).await;
        assert!(cancelled.is_err());
        let written = async {
            child.write_all(b"e\n0123456789\ntwo\nrest").await.unwrap();
            drop(child);
        };
        let read = async {
            let mut found = Vec::new();
            while let Some(line) = lines.next().await.unwrap() {
                found.push(line);
            }
            found
        };
        let ((), found) = tokio::join!(written, read);
        assert!(matches!(&found[1], Line::TooLong(start) if b"0123456789".starts_with(start)));
        assert_eq!(
            [&found[0], &found[2]],
            [&Line::Whole(b"one".to_vec()), &Line::Whole(b"two".to_vec())]
        );
        assert_eq!(found.len(), 3);
    }
    async fn all(written: &[u8], limit: usize) -> Vec<Line> {
        let (mut child, output) = tokio::io::duplex(1 << 16);
        child.write_all(written).await.unwrap();
        drop(child);
        let mut lines = LineReader::new(Box::new(output), limit);
        let mut found = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            found.push(line);
        }
        found
    }

    #[tokio::test]
    async fn empty_lines_are_lines() {
        let empty = || Line::Whole(Vec::new());
        assert_eq!(
            all(b"\n\nx\n", 8).await,
            [empty(), empty(), Line::Whole(b"x".to_vec())]
        );
    }

    #[tokio::test]
    async fn unfinished_line_is_no_line() {
        assert_eq!(all(b"one\ntwo", 8).await, [Line::Whole(b"one".to_vec())]);
        assert_eq!(all(b"", 8).await, []);
    }

    #[tokio::test]
    async fn line_of_exactly_the_limit_is_whole() {
        let found = all(b"12345678\n123456789\nnext\n", 8).await;
        assert_eq!(found.len(), 3);
        assert_eq!(found[0], Line::Whole(b"12345678".to_vec()));
        assert!(matches!(found[1], Line::TooLong(_)));
        assert_eq!(
            found[2],
            Line::Whole(b"next".to_vec()),
            "the rest of the long line is skipped"
        );
    }
}
