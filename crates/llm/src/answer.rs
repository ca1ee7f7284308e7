//! The answer under way: blocks grow, every step becomes a stream event, and at the end there is one message. What the
//! provider's words mean is decided in the families.

use std::time::Duration;

use auth::text::cut;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use wire::content::{AssistantBlock, TextContent, ThinkingContent, ToolCall};
use wire::model::Prices;
use wire::partial_json::PartialJson;
use wire::{AssistantMessage, StopReason, StreamEvent, ThinkingLevel, Usage};

use crate::event::ModelEvent;
use crate::limits::{MAX_ANSWER_BYTES, MAX_ARGUMENT_DEPTH, MAX_BLOCKS, MAX_ERROR_TEXT_BYTES};
use crate::request::ModelRequest;

/// The error text if the provider gives none (providers.md 2.1, behaviour.md 7.5).
pub(crate) const UNKNOWN: &str = "An unknown error occurred";

/// Why a stream failed, in the words that go into `errorMessage`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The words; judged by [`crate::is_retryable`] and [`crate::is_context_overflow`], so their wording matters.
    pub(crate) text: String,
    /// What the server asks to wait, if it says so.
    pub(crate) retry_after: Option<Duration>,
    /// The HTTP status, when there was a response that is no success.
    pub(crate) status: Option<u16>,
}

impl Fault {
    /// A fault without a wait.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            retry_after: None,
            status: None,
        }
    }
}

/// State of a block beyond what the message shows.
#[derive(Debug, Default)]
struct Slot {
    /// False once its end was told; nothing is added any more.
    open: bool,
    /// JSON text of a tool call's arguments.
    args: String,
}

/// The answer that streams in: its blocks, and the events for its changes.
#[derive(Debug)]
pub(crate) struct Answer {
    message: AssistantMessage,
    /// One per content block, at the same index.
    slots: Vec<Slot>,
    /// The model's prices, for the cost of the tokens.
    prices: Prices,
    /// The level of the request, for the final message.
    level: ThinkingLevel,
    /// True if token counts also state the usual case.
    full_usage: bool,
    /// Text, reasoning, arguments, signatures, and ids and names of calls so far, for the limit.
    bytes: usize,
}

impl Answer {
    /// An empty answer to a request.
    pub(crate) fn new(request: &ModelRequest) -> Self {
        let model = &request.model;
        Self {
            message: AssistantMessage::begin(&model.api, &model.provider, &model.id, request.timestamp),
            slots: Vec::new(),
            prices: model.cost.clone(),
            level: request.thinking,
            full_usage: request.conventions.full_usage,
            bytes: 0,
        }
    }

    /// The message as it begins; for [`ModelEvent::Start`].
    pub(crate) fn head(&self) -> Box<AssistantMessage> {
        Box::new(self.message.clone())
    }

    /// The message so far; tool arguments are filled in when their block ends.
    pub(crate) fn message(&mut self) -> &mut AssistantMessage {
        &mut self.message
    }

    /// The content so far.
    pub(crate) fn content(&self) -> &[AssistantBlock] {
        &self.message.content
    }

    /// A copy of the content so far, with the arguments of open calls as far as they can be read.
    pub(crate) fn partial_content(&self) -> Vec<AssistantBlock> {
        let mut content = self.message.content.clone();
        for (block, slot) in content.iter_mut().zip(&self.slots) {
            if let AssistantBlock::ToolCall(call) = block
                && slot.open
            {
                // Parsed only here. Parsing with each delta would cost every answer what hardly any client asks for.
                let mut arguments = PartialJson::new();
                arguments.push(&slot.args);
                call.arguments = arguments.finish();
            }
        }
        content
    }

    /// The token counts so far.
    pub(crate) fn usage(&self) -> Usage {
        self.message.usage.clone()
    }

    /// Sets the token counts, computes cost and (where the provider gives none) sum, and tells.
    pub(crate) fn set_usage(&mut self, usage: Usage, out: &mut Vec<ModelEvent>) {
        self.set_billed_usage(usage, None, out);
    }

