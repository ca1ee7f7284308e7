//! Requests to the client: sent, answered, withdrawn.
//!
//! A request waits as long as the client needs. There is no time limit on purpose: the client may be asking a person, and only
//! it knows how long that takes. But every request can be withdrawn at any moment, by an abort, by steering that interrupts
//! and by the end of the connection; the call then ends at once, whatever the client does.

use std::collections::VecDeque;

use pinion_core::Input;
use tokio::sync::{mpsc, oneshot};
use tools::ToolOutcome;
use uuid::Uuid;
use wire::hosted::{Frame, HostToolResult, HostToolUpdate, HostUriResult};
use wire::{Event, ToolResult};

use crate::strings;

use super::super::Session;
use super::super::tool_calls::result;
use super::ClientTools;

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
pub(in crate::session) struct Withdrawn {
    /// Position of the call in its batch.
    pub(in crate::session) slot: usize,
    /// What the client is told. `None` if the connection has ended.
    pub(in crate::session) event: Option<Event>,
}

/// Unique among all sessions of all processes, so that an answer never finds the wrong request.
fn new_id() -> String {
    Uuid::now_v7().to_string()
}

impl ClientTools {
    /// Makes a request; the session sends the event. Without a connection the answer is dropped at once.
    pub(super) fn request(&self, slot: usize, answer: Answer, event: impl FnOnce(String) -> Event) {
        let requests = &mut self.lock().requests;
        if requests.gone {
            return;
        }
        let id = new_id();
        requests.outgoing.push(event(id.clone()));
        requests.open.push(Open { id, slot, answer });
    }

    /// Takes the events that have to be sent, in order.
    pub(in crate::session) fn take_outgoing(&self) -> Vec<Event> {
        std::mem::take(&mut self.lock().requests.outgoing)
    }

    /// Returns true if a request waits for its answer.
    pub(in crate::session) fn are_asked(&self) -> bool {
        self.lock().requests.are_open()
    }

    /// Returns true if the connection has ended.
    pub(super) fn is_gone(&self) -> bool {
        self.lock().requests.gone
    }

    /// The connection has ended: requests from now on fail.
    pub(in crate::session) fn lose_client(&self) {
        self.lock().requests.gone = true;
    }

    /// Withdraws the requests of some calls, which then end. Answers that come later find no request.
    pub(in crate::session) fn withdraw(&self, which: impl Fn(usize) -> bool) -> Vec<Withdrawn> {
        let requests = &mut self.lock().requests;
        let is_gone = requests.gone;
        let withdrawn = requests.open.extract_if(.., |open| which(open.slot));
        withdrawn
            .map(|open| Withdrawn {
                slot: open.slot,
                event: (!is_gone).then(|| open.answer.cancel_event(open.id)),
            })
            .collect()
    }

    /// Gives an answer to the request it is for. Returns the call that goes on with it; an answer to a request that is not open
    /// (any more) is ignored.
    ///
    /// # Errors
    /// What is wrong with the frame, for the client. The request stays open.
    pub(in crate::session) fn answer(&self, frame: Frame) -> Result<Option<usize>, String> {
        let requests = &mut self.lock().requests;
        match frame {
            Frame::ToolUpdate(update) => requests.update(update),
            Frame::ToolResult(result) => requests.finish_tool(result),
            Frame::UriResult(result) => requests.finish_uri(result),
            _ => Ok(None),
        }
    }
}

impl Requests {
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
        let is_it = |open: &Open| open.id == frame.id && matches!(open.answer, Answer::Tool { .. });
        let Some(at) = self.open.iter().position(is_it) else {
            return Ok(None);
        };
        let result = result(frame.result).ok_or_else(|| strings::bad_result(&frame.id))?;
        let outcome = if frame.is_error {
            let text = result.joined_text();
            let text = Some(text.trim()).filter(|text| !text.is_empty());
            ToolOutcome::error(text.unwrap_or(strings::HOST_TOOL_FAILED))
        } else {
            ToolOutcome::ok(result)
        };
        let Open { slot, answer, .. } = self.open.remove(at);
        Ok(match answer {
            Answer::Tool { done, .. } => done.send(outcome).is_ok().then_some(slot),
            Answer::Uri(_) => None,
        })
    }

    fn finish_uri(&mut self, frame: HostUriResult) -> Result<Option<usize>, String> {
        let is_it = |open: &Open| open.id == frame.id && matches!(open.answer, Answer::Uri(_));
        let Some(at) = self.open.iter().position(is_it) else {
            return Ok(None);
        };
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

impl Session {
    /// Sends the requests that calls have made.
    pub(in crate::session) async fn send_client_requests(&mut self) {
        for event in self.client_tools.take_outgoing() {
            self.outbox.tell(event).await;
        }
    }

    /// Withdraws all requests: the client learns it, the calls end at once.
    pub(in crate::session) async fn withdraw_client_requests(&mut self, inputs: &mut VecDeque<Input>) {
        for Withdrawn { slot, event } in self.client_tools.withdraw(|_| true) {
            if let Some(event) = event {
                self.outbox.tell(event).await;
            }
            self.settle_call(slot, inputs).await;
        }
    }

    /// The client is gone. Calls that wait for it fail, which is written down with the rest of the run.
    pub(in crate::session) async fn lose_client(&mut self) {
        self.client_tools.lose_client();
        if self.client_tools.are_asked() {
            self.drive(Input::Abort).await;
        }
    }
}
