//! A session of days: 20,000 entries, 50 MB. Opening it, asking for all of it in several ways, forking at its end.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::json;

use super::limits::{RUNS, SESSION, SESSION_CPU_MS, SESSION_TIMES};
use super::report::{Row, median};
use super::runner::{Runner, Stage, mb};
use super::subject::Subject;
use crate::sample::{Plan, Sample};

/// Commands once the session is open, in this order; `fork` last, since it opens another session.
const QUESTIONS: [&str; 5] = [
    "get_messages",
    "get_entries",
    "get_tree",
    "get_fork_messages",
    "fork",
];

/// What one process showed.
struct Shown {
    open_cpu: f64,
    open_wall: f64,
    memory: f64,
    /// CPU, time, and megabytes printed for each of [`QUESTIONS`]; none when the program does not know it.
    questions: Vec<Option<(f64, f64, f64)>>,
}

/// Measures the group.
pub(super) fn measure(subject: &Subject) -> Result<Vec<Row>> {
    let stage = Stage::new()?;
    let sample = Sample::new(&Plan {
        entries: SESSION.0,
        bytes: SESSION.1,
        seed: 3,
        cwd: stage.workspace.cwd().to_string_lossy().into_owned(),
        compaction: true,
    });
    let text = sample.text();
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        let file = stage.workspace.root().join(sample.file_name());
        std::fs::write(&file, &text)?;
        runs.push(one(subject, &stage, &file, &sample.last_user, text.len())?);
        // A fork leaves nearly the same again.
        std::fs::remove_dir_all(stage.workspace.agent_dir().join("sessions"))?;
    }
    let each = |value: fn(&Shown) -> f64| runs.iter().map(value).collect::<Vec<_>>();
    let size = size(text.len());
    let wall = median(&each(|run| run.open_wall));
    let mut rows = vec![
        Row::new(
            "sessions",
            "switch_session + get_messages, 20,000 entries, 50 MB: CPU",
            "ms",
            each(|run| run.open_cpu),
        )
        .at_most(SESSION_CPU_MS)
        .note(&format!("{wall:.0} ms until all of the answer was read")),
        Row::new(
            "sessions",
            "most memory then, to the file",
            "x",
            each(|run| run.memory),
        )
        .at_most(SESSION_TIMES)
        .note(&format!(
            "the file has {size:.1} MB; what the process held before is in it"
        )),
    ];
    for (index, question) in QUESTIONS.iter().enumerate() {
        let known = |pick: fn((f64, f64, f64)) -> f64| {
            let costs = runs.iter().filter_map(|run| run.questions.get(index).copied()?);
            costs.map(pick).collect::<Vec<_>>()
        };
        let cpu = known(|cost| cost.0);
        if cpu.is_empty() {
            continue;
        }
        let (wall, out) = (median(&known(|cost| cost.1)), median(&known(|cost| cost.2)));
        rows.push(
            Row::new("sessions", &format!("{question}: CPU"), "ms", cpu)
                .note(&format!("{wall:.0} ms, {out:.1} MB printed")),
        );
    }
    Ok(rows)
}

fn one(subject: &Subject, stage: &Stage, file: &Path, last_user: &str, bytes: usize) -> Result<Shown> {
    let mut agent = stage.start(subject)?;
    agent.call("get_state", None)?;
    let started = Instant::now();
    let mut open_wall = 0.0;
    let cost = agent.cost(|agent| {
        agent.ask(json!({"type": "switch_session", "sessionPath": file}))?;
        let answer = agent.call("get_messages", None)?;
        open_wall = answer.at.duration_since(started).as_secs_f64() * 1e3;
        Ok(())
    })?;
    let out = cost.bytes;
    ensure!(
        mb(out) > size(bytes) / 2.0,
        "get_messages printed only {out} bytes of a session of {bytes}"
    );
    let memory = mb(agent.usage().peak_all) / size(bytes);
    let mut questions = Vec::new();
    for question in QUESTIONS {
        let cost = ask(&mut agent, question, last_user);
        if !subject.peer {
            questions.push(Some(cost?));
        } else {
            questions.push(cost.ok());
        }
    }
    Ok(Shown {
        open_cpu: cost.cpu_ms,
        open_wall,
        memory,
        questions,
    })
}

fn ask(agent: &mut Runner, question: &str, last_user: &str) -> Result<(f64, f64, f64)> {
    let mut wall = 0.0;
    let cost = agent.cost(|agent| {
        let started = Instant::now();
        let answer = agent.ask(match question {
            "fork" => json!({"type": "fork", "entryId": last_user}),
            other => json!({ "type": other }),
        })?;
        wall = answer.at.duration_since(started).as_secs_f64() * 1e3;
        Ok(())
    })?;
    Ok((cost.cpu_ms, wall, mb(cost.bytes)))
}

/// A file's size in megabytes.
fn size(bytes: usize) -> f64 {
    mb(bytes as u64)
}
