//! Runs npm and git: as children of the reaper, with a timeout, killed with all descendants on Ctrl-C.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use auth::Secrets;
use process::{Ended, Output, Reaper, SpawnSpec};
use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::limits::{ERROR_BYTES, OUTPUT_BYTES, PIPES, SHOW_AFTER};
use crate::progress::Progress;

/// The error of a run that the user cancelled.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("Cancelled; nothing was changed")]
pub(super) struct Cancelled;

/// Starts programs for package commands.
pub(super) struct Programs {
    pub(super) reaper: Reaper,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) secrets: Secrets,
    pub(super) cancel: CancellationToken,
}

/// One run of a program.
pub(super) struct Run<'a> {
    /// A name that is looked up in `PATH`, or a path.
    pub(super) program: &'a str,
    pub(super) args: Vec<OsString>,
    pub(super) cwd: &'a Path,
    pub(super) limit: Duration,
    /// What to do if the program does not exist.
    pub(super) advice: &'static str,
}

impl Programs {
    /// Runs a program to its end and returns its standard output.
    ///
    /// # Errors
    /// If the program does not exist, fails, takes too long or is cancelled.
    pub(super) async fn run(&self, run: Run<'_>) -> anyhow::Result<String> {
        if self.cancel.is_cancelled() {
            return Err(Cancelled.into());
        }
        let program = self
            .find(run.program)
            .with_context(|| format!("{} was not found. {}", run.program, run.advice))?;
        let shown = self.shown(&run);
        let first = run.args.first().map(|arg| arg.to_string_lossy());
        let label = format!("Running {} {}", run.program, first.unwrap_or_default());
        let _progress = Progress::after(SHOW_AFTER, label);
        let spec = SpawnSpec {
            program: program.into_os_string(),
            args: run.args,
            env: self.env.clone(),
            cwd: run.cwd.as_os_str().to_owned(),
        };
        let (mut child, pipes) = self.reaper.spawn_piped(spec).await?;
        drop(pipes.input);
        let mut texts = Box::pin(async { tokio::join!(read(pipes.output), read(pipes.errors)) });
        let mut both = None;
        let until_end = async {
            tokio::select! {
                biased;
                texts = &mut texts => both = Some(texts),
                ended = child.ended() => return ended,
            }
            child.ended().await
        };
        let ended = tokio::select! {
            ended = timeout(run.limit, until_end) => ended.ok(),
            () = self.cancel.cancelled() => {
                let _gone = child.kill().await;
                return Err(Cancelled.into());
            }
        };
        let Some(ended) = ended else {
            let _gone = child.kill().await;
            bail!("{shown} timed out after {} s", run.limit.as_secs());
        };
        let (output, errors) = match both {
            Some(texts) => texts,
            None => timeout(PIPES, texts).await.unwrap_or_default(),
        };
        let why = match ended {
            Ended::Code(0) => return Ok(String::from_utf8_lossy(&output).into_owned()),
            Ended::Code(code) => format!("code {code}"),
            Ended::Signal(signal) => format!("signal {signal}"),
            Ended::Lost => "an unknown end".to_owned(),
        };
        let text = if errors.trim_ascii().is_empty() {
            output
        } else {
            errors
        };
        let tail = text
            .get(text.len().saturating_sub(ERROR_BYTES)..)
            .unwrap_or_default();
        let tail = String::from_utf8_lossy(tail).trim().to_owned();
        Err(anyhow!(
            self.secrets.redact(format!("{shown} failed with {why}\n{tail}"))
        ))
    }

    /// The command line as error messages show it.
    fn shown(&self, run: &Run<'_>) -> String {
        let args = run.args.iter().map(|arg| arg.to_string_lossy());
        let words: Vec<_> = std::iter::once(run.program.into()).chain(args).collect();
        words.join(" ")
    }

    fn find(&self, name: &str) -> Option<PathBuf> {
        let is_program = |file: &PathBuf| {
            file.metadata()
                .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        };
        if name.contains('/') {
            return Some(PathBuf::from(name)).filter(is_program);
        }
        let path = self.env.iter().find(|(name, _)| name == OsStr::new("PATH"))?;
        std::env::split_paths(&path.1)
            .filter(|dir| dir.is_absolute())
            .map(|dir| dir.join(name))
            .find(is_program)
    }
}

/// Reads a stream to its end; only the last bytes are kept.
async fn read(mut stream: Output) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count) = stream.read(&mut buffer).await {
        if count == 0 {
            break;
        }
        kept.extend_from_slice(buffer.get(..count).unwrap_or_default());
        if kept.len() > 2 * OUTPUT_BYTES {
            kept.drain(..kept.len() - OUTPUT_BYTES);
        }
    }
    kept
}
