//! What the session does for its extensions: it carries out the actions of their component while they are loaded, passes on
//! answers and messages of their processes, and leaves them at a session change and at the end.

use std::collections::VecDeque;
use std::sync::Arc;

use config::extensions::find;
use config::hooks;
use config::trust::DecidedBy;
use extensions::line::Failure;
use extensions::{Answer, ProcessError, ProcessMessage};
use serde_json::{Value, json};
use wire::command::{BashParams, CompleteParams, ShortcutParams};
use wire::reply::Completions;
use wire::state::BashResult;

use crate::extensions::era;
use crate::hooks::Hooks;
use crate::limits;
use crate::outbox::Responder;

use super::Session;
use super::extensions::{
    Answered, ClientRequest, Completion, ExtensionEvent, Extensions, LoadAction, LoadAnswer, LoadQuestion,
    Opening, Resources, Then, TrustDecision, failure, members, report,
};
use super::tool_calls::Layer;
use super::user_shells::ShellReport;

impl Session {
    /// Deals with an event of the extensions.
    pub(super) async fn on_extension(&mut self, event: ExtensionEvent) {
        match event {
            ExtensionEvent::Message(place, message) => self.on_message(place, message).await,
            ExtensionEvent::Hook(answered) => self.on_hook_answer(answered).await,
            ExtensionEvent::Loading(answered) => self.on_load_answer(answered).await,
            ExtensionEvent::LoadingLate => {
                let actions = self.extensions.on_loading_late();
                self.load(actions).await;
            }
            ExtensionEvent::Client(answered) => self.on_client_answer(answered).await,
            ExtensionEvent::ResponseLate => {}
            ExtensionEvent::Provider(answered) => self.on_provider_answer(answered).await,
            ExtensionEvent::Failed(failure) => self.extension_failed(failure).await,
        }
    }

    /// Handles all messages that processes have sent so far. They come before an answer that has just arrived.
    pub(super) async fn hear_out(&mut self) {
        while let Some((place, message)) = self.extensions.links.try_next_message() {
            self.on_message(place, message).await;
        }
    }

    async fn on_message(&mut self, place: usize, message: ProcessMessage) {
        let Some(message) = self.extensions.links.accept(place, message) else {
            return;
        };
        match message {
            ProcessMessage::Call { id, method, params } => self.on_request(place, id, &method, params).await,
            ProcessMessage::Withdrawn(id) => self.withdraw_request(id).await,
            ProcessMessage::Changed(registered) => {
                let actions = self.extensions.change_registered(place, *registered);
                self.load(actions).await;
                // Models of extensions that are being loaded are taken when they have loaded.
                if self.extensions.links.has_begun_at(place) && self.take_providers() {
                    self.publish_models().await;
                }
            }
            ProcessMessage::Failed(failed) => self.extension_failed(failed).await,
            ProcessMessage::Gone(reason) => {
                let actions = self.extensions.lose(place, &reason);
                self.load(actions).await;
            }
            _ => {}
        }
    }

    /// Tells clients that an extension failed.
    pub(super) async fn extension_failed(&self, failure: Failure) {
        report(failure, &self.outbox).await;
    }

    /// Reports failures in an answer and the reason of a refusal. Returns the value, and whether there were failures.
    async fn take_answer(
        &mut self,
        answer: Result<Answer, ProcessError>,
    ) -> (Result<Value, ProcessError>, bool) {
        match answer {
            Ok(answer) => {
                let has_errors = !answer.errors.is_empty();
                for failure in answer.errors {
                    self.extension_failed(failure).await;
                }
                self.tell_reason(&answer.value).await;
                (Ok(answer.value), has_errors)
            }
            Err(error) => (Err(error), false),
        }
    }

