//! Looking around on disk for the person in front of a client: directories to work in, files to name in a message. What is
//! there is found out in `host` and `tools`.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Parameters of `list_directory`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct DirectoryParams {
    /// The directory; `~` is the home directory, as is nothing at all. Relative paths start at the session's working
    /// directory.
    #[serde(deserialize_with = "text_or_nothing")]
    pub path: String,
}

/// Answer of `list_directory` (web.md 1.5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Directory {
    /// The directory.
    pub absolute_path: String,
    /// The directories in it but hidden ones, by name.
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
    /// What has been typed. A name, a part of one, a part of a path, or letters of a path in their order; small letters match
    /// both cases. Empty: what is on top.
    #[serde(deserialize_with = "text_or_nothing")]
    pub query: String,
    /// How many to answer at most: 50 unless told, 500 at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Answer of `find_files`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FoundFiles {
    /// The best first.
    pub files: Vec<FoundFile>,
    /// There may be more: the limit was reached, or the time for looking was over.
    pub truncated: bool,
}

/// A file or directory of the session's working directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FoundFile {
    /// Its path from the working directory on, with `/`.
    pub path: String,
    /// Is it a directory?
    pub is_directory: bool,
}

/// Parameters of `delete_session`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct DeleteSessionParams {
    /// The session file, as `list_sessions` has it.
    #[serde(alias = "session_path", deserialize_with = "text_or_nothing")]
    pub session_path: String,
}

/// Answer of `delete_session`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeletedSession {
    /// Where the session was.
    pub session_path: String,
    /// Where its file is now. Moving it back undoes it.
    pub trash_path: String,
}

fn text_or_nothing<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(value.as_str().unwrap_or_default().to_owned())
}
