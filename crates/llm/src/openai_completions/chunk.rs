//! The events of chat completions as they come; what they mean is decided in `stream`.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::billing::Bill;
use crate::json::{Count, Text};

/// One event. Only the first choice counts; there is never a second.
#[derive(Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) model: Text<'a>,
    #[serde(borrow, default)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    #[serde(default)]
    pub(super) usage: Option<Tokens>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

/// The answer. Moonshot puts the usage here.
#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(borrow, default)]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    pub(super) finish_reason: Text<'a>,
    #[serde(default)]
    pub(super) usage: Option<Tokens>,
}

/// What the answer gains. Content is a string or a list of parts; reasoning comes under one of three names or in parts.
#[derive(Default, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) reasoning_content: Text<'a>,
    #[serde(borrow, default)]
    pub(super) reasoning: Text<'a>,
    #[serde(borrow, default)]
    pub(super) reasoning_text: Text<'a>,
    #[serde(borrow, default)]
    pub(super) tool_calls: Option<Vec<Call<'a>>>,
    #[serde(borrow, default)]
    pub(super) reasoning_details: Option<&'a RawValue>,
}

/// A part of the content; reasoning has parts of its own.
#[derive(Deserialize)]
pub(super) struct Part<'a> {
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    #[serde(borrow, default)]
    pub(super) thinking: Option<Vec<Part<'a>>>,
}

/// A piece of a tool call.
#[derive(Deserialize)]
pub(super) struct Call<'a> {
    #[serde(default)]
    pub(super) index: Count,
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) function: Option<Function<'a>>,
}

/// Name and arguments; arguments are JSON in a string, at some servers JSON itself.
#[derive(Default, Deserialize)]
pub(super) struct Function<'a> {
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) arguments: Option<&'a RawValue>,
}

/// Token counts; `prompt_tokens` contains the cached ones.
#[derive(Default, Clone, Deserialize)]
pub(super) struct Tokens {
    #[serde(default)]
    pub(super) prompt_tokens: Count,
    #[serde(default)]
    pub(super) completion_tokens: Count,
    #[serde(default)]
    pub(super) total_tokens: Count,
    #[serde(default)]
    pub(super) prompt_cache_hit_tokens: Count,
    /// Kimi counts them here.
    #[serde(default)]
    pub(super) cached_tokens: Count,
    /// Mistral counts them here or in the details, of which it has two spellings.
    #[serde(default)]
    pub(super) num_cached_tokens: Count,
    #[serde(default)]
    pub(super) prompt_tokens_details: Option<Details>,
    #[serde(default)]
    pub(super) prompt_token_details: Option<Details>,
    #[serde(default)]
    pub(super) completion_tokens_details: Option<Reasoned>,
    #[serde(flatten)]
    pub(super) bill: Bill,
}

/// How many completion tokens were spent on reasoning.
#[derive(Default, Clone, Copy, Deserialize)]
pub(super) struct Reasoned {
    #[serde(default)]
    pub(super) reasoning_tokens: Count,
}

/// How many prompt tokens came from or went to a cache.
#[derive(Default, Clone, Copy, Deserialize)]
pub(super) struct Details {
    #[serde(default)]
    pub(super) cached_tokens: Count,
    #[serde(default)]
    pub(super) cache_write_tokens: Count,
}
