//! The MCP servers of a session: started on first need, listed, asked. Nothing here waits: connections are made in tasks, which
//! report with an [`McpEvent`]. Which servers are configured is the business of `crate::mcp`.
//!
//! `tools` has the tools of servers, `results` what a model sees of their results, `prompts` their slash commands, `questions`
//! the questions that they ask the user.

mod prompts;
mod questions;
mod resources;
mod results;
#[cfg(test)]
mod tests;
mod tools;

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use ::mcp::{Server, Snapshot, Status};
use extensions::line;
use tokio::sync::Notify;
use tokio::time::Sleep;
use wire::mcp::{McpReconnectParams, McpServer, McpServers, McpServersParams, McpStatus};
use wire::{Event, SessionCommand};

use crate::limits;
use crate::mcp::{self, Configured, Origin, ServerSource};
use crate::outbox::Outbox;

use super::dialogs::Ui;
use super::tool_calls::{Layer, ToolRegistry};

use self::prompts::Asked;
pub(super) use self::prompts::Prompted;
use self::questions::Asks;
pub(super) use self::results::Room;

/// The servers of a session.
#[derive(Default)]
pub(super) struct McpConnections {
    servers: Vec<Running>,
    /// The servers that the client set.
    set: Vec<Configured>,
    /// The servers that extensions register.
    registered: Vec<line::McpServer>,
    /// Where the servers work; none as long as nothing was started.
    cwd: Option<PathBuf>,
    news: Arc<Notify>,
    /// When prompts stop waiting for servers that are being connected.
    late: Option<Pin<Box<Sleep>>>,
    /// A prompt of a server that is being got.
    asked: Option<Asked>,
    /// The client wants to learn of changes.
    is_subscribed: bool,
    told: McpServers,
}

/// A server that was started.
struct Running {
    server: Server,
    origin: Origin,
}

/// An event of the connections.
pub(super) enum McpEvent {
    /// The state of a server has changed.
    Changed,
    /// Connecting takes long.
    Late,
    /// A prompt was got, or not.
    Prompted(Box<Prompted>),
}

impl McpConnections {
    /// Waits for the next event. Cancel-safe.
    pub(super) async fn next(&mut self) -> McpEvent {
        tokio::select! {
            // A server that was dropped may have left a notice behind.
            () = self.news.notified(), if !self.servers.is_empty() => McpEvent::Changed,
            () = due(&mut self.late) => McpEvent::Late,
            prompted = prompts::got(&mut self.asked) => McpEvent::Prompted(Box::new(prompted)),
            else => std::future::pending().await,
        }
    }

    /// Returns true if the client has set servers.
    pub(super) fn has_set(&self) -> bool {
        !self.set.is_empty()
    }

    /// Returns true if the client wants to learn of changes.
    pub(super) fn is_subscribed(&self) -> bool {
        self.is_subscribed
    }

    /// The client wants to learn of changes.
    pub(super) fn subscribe(&mut self) {
        self.is_subscribed = true;
    }

    /// Returns true while prompts wait for servers that are being connected.
    pub(super) fn is_connecting(&self) -> bool {
        // After the deadline nothing waits, although a server may still be connecting.
        self.late.is_some()
            && self
                .snapshots()
                .any(|(_, seen)| seen.status == Status::Connecting)
    }

    fn snapshots(&self) -> impl Iterator<Item = (&Running, Arc<Snapshot>)> {
        self.servers
            .iter()
            .map(|running| (running, running.server.snapshot()))
    }

    fn find(&self, name: &str) -> Option<&Server> {
        let servers = self.servers.iter().map(|running| &running.server);
        servers.into_iter().find(|server| server.config().is_called(name))
    }

    /// The servers, as clients see them.
    fn describe(&self) -> McpServers {
        let describe = |(running, seen): (&Running, Arc<Snapshot>)| {
            let config = running.server.config();
            let (status, error) = match &seen.status {
                Status::Connecting => (McpStatus::Connecting, None),
                Status::Connected => (McpStatus::Connected, None),
                Status::Failed(why) => (McpStatus::Failed, Some(why.clone())),
                Status::NeedsLogin => {
                    // In the words of a call that fails for this reason.
                    let error = ::mcp::McpError::Login(config.name.clone());
                    (McpStatus::NeedsLogin, Some(error.to_string()))
                }
                Status::Disabled => (McpStatus::Disabled, None),
            };
            McpServer {
                name: config.name.clone(),
                status,
                error,
                transport: match config.reach {
                    ::mcp::config::Reach::Stdio(_) => "stdio",
                    ::mcp::config::Reach::Http(_) => "http",
                },
                source: running.origin.as_str(),
                title: Some(seen.title.clone()).filter(|title| !title.is_empty()),
                tools: seen.lists.tools.iter().map(|tool| tool.name.clone()).collect(),
                prompts: seen
                    .lists
                    .prompts
                    .iter()
                    .map(|prompt| prompt.name.clone())
                    .collect(),
                resources: seen.lists.resources,
                notes: seen.lists.notes.clone(),
            }
        };
        McpServers {
            servers: self.snapshots().map(describe).collect(),
        }
    }
}

