//! Lines between a gateway and its client: threads that read and write, so that a slow client blocks no timer.

use std::io::{BufRead, BufReader, Read, Write};

use anyhow::{Result, bail};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::limits::{GATEWAY_LINES, LINE_BYTES};

/// Lines from the client.
pub struct Input(mpsc::Receiver<Vec<u8>>);

impl Input {
    /// Reads lines on a thread of its own. A line that is too long ends the input.
    #[must_use]
    pub fn spawn(source: impl Read + Send + 'static) -> Self {
        let (sender, receiver) = mpsc::channel(GATEWAY_LINES);
        std::thread::spawn(move || {
            let mut source = BufReader::new(source);
            loop {
                let mut line = Vec::new();
                let read = source
                    .by_ref()
                    .take(LINE_BYTES as u64)
                    .read_until(b'\n', &mut line);
                if !matches!(read, Ok(count) if count > 0 && count < LINE_BYTES) {
                    return;
                }
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Self(receiver)
    }

    /// Lines that another task sends.
    pub(crate) fn from_task() -> (mpsc::Sender<Vec<u8>>, Self) {
        let (sender, receiver) = mpsc::channel(GATEWAY_LINES);
        (sender, Self(receiver))
    }

    /// The next line; none at the end of the input.
    pub(crate) async fn next(&mut self) -> Option<Vec<u8>> {
        self.0.recv().await
    }
}

/// Lines to the client.
pub struct Output {
    lines: mpsc::Sender<String>,
    /// None in an output that shares the thread of another.
    finished: Option<oneshot::Receiver<()>>,
    /// The beginning of an object with the session of all lines, if the lines name it.
    session: Option<String>,
}

impl Output {
    /// Writes lines on a thread of its own.
    #[must_use]
    pub fn spawn(mut target: impl Write + Send + 'static) -> Self {
        let (lines, mut receiver) = mpsc::channel::<String>(GATEWAY_LINES);
        let (done, finished) = oneshot::channel();
        std::thread::spawn(move || {
            while let Some(mut line) = receiver.blocking_recv() {
                line.push('\n');
                if target
                    .write_all(line.as_bytes())
                    .and_then(|()| target.flush())
                    .is_err()
                {
                    break;
                }
            }
            // Fails when the gateway does not wait.
            let _no_reader = done.send(());
        });
        Self {
            lines,
            finished: Some(finished),
            session: None,
        }
    }

    /// An output to the same client, whose lines name a session.
    pub(crate) fn of_session(&self, session: &str) -> Self {
        Self {
            lines: self.lines.clone(),
            finished: None,
            session: Some(format!("{{\"session\":{},", Value::from(session))),
        }
    }

    /// Returns true for an output of a session, which shares the thread of another.
    pub(crate) fn is_shared(&self) -> bool {
        self.session.is_some()
    }

    pub(crate) async fn line(&mut self, line: String) -> Result<()> {
        let line = match (&self.session, line.strip_prefix('{')) {
            (Some(session), Some(rest)) => format!("{session}{rest}"),
            _ => line,
        };
        if self.lines.send(line).await.is_err() {
            bail!("the client does not read");
        }
        Ok(())
    }

    /// Waits until everything is written.
    pub(crate) async fn finish(self) -> Result<()> {
        drop(self.lines);
        if let Some(finished) = self.finished {
            drop(finished.await);
        }
        Ok(())
    }
}
