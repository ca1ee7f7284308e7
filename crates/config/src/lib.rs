//! What the user and the project configure: settings files, trust in projects, and resources (context files, skills, prompt
//! templates, packages). Not here: the environment and the command line (the binary), and what a session does with all of it
//! (`host`).
//!
//! Nothing here runs code of a project. Files of a project are read through `files` only.

mod diagnostic;
pub mod resources;
pub mod settings;
mod source;
pub mod trust;

pub use diagnostic::Diagnostic;
pub use source::{ExtraPath, Origin, Scope, SourceInfo, resolve_path};
