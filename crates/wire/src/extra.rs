//! Members of messages and entries that this version does not know. Files of other agents, and of later versions, carry
//! them; they stay in place, and clients get them unchanged.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Unknown members, in the order they were read. Takes one word when there are none, which is nearly always.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extra(Option<Box<Map<String, Value>>>);

impl Extra {
    /// Returns true if there are no unknown members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// An unknown member.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.as_ref()?.get(name)
    }

    /// Takes out members that the surrounding object knows.
    pub(crate) fn drop_known(&mut self, names: &[&str]) {
        let Some(map) = &mut self.0 else { return };
        map.retain(|name, _| !names.contains(&name.as_str()));
        if map.is_empty() {
            self.0 = None;
        }
    }
}

impl From<Map<String, Value>> for Extra {
    fn from(map: Map<String, Value>) -> Self {
        Self((!map.is_empty()).then(|| Box::new(map)))
    }
}

impl<'de> Deserialize<'de> for Extra {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(Self::from)
    }
}

impl Serialize for Extra {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(map) => map.serialize(serializer),
            None => Map::new().serialize(serializer),
        }
    }
}
