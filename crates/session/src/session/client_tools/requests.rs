//! Requests to the client: sent, answered, withdrawn.
//!
//! A request waits as long as the client needs. There is no time limit on purpose: the client may be asking a person, and only
//! it knows how long that takes. But every request can be withdrawn at any moment, by an abort, by steering that interrupts
//! and by the end of the connection; the call then ends at once, without waiting for the client.

use tokio::sync::{mpsc, oneshot};
use tools::ToolOutcome;
use uuid::Uuid;
use wire::hosted::{Frame, HostToolResult, HostToolUpdate, HostUriResult};
use wire::{Event, ToolResult};

use crate::answer_routes::AnswerRoute;
use crate::strings;

use super::super::tool_calls::result;

/// What a request waits for.
pub(super) enum Answer {
    /// The result of a tool, and partial results before it.
    Tool {
        updates: mpsc::Sender<ToolResult>,
        done: oneshot::Sender<ToolOutcome>,
    },
    /// What came of a URI.
    Uri(oneshot::Sender<HostUriResult>),
}

impl Answer {
    fn cancel_event(&self, target_id: String) -> Event {
        let id = new_id();
        match self {
            Self::Tool { .. } => Event::HostToolCancel { id, target_id },
            Self::Uri(_) => Event::HostUriCancel { id, target_id },
        }
    }
}

/// A request that waits for its answer.
struct Open {
    id: String,
    /// Position of the call in its batch.
    slot: usize,
    answer: Answer,
    /// Leads the answer to this session.
    _route: AnswerRoute,
}

/// The requests of a session.
#[derive(Default)]
pub(super) struct Requests {
    /// Oldest first; as many as calls may run at once.
    open: Vec<Open>,
    /// Events that the session has to send.
    outgoing: Vec<Event>,
    /// The connection has ended.
    gone: bool,
}

impl Requests {
    /// Returns true if a request waits for its answer.
    pub(super) fn are_open(&self) -> bool {
        !self.open.is_empty()
    }
}

/// A request that was withdrawn.
pub(crate) struct Withdrawn {
    /// Position of the call in its batch.
    pub(crate) slot: usize,
    /// The event for the client. `None` if the connection has ended.
    pub(crate) event: Option<Event>,
}

/// Unique among all sessions of all processes, so that an answer never finds the wrong request.
fn new_id() -> String {
    Uuid::now_v7().to_string()
}

impl Requests {
    /// Unique among all sessions of all processes, so that an answer never finds the wrong request.
    pub(super) fn new_id() -> String {
        new_id()
    }

    /// Opens a request, and notes the event that makes it. Without a connection the answer is dropped at once.
    pub(super) fn open(
        &mut self,
        (id, route): (String, AnswerRoute),
        slot: usize,
        answer: Answer,
        event: impl FnOnce(String) -> Event,
    ) {
        if self.gone {
            return;
        }
        self.outgoing.push(event(id.clone()));
        self.open.push(Open {
            id,
            slot,
            answer,
            _route: route,
        });
    }

    /// Takes the events that have to be sent, in order.
    pub(super) fn take_outgoing(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.outgoing)
    }

    /// Returns true if the connection has ended.
    pub(super) fn is_gone(&self) -> bool {
        self.gone
    }

    /// The connection has ended: requests from now on fail.
    pub(super) fn lose_client(&mut self) {
        self.gone = true;
    }

    /// Withdraws the requests of some calls.
    pub(super) fn withdraw(&mut self, which: impl Fn(usize) -> bool) -> Vec<Withdrawn> {
        let is_gone = self.gone;
        let withdrawn = self.open.extract_if(.., |open| which(open.slot));
        withdrawn
            .map(|open| Withdrawn {
                slot: open.slot,
                event: (!is_gone).then(|| open.answer.cancel_event(open.id)),
            })
            .collect()
    }

    /// Gives an answer to the request it is for.
    ///
    /// # Errors
    /// The defect of the frame.
    pub(super) fn answer(&mut self, frame: Frame) -> Result<Option<usize>, String> {
        match frame {
            Frame::ToolUpdate(update) => self.update(update),
            Frame::ToolResult(result) => self.finish_tool(result),
            Frame::UriResult(result) => self.finish_uri(result),
            // Answers to dialogs never come here (`Session::on_frame`).
            _ => Ok(None),
        }
    }

    fn update(&self, frame: HostToolUpdate) -> Result<Option<usize>, String> {
        let mut open = self.open.iter().filter(|open| open.id == frame.id);
        let Some(Open {
            slot,
            answer: Answer::Tool { updates, .. },
            ..
        }) = open.next()
        else {
            return Ok(None);
        };
        let partial = result(frame.partial_result).ok_or_else(|| strings::bad_update(&frame.id))?;
        // Each update is dealt with before the next frame, so there is room, unless the call is about to end.
        Ok(updates.try_send(partial).is_ok().then_some(*slot))
    }

    fn finish_tool(&mut self, frame: HostToolResult) -> Result<Option<usize>, String> {
        // First: a frame with an unknown id is ignored with all its content (dialects.md 2).
        let is_it = |open: &Open| open.id == frame.id && matches!(open.answer, Answer::Tool { .. });
        let Some(at) = self.open.iter().position(is_it) else {
            return Ok(None);
        };
        // Before the request is removed, which stays open if the result cannot be read (dialects.md 7).
        let result = result(frame.result).ok_or_else(|| strings::bad_result(&frame.id))?;
        let outcome = if frame.is_error {
            // Only the texts of a failed result count (dialects.md 7).
            let text = result.joined_text();
            let text = Some(text.trim()).filter(|text| !text.is_empty());
            ToolOutcome::error(text.unwrap_or(strings::HOST_TOOL_FAILED))
        } else {
            ToolOutcome::ok(result)
        };
        let Open { slot, answer, .. } = self.open.remove(at);
        Ok(match answer {
            // A call that was given up reports nothing, and the session must not wait for it.
            Answer::Tool { done, .. } => done.send(outcome).is_ok().then_some(slot),
            Answer::Uri(_) => None,
        })
    }

    fn finish_uri(&mut self, frame: HostUriResult) -> Result<Option<usize>, String> {
        let is_it = |open: &Open| open.id == frame.id && matches!(open.answer, Answer::Uri(_));
        let Some(at) = self.open.iter().position(is_it) else {
            return Ok(None);
        };
        // As with tools, the request stays open after a frame that cannot be read.
        if !frame.content.is_string() && !frame.content.is_null() {
            return Err(strings::bad_uri_result(&frame.id));
        }
        let Open { slot, answer, .. } = self.open.remove(at);
        Ok(match answer {
            Answer::Uri(done) => done.send(frame).is_ok().then_some(slot),
            Answer::Tool { .. } => None,
        })
    }
}