    async fn on_hook_answer(&mut self, answered: Answered<Result<Answer, ProcessError>>) {
        self.hear_out().await;
        let Some(then) = self.extensions.questions.take(answered.number) else {
            return;
        };
        let (answer, _) = self.take_answer(answered.answer).await;
        match then {
            Then::Input(saying) => self.on_input(saying, answer.unwrap_or_default()).await,
            Then::Begin(turn) => self.begin_turn(turn, answer.unwrap_or_default()).await,
            Then::Hooks(ticket, point) => self.on_hooks_done(ticket, *point, answer).await,
            Then::Change(asker, change) => self.on_change(asker, change, answer.unwrap_or_default()).await,
            Then::Leave(asker, change) => self.carry_out(asker, change).await,
            Then::Move(asker, params) => self.on_move(asker, params, answer.unwrap_or_default()).await,
        }
    }

    async fn on_client_answer(&mut self, answered: Answered<Result<Answer, ProcessError>>) {
        self.hear_out().await;
        let Some(request) = self.extensions.client_requests.take(answered.number) else {
            return;
        };
        let (answer, has_errors) = self.take_answer(answered.answer).await;
        match request.complete(answer, has_errors, &self.outbox).await {
            Completion::Done => {}
            Completion::RunShell(responder, params) => self.run_bash(responder, params).await,
            Completion::ShellRan(responder, params, run) => {
                let shell = self.shells.begin(responder.origin(), &params, &self.outbox).await;
                self.on_shell(ShellReport::Done(Box::new(responder), params, shell, Ok(run)))
                    .await;
            }
        }
    }

    /// Asks an extension for the possible arguments of a slash command.
    pub(super) async fn complete_arguments(
        &mut self,
        responder: Responder<Completions>,
        params: CompleteParams,
    ) {
        self.sync_state();
        let Extensions {
            client_requests,
            links,
            ..
        } = &mut self.extensions;
        if let Err((responder, error)) = client_requests.complete(links, responder, params) {
            responder.refuse(error).await;
        }
    }

    /// Has an extension run a keyboard shortcut.
    pub(super) async fn run_shortcut(&mut self, responder: Responder<()>, params: ShortcutParams) {
        self.sync_state();
        let Extensions {
            client_requests,
            links,
            ..
        } = &mut self.extensions;
        if let Err((responder, error)) = client_requests.run_shortcut(links, responder, params) {
            responder.refuse(error).await;
        }
    }

    /// Runs a shell command of the user, unless an extension replaces it.
    pub(super) async fn bash(&mut self, responder: Responder<BashResult>, params: BashParams) {
        if !self.extensions.hear("user_bash") {
            return self.run_bash(responder, params).await;
        }
        let event = json!({
            "type": "user_bash",
            "command": params.command,
            "excludeFromContext": params.exclude_from_context,
            "cwd": self.workspace.cwd.to_string_lossy(),
        });
        let answer = self.hook_answer("user_bash", &event);
        self.extensions
            .client_requests
            .wait(ClientRequest::Shell(responder, params), answer);
    }

    /// Loads the extensions, if there are any. Commands that depend on them wait until the deadline.
    pub(super) async fn begin_extensions(&mut self) {
        self.begin_hooks();
        self.sync_hooks();
        let agent = &self.agent;
        let asks_trust = self.extensions.may_decide_on_trust()
            && agent.trust.is_open(&agent.cwd)
            && agent.project().needs_trust();
        let actions = self.extensions.begin(asks_trust);
        self.load(actions).await;
    }

