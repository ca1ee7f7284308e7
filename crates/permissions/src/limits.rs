//! Every number that bounds a permission dialog and what a session remembers of its answers.

/// Characters of the command, the content, the diff or the arguments that a permission dialog shows.
pub const ASKED_LETTERS: usize = 16_000;

/// Lines of them that a permission dialog shows.
pub const ASKED_LINES: usize = 100;

/// Characters of one line that a permission dialog shows.
pub const ASKED_LINE: usize = 6_000;

/// Characters of the name of a tool or a server that a permission dialog shows.
pub const ASKED_NAME: usize = 200;

/// Characters of a path or a URI that a permission dialog shows.
pub const ASKED_PATH: usize = 1_000;

/// Bytes at each end of a text that are prepared for a permission dialog.
pub const ASKED_RAW: usize = 256 << 10;

/// Calls that the user allowed for the session. The oldest ones are dropped.
pub const GRANTS: usize = 1_000;

/// Deny rules that the system prompt names.
pub const PROMPT_RULES: usize = 20;
