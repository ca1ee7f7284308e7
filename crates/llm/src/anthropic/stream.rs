//! Parses the stream of the Messages API (providers.md 3): six message events and `error`. Events of other names are
//! ignored.

use serde::Deserialize;
use serde_json::Value;
use wire::{StopReason, ThinkingContent, Usage};

use super::fallbacks::{Fallback, fallbacks};
use super::threads::thread;
use crate::answer::{Answer, Fault};
use crate::billing::{self, Bill};
use crate::event::ModelEvent;
use crate::family::{Flow, StreamParser};
use crate::json::{Count, Text, repair, unreadable};
use crate::message_thread::MessageThread;
use crate::request::ModelRequest;

/// The events that the parser reads. Gateways send others to keep a connection alive, and their data need not be JSON.
const EVENTS: [&str; 6] = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
];

/// Shown in place of reasoning that the provider withholds.
const REDACTED: &str = "[Reasoning redacted]";

/// One frame; which fields are there depends on its type.
#[derive(Default, Deserialize)]
struct Frame<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Text<'a>,
    #[serde(default)]
    index: Count,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    content_block: Option<Block<'a>>,
    #[serde(borrow, default)]
    message: Option<Head<'a>>,
    #[serde(default)]
    usage: Option<Tokens>,
}

/// What a block gains, or how the message ends.
#[derive(Default, Deserialize)]
struct Delta<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Text<'a>,
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    thinking: Text<'a>,
    #[serde(borrow, default)]
    partial_json: Text<'a>,
    #[serde(borrow, default)]
    signature: Text<'a>,
    #[serde(borrow, default)]
    stop_reason: Text<'a>,
    /// Why the model refused. A member of another form counts as missing.
    #[serde(default)]
    stop_details: Value,
}

/// A block as it begins.
#[derive(Default, Deserialize)]
struct Block<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Text<'a>,
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    thinking: Text<'a>,
    #[serde(borrow, default)]
    signature: Text<'a>,
    #[serde(borrow, default)]
    data: Text<'a>,
    #[serde(borrow, default)]
    input: Option<&'a serde_json::value::RawValue>,
}

/// The message as it begins.
#[derive(Default, Deserialize)]
struct Head<'a> {
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    model: Text<'a>,
    #[serde(default)]
    usage: Option<Tokens>,
}

/// Token counts; null and missing mean unchanged.
#[derive(Default, Clone, Deserialize)]
struct Tokens {
    #[serde(default)]
    input_tokens: Count,
    #[serde(default)]
    output_tokens: Count,
    #[serde(default)]
    cache_read_input_tokens: Count,
    #[serde(default)]
    cache_creation_input_tokens: Count,
    /// How long the written tokens stay in the cache. A member of another form counts as missing.
    #[serde(default)]
    cache_creation: Value,
    #[serde(default)]
    output_tokens_details: Option<Reasoned>,
    #[serde(flatten)]
    bill: Bill,
}

/// How many output tokens were spent on reasoning.
#[derive(Default, Clone, Copy, Deserialize)]
struct Reasoned {
    #[serde(default)]
    thinking_tokens: Count,
}

/// A block that has not ended: the provider's index, ours, and the arguments that came with its start.
struct Open {
    theirs: u64,
    ours: usize,
    input: Option<String>,
}

/// Parser of a stream of the Messages API.
pub(crate) struct MessagesParser {
    answer: Answer,
    /// OpenRouter reports what it billed.
    is_openrouter: bool,
    /// Few at a time, mostly one.
    open: Vec<Open>,
    /// Why the whole answer counts as failed.
    fault: Option<Fault>,
    /// Gets the answer when it is complete.
    thread: Option<MessageThread>,
    /// The model that was asked.
    asked: String,
    /// The answer names another model that gives it.
    names_model: bool,
    /// Models that the provider may ask in its place.
    fallbacks: Vec<Fallback>,
}

impl MessagesParser {
    /// A parser for the answer to a request.
    pub(crate) fn new(request: &ModelRequest) -> Self {
        Self {
            answer: Answer::new(request),
            is_openrouter: billing::is_openrouter(&request.model),
            open: Vec::new(),
            fault: None,
            thread: thread(request).cloned(),
            asked: request.model.id.clone(),
            names_model: request.conventions.names_answering_model,
            fallbacks: fallbacks(&request.model),
        }
    }

