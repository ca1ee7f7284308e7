//! Extensions of a session: what they registered, what they are asked and told, what they want. Nothing here waits: whoever
//! is asked answers later, as a happening, and what is to be done then travels with the question ([`Then`]).
//!
//! What the session's own concerns make of an answer lives beside them in this folder: `opening` (loading and leaving), `links`
//! (the processes), `listening` (who is asked), `events` (what they hear), `saying` (prompts and slash commands), `tools`
//! (theirs), `changing` (what they may refuse), `trusting` (what they say of the project), `subordinate` (sessions of
//! their own), `wishes` (what they want), `asking` (models, for them), `providers` (models of theirs), `login`, `state` (what
//! they can look at). The processes are `crate::extensions`' business.

mod asking;
mod boundaries;
mod builtin;
mod changing;
mod discovering;
mod ending;
mod events;
mod keys;
mod links;
mod listening;
mod login;
mod nested;
mod noting;
mod opening;
mod places;
mod providers;
mod requests;
mod saying;
mod state;
mod subordinate;
mod table;
#[cfg(test)]
mod tests;
mod tools;
mod trusting;
mod wishes;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;

use config::extensions::Found;
use door::line::{Failure, Registered};
use door::{Answer, Asking, Door, DoorError, Doors, Said};
use models::RegistryError;
use pinion_core::Input;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Sleep;
use wire::command::{BashParams, NavigateParams};
use wire::event::CompactionReason;
use wire::reply::{Accepted, Completions, LoggedIn, Navigated};
use wire::state::BashResult;
use wire::{Event, Message};

use crate::hooks::Hooks;
use crate::limits;
use crate::outbox::Responder;

use super::Session;
use super::compacting::Asker;
use super::switching::{Change, ChangeAsker};

pub(super) use self::changing::word;
pub(super) use self::events::Agenda;
pub(super) use self::saying::{Saying, Turn, Who};

/// The extensions of a session.
pub(super) struct Extended {
    /// What is loaded, in the order in which handlers run.
    found: Vec<Found>,
    /// Programs that are run for events.
    hooks: Hooks,
    /// What the processes call the session.
    handle: String,
    stage: Stage,
    /// The processes, as one.
    door: Option<Doors>,
    /// Those of the session that this one took the place of: calls of its extensions may be owed an answer.
    left: Option<Doors>,
    /// The processes, each for itself.
    links: Vec<links::Link>,
    registered: Vec<Registered>,
    /// Questions that are out.
    waits: HashMap<u64, Wait>,
    asked: u64,
    answers: JoinSet<Told>,
    /// When commands stop waiting for extensions that are being loaded.
    late: Option<Pin<Box<Sleep>>>,
    /// What the process knows of the session.
    state: state::Sent,
    /// Number of the turn that is under way.
    turn: u64,
    /// What is done for calls of theirs: questions to the user, tools; by the id of the call.
    dialogs: HashMap<u64, AbortHandle>,
    /// Failures on the way to a request.
    failures: (mpsc::Sender<Failure>, mpsc::Receiver<Failure>),
    /// The system prompt of the run that is under way, if an extension changed it.
    prompt: Option<String>,
    /// Messages that go with the next prompt.
    next_turn: Vec<Arc<Message>>,
    /// An extension wants the agent to end.
    shutdown: bool,
    /// Whether they are to decide on the project.
    trusting: trusting::Trusting,
    /// Sessions that they opened beside this one.
    subordinates: subordinate::Subordinates,
    /// The call of an extension that is answered when the session it asked for has begun for its extensions.
    owed: Option<u64>,
    /// The message that is written down next has been shown to extensions.
    ended: bool,
    boundary: boundaries::Boundary,
    patience: events::Patience,
    nested: nested::Nested,
    /// What the user is being asked, as extensions were told.
    prompted: Option<Value>,
    /// The providers that were taken over, with whose they are.
    providers: Vec<(String, door::line::Provider)>,
    /// How often the list of models has changed.
    models: u64,
    /// Where extensions find it.
    models_file: std::path::PathBuf,
    /// Requests of theirs to models, by the id of the call.
    asked_models: HashMap<u64, asking::Asked>,
    /// The command line names a model that nobody knows yet: why it was not found.
    unresolved: Option<String>,
    /// Does the command line say which model the session has, should extensions bring it?
    flags_count: bool,
    /// How long a run that a command began waits for the command's answer to be told first.
    answer_first: Option<Pin<Box<Sleep>>>,
}

/// How far the extensions are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// There are none, or they cannot be had.
    Absent,
    /// They are being loaded; what depends on them waits.
    Opening,
    /// They are there, or may still come.
    Open,
}

