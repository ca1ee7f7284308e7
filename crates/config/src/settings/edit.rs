//! Changes to the list `packages` of a settings file. Everything else stays byte for byte: comments, order, unknown keys. Files
//! are changed under the lock that pi takes (`settings.json.lock`) and replaced in one step.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use files::{Mode, PiLock, Root};
use serde_json::{Value, json};

use crate::settings::jsonc::{self, Layout};
use crate::settings::limits;
use crate::trust::take_lock;

const KEY: &str = "packages";

/// A change to one entry of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackageEdit {
    /// Appends a source.
    Append(String),
    /// Replaces the source of the entry at an index; its filters stay.
    Replace(usize, String),
    /// Removes the entry at an index.
    Remove(usize),
}

/// A settings file under the lock that pi takes. Dropping it releases the lock.
#[derive(Debug)]
pub struct SettingsFileLock {
    path: PathBuf,
    _lock: PiLock,
}

impl SettingsFileLock {
    /// Waits for the lock, at most two seconds, and creates the directory of the file.
    ///
    /// # Errors
    /// If another program holds the lock, or the directory cannot be written.
    pub fn take(path: &Path) -> io::Result<Self> {
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir)?;
        }
        let lock = take_lock(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                io::Error::new(error.kind(), "another program is changing it; try again")
            }
            _ => error,
        })?;
        Ok(Self {
            path: path.to_path_buf(),
            _lock: lock,
        })
    }

    /// Replaces the file in one step. Links and permissions stay.
    ///
    /// # Errors
    /// If the file cannot be written; the old one stays then.
    pub fn replace(&self, text: &str) -> io::Result<()> {
        let target = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        files::replace(&target, text.as_bytes(), Mode::Keep(0o644))
    }
}

/// Reads a settings file as text. A missing file is empty.
///
/// # Errors
/// If the file cannot be read or is too long.
pub fn read(path: &Path) -> io::Result<String> {
    let text = Root::user().read_if_there(path, limits::FILE_BYTES)?;
    match text {
        Some(text) if text.cut => Err(io::Error::other("the file is too long")),
        Some(text) => Ok(text.text),
        None => Ok(String::new()),
    }
}

/// Lists the entries of `packages`: source, and whether the entry has filters. Entries without a source are empty texts.
///
/// # Errors
/// If the text is no JSON object, or `packages` is no list.
pub fn packages(text: &str) -> Result<Vec<(String, bool)>, String> {
    let entries = entries(&document(text)?)?;
    let entry = |entry: &Value| match entry {
        Value::Object(members) => (
            members
                .get("source")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            true,
        ),
        other => (other.as_str().unwrap_or_default().to_owned(), false),
    };
    Ok(entries.iter().map(entry).collect())
}

/// Applies one change to the list.
///
/// # Errors
/// If the text is no JSON object, `packages` is no list, the entry is not there, or the change cannot be made without touching
/// anything else.
pub fn edit_packages(text: &str, edit: &PackageEdit) -> Result<String, String> {
    let (mark, body) = match text.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", text),
    };
    let wanted = changed(document(body)?, edit).ok_or_else(|| format!("\"{KEY}\" has no such entry"))?;
    let edited = edited(body, edit).unwrap_or_default();
    // Texts that this editor misunderstands are refused, not written.
    if jsonc::parse(&edited).ok().as_ref() != Some(&wanted) {
        return Err(format!("\"{KEY}\" has a form that cannot be changed here"));
    }
    Ok(format!("{mark}{edited}"))
}

fn document(text: &str) -> Result<Value, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let document = jsonc::parse(text).map_err(|error| format!("settings are not valid JSON: {error}"))?;
    if !document.is_object() {
        return Err("settings are not a JSON object".to_owned());
    }
    entries(&document)?;
    Ok(document)
}

fn entries(document: &Value) -> Result<Vec<Value>, String> {
    match document.get(KEY) {
        None => Ok(Vec::new()),
        Some(Value::Array(entries)) => Ok(entries.clone()),
        Some(_) => Err(format!("\"{KEY}\" is not a list")),
    }
}

