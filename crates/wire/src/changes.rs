//! Changes of files in a session, and taking them back: `get_changes`, `rewind`, `unrewind`.

use serde::{Deserialize, Serialize};

/// What a checkpoint contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Checkpoints {
    /// There are no checkpoints.
    #[default]
    Off,
    /// The files that `edit` and `write` change, as they were before.
    Files,
    /// Those files, and the files of the working directory that other tools change while they run, except files that Git ignores.
    Worktree,
}

impl Checkpoints {
    /// All of them, the least first.
    pub const ALL: [Self; 3] = [Self::Off, Self::Files, Self::Worktree];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Files => "files",
            Self::Worktree => "worktree",
        }
    }

    /// The kind of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// Which changes `get_changes` returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ChangeScope {
    /// All changes of the session that are not undone.
    #[default]
    Session,
    /// The changes between a user message and the next one.
    Run,
    /// The changes of the tool calls of one answer.
    Turn,
}

/// Parameters of `get_changes`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ChangesParams {
    /// Which changes are returned. Default: `session`.
    #[serde(default)]
    pub scope: ChangeScope,
    /// An entry of the run or turn. Default: the last entry of the conversation. Without effect for `session`.
    #[serde(default, alias = "entry_id", skip_serializing_if = "Option::is_none")]
    pub entry_id: Option<String>,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum FileStatus {
    /// It exists after the change and did not exist before.
    Added,
    /// Content, mode or kind are different.
    Modified,
    /// It existed before and does not exist any more.
    Deleted,
}

/// A changed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FileChange {
    /// The absolute path.
    pub path: String,
    /// What happened to the file.
    pub status: FileStatus,
    /// Kind and permission bits before, as in git: `100644` for a file, `120000` for a link, `040755` for a directory. Absent if
    /// the file did not exist or the mode is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_mode: Option<String>,
    /// The same after the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_mode: Option<String>,
    /// Unified diff without the two lines of file names. Absent for binary files, for contents that are not kept, and behind the
    /// limit of all diffs (2 MiB).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// True if the diff is cut after 256 KiB.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// Something that a checkpoint could not know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UnknownChange {
    /// Why it is not known.
    pub reason: String,
    /// The file, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The tool that may have changed files, if it is about a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// The entry of the answer that called the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry_id: Option<String>,
}

/// Response to `get_changes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Changes {
    /// What checkpoints of this session contain.
    pub checkpoints: Checkpoints,
    /// The changed files, by path.
    pub files: Vec<FileChange>,
    /// What may have changed as well.
    pub unknown: Vec<UnknownChange>,
}

/// What `rewind` takes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RewindTarget {
    /// Files and conversation.
    #[default]
    Both,
    /// Files only.
    Files,
    /// The conversation only.
    Conversation,
}

/// Parameters of `rewind`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RewindParams {
    /// The entry to go to. Files become what they were when this entry was the last one. A user message counts as not sent.
    #[serde(alias = "entry_id")]
    pub entry_id: String,
    /// The part of the session to restore. Default: `both`.
    #[serde(default)]
    pub what: RewindTarget,
    /// Restore files that others have changed meanwhile, too.
    #[serde(default)]
    pub force: bool,
}

/// Parameters of `unrewind`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UnrewindParams {
    /// Restore files that others have changed since the rewind, too.
    #[serde(default)]
    pub force: bool,
}

/// A file that `rewind` or `unrewind` has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RestoredFile {
    /// The absolute path.
    pub path: String,
    /// What the command did to the file.
    pub status: FileStatus,
}

/// Why a file stayed as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum KeptReason {
    /// Something other than the agent's tools has changed it. `force` restores it.
    Changed,
    /// It could not be restored.
    Failed,
}

/// A file that `rewind` or `unrewind` has not changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct KeptFile {
    /// The absolute path.
    pub path: String,
    /// Why it stayed as it was.
    pub reason: KeptReason,
    /// The reason in words.
    pub message: String,
}

/// Response to `rewind` and `unrewind`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Rewound {
    /// The files that were changed, by path.
    pub restored: Vec<RestoredFile>,
    /// The files that should have been changed and stayed as they were.
    pub kept: Vec<KeptFile>,
    /// Possible changes of the undone turns that are not restored.
    pub unknown: Vec<UnknownChange>,
    /// The text of the user message that the conversation was rewound to, to edit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub editor_text: Option<String>,
    /// True if an extension kept the conversation where it was. Files are restored in any case.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
}
