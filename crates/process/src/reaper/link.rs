//! The agent's side of the guardian's socket: starts the guardian, sends requests, delivers its reports to the callers.
//!
//! One task writes (so that frames and descriptors stay in order), one reads. When the guardian goes away, all callers
//! get an error, its commands are killed, and the next command starts a new guardian.

use std::collections::HashMap;
use std::io::{IoSlice, PipeWriter};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::process::{Child as Process, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tokio::io::{AsyncReadExt as _, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::sync::{mpsc, oneshot, watch};

use super::frame::{Report, Request, SpawnSpec, take_frame};
use super::procfs::Aim;
use super::streams::Streams;
use super::sweep;
use super::{Ended, GuardianLaunch, kill_group};
use crate::error::ChildError;
use crate::limits;

/// A guardian that is started when it is first needed.
#[derive(Debug)]
pub(super) struct Guardian {
    launch: GuardianLaunch,
    /// How the markers of all its commands begin.
    prefix: Vec<u8>,
    link: tokio::sync::Mutex<Option<Link>>,
}

#[derive(Debug)]
struct Link {
    remote: Remote,
    /// The guardian's process id, once it is there.
    ready: watch::Receiver<Option<u32>>,
    gone: watch::Receiver<bool>,
}

/// A way to reach the guardian that runs a command.
#[derive(Debug, Clone)]
pub(super) struct Remote {
    requests: mpsc::WeakSender<Outgoing>,
    table: Table,
    /// Kept by the `Guardian` only: dropping it closes the socket, which is the order to end everything.
    hold: Option<mpsc::Sender<Outgoing>>,
}

#[derive(Debug)]
struct Outgoing {
    frame: Vec<u8>,
    /// They go out with the frame's first byte.
    fds: Vec<OwnedFd>,
}

type Table = Arc<Mutex<Book>>;

/// Commands with a waiting caller; once closed, it accepts no more.
#[derive(Debug, Default)]
struct Book {
    slots: HashMap<u64, Slot>,
    closed: bool,
}

/// Who waits for what of one command.
#[derive(Debug)]
struct Slot {
    pid: u32,
    spawned: Option<oneshot::Sender<Result<u32, NotSpawned>>>,
    ended: watch::Sender<Option<Ended>>,
    killed: Vec<oneshot::Sender<()>>,
}

/// Why a command does not run, with the error number.
#[derive(Debug, Clone, Copy)]
enum NotSpawned {
    /// The guardian could not start it.
    Refused(i32),
    /// There is no guardian.
    NoGuardian(i32),
}

fn lock(table: &Table) -> MutexGuard<'_, Book> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Guardian {
    pub(super) fn new(launch: GuardianLaunch, prefix: Vec<u8>) -> Self {
        Self {
            launch,
            prefix,
            link: tokio::sync::Mutex::new(None),
        }
    }

    /// Has the guardian start a command.
    pub(super) async fn spawn(
        &self,
        id: u64,
        spec: SpawnSpec,
        streams: Streams,
        marker: Vec<u8>,
    ) -> Result<(u32, watch::Receiver<Option<Ended>>, Remote), ChildError> {
        let program = spec.program.to_string_lossy().into_owned();
        let (tell, spawned) = oneshot::channel();
        let (end, ended) = watch::channel(None);
        let slot = Slot {
            pid: 0,
            spawned: Some(tell),
            ended: end,
            killed: Vec::new(),
        };
        // Asked before the streams become plain descriptors.
        let apart = streams.are_apart();
        let frame = Request::Spawn { id, spec, apart }.encode();
        // Checked here, since the guardian takes an oversized frame for a broken stream and would end every command.
        if frame.len() > limits::FRAME_MAX {
            let source = std::io::Error::from(std::io::ErrorKind::ArgumentListTooLong);
            return Err(ChildError::Spawn { program, source });
        }
        let (sender, remote) = self.reach(id, slot).await?;
        // From here on a dropped future must not leave a command behind that still starts.
        let mut forget = Forget {
            id,
            marker,
            remote: Some(remote.clone()),
        };
        sender
            .send(Outgoing {
                frame,
                fds: streams.into_fds(),
            })
            .await
            .map_err(|_| ChildError::GuardianLost)?;
        match spawned.await {
            Ok(Ok(pid)) => {
                // The command is the caller's from now on, whose `Child` kills it when dropped.
                forget.remote = None;
                Ok((pid, ended, remote))
            }
            Ok(Err(why)) => {
                forget.remote = None;
                Err(match why {
                    NotSpawned::Refused(errno) => ChildError::Spawn {
                        program,
                        source: std::io::Error::from_raw_os_error(errno),
                    },
                    NotSpawned::NoGuardian(errno) => {
                        ChildError::Guardian(std::io::Error::from_raw_os_error(errno))
                    }
                })
            }
            Err(_) => Err(ChildError::GuardianLost),
        }
    }

    /// Enters a command with the guardian that runs, or with a new one.
    async fn reach(&self, id: u64, slot: Slot) -> Result<(mpsc::Sender<Outgoing>, Remote), ChildError> {
        // The lock is held while a guardian starts: commands that come meanwhile wait for the same one.
        let mut link = self.link.lock().await;
        // A closed book means that the guardian is gone, or never came up. Then a new one is started.
        let alive = link.as_ref().filter(|link| !lock(&link.remote.table).closed);
        let current = match alive {
            Some(current) => current,
            None => link.insert(Link::open(&self.launch, &self.prefix).map_err(ChildError::Guardian)?),
        };
        // The guardian may have gone since the look above. The next command starts another one.
        if !enter(&current.remote.table, id, slot) {
            return Err(ChildError::GuardianLost);
        }
        let sender = current.remote.hold.clone().ok_or(ChildError::GuardianLost)?;
        // The caller's `Remote` has only a weak sender: a strong one would keep the socket open, and closing it is
        // the order to end everything.
        Ok((
            sender,
            Remote {
                hold: None,
                ..current.remote.clone()
            },
        ))
    }

    pub(super) async fn pid(&self) -> Option<u32> {
        let mut ready = {
            let link = self.link.lock().await;
            let alive = link.as_ref().filter(|link| !lock(&link.remote.table).closed);
            alive.map(|link| link.ready.clone())?
        };
        // Without the lock: commands must not wait until the guardian is ready.
        ready.wait_for(Option::is_some).await.ok().and_then(|pid| *pid)
    }

    /// Closes the socket and waits for the guardian to have killed everything.
    pub(super) async fn shutdown(&self) {
        let Some(Link { remote, mut gone, .. }) = self.link.lock().await.take() else {
            return;
        };
        // It holds the last strong sender, whose end closes the socket.
        drop(remote);
        // Bounded: the agent ends even if the guardian hangs.
        let _ = tokio::time::timeout(limits::SHUTDOWN_WAIT, gone.wait_for(|gone| *gone)).await;
    }
}

/// Kills a command whose caller was dropped. Removes it if it did not start.
struct Forget {
    id: u64,
    marker: Vec<u8>,
    remote: Option<Remote>,
}

impl Drop for Forget {
    fn drop(&mut self) {
        if let Some(remote) = self.remote.take() {
            // 0 for a command that has not started: the guardian then finds it by its marker alone.
            let pid = lock(&remote.table)
                .slots
                .remove(&self.id)
                .map_or(0, |slot| slot.pid);
            remote.abandon(self.id, pid, std::mem::take(&mut self.marker));
        }
    }
}

impl Remote {
    /// Requests a kill. `done` gets a message when no process is left; it is dropped when the guardian is gone.
    pub(super) async fn kill(&self, id: u64, pid: u32, marker: Vec<u8>, done: oneshot::Sender<()>) {
        {
            let mut book = lock(&self.table);
            if book.closed {
                return;
            }
            // The first process may have ended long ago, and its slot with it.
            let (ended, _) = watch::channel(Some(Ended::Lost));
            let fresh = || Slot {
                pid,
                spawned: None,
                ended,
                killed: Vec::new(),
            };
            book.slots.entry(id).or_insert_with(fresh).killed.push(done);
        }
        let frame = Request::Kill { id, pid, marker }.encode();
        let sent = match self.requests.upgrade() {
            Some(requests) => requests
                .send(Outgoing {
                    frame,
                    fds: Vec::new(),
                })
                .await
                .is_ok(),
            None => false,
        };
        // The guardian is gone, and no report will remove the slot and wake its caller.
        if !sent {
            lock(&self.table).slots.remove(&id);
        }
    }

    /// Asks for a kill without waiting.
    pub(super) fn abandon(&self, id: u64, pid: u32, marker: Vec<u8>) {
        let outgoing = Outgoing {
            frame: Request::Kill { id, pid, marker }.encode(),
            fds: Vec::new(),
        };
        let sent = self
            .requests
            .upgrade()
            .is_some_and(|requests| requests.try_send(outgoing).is_ok());
        // The guardian cannot be asked: its queue is full, or it is gone. Kill at least the process group.
        if !sent && pid != 0 {
            kill_group(pid);
        }
    }
}

/// Enters a command; false when the guardian is gone.
fn enter(table: &Table, id: u64, slot: Slot) -> bool {
    let mut book = lock(table);
    if !book.closed {
        book.slots.insert(id, slot);
    }
    !book.closed
}

impl Link {
    fn open(launch: &GuardianLaunch, prefix: &[u8]) -> std::io::Result<Self> {
        // The socket carries requests. The pipe closes when the agent dies. For the outermost supervisor the agent is
        // also the process above, hence the same pipe twice.
        let (ours, theirs) = StdStream::pair()?;
        let (life, hold_life) = std::io::pipe()?;
        let above = life.try_clone()?;
        ours.set_nonblocking(true)?;
        let (reader, writer) = UnixStream::from_std(ours)?.into_split();
        // Before the process starts, so that no stop of it is missed.
        let children = signal(SignalKind::child())?;
        let process = Command::new(&launch.program)
            .args(&launch.args)
            // No secret of the agent's environment reaches it, and no directory stays in use.
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(life))
            .stderr(Stdio::from(above))
            .spawn()?;
        let table = Table::default();
        let (hold, requests) = mpsc::channel(limits::REAPER_QUEUE);
        let (tell_gone, gone) = watch::channel(false);
        let (tell_ready, ready) = watch::channel(None);
        let chain = Chain {
            pid: Pid::from_child(&process),
            process,
            life: hold_life,
            prefix: prefix.to_vec(),
            wanted: hold.downgrade(),
            gone: tell_gone,
        };
        tokio::spawn(write(writer, requests));
        tokio::spawn(read(reader, children, chain, Arc::clone(&table), tell_ready));
        let remote = Remote {
            requests: hold.downgrade(),
            table,
            hold: Some(hold),
        };
        Ok(Self { remote, ready, gone })
    }
}

