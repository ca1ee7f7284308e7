//! An MCP client: servers over standard streams and streamable HTTP, their tools, prompts and resources, and logins at them.
//! The protocol itself is spoken by `rmcp`; here is what makes a server that is slow, broken or hostile harmless.
//!
//! What lives here: configuration entries, connections and their repair, lists, calls, bounds. What does not: which files are
//! read and which servers a session has, what tools look like to a session, how results are shown and questions asked (`session`);
//! who starts and kills processes (the reaper, handed in as [`Spawn`](process::Spawn)); how proxies and certificates are found ([`Web`]).

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod address;
mod answers;
mod ask;
mod authorised;
mod client;
pub mod config;
mod error;
mod expand;
pub mod limits;
mod link;
mod listing;
mod names;
mod oauth;
mod open_questions;
mod outcome;
mod paced;
mod pipe;
mod post_limits;
mod probe;
mod question;
mod server;
mod store;
mod text;
mod web;

pub use client::Progress;
pub use config::ServerConfig;
pub use error::McpError;
pub use expand::{Expander, Lookup, RunCommand};
pub use link::{HttpClient, Resolve, Surroundings, Web};
pub use listing::{Argument, Lists, Prompt, Tool};
pub use names::{PREFIX, full_name, may_have_been, namespace};
pub use oauth::Login;
pub use outcome::{Block, Outcome};
pub use question::{AskUser, Field, Form, Kind, Question, Reply};
pub use server::{Server, Snapshot, Status};
pub use store::Logins;
