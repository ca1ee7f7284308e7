//! The todo list of a session, in the shape of xcsh (dialects.md 8). What may be done with it lives in `agent`.

use serde::{Deserialize, Serialize};

/// Status of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not started.
    #[default]
    Pending,
    /// In progress.
    InProgress,
    /// Completed.
    Completed,
    /// Abandoned.
    Abandoned,
}

impl TodoStatus {
    /// All, in the order of a life.
    pub const ALL: [Self; 4] = [Self::Pending, Self::InProgress, Self::Completed, Self::Abandoned];

    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Abandoned => "abandoned",
        }
    }

    /// The status of this name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Returns true if the item is pending or in progress.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::InProgress)
    }
}

/// A todo item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TodoItem {
    /// Id, unique in the list.
    pub id: String,
    /// The task.
    pub content: String,
    /// Its status.
    pub status: TodoStatus,
    /// Notes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Details for working on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
}

/// A phase with its items.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TodoPhase {
    /// Id, unique in the list.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its items in order.
    pub tasks: Vec<TodoItem>,
}

/// A todo item from a client. Absent fields are filled in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewTodo {
    /// The task.
    pub content: String,
    /// Id, unique in the list. Default: `task-N`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its status. Default: `pending`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<TodoStatus>,
    /// Notes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Details for working on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
}

/// A phase from a client.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewTodoPhase {
    /// Its name.
    pub name: String,
    /// Id, unique in the list. Default: `phase-N`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its items in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<NewTodo>,
}

/// An open item in `todo_reminder`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpenTodo {
    /// Its id.
    pub id: String,
    /// The task.
    pub content: String,
    /// `pending` or `in_progress`.
    pub status: TodoStatus,
}
