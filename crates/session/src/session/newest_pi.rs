//! Additions to the conversation in a session of today's pi: the system prompt as a message, and omissions of answers that
//! failed (pi-1.5-delta.md 3). Other dialects have neither, and older agents do not read them.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use wire::entry::Compaction;
use wire::{EntryBody, Event, Message};

use super::clock::now_ms;
use super::session_core::SessionCore;

impl SessionCore {
    /// Returns true if the process speaks the dialect of today's pi.
    pub(super) fn is_newest_pi(&self) -> bool {
        self.agent.options.dialect.is_newest_pi()
    }

    /// The message with the system prompt and the declarations of the tools, which precedes the first prompt of a session.
    pub(super) fn system_message(&mut self) -> Option<Arc<Message>> {
        let log = &self.conversation.log;
        let is_system =
            |body: &EntryBody| matches!(body, EntryBody::Message(body) if body.message.role() == "system");
        let is_there = || {
            let branch = log.branch(log.leaf_id());
            branch.iter().any(|entry| is_system(&entry.body))
        };
        if !self.is_newest_pi() || is_there() {
            return None;
        }
        Some(Arc::new(Message::Other(self.declaration())))
    }

    /// System prompt and tools as they are now.
    fn declaration(&mut self) -> Value {
        let tools = self.tools.specs();
        let members = [
            ("role", "system".into()),
            ("content", "".into()),
            ("sections", json!({"prompt": self.system_prompt()})),
            ("timestamp", now_ms().into()),
        ];
        let tools = (!tools.is_empty()).then(|| ("toolsAdded", json!(tools)));
        let members = members.into_iter().chain(tools);
        members.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Adds prompt and tools to a compaction: the message that has them may not be kept.
    pub(super) fn complete_compaction(&mut self, entry: &mut Compaction) {
        if self.is_newest_pi() {
            let declaration = self.declaration();
            entry.extra = Map::from_iter([("systemMessage".to_owned(), declaration)]).into();
        }
    }

    /// Leaves the newest message out of the context from now on: an answer that failed, which is tried again.
    pub(super) async fn omit_failed_answer(&mut self) {
        if !self.is_newest_pi() {
            return;
        }
        let log = &self.conversation.log;
        let branch = log.branch(log.leaf_id());
        let is_message = |body: &EntryBody| matches!(body, EntryBody::Message(_));
        let newest = branch.iter().rev().find(|entry| is_message(&entry.body));
        let Some(target) = newest.map(|entry| entry.id.clone()) else {
            return;
        };
        let edit = Map::from_iter([
            ("type".to_owned(), Value::from("context_edit")),
            ("targetId".to_owned(), target.into()),
            ("replacement".to_owned(), Value::Null),
        ]);
        let appended = self
            .conversation
            .log
            .append(EntryBody::Other(edit), &self.outbox)
            .await;
        // Without the entry, the failed answer is left out when the conversation is converted, as in older dialects.
        if let Ok(entry) = appended {
            self.outbox.tell(Event::EntryAppended { entry }).await;
        }
    }
}
