//! What extensions may refuse: another session, a compaction, another place of the tree (dialects.md 10.2); and commands of
//! the user that they may run themselves.

use pinion_core::compaction::{Finished, Plan, Refusal};
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tools::BashRun;
use wire::command::{BashParams, NewSessionParams};
use wire::entry::Compaction;
use wire::event::{CompactionReason, CompactionResult};
use wire::reply::{Cancelled, Forked};
use wire::state::BashResult;
use wire::table::Respond;
use wire::{Entry, Reply};

use crate::limits;
use crate::outbox::Responder;
use crate::strings;

use super::super::Session;
use super::super::compacting::Asker;
use super::super::shell::ShellReport;
use super::super::summarising::{Summarised, Summarising};
use super::super::switching::{Change, ChangeAsker, Changed};
use super::{Outcome, Then, cancels, failure, put};

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

    pub(super) async fn on_change(&mut self, asker: ChangeAsker, mut change: Change, answer: Value) {
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

    /// An extension wants another session. It is answered when that one has begun for its extensions.
    pub(super) async fn change_for(
        &mut self,
        id: Option<u64>,
        method: &str,
        params: &Value,
    ) -> Result<(), String> {
        let text = |name: &str| params.get(name).and_then(Value::as_str).map(str::to_owned);
        let change = match method {
            "newSession" => {
                let entries = params
                    .get("entries")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten();
                let entries: Result<Vec<Entry>, _> = entries
                    .map(|entry| Entry::from_json(&entry.to_string()))
                    .collect();
                let entries = entries.map_err(|error| error.to_string())?;
                let parent_session = text("parentSession");
                let params = NewSessionParams {
                    parent_session,
                    cwd: None,
                    durability: None,
                };
                Change::New(params, entries)
            }
            "switchSession" => Change::Switch(self.cwd.join(text("sessionPath").unwrap_or_default()), None),
            "reload" if !self.machine.is_idle() => return Err(strings::RELOAD_BUSY.to_owned()),
            "reload" => Change::Reload,
            _ => {
                let entry = text("entryId").unwrap_or_default();
                let entry = self.log.entry(&entry).cloned().ok_or(strings::BAD_FORK)?;
                if text("position").as_deref() == Some("at") {
                    Change::At(entry.id.clone())
                } else {
                    Change::fork(&entry).ok_or(strings::BAD_FORK)?
                }
            }
        };
        self.change(ChangeAsker::Extension(id), change).await;
        Ok(())
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
        self.extensions.wait(Then::Leave(asker, change), async move {
            let answer = tokio::time::timeout(limits::FAREWELL, answer).await;
            Outcome::Answer(answer.unwrap_or_else(|_| Ok(door::Answer::default())))
        });
    }

    /// Asks whether a compaction is to be made, and how. False: nobody wants to know.
    pub(in crate::session) fn ask_compact(
        &mut self,
        reason: CompactionReason,
        plan: &Result<Plan, Refusal>,
        instructions: Option<&str>,
    ) -> bool {
        let Ok(plan) = plan else { return false };
        if !self.extensions.hear("session_before_compact") {
            return false;
        }
        let branch = self.log.branch(self.log.leaf_id());
        let mut event = json!({
            "type": "session_before_compact",
            "reason": reason,
            "willRetry": self.machine.compacting().is_some_and(|(_, again)| again),
            "branchEntries": branch,
            "preparation": {
                "firstKeptEntryId": plan.first_kept_entry_id,
                "messagesToSummarize": plan.history,
                "turnPrefixMessages": plan.turn_prefix,
                "isSplitTurn": plan.splits_turn(),
                "tokensBefore": plan.tokens_before,
                "previousSummary": plan.previous_summary,
                "settings": {
                    "enabled": self.auto_compaction,
                    "reserveTokens": plan.settings.reserve_tokens,
                    "keepRecentTokens": plan.settings.keep_recent_tokens,
                },
            },
        });
        if let Some(instructions) = instructions {
            put(&mut event, "customInstructions", json!(instructions));
        }
        self.ask_extensions("session_before_compact", &event, Then::Compact(reason));
        true
    }

    pub(super) async fn on_compact(&mut self, reason: CompactionReason, answer: Value) {
        let outcome = if cancels(&answer) {
            Err(Refusal::Aborted)
        } else {
            match answer.get("compaction").map(finished) {
                Some(Ok(finished)) => Ok(finished),
                None => return self.summarise_now(reason),
                Some(Err(error)) => {
                    self.extension_failed(failure("<runtime>", "session_before_compact", error))
                        .await;
                    return self.summarise_now(reason);
                }
            }
        };
        self.summarised_already(outcome);
    }

    /// The outcome of a compaction that no model is asked for.
    fn summarised_already(&mut self, outcome: Result<Box<Finished>, Refusal>) {
        let done = async move { Summarised::Compaction(outcome) };
        self.summarising = Some(Summarising::new(CancellationToken::new(), done));
    }

    /// The compaction is aborted while extensions think about it.
    pub(in crate::session) fn stop_asking_to_compact(&mut self) {
        if !self
            .extensions
            .give_up(|then| matches!(then, Then::Compact(_)))
            .is_empty()
        {
            self.summarised_already(Err(Refusal::Aborted));
        }
    }

    /// Asks whether an extension runs a command of the user itself; else it is run.
    pub(in crate::session) async fn bash(&mut self, responder: Responder<BashResult>, params: BashParams) {
        if !self.extensions.hear("user_bash") {
            return self.bash_now(responder, params).await;
        }
        let event = json!({
            "type": "user_bash",
            "command": params.command,
            "excludeFromContext": params.exclude_from_context,
            "cwd": self.cwd.to_string_lossy(),
        });
        self.ask_extensions("user_bash", &event, Then::Bash(responder, params));
    }

    /// No answer: an extension failed over it, and may have had a reason to be asked (pi 0.86).
    pub(super) async fn on_user_bash(
        &mut self,
        responder: Responder<BashResult>,
        params: BashParams,
        answer: Option<Value>,
    ) {
        let Some(answer) = answer else {
            return responder.refuse(strings::UNSEEN_COMMAND).await;
        };
        let Some(result) = answer.get("result").filter(|result| result.is_object()) else {
            return self.bash_now(responder, params).await;
        };
        let is = |name: &str| result.get(name) == Some(&json!(true));
        let text = |name: &str| result.get(name).and_then(Value::as_str).map(str::to_owned);
        let code = result.get("exitCode").and_then(Value::as_i64);
        let run = BashRun {
            output: text("output").unwrap_or_default(),
            exit_code: code.and_then(|code| i32::try_from(code).ok()),
            cancelled: is("cancelled"),
            truncated: is("truncated"),
            full_output_path: text("fullOutputPath"),
            counts: Default::default(),
        };
        let shell = self.shell_began(responder.origin(), &params).await;
        self.on_shell(ShellReport::Done(Box::new(responder), params, shell, Ok(run)))
            .await;
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
        Change::New(..) => "new",
        Change::Switch(..) => "resume",
        Change::Fork { .. } | Change::At(_) | Change::Clone(_) => "fork",
        Change::Reload => "reload",
    }
}

/// What is asked before a change.
fn question(change: &Change) -> Option<(&'static str, Value)> {
    let switch = "session_before_switch";
    let fork = "session_before_fork";
    Some(match change {
        Change::New(..) => (switch, json!({"type": switch, "reason": "new"})),
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
