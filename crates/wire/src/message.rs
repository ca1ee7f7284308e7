//! Messages of a conversation, one type per role (pi-core.md 1.2). How they are turned into a request lives in `agent`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::content::{AssistantBlock, ToolCall, UserBlock};
use crate::extra::Extra;
use crate::usage::Usage;

/// Content of a user message: plain text (old files, extensions) or blocks (written by this agent).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum UserContent {
    /// Plain text.
    Text(String),
    /// Text and images in order.
    Blocks(Vec<UserBlock>),
}

impl UserContent {
    /// The content as blocks; plain text becomes one text block.
    #[must_use]
    pub fn to_blocks(&self) -> Vec<UserBlock> {
        match self {
            Self::Text(text) => vec![UserBlock::text(text.clone())],
            Self::Blocks(blocks) => blocks.clone(),
        }
    }

    /// All text, text blocks joined by a line feed.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => crate::content::joined_text(blocks),
        }
    }
}

/// Role `user`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UserMessage {
    /// Text and images of the message.
    pub content: UserContent,
    /// Unix time in milliseconds.
    #[serde(default)]
    pub timestamp: i64,
    /// Unknown fields.
    #[serde(flatten, skip_serializing_if = "Extra::is_empty")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub extra: Extra,
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum StopReason {
    /// The model finished.
    #[default]
    Stop,
    /// The output limit was reached.
    Length,
    /// The model wants tools to run.
    ToolUse,
    /// The request failed; see `errorMessage`.
    Error,
    /// It was aborted.
    Aborted,
    /// The answer goes on in a later request; only in files of later agents (pi-1.5-delta.md 3).
    Deferred,
    /// Not known yet: only in `message_start` of the dialect `pi-delta`.
    Pending,
}

/// Role `assistant`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AssistantMessage {
    /// Text, reasoning and tool calls in the order they arrived.
    #[serde(default)]
    pub content: Vec<AssistantBlock>,
    /// API family that produced it.
    #[serde(default)]
    pub api: String,
    /// Provider that produced it.
    #[serde(default)]
    pub provider: String,
    /// Model id that was asked.
    #[serde(default)]
    pub model: String,
    /// Token counts and cost.
    #[serde(default)]
    pub usage: Usage,
    /// Why it ended.
    #[serde(default)]
    pub stop_reason: StopReason,
    /// Unix time in milliseconds at which the request was started.
    #[serde(default)]
    pub timestamp: i64,
    /// The model that answered according to the provider, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_model: Option<String>,
    /// The provider's id of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// The error message of the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// The provider's own word for `stopReason`. Absent when the answer ended without one (pi-1.5-delta.md 3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_stop_reason: Option<String>,
    /// Milliseconds from the request to the end of the answer. Absent while it streams, and in files of older agents.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::number::milliseconds"
    )]
    pub duration_ms: Option<u64>,
    /// The thinking level of the request. Absent while the answer streams, and in files of older agents. Levels of other
    /// agents are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<String>,
    /// The HTTP status of the response that made the answer fail. It is not part of JSON, since files of pi have no member for it: `None`
    /// in messages that were read from a session file.
    #[serde(skip)]
    pub http_status: Option<u16>,
    /// Unknown fields.
    #[serde(flatten, skip_serializing_if = "Extra::is_empty")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub extra: Extra,
}

impl AssistantMessage {
    /// An answer that has not begun: no content, stop reason `stop`, zero usage.
    pub fn begin(api: &str, provider: &str, model: &str, timestamp: i64) -> Self {
        Self {
            content: Vec::new(),
            api: api.to_owned(),
            provider: provider.to_owned(),
            model: model.to_owned(),
            usage: Usage::default(),
            stop_reason: StopReason::Stop,
            timestamp,
            response_model: None,
            response_id: None,
            error_message: None,
            raw_stop_reason: None,
            duration_ms: None,
            thinking_level: None,
            http_status: None,
            extra: Extra::default(),
        }
    }

