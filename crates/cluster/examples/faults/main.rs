//! Runs sessions on workers while workers, gateways and NATS servers are killed and stopped, and afterwards compares the transcripts of
//! clients with the stored sessions. `cargo xtask cluster` starts it.
//!
//!     faults --agent PATH [--sessions N] [--workers N] [--servers 1|3] [--gateways N] [--seconds N] [--every S] [--pause S] [--lease S]
//!            [--seed N] [--only KIND] [--figures]
//!
//! `--every` is the time between faults, `--pause` the mean time between two prompts of a session. KIND is a fault: kill-worker, stop-worker,
//! drain-worker, kill-gateway, stop-gateway, kill-server or stop-server. `--figures` measures instead what the cluster costs.

mod check;
#[path = "../../tests/stores/engine.rs"]
mod engine;
mod figures;
mod gateway;
#[path = "../../tests/cluster/place.rs"]
mod place;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use check::Transcript;
use gateway::{Gateway, Link, lock};
use place::{Place, Worker, signal};

/// The faults.
const KINDS: [&str; 7] = [
    "kill-worker",
    "stop-worker",
    "drain-worker",
    "kill-gateway",
    "stop-gateway",
    "kill-server",
    "stop-server",
];

/// Longest wait for an answer that the gateway itself gives. A client whose gateway does not answer goes to another one.
const GATEWAY_WAIT: Duration = Duration::from_secs(2);

/// Longest wait for the end of a run.
const SETTLED_WAIT: Duration = Duration::from_secs(20);

/// Longest wait for the acceptance of a prompt through all gateways.
const PROMPT_WAIT: Duration = Duration::from_secs(180);

/// The options.
struct Options {
    agent: PathBuf,
    sessions: usize,
    workers: usize,
    servers: usize,
    gateways: usize,
    seconds: u64,
    every: u64,
    pause: u64,
    lease: u64,
    seed: u64,
    only: Option<usize>,
}

fn value<T: FromStr>(words: &[String], name: &str, default: T) -> Result<T> {
    let Some(at) = words.iter().position(|word| word == name) else {
        return Ok(default);
    };
    let word = words
        .get(at + 1)
        .with_context(|| format!("{name} needs a value"))?;
    word.parse()
        .ok()
        .with_context(|| format!("{name} cannot be {word}"))
}

fn options(words: &[String]) -> Result<Options> {
    let only: String = value(words, "--only", String::new())?;
    let kind = KINDS.iter().position(|kind| *kind == only);
    ensure!(
        only.is_empty() || kind.is_some(),
        "--only must be one of {KINDS:?}"
    );
    let agent: PathBuf = value(words, "--agent", PathBuf::new())?;
    ensure!(agent.is_file(), "--agent must be the program pinion");
    Ok(Options {
        agent: std::path::absolute(agent)?,
        sessions: value(words, "--sessions", 12)?,
        workers: value(words, "--workers", 3)?,
        servers: value(words, "--servers", 3)?,
        gateways: value(words, "--gateways", 3)?,
        seconds: value(words, "--seconds", 30)?,
        every: value(words, "--every", 5)?,
        pause: value(words, "--pause", 1)?,
        lease: value(words, "--lease", 2)?,
        seed: value(words, "--seed", 1)?,
        only: kind,
    })
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let options = options(&words)?;
    let program = std::env::current_exe()?;
    let folder = program.ancestors().nth(2).context("no directory")?;
    let Some(place) = Place::start(&folder.join("pinion-cluster"), &options.agent, options.servers)? else {
        return Ok(());
    };
    if words.iter().any(|word| word == "--figures") {
        return figures::measure(&place, options.sessions);
    }
    let run = Run {
        place: RwLock::new(place),
        gateways: Mutex::default(),
        stop: AtomicBool::new(false),
        faults: Mutex::default(),
        seed: AtomicU64::new(options.seed),
        script: script(options.seconds / options.pause.max(1)),
        options,
    };
    writeln!(std::io::stdout(), "{}", run.whole()?)?;
    Ok(())
}

