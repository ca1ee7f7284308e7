//! The answer that is streaming in, as JSON text that only grows (docs/internals/decisions/25-linear-updates.md). When
//! it is written is decided in `encode`.

use wire::partial_json::PartialJson;
use wire::{AssistantBlock, AssistantMessage, StreamEvent, ToolCall, Usage};

use super::json;
use super::repeats::{Repeats, Segment};
use crate::limits::{ANNOUNCED_BYTES, ANSWER_SEGMENT, REPEATED_ANSWER, UPDATE_SHARE};

/// Bytes of an update around the answer, usually.
const UPDATE_HEAD: usize = 4 * 1024;

/// How a block ends when it is written.
#[derive(Debug)]
enum Tail {
    /// It is complete.
    Done,
    /// Its text is open: more may come.
    Text,
    /// Its arguments are still arriving.
    Arguments(Box<PartialJson>),
}

/// One content block.
#[derive(Debug)]
struct Block {
    /// The provider's `contentIndex`.
    index: usize,
    /// A block of text: the rest is what stands between its JSON quotes.
    prose: Option<Prose>,
    /// Text that does not change any more, before `json`.
    segments: Vec<Segment>,
    /// The block, or the end of its text, up to where it grows.
    json: Vec<u8>,
    tail: Tail,
    /// Its start and end are not written: it is only part of the message that updates show.
    is_left_out: bool,
}

impl Block {
    fn of_text(index: usize, prose: Prose, escaped: &[u8], tail: Tail) -> Self {
        let mut block = Self {
            index,
            prose: Some(prose),
            segments: Vec::new(),
            json: Vec::new(),
            tail,
            is_left_out: false,
        };
        block.grow(escaped);
        block
    }

    fn size(&self) -> usize {
        let text = self.segments.iter().map(|segment| segment.len()).sum::<usize>() + self.json.len();
        text + self.prose.map_or(0, |prose| prose.head().len())
            + match &self.tail {
                Tail::Arguments(arguments) => arguments.stable().len(),
                Tail::Done | Tail::Text => 0,
            }
    }

    /// Adds to the text. A segment is made of the end of the text each time that it is long enough: all have one size, and none is
    /// moved as it grows, so that the heap has no gaps.
    fn grow(&mut self, mut escaped: &[u8]) {
        while let Some((now, later)) = escaped.split_at_checked(ANSWER_SEGMENT - self.json.len()) {
            let mut segment = std::mem::replace(&mut self.json, Vec::with_capacity(ANSWER_SEGMENT));
            segment.extend_from_slice(now);
            segment.shrink_to_fit();
            self.segments.push(Segment::new(segment));
            escaped = later;
        }
        self.json.extend_from_slice(escaped);
    }

    /// Writes the text of the block, or the block if it has none. With `repeats`, segments are not copied.
    fn write_text(&self, repeats: Option<&mut Repeats>, out: &mut Vec<u8>) {
        match repeats {
            Some(repeats) => {
                for segment in &self.segments {
                    repeats.share(out, segment);
                }
            }
            None => {
                for segment in &self.segments {
                    out.extend_from_slice(segment);
                }
            }
        }
        out.extend_from_slice(&self.json);
    }

    fn write(&self, repeats: Option<&mut Repeats>, out: &mut Vec<u8>) {
        if let Some(prose) = self.prose {
            out.extend_from_slice(prose.head());
            self.write_text(repeats, out);
            // Every update is complete JSON: an open text is closed in the copy only.
            out.extend_from_slice(b"\"}");
            return;
        }
        out.extend_from_slice(&self.json);
        if let Tail::Arguments(arguments) = &self.tail {
            out.extend_from_slice(arguments.stable().as_bytes());
            out.extend_from_slice(arguments.closer().as_bytes());
            out.push(b'}');
        }
    }
}

/// Text or reasoning: the two kinds of block that grow by plain text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prose {
    /// A text block.
    Text,
    /// A reasoning block.
    Thinking,
}