    /// The tool calls, in content order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(AssistantBlock::as_tool_call)
    }

    /// Tokens in the context when the answer was given, if it says so: a failed one does not, nor one without usage.
    #[must_use]
    pub fn reported_tokens(&self) -> Option<u64> {
        let tokens = self.usage.context_tokens();
        (!self.failed() && tokens > 0).then_some(tokens)
    }

    /// Returns true after an error or an abort. Such answers are never sent to a model again (pi-core.md 1.8).
    #[must_use]
    pub fn failed(&self) -> bool {
        matches!(self.stop_reason, StopReason::Error | StopReason::Aborted)
    }
}

/// Role `toolResult`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolResultMessage {
    /// Id of the call it answers.
    pub tool_call_id: String,
    /// Tool name.
    #[serde(default)]
    pub tool_name: String,
    /// What the model sees.
    #[serde(default)]
    pub content: Vec<UserBlock>,
    /// Data for clients. Its format depends on the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Whether it failed.
    #[serde(default)]
    pub is_error: bool,
    /// Run time in milliseconds. Absent when the tool did not run, and in files of older agents (pi-1.5-delta.md 3).
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::number::milliseconds"
    )]
    pub duration_ms: Option<u64>,
    /// Unix time in milliseconds.
    #[serde(default)]
    pub timestamp: i64,
    /// Unknown fields.
    #[serde(flatten, skip_serializing_if = "Extra::is_empty")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub extra: Extra,
}

/// Role `bashExecution`: a command that the user, not the model, ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BashExecutionMessage {
    /// The command line.
    #[serde(default)]
    pub command: String,
    /// Its output, truncated.
    #[serde(default)]
    pub output: String,
    /// Absent when it was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Whether it was aborted.
    #[serde(default)]
    pub cancelled: bool,
    /// Whether `output` was truncated.
    #[serde(default)]
    pub truncated: bool,
    /// Path of the whole output, if it was truncated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_output_path: Option<String>,
    /// Whether it is hidden from the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude_from_context: Option<bool>,
    /// Unix time in milliseconds.
    #[serde(default)]
    pub timestamp: i64,
    /// Unknown fields.
    #[serde(flatten, skip_serializing_if = "Extra::is_empty")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub extra: Extra,
}

/// Role `custom`: a message of an extension.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CustomMessage {
    /// The extension's name for this kind of message.
    #[serde(default)]
    pub custom_type: String,
    /// What the model sees.
    pub content: UserContent,
    /// Whether clients show it.
    #[serde(default)]
    pub display: bool,
    /// Data for clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Unix time in milliseconds.
    #[serde(default)]
    pub timestamp: i64,
    /// Unknown fields.
    #[serde(flatten, skip_serializing_if = "Extra::is_empty")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub extra: Extra,
}

/// Role `branchSummary`: summary of an abandoned branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BranchSummaryMessage {
    /// The summary.
    #[serde(default)]
    pub summary: String,
    /// Entry id it belongs to, or `root`.
    #[serde(default)]
    pub from_id: String,
    /// Unix time in milliseconds.
    #[serde(default)]
    pub timestamp: i64,
    /// Unknown fields.
    #[serde(flatten, skip_serializing_if = "Extra::is_empty")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub extra: Extra,
}

/// Role `compactionSummary`: summary of the compacted part of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CompactionSummaryMessage {
    /// The summary.
    #[serde(default)]
    pub summary: String,
    /// Tokens in the context before.
    #[serde(default)]
    pub tokens_before: u64,
    /// Unix time in milliseconds.
    #[serde(default)]
    pub timestamp: i64,
    /// Unknown fields.
    #[serde(flatten, skip_serializing_if = "Extra::is_empty")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub extra: Extra,
}

