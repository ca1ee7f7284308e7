//! The Agent Client Protocol, version 1, over stdio: JSON-RPC requests of an editor become commands of sessions, and events
//! become session updates. What commands do is decided in `session`; lines and batches of output are those of `serve`.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod accounts;
mod client;
mod config;
mod connection;
mod content;
mod elicitation;
mod history;
mod host;
pub mod limits;
mod lines;
mod mcp_servers;
mod notices;
mod old_text;
mod options;
mod output;
mod permission;
mod port;
mod prompt;
mod purpose;
mod requests;
mod rpc;
pub mod server;
mod sessions;
mod state;
#[cfg(test)]
mod tests;
mod tool_calls;
mod updates;
mod usage;
mod workers;

pub use accounts::{Accounts, LoggingOut, Provider};
pub use host::Host;
pub use port::ClientPort;
pub use server::{Error, run, run_gateway};
pub use workers::Link;
