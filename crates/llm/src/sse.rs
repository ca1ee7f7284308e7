//! Server-sent events: bytes in, events out. Knows nothing of what the events mean.
//!
//! Lines end in LF, CRLF or CR; several `data` lines of an event are joined by LF; comments and unknown fields are
//! skipped. Every byte is read once, for any size of lines, events and pieces.

use std::ops::Range;

use memchr::memchr2;

use crate::limits::{KEPT_BYTES, MAX_EVENT_BYTES};

/// A line or an event is larger than [`MAX_EVENT_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLarge;

/// One event; borrowed from the scanner until the next call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SseEvent<'a> {
    /// The `event` field; empty when there was none.
    pub(crate) name: &'a str,
    /// The `data` fields.
    pub(crate) data: &'a str,
}

/// Where the data of the event under way is.
#[derive(Debug, Default)]
enum Data {
    #[default]
    None,
    /// One line so far, still in the buffer.
    Line(Range<usize>),
    /// Copied: several lines, or a line with much else behind it.
    Joined(Vec<u8>),
}

/// The scanner.
#[derive(Debug, Default)]
pub(crate) struct SseScanner {
    /// What came and is not yet worked off; begins at the data of the event under way.
    buf: Vec<u8>,
    /// Where the line under way begins in `buf`.
    line: usize,
    /// Up to where `buf` has been searched for a line end.
    seen: usize,
    /// The last line ended in CR, so a LF at `line` belongs to it.
    after_cr: bool,
    /// Past the place where a byte order mark may stand.
    begun: bool,
    /// The `event` field of the event under way.
    name: String,
    /// Name of the event that was handed out last.
    given: String,
    data: Data,
    /// Lines with something in them, so far.
    lines: u64,
    /// Data of the event that was handed out last, if it was copied.
    joined: Vec<u8>,
    /// Repaired data of that event, if it was not UTF-8.
    repaired: String,
}

impl SseScanner {
    /// Lines that said something (fields and comments) so far: the sign of life of a connection.
    pub(crate) fn lines(&self) -> u64 {
        self.lines
    }

