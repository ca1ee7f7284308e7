//! Going on in another session: a new one, an opened file, a fork, a clone (pi-core.md 2.9). The run of the old one ends
//! properly first; its messages are on disk before the answer leaves.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use llm::registry::Start;
use pinion_core::{Input, Machine};
use store::{Context, ForkScope, SessionLog, StoreError};
use wire::command::{BranchParams, ForkParams, NewSessionParams, NoParams, SwitchParams};
use wire::event::ChangeReason;
use wire::reply::{Cancelled, Forked};
use wire::{Command, EntryBody, Event, Message, Reply};

use crate::agent::Agent;
use crate::error::HostError;
use crate::outbox::Origin;
use crate::strings;

use super::Session;
use super::compacting::Asker;
use super::dialogs::NoAnswer;
use super::extensions::word;
use super::lifecycle::{conversation, new_log, open_log, stored_cwd};
use super::prompting::Later;

/// What takes the place of the session.
pub(super) enum Change {
    /// An empty session, or one that begins with these entries.
    New(NewSessionParams, Vec<wire::Entry>),
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
    /// A new session with what is up to an entry, and the entry.
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

    fn reason(&self) -> Option<ChangeReason> {
        Some(match self {
            Self::New(..) => ChangeReason::New,
            Self::Switch(..) => ChangeReason::Switch,
            Self::Fork { .. } | Self::At(_) | Self::Clone(_) => ChangeReason::Fork,
            Self::Reload => return None,
        })
    }
}

const NOT_CANCELLED: Reply = Reply::Cancelled(Cancelled { cancelled: false });

impl Session {
    pub(super) async fn new_session(&mut self, origin: Origin, params: NewSessionParams) {
        let params = match self.resolved(params) {
            Ok(params) => params,
            Err(error) => return self.outbox.respond(origin, Err(error)).await,
        };
        self.change(Asker::Client(origin), Change::New(params, Vec::new()))
            .await;
    }

    pub(super) async fn switch_session(&mut self, origin: Origin, params: SwitchParams) {
        let path = self.cwd.join(params.session_path);
        let spare = params.is_page.then(|| self.agent.home.clone());
        // Before the run is ended for nothing.
        let is_current = self.log.path().is_some_and(|current| same_file(current, &path));
        if params.is_page
            && !is_current
            && let Err(error) = store::check_session(&path)
        {
            let error = match error {
                StoreError::Missing { .. } => strings::NO_SESSION_FILE.to_owned(),
                other => other.to_string(),
            };
            return self.outbox.respond(origin, Err(error)).await;
        }
        self.change(Asker::Client(origin), Change::Switch(path, spare))
            .await;
    }

    pub(super) async fn fork(&mut self, origin: Origin, params: ForkParams) {
        let entry = self.log.entry(&params.entry_id).cloned();
        self.fork_at(origin, entry, strings::BAD_FORK).await;
    }

    /// The older name of `fork` (dialects.md 5, rows 5 and 6).
    pub(super) async fn branch(&mut self, origin: Origin, params: BranchParams) {
        let BranchParams {
            entry_id,
            entry_index,
        } = params;
        let (entry, refusal) = match (entry_id, entry_index) {
            (None, Some(index)) => {
                // Line 0 is the header.
                let at = usize::try_from(index).ok().and_then(|line| line.checked_sub(1));
                let entry = at.and_then(|at| self.log.entries().get(at));
                (entry.cloned(), strings::BAD_BRANCH_INDEX)
            }
            (id, _) => {
                let entry = id.and_then(|id| self.log.entry(&id).cloned());
                (entry, strings::BAD_BRANCH)
            }
        };
        self.fork_at(origin, entry, refusal).await;
    }

    /// A client wants everything read again that files say about the session.
    pub(super) async fn reload(&mut self, origin: Origin) {
        if !self.machine.is_idle() {
            let error = strings::RELOAD_BUSY.to_owned();
            return self.outbox.respond(origin, Err(error)).await;
        }
        self.change(Asker::Client(origin), Change::Reload).await;
    }

    async fn fork_at(&mut self, origin: Origin, entry: Option<Arc<wire::Entry>>, refusal: &str) {
        let user = entry.and_then(|entry| Change::fork(&entry));
        match user {
            Some(fork) => self.change(Asker::Client(origin), fork).await,
            None => self.outbox.respond(origin, Err(refusal.to_owned())).await,
        }
    }

    pub(super) async fn clone_session(&mut self, origin: Origin) {
        match self.log.leaf_id().map(str::to_owned) {
            Some(leaf) if !self.machine.messages().is_empty() => {
                self.change(Asker::Client(origin), Change::Clone(leaf)).await
            }
            _ => {
                self.outbox
                    .respond(origin, Err(strings::NOTHING_TO_CLONE.to_owned()))
                    .await
            }
        }
    }

