//! Every number that bounds a tool: sizes, counts and waits. Nothing but constants lives here.

use std::time::Duration;

/// Lines of a tool result shown to the model (pi-core.md 5.1).
pub const MAX_LINES: usize = 2000;
/// Bytes of output in the structured result of bash: 1 MiB (pi-1.5-delta.md 7).
pub const STRUCTURED_MAX: u64 = 1 << 20;
/// Bytes of a tool result shown to the model: 50 KiB (pi-core.md 5.1).
pub const MAX_BYTES: usize = 51_200;
/// Characters of one line of a grep result (pi-core.md 5.7).
pub const GREP_LINE_CHARS: usize = 500;
/// Matches grep returns when the model sets no limit.
pub const GREP_LIMIT: usize = 100;
/// Lines of context around a match, at most.
pub const GREP_CONTEXT_MAX: usize = 1000;
/// Bytes of grep output collected before truncation, at most.
pub const GREP_OUTPUT_MAX: usize = 4 << 20;
/// Size of a compiled search pattern in bytes, at most.
pub const GREP_PATTERN_SIZE: usize = 10 << 20;
/// Longest line grep keeps in memory, in bytes; files with a longer one are skipped past it.
pub const GREP_HEAP: usize = 64 << 20;
/// Results find returns when the model sets no limit.
pub const FIND_LIMIT: usize = 1000;
/// Entries ls returns when the model sets no limit.
pub const LS_LIMIT: usize = 500;
/// Entries ls sorts, at most; a directory beyond that is cut before sorting.
pub const LS_SCAN_MAX: usize = 200_000;
/// Largest limit a model may ask of grep, find and ls.
pub const LIMIT_MAX: usize = 1_000_000;
/// Directory levels that completion searches completely before deeper ones.
pub const COMPLETE_NEAR: usize = 3;
/// Entries that completion looks at.
pub const COMPLETE_SCAN_MAX: usize = 400_000;
/// Directory levels grep and find descend.
pub const WALK_DEPTH: usize = 256;

/// Bytes looked at to tell an image from text (pi-core.md 5.2).
pub const SNIFF_BYTES: usize = 4100;
/// Time for an answer of the client to a request about a file, or to start a command.
pub const CLIENT_WAIT: Duration = Duration::from_secs(30);
/// Time for the client to kill a command, and to return its output afterwards.
pub const CLIENT_KILL_WAIT: Duration = Duration::from_secs(3);
/// Largest file on disk that the client is asked for, in bytes: 8 MiB.
pub const CLIENT_FILE_MAX: u64 = 8 << 20;
/// Bytes of output that a terminal of the client keeps: 1 MiB.
pub const CLIENT_OUTPUT: u64 = 1 << 20;
/// Similar names that an error lists.
pub const NEAREST_NAMED: usize = 3;
/// Letters of the longest name that is compared with others.
pub const NEAREST_NAME_MAX: usize = 128;
/// Entries of a directory that are compared with a missing name.
pub const NEAREST_SCAN_MAX: usize = 10_000;
/// Lines of an edit's old text that are compared with the file, and lines that the error shows.
pub const NEAREST_EDIT_LINES: usize = 30;
/// Pairs of lines that are compared to find the text nearest to an edit's.
pub const NEAREST_EDIT_PAIRS: usize = 2_000_000;
/// Bytes of a line that count when two lines are compared, and characters of it that an error shows.
pub const NEAREST_LINE_MAX: usize = 200;
/// Places of a repeated text that an error lists.
pub const REPEATS_NAMED: usize = 10;
/// Bytes read from a file at once.
pub const READ_BUFFER: usize = 256 << 10;
/// Bytes read looks through to count the lines of a file, at most.
pub const READ_SCAN_MAX: u64 = 8 << 30;
/// Largest image file that is read, in bytes.
pub const IMAGE_FILE_MAX: u64 = 64 << 20;
/// Memory a decoded image may take, in bytes. A pixel counts as at least four bytes, since scaling takes that much.
pub const IMAGE_ALLOC_MAX: u64 = 512 << 20;
/// Pixels an image may have on one side before it is decoded.
pub const IMAGE_SOURCE_SIDE_MAX: u32 = 32_768;
/// Pixels an image may have on one side when it is sent (pi-core.md 5.3).
pub const IMAGE_SIDE_MAX: u32 = 2000;
/// Base64 length of an image when it is sent: 4.5 MiB (pi-core.md 5.3).
pub const IMAGE_BASE64_MAX: usize = 4_718_592;
/// Largest file edit takes, in bytes.
pub const EDIT_FILE_MAX: u64 = 64 << 20;
/// Largest text write and edit put on disk, in bytes.
pub const WRITE_MAX: usize = 256 << 20;

