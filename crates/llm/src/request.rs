//! What a caller asks of a model. How it is written for a provider lives in the families.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use auth::{Environment, Secret};
use serde_json::Value;
use wire::{Message, Model, ThinkingLevel, ToolSpec};

use crate::limits::{IDLE_TIMEOUT, RETRY_AFTER_CAP};
use crate::prompt_history::EarlierRequests;
use crate::{ChangeHeaders, OnResponse};

/// How long a provider should keep the prompt in its cache (providers.md 2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CacheRetention {
    /// No markers and no affinity headers.
    None,
    /// The provider's short time, minutes.
    #[default]
    Short,
    /// An hour or a day where the provider offers it.
    Long,
}

/// Token budgets per thinking level; absent means the default (providers.md 2.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Budgets {
    /// Default 1,024 tokens.
    pub minimal: Option<u64>,
    /// Default 2,048 tokens.
    pub low: Option<u64>,
    /// Default 8,192 tokens.
    pub medium: Option<u64>,
    /// Default 16,384 tokens.
    pub high: Option<u64>,
    /// The levels above; the default is the budget of `high`.
    pub above_high: Option<u64>,
}

impl Budgets {
    /// Tokens for a level; 0 for `off`.
    #[must_use]
    pub fn tokens(&self, level: ThinkingLevel) -> u64 {
        match level {
            ThinkingLevel::Off => 0,
            ThinkingLevel::Minimal => self.minimal.unwrap_or(1024),
            ThinkingLevel::Low => self.low.unwrap_or(2048),
            ThinkingLevel::Medium => self.medium.unwrap_or(8192),
            ThinkingLevel::High => self.high.unwrap_or(16_384),
            ThinkingLevel::Xhigh | ThinkingLevel::Max => self.above_high.or(self.high).unwrap_or(16_384),
        }
    }
}

/// One request to a model.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// Which model.
    pub model: Model,
    /// Its key; none for servers that want none.
    pub api_key: Option<Secret>,
    /// True if the key is the token of a login. It is then looked up again when the request is sent, and refreshed if
    /// it has expired or is refused.
    pub is_login: bool,
    /// Headers of the model and of the call, resolved; they replace headers of the same name.
    pub headers: Vec<(String, String)>,
    /// The system prompt; empty for none.
    pub system_prompt: String,
    /// The conversation: roles user, assistant and toolResult; others are left out.
    pub messages: Vec<Arc<Message>>,
    /// Tools the model may call.
    pub tools: Vec<ToolSpec>,
    /// How much it may reason.
    pub thinking: ThinkingLevel,
    /// Earlier requests of the session; see [`crate::PromptHistory`]. Empty for a request that stands alone.
    pub earlier: EarlierRequests,
    /// What the levels mean in tokens.
    pub thinking_budgets: Budgets,
    /// How long the answer may be.
    pub output: OutputBounds,
    /// Id of the session, for cache keys and affinity headers.
    pub session_id: Option<String>,
    /// Prompt caching.
    pub cache_retention: CacheRetention,
    /// How long the provider may be silent before and during an answer.
    pub timeouts: Timeouts,
    /// How often a failed HTTP request is repeated below the surface (pi-core.md 4.2).
    pub provider_retries: u32,
    /// A provider that asks for a longer wait than this before a retry is not waited for.
    pub max_retry_delay: Duration,
    /// Unix time in milliseconds at which the request was started; goes into the answer.
    pub timestamp: i64,
    /// Variables for families that find addresses or credentials by them (Bedrock, Vertex, Azure).
    pub environment: Environment,
    /// How freely the model picks its words; absent means the provider's default.
    pub temperature: Option<f64>,
    /// Which tools it has to call; absent means as it likes.
    pub tool_choice: Option<ToolChoice>,
    /// What pi changed after 0.74 in requests and answers.
    pub conventions: Conventions,
    /// Functions of extensions that see or change the request.
    pub hooks: RequestHooks,
}

/// How long a provider may be silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until its response begins, for each attempt.
    pub response: Duration,
    /// Between two pieces of its response.
    pub idle: Duration,
}

impl From<Duration> for Timeouts {
    /// The same time before and during a response.
    fn from(time: Duration) -> Self {
        Self {
            response: time,
            idle: time,
        }
    }
}

/// Bounds of an answer, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutputBounds {
    /// Output limit of the caller; absent means the model's own.
    pub asked: Option<u64>,
    /// What the window leaves for the answer, if the session has estimated it: the output limit is not higher.
    pub room: Option<u64>,
}

/// What differs between agents of the family in requests and answers. The default is that of pi 0.74.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Conventions {
    /// True if token counts also state the usual case: that the total was computed, and that nothing was written to the cache
    /// for an hour (pi-1.5-delta.md 3).
    pub full_usage: bool,
    /// The form in which the model gets the reasoning of other models.
    pub foreign_thinking: ForeignThinking,
    /// How a request for a model of Anthropic's API finds out whether the model chooses its own effort.
    pub adaptive_thinking: AdaptiveThinking,
    /// True if reasoning of chat completions keeps its details as its signature, and with them what a router's provider wants back.
    /// Otherwise only encrypted details are kept, as signatures of the calls that they name.
    pub keeps_reasoning_details: bool,
    /// True if tools of OpenAI's APIs, ChatGPT plans, Mistral, Gemini and Bedrock are strict where the tool asks for it and the model
    /// accepts it (`supportsStrictMode`), and if those of chat completions do not state it for other models.
    pub strict_by_flag: bool,
    /// True if the text of an HTTP error of OpenAI's APIs has the whole error object, not only its message.
    pub error_objects: bool,
    /// True if the session header of the Responses API is `session-id` and not `session_id`, which some proxies drop.
    pub dashed_session_header: bool,
    /// True if an answer of Anthropic's API names the model that gave it, if that is another one.
    pub names_answering_model: bool,
    /// True if an answer of Claude after refused strict tools says so, with the error (`diagnostics`).
    pub strict_diagnostics: bool,
    /// True if parts of the Gemini API with an empty text and no signature are left out. The last one of an answer is usually empty.
    pub omits_empty_text: bool,
}