/// What the document is after the change.
fn changed(mut document: Value, edit: &PackageEdit) -> Option<Value> {
    let list = document.as_object_mut()?.entry(KEY).or_insert_with(|| json!([]));
    let list = list.as_array_mut()?;
    match edit {
        PackageEdit::Append(source) => list.push(json!(source)),
        PackageEdit::Replace(index, source) => match list.get_mut(*index)? {
            Value::Object(members) => drop(members.insert("source".to_owned(), json!(source))),
            other => *other = json!(source),
        },
        PackageEdit::Remove(index) if *index < list.len() => drop(list.remove(*index)),
        PackageEdit::Remove(_) => return None,
    }
    Some(document)
}

/// The text after the change.
fn edited(text: &str, edit: &PackageEdit) -> Option<String> {
    if text.trim().is_empty() {
        let PackageEdit::Append(source) = edit else {
            return None;
        };
        return Some(format!("{:#}\n", json!({KEY: [source]})));
    }
    let Some(list) = jsonc::list(text, KEY) else {
        let PackageEdit::Append(source) = edit else {
            return None;
        };
        return appended_member(text, source);
    };
    match edit {
        PackageEdit::Append(source) => appended(text, &list, source),
        PackageEdit::Replace(index, source) => {
            let value = list.values.get(*index)?;
            let is_object = text.get(value.clone())?.starts_with('{');
            let span = match is_object {
                true => jsonc::member(text, value.start, "source")?,
                false => value.clone(),
            };
            let mut out = text.to_owned();
            out.replace_range(span, &json!(source).to_string());
            Some(out)
        }
        PackageEdit::Remove(index) => removed(text, &list, *index),
    }
}

/// The text with the key behind the last member.
fn appended_member(text: &str, source: &str) -> Option<String> {
    let document = jsonc::document(text)?;
    let mut out = text.to_owned();
    let member = format!("\"{KEY}\": [\n    {}\n  ]", json!(source));
    match document.values.last() {
        Some(last) => out.insert_str(last.end, &format!(",\n  {member}")),
        None => out.replace_range(
            document.span.start + 1..document.span.start + 1,
            &format!("\n  {member}\n"),
        ),
    }
    Some(out)
}

/// The text with one more element.
fn appended(text: &str, list: &Layout, source: &str) -> Option<String> {
    let mut out = text.to_owned();
    let value = json!(source).to_string();
    let Some(last) = list.values.last() else {
        out.insert_str(list.span.start + 1, &value);
        return Some(out);
    };
    let line = text.get(..last.start)?.rsplit('\n').next()?;
    // An element with a line of its own is followed by one.
    let own_line = line.trim().is_empty();
    let between = match own_line {
        true => format!(",\n{line}"),
        false => ", ".to_owned(),
    };
    out.insert_str(last.end, &format!("{between}{value}"));
    Some(out)
}

/// The text without an element and the comma that belongs to it.
fn removed(text: &str, list: &Layout, index: usize) -> Option<String> {
    let value = list.values.get(index)?;
    let mut out = text.to_owned();
    let next_comma = jsonc::comma_after(text, value.end);
    let previous = index.checked_sub(1).and_then(|index| list.values.get(index));
    let previous_comma = previous.and_then(|previous| jsonc::comma_after(text, previous.end));
    // The later positions first, so that the earlier ones stay right.
    if let Some(comma) = next_comma {
        out.remove(comma);
    }
    let start = text.get(..value.start)?.trim_end_matches([' ', '\t']).len();
    let is_first = text.get(..start)?.ends_with('\n');
    let rest = out.get(value.end..)?;
    let blank = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    let ends_line = rest.get(blank..)?.starts_with('\n');
    match is_first && ends_line {
        true => out.replace_range(start..value.end + blank + 1, ""),
        false if next_comma.is_some() => out.replace_range(value.start..value.end + blank, ""),
        false => out.replace_range(value.clone(), ""),
    }
    if let (None, Some(comma)) = (next_comma, previous_comma) {
        out.remove(comma);
    }
    Some(out)
}
