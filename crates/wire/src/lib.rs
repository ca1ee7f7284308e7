//! The data of the pi agent protocol, in one vocabulary (today's pi names).
//!
//! What lives here: commands, responses, events, messages, session entries, models, the command table that says of every
//! command what it takes, what it answers and in which lane it runs, and the scanner for tool arguments that are still
//! arriving. IO, clocks, tokio and decisions do not live here. Every crate may depend on this one; it depends on no other.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod attachment;
mod cast;
pub mod changes;
pub mod command;
pub mod connection;
pub mod content;
pub mod dialect;
mod dialect_set;
pub mod entry;
pub mod event;
mod event_name;
pub mod extra;
pub mod hidden;
pub mod hosted;
pub mod limits;
pub mod lines;
pub mod looking;
pub mod mcp;
pub mod message;
pub mod model;
pub mod number;
pub mod omp;
pub mod partial_json;
pub mod process;
pub mod protocol;
mod reasons;
pub mod reply;
mod response;
pub mod rule;
pub mod run_limits;
pub mod said;
#[cfg(feature = "schema")]
pub mod schema;
pub mod state;
pub mod subagent;
pub mod table;
pub mod todo;
pub mod tool;
pub mod ui;
pub mod usage;
pub mod values;

pub use command::Command;
pub use content::{AssistantBlock, ImageContent, TextContent, ThinkingContent, ToolCall, UserBlock};
pub use dialect::{Dialect, SessionRule};
pub use entry::{Entry, EntryBody, SessionHeader};
pub use event::{Event, StreamEvent};
pub use event_name::{EVENT_NAMES, canonical_event};
pub use extra::Extra;
pub use message::{
    AssistantMessage, BashExecutionMessage, BranchSummaryMessage, CompactionSummaryMessage, CustomMessage,
    Message, StopReason, ToolResultMessage, UserContent, UserMessage,
};
pub use model::{Model, ThinkingLevel};
pub use response::{Reply, Response};
pub use rule::Rule;
pub use run_limits::RunLimits;
pub use table::{CommandSpec, ConnectionCommand, Lane, ManagerCommand, SessionCommand};
pub use todo::{TodoItem, TodoPhase, TodoStatus};
pub use tool::{ToolResult, ToolSpec};
pub use usage::{Cost, Usage};
