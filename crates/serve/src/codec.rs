//! Bytes to lines (dialects.md 1, "framing rules"; behaviour.md 1.1). What a line means is decided in `parse`.

use std::io::{self, Read};

use crate::limits::{MAX_LINE, READ_CHUNK};

/// What [`LineReader::next_line`] found.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A line without its line feed and without one carriage return before it. Not checked for UTF-8.
    Text(&'a [u8]),
    /// A line longer than the limit; reported once, when the limit is passed, and then skipped.
    TooLong,
}

/// Cuts a stream into lines. Only a line feed ends a line. The last line needs none.
///
/// The work is linear in the bytes read and the buffer never holds more than the limit and one chunk.
#[derive(Debug)]
pub struct LineReader<R> {
    input: R,
    limit: usize,
    buffer: Vec<u8>,
    /// Start of the bytes that were not returned yet.
    start: usize,
    /// Up to here there is no line feed after `start`.
    scanned: usize,
    /// End of the bytes read.
    end: usize,
    /// True while the rest of an oversized line is skipped.
    skipping: bool,
    eof: bool,
}

impl<R: Read> LineReader<R> {
    /// A reader with the default limit.
    pub fn new(input: R) -> Self {
        Self::with_limit(input, MAX_LINE)
    }

    /// A reader that refuses lines longer than `limit` bytes.
    pub fn with_limit(input: R, limit: usize) -> Self {
        Self {
            input,
            limit,
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            end: 0,
            skipping: false,
            eof: false,
        }
    }

    /// The next line; `None` at the end of the input.
    ///
    /// # Errors
    /// When reading fails. Interrupted reads are tried again.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            let fresh = self.buffer.get(self.scanned..self.end).unwrap_or_default();
            if let Some(at) = memchr::memchr(b'\n', fresh) {
                let (from, to) = (self.start, self.scanned + at);
                self.start = to + 1;
                self.scanned = self.start;
                if std::mem::take(&mut self.skipping) {
                    continue;
                }
                if to - from > self.limit {
                    return Ok(Some(Line::TooLong));
                }
                return Ok(Some(self.line(from, to)));
            }
            self.scanned = self.end;
            if self.skipping {
                self.start = self.end;
            } else if self.end - self.start > self.limit {
                self.start = self.end;
                self.skipping = true;
                return Ok(Some(Line::TooLong));
            }
            if self.eof {
                let (from, to) = (self.start, self.end);
                self.start = to;
                return Ok((from < to).then(|| self.line(from, to)));
            }
            self.fill()?;
        }
    }

    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    fn line(&self, from: usize, to: usize) -> Line<'_> {
        let bytes = self.buffer.get(from..to).unwrap_or_default();
        Line::Text(bytes.strip_suffix(b"\r").unwrap_or(bytes))
    }

    /// Most that the buffer ever holds.
    fn full_size(&self) -> usize {
        self.limit.saturating_add(READ_CHUNK)
    }

    /// Makes room and reads once.
    fn fill(&mut self) -> io::Result<()> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.buffer.len() > READ_CHUNK {
                self.buffer.truncate(READ_CHUNK);
                self.buffer.shrink_to_fit();
            }
        } else if self.end == self.buffer.len() && self.start > 0 {
            // Moving is cheap when at least half is free. A buffer of full size must move, but at most once for each
            // line, because the remaining bytes then fit or the line is too long.
            if self.start >= self.end / 2 || self.end >= self.full_size() {
                self.buffer.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
        }
        self.scanned = self.end;
        if self.end == self.buffer.len() {
            let size = (self.end * 2)
                .clamp(READ_CHUNK, self.full_size())
                .max(self.end + 1);
            self.buffer.reserve_exact(size - self.end);
            self.buffer.resize(size, 0);
        }
        let room = self.buffer.get_mut(self.end..).unwrap_or_default();
        loop {
            match self.input.read(room) {
                Ok(0) => self.eof = true,
                Ok(count) => self.end += count.min(room.len()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }
}
