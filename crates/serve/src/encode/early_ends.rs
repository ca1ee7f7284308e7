//! Ends of blocks for clients of today's oh-my-pi (dialects.md 14.1), which ends text and reasoning when the next block begins, and when
//! the answer fails. Some APIs name no end of a block, so that Pinion, as pi, ends these blocks with the answer.

use std::collections::HashSet;

use wire::{AssistantMessage, StopReason, StreamEvent};

use super::answer::Prose;
use super::pending::{Stage, block};

/// The open block of the answer that streams in, and the blocks whose end was written early.
#[derive(Debug, Default)]
pub(super) struct EarlyEnds {
    open: Option<(usize, Prose)>,
    ended: HashSet<usize>,
}

impl EarlyEnds {
    /// Follows a step of the answer. Returns the end of another block that comes before it, without its text.
    pub(super) fn before(&mut self, event: &StreamEvent) -> Option<StreamEvent> {
        let (index, stage) = block(event);
        match (stage, prose(event)) {
            (Stage::Start, prose) => {
                let end = self.open.take().filter(|(open, _)| *open != index);
                self.open = prose.map(|prose| (index, prose));
                end.map(|end| self.end(end))
            }
            // The provider continues a block that another one followed. It gets a second end.
            (Stage::Delta, Some(prose)) if self.ended.remove(&index) => {
                self.open = Some((index, prose));
                None
            }
            _ => None,
        }
    }

    /// Returns the end that comes before the end of the answer, without its text: after an error the open block ends, too. An abort ends
    /// the answer alone.
    pub(super) fn before_end(&mut self, answer: &AssistantMessage) -> Option<StreamEvent> {
        let open = self.open.take()?;
        (answer.stop_reason == StopReason::Error).then(|| self.end(open))
    }

    /// Takes a start or an end of a block. Returns true for an end that was written early.
    pub(super) fn take(&mut self, event: &StreamEvent) -> bool {
        let (index, stage) = block(event);
        let is_end = matches!(stage, Stage::End);
        if is_end && self.open.is_some_and(|(open, _)| open == index) {
            self.open = None;
        }
        is_end && self.ended.remove(&index)
    }

    fn end(&mut self, (content_index, prose): (usize, Prose)) -> StreamEvent {
        self.ended.insert(content_index);
        let content = String::new();
        match prose {
            Prose::Text => StreamEvent::TextEnd {
                content_index,
                content,
            },
            Prose::Thinking => StreamEvent::ThinkingEnd {
                content_index,
                content,
            },
        }
    }
}

/// The kind of a block with text.
fn prose(event: &StreamEvent) -> Option<Prose> {
    match event {
        StreamEvent::TextStart { .. } | StreamEvent::TextDelta { .. } => Some(Prose::Text),
        StreamEvent::ThinkingStart { .. } | StreamEvent::ThinkingDelta { .. } => Some(Prose::Thinking),
        _ => None,
    }
}
