//! Client for the coding agent pinion, and for others that speak its protocol (`--mode rpc`): starts the agent, sends
//! commands, gives events, carries out tools of the host and answers dialogs.
//!
//! Here: what a host application calls. Not here: the data that goes over the wire (`wire`, re-exported), and the agent.
#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod client;
#[macro_use]
mod commands;
mod dialog;
mod error;
mod event;
mod events;
mod generated;
mod limits;
mod link;
mod nested;
mod options;
mod outcome;
mod process;
mod run;
mod script;
mod session;
mod tool;
mod tree;

pub use client::{Client, OpenSession};
pub use dialog::{Answer, Dialog};
pub use error::{Error, Result};
pub use event::Event;
pub use events::Events;
pub use options::{Options, Times};
pub use outcome::Outcome;
pub use run::{Prompt, Run};
pub use script::Script;
pub use session::Session;
pub use tool::{BoxError, HostTool, ToolCall};
pub use tree::{Tree, TreeNode};
pub use wire;
