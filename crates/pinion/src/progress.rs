//! A line on the terminal while something takes long. It goes to stderr, and only if stderr is a terminal.

use std::io::{IsTerminal as _, Write as _};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::environment::plain;

/// Clears the line.
const ERASE: &str = "\r\u{1b}[2K";

/// How often the line is written again, with the seconds so far.
const TICK: Duration = Duration::from_secs(1);

/// The line. It is erased when this value is dropped; when `drop` returns, nothing more is written.
pub(crate) struct Progress {
    running: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Shows `label` and the seconds so far after `delay`. Does nothing if stderr is no terminal that can erase a line.
    pub(crate) fn after(delay: Duration, label: impl Into<String>) -> Self {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        if is_dumb || !std::io::stderr().is_terminal() {
            return Self { running: None };
        }
        let label = plain(&label.into());
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let start = Instant::now();
            let mut wait = delay;
            let mut is_shown = false;
            while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                let seconds = start.elapsed().as_secs();
                let _unread = write!(
                    std::io::stderr(),
                    "{ERASE}\u{1b}[2m{label} ({seconds} s)\u{1b}[0m"
                );
                (wait, is_shown) = (TICK, true);
            }
            if is_shown {
                let _unread = write!(std::io::stderr(), "{ERASE}");
            }
        });
        Self {
            running: Some((stop, thread)),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            drop(stop);
            let _panicked = thread.join();
        }
    }
}
