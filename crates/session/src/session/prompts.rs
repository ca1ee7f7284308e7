//! Commands of clients that say something to the model, now or later, or stop it. What becomes of a message is in `prompt_delivery`.

use std::sync::Arc;

use agent::{Input, QueueKind, Queued};
use wire::SessionRule;
use wire::command::{CompactParams, EditQueuedParams, MessageParams, PromptParams, RemoveQueuedParams};
use wire::event::CompactionResult;
use wire::omp::Handoff;
use wire::reply::{Accepted, CommandStage, Disposition, Queues};
use wire::table::Respond;

use crate::outbox::Responder;
use crate::strings;

use super::asker::{Asked, Asker};
use super::attachments::Attachments;
use super::deferred::DeferredAction;
use super::driver::Driver;
use super::extensions::Extensions;
use super::handoff::handoff;
use super::interrupted_run::InterruptedRun;
use super::mcp::Room;
use super::pending_prompt::PendingPrompt;
use super::{extension_models, prompt_delivery, queue};

pub(super) async fn prompt(driver: &mut Driver, responder: Responder<Accepted>, mut params: PromptParams) {
    let faults = driver.extensions.guards.faults();
    // Without guards and without a user who could be asked, a prompt could run what a guard would have stopped.
    if !faults.is_empty() && !driver.core.agent.options.is_attended {
        let error = strings::guards_missing(&faults.join("\n"));
        return responder.refuse(error).await;
    }
    driver.core.tools.processes().allow_wakeups();
    // Before the handlers of `input`, and also during a run (pi-core.md 1.11).
    let Some(responder) = run_command(driver, responder, &params.message).await else {
        return;
    };
    // Today's pi refuses it also if it says what to do during a run, since no run is active that it could join.
    if driver.core.follows(SessionRule::RefusesPromptsInCompactions)
        && driver.core.machine.activity().is_outside_runs()
    {
        return responder.refuse(strings::COMPACTING).await;
    }
    let (attachments, images) = (
        std::mem::take(&mut params.attachments),
        std::mem::take(&mut params.images),
    );
    match Attachments::new(attachments, images) {
        Ok(attachments) => deliver(driver, PendingPrompt::new(responder, params, attachments)).await,
        Err(error) => responder.refuse(error).await,
    }
}

/// Delivers a message. If it calls a prompt of an MCP server, that prompt takes its place, and is delivered when it is there.
async fn deliver(driver: &mut Driver, message: PendingPrompt) {
    let room = Room {
        dir: driver.core.agent.mcp.tmp_dir.clone(),
        shrink: driver.core.agent.settings.images.auto_resize,
    };
    if let Some(message) = driver.core.mcp.ask_prompt(message, room).await {
        prompt_delivery::deliver(driver, message).await;
    }
}

/// Steering and follow-ups: queued also when nothing is under way, unless extensions deal with them. Their slash commands
/// cannot wait in a queue (pi-core.md 1.7), unlike templates and prompts of MCP servers, whose text can.
pub(super) async fn enqueue(
    driver: &mut Driver,
    responder: Responder<Accepted>,
    kind: QueueKind,
    params: MessageParams,
) {
    if let Some(command) = driver.extensions.links.command(&params.message) {
        return responder.refuse(strings::not_queueable(&command.called)).await;
    }
    let message = PendingPrompt::queued(responder, params.message, params.images.into(), kind);
    deliver(driver, message).await;
}

/// The single queue of older clients: steering that skips the remaining calls of a turn (dialects.md 5, row 14).
pub(super) async fn queue_message(driver: &mut Driver, params: MessageParams) -> Result<Accepted, String> {
    let text = driver.core.expand(&params.message).await;
    let message = Attachments::from(params.images).message(text.clone());
    prompt_delivery::push(driver, QueueKind::Steering, text, message, true).await
}

pub(super) async fn clear_queue(driver: &mut Driver) -> Queues {
    // Read first: the response lists the messages that the next line removes.
    let (steering, follow_up) = driver.core.machine.queues().texts();
    driver.drive(Input::ClearQueue).await;
    Queues { steering, follow_up }
}

/// Stops what runs. Returns the response, which follows when the session is idle.
pub(super) async fn abort(driver: &mut Driver, responder: Responder<()>) -> DeferredAction {
    // An open login may wait ten minutes for its user (`auth::login::limits::LOGIN`).
    driver.extensions.providers.end_logins(strings::ABORTED).await;
    // Queued messages stay and begin no run by themselves, unlike in pi 1.x (dialects.md 9).
    driver.drive(Input::Abort).await;
    DeferredAction::Respond(responder)
}

