//! Understands the stream of the Responses API (providers.md 5): items begin, grow and are given once more as a whole when
//! they are complete. Kinds of items and events that are not known are left out.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use wire::{AssistantBlock, StopReason, ThinkingContent, Usage};

use super::{TextSignature, azure, with_plan_help};
use crate::answer::{Answer, Fault};
use crate::event::ModelEvent;
use crate::family::{Flow, StreamParser};
use crate::json::{Count, Text, repair, unreadable};
use crate::request::ModelRequest;

/// Stands between the parts of a reasoning summary.
const BLANK_LINE: &str = "\n\n";

/// One event; which fields are there depends on its type.
#[derive(Default, Deserialize)]
struct Frame<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Text<'a>,
    #[serde(default)]
    output_index: Count,
    #[serde(borrow, default)]
    item_id: Text<'a>,
    #[serde(borrow, default)]
    delta: Text<'a>,
    #[serde(borrow, default)]
    arguments: Text<'a>,
    #[serde(borrow, default)]
    item: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response: Option<Response<'a>>,
}

/// An item of the answer.
#[derive(Default, Deserialize)]
struct Item<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Text<'a>,
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    call_id: Text<'a>,
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    arguments: Text<'a>,
    #[serde(borrow, default)]
    phase: Text<'a>,
    #[serde(borrow, default)]
    content: Option<Vec<Part<'a>>>,
    #[serde(borrow, default)]
    summary: Option<Vec<Part<'a>>>,
}

/// A piece of an item's text; refusals have a field of their own.
#[derive(Default, Deserialize)]
struct Part<'a> {
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    refusal: Text<'a>,
}

/// The answer as a whole, when it begins and when it ends.
#[derive(Default, Deserialize)]
struct Response<'a> {
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    status: Text<'a>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    incomplete_details: Option<Details<'a>>,
    #[serde(borrow, default)]
    output: Option<&'a RawValue>,
    #[serde(borrow, default)]
    service_tier: Text<'a>,
    #[serde(default)]
    usage: Option<Tokens>,
}

/// Why an answer is not whole.
#[derive(Default, Deserialize)]
struct Details<'a> {
    #[serde(borrow, default)]
    reason: Text<'a>,
}

/// Token counts; `input_tokens` contains the tokens that came from or went to a cache.
#[derive(Default, Clone, Copy, Deserialize)]
struct Tokens {
    #[serde(default)]
    input_tokens: Count,
    #[serde(default)]
    output_tokens: Count,
    #[serde(default)]
    total_tokens: Count,
    #[serde(default)]
    input_tokens_details: Option<Cached>,
    #[serde(default)]
    output_tokens_details: Option<Reasoned>,
}

/// How many output tokens were spent on reasoning.
#[derive(Default, Clone, Copy, Deserialize)]
struct Reasoned {
    #[serde(default)]
    reasoning_tokens: Count,
}

/// How many input tokens came from or went to a cache.
#[derive(Default, Clone, Copy, Deserialize)]
struct Cached {
    #[serde(default)]
    cached_tokens: Count,
    #[serde(default)]
    cache_write_tokens: Count,
}

/// An item that is not complete: the provider's place and id, our block.
struct Open {
    place: Option<u64>,
    id: String,
    ours: usize,
}

/// Parser of a stream of the Responses API.
pub(crate) struct ResponsesParser {
    answer: Answer,
    /// Mostly one; they may grow side by side.
    open: Vec<Open>,
    /// Makes ids unique that a server leaves out.
    timestamp: i64,
}

impl ResponsesParser {
    /// A parser for the answer to a request.
    pub(crate) fn new(request: &ModelRequest) -> Self {
        Self {
            answer: Answer::new(request),
            open: Vec::new(),
            timestamp: request.timestamp,
        }
    }

