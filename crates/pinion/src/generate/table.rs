//! What the generators read from the table of options: names and values.

use wire::Dialect;

use crate::args::{Flag, SECTIONS, Takes};

/// What may follow an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// Nothing.
    None,
    /// One of these words.
    Choice(Vec<&'static str>),
    /// A path of a file.
    File,
    /// A path of a directory.
    Directory,
    /// Anything else.
    Text,
}

/// Returns what may follow an option.
pub(super) fn value(flag: &Flag) -> Value {
    let (Takes::Value(what, _) | Takes::Maybe(what, _)) = flag.takes else {
        return Value::None;
    };
    let long = flag.names.first().copied().unwrap_or_default();
    let choices = match long {
        "--mode" => vec!["text", "json", "rpc", "web"],
        "--thinking" => vec!["off", "minimal", "low", "medium", "high", "xhigh", "max"],
        "--permission-mode" => vec!["off", "auto", "ask", "read-only"],
        "--sandbox" => vec!["off", "workspace-write", "read-only"],
        "--rpc-dialect" | "--dialect" => Dialect::ALL.map(Dialect::as_str).to_vec(),
        _ => Vec::new(),
    };
    if !choices.is_empty() {
        return Value::Choice(choices);
    }
    match what {
        "DIR" => Value::Directory,
        "FILE" | "PATH" | "URL|FILE" => Value::File,
        _ => Value::Text,
    }
}

/// Returns the placeholder of an option's value.
pub(super) fn placeholder(flag: &Flag) -> Option<&'static str> {
    match flag.takes {
        Takes::Nothing(_) => None,
        Takes::Value(what, _) | Takes::Maybe(what, _) => Some(what),
    }
}

/// Returns true if an option's value may be missing.
pub(super) fn is_optional(flag: &Flag) -> bool {
    matches!(flag.takes, Takes::Maybe(..))
}

/// Returns all options that are not a command's own.
pub(super) fn main_flags() -> impl Iterator<Item = &'static Flag> {
    SECTIONS.iter().flat_map(|(_, flags)| flags.iter())
}
