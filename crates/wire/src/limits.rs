//! Every number that bounds what this crate accepts.

/// Deepest nesting of a command line; deeper ones are parse errors.
pub const MAX_DEPTH: usize = 128;
