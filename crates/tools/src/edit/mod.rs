//! The `edit` tool (pi-core.md 5.5): argument repair, reading and writing. Matching lives in `plan`, endings in
//! `endings`, the normal form in `fuzzy`, the diff for clients in `diff`.

mod diff;
mod endings;
mod fuzzy;
mod nearest;
mod plan;

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use serde_json::{Map, Value, json};
use wire::{Dialect, ToolResult};

use crate::config::FuzzyEdit;
use crate::limits;
use crate::text::{format_size, system_error};
use endings::Endings;
pub(crate) use plan::Edit;

const NO_EDITS: &str = "Edit tool input is invalid. edits must contain at least one replacement.";

/// Parses `edits` where a model wrote them as a JSON text.
fn parse_text_edits(args: &mut Map<String, Value>) {
    let parsed = match args.get("edits") {
        Some(Value::String(text)) => serde_json::from_str::<Value>(text).ok(),
        _ => None,
    };
    if let Some(edits @ (Value::Array(_) | Value::Object(_))) = parsed {
        args.insert("edits".to_owned(), edits);
    }
}

/// The arguments with `edits` as a list, if the model wrote a JSON text or a single edit. The text of a later request shows the
/// model the form of the schema.
pub(crate) fn repaired(args: &Map<String, Value>) -> Option<Map<String, Value>> {
    let edits = match args.get("edits")? {
        Value::String(text) => match serde_json::from_str(text).ok()? {
            list @ Value::Array(_) => list,
            single => Value::Array(vec![is_edit(&single).then_some(single)?]),
        },
        single => Value::Array(vec![is_edit(single).then(|| single.clone())?]),
    };
    let mut repaired = args.clone();
    repaired.insert("edits".to_owned(), edits);
    Some(repaired)
}

fn is_edit(value: &Value) -> bool {
    let is_text = |name| value.get(name).is_some_and(Value::is_string);
    is_text("oldText") && is_text("newText")
}

/// Brings the shapes models use into the one of the schema: JSON text, one object, top-level `oldText`/`newText`.
pub(crate) fn prepare(args: &mut Map<String, Value>) {
    parse_text_edits(args);
    if let Some(Value::Object(_)) = args.get("edits") {
        let one = args.remove("edits").unwrap_or_default();
        args.insert("edits".to_owned(), Value::Array(vec![one]));
    }
    let texts = (args.get("oldText"), args.get("newText"));
    if let (Some(Value::String(old)), Some(Value::String(new))) = texts {
        let legacy = json!({ "oldText": old, "newText": new });
        match args.entry("edits").or_insert_with(|| Value::Array(Vec::new())) {
            Value::Array(edits) => edits.push(legacy),
            other => *other = Value::Array(vec![legacy]),
        }
        args.remove("oldText");
        args.remove("newText");
    }
    // Extra keys of an edit are harmless; the schema would refuse them.
    if let Some(Value::Array(edits)) = args.get_mut("edits") {
        for edit in edits.iter_mut().filter_map(Value::as_object_mut) {
            edit.retain(|key, _| key == "oldText" || key == "newText");
        }
    }
}

/// The edits of validated arguments.
pub(crate) fn edits(value: Option<&Value>) -> Vec<Edit> {
    let text = |edit: &Value, name| {
        edit.get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let list = value
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    list.iter()
        .map(|edit| Edit {
            old: text(edit, "oldText"),
            new: text(edit, "newText"),
        })
        .collect()
}

/// Applies edits to a file. `shown` is the path as the model wrote it.
pub(crate) fn edit(
    path: &Path,
    shown: &str,
    edits: &[Edit],
    mode: FuzzyEdit,
    dialect: Dialect,
) -> Result<ToolResult, String> {
    if edits.is_empty() {
        return Err(NO_EDITS.to_owned());
    }
    let text = read(path, shown, Purpose::Change)?;
    let changed = change(&text, shown, edits, mode, dialect)?;
    crate::write::put(path, changed.text.as_bytes())?;
    Ok(changed.result)
}

/// A text that was edited.
pub(crate) struct Changed {
    /// The new text.
    pub(crate) text: String,
    /// The result of the call once the text is written.
    pub(crate) result: ToolResult,
}

/// Applies edits to the text of a file. `shown` is its path as the model wrote it.
pub(crate) fn change(
    text: &str,
    shown: &str,
    edits: &[Edit],
    mode: FuzzyEdit,
    dialect: Dialect,
) -> Result<Changed, String> {
    if edits.is_empty() {
        return Err(NO_EDITS.to_owned());
    }
    let (bom, done) = plan(text, shown, edits, mode)?;
    let diff = diff::diff(&done.before, &done.after);
    let mut result = ToolResult::text(format!(
        "Successfully replaced {} block(s) in {shown}.",
        edits.len()
    ));
    let (diff, line) = (diff.text, diff.first_changed_line);
    result.details = Some(if dialect.is_newest_pi() {
        let patch = diff::patch(shown, &done.before, &done.after);
        json!({ "diff": diff, "firstChangedLine": line, "patch": patch })
    } else {
        json!({ "diff": diff, "firstChangedLine": line })
    });
    let text = format!("{bom}{}", done.endings.join(&done.after));
    Ok(Changed { text, result })
}

/// The diff that [`edit`] would report now. Changes nothing.
pub(crate) fn preview(path: &Path, shown: &str, edits: &[Edit], mode: FuzzyEdit) -> Result<String, String> {
    let text = read(path, shown, Purpose::Preview)?;
    let (_, done) = plan(&text, shown, edits, mode)?;
    Ok(diff::diff(&done.before, &done.after).text)
}

/// Why a file is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Change,
    Preview,
}

/// The byte order mark of a text, and what the edits make of the rest.
fn plan(
    text: &str,
    shown: &str,
    edits: &[Edit],
    mode: FuzzyEdit,
) -> Result<(&'static str, plan::Applied), String> {
    let (bom, text) = match text.strip_prefix('\u{feff}') {
        Some(rest) => ("\u{feff}", rest),
        None => ("", text),
    };
    let (text, endings) = Endings::split(text);
    Ok((bom, plan::apply(&text, &endings, shown, edits, mode)?))
}

fn read(path: &Path, shown: &str, purpose: Purpose) -> Result<String, String> {
    let failed = |error: &io::Error| {
        let (code, _) = system_error::describe(error);
        format!("Could not edit file: {shown}. Error code: {code}.")
    };
    if path.is_dir() {
        return Err(crate::read::DIRECTORY.to_owned());
    }
    let file = OpenOptions::new()
        .read(true)
        .write(purpose == Purpose::Change)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .map_err(|error| failed(&error))?;
    let meta = file.metadata().map_err(|error| failed(&error))?;
    if !meta.is_file() {
        return Err(format!("Could not edit file: {shown}. It is not a regular file."));
    }
    let mut bytes = Vec::new();
    file.take(limits::EDIT_FILE_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| failed(&error))?;
    if bytes.len() as u64 > limits::EDIT_FILE_MAX {
        let max = format_size(limits::EDIT_FILE_MAX);
        return Err(format!("Could not edit file: {shown}. It is larger than {max}."));
    }
    String::from_utf8(bytes).map_err(|_| {
        format!("Could not edit file: {shown}. It is not valid UTF-8, so editing would damage it.")
    })
}

#[cfg(test)]
mod tests;
