//! Long answers: what each delta costs, as text and as the arguments of a tool call.

use anyhow::Result;
use testkit::llm::Reply;

use super::limits::{
    ARGUMENT_CPU_MS, ARGUMENT_DELTAS, DELTA_BYTES, DELTAS, RUNS, SERVER_BATCH, STREAM_CPU_MS, STREAM_GROWTH,
    STREAM_TIMES,
};
use super::report::{Row, median};
use super::runner::{Cost, Stage};
use super::subject::Subject;

/// How the model's server writes: its name in the table, and the bytes it gathers.
const WRITES: [(&str, usize); 2] = [("a write per delta", 0), ("writes of 16 KiB", SERVER_BATCH)];

/// Text answers, in the form a client gets by default and in the delta form.
pub(super) fn answers(subject: &Subject) -> Result<Vec<Row>> {
    if subject.peer {
        return form(subject, "as it is by default", None);
    }
    let mut rows = form(subject, "cumulative", Some(STREAM_CPU_MS.0))?;
    let delta = subject.with(&["--rpc-dialect", "pi-delta"]);
    rows.extend(form(&delta, "delta form", Some(STREAM_CPU_MS.1))?);
    Ok(rows)
}

fn form(subject: &Subject, name: &str, target: Option<f64>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (writes, batch) in WRITES {
        let short = text(subject, DELTAS.1, batch)?;
        let long = text(subject, DELTAS.0, batch)?;
        let base = median(&cpu(&short));
        let growth: Vec<f64> = cpu(&long).iter().map(|cpu| cpu / base).collect();
        let title = |what: &str| format!("{name}, {writes}: {what}");
        rows.push(Row::new("stream", &title("CPU, 20,000 deltas"), "ms", cpu(&long)).target(target));
        rows.push(
            Row::new("stream", &title("CPU, 20,000 to 2,000"), "x", growth)
                .at_most(STREAM_GROWTH)
                .note(&format!("{base:.1} ms for 2,000")),
        );
        let times = long.iter().map(|cost| times(cost, DELTAS.0)).collect();
        rows.push(
            Row::new("stream", &title("bytes out to message"), "x", times)
                .at_most(STREAM_TIMES)
                .note(&grown(&long)),
        );
    }
    Ok(rows)
}

fn text(subject: &Subject, deltas: u64, batch: usize) -> Result<Vec<Cost>> {
    let stage = Stage::new()?;
    let mut agent = stage.start(subject)?;
    agent.warm_up(&stage)?;
    let mut costs = Vec::new();
    for _ in 0..RUNS {
        agent.call("new_session", None)?;
        stage
            .server
            .push(Reply::text_deltas(deltas, DELTA_BYTES).batch(batch));
        costs.push(agent.cost(super::runner::Runner::prompt)?);
    }
    Ok(costs)
}

/// A call of `write` whose content arrives in many deltas.
pub(super) fn arguments(subject: &Subject) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (writes, batch) in WRITES {
        let stage = Stage::new()?;
        let mut agent = stage.start(subject)?;
        agent.warm_up(&stage)?;
        let mut costs = Vec::new();
        for _ in 0..RUNS {
            agent.call("new_session", None)?;
            stage
                .server
                .push(Reply::write_deltas("out.txt", ARGUMENT_DELTAS, DELTA_BYTES).batch(batch));
            stage.server.push(Reply::text(["done"]));
            costs.push(agent.cost(super::runner::Runner::prompt)?);
        }
        let title = format!("write call, 5,000 deltas, {writes}: CPU");
        let times = costs.first().map_or(0.0, |cost| times(cost, ARGUMENT_DELTAS));
        rows.push(
            Row::new("toolargs", &title, "ms", cpu(&costs))
                .at_most(ARGUMENT_CPU_MS)
                .note(&format!("{times:.1} times the content out, {}", grown(&costs))),
        );
    }
    Ok(rows)
}

fn cpu(costs: &[Cost]) -> Vec<f64> {
    costs.iter().map(|cost| cost.cpu_ms).collect()
}

/// Bytes printed as a multiple of the deltas' bytes.
#[expect(clippy::cast_precision_loss, reason = "sizes stay far below 2^53")]
fn times(cost: &Cost, deltas: u64) -> f64 {
    cost.bytes as f64 / (deltas as f64 * DELTA_BYTES as f64)
}

fn grown(costs: &[Cost]) -> String {
    let most = costs.iter().map(|cost| cost.grown_mb).fold(0.0, f64::max);
    format!("memory +{most:.1} MB")
}
