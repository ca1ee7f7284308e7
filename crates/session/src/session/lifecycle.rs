//! Beginning: a new session, an opened one, a session that follows another in the same process; names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::Deferred;
use store::{Damage, ForkScope, SessionLog};
use wire::command::SessionNameParams;
use wire::entry::SessionInfo;
use wire::reply::OpenSession;
use wire::state::Durability;
use wire::{EntryBody, Event, Model, SessionHeader};

use crate::error::SessionError;
use crate::factory::Agent;
use crate::outbox::{Outbox, Responder};
use crate::strings;

use super::Session;
use super::client_tools::ClientTools;
use super::conversation::{Conversation, messages_of};
use super::dialogs::Dialogs;
use super::extensions::Extensions;
use super::machine::RecordedMachine;
use super::mcp::McpConnections;
use super::model_choice::ModelChoice;
use super::model_probes::ModelProbes;
use super::permission_wait::PermissionWait;
use super::queries::Queries;
use super::storage::Storage;
use super::tool_calls::{ToolCalls, ToolRegistry};
use super::user_shells::UserShells;
use super::workspace::Workspace;

/// Which session to begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opening {
    /// A new one, with this id if given.
    New {
        /// Id of the new session.
        id: Option<String>,
    },
    /// The one in this file; a file that is missing becomes a new session at that path.
    File(PathBuf),
    /// The same, but one whose working directory is gone works in the agent's, and a file with nothing in it is refused.
    Stored(PathBuf),
    /// A new one with everything that is in this file, all branches (`--fork`).
    Fork {
        /// The file to copy from.
        source: PathBuf,
        /// Id of the new session.
        id: Option<String>,
    },
}

impl Session {
    /// Begins a session. Nothing is asked of anybody and nothing is written.
    ///
    /// # Errors
    /// When the file cannot be opened; it is untouched then.
    pub fn start(agent: Arc<Agent>, outbox: Outbox, opening: &Opening) -> Result<Self, SessionError> {
        let (log, cwd) = match opening {
            Opening::New { id } => (
                new_log(agent.session_dir(&agent.cwd), &agent.cwd, None, id.as_deref())?,
                agent.cwd.clone(),
            ),
            Opening::File(path) => open_log(path, &agent.cwd, None, Empty::Begins)?,
            Opening::Stored(path) => open_log(path, &agent.cwd, Some(&agent.cwd), Empty::IsRefused)?,
            Opening::Fork { source, id } => (forked_log(&agent, source, id.as_deref())?, agent.cwd.clone()),
        };
        let agent = agent.fitting(&cwd);
        let log = Storage::new(log, agent.durability());
        let context = log.context(log.leaf_id());
        let mut extensions = Extensions::find(&agent, &cwd);
        let start = match agent.choose(&context, true) {
            // Until it is known whether they bring it, a placeholder stands in, which no prompt can use.
            Err(error) if extensions.may_resolve(&error) => agent.choose_without_flags(&context)?,
            chosen => chosen?,
        };
        let (has_messages, has_level) = (!context.messages.is_empty(), context.thinking_level.is_some());
        let mut tools = ToolRegistry::of_agent(&agent);
        let (messages, kept) = messages_of(context);
        let machine = RecordedMachine::open(agent.inputs.as_ref(), agent.loop_settings(), messages);
        let (permitting, notes) = PermissionWait::new(&agent, &cwd, None);
        let mut warnings = start.warnings.clone();
        warnings.extend(notes.iter().map(ToString::to_string));
        warnings.extend(tools.take_problems());
        let auto_compaction = agent.settings.compaction.enabled;
        let mut choice = ModelChoice::new(start);
        choice.fallbacks.set(agent.settings.fallback_models.clone());
        let resources = agent.load_resources(&cwd);
        let mut session = Self {
            dialogs: Dialogs::new(agent.settings.dialog_wait()),
            permitting,
            extensions,
            mcp: McpConnections::default(),
            workspace: Workspace::new(cwd, resources, !agent.options.dialect.is_newest_pi()),
            warnings,
            tools,
            agent,
            outbox: outbox.traced(&log.header().id),
            machine,
            conversation: Conversation::new(log, choice, kept, auto_compaction),
            answering: None,
            summarising: None,
            moving: None,
            asked_to_compact: None,
            calls: ToolCalls::new(),
            client_tools: ClientTools::new(outbox.routes().clone()),
            retry_timer: None,
            shells: UserShells::new(),
            queries: Queries::default(),
            probes: ModelProbes::default(),
            deferred: Deferred::default(),
            closing: None,
            is_retired: false,
        };
        session.tools.processes().connect(session.outbox.clone());
        let wakes = session.agent.settings.tools.process_wakeups;
        session.tools.processes().set_wakeups(wakes);
        session.read_todos();
        if (!has_messages || !has_level) && !session.extensions.providers.is_unresolved() {
            let entries = session.conversation.choice.first_entries(has_messages);
            session.conversation.log.direct().append_batch(entries)?;
        }
        Ok(session)
    }

