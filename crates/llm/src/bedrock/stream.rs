//! Understands the events of ConverseStream (providers.md 8). Blocks of text and reasoning begin with their first delta;
//! calls have a start of their own. Events and kinds of deltas that are not known are left out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use wire::{AssistantBlock, StopReason, ThinkingContent, Usage};

use super::exception_text;
use super::frames::EXCEPTION;
use crate::answer::{Answer, Fault};
use crate::event::ModelEvent;
use crate::family::{Flow, StreamParser};
use crate::json::{Count, Text, repair, unreadable};
use crate::request::ModelRequest;

/// Shown in place of reasoning that the provider withholds.
const REDACTED: &str = "[Reasoning redacted]";

/// One event; which fields are there depends on its name.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Frame<'a> {
    #[serde(default)]
    content_block_index: Count,
    #[serde(borrow, default)]
    start: Option<Start<'a>>,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    stop_reason: Text<'a>,
    #[serde(borrow, default)]
    usage: Option<Tokens<'a>>,
    /// Of an exception.
    #[serde(borrow, default, alias = "Message")]
    message: Text<'a>,
}

/// What begins.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Start<'a> {
    #[serde(borrow, default)]
    tool_use: Option<Call<'a>>,
}

/// A call as it begins.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Call<'a> {
    #[serde(borrow, default)]
    tool_use_id: Text<'a>,
    #[serde(borrow, default)]
    name: Text<'a>,
}

/// What a block gains.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Delta<'a> {
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    tool_use: Option<Input<'a>>,
    #[serde(borrow, default)]
    reasoning_content: Option<Reasoning<'a>>,
}

/// A piece of a call's arguments.
#[derive(Deserialize)]
struct Input<'a> {
    #[serde(borrow, default)]
    input: Text<'a>,
}

/// A piece of reasoning.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reasoning<'a> {
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    signature: Text<'a>,
    #[serde(borrow, default)]
    redacted_content: Text<'a>,
}

/// Token counts; `inputTokens` does not contain the cached ones.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tokens<'a> {
    #[serde(default)]
    input_tokens: Count,
    #[serde(default)]
    output_tokens: Count,
    #[serde(default)]
    total_tokens: Count,
    #[serde(default)]
    cache_read_input_tokens: Count,
    #[serde(default)]
    cache_write_input_tokens: Count,
    #[serde(borrow, default)]
    cache_details: Option<Vec<Written<'a>>>,
}

/// Tokens written to the cache for some time.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    #[serde(borrow, default)]
    ttl: Text<'a>,
    #[serde(default)]
    input_tokens: Count,
}

/// A block that has not ended: the provider's index and ours.
struct Open {
    theirs: u64,
    ours: usize,
    /// What the provider withholds, decoded: its pieces are encoded one by one.
    redacted: Option<Vec<u8>>,
}

/// Parser of a stream of the Converse API.
pub(crate) struct ConverseParser {
    answer: Answer,
    /// Few at a time, mostly one.
    open: Vec<Open>,
    /// A stop reason came.
    stopped: bool,
    /// The stop reason is a failure.
    fault: Option<Fault>,
}

impl ConverseParser {
    /// A parser for the answer to a request.
    pub(crate) fn new(request: &ModelRequest) -> Self {
        Self {
            answer: Answer::new(request),
            open: Vec::new(),
            stopped: false,
            fault: None,
        }
    }

    /// Takes one event.
    fn frame(&mut self, name: &str, frame: Frame<'_>, out: &mut Vec<ModelEvent>) -> Result<Flow, Fault> {
        let index = frame.content_block_index.or_zero();
        match name {
            "contentBlockStart" => {
                if let Some(call) = frame.start.and_then(|start| start.tool_use) {
                    let (id, name) = (call.tool_use_id.as_str(), call.name.as_str());
                    let ours = self.answer.start_call(id.to_owned(), name.to_owned(), out)?;
                    self.began(index, ours);
                }
            }
            "contentBlockDelta" => self.delta(index, &frame.delta.unwrap_or_default(), out)?,
            "contentBlockStop" => self.stop(index, out)?,
            "messageStop" => {
                self.stopped = true;
                self.reason(frame.stop_reason.as_str());
            }
            "metadata" => {
                if let Some(tokens) = frame.usage {
                    self.count(&tokens, out);
                }
                if self.stopped {
                    self.end(out)?;
                    return Ok(Flow::Done);
                }
            }
            _ => {}
        }
        Ok(Flow::More)
    }

