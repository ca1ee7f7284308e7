//! Understands the stream of Mistral (providers.md 7): chat completions whose content may be parts, some of them reasoning.
//! A block of text ends when one of another kind begins; calls end when the stream does.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use wire::{StopReason, ThinkingContent, Usage};

use crate::answer::{Answer, Fault};
use crate::event::ModelEvent;
use crate::family::{Flow, StreamParser};
use crate::ids;
use crate::json::{Count, Text, argument_text, repair, unreadable};
use crate::request::ModelRequest;

/// One event. Only the first choice counts; there is never a second.
#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(default)]
    usage: Option<Tokens>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// The answer.
#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    finish_reason: Text<'a>,
}

/// What it gains; content is a string or a list of parts.
#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<Call<'a>>>,
}

/// A part; reasoning has parts of its own.
#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    thinking: Option<Vec<Part<'a>>>,
}

/// A piece of a tool call, mostly all of it.
#[derive(Deserialize)]
struct Call<'a> {
    #[serde(default)]
    index: Count,
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    function: Option<Function<'a>>,
}

/// Name and arguments.
#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow, default)]
    name: Text<'a>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

/// Token counts. There are none of caches.
#[derive(Clone, Copy, Deserialize)]
struct Tokens {
    #[serde(default)]
    prompt_tokens: Count,
    #[serde(default)]
    completion_tokens: Count,
    #[serde(default)]
    total_tokens: Count,
}

/// A call that was seen: the provider's index and id, our block.
struct Known {
    index: Option<u64>,
    id: Option<String>,
    block: usize,
}

/// See the module's page.
pub(crate) struct Parser {
    answer: Answer,
    /// Text (false) or reasoning (true) that more of the same kind would continue.
    open: Option<(bool, usize)>,
    /// The calls so far, latest last.
    calls: Vec<Known>,
    /// Makes ids unique that the provider leaves out.
    timestamp: i64,
    /// A finish reason came.
    finished: bool,
    /// The finish reason is a failure.
    fault: Option<Fault>,
}

impl Parser {
    /// A parser for the answer to a request.
    pub(crate) fn new(request: &ModelRequest) -> Self {
        Self {
            answer: Answer::new(request),
            open: None,
            calls: Vec::new(),
            timestamp: request.timestamp,
            finished: false,
            fault: None,
        }
    }

    /// Takes one event.
    fn chunk(&mut self, chunk: Chunk<'_>, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let message = self.answer.message();
        if message.response_id.is_none() {
            message.response_id = chunk.id.filled().map(str::to_owned);
        }
        if let Some(choice) = chunk.choices.into_iter().flatten().next() {
            if let Some(delta) = choice.delta {
                self.content(delta.content, out)?;
                for call in delta.tool_calls.into_iter().flatten() {
                    self.call(&call, out)?;
                }
            }
            if let Some(reason) = choice.finish_reason.filled() {
                self.reason(reason);
            }
        }
        if let Some(tokens) = chunk.usage {
            self.count(tokens, out);
        }
        Ok(())
    }

    /// Content of either form; other forms are left out.
    fn content(&mut self, content: Option<&RawValue>, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let raw = content.map(RawValue::get).unwrap_or_default();
        if raw.starts_with('"') {
            let text: Text<'_> = serde_json::from_str(raw).unwrap_or_default();
            return self.say(false, text.as_str(), out);
        }
        let parts: Vec<Part<'_>> = serde_json::from_str(raw).unwrap_or_default();
        for part in &parts {
            self.say(false, part.text.as_str(), out)?;
            for thought in part.thinking.iter().flatten() {
                self.say(true, thought.text.as_str(), out)?;
            }
        }
        Ok(())
    }

    /// Text or reasoning arrived.
    fn say(&mut self, thought: bool, text: &str, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        if text.is_empty() {
            return Ok(());
        }
        let block = match self.open {
            Some((kind, block)) if kind == thought => block,
            _ => {
                self.close(out);
                let block = if thought {
                    self.answer.start_thinking(ThinkingContent::default(), out)?
                } else {
                    self.answer.start_text(out)?
                };
                self.open = Some((thought, block));
                block
            }
        };
        self.answer.delta(block, text, out)
    }

    /// Ends the text or reasoning that grows.
    fn close(&mut self, out: &mut Vec<ModelEvent>) {
        if let Some((_, block)) = self.open.take() {
            self.answer.end(block, out);
        }
    }

    /// A piece of a tool call. An id that is new begins a new one, even under an index that is not.
    fn call(&mut self, call: &Call<'_>, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        self.close(out);
        let id = call.id.filled().filter(|id| *id != "null");
        let index = call.index.0;
        let known = self.calls.iter().rev().find(|known| match (id, index) {
            (Some(id), _) => known.id.as_deref() == Some(id),
            (None, Some(index)) => known.index == Some(index),
            (None, None) => true,
        });
        let block = match known {
            Some(known) => known.block,
            None => {
                let own = || ids::mistral(&format!("call {} {}", self.timestamp, self.calls.len()));
                let shown = id.map_or_else(own, str::to_owned);
                let name = call.function.as_ref().map(|function| function.name.as_str());
                let block = self
                    .answer
                    .start_call(shown, name.unwrap_or_default().to_owned(), out)?;
                self.calls.push(Known {
                    index,
                    id: id.map(str::to_owned),
                    block,
                });
                block
            }
        };
        match call.function.as_ref().and_then(|function| function.arguments) {
            Some(raw) => self.answer.delta(block, &argument_text(raw.get()), out),
            None => Ok(()),
        }
    }

    /// The provider says why it stopped. Usage may still follow, so nothing ends here.
    fn reason(&mut self, reason: &str) {
        self.finished = true;
        self.answer.message().stop_reason = match reason {
            "length" | "model_length" => StopReason::Length,
            "tool_calls" => StopReason::ToolUse,
            "error" => {
                self.fault = Some(Fault::new(format!("Provider finish_reason: {reason}")));
                StopReason::Error
            }
            _ => StopReason::Stop,
        };
    }

    fn count(&mut self, tokens: Tokens, out: &mut Vec<ModelEvent>) {
        let usage = Usage {
            input: tokens.prompt_tokens.or_zero(),
            output: tokens.completion_tokens.or_zero(),
            total_tokens: tokens.total_tokens.or_zero(),
            ..Usage::default()
        };
        self.answer.set_usage(usage, out);
    }

    /// Ends all blocks and judges the answer.
    fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        if !self.finished {
            return Err(Fault::new("Stream ended without finish_reason"));
        }
        self.answer.end_all(out);
        self.fault.take().map_or(Ok(()), Err)
    }
}

impl StreamParser for Parser {
    fn event(&mut self, _: &str, data: &str, out: &mut Vec<ModelEvent>) -> Result<Flow, Fault> {
        if data.trim() == "[DONE]" {
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
        if let Some(error) = chunk.error.map(RawValue::get).filter(|error| *error != "null") {
            let json: Value = serde_json::from_str(error).unwrap_or_default();
            let message = json.get("message").and_then(Value::as_str);
            return Err(Fault::new(message.unwrap_or(error)));
        }
        self.chunk(chunk, out)?;
        Ok(Flow::More)
    }

    fn end(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        self.finish(out)
    }

    fn abort(&mut self, _: &mut Vec<ModelEvent>) -> &'static str {
        "Request was aborted"
    }

    fn answer(&mut self) -> &mut Answer {
        &mut self.answer
    }
}
