//! Background processes that print without end: how soon the session answers meanwhile, how much memory it takes, and how many of
//! them outlive a `kill -9` of the agent.

use std::io::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde_json::json;
use testkit::llm::Reply;

use super::limits::{
    BACKGROUND_MB, BACKGROUND_MS, BACKGROUND_PAUSE, BACKGROUND_RATE, BACKGROUND_TIME, BACKGROUNDS, EXIT,
    LONG_RUNS,
};
use super::meter;
use super::report::Row;
use super::runner::{Runner, Stage, mb};
use super::subject::Subject;

/// Longer than all measurements of a run; `kill -9` ends the processes before.
const PRINTING: Duration = Duration::from_secs(120);
/// Bytes of a piece that is printed at once.
const PIECE: usize = 10_000;

/// What one run showed.
struct Measured {
    /// Delays of answers in ms, sorted.
    delays: Vec<f64>,
    grown_mb: f64,
    read_mb: f64,
    left: usize,
}

/// Measures the group.
pub(super) fn measure(subject: &Subject) -> Result<Vec<Row>> {
    let subject = subject.with(&["--tools", "bash,process"]);
    let runs = (0..LONG_RUNS)
        .map(|_| one(&subject))
        .collect::<Result<Vec<_>>>()?;
    let each = |value: fn(&Measured) -> f64| runs.iter().map(value).collect::<Vec<_>>();
    let worst = runs.iter().map(|run| run.within(100)).fold(0.0, f64::max);
    let answers: usize = runs.iter().map(|run| run.delays.len()).sum();
    let title = format!("{BACKGROUNDS} processes that print 10 MB/s each: get_state is answered, p99");
    Ok(vec![
        Row::new("background", &title, "ms", each(|run| run.within(99)))
            .at_most(BACKGROUND_MS)
            .note(&format!("longest {worst:.1} ms of {answers} answers")),
        Row::new(
            "background",
            "output that is read",
            "MB/s",
            each(|run| run.read_mb),
        )
        .note("further output waits in the pipes"),
        Row::new(
            "background",
            "growth of resident memory",
            "MB",
            each(|run| run.grown_mb),
        )
        .at_most(BACKGROUND_MB),
        Row::new(
            "background",
            "processes left after kill -9",
            "",
            each(|run| number(run.left)),
        )
        .at_most(0.0)
        .note(&format!("{} s later", EXIT.as_secs())),
    ])
}

impl Measured {
    /// The delay that this part of the answers did not exceed, ms.
    fn within(&self, percent: usize) -> f64 {
        let at = (self.delays.len() * percent).div_ceil(100).saturating_sub(1);
        self.delays.get(at).copied().unwrap_or(f64::NAN)
    }
}

fn one(subject: &Subject) -> Result<Measured> {
    let stage = Stage::new()?;
    let mut agent = stage.start(subject)?;
    agent.warm_up(&stage)?;
    let before = agent.usage().resident;
    let program = std::env::current_exe().context("this program has no path")?;
    let command = format!("exec '{}' print {BACKGROUND_RATE}", program.display());
    let call = json!({"command": command, "background": true});
    stage.server.push(Reply::many_tools(BACKGROUNDS, "bash", call));
    stage.server.push(Reply::text(["done"]));
    agent.prompt()?;
    let read = output_of(&mut agent)?;
    let start = Instant::now();
    let (mut delays, mut most) = (Vec::new(), 0);
    while start.elapsed() < BACKGROUND_TIME {
        let asked = Instant::now();
        let head = agent.call("get_state", None)?;
        delays.push(head.at.saturating_duration_since(asked).as_secs_f64() * 1e3);
        most = most.max(meter::resident(agent.pid()));
        thread::sleep(BACKGROUND_PAUSE);
    }
    let seconds = start.elapsed().as_secs_f64();
    let read_mb = (output_of(&mut agent)? - read) / seconds;
    delays.sort_by(f64::total_cmp);
    Ok(Measured {
        delays,
        grown_mb: mb(most.saturating_sub(before)),
        read_mb,
        left: left_after_kill(agent)?,
    })
}

/// What the agent has read of all processes, MB. The head of the answer names some of them; the others are taken to be alike.
fn output_of(agent: &mut Runner) -> Result<f64> {
    let head = agent.call("list_processes", None)?;
    let parts: Vec<&str> = head.text.split("\"outputBytes\":").skip(1).collect();
    let digits = |part: &&str| {
        part.split(|c: char| !c.is_ascii_digit())
            .next()?
            .parse::<u64>()
            .ok()
    };
    let counts: Vec<u64> = parts.iter().filter_map(digits).collect();
    anyhow::ensure!(!counts.is_empty(), "no processes: {}", head.text);
    Ok(mb(counts.iter().sum::<u64>()) / number(counts.len()) * number(usize::try_from(BACKGROUNDS)?))
}

/// Kills the agent and counts what lives of its descendants after a moment.
fn left_after_kill(mut agent: Runner) -> Result<usize> {
    let all = meter::tree(agent.pid());
    anyhow::ensure!(
        all.len() > usize::try_from(BACKGROUNDS)?,
        "the processes do not run"
    );
    agent.kill()?;
    let end = Instant::now() + EXIT;
    loop {
        let left = all.iter().filter(|pid| meter::is_alive(**pid)).count();
        if left == 0 || Instant::now() > end {
            return Ok(left);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Prints so many bytes a second: what the background processes run.
///
/// # Errors
/// When stdout is closed.
pub fn print(rate: u64) -> Result<()> {
    let piece = vec![b'x'; PIECE - 1];
    let pause = Duration::from_secs_f64(number(PIECE) / number(usize::try_from(rate.max(1))?));
    let mut out = std::io::stdout().lock();
    let start = Instant::now();
    let mut due = start;
    while start.elapsed() < PRINTING {
        out.write_all(&piece)?;
        out.write_all(b"\n")?;
        due += pause;
        // Without a debt of what a full pipe delayed: it would be printed all at once.
        due = due.max(Instant::now());
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "small counts")]
fn number(count: usize) -> f64 {
    count as f64
}
