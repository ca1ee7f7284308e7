//! `xtask fuzz-lines`: no input line can end the agent, and each is answered as the protocol says (GUARANTEES.md).
//!
//! Here: running the agent, counting its answers, watching its memory, the report. The lines are made in `lines` and `acp`, checked
//! in `tally`. Lines that would ask a model, run a shell, write a file or open a session (which is memory that the client asked for) are left out.
//! Prompts of ACP are answered from a script; the files and commands of its tools are those of the client, which are lines, too.

mod acp;
mod lines;
pub(crate) mod prng;
mod tally;
#[cfg(test)]
mod tests;

use std::io::{BufRead as _, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use testkit::workspace::Workspace;

use crate::args::Args;
use crate::out::{complain, say};
use lines::{ASKED, Expect, Generator, Line};
use tally::{Seen, Tally};

/// How long the agent may neither take nor give a byte before it counts as stuck.
const STUCK: Duration = Duration::from_secs(30);
/// How long nothing moves once all answers that must come are there.
const QUIET: Duration = Duration::from_secs(1);
/// How long it may take to end after stdin is closed.
const EXIT: Duration = Duration::from_secs(30);
/// Most growth of its memory after the warm-up, in KiB.
const MAX_GROWTH: u64 = 20 * 1024;
/// Share of the lines that are the warm-up, and how many there are at least.
const WARM_UP: (u64, u64) = (20, 2_000);
/// The memory is looked at each time this many lines are written.
const SAMPLE: u64 = 2_000;
/// How many problems are printed.
const PRINTED: usize = 10;
/// How long an answer to the agent waits until the agent has read the lines before it.
const CATCH_UP: Duration = Duration::from_millis(50);
/// An address where nothing listens: no line of the pool asks a model.
const NO_SERVER: &str = "http://127.0.0.1:9";

/// What to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The program.
    agent: PathBuf,
    /// How many lines.
    count: u64,
    /// Same seed, same lines.
    seed: u64,
    /// True for the Agent Client Protocol.
    is_acp: bool,
}

impl Options {
    /// Reads the command line.
    ///
    /// # Errors
    /// When `--agent` is missing or a number is none.
    pub fn parse(args: &mut Args) -> Result<Self> {
        Ok(Self {
            agent: std::path::absolute(args.required::<PathBuf>("--agent")?)?,
            count: args.option("--count")?.unwrap_or(1_000_000),
            seed: args.option("--seed")?.unwrap_or_else(prng::fresh_seed),
            is_acp: args.flag("--acp"),
        })
    }
}

/// The chore; false when the agent broke a promise.
///
/// # Errors
/// When the agent cannot be run at all.
pub fn run(options: &Options) -> Result<bool> {
    say(&format!(
        "fuzz-lines: {} lines{}, --seed {}",
        options.count,
        if options.is_acp { " of ACP" } else { "" },
        options.seed
    ));
    let workspace = Workspace::new(NO_SERVER)?;
    let mut child = start(options, &workspace)?;
    let started = Instant::now();
    let run = Run::default();
    let outcome = run.drive(options, &workspace, &mut child);
    let seconds = started.elapsed().as_secs_f64();
    if outcome.is_err() {
        child.kill().ok();
        child.wait().ok();
    }
    let outcome = outcome?;
    for problem in outcome.problems.iter().take(PRINTED) {
        complain(problem);
    }
    #[expect(clippy::cast_precision_loss, reason = "line counts stay far below 2^53")]
    let speed = outcome.sent as f64 / seconds;
    say(&format!(
        "fuzz-lines: {} lines, {} answers, {} requests of the agent, {speed:.0} lines/s, memory {} -> {} KiB, {} problems",
        outcome.sent,
        outcome.answers,
        run.asked.load(Ordering::Relaxed),
        outcome.memory.0,
        outcome.memory.1,
        outcome.problems.len()
    ));
    Ok(outcome.problems.is_empty())
}

/// The lines of a run.
fn lines(options: &Options, workspace: &Workspace) -> Box<dyn Iterator<Item = Line>> {
    match options.is_acp {
        true => Box::new(acp::Generator::new(options.seed, &workspace.cwd())),
        false => Box::new(Generator::new(options.seed)),
    }
}

