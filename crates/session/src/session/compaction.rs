//! Compacting the conversation: when it begins, what hooks have to do with it, and the result to disk. The plan is from `agent`, the
//! summaries are made in `summaries`.

use std::sync::Arc;

use agent::compaction::{Finished, Refusal};
use agent::{Activity, CompactOutcome, HooksOutcome, Input};
use serde_json::{Value, json};
use wire::entry::Compaction;
use wire::event::{CompactionReason, CompactionResult};
use wire::{EntryBody, Event, SessionRule};

use crate::outbox::Outbox;
use crate::strings;

use super::asker::{Asked, Asker, EndedCompaction};
use super::driver::Driver;
use super::extension_models;
use super::extension_notices;
use super::extensions::{Continuation, cancels, failure, put, report};
use super::handoff::is_needless;
use super::interrupted_run::InterruptedRun;
use super::session_core::SessionCore;
use super::summaries::Summaries;

/// A manual compaction, once the run has ended.
pub(super) async fn compact_now(driver: &mut Driver, asked: Asked) {
    // While it is idle: an extension may have brought the model during a run.
    extension_models::resolve(driver).await;
    // Before the plan, so that shell commands of the user are part of it.
    driver.core.add_shell_messages();
    // Before the input: hooks and the plan read the instructions there, and the end of the compaction finds who waits for it.
    driver.summaries.compaction = Some(asked);
    driver.drive(Input::Compact).await;
}

/// The summaries are there, or not.
pub(super) async fn compacted(driver: &mut Driver, outcome: Result<Box<Finished>, Refusal>) {
    let outcome = match outcome {
        Ok(finished) => store_summary(&mut driver.core, *finished).await,
        Err(Refusal::Aborted) => CompactOutcome::Aborted,
        Err(refusal) => CompactOutcome::Failed(refusal.to_string()),
    };
    // Before the machine ends the compaction, while its activity still says why there was one.
    let heard = match driver.core.machine.activity() {
        Activity::Compacting { reason, again, .. } => {
            extension_notices::ask_compaction(driver, &outcome, reason, again)
        }
        _ => None,
    };
    // As in pi: clients hear of a summary after the extensions, and of a failure before them.
    let ended = match outcome {
        CompactOutcome::Done { result, .. } => EndedCompaction::Stored(result),
        failure => {
            let error = match &failure {
                CompactOutcome::Failed(error) => error.clone(),
                _ => Refusal::Aborted.to_string(),
            };
            // Taken before the machine goes on: another compaction may begin then.
            let asked = driver.summaries.compaction.take();
            driver.drive(Input::Compacted(failure)).await;
            EndedCompaction::Failed(asked, error)
        }
    };
    match heard {
        Some(heard) => {
            let continuation = Continuation::Compacted(Box::new(ended));
            driver.extensions.questions.ask(continuation, heard);
        }
        None => finish(driver, ended).await,
    }
}

/// Extensions have heard of the end of a compaction: the machine goes on, and who asked for it gets the outcome.
pub(super) async fn finish(driver: &mut Driver, ended: EndedCompaction) {
    let (asked, answer) = match ended {
        EndedCompaction::Stored(result) => {
            let answer = Ok(result.clone());
            let asked = driver.summaries.compaction.take();
            // Not before the extensions heard of it: messages may have joined the conversation meanwhile.
            let messages = driver.core.conversation.read_leaf();
            let outcome = CompactOutcome::Done { result, messages };
            driver.drive(Input::Compacted(outcome)).await;
            (asked, answer)
        }
        EndedCompaction::Failed(asked, error) => (asked, Err(error)),
    };
    // After the input: clients get `compaction_end` before the response.
    if let Some(asked) = asked {
        let is_of_client = matches!(asked.asker, Asker::Client(_));
        let is_done = answer.as_ref().err().is_none_or(|error| is_needless(error));
        driver.extensions.links.reply(asked.asker, answer).await;
        // The compaction of an extension has interrupted nothing, and that of a client may follow it.
        if is_of_client {
            resume(driver, is_done).await;
        }
    }
}

