//! Every number that bounds what the binary itself waits for and keeps.

use std::time::Duration;

/// Most spans that wait to be sent to a collector; further ones are dropped.
#[cfg(feature = "otel")]
pub(crate) const TRACES_QUEUE: usize = 2048;
/// Longest request to a collector.
#[cfg(feature = "otel")]
pub(crate) const TRACES_REQUEST: Duration = Duration::from_secs(5);
/// How long the end of the process waits for the last spans to be sent.
#[cfg(feature = "otel")]
pub(crate) const TRACES_FLUSH: Duration = Duration::from_secs(2);
/// How long sessions may take to end when a web server is told to stop; what has not ended then is left behind.
pub(crate) const DRAIN: Duration = Duration::from_secs(8);
/// Files that a web server keeps for everything but connections: tools, models, sessions.
pub(crate) const FILES_OF_OUR_OWN: usize = 512;
/// Connections that a web server takes even where the system gives it hardly any files.
pub(crate) const FEWEST_CONNECTIONS: usize = 64;