fn start(options: &Options, workspace: &Workspace) -> Result<Child> {
    let mut command = Command::new(&options.agent);
    if options.is_acp {
        let folder = workspace.agent_dir().join("sessions").join("--fuzzed--");
        std::fs::create_dir_all(&folder)?;
        for sample in acp::stored_sessions(&workspace.cwd()) {
            std::fs::write(folder.join(sample.file_name()), sample.text())?;
        }
        workspace.write_settings(&serde_json::json!({"permissions": {"mode": "ask"}}))?;
        let script = workspace.root().join("replies.json");
        std::fs::write(&script, acp::replies().to_string())?;
        command.args(["--mode", "acp", "--model", "offline/script", "--script"]);
        command.arg(script);
    } else {
        command.args(["--mode", "rpc", "--no-session"]);
    }
    command.env_clear().envs(workspace.env());
    command
        .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
        .current_dir(workspace.cwd());
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
        .spawn()
        .with_context(|| format!("cannot start {}", options.agent.display()))
}

/// What a run showed.
struct Outcome {
    sent: u64,
    answers: u64,
    /// KiB after the warm-up, and the most afterwards.
    memory: (u64, u64),
    problems: Vec<String>,
}

/// What the threads of a run share.
#[derive(Default)]
struct Run {
    /// Grows with every line written and read.
    progress: AtomicU64,
    answers: AtomicU64,
    /// Requests of the agent: the id of the last one.
    asked: AtomicU64,
    /// One more than the highest number of a line that was answered.
    reached: AtomicU64,
    /// Answers with the number of a line.
    numbered: AtomicU64,
    done: AtomicBool,
}

impl Run {
    fn drive(&self, options: &Options, workspace: &Workspace, child: &mut Child) -> Result<Outcome> {
        let stdin = child.stdin.take().context("no stdin")?;
        let stdout = child.stdout.take().context("no stdout")?;
        let pid = child.id();
        thread::scope(|scope| {
            let reader = scope.spawn(|| self.read(stdout));
            scope.spawn(|| self.watch(pid));
            let mut tally = Tally::default();
            let mut memory = Memory::new(pid, options.count);
            let mut problems = Vec::new();
            let mut pipe = BufWriter::with_capacity(64 << 10, stdin);
            let mut known = 0;
            for line in lines(options, workspace).take(usize::try_from(options.count)?) {
                if matches!(line.expect, Expect::Code(_)) {
                    known = line.number + 1;
                }
                let written = self.write(&mut pipe, &line, known);
                if let Err(error) = written {
                    problems.push(format!(
                        "the agent stopped reading at line {}: {error}",
                        line.number
                    ));
                    break;
                }
                memory.sample(line.number);
                tally.sent(&line);
                self.progress.fetch_add(1, Ordering::Relaxed);
            }
            if options.is_acp {
                self.end_prompt(&mut pipe, &workspace.cwd(), tally.expected().0);
            }
            if pipe.flush().is_ok() {
                self.await_answers(tally.expected());
            }
            memory.last();
            if let Some(status) = child.try_wait()? {
                problems.push(format!("the agent ended by itself: {status}"));
            }
            drop(pipe);
            problems.extend(self.end(child)?);
            self.done.store(true, Ordering::Relaxed);
            let seen = reader.join().unwrap_or_default();
            problems.extend(tally.compare(&seen, lines(options, workspace)));
            problems.extend(memory.problem());
            let answers = self.answers.load(Ordering::Relaxed);
            Ok(Outcome {
                sent: tally.lines(),
                answers,
                memory: (memory.base, memory.peak),
                problems,
            })
        })
    }

    /// Writes a line. `known` is one more than the number of the last line that the agent answers at once.
    fn write(&self, pipe: &mut impl Write, line: &Line, known: u64) -> std::io::Result<()> {
        if !line.answers {
            pipe.write_all(&line.bytes)?;
            return pipe.write_all(b"\n");
        }
        pipe.flush()?;
        let until = Instant::now() + CATCH_UP;
        while self.reached.load(Ordering::Relaxed) < known && Instant::now() < until {
            thread::sleep(Duration::from_micros(100));
        }
        let asked = self.asked.load(Ordering::Relaxed).to_string();
        let text = String::from_utf8_lossy(&line.bytes).replace(ASKED, &asked);
        pipe.write_all(text.as_bytes())?;
        pipe.write_all(b"\n")
    }

