//! Child processes: the reaper that owns every one of them, the guardian behind it, and the sandbox that confines commands.
//!
//! What lives here: how a process is started, killed with all its descendants, confined, and connected by pipes. What does
//! not: which programs run, and what their output means (`tools`, `extensions`, `mcp`, `session`). This crate reads no
//! environment, changes no working directory and writes nothing to the standard streams.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod child;
mod error;
pub mod limits;
mod lines;
mod path;
mod reaper;
pub mod sandbox;

pub use child::{Boxed, ChildProcess, Output, Pipes, Spawn, Spawned};
pub use error::ChildError;
pub use lines::{Line, LineReader};
pub use path::real_path;
#[cfg(target_os = "linux")]
pub use reaper::guardian;
pub use reaper::{
    Child, CommandProcesses, Ended, GuardianLaunch, PortOwner, Reaper, SpawnSpec, Terminal, TerminalSize,
};
pub use sandbox::Sandbox;
