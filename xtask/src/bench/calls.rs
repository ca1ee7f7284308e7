//! A session with very many tool calls: whether the last ones cost what the first ones cost. The context is compacted whenever it fills
//! the model's window.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::json;
use testkit::llm::{Reply, Request, Usage};

use super::limits::{CALLS, CALLS_GROWTH, CALLS_OF_A_RUN, CALLS_WINDOW};
use super::report::Row;
use super::runner::{Runner, Stage, mb};
use super::subject::Subject;

/// What the file that is read holds.
const TEXT: &str = "the quick brown fox jumps over the lazy dog\n";

/// Bytes of a request for each token that the scripted model reports.
const BYTES_OF_A_TOKEN: usize = 4;

/// Measures the group.
pub(super) fn measure(subject: &Subject) -> Result<Vec<Row>> {
    let stage = Stage::with_window(CALLS_WINDOW)?;
    std::fs::write(stage.workspace.cwd().join("file.txt"), TEXT)?;
    let mut agent = stage.start(subject)?;
    agent.warm_up(&stage)?;
    agent.call("new_session", None)?;
    let (calls, summaries) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (called, summed) = (Arc::clone(&calls), Arc::clone(&summaries));
    stage
        .server
        .set_rule(move |request| reply(request, &called, &summed));
    let mut costs = Vec::new();
    let begin = Instant::now();
    while calls.load(Ordering::Relaxed) < CALLS {
        costs.push(agent.cost(Runner::prompt)?.cpu_ms / run());
    }
    ensure!(
        summaries.load(Ordering::Relaxed) > 1,
        "the context was never compacted"
    );
    // The first run fills an empty context.
    let (first, last) = match costs.as_slice() {
        [_, first, second, .., before, last] => {
            (f64::midpoint(*first, *second), f64::midpoint(*before, *last))
        }
        _ => (f64::NAN, f64::NAN),
    };
    let title = format!("{CALLS} calls of read in one session, CPU of a turn in the last 2,000");
    Ok(vec![
        Row::new("calls", &title, "ms", vec![last]).note(&format!(
            "{first:.2} ms in the first; {:.0} s in all",
            begin.elapsed().as_secs_f64()
        )),
        Row::new(
            "calls",
            "the same as a multiple of the first 2,000",
            "x",
            vec![last / first],
        )
        .at_most(CALLS_GROWTH)
        .note(&format!("{} compactions", summaries.load(Ordering::Relaxed))),
        Row::new(
            "calls",
            "memory at the end",
            "MB",
            vec![mb(agent.usage().resident_all)],
        ),
    ])
}

/// Calls the tool until the run has had its calls. A request without tools asks for a summary.
fn reply(request: &Request, calls: &AtomicU64, summaries: &AtomicU64) -> Reply {
    let used = Usage {
        input: (request.body_bytes / BYTES_OF_A_TOKEN) as u64,
        ..Usage::default()
    };
    let has_tools = request.body.get("tools").is_some();
    if !has_tools {
        summaries.fetch_add(1, Ordering::Relaxed);
        return Reply::text(["Many files were read."]).usage(used);
    }
    let number = calls.load(Ordering::Relaxed);
    let is_result = request
        .body
        .pointer("/messages")
        .and_then(|messages| messages.as_array()?.last()?.pointer("/content/0/type"))
        .is_some_and(|kind| kind == "tool_result");
    if is_result && number.is_multiple_of(CALLS_OF_A_RUN) {
        return Reply::text(["done"]).usage(used);
    }
    calls.fetch_add(1, Ordering::Relaxed);
    Reply::tool(format!("call_{number}"), "read", json!({"path": "file.txt"})).usage(used)
}

#[expect(clippy::cast_precision_loss, reason = "a small count")]
fn run() -> f64 {
    CALLS_OF_A_RUN as f64
}
