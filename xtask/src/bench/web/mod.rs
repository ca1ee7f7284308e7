//! The web server with many clients of one session: the cost of an idle client, the delay of deltas to all of them, and
//! the effect of too many clients.
//!
//! The clients are threads of this program, on the machine of the server: on two cores they take a good part of the
//! measured time. Delays are from the model's `write` to the client's `read`, with the time in which the server
//! collects deltas.

mod crowd;
mod intake;
mod server;
mod storm;
#[cfg(test)]
mod tests;

use std::time::Duration;

use anyhow::{Result, ensure};

use crowd::{Crowd, Delays};
use intake::Way;
use server::Server;
use storm::{Outcome, Storm, raise_descriptors};

use super::limits::{
    LONG_RUNS, WEB_AT_ONCE, WEB_ATTEMPTS, WEB_CLIENTS, WEB_DELTAS, WEB_DESCRIPTORS, WEB_IDLE_KB, WEB_LONG,
    WEB_MB, WEB_MS, WEB_SILENT, WEB_STREAMS,
};
use super::report::{Row, median};
use super::runner::{mb, ms};
use super::subject::Subject;

/// Clients of one kind, and how the table calls them.
struct Kind {
    title: String,
    way: Way,
    listening: usize,
    stalled: usize,
}

impl Kind {
    fn all() -> Vec<Self> {
        let kind = |title: String, way, listening, stalled| Self {
            title,
            way,
            listening,
            stalled,
        };
        let most = WEB_CLIENTS.into_iter().max().unwrap_or(1);
        let mut kinds: Vec<Self> = WEB_CLIENTS
            .into_iter()
            .map(|count| kind(format!("{count} sockets"), Way::Socket, count, 0))
            .collect();
        kinds.push(kind(
            format!("{most} sockets, 10 of them never read"),
            Way::Socket,
            most - 10,
            10,
        ));
        kinds.push(kind(
            format!("{WEB_STREAMS} streams of events"),
            Way::Stream,
            WEB_STREAMS,
            0,
        ));
        kinds
    }
}

/// What clients showed that were there for an answer.
struct Heard {
    idle_kb: f64,
    peak_mb: f64,
    /// Peak of the memory while they read an answer of [`WEB_LONG`] bytes, and the memory that stays afterwards.
    long_mb: f64,
    kept_mb: f64,
    after_mb: f64,
    delays: Delays,
    /// CPU of the server for a delta and a client, microseconds.
    each_us: f64,
}

/// Measures the group.
pub(super) fn measure(subject: &Subject) -> Result<Vec<Row>> {
    raise_descriptors(WEB_DESCRIPTORS)?;
    let mut rows = Vec::new();
    for kind in Kind::all() {
        let runs = (0..LONG_RUNS)
            .map(|_| listen(subject, &kind))
            .collect::<Result<Vec<_>>>()?;
        rows.extend(figures(&kind, &runs));
    }
    let storms = (0..LONG_RUNS)
        .map(|_| storm(subject))
        .collect::<Result<Vec<_>>>()?;
    let silences = (0..LONG_RUNS)
        .map(|_| silence(subject))
        .collect::<Result<Vec<_>>>()?;
    let title = format!("{WEB_ATTEMPTS} attempts to connect");
    rows.extend(refusals(&title, &storms));
    let title = format!("{WEB_SILENT} connections that say nothing");
    rows.extend(refusals(&title, &silences));
    Ok(rows)
}

fn figures(kind: &Kind, runs: &[Heard]) -> Vec<Row> {
    let each = |value: fn(&Heard) -> f64| runs.iter().map(value).collect::<Vec<_>>();
    let title = |what: &str| format!("{}: {what}", kind.title);
    let is_crowd = kind.listening + kind.stalled >= 100;
    let mut rows = vec![
        Row::new(
            "web",
            &title("model to client, p99"),
            "ms",
            each(|run| run.delays.within(99)),
        )
        .at_most(WEB_MS)
        .note(&format!(
            "p50 {:.1} ms, p100 {:.1} ms; {:.2} us of CPU for a delta and a client",
            median(&each(|run| run.delays.within(50))),
            median(&each(|run| run.delays.within(100))),
            median(&each(|run| run.each_us)),
        )),
    ];
    if is_crowd {
        let (kept, after) = (
            median(&each(|run| run.kept_mb)),
            median(&each(|run| run.after_mb)),
        );
        rows.extend([
            Row::new("web", &title("memory each, idle"), "kB", each(|run| run.idle_kb)).at_most(WEB_IDLE_KB),
            Row::new(
                "web",
                &title("most memory of the server"),
                "MB",
                each(|run| run.peak_mb),
            )
            .at_most(WEB_MB),
            Row::new(
                "web",
                &title("the same with an answer of 200 kB at once"),
                "MB",
                each(|run| run.long_mb),
            )
            .at_most(WEB_MB)
            .note(&format!(
                "{kept:.1} MB after it, {after:.1} MB when they have gone"
            )),
        ]);
    }
    rows
}

