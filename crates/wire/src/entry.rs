//! Lines of a session file (pi-core.md 2.2, 2.3; dialects.md 12). Reading and writing files lives in `store`.

use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::extra::Extra;
use crate::message::{Message, UserContent};
use crate::usage::Usage;

/// Version of the session format that is written.
pub const SESSION_VERSION: u32 = 3;

/// The first line of a session file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionHeader {
    /// Always `session`.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "schema", schemars(extend("const" = "session")))]
    pub kind: String,
    /// Format version; absent in version 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Session id, a UUIDv7 when made here.
    pub id: String,
    /// Creation time, ISO 8601.
    #[serde(default)]
    pub timestamp: String,
    /// Working directory of the session.
    #[serde(default)]
    pub cwd: String,
    /// File (or id) of the session this one came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<String>,
    /// Unknown fields.
    #[serde(flatten, skip_serializing_if = "Extra::is_empty")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub extra: Extra,
}

/// An entry: a node of the session's tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Id, 8 hex digits when made here.
    pub id: String,
    /// Entry it follows; none for a root.
    pub parent_id: Option<String>,
    /// Time it was appended, ISO 8601.
    pub timestamp: String,
    /// The content.
    pub body: EntryBody,
}

/// Content of an entry.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum EntryBody {
    /// `message`
    Message(MessageEntry),
    /// `thinking_level_change`
    ThinkingLevelChange(ThinkingLevelChange),
    /// `model_change`
    ModelChange(ModelChange),
    /// `compaction`
    Compaction(Compaction),
    /// `branch_summary`
    BranchSummary(BranchSummary),
    /// `custom`: data of an extension, never in the model's context
    Custom(CustomEntry),
    /// `custom_message`: a message of an extension, in the model's context
    CustomMessage(CustomMessageEntry),
    /// `ttsr_injection`: rules that were injected into a request; not in the context
    TtsrInjection(TtsrInjection),
    /// `label`
    Label(Label),
    /// `session_info`
    SessionInfo(SessionInfo),
    /// A type this version does not know, with all its fields.
    Other(Map<String, Value>),
}

/// Body of a `message` entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageEntry {
    /// The message.
    pub message: Arc<Message>,
    /// Unknown fields.
    #[serde(flatten, skip_serializing_if = "Extra::is_empty")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub extra: Extra,
}

/// Body of a `thinking_level_change` entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ThinkingLevelChange {
    /// The level from here on; xcsh writes null for its default.
    #[serde(default)]
    pub thinking_level: Option<String>,
    /// Unknown fields.
    #[serde(flatten, skip_serializing_if = "Extra::is_empty")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub extra: Extra,
}

/// Body of a `model_change` entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ModelChange {
    /// Provider id.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// Model id.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model_id: String,
    /// xcsh's form, `provider/id`, instead of the two above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Unknown fields.
    #[serde(flatten, skip_serializing_if = "Extra::is_empty")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub extra: Extra,
}

impl ModelChange {
    /// Provider and model id, in whichever form they were written.
    #[must_use]
    pub fn target(&self) -> Option<(&str, &str)> {
        match &self.model {
            Some(joined) => joined.split_once('/'),
            None if self.model_id.is_empty() => None,
            None => Some((&self.provider, &self.model_id)),
        }
    }
}

/// Body of a `compaction` entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Compaction {
    /// Summary of everything before `firstKeptEntryId`.
    #[serde(default)]
    pub summary: String,
    /// First entry that is still sent to the model.
    #[serde(default)]
    pub first_kept_entry_id: String,
    /// Tokens in the context before.
    #[serde(default)]
    pub tokens_before: u64,
    /// Further data, such as lists of files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Whether an extension made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_hook: Option<bool>,
    /// Tokens and cost of the summary, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Unknown fields.
    #[serde(flatten, skip_serializing_if = "Extra::is_empty")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub extra: Extra,
}

/// Body of a `branch_summary` entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BranchSummary {
    /// Entry the summary belongs to, or `root`.
    #[serde(default)]
    pub from_id: String,
    /// The summary.
    #[serde(default)]
    pub summary: String,
    /// Further data, such as lists of files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Whether an extension made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_hook: Option<bool>,
    /// Tokens and cost of the summary, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Unknown fields.
    #[serde(flatten, skip_serializing_if = "Extra::is_empty")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub extra: Extra,
}

/// Body of a `custom` entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CustomEntry {
    /// The extension's name for this kind of data.
    #[serde(default)]
    pub custom_type: String,
    /// The data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
    /// Unknown fields.
    #[serde(flatten, skip_serializing_if = "Extra::is_empty")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub extra: Extra,
}

/// Body of a `custom_message` entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CustomMessageEntry {
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
    /// Unknown fields.
    #[serde(flatten, skip_serializing_if = "Extra::is_empty")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub extra: Extra,
}

/// Body of a `ttsr_injection` entry (dialects.md 8).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TtsrInjection {
    /// Names of the rules.
    #[serde(default)]
    pub injected_rules: Vec<String>,
    /// Unknown fields.
    #[serde(flatten, skip_serializing_if = "Extra::is_empty")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub extra: Extra,
}

