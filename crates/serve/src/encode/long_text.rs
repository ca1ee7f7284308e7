//! Lines with long text: several lines repeat the text of a long answer, and memory holds it once. A long string is written as
//! segments that do not change, and a later line with the same string refers to them
//! (docs/internals/decisions/02-copied-text.md).

use std::cell::Cell;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;
use wire::{AssistantBlock, AssistantMessage, Event, Message, StreamEvent};

use super::repeats::{Repeats, Segment};
use crate::limits::{ANSWER_SEGMENT, REPEATED_ANSWER};

/// Bytes of a string after which a known one is looked for.
const PROBE: usize = 4 * 1024;
/// Bytes that are compared or copied at once.
const PIECE: usize = 16 * 1024;

/// The long strings of the newest answer, escaped.
#[derive(Debug, Default)]
pub(super) struct LongText {
    strings: Vec<Vec<Segment>>,
}

impl LongText {
    /// Knows these strings instead of the earlier ones.
    pub(super) fn keep(&mut self, strings: Vec<Vec<Segment>>) {
        self.strings = strings;
    }

    pub(super) fn forget(&mut self) {
        self.strings = Vec::new();
    }

    /// Writes a value as a line whose long strings are not part of the batch.
    pub(super) fn line<T: Serialize + ?Sized>(
        &mut self,
        value: &T,
        repeats: &mut Repeats,
        out: &mut Vec<u8>,
    ) {
        self.value(value, repeats, out);
        out.push(b'\n');
    }

    /// Writes a value whose long strings are not part of the batch.
    pub(super) fn value<T: Serialize + ?Sized>(
        &mut self,
        value: &T,
        repeats: &mut Repeats,
        out: &mut Vec<u8>,
    ) {
        let (start, in_string) = (out.len(), Cell::new(false));
        let mut line = Line {
            known: &mut self.strings,
            repeats,
            out,
            in_string: &in_string,
            place: Place::Outside,
        };
        let mut serializer = Serializer::with_formatter(&mut line, Strings(&in_string));
        if value.serialize(&mut serializer).is_err() {
            // Cannot happen, as in `json::value`.
            repeats.truncate(start);
            out.truncate(start);
            out.extend_from_slice(b"null");
        }
    }
}

/// Returns true for events with text so long that it should not be copied into each line.
pub(super) fn has_long_text(event: &Event) -> bool {
    match event {
        Event::MessageEnd { message } | Event::TurnEnd { message, .. } => is_long(message),
        Event::AgentEnd { messages, .. } => messages.iter().any(|message| is_long(message)),
        _ => false,
    }
}

/// Returns true for the end of a block with text so long that it should not be copied.
pub(super) fn ends_long_text(event: &StreamEvent) -> bool {
    match event {
        StreamEvent::TextEnd { content, .. } | StreamEvent::ThinkingEnd { content, .. } => {
            content.len() >= REPEATED_ANSWER
        }
        _ => false,
    }
}

fn is_long(message: &Message) -> bool {
    let text = |block: &AssistantBlock| match block {
        AssistantBlock::Text(text) => text.text.len(),
        AssistantBlock::Thinking(thinking) => thinking.thinking.len(),
        // Only texts are kept in segments (`Answer`).
        AssistantBlock::ToolCall(_) => 0,
    };
    let bytes = |answer: &AssistantMessage| answer.content.iter().map(text).sum::<usize>();
    message.as_assistant().map_or(0, bytes) >= REPEATED_ANSWER
}

/// Compact JSON that marks the inside of strings.
struct Strings<'a>(&'a Cell<bool>);

impl Formatter for Strings<'_> {
    fn begin_string<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"\"")?;
        self.0.set(true);
        Ok(())
    }

    fn end_string<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.set(false);
        writer.write_all(b"\"")
    }
}

/// Where the writer of a line stands.
enum Place {
    Outside,
    /// At the beginning of a string, which began at this place of the batch.
    Begun(usize),
    /// In a string that was a known one so far: its number, the segment and the bytes of it that came.
    Known(usize, usize, usize),
    /// In a long string that is new: where its last part begins in the batch, and the segments before.
    New(usize, Vec<Segment>),
    /// In a string, at the end of a known one.
    Rest,
}

