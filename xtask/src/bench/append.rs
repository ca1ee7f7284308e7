//! What an append costs in a short and in a long session: names are set in bulk, each of which is an entry.

use std::fmt::Write as _;
use std::io::Write as _;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::limits::{APPEND_GROWTH, APPEND_TO, APPENDS, APPENDS_BEFORE, RUNS};
use super::report::Row;
use super::runner::{Runner, Stage};
use super::subject::Subject;
use crate::sample::{Plan, Sample};

/// Measures the group.
pub(super) fn measure(subject: &Subject) -> Result<Vec<Row>> {
    let (mut short, mut long) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        short.push(one(subject, APPEND_TO.0)?);
        long.push(one(subject, APPEND_TO.1)?);
    }
    let growth = long
        .iter()
        .zip(&short)
        .map(|(long, short)| long / short)
        .collect();
    Ok(vec![
        Row::new("append", "an entry in a session of 100: CPU", "us", short),
        Row::new("append", "an entry in a session of 20,000: CPU", "us", long),
        Row::new("append", "20,000 entries to 100", "x", growth)
            .at_most(APPEND_GROWTH)
            .note("set_session_name in one pipe, its answers and events included"),
    ])
}

/// CPU of an append to a session of so many entries, us.
fn one(subject: &Subject, entries: usize) -> Result<f64> {
    let stage = Stage::new()?;
    let sample = Sample::new(&Plan {
        entries,
        bytes: entries * APPEND_TO.2,
        seed: 5,
        cwd: stage.workspace.cwd().to_string_lossy().into_owned(),
        compaction: false,
    });
    let file = stage.workspace.root().join(sample.file_name());
    std::fs::write(&file, sample.text())?;
    let mut agent = stage.start(subject)?;
    agent.ask(json!({"type": "switch_session", "sessionPath": file}))?;
    name(&mut agent, "warm", APPENDS_BEFORE)?;
    let cost = agent.cost(|agent| name(agent, "name", APPENDS))?;
    let lines = std::fs::read(&file)?
        .iter()
        .filter(|byte| **byte == b'\n')
        .count();
    let appended = lines.saturating_sub(sample.lines.len());
    ensure!(
        appended >= (APPENDS + APPENDS_BEFORE) as usize,
        "only {appended} entries were appended"
    );
    Ok(cost.cpu_ms * 1e3 / f64::from(APPENDS))
}

/// Sets so many names and waits for the last answer.
fn name(agent: &mut Runner, prefix: &str, count: u32) -> Result<()> {
    let mut lines = String::new();
    for number in 1..=count {
        writeln!(
            lines,
            r#"{{"id":"{prefix}{number}","type":"set_session_name","name":"Name {number}"}}"#
        )?;
    }
    let pipe = agent.stdin.as_mut().context("stdin is taken")?;
    pipe.write_all(lines.as_bytes())?;
    let last = format!("{prefix}{count}");
    agent.wait(|head| head.answers(&last))?;
    Ok(())
}
