//! Detects answers that failed because the context is too long (pi-core.md 4.3, pi-1.5-delta.md 5). `agent` decides what
//! follows.

use wire::{AssistantMessage, StopReason};

use crate::pattern::matches;

/// Texts of an overflow, lower case; `#` stands for digits, `*` for anything short.
const OVERFLOW: [&str; 28] = [
    "prompt is too long",
    "prompt too long",
    "request_too_large",
    "input is too long for requested model",
    "exceeds the context window",
    "context window exceeded",
    "maximum context length of #",
    "maximum context length is # tokens",
    "maximum context length (#)",
    "input token count*exceeds the maximum",
    "maximum prompt length is #",
    "reduce the length of the messages",
    "is longer than the model's context length",
    "exceeds the limit of #",
    "exceeds the available context size",
    "greater than the context length",
    "context window exceeds limit",
    "exceeded model token limit",
    "too large for model with # maximum context length",
    "model_context_window_exceeded",
    "prompt exceeds max length",
    "context length exceeded",
    "context_length_exceeded",
    "too many tokens",
    "token limit exceeded",
    "maximum allowed input length of #",
    "but the configured context size is #",
    "range of input length should be",
];

/// Returns true if the answer failed because the conversation does not fit, or was silently cut to fit.
#[must_use]
pub fn is_context_overflow(message: &AssistantMessage, context_window: u64) -> bool {
    let usage = &message.usage;
    let prompt = usage.input.saturating_add(usage.cache_read);
    match message.stop_reason {
        StopReason::Error => message
            .error_message
            .as_deref()
            .is_some_and(|text| says_overflow(text, &message.provider)),
        StopReason::Stop => context_window > 0 && prompt > context_window,
        StopReason::Length => {
            // At least 99 % of the window.
            context_window > 0
                && usage.output == 0
                && prompt.saturating_mul(100) >= context_window.saturating_mul(99)
        }
        StopReason::ToolUse | StopReason::Aborted | StopReason::Deferred | StopReason::Pending => false,
    }
}

/// Judges the words of an error.
fn says_overflow(text: &str, provider: &str) -> bool {
    let text = text.to_lowercase();
    let excluded = text.starts_with("throttling error:")
        || text.starts_with("service unavailable:")
        || text.contains("rate limit")
        || text.contains("too many requests");
    !excluded && (too_large(&text, provider) || OVERFLOW.iter().any(|pattern| matches(&text, pattern)))
}

/// Status 413, in front or after the name of an API; at Cerebras also a status without any words.
fn too_large(text: &str, provider: &str) -> bool {
    let status = |text: &str, number: &str| {
        text.strip_prefix(number)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
    };
    let named = text.split_once(" api error (").is_some_and(|(name, rest)| {
        !name.is_empty() && !name.contains([':', '\n']) && rest.starts_with("413):")
    });
    let wordless = provider == "cerebras" && text.contains("(no body)") && status(text, "400");
    named || status(text, "413") || wordless
}