    fn began(&mut self, theirs: u64, ours: usize) {
        self.open.push(Open {
            theirs,
            ours,
            redacted: None,
        });
    }

    /// Our index of a block that grows; `begin` makes it when there is none.
    fn block(
        &mut self,
        theirs: u64,
        out: &mut Vec<ModelEvent>,
        begin: impl FnOnce(&mut Answer, &mut Vec<ModelEvent>) -> Result<usize, Fault>,
    ) -> Result<usize, Fault> {
        if let Some(open) = self.open.iter().rev().find(|open| open.theirs == theirs) {
            return Ok(open.ours);
        }
        let ours = begin(&mut self.answer, out)?;
        self.began(theirs, ours);
        Ok(ours)
    }

    /// A block grows. A delta of another kind than its block is dropped.
    fn delta(&mut self, theirs: u64, delta: &Delta<'_>, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        if let Some(text) = delta.text.0.as_deref() {
            let ours = self.block(theirs, out, Answer::start_text)?;
            if matches!(self.content(ours), Some(AssistantBlock::Text(_))) {
                self.answer.delta(ours, text, out)?;
            }
        }
        if let Some(input) = &delta.tool_use
            && let Some(ours) = self.ours(theirs)
            && matches!(self.content(ours), Some(AssistantBlock::ToolCall(_)))
        {
            self.answer.delta(ours, input.input.as_str(), out)?;
        }
        if let Some(reasoning) = &delta.reasoning_content {
            self.reasoning(theirs, reasoning, out)?;
        }
        Ok(())
    }

    fn ours(&self, theirs: u64) -> Option<usize> {
        let open = self.open.iter().rev().find(|open| open.theirs == theirs);
        open.map(|open| open.ours)
    }

    fn content(&mut self, ours: usize) -> Option<&AssistantBlock> {
        self.answer.message().content.get(ours)
    }

    fn reasoning(
        &mut self,
        theirs: u64,
        piece: &Reasoning<'_>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        if let Some(data) = piece.redacted_content.filled() {
            return self.redacted(theirs, data, out);
        }
        let begin = |answer: &mut Answer, out: &mut Vec<ModelEvent>| {
            let empty = ThinkingContent {
                thinking_signature: Some(String::new()),
                ..ThinkingContent::default()
            };
            answer.start_thinking(empty, out)
        };
        let ours = self.block(theirs, out, begin)?;
        let is_open = matches!(
            self.content(ours),
            Some(AssistantBlock::Thinking(block)) if block.redacted.is_none()
        );
        if is_open {
            if let Some(text) = piece.text.filled() {
                self.answer.delta(ours, text, out)?;
            }
            self.answer.sign(ours, piece.signature.as_str())?;
        }
        Ok(())
    }

    /// Takes encrypted reasoning. It must be sent back unchanged, so its pieces are kept until the block ends.
    fn redacted(&mut self, theirs: u64, data: &str, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let begin = |answer: &mut Answer, out: &mut Vec<ModelEvent>| {
            let hidden = ThinkingContent {
                thinking: REDACTED.to_owned(),
                thinking_signature: Some(String::new()),
                redacted: Some(true),
                ..ThinkingContent::default()
            };
            answer.start_thinking(hidden, out)
        };
        let ours = self.block(theirs, out, begin)?;
        let hidden = matches!(
            self.content(ours),
            Some(AssistantBlock::Thinking(block)) if block.redacted == Some(true)
        );
        let Some(open) = self.open.iter_mut().rev().find(|open| open.ours == ours) else {
            return Ok(());
        };
        if let (true, Ok(bytes)) = (hidden, STANDARD.decode(data)) {
            // Counted again when the block ends: until then nothing else bounds what open blocks keep.
            self.answer.grow(bytes.len())?;
            open.redacted.get_or_insert_default().extend_from_slice(&bytes);
        }
        Ok(())
    }

    /// A block ends.
    fn stop(&mut self, theirs: u64, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let Some(at) = self.open.iter().rposition(|open| open.theirs == theirs) else {
            return Ok(());
        };
        let open = self.open.remove(at);
        if let Some(bytes) = open.redacted {
            self.answer.seal(open.ours, STANDARD.encode(bytes))?;
        }
        self.answer.end(open.ours, out);
        Ok(())
    }

    /// The provider says why it stopped. Usage still follows.
    fn reason(&mut self, reason: &str) {
        self.answer.message().raw_stop_reason = Some(reason.to_owned());
        self.answer.message().stop_reason = match reason {
            "end_turn" | "stop_sequence" => StopReason::Stop,
            "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
            "tool_use" => StopReason::ToolUse,
            _ => {
                // What the model garbled will mostly be right the next time; the rest are verdicts.
                let text = if reason.starts_with("malformed_") {
                    format!("Provider returned an error, stop reason: {reason}")
                } else {
                    format!("Provider stopped with: {reason}")
                };
                self.fault = Some(Fault::new(text));
                StopReason::Error
            }
        };
    }

    /// Token counts, whole each time.
    fn count(&mut self, tokens: &Tokens<'_>, out: &mut Vec<ModelEvent>) {
        let long = tokens.cache_details.as_ref().map(|details| {
            let hours = details.iter().filter(|detail| detail.ttl.as_str() == "1h");
            hours.map(|detail| detail.input_tokens.or_zero()).sum()
        });
        let usage = Usage {
            input: tokens.input_tokens.or_zero(),
            output: tokens.output_tokens.or_zero(),
            cache_read: tokens.cache_read_input_tokens.or_zero(),
            cache_write: tokens.cache_write_input_tokens.or_zero(),
            total_tokens: tokens.total_tokens.or_zero(),
            cache_write_1h: long.filter(|tokens| *tokens > 0),
            ..Usage::default()
        };
        self.answer.set_usage(usage, out);
    }
}