    /// Takes one event of a known kind.
    fn frame(&mut self, kind: &str, frame: Frame<'_>, out: &mut Vec<ModelEvent>) -> Result<Flow, Fault> {
        match kind {
            "response.output_item.added" => {
                let item = read_item(&frame);
                self.start(&frame, &item, out)?;
            }
            "response.output_text.delta"
            | "response.refusal.delta"
            | "response.reasoning_text.delta"
            | "response.reasoning_summary_text.delta"
            | "response.function_call_arguments.delta" => {
                if let Some(block) = self.find(&frame).map(|open| open.ours) {
                    self.answer.delta(block, frame.delta.as_str(), out)?;
                }
            }
            "response.reasoning_summary_part.done" => {
                if let Some(block) = self.find(&frame).map(|open| open.ours) {
                    self.answer.delta(block, BLANK_LINE, out)?;
                }
            }
            "response.function_call_arguments.done" => {
                if let (Some(block), Some(whole)) =
                    (self.find(&frame).map(|open| open.ours), frame.arguments.filled())
                {
                    self.answer.complete(block, whole, out)?;
                }
            }
            "response.output_item.done" => self.finish_item(&frame, out)?,
            "response.created" => self.name(&frame.response.unwrap_or_default()),
            "response.completed"
            | "response.done"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => {
                return self.finish(kind, frame.response.unwrap_or_default(), out);
            }
            _ => {}
        }
        Ok(Flow::More)
    }

    /// The open item that an event is about. The place decides: some servers change the ids from event to event.
    fn find(&self, frame: &Frame<'_>) -> Option<&Open> {
        let by_place = self
            .open
            .iter()
            .rev()
            .find(|open| frame.output_index.0.is_some() && open.place == frame.output_index.0);
        let by_id = || {
            let id = frame.item_id.filled()?;
            self.open.iter().find(|open| open.id == id)
        };
        let silent = frame.output_index.0.is_none() && frame.item_id.filled().is_none();
        by_place
            .or_else(by_id)
            .or_else(|| self.open.last().filter(|_| silent))
    }

    /// An item begins; gives our block.
    fn start(
        &mut self,
        frame: &Frame<'_>,
        item: &Item<'_>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<Option<usize>, Fault> {
        let ours = match item.kind.as_str() {
            "reasoning" => self.answer.start_thinking(ThinkingContent::default(), out)?,
            "message" => self.answer.start_text(out)?,
            "function_call" => {
                let call_id = match item.call_id.filled() {
                    Some(id) => id.to_owned(),
                    None => format!("call_{}_{}", self.timestamp, self.answer.message().content.len()),
                };
                let id = match item.id.filled() {
                    Some(id) => format!("{call_id}|{id}"),
                    None => call_id,
                };
                self.answer.start_call(id, item.name.as_str().to_owned(), out)?
            }
            _ => return Ok(None),
        };
        self.answer.grow(item.id.as_str().len())?;
        self.open.push(Open {
            place: frame.output_index.0,
            id: item.id.as_str().to_owned(),
            ours,
        });
        Ok(Some(ours))
    }

    /// An item is complete: its last word on the text, its signature, its end.
    fn finish_item(&mut self, frame: &Frame<'_>, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let item = read_item(frame);
        let known = Frame {
            output_index: frame.output_index,
            item_id: item.id.clone(),
            ..Frame::default()
        };
        let found = self.find(&known).map(|open| open.ours);
        let block = match found {
            Some(block) => block,
            // An item that never began comes as a whole.
            None => match self.start(frame, &item, out)? {
                Some(block) => block,
                None => return Ok(()),
            },
        };
        self.open.retain(|open| open.ours != block);
        match item.kind.as_str() {
            "reasoning" => {
                let whole = joined(item.summary.as_deref(), BLANK_LINE)
                    .or_else(|| joined(item.content.as_deref(), BLANK_LINE));
                if let Some(whole) = whole {
                    self.answer.complete(block, &whole, out)?;
                }
                let json = frame.item.map(RawValue::get).unwrap_or_default();
                let compact = serde_json::from_str::<Value>(json).unwrap_or_default();
                self.answer.seal(block, compact.to_string())?;
            }
            "message" => {
                if let Some(whole) = joined(item.content.as_deref(), "") {
                    self.answer.complete(block, &whole, out)?;
                }
                if let Some(id) = item.id.filled() {
                    let signature = TextSignature {
                        id: id.to_owned(),
                        phase: item.phase.filled().map(str::to_owned),
                    };
                    self.answer.seal(block, signature.write())?;
                }
            }
            _ => {
                if let Some(whole) = item.arguments.filled() {
                    self.answer.complete(block, whole, out)?;
                }
            }
        }
        self.answer.end(block, out);
        Ok(())
    }

