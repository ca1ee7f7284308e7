//! Going on in another session: a new one, an opened file, a fork, a clone (pi-core.md 2.9). The run of the old one ends
//! properly first; its messages are on disk before the answer leaves.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::Input;
use models::Start;
use store::{Context, ForkScope, Listing, SessionLog, StoreError};
use wire::command::{BranchParams, ForkParams, NewSessionParams, NoParams, SwitchParams};
use wire::event::ChangeReason;
use wire::omp::{ContinueSessionParams, ContinuedSession};
use wire::reply::{Cancelled, Commands, Forked};
use wire::state::Durability;
use wire::table::Respond;
use wire::{EntryBody, Event, Message, SessionCommand};

use crate::error::SessionError;
use crate::factory::Agent;
use crate::off_thread::off_thread;
use crate::outbox::Responder;
use crate::strings;

use super::Session;
use super::conversation::messages_of;
use super::deferred::DeferredAction;
use super::dialogs::NoAnswer;
use super::extensions::word;
use super::file_search::directory;
use super::lifecycle::{Empty, new_log, open_log, stored_cwd};
use super::storage::same_file;

/// What takes the place of the session.
pub(super) enum Change {
    /// An empty session, or a session with these entries.
    New(NewSessionParams, Vec<wire::Entry>),
    /// An empty session with its file in this directory.
    NewIn(PathBuf),
    /// The session in a file, and the directory that it works in when its own is gone; none: then it stays closed.
    Switch(PathBuf, Option<PathBuf>),
    /// A new session with what came before an entry; the text is the answer's.
    Fork {
        entry: String,
        before: Option<String>,
        text: String,
        /// The conversation stays as it is; only the file begins anew (dialects.md 12).
        keeps_messages: bool,
    },
    /// A new session with the entries up to and including this one.
    At(String),
    /// A copy of the branch that ends here.
    Clone(String),
    /// None: the same session with its extensions anew.
    Reload,
}

impl Change {
    /// A fork before something that the user said; none when it is anything else.
    pub(super) fn fork(entry: &wire::Entry) -> Option<Self> {
        let EntryBody::Message(body) = &entry.body else {
            return None;
        };
        match body.message.as_ref() {
            Message::User(user) => Some(Self::Fork {
                entry: entry.id.clone(),
                before: entry.parent_id.clone(),
                text: user.content.text(),
                keeps_messages: false,
            }),
            _ => None,
        }
    }

    /// Commands of the user belong to the session they were typed in.
    pub(super) fn ends_shells(&self) -> bool {
        !matches!(self, Self::Reload)
    }

    /// Another log takes the place of the session's.
    pub(super) fn leaves_file(&self) -> bool {
        !matches!(self, Self::Reload)
    }

    fn reason(&self) -> Option<ChangeReason> {
        Some(match self {
            Self::New(..) | Self::NewIn(_) => ChangeReason::New,
            Self::Switch(..) => ChangeReason::Switch,
            Self::Fork { .. } | Self::At(_) | Self::Clone(_) => ChangeReason::Fork,
            Self::Reload => return None,
        })
    }
}

/// Who asked for another session, with the reply of the command.
pub(super) enum ChangeAsker {
    /// A client, with a command that only says whether the session changed.
    Session(Responder<Cancelled>),
    /// A client, with `continue_session`; true if the session existed before.
    Continue(Responder<ContinuedSession>, bool),
    /// A client, with `fork` or `branch`.
    Fork(Responder<Forked>),
    /// A client, with `reload_resources`.
    Reload(Responder<Commands>),
    /// An extension, by the id of its call.
    Extension(Option<u64>),
}

/// The outcome of a change that did not fail.
pub(super) struct Changed {
    /// Text of the user message that was forked at.
    pub(super) text: Option<String>,
    /// True if an extension refused.
    pub(super) cancelled: bool,
}

const DONE: Changed = Changed {
    text: None,
    cancelled: false,
};

impl Session {
    pub(super) async fn new_session(&mut self, responder: Responder<Cancelled>, params: NewSessionParams) {
        let params = match self.resolved(params) {
            Ok(params) => params,
            Err(error) => return responder.refuse(error).await,
        };
        self.change(ChangeAsker::Session(responder), Change::New(params, Vec::new()))
            .await;
    }

