//! The servers of a session as clients see them. How a connection works is tested in the crate `mcp`.

use ::mcp::{AskUser, Expander, HttpClient, Logins, Surroundings, Web};
use process::{Boxed, ChildError, Spawn, SpawnSpec, Spawned};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::super::dialogs::Dialogs;
use super::*;
use crate::outbox::{Outgoing, outbox};

/// A source whose servers cannot be started.
#[derive(Default)]
struct Source {
    servers: Vec<Configured>,
    problems: Vec<String>,
    is_off: bool,
}

#[derive(Debug)]
struct Nothing;

impl Spawn for Nothing {
    fn spawn_child(&self, _: SpawnSpec) -> Boxed<'_, Spawned> {
        Box::pin(async {
            let source = std::io::Error::other("there is no such program");
            Err(ChildError::Spawn {
                program: "server".to_owned(),
                source,
            })
        })
    }
}

impl Web for Nothing {
    fn client(&self, _: &str) -> Boxed<'_, Result<HttpClient, String>> {
        Box::pin(async { Err("there is no network".to_owned()) })
    }

    fn resolving(&self, _: Arc<dyn ::mcp::Resolve>) -> Boxed<'_, Result<HttpClient, String>> {
        Box::pin(async { Err("there is no network".to_owned()) })
    }
}

impl ServerSource for Source {
    fn servers(&self, _: &Path) -> (Vec<Configured>, Vec<String>) {
        (self.servers.clone(), self.problems.clone())
    }

    fn surroundings(&self, cwd: &Path, ask: Arc<dyn AskUser>) -> Surroundings {
        Surroundings {
            spawn: Arc::new(Nothing),
            env: Vec::new(),
            web: Arc::new(Nothing),
            expand: Expander {
                lookup: Arc::new(|_| None),
                run: Arc::new(|_| None),
                home: None,
            },
            ask,
            logins: Logins::new("/nowhere".into()),
            cwd: cwd.to_path_buf(),
            version: "test".to_owned(),
        }
    }

    fn is_off(&self) -> bool {
        self.is_off
    }

    fn activates(&self, _: &str) -> bool {
        true
    }
}

struct Stage {
    source: Source,
    cwd: PathBuf,
    dialogs: Dialogs,
    tools: ToolRegistry,
    outbox: Outbox,
    sent: mpsc::Receiver<Outgoing>,
    mcp: McpConnections,
}

impl Stage {
    fn new(source: Source) -> Self {
        let (outbox, sent) = outbox(limits::OUTBOX);
        Self {
            source,
            cwd: "/one".into(),
            dialogs: Dialogs::new(None),
            tools: ToolRegistry::default(),
            outbox,
            sent,
            mcp: McpConnections::default(),
        }
    }

    fn parts(&mut self) -> (&mut McpConnections, Host<'_>) {
        let host = Host {
            source: &self.source,
            cwd: &self.cwd,
            ui: self.dialogs.ui(),
            tools: &mut self.tools,
            outbox: &self.outbox,
        };
        (&mut self.mcp, host)
    }

    async fn names(&mut self) -> Vec<(String, &'static str)> {
        let (mcp, host) = self.parts();
        let servers = mcp.list(host).await.servers;
        servers
            .into_iter()
            .map(|server| (server.name, server.source))
            .collect()
    }

    async fn set(&mut self, servers: Value) -> Result<McpServers, String> {
        let params = McpServersParams {
            mcp_servers: servers.as_object().unwrap().clone(),
        };
        let (mcp, host) = self.parts();
        mcp.set(&params, host).await
    }

    fn notices(&mut self) -> Vec<String> {
        let mut notices = Vec::new();
        while let Ok(Outgoing::Event(event)) = self.sent.try_recv() {
            if let Event::Notice { message, .. } = &*event {
                notices.push(message.clone());
            }
        }
        notices
    }
}

fn server(name: &str, command: &str) -> Configured {
    let servers = json!({name: {"command": command}});
    let mut servers = mcp::of_session(servers.as_object().unwrap()).unwrap();
    Configured {
        origin: Origin::User,
        ..servers.remove(0)
    }
}

fn configured() -> Source {
    Source {
        servers: vec![server("files", "a"), server("web", "b")],
        problems: vec!["mcp.json: odd".to_owned()],
        is_off: false,
    }
}

