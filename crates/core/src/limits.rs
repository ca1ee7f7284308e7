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

/// Phases of a todo list.
pub const TODO_PHASES: usize = 200;

/// Items of a todo list, in all phases together.
pub const TODO_ITEMS: usize = 2_000;

/// Bytes of each text of a todo list.
pub const TODO_TEXT_BYTES: usize = 64 * 1024;

/// Reminders of open todos between two messages of the user (dialects.md 10.5).
pub const TODO_REMINDERS: u32 = 3;

/// Milliseconds after which a todo that is done leaves the list (dialects.md 8).
pub const TODO_CLEAR_DELAY_MS: u64 = 60_000;

/// Rules that are watched; more are left out and reported.
pub const RULES: usize = 200;

/// Regular expressions of one rule.
pub const CONDITIONS: usize = 32;

/// Bytes that one regular expression may take up compiled, and again while it is matched against one stream.
pub const CONDITION_BYTES: usize = 512 * 1024;

/// Turns after which a rule may be told again, at least: with fewer an answer could be stopped for ever.
pub const MIN_REPEAT_GAP: u64 = 2;

/// Turns after which a rule may be told again with `repeatMode` `after-gap` (dialects.md 8).
pub const REPEAT_GAP: u64 = 10;
