//! What becomes of something that people or extensions say to the model: extensions may change it or deal with it, then it waits in a
//! queue or begins a run. The order of the steps is what clients see: a prompt is on disk before it is acknowledged, and it is
//! acknowledged before its run begins.

use std::sync::Arc;

use agent::{Input, QueueKind, Queued};
use serde_json::{Value, json};
use wire::reply::{Accepted, Disposition};
use wire::table::Respond;
use wire::{Message, UserBlock};

use crate::limits;
use crate::strings;

use super::asker::Asker;
use super::attachments::Attachments;
use super::change_request::ChangeAsker;
use super::driver::Driver;
use super::extension_models;
use super::extensions::{Then, custom, failure, prompt_options, put};
use super::pending_prompt::{Saying, Turn, Who};
use super::queue::{self, queued_id};
use super::run_options::CheckedOptions;
use super::storage::Batch;

/// Says something; extensions may change it first, or deal with it themselves.
pub(super) async fn say(driver: &mut Driver, saying: Saying) {
    if !driver.extensions.hear("input") {
        return said(driver, saying).await;
    }
    let mut event = json!({"type": "input", "text": saying.text, "source": saying.source()});
    let images = saying.enclosed.images();
    if !images.is_empty() {
        put(&mut event, "images", json!(images));
    }
    if let Some(behavior) = saying
        .behavior
        .as_ref()
        .filter(|_| !driver.core.machine.is_idle())
    {
        put(&mut event, "streamingBehavior", json!(behavior));
    }
    driver
        .extensions
        .ask(&mut driver.core, "input", &event, Then::Input(saying));
}

pub(super) async fn on_input(driver: &mut Driver, mut saying: Saying, answer: Value) {
    match answer.get("action").and_then(Value::as_str) {
        Some("handled") => {
            let handled = Accepted::new(Disposition::Handled);
            return answer_prompt(driver, saying.who, Ok(handled)).await;
        }
        Some("transform") => {
            if let Some(text) = answer.get("text").and_then(Value::as_str) {
                text.clone_into(&mut saying.text);
            }
            if let Some(images) = answer.get("images").filter(|images| images.is_array()) {
                let blocks: Vec<UserBlock> = serde_json::from_value(images.clone()).unwrap_or_default();
                saying.enclosed.set_images(blocks);
            }
        }
        _ => {}
    }
    said(driver, saying).await;
}

/// Queues it during a run, else begins one.
async fn said(driver: &mut Driver, saying: Saying) {
    let text = if saying.expand {
        driver.core.expand(&saying.text).await
    } else {
        saying.text
    };
    if let Some(kind) = saying.queue {
        let outcome = push(driver, kind, text, saying.enclosed, false).await;
        return answer_prompt(driver, saying.who, outcome).await;
    }
    if !driver.core.machine.is_idle() {
        let outcome = match saying.behavior.as_deref() {
            _ if !saying.options.is_empty() => Err(strings::LIMITS_OF_QUEUED.to_owned()),
            None => Err(strings::BUSY.to_owned()),
            Some("followUp" | "follow_up") => {
                push(driver, QueueKind::FollowUp, text, saying.enclosed, false).await
            }
            Some(_) => push(driver, QueueKind::Steering, text, saying.enclosed, false).await,
        };
        return answer_prompt(driver, saying.who, outcome).await;
    }
    let model = &driver.core.conversation.choice.model;
    let checked = extension_models::check_model(driver).and_then(|()| {
        saying
            .options
            .check(model, &driver.core.agent.registry, &driver.core.tools)
    });
    let options = match checked {
        Ok(options) => options,
        Err(error) => return answer_prompt(driver, saying.who, Err(error)).await,
    };
    let images = saying.enclosed.images();
    let turn = Turn {
        who: saying.who,
        message: Arc::new(saying.enclosed.message(text.clone())),
        text,
        options,
    };
    driver.extensions.set_prompt(None);
    if !driver.extensions.hear("before_agent_start") {
        return begin_turn(driver, turn, Value::Null).await;
    }
    let system_prompt = driver.core.system_prompt();
    let mut event = json!({"type": "before_agent_start", "prompt": turn.text, "systemPrompt": system_prompt});
    put(&mut event, "systemPromptOptions", prompt_options(&driver.core));
    if !images.is_empty() {
        put(&mut event, "images", json!(images));
    }
    driver
        .extensions
        .ask(&mut driver.core, "before_agent_start", &event, Then::Begin(turn));
}

