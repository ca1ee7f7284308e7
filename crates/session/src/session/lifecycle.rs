//! Start and eviction of a session, and its description. Sessions of sub-agents and extensions start here, too.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use agent::{Change, Deferred};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use wire::entry::SessionInfo;
use wire::reply::OpenSession;
use wire::state::Durability;
use wire::{Entry, EntryBody, Model, SessionHeader, ThinkingLevel};

use crate::error::SessionError;
use crate::factory::Agent;
use crate::limits;
use crate::off_thread::off_thread;
use crate::outbox::{Outbox, Responder};
use crate::retired::{ClientChoices, Retired};
use crate::strings;

use super::Session;
use super::available_commands::SentCommands;
use super::driver::Driver;
use super::extensions::{Extensions, SubsessionOptions};
use super::queries::Queries;
use super::session_core::{Beginning, SessionCore};
use super::session_file::{Empty, NewSession, Opening, forked_log, open_log};
use super::storage::Storage;
use super::tool_calls::{OpenSubagent, OpenedSubagent};

/// Entries of an unused session: its model and its thinking level.
const NOTED_AT_START: usize = 2;

impl Session {
    /// Begins a session. Nothing is asked of anybody and nothing is written.
    ///
    /// # Errors
    /// When the file cannot be opened; it is untouched then.
    pub fn start(agent: Arc<Agent>, outbox: Outbox, opening: &Opening) -> Result<Self, SessionError> {
        Self::begin(agent, outbox, opening, None, None)
    }

    /// Opens an evicted session again. With `selected` it goes on with this model and this level: the command line has chosen when the
    /// session was opened first.
    ///
    /// # Errors
    /// When the file cannot be opened; it is untouched then.
    pub(crate) fn start_again(
        agent: Arc<Agent>,
        outbox: Outbox,
        opening: &Opening,
        selected: Option<(Model, ThinkingLevel)>,
    ) -> Result<Self, SessionError> {
        Self::begin(agent, outbox, opening, None, selected)
    }

    /// Begins a session with a name (`--name`), which is its first entry if the session is new.
    ///
    /// # Errors
    /// When the file cannot be opened or the name cannot be written down.
    pub fn start_named(
        agent: Arc<Agent>,
        outbox: Outbox,
        opening: &Opening,
        name: Option<&str>,
    ) -> Result<Self, SessionError> {
        Self::begin(agent, outbox, opening, name, None)
    }

    fn begin(
        agent: Arc<Agent>,
        outbox: Outbox,
        opening: &Opening,
        name: Option<&str>,
        selected: Option<(Model, ThinkingLevel)>,
    ) -> Result<Self, SessionError> {
        let (log, cwd) = match opening {
            Opening::New { id } => (
                NewSession::new(agent.session_dir(&agent.cwd), &agent.cwd, None, id.as_deref()).log()?,
                agent.cwd.clone(),
            ),
            Opening::File(path) => open_log(path, &agent.cwd, None, Empty::Begins)?,
            Opening::Stored(path) => open_log(path, &agent.cwd, Some(&agent.cwd), Empty::IsRefused)?,
            Opening::Fork { source, id } => (forked_log(&agent, source, id.as_deref())?, agent.cwd.clone()),
        };
        // The directory of a stored session may have settings and a decision on trust of its own.
        let agent = agent.fitting(&cwd);
        let log = Storage::new(log, agent.durability());
        let context = log.context(log.leaf_id());
        let mut extensions = Extensions::find(&agent, &cwd);
        let mut start = match agent.choose(&context, true) {
            // Until it is known whether they bring it, a placeholder stands in, which no prompt can use.
            Err(error) if extensions.may_resolve(&error) => agent.choose_without_flags(&context)?,
            chosen => chosen?,
        };
        let (has_messages, has_level) = (!context.messages.is_empty(), context.thinking_level.is_some());
        // A session that was evicted before its first message may have its first entries in the file already.
        let is_noted = has_level && (has_messages || selected.is_some() && context.model.is_some());
        if let Some((model, thinking)) = selected {
            (start.model, start.thinking) = (model, thinking);
            extensions.providers.keep_model();
        }
        // Its answers alone would not change the model of a file of oh-my-pi.
        let is_replaced = has_messages
            && context.is_model_chosen
            && agent.options.start.model.is_some()
            && context.model != Some((start.model.provider.clone(), start.model.id.clone()));
        let beginning = Beginning {
            log,
            cwd,
            context,
            start,
        };
        let (core, warnings) = SessionCore::open(agent, &outbox, beginning, opener);
        let mut session = Self {
            driver: Driver::new(core, extensions),
            warnings,
            queries: Queries::default(),
            deferred: Deferred::default(),
            sent_commands: SentCommands::default(),
            closing: None,
            is_retired: false,
        };
        if let Some(name) = name {
            session.set_name(name)?;
        }
        let Driver { core, extensions, .. } = &mut session.driver;
        let is_resolved = !extensions.providers.is_unresolved();
        // A placeholder model must not get into the file; the entries follow when the real one is known.
        if (!is_noted || is_replaced) && is_resolved {
            // A session that has messages gets the missing level only, a new one its model, too (pi-core.md 2.4).
            let entries = core
                .conversation
                .choice
                .first_entries(has_messages && !is_replaced);
            core.conversation.log.direct().append_batch(entries)?;
        }
        Ok(session)
    }