    /// Takes the next piece of the stream.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        // A line in the buffer keeps everything behind it there, comments without end included.
        if let Data::Line(range) = &self.data
            && self.line - range.end > KEPT_BYTES
        {
            let line = self.buf.get(range.clone()).unwrap_or_default().to_vec();
            self.data = Data::Joined(line);
        }
        let keep = match &self.data {
            Data::Line(range) => range.start,
            Data::None | Data::Joined(_) => self.line,
        };
        if keep > 0 {
            self.buf.drain(..keep);
            self.line -= keep;
            self.seen -= keep;
            if let Data::Line(range) = &mut self.data {
                *range = 0..range.end - keep;
            }
        }
        self.forget();
        self.buf.extend_from_slice(bytes);
    }

    /// Bytes in the buffer.
    #[cfg(test)]
    pub(crate) fn buffered(&self) -> usize {
        self.buf.len()
    }

    /// Gives back what a long event needed, once it is worked off.
    fn forget(&mut self) {
        if self.buf.len() < KEPT_BYTES && self.buf.capacity() > 4 * KEPT_BYTES {
            self.buf.shrink_to(KEPT_BYTES);
        }
        if self.joined.capacity() > KEPT_BYTES {
            self.joined = Vec::new();
        }
        if self.repaired.capacity() > KEPT_BYTES {
            self.repaired = String::new();
        }
    }

    /// The next complete event, if there is one.
    pub(crate) fn next(&mut self) -> Result<Option<SseEvent<'_>>, TooLarge> {
        loop {
            let Some(line) = self.next_line() else {
                return if self.buf.len() - self.line > MAX_EVENT_BYTES {
                    Err(TooLarge)
                } else {
                    Ok(None)
                };
            };
            if line.is_empty() {
                if !matches!(self.data, Data::None) {
                    return Ok(Some(self.take()));
                }
                self.name.clear();
            } else {
                self.field(line)?;
            }
        }
    }

    /// After the end of the stream: the event that no blank line ended, if any.
    pub(crate) fn finish(&mut self) -> Option<SseEvent<'_>> {
        let rest = self.line..self.buf.len();
        if !rest.is_empty() {
            self.line = rest.end;
            self.seen = rest.end;
            self.field(rest).ok()?;
        }
        match self.data {
            Data::None => None,
            Data::Line(_) | Data::Joined(_) => Some(self.take()),
        }
    }

    /// Cuts off the next line, without its end.
    fn next_line(&mut self) -> Option<Range<usize>> {
        if self.after_cr && self.line < self.buf.len() {
            self.after_cr = false;
            if self.buf.get(self.line) == Some(&b'\n') {
                self.line += 1;
                self.seen = self.line;
            }
        }
        if !self.begun && self.buf.len() >= 3 {
            self.begun = true;
            if self.buf.starts_with(b"\xEF\xBB\xBF") {
                self.line = 3;
                self.seen = 3;
            }
        }
        let Some(at) = memchr2(b'\n', b'\r', self.buf.get(self.seen..)?) else {
            self.seen = self.buf.len();
            return None;
        };
        self.begun = true;
        let end = self.seen + at;
        let line = self.line..end;
        self.after_cr = self.buf.get(end) == Some(&b'\r');
        self.line = end + 1;
        self.seen = self.line;
        Some(line)
    }

    /// Takes one line that is not empty.
    fn field(&mut self, line: Range<usize>) -> Result<(), TooLarge> {
        self.lines += 1;
        if line.len() > MAX_EVENT_BYTES {
            return Err(TooLarge);
        }
        let bytes = self.buf.get(line.clone()).unwrap_or_default();
        let value = |name: usize| {
            let space = usize::from(bytes.get(name + 1) == Some(&b' '));
            (line.start + name + 1 + space).min(line.end)..line.end
        };
        if bytes.starts_with(b"data") && matches!(bytes.get(4), None | Some(b':')) {
            let range = value(4);
            self.add_data(range)
        } else if bytes.starts_with(b"event") && matches!(bytes.get(5), None | Some(b':')) {
            let range = value(5);
            self.name.clear();
            self.name
                .push_str(&String::from_utf8_lossy(self.buf.get(range).unwrap_or_default()));
            Ok(())
        } else {
            Ok(())
        }
    }

    /// Adds a `data` line. The first one is only noted, because most events have no second.
    fn add_data(&mut self, range: Range<usize>) -> Result<(), TooLarge> {
        self.data = match std::mem::take(&mut self.data) {
            Data::None => Data::Line(range),
            Data::Line(first) => {
                let mut joined = self.buf.get(first).unwrap_or_default().to_vec();
                join(&mut joined, self.buf.get(range).unwrap_or_default())?;
                Data::Joined(joined)
            }
            Data::Joined(mut joined) => {
                join(&mut joined, self.buf.get(range).unwrap_or_default())?;
                Data::Joined(joined)
            }
        };
        Ok(())
    }

    /// Hands out the event under way, where it lies: an event may be as long as the whole answer.
    fn take(&mut self) -> SseEvent<'_> {
        let bytes = match std::mem::take(&mut self.data) {
            Data::None => &[][..],
            Data::Line(range) => self.buf.get(range).unwrap_or_default(),
            Data::Joined(bytes) => {
                self.joined = bytes;
                &self.joined
            }
        };
        std::mem::swap(&mut self.name, &mut self.given);
        self.name.clear();
        let data = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(_) => {
                self.repaired = String::from_utf8_lossy(bytes).into_owned();
                &self.repaired
            }
        };
        SseEvent {
            name: &self.given,
            data,
        }
    }
}

/// Appends a line to an event of several.
fn join(joined: &mut Vec<u8>, line: &[u8]) -> Result<(), TooLarge> {
    if joined.len() + line.len() >= MAX_EVENT_BYTES {
        return Err(TooLarge);
    }
    joined.push(b'\n');
    joined.extend_from_slice(line);
    Ok(())
}
