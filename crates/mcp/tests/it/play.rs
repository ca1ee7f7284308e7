//! Servers that are played by hand, so that they can misbehave, over pipes in memory.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pinion_mcp::{
    AskUser, Expander, HttpClient, Logins, Question, Reply, Server, ServerConfig, Snapshot, Status,
    Surroundings, Web,
};
use process::{Boxed, ChildProcess, Pipes, Spawn, SpawnSpec, Spawned};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Both ends of a connection, as the server has them.
pub(crate) struct Wire {
    lines: Lines<BufReader<DuplexStream>>,
    pub(crate) out: DuplexStream,
    pub(crate) errors: DuplexStream,
}

impl Wire {
    /// The next message; waits for ever when there is none any more.
    pub(crate) async fn next(&mut self) -> Value {
        match self.lines.next_line().await {
            Ok(Some(line)) => serde_json::from_str(&line).unwrap(),
            _ => std::future::pending().await,
        }
    }

    /// The next message of a method.
    pub(crate) async fn until(&mut self, method: &str) -> Value {
        loop {
            let message = self.next().await;
            if message["method"] == method {
                return message;
            }
        }
    }

    pub(crate) async fn say(&mut self, message: Value) {
        // The reader may be gone.
        let _gone = self.out.write_all(format!("{message}\n").as_bytes()).await;
    }

    pub(crate) async fn answer(&mut self, to: &Value, result: Value) {
        self.say(json!({"jsonrpc": "2.0", "id": to["id"], "result": result}))
            .await;
    }

    /// Answers the greeting, as a server of an older revision.
    pub(crate) async fn greet(&mut self) {
        let mut hello = self.next().await;
        if hello["method"] == "server/discover" {
            let error = json!({"code": -32601, "message": "Method not found"});
            self.say(json!({"jsonrpc": "2.0", "id": hello["id"], "error": error}))
                .await;
            hello = self.until("initialize").await;
        }
        let able = json!({"tools": {"listChanged": true}});
        let info = json!({"name": "played\u{1b}[31m", "version": "1"});
        let version = &hello["params"]["protocolVersion"];
        self.answer(
            &hello,
            json!({"protocolVersion": version, "capabilities": able, "serverInfo": info}),
        )
        .await;
    }

    /// Greets and offers these tools.
    pub(crate) async fn offer(&mut self, tools: Value) {
        self.greet().await;
        let list = self.until("tools/list").await;
        self.answer(&list, json!({"tools": tools})).await;
    }
}

type Play = Arc<dyn Fn(Wire) -> Boxed<'static, ()> + Send + Sync>;

struct Played(Play);

impl fmt::Debug for Played {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Played")
    }
}

impl Spawn for Played {
    fn spawn_child(&self, _: SpawnSpec) -> Boxed<'_, Spawned> {
        let (input, heard) = tokio::io::duplex(64 << 10);
        let (out, output) = tokio::io::duplex(64 << 10);
        let (errors_in, errors) = tokio::io::duplex(64 << 10);
        let wire = Wire {
            lines: BufReader::new(heard).lines(),
            out,
            errors: errors_in,
        };
        let child: Box<dyn ChildProcess> = Box::new(Task(tokio::spawn((self.0)(wire))));
        let pipes = Pipes {
            input: Box::new(input),
            output: Box::new(output),
            errors: Box::new(errors),
        };
        Box::pin(std::future::ready(Ok((child, pipes))))
    }
}

/// A server's play is its process.
struct Task(JoinHandle<()>);

impl ChildProcess for Task {
    fn ended(&mut self) -> Boxed<'_, String> {
        Box::pin(async {
            if !self.0.is_finished() {
                let _over = (&mut self.0).await;
            }
            "the play is over".to_owned()
        })
    }

    fn kill(&mut self) -> Boxed<'_, ()> {
        self.0.abort();
        Box::pin(std::future::ready(()))
    }
}

#[derive(Debug)]
struct NoWeb;

impl Web for NoWeb {
    fn client(&self, _: &str) -> Boxed<'_, Result<HttpClient, String>> {
        Box::pin(std::future::ready(Err("there is no network".to_owned())))
    }

    fn resolving(&self, _: Arc<dyn reqwest::dns::Resolve>) -> Boxed<'_, Result<HttpClient, String>> {
        Box::pin(std::future::ready(Err("there is no network".to_owned())))
    }
}

