//! Questions to the host: sent, answered, cancelled.
//!
//! A question waits as long as the host needs. There is no time limit on purpose: the host may be asking a person, and only
//! it knows how long that takes. But every question can be cancelled at any moment, by an abort, by steering that interrupts
//! and by the end of the connection; the call then ends at once, whatever the host does.

use std::collections::VecDeque;
use std::time::Instant;

use pinion_core::{Input, ToolInput};
use serde_json::{Map, Value};
use tools::ToolOutcome;
use uuid::Uuid;
use wire::command::image_from_value;
use wire::hosted::{Frame, HostToolResult, HostToolUpdate, HostUriResult, UriOperation};
use wire::{Event, Response, ToolResult, UserBlock};

use crate::outbox::ClientId;
use crate::strings;

use super::super::Session;
use super::uris;

/// A question that has not been asked yet.
pub(super) enum Question {
    /// A call of one of the host's tools.
    Tool {
        call_id: String,
        name: String,
        arguments: Map<String, Value>,
    },
    /// `read` or `write` on one of its URIs; the arguments are the tool's.
    Uri {
        operation: UriOperation,
        url: String,
        args: Map<String, Value>,
        immutable: bool,
    },
}

/// What is needed of a question to understand its answer.
pub(super) enum Asked {
    Tool {
        name: String,
    },
    Uri {
        operation: UriOperation,
        url: String,
        args: Map<String, Value>,
        immutable: bool,
    },
}

impl Asked {
    /// Why the call fails when nobody waits for the answer any more.
    fn given_up(&self, gone: bool) -> String {
        match self {
            Self::Tool { .. } if gone => strings::HOST_GONE_TOOL.to_owned(),
            Self::Uri { .. } if gone => strings::HOST_GONE_URI.to_owned(),
            Self::Tool { name } => strings::host_tool_aborted(name),
            Self::Uri { operation, url, .. } => strings::host_uri_aborted(*operation, url),
        }
    }

    fn cancel_event(&self, target_id: String) -> Event {
        let id = new_id();
        match self {
            Self::Tool { .. } => Event::HostToolCancel { id, target_id },
            Self::Uri { .. } => Event::HostUriCancel { id, target_id },
        }
    }
}

/// A question that waits for its answer.
pub(super) struct Open {
    id: String,
    /// Position of the call in its batch.
    slot: usize,
    asked: Asked,
    started: Instant,
}

impl Open {
    fn done(&self, outcome: ToolOutcome) -> Input {
        let duration_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let done = ToolInput::Done {
            result: outcome.result,
            is_error: outcome.is_error,
            duration_ms,
        };
        Input::Tool(self.slot, done)
    }
}

/// Unique among all sessions of all processes, so that an answer never finds the wrong question.
fn new_id() -> String {
    Uuid::now_v7().to_string()
}

impl Session {
    /// Asks the host what was prepared for a call. False: nothing was.
    pub(in crate::session) async fn ask_host(&mut self, slot: usize, inputs: &mut VecDeque<Input>) -> bool {
        let Some(question) = self.hosted.prepared.remove(&slot) else {
            return false;
        };
        let id = new_id();
        let (event, asked) = question.send(id.clone());
        let open = Open {
            id,
            slot,
            asked,
            started: Instant::now(),
        };
        if self.calls.is_cancelled() || self.hosted.gone {
            let outcome = ToolOutcome::error(open.asked.given_up(self.hosted.gone));
            inputs.push_back(open.done(outcome));
        } else {
            self.hosted.open.push(open);
            self.outbox.tell(event).await;
        }
        true
    }

    /// Gives up all questions: the host is told, the calls end at once. Answers that come later find no question.
    pub(in crate::session) async fn give_up_host(&mut self, inputs: &mut VecDeque<Input>) {
        let gone = self.hosted.gone;
        for open in std::mem::take(&mut self.hosted.open) {
            let outcome = ToolOutcome::error(open.asked.given_up(gone));
            inputs.push_back(open.done(outcome));
            if !gone {
                self.outbox.tell(open.asked.cancel_event(open.id)).await;
            }
        }
    }

    /// The client is gone. Calls that wait for it fail, which is written down with the rest of the run.
    pub(in crate::session) async fn lose_host(&mut self) {
        self.hosted.gone = true;
        if !self.hosted.open.is_empty() {
            self.drive(Input::Abort).await;
        }
    }