    /// The session's header line.
    #[must_use]
    pub fn header(&self) -> &SessionHeader {
        self.driver.core.conversation.log.header()
    }

    /// What entries of this session survive from now on.
    pub(crate) fn set_durability(&mut self, durability: Durability) {
        self.driver
            .core
            .conversation
            .log
            .direct()
            .set_durability(durability);
    }

    /// Writes the file of a session that has no messages, so that it can be opened again. A file that cannot be written is
    /// tried again with the first message.
    pub(crate) fn store_empty(&mut self) {
        if let Err(error) = self.driver.core.conversation.log.direct().ensure_on_disk() {
            tracing::warn!("an empty session was not stored: {error}");
        }
    }

    /// Version of the agent.
    pub(crate) fn version(&self) -> &str {
        &self.driver.core.agent.version
    }

    /// The directory that it works in.
    #[must_use]
    pub fn cwd(&self) -> &Path {
        &self.driver.core.workspace.cwd
    }

    /// The session in a list of open sessions.
    pub(crate) fn describe(&self) -> OpenSession {
        self.driver.core.view().open_session()
    }

    /// Ends the session: the loop stops after this command, and the requests behind it are refused (`serve`).
    pub(super) async fn close(&mut self, responder: Responder<()>) {
        // After the end nothing would write the entries that wait.
        match self.driver.core.stored(false).await {
            Ok(()) => self.closing = Some(responder),
            Err(error) => responder.refuse(error).await,
        }
    }

