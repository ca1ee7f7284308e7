//! Requests of extensions, carried out in the order in which they arrive. What would begin a run waits until the session is idle:
//! it is returned as a [`DeferredAction`].

use std::sync::Arc;

use agent::{Input, NestedCall, QueueKind};
use serde_json::Value;
use wire::command::{NavigateParams, NewSessionParams};
use wire::{Entry, SessionRule};

use crate::factory::Agent;
use crate::limits;
use crate::strings;

use super::asker::Asker;
use super::change_request::{Change, ChangeAsker};
use super::deferred::{DeferredAction, DeferredActions};
use super::dialogs::Dialog;
use super::driver::Driver;
use super::extensions::{
    self, BuiltInCall, CustomMessage, Delivery, ExtensionPrompt, ExtensionRequest, SessionChange, Workplace,
    answer_key, dialog_answer, stream_model,
};
use super::pending_prompt::{PendingPrompt, PromptSender};
use super::queue::room_for;
use super::run_options::RunOptions;
use super::tool_calls::ChosenBy;
use super::{model_switch, prompt_delivery, session_change, shell_commands};

/// What follows from a request.
#[derive(Default)]
pub(super) struct Outcome {
    /// The answer to the extension; none if it follows later.
    pub(super) answer: Option<Value>,
    /// What waits for the session to be idle.
    pub(super) deferred: Option<DeferredAction>,
}

impl Outcome {
    /// The request was carried out.
    fn done() -> Self {
        Self::answer(Value::Null)
    }

    pub(super) fn answer(value: Value) -> Self {
        Self {
            answer: Some(value),
            deferred: None,
        }
    }

    /// The answer follows when an action was carried out that waits for the session to be idle.
    fn after(action: Option<DeferredAction>) -> Self {
        Self {
            answer: None,
            deferred: action,
        }
    }
}

/// Carries out a request; `waiting` is what waits for the session to be idle already.
///
/// # Errors
/// A sentence for the extension.
pub(super) async fn perform(
    driver: &mut Driver,
    waiting: &DeferredActions,
    (place, id): (usize, Option<u64>),
    request: ExtensionRequest,
) -> Result<Outcome, String> {
    if request.needs_texts() {
        driver.core.load_texts().await?;
    }
    match request {
        ExtensionRequest::Ask(dialog) => {
            return Ok(Outcome {
                answer: ask_for(driver, id, dialog).await,
                deferred: None,
            });
        }
        // Not through the queue of wishes, which only the loop of the session empties.
        ExtensionRequest::Show(show) => driver.dialogs.show_now(show, &driver.core.outbox).await,
        ExtensionRequest::SendMessage(message) => return send_message(driver, waiting, message).await,
        ExtensionRequest::SendPrompt(prompt) => return send_prompt(driver, waiting, *prompt).await,
        ExtensionRequest::AppendEntry { custom_type, data } => {
            driver.append_custom(custom_type, data).await?;
        }
        ExtensionRequest::SetSessionName(params) => driver.set_session_name(&params).await?,
        ExtensionRequest::SetLabel(params) => {
            let outbox = &driver.core.outbox;
            driver.core.conversation.set_label(params, outbox).await?;
        }
        ExtensionRequest::SetActiveTools(names) => {
            driver.choose_tools(names.into_iter(), ChosenBy::Session);
        }
        ExtensionRequest::SetThinkingLevel(params) => model_switch::select_level(driver, &params).await?,
        ExtensionRequest::Abort => {
            // As for the command `abort`: a process that has ended must not begin another run at once.
            driver.core.tools.processes().hold_wakeups();
            driver.drive(Input::Abort).await;
        }
        ExtensionRequest::Shutdown => driver.extensions.request_shutdown(),
        ExtensionRequest::ShellOutput { number, text } => {
            shell_commands::on_output(driver, number, &text).await?;
        }
        ExtensionRequest::Subsession(method, params) => {
            let subsessions = &mut driver.extensions.subsessions;
            let answer = subsessions.request(place, id, method, &params)?;
            return Ok(Outcome {
                answer,
                deferred: None,
            });
        }
        // `extension_events` carries out the last two. What the first one registers comes with the next `changed`.
        ExtensionRequest::RegisterProvider
        | ExtensionRequest::SetModel(_)
        | ExtensionRequest::OpenSession(_) => {}
        request => return begin(driver, waiting, id, request).await,
    }
    Ok(Outcome::done())
}

