//! A JSON object as stored in a file: the order, the spelling of numbers and nested values stay byte for byte when other
//! members change.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// Members in their order.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields(Vec<(String, Member)>);

/// A member's value.
#[derive(Debug, Clone)]
pub(super) enum Member {
    /// As it was read.
    Raw(Box<RawValue>),
    /// New.
    New(Value),
    /// An object some of whose members are new.
    Fields(Fields),
}

impl Fields {
    /// An object out of raw text; none for anything else.
    pub(super) fn of_member(member: &Member) -> Option<Self> {
        match member {
            Member::Raw(raw) => serde_json::from_str(raw.get()).ok(),
            Member::Fields(fields) => Some(fields.clone()),
            Member::New(value) => serde_json::from_value(value.clone()).ok(),
        }
    }

    /// A member.
    pub(super) fn get(&self, name: &str) -> Option<&Member> {
        self.0
            .iter()
            .rev()
            .find(|(known, _)| known == name)
            .map(|(_, member)| member)
    }

    /// Sets a member where it stands, or at the end.
    pub(super) fn set(&mut self, name: &str, member: Member) {
        match self.0.iter().position(|(known, _)| known == name) {
            Some(at) => {
                let mut seen = 0;
                self.0.retain(|(known, _)| {
                    seen += 1;
                    seen - 1 <= at || known != name
                });
                if let Some(slot) = self.0.get_mut(at) {
                    slot.1 = member;
                }
            }
            None => self.0.push((name.to_owned(), member)),
        }
    }

    /// Removes a member; false when there was none.
    pub(super) fn remove(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|(known, _)| known != name);
        self.0.len() < before
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let mut map = out.serialize_map(Some(self.0.len()))?;
        for (name, member) in &self.0 {
            match member {
                Member::Raw(raw) => map.serialize_entry(name, raw)?,
                Member::New(value) => map.serialize_entry(name, value)?,
                Member::Fields(fields) => map.serialize_entry(name, fields)?,
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Fields::default();
                while let Some((name, raw)) = map.next_entry::<String, Box<RawValue>>()? {
                    fields.0.push((name, Member::Raw(raw)));
                }
                Ok(fields)
            }
        }
        input.deserialize_map(Members)
    }
}