    async fn on_load_answer(&mut self, answered: Answered<LoadAnswer>) {
        self.hear_out().await;
        let Some(question) = self.extensions.loading.take(answered.number) else {
            return;
        };
        let answer = match answered.answer {
            LoadAnswer::Process(process) => {
                if let LoadQuestion::Process(place) = question {
                    self.on_process(place, process).await;
                }
                return;
            }
            LoadAnswer::Answer(answer) => self.take_answer(answer).await.0,
        };
        let actions = match question {
            LoadQuestion::Process(_) | LoadQuestion::Shutdown => Vec::new(),
            LoadQuestion::Open(place) => self.extensions.on_opened(place, answer),
            LoadQuestion::LoadMore(place) => self.extensions.on_loaded_more(place, answer),
            LoadQuestion::Start(place) => self.extensions.on_started(place).into_iter().collect(),
            LoadQuestion::Trust => {
                let decision = TrustDecision::parse(&answer.unwrap_or_default());
                self.decide_on_trust(decision).await;
                self.extensions.load_withheld()
            }
            LoadQuestion::Resources => {
                self.use_resources(&answer.unwrap_or_default());
                self.extensions.finish_loading();
                Vec::new()
            }
        };
        self.load(actions).await;
    }

    async fn on_process(
        &mut self,
        place: usize,
        process: Result<extensions::ExtensionProcess, ProcessError>,
    ) {
        match process {
            Ok(process) => {
                // The other processes know all that the whole state says, too.
                self.sync_state();
                let opening = Opening {
                    state: self.whole_state(),
                    flags: self.agent.options.extensions.flags(),
                    era: era(&self.agent),
                };
                self.extensions.open(place, process, &opening);
            }
            Err(error) => {
                let actions = self.extensions.without(place, &error.to_string());
                self.load(actions).await;
            }
        }
    }

    /// Carries out actions of loading, and the actions that follow from them.
    async fn load(&mut self, actions: Vec<LoadAction>) {
        let mut actions = VecDeque::from(actions);
        while let Some(action) = actions.pop_front() {
            match action {
                LoadAction::Report(failure) => {
                    if self.extensions.misses_guard(&failure) {
                        self.lock_down();
                    }
                    self.extension_failed(failure).await;
                }
                LoadAction::StartProcess(place) => self.start_process(place),
                LoadAction::UseRegistrations => {
                    self.use_registrations();
                    if self.extensions.has_recovered_guards() {
                        self.load_anew();
                    }
                }
                LoadAction::LoadMore(place) => {
                    self.sync_state();
                    self.extensions.load_more(place);
                }
                LoadAction::AskTrust => self.ask_trust(),
                LoadAction::Begin(places) => {
                    self.bring_models(&places).await;
                    self.sync_state();
                    actions.extend(self.extensions.begin_at(&places));
                }
                LoadAction::UseProviders => {
                    self.take_providers();
                }
                LoadAction::AskResources => self.ask_resources(),
            }
        }
    }

    /// Locks the agent down: a guard is missing. What the client chose before does not count any more.
    pub(super) fn lock_down(&mut self) {
        self.permitting.forget_choice();
        self.load_anew();
        self.workspace.forget_system_prompt();
    }

    fn start_process(&mut self, place: usize) {
        let Some(key) = self.extensions.links.key(place).cloned() else {
            return;
        };
        let shared = Arc::clone(&self.agent.extensions);
        let registry = Arc::clone(&self.agent.registry);
        self.extensions.providers.use_shared_file(&registry, &shared);
        let path = self.extensions.providers.file().clone();
        self.extensions.loading.wait_for_process(place, async move {
            shared.write_models(registry, path).await;
            shared.process(&key).await
        });
    }

    fn ask_trust(&mut self) {
        let question = LoadQuestion::Trust;
        if self.extensions.hear("project_trust") {
            let event = json!({"type": "project_trust", "cwd": self.agent.cwd.to_string_lossy()});
            let answer = self.hook_answer("project_trust", &event);
            self.extensions.loading.ask(question, answer);
        } else {
            let undecided = std::future::ready(Ok(Answer::default()));
            self.extensions.loading.ask(question, undecided);
        }
    }

