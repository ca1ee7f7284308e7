//! How long a run waits for its extensions once it is aborted.

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::limits;

/// How long a run waits for its extensions: as long as they take, and a moment once it is aborted.
#[derive(Debug, Default)]
pub(super) struct AbortGrace {
    aborted: CancellationToken,
    /// When it ends, once the run is aborted.
    until: Option<Instant>,
}

impl AbortGrace {
    /// The run is aborted.
    pub(super) fn begin(&mut self) {
        // A second abort does not extend the time.
        if self.until.is_none() {
            self.until = Some(Instant::now() + limits::FAREWELL);
            self.aborted.cancel();
        }
    }

    /// Resolves when it ends.
    pub(super) fn ended(&self) -> impl Future<Output = ()> + Send + 'static {
        let (aborted, until) = (self.aborted.clone(), self.until);
        async move {
            match until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => {
                    // The time begins with an abort that may never come.
                    aborted.cancelled().await;
                    tokio::time::sleep(limits::FAREWELL).await;
                }
            }
        }
    }
}
