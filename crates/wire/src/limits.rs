//! Every number that bounds what this crate accepts.

/// Deepest nesting of a command line; deeper ones are parse errors.
pub const MAX_DEPTH: usize = 128;

/// Most values in a line of JSON of a client, an editor, an MCP server, an extension or a hook: commas, colons and opening brackets
/// outside of strings are counted. A line with more is refused, since parsed values take many times the memory of their text.
pub const MAX_VALUES: usize = 500_000;

/// Bytes of memory that a value costs while its line is parsed and carried out, copies included (measured: 36 to 260).
pub const VALUE_BYTES: usize = 256;
