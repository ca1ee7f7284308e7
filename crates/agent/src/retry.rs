//! How often and when a failed run is tried again (pi-core.md 4.1, pi-1.5-delta.md 5). The caller's
//! [`Verdict`](crate::Verdict) decides which failures are retried.

use serde::{Deserialize, Serialize};

use crate::limits::MAX_RETRY_DELAY_MS;

/// Settings `retry.*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetrySettings {
    /// Is a failed run tried again at all?
    pub enabled: bool,
    /// How often.
    pub max_retries: u32,
    /// Wait before the first retry, in milliseconds; doubles each time.
    pub base_delay_ms: u64,
    /// Longest wait, in milliseconds.
    pub max_delay_ms: u64,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            // The first three are the defaults of pi (pi-core.md 4.1).
            enabled: true,
            max_retries: 3,
            base_delay_ms: 2_000,
            max_delay_ms: MAX_RETRY_DELAY_MS,
        }
    }
}

impl RetrySettings {
    /// Wait before retry number `attempt` (1 is the first), in milliseconds: the base doubled each time, at least what the
    /// provider asked for, at most the cap.
    #[must_use]
    pub fn delay_ms(&self, attempt: u32, asked: Option<u64>) -> u64 {
        // With more doublings than bits the cap decides.
        let factor = 1_u64.checked_shl(attempt.saturating_sub(1)).unwrap_or(u64::MAX);
        let own = self.base_delay_ms.saturating_mul(factor);
        own.max(asked.unwrap_or(0)).min(self.max_delay_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_delay_doubles_up_to_cap() {
        let settings = RetrySettings::default();
        assert_eq!(
            [1, 2, 3].map(|n| settings.delay_ms(n, None)),
            [2_000, 4_000, 8_000]
        );
        assert_eq!(settings.delay_ms(200, None), 60_000);
        assert_eq!(settings.delay_ms(1, Some(5_000)), 5_000);
        assert_eq!(settings.delay_ms(1, Some(3_600_000)), 60_000);
    }
}
