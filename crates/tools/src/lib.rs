//! The agent's tools: read, bash, edit, write, grep, find and ls.
//!
//! What lives here: what the tools do, the texts they answer with, and argument validation.
//! What does not: how processes are started, killed and confined (`process`), which tools are active and permitted
//! (`session`), their form on the wire (`wire`). This crate reads no environment, changes no working directory and writes
//! nothing to the standard streams.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod args;
mod bash;
mod binary;
pub mod client;
mod config;
mod edit;
pub mod error;
pub mod image;
mod info;
pub mod limits;
pub mod nearest;
mod path;
pub mod pattern;
mod queue;
mod read;
mod search;
pub mod text;
mod toolbox;
pub mod validate;
mod write;

pub use bash::{BackgroundCommand, BashRun, StartedCommand, UserBash, UserOutput};
pub use config::{
    ChangeRecorder, FuzzyEdit, PendingChange, Progress, StartLine, ToolContext, ToolOutcome, ToolRequest,
    ToolsConfig,
};
pub use error::ToolsError;
pub use info::{ToolInfo, infos};
pub use process::TerminalSize;
pub use search::complete::{Completed, Fitting, complete};
pub use toolbox::Toolbox;
pub use validate::{ForeignSchema, OutputSchema};
