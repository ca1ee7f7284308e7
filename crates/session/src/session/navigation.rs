//! Going to another place of the session's tree, in the same file, with a summary of the branch that is left if wanted. Extensions may
//! refuse it, change the summary, or bring the summary themselves (`session_before_tree`), and hear of it (`session_tree`).

use std::sync::Arc;

use agent::Input;
use agent::compaction::{self, Refusal, SummaryKind, abandoned};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use wire::EntryBody;
use wire::changes::{RewindParams, RewindTarget, Rewound, UnrewindParams};
use wire::command::{NavigateParams, UserMessageTarget};
use wire::entry::BranchSummary;
use wire::event::ChangeReason;
use wire::reply::Navigated;
use wire::table::Respond;

use crate::limits;
use crate::outbox::Responder;
use crate::strings;

use super::asker::Asker;
use super::checkpoints;
use super::conversation::{Conversation, Place};
use super::deferred::DeferredAction;
use super::driver::Driver;
use super::extension_models;
use super::extensions::{Continuation, cancels, put};
use super::session_core::SessionCore;
use super::summaries::{PendingNavigation, Summarised, Summariser, Summarising};

/// A client goes to another place. Returns what follows once the run has ended.
pub(super) async fn navigate(
    driver: &mut Driver,
    responder: Responder<Navigated>,
    params: NavigateParams,
) -> Option<DeferredAction> {
    // Before the abort: an unknown entry must not end the run.
    if driver.core.conversation.log.entry(&params.target_id).is_none() {
        let error = strings::entry_not_found(&params.target_id);
        responder.refuse(error).await;
        return None;
    }
    // The run must end on the branch that it began on.
    driver.drive(Input::Abort).await;
    Some(DeferredAction::Move(Asker::Client(responder), params))
}

/// The run has ended: goes there at once, or begins the summary, unless a summary was given.
pub(super) async fn move_now(
    driver: &mut Driver,
    asker: Asker<Navigated>,
    params: NavigateParams,
    given: Option<BranchSummary>,
) {
    let Some(place) = driver.core.conversation.place(&params) else {
        let error = strings::entry_not_found(&params.target_id);
        return driver.extensions.links.reply(asker, Err(error)).await;
    };
    let label = params.label.as_deref().map(str::trim);
    let label = label.filter(|label| !label.is_empty()).map(str::to_owned);
    // Nothing moves, so that only the label has to be stored: no run is ended, and no hook is asked.
    if driver.core.conversation.is_at(&params) {
        let stays = label_entry(&mut driver.core, &place.target, label).await;
        let outcome = stays
            .map(|()| moved(None, None))
            .map_err(|error| error.to_string());
        return driver.extensions.links.reply(asker, outcome).await;
    }
    if params.summarize {
        // While it is idle, as before a prompt.
        extension_models::resolve(driver).await;
    }
    // Before the leaf moves: shell commands belong to the branch on which the user ran them.
    driver.core.add_shell_messages();
    // Busy from now on until `Moved`, so that no run begins while the leaf changes.
    driver.drive(Input::Move).await;
    let moving = PendingNavigation { asker, place, label };
    if let Some(given) = given {
        // An empty text means that there shall be no summary, not that the model shall write one (pi-core.md 3.7).
        let given = Some(given).filter(|given| !given.summary.is_empty());
        return arrive(driver, moving, given).await;
    }
    let summary = if params.summarize {
        branch_to_summarise(driver, &params)
    } else {
        None
    };
    match summary {
        Some(summary) => {
            driver.summaries.running = Some(summary);
            driver.summaries.navigation = Some(moving);
        }
        None => arrive(driver, moving, None).await,
    }
}

/// The summary is there, or not.
pub(super) async fn summarised_branch(driver: &mut Driver, outcome: Result<Box<BranchSummary>, Refusal>) {
    let Some(moving) = driver.summaries.navigation.take() else {
        return;
    };
    let aborted = match outcome {
        Ok(summary) => return arrive(driver, moving, Some(*summary)).await,
        Err(Refusal::Aborted) => Ok(Navigated {
            cancelled: true,
            editor_text: None,
            summary_entry_id: None,
        }),
        Err(refusal) => Err(refusal.to_string()),
    };
    // An abort is no failure for the client, but nothing that was queued may start after it.
    let is_abort = aborted.is_ok();
    let stay = Input::Moved {
        messages: None,
        aborted: is_abort,
    };
    driver.drive(stay).await;
    driver.extensions.links.reply(moving.asker, aborted).await;
}

