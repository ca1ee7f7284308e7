//! What becomes of something that people or extensions say to the model: extensions may change it or deal with it, then it waits in a
//! queue or begins a run. The order of the steps is what clients see: a prompt is on disk before it is acknowledged, and it is
//! acknowledged before its run begins.

use std::sync::Arc;

use agent::{Activity, Input, QueueKind, Queued};
use serde_json::{Value, json};
use wire::reply::{Accepted, Disposition};
use wire::table::Respond;
use wire::{Message, SessionRule, UserBlock};

use crate::limits;
use crate::off_thread::off_thread;
use crate::strings;

use super::asker::Asker;
use super::attachments::Attachments;
use super::change_request::ChangeAsker;
use super::compaction;
use super::driver::Driver;
use super::extension_models;
use super::extensions::{Continuation, custom, failure, prompt_options, put};
use super::pending_prompt::{PendingPrompt, PendingRun, PromptSender};
use super::queue::{self, queued_id};
use super::run_options::CheckedOptions;
use super::running_turn::UnansweredPrompt;
use super::session_core::SessionCore;

/// Says something; extensions may change it first, or deal with it themselves.
pub(super) async fn deliver(driver: &mut Driver, prompt: PendingPrompt) {
    if !driver.extensions.has_listener("input") {
        return run_or_queue(driver, prompt).await;
    }
    let mut event = json!({"type": "input", "text": prompt.text, "source": prompt.source()});
    let images = prompt.attachments.images();
    if !images.is_empty() {
        put(&mut event, "images", json!(images));
    }
    // Without a run the member means nothing (dialects.md 5, row 13).
    if let Some(behavior) = prompt
        .behavior
        .as_ref()
        .filter(|_| !driver.core.machine.is_idle())
    {
        put(&mut event, "streamingBehavior", json!(behavior));
    }
    driver
        .extensions
        .ask(&mut driver.core, "input", &event, Continuation::Input(prompt));
}

pub(super) async fn on_input(driver: &mut Driver, mut prompt: PendingPrompt, answer: Value) {
    match answer.get("action").and_then(Value::as_str) {
        Some("handled") => {
            let handled = Accepted::new(Disposition::Handled);
            return answer_prompt(driver, prompt.sender, Ok(handled)).await;
        }
        Some("transform") => {
            if let Some(text) = answer.get("text").and_then(Value::as_str) {
                text.clone_into(&mut prompt.text);
            }
            if let Some(images) = answer.get("images").filter(|images| images.is_array()) {
                // Images that cannot be read are left out, and the text still goes to the model.
                let blocks: Vec<UserBlock> = serde_json::from_value(images.clone()).unwrap_or_default();
                prompt.attachments.set_images(blocks);
            }
        }
        _ => {}
    }
    run_or_queue(driver, prompt).await;
}

/// Why a prompt is refused that does not say what to do with it.
fn busy(activity: Activity) -> &'static str {
    match activity.is_outside_runs() {
        true => strings::COMPACTING,
        false => strings::BUSY,
    }
}