/// Says the same to every question, and keeps them.
pub(crate) struct Says(pub(crate) Arc<Mutex<Vec<Question>>>, pub(crate) Option<Reply>);

impl AskUser for Says {
    fn ask(&self, question: Question) -> Boxed<'static, Reply> {
        self.0.lock().unwrap().push(question);
        let reply = self.1.clone();
        Box::pin(async move {
            match reply {
                Some(reply) => reply,
                None => std::future::pending().await,
            }
        })
    }
}

pub(crate) fn played_with<F>(
    play: impl Fn(Wire) -> F + Send + Sync + 'static,
    ask: Says,
    more: Value,
) -> Server
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut entry = json!({"command": "played"});
    for (key, value) in more.as_object().unwrap() {
        entry[key] = value.clone();
    }
    let config = ServerConfig::read("p", &entry).unwrap();
    let played = Played(Arc::new(move |wire| Box::pin(play(wire))));
    let around = around(played, Arc::new(NoWeb), ask);
    Server::start(config, around, Arc::new(Notify::new()))
}

/// A server at this address.
pub(crate) fn reached(url: &str, web: Arc<dyn Web>) -> Server {
    let config = ServerConfig::read("p", &json!({"url": url})).unwrap();
    let no_play = Played(Arc::new(|_| Box::pin(std::future::ready(()))));
    let around = around(no_play, web, Says(Arc::default(), Some(Reply::Decline)));
    Server::start(config, around, Arc::new(Notify::new()))
}

fn around(played: Played, web: Arc<dyn Web>, ask: Says) -> Surroundings {
    Surroundings {
        spawn: Arc::new(played),
        env: Vec::new(),
        web,
        expand: Expander {
            lookup: Arc::new(|_| None),
            run: Arc::new(|_| None),
            home: None,
        },
        ask: Arc::new(ask),
        logins: Logins::new(PathBuf::from("/nonexistent/mcp-auth.json")),
        cwd: PathBuf::from("/tmp/größe"),
        version: "1".to_owned(),
    }
}

/// A server that plays this, with more time for a call than a test takes.
pub(crate) fn played<F>(play: impl Fn(Wire) -> F + Send + Sync + 'static) -> Server
where
    F: Future<Output = ()> + Send + 'static,
{
    played_within(60, play)
}

/// A server that plays this and has this many seconds for a call.
pub(crate) fn played_within<F>(seconds: u64, play: impl Fn(Wire) -> F + Send + Sync + 'static) -> Server
where
    F: Future<Output = ()> + Send + 'static,
{
    played_with(
        play,
        Says(Arc::default(), Some(Reply::Decline)),
        json!({"timeout": seconds}),
    )
}

/// A server that speaks for itself over its two streams.
pub(crate) fn played_raw<F>(play: impl Fn(DuplexStream, DuplexStream) -> F + Send + Sync + 'static) -> Server
where
    F: Future<Output = ()> + Send + 'static,
{
    played(move |wire| play(wire.lines.into_inner().into_inner(), wire.out))
}

/// Waits until the server is connected or has failed, and returns its state.
pub(crate) async fn settled(server: &mut Server) -> Arc<Snapshot> {
    tokio::time::timeout(Duration::from_secs(30), server.settled())
        .await
        .unwrap();
    server.snapshot()
}

/// Waits for a state.
pub(crate) async fn becomes(server: &Server, what: impl Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
    let waiting = async {
        loop {
            let seen = server.snapshot();
            if what(&seen) {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting)
        .await
        .unwrap()
}

/// Calls a tool; gives its text, or the error's.
pub(crate) async fn call(server: &Server, tool: &str) -> Result<String, String> {
    let (progress, _unseen) = mpsc::channel(4);
    let args = Map::new();
    let outcome = server
        .call(tool, &args, progress, &CancellationToken::new())
        .await;
    match outcome {
        Ok(outcome) => match outcome.blocks.first() {
            Some(pinion_mcp::Block::Text(text)) => Ok(text.clone()),
            other => Ok(format!("{other:?}")),
        },
        Err(error) => Err(error.to_string()),
    }
}

pub(crate) fn is_connected(seen: &Snapshot) -> bool {
    seen.status == Status::Connected
}

pub(crate) fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

pub(crate) fn tool(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}