    /// Takes one frame of a known kind.
    fn frame(&mut self, name: &str, frame: Frame<'_>, out: &mut Vec<ModelEvent>) -> Result<Flow, Fault> {
        match name {
            "message_start" => {
                let head = frame.message.unwrap_or_default();
                self.answer.message().response_id = head.id.filled().map(str::to_owned);
                self.answered_by(head.model.as_str());
                self.count(head.usage, out);
            }
            "content_block_start" => self.start(
                frame.index.or_zero(),
                frame.content_block.unwrap_or_default(),
                out,
            )?,
            "content_block_delta" => {
                self.delta(frame.index.or_zero(), &frame.delta.unwrap_or_default(), out)?
            }
            "content_block_stop" => self.stop(frame.index.or_zero(), out)?,
            "message_delta" => {
                let delta = frame.delta.unwrap_or_default();
                if let Some(reason) = delta.stop_reason.filled() {
                    let explanation = delta.stop_details.get("explanation").and_then(Value::as_str);
                    self.reason(reason, explanation.filter(|text| !text.is_empty()))?;
                }
                self.count(frame.usage, out);
            }
            "message_stop" => {
                self.answer.end_all(out);
                if let Some(fault) = self.fault.take() {
                    return Err(fault);
                }
                if let Some(thread) = &self.thread {
                    thread.answered(self.answer.message());
                }
                return Ok(Flow::Done);
            }
            _ => {}
        }
        Ok(Flow::More)
    }

    /// The model that answers. Another one may have another price, and the provider does not keep its answer in a thread.
    fn answered_by(&mut self, model: &str) {
        if model.is_empty() || model == self.asked {
            return;
        }
        let fallback = self.fallbacks.iter().find(|fallback| fallback.model == model);
        if let Some(fallback) = fallback {
            self.thread = None;
            let prices = fallback.prices.clone();
            self.answer.reprice(|known| *known = prices);
        }
        if self.names_model || fallback.is_some() {
            self.answer.message().response_model = Some(model.to_owned());
        }
    }

    /// A block begins. Kinds that are not known are left out, with their deltas.
    fn start(&mut self, theirs: u64, block: Block<'_>, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let mut input = None;
        let ours = match block.kind.as_str() {
            "text" => self.answer.start_text(out)?,
            "thinking" => {
                let signature = Some(block.signature.as_str().to_owned());
                let empty = ThinkingContent {
                    thinking_signature: signature,
                    ..ThinkingContent::default()
                };
                self.answer.start_thinking(empty, out)?
            }
            "redacted_thinking" => {
                let block = ThinkingContent {
                    thinking: REDACTED.to_owned(),
                    thinking_signature: Some(block.data.as_str().to_owned()),
                    redacted: Some(true),
                    extra: wire::Extra::default(),
                };
                self.answer.start_thinking(block, out)?
            }
            "tool_use" => {
                // Some servers send the whole input at once instead of in deltas.
                input = block
                    .input
                    .map(|raw| raw.get().to_owned())
                    .filter(|raw| !matches!(raw.as_str(), "{}" | "null"));
                // Counted again when the block ends: until then nothing else bounds what open blocks keep.
                self.answer.grow(input.as_ref().map_or(0, String::len))?;
                let (id, name) = (block.id.as_str().to_owned(), block.name.as_str().to_owned());
                self.answer.start_call(id, name, out)?
            }
            // Two models cannot share an answer: their reasoning cannot be sent back.
            "fallback" if !self.answer.content().is_empty() => {
                return Err(Fault::new(
                    "Anthropic performed an unsupported mid-output model fallback",
                ));
            }
            _ => return Ok(()),
        };
        for text in [&block.text, &block.thinking]
            .into_iter()
            .filter_map(Text::filled)
        {
            self.answer.delta(ours, text, out)?;
        }
        self.open.push(Open { theirs, ours, input });
        Ok(())
    }