    pub(super) async fn change_now(&mut self, asker: Asker, change: Change) {
        self.drive(Input::Abort).await;
        if change.ends_shells() {
            self.shells.cancel();
        }
        self.later.push_back(Later::Change(asker, change));
    }

    /// The run has ended: makes the change and answers.
    pub(super) async fn carry_out(&mut self, asker: Asker, change: Change) {
        let reason = change.reason();
        let had_queued = self.machine.queued() > 0;
        let mut reloaded = None;
        let (word, previous) = (word(&change), reason.and(self.file_text()));
        self.leave_extensions(word);
        let outcome = self.make(change);
        if let (Ok(_), Some(reason)) = (&outcome, reason) {
            self.dialogs.end_all(NoAnswer::SessionChanged, &self.outbox).await;
            if had_queued {
                // What was queued for the old session is gone; clients that show it must hear of it.
                let (steering, follow_up) = self.machine.queue_texts();
                self.outbox.tell(Event::QueueUpdate { steering, follow_up }).await;
            }
            self.tell_changed(reason).await;
            self.report_oddities().await;
        }
        match (asker, outcome) {
            // Answered when the session has begun for its extensions, too.
            (Asker::Extension(Some(id)), Ok(_)) => self.extensions.owe(id),
            (Asker::Client(origin), Ok(_)) if reason.is_none() => {
                self.tell_changed(ChangeReason::Reload).await;
                reloaded = Some(origin);
            }
            (asker, outcome) => {
                self.reply(asker, outcome.map_err(|error| error.to_string()))
                    .await
            }
        }
        self.reopen_extensions(word, previous).await;
        if let Some(origin) = reloaded {
            // What there is to call is known when they are all there.
            let answer = Command::GetCommands(NoParams::default());
            self.reload_mcp().await;
            self.begin_mcp(&answer).await;
            self.later.push_front(Later::Held(origin, Box::new(answer)));
        }
    }

    fn make(&mut self, change: Change) -> Result<Reply, HostError> {
        match change {
            Change::New(params, entries) => {
                let parent = params.parent_session.filter(|parent| !parent.is_empty());
                let cwd = params.cwd.map_or_else(|| self.cwd.clone(), PathBuf::from);
                self.begin_anew(cwd, parent.as_deref(), entries)?;
            }
            Change::Switch(path, spare) => self.switch_to(&path, spare.as_deref())?,
            Change::Fork {
                before,
                text,
                keeps_messages,
                ..
            } => {
                self.fork_off(before, keeps_messages)?;
                return Ok(Reply::Forked(Forked {
                    text,
                    cancelled: false,
                }));
            }
            Change::At(entry) => self.branch_off(&entry)?,
            // The leaf may have moved while the run ended.
            Change::Clone(leaf) => {
                let leaf = self.log.leaf_id().map_or(leaf, str::to_owned);
                self.branch_off(&leaf)?;
            }
            Change::Reload => {
                self.agent.extensions.rewrite_models(&self.agent.registry);
                self.renew_processes();
                self.load_anew();
            }
        }
        Ok(NOT_CANCELLED)
    }

    /// Says which session the next events are about (web.md 2: before the response).
    pub(super) async fn tell_changed(&self, reason: ChangeReason) {
        let event = Event::SessionChanged {
            reason,
            session_id: self.log.header().id.clone(),
            session_file: self.file_text(),
            session_name: self.log.session_name().map(str::to_owned),
            message_count: self.machine.messages().len(),
        };
        self.outbox.tell(event).await;
    }

    /// With the directory that was asked for, if there is one: nothing is ended for a directory that is not there.
    fn resolved(&self, params: NewSessionParams) -> Result<NewSessionParams, String> {
        let cwd = params.cwd.filter(|cwd| !cwd.is_empty());
        let cwd = cwd.map(|cwd| self.directory(&cwd)).transpose()?;
        Ok(NewSessionParams {
            cwd: cwd.map(|cwd| cwd.to_string_lossy().into_owned()),
            ..params
        })
    }

    fn begin_anew(
        &mut self,
        cwd: PathBuf,
        parent: Option<&str>,
        entries: Vec<wire::Entry>,
    ) -> Result<(), HostError> {
        // Where its file goes may be the other directory's own business.
        let agent = self.agent.fitting(&cwd);
        let mut log = new_log(&agent, &cwd, parent, None)?;
        let says = |entry: &wire::Entry| matches!(entry.body, EntryBody::Message(_));
        let says_something = entries.iter().any(says);
        log.append_made(entries)?;
        if says_something {
            log.ensure_on_disk()?;
        }
        self.replace(log, cwd, true)?;
        self.note_start(false)
    }

