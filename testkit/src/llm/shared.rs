//! The state that all threads of a scripted server share: script, records of requests, open connections.

use std::collections::{HashMap, VecDeque};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::api::Api;
use super::gates::Gates;
use super::http::RawRequest;
use super::record::{Outcome, Recorded, Request};
use super::script::{Picked, Script};
use crate::limits::{MAX_CONNECTIONS, MAX_RECORDED};

/// Settings of a server.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Port on the loopback interface; 0 for any free one.
    pub port: u16,
    /// Pause after each event of a stream, unless the reply has its own.
    pub chunk_delay: Duration,
    /// Requests kept for [`ScriptedServer::requests`](super::server::ScriptedServer::requests); older ones are forgotten.
    pub recorded: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            port: 0,
            chunk_delay: Duration::ZERO,
            recorded: MAX_RECORDED,
        }
    }
}

/// What all threads of a server share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) gates: Gates,
    pub(super) stopping: AtomicBool,
    started: Instant,
    pub(super) script: Mutex<Script>,
    pub(super) log: Mutex<Log>,
    pub(super) logged: Condvar,
    pub(super) open: Mutex<HashMap<u64, Arc<TcpStream>>>,
    pub(super) closed: Condvar,
}

/// What happened so far.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) kept: VecDeque<Recorded>,
    pub(super) total: u64,
    pub(super) ended: u64,
    pub(super) connections: u64,
}

impl Shared {
    /// The state of a server that has not accepted a connection yet.
    pub(super) fn new(options: Options) -> Self {
        Self {
            options,
            gates: Gates::default(),
            stopping: AtomicBool::new(false),
            started: Instant::now(),
            script: Mutex::default(),
            log: Mutex::default(),
            logged: Condvar::new(),
            open: Mutex::default(),
            closed: Condvar::new(),
        }
    }

    /// True once the server is being dropped.
    pub(crate) fn stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Takes a connection off the list of open ones.
    pub(crate) fn forget(&self, id: u64) {
        lock(&self.open).remove(&id);
        self.closed.notify_all();
    }

    /// Adds a connection to the list of open ones; none when there are too many.
    pub(super) fn admit(&self, stream: &Arc<TcpStream>) -> Option<u64> {
        let mut open = lock(&self.open);
        if open.len() >= MAX_CONNECTIONS {
            return None;
        }
        let mut log = lock(&self.log);
        let id = log.connections;
        log.connections += 1;
        open.insert(id, Arc::clone(stream));
        Some(id)
    }

    fn pick(&self, request: &Request) -> Picked {
        if request.api.is_none() {
            return Picked::Nothing;
        }
        lock(&self.script).pick(request)
    }

    /// Records a request and chooses its reply. Both happen under the lock of the log: a test that has seen the request may
    /// add a reply or start another request, and neither changes what this request gets.
    pub(crate) fn receive(&self, raw: RawRequest, connection: u64) -> (Arc<Request>, Picked) {
        // Before the body is parsed: a long one takes longer than a client's whole turn.
        let at = self.started.elapsed();
        let body = match serde_json::from_slice(&raw.body) {
            Ok(value) => value,
            Err(_) if raw.body.is_empty() => Value::Null,
            Err(_) => json!({"$unparsed": String::from_utf8_lossy(&raw.body)}),
        };
        let retries = raw.headers.iter().find(|(n, _)| n == "x-stainless-retry-count");
        let mut log = lock(&self.log);
        let request = Arc::new(Request {
            n: log.total,
            api: if raw.method == "POST" {
                Api::of_path(&raw.path)
            } else {
                None
            },
            model: model_of(&body, &raw.path),
            sdk_retry: retries.and_then(|(_, v)| v.parse().ok()).unwrap_or(0),
            at,
            body_bytes: raw.body.len(),
            body,
            method: raw.method,
            path: raw.path,
            headers: raw.headers,
            connection,
        });
        let picked = self.pick(&request);
        log.total += 1;
        let entry = Recorded {
            request: Arc::clone(&request),
            outcome: Outcome::Pending,
            sent: 0,
            ended: None,
        };
        log.kept.push_back(entry);
        if log.kept.len() > self.options.recorded {
            log.kept.pop_front();
        }
        self.logged.notify_all();
        (request, picked)
    }

    /// Notes how the answer to request `n` ended.
    pub(crate) fn ended(&self, n: u64, outcome: Outcome, sent: u64) {
        let mut log = lock(&self.log);
        log.ended += 1;
        if let Some(entry) = log.kept.iter_mut().rev().find(|r| r.request.n == n) {
            entry.outcome = outcome;
            entry.sent = sent;
            entry.ended = Some(self.started.elapsed());
        }
        self.logged.notify_all();
    }
}

fn model_of(body: &Value, path: &str) -> String {
    let named = body.get("model").and_then(Value::as_str);
    let from_path = path
        .split_once("/models/")
        .or_else(|| path.split_once("/model/"))
        .and_then(|(_, rest)| rest.split([':', '/']).next());
    named.or(from_path).unwrap_or("mock").to_owned()
}

/// Locks a table; a thread that panicked leaves it usable.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
