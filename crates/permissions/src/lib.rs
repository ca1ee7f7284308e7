//! Which tool calls may run: the rule language, what a shell command line does, the decision, and the text of the question to
//! the user. Not here: where the rules come from (`config`), and who asks the user (`session`).
//!
//! The crate reads no file and starts no process. Two facts about the disk come from the caller: where a path leads when its
//! links are followed ([`Bases::real_path`], [`Call::file`]), and what a file is that a call would replace ([`Existing`]).

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod call;
pub mod limits;
mod paths;
mod policy;
mod question;
mod rule;
mod settings;
mod shell;
mod strings;
#[cfg(test)]
mod table;
#[cfg(test)]
mod tests;
pub mod visible;
mod wild;

pub use call::Call;
pub use paths::Bases;
pub use policy::{Policy, Verdict, denied_programs};
pub use question::{Existing, Proposal, Question, Source};
pub use rule::tool_of;
pub use settings::{PermissionLayer, PermissionSettings};
pub use shell::is_lone_key;
