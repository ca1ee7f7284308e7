//! Text that stands several times in one line and once in memory. A cumulative update of a long answer contains it up to three
//! times (docs/internals/decisions/02-copied-text.md).

use std::io::{self, Write};
use std::ops::Range;

/// Parts of a batch that are written again at other places of it, in the order of these places.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    list: Vec<Repeat>,
    bytes: usize,
}

#[derive(Debug, Clone)]
struct Repeat {
    /// The part comes before the byte at this place of the batch.
    at: usize,
    part: Range<usize>,
}

impl Repeats {
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Bytes that the batch does not contain and the reader gets.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Repeats a part of the batch at its end, with the repeats inside of the part.
    pub(crate) fn push(&mut self, batch: &[u8], part: Range<usize>) {
        let inner: Vec<Repeat> = self
            .list
            .iter()
            .filter(|inner| part.start < inner.at && inner.at < part.end)
            .cloned()
            .collect();
        let mut from = part.start;
        for inner in inner {
            self.add(batch.len(), from..inner.at);
            self.add(batch.len(), inner.part);
            from = inner.at;
        }
        self.add(batch.len(), from..part.end);
    }

    fn add(&mut self, at: usize, part: Range<usize>) {
        self.bytes += part.len();
        self.list.push(Repeat { at, part });
    }

    /// Forgets everything from a place of the batch on.
    pub(crate) fn truncate(&mut self, len: usize) {
        while let Some(last) = self.list.pop_if(|repeat| repeat.at > len) {
            self.bytes -= last.part.len();
        }
    }

    /// Writes the batch as the reader gets it.
    ///
    /// # Errors
    /// When the output fails.
    pub(crate) fn write(&self, batch: &[u8], output: &mut impl Write) -> io::Result<()> {
        let mut from = 0;
        for repeat in &self.list {
            output.write_all(batch.get(from..repeat.at).unwrap_or_default())?;
            output.write_all(batch.get(repeat.part.clone()).unwrap_or_default())?;
            from = repeat.at;
        }
        output.write_all(batch.get(from..).unwrap_or_default())
    }

    /// Puts the repeated parts into the batch.
    pub(crate) fn expand(self, batch: &mut Vec<u8>) {
        if self.is_empty() {
            return;
        }
        let mut whole = Vec::with_capacity(batch.len() + self.bytes);
        // Writing to memory does not fail.
        let _written = self.write(batch, &mut whole);
        *batch = whole;
    }
}
