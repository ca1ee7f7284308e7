//! The `bash` tool (pi-core.md 5.4): results, notices and progress updates.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;
use wire::{Dialect, ToolResult, UserBlock};

use super::Means;
use super::drive::{Sink, Stop, drive, start};
use super::output::Collector;
use super::terminal;
use crate::args::Args;
use crate::config::{Progress, ToolContext, ToolOutcome};
use crate::limits;
use crate::text::truncate::Truncation;
use process::Ended;
use process::sandbox::{Guard, Outcome, Policy};

/// Runs the tool.
pub(crate) async fn run(args: &Args, ctx: &ToolContext, means: &Means<'_>) -> ToolOutcome {
    run_command(args, ctx, means)
        .await
        .unwrap_or_else(ToolOutcome::error)
}

/// Refuses a number that is no time, as today's pi does (pi-1.5-delta.md 7). Other dialects take it as no timeout.
fn check_timeout(seconds: f64) -> Result<(), String> {
    // The timers of its runtime count milliseconds in 31 bits.
    const MOST: f64 = 2_147_483.647;
    if !seconds.is_finite() || seconds <= 0.0 {
        return Err("Invalid timeout: must be a finite number of seconds".to_owned());
    }
    if seconds > MOST {
        return Err(format!("Invalid timeout: maximum is {MOST} seconds"));
    }
    Ok(())
}

/// Runs the command. The error is the text the model sees when there was no command to end.
async fn run_command(args: &Args, ctx: &ToolContext, means: &Means<'_>) -> Result<ToolOutcome, String> {
    let command = args.str("command");
    let asked = args.number("timeout").filter(|seconds| *seconds > 0.0);
    let seconds = asked.or(means.default_timeout.map(|default| default.as_secs_f64()));
    let limit = seconds.map(|s| Duration::try_from_secs_f64(s).unwrap_or(limits::TIMEOUT_MAX));
    if command.contains('\0') {
        return Err("The command must not contain null bytes".to_owned());
    }
    // pi sends the empty update before it checks whether the command can start.
    ctx.progress.put(ToolResult {
        content: Vec::new(),
        details: None,
        structured_content: None,
        usage: None,
        terminate: None,
        has_failed: false,
        is_replaced: false,
    });
    if means.dialect.is_newest_pi() {
        args.number("timeout").map_or(Ok(()), check_timeout)?;
    }
    let mut spec = means
        .shell
        .spec(command, &ctx.cwd, &ctx.env)
        .map_err(|error| error.to_string())?;
    let began = Instant::now();
    let collector = || Collector::new(means.tmp_dir, means.dialect.into());
    if let Some(client) = means.client
        && let Some((collector, stop)) = terminal::run(client, &spec, limit, ctx, collector()).await?
    {
        let done = conclude(&collector, stop, seconds);
        return Ok(outcome(done, &collector, stop, (began, means.dialect)).await);
    }
    let mut confined = None;
    if let Some(guard) = means.guard {
        let policy = guard.policy(&ctx.cwd)?;
        spec = guard.command(spec, &policy)?;
        confined = Some((guard, policy));
    }
    let started = start(means.reaper, spec, &ctx.cancel)
        .await
        .map_err(|error| error.to_string())?;
    let Some((child, pipe)) = started else {
        return Err("Command aborted".to_owned());
    };
    let began = Instant::now();
    let mut sink = Updates::new(&ctx.progress, collector());
    let stop = drive(child, pipe, limit, &ctx.cancel, &mut sink).await;
    let stop = match stop {
        // As shells report it (recorded from pi 1.5.2).
        Stop::Ended(Ended::Signal(number)) if means.dialect.is_newest_pi() => {
            Stop::Ended(Ended::Code(128 + number))
        }
        stop => stop,
    };
    let collector = sink.finish().await;
    let done = conclude(&collector, stop, seconds);
    let done = match confined {
        Some((guard, policy)) => with_hint(done, stop, guard, &policy),
        None => done,
    };
    Ok(outcome(done, &collector, stop, (began, means.dialect)).await)
}

/// The outcome of a command that has ended.
async fn outcome(
    done: Result<ToolResult, String>,
    collector: &Collector,
    stop: Stop,
    (began, dialect): (Instant, Dialect),
) -> ToolOutcome {
    let mut outcome = ToolOutcome::from(done);
    if let Stop::Ended(Ended::Code(code)) = stop {
        let seconds = (began.elapsed().as_secs_f64() * 10.0).round() / 10.0;
        outcome.result.structured_content = Some(structured(collector, code, seconds).await);
        outcome.result.has_failed = code != 0;
        // Today's pi returns the result of such a command. Older versions throw, so that only the text remains.
        if outcome.is_error && dialect.is_newest_pi() {
            let cut = collector.snapshot(true);
            outcome.result.details = cut.truncated.then(|| details(&cut, collector.path()));
        }
    }
    outcome
}

/// The result for programs: more of the output than the model sees, and the exit code as a number (pi-1.5-delta.md 7).
async fn structured(collector: &Collector, code: i32, seconds: f64) -> Value {
    let whole = collector.whole(limits::STRUCTURED_MAX).await;
    let mut content = Map::new();
    content.insert("output".to_owned(), whole.text.into());
    content.insert("truncated".to_owned(), whole.truncated.into());
    if let Some(path) = collector.path().filter(|_| whole.truncated) {
        content.insert("full_output_path".to_owned(), path.into());
    }
    content.insert("exit_code".to_owned(), code.into());
    content.insert("wall_time_seconds".to_owned(), seconds.into());
    Value::Object(content)
}

