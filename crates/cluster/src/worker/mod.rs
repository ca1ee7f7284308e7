//! The worker: takes sessions that have no owner, up to a number, and runs them in one agent process. The decision record
//! 35-workers-and-gateways.md describes leases, fences and takeover.

pub(crate) mod agent_line;
mod child;
pub(crate) mod command;
pub(crate) mod file;
mod finder;
mod gate;
mod health;
mod held;
mod interrupted;
mod queue;
mod session;
mod state_dir;
mod takeover;
mod workspace;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hasher as _};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use futures_util::FutureExt as _;
use store::{SessionId, StoreError};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::{JoinError, JoinHandle, JoinSet};

use crate::NatsStore;
use crate::address::NatsAddress;
use crate::bus::{Bus, DIALECT, Lease};
use crate::limits::{ABANDON_WAIT, DRAIN_WAIT, OPEN_WAIT, TAKEN_AT_ONCE, UNWRITABLE_PAUSE};
use child::{Agent, AgentCommand};
use finder::Found;
use gate::Gate;
pub use gate::extension;
use health::Load;
use session::End;
pub use state_dir::StateDir;
pub use workspace::WorkspaceHooks;

/// Settings of a worker.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// The NATS servers and the prefix.
    pub address: NatsAddress,
    /// Name in leases and messages.
    pub name: String,
    /// Sessions at a time.
    pub sessions: usize,
    /// Directory of session files while the worker has them.
    pub state_dir: StateDir,
    /// Working directory of new sessions.
    pub cwd: PathBuf,
    /// Address of the health endpoint.
    pub health: Option<String>,
    /// Time until a lease ends that is not renewed. Used only when the stream of leases is made.
    pub lease: Duration,
    /// Continue the runs of lost workers. Otherwise they wait for `continue` or a prompt.
    pub resumes: bool,
    /// Hooks for working directories.
    pub workspace: WorkspaceHooks,
    /// The program `pinion`.
    pub program: PathBuf,
    /// The program `pinion-cluster`, which the agent starts as an extension.
    pub own: PathBuf,
    /// Further arguments for `pinion`.
    pub args: Vec<String>,
}

/// What the sessions of a worker share.
struct Shared {
    bus: Arc<Bus>,
    store: Arc<NatsStore>,
    agent: Arc<Agent>,
    gate: Arc<Gate>,
    /// Directory of the session files.
    sessions: PathBuf,
    /// Working directory of new sessions.
    cwd: PathBuf,
    workspace: WorkspaceHooks,
    /// True if runs of lost workers continue.
    resumes: bool,
}

/// Where a worker reports what it does; one line per call.
pub type Report = fn(&str);

/// Runs a worker until SIGTERM or SIGINT, or until its agent ends.
///
/// # Errors
/// When NATS or the agent cannot be reached at the start, and when the agent ends.
pub async fn run(options: WorkerOptions, report: Report) -> Result<()> {
    let bus = Arc::new(Bus::connect(&options.address, Some(options.lease)).await?);
    let store = Arc::new(NatsStore::connect(&options.address).await?);
    let state = options.state_dir.open()?;
    let sessions = state.private("sessions")?;
    let gate = Arc::new(Gate::default());
    let folder = gate::start(&state, &options.own, Arc::clone(&gate), Arc::clone(&bus))?;
    let args = agent_args(&options, &sessions, &folder);
    let agent = Arc::new(Agent::start(&AgentCommand {
        program: options.program.clone(),
        args,
        cwd: options.cwd.clone(),
    })?);
    // With numbers, the agent answers `replay`; each session gets numbers of its own later.
    let mut hello = child::Line::new();
    hello.insert("type".to_owned(), "hello".into());
    hello.insert("sequence".to_owned(), true.into());
    hello.insert("deltas".to_owned(), true.into());
    agent
        .request(hello, OPEN_WAIT)
        .await
        .context("the agent does not start")?;
    let load = Arc::new(Load::default());
    load.most.store(options.sessions, Ordering::Relaxed);
    load.connected.store(true, Ordering::Relaxed);
    if let Some(address) = &options.health {
        health::listen(address, Arc::clone(&load)).await?;
    }
    let shared = Arc::new(Shared {
        bus,
        store,
        agent,
        gate,
        sessions,
        cwd: options.cwd,
        resumes: options.resumes,
        workspace: options.workspace,
    });
    report(&format!(
        "worker {} takes up to {} sessions",
        options.name, options.sessions
    ));
    let (stop, stopped) = watch::channel(false);
    Worker::open(shared, options.name, options.sessions, load, report, stopped)
        .await?
        .run(stop)
        .await
}

