//! The extensions of a session: a component that owns their processes, what they registered, the questions to them and the
//! requests from them. It takes inputs (answers and messages of processes) and returns actions; the session carries these out in
//! `session::extension_loading`, `extension_models`, `extension_requests`, `extension_notices` and `extension_state`. Nothing here waits for an extension: an answer comes
//! later, as a wakeup, and its question says what follows.
//!
//! `links` holds the processes, `loading` how they are started, `providers` their models and logins, `client_requests` commands
//! of clients that wait for them, `request` what they request of the session and `request_tasks` the work for it, `tools`
//! their tools, `subsessions` sessions of their own, `state` what they know of the session, `pending` open questions
//! of any kind. How a process is spoken to is the business of `crate::extensions` and of the crate `extensions`.

mod abort_grace;
mod built_in_calls;
mod client_requests;
mod custom_message;
mod discovery;
mod failures;
mod guards;
mod held_commands;
mod json;
mod link;
mod links;
mod listeners;
mod listening;
mod loading;
mod login;
mod model_hooks;
mod model_requests;
mod notices;
mod pending;
mod providers;
mod registrations;
mod request;
mod request_tasks;
mod session_state;
#[cfg(test)]
mod simulated;
mod state;
mod subsessions;
mod table;
#[cfg(test)]
mod tests;
mod tools;

use std::path::Path;
use std::sync::Arc;

use agent::HookPoint;
use config::extensions::{Found, find};
use config::hooks;
use extensions::line::{Failure, Registered};
use extensions::{Answer, ProcessError, ProcessMessage};
use serde_json::Value;
use wire::Message;
use wire::SessionCommand;
use wire::command::NavigateParams;
use wire::reply::Navigated;

use crate::SessionError;
use crate::factory::Agent;
use crate::hooks::Hooks;
use crate::limits;
use crate::strings;

use super::asker::{Asker, EndedCompaction};
use super::change_request::{Change, ChangeAsker};
use super::pending_prompt::{PendingPrompt, PendingRun};
use super::session_file::NewSession;

pub(super) use self::built_in_calls::{BuiltInCall, Workplace, run_built_in};
pub(super) use self::client_requests::{ClientRequest, ClientRequests, Completion};
pub(super) use self::custom_message::custom;
pub(super) use self::discovery::Resources;
pub(super) use self::failures::{Failures, failure, report};
use self::guards::Guards;
pub(super) use self::json::{cancels, members, put};
pub(super) use self::links::ExtensionLinks;
pub(super) use self::loading::{LoadAction, LoadAnswer, LoadQuestion, Loading, Opening, TrustDecision};
pub(super) use self::model_hooks::{ModelHooks, value_of};
pub(super) use self::model_requests::{answer_key, stream_model};
pub(super) use self::notices::{CompactionNotice, DialogNotices};
pub(super) use self::pending::{Answered, Pending};
pub(super) use self::providers::{ExtensionProviders, ProviderQuestion, changed_models, login_providers};
pub(super) use self::registrations::{sync_hooks, use_registrations};
pub(super) use self::request::{
    CustomMessage, Delivery, ExtensionPrompt, ExtensionRequest, SessionChange, dialog_answer,
};
pub(super) use self::request_tasks::RequestTasks;
pub(super) use self::session_state::{command_list, prompt_options};
pub(super) use self::state::SentState;
pub(super) use self::subsessions::{SubsessionOptions, Subsessions};
pub(super) use self::tools::{described, extension_tools};

/// The extensions of a session.
pub(super) struct Extensions {
    /// Programs that are run for events.
    pub(super) hooks: Hooks,
    pub(super) links: ExtensionLinks,
    pub(super) loading: Loading,
    pub(super) providers: ExtensionProviders,
    pub(super) client_requests: ClientRequests,
    /// Questions of a run that are open.
    pub(super) questions: Pending<Continuation, Result<Answer, ProcessError>>,
    pub(super) state: SentState,
    pub(super) failures: Failures,
    /// Hooks and extensions that check calls and could not be loaded.
    pub(super) guards: Guards,
    /// Tasks that carry out requests.
    pub(super) tasks: RequestTasks,
    /// Sessions that extensions opened for themselves.
    pub(super) subsessions: Subsessions,
    /// What extensions were told about dialogs.
    pub(super) dialogs: DialogNotices,
    run: RunHooks,
    /// Messages that go with the next prompt.
    next_turn: Vec<Arc<Message>>,
    /// An extension wants the agent to end.
    shutdown: bool,
}

/// What extensions did to the run that is under way.
#[derive(Default)]
struct RunHooks {
    /// The system prompt of the run, if an extension changed it.
    prompt: Option<String>,
    abort_grace: abort_grace::AbortGrace,
}

