//! Understands the stream of chat completions (providers.md 4), and Mistral's dialect of it (providers.md 7), which differs in
//! the points that [`Edge`] names. The events themselves are in `chunk`.

use std::collections::HashMap;

use serde_json::Value;
use serde_json::value::RawValue;
use wire::{StopReason, ThinkingContent, Usage};

use super::chunk::{Call, Chunk, Delta, Part, Tokens};
use super::messages::REASONING_FIELDS;
use super::{details, error_message};
use crate::answer::{Answer, Fault};
use crate::billing;
use crate::compat::flag;
use crate::event::ModelEvent;
use crate::family::{Flow, StreamParser};
use crate::ids;
use crate::json::{Text, argument_text, repair, unreadable};
use crate::request::ModelRequest;

/// Whose stream it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edge {
    /// Blocks end when the stream does, so all `*_end` events come last, in content order (pi-core.md 1.4): one block of text
    /// and one of reasoning, in any alternation. Unknown finish reasons are failures.
    OpenAi,
    /// A block of text or reasoning ends when one of another kind begins; calls end when the stream does, and nothing when it
    /// fails. Finish reasons that are not known are stops. There are no counts of tokens written to a cache.
    Mistral,
}

/// Parser of a stream of chat completions.
pub(crate) struct CompletionsParser {
    edge: Edge,
    answer: Answer,
    /// OpenRouter reports what it billed.
    is_openrouter: bool,
    /// The model id that was asked; another one in the answer is worth telling.
    asked: String,
    /// Makes ids unique that a server leaves out.
    timestamp: i64,
    /// The text block that grows.
    text: Option<usize>,
    /// The reasoning block that grows.
    thinking: Option<usize>,
    /// Tool calls by the server's index.
    by_index: HashMap<u64, usize>,
    /// Tool calls by id.
    by_id: HashMap<String, usize>,
    /// The call that grew last.
    last_call: Option<usize>,
    calls: usize,
    /// A finish reason came.
    finished: bool,
    /// The finish reason is a failure.
    fault: Option<Fault>,
    /// Reasoning details so far, if they become the signature of the reasoning. Without, encrypted ones become those of calls.
    details: Option<Vec<Value>>,
    /// The server never says why it stopped.
    reasonless: bool,
}

impl CompletionsParser {
    /// A parser for the answer to a request.
    pub(crate) fn new(request: &ModelRequest) -> Self {
        Self::with(request, Edge::OpenAi)
    }

    /// Creates a parser for Mistral.
    pub(crate) fn mistral(request: &ModelRequest) -> Self {
        Self::with(request, Edge::Mistral)
    }

    fn with(request: &ModelRequest, edge: Edge) -> Self {
        Self {
            edge,
            answer: Answer::new(request),
            is_openrouter: billing::is_openrouter(&request.model),
            asked: request.model.id.clone(),
            timestamp: request.timestamp,
            text: None,
            thinking: None,
            by_index: HashMap::new(),
            by_id: HashMap::new(),
            last_call: None,
            calls: 0,
            finished: false,
            fault: None,
            details: request.conventions.keeps_reasoning_details.then(Vec::new),
            reasonless: !flag(&request.model, "supportsFinishReason", true),
        }
    }