/// Queues it during a run, else begins one.
async fn run_or_queue(driver: &mut Driver, prompt: PendingPrompt) {
    // After the handlers of `input`, which see what the user typed (pi-core.md 1.11).
    let text = if prompt.expand {
        driver.core.expand(&prompt.text).await
    } else {
        prompt.text
    };
    // Clients see a message wait as it was sent, without notes about its images.
    let shown = text.clone();
    let (text, attachments) = fit_images(&driver.core, text, prompt.attachments).await;
    if let Some(kind) = prompt.queue {
        let outcome = push(driver, kind, shown, attachments.message(text), false).await;
        return answer_prompt(driver, prompt.sender, outcome).await;
    }
    // The retry goes on with the limits and the schema of its run, so a prompt with options of its own cannot join it.
    let joins = prompt.behavior.is_none() && prompt.options.is_empty() && can_join_retry(&driver.core);
    if !driver.core.machine.is_idle() && !joins {
        let outcome = match prompt.behavior.as_deref() {
            // Limits, fallbacks and a schema belong to a run. A queued message joins a run that has its own.
            _ if !prompt.options.is_empty() => Err(strings::LIMITS_OF_QUEUED.to_owned()),
            None => Err(busy(driver.core.machine.activity()).to_owned()),
            Some(behavior) => {
                // Every word but `followUp` means `steer` (behaviour.md 3.4).
                let kind = match behavior {
                    "followUp" | "follow_up" => QueueKind::FollowUp,
                    _ => QueueKind::Steering,
                };
                push(driver, kind, shown, attachments.message(text), false).await
            }
        };
        return answer_prompt(driver, prompt.sender, outcome).await;
    }
    extension_models::resolve(driver).await;
    let model = &driver.core.conversation.choice.model;
    // Checked before hooks hear of the prompt: what they do for a run that cannot begin would be in vain.
    let checked = extension_models::check_model(driver).and_then(|()| {
        prompt
            .options
            .check(model, &driver.core.agent.registry, &driver.core.tools)
    });
    let options = match checked {
        Ok(options) => options,
        Err(error) => return answer_prompt(driver, prompt.sender, Err(error)).await,
    };
    let images = attachments.images();
    let run = PendingRun {
        sender: prompt.sender,
        message: Arc::new(attachments.message(text.clone())),
        text,
        options,
    };
    // The system prompt of an extension counts for one run.
    driver.extensions.set_prompt(None);
    if !driver.extensions.has_listener("before_agent_start") {
        return begin_prompted_run(driver, run, Value::Null).await;
    }
    let mut event = json!({"type": "before_agent_start", "messageType": "user", "prompt": run.text});
    if !images.is_empty() {
        put(&mut event, "images", json!(images));
    }
    ask_before_start(driver, event, Continuation::Begin(run));
}

/// Asks extensions about a run that is to begin. `event` says what it begins with.
fn ask_before_start(driver: &mut Driver, mut event: Value, continuation: Continuation) {
    put(&mut event, "systemPrompt", json!(driver.core.system_prompt()));
    put(&mut event, "systemPromptOptions", prompt_options(&driver.core));
    driver
        .extensions
        .ask(&mut driver.core, "before_agent_start", &event, continuation);
}

/// Returns true if a prompt becomes the beginning of the retry that the session waits for, as in pi 0.74. One prompt does; others are
/// queued or refused.
fn can_join_retry(core: &SessionCore) -> bool {
    core.follows(SessionRule::PromptsJoinRetries)
        && core.machine.activity() == Activity::WaitingToRetry { joined: false }
}

/// Makes the images of a prompt fit for a model, as today's pi does. Notes about them follow the text.
async fn fit_images(core: &SessionCore, text: String, attachments: Attachments) -> (String, Attachments) {
    let fits = core.follows(SessionRule::FitsImages) && core.agent.settings.images.auto_resize;
    if !fits || !attachments.has_images() {
        return (text, attachments);
    }
    let (attachments, notes) = off_thread(move || {
        let mut attachments = attachments;
        let notes = attachments.fit_images();
        (attachments, notes)
    })
    .await;
    match notes.is_empty() {
        true => (text, attachments),
        false => (format!("{text}\n\n{}", notes.join("\n")), attachments),
    }
}

/// Begins a run, with what extensions add to it.
pub(super) async fn begin_prompted_run(driver: &mut Driver, run: PendingRun, answer: Value) {
    if !driver.core.machine.is_idle() && !run.options.is_empty() {
        let refusal = Err(strings::LIMITS_OF_QUEUED.to_owned());
        return answer_prompt(driver, run.sender, refusal).await;
    }
    let joins = can_join_retry(&driver.core);
    if !driver.core.machine.is_idle() && !joins {
        // An extension began one meanwhile.
        let queued = enqueue_message(driver, QueueKind::Steering, run.text, run.message).await;
        return answer_prompt(driver, run.sender, queued).await;
    }
    // Commands that the user ran before come first in the conversation, as they did in time.
    driver.core.add_shell_messages();
    driver.core.note_level().await;
    let mut messages: Vec<Arc<Message>> = driver.core.system_message().into_iter().collect();
    messages.push(run.message);
    let full = !joins && driver.summaries.must_compact(&driver.core);
    let prompt = UnansweredPrompt {
        messages: match joins {
            true => Vec::new(),
            false => stored_now(driver, &messages, &answer),
        },
        sender: run.sender,
    };
    match full {
        true => driver.turn.unanswered = Some(prompt),
        false => prompt.accept(&mut driver.core).await,
    }
    // Behind the prompt, messages for the next turn before those of `before_agent_start` (pi-core.md 1.11).
    messages.append(driver.extensions.next_turn());
    messages.append(&mut added_messages(driver, &answer).await);
    let prompt = answer.get("systemPrompt").and_then(Value::as_str);
    driver.extensions.set_prompt(prompt.map(str::to_owned));
    if joins {
        return driver.drive(Input::Join(messages)).await;
    }
    let CheckedOptions {
        limits,
        fallbacks,
        output,
    } = run.options;
    driver.core.conversation.choice.fallbacks.begin_prompt(fallbacks);
    let wants_result = output.is_some();
    // Before the input, whose first request lists the tool for the result.
    driver.core.tools.set_output(output);
    driver
        .drive(Input::Prompt {
            messages,
            full,
            limits,
            wants_result,
        })
        .await;
}