/// Begins a request whose answer follows later.
async fn begin(
    driver: &mut Driver,
    waiting: &DeferredActions,
    id: Option<u64>,
    request: ExtensionRequest,
) -> Result<Outcome, String> {
    match request {
        ExtensionRequest::RunBuiltIn(call) => run_built_in(driver, id, call)?,
        ExtensionRequest::CallTool(call) => nest(driver, id, &call).await?,
        ExtensionRequest::Compact(instructions) => {
            // Before the abort: a request that finds no room must not end the run.
            room_for(waiting.len())?;
            driver.drive(Input::Abort).await;
            return Ok(Outcome::after(Some(DeferredAction::CompactFor(id, instructions))));
        }
        ExtensionRequest::WaitForIdle => {
            // What waits is bounded: an extension may ask without end.
            room_for(waiting.len())?;
            return Ok(Outcome::after(Some(DeferredAction::Idle(id))));
        }
        ExtensionRequest::NavigateTree(params) => {
            room_for(waiting.len())?;
            return navigate(driver, id, params).await.map(Some).map(Outcome::after);
        }
        ExtensionRequest::ChangeSession(change, params) => {
            room_for(waiting.len())?;
            return change_session(driver, id, change, &params)
                .await
                .map(Outcome::after);
        }
        ExtensionRequest::StreamModel(params) => {
            let (Some(id), Some(pool)) = (id, driver.extensions.links.pool().cloned()) else {
                return Err("llm.stream needs a process that takes the answer".to_owned());
            };
            // Nothing else may have counted the request before: an extension also asks while no run is active.
            let spending = &driver.extensions.tasks.spending;
            driver.core.machine.count_tasks(spending);
            let (span, core) = (driver.core.outbox.trace().current(), &driver.core);
            let (budget, tasks) = (core.machine.budget(), &mut driver.extensions.tasks);
            stream_model(tasks, budget, &core.agent, &pool, (id, &params), span)?;
        }
        ExtensionRequest::Key(params) => {
            let (Some(id), Some(pool)) = (id, driver.extensions.links.pool()) else {
                return Err("llm.key needs a process that takes the answer".to_owned());
            };
            answer_key(&driver.core.agent, pool, id, &params);
        }
        // Carried out by `perform`.
        _ => {}
    }
    Ok(Outcome::default())
}

/// An extension does not wait for the answer to its request any more.
pub(super) async fn withdraw(driver: &mut Driver, id: u64) {
    // The id is that of a task or of a call: only one of the two knows it.
    driver.extensions.tasks.withdraw(id);
    driver.drive(Input::WithdrawNested(id)).await;
}

/// Asks the user. The answer goes straight to the extension.
async fn ask_for(driver: &mut Driver, id: Option<u64>, dialog: Dialog) -> Option<Value> {
    let answer = driver.dialogs.ask_now(dialog, &driver.core.outbox).await;
    let (Some(id), Some(pool)) = (id, driver.extensions.links.pool().cloned()) else {
        // Nothing takes the answer. The dropped receiver withdraws the dialog.
        return Some(Value::Null);
    };
    // The end of the task withdraws the question.
    let task = tokio::spawn(async move {
        let value = dialog_answer(answer).await;
        // A process that has ended does not wait for the answer.
        let _sent = pool.answer(id, &value);
    });
    driver.extensions.tasks.keep(id, task.abort_handle());
    None
}

