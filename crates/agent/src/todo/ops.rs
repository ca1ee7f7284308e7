//! What the model does to the list with `todo_write`: a few steps per call, carried out in order (dialects.md 8).

use serde_json::{Map, Value};
use wire::{TodoItem, TodoPhase, TodoStatus};

use crate::limits;

use super::normalise::{item, needed, parse_status, text};
use super::{items, next_number};

/// One step.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// A new list; ids start at 1.
    Replace(Vec<(String, Vec<TodoItem>)>),
    /// One more phase, at the end.
    AddPhase(String, Vec<TodoItem>),
    /// One more item at the end of the phase with this id.
    AddTask(String, TodoItem),
    /// Changes of the item with this id.
    Update(String, Change),
    /// Takes out the item with this id.
    RemoveTask(String),
}

/// What changes about an item; none leaves it as it is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Change {
    status: Option<TodoStatus>,
    content: Option<String>,
    notes: Option<String>,
    details: Option<String>,
}

impl Op {
    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// A sentence for the model that names the member that is wrong; nothing may be carried out then.
    pub fn parse(arguments: &Map<String, Value>) -> Result<Vec<Self>, String> {
        // Some models write lists as JSON text.
        let read: Option<Value> = arguments
            .get("ops")
            .and_then(Value::as_str)
            .and_then(|text| serde_json::from_str(text).ok());
        let ops = read.as_ref().or_else(|| arguments.get("ops"));
        let ops = ops.and_then(Value::as_array).ok_or("ops must be a list")?;
        if ops.len() > limits::TODO_ITEMS {
            return Err(format!("ops must not be more than {}", limits::TODO_ITEMS));
        }
        ops.iter()
            .enumerate()
            .map(|(at, value)| one(value, &format!("ops[{at}]")))
            .collect()
    }
}

fn one(value: &Value, at: &str) -> Result<Op, String> {
    let object = value
        .as_object()
        .ok_or_else(|| format!("{at} must be an object"))?;
    match needed(object, "op", at)?.as_str() {
        "replace" => {
            let phases = object.get("phases").and_then(Value::as_array);
            let phases = phases.ok_or_else(|| format!("{at}.phases must be a list"))?;
            let read = phases
                .iter()
                .enumerate()
                .map(|(number, phase)| named_phase(phase, &format!("{at}.phases[{number}]")));
            Ok(Op::Replace(read.collect::<Result<Vec<_>, _>>()?))
        }
        "add_phase" => named_phase(value, at).map(|(name, tasks)| Op::AddPhase(name, tasks)),
        "add_task" => Ok(Op::AddTask(
            needed(object, "phase", at)?,
            TodoItem {
                // Ids are given here, where those in use are known.
                id: String::new(),
                ..item(value, at)?
            },
        )),
        "update" => {
            let status = text(object, "status", at)?;
            let change = Change {
                status: status.map(|word| parse_status(&word, at)).transpose()?,
                content: text(object, "content", at)?,
                notes: text(object, "notes", at)?,
                details: text(object, "details", at)?,
            };
            Ok(Op::Update(needed(object, "id", at)?, change))
        }
        "remove_task" => needed(object, "id", at).map(Op::RemoveTask),
        _ => Err(format!(
            "{at}.op must be one of replace, add_phase, add_task, update, remove_task"
        )),
    }
}

fn named_phase(value: &Value, at: &str) -> Result<(String, Vec<TodoItem>), String> {
    let object = value
        .as_object()
        .ok_or_else(|| format!("{at} must be an object"))?;
    let name = needed(object, "name", at)?;
    let tasks = match object.get("tasks") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(tasks)) => {
            let read = tasks
                .iter()
                .enumerate()
                .map(|(number, task)| item(task, &format!("{at}.tasks[{number}]")));
            read.collect::<Result<Vec<_>, _>>()?
        }
        Some(_) => return Err(format!("{at}.tasks must be a list")),
    };
    Ok((name, tasks))
}

