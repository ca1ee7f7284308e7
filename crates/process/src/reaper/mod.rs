//! The reaper owns every child process of the agent. `bash` decides which shell runs which command.
//!
//! On Linux a *guardian* process starts the commands (`guardian`). The agent talks to it over a socket (`link`). It
//! finds the processes that a kill must reach in `/proc` (`procfs`); `sweep` stops and kills them. Between agent and
//! guardian are supervisors (`supervisor`), so that killing the guardian, or agent and guardian together, leaves no
//! process either.
//!
//! Guarantee: an abort, a timeout, the agent's end and its death by `kill -9` leave no process behind, detached
//! grandchildren included. A process that wipes its environment, leaves its session and loses its parent escapes an
//! abort, but not the agent's end.
//!
//! Out of reach: programs of another user (`sudo`), services that other processes start on request, and a command that
//! kills the agent, the guardian and all supervisors at the same instant. On other systems (`direct`) the agent starts
//! commands itself: abort, timeout and an orderly end reach the process group; detached grandchildren and `kill -9` of
//! the agent leave processes behind.

mod direct;
mod frame;
#[cfg(target_os = "linux")]
pub mod guardian;
#[cfg(target_os = "linux")]
mod link;
#[cfg(target_os = "linux")]
mod ports;
#[cfg(target_os = "linux")]
mod procfs;
mod streams;
#[cfg(target_os = "linux")]
mod supervisor;
#[cfg(target_os = "linux")]
mod sweep;
mod terminal;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Pid, Signal};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::{oneshot, watch};

use crate::child::{Boxed, ChildProcess, Pipes, Spawn, Spawned};
use crate::error::ChildError;
use crate::limits;
pub use frame::SpawnSpec;
use streams::Streams;
pub use terminal::{Terminal, TerminalSize};

/// How the first process of a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It exited with this code.
    Code(i32),
    /// A signal killed it.
    Signal(i32),
    /// Unknown: the guardian went away. The command was killed.
    Lost,
}

/// How the guardian is started.
#[derive(Debug, Clone)]
pub struct GuardianLaunch {
    /// The program to run.
    pub program: PathBuf,
    /// Its arguments; the program must call `guardian::main` on seeing them.
    pub args: Vec<OsString>,
}

impl Default for GuardianLaunch {
    fn default() -> Self {
        Self {
            // Not the path of the program: an update may have put another file there.
            program: PathBuf::from("/proc/self/exe"),
            args: vec![OsString::from("__guardian")],
        }
    }
}

/// Starts, kills and reaps commands. Cheap to clone; the last clone's drop ends all commands.
#[derive(Debug, Clone)]
pub struct Reaper {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    backend: Backend,
    next: AtomicU64,
    /// Distinguishes our markers from those of other agents.
    name: String,
}

#[derive(Debug)]
enum Backend {
    #[cfg(target_os = "linux")]
    Guardian(link::Guardian),
    Direct(direct::Direct),
}

/// Where a child's requests go.
#[derive(Debug, Clone)]
enum Remote {
    #[cfg(target_os = "linux")]
    Guardian(link::Remote),
    Direct,
}

/// Who listens on a TCP port of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortOwner {
    /// No process.
    Nobody,
    /// A process of the command.
    Command,
    /// A process that does not belong to the command, or that may not be looked at.
    Other,
}

/// The processes of a command, for looks from other tasks while it runs.
#[derive(Debug, Clone)]
pub struct CommandProcesses {
    pid: u32,
    #[cfg(target_os = "linux")]
    marker: Vec<u8>,
}

impl CommandProcesses {
    /// Says who listens on a TCP port of this machine. Reads `/proc`, and blocks that long.
    #[cfg(target_os = "linux")]
    #[must_use]
    pub fn owner_of_port(&self, port: u16) -> PortOwner {
        let command = procfs::Aim::Command {
            pid: i32::try_from(self.pid).ok(),
            marker: &self.marker,
            adopted: None,
        };
        ports::owner(rustix::process::getpid().as_raw_pid(), &command, port)
    }

    /// Says whether a TCP port of this machine accepts connections. Owners are not known on this system. Blocks.
    #[cfg(not(target_os = "linux"))]
    #[must_use]
    pub fn owner_of_port(&self, port: u16) -> PortOwner {
        use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
        let hosts = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        let accepts =
            |host| TcpStream::connect_timeout(&SocketAddr::new(host, port), limits::PORT_WAIT).is_ok();
        match hosts.into_iter().any(accepts) {
            true => PortOwner::Command,
            false => PortOwner::Nobody,
        }
    }
}

