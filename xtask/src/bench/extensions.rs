//! What extensions cost: nothing when there are none; how long ten of them take to be there, and what a question to one of
//! them takes, through the agent and back.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::json;

use super::limits::{EXTENSIONS, EXTENSIONS_MS, RUNS, STARTS, TRIP_MS, TRIPS};
use super::report::{Row, median};
use super::runner::{Runner, Stage};
use super::subject::Subject;

/// Handles input itself, so that a prompt is one request to an extension and nothing else.
const LISTENER: &str = r#"export default function (pi) {
  pi.on("input", async () => ({ action: "handled" }));
  pi.registerCommand("NAME", { handler: async () => {} });
}
"#;

const PROGRAM: &str = r#"#!/usr/bin/env python3
import json, sys
def say(**line): sys.stdout.write(json.dumps(line) + "\n"); sys.stdout.flush()
for text in sys.stdin:
    line = json.loads(text)
    if line["type"] == "hello": say(type="ready", protocol=1)
    elif line["type"] == "open": say(type="result", id=line["id"], value={"extensions": [{"events": ["input"]}]})
    elif line["type"] == "event": say(type="result", id=line["id"], value={"action": "handled"})
    elif line["type"] == "ping": say(type="pong", id=line["id"])
"#;

/// Measures the group.
pub(super) fn measure(subject: &Subject) -> Result<Vec<Row>> {
    let mut rows = nothing(subject)?;
    rows.extend(ten(subject)?);
    rows.extend(trips(subject, "a TypeScript handler", "kit.ts", &named("kit"))?);
    rows.extend(trips(
        subject,
        "a handler of a Python program",
        "kit.py",
        PROGRAM,
    )?);
    Ok(rows)
}

fn named(name: &str) -> String {
    LISTENER.replace("NAME", name)
}

fn put(stage: &Stage, name: &str, source: &str) -> Result<()> {
    let folder = stage.workspace.agent_dir().join("extensions");
    fs::create_dir_all(&folder)?;
    let path = folder.join(name);
    fs::write(&path, source)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// Programs below a process.
fn below(pid: u32) -> Vec<String> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let mut found = Vec::new();
    for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
        let program = fs::read_link(Path::new("/proc").join(format!("{child}/exe")));
        found.push(program.map(|path| path.display().to_string()).unwrap_or_default());
        found.extend(below(child));
    }
    found
}

/// Without extensions no other program runs below the agent.
fn nothing(subject: &Subject) -> Result<Vec<Row>> {
    let stage = Stage::new()?;
    let mut agent = stage.start(subject)?;
    agent.warm_up(&stage)?;
    let own = fs::canonicalize(&subject.program)?.display().to_string();
    let others = below(agent.pid()).into_iter().filter(|program| *program != own);
    let count = f64::from(u32::try_from(others.count())?);
    Ok(vec![
        Row::new(
            "extensions",
            "without any: processes started for them",
            "",
            vec![count],
        )
        .at_most(0.0),
    ])
}

/// From the start of the agent to its first answer, and until all extensions have registered their commands.
fn ten(subject: &Subject) -> Result<Vec<Row>> {
    let plain = Stage::new()?;
    let stage = Stage::new()?;
    for number in 0..EXTENSIONS {
        put(&stage, &format!("e{number}.ts"), &named(&format!("e{number}")))?;
    }
    let (mut without, mut first, mut cold, mut ready) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..=STARTS {
        let mut agent = plain.start(subject)?;
        let (answered, _) = times(&mut agent)?;
        without.push(answered);
        let mut agent = stage.start(subject)?;
        let (answered, all) = times(&mut agent)?;
        if round == 0 {
            cold.push(all);
        } else {
            first.push(answered);
            ready.push(all);
        }
    }
    let note = format!("{:.1} ms without extensions", median(&without));
    Ok(vec![
        Row::new("extensions", "ten: spawn to first get_state answer", "ms", first).note(&note),
        Row::new("extensions", "ten: spawn until all are ready", "ms", ready).at_most(EXTENSIONS_MS),
        Row::new("extensions", "the same for the first time ever", "ms", cold),
    ])
}

/// Milliseconds to the first answer, and to the first answer that waits for extensions.
fn times(agent: &mut Runner) -> Result<(f64, f64)> {
    agent.send(&json!({"id": "state", "type": "get_state"}))?;
    agent.send(&json!({"id": "commands", "type": "get_commands"}))?;
    let since = |at: Instant| at.duration_since(agent.started).as_secs_f64() * 1e3;
    let state = since(agent.wait(|head| head.answers("state"))?.at);
    let commands = since(agent.wait(|head| head.answers("commands"))?.at);
    Ok((state, commands))
}

/// Measures a prompt that an extension handles, less a command that no extension handles.
fn trips(subject: &Subject, who: &str, file: &str, source: &str) -> Result<Vec<Row>> {
    let stage = Stage::new()?;
    put(&stage, file, source)?;
    let mut agent = stage.start(subject)?;
    let (mut half, mut most) = (Vec::new(), Vec::new());
    for round in 0..=RUNS {
        let plain = timed(&mut agent, "get_queue")?;
        let mut asked = timed(&mut agent, "prompt")?;
        asked.sort_by(f64::total_cmp);
        let within = |percent: usize| {
            let at = (asked.len() * percent).div_ceil(100).saturating_sub(1);
            asked.get(at).copied().unwrap_or(f64::NAN)
        };
        if round > 0 {
            let base = median(&plain);
            half.push(within(50) - base);
            most.push(within(99) - base);
        }
    }
    Ok(vec![
        Row::new(
            "extensions",
            &format!("{who}, there and back: median"),
            "ms",
            half,
        )
        .at_most(TRIP_MS),
        Row::new("extensions", &format!("{who}, there and back: p99"), "ms", most),
    ])
}

/// Milliseconds that a command takes, many times.
fn timed(agent: &mut Runner, command: &str) -> Result<Vec<f64>> {
    let mut times = Vec::new();
    for _ in 0..TRIPS {
        let started = Instant::now();
        let head = agent.ask(json!({"type": command, "message": "x"}))?;
        times.push(head.at.duration_since(started).as_secs_f64() * 1e3);
    }
    ensure!(!times.is_empty(), "nothing was asked");
    Ok(times)
}
