//! The text of a frame: pieces that follow each other. Frames that repeat the text of a long answer share it.

use std::sync::Arc;

use axum::body::Bytes;
use serde_json::Value;
use serve::Piece;

/// The text of a frame. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct FrameText {
    first: Bytes,
    /// The pieces after the first, of a frame with long text.
    rest: Option<Arc<[Bytes]>>,
}

impl FrameText {
    pub(crate) fn len(&self) -> usize {
        self.pieces().map(Bytes::len).sum()
    }

    pub(crate) fn pieces(&self) -> impl DoubleEndedIterator<Item = &Bytes> {
        std::iter::once(&self.first).chain(self.rest.iter().flat_map(|rest| rest.iter()))
    }

    /// The pieces that may be shared with other frames, each once.
    pub(crate) fn shared(&self) -> impl Iterator<Item = &Bytes> {
        let long = |piece: &&Bytes| piece.len() >= SHARED_BYTES;
        let pieces = self.pieces().filter(long);
        pieces.enumerate().filter_map(move |(at, piece)| {
            let mut earlier = self.pieces().filter(long).take(at);
            (!earlier.any(|other| is_same(other, piece))).then_some(piece)
        })
    }

    /// Returns true if this very piece is in the text.
    pub(crate) fn has(&self, piece: &Bytes) -> bool {
        self.pieces().any(|own| is_same(own, piece))
    }

    /// Bytes of memory that the text takes: a piece that it repeats counts once.
    pub(crate) fn cost(&self) -> usize {
        let short = self.pieces().filter(|piece| piece.len() < SHARED_BYTES);
        short.chain(self.shared()).map(Bytes::len).sum()
    }

    /// The end of the text; everything that is not shared of it.
    pub(crate) fn end(&self) -> &[u8] {
        self.pieces().next_back().unwrap_or(&self.first)
    }

    /// The bytes after the first `skip`.
    pub(crate) fn after(&self, skip: usize) -> impl Iterator<Item = &[u8]> {
        let mut skip = skip;
        self.pieces().filter_map(move |piece| {
            let from = skip.min(piece.len());
            skip -= from;
            piece.get(from..).filter(|rest| !rest.is_empty())
        })
    }

    #[cfg(test)]
    pub(crate) fn text(&self) -> String {
        let pieces: Vec<&[u8]> = self.after(0).collect();
        String::from_utf8(pieces.concat()).unwrap()
    }
}

/// Length from which on a look whether a piece is shared pays.
const SHARED_BYTES: usize = 16 * 1024;

/// Returns true for the same bytes in memory.
fn is_same(one: &Bytes, other: &Bytes) -> bool {
    one.as_ptr() == other.as_ptr() && one.len() == other.len()
}

impl From<Bytes> for FrameText {
    fn from(first: Bytes) -> Self {
        Self { first, rest: None }
    }
}

impl From<String> for FrameText {
    fn from(text: String) -> Self {
        Bytes::from(text).into()
    }
}

/// An object without its closing brace, so that members can be added.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenObject {
    pieces: Vec<Bytes>,
    end: Vec<u8>,
}

/// Bytes of a line that several frames share.
struct Shared(Arc<Vec<u8>>);

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl OpenObject {
    /// An object; none if the line is none.
    pub(crate) fn of_line(mut line: Vec<Piece>) -> Option<Self> {
        let Some(Piece::Own(mut end)) = line.pop() else {
            return None;
        };
        if end.pop() != Some(b'}') {
            return None;
        }
        Some(Self::of_pieces(line, end))
    }

    /// Pieces of an object, and its end without the closing brace.
    pub(crate) fn of_pieces(pieces: Vec<Piece>, end: Vec<u8>) -> Self {
        let pieces = pieces.into_iter().map(|piece| match piece {
            Piece::Own(bytes) => bytes.into(),
            Piece::Shared(text) => Bytes::from_owner(Shared(text)),
        });
        Self {
            pieces: pieces.collect(),
            end,
        }
    }

    /// Adds the session, if it is not the first.
    pub(crate) fn add_session(&mut self, session: Option<&str>) {
        if let Some(session) = session {
            self.end.extend_from_slice(b",\"session\":");
            self.end
                .extend_from_slice(Value::from(session).to_string().as_bytes());
        }
    }

    /// Adds a member whose value is a number.
    pub(crate) fn add_number(&mut self, name: &str, number: u64) {
        self.end
            .extend_from_slice(format!(",\"{name}\":{number}").as_bytes());
    }

    /// Adds text.
    pub(crate) fn add(&mut self, text: &[u8]) {
        self.end.extend_from_slice(text);
    }

    /// Closes the object.
    pub(crate) fn close(mut self) -> FrameText {
        self.end.push(b'}');
        let end = Bytes::from(self.end);
        let mut pieces = self.pieces.into_iter();
        match pieces.next() {
            None => FrameText {
                first: end,
                rest: None,
            },
            Some(first) => FrameText {
                first,
                rest: Some(pieces.chain([end]).collect()),
            },
        }
    }
}

impl From<String> for OpenObject {
    fn from(text: String) -> Self {
        Self {
            pieces: Vec::new(),
            end: text.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_of_pieces_continues_at_any_byte() {
        let shared = Arc::new(b"shared \xe2\x82".to_vec());
        let line = vec![
            Piece::Own(b"{\"a\":\"".to_vec()),
            Piece::Shared(Arc::clone(&shared)),
            Piece::Own(b"\xac\"}".to_vec()),
        ];
        let mut object = OpenObject::of_line(line).unwrap();
        object.add_session(Some("s\""));
        object.add_number("seq", 7);
        let frame = object.close();
        let text = "{\"a\":\"shared \u{20ac}\",\"session\":\"s\\\"\",\"seq\":7}";
        assert_eq!((frame.text().as_str(), frame.len()), (text, text.len()));
        assert_eq!(Arc::strong_count(&shared), 2, "the text is not copied");
        for skip in 0..=text.len() {
            let rest: Vec<&[u8]> = frame.after(skip).collect();
            assert_eq!(rest.concat(), text.as_bytes().get(skip..).unwrap(), "{skip}");
        }
        assert!(frame.end().ends_with(b",\"seq\":7}"));
    }

    #[test]
    fn lines_without_object_are_left_out() {
        assert!(OpenObject::of_line(vec![Piece::Own(b"text".to_vec())]).is_none());
        assert!(OpenObject::of_line(Vec::new()).is_none());
    }
}
