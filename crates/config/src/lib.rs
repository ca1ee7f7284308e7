//! What the user and the project configure: settings files, trust in projects, resources (context files, skills, prompt
//! templates, packages), and which extensions and hooks a session has. Not here: the environment and the command line (the binary), and what a session does with all of it
//! (`session`).
//!
//! Nothing here runs code of a project. Files of a project are read through `files` only.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod diagnostic;
pub mod extensions;
pub mod hooks;
pub mod limits;
pub mod listing;
mod places;
pub mod resources;
pub mod settings;
mod source;
pub mod trust;

pub use diagnostic::Diagnostic;
pub use places::{Choice, Generation, Places};
pub use source::{ExtraPath, Origin, Scope, SourceInfo, resolve_path};
