//! Parameters of the commands (dialects.md 2). The table that ties them to names, answers and lanes is in `table`.
//!
//! Fields are as lenient as the original agents were: what a client may leave out has a default, and unknown fields are
//! ignored, except in `limits`. Names of two words may also be written in snake case, as clients in Python and Rust do.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::content::ImageContent;
use crate::run_limits::known_limits_if_any;
use crate::state::{Durability, InterruptMode, PermissionMode, QueueMode};

pub use crate::connection::{HelloParams, ReplayParams};
pub use crate::table::Command;

/// A command without parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoParams {}

/// A message to the model, with images.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MessageParams {
    /// The text. Slash commands, skills and templates are expanded.
    pub message: String,
    /// Images that follow the text.
    #[serde(
        default,
        deserialize_with = "lenient_images",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub images: Vec<ImageContent>,
}

/// Parameters of `prompt`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PromptParams {
    /// The text. Slash commands, skills and templates are expanded.
    pub message: String,
    /// Images that follow the text.
    #[serde(
        default,
        deserialize_with = "lenient_images",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub images: Vec<ImageContent>,
    /// Files from the oldest clients. They precede the images.
    #[serde(
        default,
        deserialize_with = "list_if_any",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<crate::attachment::Attachment>"))]
    pub attachments: Vec<Value>,
    /// What to do if a run is active: `steer` or `followUp`. Without it, a prompt during a run fails.
    #[serde(
        default,
        alias = "streaming_behavior",
        skip_serializing_if = "Option::is_none"
    )]
    pub streaming_behavior: Option<String>,
    /// Models that the run that the prompt starts falls back to, in this order, as `provider/id`; instead of those of the session. Fails
    /// if the message would be queued.
    #[serde(default, alias = "fallback_models", skip_serializing_if = "Option::is_none")]
    pub fallback_models: Option<Vec<String>>,
    /// Limits of the run that the prompt starts, in addition to those of the session. Fails if the message would be queued.
    #[serde(
        default,
        deserialize_with = "known_limits_if_any",
        skip_serializing_if = "Option::is_none"
    )]
    pub limits: Option<crate::RunLimits>,
    /// JSON Schema (2020-12, or as its `$schema` says) of the result that the run must give; at most 64 KiB. `agent_end` has the result.
    /// Fails if the message would be queued.
    #[serde(default, alias = "output_schema", skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
}

/// Parameters of `set_fallback_models`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FallbackModelsParams {
    /// The models in the order in which they are tried, as `provider/id`. An empty list: none.
    pub models: Vec<String>,
}

/// Parameters of `edit_queued`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EditQueuedParams {
    /// Id of the queued message, from `get_queue`.
    #[serde(alias = "queued_id")]
    pub queued_id: String,
    /// The new text. Slash commands, skills and templates are expanded. Images are kept.
    pub message: String,
}

/// Parameters of `remove_queued`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RemoveQueuedParams {
    /// Id of the queued message, from `get_queue`.
    #[serde(alias = "queued_id")]
    pub queued_id: String,
}

/// Parameters of `negotiate_protocol`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct NegotiateParams {
    /// Version of the framing. 1: one line for each object. 2: over stdio, an object above 1 MiB is split into `rpc_chunk` lines.
    #[serde(alias = "protocol_version")]
    pub protocol_version: Value,
}

/// Parameters of `new_session`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct NewSessionParams {
    /// Stored in the header of the new session without a check. Empty counts as absent.
    #[serde(alias = "parent_session", skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<String>,
    /// Working directory of the new session. `~` is the home directory; relative paths start at the current working
    /// directory, which is the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Which failures stored entries survive, in this session and in later sessions that replace it. Default: unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durability: Option<Durability>,
}

/// Parameters of `get_session_stats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct StatsParams {
    /// Whether the response contains the cost of each model. Default: false.
    #[serde(alias = "by_model")]
    pub by_model: bool,
}

/// Parameters of `get_entries`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct EntriesParams {
    /// Only entries appended after the one with this id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

/// Parameters of `set_model`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct SetModelParams {
    /// Provider id.
    #[cfg_attr(feature = "schema", schemars(required, with = "String"))]
    pub provider: Option<String>,
    /// Model id.
    #[serde(alias = "model_id")]
    #[cfg_attr(feature = "schema", schemars(required, with = "String"))]
    pub model_id: Option<String>,
}

/// Parameters of `set_thinking_level`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ThinkingParams {
    /// `off`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`. A level that the model lacks is replaced by the
    /// nearest one.
    pub level: String,
}

