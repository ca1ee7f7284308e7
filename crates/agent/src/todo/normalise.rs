//! Lists that come from outside: `set_todos` and files. Checks every member and fills in what may be left out (dialects.md 8,
//! "Suggested"). Statuses stay as they were given: this module does not choose the current item.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use wire::{TodoItem, TodoPhase, TodoStatus};

use crate::limits;

use super::{items, next_number};

/// Checks a list and fills it in: texts trimmed, ids `phase-N` and `task-N` given where there is none (one more than the
/// highest number in use), status `pending` where there is none. Unknown members are dropped, empty phases stay.
///
/// # Errors
/// A sentence that names the member that is wrong.
pub fn normalise(phases: &Value) -> Result<Vec<TodoPhase>, String> {
    let list = phases.as_array().ok_or("phases must be a list")?;
    if list.len() > limits::TODO_PHASES {
        return Err(format!("phases must not be more than {}", limits::TODO_PHASES));
    }
    let read = list
        .iter()
        .enumerate()
        .map(|(at, value)| phase(value, &format!("phases[{at}]")));
    let mut phases = read.collect::<Result<Vec<_>, _>>()?;
    if items(&phases).count() > limits::TODO_ITEMS {
        return Err(format!("tasks must not be more than {}", limits::TODO_ITEMS));
    }
    // Only ids that were given can be equal: `fill_ids` goes on after the highest number.
    distinct(phases.iter().map(|phase| phase.id.as_str()), "phase")?;
    distinct(items(&phases).map(|item| item.id.as_str()), "task")?;
    fill_ids(&mut phases);
    Ok(phases)
}

fn phase(value: &Value, at: &str) -> Result<TodoPhase, String> {
    let object = value
        .as_object()
        .ok_or_else(|| format!("{at} must be an object"))?;
    let tasks = match object.get("tasks") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(tasks)) => {
            let read = tasks
                .iter()
                .enumerate()
                .map(|(number, value)| item(value, &format!("{at}.tasks[{number}]")));
            read.collect::<Result<Vec<_>, _>>()?
        }
        Some(_) => return Err(format!("{at}.tasks must be a list")),
    };
    Ok(TodoPhase {
        id: text(object, "id", at)?.unwrap_or_default(),
        name: needed(object, "name", at)?,
        tasks,
    })
}

/// One item, with an empty id if it has none. Shared with the model's tool.
pub(super) fn item(value: &Value, at: &str) -> Result<TodoItem, String> {
    let object = value
        .as_object()
        .ok_or_else(|| format!("{at} must be an object"))?;
    let word = text(object, "status", at)?;
    // oh-my-pi's fifth status. What keeps the item from being done becomes a note.
    let is_blocked = word.as_deref() == Some("blocked");
    let status = match word.as_deref() {
        None | Some("blocked") => TodoStatus::Pending,
        Some(word) => parse_status(word, at)?,
    };
    let blocker = text(object, "blocker", at)?.filter(|_| is_blocked);
    Ok(TodoItem {
        id: text(object, "id", at)?.unwrap_or_default(),
        content: needed(object, "content", at)?,
        status,
        notes: text(object, "notes", at)?.or_else(|| blocker.map(|why| format!("Blocked: {why}"))),
        details: text(object, "details", at)?,
    })
}

/// A status by its name.
pub(super) fn parse_status(word: &str, at: &str) -> Result<TodoStatus, String> {
    TodoStatus::parse(word).ok_or_else(|| {
        let words = TodoStatus::ALL.map(TodoStatus::as_str).join(", ");
        format!("{at}.status must be one of {words}")
    })
}

/// A text that may be left out; white space around it goes, and so does a text that is nothing else.
pub(super) fn text(object: &Map<String, Value>, key: &str, at: &str) -> Result<Option<String>, String> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.len() > limits::TODO_TEXT_BYTES => Err(format!(
            "{at}.{key} must not be longer than {} bytes",
            limits::TODO_TEXT_BYTES
        )),
        Some(Value::String(text)) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
        Some(_) => Err(format!("{at}.{key} must be a text")),
    }
}

/// A text that must be there.
pub(super) fn needed(object: &Map<String, Value>, key: &str, at: &str) -> Result<String, String> {
    text(object, key, at)?.ok_or_else(|| match object.get(key) {
        None | Some(Value::Null) => format!("{at}.{key} is missing"),
        Some(_) => format!("{at}.{key} must not be empty"),
    })
}

fn distinct<'a>(ids: impl Iterator<Item = &'a str>, what: &str) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for id in ids.filter(|id| !id.is_empty()) {
        if !seen.insert(id) {
            return Err(format!("{what} id \"{id}\" is used twice"));
        }
    }
    Ok(())
}

fn fill_ids(phases: &mut [TodoPhase]) {
    let mut phase_number = next_number("phase", phases.iter().map(|phase| phase.id.as_str()));
    let mut task_number = next_number("task", items(phases).map(|item| item.id.as_str()));
    for phase in phases {
        fill(&mut phase.id, "phase", &mut phase_number);
        for item in &mut phase.tasks {
            fill(&mut item.id, "task", &mut task_number);
        }
    }
}

fn fill(id: &mut String, prefix: &str, number: &mut u64) {
    if id.is_empty() {
        *id = format!("{prefix}-{number}");
        *number = number.saturating_add(1);
    }
}
