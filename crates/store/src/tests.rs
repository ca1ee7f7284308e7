//! Tests of the store; the modules are named after what they try.

mod faults;
pub(crate) mod fixtures;
mod forks;
mod listing;
mod migration;
mod mutants;
mod reading;
mod recovery;
mod trees;
mod two_writers;
mod writing;
