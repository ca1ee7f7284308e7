//! Chores of the repository, one module each. `main.rs` only picks one.
//!
//! What lives here: everything a maintainer or CI runs by `cargo run -p xtask -- <chore>`. What does not: anything the agent
//! needs at run time.

pub mod abort;
pub mod args;
pub mod bench;
pub mod book;
pub mod breaking;
pub mod cluster;
pub mod examples;
pub mod first_hour;
pub mod fuzz;
pub mod kill9;
pub mod models;
pub mod out;
pub mod package;
pub mod protocol;
pub mod reference;
mod sample;
pub mod soak;
pub mod startup;
pub mod tidy;
pub mod torn;