    /// The model of the next run.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.driver.core.conversation.choice.model
    }

    /// Warnings from the choice of the model, for people.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// Names the session before it runs (`--name`).
    ///
    /// # Errors
    /// When the name cannot be written down.
    fn set_name(&mut self, name: &str) -> Result<(), SessionError> {
        let name = name.trim().to_owned();
        if !name.is_empty() {
            let log = self.driver.core.conversation.log.direct();
            log.append(EntryBody::SessionInfo(SessionInfo {
                name,
                extra: wire::Extra::default(),
            }))?;
        }
        Ok(())
    }

    /// The state that is needed to continue later; `None` while work is running or waiting, or when state would be lost.
    pub(super) fn retired(&self) -> Option<Retired> {
        let is_at_rest = self.driver.core.machine.is_idle()
            // Queued messages are in no file.
            && self.driver.core.machine.queues().is_empty()
            && self.driver.summaries.running.is_none()
            && self.deferred.is_empty()
            && self.closing.is_none()
            && !self.driver.core.machine.is_holding()
            && !self.driver.shells.are_busy()
            && self.driver.dialogs.open().is_empty()
            && self.driver.extensions.is_at_rest()
            && !self.driver.core.mcp.is_asking()
            && !self.driver.probes.are_running()
            && !self.queries.are_running()
            // Background processes would end with the session (GUARANTEES.md, 92).
            && !self.driver.core.tools.processes().are_running()
            // Entries that are only in memory would be lost.
            && self.driver.core.conversation.log.waiting() == 0
            && !self.driver.core.conversation.log.has_left();
        // Tools of the client and servers that it has set live in this session only: nothing could restore them.
        let is_equipped = self.driver.core.client_tools.are_in_use() || self.driver.core.mcp.has_set();
        // Going to another place of the tree is no entry: the file would lead back to its end.
        let newest = self
            .driver
            .core
            .conversation
            .log
            .entries()
            .last()
            .map(|entry| entry.id.as_str());
        let is_at_end = self.driver.core.conversation.log.leaf_id() == newest;
        // A conversation that is in no file could not be read again.
        let is_on_disk = self.driver.core.conversation.log.is_on_disk();
        if !is_at_rest || is_equipped || !is_at_end || !(is_on_disk || is_unused(&self.driver.core)) {
            return None;
        }
        // Without a file the session is made anew under its id.
        let path = self.driver.core.conversation.log.path().filter(|_| is_on_disk);
        Some(Retired {
            described: self.describe(),
            file: path.map(PathBuf::from),
            cwd: self.driver.core.workspace.cwd.clone(),
            choices: choices(&self.driver),
        })
    }

    /// Restores the choices of the client from before the eviction.
    pub(crate) fn restore_choices(&mut self, retired: Retired) {
        let choices = retired.choices;
        // In this order: limits that are set anew would warn the model again (`Change::Used` says that it was warned).
        self.driver.core.apply(Change::Settings(choices.settings));
        self.driver.core.apply(Change::Used(choices.used));
        self.driver.core.conversation.auto_compaction = choices.auto_compaction;
        self.driver.core.conversation.choice.chosen = choices.chosen;
        self.driver
            .core
            .conversation
            .log
            .direct()
            .set_durability(choices.durability);
        self.driver.shells.continue_from(choices.shells);
        if choices.mcp_subscribed {
            self.driver.core.mcp.subscribe();
        }
        self.driver
            .core
            .conversation
            .choice
            .fallbacks
            .set(choices.fallbacks);
        let tools = &mut self.driver.core.tools;
        if let Some(choice) = choices.tools {
            tools.restore_choice(choice);
        }
        tools.processes().set_wakeups(choices.process_wakeups);
        tools.subagents().set_level(choices.subagents);
        if let Some(mode) = choices.permission_mode {
            // Chosen anew and not copied, since the project may require a stricter mode by now.
            self.driver.core.choose_permission_mode(mode);
        }
    }
}

/// Returns true if the session has nothing but the model and the level that it began with, so that it can be made anew.
fn is_unused(core: &SessionCore) -> bool {
    let is_noted_anew = |entry: &Arc<Entry>| {
        matches!(
            entry.body,
            EntryBody::ModelChange(_) | EntryBody::ThinkingLevelChange(_)
        )
    };
    let entries = core.conversation.log.entries();
    core.machine.messages().is_empty() && entries.len() <= NOTED_AT_START && entries.iter().all(is_noted_anew)
}

/// What the client chose and no file says.
fn choices(driver: &Driver) -> ClientChoices {
    let choice = &driver.core.conversation.choice;
    // It stands in for a model that no extension has brought so far.
    let is_placeholder = driver.extensions.providers.is_unresolved() && choice.chosen.0.is_none();
    ClientChoices {
        settings: driver.core.machine.settings(),
        used: driver.core.machine.budget().session_use(),
        auto_compaction: driver.core.conversation.auto_compaction,
        permission_mode: driver.core.permissions.chosen(),
        durability: driver.core.conversation.log.durability(),
        chosen: choice.chosen.clone(),
        selected: (!is_placeholder).then(|| (choice.model.clone(), choice.thinking)),
        shells: driver.shells.made(),
        mcp_subscribed: driver.core.mcp.is_subscribed(),
        fallbacks: choice.fallbacks.names().to_vec(),
        tools: driver.core.tools.clients_choice(),
        process_wakeups: driver.core.tools.processes().has_wakeups(),
        subagents: driver.core.tools.subagents().level(),
    }
}