/// What an answer is for.
pub(super) enum Continuation {
    /// A prompt may have been changed, or dealt with.
    Input(PendingPrompt),
    /// A run is to begin.
    Begin(PendingRun),
    /// A run without a prompt is to begin, with these messages.
    BeginUnprompted(Vec<Arc<Message>>),
    /// The machine waits for the hooks of a point, under this ticket.
    Hooks(u64, Box<HookPoint>),
    /// Another session may be refused.
    Change(ChangeAsker, Change),
    /// Another process should close the file of the next session. No extension is asked.
    Closed(ChangeAsker, Change),
    /// The session was left. The new session is none if another one is opened, or if nothing is known of it yet.
    Leave(ChangeAsker, Change, Option<NewSession>),
    /// Another place of the tree may be refused.
    Move(Asker<Navigated>, NavigateParams),
    /// A compaction ended with this outcome.
    Compacted(Box<EndedCompaction>),
}

impl Continuation {
    /// Does a run wait for the answer?
    fn belongs_to_run(&self) -> bool {
        // The machine withdraws the others itself when the run is aborted.
        matches!(self, Self::Hooks(_, point) if !matches!(**point, HookPoint::ToolCall { .. } | HookPoint::Compact { .. }))
    }
}

/// Why the extensions wake the session up.
pub(super) enum ExtensionEvent {
    /// The process at this place has sent a message.
    Message(usize, ProcessMessage),
    /// Extensions have answered a question of a run.
    Hook(Answered<Result<Answer, ProcessError>>),
    /// A step of loading has ended.
    Loading(Answered<LoadAnswer>),
    /// The deadline of loading has passed.
    LoadingLate,
    /// An extension has answered a command of a client.
    Client(Answered<Result<Answer, ProcessError>>),
    /// A run that was to begin has waited long enough for the response to its command.
    ResponseLate,
    /// A provider has answered.
    Provider(Answered<Result<Value, String>>),
    /// Something failed in a task.
    Failed(Failure),
}

impl Extensions {
    /// Nothing is loaded yet.
    pub(super) fn new(found: Vec<Found>, hooks: Hooks) -> Self {
        Self {
            hooks,
            links: ExtensionLinks::new(found),
            loading: Loading::default(),
            providers: ExtensionProviders::default(),
            client_requests: ClientRequests::default(),
            questions: Pending::default(),
            state: SentState::default(),
            failures: Failures::default(),
            guards: Guards::default(),
            tasks: RequestTasks::default(),
            subsessions: Subsessions::default(),
            dialogs: DialogNotices::default(),
            run: RunHooks::default(),
            next_turn: Vec::new(),
            shutdown: false,
        }
    }

    /// Finds the extensions and hooks of a session that works in `cwd`.
    pub(super) fn find(agent: &Agent, cwd: &Path) -> Self {
        let places = agent.places(cwd);
        Self::new(find(&places), Hooks::new(hooks::find(&places)))
    }

    /// Waits for the next event. Cancel-safe.
    pub(super) async fn next(&mut self) -> ExtensionEvent {
        // In turns (not biased): a process that sends without end does not hold up the answers of the others.
        tokio::select! {
            (place, message) = self.links.next_message() => ExtensionEvent::Message(place, message),
            answered = self.questions.next() => ExtensionEvent::Hook(answered),
            answered = self.loading.next() => answered.map_or(ExtensionEvent::LoadingLate, ExtensionEvent::Loading),
            answered = self.client_requests.next() => {
                answered.map_or(ExtensionEvent::ResponseLate, ExtensionEvent::Client)
            }
            answered = self.providers.next() => ExtensionEvent::Provider(answered),
            failure = self.failures.next() => ExtensionEvent::Failed(failure),
        }
    }

    /// Returns true while ordered commands wait, because an open question may change what they depend on.
    pub(super) fn holds_requests(&self) -> bool {
        self.questions.any(|continuation| {
            matches!(
                continuation,
                Continuation::Input(_)
                    | Continuation::Begin(_)
                    | Continuation::BeginUnprompted(_)
                    | Continuation::Change(..)
                    | Continuation::Closed(..)
                    | Continuation::Leave(..)
                    | Continuation::Move(..)
            )
        })
    }

    /// Returns true if a command has to wait for extensions that are being loaded.
    pub(super) fn holds(&self, command: &SessionCommand) -> bool {
        // The model in the state is known without extensions, unless the command line names a model of an extension.
        let asks_model = self.providers.is_unresolved() && matches!(command, SessionCommand::GetState(_));
        self.is_opening() && (held_commands::depends(command) || asks_model)
    }

    /// Returns true if extensions that are not loaded yet may know the model that the error is about.
    pub(super) fn may_resolve(&mut self, error: &SessionError) -> bool {
        !self.links.found.is_empty() && self.providers.resolve_later(error)
    }

    /// Returns true while extensions are loaded.
    pub(super) fn is_opening(&self) -> bool {
        self.loading.is_opening() || self.providers.is_resolving()
    }