    /// The session's header line.
    #[must_use]
    pub fn header(&self) -> &SessionHeader {
        self.conversation.log.header()
    }

    /// What entries of this session survive from now on.
    pub(crate) fn set_durability(&mut self, durability: Durability) {
        self.conversation.log.direct().set_durability(durability);
    }

    /// Writes the file of a session that has no messages, so that it can be opened again. A file that cannot be written is
    /// tried again with the first message.
    pub(crate) fn store_empty(&mut self) {
        if let Err(error) = self.conversation.log.direct().ensure_on_disk() {
            tracing::warn!("an empty session was not stored: {error}");
        }
    }

    /// Version of the agent.
    pub(crate) fn version(&self) -> &str {
        &self.agent.version
    }

    /// The directory that it works in.
    #[must_use]
    pub fn cwd(&self) -> &Path {
        &self.workspace.cwd
    }

    /// The session in a list of open sessions.
    pub(crate) fn describe(&self) -> OpenSession {
        self.view().open_session()
    }

    /// Ends the session once everything before was dealt with; the requests is not looked at any more.
    pub(super) async fn close(&mut self, responder: Responder<()>) {
        match self.stored(false).await {
            Ok(()) => self.closing = Some(responder),
            Err(error) => responder.refuse(error).await,
        }
    }

    /// Entries that waited are in the file now, or may be `kept` while another session takes the place of this one.
    ///
    /// # Errors
    /// They would be lost: what to tell a client that wants to leave the session.
    pub(super) async fn stored(&mut self, kept: bool) -> Result<(), String> {
        if self.conversation.log.waiting() == 0
            || self.conversation.log.flush(&self.outbox).await
            || (kept && self.conversation.log.has_room())
        {
            return Ok(());
        }
        Err(strings::unstored_entries(
            self.conversation.log.waiting(),
            self.conversation.log.error(),
        ))
    }

    /// The model of the next run.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.conversation.choice.model
    }

    /// Warnings from the choice of the model, for people.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// Names the session before it runs (`--name`).
    ///
    /// # Errors
    /// When the name cannot be written down.
    pub fn set_name(&mut self, name: &str) -> Result<(), SessionError> {
        let name = name.trim().to_owned();
        if !name.is_empty() {
            let log = self.conversation.log.direct();
            log.append(EntryBody::SessionInfo(SessionInfo {
                name,
                extra: wire::Extra::default(),
            }))?;
        }
        Ok(())
    }

    pub(super) async fn set_session_name(&mut self, params: &SessionNameParams) -> Result<(), String> {
        let name = self.conversation.store_name(&params.name, &self.outbox).await?;
        self.emit(Event::SessionInfoChanged { name: Some(name) }).await;
        Ok(())
    }

    /// Sends the warnings about the opened session.
    pub(super) async fn report_oddities(&mut self) {
        self.report_damage().await;
        let stored = PathBuf::from(&self.conversation.log.header().cwd);
        if !stored.as_os_str().is_empty() && stored != self.workspace.cwd && !stored.is_dir() {
            let message = strings::works_elsewhere(&stored, &self.workspace.cwd);
            self.outbox.notice("warning", message).await;
        }
    }

    async fn report_damage(&mut self) {
        let damage: &Damage = self.conversation.log.damage();
        if damage.is_none() {
            return;
        }
        let event = Event::SessionDamage {
            path: self
                .conversation
                .log
                .path()
                .map(|path| path.to_string_lossy().into_owned())
                .unwrap_or_default(),
            message: damage.to_string(),
            lines: damage.skipped.iter().map(|skipped| skipped.line).collect(),
            torn_bytes: damage.torn_bytes,
        };
        self.outbox.tell(event).await;
    }
}

