//! Every number that bounds what the machine does, and the numbers of the token estimate. Compaction has its own file.

/// Concurrent tool calls of one answer. The others wait.
pub const MAX_PARALLEL_TOOLS: usize = 16;

/// Longest delay before a retry, in milliseconds.
// The number of today's pi (pi-1.5-delta.md 5).
pub const MAX_RETRY_DELAY_MS: u64 = 60_000;

/// The same in a process that works as today's oh-my-pi, which waits for quotas, ms.
// The number of today's oh-my-pi (dialects.md 14).
pub const MAX_QUOTA_DELAY_MS: u64 = 300_000;

/// Part of a limit, in percent, at which the model gets a message if the host wants that.
// Documented for users (docs/guides/limits.md).
pub const LIMIT_WARNING_PERCENT: u64 = 80;

/// How often a model is asked again after an answer without text and calls, between two messages of the user (dialects.md 5, row 41).
pub const SILENT_ANSWERS: u32 = 3;

/// Attempts to give a result that may fail before a run ends without one.
// Documented for users (docs/guides/results.md).
pub const RESULT_REPAIRS: u32 = 3;

/// Characters (UTF-16 units) per token in estimates.
// This number and the next one are those of pi, which counts text in UTF-16 units, too (pi-core.md 3.3).
pub const CHARS_PER_TOKEN: u64 = 4;

/// Tokens of an image in estimates.
pub const IMAGE_TOKENS: u64 = 1_200;

/// Tokens of the context window that an output limit leaves free, since the context may be larger than estimated.
// The number of today's pi, as is `ROOM_MARGIN_PERCENT`. The part of the window is Pinion's own (pi-1.5-delta.md 5).
pub const ROOM_MARGIN: u64 = 4_096;

/// The margin is at most the window divided by this.
pub const ROOM_MARGIN_PART: u64 = 8;

/// Part of the context, in percent, that the margin is at least while much of the window is free. `OpenRouter` counts up to 12 % more
/// tokens than the provider behind it.
pub const ROOM_MARGIN_PERCENT: u64 = 15;

/// Output tokens for which the part of the context is not deducted.
pub const ROOM_KEPT: u64 = 32_768;

/// Phases of a todo list.
pub const TODO_PHASES: usize = 200;

/// Items of a todo list, in all phases together.
pub const TODO_ITEMS: usize = 2_000;

/// Bytes of each text of a todo list.
pub const TODO_TEXT_BYTES: usize = 64 * 1024;

/// Reminders of open todos between two messages of the user (dialects.md 10.5).
pub const TODO_REMINDERS: u32 = 3;

/// Milliseconds after which a completed todo is removed from the list.
pub const TODO_CLEAR_DELAY_MS: u64 = 60_000;

/// Rules that are watched. Further ones are reported and ignored.
pub const RULES: usize = 200;

/// Regular expressions of one rule.
pub const CONDITIONS: usize = 32;

/// Bytes of a compiled regular expression, and of its cache for one stream.
pub const CONDITION_BYTES: usize = 512 * 1024;

/// Smallest number of turns after which a rule can match again. With fewer, a rule could interrupt forever.
pub const MIN_REPEAT_GAP: u64 = 2;

/// Default number of turns after which a rule can match again with `after-gap`.
// The default of `ttsr.repeatGap` in the originals (dialects.md 8).
pub const REPEAT_GAP: u64 = 10;
