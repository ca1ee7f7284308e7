//! What extensions may refuse: another session, a compaction, another place of the tree (dialects.md 10.2).

use agent::HooksOutcome;
use agent::compaction::Finished;
use serde::Serialize;
use serde_json::{Value, json};
use wire::Reply;
use wire::entry::Compaction;
use wire::event::{CompactionReason, CompactionResult};
use wire::omp::ContinuedSession;
use wire::reply::{Cancelled, Forked};
use wire::table::Respond;

use crate::limits;

use super::super::Session;
use super::super::asker::Asker;
use super::super::session_change::{Change, ChangeAsker, Changed};
use super::{Then, cancels, failure, put};

impl Session {
    /// Asks whether the session may be left; then it is.
    pub(in crate::session) async fn change(&mut self, asker: ChangeAsker, change: Change) {
        if let Some((name, event)) = question(&change)
            && self.extensions.hear(name)
        {
            return self.ask_extensions(name, &event, Then::Change(asker, change));
        }
        self.change_now(asker, change).await;
    }

    pub(in crate::session) async fn on_change(
        &mut self,
        asker: ChangeAsker,
        mut change: Change,
        answer: Value,
    ) {
        if let Change::Fork { keeps_messages, .. } = &mut change {
            *keeps_messages = answer.get("skipConversationRestore") == Some(&json!(true));
        }
        if !cancels(&answer) {
            return self.change_now(asker, change).await;
        }
        let text = match change {
            // Clients of the older command put the text into their editor all the same (dialects.md 10.2).
            Change::Fork { text, .. } if asker.asked("branch") => Some(text),
            _ => None,
        };
        let refused = Changed {
            text,
            cancelled: true,
        };
        self.reply_change(asker, Ok(refused)).await;
    }

    /// Replies to a client or to an extension.
    pub(in crate::session) async fn reply<R: Into<Reply> + Serialize>(
        &mut self,
        asker: Asker<R>,
        outcome: Result<R, String>,
    ) {
        match asker {
            Asker::Client(responder) => responder.respond(outcome).await,
            Asker::Extension(id) => {
                let value = |reply| serde_json::to_value(reply).unwrap_or_default();
                self.answer_later(id, outcome.map(value));
            }
        }
    }

    /// Replies to the client or the extension that asked for another session.
    pub(in crate::session) async fn reply_change(
        &mut self,
        asker: ChangeAsker,
        outcome: Result<Changed, String>,
    ) {
        match asker {
            ChangeAsker::Session(responder) => {
                let cancelled = |changed: Changed| Cancelled {
                    cancelled: changed.cancelled,
                };
                responder.respond(outcome.map(cancelled)).await;
            }
            ChangeAsker::Continue(responder, resumed) => {
                let continued = self.view().continued(resumed);
                let continued = |changed: Changed| ContinuedSession {
                    cancelled: changed.cancelled,
                    resumed: resumed && !changed.cancelled,
                    ..continued
                };
                responder.respond(outcome.map(continued)).await;
            }
            ChangeAsker::Fork(responder) => {
                let forked = |changed: Changed| Forked {
                    text: changed.text,
                    cancelled: changed.cancelled,
                };
                responder.respond(outcome.map(forked)).await;
            }
            ChangeAsker::Reload(responder) => responder.respond(outcome.map(|_| self.commands())).await,
            ChangeAsker::Extension(id) => {
                let cancelled = |changed: Changed| json!({ "cancelled": changed.cancelled });
                self.answer_later(id, outcome.map(cancelled));
            }
        }
    }

    /// The run has ended: extensions hear that the session is left, for a moment, then it is.
    pub(in crate::session) async fn leave(&mut self, asker: ChangeAsker, change: Change) {
        if change.leaves_file()
            && let Err(error) = self.stored(true).await
        {
            return self.reply_change(asker, Err(error)).await;
        }
        if !self.extensions.hear("session_shutdown") {
            return self.carry_out(asker, change).await;
        }
        let mut event = json!({"type": "session_shutdown", "reason": word(&change)});
        if let Change::Switch(path, _) = &change {
            put(&mut event, "targetSessionFile", json!(path));
        }
        self.sync_state();
        self.tell_hooks("session_shutdown", &event);
        let answer = self
            .listeners("session_shutdown", &event)
            .ask("session_shutdown", &event);
        self.extensions
            .questions
            .ask(Then::Leave(asker, change), async move {
                let answer = tokio::time::timeout(limits::FAREWELL, answer).await;
                answer.unwrap_or_else(|_| Ok(extensions::Answer::default()))
            });
    }