/// The summary request for the branch that is left; none if that branch has no messages.
fn branch_to_summarise(driver: &mut Driver, params: &NavigateParams) -> Option<Summarising> {
    // The prompt to which the user goes back is no part of the branch that is left.
    let (old, new) = driver.core.conversation.branches(Some(&params.target_id));
    let left = compaction::abandoned(&old, &new);
    // A window of 0 means that it is unknown.
    let window = match driver.core.conversation.choice.model.context_window {
        0 => limits::DEFAULT_WINDOW,
        window => window,
    };
    let budget = window.saturating_sub(driver.core.agent.settings.branch_summary.reserve_tokens);
    let plan = compaction::branch_plan(left, budget).ok()?;
    let request = compaction::branch_request(
        &plan,
        params.custom_instructions.as_deref(),
        params.replace_instructions,
    );
    let from = driver
        .core
        .conversation
        .log
        .leaf_id()
        // The `fromId` of a session without entries (pi-core.md 2.3).
        .unwrap_or("root")
        .to_owned();
    let cancel = CancellationToken::new();
    // As a summary that fails, so that the move ends and is answered like every other.
    if let Err(error) = driver.check_named() {
        let refusal = Refusal::Failed(SummaryKind::Branch, error);
        let refused = async move { Summarised::Branch(Err(refusal)) };
        return Some(Summarising::new(cancel, refused));
    }
    let spending = driver.extensions.tasks.spending.clone();
    let mut summariser = Summariser::for_session(&mut driver.core, spending, None, cancel.clone());
    Some(Summarising::new(cancel, async move {
        let asked = summariser.ask(&request).await;
        Summarised::Branch(asked.and_then(|(text, usage)| {
            let mut summary = compaction::finish_branch(&plan, text, &from)?;
            summary.usage = Some(usage);
            Ok(Box::new(summary))
        }))
    }))
}

/// Goes there; when something cannot be written the session stays where it was.
async fn arrive(driver: &mut Driver, moving: PendingNavigation, summary: Option<BranchSummary>) {
    let PendingNavigation { asker, place, label } = moving;
    // The way back, should an entry not be written.
    let before = driver.core.conversation.log.leaf_id().map(str::to_owned);
    let there = go_to(driver, &place, summary, label).await;
    let messages = match &there {
        Ok(_) => {
            // The todo list and the declared tools belong to a branch. The list depends on whether its tool is active.
            driver.core.restore_tools(false);
            driver.core.read_todos();
            Some(driver.core.conversation.read_leaf())
        }
        Err(_) => {
            // An entry that was read cannot have gone away, so this does not fail.
            let _back = driver.core.conversation.log.direct().set_leaf(before.as_deref());
            None
        }
    };
    let aborted = false;
    let is_there = messages.is_some();
    // Before the events: clients read the conversation again when they hear of the change.
    driver.drive(Input::Moved { messages, aborted }).await;
    if is_there {
        let summary = there.as_ref().ok().and_then(Option::as_deref);
        tell_moved(driver, before.as_deref(), summary);
        driver.core.tell_changed(ChangeReason::Tree).await;
    }
    let outcome = there
        .map(|summary| moved(place.text, summary))
        .map_err(|error| error.to_string());
    driver.extensions.links.reply(asker, outcome).await;
}

async fn go_to(
    driver: &mut Driver,
    place: &Place,
    summary: Option<BranchSummary>,
    label: Option<String>,
) -> Result<Option<String>, store::StoreError> {
    // In memory: a leaf is no entry of the file.
    driver
        .core
        .conversation
        .log
        .direct()
        .set_leaf(place.leaf.as_deref())?;
    let mut summary_id = None;
    if let Some(summary) = summary {
        let entry = driver
            .core
            .conversation
            .log
            .append(EntryBody::BranchSummary(summary), &driver.core.outbox)
            .await?;
        summary_id = Some(entry.id.clone());
    }
    // The summary is the new leaf, so that the label names the place at which the session goes on.
    let labelled = summary_id.clone().unwrap_or_else(|| place.target.clone());
    label_entry(&mut driver.core, &labelled, label).await?;
    Ok(summary_id)
}

async fn label_entry(
    core: &mut SessionCore,
    target: &str,
    label: Option<String>,
) -> Result<(), store::StoreError> {
    match label {
        Some(_) => core.conversation.store_label(target, label, &core.outbox).await,
        // A stored entry without a label would remove the label that is there.
        None => Ok(()),
    }
}

/// Asks whether another place of the tree may be gone to; then it is.
pub(super) async fn move_if_allowed(driver: &mut Driver, asker: Asker<Navigated>, params: NavigateParams) {
    let name = "session_before_tree";
    // Nothing is left, so there is nothing that an extension could refuse or summarise.
    let stays = driver.core.conversation.is_at(&params);
    if stays || !driver.extensions.has_listener(name) {
        return move_now(driver, asker, params, None).await;
    }
    let (old, new) = driver.core.conversation.branches(Some(&params.target_id));
    let common = old
        .iter()
        .zip(&new)
        .take_while(|(old, new)| old.id == new.id)
        .last();
    let mut preparation = json!({
        "targetId": params.target_id,
        "oldLeafId": driver.core.conversation.log.leaf_id(),
        "commonAncestorId": common.map(|(entry, _)| &entry.id),
        "entriesToSummarize": abandoned(&old, &new),
        "userWantsSummary": params.summarize,
    });
    if let Some(instructions) = &params.custom_instructions {
        put(&mut preparation, "customInstructions", json!(instructions));
        put(
            &mut preparation,
            "replaceInstructions",
            json!(params.replace_instructions),
        );
    }
    if let Some(label) = &params.label {
        put(&mut preparation, "label", json!(label));
    }
    let event = json!({"type": name, "preparation": preparation});
    driver
        .extensions
        .ask(&mut driver.core, name, &event, Continuation::Move(asker, params));
}

