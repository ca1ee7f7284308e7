//! Text of a line that its batch does not contain: text of a long answer, which the encoder keeps anyway, and parts of the batch
//! that stand in it again. A cumulative update of a long answer contains it up to three times, and memory holds it once
//! (docs/internals/decisions/02-copied-text.md).

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use crate::limits::REPEATED_ANSWER;

/// Text of an answer that does not change any more. The encoder and batches share it.
pub(crate) type Segment = Arc<Vec<u8>>;

/// A part of a line that is complete elsewhere.
#[derive(Debug, Clone)]
pub enum Piece {
    /// Bytes of this line alone.
    Own(Vec<u8>),
    /// Text that other lines share.
    Shared(Arc<Vec<u8>>),
}

/// Text that is written between the bytes of a batch, in the order of its places.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    list: Vec<Repeat>,
    bytes: usize,
}

#[derive(Debug, Clone)]
struct Repeat {
    /// The text comes before the byte at this place of the batch.
    at: usize,
    text: Text,
}

#[derive(Debug, Clone)]
enum Text {
    /// A part of the batch.
    Part(Range<usize>),
    Shared(Segment),
}

impl Text {
    fn len(&self) -> usize {
        match self {
            Self::Part(part) => part.len(),
            Self::Shared(segment) => segment.len(),
        }
    }
}

impl Repeats {
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Bytes that the batch does not contain and the reader gets.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds text at the end of the batch.
    pub(crate) fn share(&mut self, batch: &[u8], segment: &Segment) {
        self.add(batch.len(), Text::Shared(Arc::clone(segment)));
    }

    /// Repeats a part of the batch at its end, with the text inside of the part.
    pub(crate) fn push(&mut self, batch: &[u8], part: Range<usize>) {
        // Text at the very start stands before the part.
        let inner: Vec<Repeat> = self
            .list
            .iter()
            .filter(|inner| part.start < inner.at && inner.at < part.end)
            .cloned()
            .collect();
        let mut from = part.start;
        for inner in inner {
            self.add(batch.len(), Text::Part(from..inner.at));
            self.add(batch.len(), inner.text);
            from = inner.at;
        }
        self.add(batch.len(), Text::Part(from..part.end));
    }

    fn add(&mut self, at: usize, text: Text) {
        self.bytes += text.len();
        self.list.push(Repeat { at, text });
    }

    /// Adds the text of a later part of the same batch.
    pub(crate) fn append(&mut self, mut later: Self) {
        self.bytes += later.bytes;
        self.list.append(&mut later.list);
    }

    /// Forgets everything from a place of the batch on.
    pub(crate) fn truncate(&mut self, len: usize) {
        // Text at the place itself belongs to the bytes that stay.
        while let Some(last) = self.list.pop_if(|repeat| repeat.at > len) {
            self.bytes -= last.text.len();
        }
    }

    /// Inserts texts into the batch, each before the byte at its place, and behind the text that is repeated there; the places are in order.
    pub(crate) fn insert(&mut self, batch: &mut Vec<u8>, texts: &[(usize, String)]) {
        let more: usize = texts.iter().map(|(_, text)| text.len()).sum();
        let (mut from, mut to) = (batch.len(), batch.len() + more);
        // A long batch does not double for a few bytes, and a short one does not grow by a few bytes each time.
        if from > REPEATED_ANSWER {
            batch.reserve_exact(more);
        }
        batch.resize(to, 0);
        // From the end, so that every byte moves once.
        for (at, text) in texts.iter().rev() {
            to -= from - at;
            batch.copy_within(*at..from, to);
            to -= text.len();
            if let Some(place) = batch.get_mut(to..to + text.len()) {
                place.copy_from_slice(text.as_bytes());
            }
            from = *at;
        }
        let mut shift = 0;
        let mut texts = texts.iter().peekable();
        for repeat in &mut self.list {
            while let Some((_, text)) = texts.next_if(|(at, _)| *at < repeat.at) {
                shift += text.len();
            }
            // A part stands in the same line, where nothing is inserted before it.
            repeat.at += shift;
            if let Text::Part(part) = &mut repeat.text {
                *part = part.start + shift..part.end + shift;
            }
        }
    }

    /// Bytes that the reader gets for a part of the batch.
    pub(crate) fn length(&self, part: Range<usize>) -> usize {
        let inside = self.list.iter().filter(|repeat| part.contains(&repeat.at));
        part.len() + inside.map(|repeat| repeat.text.len()).sum::<usize>()
    }

    /// Writes the batch as the reader gets it.
    ///
    /// # Errors
    /// When the output fails.
    pub(crate) fn write(&self, batch: &[u8], output: &mut impl Write) -> io::Result<()> {
        self.write_part(batch, 0..batch.len(), output)
    }

    /// Writes a part of the batch as the reader gets it.
    ///
    /// # Errors
    /// When the output fails.
    pub(crate) fn write_part(
        &self,
        batch: &[u8],
        part: Range<usize>,
        output: &mut impl Write,
    ) -> io::Result<()> {
        let mut from = part.start;
        for repeat in self.list.iter().filter(|repeat| part.contains(&repeat.at)) {
            output.write_all(batch.get(from..repeat.at).unwrap_or_default())?;
            output.write_all(match &repeat.text {
                Text::Part(part) => batch.get(part.clone()).unwrap_or_default(),
                Text::Shared(segment) => segment,
            })?;
            from = repeat.at;
        }
        output.write_all(batch.get(from..part.end).unwrap_or_default())
    }

    /// The lines of a batch without their line feeds.
    pub(crate) fn lines(&self, batch: Vec<u8>) -> Vec<Vec<Piece>> {
        // Nearly always, and a line can be as long as an answer.
        if self.is_empty() && memchr::memchr(b'\n', &batch).is_some_and(|end| end + 1 == batch.len()) {
            let mut line = batch;
            line.pop();
            return vec![vec![Piece::Own(line)]];
        }
        let mut from = 0;
        let ends = memchr::memchr_iter(b'\n', &batch);
        let parts = ends.map(|end| std::mem::replace(&mut from, end + 1)..end);
        parts.map(|part| self.pieces(&batch, part)).collect()
    }

    /// A part of the batch as the reader gets it. The last piece is no shared one.
    fn pieces(&self, batch: &[u8], part: Range<usize>) -> Vec<Piece> {
        let own = |part: Range<usize>| Piece::Own(batch.get(part).unwrap_or_default().to_vec());
        let (mut pieces, mut from) = (Vec::new(), part.start);
        for repeat in self.list.iter().filter(|repeat| part.contains(&repeat.at)) {
            if from < repeat.at {
                pieces.push(own(from..repeat.at));
            }
            pieces.push(match &repeat.text {
                Text::Part(part) => own(part.clone()),
                Text::Shared(segment) => Piece::Shared(Arc::clone(segment)),
            });
            from = repeat.at;
        }
        pieces.push(own(from..part.end));
        pieces
    }

    /// Puts the text into the batch.
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
