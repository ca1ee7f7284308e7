//! A model as clients see it, and thinking levels (pi-core.md 8.2, behaviour.md 4). How a model is reached lives in `llm`.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How much a model thinks before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ThinkingLevel {
    /// No thinking.
    Off,
    /// About 1,000 tokens.
    Minimal,
    /// About 2,000 tokens.
    Low,
    /// About 8,000 tokens.
    #[default]
    Medium,
    /// About 16,000 tokens.
    High,
    /// More than high; only models that list it.
    Xhigh,
    /// The most a model offers; only models that list it.
    Max,
}

impl ThinkingLevel {
    /// All levels, weakest first.
    pub const ALL: [Self; 7] = [
        Self::Off,
        Self::Minimal,
        Self::Low,
        Self::Medium,
        Self::High,
        Self::Xhigh,
        Self::Max,
    ];

    /// The wire name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }

    /// The level with this wire name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == name)
    }
}

impl fmt::Display for ThinkingLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Prices in US dollars per million tokens.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Prices {
    /// Uncached input.
    #[serde(serialize_with = "crate::number::serialize")]
    pub input: f64,
    /// Output.
    #[serde(serialize_with = "crate::number::serialize")]
    pub output: f64,
    /// Cache reads.
    #[serde(serialize_with = "crate::number::serialize")]
    pub cache_read: f64,
    /// Cache writes.
    #[serde(serialize_with = "crate::number::serialize")]
    pub cache_write: f64,
    /// Other prices for larger inputs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<PriceTier>,
}

/// Prices for all tokens of a request whose input is larger than a size, in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct PriceTier {
    /// The size in tokens, including cached tokens.
    pub input_tokens_above: u64,
    /// Uncached input.
    #[serde(serialize_with = "crate::number::serialize")]
    pub input: f64,
    /// Output.
    #[serde(serialize_with = "crate::number::serialize")]
    pub output: f64,
    /// Cache reads.
    #[serde(serialize_with = "crate::number::serialize")]
    pub cache_read: f64,
    /// Cache writes.
    #[serde(serialize_with = "crate::number::serialize")]
    pub cache_write: f64,
}

impl Prices {
    /// Returns true if input or output has a price. Prices of zero are those of models whose price is unknown.
    #[must_use]
    pub fn are_known(&self) -> bool {
        self.input > 0.0 || self.output > 0.0
    }

    /// The prices for an input of so many tokens: those of the highest tier below it, else the plain ones.
    #[must_use]
    pub fn at(&self, input_tokens: u64) -> PriceTier {
        let exceeded = self
            .tiers
            .iter()
            .filter(|tier| input_tokens > tier.input_tokens_above);
        let highest = exceeded.max_by_key(|tier| tier.input_tokens_above);
        highest.copied().unwrap_or(PriceTier {
            input_tokens_above: 0,
            input: self.input,
            output: self.output,
            cache_read: self.cache_read,
            cache_write: self.cache_write,
        })
    }
}

/// What a model accepts as input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Modality {
    /// Text.
    Text,
    /// Images.
    Image,
    /// Another kind; never sent.
    #[serde(other)]
    Other,
}

/// Description of a model. Request headers are not included, since they can contain keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// Id within the provider.
    pub id: String,
    /// Its name.
    pub name: String,
    /// API family, for example `anthropic-messages`.
    pub api: String,
    /// Provider id.
    pub provider: String,
    /// Base address of requests.
    #[serde(default)]
    pub base_url: String,
    /// Whether it supports thinking.
    #[serde(default)]
    pub reasoning: bool,
    /// Value for the provider by thinking level; null if the level is not available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_level_map: Option<Map<String, Value>>,
    /// Input kinds.
    #[serde(default)]
    pub input: Vec<Modality>,
    /// Prices.
    #[serde(default)]
    pub cost: Prices,
    /// Context window in tokens.
    #[serde(default)]
    pub context_window: u64,
    /// Output limit in tokens.
    #[serde(default)]
    pub max_tokens: u64,
    /// Fields that are added to the body of each request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling_params: Option<Box<Map<String, Value>>>,
    /// The same for single thinking levels; they take the place of fields of the same name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling_params_by_thinking_level: Option<Box<Map<String, Value>>>,
    /// Compat flags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compat: Option<Map<String, Value>>,
    /// What the provider accepts in one request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_limits: Option<InputLimits>,
    /// How long the provider keeps prompts, for example to warn before an answer becomes expensive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_cache: Option<PromptCache>,
    /// Kind of the model in the catalogue: `chat`. Missing for a model of `models.json` or of a local server.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// How long a provider keeps a prompt after its last use, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct PromptCache {
    /// With short retention.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short: Option<u64>,
    /// With long retention.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long: Option<u64>,
}

/// What a provider accepts in one request for a model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct InputLimits {
    /// Largest request body in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_request_bytes: Option<u64>,
    /// Limits of images.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<ImageLimits>,
}

/// How many images a provider accepts, and of which size.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ImageLimits {
    /// Most images in one message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_per_message: Option<usize>,
    /// Most images in the whole request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_per_request: Option<usize>,
    /// Size to which a larger image is reduced before it enters the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resize: Option<ImageSize>,
}

/// Largest size of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ImageSize {
    /// Width in pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_width: Option<u32>,
    /// Height in pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_height: Option<u32>,
    /// Size of the base64 text in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u64>,
    /// First JPEG quality to try, 1 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jpeg_quality: Option<u8>,
}

impl Model {
    /// Returns true if the model accepts images.
    #[must_use]
    pub fn sees_images(&self) -> bool {
        self.input.contains(&Modality::Image)
    }

    /// Same provider, API and id: signatures and ids of one may be sent back to the other (providers.md 2.2).
    #[must_use]
    pub fn is_same(&self, provider: &str, api: &str, id: &str) -> bool {
        self.provider == provider && self.api == api && self.id == id
    }

    /// The levels this model offers, weakest first (providers.md 2.5): only `off` when it cannot reason; a level mapped to
    /// null is missing; `xhigh` and `max` exist only when mapped to a string.
    #[must_use]
    pub fn thinking_levels(&self) -> Vec<ThinkingLevel> {
        if !self.reasoning {
            return vec![ThinkingLevel::Off];
        }
        ThinkingLevel::ALL
            .into_iter()
            .filter(|level| self.offers(*level))
            .collect()
    }

    fn offers(&self, level: ThinkingLevel) -> bool {
        let mapped = self
            .thinking_level_map
            .as_ref()
            .and_then(|map| map.get(level.as_str()));
        match level {
            ThinkingLevel::Xhigh | ThinkingLevel::Max => mapped.is_some_and(Value::is_string),
            _ => !mapped.is_some_and(Value::is_null),
        }
    }

    /// The offered level nearest to `wanted`: itself, else the next stronger, else the next weaker (behaviour.md 4.4).
    #[must_use]
    pub fn clamp_thinking(&self, wanted: ThinkingLevel) -> ThinkingLevel {
        let levels = self.thinking_levels();
        let stronger = levels.iter().find(|level| **level >= wanted);
        stronger.or(levels.last()).copied().unwrap_or(ThinkingLevel::Off)
    }

    /// The string this model wants for a level, when its map names one.
    #[must_use]
    pub fn mapped_thinking(&self, level: ThinkingLevel) -> Option<&str> {
        self.thinking_level_map.as_ref()?.get(level.as_str())?.as_str()
    }
}
