//! The todo list of a session in its file. What a list is and does is the business of `agent`.

use agent::Change;
use agent::todo::{self, TodoSettings};
use serde_json::{Value, json};
use store::SessionLog;
use wire::EntryBody;
use wire::command::TodosParams;
use wire::entry::CustomEntry;
use wire::todo::TodoPhase;

/// The list at the leaf of the log, for the machine: after opening, changing and moving. The machine also forgets the stream
/// rules, since what the model was told of them depends on the branch, too.
pub(super) fn at_leaf(log: &SessionLog, settings: TodoSettings, has_tool: bool) -> Change {
    let branch = log.branch(log.leaf_id());
    Change::Branch {
        todos: TodoSettings {
            // A model without the tool cannot do anything about a reminder.
            reminders: settings.reminders && has_tool,
            ..settings
        },
        phases: todo::rebuild(&branch),
    }
}

/// The list that a client sets, and the entry that stores it.
///
/// # Errors
/// When the list is not valid.
pub(super) fn edit(params: &TodosParams) -> Result<(Vec<TodoPhase>, EntryBody), String> {
    let phases = todo::normalise(params.phases.as_ref().unwrap_or(&Value::Null))?;
    // An entry, as in oh-my-pi: a list in memory alone would be gone when the list is rebuilt from the branch (dialects.md 8).
    let entry = EntryBody::Custom(CustomEntry {
        custom_type: todo::EDIT_ENTRY.to_owned(),
        data: Some(json!({ "phases": phases })),
        extra: wire::Extra::default(),
    });
    Ok((phases, entry))
}