/// A line that is being written.
struct Line<'a> {
    known: &'a mut Vec<Vec<Segment>>,
    repeats: &'a mut Repeats,
    out: &'a mut Vec<u8>,
    in_string: &'a Cell<bool>,
    place: Place,
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.in_string.get() {
            // In pieces: a string of megabytes that is known must not be copied into the batch first.
            for piece in bytes.chunks(PIECE) {
                self.text(piece);
            }
        } else {
            self.close();
            self.out.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Line<'_> {
    /// Takes text of a string.
    fn text(&mut self, piece: &[u8]) {
        match &mut self.place {
            Place::Outside => {
                self.place = Place::Begun(self.out.len());
                self.text(piece);
            }
            Place::Begun(start) => {
                let start = *start;
                self.out.extend_from_slice(piece);
                // Shorter strings would cost less than the search for them.
                if self.out.len() - start >= PROBE {
                    self.probe(start);
                }
            }
            Place::Known(..) => self.compare(piece),
            Place::New(start, made) => {
                self.out.extend_from_slice(piece);
                if self.out.len() - *start >= ANSWER_SEGMENT {
                    let segment = Segment::new(self.out.get(*start..).unwrap_or_default().to_vec());
                    self.out.truncate(*start);
                    self.repeats.share(self.out, &segment);
                    made.push(segment);
                }
            }
            Place::Rest => self.out.extend_from_slice(piece),
        }
    }

    /// Looks for a known string that begins like the one at this place.
    fn probe(&mut self, start: usize) {
        let text = self.out.get(start..).unwrap_or_default();
        let begins = |string: &Vec<Segment>| string.first().is_some_and(|first| first.starts_with(text));
        self.place = match self.known.iter().position(begins) {
            Some(string) => Place::Known(string, 0, text.len()),
            None => Place::New(start, Vec::new()),
        };
        // The known text takes the place of the copy so far.
        if matches!(self.place, Place::Known(..)) {
            self.out.truncate(start);
        }
    }

    /// Takes text of a string that was a known one so far.
    fn compare(&mut self, mut piece: &[u8]) {
        while let Place::Known(string, number, done) = &mut self.place {
            let segment = self.known.get(*string).and_then(|string| string.get(*number));
            let Some(segment) = segment else {
                // The end of a known text is short and not shared.
                self.place = Place::Rest;
                break;
            };
            let rest = segment.get(*done..).unwrap_or_default();
            let both = rest.len().min(piece.len());
            let (now, later) = piece.split_at_checked(both).unwrap_or((piece, &[]));
            if !rest.starts_with(now) {
                // Another text with the same beginning: what counted as known is written after all.
                let begun = segment.get(..*done).unwrap_or_default();
                self.out.extend_from_slice(begun);
                self.place = Place::Rest;
                break;
            }
            *done += both;
            if *done == segment.len() {
                self.repeats.share(self.out, segment);
                (*number, *done) = (*number + 1, 0);
            }
            piece = later;
            if piece.is_empty() {
                return;
            }
        }
        self.out.extend_from_slice(piece);
    }

    /// A string has ended.
    fn close(&mut self) {
        match std::mem::replace(&mut self.place, Place::Outside) {
            Place::Known(string, number, done) => {
                // It ended within a segment, of which only the beginning is the same.
                let segment = self.known.get(string).and_then(|string| string.get(number));
                let begun = segment.and_then(|segment| segment.get(..done));
                self.out.extend_from_slice(begun.unwrap_or_default());
            }
            // A string without a complete segment is too short to be worth knowing.
            Place::New(_, made) if !made.is_empty() => self.known.push(made),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The line of a value, and how much of it is in the batch.
    fn line(long: &mut LongText, value: &Value) -> (String, usize) {
        let (mut out, mut repeats) = (b"before\n".to_vec(), Repeats::default());
        long.line(value, &mut repeats, &mut out);
        let own = out.len();
        repeats.expand(&mut out);
        let line = String::from_utf8(out).unwrap();
        (line.strip_prefix("before\n").unwrap().to_owned(), own)
    }

    fn plain(value: &Value) -> String {
        format!("{value}\n")
    }

    fn text(pad: &str, bytes: usize) -> String {
        let row = format!("row \"{pad}\"\n\u{1} \u{20ac}\\");
        row.repeat(bytes / row.len())
    }

    #[test]
    fn repeated_text_is_shared() {
        let mut long = LongText::default();
        let value = json!({"a": text("a", 2 << 20), "short": "x\"y", "b": [text("b", 1 << 20), 1.5]});
        let (first, own) = line(&mut long, &value);
        assert!(first == plain(&value), "the line is complete");
        assert!(own < 3 * ANSWER_SEGMENT, "{own}");
        let segments = |long: &LongText| long.strings.iter().flatten().cloned().collect::<Vec<Segment>>();
        let before = segments(&long);
        let again = json!({"messages": [value["b"][0], {"text": value["a"]}]});
        assert!(
            line(&mut long, &again).0 == plain(&again),
            "the second line is complete"
        );
        let after = segments(&long);
        assert_eq!(before.len(), after.len(), "nothing new was made");
        assert!(
            after
                .iter()
                .all(|segment| std::sync::Arc::strong_count(segment) == 3),
            "lines hold no other text"
        );
    }

    #[test]
    fn text_that_differs_later_is_complete() {
        let mut long = LongText::default();
        let whole = text("a", 1 << 20);
        line(&mut long, &json!(whole));
        for cut in [
            PROBE - 1,
            PROBE + 3,
            PIECE * 3,
            ANSWER_SEGMENT + 5,
            whole.len() - 1,
        ] {
            let cut = whole.floor_char_boundary(cut);
            let shorter = json!(whole[..cut]);
            assert!(line(&mut long, &shorter).0 == plain(&shorter), "cut at {cut}");
            let other = json!(format!("{}!{}", &whole[..cut], &whole[cut..]));
            assert!(line(&mut long, &other).0 == plain(&other), "changed at {cut}");
        }
        let longer = json!(format!("{whole}and more"));
        assert!(line(&mut long, &longer).0 == plain(&longer));
    }

    #[test]
    fn only_events_with_long_text_count() {
        let message = |bytes| {
            let mut answer = AssistantMessage::begin("a", "p", "m", 0);
            let text = wire::TextContent {
                text: "x".repeat(bytes),
                ..Default::default()
            };
            answer.content.push(AssistantBlock::Text(text));
            std::sync::Arc::new(Message::Assistant(answer))
        };
        let end = |bytes| Event::MessageEnd {
            message: message(bytes),
        };
        assert!(has_long_text(&end(REPEATED_ANSWER)));
        assert!(!has_long_text(&end(REPEATED_ANSWER - 1)));
        assert!(!has_long_text(&Event::MessageStart {
            message: message(REPEATED_ANSWER)
        }));
    }
}