/// Returns true for a command that depends on what servers offer.
fn needs_servers(command: &SessionCommand) -> bool {
    matches!(
        command,
        SessionCommand::Prompt(_)
            | SessionCommand::Steer(_)
            | SessionCommand::FollowUp(_)
            | SessionCommand::QueueMessage(_)
            | SessionCommand::AbortAndPrompt(_)
            | SessionCommand::Continue(_)
            | SessionCommand::GetCommands(_)
            | SessionCommand::GetAvailableCommands(_)
            | SessionCommand::GetTools(_)
            | SessionCommand::SetActiveTools(_)
    )
}

/// The session as its servers need it.
pub(super) struct Host<'a> {
    pub(super) source: &'a dyn ServerSource,
    /// Where the servers work.
    pub(super) cwd: &'a Path,
    /// Asks the user for the servers.
    pub(super) ui: Ui,
    pub(super) tools: &'a mut ToolRegistry,
    pub(super) outbox: &'a Outbox,
}

impl McpConnections {
    /// Starts servers for a command that needs them. Returns true if the command should wait for them; nothing waits while a
    /// run is active.
    pub(super) async fn begin(
        &mut self,
        command: &SessionCommand,
        is_idle: bool,
        mut host: Host<'_>,
    ) -> bool {
        // A client that only looks at a session starts no process (GUARANTEES.md, 38).
        if !needs_servers(command) {
            return false;
        }
        // Also during a run, where nothing waits: a later turn has the tools.
        self.start(&mut host).await;
        if matches!(command, SessionCommand::Prompt(_)) {
            // A login or a mended configuration counts from the next turn on.
            for running in &self.servers {
                if running.server.snapshot().status == Status::NeedsLogin {
                    running.server.reconnect();
                }
            }
        }
        // A client that follows the servers reads the commands again when they change. Commands behind this one must not wait.
        let is_followed = self.is_subscribed && matches!(command, SessionCommand::GetCommands(_));
        is_idle && self.is_connecting() && !is_followed
    }

    /// Starts the configured servers, once for a working directory.
    async fn start(&mut self, host: &mut Host<'_>) {
        if self.cwd.as_deref() == Some(host.cwd) {
            return;
        }
        // Dropped servers end. These work in another directory.
        self.servers.clear();
        // Also if there is no server: the files are read once for a directory.
        self.cwd = Some(host.cwd.to_path_buf());
        let problems = self.renew(host);
        report(problems, host.outbox).await;
    }

    /// Starts and ends servers so that the wanted ones run. When names are equal, servers of the client come before servers of files,
    /// and servers of extensions come last, as in pi. Unchanged servers keep their connection. Returns the problems of the files.
    fn renew(&mut self, host: &mut Host<'_>) -> Vec<String> {
        let (mut wanted, problems) = host.source.servers(host.cwd);
        let set = &self.set;
        wanted.retain(|known| !set.iter().any(|set| set.config.is_called(&known.config.name)));
        wanted.extend(set.iter().cloned());
        for server in self.registered.iter().flat_map(mcp::of_extension) {
            if !wanted
                .iter()
                .any(|known| known.config.is_called(&server.config.name))
            {
                wanted.push(server);
            }
        }
        let same = |running: &Running, wanted: &Configured| {
            *running.server.config() == wanted.config && running.origin == wanted.origin
        };
        self.servers
            .retain(|running| wanted.iter().any(|wanted| same(running, wanted)));
        for wanted in wanted {
            if !self.servers.iter().any(|running| same(running, &wanted)) {
                self.connect(wanted, host);
            }
        }
        self.wait_for_servers();
        // Before any new server answers: the tools of servers that have ended must go.
        self.offer_tools(host.tools, host.source);
        problems
    }

    fn connect(&mut self, configured: Configured, host: &Host<'_>) {
        let ask = Arc::new(Asks(host.ui.clone()));
        let around = host.source.surroundings(host.cwd, ask);
        let server = Server::start(configured.config, around, Arc::clone(&self.news));
        self.servers.push(Running {
            server,
            origin: configured.origin,
        });
    }

    fn wait_for_servers(&mut self) {
        if !self.servers.is_empty() {
            self.late = Some(Box::pin(tokio::time::sleep(limits::MCP_WAIT)));
        }
    }

    /// Reads the configuration again, unless no server was needed so far.
    pub(super) async fn reload(&mut self, mut host: Host<'_>) {
        if self.cwd.is_some() {
            let problems = self.renew(&mut host);
            report(problems, host.outbox).await;
            self.announce(host.outbox).await;
        }
    }

    /// The session continues in another directory: servers that work elsewhere end, and others start when needed.
    pub(super) fn relocate(&mut self, host: Host<'_>) {
        if self.cwd.as_deref().is_some_and(|cwd| cwd != host.cwd) {
            self.cwd = None;
            self.servers.clear();
            self.late = None;
            // At once: the model must not see tools of servers that are gone until others connect.
            self.offer_tools(host.tools, host.source);
        }
    }

