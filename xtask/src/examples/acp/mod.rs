//! Records a transcript for each feature of the Agent Client Protocol: `protocol/examples/acp/FEATURE.jsonl`. A line is an object
//! with one member: `client` or `agent`, after who sent it. Its value is the message, or a string for a line that is no JSON.
//!
//! Here: the list of features and the stage of one recording. What each client does is in `turns`, `sessions` and `tools`.

mod client;
mod sessions;
mod tools;
mod turns;

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testkit::llm::{Before, Reply, ScriptedServer};
use testkit::workspace::Workspace;

use super::normal::Normal;
use client::Client;

/// Folder of the transcripts, seen from the root.
pub(super) const FOLDER: &str = "protocol/examples/acp";

type Play = fn(&Stage<'_>) -> Result<Client>;

/// Name of the transcript and the conversation.
const FEATURES: [(&str, Play); 25] = [
    ("initialize", sessions::initialize),
    ("new", sessions::new),
    ("load", sessions::load),
    ("resume", sessions::resume),
    ("list", sessions::list),
    ("delete", sessions::delete),
    ("close", sessions::close),
    ("fork", sessions::fork),
    ("options", sessions::options),
    ("modes", sessions::modes),
    ("auth", sessions::auth),
    ("login", sessions::login),
    ("errors", sessions::errors),
    ("prompt", turns::prompt),
    ("content", turns::content),
    ("cancel", turns::cancel),
    ("cancel-request", turns::cancel_request),
    ("commands", turns::commands),
    ("usage", turns::usage),
    ("notice", turns::notice),
    ("compaction", turns::compaction),
    ("fs", tools::files),
    ("terminal", tools::terminal),
    ("plan", tools::plan),
    ("mcp", tools::mcp),
];

/// How long an agent is silent before a client sends its next line. A busy machine can hold up a line of the agent for longer than
/// that, and then two recordings differ: a transcript that is not the stored one is recorded again with more patience.
const PACES: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(2),
];

/// All transcripts: their files, seen from the root, with their texts. With a root to `compare` with, the next pace is tried when a
/// text is not the stored one.
pub(super) fn record(program: &Path, compare: Option<&Path>) -> Result<Vec<(String, String)>> {
    let of_feature = |(name, play): (&str, Play)| {
        let file = format!("{FOLDER}/{name}.jsonl");
        let stored = compare.map(|root| fs::read_to_string(root.join(&file)).unwrap_or_default());
        let mut text = String::new();
        for quiet in PACES {
            text = transcript(program, play, quiet).with_context(|| format!("ACP feature {name}"))?;
            if stored.as_ref().is_none_or(|stored| *stored == text) {
                break;
            }
        }
        Ok((file, text))
    };
    FEATURES.into_iter().map(of_feature).collect()
}

fn transcript(program: &Path, play: Play, quiet: Duration) -> Result<String> {
    let server = ScriptedServer::start([])?;
    let stage = Stage {
        program,
        workspace: Workspace::new(&server.url())?,
        server,
        quiet,
    };
    stage.settings(json!({}))?;
    let lines = play(&stage)?.end()?;
    let mut normal = Normal::new(&stage.workspace, &stage.server.url())?;
    let lines = lines.into_iter().map(|line| format!("{}\n", normal.line(line)));
    Ok(lines.collect())
}

/// Where a recording takes place.
struct Stage<'a> {
    program: &'a Path,
    server: ScriptedServer,
    workspace: Workspace,
    quiet: Duration,
}

impl Stage<'_> {
    /// Settings of the user. No delay before a retry.
    fn settings(&self, more: Value) -> Result<()> {
        let mut settings = json!({"retry": {"baseDelayMs": 10, "provider": {"maxRetries": 0}}});
        if let (Some(settings), Value::Object(mut more)) = (settings.as_object_mut(), more) {
            settings.append(&mut more);
        }
        self.workspace.write_settings(&settings)?;
        Ok(())
    }

    /// The model's next answer. It begins after the updates about the turn before it, which come when the session has replied to the
    /// connection.
    fn reply(&self, reply: Reply) {
        let before = Before {
            delay: Some(self.quiet * 2),
            ..Before::default()
        };
        self.server.push(reply.before(before));
    }

    /// A client of a new process, before `initialize`.
    fn connect(&self) -> Result<Client> {
        let model = ["--provider", "mock-anthropic", "--model", "claude-mock"];
        let config = self.workspace.agent(self.program).arg("acp").args(model);
        Client::start(config, self.quiet)
    }

    /// A client of a new process that has announced these capabilities.
    fn client(&self, capabilities: &Value) -> Result<Client> {
        let mut client = self.connect()?;
        client.initialize(capabilities)?;
        Ok(client)
    }

    /// A client without capabilities, and its session.
    fn session(&self) -> Result<(Client, String)> {
        self.session_of(&json!({}))
    }

    /// A client with these capabilities, and its session.
    fn session_of(&self, capabilities: &Value) -> Result<(Client, String)> {
        let mut client = self.client(capabilities)?;
        let session = client.new_session(&self.cwd(), json!([]))?;
        Ok((client, session))
    }

    /// A stored session of an earlier process, which is not part of the recording.
    fn stored(&self, prompt: &str, answer: &str) -> Result<String> {
        let (mut client, session) = self.session()?;
        self.reply(Reply::text([answer]));
        client.prompt(&session, prompt)?;
        client.end()?;
        Ok(session)
    }

    fn cwd(&self) -> Value {
        json!(self.workspace.cwd())
    }
}
