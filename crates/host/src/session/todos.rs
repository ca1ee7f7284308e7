//! The session's todo list: set by a client, written by the model, kept in the session file, cleared when time has come
//! (dialects.md 8). What a list is and does lives in `core`; here are the file, the clock and the clients.

use pinion_core::todo::{self, Op, TodoSettings, Todos};
use pinion_core::{Prepared, ToolInput};
use serde_json::{Value, json};
use tools::{ToolInfo, ToolRequest};
use wire::command::TodosParams;
use wire::entry::CustomEntry;
use wire::{EntryBody, Event, ToolCall, ToolResult};

use super::Session;
use super::drive::now_ms;

impl Session {
    /// The list that the session file holds at its leaf: after opening, changing and moving. Rules are looked up anew with the
    /// next request, since what the model was told of them depends on the branch, too.
    pub(super) fn load_todos(&mut self) {
        let branch = self.log.branch(self.log.leaf_id());
        self.machine.todos = Todos::new(self.todo_settings(), todo::rebuild(&branch));
        self.machine.ttsr = None;
    }

    /// A model without the tool cannot do anything about a reminder.
    fn todo_settings(&self) -> TodoSettings {
        let settings = self.agent.settings.todo.list;
        TodoSettings {
            reminders: settings.reminders && self.has_todo_tool(),
            ..settings
        }
    }

    fn has_todo_tool(&self) -> bool {
        self.active_tools.iter().any(|name| name == todo::TOOL)
    }

    /// What the model is told of the tool, if it has it.
    pub(super) fn todo_tool(&self) -> Option<ToolInfo> {
        self.has_todo_tool().then(|| ToolInfo {
            spec: todo::tool_spec(),
            snippet: todo::TOOL_SNIPPET,
            guidelines: todo::TOOL_GUIDELINES,
            active_by_default: false,
        })
    }

    /// A client's list. It is written down before it counts.
    pub(super) async fn set_todos(&mut self, params: &TodosParams) -> Result<wire::reply::Todos, String> {
        let phases = todo::normalise(params.phases.as_ref().unwrap_or(&Value::Null))?;
        let entry = EntryBody::Custom(CustomEntry {
            custom_type: todo::EDIT_ENTRY.to_owned(),
            data: Some(json!({ "phases": phases })),
            extra: wire::Extra::default(),
        });
        self.append(entry).await.map_err(|error| error.to_string())?;
        self.machine.todos.replace(phases, now_ms());
        Ok(self.todos_reply())
    }

    fn todos_reply(&self) -> wire::reply::Todos {
        wire::reply::Todos {
            todo_phases: self.machine.todos.phases().to_vec(),
        }
    }

    /// Checks a call of the tool; it is carried out by the session itself, since the list is its own.
    pub(super) fn prepare_todo(&mut self, slot: usize, call: ToolCall) -> Prepared {
        match Op::parse(&call.arguments) {
            Ok(_) => {
                let (name, args) = (call.name, call.arguments);
                self.calls.keep(slot, ToolRequest { name, args });
                Prepared::Run
            }
            Err(error) => Prepared::Refused(ToolResult::error(error)),
        }
    }

    /// Carries out a call of a tool that the session has itself. None: it is not one of those.
    pub(super) fn run_own(&mut self, slot: usize) -> Option<ToolInput> {
        let request = self.calls.take_if(slot, todo::TOOL)?;
        let ops = Op::parse(&request.args).unwrap_or_default();
        let stored = self.log.path().is_some();
        Some(ToolInput::Done {
            result: self.machine.todos.write(ops, stored, now_ms()),
            is_error: false,
            duration_ms: 0,
        })
    }

    /// Items that were done long enough leave the list.
    pub(super) async fn clear_todos(&mut self) {
        for _ in 0..self.machine.todos.clear_due(now_ms()) {
            self.outbox.tell(Event::TodoAutoClear).await;
        }
    }
}
