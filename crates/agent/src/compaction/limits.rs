//! Every number that bounds compaction and branch summaries. The settings' defaults live in `session`.

/// Characters of a tool result, or of one argument of a tool call, in the request for a summary.
// The number of pi (pi-core.md 3.5).
pub(super) const MAX_TOOL_CHARS: usize = 2_000;

/// Least output tokens a summary request asks for, however small the reserve is.
pub(super) const MIN_SUMMARY_TOKENS: u64 = 512;

/// Most output tokens of a branch summary (pi-core.md 3.7).
pub(super) const BRANCH_SUMMARY_TOKENS: u64 = 2_048;

/// A summary that does not fit into a branch summary's budget is taken all the same below this part of it, in percent.
// The number of pi (pi-core.md 3.7).
pub(super) const BRANCH_STRETCH_PERCENT: u64 = 90;
