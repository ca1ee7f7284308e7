//! Long answers in every API family: what a delta costs, whether ten times as much costs ten times as much, and the memory.

use anyhow::Result;
use testkit::llm::{FAMILIES, Reply};

use super::limits::{FAMILY_DELTA_US, FAMILY_DELTAS, FAMILY_GROWTH, FAMILY_TIMES, LONG_RUNS, SERVER_BATCH};
use super::report::{Row, median};
use super::runner::{Cost, Runner, Stage};
use super::subject::Subject;

/// What the answer consists of.
type Make = fn(u64) -> Reply;

/// Texts, and arguments of a tool call.
const KINDS: [(&str, Make); 2] = [
    ("text", |deltas| Reply::text_deltas(deltas, FAMILY_DELTAS.2)),
    ("arguments", |deltas| {
        Reply::write_deltas("out.txt", deltas, FAMILY_DELTAS.2)
    }),
];

/// The figures.
pub(super) fn measure(subject: &Subject) -> Result<Vec<Row>> {
    let subject = subject.with(&["--rpc-dialect", "pi-delta"]);
    let mut rows = Vec::new();
    for (api, path) in FAMILIES {
        for (kind, make) in KINDS {
            rows.extend(family(&subject, api, path, kind, make)?);
        }
    }
    Ok(rows)
}

fn family(subject: &Subject, api: &str, path: &str, kind: &str, make: Make) -> Result<Vec<Row>> {
    let (few, many, size) = FAMILY_DELTAS;
    let short = answers(subject, api, path, make, few)?;
    let long = answers(subject, api, path, make, many)?;
    let cpu = |costs: &[Cost]| -> Vec<f64> { costs.iter().map(|cost| cost.cpu_ms).collect() };
    let base = median(&cpu(&short));
    let growth = cpu(&long).iter().map(|cpu| cpu / base).collect();
    let each = cpu(&long).iter().map(|cpu| cpu * 1e3 / real(many)).collect();
    let times = long
        .iter()
        .map(|cost| cost.grown_mb * 1e6 / (real(many) * real(size as u64)))
        .collect();
    let title = |what: &str| format!("{api}, {kind} of 10 MB: {what}");
    Ok(vec![
        Row::new("families", &title("CPU of a delta"), "us", each).at_most(FAMILY_DELTA_US),
        Row::new("families", &title("CPU, 10 MB to 1 MB"), "x", growth)
            .at_most(FAMILY_GROWTH)
            .note(&format!("{base:.1} ms for 1 MB")),
        Row::new("families", &title("memory to answer"), "x", times).at_most(FAMILY_TIMES),
    ])
}

/// Runs of a conversation each, with one long answer.
fn answers(subject: &Subject, api: &str, path: &str, make: Make, deltas: u64) -> Result<Vec<Cost>> {
    let stage = Stage::speaking(api, path)?;
    let mut costs = Vec::new();
    for _ in 0..LONG_RUNS {
        // A program of its own, so that nothing is left of the one before.
        let mut agent = stage.start(subject)?;
        agent.warm_up(&stage)?;
        agent.call("new_session", None)?;
        stage.server.push(make(deltas).batch(SERVER_BATCH));
        stage.server.push(Reply::text(["done"]));
        costs.push(agent.cost(Runner::prompt)?);
        while !stage.server.unused().is_empty() {
            agent.prompt()?;
        }
    }
    Ok(costs)
}

#[expect(clippy::cast_precision_loss, reason = "numbers of deltas stay far below 2^53")]
fn real(number: u64) -> f64 {
    number as f64
}