/// Clients come, do nothing, hear an answer, and go.
fn listen(subject: &Subject, kind: &Kind) -> Result<Heard> {
    let server = Server::open(subject)?;
    let before = server.at_rest().resident;
    let crowd = Crowd::gather(
        &server.address,
        kind.way,
        (kind.listening, kind.stalled),
        &server.probe,
    )?;
    let idle = server.at_rest().resident;
    server.reset_peak();
    let begun = server.usage();
    server.prompt()?;
    let delays = crowd.heard()?;
    let ended = server.usage();
    server.reset_peak();
    server.long_answer(WEB_LONG)?;
    let kept = server.at_rest();
    drop(crowd);
    server.wait_until_empty()?;
    let after = server.at_rest().resident;
    ensure!(after > 0, "the server ended");
    let clients = number(kind.listening + kind.stalled);
    Ok(Heard {
        idle_kb: mb(idle.saturating_sub(before)) * 1e3 / clients,
        peak_mb: mb(ended.peak_all),
        long_mb: mb(kept.peak_all),
        kept_mb: mb(kept.resident),
        after_mb: mb(after),
        delays,
        each_us: ms(ended.cpu.saturating_sub(begun.cpu)) * 1e3 / clients / number(WEB_DELTAS),
    })
}

/// What too many connections showed.
struct Refused {
    outcome: Outcome,
    /// Attempts that came to nothing that was promised.
    lost: usize,
    peak_mb: f64,
    after_mb: f64,
}

fn refusals(title: &str, runs: &[Refused]) -> Vec<Row> {
    let each = |value: fn(&Refused) -> f64| runs.iter().map(value).collect::<Vec<_>>();
    let count = |value: fn(&Outcome) -> usize| {
        let counts: Vec<f64> = runs.iter().map(|run| number(value(&run.outcome))).collect();
        median(&counts)
    };
    let note = format!(
        "let in {}, refused with 503 {}, kept waiting {}, broken {}",
        count(|outcome| outcome.taken),
        count(|outcome| outcome.refused),
        count(|outcome| outcome.quiet),
        count(|outcome| outcome.broken),
    );
    let after = median(&each(|run| run.after_mb));
    vec![
        Row::new(
            "web",
            &format!("{title}: neither let in nor refused"),
            "",
            each(|run| number(run.lost)),
        )
        .at_most(0.0)
        .note(&note),
        Row::new(
            "web",
            &format!("{title}: most memory of the server"),
            "MB",
            each(|run| run.peak_mb),
        )
        .at_most(WEB_MB)
        .note(&format!(
            "{after:.1} MB when they have gone; the next client is let in"
        )),
    ]
}

/// Sockets without end.
fn storm(subject: &Subject) -> Result<Refused> {
    let request = |address: &str| Some(Way::Socket.request(address));
    too_many(
        subject,
        (WEB_ATTEMPTS, WEB_AT_ONCE),
        request,
        Duration::from_secs(30),
        |outcome| WEB_ATTEMPTS - outcome.taken - outcome.refused,
    )
}

/// Connections that send nothing: accepted ones stay quiet for a while.
fn silence(subject: &Subject) -> Result<Refused> {
    too_many(
        subject,
        (WEB_SILENT, WEB_SILENT),
        |_| None,
        Duration::from_secs(3),
        |outcome| WEB_SILENT - outcome.refused - outcome.quiet,
    )
}

fn too_many(
    subject: &Subject,
    attempts: (usize, usize),
    request: impl Fn(&str) -> Option<String>,
    wait: Duration,
    lost: impl Fn(&Outcome) -> usize,
) -> Result<Refused> {
    let server = Server::open(subject)?;
    server.reset_peak();
    let storm = Storm::raise(&server.address, attempts, request(&server.address), wait)?;
    let outcome = storm.outcome;
    let peak = server.usage().peak_all;
    drop(storm);
    server.wait_until_empty()?;
    // It fails if the server accepts no client any more.
    drop(Crowd::gather(
        &server.address,
        Way::Socket,
        (1, 0),
        &server.probe,
    )?);
    Ok(Refused {
        outcome,
        lost: lost(&outcome),
        peak_mb: mb(peak),
        after_mb: mb(server.at_rest().resident),
    })
}

#[expect(clippy::cast_precision_loss, reason = "small counts")]
fn number(n: usize) -> f64 {
    n as f64
}
