//! Every number that bounds what the binary itself waits for and keeps; all of them belong to the export of traces.

use std::time::Duration;

/// Most spans that wait to be sent to a collector; further ones are dropped.
pub(crate) const TRACES_QUEUE: usize = 2048;
/// Longest request to a collector.
pub(crate) const TRACES_REQUEST: Duration = Duration::from_secs(5);
/// How long the end of the process waits for the last spans to be sent.
pub(crate) const TRACES_FLUSH: Duration = Duration::from_secs(2);