    pub(super) async fn switch_session(&mut self, responder: Responder<Cancelled>, params: SwitchParams) {
        let path = self.workspace.cwd.join(params.session_path);
        let spare = params.is_page.then(|| self.agent.home.clone());
        // Before the run is ended for nothing.
        let is_checked = params.is_page && !is_current(self.conversation.log.path(), &path).await;
        let wanted = path.clone();
        if is_checked && let Err(error) = off_thread(move || store::check_session(&wanted)).await {
            let error = match error {
                StoreError::Missing { .. } => strings::NO_SESSION_FILE.to_owned(),
                other => other.to_string(),
            };
            return responder.refuse(error).await;
        }
        self.change(ChangeAsker::Session(responder), Change::Switch(path, spare))
            .await;
    }

    /// Goes on in the newest session of a directory (dialects.md 14).
    pub(super) async fn continue_session(
        &mut self,
        responder: Responder<ContinuedSession>,
        params: ContinueSessionParams,
    ) {
        let Some(current) = self.conversation.log.path().map(Path::to_path_buf) else {
            return responder.refuse(strings::NOT_STORED).await;
        };
        let dir = self.workspace.cwd.join(params.session_dir);
        let listed = dir.clone();
        let found = off_thread(move || {
            let sessions = store::list(&listed, Listing::Plain)?;
            let newest = sessions.into_iter().find(|session| session.message_count > 0);
            let is_current = newest
                .as_ref()
                .is_some_and(|newest| same_file(&newest.path, &current));
            let is_there = current.parent().is_some_and(|parent| same_file(parent, &listed));
            Ok::<_, StoreError>((newest.map(|newest| newest.path), is_current, is_there))
        });
        let is_unused = self.machine.messages().is_empty();
        let change = match found.await {
            Err(error) => return responder.refuse(error.to_string()).await,
            Ok((Some(_), true, _)) => return responder.respond(Ok(self.view().continued(true))).await,
            Ok((Some(newest), ..)) => Change::Switch(newest, None),
            Ok((None, _, true)) if is_unused => {
                return responder.respond(Ok(self.view().continued(false))).await;
            }
            Ok((None, ..)) => Change::NewIn(dir),
        };
        let resumed = matches!(change, Change::Switch(..));
        self.change(ChangeAsker::Continue(responder, resumed), change)
            .await;
    }

    pub(super) async fn fork(&mut self, responder: Responder<Forked>, params: ForkParams) {
        let entry = self.conversation.log.entry(&params.entry_id).cloned();
        self.fork_at(responder, entry, strings::BAD_FORK).await;
    }

    /// The older name of `fork` (dialects.md 5, rows 5 and 6).
    pub(super) async fn branch(&mut self, responder: Responder<Forked>, params: BranchParams) {
        let BranchParams {
            entry_id,
            entry_index,
        } = params;
        let (entry, refusal) = match (entry_id, entry_index) {
            (None, Some(index)) => {
                // Line 0 is the header.
                let at = usize::try_from(index).ok().and_then(|line| line.checked_sub(1));
                let entry = at.and_then(|at| self.conversation.log.entries().get(at));
                (entry.cloned(), strings::BAD_BRANCH_INDEX)
            }
            (id, _) => {
                let entry = id.and_then(|id| self.conversation.log.entry(&id).cloned());
                (entry, strings::BAD_BRANCH)
            }
        };
        self.fork_at(responder, entry, refusal).await;
    }

    /// A client wants everything read again that files say about the session.
    pub(super) async fn reload(&mut self, responder: Responder<Commands>) {
        if !self.machine.is_idle() {
            let error = strings::RELOAD_BUSY.to_owned();
            return responder.refuse(error).await;
        }
        self.change(ChangeAsker::Reload(responder), Change::Reload).await;
    }

    async fn fork_at(
        &mut self,
        responder: Responder<Forked>,
        entry: Option<Arc<wire::Entry>>,
        refusal: &str,
    ) {
        let user = entry.and_then(|entry| Change::fork(&entry));
        match user {
            Some(fork) => self.change(ChangeAsker::Fork(responder), fork).await,
            None => responder.refuse(refusal).await,
        }
    }