    /// What subscribers receive before a compaction. `None` if there is nothing to compact.
    pub(in crate::session) fn compaction_event(
        &self,
        reason: CompactionReason,
        again: bool,
    ) -> Option<Value> {
        let (plan, instructions) = self.compaction_plan(reason);
        let plan = plan.ok()?;
        let branch = self.conversation.log.branch(self.conversation.log.leaf_id());
        let mut event = json!({
            "type": "session_before_compact",
            "reason": reason,
            "willRetry": again,
            "branchEntries": branch,
            "preparation": {
                "firstKeptEntryId": plan.first_kept_entry_id,
                "messagesToSummarize": plan.history,
                "turnPrefixMessages": plan.turn_prefix,
                "isSplitTurn": plan.splits_turn(),
                "tokensBefore": plan.tokens_before,
                "previousSummary": plan.previous_summary,
                "settings": {
                    "enabled": self.conversation.auto_compaction,
                    "reserveTokens": plan.settings.reserve_tokens,
                    "keepRecentTokens": plan.settings.keep_recent_tokens,
                },
            },
        });
        if let Some(instructions) = instructions {
            put(&mut event, "customInstructions", json!(instructions));
        }
        Some(event)
    }

    /// What subscribers said about a compaction: they may refuse it, or have made it.
    pub(in crate::session) async fn take_compaction(&self, answer: Value) -> HooksOutcome {
        if cancels(&answer) {
            return HooksOutcome::Cancel;
        }
        match answer.get("compaction").map(finished) {
            None => HooksOutcome::Unchanged,
            Some(Ok(finished)) => HooksOutcome::Compacted(finished),
            Some(Err(error)) => {
                let failed = failure("<runtime>", "session_before_compact", error);
                self.extension_failed(failed).await;
                HooksOutcome::Unchanged
            }
        }
    }
}

impl ChangeAsker {
    /// Returns true for the command of this name.
    fn asked(&self, command: &str) -> bool {
        matches!(self, Self::Fork(responder) if responder.origin().command == command)
    }
}

/// The reason that extensions know a change by.
pub(in crate::session) fn word(change: &Change) -> &'static str {
    match change {
        Change::New(..) | Change::NewIn(_) => "new",
        Change::Switch(..) => "resume",
        Change::Fork { .. } | Change::At(_) | Change::Clone(_) => "fork",
        Change::Reload => "reload",
    }
}

/// The questions before a change.
fn question(change: &Change) -> Option<(&'static str, Value)> {
    let switch = "session_before_switch";
    let fork = "session_before_fork";
    Some(match change {
        Change::New(..) | Change::NewIn(_) => (switch, json!({"type": switch, "reason": "new"})),
        Change::Switch(path, _) => (
            switch,
            json!({"type": switch, "reason": "resume", "targetSessionFile": path}),
        ),
        Change::Fork { entry, .. } => (
            fork,
            json!({"type": fork, "entryId": entry, "position": "before"}),
        ),
        Change::At(entry) | Change::Clone(entry) => {
            (fork, json!({"type": fork, "entryId": entry, "position": "at"}))
        }
        Change::Reload => return None,
    })
}

/// A compaction as an extension made it.
fn finished(value: &Value) -> Result<Box<Finished>, String> {
    let mut entry: Compaction = serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
    if entry.summary.is_empty() || entry.first_kept_entry_id.is_empty() {
        return Err("a compaction needs a summary and a firstKeptEntryId".to_owned());
    }
    entry.from_hook = Some(true);
    Ok(Box::new(Finished {
        result: CompactionResult {
            summary: entry.summary.clone(),
            first_kept_entry_id: entry.first_kept_entry_id.clone(),
            tokens_before: entry.tokens_before,
            details: entry.details.clone().unwrap_or(Value::Null),
            estimated_tokens_after: None,
            usage: None,
        },
        entry,
    }))
}
