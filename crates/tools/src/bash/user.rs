//! The user's `bash` command (pi-core.md 1.13): clients get all of the cleaned output, the record gets its end.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wire::Dialect;
use wire::state::OutputCounts;

use super::Means;
use super::drive::{Sink, Stop, drive, start};
use super::output::Collector;
use crate::error::ToolsError;
use crate::text::clean::Cleaner;
use process::Ended;

/// A command of the user.
#[derive(Debug)]
pub struct UserBash {
    /// The command line.
    pub command: String,
    /// Working directory, absolute.
    pub cwd: PathBuf,
    /// Cancelled by `abort_bash`.
    pub cancel: CancellationToken,
    /// Takes the cleaned output as it comes. While it is full, the command waits.
    pub deltas: Option<mpsc::Sender<String>>,
    /// Variables added to the environment.
    pub env: Vec<(OsString, OsString)>,
}

/// What a command of the user came to; the `data` of the `bash` response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BashRun {
    /// The end of the cleaned output.
    pub output: String,
    /// None when it was aborted; for older dialects also when a signal killed it.
    pub exit_code: Option<i32>,
    /// True if the command was aborted.
    pub cancelled: bool,
    /// True if `output` is only a part.
    pub truncated: bool,
    /// Where all of it is, when truncated.
    pub full_output_path: Option<String>,
    /// How much it printed and how much of it `output` is.
    pub counts: OutputCounts,
}

/// The output of a command of the user: cleaned, cut and logged. A command that an extension runs elsewhere has the same.
#[derive(Debug)]
pub struct UserOutput {
    cleaner: Cleaner,
    collector: Collector,
}

impl UserOutput {
    /// No output yet; a log would go to `tmp_dir`.
    pub(crate) fn new(tmp_dir: &Path, dialect: Dialect) -> Self {
        Self {
            cleaner: Cleaner::default(),
            collector: Collector::new(tmp_dir, dialect.into()),
        }
    }

    /// Takes the next bytes. Returns their cleaned text.
    pub async fn push(&mut self, bytes: &[u8]) -> String {
        let mut text = String::new();
        self.cleaner.push(bytes, &mut text);
        self.collector.push(text.as_bytes());
        self.collector.flush(false).await;
        text
    }

    /// Ends the output. Returns the rest of its cleaned text.
    pub async fn finish(&mut self) -> String {
        let mut text = String::new();
        self.cleaner.finish(&mut text);
        self.collector.push(text.as_bytes());
        self.collector.flush(true).await;
        text
    }

    /// The outcome of the command, with the end of the output.
    #[must_use]
    pub fn outcome(&self, exit_code: Option<i32>, cancelled: bool) -> BashRun {
        let cut = self.collector.snapshot(true);
        BashRun {
            exit_code,
            cancelled,
            truncated: cut.truncated,
            full_output_path: if cut.truncated {
                self.collector.path()
            } else {
                None
            },
            counts: OutputCounts {
                total_lines: cut.total_lines,
                total_bytes: cut.total_bytes,
                output_lines: cut.output_lines,
                output_bytes: cut.output_bytes,
            },
            output: cut.content,
        }
    }
}

/// Runs a command of the user.
pub(crate) async fn run(request: UserBash, means: &Means<'_>) -> Result<BashRun, ToolsError> {
    let UserBash {
        command,
        cwd,
        cancel,
        deltas,
        env,
    } = request;
    let mut spec = means.shell.spec(&command.replace('\0', ""), &cwd, &env)?;
    if let Some(guard) = means.guard {
        let policy = guard.policy(&cwd).map_err(ToolsError::Sandbox)?;
        spec = guard.command(spec, &policy).map_err(ToolsError::Sandbox)?;
    }
    let started = start(means.reaper, spec, &cancel).await?;
    let mut sink = Clean {
        output: UserOutput::new(means.tmp_dir, means.dialect),
        deltas,
        cancel: &cancel,
    };
    let stop = match started {
        Some((child, pipe)) => drive(child, pipe, None, &cancel, &mut sink).await,
        None => Stop::Aborted,
    };
    let rest = sink.output.finish().await;
    sink.pass_on(rest).await;
    let exit_code = match stop {
        Stop::Ended(Ended::Code(code)) => Some(code),
        // As shells report it. pi left it out before 1.0.
        Stop::Ended(Ended::Signal(number)) if means.dialect.is_newest_pi() => Some(128 + number),
        _ => None,
    };
    Ok(sink.output.outcome(exit_code, stop == Stop::Aborted))
}

struct Clean<'a> {
    output: UserOutput,
    deltas: Option<mpsc::Sender<String>>,
    cancel: &'a CancellationToken,
}

impl Clean<'_> {
    async fn pass_on(&mut self, delta: String) {
        let Some(deltas) = self.deltas.as_ref().filter(|_| !delta.is_empty()) else {
            return;
        };
        // A reader that has stopped reading must not hold up an abort.
        tokio::select! {
            biased;
            sent = deltas.send(delta) => if sent.is_err() { self.deltas = None },
            () = self.cancel.cancelled() => {}
        }
    }
}

impl Sink for Clean<'_> {
    async fn data(&mut self, bytes: &[u8]) {
        let delta = self.output.push(bytes).await;
        self.pass_on(delta).await;
    }

    fn due(&self) -> Option<Instant> {
        None
    }

    fn tick(&mut self) {}
}
