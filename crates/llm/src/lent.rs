//! Answers of an extension that streams in a provider's place. Its events are those of pi-ai, as JSON; here they become
//! our own, within the same bounds as a provider's. The caller knows how to reach the extension.

use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::sync::CancellationToken;
use wire::content::{AssistantBlock, ThinkingContent, ToolCall};
use wire::{AssistantMessage, StopReason, Usage};

use crate::answer::{Answer, Fault};
use crate::event::ModelEvent;
use crate::request::{ModelRequest, Timeouts};
use crate::stream::ABORTED_EARLY;

/// The output of an extension for one request. Dropping it cancels the request.
pub struct Lent {
    /// The events of pi-ai (`text_delta` and so on), in order; they end before `end` counts.
    pub events: Box<dyn LentEvents>,
    /// The whole message, or why there is none.
    pub end: Pin<Box<dyn Future<Output = Result<Value, String>> + Send>>,
}

/// Gives events one by one.
pub trait LentEvents: Send {
    /// The next one; none when no more will come.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Value>>;
}

impl fmt::Debug for Lent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Lent")
    }
}

/// One event of pi-ai; events without content are left out.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum Said {
    Start,
    TextStart {
        content_index: usize,
    },
    TextDelta {
        content_index: usize,
        #[serde(default)]
        delta: String,
    },
    TextEnd {
        content_index: usize,
        content: Option<String>,
    },
    ThinkingStart {
        content_index: usize,
    },
    ThinkingDelta {
        content_index: usize,
        #[serde(default)]
        delta: String,
    },
    ThinkingEnd {
        content_index: usize,
        content: Option<String>,
    },
    ToolcallStart {
        content_index: usize,
        #[serde(default)]
        id: String,
        #[serde(default)]
        tool_name: String,
    },
    ToolcallDelta {
        content_index: usize,
        #[serde(default)]
        delta: String,
    },
    ToolcallEnd {
        content_index: usize,
        tool_call: Option<ToolCall>,
    },
    #[serde(other)]
    Other,
}

/// What kind of block grows.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Text,
    Thinking,
}

/// An answer that an extension streams.
pub(crate) struct Lending {
    lent: Lent,
    answer: Answer,
    /// Their place of a block -> ours.
    places: HashMap<usize, usize>,
    begun: bool,
    /// No more events come.
    over: bool,
    timeouts: Timeouts,
    /// Fires when the extension has been silent for too long.
    timer: Pin<Box<Sleep>>,
}

impl Lending {
    /// The answer to a request. Needs a tokio runtime.
    pub(crate) fn new(request: &ModelRequest, lent: Lent) -> Self {
        Self {
            lent,
            answer: Answer::new(request),
            places: HashMap::new(),
            begun: false,
            over: false,
            timeouts: request.timeouts,
            timer: Box::pin(sleep(request.timeouts.response)),
        }
    }

    /// The answer so far.
    pub(crate) fn answer_so_far(&self) -> &Answer {
        &self.answer
    }

    /// Waits for the next event and takes it. True after the last one. Dropping it while it waits loses nothing.
    pub(crate) async fn step(&mut self, cancel: &CancellationToken, out: &mut Vec<ModelEvent>) -> bool {
        let taken = tokio::select! {
            biased;
            () = cancel.cancelled() => {
                self.abort(out);
                return true;
            }
            event = poll_fn(|context| self.lent.events.poll_next(context)), if !self.over => match event {
                Some(event) => {
                    // From the first event on, the other time counts.
                    self.timeouts.response = self.timeouts.idle;
                    self.timer.as_mut().reset(Instant::now() + self.timeouts.idle);
                    self.take(event, out)
                }
                None => {
                    self.over = true;
                    Ok(())
                }
            },
            end = &mut self.lent.end, if self.over => {
                match end.and_then(whole) {
                    Ok(message) => match self.finish(message, out) {
                        Ok(()) => return true,
                        Err(fault) => Err(fault),
                    },
                    Err(text) => Err(Fault::new(text)),
                }
            }
            () = &mut self.timer => {
                let seconds = self.timeouts.response.as_secs_f64();
                Err(Fault::new(format!("Stream timed out: nothing came for {seconds} s")))
            }
        };
        match taken {
            Ok(()) => false,
            Err(fault) => {
                self.answer.failed(StopReason::Error, fault, out);
                true
            }
        }
    }