    /// Sets the token counts like [`set_usage`](Self::set_usage). `billed` is the total in US dollars that the provider
    /// reports; it takes the place of the computed one.
    pub(crate) fn set_billed_usage(
        &mut self,
        mut usage: Usage,
        billed: Option<f64>,
        out: &mut Vec<ModelEvent>,
    ) {
        if usage.total_tokens == 0 {
            usage.total_tokens = [usage.input, usage.output, usage.cache_read, usage.cache_write]
                .into_iter()
                .fold(0, u64::saturating_add);
        }
        usage.price(&self.prices);
        if let Some(total) = billed {
            usage.cost.total = total;
            usage.cost.total_from_provider = Some(true);
        }
        if self.full_usage {
            usage.cost.total_from_provider.get_or_insert(false);
            match self.message.api.as_str() {
                "anthropic-messages" => {
                    usage.cache_write_1h.get_or_insert(0);
                }
                // These report no reasoning tokens.
                "bedrock-converse-stream" | "mistral-conversations" => {}
                _ => {
                    usage.reasoning.get_or_insert(0);
                }
            }
        }
        self.message.usage = usage.clone();
        out.push(ModelEvent::Usage(usage));
    }

    /// Changes the prices of tokens that are counted from now on: another model or another service tier gives the answer.
    pub(crate) fn reprice(&mut self, change: impl FnOnce(&mut Prices)) {
        change(&mut self.prices);
    }

    /// Begins a text block and gives its index.
    pub(crate) fn start_text(&mut self, out: &mut Vec<ModelEvent>) -> Result<usize, Fault> {
        let content_index = self.push(AssistantBlock::Text(TextContent::default()))?;
        out.push(ModelEvent::Stream(StreamEvent::TextStart { content_index }));
        Ok(content_index)
    }

    /// Begins a reasoning block, with the signature it has from the start, and gives its index.
    pub(crate) fn start_thinking(
        &mut self,
        block: ThinkingContent,
        out: &mut Vec<ModelEvent>,
    ) -> Result<usize, Fault> {
        let content_index = self.push(AssistantBlock::Thinking(block))?;
        out.push(ModelEvent::Stream(StreamEvent::ThinkingStart { content_index }));
        Ok(content_index)
    }

    /// Begins a tool call and gives its index. Its arguments come as deltas of JSON text.
    pub(crate) fn start_call(
        &mut self,
        id: String,
        name: String,
        out: &mut Vec<ModelEvent>,
    ) -> Result<usize, Fault> {
        let tool_name = name.clone();
        let call = ToolCall {
            id: id.clone(),
            name,
            ..ToolCall::default()
        };
        let content_index = self.push(AssistantBlock::ToolCall(call))?;
        out.push(ModelEvent::Stream(StreamEvent::ToolcallStart {
            content_index,
            id,
            tool_name,
        }));
        Ok(content_index)
    }

    /// Adds to a block of any kind: text, reasoning or argument JSON.
    pub(crate) fn delta(
        &mut self,
        content_index: usize,
        delta: &str,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        self.grow(delta.len())?;
        let (Some(block), Some(slot)) = (
            self.message.content.get_mut(content_index),
            self.slots.get_mut(content_index),
        ) else {
            return Ok(());
        };
        let owned = delta.to_owned();
        out.push(ModelEvent::Stream(match block {
            AssistantBlock::Text(text) => {
                text.text.push_str(delta);
                StreamEvent::TextDelta {
                    content_index,
                    delta: owned,
                }
            }
            AssistantBlock::Thinking(thinking) => {
                thinking.thinking.push_str(delta);
                StreamEvent::ThinkingDelta {
                    content_index,
                    delta: owned,
                }
            }
            AssistantBlock::ToolCall(_) => {
                slot.args.push_str(delta);
                StreamEvent::ToolcallDelta {
                    content_index,
                    delta: owned,
                }
            }
        }));
        Ok(())
    }

    /// Adds to the signature of a reasoning block; clients are not told.
    pub(crate) fn sign(&mut self, content_index: usize, signature: &str) -> Result<(), Fault> {
        self.grow(signature.len())?;
        if let Some(AssistantBlock::Thinking(block)) = self.message.content.get_mut(content_index) {
            block
                .thinking_signature
                .get_or_insert_default()
                .push_str(signature);
        }
        Ok(())
    }

    /// Sets the signature of a block of any kind, in place of an earlier one; clients are not told.
    pub(crate) fn seal(&mut self, content_index: usize, signature: String) -> Result<(), Fault> {
        self.grow(signature.len())?;
        match self.message.content.get_mut(content_index) {
            Some(AssistantBlock::Text(block)) => block.text_signature = Some(signature),
            Some(AssistantBlock::Thinking(block)) => block.thinking_signature = Some(signature),
            Some(AssistantBlock::ToolCall(call)) => call.thought_signature = Some(signature),
            None => {}
        }
        Ok(())
    }

