//! Tools: many small calls one after another, and one call that prints very much.

use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use testkit::llm::{Recorded, Reply};

use super::limits::{
    LONG_RUNS, OUTPUT_BYTES, OUTPUT_CPU_MS, OUTPUT_MB, RUNS, TURN_CPU_MS, TURN_GROWTH, TURN_SAMPLE, TURNS,
};
use super::meter;
use super::report::{Row, median};
use super::runner::{Cost, Runner, Stage, ms};
use super::subject::Subject;

/// Many turns with a call of bash `true` each.
pub(super) fn turns(subject: &Subject) -> Result<Vec<Row>> {
    let (mut cpu, mut gaps, mut wall_growth, mut cpu_growth) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..LONG_RUNS {
        let run = one_run(subject)?;
        cpu.push(run.cost.cpu_ms / count(TURNS));
        gaps.push(median(&run.gaps));
        let (first, last) = ends(&run.gaps);
        wall_growth.push(last / first);
        let (first, last) = run.cpu;
        cpu_growth.push(last / first);
    }
    Ok(vec![
        Row::new("tools", "500 turns of bash true: CPU a turn", "ms", cpu).at_most(TURN_CPU_MS),
        Row::new("tools", "last 50 turns to first 50, CPU", "x", cpu_growth)
            .note("children in 10 ms steps; the request itself grows with every turn"),
        Row::new("tools", "last 50 turns to first 50, time", "x", wall_growth)
            .at_most(TURN_GROWTH)
            .note("seen by the server, without the time it needs to parse the request"),
        Row::new("tools", "a turn as the server sees it", "ms", gaps),
    ])
}

/// What one run of many turns showed.
struct Turns {
    cost: Cost,
    /// From the end of one answer to the next request, ms.
    gaps: Vec<f64>,
    /// CPU of the first and of the last turns, ns.
    cpu: (f64, f64),
}

fn one_run(subject: &Subject) -> Result<Turns> {
    let stage = Stage::new()?;
    let mut agent = stage.start(subject)?;
    agent.warm_up(&stage)?;
    agent.call("new_session", None)?;
    let begin = stage.server.requests().len();
    let pid = agent.pid();
    let marks = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&marks);
    stage.server.set_rule(move |request| {
        let turn = usize::try_from(request.n).unwrap_or(0).saturating_sub(begin);
        if [0, TURN_SAMPLE, TURNS - TURN_SAMPLE, TURNS].contains(&turn) {
            let cpu = meter::usage(pid).cpu;
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(cpu);
        }
        if turn < TURNS {
            Reply::tool(format!("call_{turn}"), "bash", json!({"command": "true"}))
        } else {
            Reply::text(["done"])
        }
    });
    let cost = agent.cost(Runner::prompt)?;
    let log = stage.server.requests();
    let log = log.get(begin..).unwrap_or_default();
    ensure!(log.len() > TURNS, "only {} turns", log.len());
    let gaps = log
        .windows(2)
        .filter_map(|pair| gap(pair.first()?, pair.last()?))
        .collect();
    let marks = marks.lock().unwrap_or_else(PoisonError::into_inner);
    let cpu = match marks.as_slice() {
        [a, b, c, d] => (ms(b.saturating_sub(*a)), ms(d.saturating_sub(*c))),
        _ => (f64::NAN, f64::NAN),
    };
    Ok(Turns { cost, gaps, cpu })
}

/// Milliseconds between the end of one answer and the next request.
pub(super) fn gap(answer: &Recorded, next: &Recorded) -> Option<f64> {
    Some(next.at.saturating_sub(answer.ended?).as_secs_f64() * 1e3)
}

/// Medians of the first and of the last turns.
fn ends(gaps: &[f64]) -> (f64, f64) {
    let first = gaps.get(..TURN_SAMPLE).unwrap_or(gaps);
    let last = gaps.get(gaps.len().saturating_sub(TURN_SAMPLE)..).unwrap_or(gaps);
    (median(first), median(last))
}

/// A command that prints very much.
pub(super) fn output(subject: &Subject) -> Result<Vec<Row>> {
    let command = format!(
        "yes 'the quick brown fox jumps over the lazy dog 0123456789 abcdefgh' | head -c {OUTPUT_BYTES}"
    );
    let stage = Stage::new()?;
    let mut agent = stage.start(subject)?;
    agent.warm_up(&stage)?;
    let (mut whole, mut own, mut grown) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..RUNS {
        agent.call("new_session", None)?;
        let call = Reply::tool(format!("out_{run}"), "bash", json!({"command": command}));
        stage.server.push(call);
        stage.server.push(Reply::text(["done"]));
        let cost = agent.cost(Runner::prompt)?;
        whole.push(cost.cpu_ms);
        own.push(cost.cpu_ms - cost.children_ms);
        grown.push(cost.grown_mb);
    }
    let alone = (0..RUNS).map(|_| alone(&command)).collect::<Result<Vec<_>>>()?;
    let alone = median(&alone);
    let extra = whole.iter().map(|cpu| cpu - alone).collect();
    Ok(vec![
        Row::new("bashout", "100 MB of bash output: extra CPU", "ms", extra)
            .at_most(OUTPUT_CPU_MS)
            .note(&format!("the command alone, into /dev/null, needs {alone:.0} ms")),
        Row::new("bashout", "the agent's own processes: CPU", "ms", own),
        Row::new("bashout", "all of it, the command included: CPU", "ms", whole),
        Row::new("bashout", "growth of memory", "MB", grown).at_most(OUTPUT_MB),
    ])
}

/// CPU of the command without an agent, ms.
fn alone(command: &str) -> Result<f64> {
    // A shell that waits for the command, then for us: its children's time is read while it lives.
    let mut child = Command::new("bash")
        .args(["-c", &format!("({command}) > /dev/null; read -r _")])
        .stdin(Stdio::piped())
        .spawn()?;
    let mut last = 0;
    loop {
        std::thread::sleep(Duration::from_millis(50));
        let now = meter::usage(child.id());
        if meter::tree(child.id()).len() == 1 && now.cpu == last {
            break;
        }
        last = now.cpu;
    }
    drop(child.stdin.take());
    child.wait()?;
    Ok(ms(last))
}

#[expect(clippy::cast_precision_loss, reason = "a small count")]
fn count(n: usize) -> f64 {
    n as f64
}
