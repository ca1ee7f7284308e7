//! Compaction and branch summaries: tables for the rules, chance for what must always hold.
#![expect(clippy::unwrap_used, reason = "helpers of a test may panic")]
#![expect(clippy::indexing_slicing, reason = "helpers of a test may panic")]

mod branches;
mod common;
mod cuts;
mod estimates;
mod properties;
mod summaries;
mod triggers;
