//! Token counts and cost of one model answer (pi-core.md 1.2).

use serde::{Deserialize, Serialize};

use crate::extra::Extra;
use crate::model::Prices;

/// Highest price that is believed, in US dollars per million tokens: a dollar per token.
pub const MAX_PRICE: f64 = 1_000_000.0;

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
    /// Sum of the four, or what the provider billed.
    #[serde(serialize_with = "crate::number::serialize")]
    pub total: f64,
    /// True if the provider reported `total`. Absent if it was computed from the model's prices; pi from 1.5 on writes false
    /// then (pi-1.5-delta.md 3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_from_provider: Option<bool>,
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
    /// Total according to the provider; 0 if it reports none.
    pub total_tokens: u64,
    /// The cost.
    pub cost: Cost,
    /// Output tokens spent on reasoning, part of `output`, when the provider says (pi-1.5-delta.md 3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
    /// Tokens written to the cache for an hour, part of `cacheWrite`.
    #[serde(rename = "cacheWrite1h", skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<u64>,
    /// Unknown fields.
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
                total_from_provider: both_reported(&self.cost, &other.cost),
            },
            reasoning: optional(self.reasoning, other.reasoning),
            cache_write_1h: optional(self.cache_write_1h, other.cache_write_1h),
            extra: Extra::default(),
        }
    }

    /// Fills `cost` from prices in US dollars per million tokens (providers.md 2.4; tiers: pi-1.5-delta.md 6). A price that is
    /// negative, no number or above [`MAX_PRICE`] counts as 0: it says nothing about what the user pays. Tokens written to the
    /// cache for an hour cost twice the input.
    pub fn price(&mut self, prices: &Prices) {
        #[expect(clippy::cast_precision_loss, reason = "token counts stay far below 2^53")]
        fn part(price: f64, tokens: u64) -> f64 {
            let price = if (0.0..=MAX_PRICE).contains(&price) {
                price
            } else {
                0.0
            };
            price / 1_000_000.0 * tokens as f64
        }
        let size = [self.input, self.cache_read, self.cache_write];
        let rates = prices.at(size.into_iter().fold(0, u64::saturating_add));
        let long = self.cache_write_1h.unwrap_or(0).min(self.cache_write);
        let cost = &mut self.cost;
        cost.input = part(rates.input, self.input);
        cost.output = part(rates.output, self.output);
        cost.cache_read = part(rates.cache_read, self.cache_read);
        cost.cache_write = part(rates.cache_write, self.cache_write - long) + part(rates.input * 2.0, long);
        cost.total = cost.input + cost.output + cost.cache_read + cost.cache_write;
    }
}

/// A sum is the provider's figure only if both parts are.
fn both_reported(a: &Cost, b: &Cost) -> Option<bool> {
    let (a, b) = (a.total_from_provider, b.total_from_provider);
    (a.is_some() || b.is_some()).then_some(a == Some(true) && b == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::PriceTier;

    fn cost(prices: &Prices, usage: Usage) -> Cost {
        let mut usage = usage;
        usage.price(prices);
        usage.cost
    }

    #[test]
    fn highest_exceeded_price_tier_applies_to_all_tokens() {
        let tier = |above, input| PriceTier {
            input_tokens_above: above,
            input,
            output: 2.0 * input,
            ..PriceTier::default()
        };
        let prices = Prices {
            input: 1.0,
            output: 2.0,
            tiers: vec![tier(500_000, 100.0), tier(200_000, 10.0)],
            ..Prices::default()
        };
        for (input, cached, wanted) in [(200_000, 0, 1.0), (150_000, 50_001, 10.0), (600_000, 0, 100.0)] {
            let usage = Usage {
                input,
                cache_write: cached,
                output: 1_000_000,
                ..Usage::default()
            };
            assert_eq!(cost(&prices, usage).output, 2.0 * wanted, "{input}");
        }
    }

    #[test]
    fn invalid_prices_count_as_zero() {
        for price in [-1.0, f64::NAN, f64::INFINITY, 1e9] {
            let prices = Prices {
                input: price,
                output: 3.0,
                ..Prices::default()
            };
            let usage = Usage {
                input: 1_000_000,
                output: 1_000_000,
                ..Usage::default()
            };
            let cost = cost(&prices, usage);
            assert_eq!((cost.input, cost.total), (0.0, 3.0), "{price}");
        }
    }

    #[test]
    fn hour_long_cache_write_costs_double_input() {
        let prices = Prices {
            input: 3.0,
            cache_write: 3.75,
            ..Prices::default()
        };
        let usage = Usage {
            cache_write: 3_000_000,
            cache_write_1h: Some(2_000_000),
            ..Usage::default()
        };
        assert_eq!(cost(&prices, usage).cache_write, 15.75);
    }

    #[test]
    fn written_cost_is_read_back_exactly() {
        // What costs of the same prices add up to would depend on how a program was built, were one digit lost on the way.
        for step in 1..10_000 {
            let cost = f64::from(step) * 0.1 / 1_000.0;
            let read: f64 = serde_json::from_str(&serde_json::to_string(&cost).unwrap()).unwrap();
            assert_eq!(read.to_bits(), cost.to_bits(), "{cost}");
        }
    }
}
