//! What the model reads about todos: its tool, the tool's results, and reminders.

use std::fmt::Write as _;

use serde_json::json;
use wire::{TodoItem, TodoPhase, TodoStatus, ToolSpec};

/// The model's tool.
pub const TOOL: &str = "todo_write";
/// One line on what it is for.
pub const TOOL_SNIPPET: &str = "Plan work in steps and keep track of them";
/// Rules for its use.
pub const TOOL_GUIDELINES: &[&str] = &[
    "Write work of several steps down with todo_write before you begin, and mark each item completed as soon as it is done.",
];

/// The description of the tool for the model.
#[must_use]
pub fn tool_spec() -> ToolSpec {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let status = json!({ "type": "string", "enum": TodoStatus::ALL.map(TodoStatus::as_str) });
    let task = json!({
        "type": "object",
        "properties": {
            "content": text("What is to be done, in a few words"),
            "status": status,
            "notes": text("Remarks"),
            "details": text("What one has to know while working on it: files, decisions; shown while it is in progress"),
        },
        "required": ["content"],
    });
    let tasks = json!({ "type": "array", "items": task });
    let phase = json!({
        "type": "object",
        "properties": { "name": text("Name of the phase"), "tasks": tasks },
        "required": ["name"],
    });
    let op = json!({
        "type": "object",
        "properties": {
            "op": {
                "type": "string",
                "enum": ["replace", "add_phase", "add_task", "update", "remove_task"],
                "description": "replace: a new list (phases). add_phase: name, tasks. add_task: phase (its id), content. \
                                update: id and what changes. remove_task: id.",
            },
            "phases": { "type": "array", "items": phase },
            "name": text("Name of the new phase"),
            "tasks": tasks,
            "phase": text("Id of the phase, such as phase-1"),
            "id": text("Id of the task, such as task-3"),
            "content": text("What is to be done"),
            "status": status,
            "notes": text("Remarks"),
            "details": text("What one has to know while working on it"),
        },
        "required": ["op"],
    });
    ToolSpec {
        name: TOOL.to_owned(),
        description: "Keep the list of what is to be done in this session. Steps are carried out in order; the result shows \
                      the list with the ids of phases and tasks. One task is in progress at a time: when it is completed \
                      or abandoned, the next one that is pending becomes it."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "ops": { "type": "array", "items": op, "description": "The steps, in order" },
            },
            "required": ["ops"],
        }),
        prefers_strict: false,
    }
}

/// The result of a call: what went wrong, what remains, how far the current phase is, and the whole list.
pub(super) fn summary(phases: &[TodoPhase], errors: &[String]) -> String {
    let mut out = String::new();
    if !errors.is_empty() {
        line(&mut out, &format!("Errors: {}", errors.join("; ")));
    }
    // With nothing left to do, the last phase counts as the current one.
    let Some(current) = phases.iter().position(has_open).or(phases.len().checked_sub(1)) else {
        line(&mut out, "Todo list cleared.");
        return out;
    };
    let open = open_items(phases);
    if open.is_empty() {
        line(&mut out, "Remaining items: none");
    } else {
        line(&mut out, &format!("Remaining items ({}):", open.len()));
    }
    for (phase, item) in &open {
        let (id, status) = (&item.id, item.status.as_str());
        line(
            &mut out,
            &format!("- {id} [{status}] {} ({})", item.content, phase.name),
        );
        let details = item.details.iter().flat_map(|details| details.lines());
        for text in details.filter(|_| item.status == TodoStatus::InProgress) {
            line(&mut out, &format!("    {text}"));
        }
    }
    if let Some(phase) = phases.get(current) {
        let done = phase.tasks.iter().filter(|item| !item.status.is_open()).count();
        let (number, count) = (current + 1, phases.len());
        let total = phase.tasks.len();
        line(
            &mut out,
            &format!(
                "Phase {number}/{count} \"{}\" — {done}/{total} tasks complete",
                phase.name
            ),
        );
    }
    for phase in phases {
        line(&mut out, &format!("{} ({})", phase.name, phase.id));
        for item in &phase.tasks {
            let mark = mark(item.status);
            line(&mut out, &format!("  {mark} {} {}", item.id, item.content));
        }
    }
    out
}

/// The reminder for a model that stopped while items are open.
pub(super) fn reminder(phases: &[TodoPhase], attempt: u32, max_attempts: u32) -> String {
    let open = open_items(phases);
    let mut out = String::from("<system-reminder>\n");
    let _infallible = writeln!(
        out,
        "You stopped, but {} of the todo list {} not done:",
        match open.len() {
            1 => "1 item".to_owned(),
            count => format!("{count} items"),
        },
        if open.len() == 1 { "is" } else { "are" }
    );
    for (phase, item) in open {
        let _infallible = writeln!(
            out,
            "- {} [{}] {} ({})",
            item.id,
            item.status.as_str(),
            item.content,
            phase.name
        );
    }
    let _infallible = writeln!(
        out,
        "Go on with them. If one is done or no longer needed, say so with {TOOL}. If only the user can decide how to go on, \
         ask. (Reminder {attempt} of {max_attempts})\n</system-reminder>"
    );
    out.truncate(out.trim_end().len());
    out
}

fn open_items(phases: &[TodoPhase]) -> Vec<(&TodoPhase, &TodoItem)> {
    let all = phases
        .iter()
        .flat_map(|phase| phase.tasks.iter().map(move |item| (phase, item)));
    all.filter(|(_, item)| item.status.is_open()).collect()
}

fn has_open(phase: &TodoPhase) -> bool {
    phase.tasks.iter().any(|item| item.status.is_open())
}

const fn mark(status: TodoStatus) -> char {
    match status {
        TodoStatus::Completed => '✓',
        TodoStatus::InProgress => '→',
        TodoStatus::Abandoned => '✗',
        TodoStatus::Pending => '○',
    }
}

fn line(out: &mut String, text: &str) {
    if !out.is_empty() {
        out.push('\n');
    }
    out.push_str(text);
}
