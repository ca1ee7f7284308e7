//! How many tokens messages take up (pi-core.md 3.3). One estimate for all who ask: how full the context is (`stats`), when and
//! where a branch is cut (`compaction`), what fits into a branch summary.
//!
//! Unlike pi an image counts as 1200 tokens in user messages as well: a model has to see it there too.

use serde_json::Value;
use wire::content::AssistantBlock;
use wire::message::UserContent;
use wire::{AssistantMessage, Message, UserBlock};

use crate::limits::{CHARS_PER_TOKEN, IMAGE_TOKENS};

/// Estimated tokens of what a message says, whether or not a model gets to see it.
#[must_use]
pub fn estimate(message: &Message) -> u64 {
    let chars = match message {
        Message::User(user) => user_chars(&user.content),
        Message::Assistant(answer) => answer.content.iter().map(block_chars).sum(),
        Message::ToolResult(result) => blocks_chars(&result.content),
        Message::Custom(custom) => user_chars(&custom.content),
        Message::BashExecution(bash) => utf16(&bash.command) + utf16(&bash.output),
        Message::BranchSummary(branch) => utf16(&branch.summary),
        Message::CompactionSummary(compaction) => utf16(&compaction.summary),
        Message::Other(message) if message["role"] == "system" => system_chars(message),
        // No model gets other roles, so they take up nothing.
        _ => 0,
    };
    chars.div_ceil(CHARS_PER_TOKEN)
}

/// Estimated tokens that a message takes up in a request: like [`estimate`], but nothing when it is never sent (failed
/// answers, commands that are kept from the model).
#[must_use]
pub fn weight(message: &Message) -> u64 {
    match message {
        Message::Assistant(answer) if answer.failed() => 0,
        Message::BashExecution(bash) if bash.exclude_from_context == Some(true) => 0,
        _ => estimate(message),
    }
}

/// Estimated tokens of a text.
pub(crate) fn text_tokens(text: &str) -> u64 {
    utf16(text).div_ceil(CHARS_PER_TOKEN)
}

/// Tokens in a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Used {
    /// What the newest good answer reported and an estimate of what follows it.
    Reported(u64),
    /// No answer reported anything: an estimate of all.
    Estimated(u64),
}

impl Used {
    /// Sums up messages, the newest first; looks at no more of them than it has to.
    pub(crate) fn by<M: AsRef<Message>>(newest_first: impl Iterator<Item = M>) -> Self {
        Self::counted(newest_first, weight)
    }

    /// Like [`Self::by`], with another estimate for what no answer counted.
    pub(crate) fn counted<M: AsRef<Message>>(
        newest_first: impl Iterator<Item = M>,
        count: fn(&Message) -> u64,
    ) -> Self {
        let mut after = 0_u64;
        for message in newest_first {
            let message = message.as_ref();
            // The report covers the whole request, so older messages are in it.
            if let Some(tokens) = message.as_assistant().and_then(AssistantMessage::reported_tokens) {
                return Self::Reported(tokens.saturating_add(after));
            }
            after = after.saturating_add(count(message));
        }
        Self::Estimated(after)
    }

    pub(crate) const fn tokens(self) -> u64 {
        match self {
            Self::Reported(tokens) | Self::Estimated(tokens) => tokens,
        }
    }
}

fn user_chars(content: &UserContent) -> u64 {
    match content {
        UserContent::Text(text) => utf16(text),
        UserContent::Blocks(blocks) => blocks_chars(blocks),
    }
}

fn blocks_chars(blocks: &[UserBlock]) -> u64 {
    let chars = blocks.iter().map(|block| match block {
        UserBlock::Text(text) => utf16(&text.text),
        UserBlock::Image(_) => IMAGE_TOKENS * CHARS_PER_TOKEN,
    });
    chars.sum()
}

fn block_chars(block: &AssistantBlock) -> u64 {
    match block {
        AssistantBlock::Text(text) => utf16(&text.text),
        AssistantBlock::Thinking(thinking) => utf16(&thinking.thinking),
        AssistantBlock::ToolCall(call) => {
            // As JSON, as in pi (pi-core.md 3.3).
            let arguments = serde_json::to_string(&call.arguments).unwrap_or_default();
            utf16(&call.name) + utf16(&arguments)
        }
    }
}

/// The system prompt and the tools that a message declares, which each request after it has. As in today's pi.
fn system_chars(message: &Value) -> u64 {
    let sections = message["sections"].as_object().into_iter().flatten();
    let sections = sections.filter_map(|(_, section)| section.as_str());
    let texts = sections.chain(message["content"].as_str());
    let tools = message.get("toolsAdded").map(ToString::to_string);
    texts.chain(tools.as_deref()).map(utf16).sum()
}

fn utf16(text: &str) -> u64 {
    // ASCII has one UTF-16 unit per byte, so nothing has to be decoded.
    if text.is_ascii() {
        text.len() as u64
    } else {
        text.encode_utf16().count() as u64
    }
}
