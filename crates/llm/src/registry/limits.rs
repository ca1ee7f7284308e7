//! Every number that bounds what the registry reads.

/// Largest `models.json` or `auth.json` that is read, in bytes; a larger one counts as damaged.
pub const MAX_FILE: u64 = 8 << 20;

/// Most alternatives a `{a,b}` group in a `--models` pattern may expand to; the rest is ignored.
pub const MAX_GLOB_ALTERNATIVES: usize = 64;

/// Default context window of a model, in tokens.
pub const DEFAULT_CONTEXT: u64 = 128_000;

/// Default output limit of a model, in tokens.
pub const DEFAULT_OUTPUT: u64 = 16_384;