/// The messages that extensions add to a run in their answer to `before_agent_start`.
async fn added_messages(driver: &mut Driver, answer: &Value) -> Vec<Arc<Message>> {
    let mut messages = Vec::new();
    let added = answer.get("messages").and_then(Value::as_array);
    for added in added.into_iter().flatten() {
        match custom(added) {
            Ok(message) => messages.push(Arc::new(message)),
            Err(error) => {
                let failed = failure("<runtime>", "before_agent_start", error);
                driver.extension_failed(failed).await;
            }
        }
    }
    messages
}

/// The messages of a prompt that are stored before its response. With messages of extensions behind it, the prompt is stored together with
/// them when its run begins, and so is a prompt that hooks of `message_end` may still change. A prompt that joins a retry is stored then,
/// too: an abort withdraws it, and the file must not have it then.
fn stored_now(driver: &mut Driver, messages: &[Arc<Message>], answer: &Value) -> Vec<Arc<Message>> {
    let is_alone = answer.is_null() && driver.extensions.next_turn().is_empty();
    match is_alone && !driver.extensions.has_listener("message_end") {
        true => messages.to_vec(),
        false => Vec::new(),
    }
}

/// Begins a run without a command. Today's pi asks extensions about it, too.
pub(super) async fn begin_run(driver: &mut Driver, messages: Vec<Arc<Message>>) {
    extension_models::resolve(driver).await;
    // The system prompt of an extension counts for one run.
    driver.extensions.set_prompt(None);
    let is_asked = driver.core.follows(SessionRule::AsksBeforeEachRun)
        && driver.extensions.has_listener("before_agent_start");
    let Some(first) = messages.first().filter(|_| is_asked) else {
        return begin_unprompted_run(driver, messages, &Value::Null).await;
    };
    let event = json!({"type": "before_agent_start", "messageType": "custom", "message": **first});
    ask_before_start(driver, event, Continuation::BeginUnprompted(messages));
}

/// Begins a run without a command, with what extensions add to it.
pub(super) async fn begin_unprompted_run(driver: &mut Driver, messages: Vec<Arc<Message>>, answer: &Value) {
    if !driver.core.machine.is_idle() {
        // Another run began meanwhile.
        for message in messages {
            let queued = enqueue_message(driver, QueueKind::Steering, String::new(), message).await;
            answer_prompt(driver, PromptSender::Extension, queued).await;
        }
        return;
    }
    driver.core.add_shell_messages();
    driver.core.note_level().await;
    let mut messages: Vec<_> = driver.core.system_message().into_iter().chain(messages).collect();
    // Today's pi sends the messages that wait for the next turn with any message that begins one.
    if driver.core.follows(SessionRule::RunsTakeNextTurn) {
        messages.append(driver.extensions.next_turn());
    }
    messages.append(&mut added_messages(driver, answer).await);
    let prompt = answer.get("systemPrompt").and_then(Value::as_str);
    driver.extensions.set_prompt(prompt.map(str::to_owned));
    let full = driver.summaries.must_compact(&driver.core);
    // A schema belongs to one prompt. The schema of the last one must not bind a run that an extension begins.
    driver.core.tools.set_output(None);
    driver
        .drive(Input::Prompt {
            messages,
            full,
            limits: None,
            wants_result: false,
        })
        .await;
}