    fn fork_off(&mut self, before: Option<String>, keeps_messages: bool) -> Result<(), HostError> {
        let old = keeps_messages.then(|| (self.machine.messages().to_vec(), self.kept));
        match before {
            Some(before) => self.branch_off(&before)?,
            None => self.begin_anew(self.cwd.clone(), self.file_text().as_deref(), Vec::new())?,
        }
        if let Some((messages, kept)) = old {
            self.machine = Machine::new(self.machine.settings, messages);
            self.kept = kept;
        }
        Ok(())
    }

    fn branch_off(&mut self, leaf: &str) -> Result<(), HostError> {
        let header = store::new_header(&self.cwd.to_string_lossy(), self.file_text().as_deref());
        let dir = self.agent.session_dir(&self.cwd);
        let path = dir.map(|dir| dir.join(store::paths::file_name(&header.timestamp, &header.id)));
        let mut log = self.log.fork(path, header, ForkScope::Path(leaf))?;
        let answered = |entry: &Arc<wire::Entry>| matches!(&entry.body, EntryBody::Message(body) if body.message.as_assistant().is_some());
        if log.entries().iter().any(answered) {
            log.ensure_on_disk()?;
        }
        self.replace(log, self.cwd.clone(), false)
    }

    fn switch_to(&mut self, path: &Path, spare: Option<&Path>) -> Result<(), HostError> {
        let is_current = self.log.path().is_some_and(|current| same_file(current, path));
        if is_current && self.log.catch_up().is_ok() {
            // It is open already; what others have written is read, and the rest begins anew.
            let cwd = stored_cwd(&self.log, path, &self.agent.cwd, spare)?;
            let context = self.log.context(self.log.leaf_id());
            self.fit_agent(&cwd);
            let start = self.choose_for(&context, false)?;
            self.cwd = cwd;
            return self.take_up(context, start);
        }
        if is_current {
            // Somebody put another file in its place: our own lock would be in the way. A copy in memory stands in, should
            // the file not open.
            let header = self.log.header().clone();
            self.log = match self.log.fork(None, header.clone(), ForkScope::All) {
                Ok(copy) => copy,
                Err(_) => SessionLog::create(None, header)?,
            };
        }
        let (log, cwd) = open_log(path, &self.cwd, spare)?;
        let is_empty = log.entries().is_empty();
        self.replace(log, cwd, false)?;
        if is_empty {
            self.note_start(false)?;
        }
        Ok(())
    }

    /// Another log takes the place of the current one. Queue modes stay; queues, model and level start anew: from the
    /// command line for an empty session, or from what the client chose since, else from what the session says.
    fn replace(&mut self, log: SessionLog, cwd: PathBuf, is_new: bool) -> Result<(), HostError> {
        self.fit_agent(&cwd);
        let context = log.context(log.leaf_id());
        let mut start = self.choose_for(&context, is_new)?;
        if is_new {
            self.keep_choice(&mut start);
        }
        (self.log, self.cwd) = (log, cwd);
        self.take_up(context, start)
    }

    /// What the log says now takes the place of everything that the session was about.
    fn take_up(&mut self, context: Context, start: Start) -> Result<(), HostError> {
        let has_level = context.thinking_level.is_some();
        let has_messages = !context.messages.is_empty();
        let (messages, kept) = conversation(context);
        self.kept = kept;
        self.machine = Machine::new(self.machine.settings, messages);
        self.load_todos();
        self.model = start.model;
        self.thinking = start.thinking;
        self.scope = start.scope;
        self.run_model = None;
        self.unheard.clear();
        self.calls.reset();
        self.permitting = self.permitting.anew(&self.agent, &self.cwd);
        self.resources = self.agent.load_resources(&self.cwd);
        self.move_mcp();
        self.system_prompt = None;
        if has_messages && !has_level {
            self.note_start(true)?;
        }
        Ok(())
    }

    /// The session file as text; none without persistence.
    pub(crate) fn file_text(&self) -> Option<String> {
        self.log.path().map(|path| path.to_string_lossy().into_owned())
    }
}

fn same_file(a: &Path, b: &Path) -> bool {
    a == b
        || a.canonicalize()
            .is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b))
}

impl Agent {
    /// May a session work in this directory?
    pub(crate) fn check_cwd(stored: &Path, file: &Path, current: &Path) -> Result<(), HostError> {
        if stored.is_dir() {
            return Ok(());
        }
        Err(HostError::MissingCwd {
            stored: stored.to_path_buf(),
            file: file.to_path_buf(),
            current: current.to_path_buf(),
        })
    }
}
