//! Runs any agent program that speaks JSON lines over stdin and stdout, and waits for what it says. Here are only
//! the module list and the public names: `agent` is the running program, `output` what it printed, `process` its
//! signals and children, `pattern` and `steps` the scripts in JSON.

mod agent;
mod config;
mod output;
mod pattern;
mod process;
mod steps;

pub use agent::Agent;
pub use config::AgentConfig;
pub use output::Line;
pub use pattern::matches;
pub use process::{Signal, processes_marked};
pub use steps::{Runner, Step};