    /// Extensions have decided on trust, or left it open.
    async fn decide_on_trust(&mut self, decision: TrustDecision) {
        let TrustDecision { trusted, remember } = decision;
        if trusted.is_none() {
            return;
        }
        let trust = &self.agent.trust;
        if remember && let Err(problem) = trust.file().set(&self.agent.cwd, trusted) {
            let failure = failure("<runtime>", "project_trust", problem.to_string());
            self.extension_failed(failure).await;
        }
        self.agent
            .trust
            .set(&self.agent.cwd, trusted, DecidedBy::Extension);
        self.load_anew();
        let found = find(&self.agent.places(&self.workspace.cwd));
        self.extensions.loading.set_admitted(found);
    }

    /// Asks extensions, for which the session has begun, for skills and prompt templates.
    fn ask_resources(&mut self) {
        let name = "resources_discover";
        if !self.extensions.hear(name) {
            return self.extensions.finish_loading();
        }
        self.extensions.loading.give_up_resources();
        let start = self.extensions.loading.start();
        let is_reload = start.get("reason").and_then(Value::as_str) == Some("reload")
            || self.extensions.links.has_restarted();
        let event = json!({
            "type": name,
            "cwd": self.workspace.cwd.to_string_lossy(),
            "reason": if is_reload { "reload" } else { "startup" },
        });
        let answer = self.hook_answer(name, &event);
        self.extensions.loading.ask(LoadQuestion::Resources, answer);
    }

    fn use_resources(&mut self, answer: &Value) {
        let home = self.agent.options.resources.home.as_deref();
        let found = Resources::parse(answer, &self.workspace.cwd, home);
        if !found.is_empty() {
            self.workspace.set_resources(self.agent.load_more_resources(
                &self.workspace.cwd,
                found.skills,
                found.prompts,
            ));
            self.workspace.forget_system_prompt();
            self.extensions.state.mark_stale();
        }
    }

    /// Has programs started anew for the next session: their files may have changed.
    pub(super) fn renew_processes(&self) {
        for key in self.extensions.links.keys() {
            self.agent.extensions.renew(key);
        }
    }

    /// The session goes on in another file; what extensions hold belongs to the old one.
    pub(super) fn leave_extensions(&mut self, reason: &str) {
        self.extensions.leave(reason);
        self.use_registrations();
    }

    /// Loads the extensions for the session that took the place of the old one.
    pub(super) async fn reopen_extensions(&mut self, reason: &str, previous: Option<String>) {
        let mut start = members(json!({"type": "session_start", "reason": reason}));
        if let Some(previous) = previous {
            start.insert("previousSessionFile".to_owned(), previous.into());
        }
        let places = self.agent.places(&self.workspace.cwd);
        let (found, hooks) = (find(&places), Hooks::new(hooks::find(&places)));
        let keeps_flags = matches!(reason, "new" | "reload");
        self.extensions.replace(found, hooks, start.into(), keeps_flags);
        self.begin_extensions().await;
    }

    /// The session is over: its extensions may handle `session_shutdown`, within limits.
    pub(super) async fn end_extensions(&mut self) {
        if self.extensions.hear("session_shutdown") {
            let event = json!({"type": "session_shutdown", "reason": "quit"});
            let answer = self.hook_answer("session_shutdown", &event);
            let number = self.extensions.loading.ask(LoadQuestion::Shutdown, answer);
            let answered = self.run_until_answer(number);
            let _in_time = tokio::time::timeout(limits::FAREWELL, answered).await;
        }
        self.agent
            .extensions
            .forget_models(self.extensions.providers.file());
        // A tool keeps the processes of its extension.
        self.tools.set(Layer::Extension, Vec::new());
        self.extensions.end().await;
    }

    /// Deals with events of extensions until a question of loading is answered.
    async fn run_until_answer(&mut self, number: u64) {
        loop {
            match self.extensions.next().await {
                ExtensionEvent::Loading(answered) if answered.number == number => {
                    break self.on_load_answer(answered).await;
                }
                ExtensionEvent::Message(_, ProcessMessage::Gone(_))
                    if self.extensions.links.keys().count() == 1 =>
                {
                    break;
                }
                event => self.on_extension(event).await,
            }
        }
    }
}
