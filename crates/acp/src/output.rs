//! Messages that wait to be written. Pieces of text that follow each other become one message if the client has not taken the
//! first by the time the next arrives.

use std::collections::VecDeque;

use serde_json::Value;

use crate::limits::BATCH_BYTES;

/// Messages in their order.
#[derive(Debug, Default)]
pub(crate) struct Output(VecDeque<Line>);

#[derive(Debug)]
enum Line {
    Message(Value),
    Chunk(Chunk),
}

/// A piece of streamed text. It never becomes a [`Value`], since a session sends thousands of them in a second.
#[derive(Debug)]
struct Chunk {
    session: String,
    /// The kind of update.
    kind: &'static str,
    text: String,
}

impl Output {
    /// Adds a message.
    pub(crate) fn push(&mut self, message: Value) {
        self.0.push_back(Line::Message(message));
    }

    /// Adds streamed text of a session, to the last message if that is text of the same kind and session.
    pub(crate) fn push_text(&mut self, session: &str, kind: &'static str, text: &str) {
        if let Some(Line::Chunk(last)) = self.0.back_mut()
            && last.kind == kind
            && last.session == session
        {
            return last.text.push_str(text);
        }
        self.0.push_back(Line::Chunk(Chunk {
            session: session.to_owned(),
            kind,
            text: text.to_owned(),
        }));
    }

    /// Bytes of the last message that more text may follow.
    pub(crate) fn held_back(&self) -> usize {
        match self.0.back() {
            Some(Line::Chunk(chunk)) => chunk.text.len(),
            Some(Line::Message(_)) | None => 0,
        }
    }

    /// Appends messages until the batch is full. Returns true if more remain: a long history takes several batches.
    pub(crate) fn write(&mut self, batch: &mut Vec<u8>) -> bool {
        while batch.len() < BATCH_BYTES
            && let Some(line) = self.0.pop_front()
        {
            line.write(batch);
        }
        !self.0.is_empty()
    }

    /// Appends messages until the batch is full, except a last chunk that more text may follow.
    pub(crate) fn write_complete(&mut self, batch: &mut Vec<u8>) {
        let is_complete = |lines: &VecDeque<Line>| match lines.front() {
            Some(Line::Message(_)) => true,
            Some(Line::Chunk(_)) => lines.len() > 1,
            None => false,
        };
        while batch.len() < BATCH_BYTES
            && is_complete(&self.0)
            && let Some(line) = self.0.pop_front()
        {
            line.write(batch);
        }
    }
}

impl Extend<Value> for Output {
    fn extend<I: IntoIterator<Item = Value>>(&mut self, messages: I) {
        self.0.extend(messages.into_iter().map(Line::Message));
    }
}

impl Line {
    fn write(&self, batch: &mut Vec<u8>) {
        match self {
            Self::Message(message) => append(batch, message),
            Self::Chunk(Chunk { session, kind, text }) => {
                batch.extend_from_slice(
                    br#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"#,
                );
                append(batch, session);
                batch.extend_from_slice(br#","update":{"sessionUpdate":""#);
                batch.extend_from_slice(kind.as_bytes());
                batch.extend_from_slice(br#"","content":{"type":"text","text":"#);
                append(batch, text);
                batch.extend_from_slice(b"}}}}");
            }
        }
        batch.push(b'\n');
    }
}

fn append(batch: &mut Vec<u8>, value: &(impl serde::Serialize + ?Sized)) {
    // Strings and values always have a form in JSON, and memory takes every write.
    let _infallible = serde_json::to_writer(batch, value);
}
