//! The pace at which the HTTP client of a server opens streams of events. A server that closes each stream at once and wants it
//! back after 0 ms (`retry: 0`) would otherwise be asked without end, as fast as it answers.

use std::collections::VecDeque;
use std::sync::Arc;

use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::limits;

/// The times of the newest streams. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pace(Arc<Mutex<VecDeque<Instant>>>);

impl Pace {
    /// Waits until another stream may be opened.
    pub(crate) async fn wait(&self) {
        let mut opened = self.0.lock().await;
        if opened.len() >= limits::STREAMS
            && let Some(oldest) = opened.front().copied()
        {
            sleep_until(oldest + limits::STREAMS_PERIOD).await;
            // After the wait: a cancelled one must not make room for another stream.
            opened.pop_front();
        }
        opened.push_back(Instant::now());
    }
}

/// Returns the delays between attempts to open a stream again. Those of `rmcp` grow without a limit: after a long outage, the notifications
/// of the server would be missed for as long again.
pub(crate) fn retries() -> ExponentialBackoff {
    let mut retries = ExponentialBackoff::default();
    retries.max_delay = Some(limits::BACKOFF.1);
    retries
}

#[cfg(test)]
mod tests {
    use rmcp::transport::common::client_side_sse::SseRetryPolicy as _;

    use super::*;

    #[test]
    fn delays_between_streams_are_bounded() {
        let (first, longest) = limits::BACKOFF;
        assert_eq!(retries().retry(0), Some(first));
        assert_eq!(retries().retry(20), Some(longest));
    }

    #[tokio::test(start_paused = true)]
    async fn streams_are_opened_at_a_bounded_pace() {
        let (most, period) = (limits::STREAMS, limits::STREAMS_PERIOD);
        let (pace, start) = (Pace::default(), Instant::now());
        for _ in 0..most {
            pace.wait().await;
        }
        assert_eq!(Instant::now(), start, "a few at once");
        for _ in 0..3 * most {
            pace.wait().await;
        }
        assert_eq!(Instant::now(), start + 3 * period);
        for _ in 0..most {
            let cancelled = tokio::time::timeout(period / 100, pace.wait()).await;
            assert!(cancelled.is_err(), "a wait that was cancelled makes no room");
        }
    }
}
