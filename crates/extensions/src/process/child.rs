//! The first line to a child process.

use std::time::Duration;

/// The first line to a child.
#[derive(Debug, Clone, Copy)]
pub struct Greeting<'a> {
    /// Version of the agent.
    pub version: &'a str,
    /// Where settings, keys and sessions are.
    pub agent_dir: &'a str,
    /// The agent itself, for extensions that start it again.
    pub program: Option<&'a str>,
    /// Bytes of memory that the child may hold; with more it is ended.
    pub memory: u64,
    /// How long it may say nothing when it is asked whether it lives.
    pub silence: Duration,
}