/// The arguments of the agent. `sessions` is the directory of the session files, `gate` that of the worker's extension.
fn agent_args(options: &WorkerOptions, sessions: &Path, gate: &Path) -> Vec<String> {
    let (sessions, gate) = (sessions.to_string_lossy(), gate.to_string_lossy());
    // The worker closes idle sessions itself. One more, since a session that ends may still be closing.
    let most = (options.sessions * 2 + 1).to_string();
    // Clients of all sessions share the connection to the agent, so neither a command of one of them nor the environment may decide
    // its dialect.
    let mut args = vec!["--mode", "rpc", "--rpc-dialect", DIALECT];
    args.extend([
        "--session-dir",
        &sessions,
        "--max-open-sessions",
        &most,
        "--extension",
        &gate,
    ]);
    args.extend(options.args.iter().map(String::as_str));
    args.into_iter().map(str::to_owned).collect()
}

/// The place of a session that is being taken. Free when dropped.
type Place = OwnedSemaphorePermit;

/// A session whose lease was asked for, and the lease unless another worker has it.
type Taken = (SessionId, Result<Option<Lease>, StoreError>, Place);

struct Worker {
    shared: Arc<Shared>,
    name: String,
    most: usize,
    load: Arc<Load>,
    report: Report,
    finder: JoinHandle<()>,
    found: mpsc::Receiver<Found>,
    /// Sessions without a worker, in the order in which this worker asks for their leases.
    free: BTreeSet<(u64, SessionId)>,
    /// Places for sessions on their way: from the request for the lease until the session is open. With more at a time, NATS can
    /// answer all of them too late, so that none opens and each is tried again.
    places: Arc<Semaphore>,
    /// Leases that were asked for.
    takes: JoinSet<Taken>,
    tasks: JoinSet<(SessionId, End)>,
    /// Sessions that the agent did not close at their end.
    closing: JoinSet<SessionId>,
    /// Sessions that this worker has or has asked for, and those of `closing`.
    owned: HashSet<SessionId>,
    /// Sessions whose files this worker could not write, and until when it leaves them to other workers.
    left: HashMap<SessionId, Instant>,
    stopped: watch::Receiver<bool>,
}

impl Worker {
    /// A worker that looks for sessions.
    async fn open(
        shared: Arc<Shared>,
        name: String,
        most: usize,
        load: Arc<Load>,
        report: Report,
        stopped: watch::Receiver<bool>,
    ) -> Result<Self> {
        let bus = Arc::clone(&shared.bus);
        let subscription = bus.follow_wanted().await?;
        let (sender, found) = mpsc::channel(1);
        let finder = finder::run(bus, Arc::clone(&load), subscription, sender);
        Ok(Self {
            finder: tokio::spawn(finder),
            found,
            free: BTreeSet::new(),
            places: Arc::new(Semaphore::new(TAKEN_AT_ONCE)),
            takes: JoinSet::new(),
            shared,
            name,
            most,
            load,
            report,
            tasks: JoinSet::new(),
            closing: JoinSet::new(),
            owned: HashSet::new(),
            left: HashMap::new(),
            stopped,
        })
    }

    async fn run(mut self, stop: watch::Sender<bool>) -> Result<()> {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let agent = Arc::clone(&self.shared.agent);
        loop {
            tokio::select! {
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
                () = agent.ended() => {
                    self.abandon().await;
                    bail!("the agent ended; its sessions go to other workers");
                }
                Some(ended) = self.tasks.join_next() => self.ended(ended),
                Some(Ok(closed)) = self.closing.join_next() => {
                    self.owned.remove(&closed);
                    self.count();
                }
                Some(taken) = self.takes.join_next() => self.taken(taken),
                Some(found) = self.found.recv() => self.found(found),
                Ok(place) = Arc::clone(&self.places).acquire_owned(), if self.has_room() => self.take(place),
            }
        }
        self.drain(&stop).await;
        Ok(())
    }

    /// Asks for the leases of sessions that have no worker.
    fn found(&mut self, found: Found) {
        let ids = match found {
            Found::All(ids) => {
                self.free.clear();
                ids
            }
            Found::Announced(ids) => ids,
        };
        // Workers begin at different sessions, so that they seldom ask for the same lease.
        let ids = ids.into_iter().map(|id| (hash(&(&self.name, id.as_str())), id));
        self.free.extend(ids);
    }

    fn has_room(&self) -> bool {
        !self.free.is_empty() && self.owned.len() < self.most
    }

    /// Asks for the next lease.
    fn take(&mut self, place: Place) {
        while let Some((_, id)) = self.free.pop_first() {
            let is_left = self.left.get(&id).is_some_and(|until| Instant::now() < *until);
            if is_left || !self.owned.insert(id.clone()) {
                continue;
            }
            let (bus, name) = (Arc::clone(&self.shared.bus), self.name.clone());
            self.takes.spawn(async move {
                // A session whose lease could not be asked for because of a defect must not count as owned.
                let take = AssertUnwindSafe(Lease::take(&bus, &id, &name)).catch_unwind();
                let lease = take.await.unwrap_or(Ok(None));
                (id, lease, place)
            });
            return;
        }
    }

