//! The answer that is streaming in, as JSON text that only grows (docs/internals/decisions/25-linear-updates.md). When
//! it is written is decided in `encode`.

use wire::partial_json::PartialJson;
use wire::{AssistantBlock, AssistantMessage, ToolCall, Usage};

use super::repeats::Repeats;
use super::{BlockText, json};

/// How a block ends when it is written.
#[derive(Debug)]
enum Tail {
    /// It is complete.
    Done,
    /// Its text is open: a quote and a brace are missing.
    Text,
    /// Its arguments are still arriving.
    Arguments(Box<PartialJson>),
}

/// One content block.
#[derive(Debug)]
struct Block {
    /// The provider's `contentIndex`.
    index: usize,
    /// The block up to where it grows.
    json: Vec<u8>,
    tail: Tail,
}

impl Block {
    fn size(&self) -> usize {
        match &self.tail {
            Tail::Done | Tail::Text => self.json.len(),
            Tail::Arguments(arguments) => self.json.len() + arguments.stable().len(),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.json);
        match &self.tail {
            Tail::Done => {}
            // Every update is complete JSON: an open text is closed in the copy only.
            Tail::Text => out.extend_from_slice(b"\"}"),
            Tail::Arguments(arguments) => {
                out.extend_from_slice(arguments.stable().as_bytes());
                out.extend_from_slice(arguments.closer().as_bytes());
                out.push(b'}');
            }
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
    /// From the bracket that closes the content up to `usage`.
    middle: Vec<u8>,
    usage: (Usage, Vec<u8>),
    /// From after `usage` to the end.
    end: Vec<u8>,
}

impl Answer {
    /// Begins with what `message_start` said.
    pub(crate) fn begin(message: &AssistantMessage) -> Self {
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
        self.put(index, text, Tail::Done);
    }

    /// Bytes of content so far.
    pub(crate) fn size(&self) -> usize {
        self.size
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
        self.put(index, prose.head().to_vec(), Tail::Text);
    }

    /// A tool call begins.
    pub(crate) fn start_call(&mut self, index: usize, id: &str, name: &str) {
        let mut text = b"{\"type\":\"toolCall\",\"id\":".to_vec();
        json::value(&mut text, id);
        text.extend_from_slice(b",\"name\":");
        json::value(&mut text, name);
        text.extend_from_slice(b",\"arguments\":");
        self.put(index, text, Tail::Arguments(Box::default()));
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
            block.json.extend_from_slice(escaped);
            self.size += escaped.len();
        }
    }

    /// A piece of the arguments' JSON text arrived.
    pub(crate) fn grow_call(&mut self, index: usize, piece: &str) {
        if self.find(index).is_none() {
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
            && block
                .json
                .strip_prefix(prose.head())
                .is_some_and(|escaped| json::is_escape(escaped, content))
        {
            block.json.extend_from_slice(b"\"}");
            block.tail = Tail::Done;
            self.size += 2;
            return;
        }
        let mut text = prose.head().to_vec();
        text.reserve(content.len() + 2);
        json::escape(&mut text, content);
        text.extend_from_slice(b"\"}");
        self.put(index, text, Tail::Done);
    }

    /// The text of a block that [`end_prose`](Self::end_prose) completed, as it stands between JSON quotes.
    pub(crate) fn prose(&self, index: usize) -> Option<&[u8]> {
        let block = self.blocks.iter().rev().find(|block| block.index == index)?;
        let text = &block.json;
        let head = [Prose::Text, Prose::Thinking].into_iter().map(Prose::head);
        let text = head.into_iter().find_map(|head| text.strip_prefix(head))?;
        text.strip_suffix(b"\"}")
    }

    /// The text of a block that is not complete, as it stands between JSON quotes.
    pub(crate) fn open_prose(&self, index: usize, prose: Prose) -> &[u8] {
        let block = self.blocks.iter().rev().find(|block| block.index == index);
        let text = block.and_then(|block| block.json.strip_prefix(prose.head()));
        text.unwrap_or_default()
    }

    /// A tool call is complete.
    pub(crate) fn end_call(&mut self, index: usize, call: &ToolCall) {
        let mut text = Vec::new();
        tool_call(&mut text, call);
        self.put(index, text, Tail::Done);
    }

    /// Adds a block or replaces the one with its index.
    fn put(&mut self, index: usize, json: Vec<u8>, tail: Tail) {
        let block = Block { index, json, tail };
        self.size += block.size();
        match self.find(index) {
            Some(old) => {
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

    /// Writes the message so far.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.write_blocks(out, Block::write);
    }

    /// Writes the message so far, and repeats the text of a block that the batch contains.
    pub(crate) fn write_repeating(&self, text: &BlockText, repeats: &mut Repeats, out: &mut Vec<u8>) {
        self.write_blocks(out, |block, out| {
            let heads = [Prose::Text, Prose::Thinking].map(Prose::head);
            let head = heads.into_iter().find(|head| block.json.starts_with(head));
            match head {
                Some(head) if block.index == text.index && matches!(block.tail, Tail::Done) => {
                    out.extend_from_slice(head);
                    repeats.push(out, text.place.clone());
                    out.extend_from_slice(b"\"}");
                }
                _ => block.write(out),
            }
        });
    }

    fn write_blocks(&self, out: &mut Vec<u8>, mut write: impl FnMut(&Block, &mut Vec<u8>)) {
        out.extend_from_slice(b"{\"role\":\"assistant\",\"content\":[");
        for (place, block) in self.blocks.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            write(block, out);
        }
        out.extend_from_slice(&self.middle);
        out.extend_from_slice(&self.usage.1);
        out.extend_from_slice(&self.end);
    }

    /// Writes the token counts.
    pub(crate) fn write_usage(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.usage.1);
    }
}

/// Writes a tool call as a content block, with its `type`.
pub(crate) fn tool_call(out: &mut Vec<u8>, call: &ToolCall) {
    out.extend_from_slice(b"{\"type\":\"toolCall\",");
    json::fields(out, call);
}
