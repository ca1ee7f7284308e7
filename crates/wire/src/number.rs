//! Numbers as JavaScript prints them: a whole `f64` has no `.0`, so files and frames equal those of the original agents.

use serde::{Serialize, Serializer};

/// Serialises an `f64` without a fraction part when it is a whole number within ±2^53.
pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "bounded by the range check above")]
        let whole = *value as i64;
        whole.serialize(serializer)
    } else {
        value.serialize(serializer)
    }
}
