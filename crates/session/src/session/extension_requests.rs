//! Requests of extensions, carried out in the order in which they arrive. What would begin a run waits until the session is idle.

use std::sync::Arc;

use agent::{Change as MachineChange, Input, QueueKind, Queued};
use serde_json::{Value, json};
use wire::command::{NavigateParams, NewSessionParams};
use wire::reply::{Accepted, Disposition};
use wire::{Entry, Event, Message};

use crate::factory::Agent;
use crate::limits;
use crate::off_thread::off_thread;
use crate::strings;

use super::asker::Asker;
use super::deferred::DeferredAction;
use super::dialogs::Dialog;
use super::extensions::{
    BuiltInCall, CustomMessage, Delivery, ExtensionPrompt, ExtensionRequest, Saying, SessionChange,
    SubsessionOptions, Who, Workplace, answer_key, dialog_answer, failure, run_built_in, stream_model,
};
use super::run_options::RunOptions;
use super::session_change::{Change, ChangeAsker};
use super::{Opening, Session};

impl Session {
    /// An extension has sent a request.
    pub(super) async fn on_request(&mut self, place: usize, id: Option<u64>, method: &str, params: Value) {
        let outcome = match ExtensionRequest::parse(method, params) {
            Ok(request) => self.perform_request(place, id, request).await,
            Err(error) => Err(error),
        };
        match (id, outcome) {
            // Answered later, or not at all.
            (_, Ok(None)) | (None, Ok(_)) => {}
            (None, Err(error)) => self.extension_failed(failure("<runtime>", method, error)).await,
            (id, outcome) => self.answer_later(id, outcome.map(Option::unwrap_or_default)),
        }
    }

    /// Carries out a request. Returns the answer, or `None` if it follows later.
    async fn perform_request(
        &mut self,
        place: usize,
        id: Option<u64>,
        request: ExtensionRequest,
    ) -> Result<Option<Value>, String> {
        match request {
            ExtensionRequest::Ask(dialog) => return Ok(self.ask_for(id, dialog).await),
            ExtensionRequest::Show(show) => self.dialogs.show_now(show, &self.outbox).await,
            ExtensionRequest::SendMessage(message) => self.send_message(message).await?,
            ExtensionRequest::SendPrompt(prompt) => self.send_prompt(*prompt).await?,
            ExtensionRequest::AppendEntry { custom_type, data } => {
                self.append_custom(custom_type, data).await?;
            }
            ExtensionRequest::SetSessionName(params) => self.set_session_name(&params).await?,
            ExtensionRequest::SetLabel(params) => self.set_entry_label(params).await?,
            ExtensionRequest::SetActiveTools(names) => self.choose_tools(names.into_iter()),
            ExtensionRequest::SetThinkingLevel(params) => self.select_level(&params).await?,
            ExtensionRequest::Abort => self.drive(Input::Abort).await,
            ExtensionRequest::Shutdown => self.extensions.request_shutdown(),
            ExtensionRequest::RegisterProvider => {}
            ExtensionRequest::OpenSession(params) => {
                return self.open_subsession(place, params).await.map(Some);
            }
            ExtensionRequest::Subsession(method, params) => {
                let subsessions = &mut self.extensions.subsessions;
                return subsessions.request(place, id, method, &params);
            }
            request => return self.begin_request(id, request).await.map(|()| None),
        }
        Ok(Some(Value::Null))
    }

    /// Begins a request whose answer follows later.
    async fn begin_request(&mut self, id: Option<u64>, request: ExtensionRequest) -> Result<(), String> {
        match request {
            ExtensionRequest::SetModel(params) => self.set_model(Asker::Extension(id), params).await,
            ExtensionRequest::RunBuiltIn(call) => self.run_built_in(id, call)?,
            ExtensionRequest::CallTool(call) => {
                self.nest(id, &call).await?;
            }
            ExtensionRequest::Compact(instructions) => {
                room_for(self.deferred.len())?;
                self.drive(Input::Abort).await;
                self.defer(DeferredAction::CompactFor(id, instructions));
            }
            ExtensionRequest::WaitForIdle => {
                room_for(self.deferred.len())?;
                self.defer(DeferredAction::Idle(id));
            }
            ExtensionRequest::NavigateTree(params) => self.navigate_for(id, params).await?,
            ExtensionRequest::ChangeSession(change, params) => self.change_for(id, change, &params).await?,
            ExtensionRequest::StreamModel(params) => {
                let (Some(id), Some(pool)) = (id, self.extensions.links.pool().cloned()) else {
                    return Err("llm.stream needs somebody who takes the answer".to_owned());
                };
                let span = self.outbox.trace().current();
                let (budget, tasks) = (self.machine.budget(), &mut self.extensions.tasks);
                stream_model(tasks, budget, &self.agent, &pool, (id, &params), span)?;
            }
            ExtensionRequest::Key(params) => {
                let (Some(id), Some(pool)) = (id, self.extensions.links.pool()) else {
                    return Err("llm.key needs somebody who takes the answer".to_owned());
                };
                answer_key(&self.agent, pool, id, &params);
            }
            // Carried out by `perform_request`.
            _ => {}
        }
        Ok(())
    }

