//! MCP servers of a session: started on first need, listed, asked. Nothing here waits: connections are made beside the
//! session, which hears of them as a happening. What is configured is `crate::mcp`'s business.
//!
//! What the session's own concerns make of a server lives beside this: `tools`, `results` (what is shown of what
//! it gives), `prompts` (its slash commands), `questions` (what it asks the user).

mod prompts;
mod questions;
mod resources;
mod results;
mod tools;

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use ::mcp::{Server, Snapshot, Status};
use ::tools::pattern::fits;
use tokio::sync::Notify;
use tokio::time::Sleep;
use wire::mcp::{McpReconnectParams, McpServer, McpServers, McpServersParams, McpStatus};
use wire::{Event, SessionCommand};

use crate::limits;
use crate::mcp::{self, Configured, Origin};

use super::Session;
use super::tool_calls::Layer;

use self::prompts::{Asked, Prompted};
use self::questions::Asks;

/// The servers of a session.
#[derive(Default)]
pub(super) struct Mcp {
    servers: Vec<Running>,
    /// Those that the client set.
    set: Vec<Configured>,
    /// Where the servers work; none as long as nothing was started.
    cwd: Option<PathBuf>,
    news: Arc<Notify>,
    /// When prompts stop waiting for servers that are being connected.
    late: Option<Pin<Box<Sleep>>>,
    /// A prompt of a server that is being got.
    asked: Option<Asked>,
    /// Does the client want to hear of changes?
    is_heard: bool,
    told: McpServers,
}

/// A server that was started.
struct Running {
    server: Server,
    origin: Origin,
}

/// Something to deal with.
pub(super) enum News {
    /// Something about a server has changed.
    Changed,
    /// Connecting takes long.
    Late,
    /// A prompt was got, or not.
    Prompted(Box<Prompted>),
}

impl Mcp {
    /// Waits for something to deal with. Cancel-safe.
    pub(super) async fn next(&mut self) -> News {
        tokio::select! {
            () = self.news.notified(), if !self.servers.is_empty() => News::Changed,
            () = due(&mut self.late) => News::Late,
            prompted = prompts::got(&mut self.asked) => News::Prompted(Box::new(prompted)),
            else => std::future::pending().await,
        }
    }

    /// Has the client set servers?
    pub(super) fn has_set(&self) -> bool {
        !self.set.is_empty()
    }

    /// Does the client want to hear of changes?
    pub(super) fn is_heard(&self) -> bool {
        self.is_heard
    }

    /// The client wants to hear of changes.
    pub(super) fn hear(&mut self) {
        self.is_heard = true;
    }

    /// Are servers being connected that a prompt waits for?
    pub(super) fn is_connecting(&self) -> bool {
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

/// Does a command need to know what servers offer?
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
            | SessionCommand::GetTools(_)
            | SessionCommand::SetActiveTools(_)
    )
}

impl Session {
    /// Starts servers for a command that needs them. True: it should wait for them. While a run is under way nothing waits.
    pub(super) async fn begin_mcp(&mut self, command: &SessionCommand) -> bool {
        if !needs_servers(command) {
            return false;
        }
        self.start_servers().await;
        if matches!(command, SessionCommand::Prompt(_)) {
            // A login or a mended configuration counts from the next turn on.
            for running in &self.mcp.servers {
                if running.server.snapshot().status == Status::NeedsLogin {
                    running.server.reconnect();
                }
            }
        }
        self.machine.is_idle() && self.mcp.is_connecting()
    }

    /// Starts what is configured, once for a working directory.
    async fn start_servers(&mut self) {
        if self.mcp.cwd.as_ref() == Some(&self.cwd) {
            return;
        }
        self.mcp.servers.clear();
        self.mcp.cwd = Some(self.cwd.clone());
        for problem in self.renew_servers() {
            self.notice("warning", problem).await;
        }
    }

    /// Makes the servers that run those that are wanted: of files, and of whoever sets some for this session; of one name the
    /// latter count. Servers that stay as they were keep their connection. Gives what is wrong with the files.
    fn renew_servers(&mut self) -> Vec<String> {
        let (mut wanted, problems) = mcp::find(&self.agent, &self.cwd);
        let set = &self.mcp.set;
        wanted.retain(|known| !set.iter().any(|set| set.config.is_called(&known.config.name)));
        wanted.extend(set.iter().cloned());
        let same = |running: &Running, wanted: &Configured| {
            *running.server.config() == wanted.config && running.origin == wanted.origin
        };
        self.mcp
            .servers
            .retain(|running| wanted.iter().any(|wanted| same(running, wanted)));
        for wanted in wanted {
            if !self.mcp.servers.iter().any(|running| same(running, &wanted)) {
                self.start_server(wanted);
            }
        }
        self.wait_for_servers();
        self.take_tools();
        problems
    }

