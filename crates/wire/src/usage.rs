//! Token counts and cost of one model answer (pi-core.md 1.2).

use serde::{Deserialize, Serialize};

use crate::extra::Extra;
use crate::model::Prices;

/// Cost in US dollars.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Cost {
    /// Of uncached input tokens.
    #[serde(serialize_with = "crate::number::serialize")]
    pub input: f64,
    /// Of output tokens.
    #[serde(serialize_with = "crate::number::serialize")]
    pub output: f64,
    /// Of tokens read from the provider's cache.
    #[serde(serialize_with = "crate::number::serialize")]
    pub cache_read: f64,
    /// Of tokens written to the provider's cache.
    #[serde(serialize_with = "crate::number::serialize")]
    pub cache_write: f64,
    /// Sum of the four.
    #[serde(serialize_with = "crate::number::serialize")]
    pub total: f64,
}

/// Token counts of one model answer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Input tokens that came from no cache.
    pub input: u64,
    /// Output tokens, reasoning included.
    pub output: u64,
    /// Input tokens read from the cache.
    pub cache_read: u64,
    /// Input tokens written to the cache.
    pub cache_write: u64,
    /// What the provider says is the sum; 0 when it says nothing.
    pub total_tokens: u64,
    /// What it costs.
    pub cost: Cost,
    /// Output tokens spent on reasoning, part of `output`, when the provider says (pi-1.5-delta.md 3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
    /// Tokens written to the cache for an hour, part of `cacheWrite`.
    #[serde(rename = "cacheWrite1h", skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<u64>,
    /// Members this version does not know.
    #[serde(flatten, skip_serializing_if = "Extra::is_empty")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub extra: Extra,
}

impl Usage {
    /// Tokens that the answer took up in the context window: `totalTokens`, or the sum of the four when that is 0
    /// (pi-core.md 3.2).
    #[must_use]
    pub fn context_tokens(&self) -> u64 {
        if self.total_tokens > 0 {
            self.total_tokens
        } else {
            self.input + self.output + self.cache_read + self.cache_write
        }
    }

    /// The sum of two answers' counts and costs.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let optional = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            total_tokens: self.total_tokens.saturating_add(other.total_tokens),
            cost: Cost {
                input: self.cost.input + other.cost.input,
                output: self.cost.output + other.cost.output,
                cache_read: self.cost.cache_read + other.cost.cache_read,
                cache_write: self.cost.cache_write + other.cost.cache_write,
                total: self.cost.total + other.cost.total,
            },
            reasoning: optional(self.reasoning, other.reasoning),
            cache_write_1h: optional(self.cache_write_1h, other.cache_write_1h),
            extra: Extra::default(),
        }
    }

    /// Fills `cost` from prices in US dollars per million tokens (providers.md 2.4).
    pub fn price(&mut self, prices: &Prices) {
        #[expect(clippy::cast_precision_loss, reason = "token counts stay far below 2^53")]
        fn part(price: f64, tokens: u64) -> f64 {
            price / 1_000_000.0 * tokens as f64
        }
        let cost = &mut self.cost;
        cost.input = part(prices.input, self.input);
        cost.output = part(prices.output, self.output);
        cost.cache_read = part(prices.cache_read, self.cache_read);
        cost.cache_write = part(prices.cache_write, self.cache_write);
        cost.total = cost.input + cost.output + cost.cache_read + cost.cache_write;
    }
}
