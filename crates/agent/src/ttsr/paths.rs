//! Which files a tool call is about: arguments named `path`, `filePath`, `paths` and the like (dialects.md 8).

use serde_json::{Map, Value};
use wire::partial_json::PartialJson;

/// The paths among complete arguments.
pub(super) fn of(arguments: &Map<String, Value>) -> Vec<String> {
    let named = arguments.iter().filter(|(name, _)| is_path(name));
    let values = named.flat_map(|(_, value)| match value {
        Value::Array(items) => items.iter().collect(),
        one => vec![one],
    });
    values
        .filter_map(Value::as_str)
        .filter(|path| !path.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The paths among arguments that are still arriving; an incomplete path could match a rule that the complete one does not.
pub(super) fn complete(arguments: &PartialJson) -> Vec<String> {
    let mut found = of(&arguments.finish());
    // The text ends inside of a string, so the path at its end may go on.
    if arguments.closer().starts_with('"') {
        found.retain(|path| !arguments.stable().ends_with(path.as_str()));
    }
    found
}

fn is_path(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with("path") || name.ends_with("paths")
}
