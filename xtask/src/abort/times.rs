//! Percentiles of measured times.

use std::fmt;
use std::time::Duration;

/// Measured times, shortest first.
#[derive(Debug, Clone, Default)]
pub(super) struct Times(Vec<Duration>);

impl FromIterator<Duration> for Times {
    fn from_iter<T: IntoIterator<Item = Duration>>(times: T) -> Self {
        let mut times: Vec<Duration> = times.into_iter().collect();
        times.sort_unstable();
        Self(times)
    }
}

impl Times {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// How many are longer than a limit.
    pub(super) fn over(&self, limit: Duration) -> usize {
        self.0.iter().filter(|time| **time > limit).count()
    }

    /// The shortest time that at least `percent` of a hundred do not exceed; zero when there are none.
    pub(super) fn percentile(&self, percent: usize) -> Duration {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).copied().unwrap_or_default()
    }
}

/// Median, 99th percentile and longest, in milliseconds.
impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [middle, late, longest] =
            [50, 99, 100].map(|percent| self.percentile(percent).as_secs_f64() * 1e3);
        write!(f, "{middle:.2} / {late:.2} / {longest:.2}")
    }
}
