//! Runs sessions on workers while workers, gateways and the NATS server are killed and stopped, and afterwards compares the transcripts of
//! clients with the stored sessions.
//!
//!     cargo run -p pinion-cluster --features nats --example faults -- [--sessions N] [--workers N] [--seconds N] [--seed N] [--only KIND]
//!
//! KIND is the number of the only kind of fault: 1 kills a worker, 2 stops one, 3 drains one, 4 kills the server.

#[path = "../tests/stores/engine.rs"]
mod engine;
#[path = "../tests/cluster/place.rs"]
mod place;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use place::{Client, Place, Worker, is};

/// Time from the loss of a worker or server until its sessions answer again: the lease of two seconds and two more.
const BACK: Duration = Duration::from_secs(4);

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str, default: u64| -> Result<u64> {
        match words.iter().position(|word| word == name) {
            Some(at) => Ok(words.get(at + 1).context("a value is missing")?.parse()?),
            None => Ok(default),
        }
    };
    let (sessions, workers) = (number("--sessions", 12)?, number("--workers", 3)?);
    let (seconds, seed) = (number("--seconds", 30)?, number("--seed", 1)?);
    let program = std::env::current_exe()?;
    let dir = program
        .parent()
        .and_then(std::path::Path::parent)
        .context("no directory")?;
    let Some(place) = Place::beside(&dir.join("pinion-cluster"))? else {
        return Ok(());
    };
    let run = Run {
        place: RwLock::new(place),
        stop: AtomicBool::new(false),
        faults: Mutex::default(),
        seed: AtomicU64::new(seed),
        only: number("--only", 0)?,
        script: json!([{"repeat": true, "stream": [{"text": ["one ", {"delay": 0.3}, "two ", {"delay": 0.3}, "three"]}]}]),
    };
    let report = run.whole(sessions, workers, Duration::from_secs(seconds))?;
    writeln!(std::io::stdout(), "{report}")?;
    Ok(())
}