/// A message of an extension joins the run that is under way, the next prompt, or the conversation, or begins a run.
async fn send_message(
    driver: &mut Driver,
    waiting: &DeferredActions,
    sent: CustomMessage,
) -> Result<Outcome, String> {
    // A run that waits already takes the message along; a second run would ask the model twice.
    let mut turns = waiting.items();
    let questions = &driver.extensions.questions;
    let begins = turns.any(|action| matches!(action, DeferredAction::Run(_)))
        || questions.any(|open| matches!(open, extensions::Continuation::BeginUnprompted(_)));
    let is_running = takes_messages(driver);
    let CustomMessage {
        message,
        delivery,
        triggers_turn,
    } = sent;
    let wants_turn = triggers_turn == Some(true);
    if delivery == Delivery::NextTurn {
        driver.extensions.add_to_next_turn(message)?;
    } else if is_running && triggers_turn == Some(false) {
        // In a queue it would cause one more request.
        room_for(driver.turn.kept.len())?;
        driver.turn.kept.push(message);
    } else if is_running || (wants_turn && begins) {
        let kind = match delivery {
            Delivery::FollowUp => QueueKind::FollowUp,
            // `NextTurn` was dealt with above.
            Delivery::Steering | Delivery::NextTurn => QueueKind::Steering,
        };
        // Without a text, since `queue_update` does not show messages of extensions (behaviour.md 2.11).
        prompt_delivery::enqueue_message(driver, kind, String::new(), message).await?;
    } else if wants_turn {
        room_for(waiting.len())?;
        driver.extensions.client_requests.expect_response_first();
        return Ok(Outcome {
            deferred: Some(DeferredAction::Run(vec![message])),
            ..Outcome::done()
        });
    } else {
        // Stored and announced at once, outside of a run (pi-core.md 1.11).
        driver.add_message(message).await;
    }
    Ok(Outcome::done())
}

/// Returns true while messages join what goes on. A run that has failed takes no more of them: they begin another one after it.
fn takes_messages(driver: &Driver) -> bool {
    let machine = &driver.core.machine;
    !machine.is_idle() && machine.activity() != agent::Activity::ChoosingModel
}

/// A prompt of an extension, during a run or as soon as the session is idle.
async fn send_prompt(
    driver: &mut Driver,
    waiting: &DeferredActions,
    prompt: ExtensionPrompt,
) -> Result<Outcome, String> {
    let command = driver.extensions.links.command(&prompt.text);
    // As in pi: at once, also during a run, and before the handlers of `input`.
    if let Some(command) = command.filter(|_| prompt.expand) {
        driver.extensions.sync_state(&mut driver.core);
        let extensions = &mut driver.extensions;
        let (requests, links) = (&mut extensions.client_requests, &extensions.links);
        requests.run_sent_command(links, &command, &prompt.text)?;
        return Ok(Outcome::done());
    }
    let prompt = Box::new(PendingPrompt {
        sender: PromptSender::Extension,
        text: prompt.text,
        attachments: prompt.attachments,
        expand: prompt.expand,
        behavior: prompt.behavior,
        queue: None,
        options: RunOptions::default(),
    });
    if takes_messages(driver) {
        prompt_delivery::deliver(driver, *prompt).await;
        return Ok(Outcome::done());
    }
    room_for(waiting.len())?;
    driver.extensions.client_requests.expect_response_first();
    Ok(Outcome {
        deferred: Some(DeferredAction::ExtensionPrompt(prompt)),
        ..Outcome::done()
    })
}

/// An extension goes to another place of the session's tree.
async fn navigate(
    driver: &mut Driver,
    id: Option<u64>,
    params: NavigateParams,
) -> Result<DeferredAction, String> {
    let machine = &driver.core.machine;
    if driver.core.follows(SessionRule::MovesIdleSessionsOnly) && !machine.is_idle() {
        let error = match machine.activity().is_outside_runs() {
            true => strings::MOVE_BUSY,
            false => strings::MOVE_IN_RUN,
        };
        return Err(error.to_owned());
    }
    // Before the abort: an unknown entry must not end the run.
    if driver.core.conversation.log.entry(&params.target_id).is_none() {
        return Err(format!("Entry {} not found", params.target_id));
    }
    driver.drive(Input::Abort).await;
    Ok(DeferredAction::Move(Asker::Extension(id), params))
}