    /// Takes an answer. One to a question that is not open (any more) is ignored.
    pub(in crate::session) async fn on_frame(&mut self, frame: Frame) {
        match frame {
            Frame::ToolUpdate(update) => self.on_tool_update(update).await,
            Frame::ToolResult(result) => self.on_tool_result(result).await,
            Frame::UriResult(result) => self.on_uri_result(result).await,
            Frame::UiResponse(response) => self.dialogs.answered(&response),
            _ => {}
        }
    }

    async fn on_tool_update(&mut self, update: HostToolUpdate) {
        let is_it = |open: &&Open| open.id == update.id && matches!(open.asked, Asked::Tool { .. });
        let Some(slot) = self.hosted.open.iter().find(is_it).map(|open| open.slot) else {
            return;
        };
        match result(update.partial_result) {
            Some(partial) => self.drive(Input::Tool(slot, ToolInput::Progress(partial))).await,
            None => self.complain(strings::bad_update(&update.id)).await,
        }
    }

    async fn on_tool_result(&mut self, frame: HostToolResult) {
        let is_it = |open: &Open| open.id == frame.id && matches!(open.asked, Asked::Tool { .. });
        let Some(at) = self.hosted.open.iter().position(is_it) else {
            return;
        };
        let Some(result) = result(frame.result) else {
            return self.complain(strings::bad_result(&frame.id)).await;
        };
        let open = self.hosted.open.remove(at);
        let outcome = if frame.is_error {
            let text = result.joined_text();
            let text = Some(text.trim()).filter(|text| !text.is_empty());
            ToolOutcome::error(text.unwrap_or(strings::HOST_TOOL_FAILED))
        } else {
            ToolOutcome::ok(result)
        };
        self.drive(open.done(outcome)).await;
    }

    async fn on_uri_result(&mut self, frame: HostUriResult) {
        let is_it = |open: &Open| open.id == frame.id && matches!(open.asked, Asked::Uri { .. });
        let Some(at) = self.hosted.open.iter().position(is_it) else {
            return;
        };
        if !frame.content.is_string() && !frame.content.is_null() {
            return self.complain(strings::bad_uri_result(&frame.id)).await;
        }
        let mut open = self.hosted.open.remove(at);
        let outcome = match &mut open.asked {
            Asked::Uri {
                operation,
                url,
                args,
                immutable,
            } => uris::outcome(*operation, url, std::mem::take(args), *immutable, frame),
            Asked::Tool { .. } => return,
        };
        self.drive(open.done(outcome)).await;
    }

    /// A frame cannot be used. There is no command to answer, so it is said like of a line that cannot be read.
    async fn complain(&self, error: String) {
        let response = Response {
            id: None,
            command: Some("parse".into()),
            outcome: Err(error),
        };
        let _gone = self.outbox.response(ClientId::default(), response).await;
    }
}

impl Question {
    /// The event that asks, and what is needed for the answer.
    fn send(self, id: String) -> (Event, Asked) {
        match self {
            Self::Tool {
                call_id,
                name,
                arguments,
            } => {
                let event = Event::HostToolCall {
                    id,
                    tool_call_id: call_id,
                    tool_name: name.clone(),
                    arguments,
                };
                (event, Asked::Tool { name })
            }
            Self::Uri {
                operation,
                url,
                args,
                immutable,
            } => {
                let content = args.get("content").and_then(Value::as_str);
                let content = content.filter(|_| operation == UriOperation::Write);
                let event = Event::HostUriRequest {
                    id,
                    operation,
                    url: url.clone(),
                    content: content.map(str::to_owned),
                };
                let asked = Asked::Uri {
                    operation,
                    url,
                    args,
                    immutable,
                };
                (event, asked)
            }
        }
    }
}

/// A result as the host sent it; none without an array of content. Blocks of unknown form become texts: better an odd text
/// than a call that never ends.
pub(in crate::session) fn result(value: Value) -> Option<ToolResult> {
    let Value::Object(mut map) = value else {
        return None;
    };
    let Some(Value::Array(content)) = map.remove("content") else {
        return None;
    };
    Some(ToolResult {
        content: content.into_iter().map(block).collect(),
        details: map.remove("details").filter(|details| !details.is_null()),
        terminate: None,
    })
}

/// A block as it was sent.
pub(in crate::session) fn block(value: Value) -> UserBlock {
    if let Value::String(text) = value {
        return UserBlock::text(text);
    }
    if value.get("type").and_then(Value::as_str) == Some("image")
        && let Ok(image) = image_from_value(&value)
    {
        return UserBlock::Image(image);
    }
    let text = value.to_string();
    serde_json::from_value(value).unwrap_or_else(|_| UserBlock::text(text))
}
