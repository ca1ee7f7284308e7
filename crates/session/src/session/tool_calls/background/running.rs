//! One process that runs: its output is read, its input written, its end noted. It is read no faster than all processes together
//! leave time for the session.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use process::{Child, CommandProcesses, Ended, Terminal};
use tokio::io::AsyncReadExt as _;
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe;
use tokio::sync::{Mutex, watch};
use tools::{StartedCommand, TerminalSize};
use wire::process::ProcessStatus;

use crate::session::clock::now_ms;
use crate::{limits, strings};

use super::process::Process;

/// Processes that are read now, of all sessions.
static READ: AtomicUsize = AtomicUsize::new(0);

/// A process and the agent's ends of its streams.
pub(super) struct Running {
    child: Child,
    output: pipe::Receiver,
    kill: watch::Receiver<bool>,
}

/// What others do with a process.
pub(super) struct Control {
    kill: watch::Sender<bool>,
    // Locked for a whole write: the model and clients may write at the same time.
    pub(super) input: Mutex<pipe::Sender>,
    terminal: Option<Terminal>,
}

impl Running {
    /// A process that was started, and the handle to control it.
    pub(super) fn new(started: StartedCommand) -> (Self, Control) {
        let (kill, killed) = watch::channel(false);
        let running = Self {
            child: started.child,
            output: started.output,
            kill: killed,
        };
        let control = Control {
            kill,
            input: Mutex::new(started.input),
            terminal: started.terminal,
        };
        (running, control)
    }

    /// Its process id.
    pub(super) fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// The processes of its command.
    pub(super) fn members(&self) -> CommandProcesses {
        self.child.processes()
    }

    /// Reads until the process has ended or is killed, and notes how.
    pub(super) async fn read_to_end(mut self, process: &Process) {
        // Until the process has ended: the pause of every reader depends on how many there are.
        let _counted = Counted::new();
        let mut buffer = vec![0; limits::PROCESS_READ];
        let mut is_open = true;
        let ended = loop {
            tokio::select! {
                // Kill and end first: a program that prints without a pause must not keep them from being seen.
                biased;
                () = killed(&mut self.kill) => break None,
                // Programs that it left behind may go on printing. Its end is noted nevertheless.
                ended = self.child.ended() => break Some(ended),
                got = read(&mut self.output, &mut buffer), if is_open => {
                    let bytes = buffer.get(..got).unwrap_or_default();
                    // A closed output would be ready at every turn of the loop.
                    is_open = !bytes.is_empty();
                    if is_open {
                        process.take_output(bytes);
                        pause(got).await;
                    }
                }
            }
        };
        // Waited for, so that nothing of the command prints after its end is noted.
        if ended.is_none() {
            drop(self.child.kill().await);
        }
        self.drain(process, &mut buffer).await;
        process.change(|state| {
            (state.status, state.exit_code, state.signal) = match ended {
                None => (ProcessStatus::Killed, None, None),
                Some(Ended::Code(code)) => (ProcessStatus::Exited, Some(code), None),
                Some(Ended::Signal(signal)) => (ProcessStatus::Exited, None, Some(signal)),
                // The guardian went away, which kills its commands.
                Some(Ended::Lost) => (ProcessStatus::Killed, None, None),
            };
            state.ended_at = Some(now_ms());
        });
    }

    /// Reads the rest. Programs that the process left behind may go on printing; they are not waited for.
    async fn drain(&mut self, process: &Process, buffer: &mut [u8]) {
        let rest = async {
            loop {
                let got = read(&mut self.output, buffer).await;
                match buffer.get(..got) {
                    Some(bytes) if !bytes.is_empty() => process.take_output(bytes),
                    _ => break,
                }
            }
        };
        let _late = tokio::time::timeout(limits::PROCESS_DRAIN, rest).await;
    }
}

/// Reads; 0 at the end, which a terminal tells by an error. Cancel-safe.
async fn read(output: &mut pipe::Receiver, buffer: &mut [u8]) -> usize {
    output.read(buffer).await.unwrap_or(0)
}

impl Control {
    /// Kills the process.
    pub(super) fn kill(&self) {
        self.kill.send_replace(true);
    }

    /// Writes to its input.
    pub(super) async fn write(&self, id: &str, data: &[u8]) -> Result<(), String> {
        let writing = async {
            let written = self.input.lock().await.write_all(data).await;
            written.map_err(|error| error.to_string())
        };
        bounded(id, writing).await
    }

    /// Changes the size of its terminal.
    pub(super) fn resize(&self, id: &str, size: TerminalSize) -> Result<(), String> {
        match &self.terminal {
            Some(terminal) => terminal.resize(size).map_err(|error| error.to_string()),
            None => Err(strings::no_terminal(id)),
        }
    }
}

/// Writes to the input of a process, which may not read it: the wait is bounded.
pub(super) async fn bounded(
    id: &str,
    writing: impl Future<Output = Result<(), String>>,
) -> Result<(), String> {
    tokio::time::timeout(limits::PROCESS_INPUT_WAIT, writing)
        .await
        .unwrap_or_else(|_| Err(strings::process_does_not_read(id)))
}

/// Waits until the process is to be killed.
async fn killed(kill: &mut watch::Receiver<bool>) {
    // An error means that it has no owner any more.
    let _killed = kill.wait_for(|kill| *kill).await;
}

/// A process that is read, as long as this lives.
struct Counted;

impl Counted {
    fn new() -> Self {
        READ.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        READ.fetch_sub(1, Ordering::Relaxed);
    }
}

/// After much output at once the others get their turn. The more processes, the longer: the time for all of them is bounded.
async fn pause(got: usize) {
    if got < limits::PROCESS_READ / 2 {
        tokio::task::yield_now().await;
        return;
    }
    let count = u32::try_from(READ.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
    let pause = limits::PROCESS_PAUSE.saturating_mul(count.max(2) / 2);
    tokio::time::sleep(pause.max(Duration::from_millis(1))).await;
}
