//! Where wake-ups and commands go: each one to its component, and what follows for the session is deferred or told. Nothing is decided
//! here that a component could decide.

use agent::Readiness;
use extensions::{Answer, ProcessError, ProcessMessage};
use serde_json::{Value, json};
use wire::ConnectionCommand;
use wire::Model;
use wire::Response;
use wire::command::{BashParams, SetModelParams};
use wire::hosted::Frame;
use wire::state::BashResult;
use wire::table::Respond;

use crate::limits;
use crate::outbox::{ClientId, Responder};
use crate::requests::SessionRequest;
use crate::strings;

use super::asker::{Asked, Asker};
use super::deferred::DeferredAction;
use super::extension_requests::Outcome;
use super::extensions::{
    Answered, ClientRequest, Completion, ExtensionEvent, ExtensionRequest, LoadQuestion, Then, failure,
};
use super::mcp::McpEvent;
use super::model_probes::Probed;
use super::pending_prompt::Saying;
use super::summaries::Summarised;
use super::tool_calls::Layer;
use super::user_shells::ShellReport;
use super::{
    Session, compaction, extension_loading, extension_models, extension_requests, lifecycle, model_switch,
    navigation, process_exits, prompt_delivery, prompts, session_change,
};

/// Requests of clients and of the manager.
impl Session {
    /// Deals with a request of a client or of the manager.
    pub(super) async fn on_mail(&mut self, mail: SessionRequest) {
        let outbox = &self.driver.core.outbox;
        match mail {
            SessionRequest::Reject(client, response) => {
                let _gone = outbox.response(client, response).await;
            }
            SessionRequest::Connection(origin, command) => {
                if let ConnectionCommand::Hello(params) = &command {
                    outbox.hear(params);
                }
                let snapshot =
                    matches!(command, ConnectionCommand::Replay(_)).then(|| Box::new(self.driver.snapshot()));
                outbox.ask_connection(origin, command, snapshot).await;
            }
            // The manager keeps these for itself; a session knows no others.
            SessionRequest::Manager(origin, command) => {
                outbox
                    .refuse(origin, strings::not_available(command.name()))
                    .await;
            }
            SessionRequest::Frame(frame) => self.on_frame(frame).await,
            SessionRequest::Command(origin, command) => {
                let is_early = self.driver.start_servers(&command).await;
                if is_early || self.driver.extensions.holds(&command) {
                    self.defer(DeferredAction::Held(origin, Box::new(command)));
                } else {
                    command.dispatch(self, origin).await;
                }
            }
            SessionRequest::Retire(answer) => {
                let retired = self.retired().map(Box::new);
                let is_wanted = retired.is_some();
                // The caller may have given up. The session must then stay, because nothing would open it again.
                self.is_retired = answer.send(retired).is_ok() && is_wanted;
            }
            // The caller may have given up.
            SessionRequest::Describe(answer) => drop(answer.send(self.describe())),
        }
    }

    /// An answer of the client goes to the dialog or to the client tool that waits for it. An answer that nothing waits for is
    /// ignored.
    async fn on_frame(&mut self, frame: Frame) {
        if let Frame::UiResponse(response) = &frame {
            return self.driver.dialogs.answered(response);
        }
        match self.driver.core.client_tools.answer(frame) {
            // What the client sends next may depend on what follows from its answer.
            Ok(Some(slot)) => {
                if let Some(input) = self.driver.turn.settle(slot).await {
                    self.driver.drive(input).await;
                }
            }
            Ok(None) => {}
            // There is no command to answer, so the client gets what it gets for a line that cannot be parsed.
            Err(error) => {
                let response = Response {
                    id: None,
                    command: Some("parse".into()),
                    outcome: Err(error),
                };
                let outbox = &self.driver.core.outbox;
                let _gone = outbox.response(ClientId::default(), response).await;
            }
        }
    }

    /// Sets the model, for a client or an extension.
    pub(super) async fn set_model(&mut self, asker: Asker<Model>, params: SetModelParams) {
        if let Some(probed) = self.probes.look_for(&self.driver.core.agent, asker, params) {
            self.on_probed(probed).await;
        }
    }

