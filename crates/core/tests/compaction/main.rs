//! Compaction and branch summaries: tables for the rules, chance for what must always hold.

mod branches;
mod chance;
mod common;
mod cuts;
mod summaries;
mod triggers;