impl Prose {
    fn head(self) -> &'static [u8] {
        match self {
            Self::Text => b"{\"type\":\"text\",\"text\":\"",
            Self::Thinking => b"{\"type\":\"thinking\",\"thinking\":\"",
        }
    }
}

/// An assistant message that is not complete.
#[derive(Debug)]
pub(crate) struct Answer {
    blocks: Vec<Block>,
    size: usize,
    /// Bytes of the starts and ends of blocks that were written.
    announced: usize,
    /// From the bracket that closes the content up to `usage`.
    middle: Vec<u8>,
    usage: (Usage, Vec<u8>),
    /// From after `usage` to the end.
    end: Vec<u8>,
}

impl Answer {
    /// Begins with what `message_start` said.
    pub(crate) fn begin(message: &AssistantMessage) -> Self {
        // Members in the order of pi (behaviour.md 2.5).
        let mut middle = b"],\"api\":".to_vec();
        json::value(&mut middle, &message.api);
        middle.extend_from_slice(b",\"provider\":");
        json::value(&mut middle, &message.provider);
        middle.extend_from_slice(b",\"model\":");
        json::value(&mut middle, &message.model);
        middle.extend_from_slice(b",\"usage\":");
        // An answer that is not complete has this reason, which means nothing before `message_end` (pi-core.md 1.4).
        let mut end = b",\"stopReason\":\"stop\",\"timestamp\":".to_vec();
        json::value(&mut end, &message.timestamp);
        for (key, text) in [
            (&b",\"responseModel\":"[..], &message.response_model),
            (&b",\"responseId\":"[..], &message.response_id),
        ] {
            if let Some(text) = text {
                end.extend_from_slice(key);
                json::value(&mut end, text);
            }
        }
        end.push(b'}');
        let mut usage = Vec::new();
        json::value(&mut usage, &message.usage);
        let mut answer = Self {
            blocks: Vec::new(),
            size: 0,
            announced: 0,
            middle,
            usage: (message.usage.clone(), usage),
            end,
        };
        for (index, block) in message.content.iter().enumerate() {
            answer.put_done(index, block);
        }
        answer
    }

    fn put_done(&mut self, index: usize, block: &AssistantBlock) {
        let mut text = Vec::new();
        json::value(&mut text, block);
        self.put_json(index, text, Tail::Done);
    }