    pub(super) async fn clone_session(&mut self, responder: Responder<Cancelled>) {
        match self.conversation.log.leaf_id().map(str::to_owned) {
            Some(leaf) if !self.machine.messages().is_empty() => {
                self.change(ChangeAsker::Session(responder), Change::Clone(leaf))
                    .await
            }
            _ => {
                responder.refuse(strings::NOTHING_TO_CLONE).await;
            }
        }
    }

    pub(super) async fn change_now(&mut self, asker: ChangeAsker, change: Change) {
        self.drive(Input::Abort).await;
        if change.ends_shells() {
            self.shells.cancel();
        }
        self.defer(DeferredAction::Change(asker, change));
    }

    /// The run has ended: makes the change and answers.
    pub(super) async fn carry_out(&mut self, asker: ChangeAsker, change: Change) {
        let reason = change.reason();
        let had_queued = !self.machine.queues().is_empty();
        let mut reloaded = None;
        let ends_processes = change.ends_shells();
        let (word, previous) = (word(&change), reason.and(self.conversation.log.file_text()));
        self.leave_extensions(word);
        let outcome = self.make(change).await;
        if let (Ok(_), Some(reason)) = (&outcome, reason) {
            self.dialogs.end_all(NoAnswer::SessionChanged, &self.outbox).await;
            if ends_processes {
                self.tools.processes().end().await;
            }
            if had_queued {
                // The queue of the old session is gone; clients that show it need the event.
                let (steering, follow_up) = self.machine.queues().texts();
                self.outbox.tell(Event::QueueUpdate { steering, follow_up }).await;
            }
            self.tell_changed(reason).await;
            self.report_oddities().await;
        }
        match (asker, outcome) {
            // Answered when the session has begun for its extensions, too.
            (ChangeAsker::Extension(Some(id)), Ok(_)) => self.extensions.loading.owe(id),
            (ChangeAsker::Reload(responder), Ok(_)) => {
                self.tell_changed(ChangeReason::Reload).await;
                reloaded = Some(responder);
            }
            (asker, outcome) => {
                self.reply_change(asker, outcome.map_err(|error| error.to_string()))
                    .await
            }
        }
        self.reopen_extensions(word, previous).await;
        if let Some(responder) = reloaded {
            // What there is to call is known when they are all there.
            let answer = SessionCommand::GetCommands(NoParams::default());
            let (mcp, host) = self.mcp();
            mcp.reload(host).await;
            self.start_servers(&answer).await;
            self.defer_first(DeferredAction::Reloaded(responder));
        }
    }

    async fn make(&mut self, change: Change) -> Result<Changed, SessionError> {
        match change {
            Change::New(params, entries) => {
                let parent = params.parent_session.filter(|parent| !parent.is_empty());
                let cwd = params
                    .cwd
                    .map_or_else(|| self.workspace.cwd.clone(), PathBuf::from);
                let durability = params.durability.unwrap_or(self.conversation.log.durability());
                let place = (cwd == self.workspace.cwd).then(|| self.view().next_session_dir(&self.agent));
                self.begin_anew(cwd, place, parent, entries, durability).await?;
            }
            Change::NewIn(dir) => {
                let (cwd, durability) = (self.workspace.cwd.clone(), self.conversation.log.durability());
                self.begin_anew(cwd, Some(Some(dir)), None, Vec::new(), durability)
                    .await?;
            }
            Change::Switch(path, spare) => self.switch_to(path, spare).await?,
            Change::Fork {
                before,
                text,
                keeps_messages,
                ..
            } => {
                self.fork_off(before, keeps_messages).await?;
                return Ok(Changed {
                    text: Some(text),
                    cancelled: false,
                });
            }
            Change::At(entry) => self.branch_off(entry).await?,
            // The leaf may have moved while the run ended.
            Change::Clone(leaf) => {
                let leaf = self.conversation.log.leaf_id().map_or(leaf, str::to_owned);
                self.branch_off(leaf).await?;
            }
            Change::Reload => {
                self.agent.extensions.rewrite_models(&self.agent.registry);
                self.renew_processes();
                self.load_anew();
            }
        }
        Ok(DONE)
    }

