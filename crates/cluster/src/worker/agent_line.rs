//! A line of the agent. Its members stay as the agent wrote them, and the worker parses only what it needs: a response can have
//! megabytes, and in a tree each entry is nested in the one before it, deeper than `serde_json` builds a `Value`.

use std::fmt;

use anyhow::Result;
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

/// A JSON object of the agent, with its members in their order.
#[derive(Debug, Clone)]
pub(crate) struct AgentLine {
    /// Its `type`, or nothing.
    kind: String,
    members: Members,
}

/// Names and texts of members.
#[derive(Debug, Clone, Default)]
struct Members(Vec<(String, Box<RawValue>)>);

impl AgentLine {
    /// Reads a line. Returns none if it is no JSON object.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let mut line = Self {
            kind: String::new(),
            members: serde_json::from_slice(text).ok()?,
        };
        line.kind = line.get("type").unwrap_or_default();
        Some(line)
    }

    /// Its `type`.
    pub(crate) fn kind(&self) -> &str {
        &self.kind
    }

    /// Returns true if it has the member.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.raw(name).is_some()
    }

    /// Parses a member. Returns none if it is not there, or is of another kind.
    pub(crate) fn get<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_str(self.raw(name)?.get()).ok()
    }

    fn raw(&self, name: &str) -> Option<&RawValue> {
        let mut members = self.members.0.iter();
        members
            .find(|(known, _)| known == name)
            .map(|(_, value)| &**value)
    }

    /// Replaces a member, or adds it at the end.
    pub(crate) fn set(&mut self, name: &str, value: &impl Serialize) -> Result<()> {
        let value = to_raw_value(value)?;
        match self.members.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.members.0.push((name.to_owned(), value)),
        }
        Ok(())
    }

    /// Removes a member.
    pub(crate) fn remove(&mut self, name: &str) {
        self.members.0.retain(|(known, _)| known != name);
    }

    /// The object that a member is. Returns none if it is no object.
    pub(crate) fn inner(&self, name: &str) -> Option<Self> {
        Self::parse(self.raw(name)?.get().as_bytes())
    }

    /// Parses all members. Returns none if one of them is nested too deeply.
    pub(crate) fn object(&self) -> Option<Map<String, Value>> {
        let members = self.members.0.iter();
        members
            .map(|(name, value)| Some((name.clone(), serde_json::from_str(value.get()).ok()?)))
            .collect()
    }

    /// About the bytes of its text.
    pub(crate) fn bytes(&self) -> usize {
        let members = self.members.0.iter();
        members
            .map(|(name, value)| name.len() + value.get().len() + 4)
            .sum()
    }

    /// Its text, without a line feed.
    pub(crate) fn text(&self) -> Result<String> {
        Ok(serde_json::to_string(self)?)
    }
}

impl Serialize for AgentLine {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        output.collect_map(self.members.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Members::default();
                while let Some(member) = map.next_entry::<String, Box<RawValue>>()? {
                    members.0.push(member);
                }
                Ok(members)
            }
        }
        input.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests {
    use super::AgentLine;
    use serde_json::json;

    #[test]
    fn nested_response_is_passed_on_as_written() {
        let depth = 100_000;
        let tree = format!("{}1{}", "[{\"children\": ".repeat(depth), "}]".repeat(depth));
        let text = format!(
            r#"{{"id":"w7:s","type":"response","command":"get_tree","success":true,"data":{{"tree":{tree}}},"session":"s"}}"#
        );
        let mut line = AgentLine::parse(format!("{text}\n").as_bytes()).unwrap();
        assert_eq!(line.kind(), "response");
        assert_eq!(line.get::<bool>("success"), Some(true));
        assert_eq!(line.text().unwrap(), text);
        assert!(line.object().is_none());
        line.remove("session");
        line.set("id", &json!({"of": "client"})).unwrap();
        let mut data = line.inner("data").unwrap();
        data.set("lastSeq", &3).unwrap();
        line.set("data", &data).unwrap();
        assert_eq!(
            line.text().unwrap(),
            format!(
                r#"{{"id":{{"of":"client"}},"type":"response","command":"get_tree","success":true,"data":{{"tree":{tree},"lastSeq":3}}}}"#
            )
        );
    }

    #[test]
    fn lines_that_are_no_objects_are_dropped() {
        for text in ["", "[]", "1", "{", "{\"type\":\"a\"} {}"] {
            assert!(AgentLine::parse(text.as_bytes()).is_none(), "{text}");
        }
        let line = AgentLine::parse(br#"{"type":7,"seq":1}"#).unwrap();
        assert_eq!((line.kind(), line.get::<u64>("seq")), ("", Some(1)));
        assert_eq!(json!(line.object().unwrap()), json!({"type": 7, "seq": 1}));
    }
}