    /// An extension does not wait for the answer to its request any more.
    pub(super) async fn withdraw_request(&mut self, id: u64) {
        self.extensions.tasks.withdraw(id);
        self.drive(Input::WithdrawNested(id)).await;
    }

    /// Answers a request of an extension that had to wait.
    pub(super) fn answer_later(&mut self, id: Option<u64>, outcome: Result<Value, String>) {
        self.extensions.links.answer(id, outcome);
    }

    /// Asks the user. The answer goes straight to the extension.
    async fn ask_for(&mut self, id: Option<u64>, dialog: Dialog) -> Option<Value> {
        let answer = self.dialogs.ask_now(dialog, &self.outbox).await;
        let (Some(id), Some(pool)) = (id, self.extensions.links.pool().cloned()) else {
            return Some(Value::Null);
        };
        // The end of the task withdraws the question.
        let task = tokio::spawn(async move {
            let value = dialog_answer(answer).await;
            let _sent = pool.answer(id, &value);
        });
        self.extensions.tasks.keep(id, task.abort_handle());
        None
    }

    /// A message of an extension joins the run that is under way, the next prompt, or the conversation, or begins a run.
    async fn send_message(&mut self, sent: CustomMessage) -> Result<(), String> {
        let begins = self
            .deferred
            .items()
            .any(|action| matches!(action, DeferredAction::Turn(_)));
        let CustomMessage {
            message,
            delivery,
            triggers_turn,
        } = sent;
        if delivery == Delivery::NextTurn {
            self.extensions.add_to_next_turn(message)?;
        } else if !self.machine.is_idle() || (triggers_turn && begins) {
            let kind = match delivery {
                Delivery::FollowUp => QueueKind::FollowUp,
                Delivery::Steering | Delivery::NextTurn => QueueKind::Steering,
            };
            self.enqueue_message(kind, String::new(), message).await?;
        } else if triggers_turn {
            room_for(self.deferred.len())?;
            self.extensions.client_requests.expect_response_first();
            self.defer(DeferredAction::Turn(vec![message]));
        } else {
            self.add_message(message).await;
        }
        Ok(())
    }

    /// A message that no run produced joins the conversation.
    pub(super) async fn add_message(&mut self, message: Arc<Message>) {
        self.apply(MachineChange::Add(Arc::clone(&message)));
        self.emit(Event::MessageStart {
            message: Arc::clone(&message),
        })
        .await;
        self.conversation
            .log
            .persist(Arc::clone(&message), &self.outbox)
            .await;
        self.emit(Event::MessageEnd { message }).await;
    }

    /// A prompt of an extension, during a run or as soon as the session is idle.
    async fn send_prompt(&mut self, prompt: ExtensionPrompt) -> Result<(), String> {
        let prompt = Box::new(Saying {
            who: Who::Extension,
            text: prompt.text,
            enclosed: prompt.attachments,
            expand: prompt.expand,
            behavior: prompt.behavior,
            queue: None,
            options: RunOptions::default(),
        });
        if self.machine.is_idle() {
            room_for(self.deferred.len())?;
            self.extensions.client_requests.expect_response_first();
            self.defer(DeferredAction::Say(prompt));
        } else {
            self.say(*prompt).await;
        }
        Ok(())
    }

    /// A message of an extension waits in a queue. It is not shown there.
    pub(super) async fn enqueue_message(
        &mut self,
        kind: QueueKind,
        text: String,
        message: Arc<Message>,
    ) -> Result<Accepted, String> {
        room_for(self.machine.queues().len())?;
        let queued = Queued {
            text,
            message,
            interrupts: false,
        };
        self.drive(Input::Enqueue(kind, queued)).await;
        Ok(Accepted::new(Disposition::Started))
    }

