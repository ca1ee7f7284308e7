//! Where a run can be made to go on: the end of a turn (`turn_end`) and the moment before everything is quiet
//! (`agent_before_settle`). Extensions may add entries there and want one more request (pi 0.87 and later).

use std::sync::Arc;

use pinion_core::{Change, Input};
use serde_json::{Map, Value, json};
use wire::entry::{Compaction, CustomEntry};
use wire::{EntryBody, Event, Message, StopReason};

use super::super::Session;
use super::saying::custom;
use super::{Then, failure, members, put};

/// What wants the next request.
#[derive(Debug, Default)]
pub(super) struct Boundary {
    /// Extensions want one.
    goes_on: bool,
    /// Extensions have been asked whether everything may become quiet.
    asked: bool,
}

impl Boundary {
    /// A request is made, whoever wanted it.
    pub(super) fn is_crossed(&mut self) {
        self.goes_on = false;
    }
}

impl Session {
    /// The run is over and everything would be quiet now. Gives the event back when it will be.
    pub(super) fn settle(&mut self, event: Event) -> Option<Event> {
        let Event::AgentSettled { aborted } = event else {
            return Some(event);
        };
        let name = "agent_before_settle";
        if !std::mem::replace(&mut self.extensions.boundary.asked, true) && self.extensions.hear(name) {
            let newest = self.machine.messages().iter().rev();
            let newest = newest.filter_map(|message| message.as_assistant()).next();
            let outcome = if aborted {
                "aborted"
            } else {
                outcome(newest.map(|answer| answer.stop_reason))
            };
            let event_of = json!({"type": name, "entries": [], "continue": false, "outcome": outcome});
            self.ask_extensions(name, &event_of, Then::Settle(event));
            return None;
        }
        self.extensions.boundary.asked = false;
        let goes_on = std::mem::take(&mut self.extensions.boundary.goes_on);
        // Somebody else has begun something meanwhile.
        if !goes_on || aborted || !self.machine.is_idle() {
            return Some(event);
        }
        if !self.machine.can_ask() {
            let why = "there is nothing to answer: the conversation ends with an answer";
            let _told = self
                .extensions
                .failures
                .0
                .try_send(failure("<runtime>", name, why));
            return Some(event);
        }
        let full = self.context_is_full();
        self.step(Input::Prompt {
            messages: Vec::new(),
            full,
        });
        None
    }

    pub(super) async fn on_settle(&mut self, event: Event, answer: Value) {
        self.take_boundary("agent_before_settle", answer).await;
        if let Some(event) = self.tell_extensions(event) {
            self.outbox.tell(event).await;
        }
        self.carry_on().await;
    }

    /// What extensions are told of the end of a turn besides what clients are told.
    pub(super) fn shown_boundary(&self, shown: &mut Value, message: &Arc<Message>, results: &[Arc<Message>]) {
        let id = |wanted: &Arc<Message>| {
            let mut entries = self.log.entries().iter().rev();
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

    /// Writes down what extensions want written down there.
    pub(super) async fn take_boundary(&mut self, name: &str, answer: Value) {
        let mut answer = members(answer);
        if answer.get("continue") == Some(&Value::Bool(true)) {
            self.extensions.boundary.goes_on = true;
        }
        let Some(Value::Array(drafts)) = answer.remove("entries") else {
            return;
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
            self.step(Change::Conversation(messages).into());
        }
    }

    /// Does it change what the model sees of what was said before?
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
                if self.log.entry(&target).is_none() {
                    return Err(crate::strings::entry_not_found(&target));
                }
                self.append_entry_body(EntryBody::Other(draft)).await?;
                Ok(true)
            }
            "compaction" => {
                let mut draft = draft;
                let tokens = self.context_usage().and_then(|usage| usage.tokens);
                draft.entry("tokensBefore").or_insert(json!(tokens.unwrap_or(0)));
                let entry = serde_json::from_value::<Compaction>(draft.into());
                let mut entry = entry.map_err(|error| error.to_string())?;
                if self.log.entry(&entry.first_kept_entry_id).is_none() {
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
    pub(super) async fn append_custom(
        &mut self,
        custom_type: String,
        data: Option<Value>,
    ) -> Result<(), String> {
        let body = EntryBody::Custom(CustomEntry {
            custom_type,
            data: data.filter(|data| !data.is_null()),
            extra: wire::Extra::default(),
        });
        let entry = self.append(body).await.map_err(|error| error.to_string())?;
        self.emit(Event::EntryAppended { entry }).await;
        Ok(())
    }

    async fn append_entry_body(&mut self, body: EntryBody) -> Result<(), String> {
        let appended = self.append(body).await;
        appended.map(drop).map_err(|error| error.to_string())
    }
}

/// How a run or a turn ended.
fn outcome(stop: Option<StopReason>) -> &'static str {
    match stop {
        Some(StopReason::Aborted) => "aborted",
        Some(StopReason::Error) => "error",
        _ => "completed",
    }
}
