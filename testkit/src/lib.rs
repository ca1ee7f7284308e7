//! A kit for testing coding agents and the programs that embed them, without a model and without a network.
//!
//! * [`llm`]: a scripted LLM server. It speaks Anthropic Messages, OpenAI chat completions, OpenAI Responses and
//!   Google generateContent as streams over HTTP, answers what a script says, fails in every way a script says,
//!   and records what it was asked.
//! * [`driver`]: runs any agent program that speaks JSON lines over stdin and stdout, and waits for what it says.
//! * [`workspace`]: a throw-away home and configuration that point an agent at the server.
//!
//! The kit uses threads and blocking sockets only, so that it decides about every byte and every write, and so that
//! it can be used from any test, with or without an async runtime. It needs a Unix system.
//!
//! # Example
//!
//! A shell script stands in for the agent here: it answers every line with an event.
//!
//! ```
//! use std::time::Duration;
//!
//! use serde_json::json;
//! use testkit::driver::Agent;
//! use testkit::llm::{CutHow, ErrorKind, Reply, ScriptedServer};
//! use testkit::workspace::Workspace;
//!
//! # fn main() -> Result<(), testkit::Error> {
//! // What the model will say: a tool call, then a rate limit, then an answer whose connection breaks.
//! let server = ScriptedServer::start([
//!     Reply::tool("call_1", "bash", json!({"command": "ls"})),
//!     Reply::error(ErrorKind::RateLimit).header("retry-after", "2"),
//!     Reply::text(["Hel", "lo"]).cut(700, CutHow::Reset),
//! ])?;
//!
//! let workspace = Workspace::new(&server.url())?;
//! let script = r#"while read -r line; do echo '{"type":"agent_end"}'; done"#;
//! let agent = Agent::spawn(workspace.agent("sh").args(["-c", script]))?;
//!
//! let second = Duration::from_secs(10);
//! agent.send(&json!({"type": "prompt", "message": "Hi"}))?;
//! agent.wait_type("agent_end", second)?;
//! agent.close_stdin();
//! assert!(agent.wait_exit(second)?.success());
//! // A real agent would have asked the server by now:
//! assert_eq!(server.requests().len(), 0);
//! assert_eq!(server.unused(), [0, 1, 2]);
//! # Ok(())
//! # }
//! ```

pub mod driver;
mod error;
pub mod limits;
pub mod llm;
pub mod workspace;

pub use error::{Error, Result};
