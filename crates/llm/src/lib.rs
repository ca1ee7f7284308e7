//! Model providers: one folder per API family, the stream of an answer, recording.
//!
//! What lives here: everything that knows how a provider wants to be asked and how it answers. What does not: what to ask
//! and what to do with the answer (`agent`), when to try a whole run again (`agent`, with the texts judged here), tools,
//! sessions, which models there are (`models`), credentials (`auth`). No environment reads: keys, proxies and paths are handed in.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod access;
mod adaptive;
mod answer;
mod anthropic;
mod bedrock;
mod billing;
mod body;
mod client;
pub mod compat;
mod conversation;
mod copilot;
mod encoded_history;
mod error;
mod event;
mod family;
mod framing;
mod google;
mod hooks;
mod http;
mod ids;
mod image_limits;
mod json;
mod lent;
pub mod limits;
mod login_request;
mod message_thread;
mod mistral;
mod offline;
mod openai_codex;
mod openai_completions;
mod openai_responses;
mod opencode;
mod overflow;
mod pattern;
mod prompt_history;
mod quota;
mod request;
mod retry;
mod sse;
mod stream;
mod strict_refusal;
mod strict_schema;
pub mod tape;
mod trace;
mod transform;
mod tune;

#[cfg(test)]
mod tests;

pub use adaptive::thinks_adaptively;
pub use client::Client;
pub use error::LlmError;
pub use event::ModelEvent;
pub use family::{supports, takes_xhigh};
pub use hooks::{ChangeHeaders, ChangedHeaders, HeaderList, HeardResponse, OnResponse};
pub use http::{ClientConfig, Connector, ProxyConfig, fetch};
pub use lent::{Lent, LentEvents};
pub use offline::check_script;
pub use overflow::is_context_overflow;
pub use prompt_history::{EarlierRequests, PromptHistory, PromptState};
pub use quota::quota_wait;
pub use request::{
    AdaptiveThinking, Budgets, CacheRetention, Conventions, ForeignThinking, ModelRequest, OutputBounds,
    RequestHooks, Rewrite, Rewritten, Timeouts, ToolChoice,
};
pub use retry::{is_retryable, is_unavailable};
pub use stream::ModelStream;
