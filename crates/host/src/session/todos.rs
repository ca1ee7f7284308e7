//! The session's todo list: set by a client, written by the model, kept in the session file, cleared when time has come
//! (dialects.md 8). What a list is and does lives in `core`; here are the file, the clock and the clients.

use std::collections::VecDeque;

use pinion_core::todo::{self, TodoSettings};
use pinion_core::{Change, Input};
use serde_json::{Value, json};
use wire::EntryBody;
use wire::command::TodosParams;
use wire::entry::CustomEntry;

use super::Session;

impl Session {
    /// The list that the session file holds at its leaf: after opening, changing and moving. Rules are looked up anew with the
    /// next request, since what the model was told of them depends on the branch, too.
    pub(super) fn load_todos(&mut self) {
        let branch = self.log.branch(self.log.leaf_id());
        let (todos, phases) = (self.todo_settings(), todo::rebuild(&branch));
        self.step(Change::Branch { todos, phases }.into());
    }

    /// A model without the tool cannot do anything about a reminder.
    fn todo_settings(&self) -> TodoSettings {
        let settings = self.agent.settings.todo.list;
        TodoSettings {
            reminders: settings.reminders && self.has_todo_tool(),
            ..settings
        }
    }

    /// Returns true if the model may call the tool.
    pub(super) fn has_todo_tool(&self) -> bool {
        self.tools.is_active(todo::TOOL)
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
        self.step(Change::Todos(phases).into());
        Ok(self.todos_reply())
    }

    fn todos_reply(&self) -> wire::reply::Todos {
        wire::reply::Todos {
            todo_phases: self.machine.todos().phases().to_vec(),
        }
    }

    /// Carries out the writes that calls of the tool have made.
    pub(super) async fn answer_todo_writes(&mut self, inputs: &mut VecDeque<Input>) {
        for write in self.tools.take_todo_writes() {
            let stored = self.log.path().is_some();
            let (phases, result) = self.machine.todos().written(write.ops, stored);
            self.step(Change::Todos(phases).into());
            // The call waits for it in any case: a write is made when the call starts.
            if write.done.send(result).is_ok() {
                self.settle_call(write.slot, inputs).await;
            }
        }
    }

    /// Items that were done long enough leave the list.
    pub(super) async fn clear_todos(&mut self) {
        self.drive(Change::TodosDue.into()).await;
    }
}
