//! Borrowed, forgiving JSON fields for streams: a field of the wrong type counts as missing, so that one odd number of one
//! provider does not end an answer.

use std::borrow::Cow;
use std::fmt;

use auth::text::cut;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::answer::Fault;

/// A string; anything else is [`Text::default`], which holds none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Text<'a>(pub(crate) Option<Cow<'a, str>>);

impl Text<'_> {
    /// The string, empty when missing.
    pub(crate) fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// The string, unless missing or empty.
    pub(crate) fn filled(&self) -> Option<&str> {
        self.0.as_deref().filter(|text| !text.is_empty())
    }
}

/// A count; whole numbers as they are, fractions cut, negatives 0, anything else missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) Option<u64>);

impl Count {
    /// The count, 0 when missing.
    pub(crate) fn or_zero(self) -> u64 {
        self.0.unwrap_or_default()
    }
}

/// Visitor of both types: strings for one, numbers for the other.
struct Scalar;

/// A scalar of a document.
enum Found<'a> {
    Text(Cow<'a, str>),
    Count(u64),
    Other,
}

impl<'de> Visitor<'de> for Scalar {
    type Value = Found<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Self::Value, E> {
        Ok(Found::Text(Cow::Borrowed(v)))
    }

    fn visit_str<E>(self, v: &str) -> Result<Self::Value, E> {
        Ok(Found::Text(Cow::Owned(v.to_owned())))
    }

    fn visit_u64<E>(self, v: u64) -> Result<Self::Value, E> {
        Ok(Found::Count(v))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Self::Value, E> {
        Ok(Found::Count(u64::try_from(v).unwrap_or(0)))
    }

    fn visit_f64<E>(self, v: f64) -> Result<Self::Value, E> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "`as` saturates, which is wanted"
        )]
        Ok(Found::Count(v as u64))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Found::Other)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Found::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Found::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Found::Other)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match deserializer.deserialize_any(Scalar)? {
            Found::Text(text) => Self(Some(text)),
            Found::Count(_) | Found::Other => Self(None),
        })
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match deserializer.deserialize_any(Scalar)? {
            Found::Count(count) => Self(Some(count)),
            Found::Text(_) | Found::Other => Self(None),
        })
    }
}

/// The text of a stream whose JSON cannot be read, with a short piece of it.
pub(crate) fn unreadable(data: &str) -> Fault {
    Fault::new(format!(
        "Unreadable JSON in the provider's stream: {}",
        cut(data, 120)
    ))
}

/// Arguments of a call in chat completions come as a string of JSON; some servers send the object itself.
pub(crate) fn argument_text(raw: &str) -> Cow<'_, str> {
    if raw == "null" {
        return Cow::Borrowed("");
    }
    if !raw.starts_with('"') {
        return Cow::Borrowed(raw);
    }
    serde_json::from_str::<Text<'_>>(raw)
        .ok()
        .and_then(|text| text.0)
        .unwrap_or_default()
}

/// Returns true for a complete event, as opposed to the beginning of one. Events are JSON, except the last of chat
/// completions.
pub(crate) fn is_whole(data: &str) -> bool {
    let reads = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_ok();
    data.trim() == "[DONE]" || reads(data) || reads(&repair(data))
}

/// Replaces halves of surrogate pairs, which JSON may spell and text cannot hold, as in a delta that ends in the middle of a
/// character. Most events have none; they are only looked through.
pub(crate) fn mend_surrogates(data: &str) -> Cow<'_, str> {
    let bytes = data.as_bytes();
    let unit = |at: usize| {
        let digits = data.get(at..)?.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut out = String::new();
    let (mut done, mut next) = (0, 0);
    for at in memchr::memmem::find_iter(bytes, b"\\u") {
        let slashes = data.get(done..at).unwrap_or_default().bytes().rev();
        let escaped = slashes.take_while(|byte| *byte == b'\\').count() % 2 == 1;
        match unit(at) {
            Some(0xD800..=0xDFFF) if at < next || escaped => {}
            Some(0xD800..=0xDBFF) if matches!(unit(at + 6), Some(0xDC00..=0xDFFF)) => next = at + 12,
            Some(0xD800..=0xDFFF) => {
                out.push_str(data.get(done..at).unwrap_or_default());
                out.push_str("\\ufffd");
                done = at + 6;
            }
            _ => {}
        }
    }
    if done == 0 {
        return Cow::Borrowed(data);
    }
    out.push_str(data.get(done..).unwrap_or_default());
    Cow::Owned(out)
}

/// Repairs what some servers get wrong inside strings: raw control characters are escaped, a backslash before a character
/// that cannot be escaped is doubled (providers.md 2.3).
pub(crate) fn repair(data: &str) -> String {
    let mut out = String::with_capacity(data.len() + 16);
    let mut chars = data.chars().peekable();
    let mut inside = false;
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                inside = !inside;
                out.push(c);
            }
            '\\' if inside => match chars.peek() {
                Some('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' | 'u') => {
                    out.push(c);
                    out.extend(chars.next());
                }
                _ => out.push_str("\\\\"),
            },
            c if inside && c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_wrong_type_count_as_missing() {
        #[derive(serde::Deserialize)]
        struct Odd<'a> {
            #[serde(borrow, default)]
            a: Text<'a>,
            #[serde(default)]
            b: Count,
            #[serde(default)]
            c: Count,
        }
        let odd: Odd<'_> = serde_json::from_str(r#"{"a":[1,{"x":2}],"b":12.7,"c":"no"}"#).unwrap();
        assert_eq!((odd.a.as_str(), odd.b.0, odd.c.0), ("", Some(12), None));
        let odd: Odd<'_> = serde_json::from_str(r#"{"a":"t\n","b":null,"c":-3}"#).unwrap();
        assert_eq!((odd.a.as_str(), odd.b.0, odd.c.0), ("t\n", None, Some(0)));
    }

    #[test]
    fn lone_surrogates_are_replaced() {
        for (data, mended) in [
            (r#""plain \u00e4 \ud83d\ude00""#, None),
            (r#""\ud83d""#, Some(r#""\ufffd""#)),
            (
                r#""\ude00x\uD83D\uDE00\ud83d\ud83d\ude00""#,
                Some(r#""\ufffdx\uD83D\uDE00\ufffd\ud83d\ude00""#),
            ),
            (r#""\\ud83d \\\ud83d""#, Some(r#""\\ud83d \\\ufffd""#)),
            (r#""\ud83d\ude00\\ud83d""#, None),
            (r#""\ud8"#, None),
        ] {
            assert_eq!(mend_surrogates(data), mended.unwrap_or(data));
            let value: Result<serde_json::Value, _> = serde_json::from_str(&mend_surrogates(data));
            assert!(value.is_ok() || data.len() < 6, "{data}");
        }
    }

    #[test]
    fn json_repair_escapes_broken_strings() {
        let text = repair("{\"a\":\"tab\there \\d \\u00e4\"}");
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["a"], "tab\there \\d ä");
    }
}