    /// Cancels the prompt that runs and refuses its last request, again and again: until all lines are answered that must be, the agent
    /// does not read any more, or the time is over.
    fn end_prompt(&self, pipe: &mut impl Write, cwd: &Path, least: u64) {
        let lines = acp::last_lines(cwd);
        let end = Instant::now() + STUCK;
        if pipe.flush().is_err() {
            return;
        }
        while self.numbered.load(Ordering::Relaxed) < least && Instant::now() < end {
            let asked = self.asked.load(Ordering::Relaxed).to_string();
            for line in &lines {
                let line = line.replace(ASKED, &asked);
                if writeln!(pipe, "{line}").and_then(|()| pipe.flush()).is_err() {
                    return;
                }
            }
            thread::sleep(CATCH_UP);
        }
    }

    fn read(&self, stdout: impl Read) -> Seen {
        let mut seen = Seen::default();
        let mut pipe = BufReader::with_capacity(256 << 10, stdout);
        let mut line = Vec::new();
        while pipe.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
            self.progress.fetch_add(1, Ordering::Relaxed);
            if seen.line(&line) {
                self.answers.fetch_add(1, Ordering::Relaxed);
            }
            self.asked.store(seen.asked.unwrap_or(0), Ordering::Relaxed);
            self.reached.store(seen.reached, Ordering::Relaxed);
            self.numbered.store(seen.numbered, Ordering::Relaxed);
            line.clear();
        }
        seen
    }

    /// Waits until the most answers are there, or the least and no more follow, or nothing moves any more.
    fn await_answers(&self, (least, most): (u64, u64)) {
        let mut last = (self.progress.load(Ordering::Relaxed), Instant::now());
        loop {
            let answers = self.answers.load(Ordering::Relaxed);
            let wait = if answers < least { STUCK / 3 } else { QUIET };
            if answers >= most || last.1.elapsed() >= wait {
                return;
            }
            thread::sleep(Duration::from_millis(20));
            let now = self.progress.load(Ordering::Relaxed);
            if now != last.0 {
                last = (now, Instant::now());
            }
        }
    }

    /// Kills an agent that is stuck, so that no write to it can wait for ever.
    fn watch(&self, pid: u32) {
        let mut last = (self.progress.load(Ordering::Relaxed), Instant::now());
        while !self.done.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(100));
            let now = self.progress.load(Ordering::Relaxed);
            if now != last.0 {
                last = (now, Instant::now());
            } else if last.1.elapsed() > STUCK {
                complain("the agent is stuck and is killed");
                Command::new("kill").args(["-9", &pid.to_string()]).status().ok();
                return;
            }
        }
    }

    fn end(&self, child: &mut Child) -> Result<Option<String>> {
        let deadline = Instant::now() + EXIT;
        loop {
            match child.try_wait()? {
                Some(status) if status.success() => return Ok(None),
                Some(status) => return Ok(Some(format!("the agent ended with {status}"))),
                None if Instant::now() < deadline => thread::sleep(Duration::from_millis(20)),
                None => {
                    child.kill()?;
                    child.wait()?;
                    return Ok(Some(format!(
                        "the agent did not end within {EXIT:?} after stdin was closed"
                    )));
                }
            }
        }
    }
}

/// Memory of the agent.
struct Memory {
    status: PathBuf,
    warm_up: u64,
    base: u64,
    peak: u64,
}

impl Memory {
    fn new(pid: u32, count: u64) -> Self {
        let warm_up = (count / WARM_UP.0).max(WARM_UP.1);
        Self {
            status: PathBuf::from(format!("/proc/{pid}/status")),
            warm_up,
            base: 0,
            peak: 0,
        }
    }

    fn sample(&mut self, number: u64) {
        if number < self.warm_up || !number.is_multiple_of(SAMPLE) {
            return;
        }
        self.last();
    }

    fn last(&mut self) {
        let now = self.resident().unwrap_or(0);
        if self.base == 0 {
            self.base = now;
        }
        self.peak = self.peak.max(now);
    }

    fn resident(&self) -> Option<u64> {
        let status = std::fs::read_to_string(&self.status).ok()?;
        status.lines().find_map(|line| {
            line.strip_prefix("VmRSS:")?
                .trim()
                .strip_suffix(" kB")?
                .parse()
                .ok()
        })
    }

    fn problem(&self) -> Option<String> {
        let growth = self.peak.saturating_sub(self.base);
        (growth > MAX_GROWTH).then(|| format!("memory grew by {growth} KiB, more than {MAX_GROWTH}"))
    }
}