/// Begins a run, with what extensions add to it.
pub(super) async fn begin_turn(driver: &mut Driver, turn: Turn, answer: Value) {
    if !driver.core.machine.is_idle() && !turn.options.is_empty() {
        let refusal = Err(strings::LIMITS_OF_QUEUED.to_owned());
        return answer_prompt(driver, turn.who, refusal).await;
    }
    if !driver.core.machine.is_idle() {
        // An extension began one meanwhile.
        let queued = enqueue_message(driver, QueueKind::Steering, turn.text, turn.message).await;
        return answer_prompt(driver, turn.who, queued).await;
    }
    driver.core.hear();
    let mut messages: Vec<Arc<Message>> = driver.core.system_message().into_iter().collect();
    messages.push(turn.message);
    if answer.is_null() && driver.extensions.next_turn().is_empty() {
        store_prompt(driver, &messages).await;
    }
    answer_prompt(driver, turn.who, Ok(Accepted::new(Disposition::Started))).await;
    messages.append(driver.extensions.next_turn());
    for added in answer
        .get("messages")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        match custom(added) {
            Ok(message) => messages.push(Arc::new(message)),
            Err(error) => {
                driver
                    .extension_failed(failure("<runtime>", "before_agent_start", error))
                    .await;
            }
        }
    }
    let prompt = answer.get("systemPrompt").and_then(Value::as_str);
    driver.extensions.set_prompt(prompt.map(str::to_owned));
    let full = driver.core.context_is_full();
    let CheckedOptions {
        limits,
        fallbacks,
        output,
    } = turn.options;
    let has_fallback = driver.core.conversation.choice.fallbacks.begin_prompt(fallbacks);
    driver
        .core
        .change_settings(|settings| settings.has_fallback = has_fallback);
    let wants_result = output.is_some();
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

/// Begins a run without a command.
pub(super) async fn begin_run(driver: &mut Driver, messages: Vec<Arc<Message>>) {
    driver.extensions.set_prompt(None);
    driver.core.hear();
    let messages = driver.core.system_message().into_iter().chain(messages).collect();
    let full = driver.core.context_is_full();
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

pub(super) async fn push(
    driver: &mut Driver,
    kind: QueueKind,
    text: String,
    enclosed: Attachments,
    interrupts: bool,
) -> Result<Accepted, String> {
    if driver.core.machine.queues().len() >= limits::QUEUED {
        return Err(strings::queue_full(limits::QUEUED));
    }
    let queued = Queued {
        message: Arc::new(enclosed.message(text.clone())),
        text,
        interrupts,
    };
    driver.drive(Input::Enqueue(kind, queued)).await;
    Ok(Accepted {
        disposition: Disposition::Queued,
        id: Some(queued_id(driver.core.machine.queues().newest())),
    })
}

/// A message of an extension waits in a queue. It is not shown there.
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
    driver.drive(Input::Enqueue(kind, queued)).await;
    Ok(Accepted::new(Disposition::Started))
}

/// Messages that have not begun do not begin any more.
pub(super) async fn withdraw_sayings(driver: &mut Driver) {
    for then in driver
        .extensions
        .questions
        .give_up(|then| matches!(then, Then::Input(_) | Then::Begin(_)))
    {
        refuse(driver, then).await;
    }
}

/// Fails the requests that will not be answered.
pub(super) async fn refuse(driver: &mut Driver, then: Then) {
    match then {
        Then::Input(saying) => answer_prompt(driver, saying.who, Err(strings::ABORTED.to_owned())).await,
        Then::Begin(turn) => answer_prompt(driver, turn.who, Err(strings::ABORTED.to_owned())).await,
        Then::Change(asker, _) | Then::Leave(asker, _) => match asker {
            ChangeAsker::Session(responder) => responder.refuse(strings::ABORTED).await,
            ChangeAsker::Continue(responder, _) => responder.refuse(strings::ABORTED).await,
            ChangeAsker::Fork(responder) => responder.refuse(strings::ABORTED).await,
            ChangeAsker::Reload(responder) => responder.refuse(strings::ABORTED).await,
            ChangeAsker::Extension(_) => {}
        },
        Then::Move(Asker::Client(responder), _) => responder.refuse(strings::ABORTED).await,
        _ => {}
    }
}

pub(super) async fn answer_prompt(driver: &Driver, who: Who, outcome: Result<Accepted, String>) {
    match (who, outcome) {
        (Who::Client(responder), outcome) => responder.respond(outcome).await,
        (Who::Extension, Ok(_)) => {}
        (Who::Extension, Err(error)) => {
            driver
                .extension_failed(failure("<runtime>", "send_user_message", error))
                .await;
        }
    }
}

/// Appends a prompt before it is acknowledged. Its run does not append it again. A prompt that extensions may change, or before
/// which the conversation is compacted, is appended when its run begins.
async fn store_prompt(driver: &mut Driver, messages: &[Arc<Message>]) {
    if driver.core.context_is_full() || driver.extensions.hear("message_end") {
        return;
    }
    let (log, mut batch) = (&mut driver.core.conversation.log, Batch::default());
    for message in messages {
        batch.push_message(Arc::clone(message));
        log.note_prompt(Arc::clone(message));
    }
    log.keep(batch, &driver.core.outbox).await;
}
