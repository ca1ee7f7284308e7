//! Numbers as JavaScript prints and reads them: a whole `f64` has no `.0`, so files and frames equal those of the original
//! agents.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

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

/// Reads a duration in milliseconds. Extensions write fractions, which are rounded; negative numbers count as absent.
///
/// # Errors
/// When the value is neither a number nor null.
pub fn milliseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let number = Option::<f64>::deserialize(deserializer)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "negative numbers are filtered, and `as` saturates"
    )]
    Ok(number.filter(|ms| *ms >= 0.0).map(|ms| ms.round() as u64))
}