/// Least time between two progress updates of one command (pi-core.md 5.4).
pub const UPDATE_EVERY: Duration = Duration::from_millis(100);
/// How long output may stay silent after a command's exit before its pipe is closed (pi-core.md 5.4).
pub const DRAIN_IDLE: Duration = Duration::from_millis(100);
/// How long output is drained after a command's exit, at most, even if it keeps coming.
pub const DRAIN_MAX: Duration = Duration::from_secs(5);
/// How long output is drained after a command was killed.
pub const DRAIN_KILLED: Duration = Duration::from_millis(100);
/// Longest timeout a command may ask for: ten days. Longer ones are cut to it.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(864_000);
/// Smallest and largest buffer for reading a command's output, in bytes.
pub const PIPE_READ: (usize, usize) = (16 << 10, 512 << 10);
/// Size the pipe of a talkative command is grown to, in bytes.
pub const PIPE_SIZE: usize = 1 << 20;
/// A command's output beyond this many bytes is read in larger gulps.
pub const PIPE_EAGER: u64 = 256 << 10;
/// Pause that lets the pipe of a talkative command fill up.
pub const PIPE_PAUSE: Duration = Duration::from_millis(1);
/// Bytes of output kept in memory for the snapshot once trimmed.
pub const TAIL_KEEP: usize = 128 << 10;
/// Bytes of output kept in memory before the tail is trimmed.
pub const TAIL_TRIM: usize = 512 << 10;
/// Bytes of output gathered before they are written to the log file.
pub const LOG_BUFFER: usize = 512 << 10;
/// Largest log file of one command, in bytes; later output is not logged.
pub const LOG_MAX: u64 = 4 << 30;
/// Bytes of an unfinished escape sequence that are held back before it is taken for text.
pub const ESCAPE_MAX: usize = 4096;

/// Time between the `tool_execution_start` line of an `edit` or `write` and the first change of its file. pi 0.74 and 1.5 take 4 to 7 ms, and
/// clients rely on it to read the file as it was when they receive `tool_execution_start`.
pub const CHANGE_DELAY: Duration = Duration::from_millis(6);
/// How long a write that has begun is waited for after an abort.
pub const WRITE_GRACE: Duration = Duration::from_secs(2);
/// Nesting that argument validation follows in a schema and in a value.
pub const SCHEMA_DEPTH: usize = 64;
/// Schema nodes one validation may visit.
pub const SCHEMA_STEPS: usize = 100_000;
/// Problems listed in one validation failure.
pub const SCHEMA_ERRORS: usize = 100;
/// Allowed values that an error names.
pub const SCHEMA_VALUES_SHOWN: usize = 20;
/// Times a foreign tool's arguments are converted and checked again.
pub const SCHEMA_PASSES: usize = 4;
/// References that are followed to find the schema of one field.
pub const SCHEMA_HOPS: usize = 16;
/// Size of the schema of a result, in bytes.
pub const OUTPUT_SCHEMA_BYTES: usize = 64 * 1024;
/// Size of a compiled `pattern` of a schema, in bytes.
pub const SCHEMA_PATTERN_SIZE: usize = 1 << 20;
