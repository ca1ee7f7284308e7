//! One line of a session file to a header or an entry. Splitting a file into lines lives in `load`, mending in `repair`.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use wire::entry::MessageEntry;
use wire::{Entry, EntryBody, Extra, Message};

use crate::damage::SkipReason;
use crate::header::{self, HeaderLine};
use crate::limits::MAX_LINE;
use crate::repair;

/// What a line is.
#[derive(Debug)]
pub(crate) enum Line {
    /// White space only.
    Blank,
    /// A session header.
    Header(Box<HeaderLine>),
    /// oh-my-pi's name of the session, in a line of its own before the header.
    Title(String),
    /// An entry.
    Entry(Box<Parsed>),
    /// Nothing that can be used.
    Bad(SkipReason),
}

#[derive(Deserialize)]
struct Title {
    #[serde(default)]
    title: String,
}

/// An entry and how well it could be read.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) entry: Entry,
    /// True if the line contains a parent (null included).
    pub(crate) parent_known: bool,
    pub(crate) quality: Quality,
}

/// How well an entry could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quality {
    /// As it stands.
    Clean,
    /// After mending.
    Mended,
    /// Whole, but not of the shape its type asks for.
    Opaque,
}

/// The members every entry has, and the text of all others: a message is parsed once its role is known.
#[derive(Default)]
struct Head<'a> {
    kind: Option<String>,
    id: Option<String>,
    /// Outer none: the line does not say.
    parent: Option<Option<String>>,
    timestamp: Option<String>,
    message: Option<&'a RawValue>,
    others: Vec<(String, &'a RawValue)>,
}

/// By hand, since `flatten` would keep all unknown members as values, however deeply they are nested.
impl<'de> Deserialize<'de> for Head<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Head<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an entry")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                #[derive(Deserialize)]
                struct Key<'a>(#[serde(borrow)] Cow<'a, str>);
                let mut head = Head::default();
                while let Some(Key(key)) = map.next_key()? {
                    match key.as_ref() {
                        "type" => head.kind = map.next_value()?,
                        "id" => head.id = map.next_value()?,
                        "parentId" => head.parent = Some(map.next_value()?),
                        "timestamp" => head.timestamp = map.next_value()?,
                        "message" => head.message = map.next_value()?,
                        _ => head.others.push((key.into_owned(), map.next_value()?)),
                    }
                }
                Ok(head)
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// Reads one line, mending what can be mended.
pub(crate) fn line(bytes: &[u8]) -> Line {
    let bytes = bytes.trim_ascii();
    if bytes.is_empty() {
        return Line::Blank;
    }
    if bytes.len() > MAX_LINE {
        return Line::Bad(SkipReason::TooLong);
    }
    // Checking first is several times faster than `from_utf8_lossy` alone, and nearly every line passes.
    let text = str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed);
    let quality = if matches!(text, Cow::Borrowed(_)) {
        Quality::Clean
    } else {
        Quality::Mended
    };
    if let Ok(line) = typed(&text, quality) {
        return line;
    }
    if let Some(line) = repair::replace_lone_surrogates(&text).and_then(|t| typed(&t, Quality::Mended).ok()) {
        return line;
    }
    loose(&text)
}

/// Reads a line whose members all have the types they should have.
fn typed(text: &str, quality: Quality) -> Result<Line, serde_json::Error> {
    if !text.starts_with('{') {
        return Ok(Line::Bad(SkipReason::NotJson));
    }
    let head: Head<'_> = serde_json::from_str(text)?;
    let kind = head.kind.as_deref().unwrap_or("");
    if kind == "session" {
        let map: Map<String, Value> = serde_json::from_str(text)?;
        return Ok(match header::from_map(&map) {
            Some(header) => Line::Header(Box::new(HeaderLine {
                mended: quality == Quality::Mended,
                ..header
            })),
            None => Line::Bad(SkipReason::NoId),
        });
    }
    if kind == "title" && head.id.is_none() {
        let title: Title = serde_json::from_str(text)?;
        return Ok(Line::Title(title.title));
    }
    let Some(id) = head.id.filter(|id| !id.is_empty()) else {
        return Ok(Line::Bad(SkipReason::NoId));
    };
    let body = match head.message {
        Some(raw) if kind == "message" => EntryBody::Message(MessageEntry {
            message: Arc::new(message(raw.get())?),
            extra: extra(&head.others)?,
        }),
        _ => Entry::from_json(text)?.body,
    };
    let parent_known = head.parent.is_some();
    let entry = Entry {
        id,
        parent_id: head.parent.flatten(),
        timestamp: head.timestamp.unwrap_or_default(),
        body,
    };
    Ok(Line::Entry(Box::new(Parsed {
        entry,
        parent_known,
        quality,
    })))
}