/// Goes on with the run that the compaction has interrupted. `is_done` is false if the conversation is still to be compacted.
async fn resume(driver: &mut Driver, is_done: bool) {
    let goes_on = is_done && driver.summaries.interrupted == InterruptedRun::Ended;
    if !goes_on || !driver.core.machine.can_resume() {
        return settle_interrupted(driver).await;
    }
    // As for a prompt: limits and missing credentials also keep this run from beginning.
    if let Err(reason) = extension_models::check_model(driver) {
        driver
            .core
            .outbox
            .notice("warning", strings::not_resumed(&reason))
            .await;
        return settle_interrupted(driver).await;
    }
    driver.core.add_shell_messages();
    let full = driver.summaries.must_compact(&driver.core);
    driver.drive(Input::Continue { full }).await;
}

/// The run that a compaction has interrupted does not go on: clients learn that the session has settled, if they do not know yet.
pub(super) async fn settle_interrupted(driver: &mut Driver) {
    if std::mem::take(&mut driver.summaries.interrupted).is_held() {
        driver.core.tools.processes().tell_pending_wakeup().await;
        // Extensions know it since the run ended.
        let settled = Event::AgentSettled { aborted: true };
        driver.core.outbox.tell_clients(Arc::new(settled)).await;
    }
}

async fn store_summary(core: &mut SessionCore, mut finished: Finished) -> CompactOutcome {
    core.complete_compaction(&mut finished.entry);
    // A summary that is not stored changes nothing: the conversation must be what the file says.
    if let Err(error) = core
        .conversation
        .log
        .append(EntryBody::Compaction(finished.entry), &core.outbox)
        .await
    {
        return CompactOutcome::Failed(error.to_string());
    }
    let messages = core.conversation.read_leaf();
    let mut result = finished.result;
    if core.follows(SessionRule::EstimatesAllMessages) {
        // Today's pi counts all messages, also the one with prompt and tools.
        result.estimated_tokens_after = None;
    }
    // A summary of an extension comes without the estimate.
    let estimate = || messages.iter().map(|message| agent::estimate(message)).sum();
    result.estimated_tokens_after.get_or_insert_with(estimate);
    CompactOutcome::Done { result, messages }
}

/// What subscribers receive before a compaction. `None` if there is nothing to compact.
pub(super) fn event(
    core: &SessionCore,
    summaries: &Summaries,
    reason: CompactionReason,
    again: bool,
) -> Option<Value> {
    let (plan, instructions) = summaries.plan(core, reason);
    // Without a plan there is nothing to refuse or replace, and the compaction ends with the reason.
    let plan = plan.ok()?;
    let branch = core.conversation.log.branch(core.conversation.log.leaf_id());
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
                "enabled": core.conversation.auto_compaction,
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
pub(super) async fn take_answer(answer: Value, outbox: &Outbox) -> HooksOutcome {
    if cancels(&answer) {
        return HooksOutcome::Cancel;
    }
    match answer.get("compaction").map(finished) {
        None => HooksOutcome::Unchanged,
        Some(Ok(finished)) => HooksOutcome::Compacted(finished),
        // An extension that fails leaves the compaction to the session.
        Some(Err(error)) => {
            let failed = failure("<runtime>", "session_before_compact", error);
            report(failed, outbox).await;
            HooksOutcome::Unchanged
        }
    }
}

/// A compaction as an extension made it.
fn finished(value: &Value) -> Result<Box<Finished>, String> {
    let mut entry: Compaction = serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
    if entry.summary.is_empty() || entry.first_kept_entry_id.is_empty() {
        return Err("a compaction needs a summary and a firstKeptEntryId".to_owned());
    }
    // The next compaction does not take over its lists of files (pi-core.md 3.6).
    entry.from_hook = Some(true);
    let short = entry.extra.get("shortSummary").and_then(Value::as_str);
    Ok(Box::new(Finished {
        result: CompactionResult {
            summary: entry.summary.clone(),
            short_summary: short.map(str::to_owned),
            first_kept_entry_id: entry.first_kept_entry_id.clone(),
            tokens_before: entry.tokens_before,
            details: entry.details.clone().unwrap_or(Value::Null),
            estimated_tokens_after: None,
            usage: entry.usage.clone(),
        },
        entry,
    }))
}