/// The processes between the agent and its commands.
struct Chain {
    /// The outermost supervisor.
    process: Process,
    pid: Pid,
    /// Closed when all is over.
    life: PipeWriter,
    prefix: Vec<u8>,
    /// Upgradable while commands may still be started.
    wanted: mpsc::WeakSender<Outgoing>,
    gone: watch::Sender<bool>,
}

impl Chain {
    /// Continues the outermost supervisor if a command has stopped it. True if it had.
    fn resume(&self) -> bool {
        // Asks for stops only: the exit status is left for `end`.
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        let stopped = rustix::process::waitid(WaitId::Pid(self.pid), options);
        let is_stopped = matches!(stopped, Ok(Some(status)) if status.stopped());
        if is_stopped {
            let _ = rustix::process::kill_process(self.pid, Signal::CONT);
        }
        is_stopped
    }

    /// Waits until all processes of the chain are gone. Ends what they left if they did not end by themselves. Blocks.
    fn end(mut self) {
        // Senders still exist, so the agent did not order the end: the chain was killed, and processes with its
        // marker may remain.
        let is_lost = self.wanted.strong_count() > 0;
        // Every process of the chain watches this pipe and ends with it.
        drop(self.life);
        let until = Instant::now() + limits::KILL_WAIT;
        let mut pause = limits::KILL_PAUSE.0;
        let mut is_running = true;
        while is_running && Instant::now() < until {
            is_running = matches!(self.process.try_wait(), Ok(None));
            if is_running {
                std::thread::sleep(pause);
                pause = (pause * 2).min(limits::KILL_PAUSE.1);
            }
        }
        if is_running {
            // The descendants first: once it is dead, they are no longer found below it.
            sweep::sweep(self.pid.as_raw_pid(), &Aim::All, None, limits::KILL_WAIT, None);
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
        // A chain that ended by itself has killed everything. Otherwise the markers are the only trace.
        if is_running || is_lost {
            sweep::end_marked(&self.prefix);
        }
        self.gone.send_replace(true);
    }
}

/// Writes frames in order until all senders are dropped. Dropping the half closes the direction.
async fn write(writer: OwnedWriteHalf, mut requests: mpsc::Receiver<Outgoing>) {
    while let Some(Outgoing { frame, mut fds }) = requests.recv().await {
        let mut rest = frame.as_slice();
        while !rest.is_empty() {
            let Ok(sent) = send_some(&writer, rest, &fds).await else {
                // The reader sees the same end and fails the callers.
                return;
            };
            // The descriptors went with the first byte; sending them again would duplicate them.
            fds.clear();
            rest = rest.get(sent..).unwrap_or_default();
        }
    }
}

async fn send_some(writer: &OwnedWriteHalf, bytes: &[u8], fds: &[OwnedFd]) -> std::io::Result<usize> {
    let socket: &UnixStream = writer.as_ref();
    socket
        .async_io(Interest::WRITABLE, || {
            // A command has three streams at most.
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
            if !fds.is_empty() {
                control.push(SendAncillaryMessage::ScmRights(&fds));
            }
            // NOSIGNAL: a guardian that is gone is an error here, not a SIGPIPE.
            Ok(sendmsg(
                socket,
                &[IoSlice::new(bytes)],
                &mut control,
                SendFlags::NOSIGNAL,
            )?)
        })
        .await
}

/// Delivers reports until the guardian is gone; then fails all callers and kills the remaining processes.
async fn read(
    mut reader: OwnedReadHalf,
    mut children: Signals,
    chain: Chain,
    table: Table,
    ready: watch::Sender<Option<u32>>,
) {
    let (mut buffer, mut stops) = (Vec::new(), 0);
    'open: loop {
        tokio::select! {
            got = reader.read_buf(&mut buffer) => match got {
                Ok(0) | Err(_) => break,
                Ok(_) => {}
            },
            _ = children.recv() => {
                // A command can stop the outermost supervisor again and again. After a limit the chain counts as
                // lost.
                stops += u32::from(chain.resume());
                if stops > limits::STOPS_MAX {
                    break;
                }
            }
        }
        loop {
            match take_frame(&mut buffer).and_then(|frame| frame.map(|f| Report::decode(&f)).transpose()) {
                Ok(Some(Report::Ready { pid })) => {
                    ready.send_replace(Some(pid));
                }
                Ok(Some(Report::Unavailable { errno })) => refuse(&table, errno),
                Ok(Some(report)) => deliver(&table, report),
                Ok(None) => break,
                // Frames have no marks by which the next one could be found, so nothing after a broken one can be read.
                Err(_) => break 'open,
            }
        }
    }
    // Wakes callers of `pid`, which get none.
    drop(ready);
    // Closed and drained under one lock: a command that enters later sees `closed`, and a command that entered before gets
    // `Lost`.
    let left: Vec<Slot> = {
        let mut book = lock(&table);
        book.closed = true;
        book.slots.drain().map(|(_, slot)| slot).collect()
    };
    for slot in left {
        // The number of a command that has ended may belong to another process.
        if slot.pid != 0 && slot.ended.borrow().is_none() {
            kill_group(slot.pid);
        }
        slot.ended.send_replace(Some(Ended::Lost));
    }
    // `Chain::end` blocks, so it runs on a thread of its own: the runtime has only one.
    let chain = Arc::new(Mutex::new(Some(chain)));
    let end = {
        let chain = Arc::clone(&chain);
        move || {
            let chain = chain.lock().unwrap_or_else(PoisonError::into_inner).take();
            chain.into_iter().for_each(Chain::end);
        }
    };
    // Without a thread it has to be done here.
    if std::thread::Builder::new().spawn(end.clone()).is_err() {
        end();
    }
}