struct Run {
    options: Options,
    place: RwLock<Place>,
    gateways: Mutex<Vec<Arc<Gateway>>>,
    stop: AtomicBool,
    /// Times of the faults.
    faults: Mutex<Vec<(Instant, &'static str)>>,
    seed: AtomicU64,
    script: Value,
}

/// The replies of the model: one tool call for each prompt, then an answer. The numbers of prompts and calls tell them apart.
fn script(prompts: u64) -> Value {
    let said = |text: &str| json!({"text": ["one ", {"delay": 0.3}, text, {"delay": 0.3}, "three"]});
    // Each request is compared with each reply.
    let mut replies: Vec<Value> = (1..=(prompts * 2 + 8).min(100))
        .map(|number| {
            // Each call leaves one line in the file of its session.
            let command = format!("echo x >> ran.$PI_SESSION_ID; echo call {number}.");
            let call = json!({"name": "bash", "id": format!("call{number}"), "args": {"command": command}});
            json!({
                "repeat": true,
                "match": {"contains": format!("prompt {number}."), "not_contains": format!("call {number}.")},
                "stream": [said("a call "), {"tool": call}],
            })
        })
        .collect();
    replies.push(json!({"repeat": true, "stream": [said("two ")]}));
    Value::Array(replies)
}

impl Run {
    fn whole(&self) -> Result<String> {
        let mut workers = Vec::new();
        for index in 0..self.options.workers {
            workers.push(self.worker(index)?);
        }
        for _ in 0..self.options.gateways {
            let gateway = Arc::new(Gateway::start(&self.place())?);
            lock(&self.gateways).push(Arc::clone(&gateway));
            // Gateways wait for the streams that the first worker makes.
            Link::new(gateway, "start")
                .set(PROMPT_WAIT, json!({"type": "hello"}))
                .context("a gateway does not start")?;
        }
        let transcripts = std::thread::scope(|scope| -> Result<Vec<Transcript>> {
            let clients: Vec<_> = (0..self.options.sessions)
                .map(|index| scope.spawn(move || self.client(&format!("s{index}"))))
                .collect();
            let disturbed = self.disturb(&mut workers);
            self.stop.store(true, Ordering::Relaxed);
            let transcripts = clients
                .into_iter()
                .map(|client| client.join().map_err(|_| anyhow::anyhow!("a client panicked"))?)
                .collect();
            disturbed?;
            transcripts
        })?;
        self.check(&transcripts)
    }

    fn place(&self) -> std::sync::RwLockReadGuard<'_, Place> {
        self.place.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lease and two seconds: the time in which sessions must answer again after a fault.
    fn back(&self) -> Duration {
        Duration::from_secs(self.options.lease + 2)
    }

    /// A pseudo-random number below a bound (splitmix64).
    fn below(&self, bound: u64) -> u64 {
        let mut z = self
            .seed
            .fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed)
            .wrapping_add(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound.max(1)
    }

    fn pick(&self, count: usize) -> Result<usize> {
        Ok(usize::try_from(self.below(count as u64))?)
    }

    /// Sleeps for this time at most.
    fn pause(&self, seconds: u64) {
        std::thread::sleep(Duration::from_millis(self.below(seconds * 1000)));
    }

    fn worker(&self, index: usize) -> Result<Worker> {
        let lease = self.options.lease.to_string();
        let options = ["--max-sessions", "2000", "--lease-seconds", &lease];
        self.place().worker(&format!("w{index}"), &self.script, &options)
    }

    fn note(&self, what: &'static str) {
        lock(&self.faults).push((Instant::now(), what));
    }

    /// Kills and stops until the time is over; then everything runs again.
    fn disturb(&self, workers: &mut [Worker]) -> Result<()> {
        let begin = Instant::now();
        let (time, every) = (
            Duration::from_secs(self.options.seconds),
            Duration::from_secs(self.options.every),
        );
        let mut next = begin + every;
        while next < begin + time {
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            let kind = match self.options.only {
                Some(kind) => kind,
                None => self.pick(KINDS.len())?,
            };
            self.fault(KINDS.get(kind).copied().unwrap_or_default(), workers)?;
            // A fault may have taken longer.
            next = (next + every).max(Instant::now() + every / 4);
            // A worker whose leases all ended may have ended with its agent.
            for (index, worker) in workers.iter_mut().enumerate() {
                if !matches!(worker.0.try_wait(), Ok(None)) {
                    self.note("worker ended by itself");
                    *worker = self.worker(index)?;
                }
            }
        }
        std::thread::sleep((begin + time).saturating_duration_since(Instant::now()));
        Ok(())
    }

