//! Sessions of one process that stream at the same time: where one core ends. A model writes as fast as real ones do.

use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::json;
use testkit::llm::Reply;

use super::limits::{CORES_DELTAS, CORES_PACE, CORES_SESSIONS, DELTA_BYTES, LONG_RUNS};
use super::report::{Row, median};
use super::runner::{Runner, Stage};
use super::subject::Subject;

/// What one repetition showed.
struct Streamed {
    /// CPU of the agent, in percent of one core.
    core_percent: f64,
    /// Time to the last end beyond the time that the model takes, ms.
    late_ms: f64,
}

/// Measures the group.
pub(super) fn measure(subject: &Subject) -> Result<Vec<Row>> {
    let subject = subject.with(&["--rpc-dialect", "pi-delta"]);
    let mut rows = Vec::new();
    for sessions in CORES_SESSIONS {
        let runs = (0..LONG_RUNS)
            .map(|_| stream(&subject, sessions))
            .collect::<Result<Vec<_>>>()?;
        let late: Vec<f64> = runs.iter().map(|run| run.late_ms).collect();
        let core = runs.iter().map(|run| run.core_percent).collect();
        let title = format!("{sessions} sessions stream 50 deltas a second each: part of one core");
        rows.push(
            Row::new("cores", &title, "%", core)
                .note(&format!("the last answer ends {:.0} ms late", median(&late))),
        );
    }
    Ok(rows)
}

fn stream(subject: &Subject, sessions: usize) -> Result<Streamed> {
    let stage = Stage::new()?;
    let mut agent = stage.start(subject)?;
    for number in 0..sessions {
        agent.ask(json!({"type": "open_session", "session": format!("s{number}")}))?;
        stage
            .server
            .push(Reply::text_deltas(CORES_DELTAS, DELTA_BYTES).chunk_delay(CORES_PACE));
    }
    let mut wall_ms = 0.0;
    let cost = agent.cost(|agent| {
        let began = Instant::now();
        ask_all(agent, sessions)?;
        wall_ms = began.elapsed().as_secs_f64() * 1e3;
        Ok(())
    })?;
    #[expect(clippy::cast_precision_loss, reason = "a small count")]
    let model_ms = CORES_PACE.as_secs_f64() * 1e3 * CORES_DELTAS as f64;
    Ok(Streamed {
        core_percent: cost.cpu_ms / wall_ms * 100.0,
        late_ms: wall_ms - model_ms,
    })
}

/// Sends a prompt to each session and waits for their ends, in any order.
fn ask_all(agent: &mut Runner, sessions: usize) -> Result<()> {
    for number in 0..sessions {
        agent.send(&json!({"type": "prompt", "session": format!("s{number}"), "message": "Go on."}))?;
    }
    let mut ended = 0;
    while ended < sessions {
        let head = agent.next()?;
        ensure!(
            !head.text.contains("\"success\":false"),
            "a prompt was refused: {}",
            head.text
        );
        ended += usize::from(head.kind() == "agent_settled");
    }
    Ok(())
}