    /// Ends all servers.
    pub(super) fn end(&mut self) {
        self.servers.clear();
    }

    /// Deals with an event. Returns a prompt that was got from a server.
    pub(super) async fn accept(&mut self, event: McpEvent, host: Host<'_>) -> Option<Prompted> {
        match event {
            McpEvent::Late => {
                // No error: the servers go on connecting, and their tools come with a later request.
                self.late = None;
                for (running, seen) in self.snapshots() {
                    if seen.status == Status::Connecting {
                        let name = &running.server.config().name;
                        tracing::info!("prompts do not wait for MCP server {name} any longer");
                    }
                }
            }
            McpEvent::Prompted(prompted) => return Some(*prompted),
            McpEvent::Changed => {}
        }
        self.offer_tools(host.tools, host.source);
        self.announce(host.outbox).await;
        None
    }

    /// Tells a client that wants to know it what has changed.
    async fn announce(&mut self, outbox: &Outbox) {
        let now = self.describe();
        // A server reports each step of its connection, also if nothing changes for clients.
        if self.is_subscribed && now != self.told {
            self.told = now.clone();
            let servers = now.servers;
            outbox.tell(Event::McpServersChange { servers }).await;
        }
    }

    /// Gives the registry the tools that servers offer now. The model gets them with the next request.
    fn offer_tools(&self, registry: &mut ToolRegistry, source: &dyn ServerSource) {
        let tools = tools::tools(&self.servers);
        registry.replace(Layer::Mcp, tools, |_| false, |name| source.activates(name));
    }

    /// The reply of `get_mcp_servers`. From now on the client learns of changes.
    pub(super) async fn list(&mut self, mut host: Host<'_>) -> McpServers {
        self.start(&mut host).await;
        self.is_subscribed = true;
        // Remembered, so that the next event tells only of a difference from this reply.
        self.told = self.describe();
        self.told.clone()
    }

    /// Takes the servers that the client sets for this session.
    ///
    /// # Errors
    /// When one of them is invalid, or servers are switched off. Nothing changes then.
    pub(super) async fn set(
        &mut self,
        params: &McpServersParams,
        mut host: Host<'_>,
    ) -> Result<McpServers, String> {
        if host.source.is_off() {
            return Err("MCP servers are switched off (--no-mcp)".to_owned());
        }
        // Parsed as a whole before anything changes.
        self.set = mcp::of_session(&params.mcp_servers)?;
        self.start(&mut host).await;
        // The files were read when the servers started, and their problems reported.
        drop(self.renew(&mut host));
        Ok(self.list(host).await)
    }

    /// Takes the servers that extensions register now. Clients get a notice of problems with them, as with those of files.
    pub(super) async fn register(&mut self, mut registered: Vec<line::McpServer>, mut host: Host<'_>) {
        let too_many = registered.len() > ::mcp::limits::SERVERS;
        registered.truncate(::mcp::limits::SERVERS);
        if host.source.is_off() || registered == self.registered {
            return;
        }
        // Only those of new ones: the list changes with each extension.
        let defects = registered
            .iter()
            .filter(|server| !self.registered.contains(server))
            .filter_map(|server| mcp::of_extension(server).err());
        let too_many = too_many.then(|| {
            format!(
                "Extensions register at most {} MCP servers",
                ::mcp::limits::SERVERS
            )
        });
        report(defects.chain(too_many).collect(), host.outbox).await;
        self.registered = registered;
        // Before the first need of servers, none starts.
        if self.cwd.as_deref() == Some(host.cwd) {
            // The problems of the files were reported when the servers started.
            drop(self.renew(&mut host));
            self.announce(host.outbox).await;
        }
    }

    /// Connects one server again, or all of them. The connection is made later.
    ///
    /// # Errors
    /// When there is no server of this name.
    pub(super) async fn reconnect(
        &mut self,
        params: &McpReconnectParams,
        mut host: Host<'_>,
    ) -> Result<(), String> {
        self.start(&mut host).await;
        // The connection is made later, and the client learns of it by an event.
        self.is_subscribed = true;
        match &params.server {
            Some(name) => {
                let server = self.find(name);
                server
                    .ok_or_else(|| format!("There is no MCP server \"{name}\""))?
                    .reconnect();
            }
            None => self.servers.iter().for_each(|running| running.server.reconnect()),
        }
        // The next prompt waits for them, as after the start.
        self.wait_for_servers();
        Ok(())
    }
}

async fn report(problems: Vec<String>, outbox: &Outbox) {
    for problem in problems {
        outbox.notice("warning", problem).await;
    }
}

async fn due(late: &mut Option<Pin<Box<Sleep>>>) {
    match late {
        Some(timer) => {
            timer.await;
            // An ended timer would be ready at every turn of the loop.
            *late = None;
        }
        None => std::future::pending().await,
    }
}