/// Opens sessions on the thread of the sessions, for one call.
fn opener() -> mpsc::Sender<OpenSubagent> {
    // The future of a call must be `Send`, and that of a session is not, so a local task opens sessions.
    let (sender, mut wanted) = mpsc::channel(1);
    tokio::task::spawn_local(async move {
        while let Some(wanted) = wanted.recv().await {
            open_subagent(wanted).await;
        }
    });
    sender
}

async fn open_subagent(wanted: OpenSubagent) {
    let OpenSubagent {
        agent,
        outbox,
        requests,
        ui,
        account,
        checkpoint,
        reply,
    } = wanted;
    // It looks for resources and extensions on disk, which must not hold up the other sessions
    // (docs/internals/decisions/01-one-thread.md).
    let started = off_thread(move || Session::start(agent, outbox, &Opening::New { id: None })).await;
    let mut session = match started {
        Ok(session) => session,
        Err(error) => return drop(reply.send(Err(error.to_string()))),
    };
    session.driver.dialogs.ask_through(ui);
    session.sent_commands = SentCommands::Off;
    // It ends with its task.
    session.driver.core.tools.processes().set_wakeups(false);
    // What the sub-agent uses counts for its owner, and the owner's limits for the sub-agent.
    if let Some(account) = account {
        session.driver.core.machine.join(account);
    }
    session.driver.core.conversation.lend_checkpoint(checkpoint);
    let model = session.model();
    let opened = OpenedSubagent {
        file: session.driver.core.conversation.log.file_text(),
        model: format!("{}/{}", model.provider, model.id),
    };
    // A call that was given up has dropped the other end of the requests, which ends the session at once.
    let _given_up = reply.send(Ok(opened));
    // Boxed, since a session may hold sessions.
    let run: Pin<Box<dyn Future<Output = ()>>> = session.run(requests);
    tokio::task::spawn_local(run);
}

/// An extension opens a session of its own.
pub(super) async fn open_subsession(
    driver: &mut Driver,
    place: usize,
    params: Value,
) -> Result<Value, String> {
    let options: SubsessionOptions = serde_json::from_value(params).map_err(|error| error.to_string())?;
    if driver.extensions.links.pool().is_none() {
        return Err("the extension is gone".to_owned());
    }
    driver.extensions.subsessions.check(place, &options)?;
    let cwd = match &options.cwd {
        Some(cwd) => driver.core.workspace.cwd.join(cwd),
        None => driver.core.workspace.cwd.clone(),
    };
    if !cwd.is_dir() {
        return Err(strings::no_such_directory(&cwd));
    }
    // The session of an extension must not escape the guards that its owner misses.
    let faults = driver.extensions.guards.faults();
    let agent = driver.core.agent.maker.make(&cwd, faults);
    let agent = options.configure(
        agent,
        driver.core.permissions.mode(),
        &driver.core.conversation.choice.model,
    );
    let (outbox, outgoing) = driver.core.outbox.for_subordinate(limits::OUTBOX);
    let opening = match &options.session_file {
        Some(file) => Opening::File(agent.cwd.join(file)),
        None => Opening::New { id: None },
    };
    let started = off_thread(move || Session::start(agent, outbox, &opening)).await;
    let mut session = started.map_err(|error| error.to_string())?;
    session.sent_commands = SentCommands::Off;
    // The extension gets all messages with the answer.
    session.driver.core.load_texts().await?;
    let state = serde_json::to_value(session.driver.core.state()).map_err(|error| error.to_string())?;
    let opened = json!({
        "state": state,
        "cwd": session.driver.core.workspace.cwd.to_string_lossy(),
        "messages": session.driver.core.machine.messages(),
        "activeTools": session.driver.core.tools.active_names(),
    });
    let extensions = &mut driver.extensions;
    let handle = options.handle();
    let requests = extensions
        .subsessions
        .insert(&extensions.links, place, handle, outgoing);
    if let Some(requests) = requests {
        // Boxed, since a session may hold sessions.
        let run: std::pin::Pin<Box<dyn Future<Output = ()>>> = session.run(requests);
        tokio::task::spawn_local(run);
    }
    Ok(opened)
}