/// Parameters of `set_steering_mode` and `set_follow_up_mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueModeParams {
    /// How many queued messages are delivered at once.
    pub mode: QueueMode,
}

/// Parameters of `set_interrupt_mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InterruptModeParams {
    /// When a steering message takes effect.
    pub mode: InterruptMode,
}

/// Parameters of `complete_arguments`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct CompleteParams {
    /// The slash command of an extension, without the slash.
    pub name: String,
    /// The arguments typed so far.
    pub prefix: String,
}

/// Parameters of `run_shortcut`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ShortcutParams {
    /// The shortcut, from `get_shortcuts`.
    pub shortcut: String,
}

/// Parameters of `set_permission_mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PermissionModeParams {
    /// Which tool calls run without a question.
    pub mode: PermissionMode,
}

/// Parameters of `set_project_trust`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProjectTrustParams {
    /// Whether the project is trusted; null removes the decision.
    pub trusted: Option<bool>,
    /// Whether the decision is stored in the agent directory, for other processes.
    #[serde(default)]
    pub remember: bool,
}

/// Parameters of `set_auto_compaction` and `set_auto_retry`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct EnabledParams {
    /// Whether it is enabled. Default: true.
    pub enabled: bool,
}

impl Default for EnabledParams {
    fn default() -> Self {
        Self { enabled: true }
    }
}

/// Parameters of `set_todos`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TodosParams {
    /// The new list. An error names the invalid member.
    // Kept as it came: what reads it by hand can name the member.
    #[cfg_attr(
        feature = "schema",
        schemars(required, with = "Vec<crate::todo::NewTodoPhase>")
    )]
    pub phases: Option<Value>,
}

/// Parameters of `bash`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BashParams {
    /// Command line for the shell.
    pub command: String,
    /// Whether command and output are hidden from the model.
    #[serde(
        default,
        alias = "exclude_from_context",
        skip_serializing_if = "Option::is_none"
    )]
    pub exclude_from_context: Option<bool>,
}

/// Parameters of `set_session_name`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionNameParams {
    /// The name. Leading and trailing whitespace is removed.
    pub name: String,
}

/// Parameters of `compact`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct CompactParams {
    /// Instructions for the summary.
    #[serde(alias = "custom_instructions", skip_serializing_if = "Option::is_none")]
    pub custom_instructions: Option<String>,
}

/// Parameters of `export_html`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ExportParams {
    /// Path of the file, relative to the working directory. The extensions `.md` and `.json` select those formats.
    #[serde(alias = "output_path", skip_serializing_if = "Option::is_none")]
    pub output_path: Option<String>,
}

/// Parameters of `switch_session`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SwitchParams {
    /// Path of the session file, relative to the working directory.
    #[serde(alias = "session_path")]
    pub session_path: String,
    /// True if the web page sends the command; never on the wire, the web server sets it. The session must then exist
    /// already: a page never creates a file by naming one (web.md R4). A session opens even if its directory is gone,
    /// since pages resume the most recent session.
    #[serde(skip)]
    pub is_page: bool,
}

/// Parameters of `fork`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ForkParams {
    /// Id of a user message. The new session contains everything before it.
    #[serde(alias = "entry_id", deserialize_with = "text_or_nothing")]
    pub entry_id: String,
}

/// Parameters of `branch`, the older name of `fork` (dialects.md 5, rows 5 and 6). The id wins over the index.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct BranchParams {
    /// Id of a user message. It takes precedence over `entryIndex`.
    #[serde(
        alias = "entry_id",
        skip_serializing_if = "Option::is_none",
        deserialize_with = "text_if_any"
    )]
    pub entry_id: Option<String>,
    /// Line of the user message in the session file. The header is line 0.
    #[serde(
        alias = "entry_index",
        skip_serializing_if = "Option::is_none",
        deserialize_with = "index_if_any"
    )]
    pub entry_index: Option<u64>,
}

/// Parameters of `navigate_tree`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct NavigateParams {
    /// Id of the target entry. For a user message, the session moves to the entry before it.
    #[serde(alias = "target_id", deserialize_with = "text_or_nothing")]
    pub target_id: String,
    /// Whether the model summarises the abandoned branch. The summary is added to the new position.
    pub summarize: bool,
    /// Instructions for the summary.
    #[serde(alias = "custom_instructions", skip_serializing_if = "Option::is_none")]
    pub custom_instructions: Option<String>,
    /// Whether these instructions replace the built-in ones.
    #[serde(alias = "replace_instructions")]
    pub replace_instructions: bool,
    /// Label for the summary, or for the entry if there is no summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Where a user message leads; never on the wire, the command decides it.
    #[serde(skip)]
    pub user_message: UserMessageTarget,
}

