//! The todo list of a session, in the shape of xcsh (dialects.md 8). What may be done with it lives in `core`.

use serde::{Deserialize, Serialize};

/// How far an item has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Nobody works on it.
    #[default]
    Pending,
    /// It is being worked on.
    InProgress,
    /// It is done.
    Completed,
    /// It will not be done.
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

    /// Is there something left to do?
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::InProgress)
    }
}

/// A thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TodoItem {
    /// Id, unique in the list.
    pub id: String,
    /// What is to be done.
    pub content: String,
    /// How far it has come.
    pub status: TodoStatus,
    /// Remarks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// What one has to know while working on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
}

/// Items that belong together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TodoPhase {
    /// Id, unique in the list.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its items, in the order they are to be done.
    pub tasks: Vec<TodoItem>,
}

/// A thing to do as a client gives it: what may be left out is filled in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewTodo {
    /// What is to be done.
    pub content: String,
    /// Id, unique in the list; `task-N` when it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// How far it has come; `pending` when it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<TodoStatus>,
    /// Remarks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// What one has to know while working on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
}

/// Items that belong together, as a client gives them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NewTodoPhase {
    /// Its name.
    pub name: String,
    /// Id, unique in the list; `phase-N` when it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its items, in the order they are to be done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<NewTodo>,
}

/// An item that is still open, as `todo_reminder` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpenTodo {
    /// Its id.
    pub id: String,
    /// What is to be done.
    pub content: String,
    /// `pending` or `in_progress`.
    pub status: TodoStatus,
}