    /// Takes one event.
    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        if let Some(error) = chunk.error.map(RawValue::get).filter(|error| *error != "null") {
            let json: Value = serde_json::from_str(error).unwrap_or_default();
            return Err(Fault::new(error_message(&json)));
        }
        let message = self.answer.message();
        if message.response_id.is_none() {
            message.response_id = chunk.id.filled().map(str::to_owned);
        }
        if self.edge == Edge::OpenAi
            && message.response_model.is_none()
            && chunk.model.filled().is_some_and(|model| model != self.asked)
        {
            message.response_model = chunk.model.filled().map(str::to_owned);
        }
        let mut usage = chunk.usage;
        if let Some(choice) = chunk.choices.into_iter().flatten().next() {
            usage = usage.or(choice.usage);
            if let Some(reason) = choice.finish_reason.filled() {
                self.reason(reason);
            }
            if let Some(delta) = choice.delta {
                self.delta(delta, out)?;
            }
        }
        if let Some(usage) = usage {
            self.count(usage, out);
        }
        Ok(())
    }

    /// The answer grows.
    fn delta(&mut self, delta: Delta<'_>, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        // Some proxies gather reasoning and text into one event, and the reasoning comes first.
        self.reasoning(&delta, out)?;
        self.content(delta.content, out)?;
        for call in delta.tool_calls.into_iter().flatten() {
            self.call(&call, out)?;
        }
        if let Some(details) = delta.reasoning_details.filter(|_| self.details.is_none()) {
            self.seal_calls(details.get())?;
        }
        Ok(())
    }

    /// Reasoning arrived, in one of the fields, in details, or in both.
    fn reasoning(&mut self, delta: &Delta<'_>, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let sources = [&delta.reasoning_content, &delta.reasoning, &delta.reasoning_text];
        let reasoning = REASONING_FIELDS
            .iter()
            .zip(sources)
            .find_map(|(field, text)| Some((field, text.filled()?)));
        if let Some((field, text)) = reasoning {
            self.think(Some(field), text, out)?;
        }
        let pieces = delta.reasoning_details.filter(|_| self.details.is_some());
        let pieces: Vec<Value> = pieces
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default();
        for piece in pieces.into_iter().filter(details::is_detail) {
            self.answer.grow(piece.to_string().len())?;
            self.thinking_block(Some(""), out)?;
            if let Some(details) = &mut self.details {
                details::add(details, piece);
            }
        }
        Ok(())
    }

    /// Content of either form; other forms are left out.
    fn content(&mut self, content: Option<&RawValue>, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let raw = content.map(RawValue::get).unwrap_or_default();
        if raw.starts_with('"') {
            let text: Text<'_> = serde_json::from_str(raw).unwrap_or_default();
            return self.say(text.as_str(), out);
        }
        if !raw.starts_with('[') {
            return Ok(());
        }
        let parts: Vec<Part<'_>> = serde_json::from_str(raw).unwrap_or_default();
        for part in &parts {
            self.say(part.text.as_str(), out)?;
            for thought in part.thinking.iter().flatten() {
                self.think(None, thought.text.as_str(), out)?;
            }
        }
        Ok(())
    }

    /// Text arrived.
    fn say(&mut self, text: &str, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        if text.is_empty() {
            return Ok(());
        }
        let block = match self.text {
            Some(block) => block,
            None => {
                self.other_kind(out);
                *self.text.insert(self.answer.start_text(out)?)
            }
        };
        self.answer.delta(block, text, out)
    }

    /// Reasoning arrived, in this field; the field is where it goes back to.
    fn think(&mut self, field: Option<&str>, text: &str, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        if text.is_empty() {
            return Ok(());
        }
        let block = self.thinking_block(field, out)?;
        self.answer.delta(block, text, out)
    }

    /// The block of reasoning that grows; a new one has this signature.
    fn thinking_block(&mut self, signature: Option<&str>, out: &mut Vec<ModelEvent>) -> Result<usize, Fault> {
        if let Some(block) = self.thinking {
            return Ok(block);
        }
        self.other_kind(out);
        let empty = ThinkingContent {
            thinking_signature: signature.map(str::to_owned),
            ..ThinkingContent::default()
        };
        let block = self.answer.start_thinking(empty, out)?;
        self.thinking = Some(block);
        Ok(block)
    }

    /// Gives the reasoning its details as signature. Nothing more is to come.
    fn seal_reasoning(&mut self) -> Result<(), Fault> {
        let details = self.details.take().filter(|details| !details.is_empty());
        match (self.thinking, details) {
            (Some(block), Some(details)) => self.answer.seal(block, Value::Array(details).to_string()),
            _ => Ok(()),
        }
    }

    /// Handles the start of a block of another kind, which at Mistral ends the open one.
    fn other_kind(&mut self, out: &mut Vec<ModelEvent>) {
        if self.edge == Edge::Mistral {
            for block in [self.text.take(), self.thinking.take()].into_iter().flatten() {
                self.answer.end(block, out);
            }
        }
    }

    /// A piece of a tool call.
    fn call(&mut self, call: &Call<'_>, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        self.other_kind(out);
        let function = call.function.as_ref();
        let name = function
            .map(|function| function.name.as_str())
            .unwrap_or_default();
        let known = self.known_call(call, name);
        let block = match known {
            Some(block) => block,
            None => self.new_call(call, name, out)?,
        };
        self.last_call = Some(block);
        self.answer.name_call(block, name)?;
        match function.and_then(|function| function.arguments) {
            Some(raw) => self.answer.delta(block, &argument_text(raw.get()), out),
            None => Ok(()),
        }
    }

    /// The call that a piece continues: found by index, else by id, else the last one. At Mistral an id that is new begins a
    /// new call, even under an index that is not.
    fn known_call(&self, call: &Call<'_>, name: &str) -> Option<usize> {
        let id = call_id(call);
        // Some servers give every call the index 0; a name together with another id begins a new call.
        let other =
            |block: &usize| !name.is_empty() && id.is_some_and(|id| self.by_id.get(id) != Some(block));
        match (call.index.0, id) {
            (_, Some(id)) if self.edge == Edge::Mistral => self.by_id.get(id).copied(),
            (Some(index), _) => self.by_index.get(&index).copied().filter(|block| !other(block)),
            (None, Some(id)) => self.by_id.get(id).copied(),
            (None, None) => self.last_call,
        }
    }

    /// A call that was not seen before.
    fn new_call(&mut self, call: &Call<'_>, name: &str, out: &mut Vec<ModelEvent>) -> Result<usize, Fault> {
        self.calls += 1;
        // Some servers give no id; one is needed to match the result.
        let id = match call_id(call) {
            Some(id) => id.to_owned(),
            None if self.edge == Edge::Mistral => {
                ids::mistral(&format!("call {} {}", self.timestamp, self.calls))
            }
            None => format!("call_{}_{}", self.timestamp, self.calls),
        };
        let block = self.answer.start_call(id.clone(), name.to_owned(), out)?;
        if let Some(index) = call.index.0 {
            self.by_index.insert(index, block);
        }
        self.by_id.insert(id, block);
        Ok(block)
    }

    /// Encrypted reasoning is kept with the call it belongs to.
    fn seal_calls(&mut self, details: &str) -> Result<(), Fault> {
        let details: Vec<Value> = serde_json::from_str(details).unwrap_or_default();
        for detail in details {
            let text = |name: &str| detail.get(name).and_then(Value::as_str).unwrap_or_default();
            if text("type") != "reasoning.encrypted" || text("data").is_empty() {
                continue;
            }
            if let Some(block) = self.by_id.get(text("id")).copied() {
                self.answer.seal(block, detail.to_string())?;
            }
        }
        Ok(())
    }

    /// The provider says why it stopped. Usage may still follow, so nothing ends here.
    fn reason(&mut self, reason: &str) {
        self.finished = true;
        let strict = self.edge == Edge::OpenAi;
        self.answer.message().raw_stop_reason = Some(reason.to_owned());
        self.answer.message().stop_reason = match reason {
            "stop" | "end" => StopReason::Stop,
            "length" | "model_length" => StopReason::Length,
            "tool_calls" | "function_call" => StopReason::ToolUse,
            // A failure of the server, which passes.
            "error" if !strict => {
                self.fault = Some(Fault::new("Provider stopped with: error (server error)"));
                StopReason::Error
            }
            _ if strict => {
                self.fault = Some(Fault::new(format!("Provider finish_reason: {reason}")));
                StopReason::Error
            }
            _ => StopReason::Stop,
        };
    }

    /// Token counts, whole each time (providers.md 4).
    fn count(&mut self, tokens: Tokens, out: &mut Vec<ModelEvent>) {
        if self.edge == Edge::Mistral {
            let prompt = tokens.prompt_tokens.or_zero();
            let details = tokens.prompt_tokens_details.or(tokens.prompt_token_details);
            let cached = details.unwrap_or_default().cached_tokens.0;
            let cache_read = cached
                .or(tokens.num_cached_tokens.0)
                .unwrap_or_default()
                .min(prompt);
            let usage = Usage {
                input: prompt - cache_read,
                output: tokens.completion_tokens.or_zero(),
                cache_read,
                total_tokens: tokens.total_tokens.or_zero(),
                ..Usage::default()
            };
            return self.answer.set_usage(usage, out);
        }
        let details = tokens.prompt_tokens_details.unwrap_or_default();
        let cache_read = details
            .cached_tokens
            .0
            .or(tokens.prompt_cache_hit_tokens.0)
            .or(tokens.cached_tokens.0)
            .unwrap_or_default();
        let cache_write = details.cache_write_tokens.or_zero();
        let cached = cache_read.saturating_add(cache_write);
        let usage = Usage {
            input: tokens.prompt_tokens.or_zero().saturating_sub(cached),
            output: tokens.completion_tokens.or_zero(),
            cache_read,
            cache_write,
            reasoning: tokens
                .completion_tokens_details
                .and_then(|details| details.reasoning_tokens.0)
                .filter(|count| *count > 0),
            ..Usage::default()
        };
        let billed = self.is_openrouter.then(|| tokens.bill.total()).flatten();
        self.answer.set_billed_usage(usage, billed, out);
    }

    /// Ends all blocks and judges the answer.
    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        if self.reasonless && !self.finished {
            self.finished = true;
            self.answer.message().stop_reason = if self.answer.calls_tools() {
                StopReason::ToolUse
            } else {
                StopReason::Stop
            };
        }
        self.seal_reasoning()?;
        if self.finished || self.edge == Edge::OpenAi {
            self.answer.end_all(out);
        }
        match self.fault.take() {
            Some(fault) => Err(fault),
            None if self.finished => Ok(()),
            None => Err(Fault::new("Stream ended without finish_reason")),
        }
    }
}

