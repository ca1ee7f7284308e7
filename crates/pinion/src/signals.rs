//! Signals that end the process in order (behaviour.md 11). SIGINT is left alone: it ends the process at once, and the
//! reaper's guardian sees to the children.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit;

/// A write beyond the file size limit (`ulimit -f`) is an error of that write and does not end the process. The signal is
/// caught, not ignored: `exec` gives children its default back. Needs a runtime; holds as long as the process lives.
pub(crate) fn survive_file_size_limit() -> std::io::Result<()> {
    let number = rustix::process::Signal::XFSZ.as_raw();
    signal(SignalKind::from_raw(number)).map(drop)
}

/// The signals we wait for.
pub(crate) struct Signals {
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    /// Begins to listen; needs a runtime.
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for one; gives the exit code it stands for.
    pub(crate) async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.terminate.recv() => exit::TERMINATED,
            _ = self.hang_up.recv() => exit::HANGUP,
        }
    }
}