    /// Bytes of content so far.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Carries out a start or an end of a block. Deltas were carried out when they were taken.
    pub(crate) fn apply(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::TextStart { content_index } => self.start_prose(*content_index, Prose::Text),
            StreamEvent::ThinkingStart { content_index } => self.start_prose(*content_index, Prose::Thinking),
            StreamEvent::ToolcallStart {
                content_index,
                id,
                tool_name,
            } => self.start_call(*content_index, id, tool_name),
            StreamEvent::TextEnd {
                content_index,
                content,
            } => self.end_prose(*content_index, Prose::Text, content),
            StreamEvent::ThinkingEnd {
                content_index,
                content,
            } => self.end_prose(*content_index, Prose::Thinking, content),
            StreamEvent::ToolcallEnd {
                content_index,
                tool_call,
            } => self.end_call(*content_index, tool_call),
            StreamEvent::TextDelta { .. }
            | StreamEvent::ThinkingDelta { .. }
            | StreamEvent::ToolcallDelta { .. } => {}
        }
    }

    /// Token counts from now on.
    pub(crate) fn set_usage(&mut self, usage: &Usage) {
        // Counts come with every delta and rarely change: their JSON is made again only then.
        if self.usage.0 != *usage {
            self.usage.0 = usage.clone();
            self.usage.1.clear();
            json::value(&mut self.usage.1, usage);
        }
    }

    /// A text or reasoning block begins.
    pub(crate) fn start_prose(&mut self, index: usize, prose: Prose) {
        self.put(Block::of_text(index, prose, &[], Tail::Text));
    }

    /// A tool call begins.
    pub(crate) fn start_call(&mut self, index: usize, id: &str, name: &str) {
        let mut text = b"{\"type\":\"toolCall\",\"id\":".to_vec();
        json::value(&mut text, id);
        text.extend_from_slice(b",\"name\":");
        json::value(&mut text, name);
        text.extend_from_slice(b",\"arguments\":");
        self.put_json(index, text, Tail::Arguments(Box::default()));
    }

    /// Text of a block arrived; `escaped` is what stands between JSON quotes. A block that was never started begins here.
    pub(crate) fn grow_prose(&mut self, index: usize, prose: Prose, escaped: &[u8]) {
        if self.find(index).is_none() {
            self.start_prose(index, prose);
        }
        // A delta after the end of its block is dropped: the end has brought the whole text.
        if let Some(block) = self.find(index)
            && matches!(block.tail, Tail::Text)
        {
            block.grow(escaped);
            self.size += escaped.len();
        }
    }

    /// A piece of the arguments' JSON text arrived.
    pub(crate) fn grow_call(&mut self, index: usize, piece: &str) {
        if self.find(index).is_none() {
            // Id and name stay empty until the end of the call brings them.
            self.start_call(index, "", "");
        }
        if let Some(block) = self.find(index)
            && let Tail::Arguments(arguments) = &mut block.tail
        {
            // Only the part that no later piece can change counts: the closing part is written anew with each update.
            let before = arguments.stable().len();
            arguments.push(piece);
            let grown = arguments.stable().len().saturating_sub(before);
            self.size += grown;
        }
    }

    /// A text or reasoning block is complete. The text is taken anew, once for each block: a provider's final text may
    /// differ from its deltas.
    pub(crate) fn end_prose(&mut self, index: usize, prose: Prose, content: &str) {
        // Nearly always they are the same, and the text is not held twice for the comparison.
        if let Some(block) = self.find(index)
            && matches!(block.tail, Tail::Text)
            && block.prose == Some(prose)
            && json::is_escape(
                block
                    .segments
                    .iter()
                    .map(|text| text.as_slice())
                    .chain([block.json.as_slice()]),
                content,
            )
        {
            block.tail = Tail::Done;
            return;
        }
        let mut text = Vec::with_capacity(content.len());
        json::escape(&mut text, content);
        self.put(Block::of_text(index, prose, &text, Tail::Done));
    }

    /// Writes the text of a block as it stands between JSON quotes; false if there is no such block. With `repeats`, long text is
    /// not copied.
    pub(crate) fn write_prose(&self, index: usize, repeats: Option<&mut Repeats>, out: &mut Vec<u8>) -> bool {
        let block = self.blocks.iter().rev().find(|block| block.index == index);
        let Some(block) = block.filter(|block| block.prose.is_some()) else {
            return false;
        };
        block.write_text(repeats, out);
        true
    }

    /// Writes the text so far of a block that may not be complete, as it stands between JSON quotes.
    pub(crate) fn open_prose(&self, index: usize, prose: Prose, out: &mut Vec<u8>) {
        let block = self.blocks.iter().rev().find(|block| block.index == index);
        if let Some(block) = block.filter(|block| block.prose == Some(prose)) {
            block.write_text(None, out);
        }
    }

    /// A tool call is complete.
    pub(crate) fn end_call(&mut self, index: usize, call: &ToolCall) {
        let mut text = Vec::new();
        tool_call(&mut text, call);
        self.put_json(index, text, Tail::Done);
    }

    fn put_json(&mut self, index: usize, json: Vec<u8>, tail: Tail) {
        self.put(Block {
            index,
            prose: None,
            segments: Vec::new(),
            json,
            tail,
            is_left_out: false,
        });
    }

    /// Decides whether a block that has begun, or was left out so far, is announced. Every start and end repeats the whole answer, so
    /// announcing all of many blocks would cost the size of the answer times their number.
    pub(crate) fn announce(&mut self, index: usize) -> bool {
        // Its start and its end hold the answer twice each.
        let cost = self.announced.saturating_add(self.size.saturating_mul(4));
        // Updates cost up to twice UPDATE_SHARE times the answer already, so that much again for blocks keeps the sum linear.
        let fits = cost <= ANNOUNCED_BYTES.saturating_add(self.size.saturating_mul(2 * UPDATE_SHARE));
        if let Some(block) = self.find(index) {
            block.is_left_out = !fits;
        }
        fits
    }

    /// Returns true if the block is left out so far.
    pub(crate) fn leaves_out(&self, index: usize) -> bool {
        let block = self.blocks.iter().rev().find(|block| block.index == index);
        block.is_some_and(|block| block.is_left_out)
    }

    /// A start or an end of so many bytes was written.
    pub(crate) fn count_announced(&mut self, bytes: usize) {
        self.announced = self.announced.saturating_add(bytes);
    }

    /// The text that is not copied.
    pub(crate) fn into_long_text(self) -> Vec<Vec<Segment>> {
        let texts = self.blocks.into_iter().map(|block| block.segments);
        texts.filter(|segments| !segments.is_empty()).collect()
    }

    /// Adds a block or replaces the one with its index.
    fn put(&mut self, mut block: Block) {
        self.size += block.size();
        match self.find(block.index) {
            Some(old) => {
                // The end of a block that was left out is left out, too.
                block.is_left_out = old.is_left_out;
                let old = std::mem::replace(old, block);
                self.size = self.size.saturating_sub(old.size());
            }
            None => self.blocks.push(block),
        }
    }

    /// Newest first: that is the one asked for nearly always.
    fn find(&mut self, index: usize) -> Option<&mut Block> {
        self.blocks.iter_mut().rev().find(|block| block.index == index)
    }

    /// Writes the message so far. With `repeats`, long text is not copied.
    pub(crate) fn write(&self, mut repeats: Option<&mut Repeats>, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"role\":\"assistant\",\"content\":[");
        for (place, block) in self.blocks.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            block.write(repeats.as_deref_mut(), out);
        }
        out.extend_from_slice(&self.middle);
        out.extend_from_slice(&self.usage.1);
        out.extend_from_slice(&self.end);
    }

    /// Bytes that [`write`](Self::write) copies with `repeats`, about.
    pub(crate) fn copied(&self) -> usize {
        let text = self.blocks.iter().flat_map(|block| &block.segments);
        self.size.saturating_sub(text.map(|segment| segment.len()).sum())
    }

    /// Writes the token counts.
    pub(crate) fn write_usage(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.usage.1);
    }

    /// Writes a `message_update` with the answer so far. `head` writes the event's own fields without its braces, and `bytes` in addition
    /// to the answer.
    pub(super) fn write_update(
        &self,
        repeats: Option<&mut Repeats>,
        bytes: usize,
        out: &mut Vec<u8>,
        head: impl FnOnce(&Self, Option<&mut Repeats>, &mut Vec<u8>),
    ) {
        let mut repeats = repeats.filter(|_| self.size() >= REPEATED_ANSWER);
        // At once: a buffer that grows bit by bit leaves its old pieces behind in the heap.
        let copied = repeats.as_ref().map_or(self.size(), |_| self.copied());
        out.reserve(copied.saturating_mul(3) + bytes + UPDATE_HEAD);
        out.extend_from_slice(b"{\"type\":\"message_update\",\"assistantMessageEvent\":{");
        head(self, repeats.as_deref_mut(), out);
        out.extend_from_slice(b",\"partial\":");
        let from = out.len();
        self.write(repeats.as_deref_mut(), out);
        let to = out.len();
        // Two names for one message. The Python client of xcsh requires both (dialects.md 4).
        out.extend_from_slice(b"},\"message\":");
        match repeats {
            Some(repeats) => repeats.push(out, from..to),
            // Copies the JSON instead of encoding the answer twice.
            None => out.extend_from_within(from..to),
        }
        out.extend_from_slice(b",\"usage\":");
        self.write_usage(out);
        out.extend_from_slice(b"}\n");
    }
}

/// Writes a tool call as a content block, with its `type`.
pub(crate) fn tool_call(out: &mut Vec<u8>, call: &ToolCall) {
    out.extend_from_slice(b"{\"type\":\"toolCall\",");
    json::fields(out, call);
}
