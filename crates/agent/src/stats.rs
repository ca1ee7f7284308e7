//! Counts over a conversation: tokens, cost, how full the context is (pi-core.md 3.3, 3.8). How tokens are estimated lives in
//! `estimate`, what the whole file cost in `spending`.

use std::sync::Arc;

use wire::Message;
use wire::state::{ContextUsage, TokenStats};

use crate::estimate::Used;

pub use crate::estimate::{estimate, weight};

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
                let (tokens, usage) = (&mut counts.tokens, &answer.usage);
                // Saturating: a file may contain any numbers.
                for (sum, count) in [
                    (&mut tokens.input, usage.input),
                    (&mut tokens.output, usage.output),
                    (&mut tokens.cache_read, usage.cache_read),
                    (&mut tokens.cache_write, usage.cache_write),
                    (&mut tokens.reasoning, usage.reasoning.unwrap_or_default()),
                ] {
                    *sum = sum.saturating_add(count);
                }
                counts.cost += answer.usage.cost.total;
            }
            _ => {}
        }
    }
    let tokens = &mut counts.tokens;
    // The sum of the parts, since `totalTokens` may be 0 (pi-core.md 3.2).
    let parts = [tokens.input, tokens.output, tokens.cache_read, tokens.cache_write];
    tokens.total = parts.into_iter().fold(0, u64::saturating_add);
    counts
}

/// Tokens in the context: what the last good answer reported plus an estimate of everything after it; an estimate of all
/// when no answer reported anything. As in pi, what clients see counts failed answers, which no request contains.
#[must_use]
pub fn context_tokens(messages: &[Arc<Message>]) -> u64 {
    Used::counted(messages.iter().rev(), estimate).tokens()
}

/// How full the context is. `kept` is the number of messages that the newest compaction left; answers among them still
/// carry the size of the context before it, so without an answer after them nothing is known.
#[must_use]
pub fn context_usage(messages: &[Arc<Message>], context_window: u64, kept: usize) -> Option<ContextUsage> {
    // A window of 0 is unknown (pi-core.md 3.2).
    if context_window == 0 {
        return None;
    }
    let mut newer = messages
        .iter()
        .skip(kept)
        .filter_map(|message| message.as_assistant());
    // Clients get null until the next answer (behaviour.md 8.9).
    let known = kept == 0 || newer.any(|answer| answer.reported_tokens().is_some());
    let tokens = known.then(|| context_tokens(messages));
    #[expect(clippy::cast_precision_loss, reason = "token counts stay far below 2^53")]
    let percent = tokens.map(|tokens| tokens as f64 / context_window as f64 * 100.0);
    Some(ContextUsage {
        tokens,
        context_window,
        percent,
    })
}
