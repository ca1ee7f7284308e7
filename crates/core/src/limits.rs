//! Every number that bounds what the machine does.

/// Tool calls of one answer that run at the same time; the others wait. A model that asks for thousands gets them all, in
/// portions.
pub const MAX_PARALLEL_TOOLS: usize = 16;

/// Longest wait before a retry, in milliseconds (pi-1.5-delta.md 5).
pub const MAX_RETRY_DELAY_MS: u64 = 60_000;