#[tokio::test]
async fn commands_without_need_start_no_server() {
    let mut stage = Stage::new(configured());
    let (mcp, host) = stage.parts();
    let command = SessionCommand::GetState(Default::default());
    assert!(!mcp.begin(&command, true, host).await);
    assert!(stage.mcp.servers.is_empty() && stage.notices().is_empty());
}

#[tokio::test]
async fn prompts_wait_only_while_idle() {
    let command = SessionCommand::GetCommands(Default::default());
    for is_idle in [true, false] {
        let mut stage = Stage::new(configured());
        let (mcp, host) = stage.parts();
        assert_eq!(mcp.begin(&command, is_idle, host).await, is_idle);
        assert_eq!(stage.notices(), ["mcp.json: odd"]);
    }
}

#[tokio::test]
async fn servers_start_once_per_directory() {
    let mut stage = Stage::new(configured());
    let both = [("files".to_owned(), "user"), ("web".to_owned(), "user")];
    assert_eq!(stage.names().await, both);
    assert_eq!(stage.names().await, both);
    assert_eq!(stage.notices().len(), 1, "the files were read once");
    stage.cwd = "/two".into();
    let (mcp, host) = stage.parts();
    mcp.relocate(host);
    assert!(stage.mcp.servers.is_empty(), "servers of the other directory end");
    assert_eq!(stage.names().await, both);
    assert_eq!(stage.notices().len(), 1, "and are read again");
}

#[tokio::test]
async fn client_servers_replace_configured_ones() {
    let mut stage = Stage::new(configured());
    let servers = stage.set(json!({"web": {"command": "mine"}})).await.unwrap();
    let seen: Vec<_> = servers
        .servers
        .iter()
        .map(|server| (server.name.as_str(), server.source))
        .collect();
    assert_eq!(seen, [("files", "user"), ("web", "session")]);
    assert!(stage.mcp.has_set());
    let invalid = stage.set(json!({"web": {"command": 7}})).await;
    assert!(invalid.is_err());
    assert_eq!(stage.names().await.len(), 2, "an invalid list changes nothing");
    stage.set(Value::Object(Map::new())).await.unwrap();
    assert_eq!(stage.names().await[1], ("web".to_owned(), "user"));
}

#[tokio::test]
async fn configured_servers_come_before_those_of_extensions() {
    let mut stage = Stage::new(configured());
    stage.names().await;
    let server = |name: &str| line::McpServer {
        name: name.to_owned(),
        config: json!({"command": "x"}),
    };
    let (mcp, host) = stage.parts();
    mcp.register(vec![server("web"), server("kit"), server("kit")], host)
        .await;
    let named = |name: &str, source: &'static str| (name.to_owned(), source);
    let all = [
        named("files", "user"),
        named("web", "user"),
        named("kit", "extension"),
    ];
    assert_eq!(stage.names().await, all);
    let (mcp, host) = stage.parts();
    mcp.register(Vec::new(), host).await;
    assert_eq!(stage.names().await, all[..2]);
}

#[tokio::test]
async fn unknown_server_is_not_reconnected() {
    let mut stage = Stage::new(configured());
    let params = McpReconnectParams {
        server: Some("none".to_owned()),
    };
    let (mcp, host) = stage.parts();
    let error = mcp.reconnect(&params, host).await.unwrap_err();
    assert_eq!(error, "There is no MCP server \"none\"");
}

#[tokio::test]
async fn switched_off_servers_cannot_be_set() {
    let mut stage = Stage::new(Source {
        is_off: true,
        ..Source::default()
    });
    assert!(stage.set(json!({})).await.unwrap_err().contains("--no-mcp"));
}

#[tokio::test]
async fn failed_server_is_announced_to_listeners() {
    let mut stage = Stage::new(configured());
    stage.names().await;
    let failed = tokio::time::timeout(limits::MCP_WAIT, async {
        loop {
            let event = stage.mcp.next().await;
            let (mcp, host) = stage.parts();
            mcp.accept(event, host).await;
            let servers = stage.mcp.describe().servers;
            if servers.iter().all(|server| server.status == McpStatus::Failed) {
                break servers;
            }
        }
    });
    let servers = failed.await.unwrap();
    assert!(servers[0].error.as_ref().unwrap().contains("no such program"));
    let mut changes = 0;
    while let Ok(Outgoing::Event(event)) = stage.sent.try_recv() {
        changes += usize::from(matches!(*event, Event::McpServersChange { .. }));
    }
    assert!(changes > 0);
}
