//! Sessions that are opened one after another while only a few may stay: the memory that evicted sessions leave behind,
//! and the time to open one again.

use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::json;

use super::limits::{KEPT, KEPT_MB, RUNS};
use super::report::{Row, median};
use super::runner::{Stage, mb};
use super::subject::Subject;
use crate::sample::{Plan, Sample};

/// What one process showed.
struct Shown {
    grown_mb: f64,
    back_ms: f64,
}

/// Measures the group.
pub(super) fn measure(subject: &Subject) -> Result<Vec<Row>> {
    let (sessions, most, entries, bytes) = KEPT;
    let runs = (0..RUNS).map(|_| one(subject)).collect::<Result<Vec<_>>>()?;
    let each = |value: fn(&Shown) -> f64| runs.iter().map(value).collect::<Vec<_>>();
    let back = median(&each(|run| run.back_ms));
    let title = format!(
        "{sessions} sessions of {} kB ({entries} entries) one after another, {most} kept open: growth",
        bytes >> 10
    );
    Ok(vec![
        Row::new("kept", &title, "MB", each(|run| run.grown_mb))
            .at_most(KEPT_MB)
            .note(&format!("one that was put away is back in {back:.1} ms")),
    ])
}

fn one(subject: &Subject) -> Result<Shown> {
    let (sessions, most, entries, bytes) = KEPT;
    let stage = Stage::new()?;
    let cwd = stage.workspace.cwd().to_string_lossy().into_owned();
    let file = |number: usize| stage.workspace.root().join(format!("session-{number}.jsonl"));
    for number in 0..sessions {
        let sample = Sample::new(&Plan {
            entries,
            bytes,
            seed: number as u64,
            cwd: cwd.clone(),
            compaction: false,
        });
        std::fs::write(file(number), sample.text())?;
    }
    let mut agent = stage.start(&subject.with(&["--max-open-sessions", &most.to_string()]))?;
    agent.call("get_state", None)?;
    let before = agent.usage().resident_all;
    for number in 0..sessions {
        agent.ask(
            json!({"type": "open_session", "session": format!("s{number}"), "sessionPath": file(number)}),
        )?;
    }
    let grown = agent.usage().resident_all.saturating_sub(before);
    // Of long lines only the beginning is kept; the oldest sessions stand there.
    let listed = agent.call("list_open_sessions", None)?.text;
    ensure!(
        listed.contains("\"evicted\":true"),
        "nothing was put away: {listed}"
    );
    let started = Instant::now();
    let answer = agent.ask(json!({"type": "get_state", "session": "s0"}))?;
    let back_ms = answer.at.duration_since(started).as_secs_f64() * 1e3;
    Ok(Shown {
        grown_mb: mb(grown),
        back_ms,
    })
}
