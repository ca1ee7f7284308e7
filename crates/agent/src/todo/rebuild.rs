//! The list that a session file holds (dialects.md 8): the newest on the branch, written by the model's tool or set by a
//! client. Items done by then are not shown again.

use std::sync::Arc;

use serde_json::Value;
use wire::{Entry, EntryBody, Message, TodoPhase};

use super::normalise::normalise;
use super::text::TOOL;
use super::{EDIT_ENTRY, items};

/// oh-my-pi's name of the tool; its result has the same `details.phases`, without ids.
const OLD_TOOL: &str = "todo";

/// The list at the end of a branch, oldest entry first. Done items and phases without open ones are left out.
#[must_use]
pub fn rebuild(branch: &[Arc<Entry>]) -> Vec<TodoPhase> {
    let lists = branch.iter().rev().filter_map(|entry| list(&entry.body));
    // A list that cannot be read gives way to the one before it.
    let newest = lists.map(normalise).find_map(Result::ok);
    let mut phases = newest.unwrap_or_default();
    for phase in &mut phases {
        phase.tasks.retain(|item| item.status.is_open());
    }
    phases.retain(|phase| items(std::slice::from_ref(phase)).next().is_some());
    phases
}

fn list(body: &EntryBody) -> Option<&Value> {
    match body {
        EntryBody::Custom(custom) if custom.custom_type == EDIT_ENTRY => custom.data.as_ref()?.get("phases"),
        EntryBody::Message(entry) => match entry.message.as_ref() {
            Message::ToolResult(result)
                if !result.is_error && [TOOL, OLD_TOOL].contains(&result.tool_name.as_str()) =>
            {
                result.details.as_ref()?.get("phases")
            }
            _ => None,
        },
        _ => None,
    }
}
