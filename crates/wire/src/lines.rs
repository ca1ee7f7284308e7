//! Bytes to lines of bounded length (dialects.md 1, "framing rules"). Reading the bytes and understanding the lines is left to
//! the caller.

use std::ops::Range;

/// What [`LineBuffer::find`] found; the range is read with [`LineBuffer::get`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A line without its line feed.
    Line(Range<usize>),
    /// The beginning of a line longer than the limit. Reported once, when the limit is passed; the rest is skipped.
    TooLong(Range<usize>),
}

/// Cuts a stream into lines. Only a line feed ends a line.
///
/// The work is linear in the number of bytes, and the buffer never holds more than the limit and one chunk.
#[derive(Debug)]
pub struct LineBuffer {
    limit: usize,
    /// Least size of the buffer, and its size after a long line.
    chunk: usize,
    buffer: Vec<u8>,
    /// Start of the bytes that were not returned yet.
    start: usize,
    /// Up to here there is no line feed after `start`.
    scanned: usize,
    /// End of the bytes read.
    end: usize,
    /// True while the rest of an oversized line is skipped.
    skipping: bool,
}

impl LineBuffer {
    /// An empty buffer that refuses lines longer than `limit` bytes and reads at least `chunk` bytes at a time.
    #[must_use]
    pub fn new(limit: usize, chunk: usize) -> Self {
        Self {
            limit,
            chunk,
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            end: 0,
            skipping: false,
        }
    }

    /// Takes the next line; `None` when more bytes are needed.
    pub fn find(&mut self) -> Option<Found> {
        loop {
            // Only new bytes: a long line that arrives in small reads would else cost the square of its length.
            let fresh = self.buffer.get(self.scanned..self.end).unwrap_or_default();
            let Some(at) = memchr::memchr(b'\n', fresh) else {
                self.scanned = self.end;
                let open = self.start..self.end;
                // The rest of an oversized line is dropped as it comes, so its length does not matter to memory.
                if self.skipping {
                    self.start = self.end;
                } else if open.len() > self.limit {
                    self.start = self.end;
                    self.skipping = true;
                    return Some(Found::TooLong(open));
                }
                return None;
            };
            let line = self.start..self.scanned + at;
            self.start = line.end + 1;
            self.scanned = self.start;
            // This line feed ends the oversized line, which was reported already.
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            if line.len() > self.limit {
                return Some(Found::TooLong(line));
            }
            return Some(Found::Line(line));
        }
    }

    /// Takes the bytes after the last line feed, for a stream whose last line needs none. Call it at the end of the stream.
    pub fn rest(&mut self) -> Option<Range<usize>> {
        let rest = self.start..self.end;
        self.start = self.end;
        (!rest.is_empty()).then_some(rest)
    }

    /// Returns the bytes of a range that was just found.
    #[must_use]
    pub fn get(&self, found: Range<usize>) -> &[u8] {
        self.buffer.get(found).unwrap_or_default()
    }

    /// Returns room for the next bytes, never empty. Ranges found before are no longer valid.
    pub fn room(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            // After a line of many megabytes the memory goes back: the process may live for days.
            if self.buffer.len() > self.chunk {
                self.buffer.truncate(self.chunk);
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
                .clamp(self.chunk, self.full_size())
                .max(self.end + 1);
            self.buffer.reserve_exact(size - self.end);
            self.buffer.resize(size, 0);
        }
        self.buffer.get_mut(self.end..).unwrap_or_default()
    }

    /// Takes the first `count` bytes of [`room`](Self::room) as read.
    pub fn filled(&mut self, count: usize) {
        self.end = self.end.saturating_add(count).min(self.buffer.len());
    }

    /// Returns the bytes of memory that the buffer takes.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// Most that the buffer ever holds.
    fn full_size(&self) -> usize {
        self.limit.saturating_add(self.chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(limit: usize, pieces: &[&[u8]]) -> Vec<Result<Vec<u8>, Vec<u8>>> {
        let mut buffer = LineBuffer::new(limit, 4);
        let mut found = Vec::new();
        for mut piece in pieces.iter().copied() {
            while !piece.is_empty() {
                let room = buffer.room();
                let count = room.len().min(piece.len());
                room[..count].copy_from_slice(&piece[..count]);
                buffer.filled(count);
                piece = &piece[count..];
                while let Some(next) = buffer.find() {
                    found.push(match next {
                        Found::Line(line) => Ok(buffer.get(line).to_vec()),
                        Found::TooLong(start) => Err(buffer.get(start).to_vec()),
                    });
                }
            }
        }
        assert_eq!(buffer.rest(), None);
        found
    }

    #[test]
    fn long_line_gives_beginning_once() {
        let found = lines(6, &[b"ab\n\ncdefghi", b"jkl", b"\nlast\n"]);
        let start = found[2].as_ref().unwrap_err();
        assert!(start.len() > 6 && b"cdefghijkl".starts_with(start));
        assert_eq!(found.len(), 4);
        assert_eq!(
            [&found[0], &found[1], &found[3]],
            [&Ok(b"ab".to_vec()), &Ok(Vec::new()), &Ok(b"last".to_vec())]
        );
    }
}
