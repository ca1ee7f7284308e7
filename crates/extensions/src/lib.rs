//! Communication with extension processes. One child process for all TypeScript extensions, one for each other
//! program; JSON lines over pipes of their own, in both directions (`line`).
//!
//! What lives here: the lines, how answers to one event combine (`combining`), pairing questions with answers, noticing that a
//! child has died or hangs. What does not: what an extension's wish means for a session (`session`), who starts and kills
//! processes (the reaper, handed in as a [`ChildProcess`](::process::ChildProcess)), where extensions are found.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod combining;
mod embedded;
mod error;
pub mod find;
pub mod limits;
pub mod line;
mod pool;
mod process;
pub mod program;
#[cfg(feature = "schema")]
pub mod reference;
pub mod runtime;
#[cfg(test)]
mod tests;

pub use embedded::{is_there, unpack};
pub use error::ProcessError;
pub use pool::ExtensionPool;
pub use process::{Answer, ExtensionProcess, Greeting, PendingAnswer, ProcessMessage, Updates};