/// Events that say something to us; the form of others is not known.
fn is_known(name: &str) -> bool {
    name.starts_with(EXCEPTION)
        || name.starts_with("contentBlock")
        || matches!(name, "messageStop" | "metadata")
}

impl StreamParser for ConverseParser {
    fn event(&mut self, name: &str, data: &str, out: &mut Vec<ModelEvent>) -> Result<Flow, Fault> {
        if !is_known(name) {
            return Ok(Flow::More);
        }
        let data = if data.is_empty() { "{}" } else { data };
        let repaired;
        let frame: Frame<'_> = match serde_json::from_str(data) {
            Ok(frame) => frame,
            Err(_) => {
                repaired = repair(data);
                match serde_json::from_str(&repaired) {
                    Ok(frame) => frame,
                    Err(_) => match name.strip_prefix(EXCEPTION) {
                        Some(kind) => return Err(Fault::new(exception_text(kind, data))),
                        None => return Err(unreadable(data)),
                    },
                }
            }
        };
        match name.strip_prefix(EXCEPTION) {
            Some(kind) => Err(Fault::new(exception_text(kind, frame.message.as_str()))),
            None => self.frame(name, frame, out),
        }
    }

    fn end(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        if !self.stopped {
            return Err(Fault::new("Bedrock stream ended without a stop reason"));
        }
        while let Some(theirs) = self.open.first().map(|open| open.theirs) {
            self.stop(theirs, out)?;
        }
        self.answer.end_all(out);
        self.fault.take().map_or(Ok(()), Err)
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
