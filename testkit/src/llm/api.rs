//! Which provider's wire protocol a request speaks, told from its path. The protocols themselves are in `encode`.

use serde::{Deserialize, Serialize};

/// A wire protocol of an LLM provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// Anthropic Messages: `POST .../messages`.
    Anthropic,
    /// OpenAI chat completions: `POST .../chat/completions`.
    OpenAi,
    /// OpenAI Responses: `POST .../responses`.
    Responses,
    /// Google generateContent: `POST .../models/<m>:streamGenerateContent`.
    Google,
    /// Amazon Bedrock ConverseStream: `POST .../model/<m>/converse-stream`, answered in binary frames.
    Bedrock,
}

impl Api {
    /// The protocol that is spoken at `path` (a query string is ignored), if it is one of ours.
    ///
    /// ```
    /// use testkit::llm::Api;
    /// assert_eq!(Api::of_path("/v1/messages?beta=true"), Some(Api::Anthropic));
    /// assert_eq!(Api::of_path("/v1/models"), None);
    /// ```
    #[must_use]
    pub fn of_path(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or(path);
        if path.ends_with("/messages") {
            Some(Self::Anthropic)
        } else if path.ends_with("/chat/completions") {
            Some(Self::OpenAi)
        } else if path.ends_with("/responses") {
            Some(Self::Responses)
        } else if path.contains(":streamGenerateContent") || path.contains(":generateContent") {
            Some(Self::Google)
        } else if path.ends_with("/converse-stream") {
            Some(Self::Bedrock)
        } else {
            None
        }
    }
}

/// The API families that the scripted server speaks, and their paths there. One more family is one more row.
pub const FAMILIES: [(&str, &str); 9] = [
    ("anthropic-messages", "anthropic"),
    ("openai-completions", "openai/v1"),
    ("openai-responses", "responses/v1"),
    ("azure-openai-responses", "azure/openai/v1"),
    ("google-generative-ai", "google/v1beta"),
    ("mistral-conversations", "mistral"),
    ("bedrock-converse-stream", "bedrock"),
    ("google-vertex", "vertex"),
    ("openai-codex-responses", "chatgpt"),
];
