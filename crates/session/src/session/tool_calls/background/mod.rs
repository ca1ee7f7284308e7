//! Processes that work in the background of a session (docs/guides/background-processes.md): `bash` starts them, the tool
//! `process` and clients watch, feed and end them. Both are off unless the user names the tool.
//!
//! `processes` owns them: they end with the session. `process` is one of them, `running` reads it, `output` keeps the end of what it prints,
//! `start` is the tool `bash`, `control` the tool `process`. Nothing here names the session.

mod control;
mod output;
mod process;
mod processes;
mod running;
mod start;
mod wait;

pub use self::control::PROCESS_TOOL;
pub(crate) use self::control::ProcessTool;
pub(crate) use self::processes::{Exits, Processes};
pub(crate) use self::start::BackgroundBash;