/// A message of a client waits in a queue, where clients are shown `text`.
pub(super) async fn push(
    driver: &mut Driver,
    kind: QueueKind,
    text: String,
    message: Message,
    interrupts: bool,
) -> Result<Accepted, String> {
    if driver.core.machine.queues().len() >= limits::QUEUED {
        return Err(strings::queue_full(limits::QUEUED));
    }
    let queued = Queued {
        message: Arc::new(message),
        text,
        interrupts,
    };
    Ok(put_in_queue(driver, kind, queued).await)
}

/// A message waits in a queue. One without text, as extensions send them, is not shown there.
pub(super) async fn enqueue_message(
    driver: &mut Driver,
    kind: QueueKind,
    text: String,
    message: Arc<Message>,
) -> Result<Accepted, String> {
    queue::room_for(driver.core.machine.queues().len())?;
    let queued = Queued {
        text,
        message,
        interrupts: false,
    };
    Ok(put_in_queue(driver, kind, queued).await)
}

async fn put_in_queue(driver: &mut Driver, kind: QueueKind, queued: Queued) -> Accepted {
    driver.drive(Input::Enqueue(kind, queued)).await;
    Accepted {
        id: Some(queued_id(driver.core.machine.queues().newest())),
        ..Accepted::new(Disposition::Queued)
    }
}

/// Messages that have not begun do not begin any more.
pub(super) async fn withdraw_prompts(driver: &mut Driver) {
    for continuation in driver.extensions.questions.give_up(|continuation| {
        matches!(
            continuation,
            Continuation::Input(_) | Continuation::Begin(_) | Continuation::BeginUnprompted(_)
        )
    }) {
        refuse(driver, continuation).await;
    }
}

/// A switch to a session that another process has open waits no longer.
pub(super) async fn withdraw_switch(driver: &mut Driver) {
    let is_switch = |continuation: &Continuation| matches!(continuation, Continuation::Closed(..));
    for continuation in driver.extensions.questions.give_up(is_switch) {
        refuse(driver, continuation).await;
    }
}

/// Fails the requests that will not be answered.
pub(super) async fn refuse(driver: &mut Driver, continuation: Continuation) {
    match continuation {
        Continuation::Input(prompt) => {
            answer_prompt(driver, prompt.sender, Err(strings::ABORTED.to_owned())).await
        }
        Continuation::Begin(run) => answer_prompt(driver, run.sender, Err(strings::ABORTED.to_owned())).await,
        // The messages of the run that does not begin are kept all the same.
        Continuation::BeginUnprompted(messages) => {
            for message in messages {
                driver.add_message(message).await;
            }
        }
        Continuation::Change(asker, _) | Continuation::Closed(asker, _) | Continuation::Leave(asker, ..) => {
            match asker {
                ChangeAsker::Session(responder) => responder.refuse(strings::ABORTED).await,
                ChangeAsker::Continue(responder, _) => responder.refuse(strings::ABORTED).await,
                ChangeAsker::Fork(responder) => responder.refuse(strings::ABORTED).await,
                ChangeAsker::Reload(responder) => responder.refuse(strings::ABORTED).await,
                // `cut_off` gives these up when extensions are muted; an abort only those of `Closed`.
                ChangeAsker::Extension(id) => {
                    let error = strings::ABORTED.to_owned();
                    driver.extensions.links.answer(id, Err(error));
                }
            }
        }
        Continuation::Move(Asker::Client(responder), _) => responder.refuse(strings::ABORTED).await,
        // It is stored already, and the machine waits for it.
        Continuation::Compacted(ended) => compaction::finish(driver, *ended).await,
        _ => {}
    }
}

pub(super) async fn answer_prompt(driver: &Driver, sender: PromptSender, outcome: Result<Accepted, String>) {
    match (sender, outcome) {
        (PromptSender::Client(responder), outcome) => responder.respond(outcome).await,
        (PromptSender::Extension, Ok(_)) => {}
        (PromptSender::Extension, Err(error)) => {
            driver
                .extension_failed(failure("<runtime>", "send_user_message", error))
                .await;
        }
    }
}
