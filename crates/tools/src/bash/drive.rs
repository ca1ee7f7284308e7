//! Starts one command and runs it to its end: reads its pipe, watches for exit, timeout and abort (pi-core.md 5.4).

use std::io;
use std::pin::pin;
use std::time::Duration;

use tokio::net::unix::pipe::Receiver;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::limits;
use process::{Child, ChildError, Ended, Reaper, SpawnSpec};

/// Who takes the output.
pub(crate) trait Sink {
    /// Takes the next bytes.
    async fn data(&mut self, bytes: &[u8]);
    /// When it wants to be called without new bytes.
    fn due(&self) -> Option<Instant>;
    /// Called at that time.
    fn tick(&mut self);
}

/// Why a command is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It ended by itself.
    Ended(Ended),
    /// It ran into its timeout and was killed.
    TimedOut,
    /// It was aborted and killed.
    Aborted,
    /// It ended in a terminal of the client, which does not know how.
    Unknown,
}

/// Starts a command; none if it was aborted first.
///
/// A command can already run and print before its start is reported here. An abort in that moment waits briefly for the
/// report, so that `drive` reads the output.
pub(crate) async fn start(
    reaper: &Reaper,
    spec: SpawnSpec,
    cancel: &CancellationToken,
) -> Result<Option<(Child, Receiver)>, ChildError> {
    if cancel.is_cancelled() {
        return Ok(None);
    }
    let mut starting = pin!(reaper.spawn(spec));
    tokio::select! {
        biased;
        started = &mut starting => return started.map(Some),
        () = cancel.cancelled() => {}
    }
    match timeout(limits::DRAIN_KILLED, starting).await {
        Ok(started) => started.map(Some),
        Err(_) => Ok(None),
    }
}

/// Reads until the command is over. When this is dropped midway, the command is killed.
pub(crate) async fn drive(
    mut child: Child,
    mut pipe: Receiver,
    limit: Option<Duration>,
    cancel: &CancellationToken,
    sink: &mut impl Sink,
) -> Stop {
    let deadline = limit.map(|limit| Instant::now() + limit.min(limits::TIMEOUT_MAX));
    let mut reader = PipeReader::default();
    let mut ended: Option<Ended> = None;
    let mut drain: Option<(Instant, Instant)> = None;
    let stop = loop {
        if reader.closed
            && let Some(ended) = ended
        {
            return Stop::Ended(ended);
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => break Stop::Aborted,
            () = until(deadline) => break Stop::TimedOut,
            end = child.ended(), if ended.is_none() => {
                ended = Some(end);
                let now = Instant::now();
                drain = Some((now + limits::DRAIN_IDLE, now + limits::DRAIN_MAX));
            }
            ready = pipe.readable(), if !reader.closed => {
                let got = match ready {
                    Ok(()) => reader.read(&mut pipe, sink).await,
                    Err(_) => { reader.closed = true; 0 }
                };
                if let Some((idle, _)) = drain.as_mut().filter(|_| got > 0) {
                    *idle = Instant::now() + limits::DRAIN_IDLE;
                }
            }
            () = until(sink.due()) => sink.tick(),
            () = until(drain.map(|(idle, last)| idle.min(last))) => {
                return ended.map_or(Stop::Ended(Ended::Lost), Stop::Ended);
            }
        }
        // A flood must not keep the pipe of an ended command open for ever.
        if drain.is_some_and(|(_, last)| Instant::now() >= last) {
            return ended.map_or(Stop::Ended(Ended::Lost), Stop::Ended);
        }
    };
    let _ = child.kill().await;
    // What it had written before is still in the pipe.
    let rest = async {
        while !reader.closed && pipe.readable().await.is_ok() {
            reader.read(&mut pipe, sink).await;
        }
    };
    let _ = timeout(limits::DRAIN_KILLED, rest).await;
    let _ = timeout(limits::DRAIN_KILLED, child.ended()).await;
    stop
}

async fn until(when: Option<Instant>) {
    match when {
        Some(when) => sleep_until(when).await,
        None => std::future::pending().await,
    }
}

/// Reads in gulps that grow with the command's talkativeness.
#[derive(Debug, Default)]
struct PipeReader {
    buffer: Vec<u8>,
    total: u64,
    closed: bool,
    grown: bool,
}

impl PipeReader {
    /// Reads once, hands it on and returns how much it was.
    async fn read(&mut self, pipe: &mut Receiver, sink: &mut impl Sink) -> usize {
        if self.buffer.is_empty() {
            self.buffer.resize(limits::PIPE_READ.0, 0);
        }
        let got = match pipe.try_read(&mut self.buffer) {
            Ok(0) => {
                self.closed = true;
                return 0;
            }
            Ok(got) => got,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                return 0;
            }
            Err(_) => {
                self.closed = true;
                return 0;
            }
        };
        self.total += got as u64;
        sink.data(self.buffer.get(..got).unwrap_or_default()).await;
        if self.total > limits::PIPE_EAGER {
            self.be_eager(pipe);
            if got < self.buffer.len() / 2 {
                sleep(limits::PIPE_PAUSE).await;
            }
        }
        got
    }

    fn be_eager(&mut self, pipe: &Receiver) {
        if !self.grown {
            self.grown = true;
            self.buffer.resize(limits::PIPE_READ.1, 0);
            #[cfg(target_os = "linux")]
            let _ = rustix::pipe::fcntl_setpipe_size(pipe, limits::PIPE_SIZE);
            #[cfg(not(target_os = "linux"))]
            let _ = pipe;
        }
    }
}