/// A question that is out.
struct Wait {
    then: Then,
    task: AbortHandle,
}

/// What an answer is for.
pub(super) enum Then {
    /// The process at this place was started, or not.
    Door(usize),
    /// Its extensions were loaded.
    Opened(usize),
    /// Those of the project were loaded there, too.
    Loaded(usize),
    /// They know that the session has begun.
    Started(usize),
    /// They may decide whether the project is trusted.
    Trust,
    /// They say which skills and templates they bring.
    Resources,
    /// An event may be told.
    Tell(Event),
    /// A prompt may have been changed, or dealt with.
    Input(Saying),
    /// A run is to begin.
    Begin(Turn),
    /// A slash command has ended.
    Command(Responder<Accepted>, String),
    /// An answer that is complete may be replaced before anything follows from it.
    Answer(Input),
    /// A message may be replaced before it is written down.
    Persist(Arc<Message>),
    /// Everything would be quiet.
    Settle(Event),
    /// A prepared call may be blocked or changed.
    Check(usize),
    /// The result of a call may be changed.
    Review(Input),
    /// What may follow in the arguments of a slash command.
    Complete(Responder<Completions>),
    /// Keys have been dealt with.
    Shortcut(Responder<()>, String),
    /// Another session may be refused.
    Change(ChangeAsker, Change),
    /// The session was left.
    Leave(ChangeAsker, Change),
    /// A compaction may be refused or made otherwise.
    Compact(CompactionReason),
    /// Another place of the tree may be refused.
    Move(Asker<Navigated>, NavigateParams),
    /// A command of the user may have been run otherwise.
    Bash(Responder<BashResult>, BashParams),
    /// A login has ended.
    Login(Responder<LoggedIn>, String),
    /// A provider has found out which models it has.
    Refreshed(String),
    /// The session is over.
    Farewell,
}

impl Then {
    /// Does a run wait for the answer?
    fn belongs_to_run(&self) -> bool {
        matches!(
            self,
            Self::Tell(_) | Self::Persist(_) | Self::Settle(_) | Self::Answer(_)
        )
    }
}

/// An answer, or the process.
pub(super) enum Outcome {
    Answer(Result<Answer, DoorError>),
    Door(Result<Door, DoorError>),
}

/// What came of a question.
pub(super) struct Told {
    ticket: u64,
    outcome: Outcome,
}

/// Something to deal with.
pub(super) enum News {
    /// By the process at this place.
    Said(usize, Said),
    Told(Told),
    Failed(Failure),
    /// Loading takes long.
    Late,
    /// A run that was to begin has waited long enough.
    Waited,
}

impl Extended {
    /// Nothing is loaded yet.
    pub(super) fn new(found: Vec<Found>, hooks: Hooks) -> Self {
        Self {
            found,
            hooks,
            handle: String::new(),
            stage: Stage::Absent,
            door: None,
            left: None,
            links: Vec::new(),
            registered: Vec::new(),
            waits: HashMap::new(),
            asked: 0,
            answers: JoinSet::new(),
            late: None,
            state: state::Sent::default(),
            turn: 0,
            dialogs: HashMap::new(),
            failures: mpsc::channel(limits::FAILURES),
            prompt: None,
            next_turn: Vec::new(),
            shutdown: false,
            trusting: trusting::Trusting::default(),
            subordinates: subordinate::Subordinates::default(),
            answer_first: None,
            owed: None,
            ended: false,
            boundary: boundaries::Boundary::default(),
            patience: events::Patience::default(),
            nested: nested::Nested::default(),
            prompted: None,
            providers: Vec::new(),
            models: 0,
            models_file: std::path::PathBuf::new(),
            asked_models: HashMap::new(),
            unresolved: None,
            flags_count: true,
        }
    }

    /// Waits for something to deal with. Cancel-safe.
    pub(super) async fn next(&mut self) -> News {
        loop {
            tokio::select! {
                (place, said) = links::heard(&mut self.links) => return News::Said(place, said),
                Some(told) = self.answers.join_next() => match told {
                    Ok(told) => return News::Told(told),
                    // Given up.
                    Err(_) => continue,
                },
                Some(failure) = self.failures.1.recv() => return News::Failed(failure),
                () = due(&mut self.late) => return News::Late,
                () = due(&mut self.answer_first) => return News::Waited,
            }
        }
    }

    /// Must ordered mail wait, since what it may depend on is being asked?
    pub(super) fn holds_mail(&self) -> bool {
        self.waits.values().any(|wait| {
            matches!(
                wait.then,
                Then::Input(_) | Then::Begin(_) | Then::Change(..) | Then::Leave(..) | Then::Move(..)
            )
        })
    }