/// A message of any role. On the wire the role is the field `role`, first.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Message {
    /// `user`
    User(UserMessage),
    /// `assistant`
    Assistant(AssistantMessage),
    /// `toolResult`
    ToolResult(ToolResultMessage),
    /// `bashExecution`
    BashExecution(BashExecutionMessage),
    /// `custom` (`hookMessage` in older files)
    Custom(CustomMessage),
    /// `branchSummary`
    BranchSummary(BranchSummaryMessage),
    /// `compactionSummary`
    CompactionSummary(CompactionSummaryMessage),
    /// An unknown role. It is kept and sent to clients, never to a model.
    Other(Value),
}

impl Message {
    /// A user message of one text block.
    pub fn user(text: impl Into<String>, timestamp: i64) -> Self {
        Self::User(UserMessage {
            content: UserContent::Blocks(vec![UserBlock::text(text)]),
            timestamp,
            extra: Extra::default(),
        })
    }

    /// The wire name of the role.
    #[must_use]
    pub fn role(&self) -> &str {
        match self {
            Self::User(_) => "user",
            Self::Assistant(_) => "assistant",
            Self::ToolResult(_) => "toolResult",
            Self::BashExecution(_) => "bashExecution",
            Self::Custom(_) => "custom",
            Self::BranchSummary(_) => "branchSummary",
            Self::CompactionSummary(_) => "compactionSummary",
            Self::Other(value) => value.get("role").and_then(Value::as_str).unwrap_or(""),
        }
    }

    /// The assistant message, if this is one.
    #[must_use]
    pub fn as_assistant(&self) -> Option<&AssistantMessage> {
        match self {
            Self::Assistant(message) => Some(message),
            _ => None,
        }
    }

    /// Parses one message from JSON text.
    ///
    /// # Errors
    /// When the text is not a JSON object or a known role lacks a required field.
    pub fn from_json(json: &str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Peek<'a> {
            #[serde(borrow, default)]
            role: std::borrow::Cow<'a, str>,
        }
        // Two passes over the text are cheaper than serde's buffering of tagged enums.
        let peek: Peek<'_> = serde_json::from_str(json)?;
        let mut message = match peek.role.as_ref() {
            "user" => Self::User(serde_json::from_str(json)?),
            "assistant" => Self::Assistant(serde_json::from_str(json)?),
            "toolResult" => Self::ToolResult(serde_json::from_str(json)?),
            "bashExecution" => Self::BashExecution(serde_json::from_str(json)?),
            "custom" | "hookMessage" => Self::Custom(serde_json::from_str(json)?),
            "branchSummary" => Self::BranchSummary(serde_json::from_str(json)?),
            "compactionSummary" => Self::CompactionSummary(serde_json::from_str(json)?),
            _ => Self::Other(serde_json::from_str(json)?),
        };
        if let Some(extra) = message.extra_mut() {
            extra.drop_known(&["role"]);
        }
        Ok(message)
    }

    fn extra_mut(&mut self) -> Option<&mut Extra> {
        match self {
            Self::User(body) => Some(&mut body.extra),
            Self::Assistant(body) => Some(&mut body.extra),
            Self::ToolResult(body) => Some(&mut body.extra),
            Self::BashExecution(body) => Some(&mut body.extra),
            Self::Custom(body) => Some(&mut body.extra),
            Self::BranchSummary(body) => Some(&mut body.extra),
            Self::CompactionSummary(body) => Some(&mut body.extra),
            Self::Other(_) => None,
        }
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Tagged<'a, T> {
            role: &'a str,
            #[serde(flatten)]
            body: &'a T,
        }
        let role = self.role();
        match self {
            Self::User(body) => Tagged { role, body }.serialize(serializer),
            Self::Assistant(body) => Tagged { role, body }.serialize(serializer),
            Self::ToolResult(body) => Tagged { role, body }.serialize(serializer),
            Self::BashExecution(body) => Tagged { role, body }.serialize(serializer),
            Self::Custom(body) => Tagged { role, body }.serialize(serializer),
            Self::BranchSummary(body) => Tagged { role, body }.serialize(serializer),
            Self::CompactionSummary(body) => Tagged { role, body }.serialize(serializer),
            Self::Other(value) => value.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::from_json(raw.get()).map_err(serde::de::Error::custom)
    }
}
