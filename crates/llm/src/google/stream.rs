//! Understands the stream of the Gemini API (providers.md 6): each event brings whole parts; a block ends when a part of
//! another kind comes. Parts of unknown kinds are left out.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use wire::{StopReason, ThinkingContent, Usage};

use crate::answer::{Answer, Fault};
use crate::event::ModelEvent;
use crate::family::{Flow, StreamParser};
use crate::ids::CallNumbers;
use crate::json::{Count, Text, repair, unreadable};
use crate::request::ModelRequest;

/// One event. Only the first candidate counts; there is never a second.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    #[serde(borrow, default)]
    candidates: Option<Vec<Candidate<'a>>>,
    #[serde(borrow, default)]
    response_id: Text<'a>,
    #[serde(default)]
    usage_metadata: Option<Tokens>,
    #[serde(borrow, default)]
    prompt_feedback: Option<Feedback<'a>>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// The answer.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow, default)]
    content: Option<Content<'a>>,
    #[serde(borrow, default)]
    finish_reason: Text<'a>,
    #[serde(borrow, default)]
    finish_message: Text<'a>,
}

/// Its parts.
#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    parts: Option<Vec<Part<'a>>>,
}

/// A part.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(default)]
    thought: Option<bool>,
    #[serde(borrow, default)]
    thought_signature: Text<'a>,
    #[serde(borrow, default)]
    function_call: Option<Call<'a>>,
}

/// A tool call, whole.
#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
}

/// Why the prompt was not answered.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback<'a> {
    #[serde(borrow, default)]
    block_reason: Text<'a>,
}

/// Token counts; `promptTokenCount` contains the cached ones.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tokens {
    #[serde(default)]
    prompt_token_count: Count,
    #[serde(default)]
    cached_content_token_count: Count,
    #[serde(default)]
    candidates_token_count: Count,
    #[serde(default)]
    thoughts_token_count: Count,
    #[serde(default)]
    total_token_count: Count,
}

/// The block that grows.
#[derive(Debug, Clone, Copy)]
struct Open {
    block: usize,
    thought: bool,
}

/// Parser of a stream of the Gemini API.
pub(crate) struct GeminiParser {
    answer: Answer,
    /// Text or reasoning that a part of the same kind would continue.
    open: Option<Open>,
    /// Parts with an empty text and no signature are left out.
    omits_empty_text: bool,
    /// Ids of the calls so far.
    ids: HashSet<String>,
    /// Time and number in the ids that the provider leaves out.
    timestamp: i64,
    numbers: CallNumbers,
    /// A finish reason came.
    finished: bool,
    /// The finish reason is a failure.
    fault: Option<Fault>,
}

impl GeminiParser {
    /// A parser for the answer to a request. `numbers` are for calls without an id.
    pub(crate) fn new(request: &ModelRequest, numbers: CallNumbers) -> Self {
        Self {
            answer: Answer::new(request),
            open: None,
            omits_empty_text: request.conventions.omits_empty_text,
            ids: HashSet::new(),
            timestamp: request.timestamp,
            numbers,
            finished: false,
            fault: None,
        }
    }