    fn name(&mut self, response: &Response<'_>) {
        if let Some(id) = response.id.filled() {
            self.answer.message().response_id = Some(id.to_owned());
        }
    }

    /// The answer is over.
    fn finish(
        &mut self,
        kind: &str,
        response: Response<'_>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<Flow, Fault> {
        self.name(&response);
        self.complete_reasoning(response.output)?;
        self.price_tier(response.service_tier.as_str());
        if let Some(tokens) = response.usage {
            self.count(tokens, out);
        }
        // Some servers forget the status; the event says the same.
        let status = match response.status.filled() {
            Some(status) if matches!(kind, "response.completed" | "response.done") => status,
            _ => kind.trim_start_matches("response."),
        };
        let incomplete = response.incomplete_details.unwrap_or_default();
        self.answer.message().raw_stop_reason = Some(match incomplete.reason.filled() {
            Some(reason) if status != "failed" => format!("{status}.{reason}"),
            _ => status.to_owned(),
        });
        if let "failed" | "cancelled" = status {
            return Err(failure(response.error, incomplete.reason.filled()));
        }
        self.answer.end_all(out);
        self.answer.message().stop_reason = match (status, incomplete.reason.as_str()) {
            ("incomplete", "content_filter") => return Err(Fault::new("incomplete: content_filter")),
            ("incomplete", _) => StopReason::Length,
            _ if self.answer.calls_tools() => StopReason::ToolUse,
            _ => StopReason::Stop,
        };
        Ok(Flow::Done)
    }

    /// Azure gives the encrypted reasoning, without which the item cannot be sent back, only with the whole response.
    fn complete_reasoning(&mut self, output: Option<&RawValue>) -> Result<(), Fault> {
        let mut bare = Vec::new();
        for (index, block) in self.answer.content().iter().enumerate() {
            if let AssistantBlock::Thinking(block) = block
                && let Some(signature) = block.thinking_signature.as_deref()
                && let Ok(Value::Object(item)) = serde_json::from_str::<Value>(signature)
                && !item.get("encrypted_content").is_some_and(Value::is_string)
            {
                bare.push((index, item));
            }
        }
        let output = output.filter(|_| !bare.is_empty());
        let output: Vec<Value> = output
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default();
        for (index, mut item) in bare {
            let encrypted = output.iter().find_map(|whole| {
                let is_same = whole.get("id").is_some() && whole.get("id") == item.get("id");
                let encrypted = whole.get("encrypted_content").filter(|_| is_same)?;
                encrypted.is_string().then(|| encrypted.clone())
            });
            if let Some(encrypted) = encrypted {
                item.insert("encrypted_content".to_owned(), encrypted);
                self.answer.seal(index, Value::Object(item).to_string())?;
            }
        }
        Ok(())
    }

    /// OpenAI names the service tier that gave the answer. Two of them have prices of their own.
    fn price_tier(&mut self, tier: &str) {
        let message = self.answer.message();
        let factor = match tier {
            _ if message.api == azure::API => return,
            "flex" => 0.5,
            "priority" | "fast" if message.model == "gpt-5.5" => 2.5,
            "priority" | "fast" => 2.0,
            _ => return,
        };
        self.answer.reprice(|prices| {
            for price in [
                &mut prices.input,
                &mut prices.output,
                &mut prices.cache_read,
                &mut prices.cache_write,
            ] {
                *price *= factor;
            }
            for tier in &mut prices.tiers {
                tier.input *= factor;
                tier.output *= factor;
                tier.cache_read *= factor;
                tier.cache_write *= factor;
            }
        });
    }

