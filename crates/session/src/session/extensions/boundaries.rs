//! Where a run can be made to go on: the end of a turn (`turn_end`) and the moment before everything is quiet
//! (`agent_before_settle`). ExtensionProcesses may add entries there and want one more request (pi 0.87 and later).

use std::sync::Arc;

use agent::{Change, HooksOutcome};
use serde_json::{Map, Value, json};
use wire::entry::{Compaction, CustomEntry};
use wire::{EntryBody, Event, Message, StopReason};

use super::super::Session;
use super::custom_message::custom;
use super::{failure, members, put};

impl Session {
    /// Adds what subscribers receive at the end of a turn and clients do not.
    pub(in crate::session) fn put_boundary(
        &self,
        shown: &mut Value,
        message: &Arc<Message>,
        results: &[Arc<Message>],
    ) {
        let id = |wanted: &Arc<Message>| {
            let mut entries = self.conversation.log.entries().iter().rev();
            entries.find_map(|entry| match &entry.body {
                EntryBody::Message(body) if Arc::ptr_eq(&body.message, wanted) => Some(entry.id.clone()),
                _ => None,
            })
        };
        let stop = message.as_assistant().map(|answer| answer.stop_reason);
        put(shown, "messageEntryId", json!(id(message)));
        put(shown, "toolResultEntryIds", results.iter().map(id).collect());
        put(shown, "outcome", json!(outcome(stop)));
        put(shown, "entries", json!([]));
        put(shown, "continue", json!(false));
    }

    /// Adds the entries that subscribers want. Returns what the machine is to do.
    pub(in crate::session) async fn take_boundary(&mut self, name: &str, answer: Value) -> HooksOutcome {
        let mut answer = members(answer);
        let outcome = if answer.get("continue") == Some(&Value::Bool(true)) {
            HooksOutcome::Continue
        } else {
            HooksOutcome::Unchanged
        };
        let Some(Value::Array(drafts)) = answer.remove("entries") else {
            return outcome;
        };
        let mut is_new = false;
        for draft in drafts {
            match self.write_draft(members(draft)).await {
                Ok(changes) => is_new |= changes,
                Err(error) => self.extension_failed(failure("<runtime>", name, error)).await,
            }
        }
        if is_new {
            let messages = self.conversation_at_leaf();
            self.apply(Change::Conversation(messages));
        }
        outcome
    }

    /// Does it change the model's view of earlier messages?
    async fn write_draft(&mut self, draft: Map<String, Value>) -> Result<bool, String> {
        let text = |name: &str| draft.get(name).and_then(Value::as_str).map(str::to_owned);
        match draft.get("type").and_then(Value::as_str).unwrap_or_default() {
            "custom" => {
                self.append_custom(text("customType").unwrap_or_default(), draft.get("data").cloned())
                    .await?;
                Ok(false)
            }
            "custom_message" => {
                self.add_message(Arc::new(custom(&Value::Object(draft))?)).await;
                Ok(false)
            }
            "context_edit" => {
                let target = text("targetId").unwrap_or_default();
                if self.conversation.log.entry(&target).is_none() {
                    return Err(crate::strings::entry_not_found(&target));
                }
                self.append_entry_body(EntryBody::Other(draft)).await?;
                Ok(true)
            }
            "compaction" => {
                let mut draft = draft;
                let tokens = self.view().context_usage().and_then(|usage| usage.tokens);
                draft.entry("tokensBefore").or_insert(json!(tokens.unwrap_or(0)));
                let entry = serde_json::from_value::<Compaction>(draft.into());
                let mut entry = entry.map_err(|error| error.to_string())?;
                if self.conversation.log.entry(&entry.first_kept_entry_id).is_none() {
                    return Err(crate::strings::entry_not_found(&entry.first_kept_entry_id));
                }
                entry.from_hook = Some(true);
                self.append_entry_body(EntryBody::Compaction(entry)).await?;
                Ok(true)
            }
            other => Err(format!("an entry of the type {other} cannot be added here")),
        }
    }

    /// Data of an extension.
    pub(in crate::session) async fn append_custom(
        &mut self,
        custom_type: String,
        data: Option<Value>,
    ) -> Result<(), String> {
        let body = EntryBody::Custom(CustomEntry {
            custom_type,
            data: data.filter(|data| !data.is_null()),
            extra: wire::Extra::default(),
        });
        let entry = self
            .conversation
            .log
            .append(body, &self.outbox)
            .await
            .map_err(|error| error.to_string())?;
        self.emit(Event::EntryAppended { entry }).await;
        Ok(())
    }

    async fn append_entry_body(&mut self, body: EntryBody) -> Result<(), String> {
        let appended = self.conversation.log.append(body, &self.outbox).await;
        appended.map(drop).map_err(|error| error.to_string())
    }
}

/// How a run or a turn ended.
pub(in crate::session) fn outcome(stop: Option<StopReason>) -> &'static str {
    match stop {
        Some(StopReason::Aborted) => "aborted",
        Some(StopReason::Error) => "error",
        _ => "completed",
    }
}