    /// The model that the command line names may be one of theirs; until they are loaded there is this reason that it is not
    /// known. False when there are none who could bring it.
    pub(super) fn may_resolve(&mut self, error: &crate::HostError) -> bool {
        let is_unknown = matches!(
            error,
            crate::HostError::Registry(RegistryError::UnknownProvider(_) | RegistryError::ModelNotFound(_))
        );
        if !is_unknown || self.found.is_empty() {
            return false;
        }
        self.unresolved = Some(error.to_string());
        true
    }

    /// Is the model that the command line names unknown so far?
    pub(super) fn is_unresolved(&self) -> bool {
        self.unresolved.is_some()
    }

    /// Are they still being loaded?
    pub(super) fn is_opening(&self) -> bool {
        // The model that the command line names may be among those that are being looked for.
        let looks = |wait: &Wait| matches!(wait.then, Then::Refreshed(_));
        self.stage == Stage::Opening || (self.unresolved.is_some() && self.waits.values().any(looks))
    }

    /// Is nothing of theirs under way: nobody is asked, and nothing of theirs goes on?
    pub(super) fn is_at_rest(&self) -> bool {
        !self.is_opening()
            && self.waits.is_empty()
            && self.dialogs.is_empty()
            && self.asked_models.is_empty()
            && self.next_turn.is_empty()
            && self.owed.is_none()
            && self.subordinates.are_none()
    }

    /// Is somebody owed an answer that waits for them?
    pub(super) fn owes(&self) -> bool {
        self.waits.values().any(|wait| {
            matches!(
                wait.then,
                Then::Input(_)
                    | Then::Begin(_)
                    | Then::Complete(_)
                    | Then::Shortcut(..)
                    | Then::Command(..)
                    | Then::Login(..)
                    | Then::Change(..)
                    | Then::Leave(..)
                    | Then::Move(..)
                    | Then::Bash(..)
            )
        })
    }

    /// A run is to begin. The answer to a command that began it comes before it, if it comes at once (behaviour.md 12.2).
    fn answer_first(&mut self) {
        if self
            .waits
            .values()
            .any(|wait| matches!(wait.then, Then::Command(..)))
        {
            self.answer_first = Some(Box::pin(tokio::time::sleep(limits::ANSWER_FIRST)));
        }
    }

    /// Does a run wait for an answer to be told first?
    pub(super) fn is_answering_first(&self) -> bool {
        self.answer_first.is_some()
            && self
                .waits
                .values()
                .any(|wait| matches!(wait.then, Then::Command(..)))
    }

    /// Does an extension want the agent to end? What was asked before is answered first.
    pub(super) fn wants_shutdown(&self) -> bool {
        self.shutdown && !self.owes()
    }

    /// The run is over.
    pub(super) fn rest(&mut self) {
        self.patience = events::Patience::default();
    }

    /// The model is asked, whoever wanted it.
    pub(super) fn cross_boundary(&mut self) {
        self.boundary.is_crossed();
    }

    /// Something is done for a call of theirs.
    fn keep_task(&mut self, id: u64, task: AbortHandle) {
        self.dialogs.retain(|_, task| !task.is_finished());
        self.dialogs.insert(id, task);
    }

    /// Tools were switched on or off: extensions see it with the next message.
    pub(super) fn tools_changed(&mut self) {
        self.state.mark_stale();
    }

    /// Waits for an answer beside the session.
    fn wait(&mut self, then: Then, answer: impl Future<Output = Outcome> + Send + 'static) {
        self.asked += 1;
        let ticket = self.asked;
        let task = self.answers.spawn(async move {
            Told {
                ticket,
                outcome: answer.await,
            }
        });
        self.waits.insert(ticket, Wait { then, task });
    }

    fn wait_for(&mut self, then: Then, asking: Result<Asking, DoorError>) {
        self.wait(then, async move {
            Outcome::Answer(match asking {
                Ok(asking) => asking.await,
                Err(error) => Err(error),
            })
        });
    }

    /// Waits no longer for some answers; gives out what was to be done.
    pub(super) fn give_up(&mut self, which: impl Fn(&Then) -> bool) -> Vec<Then> {
        let mut tickets: Vec<u64> = self
            .waits
            .iter()
            .filter(|(_, wait)| which(&wait.then))
            .map(|(ticket, _)| *ticket)
            .collect();
        tickets.sort_unstable();
        let waits = tickets.iter().filter_map(|ticket| self.waits.remove(ticket));
        waits
            .map(|wait| {
                wait.task.abort();
                wait.then
            })
            .collect()
    }
}

impl Session {
    pub(super) async fn on_extension(&mut self, news: News) {
        match news {
            News::Said(place, said) => self.on_heard(place, said).await,
            News::Failed(failure) => self.extension_failed(failure).await,
            News::Late => self.extensions_are_late().await,
            News::Waited => {}
            News::Told(told) => self.on_told(told).await,
        }
    }