/// A new session, in a file of its own in `dir` unless sessions are not kept.
pub(super) fn new_log(
    dir: Option<PathBuf>,
    cwd: &Path,
    parent: Option<&str>,
    id: Option<&str>,
) -> Result<SessionLog, SessionError> {
    let mut header = store::new_header(&cwd.to_string_lossy(), parent);
    if let Some(id) = id {
        id.clone_into(&mut header.id);
    }
    let path = dir.map(|dir| dir.join(store::paths::file_name(&header.timestamp, &header.id)));
    Ok(SessionLog::create(path, header)?)
}

/// A copy of a session for the working directory of the agent, on disk at once like every fork.
fn forked_log(agent: &Agent, source: &Path, id: Option<&str>) -> Result<SessionLog, SessionError> {
    // Nothing is asked of the source but to be read: it may be old, or open in another process.
    let log = store::open_read_only(source)?;
    let cwd = agent.cwd.to_string_lossy();
    let mut header = store::new_header(&cwd, Some(&source.to_string_lossy()));
    if let Some(id) = id {
        id.clone_into(&mut header.id);
    }
    let dir = agent.session_dir(&agent.cwd);
    let path = dir.map(|dir| dir.join(store::paths::file_name(&header.timestamp, &header.id)));
    let mut fork = log.fork(path, header, ForkScope::All)?;
    fork.ensure_on_disk()?;
    Ok(fork)
}

/// What becomes of a file with nothing in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Empty {
    /// A new session: the user named it on the command line, as in pi.
    Begins,
    /// It is another program's: a client named it.
    IsRefused,
}

/// The session in a file, and the directory it works in: `spare`, if there is one, when its own is gone. A missing file becomes
/// a new session at that path.
pub(super) fn open_log(
    path: &Path,
    cwd: &Path,
    spare: Option<&Path>,
    empty: Empty,
) -> Result<(SessionLog, PathBuf), SessionError> {
    let text = cwd.to_string_lossy();
    if !path.exists() {
        let header = store::new_header(&text, None);
        return Ok((
            SessionLog::create(Some(path.to_path_buf()), header)?,
            cwd.to_path_buf(),
        ));
    }
    let (log, _damage) = match empty {
        Empty::Begins => SessionLog::open(path, &text)?,
        Empty::IsRefused => SessionLog::open_existing(path, &text)?,
    };
    let stored = stored_cwd(&log, path, cwd, spare)?;
    Ok((log, stored))
}

/// The directory that a session says it works in; `cwd` when it says nothing, `spare` when that one is gone.
pub(super) fn stored_cwd(
    log: &SessionLog,
    path: &Path,
    cwd: &Path,
    spare: Option<&Path>,
) -> Result<PathBuf, SessionError> {
    let stored = &log.header().cwd;
    let stored = if stored.is_empty() {
        cwd.to_path_buf()
    } else {
        PathBuf::from(stored)
    };
    match (Agent::check_cwd(&stored, path, cwd), spare) {
        (Err(_), Some(spare)) if spare.is_dir() => Ok(spare.to_path_buf()),
        (checked, _) => checked.map(|()| stored),
    }
}