    /// One fault, to its end.
    fn fault(&self, kind: &'static str, workers: &mut [Worker]) -> Result<()> {
        self.note(kind);
        // A stopped process continues after its lease has ended, or before.
        let stopped = self.options.lease * 2;
        let index = self.pick(workers.len())?;
        let worker = workers.get_mut(index).context("no worker")?;
        match kind {
            "kill-worker" => {
                worker.signal("-KILL")?;
                worker.wait()?;
                self.pause(3);
                *worker = self.worker(index)?;
            }
            "stop-worker" => {
                worker.signal("-STOP")?;
                self.pause(stopped);
                worker.signal("-CONT")?;
            }
            "drain-worker" => {
                worker.signal("-TERM")?;
                worker.wait()?;
                *worker = self.worker(index)?;
            }
            "kill-gateway" => {
                let index = self.pick(self.options.gateways)?;
                let killed = lock(&self.gateways)
                    .get(index)
                    .map(Arc::clone)
                    .context("no gateway")?;
                signal(&lock(&killed.child), "-KILL")?;
                let gateway = Arc::new(Gateway::start(&self.place())?);
                if let Some(place) = lock(&self.gateways).get_mut(index) {
                    *place = gateway;
                }
            }
            "stop-gateway" => {
                let index = self.pick(self.options.gateways)?;
                let gateway = lock(&self.gateways)
                    .get(index)
                    .map(Arc::clone)
                    .context("no gateway")?;
                signal(&lock(&gateway.child), "-STOP")?;
                self.pause(stopped);
                signal(&lock(&gateway.child), "-CONT")?;
            }
            kind => {
                let index = self.pick(self.options.servers)?;
                if kind == "stop-server" {
                    self.signal_server(index, "-STOP")?;
                    self.pause(stopped);
                    self.signal_server(index, "-CONT")?;
                    return Ok(());
                }
                let mut place = self.place.write().unwrap_or_else(PoisonError::into_inner);
                place.servers.get_mut(index).context("no server")?.engine = None;
                self.pause(2);
                place.start_server(index)?;
            }
        }
        Ok(())
    }

    fn signal_server(&self, index: usize, name: &str) -> Result<()> {
        let place = self.place();
        let server = place.servers.get(index).and_then(|server| server.engine.as_ref());
        signal(&server.context("no server")?.child, name)
    }

    /// One client: prompts one after the other, through one gateway or another.
    fn client(&self, session: &str) -> Result<Transcript> {
        let mut seen = Transcript::default();
        let mut link = None;
        let mut number = 0;
        // Sessions do not all begin at once.
        self.pause(self.options.pause * 2);
        while !self.stop.load(Ordering::Relaxed) {
            number += 1;
            let text = format!("{session} prompt {number}.");
            seen.prompts.insert(text.clone(), None);
            let command = json!({"id": text, "type": "prompt", "message": text});
            let begin = Instant::now();
            // The same command goes through another gateway until there is a response.
            let accepted = loop {
                if begin.elapsed() > PROMPT_WAIT {
                    bail!("{text}: no response in {PROMPT_WAIT:?}");
                }
                let mut open = match link.take() {
                    Some(open) => open,
                    None => match self.connect(session, &mut seen)? {
                        Some(open) => open,
                        None => continue,
                    },
                };
                let response = open.ask(GATEWAY_WAIT, &command);
                keep(&mut open, &mut seen)?;
                if let Ok(response) = response {
                    link = Some(open);
                    break response.get("success") == Some(&Value::Bool(true));
                }
            };
            seen.waits.push(self.wait(&text, begin));
            seen.prompts.insert(text, Some(accepted));
            let Some(mut open) = link.take() else {
                continue;
            };
            if self.below(16) == 0 {
                // The client leaves in the middle of an answer.
                self.pause(1);
                keep(&mut open, &mut seen)?;
                continue;
            }
            let settled = !accepted
                || open
                    .find(SETTLED_WAIT, |line| place::is(line, "type", "agent_settled"))
                    .is_ok();
            keep(&mut open, &mut seen)?;
            if settled {
                link = Some(open);
            }
            let until = Instant::now() + Duration::from_millis(self.below(self.options.pause * 2000));
            while Instant::now() < until && !self.stop.load(Ordering::Relaxed) {
                std::thread::sleep(
                    Duration::from_millis(100).min(until.saturating_duration_since(Instant::now())),
                );
            }
        }
        // Late events arrive at a last gateway.
        drop(link);
        std::thread::sleep(self.back() + SETTLED_WAIT / 4);
        for _ in 0..10 {
            if let Some(mut last) = self.connect(session, &mut seen)? {
                let ended = last.set(SETTLED_WAIT, json!({"type": "get_state"}));
                keep(&mut last, &mut seen)?;
                if ended.is_ok() {
                    return Ok(seen);
                }
            }
        }
        bail!("{session}: no answer at the end")
    }

    /// How long a response took, and whether a fault was near.
    fn wait(&self, text: &str, begin: Instant) -> (Duration, bool) {
        let faults = lock(&self.faults);
        let near: Vec<&(Instant, &str)> = faults
            .iter()
            .filter(|(at, _)| *at + self.back() > begin)
            .collect();
        let took = begin.elapsed();
        if took > self.back() {
            let near: Vec<String> = near
                .iter()
                .map(|(at, what)| {
                    let before = begin.saturating_duration_since(*at).as_secs_f64();
                    format!(
                        "{what} at {:.1} s",
                        at.saturating_duration_since(begin).as_secs_f64() - before
                    )
                })
                .collect();
            let took = took.as_secs_f64();
            drop(writeln!(
                std::io::stderr(),
                "slow: {text} took {took:.1} s; {}",
                near.join(", ")
            ));
        }
        (took, !near.is_empty())
    }

