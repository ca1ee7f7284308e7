//! Every number that bounds what the registry reads, and what local servers are asked.

use std::time::Duration;

/// Most alternatives a `{a,b}` group in a `--models` pattern may expand to; the rest is ignored.
pub const MAX_GLOB_ALTERNATIVES: usize = 64;

/// Default context window of a model, in tokens.
pub const DEFAULT_CONTEXT: u64 = 128_000;

/// Default output limit of a model, in tokens.
pub const DEFAULT_OUTPUT: u64 = 16_384;

/// Timeout of a connection to a local server.
pub const LOCAL_CONNECT: Duration = Duration::from_millis(300);

/// Timeout for the status of a local server, which may be busy with a model.
pub const LOCAL_ANSWER: Duration = Duration::from_secs(1);

/// Timeout of the whole query of a local server.
pub const LOCAL_WHOLE: Duration = Duration::from_secs(3);

/// Time for which the models of local servers are cached.
pub const LOCAL_FRESH: Duration = Duration::from_secs(5);

/// Largest status response of a local server in bytes.
pub const LOCAL_BODY: usize = 8 << 20;

/// Most models of one local server.
pub const LOCAL_MODELS: usize = 200;

/// Concurrent queries about models of a local server.
pub const LOCAL_AT_ONCE: usize = 8;

/// Most changes of local servers that one process notices.
pub const LOCAL_CHANGES: usize = 1000;

/// Default context window of a local model, in tokens.
pub const LOCAL_CONTEXT: u64 = 8192;

/// Output limit of a local model, in tokens; at most a quarter of its context window.
pub const LOCAL_OUTPUT: u64 = 16_384;
