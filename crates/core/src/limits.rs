//! Every number that bounds what the machine does, and those that tokens are estimated with. Compaction has its own file.

/// Tool calls of one answer that run at the same time; the others wait. A model that asks for thousands gets them all, in
/// portions.
pub const MAX_PARALLEL_TOOLS: usize = 16;

/// Longest wait before a retry, in milliseconds (pi-1.5-delta.md 5).
pub const MAX_RETRY_DELAY_MS: u64 = 60_000;

/// Characters (UTF-16 units) that are taken for one token (pi-core.md 3.3).
pub const CHARS_PER_TOKEN: u64 = 4;

/// Tokens that an image is taken for, wherever it stands (pi-core.md 3.3).
pub const IMAGE_TOKENS: u64 = 1_200;
