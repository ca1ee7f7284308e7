//! Events of extensions: messages and requests of their processes, answers to hooks, providers and the requests of clients. Each one
//! goes to its component. Actions that wait for the session to be idle join `waiting`.

use extensions::{Answer, ProcessError, ProcessMessage};
use serde_json::{Value, json};

use crate::{limits, strings};

use super::asker::Asker;
use super::deferred::{DeferredActions, defer};
use super::driver::Driver;
use super::extension_requests::Outcome;
use super::extensions::{
    Answered, Completion, Continuation, ExtensionEvent, ExtensionRequest, LoadQuestion, failure,
};
use super::tool_calls::Layer;
use super::{
    compaction, extension_loading, extension_models, extension_requests, lifecycle, model_switch, navigation,
    prompt_delivery, session_change, shell_commands,
};

/// Deals with an event of an extension.
pub(super) async fn on_event(driver: &mut Driver, waiting: &mut DeferredActions, event: ExtensionEvent) {
    match event {
        ExtensionEvent::Message(place, message) => on_message(driver, waiting, place, message).await,
        ExtensionEvent::Hook(answered) => on_hook_answer(driver, waiting, answered).await,
        ExtensionEvent::Loading(answered) => {
            accept_messages(driver, waiting).await;
            extension_loading::on_load_answer(driver, answered).await;
        }
        ExtensionEvent::LoadingLate => extension_loading::on_deadline(driver).await,
        ExtensionEvent::Client(answered) => on_client_answer(driver, waiting, answered).await,
        // The wake-up is enough: `catch_up` runs after it and finds that the wait for the response is over.
        ExtensionEvent::ResponseLate => {}
        ExtensionEvent::Provider(answered) => {
            accept_messages(driver, waiting).await;
            extension_models::on_provider_answer(driver, answered).await;
        }
        ExtensionEvent::Failed(failure) => driver.extension_failed(failure).await,
    }
}

/// Handles all messages that processes have sent so far. They come before an answer that has just arrived: answers and messages
/// of a process come through different channels, and an extension relies on the order in which it sent them.
pub(super) async fn accept_messages(driver: &mut Driver, waiting: &mut DeferredActions) {
    while let Some((place, message)) = driver.extensions.links.try_next_message() {
        on_message(driver, waiting, place, message).await;
    }
}

async fn on_message(
    driver: &mut Driver,
    waiting: &mut DeferredActions,
    place: usize,
    message: ProcessMessage,
) {
    let Some(message) = driver.extensions.links.accept(place, message) else {
        return;
    };
    match message {
        ProcessMessage::Call { id, method, params } => {
            on_request(driver, waiting, (place, id), &method, params).await;
        }
        ProcessMessage::Withdrawn(id) => extension_requests::withdraw(driver, id).await,
        ProcessMessage::Changed(registered) => {
            extension_loading::on_changed(driver, place, *registered).await;
        }
        ProcessMessage::Failed(failed) => driver.extension_failed(failed).await,
        ProcessMessage::Gone(reason) => extension_loading::on_gone(driver, place, &reason).await,
        // Lines for the log belong to no session. `crate::extensions` takes them.
        _ => {}
    }
}

/// An extension has sent a request.
async fn on_request(
    driver: &mut Driver,
    waiting: &mut DeferredActions,
    (place, id): (usize, Option<u64>),
    method: &str,
    params: Value,
) {
    driver.extensions.state.forget_assumed(method);
    let outcome = match ExtensionRequest::parse(method, params) {
        Ok(ExtensionRequest::SetModel(params)) => {
            // It answers the extension itself, since a local server may have to be asked first.
            return model_switch::set_model(driver, Asker::Extension(id), params).await;
        }
        Ok(ExtensionRequest::OpenSession(params)) => {
            let opened = lifecycle::open_subsession(driver, place, params).await;
            opened.map(Outcome::answer)
        }
        Ok(request) => extension_requests::perform(driver, waiting, (place, id), request).await,
        Err(error) => Err(error),
    };
    // As clients, an extension receives the events of its request before the answer.
    driver.extensions.pass_on_events(&mut driver.core);
    let answer = outcome.map(|outcome| {
        defer(waiting, &mut driver.shells, outcome.deferred);
        outcome.answer
    });
    match (id, answer) {
        // Answered later, or not at all.
        (_, Ok(None)) | (None, Ok(_)) => {}
        // Nothing waits for an answer without an id, so the error is reported like those of handlers.
        (None, Err(error)) => {
            let failed = failure("<runtime>", method, error);
            driver.extension_failed(failed).await;
        }
        (id, answer) => {
            let answer = answer.map(Option::unwrap_or_default);
            driver.extensions.links.answer(id, answer);
        }
    }
}