    /// Takes a model that was found, and answers.
    pub(super) async fn on_probed(&mut self, probed: Probed) {
        let SetModelParams { provider, model_id } = probed.params;
        let outcome = match probed.model {
            Some(model) => {
                model_switch::select_model(&mut self.driver, model.clone(), None, "set").await;
                Ok(model)
            }
            None => Err(strings::model_not_found(provider.as_deref(), model_id.as_deref())),
        };
        match probed.asker {
            Asker::Client(responder) => responder.respond(outcome).await,
            Asker::Extension(id) => self
                .driver
                .extensions
                .links
                .answer(id, Ok(json!(outcome.is_ok()))),
        }
    }

    /// Runs a shell command of the user, unless an extension replaces it.
    pub(super) async fn bash(&mut self, responder: Responder<BashResult>, params: BashParams) {
        let (core, extensions) = (&mut self.driver.core, &mut self.driver.extensions);
        if !extensions.hear("user_bash") {
            return self.run_bash(responder, params).await;
        }
        let event = json!({
            "type": "user_bash",
            "command": params.command,
            "excludeFromContext": params.exclude_from_context,
            "cwd": core.workspace.cwd.to_string_lossy(),
        });
        let answer = extensions.hook_answer(core, "user_bash", &event);
        let request = ClientRequest::Shell(responder, params);
        extensions.client_requests.wait(request, answer);
    }

    async fn run_bash(&mut self, responder: Responder<BashResult>, params: BashParams) {
        let core = &self.driver.core;
        let place = (core.agent.toolbox.clone(), core.workspace.cwd.clone());
        self.shells.run(responder, params, place, &core.outbox).await;
    }

    pub(super) async fn on_shell(&mut self, report: ShellReport) {
        let core = &mut self.driver.core;
        let is_idle = core.machine.is_idle();
        self.shells
            .accept(report, is_idle, &mut core.conversation, &core.outbox)
            .await;
        if is_idle {
            core.hear();
        }
    }

    pub(super) async fn on_mcp(&mut self, event: McpEvent) {
        let (mcp, host) = self.driver.core.mcp(self.driver.dialogs.ui());
        let Some(prompted) = mcp.accept(event, host).await else {
            return;
        };
        match prompted.into_prompt() {
            (responder, Ok((params, attachments))) => {
                let saying = Saying {
                    // It is a server's text: no slash in it means anything.
                    expand: false,
                    ..Saying::new(responder, params, attachments)
                };
                prompt_delivery::say(&mut self.driver, saying).await;
            }
            (responder, Err(error)) => responder.refuse(error).await,
        }
    }

    pub(super) async fn on_summarised(&mut self, summarised: Summarised) {
        match self.driver.summaries.accept(summarised) {
            Summarised::Compaction(outcome) => compaction::compacted(&mut self.driver, outcome).await,
            Summarised::Branch(outcome) => navigation::summarised_branch(&mut self.driver, outcome).await,
        }
    }
}

/// What waits for the session to be idle.
impl Session {
    /// Does something once the session is idle.
    pub(super) fn defer(&mut self, action: impl Into<Option<DeferredAction>>) {
        let Some(action) = action.into() else { return };
        if let DeferredAction::Change(_, change) = &action
            && change.ends_shells()
        {
            self.shells.cancel();
        }
        let (condition, order) = action.rules();
        if matches!(action, DeferredAction::Reloaded(_)) {
            // Commands that came meanwhile depend on the loaded resources.
            self.deferred.push_first(condition, order, action);
        } else {
            self.deferred.push(condition, order, action);
        }
    }

    /// Returns true while ordered commands wait: while a session change or a prompt waits for the run before it, later commands
    /// must not overtake it.
    pub(super) fn holds_mail(&self) -> bool {
        self.deferred.holds()
            || self.driver.extensions.holds_mail()
            || self.driver.core.mcp.is_asking()
            // A prompt behind `set_model` is for the new model.
            || self.probes.are_running()
    }

    fn readiness(&self) -> Readiness {
        let (core, extensions) = (&self.driver.core, &self.driver.extensions);
        Readiness {
            is_idle: core.machine.is_idle() && !core.machine.is_holding() && !extensions.holds_mail(),
            is_loading: extensions.is_opening() || core.mcp.is_connecting(),
            runs_shells: self.shells.are_running(),
            is_answering: extensions.is_answering_first(),
        }
    }