/// A running command.
#[derive(Debug)]
pub struct Child {
    id: u64,
    pid: u32,
    marker: Vec<u8>,
    ended: watch::Receiver<Option<Ended>>,
    remote: Remote,
}

impl Reaper {
    /// A reaper with a guardian process (Linux); elsewhere the same as [`Reaper::direct`].
    #[must_use]
    pub fn new(launch: GuardianLaunch) -> Self {
        #[cfg(target_os = "linux")]
        let backend = |name: &str| {
            let prefix = frame::marker_entry(std::ffi::OsStr::new(&format!("{name}-")));
            Backend::Guardian(link::Guardian::new(launch, prefix))
        };
        #[cfg(not(target_os = "linux"))]
        let backend = |_: &str| {
            let _ = launch;
            Backend::Direct(direct::Direct::default())
        };
        Self::with(backend)
    }

    /// A reaper that starts commands from this very process and kills by process group.
    #[must_use]
    pub fn direct() -> Self {
        Self::with(|_| Backend::Direct(direct::Direct::default()))
    }

    fn with(backend: impl FnOnce(&str) -> Backend) -> Self {
        let name = uuid::Uuid::new_v4().simple().to_string();
        Self {
            inner: Arc::new(Inner {
                backend: backend(&name),
                // Number 0 is for reports about no command (`frame`).
                next: AtomicU64::new(1),
                name,
            }),
        }
    }

    /// Starts a command. Its standard input is empty; both outputs go into the returned pipe.
    ///
    /// # Errors
    /// When the program cannot be started, or not within [`limits::SPAWN_WAIT`].
    pub async fn spawn(&self, spec: SpawnSpec) -> Result<(Child, Receiver), ChildError> {
        let (streams, reader) = Streams::together()?;
        Ok((self.start_marked(spec, streams).await?, reader))
    }

    /// Starts a program that is spoken with: a pipe for each of its standard streams.
    ///
    /// # Errors
    /// When the program cannot be started, or not within [`limits::SPAWN_WAIT`].
    pub async fn spawn_piped(&self, spec: SpawnSpec) -> Result<(Child, Pipes), ChildError> {
        let (streams, pipes) = Streams::apart()?;
        Ok((self.start_marked(spec, streams).await?, pipes))
    }

    /// Starts a command that is written to: one pipe for both outputs, and one for its standard input.
    ///
    /// # Errors
    /// When the program cannot be started, or not within [`limits::SPAWN_WAIT`].
    pub async fn spawn_with_input(&self, spec: SpawnSpec) -> Result<(Child, Receiver, Sender), ChildError> {
        let (streams, output, input) = Streams::with_input()?;
        Ok((self.start_marked(spec, streams).await?, output, input))
    }

    /// Starts a command in a terminal of this size.
    ///
    /// # Errors
    /// When there is no terminal, or the program cannot be started, or not within [`limits::SPAWN_WAIT`].
    pub async fn spawn_in_terminal(
        &self,
        spec: SpawnSpec,
        size: TerminalSize,
    ) -> Result<(Child, Receiver, Sender, Terminal), ChildError> {
        let opened = Terminal::open(size).map_err(ChildError::Pipe)?;
        let streams = Streams::all(opened.theirs)?;
        let child = self.start_marked(spec, streams).await?;
        Ok((child, opened.output, opened.input, opened.terminal))
    }

    async fn start_marked(&self, mut spec: SpawnSpec, streams: Streams) -> Result<Child, ChildError> {
        // Ids are never used again, so that a late report or kill cannot hit another command.
        let id = self.inner.next.fetch_add(1, Ordering::Relaxed);
        let value = OsString::from(format!("{}-{id}", self.inner.name));
        let marker = frame::marker_entry(&value);
        // The agent may itself run in a command of another agent, which has marked its environment.
        spec.env.retain(|(name, _)| name != frame::MARKER_NAME);
        spec.env.push((frame::MARKER_NAME.into(), value));
        // A guardian that does not answer must not hold the call up.
        let start = self.start(id, spec, streams, marker);
        tokio::time::timeout(limits::SPAWN_WAIT, start)
            .await
            .map_err(|_| ChildError::Timeout)?
    }