    fn begin(&mut self, out: &mut Vec<ModelEvent>) {
        if !std::mem::replace(&mut self.begun, true) {
            out.push(ModelEvent::Start(self.answer.head()));
        }
    }

    fn take(&mut self, event: Value, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        // An unknown event is skipped: the last event contains the whole message.
        let Ok(said) = serde_json::from_value::<Said>(event) else {
            return Ok(());
        };
        if !matches!(said, Said::Other) {
            self.begin(out);
        }
        match said {
            Said::Start | Said::Other => {}
            Said::TextStart { content_index } => drop(self.block(content_index, Kind::Text, out)?),
            Said::ThinkingStart { content_index } => drop(self.block(content_index, Kind::Thinking, out)?),
            Said::TextDelta { content_index, delta } => {
                let place = self.block(content_index, Kind::Text, out)?;
                self.answer.delta(place, &delta, out)?;
            }
            Said::ThinkingDelta { content_index, delta } => {
                let place = self.block(content_index, Kind::Thinking, out)?;
                self.answer.delta(place, &delta, out)?;
            }
            Said::TextEnd {
                content_index,
                content,
            } => {
                let place = self.block(content_index, Kind::Text, out)?;
                self.end(place, content.as_deref(), out)?;
            }
            Said::ThinkingEnd {
                content_index,
                content,
            } => {
                let place = self.block(content_index, Kind::Thinking, out)?;
                self.end(place, content.as_deref(), out)?;
            }
            Said::ToolcallStart {
                content_index,
                id,
                tool_name,
            } => {
                if !self.places.contains_key(&content_index) {
                    let place = self.answer.start_call(id, tool_name, out)?;
                    self.places.insert(content_index, place);
                }
            }
            Said::ToolcallDelta { content_index, delta } => {
                if let Some(place) = self.places.get(&content_index) {
                    self.answer.delta(*place, &delta, out)?;
                }
            }
            Said::ToolcallEnd {
                content_index,
                tool_call: Some(call),
            } => self.end_call(content_index, call, out)?,
            Said::ToolcallEnd { .. } => {}
        }
        Ok(())
    }

    /// Our place of a block, which is begun if it is new.
    fn block(&mut self, theirs: usize, kind: Kind, out: &mut Vec<ModelEvent>) -> Result<usize, Fault> {
        if let Some(place) = self.places.get(&theirs) {
            return Ok(*place);
        }
        let place = match kind {
            Kind::Text => self.answer.start_text(out)?,
            Kind::Thinking => self.answer.start_thinking(ThinkingContent::default(), out)?,
        };
        self.places.insert(theirs, place);
        Ok(place)
    }

    fn end(&mut self, place: usize, whole: Option<&str>, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        if let Some(whole) = whole {
            self.answer.complete(place, whole, out)?;
        }
        self.answer.end(place, out);
        Ok(())
    }

    fn end_call(&mut self, theirs: usize, call: ToolCall, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let place = match self.places.get(&theirs) {
            Some(place) => *place,
            None => {
                let place = self.answer.start_call(call.id.clone(), call.name.clone(), out)?;
                self.places.insert(theirs, place);
                place
            }
        };
        // A text that only a repair turns into these arguments would be an error when the block ends.
        let told: Option<Map<String, Value>> = serde_json::from_str(self.answer.args(place)).ok();
        if told.as_ref() != Some(&call.arguments) {
            let whole = serde_json::to_string(&call.arguments).unwrap_or_default();
            self.answer.complete(place, &whole, out)?;
        }
        if let Some(known) = self.answer.call_mut(place) {
            known.id = call.id;
            known.name = call.name;
            known.thought_signature = call.thought_signature;
        }
        self.answer.end(place, out);
        Ok(())
    }