/// Carries steps out in order; an invalid step is skipped. At most one item is in progress afterwards: the first that
/// is, else the first that is pending.
pub(super) fn apply(mut phases: Vec<TodoPhase>, ops: Vec<Op>) -> (Vec<TodoPhase>, Vec<String>) {
    let mut errors = Vec::new();
    for op in ops {
        if let Err(error) = carry_out(&mut phases, op) {
            errors.push(error);
        }
    }
    one_in_progress(&mut phases);
    (phases, errors)
}

fn carry_out(phases: &mut Vec<TodoPhase>, op: Op) -> Result<(), String> {
    match op {
        Op::Replace(list) => {
            // A list of its own: its ids begin at 1, and a step that is skipped leaves the present list as it is.
            let mut replacement = Vec::new();
            list.into_iter()
                .try_for_each(|(name, tasks)| add_phase(&mut replacement, name, tasks))?;
            *phases = replacement;
            Ok(())
        }
        Op::AddPhase(name, tasks) => add_phase(phases, name, tasks),
        Op::AddTask(id, item) => {
            room_for(phases, 1)?;
            // Over all phases: `update` and `remove_task` name an item without its phase.
            let number = next_number("task", items(phases).map(|item| item.id.as_str()));
            let phase = phases.iter_mut().find(|phase| phase.id == id);
            let phase = phase.ok_or_else(|| format!("Phase \"{id}\" not found"))?;
            phase.tasks.push(TodoItem {
                id: format!("task-{number}"),
                ..item
            });
            Ok(())
        }
        Op::Update(id, change) => {
            let known = phases.iter_mut().flat_map(|phase| &mut phase.tasks);
            match known.into_iter().find(|item| item.id == id) {
                Some(item) => {
                    change.make(item);
                    Ok(())
                }
                None => Err(not_found(phases, &id)),
            }
        }
        Op::RemoveTask(id) => {
            for phase in phases.iter_mut() {
                if let Some(at) = phase.tasks.iter().position(|item| item.id == id) {
                    phase.tasks.remove(at);
                    return Ok(());
                }
            }
            Err(not_found(phases, &id))
        }
    }
}

impl Change {
    fn make(self, item: &mut TodoItem) {
        if let Some(status) = self.status {
            item.status = status;
        }
        if let Some(content) = self.content {
            item.content = content;
        }
        item.notes = self.notes.or(item.notes.take());
        item.details = self.details.or(item.details.take());
    }
}

fn add_phase(phases: &mut Vec<TodoPhase>, name: String, tasks: Vec<TodoItem>) -> Result<(), String> {
    if phases.len() >= limits::TODO_PHASES {
        return Err(format!("There can be {} phases at most", limits::TODO_PHASES));
    }
    room_for(phases, tasks.len())?;
    let number = next_number("phase", phases.iter().map(|phase| phase.id.as_str()));
    let first = next_number("task", items(phases).map(|item| item.id.as_str()));
    let tasks = (first..).zip(tasks).map(|(number, item)| TodoItem {
        id: format!("task-{number}"),
        ..item
    });
    phases.push(TodoPhase {
        id: format!("phase-{number}"),
        name,
        tasks: tasks.collect(),
    });
    Ok(())
}

fn room_for(phases: &[TodoPhase], more: usize) -> Result<(), String> {
    if items(phases).count().saturating_add(more) <= limits::TODO_ITEMS {
        Ok(())
    } else {
        Err(format!("There can be {} tasks at most", limits::TODO_ITEMS))
    }
}

fn not_found(phases: &[TodoPhase], id: &str) -> String {
    let hint = match () {
        () if items(phases).next().is_some() => "",
        () if phases.is_empty() => " (todo list is empty — was it replaced or not yet created?)",
        () => " (todo list is empty)",
    };
    format!("Task \"{id}\" not found{hint}")
}

fn one_in_progress(phases: &mut [TodoPhase]) {
    let is_active = |item: &TodoItem| item.status == TodoStatus::InProgress;
    let has_active = items(phases).any(is_active);
    let mut found = false;
    for item in phases.iter_mut().flat_map(|phase| &mut phase.tasks) {
        let is_it = if has_active {
            is_active(item)
        } else {
            item.status == TodoStatus::Pending
        };
        if is_it {
            item.status = if found {
                TodoStatus::Pending
            } else {
                TodoStatus::InProgress
            };
            found = true;
        }
    }
}
