//! The processes above the guardian. Each is the parent of the next one, and the innermost is the guardian.
//!
//! Every one of them is a child subreaper, so the processes of a killed one become children of the one above, which ends them
//! all. Each also watches a pipe of the agent and a pipe of the process above: whichever of them dies, all the others end what
//! runs and then themselves. To leave something behind, a command has to kill all of them with one blow.

use std::io::{PipeWriter, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags};
use rustix::process::{DumpableBehavior, Pid, Signal, WaitOptions};
use tokio::net::unix::pipe::Receiver;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};

use super::frame::Report;
use super::guardian::GUARDIAN_ARG;
use crate::limits;

/// What a guardian or supervisor inherits as its standard streams.
pub(super) struct Ends {
    /// The agent's socket; for the guardian.
    pub(super) socket: OwnedFd,
    /// A pipe that closes when the agent is gone.
    pub(super) agent: OwnedFd,
    /// A pipe that closes when the process above is gone.
    pub(super) above: OwnedFd,
}

impl Ends {
    /// Takes them away from the standard streams, which become `/dev/null`.
    pub(super) fn take() -> std::io::Result<Self> {
        let [socket, agent, above] = [
            rustix::stdio::stdin(),
            rustix::stdio::stdout(),
            rustix::stdio::stderr(),
        ]
        // From 3 on, since the standard streams are replaced below.
        .map(|fd| rustix::io::fcntl_dupfd_cloexec(fd, 3));
        let ends = Self {
            socket: socket?,
            agent: agent?,
            above: above?,
        };
        let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        rustix::stdio::dup2_stdin(&null)?;
        rustix::stdio::dup2_stdout(&null)?;
        rustix::stdio::dup2_stderr(&null)?;
        Ok(ends)
    }
}

/// What holds for the guardian and its supervisors alike.
pub(super) fn prepare() {
    // A session of its own keeps the terminal's signals away.
    let _ = rustix::process::setsid();
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    // Commands run as the same user. They must not reach the memory and descriptors of this process through /proc.
    let _ = rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable);
    // Wakes a stopped process when the one above it dies, so that it can do its work.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::CONT));
}

/// Handlers that do nothing. An ignored signal would stay ignored in the commands.
pub(super) fn handle_polite_signals() -> std::io::Result<Vec<Signals>> {
    let kinds = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
        SignalKind::quit(),
    ];
    kinds.into_iter().map(signal).collect()
}

/// Tells the agent why it gets no guardian.
pub(super) fn report_failure(mut socket: &StdStream, error: &std::io::Error) {
    let errno = error.raw_os_error().unwrap_or(0);
    let _ = socket.write_all(&Report::Unavailable { errno }.encode());
}

/// A supervisor with the process below it.
pub(super) struct Supervisor {
    agent: Receiver,
    above: Receiver,
    below: Pid,
    /// Closed to tell the process below that all is over.
    hold: Option<PipeWriter>,
    children: Signals,
    /// How often the process below was stopped.
    stops: u32,
    _polite: Vec<Signals>,
}

impl Supervisor {
    /// Starts the process below. `level` counts the supervisors from the guardian on.
    pub(super) fn start(level: u32, ends: Ends) -> std::io::Result<Self> {
        // Before the process below starts, so that neither its end nor a polite signal is missed.
        let polite = handle_polite_signals()?;
        let children = signal(SignalKind::child())?;
        let (life, hold) = std::io::pipe()?;
        let below = Command::new("/proc/self/exe")
            .arg(GUARDIAN_ARG)
            .arg(level.saturating_sub(1).to_string())
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(ends.socket))
            .stdout(Stdio::from(ends.agent.try_clone()?))
            .stderr(Stdio::from(life))
            .spawn()?;
        Ok(Self {
            agent: Receiver::from_owned_fd(ends.agent)?,
            above: Receiver::from_owned_fd(ends.above)?,
            // Only the number is kept: `is_below_well` reaps it together with adopted processes.
            below: Pid::from_child(&below),
            hold: Some(hold),
            children,
            stops: 0,
            _polite: polite,
        })
    }

    /// Waits until the agent, the process above or the process below is gone. In the first two cases the process below gets
    /// some time to end by itself.
    pub(super) async fn run(&mut self) {
        loop {
            if !self.is_below_well() {
                return;
            }
            tokio::select! {
                _ = self.children.recv() => {}
                _ = self.agent.readable() => break,
                _ = self.above.readable() => break,
            }
        }
        // Closed first: the process below ends what runs, and has the grace period for that.
        drop(self.hold.take());
        let end = tokio::time::sleep(limits::GUARDIAN_GRACE);
        tokio::pin!(end);
        while self.is_below_well() {
            tokio::select! {
                _ = self.children.recv() => {}
                () = &mut end => return,
            }
        }
    }

    /// Reaps what has ended, and continues the process below if a command has stopped it. Returns false when that process has
    /// ended, or was stopped so often that this must be an attack.
    fn is_below_well(&mut self) -> bool {
        let options = WaitOptions::NOHANG | WaitOptions::UNTRACED;
        while let Ok(Some((pid, status))) = rustix::process::wait(options) {
            // An orphan that the subreaper has inherited.
            if pid != self.below {
                continue;
            }
            if !status.stopped() {
                return false;
            }
            self.stops += 1;
            let _ = rustix::process::kill_process(pid, Signal::CONT);
        }
        self.stops <= limits::STOPS_MAX
    }
}