    /// Takes the complete content of an open block. Emits the part that clients have not seen as a delta. Content that
    /// does not continue the earlier deltas replaces them, and clients get it with the block's end.
    pub(crate) fn complete(
        &mut self,
        content_index: usize,
        whole: &str,
        out: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        let (Some(block), Some(slot)) = (
            self.message.content.get_mut(content_index),
            self.slots.get_mut(content_index).filter(|slot| slot.open),
        ) else {
            return Ok(());
        };
        let known = match block {
            AssistantBlock::Text(text) => &mut text.text,
            AssistantBlock::Thinking(thinking) => &mut thinking.thinking,
            AssistantBlock::ToolCall(_) => &mut slot.args,
        };
        match whole.strip_prefix(known.as_str()) {
            Some("") => Ok(()),
            Some(rest) => self.delta(content_index, rest, out),
            None => {
                whole.clone_into(known);
                self.grow(whole.len())
            }
        }
    }

    /// Returns true if the message calls a tool.
    pub(crate) fn calls_tools(&self) -> bool {
        let is_call = |block: &AssistantBlock| matches!(block, AssistantBlock::ToolCall(_));
        self.message.content.iter().any(is_call)
    }

    /// A tool call's block, to set what arrives late.
    pub(crate) fn call_mut(&mut self, content_index: usize) -> Option<&mut ToolCall> {
        match self.message.content.get_mut(content_index) {
            Some(AssistantBlock::ToolCall(call)) => Some(call),
            _ => None,
        }
    }

    /// Sets the name of a call that began without one.
    pub(crate) fn name_call(&mut self, content_index: usize, name: &str) -> Result<(), Fault> {
        match self.call_mut(content_index) {
            Some(call) if call.name.is_empty() => name.clone_into(&mut call.name),
            _ => return Ok(()),
        }
        self.grow(name.len())
    }

    /// The argument JSON of a call so far.
    pub(crate) fn args(&self, content_index: usize) -> &str {
        self.slots.get(content_index).map_or("", |slot| &slot.args)
    }

    /// Ends a block; nothing happens when it has ended already.
    pub(crate) fn end(&mut self, content_index: usize, out: &mut Vec<ModelEvent>) {
        if !self.close(content_index, true) {
            return;
        }
        let event = match self.message.content.get(content_index) {
            Some(AssistantBlock::Text(text)) => StreamEvent::TextEnd {
                content_index,
                content: text.text.clone(),
            },
            Some(AssistantBlock::Thinking(block)) => StreamEvent::ThinkingEnd {
                content_index,
                content: block.thinking.clone(),
            },
            Some(AssistantBlock::ToolCall(call)) => StreamEvent::ToolcallEnd {
                content_index,
                tool_call: call.clone(),
            },
            None => return,
        };
        out.push(ModelEvent::Stream(event));
    }

    /// Ends every open block, in content order.
    pub(crate) fn end_all(&mut self, out: &mut Vec<ModelEvent>) {
        for index in 0..self.slots.len() {
            self.end(index, out);
        }
    }

    /// Hands over the message as the whole answer.
    pub(crate) fn done(&mut self, out: &mut Vec<ModelEvent>) {
        out.push(ModelEvent::Done(self.give()));
    }

    /// Hands over the message as a failed or aborted answer; open blocks are kept as far as they came.
    pub(crate) fn failed(&mut self, reason: StopReason, fault: Fault, out: &mut Vec<ModelEvent>) {
        let mut message = self.give();
        message.stop_reason = reason;
        let text = match fault.text.trim() {
            "" => UNKNOWN,
            _ => fault.text.as_str(),
        };
        message.error_message = Some(cut(text, MAX_ERROR_TEXT_BYTES));
        // A success that contains a document instead of a stream fails, too, but its status says nothing.
        message.http_status = fault.status.filter(|status| *status >= 400);
        out.push(ModelEvent::Error {
            message,
            retry_after: fault.retry_after,
        });
    }

    /// Takes the message out. Open blocks are closed without an event, since the provider sent no end; their arguments
    /// are parsed as far as they arrived.
    fn give(&mut self) -> Box<AssistantMessage> {
        for index in 0..self.slots.len() {
            self.close(index, false);
        }
        self.message.thinking_level = Some(self.level.as_str().to_owned());
        let fresh = AssistantMessage::begin("", "", "", 0);
        Box::new(std::mem::replace(&mut self.message, fresh))
    }

