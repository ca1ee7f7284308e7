//! Every number that bounds what the binary itself waits for and keeps.

use std::time::Duration;

/// Queued spans for a collector. Further ones are dropped.
#[cfg(feature = "otel")]
pub(crate) const TRACES_QUEUE: usize = 2048;
/// Timeout of a request to a collector.
#[cfg(feature = "otel")]
pub(crate) const TRACES_REQUEST: Duration = Duration::from_secs(5);
/// Time for sending the last spans at shutdown.
#[cfg(feature = "otel")]
pub(crate) const TRACES_FLUSH: Duration = Duration::from_secs(2);
/// Time for sessions to end when the web server stops.
pub(crate) const DRAIN: Duration = Duration::from_secs(8);
/// Open files that the web server reserves for tools, models and sessions.
pub(crate) const FILES_OF_OUR_OWN: usize = 512;
/// Connections that the web server accepts even if the system allows few open files.
pub(crate) const FEWEST_CONNECTIONS: usize = 64;

/// Lines between a web gateway and the program with the connection to NATS, in each direction.
pub(crate) const GATEWAY_LINES: usize = 1_024;