    /// Token counts.
    fn count(&mut self, tokens: Tokens, out: &mut Vec<ModelEvent>) {
        let details = tokens.input_tokens_details.unwrap_or_default();
        let cache_read = details.cached_tokens.or_zero();
        let cache_write = details.cache_write_tokens.or_zero();
        let cached = cache_read.saturating_add(cache_write);
        let usage = Usage {
            input: tokens.input_tokens.or_zero().saturating_sub(cached),
            output: tokens.output_tokens.or_zero(),
            cache_read,
            cache_write,
            total_tokens: tokens.total_tokens.or_zero(),
            reasoning: tokens
                .output_tokens_details
                .and_then(|details| details.reasoning_tokens.0)
                .filter(|count| *count > 0),
            ..Usage::default()
        };
        self.answer.set_usage(usage, out);
    }
}

impl StreamParser for ResponsesParser {
    fn event(&mut self, name: &str, data: &str, out: &mut Vec<ModelEvent>) -> Result<Flow, Fault> {
        if data.trim().is_empty() || data.trim_start().starts_with("[DONE]") {
            return Ok(Flow::More);
        }
        let repaired;
        let (data, frame): (&str, Frame<'_>) = match serde_json::from_str(data) {
            Ok(frame) => (data, frame),
            Err(_) => {
                repaired = repair(data);
                let frame = serde_json::from_str(&repaired).map_err(|_| unreadable(data))?;
                (&repaired, frame)
            }
        };
        // The type inside counts; the event's name is missing at some servers.
        let kind = match frame.kind.filled() {
            Some(kind) => kind.to_owned(),
            None => name.to_owned(),
        };
        if kind == "error" {
            return Err(error_event(data));
        }
        self.frame(&kind, frame, out)
    }

    fn end(&mut self, _: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let text = "OpenAI Responses stream ended before a terminal response event";
        Err(Fault::new(text))
    }

    fn abort(&mut self, _: &mut Vec<ModelEvent>) -> &'static str {
        "Request was aborted"
    }

    fn answer(&mut self) -> &mut Answer {
        &mut self.answer
    }

    fn answer_so_far(&self) -> &Answer {
        &self.answer
    }
}

/// The item of an event; an unreadable one is of no known kind.
fn read_item<'a>(frame: &Frame<'a>) -> Item<'a> {
    frame
        .item
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default()
}

/// The parts of an item as one text; none when there are no parts.
/// Nearly always there is one part, which may be as long as the answer.
fn joined<'a>(parts: Option<&'a [Part<'_>]>, between: &str) -> Option<Cow<'a, str>> {
    let parts = parts.filter(|parts| !parts.is_empty())?;
    let text = |part: &'a Part<'_>| part.text.filled().unwrap_or(part.refusal.as_str());
    Some(match parts {
        [only] => Cow::Borrowed(text(only)),
        parts => Cow::Owned(parts.iter().map(text).collect::<Vec<_>>().join(between)),
    })
}

/// Code and message of an error object; codes are words or numbers.
fn trouble(error: &Value) -> (Option<String>, Option<String>) {
    let word = |name: &str| match error.get(name)? {
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    (word("code"), word("message"))
}

/// What an `error` event says, by itself or in an object `error`.
fn error_event(data: &str) -> Fault {
    let event: Value = serde_json::from_str(data).unwrap_or_default();
    let error = event.get("error").filter(|error| error.is_object());
    Fault::new(with_plan_help(match trouble(error.unwrap_or(&event)) {
        (Some(code), Some(message)) => format!("Error Code {code}: {message}"),
        (None, Some(message)) => message,
        (Some(code), None) => format!("Error Code {code}"),
        (None, None) => format!("Error event: {data}"),
    }))
}

/// What a failed response says.
fn failure(error: Option<&RawValue>, reason: Option<&str>) -> Fault {
    let error: Value = error
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default();
    Fault::new(with_plan_help(match (trouble(&error), reason) {
        ((None, None), Some(reason)) => format!("incomplete: {reason}"),
        ((None, None), None) => "Unknown error (no error details in response)".to_owned(),
        ((code, message), _) => format!(
            "{}: {}",
            code.as_deref().unwrap_or("unknown"),
            message.as_deref().unwrap_or("no message")
        ),
    }))
}