    /// Counts bytes against the limit of an answer. Parsers also count what they buffer.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Fault> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_ANSWER_BYTES {
            return Err(Fault::new(format!(
                "The answer is larger than {MAX_ANSWER_BYTES} bytes"
            )));
        }
        Ok(())
    }

    /// Appends an open block.
    fn push(&mut self, block: AssistantBlock) -> Result<usize, Fault> {
        let index = self.message.content.len();
        if index >= MAX_BLOCKS {
            return Err(Fault::new(format!(
                "The answer has more than {MAX_BLOCKS} blocks"
            )));
        }
        self.grow(match &block {
            AssistantBlock::Text(text) => text.text.len(),
            AssistantBlock::Thinking(block) => {
                block.thinking.len() + block.thinking_signature.as_ref().map_or(0, String::len)
            }
            AssistantBlock::ToolCall(call) => call.id.len() + call.name.len(),
        })?;
        self.message.content.push(block);
        self.slots.push(Slot {
            open: true,
            args: String::new(),
        });
        Ok(index)
    }

    /// Marks a block as complete and parses its arguments; false when it was complete before. `is_whole`: the provider says that
    /// nothing follows, so that arguments with an open end were cut off. Such a call must not run: a command may mean something
    /// else without its end.
    fn close(&mut self, index: usize, is_whole: bool) -> bool {
        let Some(slot) = self.slots.get_mut(index).filter(|slot| slot.open) else {
            return false;
        };
        slot.open = false;
        let args = std::mem::take(&mut slot.args);
        if let Some(AssistantBlock::ToolCall(call)) = self.message.content.get_mut(index)
            && !args.trim().is_empty()
        {
            let arguments = if is_whole {
                whole_arguments(&args)
            } else {
                Ok(parse_arguments(&args))
            };
            match arguments.and_then(check_depth) {
                Ok(arguments) => call.arguments = arguments,
                Err(problem) => {
                    let error = format!("{problem}\n\nReceived arguments:\n{args}");
                    call.set_arguments_error(cut(&error, MAX_ERROR_TEXT_BYTES));
                }
            }
        }
        true
    }
}

/// Complete arguments, perhaps after a repair, or why they are not complete, in the words of the JSON parser that pi has. `null`, an empty
/// list and an empty text give no arguments: some servers write them for a call without any.
fn whole_arguments(text: &str) -> Result<Map<String, Value>, String> {
    if let Ok(arguments) = serde_json::from_str(text) {
        return Ok(arguments);
    }
    let mut partial = PartialJson::new();
    partial.push(text);
    if partial.is_complete() && text.trim_start().starts_with('{') {
        return partial.parsed().map_err(|error| error.to_string());
    }
    // The grammar first: its errors say where the text ends. It accepts numbers and depths that no value can have.
    let syntax = serde_json::from_str::<IgnoredAny>(text).err();
    let Some(error) = syntax.or_else(|| serde_json::from_str::<Value>(text).err()) else {
        return match text.trim() {
            "null" | "[]" | "\"\"" => Ok(Map::new()),
            // The model sees what it sent; validation would only name the missing members.
            _ => Err("Tool arguments must be a JSON object".to_owned()),
        };
    };
    if !error.to_string().starts_with("EOF while parsing a string") {
        return Err(error.to_string());
    }
    let line = text.rsplit('\n').next().unwrap_or_default();
    let (position, column) = (text.encode_utf16().count(), line.encode_utf16().count() + 1);
    let lines = text.matches('\n').count() + 1;
    Err(format!(
        "Unterminated string in JSON at position {position} (line {lines} column {column})"
    ))
}

/// Returns the arguments, unless they are nested too deeply. Session files and requests nest them further, and their parser stops
/// at 127 levels.
fn check_depth(arguments: Map<String, Value>) -> Result<Map<String, Value>, String> {
    let levels = 1 + arguments.values().map(depth).max().unwrap_or(0);
    if levels > MAX_ARGUMENT_DEPTH {
        return Err(format!(
            "recursion limit exceeded: {levels} levels, at most {MAX_ARGUMENT_DEPTH} are accepted"
        ));
    }
    Ok(arguments)
}

/// How many objects and arrays are inside each other.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Arguments of a tool call: what parses, else what can be repaired, else nothing (providers.md 2.3).
fn parse_arguments(text: &str) -> Map<String, Value> {
    serde_json::from_str(text).unwrap_or_else(|_| {
        let mut partial = PartialJson::new();
        partial.push(text);
        partial.finish()
    })
}