impl StreamParser for CompletionsParser {
    fn event(&mut self, _: &str, data: &str, out: &mut Vec<ModelEvent>) -> Result<Flow, Fault> {
        if data.trim_start().starts_with("[DONE]") {
            self.finish(out)?;
            return Ok(Flow::Done);
        }
        if data.trim().is_empty() {
            return Ok(Flow::More);
        }
        let repaired;
        let chunk: Chunk<'_> = match serde_json::from_str(data) {
            Ok(chunk) => chunk,
            Err(_) => {
                repaired = repair(data);
                serde_json::from_str(&repaired).map_err(|_| unreadable(data))?
            }
        };
        self.chunk(chunk, out)?;
        Ok(Flow::More)
    }

    fn end(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        self.finish(out)
    }

    fn abort(&mut self, out: &mut Vec<ModelEvent>) -> &'static str {
        if self.edge == Edge::OpenAi {
            self.answer.end_all(out);
        }
        "Request was aborted"
    }

    fn answer(&mut self) -> &mut Answer {
        &mut self.answer
    }

    fn answer_so_far(&self) -> &Answer {
        &self.answer
    }
}

/// The id of a call, if it has one; Mistral says "null" for none.
fn call_id<'a>(call: &'a Call<'_>) -> Option<&'a str> {
    call.id.filled().filter(|id| *id != "null")
}