    /// Sends clients an event that no run produced. Extensions receive it, too, without an answer.
    pub(super) async fn emit(&mut self, event: Event) {
        let name = event.name();
        if self.extensions.hear(name) {
            let told = serde_json::to_value(&event).unwrap_or_default();
            self.tell_only(name, &told);
        }
        self.outbox.tell(event).await;
    }

    /// An extension goes to another place of the session's tree.
    async fn navigate_for(&mut self, id: Option<u64>, params: NavigateParams) -> Result<(), String> {
        if self.conversation.log.entry(&params.target_id).is_none() {
            return Err(strings::entry_not_found(&params.target_id));
        }
        self.drive(Input::Abort).await;
        self.defer(DeferredAction::Move(Asker::Extension(id), params));
        Ok(())
    }

    /// An extension replaces the session. It is answered when the new one has begun for its extensions.
    async fn change_for(
        &mut self,
        id: Option<u64>,
        change: SessionChange,
        params: &Value,
    ) -> Result<(), String> {
        let text = |name: &str| params.get(name).and_then(Value::as_str).map(str::to_owned);
        let change = match change {
            SessionChange::New => {
                let entries = params.get("entries").and_then(Value::as_array);
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
                self.workspace.cwd.join(text("sessionPath").unwrap_or_default()),
                None,
            ),
            SessionChange::Reload if !self.machine.is_idle() => return Err(strings::RELOAD_BUSY.to_owned()),
            SessionChange::Reload => Change::Reload,
            SessionChange::Fork => {
                let entry = text("entryId").unwrap_or_default();
                let entry = self
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
        self.change(ChangeAsker::Extension(id), change).await;
        Ok(())
    }

    fn run_built_in(&mut self, id: Option<u64>, call: BuiltInCall) -> Result<(), String> {
        let (Some(id), Some(pool)) = (id, self.extensions.links.pool().cloned()) else {
            return Err("a tool that nobody waits for is not run".to_owned());
        };
        let file = self.conversation.log.file_text();
        let place = Workplace {
            toolbox: &self.agent.toolbox,
            cwd: &self.workspace.cwd,
            env: Agent::tool_env(
                &self.conversation.log.header().id,
                file.as_deref(),
                Some(&self.conversation.choice.model),
            ),
            sees_images: self.conversation.choice.model.sees_images(),
        };
        run_built_in(&mut self.extensions.tasks, &pool, id, call, place);
        Ok(())
    }

    /// An extension opens a session of its own.
    async fn open_subsession(&mut self, place: usize, params: Value) -> Result<Value, String> {
        let options: SubsessionOptions = serde_json::from_value(params).map_err(|error| error.to_string())?;
        if self.extensions.links.pool().is_none() {
            return Err("the extension is gone".to_owned());
        }
        self.extensions.subsessions.check(place, &options)?;
        let cwd = match &options.cwd {
            Some(cwd) => self.workspace.cwd.join(cwd),
            None => self.workspace.cwd.clone(),
        };
        if !cwd.is_dir() {
            return Err(strings::no_such_directory(&cwd));
        }
        let agent = self.agent.maker.make(&cwd, self.extensions.guards.faults());
        let agent = options.configure(agent, self.permitting.mode(), &self.conversation.choice.model);
        let (outbox, outgoing) = self.outbox.for_subordinate(limits::OUTBOX);
        let opening = match &options.session_file {
            Some(file) => Opening::File(agent.cwd.join(file)),
            None => Opening::New { id: None },
        };
        let started = off_thread(move || Session::start(agent, outbox, &opening)).await;
        let session = started.map_err(|error| error.to_string())?;
        let state = serde_json::to_value(session.state()).map_err(|error| error.to_string())?;
        let opened = json!({
            "state": state,
            "cwd": session.workspace.cwd.to_string_lossy(),
            "messages": session.machine.messages(),
            "activeTools": session.tools.active_names(),
        });
        let extensions = &mut self.extensions;
        let handle = options.handle();
        let requests = extensions
            .subsessions
            .insert(&extensions.links, place, handle, outgoing);
        if let Some(requests) = requests {
            // Boxed, since a session may hold sessions.
            let run: std::pin::Pin<Box<dyn Future<Output = ()>>> = Box::pin(session.run(requests));
            tokio::task::spawn_local(run);
        }
        Ok(opened)
    }
}

/// Checks that there is room for one more of what waits.
fn room_for(waiting: usize) -> Result<(), String> {
    if waiting >= limits::QUEUED {
        return Err(strings::queue_full(limits::QUEUED));
    }
    Ok(())
}