pub(super) async fn on_move(
    driver: &mut Driver,
    asker: Asker<Navigated>,
    mut params: NavigateParams,
    answer: Value,
) {
    if cancels(&answer) {
        let stays = Navigated {
            cancelled: true,
            editor_text: None,
            summary_entry_id: None,
        };
        return driver.extensions.links.reply(asker, Ok(stays)).await;
    }
    let text = |name: &str| answer.get(name).and_then(Value::as_str).map(str::to_owned);
    if let Some(instructions) = text("customInstructions") {
        params.custom_instructions = Some(instructions);
    }
    if let Some(replace) = answer.get("replaceInstructions").and_then(Value::as_bool) {
        params.replace_instructions = replace;
    }
    if let Some(label) = text("label") {
        params.label = Some(label);
    }
    // A summary that the client did not ask for is not stored.
    let given = answer.get("summary").filter(|_| params.summarize);
    let given = given.and_then(|given| given_summary(&driver.core.conversation, given));
    move_now(driver, asker, params, given).await;
}

/// A summary that an extension made; none when it gives none.
fn given_summary(conversation: &Conversation, given: &Value) -> Option<BranchSummary> {
    let summary = given.get("summary").and_then(Value::as_str)?.to_owned();
    let member = |name: &str| given.get(name).filter(|value| !value.is_null()).cloned();
    Some(BranchSummary {
        from_id: conversation.log.leaf_id().unwrap_or("root").to_owned(),
        summary,
        details: member("details"),
        from_hook: Some(true),
        usage: member("usage").and_then(|usage| serde_json::from_value(usage).ok()),
        extra: wire::Extra::default(),
    })
}

/// Extensions hear that the session is at another place.
pub(super) fn tell_moved(driver: &mut Driver, old: Option<&str>, summary: Option<&str>) {
    let name = "session_tree";
    if !driver.extensions.has_listener(name) {
        return;
    }
    let mut event =
        json!({"type": name, "newLeafId": driver.core.conversation.log.leaf_id(), "oldLeafId": old});
    if let Some(entry) = summary
        .and_then(|id| driver.core.conversation.log.entry(id))
        .map(Arc::clone)
    {
        let by_extension =
            matches!(&entry.body, wire::EntryBody::BranchSummary(body) if body.from_hook == Some(true));
        put(&mut event, "summaryEntry", json!(entry));
        put(&mut event, "fromExtension", json!(by_extension));
    }
    driver.extensions.tell_only(&mut driver.core, name, &event);
}

fn moved(editor_text: Option<String>, summary_entry_id: Option<String>) -> Navigated {
    Navigated {
        cancelled: false,
        editor_text,
        summary_entry_id,
    }
}

/// Restores files to what they were at an entry, and goes there unless only the files are wanted.
pub(super) async fn rewind(
    driver: &mut Driver,
    responder: Responder<Rewound>,
    params: RewindParams,
) -> Option<DeferredAction> {
    let kind = driver.core.agent.checkpoints();
    // Files first: if they cannot be restored, the conversation stays where it is.
    let Conversation { checkpoints, log, .. } = &mut driver.core.conversation;
    match checkpoints.rewind(log, kind, &params).await {
        Err(error) => responder.refuse(error).await,
        Ok(rewound) if params.what == RewindTarget::Files => responder.respond(Ok(rewound)).await,
        Ok(rewound) => {
            let responder = responder.taking(|moved| checkpoints::moved(rewound, moved));
            let place = checkpoints::place(params.entry_id, UserMessageTarget::Before);
            return navigate(driver, responder, place).await;
        }
    }
    None
}

/// Takes a rewind back.
pub(super) async fn unrewind(
    driver: &mut Driver,
    responder: Responder<Rewound>,
    params: &UnrewindParams,
) -> Option<DeferredAction> {
    let kind = driver.core.agent.checkpoints();
    let Conversation { checkpoints, log, .. } = &mut driver.core.conversation;
    match checkpoints.unrewind(log, kind, params).await {
        Err(error) => responder.refuse(error).await,
        Ok((rewound, None)) => responder.respond(Ok(rewound)).await,
        Ok((rewound, Some(leaf))) => {
            let responder = responder.taking(|moved| checkpoints::moved(rewound, moved));
            let place = checkpoints::place(leaf, UserMessageTarget::Itself);
            return navigate(driver, responder, place).await;
        }
    }
    None
}