    /// True when no extension request is pending and no extension task is running.
    pub(super) fn is_at_rest(&self) -> bool {
        !self.is_opening()
            && self.loading.is_at_rest()
            && self.questions.is_empty()
            && self.client_requests.is_empty()
            && self.providers.is_empty()
            && self.tasks.is_empty()
            // These messages are in memory only, so that an evicted session would lose them.
            && self.next_turn.is_empty()
            // They end with this session (GUARANTEES.md, 34).
            && self.subsessions.are_none()
    }

    /// Returns true while a client waits for an answer of extensions.
    pub(super) fn has_open_answers(&self) -> bool {
        self.holds_requests() || !self.client_requests.is_empty() || self.providers.is_logging_in()
    }

    /// Returns true if an extension wants the agent to end, and all earlier commands have their responses.
    pub(super) fn wants_shutdown(&self) -> bool {
        // It takes effect after the response to the command that wanted it (behaviour.md 12.6).
        self.shutdown && !self.has_open_answers()
    }

    /// The system prompt of the run that is under way, if it is another one than the session's.
    pub(super) fn prompt(&self) -> Option<&str> {
        self.run.prompt.as_deref()
    }

    /// The next run has this system prompt; none: the session's own.
    pub(super) fn set_prompt(&mut self, prompt: Option<String>) {
        self.run.prompt = prompt;
    }

    /// Messages that go with the next prompt.
    pub(super) fn next_turn(&mut self) -> &mut Vec<Arc<Message>> {
        &mut self.next_turn
    }

    /// The run is over.
    pub(super) fn on_idle(&mut self) {
        // The abort of this run must not shorten the time of handlers in the next one.
        self.run.abort_grace = abort_grace::AbortGrace::default();
    }

    /// An extension wants the agent to end.
    pub(super) fn request_shutdown(&mut self) {
        self.shutdown = true;
    }

    /// Adds a message of an extension to the next prompt.
    ///
    /// # Errors
    /// A message for the extension if too many messages wait.
    pub(super) fn add_to_next_turn(&mut self, message: Arc<Message>) -> Result<(), String> {
        if self.next_turn.len() >= limits::QUEUED {
            return Err(strings::queue_full(limits::QUEUED));
        }
        self.next_turn.push(message);
        Ok(())
    }

    /// Tools were switched on or off: extensions see it with the next message.
    pub(super) fn tools_changed(&mut self) {
        self.state.mark_stale();
    }

    /// Returns true if extensions may decide whether the project is trusted.
    pub(super) fn may_decide_on_trust(&self) -> bool {
        loading::may_decide(&self.links.found)
    }

    /// Replaces the registrations of one extension.
    pub(super) fn change_registered(&mut self, place: usize, registered: Registered) -> Vec<LoadAction> {
        if self.links.change_registered(place, registered) {
            vec![LoadAction::UseRegistrations]
        } else {
            Vec::new()
        }
    }

    /// A process has ended, and with it all registrations of its extensions. It is started again.
    pub(super) fn lose(&mut self, place: usize, reason: &str) -> Vec<LoadAction> {
        let Some((calls, failure)) = self.links.lose(place, reason) else {
            return Vec::new();
        };
        // Only this process could send them commands.
        self.subsessions.dispose_of(place);
        // Nothing takes the answers any more, and dialogs for them would stay open.
        for call in calls {
            self.tasks.withdraw(call);
        }
        vec![
            // First the tools and hooks go, so that no call reaches the process that is gone.
            LoadAction::UseRegistrations,
            LoadAction::Report(failure),
            self.loading.restart(&mut self.links, place),
        ]
    }

    /// The session has ended. Hooks and processes that are slow are not waited for.
    pub(super) async fn end(&mut self) {
        self.subsessions.dispose();
        // Bounded twice: hooks may hang, and a process may not answer when it is closed.
        let _in_time = tokio::time::timeout(limits::FAREWELL, self.hooks.finish()).await;
        if let Some(pool) = self.links.pool.take() {
            let closed = pool.close_session(&self.links.handle, "quit");
            let _in_time = tokio::time::timeout(limits::CLOSE, closed).await;
        }
    }

    /// Leaves the session: the processes forget it, and nothing of it is loaded any more.
    pub(super) fn leave(&mut self, reason: &str) {
        self.subsessions.dispose();
        self.loading.leave(&mut self.links, reason);
        // Dialogs are plain tasks: they end with all dialogs of the session that is left (`Dialogs::end_all`).
        self.tasks.cancel_models();
        // Logins go on: their clients still wait for a response.
        self.providers.give_up_refresh();
    }

    /// Replaces the extensions by those of the session that takes the place of the old one.
    pub(super) fn replace(&mut self, found: Vec<Found>, hooks: Hooks, start: Value, reason: &str) {
        self.links.found = found;
        self.hooks = hooks;
        // Guards that are missing in one session say nothing about those of another directory.
        self.guards = Guards::default();
        self.loading.set_start(start);
        // The processes open another session, of which they know nothing yet.
        self.state.forget();
        self.providers.leave(reason);
    }
}