    fn start_server(&mut self, configured: Configured) {
        let ask = Arc::new(Asks(self.ui()));
        let around = mcp::surroundings(&self.agent, &self.cwd, ask);
        let server = Server::start(configured.config, around, Arc::clone(&self.mcp.news));
        self.mcp.servers.push(Running {
            server,
            origin: configured.origin,
        });
    }

    fn wait_for_servers(&mut self) {
        if !self.mcp.servers.is_empty() {
            self.mcp.late = Some(Box::pin(tokio::time::sleep(limits::MCP_WAIT)));
        }
    }

    /// What files say of servers is read again, once they were wanted.
    pub(super) async fn reload_mcp(&mut self) {
        if self.mcp.cwd.is_some() {
            for problem in self.renew_servers() {
                self.notice("warning", problem).await;
            }
            self.tell_servers().await;
        }
    }

    /// The session goes on somewhere else: servers that work in another directory end, and others start when needed.
    pub(super) fn move_mcp(&mut self) {
        if self.mcp.cwd.as_ref().is_some_and(|cwd| *cwd != self.cwd) {
            self.mcp.cwd = None;
            self.mcp.servers.clear();
            self.mcp.late = None;
            self.take_tools();
        }
    }

    /// Ends all servers.
    pub(super) fn end_mcp(&mut self) {
        self.mcp.servers.clear();
    }

    pub(super) async fn on_mcp(&mut self, news: News) {
        match news {
            News::Late => {
                self.mcp.late = None;
                for (running, seen) in self.mcp.snapshots() {
                    if seen.status == Status::Connecting {
                        let name = &running.server.config().name;
                        tracing::info!("prompts do not wait for MCP server {name} any longer");
                    }
                }
            }
            News::Prompted(prompted) => return self.on_prompted(*prompted).await,
            News::Changed => {}
        }
        self.take_tools();
        self.tell_servers().await;
    }

    async fn tell_servers(&mut self) {
        let now = self.mcp.describe();
        if self.mcp.is_heard && now != self.mcp.told {
            self.mcp.told = now.clone();
            let servers = now.servers;
            self.outbox.tell(Event::McpServersChange { servers }).await;
        }
    }

    /// What servers offer has changed: the model is told with the next request.
    fn take_tools(&mut self) {
        let options = &self.agent.options;
        // A list of tools means servers, too, only if it names some (pi 1.x); an empty one means all.
        let limit = options.only_tools.as_ref();
        let limit =
            limit.filter(|only| only.is_empty() || only.iter().any(|name| name.starts_with(::mcp::PREFIX)));
        self.tools.replace(
            Layer::Mcp,
            tools::tools(&self.mcp.servers),
            |_| false,
            |name| {
                let named = |list: &[String]| list.iter().any(|item| fits(item, name));
                limit.is_none_or(|only| named(only)) && !named(&options.excluded_tools)
            },
        );
    }

    pub(super) async fn get_mcp_servers(&mut self) -> McpServers {
        self.start_servers().await;
        self.mcp.is_heard = true;
        self.mcp.told = self.mcp.describe();
        self.mcp.told.clone()
    }

    pub(super) async fn set_mcp_servers(&mut self, params: &McpServersParams) -> Result<McpServers, String> {
        if self.agent.mcp.off {
            return Err("MCP servers are switched off (--no-mcp)".to_owned());
        }
        self.mcp.set = mcp::of_session(&params.mcp_servers)?;
        self.start_servers().await;
        self.renew_servers();
        Ok(self.get_mcp_servers().await)
    }

    pub(super) async fn mcp_reconnect(&mut self, params: &McpReconnectParams) -> Result<(), String> {
        self.start_servers().await;
        self.mcp.is_heard = true;
        match &params.server {
            Some(name) => {
                let server = self.mcp.find(name);
                server
                    .ok_or_else(|| format!("There is no MCP server \"{name}\""))?
                    .reconnect();
            }
            None => self
                .mcp
                .servers
                .iter()
                .for_each(|running| running.server.reconnect()),
        }
        self.wait_for_servers();
        Ok(())
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
