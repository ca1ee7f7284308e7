//! Durations as JSON numbers of seconds, the form scripts use. Nothing else.

use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A span of time that is written as seconds, for example `0.25`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Secs(pub(crate) Duration);

impl Serialize for Secs {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_f64(self.0.as_secs_f64())
    }
}

impl<'de> Deserialize<'de> for Secs {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let n = f64::deserialize(d)?;
        Duration::try_from_secs_f64(n).map(Self).map_err(D::Error::custom)
    }
}

/// For `#[serde(with = "secs")]` on a plain `Duration`.
pub(crate) fn serialize<S: Serializer>(d: &Duration, s: S) -> Result<S::Ok, S::Error> {
    Secs(*d).serialize(s)
}

/// For `#[serde(with = "secs")]` on a plain `Duration`.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Duration, D::Error> {
    Secs::deserialize(d).map(|s| s.0)
}

/// Seconds for `Option<Duration>`.
pub(crate) mod opt {
    use super::{Deserialize, Deserializer, Duration, Secs, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(d: &Option<Duration>, s: S) -> Result<S::Ok, S::Error> {
        d.map(Secs).serialize(s)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<Secs>::deserialize(d)?.map(|s| s.0))
    }
}
