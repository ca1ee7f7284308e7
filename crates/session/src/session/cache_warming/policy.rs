//! When a refresh of a prompt cache is due, and whether it pays for itself (docs/guides/models-and-providers.md, "Cache warming").

use std::time::Duration;

use llm::CacheRetention;
use llm::compat::flag;
use wire::{Model, ThinkingLevel, Usage};

use crate::limits;

/// US dollars that a refresh has to be expected to save.
pub(super) const LEAST_SAVINGS: f64 = 0.05;
/// How likely the next request comes in time while nothing runs. The figure is that of pi 1.5.
const IDLE_PROBABILITY: f64 = 0.15;

/// What happens to the entry of a prompt cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// It is refreshed.
    Warm,
    /// It is left to expire; the next request of the session begins anew.
    Stop,
}

impl Action {
    /// The word in the event `cache_warming_decision`.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::Stop => "stop",
        }
    }

    /// The action of a word.
    pub(super) fn parse(word: &str) -> Option<Self> {
        [Self::Warm, Self::Stop]
            .into_iter()
            .find(|action| action.as_str() == word)
    }
}

/// What a refresh costs and saves, in US dollars.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Economics {
    /// The price of the refresh.
    pub(super) warm_cost: f64,
    /// What the next request costs more if the entry has expired.
    pub(super) miss_cost: f64,
    /// How likely the next request comes before the refreshed entry expires.
    pub(super) continuation_probability: f64,
}

impl Economics {
    /// The economics of an entry with the prompt of a request. `idle`: nothing runs.
    pub(super) fn new(model: &Model, prompt_tokens: u64, idle: bool) -> Self {
        let price = |usage: Usage| {
            let mut usage = usage;
            usage.price(&model.cost);
            usage.cost.total
        };
        let read = |output| {
            price(Usage {
                cache_read: prompt_tokens,
                output,
                ..Usage::default()
            })
        };
        // A provider without a price for writing asks the usual price of the input for a miss.
        let miss = price(match model.cost.cache_write > 0.0 {
            true => Usage {
                cache_write: prompt_tokens,
                ..Usage::default()
            },
            false => Usage {
                input: prompt_tokens,
                ..Usage::default()
            },
        });
        Self {
            warm_cost: read(1),
            // Some prices are 0 or negative (providers.md 2.4).
            miss_cost: (miss - read(0)).max(0.0),
            // A run that is active sends its next request when its calls have ended.
            continuation_probability: if idle { IDLE_PROBABILITY } else { 1.0 },
        }
    }

    /// What a refresh is expected to save.
    pub(super) fn expected_savings(&self) -> f64 {
        self.continuation_probability * self.miss_cost - self.warm_cost
    }

    /// What happens unless an extension decides otherwise.
    pub(super) fn action(&self) -> Action {
        match self.expected_savings() >= LEAST_SAVINGS {
            true => Action::Warm,
            false => Action::Stop,
        }
    }
}

/// How long the model keeps the entry of a request. None if it is not known, or nothing is cached.
pub(super) fn lifetime(model: &Model, retention: CacheRetention) -> Option<Duration> {
    let cache = model.prompt_cache.as_ref()?;
    let seconds = match retention {
        CacheRetention::None => None,
        CacheRetention::Short => cache.short,
        CacheRetention::Long => cache.long,
    };
    seconds.map(Duration::from_secs)
}

/// How long after a request its entry is refreshed: nine tenths of the lifetime, and at least [`limits::CACHE_WARMING_MARGIN`] before its end. None if it
/// expires too soon.
pub(super) fn delay(lifetime: Duration) -> Option<Duration> {
    let latest = lifetime
        .checked_sub(limits::CACHE_WARMING_MARGIN)
        .filter(|latest| !latest.is_zero())?;
    Some(latest.min(lifetime / 10 * 9))
}

/// Returns true if the request can be sent again for one token of output without another entry in the cache. Claude models without
/// adaptive thinking get a budget that depends on the output limit, and the entry depends on the budget.
pub(super) fn is_replayable(model: &Model, thinking: ThinkingLevel) -> bool {
    thinking == ThinkingLevel::Off
        || model.api != "anthropic-messages"
        || flag(model, "forceAdaptiveThinking", false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(fields: &serde_json::Value) -> Model {
        let mut model = serde_json::json!({"id": "m", "name": "M", "api": "anthropic-messages", "provider": "anthropic",
            "baseUrl": "http://localhost:1", "reasoning": true, "input": ["text"], "contextWindow": 200_000, "maxTokens": 8000,
            "cost": {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75}});
        for (key, value) in fields.as_object().unwrap() {
            model[key] = value.clone();
        }
        serde_json::from_value(model).unwrap()
    }

    #[test]
    fn refresh_is_sent_before_the_lifetime_ends() {
        let seconds = |lifetime| delay(Duration::from_secs(lifetime)).map(|delay| delay.as_secs());
        assert_eq!(seconds(300), Some(270));
        assert_eq!(seconds(3600), Some(3240));
        assert_eq!(seconds(60), Some(50), "ten seconds remain");
        assert_eq!(seconds(10), None);
        assert_eq!(seconds(0), None);
    }

    #[test]
    fn lifetime_depends_on_the_retention() {
        let model = model(&serde_json::json!({"promptCache": {"short": 300}}));
        assert_eq!(
            lifetime(&model, CacheRetention::Short),
            Some(Duration::from_secs(300))
        );
        assert_eq!(lifetime(&model, CacheRetention::Long), None);
        assert_eq!(lifetime(&model, CacheRetention::None), None);
        let unknown = self::model(&serde_json::json!({}));
        assert_eq!(lifetime(&unknown, CacheRetention::Short), None);
    }

    #[test]
    fn refresh_of_a_large_prompt_pays() {
        let model = model(&serde_json::json!({}));
        let running = Economics::new(&model, 100_000, false);
        // 100,000 tokens: 0.375 written, 0.03 read.
        assert!((running.miss_cost - 0.345).abs() < 1e-9, "{running:?}");
        assert!((running.warm_cost - 0.030_015).abs() < 1e-9, "{running:?}");
        assert_eq!(running.action(), Action::Warm);
        // Idle: 0.15 * 0.345 - 0.03 is 0.022.
        assert_eq!(Economics::new(&model, 100_000, true).action(), Action::Stop);
        assert_eq!(Economics::new(&model, 400_000, true).action(), Action::Warm);
        assert_eq!(Economics::new(&model, 0, false).action(), Action::Stop);
    }

    #[test]
    fn miss_without_write_price_costs_input() {
        let model = model(
            &serde_json::json!({"cost": {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 0}}),
        );
        let economics = Economics::new(&model, 1_000_000, false);
        assert!((economics.miss_cost - 2.7).abs() < 1e-9, "{economics:?}");
    }

    #[test]
    fn budget_thinking_of_claude_is_not_repeated() {
        let plain = model(&serde_json::json!({}));
        assert!(is_replayable(&plain, ThinkingLevel::Off));
        assert!(!is_replayable(&plain, ThinkingLevel::High));
        let adaptive = model(&serde_json::json!({"compat": {"forceAdaptiveThinking": true}}));
        assert!(is_replayable(&adaptive, ThinkingLevel::High));
        let other = model(&serde_json::json!({"api": "openai-responses"}));
        assert!(is_replayable(&other, ThinkingLevel::High));
    }
}
