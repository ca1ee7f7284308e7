//! Reasons in events: why a session is closed, and what a summary is for.

use serde::{Deserialize, Serialize};

/// Why a session is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum CloseReason {
    /// `close_session`.
    Closed,
    /// Evicted: it was idle, or the limit of open sessions was reached. The next command with its handle opens it again.
    Evicted,
}

/// What a summary is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum SummarySource {
    /// A compaction.
    Compaction,
    /// An abandoned branch.
    BranchSummary,
}