    fn taken(&mut self, taken: Result<Taken, JoinError>) {
        let Ok((id, lease, place)) = taken else {
            return;
        };
        match lease {
            Ok(Some(lease)) => self.start(id, lease, place),
            // Another worker has it, or NATS is away; then the next look tries again.
            Ok(None) | Err(_) => drop(self.owned.remove(&id)),
        }
    }

    fn start(&mut self, id: SessionId, lease: Lease, place: Place) {
        self.load.taken.fetch_add(1, Ordering::Relaxed);
        let (shared, stop) = (Arc::clone(&self.shared), self.stopped.clone());
        self.tasks.spawn(async move {
            let end = session::run(shared, id.clone(), lease, place, stop).await;
            (id, end)
        });
        self.count();
    }

    fn count(&self) {
        let sessions = self.owned.len() - self.takes.len();
        self.load.sessions.store(sessions, Ordering::Relaxed);
    }

    fn ended(&mut self, ended: Result<(SessionId, End), JoinError>) {
        let Ok((id, end)) = ended else {
            return;
        };
        let reason = match end {
            End::Drained | End::Idle => None,
            End::Lost(reason) => Some(reason),
            End::Unwritable(reason) => {
                let now = Instant::now();
                self.left.retain(|_, until| now < *until);
                self.left.insert(id.clone(), now + UNWRITABLE_PAUSE);
                Some(reason)
            }
            End::Stuck(reason, file) => {
                // Its place stays taken: while the agent has it, it would refuse to open it again.
                self.load.lost.fetch_add(1, Ordering::Relaxed);
                (self.report)(&format!(
                    "session {id} goes to another worker, but the agent does not close it: {reason:#}"
                ));
                let shared = Arc::clone(&self.shared);
                self.closing.spawn(session::close_at_last(shared, id, file));
                return;
            }
        };
        self.owned.remove(&id);
        self.count();
        if let Some(reason) = reason {
            self.load.lost.fetch_add(1, Ordering::Relaxed);
            (self.report)(&format!("session {id} is no longer here: {reason:#}"));
        }
    }

    /// Lets runs end, up to a time, and gives their sessions to other workers. What still runs then is taken over like the
    /// sessions of a lost worker.
    async fn drain(&mut self, stop: &watch::Sender<bool>) {
        self.load.draining.store(true, Ordering::Relaxed);
        stop.send_replace(true);
        self.finder.abort();
        self.free.clear();
        let until = Instant::now() + DRAIN_WAIT;
        // Sessions that come now are given away at once.
        while let Ok(Some(taken)) = tokio::time::timeout_at(until.into(), self.takes.join_next()).await {
            self.taken(taken);
        }
        while !self.tasks.is_empty() {
            match tokio::time::timeout_at(until.into(), self.tasks.join_next()).await {
                Ok(Some(ended)) => self.ended(ended),
                Ok(None) => break,
                Err(_) => {
                    (self.report)("runs did not end in time; other workers take them over");
                    break;
                }
            }
        }
        self.abandon().await;
    }

    /// Kills the agent. The tasks of sessions see its end and give up their leases.
    async fn abandon(&mut self) {
        self.finder.abort();
        self.takes.shutdown().await;
        self.closing.shutdown().await;
        self.shared.agent.kill().await;
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        drop(tokio::time::timeout(ABANDON_WAIT, ended).await);
        // Leases that are left end by themselves.
        self.tasks.shutdown().await;
    }
}

fn hash(value: &impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Address;

    #[test]
    fn agent_has_dialect_of_gateways_in_any_environment() {
        let Ok(Address::Nats(address)) = Address::parse("nats://h") else {
            panic!("no address of NATS")
        };
        let options = WorkerOptions {
            address,
            name: "w".to_owned(),
            sessions: 3,
            state_dir: StateDir::At("/state".into()),
            cwd: "/work".into(),
            health: None,
            lease: Duration::from_secs(10),
            resumes: false,
            workspace: WorkspaceHooks::default(),
            program: "pinion".into(),
            own: "pinion-cluster".into(),
            args: vec!["--no-tools".to_owned()],
        };
        let args = agent_args(&options, Path::new("/s"), Path::new("/g"));
        assert_eq!(args[..4], ["--mode", "rpc", "--rpc-dialect", "pi"]);
        assert_eq!(
            args[6..],
            ["--max-open-sessions", "7", "--extension", "/g", "--no-tools"]
        );
    }
}
