//! The worker: takes sessions that have no owner, up to a number, and runs them in one agent process. The decision record
//! 35-workers-and-gateways.md describes leases, fences and takeover.

mod child;
pub(crate) mod command;
pub(crate) mod file;
mod gate;
mod health;
mod interrupted;
mod queue;
mod session;
mod takeover;
mod workspace;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use futures_util::StreamExt as _;
use store::SessionId;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::NatsStore;
use crate::address::NatsAddress;
use crate::bus::{Bus, Lease};
use crate::limits::{ABANDON_WAIT, DRAIN_WAIT, OPEN_WAIT};
use child::{Agent, AgentCommand};
use gate::Gate;
pub use gate::extension;
use health::Load;
use session::End;
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
    pub state_dir: PathBuf,
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
    let sessions = options.state_dir.join("sessions");
    std::fs::create_dir_all(&sessions)
        .with_context(|| format!("{} cannot be created", sessions.display()))?;
    let mut args = vec!["--mode".to_owned(), "rpc".to_owned(), "--session-dir".to_owned()];
    args.push(sessions.to_string_lossy().into_owned());
    // The worker closes idle sessions itself. One more, since a session that ends may still be closing.
    args.push("--max-open-sessions".to_owned());
    args.push((options.sessions * 2 + 1).to_string());
    let gate = Arc::new(Gate::default());
    let folder = gate::start(
        &options.state_dir,
        &options.own,
        Arc::clone(&gate),
        Arc::clone(&bus),
    )?;
    args.extend(["--extension".to_owned(), folder.to_string_lossy().into_owned()]);
    args.extend(options.args.iter().cloned());
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
    let worker = Worker {
        shared,
        name: options.name,
        most: options.sessions,
        load,
        report,
        tasks: JoinSet::new(),
        owned: HashSet::new(),
        stopped,
    };
    worker.run(stop).await
}

struct Worker {
    shared: Arc<Shared>,
    name: String,
    most: usize,
    load: Arc<Load>,
    report: Report,
    tasks: JoinSet<(SessionId, End)>,
    owned: HashSet<SessionId>,
    stopped: watch::Receiver<bool>,
}

impl Worker {
    async fn run(mut self, stop: watch::Sender<bool>) -> Result<()> {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let bus = Arc::clone(&self.shared.bus);
        let agent = Arc::clone(&self.shared.agent);
        let mut wanted = bus.follow_wanted().await?;
        let mut look = tokio::time::interval((bus.lease_time / 4).min(Duration::from_secs(1)));
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
                () = agent.ended() => {
                    self.abandon().await;
                    bail!("the agent ended; its sessions go to other workers");
                }
                Some(ended) = self.tasks.join_next() => self.ended(ended),
                _ = look.tick() => self.take().await,
                Some(_) = wanted.next() => {
                    // The worker with the least load is first.
                    let share = self.owned.len() * 50 / self.most.max(1);
                    tokio::time::sleep(Duration::from_millis(share as u64)).await;
                    self.take().await;
                }
            }
        }
        self.drain(&stop).await;
        Ok(())
    }

    /// Takes sessions that are wanted and have no lease.
    async fn take(&mut self) {
        let bus = Arc::clone(&self.shared.bus);
        self.load.connected.store(bus.is_connected(), Ordering::Relaxed);
        let (wanted, leases) = (bus.all("wanted"), bus.all("lease"));
        // Without a server there is nothing to take; the next look tries again.
        let Ok((wanted, leased)) = tokio::try_join!(bus.wanted.names(&wanted), bus.leases.names(&leases))
        else {
            return;
        };
        let leased: HashSet<String> = leased.into_iter().collect();
        let mut free: Vec<String> = wanted.into_iter().filter(|name| !leased.contains(name)).collect();
        self.load.waiting.store(free.len(), Ordering::Relaxed);
        // Workers begin at different sessions, so that they seldom ask for the same lease.
        free.sort_by_cached_key(|name| hash(&(&self.name, name)));
        for name in free {
            if self.owned.len() >= self.most {
                return;
            }
            let Some(id) = SessionId::decode(&name).filter(|id| !self.owned.contains(id)) else {
                continue;
            };
            match Lease::take(&bus, &id, &self.name).await {
                Ok(Some(lease)) => self.start(id, lease),
                Ok(None) => {}
                Err(_) => return,
            }
        }
    }

    fn start(&mut self, id: SessionId, lease: Lease) {
        self.owned.insert(id.clone());
        self.load.sessions.store(self.owned.len(), Ordering::Relaxed);
        self.load.taken.fetch_add(1, Ordering::Relaxed);
        let (shared, stop) = (Arc::clone(&self.shared), self.stopped.clone());
        self.tasks.spawn(async move {
            let end = session::run(shared, id.clone(), lease, stop).await;
            (id, end)
        });
    }

    fn ended(&mut self, ended: Result<(SessionId, End), tokio::task::JoinError>) {
        let Ok((id, end)) = ended else {
            return;
        };
        if let End::Stuck(reason) = &end {
            // Its place stays taken: the agent still has it, and would refuse to open it again.
            self.load.lost.fetch_add(1, Ordering::Relaxed);
            (self.report)(&format!(
                "session {id} goes to another worker, but the agent does not close it: {reason:#}"
            ));
            return;
        }
        self.owned.remove(&id);
        self.load.sessions.store(self.owned.len(), Ordering::Relaxed);
        if let End::Lost(reason) = end {
            self.load.lost.fetch_add(1, Ordering::Relaxed);
            (self.report)(&format!("session {id} is no longer here: {reason:#}"));
        }
    }

    /// Lets runs end, up to a time, and gives their sessions to other workers. What still runs then is taken over like the
    /// sessions of a lost worker.
    async fn drain(&mut self, stop: &watch::Sender<bool>) {
        self.load.draining.store(true, Ordering::Relaxed);
        stop.send_replace(true);
        let until = Instant::now() + DRAIN_WAIT;
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
