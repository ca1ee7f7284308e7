//! Classifies the keys of a settings file for `doctor`: used, without effect, renamed or unknown. The table of keys is in
//! `table`, reading values in `typed`.

use serde_json::{Map, Value};

use crate::settings::foreign::{IGNORED, RENAMED};
use crate::settings::table::keys;
use crate::settings::types::{FoundKey, KeyUse};

/// What the members of an object in a settings file are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Members {
    /// Keys. Any other value than an object is reported.
    Keys,
    /// Keys. The object's own reader reports other values, since it also takes them as something.
    OwnKeys,
    /// Names that the user chose: the object is one key. Any other value is reported.
    Names,
}

/// The keys whose values are objects.
const OBJECTS: [(&str, Members); 18] = [
    ("mcpServers", Members::Names),
    ("thinkingBudgets", Members::Keys),
    ("compaction", Members::Keys),
    ("branchSummary", Members::Keys),
    ("retry", Members::Keys),
    ("retry.provider", Members::Keys),
    ("limits", Members::Keys),
    ("images", Members::Keys),
    ("fetch", Members::Keys),
    ("subagents", Members::Keys),
    ("processes", Members::Keys),
    ("todo", Members::Keys),
    ("todo.reminders", Members::OwnKeys),
    ("tasks", Members::Keys),
    ("ttsr", Members::Keys),
    ("localServers", Members::Keys),
    ("permissions", Members::OwnKeys),
    ("sandbox", Members::OwnKeys),
];

/// Keys for which any other value than an object is reported.
pub(crate) fn expected_objects() -> impl Iterator<Item = &'static str> {
    let expected = OBJECTS.iter().filter(|(_, members)| *members != Members::OwnKeys);
    expected.map(|(path, _)| *path)
}

/// Returns true if the members of this object are keys.
fn is_opened(path: &str) -> bool {
    let known = OBJECTS.iter().find(|(key, _)| *key == path);
    known.is_some_and(|(_, members)| *members != Members::Names)
}

/// What a key means, given by its path (`retry.provider.maxRetries`).
#[must_use]
pub fn meaning(path: &str) -> KeyUse {
    if keys().any(|key| key.path == path) {
        return KeyUse::Used;
    }
    if IGNORED.iter().any(|(_, names)| names.contains(&path)) {
        return KeyUse::NoMeaning;
    }
    match RENAMED.iter().find(|(old, _)| *old == path) {
        Some((_, new)) => KeyUse::Renamed(new),
        None => KeyUse::Unknown(alike(path)),
    }
}

/// All keys of a settings file with their use, in the order of the file.
#[must_use]
pub fn classify(keys: &Map<String, Value>) -> Vec<FoundKey> {
    let paths = paths(keys).into_iter();
    paths
        .map(|key| FoundKey {
            usage: meaning(&key),
            key,
        })
        .collect()
}

/// The paths of all keys in a file, in its order: objects we know are opened, everything else is one key.
pub(crate) fn paths(keys: &Map<String, Value>) -> Vec<String> {
    let mut out = Vec::new();
    collect("", keys, &mut out);
    out
}

fn collect(prefix: &str, keys: &Map<String, Value>, out: &mut Vec<String>) {
    for (key, value) in keys {
        let path = format!("{prefix}{key}");
        match value {
            Value::Object(inner) if is_opened(&path) && !inner.is_empty() => {
                collect(&format!("{path}."), inner, out);
            }
            _ => out.push(path),
        }
    }
}

/// The known key that was probably meant.
fn alike(path: &str) -> Option<&'static str> {
    let wanted = path.to_lowercase();
    // A short name resembles too many others.
    let bound = wanted.chars().count() / 5;
    keys()
        .map(|key| (distance(&wanted, &key.path.to_lowercase()), key.path))
        .filter(|(distance, _)| *distance <= bound.min(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Edits between two words (Levenshtein; two neighbours that changed places are one edit).
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    let (mut older, mut left_before) = (Vec::new(), None);
    for (line, left) in a.chars().enumerate() {
        let mut corner = line;
        let mut before = line + 1;
        let mut next = vec![before];
        let mut right_before = None;
        for (place, (above, right)) in row.iter().skip(1).zip(b.chars()).enumerate() {
            let replaced = corner + usize::from(left != right);
            before = replaced.min(before + 1).min(above + 1);
            if left_before == Some(right) && right_before == Some(left) {
                let swapped = place.checked_sub(1).and_then(|place| older.get(place));
                before = swapped.map_or(before, |swapped: &usize| before.min(swapped + 1));
            }
            corner = *above;
            right_before = Some(right);
            next.push(before);
        }
        older = std::mem::replace(&mut row, next);
        left_before = Some(left);
    }
    row.last().copied().unwrap_or(0)
}