/// Stops what runs. Returns the prompt, which follows when the session is idle.
pub(super) async fn abort_and_prompt(
    driver: &mut Driver,
    responder: Responder<Accepted>,
    params: MessageParams,
) -> DeferredAction {
    let MessageParams { message, images } = params;
    driver.drive(Input::Abort).await;
    // Deferred: the response follows the `agent_end` of the aborted run (dialects.md 9).
    DeferredAction::Prompt(
        responder,
        PromptParams {
            message,
            images,
            attachments: Vec::new(),
            streaming_behavior: None,
            limits: None,
            fallback_models: None,
            output_schema: None,
        },
    )
}

/// Stops what runs. Returns the compaction, which follows when the session is idle; none if it is refused.
pub(super) async fn compact(
    driver: &mut Driver,
    responder: Responder<CompactionResult>,
    params: CompactParams,
) -> Option<DeferredAction> {
    if driver.core.follows(SessionRule::ResumesAfterCompaction) {
        // As in oh-my-pi. The abort would end the run that goes on after the first compaction.
        let is_compacting = driver.core.machine.activity().is_compacting();
        if is_compacting && driver.summaries.interrupted == InterruptedRun::Ended {
            responder.refuse(strings::ALREADY_COMPACTING).await;
            return None;
        }
        if driver.core.machine.can_be_interrupted() {
            driver.summaries.interrupted = InterruptedRun::Wanted;
        }
    }
    // A manual compaction ends the run, in contrast to an automatic one (pi-core.md 3.2).
    driver.drive(Input::Abort).await;
    Some(DeferredAction::Compact(Asked {
        asker: Asker::Client(responder),
        instructions: params.custom_instructions,
    }))
}

/// `continue`: one more request after a run that died. Whether one did is decided in `agent`.
pub(super) async fn resume(driver: &mut Driver, responder: Responder<Accepted>) {
    let refusal = if !driver.core.machine.is_idle() {
        Some(strings::CONTINUE_BUSY.to_owned())
    } else if !driver.core.machine.can_continue() {
        Some(strings::NOTHING_TO_CONTINUE.to_owned())
    } else {
        extension_models::check_model(driver).err()
    };
    if let Some(refusal) = refusal {
        responder.refuse(refusal).await;
        return;
    }
    // The response comes before the events of the run.
    responder.respond(Ok(Accepted::new(Disposition::Started))).await;
    // Before the size is checked, since these messages are part of the next request.
    driver.core.add_shell_messages();
    let full = driver.summaries.must_compact(&driver.core);
    driver.drive(Input::Continue { full }).await;
}

pub(super) async fn edit_queued(driver: &mut Driver, params: EditQueuedParams) -> Result<(), String> {
    let text = driver.core.expand(&params.message).await;
    // After the expansion, which waits for files: the message may have left the queue meanwhile.
    let (number, old) = queue::queued(&driver.core.machine, &params.queued_id)?;
    let queued = Queued {
        message: Arc::new(queue::reworded(&old.message, &text)),
        text,
        interrupts: old.interrupts,
    };
    driver.drive(Input::EditQueued(number, queued)).await;
    Ok(())
}

pub(super) async fn remove_queued(driver: &mut Driver, params: RemoveQueuedParams) -> Result<(), String> {
    let (number, _) = queue::queued(&driver.core.machine, &params.queued_id)?;
    driver.drive(Input::RemoveQueued(number)).await;
    Ok(())
}

/// Runs a slash command of an extension, if the text is one; also during a run. Gives the responder back if it is none.
async fn run_command(
    driver: &mut Driver,
    responder: Responder<Accepted>,
    text: &str,
) -> Option<Responder<Accepted>> {
    let Some(command) = driver.extensions.links.command(text) else {
        return Some(responder);
    };
    let mut stage = CommandStage::Whole;
    if driver.core.agent.options.dialect.answers_commands_early() {
        let begun = Accepted::by_command(CommandStage::Begun);
        responder.respond_early(begun).await;
        // `ClientRequests::take` corrects it at the end, when it is known whether a run begins.
        stage = CommandStage::Ended(false);
    }
    driver.extensions.sync_state(&mut driver.core);
    let Extensions {
        client_requests,
        links,
        ..
    } = &mut driver.extensions;
    client_requests.run_command(links, responder, stage, command, text);
    None
}

/// A compaction whose summary another session begins with; not during a run.
pub(super) async fn hand_off(
    driver: &mut Driver,
    responder: Responder<Handoff>,
    params: CompactParams,
) -> Option<DeferredAction> {
    let refusal = if driver.core.machine.activity().is_running() {
        strings::HANDOFF_BUSY
    } else if driver.core.machine.messages().len() < 2 {
        strings::NOTHING_TO_HAND_OFF
    } else {
        let (params, responder) = handoff(params, responder);
        return compact(driver, responder, params).await;
    };
    responder.refuse(refusal).await;
    None
}
