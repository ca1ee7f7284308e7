//! What one user of the soak does: opens sessions, prompts them, closes, deletes or forgets them, and comes back later.

use std::collections::VecDeque;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use testkit::llm::{Reply, Request};

use super::client::Client;
use crate::fuzz::prng::Prng;

/// Prompts to a session before the next one is opened.
const PROMPTS_EACH: u64 = 25;
/// Sessions that a worker leaves open for the agent to evict; the oldest is then visited again, closed and deleted.
const LEFT_OPEN: usize = 4;

/// Tasks for the model, one per prompt. The name is that of a tool, followed by the arguments of the call.
fn tasks() -> [(&'static str, Value); 9] {
    [
        ("bash", json!({"command": "echo soak; cat notes.txt | wc -l"})),
        ("read", json!({"path": "notes.txt"})),
        (
            "write",
            json!({"path": "out.txt", "content": "one\ntwo\nthree\n"}),
        ),
        // Succeeds after a write and fails otherwise.
        (
            "edit",
            json!({"path": "out.txt", "edits": [{"oldText": "two", "newText": "2"}]}),
        ),
        ("grep", json!({"pattern": "al", "path": "."})),
        ("ls", json!({"path": "."})),
        ("mcp__soak__echo", json!({})),
        ("note", json!({})),
        ("bash", json!({"command": "sleep 0.01 & seq 200"})),
    ]
}

/// Rare tasks: the MCP server or the extension ends in the middle of a call.
const CRASH_SERVER: &str = "mcp__soak__crash";
const CRASH_EXTENSION: &str = "crash_extension";

/// The scripted model: calls the tool that the prompt names, then answers.
pub(super) fn reply(request: &Request) -> Reply {
    let messages = request.body.get("messages").and_then(Value::as_array);
    let content = messages
        .and_then(|messages| messages.last()?.get("content"))
        .map(Value::to_string)
        .unwrap_or_default();
    if content.contains("tool_result") {
        return Reply::text_deltas(20, 10);
    }
    let call = format!("call_{}", request.n);
    for name in [CRASH_SERVER, CRASH_EXTENSION] {
        if content.contains(&format!("use {name}")) {
            return Reply::tool(call, name, json!({}));
        }
    }
    let number = content.split("task ").nth(1).and_then(|rest| {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<usize>().ok()
    });
    match number.and_then(|number| tasks().into_iter().nth(number)) {
        Some((name, arguments)) => Reply::tool(call, name, arguments),
        None => Reply::text(["There is nothing to do."]),
    }
}

/// What a worker did, for the report.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Done {
    pub(super) prompts: u64,
    pub(super) opened: u64,
    pub(super) reopened: u64,
    pub(super) closed: u64,
    pub(super) deleted: u64,
    pub(super) clients: u64,
    pub(super) reconnects: u64,
    pub(super) server_crashes: u64,
    pub(super) extension_crashes: u64,
}

impl Done {
    /// The sum of both.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            prompts: self.prompts + other.prompts,
            opened: self.opened + other.opened,
            reopened: self.reopened + other.reopened,
            closed: self.closed + other.closed,
            deleted: self.deleted + other.deleted,
            clients: self.clients + other.clients,
            reconnects: self.reconnects + other.reconnects,
            server_crashes: self.server_crashes + other.server_crashes,
            extension_crashes: self.extension_crashes + other.extension_crashes,
        }
    }
}

/// A session that was left open.
struct Left {
    handle: String,
    file: Option<String>,
}

/// A user.
pub(super) struct Worker {
    address: String,
    directory: PathBuf,
    name: String,
    random: Prng,
    sessions: u64,
    left: VecDeque<Left>,
    /// What it did.
    pub(super) done: Done,
}

impl Worker {
    /// A user whose sessions work in `directory`.
    pub(super) fn new(address: &str, directory: PathBuf, name: String, seed: u64) -> Self {
        Self {
            address: address.to_owned(),
            directory,
            name,
            random: Prng::new(seed),
            sessions: 0,
            left: VecDeque::new(),
            done: Done::default(),
        }
    }

    /// Sends so many prompts, then closes and deletes all that it left open.
    pub(super) fn work(&mut self, prompts: u64) -> Result<()> {
        let end = self.done.prompts + prompts;
        while self.done.prompts < end {
            self.visit(end)?;
        }
        while let Some(left) = self.left.pop_front() {
            self.come_back(&left)?;
        }
        Ok(())
    }

    /// A client comes, opens a session, uses it and goes.
    fn visit(&mut self, end: u64) -> Result<()> {
        let mut client = self.connect()?;
        self.sessions += 1;
        let handle = format!("{}-{}", self.name, self.sessions);
        let opened =
            client.call(json!({"type": "open_session", "session": handle, "cwd": self.directory}))?;
        self.done.opened += 1;
        client.listen_to(&handle)?;
        for _ in 0..PROMPTS_EACH.min(end - self.done.prompts) {
            self.prompt(&mut client, &handle)?;
        }
        let file = opened
            .get("sessionFile")
            .and_then(Value::as_str)
            .map(str::to_owned);
        let left = Left { handle, file };
        match self.random.next() % 4 {
            0 | 1 => self.close(&mut client, &left)?,
            _ => self.left.push_back(left),
        }
        if self.random.next().is_multiple_of(2) {
            client.leave();
        }
        if self.left.len() > LEFT_OPEN
            && let Some(left) = self.left.pop_front()
        {
            self.come_back(&left)?;
        }
        Ok(())
    }

    fn prompt(&mut self, client: &mut Client, handle: &str) -> Result<()> {
        let message = match self.random.next() % 2_000 {
            0 => {
                self.done.server_crashes += 1;
                format!("use {CRASH_SERVER}")
            }
            1 => {
                self.done.extension_crashes += 1;
                format!("use {CRASH_EXTENSION}")
            }
            number => format!("task {}", number % 9),
        };
        client.prompt(handle, &message)?;
        self.done.prompts += 1;
        if self.random.next().is_multiple_of(500) {
            client.call(json!({"type": "mcp_reconnect", "session": handle, "server": "soak"}))?;
            self.done.reconnects += 1;
        }
        Ok(())
    }

    /// Another client visits a session that was left open, which the agent may have evicted: it opens it again from its file.
    fn come_back(&mut self, left: &Left) -> Result<()> {
        let mut client = self.connect()?;
        client.listen_to(&left.handle)?;
        self.prompt(&mut client, &left.handle)
            .with_context(|| format!("session {} was left open", left.handle))?;
        self.done.reopened += 1;
        self.close(&mut client, left)
    }

    fn close(&mut self, client: &mut Client, left: &Left) -> Result<()> {
        client.call(json!({"type": "close_session", "session": left.handle}))?;
        self.done.closed += 1;
        if let Some(file) = &left.file {
            client.call(json!({"type": "delete_session", "sessionPath": file}))?;
            self.done.deleted += 1;
        }
        Ok(())
    }

    fn connect(&mut self) -> Result<Client> {
        self.done.clients += 1;
        Client::connect(&self.address)
    }
}