    /// Takes the final message, which decides. Emits the parts of it that were not streamed.
    fn finish(&mut self, message: AssistantMessage, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let failed = message.failed();
        if !failed {
            self.begin(out);
            for (theirs, block) in message.content.iter().enumerate() {
                if !self.places.contains_key(&theirs) {
                    self.tell(theirs, block, out)?;
                }
            }
            self.answer.end_all(out);
        }
        self.account(&message.usage, out);
        let known = self.answer.message();
        // Streamed content is checked against the limit as it arrives; a message in one line is limited by the line.
        if !message.content.is_empty() {
            known.content = message.content;
        }
        known.stop_reason = message.stop_reason;
        known.response_id = message.response_id;
        known.response_model = message.response_model;
        known.raw_stop_reason = message.raw_stop_reason;
        known.duration_ms = message.duration_ms;
        if failed {
            let text = message.error_message.filter(|text| !text.trim().is_empty());
            // The member of oh-my-pi's messages; those of pi have none.
            let status = message.extra.get("errorStatus").and_then(Value::as_u64);
            let fault = Fault {
                status: status.and_then(|status| u16::try_from(status).ok()),
                ..Fault::new(text.unwrap_or_else(|| "The provider gave no reason".to_owned()))
            };
            self.answer.failed(message.stop_reason, fault, out);
        } else {
            self.answer.done(out);
        }
        Ok(())
    }

    fn tell(
        &mut self,
        theirs: usize,
        block: &AssistantBlock,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        match block {
            AssistantBlock::Text(text) => {
                let place = self.block(theirs, Kind::Text, out)?;
                self.end(place, Some(&text.text), out)
            }
            AssistantBlock::Thinking(thinking) => {
                let place = self.block(theirs, Kind::Thinking, out)?;
                self.end(place, Some(&thinking.thinking), out)
            }
            AssistantBlock::ToolCall(call) => self.end_call(theirs, call.clone(), out),
        }
    }

    /// Token counts. A cost that the other one states stands; else it comes from the model's prices.
    fn account(&mut self, usage: &Usage, out: &mut Vec<ModelEvent>) {
        if *usage == Usage::default() {
            return;
        }
        let stated = usage.cost.total > 0.0;
        self.answer.set_usage(usage.clone(), out);
        if stated {
            let mut own = self.answer.usage();
            own.cost = usage.cost;
            self.answer.message().usage = own.clone();
            out.pop();
            out.push(ModelEvent::Usage(own));
        }
    }

    /// Ends the answer where it is (behaviour.md 3.6).
    fn abort(&mut self, out: &mut Vec<ModelEvent>) {
        self.answer.end_all(out);
        let text = if self.begun {
            "Request was aborted"
        } else {
            ABORTED_EARLY
        };
        self.answer.failed(StopReason::Aborted, Fault::new(text), out);
    }
}

/// The message that ends an answer. Token counts that are none count as unknown.
fn whole(message: Value) -> Result<AssistantMessage, String> {
    let Value::Object(mut members) = message else {
        return Err("The provider's stream ended without a message".to_owned());
    };
    let usage = members.remove("usage").map(serde_json::from_value::<Usage>);
    let mut message =
        understood(members).map_err(|error| format!("The provider gave an odd message: {error}"))?;
    message.usage = usage.and_then(Result::ok).unwrap_or_default();
    Ok(message)
}

fn understood(members: Map<String, Value>) -> Result<AssistantMessage, serde_json::Error> {
    AssistantMessage::deserialize(Value::Object(members))
}
