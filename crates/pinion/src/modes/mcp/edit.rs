//! `pinion mcp add` and `remove`: entries of `mcp.json`, the user's or the project's. Everything else in the file stays, but
//! comments go.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::mcp::ServerConfig;
use anyhow::{Context as _, bail};
use config::settings::jsonc;
use files::{Mode, Root};
use serde_json::{Map, Value, json};

use crate::args::{Args, McpArgs};
use crate::environment::{Environment, say};

pub(super) fn add(args: &Args, env: &Environment, name: &str, command: &[&str]) -> anyhow::Result<ExitCode> {
    let entry = entry(&args.mcp, command)?;
    if let Err(problem) = ServerConfig::read(name, &entry) {
        bail!("{problem}");
    }
    let path = place(args, env);
    change(&path, |servers| {
        let is_new = servers.insert(name.to_owned(), entry).is_none();
        say(&format!(
            "{} {name} in {}",
            if is_new { "Added" } else { "Replaced" },
            path.display()
        ));
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn remove(args: &Args, env: &Environment, name: &str) -> anyhow::Result<ExitCode> {
    let path = place(args, env);
    change(&path, |servers| {
        if servers.shift_remove(name).is_none() {
            bail!("There is no MCP server \"{name}\" in {}", path.display());
        }
        say(&format!("Removed {name} from {}", path.display()));
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

fn place(args: &Args, env: &Environment) -> PathBuf {
    if args.mcp.local {
        env.cwd.join(".pi").join("mcp.json")
    } else {
        env.agent_dir.join("mcp.json")
    }
}

fn entry(given: &McpArgs, command: &[&str]) -> anyhow::Result<Value> {
    let mut entry = Map::new();
    match (command.split_first(), &given.url) {
        (Some((program, args)), None) => {
            entry.insert("command".to_owned(), json!(program));
            entry.insert("args".to_owned(), json!(args));
        }
        (None, Some(url)) => {
            entry.insert("url".to_owned(), json!(url));
        }
        _ => bail!("A server needs either a command after -- or --url"),
    }
    let variables = pairs(&given.env, '=', "--env takes NAME=VALUE")?;
    let mut headers = pairs(&given.headers, ':', "--header takes \"NAME: VALUE\"")?;
    if let Some(variable) = &given.bearer {
        headers.insert(
            "Authorization".to_owned(),
            json!(format!("Bearer ${{{variable}}}")),
        );
    }
    for (key, map) in [("env", variables), ("headers", headers)] {
        if !map.is_empty() {
            entry.insert(key.to_owned(), Value::Object(map));
        }
    }
    if let Some(dir) = &given.cwd {
        entry.insert("cwd".to_owned(), json!(dir));
    }
    if let Some(seconds) = &given.timeout {
        let seconds: f64 = seconds.parse().context("--timeout takes a number of seconds")?;
        entry.insert("timeout".to_owned(), json!(seconds));
    }
    Ok(Value::Object(entry))
}

fn pairs(texts: &[String], between: char, usage: &'static str) -> anyhow::Result<Map<String, Value>> {
    let pair = |text: &String| {
        let (name, value) = text.split_once(between).context(usage)?;
        Ok((name.trim().to_owned(), json!(value.trim_start())))
    };
    texts.iter().map(pair).collect()
}

/// Changes the servers of a file in one step. A file that cannot be read is never overwritten.
fn change(
    path: &Path,
    change: impl FnOnce(&mut Map<String, Value>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let text = match Root::user().read(path, mcp::limits::CONFIG) {
        Ok(text) if text.cut => bail!("{} is too large", path.display()),
        Ok(text) => text.text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    let mut document = jsonc::parse(&text).with_context(|| format!("{} is no JSON", path.display()))?;
    let root = document
        .as_object_mut()
        .with_context(|| format!("{} is no JSON object", path.display()))?;
    let servers = root.entry("mcpServers").or_insert_with(|| json!({}));
    let servers = servers
        .as_object_mut()
        .with_context(|| format!("\"mcpServers\" in {} is no object", path.display()))?;
    change(servers)?;
    let text = format!("{}\n", serde_json::to_string_pretty(&document)?);
    write(path, text.as_bytes()).with_context(|| path.display().to_string())
}

fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    // A link stays one.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    // A new file is the owner's alone, since it may hold secrets.
    files::replace(&target, text, Mode::Keep(0o600))
}
