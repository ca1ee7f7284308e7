//! Counts over a conversation: tokens, cost, how full the context is (pi-core.md 3.3, 3.8).

use std::sync::Arc;

use wire::content::AssistantBlock;
use wire::message::UserContent;
use wire::state::{ContextUsage, TokenStats};
use wire::{AssistantMessage, Message, StopReason, UserBlock};

/// Tokens that an image in a tool result is taken for.
const IMAGE_TOKENS: u64 = 1_200;
/// Characters (UTF-16 units) per token.
const CHARS_PER_TOKEN: u64 = 4;

/// Counts of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Counts {
    /// Messages of role `user`.
    pub user: usize,
    /// Messages of role `assistant`.
    pub assistant: usize,
    /// Tool calls.
    pub tool_calls: usize,
    /// Messages of role `toolResult`.
    pub tool_results: usize,
    /// Token sums.
    pub tokens: TokenStats,
    /// Cost in US dollars.
    pub cost: f64,
}

/// Counts a conversation.
#[must_use]
pub fn count(messages: &[Arc<Message>]) -> Counts {
    let mut counts = Counts::default();
    for message in messages {
        match message.as_ref() {
            Message::User(_) => counts.user += 1,
            Message::ToolResult(_) => counts.tool_results += 1,
            Message::Assistant(answer) => {
                counts.assistant += 1;
                counts.tool_calls += answer.tool_calls().count();
                counts.tokens.input += answer.usage.input;
                counts.tokens.output += answer.usage.output;
                counts.tokens.cache_read += answer.usage.cache_read;
                counts.tokens.cache_write += answer.usage.cache_write;
                counts.cost += answer.usage.cost.total;
            }
            _ => {}
        }
    }
    let tokens = &mut counts.tokens;
    tokens.total = tokens.input + tokens.output + tokens.cache_read + tokens.cache_write;
    counts
}

/// Estimate of the tokens a message takes up (pi-core.md 3.3).
#[must_use]
pub fn estimate(message: &Message) -> u64 {
    let chars = match message {
        Message::User(user) => user_chars(&user.content, 0),
        Message::Assistant(answer) => answer.content.iter().map(block_chars).sum(),
        Message::ToolResult(result) => blocks_chars(&result.content, IMAGE_TOKENS * CHARS_PER_TOKEN),
        Message::Custom(custom) => user_chars(&custom.content, IMAGE_TOKENS * CHARS_PER_TOKEN),
        Message::BashExecution(bash) => utf16(&bash.command) + utf16(&bash.output),
        Message::BranchSummary(branch) => utf16(&branch.summary),
        Message::CompactionSummary(compaction) => utf16(&compaction.summary),
        _ => 0,
    };
    chars.div_ceil(CHARS_PER_TOKEN)
}

/// Tokens in the context: what the last good answer reported plus an estimate of everything after it; an estimate of all
/// when no answer reported anything.
#[must_use]
pub fn context_tokens(messages: &[Arc<Message>]) -> u64 {
    let reported = messages.iter().enumerate().rev().find_map(|(at, message)| {
        let answer = message.as_assistant()?;
        counts_for_context(answer).then(|| (at, answer.usage.context_tokens()))
    });
    let (after, tokens) = reported.map_or((0, 0), |(at, tokens)| (at + 1, tokens));
    tokens
        + messages
            .iter()
            .skip(after)
            .map(|message| estimate(message))
            .sum::<u64>()
}

/// How full the context is. `kept` is the number of messages that the newest compaction left; answers among them still
/// carry the size of the context before it, so without an answer after them nothing is known.
#[must_use]
pub fn context_usage(messages: &[Arc<Message>], context_window: u64, kept: usize) -> Option<ContextUsage> {
    if context_window == 0 {
        return None;
    }
    let mut newer = messages
        .iter()
        .skip(kept)
        .filter_map(|message| message.as_assistant());
    let known = kept == 0 || newer.any(counts_for_context);
    let tokens = known.then(|| context_tokens(messages));
    #[expect(clippy::cast_precision_loss, reason = "token counts stay far below 2^53")]
    let percent = tokens.map(|tokens| tokens as f64 / context_window as f64 * 100.0);
    Some(ContextUsage {
        tokens,
        context_window,
        percent,
    })
}

fn counts_for_context(answer: &AssistantMessage) -> bool {
    !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
        && answer.usage.context_tokens() > 0
}

fn user_chars(content: &UserContent, per_image: u64) -> u64 {
    match content {
        UserContent::Text(text) => utf16(text),
        UserContent::Blocks(blocks) => blocks_chars(blocks, per_image),
    }
}

fn blocks_chars(blocks: &[UserBlock], per_image: u64) -> u64 {
    let chars = blocks.iter().map(|block| match block {
        UserBlock::Text(text) => utf16(&text.text),
        UserBlock::Image(_) => per_image,
    });
    chars.sum()
}

fn block_chars(block: &AssistantBlock) -> u64 {
    match block {
        AssistantBlock::Text(text) => utf16(&text.text),
        AssistantBlock::Thinking(thinking) => utf16(&thinking.thinking),
        AssistantBlock::ToolCall(call) => {
            let arguments = serde_json::to_string(&call.arguments).unwrap_or_default();
            utf16(&call.name) + utf16(&arguments)
        }
    }
}

fn utf16(text: &str) -> u64 {
    if text.is_ascii() {
        text.len() as u64
    } else {
        text.encode_utf16().count() as u64
    }
}
