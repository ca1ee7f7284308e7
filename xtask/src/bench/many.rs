//! A thousand sessions in one process: what each of them costs while nothing happens in it. What they do to one another is
//! measured in `neighbours`.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::limits::{LONG_RUNS, MANY, MANY_KB, MANY_MB};
use super::neighbours;
use super::report::{Row, median};
use super::runner::{Runner, Stage, mb};
use super::subject::Subject;

/// What opening them showed.
struct Opened {
    each_kb: f64,
    all_mb: f64,
    cpu_ms: f64,
    wall_ms: f64,
    list_ms: f64,
}

/// Measures the group.
pub(super) fn measure(subject: &Subject) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (place, apart) in [("one directory", false), ("a directory each", true)] {
        let runs = (0..LONG_RUNS)
            .map(|_| open(subject, apart))
            .collect::<Result<Vec<_>>>()?;
        let each = |value: fn(&Opened) -> f64| runs.iter().map(value).collect::<Vec<_>>();
        let title = |what: &str| format!("{MANY} idle sessions, {place}: {what}");
        let (cpu, list) = (median(&each(|run| run.cpu_ms)), median(&each(|run| run.list_ms)));
        rows.extend([
            Row::new("many", &title("memory each"), "kB", each(|run| run.each_kb)).at_most(MANY_KB),
            Row::new(
                "many",
                &title("memory of the process"),
                "MB",
                each(|run| run.all_mb),
            )
            .at_most(MANY_MB),
            Row::new(
                "many",
                &title("until all are open"),
                "ms",
                each(|run| run.wall_ms),
            )
            .note(&format!("{cpu:.0} ms of CPU; listing them takes {list:.1} ms")),
        ]);
    }
    rows.extend(neighbours::measure(subject)?);
    Ok(rows)
}

fn open(subject: &Subject, apart: bool) -> Result<Opened> {
    let stage = Stage::new()?;
    let folders = folders(&stage, apart)?;
    let mut agent = stage.start(subject)?;
    agent.call("get_state", None)?;
    let before = agent.usage().resident_all;
    let mut wall_ms = 0.0;
    let cost = agent.cost(|agent| {
        let started = Instant::now();
        for (number, folder) in folders.iter().enumerate() {
            agent.send(&json!({
                "id": format!("open{number}"), "type": "open_session", "session": format!("s{number}"), "cwd": folder,
            }))?;
        }
        answers(agent)?;
        wall_ms = started.elapsed().as_secs_f64() * 1e3;
        Ok(())
    })?;
    let after = agent.usage().resident_all;
    let started = Instant::now();
    let listed = agent.call("list_open_sessions", None)?;
    let list_ms = listed.at.duration_since(started).as_secs_f64() * 1e3;
    ensure!(after > 0, "the agent ended");
    Ok(Opened {
        each_kb: mb(after.saturating_sub(before)) * 1e3 / count(MANY),
        all_mb: mb(after),
        cpu_ms: cost.cpu_ms,
        wall_ms,
        list_ms,
    })
}

/// Where each session works; without a value it is where the first one does.
fn folders(stage: &Stage, apart: bool) -> Result<Vec<Value>> {
    let folder = |number: usize| -> Result<Value> {
        if !apart {
            return Ok(Value::Null);
        }
        let path: PathBuf = stage.workspace.cwd().join(format!("work{number}"));
        std::fs::create_dir(&path)?;
        Ok(json!(path))
    };
    (0..MANY).map(folder).collect()
}

/// Waits for the answers of all sessions, in any order.
fn answers(agent: &Runner) -> Result<()> {
    for _ in 0..MANY {
        let head = agent.wait(|head| head.kind() == "response")?;
        ensure!(
            head.text.contains("\"command\":\"open_session\"") && head.text.contains("\"success\":true"),
            "a session was not opened: {}",
            head.text
        );
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "a small count")]
fn count(n: usize) -> f64 {
    n as f64
}
