//! From the start of the program to its first answer, compared with a program that does nothing, and its memory then.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::json;

use super::limits::{START_MB, START_MS, START_TIMES, STARTS};
use super::report::{Row, median};
use super::runner::{Stage, mb};
use super::subject::Subject;

/// Measures the group.
pub(super) fn measure(subject: &Subject) -> Result<Vec<Row>> {
    let stage = Stage::new()?;
    let (mut walls, mut resident, mut all, mut empty) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..=STARTS {
        let mut agent = stage.start(subject)?;
        // The command lies in the pipe before the program can read it.
        agent.send(&json!({"id": "first", "type": "get_state"}))?;
        let answer = agent.wait(|head| head.answers("first"))?;
        let usage = agent.usage();
        let nothing = start_empty()?;
        if round > 0 {
            walls.push(in_ms(answer.at.duration_since(agent.started)));
            resident.push(mb(usage.resident));
            all.push(mb(usage.resident_all));
            empty.push(in_ms(nothing));
        }
    }
    let times: Vec<f64> = walls.iter().map(|wall| wall / median(&empty)).collect();
    let helpers = format!("{:.1} MB with its helper processes", median(&all));
    let mut rows = vec![
        Row::new("startup", "spawn to first get_state answer", "ms", walls).at_most(START_MS),
        Row::new("startup", "as a multiple of an empty program", "x", times).at_most(START_TIMES),
        Row::new("startup", "resident memory then", "MB", resident)
            .at_most(START_MB)
            .note(&helpers),
    ];
    if !subject.peer {
        rows.push(Row::new(
            "startup",
            "empty program: spawn to its line",
            "ms",
            empty,
        ));
    }
    Ok(rows)
}

/// Time from the start of a program that only prints a line (`xtask empty`) to that line.
fn start_empty() -> Result<Duration> {
    let program = std::env::current_exe()?;
    let started = Instant::now();
    let mut child = Command::new(program)
        .arg("empty")
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().context("no stdout")?).read_line(&mut line)?;
    let took = started.elapsed();
    child.wait()?;
    Ok(took)
}

fn in_ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
