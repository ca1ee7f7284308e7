//! Mending of lines that JSON parsers refuse or that hold several entries at once. Nothing here touches a file.

use memchr::memmem;
use serde_json::Value;
use serde_json::value::RawValue;

/// Replaces `\ud800`..`\udfff` escapes without a partner by `\ufffd`. JavaScript writes them when a string was cut in the
/// middle of a character; strict parsers refuse them. None when there are none.
pub(crate) fn replace_lone_surrogates(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        let (before, escape) = rest.split_at_checked(at)?;
        out.push_str(before);
        let len = match (surrogate(escape), escape.get(6..).and_then(surrogate)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(_), _) => {
                out.push_str("\\ufffd");
                rest = escape.get(6..)?;
                continue;
            }
            // Any other escape; its second character may be a backslash or a quote.
            (None, _) => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
        };
        let (kept, after) = escape.split_at_checked(len)?;
        out.push_str(kept);
        rest = after;
    }
    out.push_str(rest);
    (out != text).then_some(out)
}

/// The surrogate that an escape at the start of the text stands for.
fn surrogate(text: &str) -> Option<u16> {
    let hex = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(hex, 16)
        .ok()
        .filter(|unit| (0xd800..=0xdfff).contains(unit))
}

/// Removes members that are null, at any depth: JavaScript writes NaN and infinite numbers as null.
pub(crate) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, v| !v.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Cuts a damaged line at every place where a session line seems to begin and gives the first JSON value of each part: what
/// can be had when a torn line swallowed the next one, or a line feed was lost. Linear in the length of the line.
pub(crate) fn parts(line: &[u8]) -> Vec<Box<RawValue>> {
    let starts: Vec<usize> = memmem::find_iter(line, b"{\"type\":\"")
        .filter(|at| starts_session_line(line, *at))
        .collect();
    let ends = starts.iter().skip(1).copied().chain([line.len()]);
    starts
        .iter()
        .zip(ends)
        .filter_map(|(start, end)| first(line.get(*start..end)?))
        .collect()
}

/// Parses the JSON value at the beginning of a text, followed by anything.
pub(crate) fn first(text: &[u8]) -> Option<Box<RawValue>> {
    serde_json::Deserializer::from_str(&String::from_utf8_lossy(text))
        .into_iter()
        .next()?
        .ok()
}

fn starts_session_line(line: &[u8], at: usize) -> bool {
    let Some((before, rest)) = line.split_at_checked(at) else {
        return false;
    };
    // Entries inside other entries (an extension's data) are not lines of this session.
    if before.last().is_some_and(|b| matches!(b, b'[' | b',' | b':')) {
        return false;
    }
    // Of any type, since every agent has some of its own.
    let kind = rest.strip_prefix(b"{\"type\":\"").unwrap_or(rest);
    let end = memchr::memchr(b'"', kind).unwrap_or_default();
    kind.split_at_checked(end).is_some_and(|(kind, after)| {
        !kind.is_empty()
            && kind.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')
            && after.starts_with(b"\",\"")
    })
}