    async fn on_told(&mut self, told: Told) {
        // What was said before the answer comes first.
        self.hear_out().await;
        // One that was given up has an answer, too, now and then.
        let Some(Wait { then, .. }) = self.extensions.waits.remove(&told.ticket) else {
            return;
        };
        let mut failed = false;
        let answer = match told.outcome {
            Outcome::Door(door) => {
                if let Then::Door(place) = then {
                    self.on_door(place, door).await;
                }
                return;
            }
            Outcome::Answer(Ok(answer)) => {
                failed = !answer.errors.is_empty();
                for failure in answer.errors {
                    self.extension_failed(failure).await;
                }
                self.tell_reason(&answer.value).await;
                Ok(answer.value)
            }
            Outcome::Answer(Err(error)) => Err(error),
        };
        match then {
            Then::Door(_) | Then::Farewell => {}
            Then::Opened(place) => self.on_opened(place, answer).await,
            Then::Loaded(place) => self.on_loaded(place, answer).await,
            Then::Started(place) => self.on_started(place).await,
            Then::Trust => self.on_trust(answer.unwrap_or_default()).await,
            Then::Resources => self.on_discovered(&answer.unwrap_or_default()).await,
            Then::Tell(event) => {
                if matches!(event, Event::TurnEnd { .. }) {
                    self.take_boundary("turn_end", answer.unwrap_or_default()).await;
                }
                self.outbox.tell(event).await;
                self.carry_on().await;
            }
            Then::Input(saying) => self.on_input(saying, answer.unwrap_or_default()).await,
            Then::Begin(turn) => self.begin_turn(turn, answer.unwrap_or_default()).await,
            Then::Refreshed(provider) => self.on_refreshed(&provider, answer).await,
            Then::Login(origin, provider) => self.on_login(origin, provider, answer).await,
            Then::Command(origin, name) => self.on_command_end(origin, &name, answer).await,
            Then::Answer(input) => self.on_answer_seen(input, answer.unwrap_or_default()).await,
            Then::Persist(message) => self.on_ending_seen(message, answer.unwrap_or_default()).await,
            Then::Settle(event) => self.on_settle(event, answer.unwrap_or_default()).await,
            Then::Complete(origin) => self.on_completed(origin, answer).await,
            Then::Shortcut(origin, keys) => self.on_shortcut_end(origin, &keys, answer).await,
            Then::Check(slot) => self.on_checked(slot, answer).await,
            Then::Review(input) => self.on_reviewed(input, answer.unwrap_or_default()).await,
            Then::Change(asker, change) => self.on_change(asker, change, answer.unwrap_or_default()).await,
            Then::Leave(asker, change) => self.carry_out(asker, change).await,
            Then::Compact(reason) => self.on_compact(reason, answer.unwrap_or_default()).await,
            Then::Move(asker, params) => self.on_move(asker, params, answer.unwrap_or_default()).await,
            Then::Bash(origin, params) => {
                let answer = answer.ok().filter(|_| !failed);
                self.on_user_bash(origin, params, answer).await
            }
        }
    }

    /// Deals with everything that has been said so far.
    pub(super) async fn hear_out(&mut self) {
        while let Some((place, said)) = self.extensions.heard_already() {
            self.on_heard(place, said).await;
        }
    }

    /// An extension failed at something that goes on without it.
    pub(super) async fn extension_failed(&self, failure: Failure) {
        if let Some(stack) = &failure.stack {
            tracing::debug!("extension {}: {stack}", failure.path);
        }
        self.outbox
            .tell(Event::ExtensionError {
                extension_path: failure.path,
                event: failure.event,
                error: failure.error,
            })
            .await;
    }
}

async fn due(late: &mut Option<Pin<Box<Sleep>>>) {
    match late {
        Some(timer) => {
            timer.await;
            *late = None;
        }
        None => std::future::pending().await,
    }
}

/// A failure of the agent's own making, in the words of an extension's.
fn failure(path: &str, event: &str, error: impl ToString) -> Failure {
    Failure {
        path: path.to_owned(),
        event: event.to_owned(),
        error: error.to_string(),
        stack: None,
    }
}

/// Gives an event another member.
pub(super) fn put(event: &mut Value, name: &str, member: Value) {
    if let Value::Object(members) = event {
        members.insert(name.to_owned(), member);
    }
}

/// Members of an object; none of anything else.
pub(super) fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// Does an answer say `cancel`?
fn cancels(answer: &Value) -> bool {
    answer.get("cancel") == Some(&json!(true))
}