struct Run {
    place: RwLock<Place>,
    stop: AtomicBool,
    /// Times of the faults.
    faults: Mutex<Vec<(Instant, &'static str)>>,
    seed: AtomicU64,
    /// The only kind of fault; 0 for all.
    only: u64,
    script: Value,
}

/// What one client did and saw.
#[derive(Default)]
struct Transcript {
    /// Texts of prompts, and whether they were accepted; none if no response came.
    prompts: BTreeMap<String, Option<bool>>,
    /// Numbered events.
    events: BTreeMap<u64, Value>,
    /// Longest waits for a response.
    waits: Vec<Duration>,
    /// Connections through a new gateway.
    reconnects: u64,
}

impl Run {
    fn whole(&self, sessions: u64, workers: u64, time: Duration) -> Result<String> {
        let mut running = Vec::new();
        for index in 0..workers {
            running.push(self.worker(index)?);
        }
        let transcripts = std::thread::scope(|scope| -> Result<Vec<Transcript>> {
            let clients: Vec<_> = (0..sessions)
                .map(|index| scope.spawn(move || self.client(&format!("s{index}"))))
                .collect();
            self.disturb(&mut running, time)?;
            self.stop.store(true, Ordering::Relaxed);
            clients
                .into_iter()
                .map(|client| client.join().map_err(|_| anyhow::anyhow!("a client panicked"))?)
                .collect()
        })?;
        self.check(&transcripts)
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

    fn worker(&self, index: u64) -> Result<Worker> {
        let place = self.place.read().unwrap_or_else(PoisonError::into_inner);
        place.worker(&format!("w{index}"), &self.script, &["--max-sessions", "1000"])
    }

    fn note(&self, what: &'static str) {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        faults.push((Instant::now(), what));
    }

    /// Says which faults were near a slow response.
    fn explain(&self, text: &str, begin: Instant) {
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let near = faults.iter().filter(|(at, _)| *at + BACK * 2 > begin);
        let near: Vec<String> = near
            .map(|(at, what)| {
                let before = at.checked_duration_since(begin).map(|after| after.as_secs_f64());
                let before = before.unwrap_or_else(|| -begin.duration_since(*at).as_secs_f64());
                format!("{what} at {before:.1} s")
            })
            .collect();
        let took = begin.elapsed().as_secs_f64();
        drop(writeln!(
            std::io::stderr(),
            "slow: {text} took {took:.1} s; {}",
            near.join(", ")
        ));
    }

    /// Kills and stops until the time is over; then everything runs again.
    fn disturb(&self, workers: &mut [Worker], time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        std::thread::sleep(Duration::from_secs(4));
        while Instant::now() < end {
            let index = self.below(workers.len() as u64);
            let worker = workers.get_mut(usize::try_from(index)?).context("no worker")?;
            let kind = if self.only > 0 { self.only } else { self.below(5) };
            match kind {
                0 | 1 => {
                    self.note("kill worker");
                    worker.signal("-KILL")?;
                    worker.wait()?;
                    std::thread::sleep(Duration::from_millis(self.below(3000)));
                    *worker = self.worker(index)?;
                }
                2 => {
                    self.note("stop worker");
                    worker.signal("-STOP")?;
                    std::thread::sleep(Duration::from_millis(1000 + self.below(5000)));
                    worker.signal("-CONT")?;
                }
                3 => {
                    self.note("drain worker");
                    worker.signal("-TERM")?;
                    worker.wait()?;
                    *worker = self.worker(index)?;
                }
                _ => {
                    self.note("kill server");
                    let mut place = self.place.write().unwrap_or_else(PoisonError::into_inner);
                    place.stop_nats();
                    std::thread::sleep(Duration::from_millis(self.below(1500)));
                    place.start_nats()?;
                }
            }
            std::thread::sleep(Duration::from_millis(2000 + self.below(3000)));
            // A worker whose leases all ended may have ended with its agent.
            for index in 0..workers.len() {
                let ended = workers
                    .get_mut(index)
                    .is_some_and(|worker| !matches!(worker.0.try_wait(), Ok(None)));
                if ended && let Some(worker) = workers.get_mut(index) {
                    self.note("worker ended by itself");
                    *worker = self.worker(index as u64)?;
                }
            }
        }
        Ok(())
    }

    /// One client: prompts one after the other, through gateways that are sometimes killed.
    fn client(&self, session: &str) -> Result<Transcript> {
        let mut seen = Transcript::default();
        let mut gateway = None;
        let mut number = 0;
        while !self.stop.load(Ordering::Relaxed) {
            number += 1;
            let text = format!("{session} prompt {number}");
            seen.prompts.insert(text.clone(), None);
            let command = json!({"id": text, "type": "prompt", "message": text});
            let begin = Instant::now();
            // The same command goes through another gateway until there is a response.
            let accepted = loop {
                if begin.elapsed() > Duration::from_secs(90) {
                    bail!("{text}: no response in 90 seconds");
                }
                let mut open = match gateway.take() {
                    Some(open) => open,
                    None => match self.connect(session, &mut seen) {
                        Ok(open) => open,
                        Err(_) => continue,
                    },
                };
                let response = open.ask(command.clone());
                keep(&mut open, &mut seen)?;
                let Ok(response) = response else {
                    continue;
                };
                gateway = Some(open);
                break response.get("success") == Some(&Value::Bool(true));
            };
            seen.waits.push(begin.elapsed());
            if begin.elapsed() > BACK {
                self.explain(&text, begin);
            }
            seen.prompts.insert(text, Some(accepted));
            let Some(mut open) = gateway.take() else {
                continue;
            };
            if self.below(8) == 0 {
                // Killed in the middle of an answer.
                std::thread::sleep(Duration::from_millis(self.below(600)));
                keep(&mut open, &mut seen)?;
                continue;
            }
            let settled = !accepted || open.until("agent_settled").is_ok();
            keep(&mut open, &mut seen)?;
            if settled {
                gateway = Some(open);
            }
            std::thread::sleep(Duration::from_millis(self.below(500)));
        }
        // Late events arrive at a last gateway.
        drop(gateway);
        std::thread::sleep(Duration::from_secs(6));
        let mut last = self.connect(session, &mut seen)?;
        last.ask(json!({"id": "end", "type": "get_state"}))?;
        keep(&mut last, &mut seen)?;
        Ok(seen)
    }

    /// Attaches, and asks for the events since the last one.
    fn connect(&self, session: &str, seen: &mut Transcript) -> Result<Client> {
        seen.reconnects += 1;
        let mut client = {
            let place = self.place.read().unwrap_or_else(PoisonError::into_inner);
            place.start_gateway(&format!("{session}?client={session}"))?
        };
        client.until("ready")?;
        client.ask(json!({"id": "hello", "type": "hello", "sequence": true}))?;
        let after = seen.events.keys().next_back().copied().unwrap_or(0);
        let replay = client.ask(json!({"id": "replay", "type": "replay", "after": after}))?;
        ensure!(
            replay.pointer("/data/snapshot").is_none(),
            "events after {after} are gone: {replay}"
        );
        let last = replay
            .pointer("/data/lastSeq")
            .and_then(Value::as_u64)
            .unwrap_or(0);
        if last > after {
            client.find("the last replayed event", |line| {
                line.get("seq").and_then(Value::as_u64) == Some(last)
            })?;
        }
        Ok(client)
    }

    /// Compares the transcripts of clients with the stored sessions.
    fn check(&self, transcripts: &[Transcript]) -> Result<String> {
        let place = self.place.read().unwrap_or_else(PoisonError::into_inner);
        let (mut accepted, mut refused, mut events) = (0, 0, 0);
        let mut problems = Vec::new();
        for (index, seen) in transcripts.iter().enumerate() {
            let session = format!("s{index}");
            let log = place.log(&session)?;
            problems.extend(check_log(&session, &log, seen));
            accepted += seen
                .prompts
                .values()
                .filter(|state| **state == Some(true))
                .count();
            refused += seen
                .prompts
                .values()
                .filter(|state| **state == Some(false))
                .count();
            events += seen.events.len();
        }
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
        for (_, what) in faults.iter() {
            *kinds.entry(what).or_default() += 1;
        }
        let mut waits: Vec<Duration> = transcripts.iter().flat_map(|seen| seen.waits.clone()).collect();
        waits.sort();
        let slow = waits.iter().filter(|wait| **wait > BACK).count();
        let reconnects: u64 = transcripts.iter().map(|seen| seen.reconnects).sum();
        let at = |share: usize| {
            waits
                .get((waits.len() * share / 100).min(waits.len().saturating_sub(1)))
                .copied()
        };
        ensure!(problems.is_empty(), "{}", problems.join("\n"));
        Ok(format!(
            "{} sessions, {accepted} prompts accepted, {refused} refused, {events} events, {reconnects} gateways, faults {kinds:?}, \
             response p50 {:?} p99 {:?} max {:?}, {slow} above {BACK:?}",
            transcripts.len(),
            at(50),
            at(99),
            waits.last(),
        ))
    }
}

/// Takes the numbered events of a client. An event that came twice must be the same.
fn keep(client: &mut Client, seen: &mut Transcript) -> Result<()> {
    client.seen.extend(client.lines.try_iter());
    for line in client.seen.drain(..) {
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

/// The rules for one session.
fn check_log(session: &str, log: &[Value], seen: &Transcript) -> Vec<String> {
    let mut problems = Vec::new();
    let mut parent = Value::Null;
    let mut ids = HashSet::new();
    for entry in log.iter().skip(1) {
        if entry.get("parentId") != Some(&parent) {
            problems.push(format!("{session}: two writers at {entry}"));
        }
        parent = entry.get("id").cloned().unwrap_or_default();
        if !ids.insert(parent.to_string()) {
            problems.push(format!("{session}: an id is there twice: {parent}"));
        }
    }
    let messages: Vec<&Value> = log.iter().filter_map(|entry| entry.get("message")).collect();
    let mut users: HashMap<&str, u64> = HashMap::new();
    for message in messages.iter().filter(|message| is(message, "role", "user")) {
        let text = message.pointer("/content/0/text").and_then(Value::as_str);
        *users.entry(text.unwrap_or_default()).or_default() += 1;
    }
    for (text, state) in &seen.prompts {
        let count = users.get(text.as_str()).copied().unwrap_or(0);
        if count > 1 || (*state == Some(true) && count != 1) {
            problems.push(format!("{text}: accepted {state:?}, stored {count} times"));
        }
    }
    let numbers: Vec<u64> = seen.events.keys().copied().collect();
    let gap = numbers
        .iter()
        .zip(1..)
        .find(|(number, expected)| **number != *expected);
    if let Some((number, expected)) = gap {
        problems.push(format!("{session}: event {expected} is missing before {number}"));
    }
    let mut is_open = false;
    for event in seen.events.values() {
        match event.get("type").and_then(Value::as_str) {
            Some("agent_start") if is_open => {
                problems.push(format!("{session}: a run begins in a run: {event}"))
            }
            Some("agent_start") => is_open = true,
            Some("agent_end") => is_open = false,
            Some("message_end") => {
                let message = event.get("message").cloned().unwrap_or_default();
                let same = |name: &str, other: &Value| other.get(name) == message.get(name);
                let is_stored = messages
                    .iter()
                    .any(|other| same("role", other) && same("timestamp", other) && same("content", other));
                if !is_stored {
                    problems.push(format!(
                        "{session}: a client saw a message that is not stored: {event}"
                    ));
                }
            }
            _ => {}
        }
    }
    if is_open {
        problems.push(format!("{session}: a run has no end"));
    }
    problems
}
