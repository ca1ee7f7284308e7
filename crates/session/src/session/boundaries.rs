//! Where a run can be made to go on: the end of a turn (`turn_end`) and the moment before everything is quiet
//! (`agent_before_settle`). Extensions may add entries there and want one more request (pi 0.87 and later).

use std::sync::Arc;

use agent::{Change, HooksOutcome};
use serde_json::{Map, Value, json};
use wire::entry::Compaction;
use wire::{EntryBody, Event, Message, SessionRule, StopReason};

use super::conversation::Conversation;
use super::driver::Driver;
use super::extensions::{custom, failure, members, put};
use super::session_core::SessionCore;
use super::storage::entry_of;

/// Adds what subscribers receive at the end of a turn and clients do not.
pub(super) fn describe(
    conversation: &Conversation,
    shown: &mut Value,
    message: &Arc<Message>,
    results: &[Arc<Message>],
) {
    let id = |wanted: &Arc<Message>| {
        // From the end, where the messages of a turn are. By identity: equal messages are different entries.
        let mut entries = conversation.log.entries().iter().rev();
        entries.find_map(|entry| match &entry.body {
            EntryBody::Message(body) if Arc::ptr_eq(&body.message, wanted) => Some(entry.id.clone()),
            _ => None,
        })
    };
    // The message of the turn may have arguments that a tool repaired, which the file has as the model wrote them.
    let newest_answer = || {
        let mut entries = conversation.log.entries().iter().rev();
        entries.find_map(|entry| match &entry.body {
            EntryBody::Message(body) if body.message.as_assistant().is_some() => Some(entry.id.clone()),
            _ => None,
        })
    };
    let stop = message.as_assistant().map(|answer| answer.stop_reason);
    put(shown, "messageEntryId", json!(id(message).or_else(newest_answer)));
    put(shown, "toolResultEntryIds", results.iter().map(id).collect());
    put(shown, "outcome", json!(outcome(stop)));
    // Both are proposals of earlier listeners (docs/reference/hook-events.md), of which the first listener gets none.
    put(shown, "entries", json!([]));
    put(shown, "continue", json!(false));
}

/// Adds the entries that subscribers want. Returns what the machine is to do.
pub(super) async fn take(driver: &mut Driver, name: &str, answer: Value) -> HooksOutcome {
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
        match write_draft(driver, members(draft)).await {
            Ok(changes) => is_new |= changes,
            Err(error) => driver.extension_failed(failure("<runtime>", name, error)).await,
        }
    }
    // Once for all entries, since the whole branch is read.
    if is_new {
        let messages = driver.core.conversation.read_leaf();
        driver.core.apply(Change::Conversation(messages));
    }
    outcome
}

/// Returns true if the entry changes the model's view of earlier messages.
async fn write_draft(driver: &mut Driver, draft: Map<String, Value>) -> Result<bool, String> {
    let text = |name: &str| draft.get(name).and_then(Value::as_str).map(str::to_owned);
    match draft.get("type").and_then(Value::as_str).unwrap_or_default() {
        "custom" => {
            driver
                .append_custom(text("customType").unwrap_or_default(), draft.get("data").cloned())
                .await?;
            // Data of extensions is no message, so the context of the model stays as it is (pi-core.md 2.5).
            Ok(false)
        }
        "custom_message" => {
            let message = Arc::new(custom(&Value::Object(draft))?);
            if driver.core.follows(SessionRule::AnnouncesEntries) {
                // As an entry alone: clients of today's pi learn of it by `entry_appended`, others by the events of a message.
                append_entry_body(&mut driver.core, entry_of(message)).await?;
                return Ok(true);
            }
            // This gives the message to the machine, too, so that the branch need not be read again.
            driver.add_message(message).await;
            Ok(false)
        }
        "context_edit" => {
            let target = text("targetId").unwrap_or_default();
            // The file is only appended to: an entry about nothing would stay in it.
            if driver.core.conversation.log.entry(&target).is_none() {
                return Err(crate::strings::entry_not_found(&target));
            }
            append_entry_body(&mut driver.core, EntryBody::Other(draft)).await?;
            Ok(true)
        }
        "compaction" => {
            let mut draft = draft;
            let tokens = driver.core.view().context_usage().and_then(|usage| usage.tokens);
            draft.entry("tokensBefore").or_insert(json!(tokens.unwrap_or(0)));
            let entry = serde_json::from_value::<Compaction>(draft.into());
            let mut entry = entry.map_err(|error| error.to_string())?;
            if driver
                .core
                .conversation
                .log
                .entry(&entry.first_kept_entry_id)
                .is_none()
            {
                // With an unknown entry the summary alone would remain in the context (pi-core.md 2.5).
                return Err(crate::strings::entry_not_found(&entry.first_kept_entry_id));
            }
            // The next compaction does not take over the lists of files of such an entry (pi-core.md 3.6).
            entry.from_hook = Some(true);
            append_entry_body(&mut driver.core, EntryBody::Compaction(entry)).await?;
            Ok(true)
        }
        other => Err(format!("an entry of the type {other} cannot be added here")),
    }
}

/// Appends an entry. Clients of today's pi learn of each entry that an extension adds.
async fn append_entry_body(core: &mut SessionCore, body: EntryBody) -> Result<(), String> {
    let appended = core.conversation.log.append(body, &core.outbox).await;
    let entry = appended.map_err(|error| error.to_string())?;
    if core.follows(SessionRule::AnnouncesEntries) {
        core.outbox.tell(Event::EntryAppended { entry }).await;
    }
    Ok(())
}

/// How a run or a turn ended.
pub(super) fn outcome(stop: Option<StopReason>) -> &'static str {
    match stop {
        Some(StopReason::Aborted) => "aborted",
        Some(StopReason::Error) => "error",
        _ => "completed",
    }
}
