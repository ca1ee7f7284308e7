//! Parameters and answers of commands that list directories and files for the user of a client. `session` and `tools` search
//! the disk.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Parameters of `list_directory`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DirectoryParams {
    /// The directory. `~` or an empty path is the home directory; relative paths start at the working directory.
    #[serde(deserialize_with = "text_or_nothing")]
    pub path: String,
}

/// Response to `list_directory`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Directory {
    /// The directory.
    pub absolute_path: String,
    /// Its subdirectories by name, without hidden ones.
    pub entries: Vec<DirectoryEntry>,
}

/// A directory in a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DirectoryEntry {
    /// Its name.
    pub name: String,
    /// Always true.
    pub is_directory: bool,
}

/// Parameters of `find_files`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct FindFilesParams {
    /// The search text: a name, a part of a name or path, or letters of a path in their order. Lower case matches both
    /// cases. Empty: the top level.
    #[serde(deserialize_with = "text_or_nothing")]
    pub query: String,
    /// Maximum number of results. Default: 50, at most 500.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Response to `find_files`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FoundFiles {
    /// The results, best match first.
    pub files: Vec<FoundFile>,
    /// Whether the limit or the time limit was reached.
    pub truncated: bool,
}

/// A file or directory of the session's working directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FoundFile {
    /// Its path from the working directory on, with `/`.
    pub path: String,
    /// Whether it is a directory.
    pub is_directory: bool,
}

/// Parameters of `delete_session`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct DeleteSessionParams {
    /// Path of the session file, from `list_sessions`.
    #[serde(alias = "session_path", deserialize_with = "text_or_nothing")]
    pub session_path: String,
}

/// Response to `delete_session`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeletedSession {
    /// The old path.
    pub session_path: String,
    /// The new path. Move the file back to restore the session.
    pub trash_path: String,
}

fn text_or_nothing<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(value.as_str().unwrap_or_default().to_owned())
}