    /// Takes one event.
    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let message = self.answer.message();
        if message.response_id.is_none() {
            message.response_id = chunk.response_id.filled().map(str::to_owned);
        }
        if let Some(candidate) = chunk.candidates.into_iter().flatten().next() {
            for part in candidate
                .content
                .and_then(|content| content.parts)
                .into_iter()
                .flatten()
            {
                self.part(&part, out)?;
            }
            if let Some(reason) = candidate.finish_reason.filled() {
                self.reason(reason, candidate.finish_message.filled());
            }
        }
        if let Some(tokens) = chunk.usage_metadata {
            self.count(tokens, out);
        }
        let blocked = chunk.prompt_feedback.unwrap_or(Feedback {
            block_reason: Text::default(),
        });
        if let Some(reason) = blocked.block_reason.filled() {
            return Err(Fault::new(format!("The provider blocked the prompt: {reason}")));
        }
        Ok(())
    }

    fn part(&mut self, part: &Part<'_>, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let signature = part.thought_signature.filled();
        // A signature belongs to the text before it, or comes back to the provider with a text of its own.
        let is_omitted = |text: &&str| self.omits_empty_text && text.is_empty() && signature.is_none();
        if let Some(text) = part.text.0.as_deref().filter(|text| !is_omitted(text)) {
            let block = self.block(part.thought == Some(true), out)?;
            self.answer.delta(block, text, out)?;
            if let Some(signature) = signature {
                self.answer.seal(block, signature.to_owned())?;
            }
        }
        if let Some(call) = &part.function_call {
            self.call(call, signature, out)?;
        }
        Ok(())
    }

    /// The block that a text part belongs to.
    fn block(&mut self, thought: bool, out: &mut Vec<ModelEvent>) -> Result<usize, Fault> {
        if let Some(open) = self.open.filter(|open| open.thought == thought) {
            return Ok(open.block);
        }
        self.close(out);
        let block = if thought {
            self.answer.start_thinking(ThinkingContent::default(), out)?
        } else {
            self.answer.start_text(out)?
        };
        self.open = Some(Open { block, thought });
        Ok(block)
    }

    /// Ends the block that grows.
    fn close(&mut self, out: &mut Vec<ModelEvent>) {
        if let Some(open) = self.open.take() {
            self.answer.end(open.block, out);
        }
    }

    /// A call: begins, gets all its arguments and ends.
    fn call(
        &mut self,
        call: &Call<'_>,
        signature: Option<&str>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        self.close(out);
        let name = call.name.as_str();
        let mut id = call.id.as_str().to_owned();
        if id.is_empty() || self.ids.contains(&id) {
            id = format!("{name}_{}_{}", self.timestamp, self.numbers.next());
        }
        self.ids.insert(id.clone());
        let block = self.answer.start_call(id, name.to_owned(), out)?;
        if let Some(signature) = signature {
            self.answer.seal(block, signature.to_owned())?;
        }
        let args: Option<Value> = call.args.and_then(|raw| serde_json::from_str(raw.get()).ok());
        let text = match args.filter(Value::is_object) {
            Some(args) => args.to_string(),
            None => "{}".to_owned(),
        };
        self.answer.delta(block, &text, out)?;
        self.answer.end(block, out);
        Ok(())
    }

    /// The provider says why it stopped. Usage may still follow, so nothing ends here.
    fn reason(&mut self, reason: &str, message: Option<&str>) {
        self.finished = true;
        // Calls come whole, so those before a cut can be carried out.
        let calls = self.answer.calls_tools();
        self.answer.message().raw_stop_reason = Some(reason.to_owned());
        self.answer.message().stop_reason = match reason {
            "STOP" | "MAX_TOKENS" if calls => StopReason::ToolUse,
            "STOP" => StopReason::Stop,
            "MAX_TOKENS" => StopReason::Length,
            _ => {
                let details = message.map(|text| format!(": {text}")).unwrap_or_default();
                // A call that the model garbled will mostly be right the next time; the rest are verdicts.
                let text = if reason.starts_with("MALFORMED_") {
                    format!("Provider returned an error, finish_reason: {reason}{details}")
                } else {
                    format!("Provider finish_reason: {reason}{details}")
                };
                self.fault = Some(Fault::new(text));
                StopReason::Error
            }
        };
    }

    /// Token counts, whole each time.
    fn count(&mut self, tokens: Tokens, out: &mut Vec<ModelEvent>) {
        let cache_read = tokens.cached_content_token_count.or_zero();
        let thoughts = tokens.thoughts_token_count.or_zero();
        let usage = Usage {
            input: tokens.prompt_token_count.or_zero().saturating_sub(cache_read),
            output: tokens.candidates_token_count.or_zero().saturating_add(thoughts),
            cache_read,
            total_tokens: tokens.total_token_count.or_zero(),
            reasoning: Some(thoughts).filter(|count| *count > 0),
            ..Usage::default()
        };
        self.answer.set_usage(usage, out);
    }
}

impl StreamParser for GeminiParser {
    fn event(&mut self, _: &str, data: &str, out: &mut Vec<ModelEvent>) -> Result<Flow, Fault> {
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
        if chunk.error.is_some_and(|error| error.get() != "null") {
            return Err(Fault::new(data));
        }
        self.chunk(chunk, out)?;
        Ok(Flow::More)
    }

    fn end(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        if !self.finished {
            return Err(Fault::new("Stream ended without finish_reason"));
        }
        self.answer.end_all(out);
        self.fault.take().map_or(Ok(()), Err)
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
