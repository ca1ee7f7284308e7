//! A model of the protocol between workers and the server (decision 35-workers-and-gateways.md) with a random scheduler: requests are
//! delayed, repeated, and executed after their worker crashed or was stopped; responses are lost; clocks run at different rates.
//! `MODEL_RUNS=1000000 cargo test -p pinion-cluster --test model` runs it a million times.

#![expect(
    clippy::indexing_slicing,
    reason = "indices of workers and commands are below their constant numbers"
)]

use std::collections::BTreeMap;

/// Commands of one run. Each stores a message, makes a tool call and stores its result.
const COMMANDS: usize = 3;
const WORKERS: usize = 3;
/// Lease time in ticks of the server.
const LEASE: f64 = 120.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Message(usize),
    Result(usize),
    MayHaveRun(usize),
    DidNotRun(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reply {
    Done,
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Record {
    Begun,
    Answered(Reply),
}

/// A request to the server.
#[derive(Debug, Clone, Copy)]
enum Request {
    Take,
    Renew(u64),
    Release(u64),
    Load,
    Next(usize),
    Begin(usize),
    BeginCall(usize),
    HasCall(usize),
    Append(usize, Line),
    Answer(usize, Reply),
    Publish(usize, usize, Reply),
    Remove(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Fenced,
    Stored(u64),
    Loaded(usize, usize),
    Entry(Option<(usize, usize)>),
    Found(Record),
    Known(bool),
}

#[derive(Debug, Default)]
struct Server {
    now: f64,
    sequence: u64,
    lease: Option<(u64, f64)>,
    log: Vec<Line>,
    events: Vec<(usize, Reply)>,
    queue: Vec<(usize, usize)>,
    records: BTreeMap<usize, Record>,
    calls: BTreeMap<usize, ()>,
}

impl Server {
    fn execute(&mut self, request: Request) -> Outcome {
        if self.lease.is_some_and(|(_, end)| end <= self.now) {
            self.lease = None;
        }
        self.sequence += 1;
        let stored = Outcome::Stored(self.sequence);
        match request {
            Request::Take if self.lease.is_some() => Outcome::Fenced,
            Request::Renew(held) if self.lease.is_none_or(|(sequence, _)| sequence != held) => {
                Outcome::Fenced
            }
            Request::Take | Request::Renew(_) => {
                self.lease = Some((self.sequence, self.now + LEASE));
                stored
            }
            Request::Release(held) => {
                self.lease = self.lease.filter(|(sequence, _)| *sequence != held);
                stored
            }
            Request::Load => Outcome::Loaded(self.log.len(), self.events.len()),
            Request::Next(from) => {
                Outcome::Entry(self.queue.iter().copied().find(|(entry, _)| *entry >= from))
            }
            Request::Begin(key) => match self.records.get(&key) {
                Some(record) => Outcome::Found(*record),
                None => {
                    self.records.insert(key, Record::Begun);
                    stored
                }
            },
            Request::BeginCall(key) => {
                self.calls.insert(key, ());
                stored
            }
            Request::HasCall(key) => Outcome::Known(self.calls.contains_key(&key)),
            Request::Append(at, line) if at == self.log.len() => {
                self.log.push(line);
                stored
            }
            Request::Answer(key, reply) if self.records.get(&key) == Some(&Record::Begun) => {
                self.records.insert(key, Record::Answered(reply));
                stored
            }
            Request::Publish(at, key, reply) if at == self.events.len() => {
                self.events.push((key, reply));
                stored
            }
            Request::Append(..) | Request::Answer(..) | Request::Publish(..) => Outcome::Fenced,
            Request::Remove(entry) => {
                self.queue.retain(|(other, _)| *other != entry);
                stored
            }
        }
    }
}

/// What a worker does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Idle,
    Load,
    Recover,
    Closing(usize),
    Next,
    Begin,
    Message,
    Call,
    Result,
    Answer(Reply),
    Publish(Reply),
    Remove,
    Release,
}

/// A request on its way: executed once by the server however often it is sent.
#[derive(Debug, Clone, Copy)]
struct Sent {
    request: Request,
    at: f64,
    outcome: Option<Outcome>,
}

#[derive(Debug)]
struct Worker {
    step: Step,
    lease: u64,
    valid_until: f64,
    log: usize,
    events: usize,
    cursor: usize,
    entry: (usize, usize),
    sent: Option<Sent>,
    renewal: Option<Sent>,
    stopped_until: f64,
    /// No request of it arrives at the server before.
    cut_until: f64,
    /// Speed of its clock relative to the server's.
    rate: f64,
}

impl Worker {
    fn new(rate: f64) -> Self {
        Self {
            step: Step::Idle,
            lease: 0,
            valid_until: 0.0,
            log: 0,
            events: 0,
            cursor: 0,
            entry: (0, 0),
            sent: None,
            renewal: None,
            stopped_until: 0.0,
            cut_until: 0.0,
            rate,
        }
    }

    fn is_valid(&self, now: f64) -> bool {
        now * self.rate < self.valid_until
    }

    fn request(&self, log: &[Line]) -> Request {
        let (entry, key) = self.entry;
        match self.step {
            Step::Idle => Request::Take,
            Step::Load => Request::Load,
            Step::Recover => Request::HasCall(open(log.get(..self.log).unwrap_or(log)).unwrap_or(0)),
            Step::Closing(line) => {
                let known = log.get(..self.log).unwrap_or(log);
                let key = open(known).unwrap_or(0);
                let line = if line == 1 {
                    Line::MayHaveRun(key)
                } else {
                    Line::DidNotRun(key)
                };
                Request::Append(self.log, line)
            }
            Step::Next => Request::Next(self.cursor),
            Step::Begin => Request::Begin(key),
            Step::Message => Request::Append(self.log, Line::Message(key)),
            Step::Call => Request::BeginCall(key),
            Step::Result => Request::Append(self.log, Line::Result(key)),
            Step::Answer(reply) => Request::Answer(key, reply),
            Step::Publish(reply) => Request::Publish(self.events, key, reply),
            Step::Remove => Request::Remove(entry),
            Step::Release => Request::Release(self.lease),
        }
    }
}

/// The newest message without a result.
fn open(log: &[Line]) -> Option<usize> {
    match log.last() {
        Some(Line::Message(key)) => Some(*key),
        _ => None,
    }
}

struct Model {
    random: u64,
    server: Server,
    workers: Vec<Worker>,
    /// Requests of workers that crashed.
    orphans: Vec<Request>,
    ran: [u32; COMMANDS],
    next_entry: usize,
    /// What happened; only of a run that is shown.
    trace: Option<Vec<String>>,
}

impl Model {
    fn new(seed: u64, trace: Option<Vec<String>>) -> Self {
        let mut model = Self {
            random: seed,
            server: Server::default(),
            workers: Vec::new(),
            orphans: Vec::new(),
            ran: [0; COMMANDS],
            next_entry: 0,
            trace,
        };
        for _ in 0..WORKERS {
            let rate = 0.8 + model.below(41) as f64 / 100.0;
            model.workers.push(Worker::new(rate));
        }
        for key in 0..COMMANDS {
            model.queue(key);
        }
        model
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }

    fn note(&mut self, text: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(text());
        }
    }

    fn queue(&mut self, key: usize) {
        self.server.queue.push((self.next_entry, key));
        self.next_entry += 1;
    }

    /// One random step. Without faults, requests and responses only take time.
    fn step(&mut self, faults: bool) {
        self.server.now += self.below(3) as f64;
        let index = self.below(WORKERS as u64) as usize;
        match self.below(40) {
            0 if faults => self.crash(index),
            1 if faults => {
                let until = self.server.now + self.below(200) as f64;
                if self.below(2) == 0 {
                    self.workers[index].stopped_until = until;
                } else {
                    self.workers[index].cut_until = until;
                }
            }
            // A client sends a command again through another gateway.
            2 if faults => {
                let key = self.below(COMMANDS as u64) as usize;
                self.queue(key);
            }
            3..=6 if !self.orphans.is_empty() => {
                let at = self.below(self.orphans.len() as u64) as usize;
                let request = self.orphans.swap_remove(at);
                let outcome = self.server.execute(request);
                self.note(|| format!("late {request:?} -> {outcome:?}"));
            }
            7..=12 => self.renew(index, faults),
            _ => self.advance(index, faults),
        }
    }

    fn crash(&mut self, index: usize) {
        let rate = self.workers[index].rate;
        let worker = std::mem::replace(&mut self.workers[index], Worker::new(rate));
        let open = [worker.sent, worker.renewal].into_iter().flatten();
        self.orphans.extend(
            open.filter(|sent| sent.outcome.is_none())
                .map(|sent| sent.request),
        );
        self.note(|| format!("{index} crashes"));
    }

    fn renew(&mut self, index: usize, faults: bool) {
        let now = self.server.now;
        let lose = faults && self.below(6) == 0;
        let worker = &mut self.workers[index];
        if worker.step == Step::Idle
            || worker.step == Step::Release
            || now < worker.stopped_until && worker.renewal.is_none()
        {
            return;
        }
        let is_valid = worker.is_valid(now);
        match &mut worker.renewal {
            None if is_valid => {
                worker.renewal = Some(Sent {
                    request: Request::Renew(worker.lease),
                    at: now * worker.rate,
                    outcome: None,
                });
            }
            None => {}
            // The server does not wait for stopped workers.
            Some(sent) if sent.outcome.is_none() && now < worker.cut_until => {}
            Some(sent) if sent.outcome.is_none() => sent.outcome = Some(self.server.execute(sent.request)),
            Some(_) if lose || now < worker.stopped_until => {}
            Some(sent) => {
                if let Some(Outcome::Stored(sequence)) = sent.outcome {
                    worker.lease = sequence;
                    worker.valid_until = sent.at + LEASE * 4.0 / 5.0;
                } else {
                    worker.valid_until = 0.0;
                }
                worker.renewal = None;
            }
        }
    }

    fn advance(&mut self, index: usize, faults: bool) {
        let now = self.server.now;
        let lose = faults && self.below(6) == 0;
        let is_cut = now < self.workers[index].cut_until;
        let is_stopped = now < self.workers[index].stopped_until;
        if let Some(sent) = self.workers[index]
            .sent
            .as_mut()
            .filter(|sent| sent.outcome.is_none())
        {
            if is_cut {
                return;
            }
            let outcome = self.server.execute(sent.request);
            sent.outcome = Some(outcome);
            let request = sent.request;
            self.note(|| format!("{index} {request:?} -> {outcome:?}"));
            return;
        }
        if is_stopped {
            return;
        }
        let worker = &mut self.workers[index];
        match worker.sent {
            None => {
                let is_owner = !matches!(worker.step, Step::Idle | Step::Release);
                if is_owner && !worker.is_valid(now) {
                    // The lease is lost: another worker may have it.
                    *worker = Worker::new(worker.rate);
                    return;
                }
                let request = worker.request(&self.server.log);
                worker.sent = Some(Sent {
                    request,
                    at: now * worker.rate,
                    outcome: None,
                });
            }
            // The response is lost, and the repeated request gets the same one.
            Some(_) if lose => {}
            Some(Sent {
                at,
                outcome: Some(outcome),
                ..
            }) => {
                worker.sent = None;
                self.take_outcome(index, at, outcome);
            }
            Some(_) => {}
        }
    }

    fn take_outcome(&mut self, index: usize, at: f64, outcome: Outcome) {
        let now = self.server.now;
        let (entry, key) = self.workers[index].entry;
        let worker = &mut self.workers[index];
        worker.step = match (worker.step, outcome) {
            (Step::Idle, Outcome::Stored(sequence)) => {
                worker.lease = sequence;
                worker.valid_until = at + LEASE * 4.0 / 5.0;
                Step::Load
            }
            (Step::Idle, _) => Step::Idle,
            (Step::Release, _) => {
                let rate = worker.rate;
                *worker = Worker::new(rate);
                return;
            }
            // Another writer was there: the session is given up.
            (_, Outcome::Fenced) => Step::Release,
            (Step::Load, Outcome::Loaded(log, events)) => {
                (worker.log, worker.events, worker.cursor) = (log, events, 0);
                let known = self.server.log.get(..log).unwrap_or_default();
                if open(known).is_some() {
                    Step::Recover
                } else {
                    Step::Next
                }
            }
            (Step::Recover, Outcome::Known(begun)) => Step::Closing(usize::from(begun)),
            (Step::Closing(_), _) => {
                worker.log += 1;
                Step::Next
            }
            (Step::Next, Outcome::Entry(Some(found))) => {
                worker.entry = found;
                Step::Begin
            }
            (Step::Begin, Outcome::Found(Record::Begun)) => Step::Answer(Reply::Unknown),
            (Step::Begin, Outcome::Found(Record::Answered(reply))) => Step::Publish(reply),
            (Step::Begin, _) => Step::Message,
            (Step::Message, _) => {
                worker.log += 1;
                Step::Call
            }
            (Step::Call, _) => {
                // The gate looks at the lease again after the record is stored.
                if !worker.is_valid(now) {
                    return self.workers[index] = Worker::new(self.workers[index].rate);
                }
                self.ran[key] += 1;
                Step::Result
            }
            (Step::Result, _) => {
                worker.log += 1;
                Step::Answer(Reply::Done)
            }
            (Step::Answer(reply), _) => Step::Publish(reply),
            (Step::Publish(_), _) => {
                worker.events += 1;
                Step::Remove
            }
            (Step::Remove, _) => {
                worker.cursor = entry + 1;
                Step::Next
            }
            (step, _) => step,
        };
    }

    /// What must hold at every moment.
    fn check(&self) -> Result<(), String> {
        for key in 0..COMMANDS {
            let count = |line: Line| self.server.log.iter().filter(|other| **other == line).count();
            let messages = count(Line::Message(key));
            let ends = count(Line::Result(key)) + count(Line::MayHaveRun(key)) + count(Line::DidNotRun(key));
            if messages > 1 || ends > messages {
                return Err(format!("command {key}: {messages} messages, {ends} ends"));
            }
            if self.ran[key] > 1 || (count(Line::DidNotRun(key)) > 0 && self.ran[key] > 0) {
                return Err(format!("call {key} ran {} times", self.ran[key]));
            }
            let mut replies = self
                .server
                .events
                .iter()
                .filter(|(other, _)| *other == key)
                .map(|(_, reply)| *reply);
            if let Some(first) = replies.next() {
                if replies.any(|other| other != first) {
                    return Err(format!("command {key} has two different responses"));
                }
                if first == Reply::Done && count(Line::Result(key)) != 1 {
                    return Err(format!("command {key} was acknowledged and is not stored"));
                }
            }
        }
        Ok(())
    }

    /// A step, and the rules if it changed what they are about.
    fn checked_step(&mut self, faults: bool) -> Result<(), String> {
        let size = |model: &Self| (model.server.log.len(), model.server.events.len(), model.ran);
        let before = size(self);
        self.step(faults);
        if size(self) == before {
            Ok(())
        } else {
            self.check()
        }
    }

    fn run(&mut self) -> Result<(), String> {
        for _ in 0..300 {
            self.checked_step(true)?;
        }
        for worker in &mut self.workers {
            worker.stopped_until = 0.0;
            worker.cut_until = 0.0;
        }
        for _ in 0..8000 {
            if self.server.queue.is_empty() && self.orphans.is_empty() {
                break;
            }
            self.checked_step(false)?;
        }
        let answered = |key| self.server.events.iter().any(|(other, _)| *other == key);
        match (0..COMMANDS).find(|key| !answered(*key)) {
            Some(key) => Err(format!("command {key} has no response")),
            None => Ok(()),
        }
    }
}

#[test]
fn random_faults_break_no_rule() {
    let runs = std::env::var("MODEL_RUNS")
        .ok()
        .map_or(20_000, |runs| runs.parse().unwrap());
    let mut calls = [0_u64; 2];
    for seed in 0..runs {
        let mut model = Model::new(seed, None);
        if model.run().is_err() {
            let mut shown = Model::new(seed, Some(Vec::new()));
            let problem = shown.run();
            panic!("seed {seed}: {problem:?}\n{}", shown.trace.unwrap().join("\n"));
        }
        for line in &model.server.log {
            calls[0] += u64::from(matches!(line, Line::MayHaveRun(_)));
            calls[1] += u64::from(matches!(line, Line::DidNotRun(_)));
        }
    }
    // The schedules reach takeovers before and after the beginning of calls.
    assert!(calls.iter().all(|count| *count > runs / 100), "{calls:?}");
    println!("{runs} runs, {calls:?} interrupted calls that may have run and that did not");
}