/// Which models of Anthropic's API are asked for adaptive thinking instead of a token budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AdaptiveThinking {
    /// Models with the flag `forceAdaptiveThinking`, and models without the flag if their id names a model of the list that has it
    /// (recorded from pi 0.74).
    #[default]
    ByFlagOrId,
    /// Models with the flag (recorded from pi 1.5.2).
    ByFlag,
}

/// The form in which a model gets the reasoning that another model wrote earlier in the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForeignThinking {
    /// As text of the answer (recorded from pi 0.74).
    #[default]
    Text,
    /// Not at all (recorded from pi 1.5.2): as text, the model takes the reasoning for a part of the visible answer.
    Omit,
}

/// Functions that see or change a request on its way.
#[derive(Debug, Clone, Default)]
pub struct RequestHooks {
    /// Changes the body before it is sent.
    pub rewrite: Option<Rewrite>,
    /// Changes the headers before it is sent.
    pub change_headers: Option<ChangeHeaders>,
    /// Gets the head of each response.
    pub on_response: Option<OnResponse>,
}

/// Which tools a model has to call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolChoice {
    /// As it likes.
    Auto,
    /// At least one.
    Any,
    /// None.
    None,
    /// This one.
    Tool(String),
}

/// What a [`Rewrite`] gives back.
pub type Rewritten = Pin<Box<dyn Future<Output = Value> + Send>>;

/// Changes the body of a request, as JSON, before it is sent.
#[derive(Clone)]
pub struct Rewrite(Arc<dyn Fn(Value) -> Rewritten + Send + Sync>);

impl Rewrite {
    /// Changes bodies with a function.
    pub fn new(change: impl Fn(Value) -> Rewritten + Send + Sync + 'static) -> Self {
        Self(Arc::new(change))
    }

    /// Returns the body as it is sent. A body that is no JSON is unchanged.
    pub(crate) async fn apply(&self, body: Vec<u8>) -> Vec<u8> {
        let Ok(value) = serde_json::from_slice(&body) else {
            return body;
        };
        serde_json::to_vec(&(self.0)(value).await).unwrap_or(body)
    }
}

impl fmt::Debug for Rewrite {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Rewrite")
    }
}

impl ModelRequest {
    /// A request with defaults: no messages, no tools, thinking off, short caching, no retries.
    #[must_use]
    pub fn new(model: Model, timestamp: i64) -> Self {
        Self {
            model,
            api_key: None,
            is_login: false,
            headers: Vec::new(),
            system_prompt: String::new(),
            messages: Vec::new(),
            tools: Vec::new(),
            thinking: ThinkingLevel::Off,
            earlier: EarlierRequests::default(),
            thinking_budgets: Budgets::default(),
            output: OutputBounds::default(),
            session_id: None,
            cache_retention: CacheRetention::default(),
            timeouts: IDLE_TIMEOUT.into(),
            provider_retries: 0,
            max_retry_delay: RETRY_AFTER_CAP,
            timestamp,
            environment: Environment::default(),
            temperature: None,
            tool_choice: None,
            conventions: Conventions::default(),
            hooks: RequestHooks::default(),
        }
    }

    /// The same prompt again for one token of output, without retries: it keeps the entry of the prompt in the provider's cache.
    /// Keeps no encoded messages: the session may be idle, and its next run may be far away.
    #[must_use]
    pub fn refresh(&self, timestamp: i64) -> Self {
        let mut refresh = self.clone();
        refresh.output.asked = Some(1);
        refresh.provider_retries = 0;
        refresh.timestamp = timestamp;
        refresh.earlier.stand_alone();
        refresh
    }

    /// The output limit to ask for: the caller's, else the model's; none when neither is known. It fits into the window.
    pub(crate) fn output_limit(&self) -> Option<u64> {
        let limit = self.output.asked.unwrap_or(self.model.max_tokens);
        (limit > 0).then(|| self.fit(limit))
    }

    /// The most that the answer may take with its reasoning. The caller's limit does not count.
    pub(crate) fn most_output(&self) -> u64 {
        let own = Some(self.model.max_tokens).filter(|tokens| *tokens > 0);
        self.fit(own.unwrap_or(u64::MAX))
    }

    fn fit(&self, limit: u64) -> u64 {
        limit.min(self.output.room.unwrap_or(u64::MAX))
    }

    /// The session header of the Responses API.
    pub(crate) fn session_header(&self) -> &'static str {
        if self.conventions.dashed_session_header {
            "session-id"
        } else {
            "session_id"
        }
    }

    /// Session id to send as a hint, unless caching is off.
    pub(crate) fn affinity(&self) -> Option<&str> {
        match self.cache_retention {
            CacheRetention::None => None,
            CacheRetention::Short | CacheRetention::Long => self.session_id.as_deref(),
        }
    }
}