    /// Says which session the next events are about (web.md 2: before the response).
    pub(super) async fn tell_changed(&self, reason: ChangeReason) {
        let event = Event::SessionChanged {
            reason,
            session_id: self.conversation.log.header().id.clone(),
            session_file: self.conversation.log.file_text(),
            session_name: self.conversation.log.session_name().map(str::to_owned),
            message_count: self.machine.messages().len(),
        };
        self.outbox.tell(event).await;
    }

    /// With the directory that was asked for, if there is one: nothing is ended for a directory that is not there.
    fn resolved(&self, params: NewSessionParams) -> Result<NewSessionParams, String> {
        let home = self.agent.options.resources.home.as_deref();
        let cwd = params.cwd.filter(|cwd| !cwd.is_empty());
        let cwd = cwd
            .map(|cwd| directory(&cwd, &self.workspace.cwd, home))
            .transpose()?;
        Ok(NewSessionParams {
            cwd: cwd.map(|cwd| cwd.to_string_lossy().into_owned()),
            ..params
        })
    }

    /// Begins an empty session. Without a `place`, its file goes where settings of the directory say.
    async fn begin_anew(
        &mut self,
        cwd: PathBuf,
        place: Option<Option<PathBuf>>,
        parent: Option<String>,
        entries: Vec<wire::Entry>,
        durability: Durability,
    ) -> Result<(), SessionError> {
        let (agent, dir) = (Arc::clone(&self.agent), cwd.clone());
        let begin = move || {
            // The settings of another directory may name a place of their own.
            let place = place.unwrap_or_else(|| agent.fitting(&dir).session_dir(&dir));
            let mut log = new_log(place, &dir, parent.as_deref(), None)?;
            log.set_durability(durability);
            let says = |entry: &wire::Entry| matches!(entry.body, EntryBody::Message(_));
            let says_something = entries.iter().any(says);
            log.append_made(entries)?;
            if says_something {
                log.ensure_on_disk()?;
            }
            Ok::<_, SessionError>(log)
        };
        let log = off_thread(begin).await?;
        self.replace(log, cwd, true).await?;
        self.conversation.store_start(false, &self.outbox).await;
        Ok(())
    }

    async fn fork_off(&mut self, before: Option<String>, keeps_messages: bool) -> Result<(), SessionError> {
        let old = keeps_messages.then(|| (self.machine.messages().to_vec(), self.conversation.kept));
        match before {
            Some(before) => self.branch_off(before).await?,
            None => {
                let (cwd, parent) = (self.workspace.cwd.clone(), self.conversation.log.file_text());
                let durability = self.conversation.log.durability();
                let place = Some(self.view().next_session_dir(&self.agent));
                self.begin_anew(cwd, place, parent, Vec::new(), durability)
                    .await?;
            }
        }
        if let Some((messages, kept)) = old {
            self.open_machine(messages);
            self.conversation.kept = kept;
        }
        Ok(())
    }

    async fn branch_off(&mut self, leaf: String) -> Result<(), SessionError> {
        let header = store::new_header(
            &self.workspace.cwd.to_string_lossy(),
            self.conversation.log.file_text().as_deref(),
        );
        let path = self
            .view()
            .next_session_dir(&self.agent)
            .map(|dir| dir.join(store::paths::file_name(&header.timestamp, &header.id)));
        let durability = self.conversation.log.durability();
        let fork = move |old: &mut SessionLog| {
            let mut log = old.fork(path, header, ForkScope::Path(&leaf))?;
            log.set_durability(durability);
            let answered = |entry: &Arc<wire::Entry>| matches!(&entry.body, EntryBody::Message(body) if body.message.as_assistant().is_some());
            if log.entries().iter().any(answered) {
                log.ensure_on_disk()?;
            }
            Ok::<_, StoreError>(log)
        };
        let log = self.conversation.log.run(fork).await?;
        self.replace(log, self.workspace.cwd.clone(), false).await
    }