    /// A block grows. Deltas of blocks that never began are dropped.
    fn delta(&mut self, theirs: u64, delta: &Delta<'_>, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let Some(ours) = self
            .open
            .iter()
            .rev()
            .find(|open| open.theirs == theirs)
            .map(|open| open.ours)
        else {
            return Ok(());
        };
        match delta.kind.as_str() {
            "text_delta" => self.answer.delta(ours, delta.text.as_str(), out),
            "thinking_delta" => self.answer.delta(ours, delta.thinking.as_str(), out),
            "input_json_delta" => self.answer.delta(ours, delta.partial_json.as_str(), out),
            "signature_delta" => self.answer.sign(ours, delta.signature.as_str()),
            _ => Ok(()),
        }
    }

    /// A block ends.
    fn stop(&mut self, theirs: u64, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let Some(at) = self.open.iter().rposition(|open| open.theirs == theirs) else {
            return Ok(());
        };
        let open = self.open.remove(at);
        if let Some(input) = open.input.filter(|_| self.answer.args(open.ours).is_empty()) {
            self.answer.delta(open.ours, &input, out)?;
        }
        self.answer.end(open.ours, out);
        Ok(())
    }

    /// The provider says why it stopped; refusals fail at the end, unknown reasons at once.
    fn reason(&mut self, reason: &str, explanation: Option<&str>) -> Result<(), Fault> {
        self.answer.message().raw_stop_reason = Some(reason.to_owned());
        self.answer.message().stop_reason = match reason {
            "end_turn" | "pause_turn" | "stop_sequence" => StopReason::Stop,
            "max_tokens" => StopReason::Length,
            "tool_use" => StopReason::ToolUse,
            "refusal" => {
                let text = explanation.unwrap_or("The model refused to complete the request");
                self.fault = Some(Fault::new(text));
                StopReason::Error
            }
            "sensitive" => {
                self.fault = Some(Fault::new("Provider stopped with: sensitive"));
                StopReason::Error
            }
            _ => return Err(Fault::new(format!("Unhandled stop reason: {reason}"))),
        };
        Ok(())
    }

    /// Replaces earlier counts; counts that the event omits stay.
    fn count(&mut self, tokens: Option<Tokens>, out: &mut Vec<ModelEvent>) {
        let Some(tokens) = tokens else { return };
        let old = self.answer.usage();
        let usage = Usage {
            input: tokens.input_tokens.0.unwrap_or(old.input),
            output: tokens.output_tokens.0.unwrap_or(old.output),
            cache_read: tokens.cache_read_input_tokens.0.unwrap_or(old.cache_read),
            cache_write: tokens.cache_creation_input_tokens.0.unwrap_or(old.cache_write),
            reasoning: tokens
                .output_tokens_details
                .and_then(|details| details.thinking_tokens.0)
                .filter(|count| *count > 0)
                .or(old.reasoning),
            cache_write_1h: tokens
                .cache_creation
                .get("ephemeral_1h_input_tokens")
                .and_then(Value::as_u64)
                .filter(|count| *count > 0)
                .or(old.cache_write_1h),
            ..Usage::default()
        };
        let billed = self.is_openrouter.then(|| tokens.bill.total()).flatten();
        self.answer.set_billed_usage(usage, billed, out);
    }
}

impl StreamParser for MessagesParser {
    fn event(&mut self, name: &str, data: &str, out: &mut Vec<ModelEvent>) -> Result<Flow, Fault> {
        if name == "error" {
            return Err(Fault::new(data));
        }
        let is_known = name.is_empty() || EVENTS.contains(&name);
        if !is_known || data.trim().is_empty() {
            return Ok(Flow::More);
        }
        let repaired;
        let frame: Frame<'_> = match serde_json::from_str(data) {
            Ok(frame) => frame,
            Err(_) => {
                repaired = repair(data);
                serde_json::from_str(&repaired).map_err(|_| unreadable(data))?
            }
        };
        // Some gateways drop the event names; the frames say the same.
        let kind = frame.kind.as_str().to_owned();
        let name = if name.is_empty() { kind.as_str() } else { name };
        if name == "error" {
            return Err(Fault::new(data));
        }
        self.frame(name, frame, out)
    }

    fn end(&mut self, _: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        Err(Fault::new("Anthropic stream ended before message_stop"))
    }

    fn abort(&mut self, _: &mut Vec<ModelEvent>) -> &'static str {
        "This operation was aborted"
    }

    fn answer(&mut self) -> &mut Answer {
        &mut self.answer
    }

    fn answer_so_far(&self) -> &Answer {
        &self.answer
    }
}