/// An extension replaces the session. It is answered when the new one has begun for its extensions.
async fn change_session(
    driver: &mut Driver,
    id: Option<u64>,
    change: SessionChange,
    params: &Value,
) -> Result<Option<DeferredAction>, String> {
    let text = |name: &str| params.get(name).and_then(Value::as_str).map(str::to_owned);
    let change = match change {
        SessionChange::New => {
            let entries = params.get("entries").and_then(Value::as_array);
            // All are read before anything changes, so that an invalid one only fails the request.
            let entries: Result<Vec<Entry>, _> = entries
                .into_iter()
                .flatten()
                .map(|entry| Entry::from_json(&entry.to_string()))
                .collect();
            let entries = entries.map_err(|error| error.to_string())?;
            let params = NewSessionParams {
                parent_session: text("parentSession"),
                cwd: None,
                durability: None,
            };
            Change::New(params, entries)
        }
        SessionChange::Switch => Change::Switch(
            driver
                .core
                .workspace
                .cwd
                .join(text("sessionPath").unwrap_or_default()),
            None,
        ),
        SessionChange::Reload if !driver.core.machine.is_idle() => {
            return Err(strings::RELOAD_BUSY.to_owned());
        }
        SessionChange::Reload => Change::Reload,
        SessionChange::Fork => {
            let entry = text("entryId").unwrap_or_default();
            let entry = driver
                .core
                .conversation
                .log
                .entry(&entry)
                .cloned()
                .ok_or(strings::BAD_FORK)?;
            if text("position").as_deref() == Some("at") {
                Change::At(entry.id.clone())
            } else {
                Change::fork(&entry).ok_or(strings::BAD_FORK)?
            }
        }
    };
    Ok(session_change::change(driver, ChangeAsker::Extension(id), change).await)
}

fn run_built_in(driver: &mut Driver, id: Option<u64>, call: BuiltInCall) -> Result<(), String> {
    let (Some(id), Some(pool)) = (id, driver.extensions.links.pool().cloned()) else {
        return Err("a tool without a waiting call is not run".to_owned());
    };
    let file = driver.core.conversation.log.file_text();
    let place = Workplace {
        toolbox: &driver.core.agent.toolbox,
        cwd: &driver.core.workspace.cwd,
        env: Agent::tool_env(
            &driver.core.conversation.log.header().id,
            file.as_deref(),
            Some(driver.core.conversation.choice.selected()),
        ),
        sees_images: driver.core.conversation.choice.model.sees_images(),
        start_line: Arc::new(driver.core.outbox.clone()),
    };
    extensions::run_built_in(&mut driver.extensions.tasks, &pool, id, call, place);
    Ok(())
}

/// A tool of an extension calls another one.
async fn nest(driver: &mut Driver, request: Option<u64>, params: &Value) -> Result<(), String> {
    let text = |name: &str| {
        params
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (name, parent) = (text("name"), text("callerId"));
    // Only while its own tool runs: later the call would belong to another turn, or to no turn.
    let open = driver
        .core
        .machine
        .nested_calls(&parent)
        .ok_or("executeTool is only there while the tool runs that calls it")?;
    if open >= limits::NESTED_CALLS {
        return Err(format!(
            "{} calls of tools are running already",
            limits::NESTED_CALLS
        ));
    }
    // The tool need not be active, but the command line must not leave it out.
    if !driver.core.may_activate(&name) {
        return Err(driver.core.tools.not_found(&name));
    }
    let args = params
        .get("args")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let call = NestedCall {
        request,
        parent,
        name,
        args,
    };
    driver.drive(Input::Nest(call)).await;
    Ok(())
}