    /// Does what waited for the session to be idle.
    pub(super) async fn catch_up(&mut self) {
        while self.driver.core.machine.is_idle() {
            let readiness = self.readiness();
            if !readiness.is_idle {
                break;
            }
            let core = &mut self.driver.core;
            self.shells.store(&mut core.conversation, &core.outbox).await;
            match self.deferred.next(readiness) {
                None => {
                    process_exits::wake(&mut self.driver).await;
                    break;
                }
                Some(action) => self.run_deferred(action).await,
            }
        }
    }

    async fn run_deferred(&mut self, action: DeferredAction) {
        let driver = &mut self.driver;
        match action {
            DeferredAction::Respond(responder) => responder.respond(Ok(())).await,
            DeferredAction::Prompt(responder, params) => prompts::prompt(driver, responder, params).await,
            DeferredAction::Compact(asked) => compaction::compact_now(driver, asked).await,
            DeferredAction::Move(asker, params) => navigation::move_if_allowed(driver, asker, params).await,
            DeferredAction::Change(asker, change) => {
                let reloaded = session_change::leave(driver, asker, change).await;
                self.defer(reloaded);
            }
            DeferredAction::Held(origin, command) => command.dispatch(self, origin).await,
            DeferredAction::Reloaded(responder) => {
                let commands = driver.extensions.command_list(&driver.core);
                responder.respond(Ok(commands)).await;
            }
            DeferredAction::Say(saying) => prompt_delivery::say(driver, *saying).await,
            DeferredAction::Turn(messages) => prompt_delivery::begin_run(driver, messages).await,
            DeferredAction::CompactFor(id, instructions) => {
                let asker = Asker::Extension(id);
                compaction::compact_now(driver, Asked { asker, instructions }).await;
            }
            DeferredAction::Idle(id) => driver.extensions.links.answer(id, Ok(Value::Null)),
        }
    }
}

/// Events of extensions.
impl Session {
    pub(super) async fn on_extension(&mut self, event: ExtensionEvent) {
        match event {
            ExtensionEvent::Message(place, message) => self.on_message(place, message).await,
            ExtensionEvent::Hook(answered) => self.on_hook_answer(answered).await,
            ExtensionEvent::Loading(answered) => {
                self.hear_out().await;
                extension_loading::on_load_answer(&mut self.driver, answered).await;
            }
            ExtensionEvent::LoadingLate => extension_loading::on_deadline(&mut self.driver).await,
            ExtensionEvent::Client(answered) => self.on_client_answer(answered).await,
            ExtensionEvent::ResponseLate => {}
            ExtensionEvent::Provider(answered) => {
                self.hear_out().await;
                extension_models::on_provider_answer(&mut self.driver, answered).await;
            }
            ExtensionEvent::Failed(failure) => self.driver.extension_failed(failure).await,
        }
    }

    /// Handles all messages that processes have sent so far. They come before an answer that has just arrived.
    pub(super) async fn hear_out(&mut self) {
        while let Some((place, message)) = self.driver.extensions.links.try_next_message() {
            self.on_message(place, message).await;
        }
    }

    async fn on_message(&mut self, place: usize, message: ProcessMessage) {
        let Some(message) = self.driver.extensions.links.accept(place, message) else {
            return;
        };
        match message {
            ProcessMessage::Call { id, method, params } => self.on_request(place, id, &method, params).await,
            ProcessMessage::Withdrawn(id) => extension_requests::withdraw(&mut self.driver, id).await,
            ProcessMessage::Changed(registered) => {
                extension_loading::on_changed(&mut self.driver, place, *registered).await;
            }
            ProcessMessage::Failed(failed) => self.driver.extension_failed(failed).await,
            ProcessMessage::Gone(reason) => {
                extension_loading::on_gone(&mut self.driver, place, &reason).await
            }
            _ => {}
        }
    }