/// Body of a `label` entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Label {
    /// Entry that carries the label.
    #[serde(default)]
    pub target_id: String,
    /// The label. If it is absent or empty, the label is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Unknown fields.
    #[serde(flatten, skip_serializing_if = "Extra::is_empty")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub extra: Extra,
}

/// Body of a `session_info` entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionInfo {
    /// The session's name; empty removes it.
    #[serde(default)]
    pub name: String,
    /// Unknown fields.
    #[serde(flatten, skip_serializing_if = "Extra::is_empty")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub extra: Extra,
}

impl EntryBody {
    /// An entry body for a message.
    pub fn message(message: Arc<Message>) -> Self {
        Self::Message(MessageEntry {
            message,
            extra: Extra::default(),
        })
    }

    /// The wire name of the entry's type.
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Self::Message(_) => "message",
            Self::ThinkingLevelChange(_) => "thinking_level_change",
            Self::ModelChange(_) => "model_change",
            Self::Compaction(_) => "compaction",
            Self::BranchSummary(_) => "branch_summary",
            Self::Custom(_) => "custom",
            Self::CustomMessage(_) => "custom_message",
            Self::TtsrInjection(_) => "ttsr_injection",
            Self::Label(_) => "label",
            Self::SessionInfo(_) => "session_info",
            Self::Other(map) => map.get("type").and_then(Value::as_str).unwrap_or(""),
        }
    }

    fn from_json(kind: &str, json: &str) -> Result<Self, serde_json::Error> {
        let mut body = match kind {
            "message" => Self::Message(serde_json::from_str(json)?),
            "thinking_level_change" => Self::ThinkingLevelChange(serde_json::from_str(json)?),
            "model_change" => Self::ModelChange(serde_json::from_str(json)?),
            "compaction" => Self::Compaction(serde_json::from_str(json)?),
            "branch_summary" => Self::BranchSummary(serde_json::from_str(json)?),
            "custom" => Self::Custom(serde_json::from_str(json)?),
            "custom_message" => Self::CustomMessage(serde_json::from_str(json)?),
            "ttsr_injection" => Self::TtsrInjection(serde_json::from_str(json)?),
            "label" => Self::Label(serde_json::from_str(json)?),
            "session_info" => Self::SessionInfo(serde_json::from_str(json)?),
            _ => Self::Other(serde_json::from_str(json)?),
        };
        if let Some(extra) = body.extra_mut() {
            extra.drop_known(&["type", "id", "parentId", "timestamp"]);
        }
        Ok(body)
    }

    fn extra_mut(&mut self) -> Option<&mut Extra> {
        match self {
            Self::Message(body) => Some(&mut body.extra),
            Self::ThinkingLevelChange(body) => Some(&mut body.extra),
            Self::ModelChange(body) => Some(&mut body.extra),
            Self::Compaction(body) => Some(&mut body.extra),
            Self::BranchSummary(body) => Some(&mut body.extra),
            Self::Custom(body) => Some(&mut body.extra),
            Self::CustomMessage(body) => Some(&mut body.extra),
            Self::TtsrInjection(body) => Some(&mut body.extra),
            Self::Label(body) => Some(&mut body.extra),
            Self::SessionInfo(body) => Some(&mut body.extra),
            Self::Other(_) => None,
        }
    }
}

impl Entry {
    /// Parses one line of a session file, header lines excepted. Fields that may be missing in old files are empty.
    ///
    /// # Errors
    /// When the line is not a JSON object, or an entry of a known type lacks a required field.
    pub fn from_json(json: &str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        #[derive(Default)]
        struct Head {
            r#type: String,
            id: String,
            parent_id: Option<String>,
            timestamp: String,
        }
        let head: Head = serde_json::from_str(json)?;
        let body = EntryBody::from_json(&head.r#type, json)?;
        Ok(Self {
            id: head.id,
            parent_id: head.parent_id,
            timestamp: head.timestamp,
            body,
        })
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Line<'a, T> {
            r#type: &'a str,
            id: &'a str,
            parent_id: Option<&'a str>,
            timestamp: &'a str,
            #[serde(flatten)]
            body: &'a T,
        }
        let head = (
            self.body.kind(),
            self.id.as_str(),
            self.parent_id.as_deref(),
            self.timestamp.as_str(),
        );
        fn line<'a, T>(head: (&'a str, &'a str, Option<&'a str>, &'a str), body: &'a T) -> Line<'a, T> {
            Line {
                r#type: head.0,
                id: head.1,
                parent_id: head.2,
                timestamp: head.3,
                body,
            }
        }
        match &self.body {
            EntryBody::Message(body) => line(head, body).serialize(serializer),
            EntryBody::ThinkingLevelChange(body) => line(head, body).serialize(serializer),
            EntryBody::ModelChange(body) => line(head, body).serialize(serializer),
            EntryBody::Compaction(body) => line(head, body).serialize(serializer),
            EntryBody::BranchSummary(body) => line(head, body).serialize(serializer),
            EntryBody::Custom(body) => line(head, body).serialize(serializer),
            EntryBody::CustomMessage(body) => line(head, body).serialize(serializer),
            EntryBody::TtsrInjection(body) => line(head, body).serialize(serializer),
            EntryBody::Label(body) => line(head, body).serialize(serializer),
            EntryBody::SessionInfo(body) => line(head, body).serialize(serializer),
            EntryBody::Other(map) => map.serialize(serializer),
        }
    }
}
