//! Which texts of messages are read when a session is opened.

use std::sync::Arc;

use wire::EntryBody;

use crate::forest::Forest;
use crate::limits::DEFERRED_TAIL;
use crate::medium::Medium;
use crate::parse::{self, Line};

/// What to do with the texts of messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Texts {
    /// They are read.
    #[default]
    Read,
    /// They are left out if the file has no damage.
    Deferred,
}

/// Reads the messages at the end of the branch as a whole, down to the newest answer that reports how large the context was: the
/// size of the context is estimated from them. Returns false when that takes too much, or when a later entry changes messages.
pub(crate) fn complete_tail(forest: &mut Forest, medium: &dyn Medium) -> std::io::Result<bool> {
    let path = forest.path_to(forest.leaf_id());
    let edits = path.iter().filter_map(|at| forest.at(*at));
    if edits.into_iter().any(|entry| entry.body.kind() == "context_edit") {
        return Ok(false);
    }
    let mut bytes = 0;
    for at in path.into_iter().rev() {
        let Some((span, entry)) = forest.span(at).zip(forest.at(at)) else {
            return Ok(false);
        };
        if !matches!(entry.body, EntryBody::Message(_)) {
            continue;
        }
        bytes += span.len;
        if bytes > DEFERRED_TAIL {
            return Ok(false);
        }
        let Line::Entry(parsed) = parse::line(&medium.read_at(span.offset, span.len)?) else {
            return Ok(false);
        };
        let is_last = match &parsed.entry.body {
            EntryBody::Message(body) => body
                .message
                .as_assistant()
                .is_some_and(|answer| answer.reported_tokens().is_some() && !answer.content.is_empty()),
            _ => false,
        };
        forest.replace(at, Arc::new(parsed.entry));
        if is_last {
            break;
        }
    }
    Ok(true)
}
