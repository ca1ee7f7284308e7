//! `pinion mcp list`: connects all servers and says how they are. Status 1 when an entry cannot be used or a server that is
//! to be used cannot be had.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use ::mcp::{Server, Status};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::Nobody;
use crate::environment::{complain, say, say_exactly};
use crate::modes::runtime;
use crate::setup::Setup;

/// How long one server is waited for.
const WAIT: Duration = Duration::from_secs(60);

pub(super) fn run(setup: &Setup, as_json: bool) -> anyhow::Result<ExitCode> {
    let agent = &setup.agent;
    let (configured, problems) =
        session::mcp::configured(&agent.mcp, &agent.settings, &agent.agent_dir, &agent.cwd);
    let runtime = runtime()?;
    let lines: Vec<(Value, String, bool)> = runtime.block_on(async {
        let news = Arc::new(Notify::new());
        let around = agent.mcp_surroundings(&agent.cwd, Arc::new(Nobody));
        let servers = configured
            .into_iter()
            .map(|(config, source)| (Server::start(config, around.clone(), Arc::clone(&news)), source));
        let servers: Vec<(Server, &str)> = servers.collect();
        let mut lines = Vec::new();
        for (mut server, source) in servers {
            let _late = tokio::time::timeout(WAIT, server.settled()).await;
            lines.push(line(&server, source));
        }
        agent.reaper.shutdown().await;
        agent.mcp.logins.finish().await;
        lines
    });
    runtime.shutdown_background();
    let is_well = problems.is_empty() && lines.iter().all(|(.., is_well)| *is_well);
    if as_json {
        let servers: Vec<&Value> = lines.iter().map(|(json, ..)| json).collect();
        say_exactly(&json!({"servers": servers, "problems": problems}).to_string());
    } else {
        for problem in &problems {
            complain(&format!("Warning: {problem}"));
        }
        for (_, text, _) in &lines {
            say(text);
        }
        if lines.is_empty() {
            say("No MCP servers are configured. To add one: pinion mcp add NAME -- COMMAND");
        }
    }
    Ok(if is_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn line(server: &Server, source: &str) -> (Value, String, bool) {
    let (config, seen) = (server.config(), server.snapshot());
    let (status, why) = match &seen.status {
        Status::Connected => ("connected", None),
        Status::Connecting => ("connecting", Some("no answer yet".to_owned())),
        Status::Failed(why) => ("failed", Some(why.clone())),
        Status::NeedsLogin => ("needs_login", Some(format!("pinion mcp login {}", config.name))),
        Status::Disabled => ("disabled", None),
    };
    let lists = &seen.lists;
    let tools: Vec<&str> = lists.tools.iter().map(|tool| tool.name.as_str()).collect();
    let prompts: Vec<&str> = lists.prompts.iter().map(|prompt| prompt.name.as_str()).collect();
    let json = json!({
        "name": config.name, "status": status, "error": why, "source": source, "title": seen.title,
        "tools": tools, "prompts": prompts, "resources": lists.resources, "notes": lists.notes,
    });
    let mut text = format!("{:<20} {status:<12} {source:<8} {}", config.name, seen.title);
    let mut more = |line: String| text.push_str(&format!("\n  {line}"));
    why.into_iter().for_each(&mut more);
    if !tools.is_empty() {
        more(format!("tools: {}", tools.join(", ")));
    }
    if !prompts.is_empty() {
        more(format!("prompts: /{}", prompts.join(", /")));
    }
    if lists.resources {
        more("resources: yes".to_owned());
    }
    lists.notes.iter().cloned().for_each(more);
    (
        json,
        text,
        matches!(seen.status, Status::Connected | Status::Disabled),
    )
}