/// Where a user message leads that is the target of a navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UserMessageTarget {
    /// To the entry before it. A session that ends with the message stays there, as in pi.
    #[default]
    BeforeUnlessLast,
    /// To the entry before it, also at the end of the session: `rewind` counts the message as not sent.
    Before,
    /// To the message: `unrewind` restores the old end of the session.
    Itself,
}

/// Parameters of `login`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct LoginParams {
    /// Id of a provider from `get_login_providers`.
    #[serde(alias = "provider_id", deserialize_with = "text_or_nothing")]
    pub provider_id: String,
}

/// Parameters of `set_entry_label`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct LabelParams {
    /// The entry.
    #[serde(alias = "target_id", deserialize_with = "text_or_nothing")]
    pub target_id: String,
    /// The label. If it is absent or empty, the label is removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// Parameters of `open_session`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct OpenSessionParams {
    /// Handle of the session. Default: a generated one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Path of the session file. Default: a new session.
    #[serde(alias = "session_path", skip_serializing_if = "Option::is_none")]
    pub session_path: Option<String>,
    /// Path of another session file. The session begins as a copy of it, in a file of its own. Excludes `sessionPath`.
    #[serde(alias = "fork_path", skip_serializing_if = "Option::is_none")]
    pub fork_path: Option<String>,
    /// Working directory. Default: that of the session file or of the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// What stored entries survive. Default: the setting `durability`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durability: Option<Durability>,
    /// For clients of oh-my-pi: the command means `continue_session` with this directory.
    #[serde(alias = "session_dir", skip_serializing_if = "Option::is_none")]
    pub session_dir: Option<String>,
}

/// Which sessions `list_sessions` returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ListScope {
    /// Sessions of all working directories.
    #[default]
    All,
    /// Sessions of the current working directory.
    Cwd,
}

/// Parameters of `list_sessions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct ListParams {
    /// Which sessions.
    pub scope: ListScope,
    /// Whether to fill in `allMessagesText`. This reads every session file completely.
    pub texts: bool,
}

/// Reads one image in any form that clients send (dialects.md 5, row 10): `{data, mimeType}`, `{source: {type: "base64",
/// mediaType | media_type, data}}`, and `data:` URLs in either place.
///
/// # Errors
/// A sentence for the client: the form is unknown, or the image is a URL that would have to be fetched.
pub fn image_from_value(value: &Value) -> Result<ImageContent, String> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let source = value.get("source").unwrap_or(value);
    if text(source, "type").as_deref() == Some("url")
        && !text(source, "url").unwrap_or_default().starts_with("data:")
    {
        return Err("Images must be sent inline as base64; URLs are not fetched".to_owned());
    }
    let data = text(source, "data").or_else(|| text(source, "url"));
    let mime = ["mimeType", "mediaType", "media_type", "mime_type"]
        .into_iter()
        .find_map(|key| text(source, key));
    let data = data.ok_or("Image has no data")?;
    if let Some((head, body)) = data
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(";base64,"))
    {
        return Ok(ImageContent {
            data: body.to_owned(),
            mime_type: head.to_owned(),
            extra: crate::extra::Extra::default(),
        });
    }
    Ok(ImageContent {
        data,
        mime_type: mime.ok_or("Image has no mimeType")?,
        extra: crate::extra::Extra::default(),
    })
}

fn text_or_nothing<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(value.as_str().unwrap_or_default().to_owned())
}

/// Reads a text. A value of another type becomes an empty id, which no entry has.
fn text_if_any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok((!value.is_null()).then(|| value.as_str().unwrap_or_default().to_owned()))
}

/// Reads a whole number. Any other value becomes an index that no entry has.
fn index_if_any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok((!value.is_null()).then(|| value.as_u64().unwrap_or(u64::MAX)))
}

/// Reads a list; null is an empty list.
fn list_if_any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Value>, D::Error> {
    Ok(Option::<Vec<Value>>::deserialize(deserializer)?.unwrap_or_default())
}

fn lenient_images<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ImageContent>, D::Error> {
    let values = Option::<Vec<Value>>::deserialize(deserializer)?.unwrap_or_default();
    values
        .iter()
        .map(|value| image_from_value(value).map_err(serde::de::Error::custom))
        .collect()
}