    /// An extension has sent a request.
    async fn on_request(&mut self, place: usize, id: Option<u64>, method: &str, params: Value) {
        let outcome = match ExtensionRequest::parse(method, params) {
            Ok(ExtensionRequest::SetModel(params)) => {
                return self.set_model(Asker::Extension(id), params).await;
            }
            Ok(ExtensionRequest::OpenSession(params)) => {
                let opened = lifecycle::open_subsession(&mut self.driver, place, params).await;
                opened.map(Outcome::answer)
            }
            Ok(request) => {
                extension_requests::perform(&mut self.driver, &self.deferred, (place, id), request).await
            }
            Err(error) => Err(error),
        };
        let answer = outcome.map(|outcome| {
            self.defer(outcome.deferred);
            outcome.answer
        });
        match (id, answer) {
            // Answered later, or not at all.
            (_, Ok(None)) | (None, Ok(_)) => {}
            (None, Err(error)) => {
                let failed = failure("<runtime>", method, error);
                self.driver.extension_failed(failed).await;
            }
            (id, answer) => {
                let answer = answer.map(Option::unwrap_or_default);
                self.driver.extensions.links.answer(id, answer);
            }
        }
    }

    async fn on_hook_answer(&mut self, answered: Answered<Result<Answer, ProcessError>>) {
        self.hear_out().await;
        let driver = &mut self.driver;
        let Some(then) = driver.extensions.questions.take(answered.number) else {
            return;
        };
        let (answer, _) = extension_loading::take_answer(driver, answered.answer).await;
        let next = match then {
            Then::Hooks(ticket, point) => return driver.on_hooks_done(ticket, *point, answer).await,
            Then::Input(saying) => {
                return prompt_delivery::on_input(driver, saying, answer.unwrap_or_default()).await;
            }
            Then::Begin(turn) => {
                return prompt_delivery::begin_turn(driver, turn, answer.unwrap_or_default()).await;
            }
            Then::Move(asker, params) => {
                return navigation::on_move(driver, asker, params, answer.unwrap_or_default()).await;
            }
            Then::Change(asker, change) => {
                session_change::on_change(driver, asker, change, answer.unwrap_or_default()).await
            }
            Then::Leave(asker, change) => session_change::carry_out(driver, asker, change).await,
        };
        self.defer(next);
    }

    async fn on_client_answer(&mut self, answered: Answered<Result<Answer, ProcessError>>) {
        self.hear_out().await;
        let driver = &mut self.driver;
        let Some(request) = driver.extensions.client_requests.take(answered.number) else {
            return;
        };
        let (answer, has_errors) = extension_loading::take_answer(driver, answered.answer).await;
        let outbox = &driver.core.outbox;
        match request.complete(answer, has_errors, outbox).await {
            Completion::Done => {}
            Completion::RunShell(responder, params) => self.run_bash(responder, params).await,
            Completion::ShellRan(responder, params, run) => {
                let shell = self.shells.begin(responder.origin(), &params, outbox).await;
                self.on_shell(ShellReport::Done(Box::new(responder), params, shell, Ok(run)))
                    .await;
            }
        }
    }

    /// The session is over: its extensions may handle `session_shutdown`, within limits.
    pub(super) async fn end_extensions(&mut self) {
        let (core, extensions) = (&mut self.driver.core, &mut self.driver.extensions);
        if extensions.hear("session_shutdown") {
            let event = json!({"type": "session_shutdown", "reason": "quit"});
            let answer = extensions.hook_answer(core, "session_shutdown", &event);
            let number = extensions.loading.ask(LoadQuestion::Shutdown, answer);
            let answered = self.run_until_answer(number);
            let _in_time = tokio::time::timeout(limits::FAREWELL, answered).await;
        }
        let (core, extensions) = (&mut self.driver.core, &mut self.driver.extensions);
        core.agent.extensions.forget_models(extensions.providers.file());
        // A tool keeps the processes of its extension.
        core.tools.set(Layer::Extension, Vec::new());
        extensions.end().await;
    }

    /// Deals with events of extensions until a question of loading is answered.
    async fn run_until_answer(&mut self, number: u64) {
        loop {
            match self.driver.extensions.next().await {
                event @ ExtensionEvent::Loading(Answered { number: answered, .. }) if answered == number => {
                    break self.on_extension(event).await;
                }
                ExtensionEvent::Message(_, ProcessMessage::Gone(_))
                    if self.driver.extensions.links.keys().count() == 1 =>
                {
                    break;
                }
                event => self.on_extension(event).await,
            }
        }
    }
}