    async fn start(
        &self,
        id: u64,
        spec: SpawnSpec,
        streams: Streams,
        marker: Vec<u8>,
    ) -> Result<Child, ChildError> {
        match &self.inner.backend {
            #[cfg(target_os = "linux")]
            Backend::Guardian(guardian) => {
                let (pid, ended, remote) = guardian.spawn(id, spec, streams, marker.clone()).await?;
                Ok(Child {
                    id,
                    pid,
                    marker,
                    ended,
                    remote: Remote::Guardian(remote),
                })
            }
            Backend::Direct(direct) => {
                let (pid, ended) = direct.spawn(&spec, streams)?;
                Ok(Child {
                    id,
                    pid,
                    marker,
                    ended,
                    remote: Remote::Direct,
                })
            }
        }
    }

    /// Process id of the guardian, if one runs.
    pub async fn guardian_pid(&self) -> Option<u32> {
        match &self.inner.backend {
            #[cfg(target_os = "linux")]
            Backend::Guardian(guardian) => guardian.pid().await,
            Backend::Direct(_) => None,
        }
    }

    /// Kills everything that was ever started here and still lives, and waits for it (bounded).
    pub async fn shutdown(&self) {
        match &self.inner.backend {
            #[cfg(target_os = "linux")]
            Backend::Guardian(guardian) => guardian.shutdown().await,
            Backend::Direct(direct) => direct.shutdown(),
        }
    }
}

impl Child {
    /// Process id, which is also the id of its process group.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Its processes, for looks from other tasks.
    #[must_use]
    pub fn processes(&self) -> CommandProcesses {
        CommandProcesses {
            pid: self.pid,
            #[cfg(target_os = "linux")]
            marker: self.marker.clone(),
        }
    }

    /// Waits for the end of the first process. Cancel-safe.
    pub async fn ended(&mut self) -> Ended {
        match self.ended.wait_for(Option::is_some).await {
            Ok(ended) => ended.unwrap_or(Ended::Lost),
            Err(_) => Ended::Lost,
        }
    }

    /// Kills the command with all that belongs to it and waits until it is gone (bounded).
    ///
    /// # Errors
    /// When the guardian did not answer in time.
    pub async fn kill(&mut self) -> Result<(), ChildError> {
        match &self.remote {
            #[cfg(target_os = "linux")]
            Remote::Guardian(remote) => {
                let (done, wait) = oneshot::channel();
                let killed = async {
                    // Part of the wait: the queue of a guardian that hangs is full.
                    remote.kill(self.id, self.pid, self.marker.clone(), done).await;
                    // An error of the channel means that the guardian is gone; its commands were killed then.
                    let _gone = wait.await;
                };
                tokio::time::timeout(limits::KILL_WAIT, killed)
                    .await
                    .map_err(|_| ChildError::Timeout)
            }
            Remote::Direct => {
                // After its end the number of the group may belong to other processes.
                if self.ended.borrow().is_none() {
                    kill_group(self.pid);
                }
                Ok(())
            }
        }
    }
}

impl Drop for Child {
    /// Kills a command whose caller was dropped. A command that has ended keeps its background children.
    fn drop(&mut self) {
        if self.ended.borrow().is_some() {
            return;
        }
        match &self.remote {
            #[cfg(target_os = "linux")]
            Remote::Guardian(remote) => remote.abandon(self.id, self.pid, std::mem::take(&mut self.marker)),
            Remote::Direct => kill_group(self.pid),
        }
    }
}

impl ChildProcess for Child {
    fn ended(&mut self) -> Boxed<'_, String> {
        Box::pin(async {
            match self.ended().await {
                Ended::Code(code) => format!("it exited with code {code}"),
                Ended::Signal(signal) => format!("signal {signal} ended it"),
                Ended::Lost => "it was ended".to_owned(),
            }
        })
    }

    #[cfg(target_os = "linux")]
    fn memory(&self) -> Option<u64> {
        procfs::resident(self.pid)
    }

    fn kill(&mut self) -> Boxed<'_, ()> {
        Box::pin(async { drop(self.kill().await) })
    }
}

impl Spawn for Reaper {
    fn spawn_child(&self, spec: SpawnSpec) -> Boxed<'_, Spawned> {
        Box::pin(async {
            let (child, pipes) = self.spawn_piped(spec).await?;
            let child: Box<dyn ChildProcess> = Box::new(child);
            Ok((child, pipes))
        })
    }
}

/// Kills a process group; the group may be gone already.
fn kill_group(pid: u32) {
    if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
        let _ = rustix::process::kill_process_group(pid, Signal::KILL);
    }
}