/// What other agents add to an entry.
fn extra(others: &[(String, &RawValue)]) -> Result<Extra, serde_json::Error> {
    let others = others.iter();
    let others = others.map(|(key, raw)| Ok((key.clone(), serde_json::from_str(raw.get())?)));
    Ok(Extra::from(others.collect::<Result<Map<_, _>, _>>()?))
}

/// Parses a message. Every agent of the family writes the role first; then it need not be searched for. It is cut off, since
/// to a message of one role it would be an unknown member.
fn message(raw: &str) -> Result<Message, serde_json::Error> {
    let parts = raw
        .strip_prefix("{\"role\":\"")
        .and_then(|rest| rest.split_once("\","));
    let body = |members: &str| ["{", members].concat();
    Ok(match parts {
        Some(("user", members)) => Message::User(serde_json::from_str(&body(members))?),
        Some(("assistant", members)) => Message::Assistant(serde_json::from_str(&body(members))?),
        Some(("toolResult", members)) => Message::ToolResult(serde_json::from_str(&body(members))?),
        _ => Message::from_json(raw)?,
    })
}

/// Reads a line of which at least the JSON is right, so that its children keep their place in the tree.
fn loose(text: &str) -> Line {
    let mended = repair::replace_lone_surrogates(text);
    let text = mended.as_deref().unwrap_or(text);
    let Ok(mut map) = serde_json::from_str::<Map<String, Value>>(text) else {
        // Nested too deeply for a value; the members on top can still be had.
        return serde_json::from_str::<Head<'_>>(text).map_or(Line::Bad(SkipReason::NotJson), bare);
    };
    // A member of another type than it should have must not cost the session its header.
    if let Some(header) = header::from_map(&map) {
        return Line::Header(Box::new(HeaderLine {
            mended: true,
            ..header
        }));
    }
    if let Some(message) = map.get_mut("message") {
        repair::drop_nulls(message);
        let again = serde_json::to_string(&map)
            .ok()
            .and_then(|t| typed(&t, Quality::Mended).ok());
        if let Some(line) = again {
            return line;
        }
    }
    opaque(map)
}

fn opaque(map: Map<String, Value>) -> Line {
    let text = |key: &str| map.get(key).and_then(Value::as_str).map(str::to_owned);
    let Some(id) = text("id").filter(|id| !id.is_empty()) else {
        return Line::Bad(SkipReason::NoId);
    };
    let (parent_id, timestamp) = (text("parentId"), text("timestamp").unwrap_or_default());
    let parent_known = map.contains_key("parentId");
    let body = match (map.get("type").and_then(Value::as_str), map.get("message")) {
        (Some("message"), Some(message @ Value::Object(_))) => {
            EntryBody::message(Arc::new(Message::Other(message.clone())))
        }
        _ => EntryBody::Other(map),
    };
    let entry = Entry {
        id,
        parent_id,
        timestamp,
        body,
    };
    Line::Entry(Box::new(Parsed {
        entry,
        parent_known,
        quality: Quality::Opaque,
    }))
}

fn bare(head: Head<'_>) -> Line {
    let Some(id) = head.id.filter(|id| !id.is_empty()) else {
        return Line::Bad(SkipReason::NoId);
    };
    let (parent_known, parent_id) = (head.parent.is_some(), head.parent.flatten());
    let timestamp = head.timestamp.unwrap_or_default();
    let mut map = Map::new();
    map.insert("type".to_owned(), head.kind.unwrap_or_default().into());
    map.insert("id".to_owned(), id.clone().into());
    map.insert(
        "parentId".to_owned(),
        parent_id.clone().map_or(Value::Null, Value::from),
    );
    map.insert("timestamp".to_owned(), timestamp.clone().into());
    let entry = Entry {
        id,
        parent_id,
        timestamp,
        body: EntryBody::Other(map),
    };
    Line::Entry(Box::new(Parsed {
        entry,
        parent_known,
        quality: Quality::Opaque,
    }))
}
