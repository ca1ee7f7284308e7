//! The guardian process: starts commands for the agent, reaps them, and kills what is left when the agent is gone.
//!
//! It is the same program as the agent, started with one word on its command line, and holds nothing but the socket
//! to the agent and the pipes it hands on. Being a child subreaper, it becomes the parent of every grandchild that
//! loses its own, however it was detached; so nothing escapes the last sweep. The agent's side lives in `link`.

use std::collections::HashMap;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::process::ExitCode;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{Pid, Signal, WaitOptions};
use tokio::io::{AsyncWriteExt as _, Interest};
use tokio::net::UnixStream;
use tokio::signal::unix::{SignalKind, signal};

use super::frame::{Report, Request, SpawnSpec, take_frame};
use super::procfs::{self, Aim};
use super::streams::Streams;
use crate::limits;
use crate::sandbox::Placeholders;

/// The word on the command line that turns the program into a guardian.
pub const GUARDIAN_ARG: &str = "__guardian";

/// Runs the guardian; its standard input is the socket to the agent. Call it before anything else in `main`.
#[must_use]
pub fn main() -> ExitCode {
    // A session of its own keeps the terminal's signals away from it.
    let _ = rustix::process::setsid();
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let mut placeholders = Placeholders::default();
    let done = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .and_then(|rt| {
            rt.block_on(async {
                let socket = rustix::stdio::stdin().try_clone_to_owned()?;
                let socket = StdStream::from(socket);
                socket.set_nonblocking(true)?;
                let mut guardian = Guardian::new(UnixStream::from_std(socket)?);
                let done = guardian.run().await;
                // Groups first: one signal for all of a command, so that nobody can fork his way out of the sweep.
                guardian.commands.keys().for_each(|pid| kill_group(*pid));
                placeholders = std::mem::take(&mut guardian.placeholders);
                done
            })
        });
    // Whatever ended the loop, nobody stays behind.
    sweep(&Aim::All, None, |_, _, _| {});
    placeholders.release();
    if done.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

struct Guardian {
    socket: UnixStream,
    buffer: Vec<u8>,
    fds: std::collections::VecDeque<OwnedFd>,
    /// Running commands by the pid of their first process.
    commands: HashMap<i32, u64>,
    /// Reports that wait to be written.
    out: Vec<u8>,
    /// What keeps confined commands from making what runs later.
    placeholders: Placeholders,
}

impl Guardian {
    fn new(socket: UnixStream) -> Self {
        Self {
            socket,
            buffer: Vec::new(),
            fds: Default::default(),
            commands: HashMap::new(),
            out: Vec::new(),
            placeholders: Placeholders::default(),
        }
    }

    /// Serves until the agent is gone.
    async fn run(&mut self) -> std::io::Result<()> {
        // Handlers, not "ignore": an ignored signal would stay ignored in the commands.
        let mut deaf = Vec::new();
        for kind in [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
            SignalKind::quit(),
        ] {
            deaf.push(signal(kind)?);
        }
        let mut children = signal(SignalKind::child())?;
        loop {
            tokio::select! {
                open = self.receive() => if !open? { return Ok(()) },
                _ = children.recv() => {}
            }
            let commands = &mut self.commands;
            let out = &mut self.out;
            reap(|pid, code, signal| report_exit(commands, out, pid, code, signal));
            if !self.out.is_empty() {
                let out = std::mem::take(&mut self.out);
                self.socket.write_all(&out).await?;
            }
        }
    }

    /// Reads once and serves what is complete. False: the agent is gone.
    async fn receive(&mut self) -> std::io::Result<bool> {
        let mut chunk = [0_u8; 16 << 10];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(limits::FRAME_FDS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let fd = self.socket.as_fd();
        let got = self
            .socket
            .async_io(Interest::READABLE, || {
                let mut iov = [IoSliceMut::new(&mut chunk)];
                Ok(recvmsg(fd, &mut iov, &mut control, RecvFlags::CMSG_CLOEXEC)?.bytes)
            })
            .await?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                self.fds.extend(fds);
            }
        }
        self.buffer
            .extend_from_slice(chunk.get(..got).unwrap_or_default());
        let broken = |_| std::io::Error::from(std::io::ErrorKind::InvalidData);
        while let Some(payload) = take_frame(&mut self.buffer).map_err(broken)? {
            self.serve(Request::decode(&payload).map_err(broken)?);
        }
        Ok(got > 0)
    }

    fn serve(&mut self, request: Request) {
        let report = match request {
            Request::Spawn { id, spec, apart } => {
                let streams = Streams::from_fds(apart, &mut self.fds);
                let held = self.placeholders.hold_for(&spec);
                match streams.map(|streams| held.and_then(|()| start(&spec, streams))) {
                    Some(Ok(pid)) => {
                        self.commands.insert(pid, id);
                        Report::Spawned {
                            id,
                            pid: pid.cast_unsigned(),
                        }
                    }
                    Some(Err(error)) => Report::Failed {
                        id,
                        errno: error.raw_os_error().unwrap_or(0),
                    },
                    None => Report::Failed { id, errno: 0 },
                }
            }
            Request::Kill { id, pid, marker } => {
                let pid = pid.cast_signed();
                // A pid that now belongs to another command must not be hit; the marker still finds our own.
                let own = self.commands.get(&pid).is_none_or(|now| *now == id);
                let group = (self.commands.get(&pid) == Some(&id)).then_some(pid);
                let (commands, out) = (&mut self.commands, &mut self.out);
                // Zero: it never came to a process as far as the agent knows.
                let aim = Aim::Command {
                    pid: (own && pid != 0).then_some(pid),
                    marker: &marker,
                };
                let left = sweep(&aim, group, |pid, code, signal| {
                    report_exit(commands, out, pid, code, signal)
                });
                Report::Killed {
                    id,
                    left: u32::try_from(left).unwrap_or(u32::MAX),
                }
            }
        };
        self.out.extend_from_slice(&report.encode());
    }
}