/// Fails all waiting starts with the reason why there is no guardian.
fn refuse(table: &Table, errno: i32) {
    let mut book = lock(table);
    book.closed = true;
    for slot in book.slots.values_mut() {
        if let Some(tell) = slot.spawned.take() {
            let _ = tell.send(Err(NotSpawned::NoGuardian(errno)));
        }
    }
}

fn deliver(table: &Table, report: Report) {
    let table = &mut lock(table).slots;
    match report {
        Report::Spawned { id, pid } => {
            if let Some(slot) = table.get_mut(&id) {
                // Kept even if the caller is gone by now: a kill by process group needs it.
                slot.pid = pid;
                if let Some(tell) = slot.spawned.take() {
                    let _ = tell.send(Ok(pid));
                }
            }
        }
        Report::Failed { id, errno } => {
            if let Some(tell) = table.remove(&id).and_then(|slot| slot.spawned) {
                let _ = tell.send(Err(NotSpawned::Refused(errno)));
            }
        }
        Report::Exited { id, code, signal } => {
            let end = code
                .map(Ended::Code)
                .or(signal.map(Ended::Signal))
                .unwrap_or(Ended::Lost);
            if let Some(slot) = table.get(&id) {
                slot.ended.send_replace(Some(end));
            }
            // A slot that waits for the report of a kill stays until then.
            if table.get(&id).is_some_and(|slot| slot.killed.is_empty()) {
                table.remove(&id);
            }
        }
        // Also with processes left: the guardian tried for `KILL_SWEEP`, and its last sweep ends them.
        Report::Killed { id, .. } => {
            if let Some(slot) = table.get_mut(&id) {
                for done in slot.killed.drain(..) {
                    let _ = done.send(());
                }
                // A command that still runs keeps its slot for the report of its end.
                if slot.ended.borrow().is_some() || slot.pid == 0 {
                    table.remove(&id);
                }
            }
        }
        // Handled by the reader.
        Report::Ready { .. } | Report::Unavailable { .. } => {}
    }
}
