//! Requests without end while the answers are not read: memory must stay bounded, and afterwards every answer must
//! come, in order.

use std::io::Write as _;
use std::process::ChildStdin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use testkit::llm::Reply;

use super::limits::{FLOOD_BIG, FLOOD_LINES, FLOOD_MB, FLOOD_TIME, LONG_RUNS, PATIENCE};
use super::meter;
use super::report::Row;
use super::runner::{Runner, Stage, mb};
use super::subject::Subject;

/// Requests per write.
const CHUNK: u64 = 64;

/// What one flood showed.
struct Flood {
    sent: u64,
    wrong: u64,
    unread_mb: f64,
    peak_mb: f64,
    seconds: f64,
}

/// Measures the group.
pub(super) fn measure(subject: &Subject) -> Result<Vec<Row>> {
    let runs = (0..LONG_RUNS).map(|_| one(subject)).collect::<Result<Vec<_>>>()?;
    let each = |value: fn(&Flood) -> f64| runs.iter().map(value).collect::<Vec<_>>();
    let most = runs.iter().map(|run| run.sent).max().unwrap_or(0);
    let note = format!("up to {most} requests");
    Ok(vec![
        Row::new(
            "flood",
            "stdout unread: growth of resident memory",
            "MB",
            each(|run| run.unread_mb),
        )
        .at_most(FLOOD_MB)
        .note(&note),
        Row::new(
            "flood",
            "growth of peak memory, all answers read",
            "MB",
            each(|run| run.peak_mb),
        )
        .at_most(FLOOD_MB),
        Row::new(
            "flood",
            "answers lost or out of order",
            "",
            each(|run| number(run.wrong)),
        )
        .at_most(0.0),
        Row::new(
            "flood",
            "answers a second once stdout is read",
            "/s",
            each(|run| number(run.sent) / run.seconds),
        ),
    ])
}

fn one(subject: &Subject) -> Result<Flood> {
    let stage = Stage::new()?;
    let mut agent = stage.start(subject)?;
    stage.server.push(Reply::text_deltas(1_000, 20));
    agent.prompt()?;
    let pid = agent.pid();
    meter::reset_peaks(pid);
    let before = agent.usage();
    agent.counts.pause(true);
    let pipe = agent.stdin.take().context("no stdin")?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| write(pipe, &stop));
        thread::sleep(FLOOD_TIME);
        let unread = agent.usage();
        stop.store(true, Ordering::Relaxed);
        agent.counts.pause(false);
        let resumed = Instant::now();
        let answered = expect(&agent, &|| writer.is_finished());
        let (sent, _pipe) = writer.join().ok().context("the writer failed")?;
        // Answers that were still queued when the writer ended.
        let (got, wrong) = rest(&agent, answered, sent);
        let seconds = resumed.elapsed().as_secs_f64();
        let after = agent.usage();
        // A process that is gone holds no memory, which must not pass for thrift.
        ensure!(
            after.resident > 0,
            "the agent ended in the flood; {got} of {sent} requests were answered"
        );
        Ok(Flood {
            sent,
            wrong: wrong + sent.saturating_sub(got),
            unread_mb: mb(unread.resident_all.saturating_sub(before.resident_all)),
            peak_mb: mb(after.peak_all.saturating_sub(before.resident_all)),
            seconds,
        })
    })
}

/// Writes requests until it is stopped; returns how many, and the pipe, which must stay open.
fn write(mut pipe: ChildStdin, stop: &AtomicBool) -> (u64, ChildStdin) {
    let mut sent = 0;
    while sent < FLOOD_LINES && !stop.load(Ordering::Relaxed) {
        let lines: String = (sent..sent + CHUNK).map(line).collect();
        if pipe.write_all(lines.as_bytes()).is_err() {
            break;
        }
        sent += CHUNK;
    }
    (sent, pipe)
}

fn line(number: u64) -> String {
    let command = if number.is_multiple_of(FLOOD_BIG) {
        "get_messages"
    } else {
        "get_state"
    };
    format!("{{\"id\":\"{number}\",\"type\":\"{command}\"}}\n")
}

/// Reads answers while the writer is still busy: how many came, and how many of them at the wrong place.
fn expect(agent: &Runner, finished: &dyn Fn() -> bool) -> (u64, u64) {
    let mut state = (0, 0);
    let end = Instant::now() + PATIENCE;
    while !finished() && Instant::now() < end {
        match agent.next_within(Duration::from_millis(50)) {
            Some(head) => count(&head, &mut state),
            None => thread::yield_now(),
        }
    }
    state
}

fn rest(agent: &Runner, mut state: (u64, u64), sent: u64) -> (u64, u64) {
    while state.0 < sent {
        match agent.next_within(Duration::from_secs(5)) {
            Some(head) => count(&head, &mut state),
            None => break,
        }
    }
    state
}

fn count(head: &super::output::Head, state: &mut (u64, u64)) {
    if head.kind() == "response" {
        state.1 += u64::from(!head.answers(&state.0.to_string()));
        state.0 += 1;
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
fn number(n: u64) -> f64 {
    n as f64
}
