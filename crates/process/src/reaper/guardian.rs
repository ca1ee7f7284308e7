//! The guardian process: starts commands for the agent, reaps them, and kills the remaining ones when the agent is gone.
//!
//! It is the same program as the agent, started with one word on its command line, and holds nothing but the socket
//! to the agent and the pipes it hands on. Being a child subreaper, it becomes the parent of every grandchild that
//! loses its own, however it was detached; so nothing escapes the last sweep. The agent's side lives in `link`, the processes
//! between the two in `supervisor`.

use std::collections::{HashMap, HashSet};
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::process::ExitCode;

use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::io::{AsyncWriteExt as _, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::Receiver;
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};

use super::frame::{Report, Request, SpawnSpec, take_frame};
use super::kill_group;
use super::procfs::{self, Adopted, Aim};
use super::streams::Streams;
use super::supervisor::{self, Ends, Supervisor};
use super::sweep;
use crate::limits;
use crate::sandbox::Placeholders;

/// The word on the command line that turns the program into a guardian. A number may follow: how many supervisors the
/// process has to start below itself.
pub const GUARDIAN_ARG: &str = "__guardian";

/// Runs the guardian or one of its supervisors; the standard streams are what it is connected with. Call it before anything
/// else in `main`. `level` is the number on the command line.
#[must_use]
pub fn main(level: Option<u32>) -> ExitCode {
    supervisor::prepare();
    // Without a number the agent has started it, so it is the outermost supervisor.
    let level = level.unwrap_or(limits::SUPERVISORS);
    let mut placeholders = Placeholders::default();
    let done = Ends::take().and_then(|ends| serve(level, ends, &mut placeholders));
    // Also after an error: the guarantee that no process survives must not depend on a clean end.
    sweep::end_all();
    // After the processes: a command that still runs could make what a placeholder keeps away.
    placeholders.release();
    if done.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Serves at a level; `placeholders` are what the guardian held in the end.
fn serve(level: u32, ends: Ends, placeholders: &mut Placeholders) -> std::io::Result<()> {
    let socket = StdStream::from(ends.socket.try_clone()?);
    let started = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build();
    // Nothing but the guardian may keep the socket open: its end is how the agent learns of the guardian's.
    let or_report = |error: std::io::Error, socket: StdStream| {
        supervisor::report_failure(&socket, &error);
        error
    };
    let runtime = match started {
        Ok(runtime) => runtime,
        Err(error) => return Err(or_report(error, socket)),
    };
    runtime.block_on(async {
        if level == 0 {
            let mut guardian = match Guardian::new(ends) {
                Ok(guardian) => guardian,
                Err(error) => return Err(or_report(error, socket)),
            };
            drop(socket);
            let done = guardian.run().await;
            // One signal for all of a command, so that nothing in it can fork its way out.
            guardian
                .commands
                .keys()
                .for_each(|pid| kill_group(pid.cast_unsigned()));
            *placeholders = guardian.placeholders;
            return done;
        }
        match Supervisor::start(level, ends) {
            Ok(mut supervisor) => {
                drop(socket);
                supervisor.run().await;
                Ok(())
            }
            Err(error) => Err(or_report(error, socket)),
        }
    })
}

struct Guardian {
    socket: UnixStream,
    agent: Receiver,
    above: Receiver,
    children: Signals,
    _polite: Vec<Signals>,
    buffer: Vec<u8>,
    fds: std::collections::VecDeque<OwnedFd>,
    /// Running commands by the pid of their first process.
    commands: HashMap<i32, Running>,
    /// Reports that wait to be written.
    out: Vec<u8>,
    /// What keeps confined commands from making what runs later.
    placeholders: Placeholders,
}

/// A command that runs.
struct Running {
    id: u64,
    /// The guardian's children when it started, while no other command has run since.
    before: Option<HashSet<i32>>,
}

impl Guardian {
    fn new(ends: Ends) -> std::io::Result<Self> {
        let socket = StdStream::from(ends.socket);
        socket.set_nonblocking(true)?;
        let pid = rustix::process::getpid().as_raw_pid().cast_unsigned();
        Ok(Self {
            socket: UnixStream::from_std(socket)?,
            agent: Receiver::from_owned_fd(ends.agent)?,
            above: Receiver::from_owned_fd(ends.above)?,
            children: signal(SignalKind::child())?,
            _polite: supervisor::handle_polite_signals()?,
            buffer: Vec::new(),
            fds: Default::default(),
            commands: HashMap::new(),
            out: Report::Ready { pid }.encode(),
            placeholders: Placeholders::default(),
        })
    }

    /// Serves until the agent or the process above is gone.
    async fn run(&mut self) -> std::io::Result<()> {
        loop {
            let (commands, out) = (&mut self.commands, &mut self.out);
            // The system reuses a pid only after it was reaped, and reaping removes it from `commands`. So `commands`
            // never names a foreign process.
            sweep::reap(&mut |pid, code, signal| report_exit(commands, out, pid, code, signal));
            if !self.out.is_empty() {
                let out = std::mem::take(&mut self.out);
                self.socket.write_all(&out).await?;
            }
            let (socket, fds, buffer) = (&self.socket, &mut self.fds, &mut self.buffer);
            let is_open = tokio::select! {
                open = receive(socket, fds, buffer) => open?,
                _ = self.children.recv() => true,
                _ = self.agent.readable() => false,
                _ = self.above.readable() => false,
            };
            if !is_open {
                return Ok(());
            }
            // A read may bring several requests, or only a part of one.
            self.serve_complete()?;
        }
    }

    /// Serves the requests that have arrived as a whole.
    fn serve_complete(&mut self) -> std::io::Result<()> {
        let broken = |_| std::io::Error::from(std::io::ErrorKind::InvalidData);
        while let Some(payload) = take_frame(&mut self.buffer).map_err(broken)? {
            self.serve(Request::decode(&payload).map_err(broken)?);
        }
        Ok(())
    }

    /// Enters a command. Adopted processes can be attributed to a command only while it runs alone.
    fn add(&mut self, id: u64, pid: i32, before: Vec<i32>) {
        let is_alone = self.commands.is_empty();
        self.commands
            .values_mut()
            .for_each(|running| running.before = None);
        let before = is_alone.then(|| before.into_iter().collect());
        self.commands.insert(pid, Running { id, before });
    }

    fn serve(&mut self, request: Request) {
        let report = match request {
            Request::Spawn { id, spec, apart } => {
                // Listed before the start: a child that appears later and has no marker belongs to this command.
                let before = procfs::children(rustix::process::getpid().as_raw_pid());
                // They came with the first byte of the frame, so they are all here.
                let streams = Streams::from_fds(apart, &mut self.fds);
                // Before the command starts: it must not make what a later start of the agent runs.
                let held = self.placeholders.hold_for(&spec);
                match streams.map(|streams| held.and_then(|()| start(&spec, streams))) {
                    Some(Ok(pid)) => {
                        self.add(id, pid, before);
                        Report::Spawned {
                            id,
                            pid: pid.cast_unsigned(),
                        }
                    }
                    // An error without a number is about the request, such as an argument with a null byte.
                    Some(Err(error)) => Report::Failed {
                        id,
                        errno: error.raw_os_error().unwrap_or(Errno::INVAL.raw_os_error()),
                    },
                    // The kernel drops descriptors for which the guardian has no room.
                    None => Report::Failed {
                        id,
                        errno: Errno::MFILE.raw_os_error(),
                    },
                }
            }
            Request::Kill { id, pid, marker } => {
                let pid = pid.cast_signed();
                // A pid that now belongs to another command must not be hit; the marker still finds our own.
                let current = self.commands.get_mut(&pid);
                let own = current.as_ref().is_none_or(|now| now.id == id);
                let current = current.filter(|now| now.id == id);
                let group = current.is_some().then_some(pid);
                let before = current.and_then(|now| now.before.take());
                let me = rustix::process::getpid().as_raw_pid();
                let adopted = before.as_ref().map(|before| Adopted { by: me, before });
                let (commands, out) = (&mut self.commands, &mut self.out);
                // Zero: it never came to a process as far as the agent knows.
                let aim = Aim::Command {
                    pid: (own && pid != 0).then_some(pid),
                    marker: &marker,
                    adopted,
                };
                let mut ended = |pid, code, signal| report_exit(commands, out, pid, code, signal);
                // Blocks for `KILL_SWEEP` at most; commands that end meanwhile are reported from within.
                let left = sweep::sweep(me, &aim, group, limits::KILL_SWEEP, Some(&mut ended));
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
    commands: &mut HashMap<i32, Running>,
    out: &mut Vec<u8>,
    pid: i32,
    code: Option<i32>,
    signal: Option<i32>,
) {
    // Other pids are adopted grandchildren. The agent did not start them and gets no report.
    if let Some(Running { id, .. }) = commands.remove(&pid) {
        out.extend_from_slice(&Report::Exited { id, code, signal }.encode());
    }
}

fn start(spec: &SpawnSpec, streams: Streams) -> std::io::Result<i32> {
    // The handle is dropped: `reap` collects the process like every other child.
    Ok(streams.command(spec)?.spawn()?.id().cast_signed())
}

/// Reads once, descriptors included. False: the agent is gone.
async fn receive(
    socket: &UnixStream,
    fds: &mut std::collections::VecDeque<OwnedFd>,
    buffer: &mut Vec<u8>,
) -> std::io::Result<bool> {
    let mut chunk = [0_u8; 16 << 10];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(limits::FRAME_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let fd = socket.as_fd();
    let got = socket
        .async_io(Interest::READABLE, || {
            let mut iov = [IoSliceMut::new(&mut chunk)];
            // Close-on-exec: a command must not inherit the streams of another one.
            Ok(recvmsg(fd, &mut iov, &mut control, RecvFlags::CMSG_CLOEXEC)?.bytes)
        })
        .await?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            fds.extend(received);
        }
    }
    buffer.extend_from_slice(chunk.get(..got).unwrap_or_default());
    Ok(got > 0)
}