    async fn switch_to(&mut self, path: PathBuf, spare: Option<PathBuf>) -> Result<(), SessionError> {
        let is_current = is_current(self.conversation.log.path(), &path).await;
        if is_current && self.conversation.log.run(SessionLog::catch_up).await.is_ok() {
            // It is open already; what others have written is read, and the rest begins anew.
            let cwd = stored_cwd(&self.conversation.log, &path, &self.agent.cwd, spare.as_deref())?;
            let context = self.conversation.log.context(self.conversation.log.leaf_id());
            self.fit_agent(&cwd).await;
            let start = self.choose_for(&context, false).await?;
            self.workspace.cwd = cwd;
            self.take_up(context, start).await;
            return Ok(());
        }
        if is_current {
            // Another program put a file in its place: our own lock would be in the way. A copy in memory stands in, should
            // the file not open.
            let copy = |log: &mut SessionLog| {
                let header = log.header().clone();
                let copy = log.fork(None, header, ForkScope::All);
                let mut copy = copy.unwrap_or_else(|_| log.detached());
                copy.set_durability(log.durability());
                drop(std::mem::replace(log, copy));
            };
            self.conversation.log.run(copy).await;
        }
        if let Some(log) = self.conversation.log.take_left(&path).await {
            let cwd = stored_cwd(&log, &path, &self.agent.cwd, spare.as_deref());
            let cwd = cwd.unwrap_or_else(|_| self.workspace.cwd.clone());
            return self.replace(log, cwd, false).await;
        }
        let cwd = self.workspace.cwd.clone();
        let opening = move || open_log(&path, &cwd, spare.as_deref(), Empty::IsRefused);
        let (mut log, cwd) = off_thread(opening).await?;
        log.set_durability(self.conversation.log.durability());
        let is_empty = log.entries().is_empty();
        self.replace(log, cwd, false).await?;
        if is_empty {
            self.conversation.store_start(false, &self.outbox).await;
        }
        Ok(())
    }

    /// Another log takes the place of the current one. Queue modes stay; queues, model and level start anew: from the
    /// command line for an empty session, or from what the client chose since, else from what the session says.
    async fn replace(&mut self, log: SessionLog, cwd: PathBuf, is_new: bool) -> Result<(), SessionError> {
        self.fit_agent(&cwd).await;
        let context = log.context(log.leaf_id());
        let mut start = match self.choose_for(&context, is_new).await {
            Ok(start) => start,
            Err(error) => {
                self.conversation.log.leave(log);
                return Err(error);
            }
        };
        if is_new {
            let flags = &self.agent.options.start;
            let is_unresolved = self.extensions.providers.is_unresolved();
            self.conversation
                .choice
                .keep_chosen(flags, is_unresolved, &mut start);
        }
        self.conversation.log.replace(log);
        self.workspace.cwd = cwd;
        self.take_up(context, start).await;
        Ok(())
    }

    /// The machine begins another session. Queue modes and retries stay as they are.
    fn open_machine(&mut self, messages: Vec<Arc<Message>>) {
        let settings = self.machine.settings();
        self.apply(agent::Change::Open { settings, messages });
    }

    /// What the log says now takes the place of everything that the session was about.
    async fn take_up(&mut self, context: Context, start: Start) {
        let has_level = context.thinking_level.is_some();
        let has_messages = !context.messages.is_empty();
        let (messages, kept) = messages_of(context);
        self.conversation.kept = kept;
        self.open_machine(messages);
        self.read_todos();
        self.conversation.choice.restart(start);
        drop(self.shells.take_unheard());
        self.calls.reset();
        self.permitting = self.permitting.anew(&self.agent, &self.workspace.cwd);
        let (agent, cwd) = (Arc::clone(&self.agent), self.workspace.cwd.clone());
        self.workspace
            .set_resources(off_thread(move || agent.load_resources(&cwd)).await);
        let (mcp, host) = self.mcp();
        mcp.relocate(host);
        self.workspace.forget_system_prompt();
        if has_messages && !has_level {
            self.conversation.store_start(true, &self.outbox).await;
        }
    }
}

/// Returns true if the session has this file.
async fn is_current(current: Option<&Path>, path: &Path) -> bool {
    let (current, path) = (current.map(Path::to_path_buf), path.to_path_buf());
    off_thread(move || current.is_some_and(|current| same_file(&current, &path))).await
}

impl Agent {
    /// May a session work in this directory?
    pub(crate) fn check_cwd(stored: &Path, file: &Path, current: &Path) -> Result<(), SessionError> {
        if stored.is_dir() {
            return Ok(());
        }
        Err(SessionError::MissingCwd {
            stored: stored.to_path_buf(),
            file: file.to_path_buf(),
            current: current.to_path_buf(),
        })
    }
}
