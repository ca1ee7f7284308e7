//! What a session of today's pi contains besides the conversation: the system prompt as a message, and omissions of answers that
//! failed (pi-1.5-delta.md 3). Other dialects have neither, and older agents do not read them.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use wire::{EntryBody, Message};

use super::Session;
use super::clock::now_ms;

impl Session {
    /// The message with the system prompt and the declarations of the tools, which precedes the first prompt of a session.
    pub(super) fn system_message(&mut self) -> Option<Arc<Message>> {
        if !self.agent.options.dialect.is_newest_pi() {
            return None;
        }
        let log = &self.conversation.log;
        let is_system =
            |body: &EntryBody| matches!(body, EntryBody::Message(body) if body.message.role() == "system");
        if log
            .branch(log.leaf_id())
            .iter()
            .any(|entry| is_system(&entry.body))
        {
            return None;
        }
        let prompt = self.system_prompt();
        let mut message = json!({
            "role": "system",
            "content": "",
            "sections": {"prompt": prompt},
            "timestamp": now_ms(),
        });
        let tools = self.tools.specs();
        if !tools.is_empty() {
            message["toolsAdded"] = json!(tools);
        }
        Some(Arc::new(Message::Other(message)))
    }

    /// Leaves the newest message out of the context from now on: an answer that failed, which is tried again.
    pub(super) async fn omit_failed_answer(&mut self) {
        if !self.agent.options.dialect.is_newest_pi() {
            return;
        }
        let log = &self.conversation.log;
        let branch = log.branch(log.leaf_id());
        let newest = branch
            .iter()
            .rev()
            .find(|entry| matches!(entry.body, EntryBody::Message(_)));
        let Some(target) = newest.map(|entry| entry.id.clone()) else {
            return;
        };
        let edit: Map<String, Value> = [
            ("type", Value::from("context_edit")),
            ("targetId", target.into()),
            ("replacement", Value::Null),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
        self.conversation
            .log
            .record(EntryBody::Other(edit), &self.outbox)
            .await;
    }
}
