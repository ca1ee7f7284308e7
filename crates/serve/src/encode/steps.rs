//! The members of a step of an answer, as a `message_update` has them.

use wire::StreamEvent;

use super::answer::{self, Answer, Prose};
use super::json;
use super::pending::{Delta, Kind};
use super::repeats::Repeats;

/// Writes the fields of a start or an end, without braces. The text of a block that ended is in the answer already, if one is
/// kept, as it is to be written.
pub(super) fn write_event(
    out: &mut Vec<u8>,
    event: &StreamEvent,
    answer: Option<&Answer>,
    repeats: Option<&mut Repeats>,
) {
    let (kind, index, content): (&[u8], _, _) = match event {
        StreamEvent::ToolcallEnd {
            content_index,
            tool_call,
        } => {
            out.extend_from_slice(b"\"type\":\"toolcall_end\",\"contentIndex\":");
            json::value(out, content_index);
            out.extend_from_slice(b",\"toolCall\":");
            answer::tool_call(out, tool_call);
            return;
        }
        StreamEvent::TextEnd {
            content_index,
            content,
        } => (b"\"type\":\"text_end\",\"contentIndex\":", content_index, content),
        StreamEvent::ThinkingEnd {
            content_index,
            content,
        } => (
            b"\"type\":\"thinking_end\",\"contentIndex\":",
            content_index,
            content,
        ),
        _ => {
            json::fields(out, event);
            // The caller adds members after these, so the object stays open.
            if out.last() == Some(&b'}') {
                out.pop();
            }
            return;
        }
    };
    out.extend_from_slice(kind);
    json::value(out, index);
    out.extend_from_slice(b",\"content\":\"");
    // The text of a block can be megabytes: it is taken from the answer, where it is escaped already.
    if !answer.is_some_and(|answer| answer.write_prose(*index, repeats, out)) {
        json::escape(out, content);
    }
    out.push(b'"');
}

/// Writes the fields of a delta, without braces.
pub(super) fn write_delta(out: &mut Vec<u8>, delta: &Delta) {
    let kind: &[u8] = match delta.kind {
        Kind::Prose(Prose::Text) => b"\"type\":\"text_delta\",\"contentIndex\":",
        Kind::Prose(Prose::Thinking) => b"\"type\":\"thinking_delta\",\"contentIndex\":",
        Kind::Call => b"\"type\":\"toolcall_delta\",\"contentIndex\":",
    };
    out.extend_from_slice(kind);
    json::value(out, &delta.index);
    out.extend_from_slice(b",\"delta\":\"");
    out.extend_from_slice(&delta.escaped);
    out.push(b'"');
}