fn report_exit(
    commands: &mut HashMap<i32, u64>,
    out: &mut Vec<u8>,
    pid: i32,
    code: Option<i32>,
    signal: Option<i32>,
) {
    if let Some(id) = commands.remove(&pid) {
        out.extend_from_slice(&Report::Exited { id, code, signal }.encode());
    }
}

fn start(spec: &SpawnSpec, streams: Streams) -> std::io::Result<i32> {
    Ok(streams.command(spec)?.spawn()?.id().cast_signed())
}

fn kill_group(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = rustix::process::kill_process_group(pid, Signal::KILL);
    }
}

/// Collects every child that has ended, orphans that came to us included.
fn reap(mut ended: impl FnMut(i32, Option<i32>, Option<i32>)) {
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        ended(
            pid.as_raw_pid(),
            status.exit_status(),
            status.terminating_signal(),
        );
    }
}

/// Kills what `aim` is for, again and again until nothing of it lives. Returns how many were still there at the end.
///
/// The first look comes before the first kill: it finds children by their parents, whom a kill takes away. `group` is
/// killed with one signal, so that nobody in it can fork his way out.
fn sweep(
    aim: &Aim<'_>,
    mut group: Option<i32>,
    mut ended: impl FnMut(i32, Option<i32>, Option<i32>),
) -> usize {
    let root = rustix::process::getpid().as_raw_pid();
    let mut pause = limits::KILL_PAUSE.0;
    let mut left = 0;
    for _ in 0..limits::KILL_ROUNDS {
        let targets = procfs::targets(&procfs::processes(), root, aim, procfs::environ);
        left = targets.len();
        if let Some(group) = group.take() {
            kill_group(group);
        }
        for pid in targets {
            if let Some(pid) = Pid::from_raw(pid) {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
        reap(&mut ended);
        if left == 0 {
            break;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(limits::KILL_PAUSE.1);
    }
    left
}
