//! Bytes to lines (dialects.md 1, "framing rules"; behaviour.md 1.1). What a line means is decided in `parse`.

use std::io::{self, Read};

use wire::lines::{Found, LineBuffer};

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
#[derive(Debug)]
pub struct LineReader<R> {
    input: R,
    lines: LineBuffer,
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
            lines: LineBuffer::new(limit, READ_CHUNK),
            eof: false,
        }
    }

    /// The next line; `None` at the end of the input.
    ///
    /// # Errors
    /// When reading fails. Interrupted reads are tried again.
    pub fn next_line(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            match self.lines.find() {
                Some(Found::Line(line)) => return Ok(Some(text(self.lines.get(line)))),
                Some(Found::TooLong(_)) => return Ok(Some(Line::TooLong)),
                None if self.eof => {
                    let rest = self.lines.rest();
                    return Ok(rest.map(|line| text(self.lines.get(line))));
                }
                None => self.fill()?,
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.lines.capacity()
    }

    /// Reads once.
    fn fill(&mut self) -> io::Result<()> {
        loop {
            match self.input.read(self.lines.room()) {
                Ok(0) => self.eof = true,
                Ok(count) => self.lines.filled(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            return Ok(());
        }
    }
}

fn text(bytes: &[u8]) -> Line<'_> {
    // One carriage return belongs to the end of the line. Line separators of Unicode are content (dialects.md 1).
    Line::Text(bytes.strip_suffix(b"\r").unwrap_or(bytes))
}
