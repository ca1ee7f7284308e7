//! Tests of the store; the modules are named after what they try.

mod cache;
mod deferred;
mod faults;
pub(crate) mod fixtures;
mod forest;
mod forks;
mod glances;
mod listing;
mod log_file;
mod migration;
mod mutants;
mod power;
mod reading;
mod recovery;
mod trees;
mod two_writers;
mod variants;
mod waiting;
mod writing;