/// Adds what the sandbox may have had to do with an outcome.
fn with_hint(
    done: Result<ToolResult, String>,
    stop: Stop,
    guard: &Guard,
    policy: &Policy,
) -> Result<ToolResult, String> {
    match done {
        Ok(mut result) => {
            if let Some(hint) = guard.hint(policy, &result.joined_text(), Outcome::Succeeded)
                && let Some(UserBlock::Text(block)) = result.content.last_mut()
            {
                let _ = write!(block.text, "\n{hint}");
            }
            Ok(result)
        }
        Err(text) => {
            let outcome = match stop {
                Stop::TimedOut => Outcome::TimedOut,
                _ => Outcome::Failed,
            };
            let hint = guard.hint(policy, &text, outcome);
            Err(hint.map_or_else(|| text.clone(), |hint| format!("{text}\n{hint}")))
        }
    }
}

/// The tool's result for an output and the way the command stopped.
fn conclude(collector: &Collector, stop: Stop, seconds: Option<f64>) -> Result<ToolResult, String> {
    let cut = collector.snapshot(true);
    let mut text = cut.content.clone();
    if cut.truncated {
        let _ = write!(text, "\n\n{}", collector.notice(&cut));
    }
    let quiet = text.is_empty();
    let or_none = |text: String| if quiet { "(no output)".to_owned() } else { text };
    match stop {
        Stop::Ended(Ended::Code(0)) => {
            let mut result = ToolResult::text(or_none(text));
            result.details = cut.truncated.then(|| details(&cut, collector.path()));
            Ok(result)
        }
        Stop::Ended(Ended::Code(code)) => {
            Err(format!("{}\n\nCommand exited with code {code}", or_none(text)))
        }
        Stop::Ended(Ended::Signal(number)) => Err(format!(
            "{}\n\nCommand was killed by signal {}",
            or_none(text),
            signal_name(number)
        )),
        Stop::Ended(Ended::Lost) => Err(format!(
            "{}\n\n{}",
            or_none(text),
            process::ChildError::GuardianLost
        )),
        Stop::TimedOut => {
            let seconds = seconds.unwrap_or_default();
            Err(under(text, &format!("Command timed out after {seconds} seconds")))
        }
        Stop::Aborted => Err(under(text, "Command aborted")),
        Stop::Unknown => Err(under(text, "The client does not know how the command ended")),
    }
}

fn under(text: String, line: &str) -> String {
    if text.is_empty() {
        line.to_owned()
    } else {
        format!("{text}\n\n{line}")
    }
}

/// Signals with a common name.
const SIGNALS: [(i32, &str); 12] = [
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (11, "SIGSEGV"),
    (13, "SIGPIPE"),
    (14, "SIGALRM"),
    (15, "SIGTERM"),
];

/// `9 (SIGKILL)`; signals without a common name are numbers only.
fn signal_name(number: i32) -> String {
    match SIGNALS.iter().find(|(known, _)| *known == number) {
        Some((_, name)) => format!("{number} ({name})"),
        None => number.to_string(),
    }
}

/// The number of a signal by its name or number. `None` if it is unknown.
pub(super) fn signal_number(name: &str) -> Option<i32> {
    let named = SIGNALS.iter().find(|(_, known)| *known == name);
    named.map(|(number, _)| *number).or_else(|| name.parse().ok())
}

fn details(cut: &Truncation, path: Option<String>) -> Value {
    let mut details = Map::new();
    if cut.truncated {
        details.insert("truncation".to_owned(), cut.to_value());
    }
    if let Some(path) = path {
        details.insert("fullOutputPath".to_owned(), json!(path));
    }
    Value::Object(details)
}

/// Sends the current tail at most every [`limits::UPDATE_EVERY`], at once when nothing was sent lately.
struct Updates<'a> {
    progress: &'a Progress,
    collector: Collector,
    sent: Option<Instant>,
    dirty: bool,
}

impl<'a> Updates<'a> {
    fn new(progress: &'a Progress, collector: Collector) -> Self {
        Self {
            progress,
            collector,
            sent: None,
            dirty: false,
        }
    }

    fn send(&mut self, done: bool) {
        let cut = self.collector.snapshot(done);
        let details = details(&cut, self.collector.path());
        let content = vec![UserBlock::text(cut.content)];
        self.progress.put(ToolResult {
            content,
            details: Some(details),
            structured_content: None,
            usage: None,
            terminate: None,
            has_failed: false,
            is_replaced: false,
        });
        self.sent = Some(Instant::now());
        self.dirty = false;
    }

    /// Sends what has not been sent and completes the log.
    async fn finish(mut self) -> Collector {
        self.collector.flush(true).await;
        if self.dirty {
            self.send(true);
        }
        self.collector
    }
}

impl Sink for Updates<'_> {
    async fn data(&mut self, bytes: &[u8]) {
        self.collector.push(bytes);
        self.collector.flush(false).await;
        self.dirty = true;
        if self.due().is_some_and(|due| due <= Instant::now()) {
            self.tick();
        }
    }

    fn due(&self) -> Option<Instant> {
        let last = || {
            self.sent
                .map_or_else(Instant::now, |sent| sent + limits::UPDATE_EVERY)
        };
        self.dirty.then(last)
    }

    fn tick(&mut self) {
        self.send(false);
    }
}
