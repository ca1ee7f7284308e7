//! Members of every line of a connection that are not part of its event: the session and the number of an event.
//! Numbered lines are kept for a while, so that `replay` can send them again.

use std::sync::Arc;

use super::commands::EventNumbers;
use super::ring::Ring;
use crate::encode::Repeats;

/// Numbers the events of one connection and keeps the latest lines.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    /// Number of the last event that has one.
    last: u64,
    recent: Ring,
    /// Text of the lines so far that the batch does not contain.
    repeats: Repeats,
}

/// The numbers for lines of one session.
pub(crate) struct Numbering<'a> {
    numbers: &'a mut Numbers,
    /// The session; none for the first of the connection.
    from: Option<&'a Arc<str>>,
    /// The client wants a number in each line.
    is_wanted: bool,
}

impl Numbering<'_> {
    /// As [`Numbers::sent`].
    pub(crate) fn sent(self, start: usize, repeats: Repeats, out: &mut Vec<u8>) -> bool {
        self.numbers.sent(self.from, self.is_wanted, start, repeats, out)
    }
}

impl Numbers {
    /// The numbers for lines of one session.
    pub(crate) fn of<'a>(&'a mut self, from: Option<&'a Arc<str>>, is_wanted: bool) -> Numbering<'a> {
        Numbering {
            numbers: self,
            from,
            is_wanted,
        }
    }

    /// The latest lines.
    pub(crate) fn recent(&self) -> &Ring {
        &self.recent
    }

    /// The text that the batch does not contain; the batch ends here.
    pub(crate) fn take_repeats(&mut self) -> Repeats {
        std::mem::take(&mut self.repeats)
    }

    /// The lines from `start` on are events of a session that are sent now; `numbered` gives each its number. False when there
    /// are none.
    pub(crate) fn sent(
        &mut self,
        from: Option<&Arc<str>>,
        numbered: bool,
        start: usize,
        repeats: Repeats,
        out: &mut Vec<u8>,
    ) -> bool {
        if out.len() == start {
            return false;
        }
        if !numbered {
            self.answered(from, start, repeats, out);
            return true;
        }
        // Before `add`, which counts them.
        let first = self.last + 1;
        let session = member(from);
        let repeats = self.add(start, repeats, out, |last| {
            *last += 1;
            format!("{session},\"seq\":{last}")
        });
        let mut begin = start;
        for (number, line) in (first..).zip(objects(start, out)) {
            // From the end of the line before: a line without an object is kept with the next one.
            self.recent.push(number, begin..line.end, &repeats, out);
            begin = line.end;
        }
        self.repeats.append(repeats);
        true
    }

    /// The lines from `start` on have no numbers: responses, or events of a client that wants none.
    pub(crate) fn answered(
        &mut self,
        from: Option<&Arc<str>>,
        start: usize,
        repeats: Repeats,
        out: &mut Vec<u8>,
    ) {
        // Lines of the first session have no member `session`: clients that know one session only would not expect it.
        let repeats = match from {
            None => repeats,
            Some(_) => {
                let session = member(from);
                self.add(start, repeats, out, |_| session.clone())
            }
        };
        self.repeats.append(repeats);
    }

    /// Adds members to the finished lines: the encoder does not know them, and a line may be one of several for an event.
    fn add(
        &mut self,
        start: usize,
        mut repeats: Repeats,
        out: &mut Vec<u8>,
        mut members: impl FnMut(&mut u64) -> String,
    ) -> Repeats {
        let texts: Vec<(usize, String)> = objects(start, out)
            .map(|line| (line.close, members(&mut self.last)))
            .collect();
        repeats.insert(out, &texts);
        repeats
    }
}

/// A line with an object.
struct Line {
    /// The place of the closing brace.
    close: usize,
    /// The place behind the line feed.
    end: usize,
}

/// The lines with objects from `start` on.
fn objects(start: usize, out: &[u8]) -> impl Iterator<Item = Line> {
    let lines = out
        .get(start..)
        .unwrap_or_default()
        .split_inclusive(|byte| *byte == b'\n');
    lines
        .scan(start, |end, line| {
            *end += line.len();
            Some((*end, line))
        })
        .filter(|(_, line)| line.ends_with(b"}\n"))
        .map(|(end, _)| Line {
            close: end.saturating_sub(2),
            end,
        })
}

impl EventNumbers for Numbers {
    fn last(&self) -> u64 {
        self.last
    }

    fn count_after(&self, number: u64) -> Option<usize> {
        self.recent.count_after(number, self.last)
    }
}

/// The member that names a session; nothing for the first one.
fn member(from: Option<&Arc<str>>) -> String {
    match from {
        None => String::new(),
        Some(session) => format!(",\"session\":{}", serde_json::Value::from(session.as_ref())),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Numbers;
    use crate::encode::{Repeats, Segment};

    /// Two lines, the first one with shared text and a repeated part.
    fn batch() -> (Vec<u8>, Repeats) {
        let (mut out, mut repeats) = (b"{\"before\":0}\n".to_vec(), Repeats::default());
        out.extend_from_slice(b"{\"partial\":");
        let from = out.len();
        out.extend_from_slice(b"{\"text\":\"");
        for text in ["one ", "two"] {
            repeats.share(&out, &Segment::new(text.into()));
        }
        out.extend_from_slice(b"!\"}");
        let to = out.len();
        out.extend_from_slice(b",\"message\":");
        repeats.push(&out, from..to);
        out.extend_from_slice(b"}\nno object\n{\"last\":1}\n");
        (out, repeats)
    }

    fn expanded(mut out: Vec<u8>, repeats: Repeats) -> String {
        repeats.expand(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn members_follow_shared_text() {
        let session: Arc<str> = "s\"1".into();
        let mut numbers = Numbers::default();
        let (mut out, repeats) = batch();
        let start = b"{\"before\":0}\n".len();
        assert!(numbers.sent(Some(&session), true, start, repeats, &mut out));
        let later = out.len();
        out.extend_from_slice(b"{\"answer\":2}\n");
        numbers.answered(Some(&session), later, Repeats::default(), &mut out);
        let text = r#"{"text":"one two!"}"#;
        let numbered =
            format!("{{\"partial\":{text},\"message\":{text},\"session\":\"s\\\"1\",\"seq\":1}}\n");
        let last = "{\"last\":1,\"session\":\"s\\\"1\",\"seq\":2}\n";
        let repeats = numbers.take_repeats();
        assert_eq!(
            expanded(out, repeats),
            format!("{{\"before\":0}}\n{numbered}no object\n{last}{{\"answer\":2,\"session\":\"s\\\"1\"}}\n")
        );
        let mut again = Vec::new();
        numbers.recent().write_after(0, &mut again);
        assert_eq!(
            String::from_utf8(again).unwrap(),
            format!("{numbered}no object\n{last}")
        );
    }
}