    /// Goes through any gateway, and asks for the events since the last one. None if this gateway does not answer.
    fn connect(&self, session: &str, seen: &mut Transcript) -> Result<Option<Link>> {
        seen.reconnects += 1;
        let index = self.pick(self.options.gateways)?;
        let gateway = lock(&self.gateways)
            .get(index)
            .map(Arc::clone)
            .context("no gateway")?;
        let mut link = Link::new(gateway, session);
        let after = seen.events.keys().next_back().copied().unwrap_or(0);
        // Half of the clients get deltas.
        let deltas = session.ends_with(['0', '2', '4', '6', '8']);
        let wait = GATEWAY_WAIT;
        let replayed = link
            .set(wait, json!({"type": "hello", "sequence": true, "deltas": deltas}))
            .and_then(|_| link.set(wait, json!({"type": "replay", "after": after})));
        let Ok(replay) = replayed else {
            std::thread::sleep(Duration::from_millis(200));
            return Ok(None);
        };
        ensure!(
            replay.pointer("/data/snapshot").is_none(),
            "events after {after} are gone: {replay}"
        );
        let last = replay
            .pointer("/data/lastSeq")
            .and_then(Value::as_u64)
            .unwrap_or(0);
        let is_last = |line: &Value| line.get("seq").and_then(Value::as_u64) == Some(last);
        if last > after && !link.seen.iter().any(is_last) && link.find(wait, is_last).is_err() {
            return Ok(None);
        }
        Ok(Some(link))
    }

    /// Compares the transcripts of clients with the stored sessions.
    fn check(&self, transcripts: &[Transcript]) -> Result<String> {
        let place = self.place();
        let (mut events, mut ran) = (0, 0);
        let mut problems = Vec::new();
        for (index, seen) in transcripts.iter().enumerate() {
            let session = format!("s{index}");
            let log = place.log(&session)?;
            let id = log
                .first()
                .and_then(|header| header.get("id"))
                .and_then(Value::as_str);
            let file = place
                .path("project")
                .join(format!("ran.{}", id.context("no header")?));
            let count = std::fs::read_to_string(file).map_or(0, |text| text.lines().count());
            problems.extend(check::problems(&session, &log, count, seen));
            events += seen.events.len();
            ran += count;
        }
        ensure!(
            problems.is_empty(),
            "{} problems\n{}",
            problems.len(),
            problems.join("\n")
        );
        let count = |state: bool| {
            let prompts = transcripts.iter().flat_map(|seen| seen.prompts.values());
            prompts.filter(|found| **found == Some(state)).count()
        };
        let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
        for (_, what) in lock(&self.faults).iter() {
            *kinds.entry(what).or_default() += 1;
        }
        let waits = |all: bool| {
            let waits = transcripts.iter().flat_map(|seen| &seen.waits);
            let mut waits: Vec<Duration> = waits
                .filter(|(_, near)| all || *near)
                .map(|(wait, _)| *wait)
                .collect();
            waits.sort();
            let at = |share: usize| {
                waits
                    .get(waits.len().saturating_sub(1) * share / 100)
                    .copied()
                    .unwrap_or_default()
            };
            let above = waits.iter().filter(|wait| **wait > self.back()).count();
            format!(
                "{} responses, p50 {:.2?} p99 {:.2?} max {:.2?}, {above} above {:?}",
                waits.len(),
                at(50),
                at(99),
                at(100),
                self.back()
            )
        };
        Ok(format!(
            "{} sessions, {} workers, {} servers, {} gateways, {} s: {} prompts accepted, {} refused, {ran} commands ran, {events} events, \
             {} connections, 0 broken rules\nfaults: {kinds:?}\nall: {}\nnear a fault: {}",
            transcripts.len(),
            self.options.workers,
            self.options.servers,
            self.options.gateways,
            self.options.seconds,
            count(true),
            count(false),
            transcripts.iter().map(|seen| seen.reconnects).sum::<u64>(),
            waits(true),
            waits(false),
        ))
    }
}

/// Takes the numbered events of a client. An event that came twice must be the same.
fn keep(link: &mut Link, seen: &mut Transcript) -> Result<()> {
    link.seen.extend(link.lines.try_iter());
    for line in link.seen.drain(..) {
        if let Some(seq) = line.get("seq").and_then(Value::as_u64) {
            let before = seen.events.insert(seq, line.clone());
            ensure!(
                before.is_none_or(|before| before == line),
                "two events have number {seq}: {line}"
            );
        }
    }
    Ok(())
}