async fn on_hook_answer(
    driver: &mut Driver,
    waiting: &mut DeferredActions,
    answered: Answered<Result<Answer, ProcessError>>,
) {
    accept_messages(driver, waiting).await;
    // After the messages: an abort among them gives the questions of the run up.
    let Some(continuation) = driver.extensions.questions.take(answered.number) else {
        return;
    };
    let (answer, _) = extension_loading::take_answer(driver, answered.answer).await;
    let next = match continuation {
        Continuation::Hooks(ticket, point) => return driver.on_hooks_done(ticket, *point, answer).await,
        Continuation::Input(prompt) => {
            return prompt_delivery::on_input(driver, prompt, answer.unwrap_or_default()).await;
        }
        Continuation::Begin(run) => {
            return prompt_delivery::begin_prompted_run(driver, run, answer.unwrap_or_default()).await;
        }
        Continuation::BeginUnprompted(messages) => {
            let answer = answer.unwrap_or_default();
            return prompt_delivery::begin_unprompted_run(driver, messages, &answer).await;
        }
        Continuation::Move(asker, params) => {
            return navigation::on_move(driver, asker, params, answer.unwrap_or_default()).await;
        }
        Continuation::Compacted(ended) => return compaction::finish(driver, *ended).await,
        Continuation::Change(asker, change) => {
            session_change::on_change(driver, asker, change, answer.unwrap_or_default()).await
        }
        Continuation::Closed(asker, change) => session_change::leave(driver, waiting, asker, change).await,
        Continuation::Leave(asker, change, next) => {
            session_change::carry_out(driver, waiting, asker, change, next).await
        }
    };
    defer(waiting, &mut driver.shells, next);
}

async fn on_client_answer(
    driver: &mut Driver,
    waiting: &mut DeferredActions,
    answered: Answered<Result<Answer, ProcessError>>,
) {
    accept_messages(driver, waiting).await;
    let Some(request) = driver.extensions.client_requests.take(answered.number) else {
        return;
    };
    let (answer, failure) = extension_loading::take_answer(driver, answered.answer).await;
    // Taken out in any case: the command has ended with the answer.
    let remote = driver.shells.take_remote(answered.number);
    // Kept, since `complete` uses the answer up: if the process was lost after output of the command, its end is the reason.
    let lost = answer.as_ref().err().map(ToString::to_string);
    let outbox = &driver.core.outbox;
    match request.complete(answer, failure, outbox).await {
        Completion::Done => {}
        Completion::WantsRun(responder) => driver.extensions.client_requests.await_run(responder),
        Completion::Cycled(responder, model, is_scoped) => {
            model_switch::cycled(driver, responder, model, is_scoped).await;
        }
        Completion::RunShell(responder, params) if remote.is_some() => {
            // Its output has come, so it must not run again here.
            let error = strings::NO_RESULT.to_owned();
            shell_commands::end(driver, remote, responder, params, Err(error)).await;
        }
        Completion::RunShell(responder, _)
            if driver.extensions.client_requests.is_ended_shell(answered.number) =>
        {
            responder.refuse(strings::ABORTED).await;
        }
        Completion::RunShell(responder, params) => shell_commands::run(driver, responder, params).await,
        Completion::ShellRan(responder, params, outcome) => {
            shell_commands::end(driver, remote, responder, params, outcome).await;
        }
        Completion::ShellRefused(responder, params, error) if remote.is_some() => {
            let error = lost.unwrap_or(error);
            shell_commands::end(driver, remote, responder, params, Err(error)).await;
        }
        Completion::ShellRefused(responder, _, error) => responder.refuse(error).await,
    }
}

/// The session is over: its extensions may handle `session_shutdown`, within limits.
pub(super) async fn end(driver: &mut Driver, waiting: &mut DeferredActions) {
    let (core, extensions) = (&mut driver.core, &mut driver.extensions);
    if extensions.has_listener("session_shutdown") {
        let event = json!({"type": "session_shutdown", "reason": "quit"});
        let answer = extensions.hook_answer(core, "session_shutdown", &event);
        let number = extensions.loading.ask(LoadQuestion::Shutdown, answer);
        // The loop of the session has ended, but a handler may make requests and wait for their answers.
        let answered = run_until_answer(driver, waiting, number);
        let _in_time = tokio::time::timeout(limits::FAREWELL, answered).await;
    }
    let (core, extensions) = (&mut driver.core, &mut driver.extensions);
    extensions.pass_on_events(core);
    core.outbox.listeners().listen_to(Vec::new());
    // A list of this session's own goes with it. The list that all sessions share stays.
    core.agent.extensions.forget_models(extensions.providers.file());
    // A tool keeps the processes of its extension.
    core.tools.set(Layer::Extension, Vec::new());
    extensions.end().await;
}

/// Deals with events of extensions until a question of loading is answered.
async fn run_until_answer(driver: &mut Driver, waiting: &mut DeferredActions, number: u64) {
    loop {
        match driver.extensions.next().await {
            event @ ExtensionEvent::Loading(Answered { number: answered, .. }) if answered == number => {
                break on_event(driver, waiting, event).await;
            }
            // The last process is gone: the answer that the loop waits for cannot come.
            // The message is not handled, since that would start the process again.
            // With several processes only the time limit in `end` ends the wait.
            ExtensionEvent::Message(_, ProcessMessage::Gone(_))
                if driver.extensions.links.keys().count() == 1 =>
            {
                break;
            }
            event => on_event(driver, waiting, event).await,
        }
    }
}
