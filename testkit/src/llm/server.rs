//! The scripted server itself: listening, its threads, what a test can ask it. Each connection is served in `conn`.

use std::collections::{HashMap, VecDeque};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::api::Api;
use super::conn;
use super::gates::Gates;
use super::http::RawRequest;
use super::record::{Outcome, Recorded, Request};
use super::reply::Reply;
use super::script::{Picked, Script};
use crate::error::{Error, Result};
use crate::limits::{MAX_CONNECTIONS, MAX_RECORDED, SHUTDOWN_GRACE};

/// Settings of a server.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Port on the loopback interface; 0 for any free one.
    pub port: u16,
    /// Pause after each event of a stream, unless the reply has its own.
    pub chunk_delay: Duration,
    /// Requests kept for [`ScriptedServer::requests`]; older ones are forgotten.
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

/// A scripted LLM server on the loopback interface. Dropping it cuts all connections and ends its threads.
///
/// Replies are served in order, each to the first request that fits it; then the rule decides, then the default
/// reply; an unexpected request gets an HTTP 400.
#[derive(Debug)]
pub struct ScriptedServer {
    shared: Arc<Shared>,
    addr: SocketAddr,
    accepting: Option<JoinHandle<()>>,
}

/// What all threads of a server share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) gates: Gates,
    stopping: AtomicBool,
    started: Instant,
    script: Mutex<Script>,
    log: Mutex<Log>,
    logged: Condvar,
    open: Mutex<HashMap<u64, Arc<TcpStream>>>,
    closed: Condvar,
}

#[derive(Debug, Default)]
struct Log {
    kept: VecDeque<Recorded>,
    total: u64,
    ended: u64,
    connections: u64,
}

impl ScriptedServer {
    /// Starts a server that serves `replies`.
    ///
    /// # Errors
    /// If no port can be had.
    pub fn start(replies: impl IntoIterator<Item = Reply>) -> Result<Self> {
        Self::with_options(replies, Options::default())
    }

    /// Starts a server from a script in JSON: a list of replies, or an object with the list under `llm`.
    ///
    /// # Errors
    /// If the script is not understood or no port can be had.
    pub fn from_json(script: &str) -> Result<Self> {
        let mut value: Value = serde_json::from_str(script)?;
        if let Some(list) = value.get_mut("llm") {
            value = list.take();
        }
        Self::start(serde_json::from_value::<Vec<Reply>>(value)?)
    }

    /// Starts a server whose replies are made up by `rule`.
    ///
    /// # Errors
    /// If no port can be had.
    pub fn start_rule(rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Result<Self> {
        let server = Self::start([])?;
        server.set_rule(rule);
        Ok(server)
    }

    /// Starts a server with settings.
    ///
    /// # Errors
    /// If the port cannot be had.
    pub fn with_options(replies: impl IntoIterator<Item = Reply>, options: Options) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port)).map_err(Error::io("bind"))?;
        let addr = listener.local_addr().map_err(Error::io("local address"))?;
        let shared = Arc::new(Shared::new(options));
        for reply in replies {
            lock(&shared.script).push(reply);
        }
        let own = Arc::clone(&shared);
        let accepting = thread::Builder::new()
            .name("scripted-llm".into())
            .spawn(move || accept(&own, &listener))
            .map_err(Error::io("thread"))?;
        Ok(Self {
            shared,
            addr,
            accepting: Some(accepting),
        })
    }

    /// `http://127.0.0.1:PORT`, without a slash at the end. Any path in front of the protocol's own is accepted.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The address it listens at.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Adds a reply to the end of the script.
    pub fn push(&self, reply: Reply) {
        lock(&self.shared.script).push(reply);
    }

    /// Sets the reply for requests for which neither script nor rule has one.
    pub fn set_default(&self, reply: Reply) {
        lock(&self.shared.script).set_default(reply);
    }

    /// Sets the rule that makes up replies once the script has none.
    pub fn set_rule(&self, rule: impl Fn(&Request) -> Reply + Send + Sync + 'static) {
        lock(&self.shared.script).set_rule(Arc::new(rule));
    }

    /// Positions of the unused scripted replies, counted from 0.
    #[must_use]
    pub fn unused(&self) -> Vec<usize> {
        lock(&self.shared.script).unused()
    }

    /// All requests so far (the last ones, see [`Options::recorded`]).
    #[must_use]
    pub fn requests(&self) -> Vec<Recorded> {
        lock(&self.shared.log).kept.iter().cloned().collect()
    }

    /// Number of connections accepted so far.
    #[must_use]
    pub fn connections(&self) -> u64 {
        lock(&self.shared.log).connections
    }

    /// Opens a gate; it stays open.
    pub fn release(&self, gate: &str) {
        self.shared.gates.release(gate);
    }

    /// Closes a gate that was opened or reached, so that its name can be used again.
    pub fn close_gate(&self, gate: &str) {
        self.shared.gates.close(gate);
    }

    /// Waits until a reply stands at `gate` (or has passed it).
    ///
    /// # Errors
    /// [`Error::Timeout`].
    pub fn wait_gate(&self, gate: &str, timeout: Duration) -> Result<()> {
        if self.shared.gates.wait_reached(gate, timeout) {
            return Ok(());
        }
        Err(self.late(format!("reply at gate {gate:?}"), timeout))
    }

    /// Waits until `n` requests have arrived in all, and returns what [`Self::requests`] does.
    ///
    /// # Errors
    /// [`Error::Timeout`].
    pub fn wait_requests(&self, n: u64, timeout: Duration) -> Result<Vec<Recorded>> {
        self.wait_log(timeout, |log| log.total >= n)
            .ok_or_else(|| self.late(format!("{n} requests"), timeout))
    }

    /// Waits until `n` requests have ended, successfully or not.
    ///
    /// # Errors
    /// [`Error::Timeout`].
    pub fn wait_ended(&self, n: u64, timeout: Duration) -> Result<Vec<Recorded>> {
        self.wait_log(timeout, |log| log.ended >= n)
            .ok_or_else(|| self.late(format!("{n} requests answered"), timeout))
    }

    fn wait_log(&self, timeout: Duration, done: impl Fn(&Log) -> bool) -> Option<Vec<Recorded>> {
        let log = lock(&self.shared.log);
        let waited = self
            .shared
            .logged
            .wait_timeout_while(log, timeout, |log| !done(log));
        let (log, _) = waited.unwrap_or_else(PoisonError::into_inner);
        done(&log).then(|| log.kept.iter().cloned().collect())
    }

    fn late(&self, what: String, after: Duration) -> Error {
        let log = lock(&self.shared.log);
        let seen: Vec<String> = log
            .kept
            .iter()
            .map(|r| format!("\n  {} {} -> {}", r.method, r.path, r.outcome))
            .collect();
        let context = format!("; {} requests so far:{}", log.total, seen.concat());
        Error::Timeout { what, after, context }
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        self.shared.gates.wake();
        // The accepting thread only checks for the end when a connection arrives.
        let _ = TcpStream::connect_timeout(&self.addr, SHUTDOWN_GRACE);
        if let Some(thread) = self.accepting.take() {
            let _ = thread.join();
        }
        let open = lock(&self.shared.open);
        for stream in open.values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        let _ = self
            .shared
            .closed
            .wait_timeout_while(open, SHUTDOWN_GRACE, |open| !open.is_empty());
    }
}

fn accept(shared: &Arc<Shared>, listener: &TcpListener) {
    for stream in listener.incoming() {
        if shared.stopping() {
            return;
        }
        let Ok(stream) = stream else { continue };
        let stream = Arc::new(stream);
        let Some(id) = shared.admit(&stream) else { continue };
        let own = Arc::clone(shared);
        let thread = thread::Builder::new()
            .name(format!("scripted-llm-{id}"))
            .spawn(move || {
                let _guard = Forget(&own, id);
                conn::serve(&own, stream, id);
            });
        if thread.is_err() {
            shared.forget(id);
        }
    }
}

/// Takes a connection off the list even if its thread panics (in a test's rule, say).
struct Forget<'a>(&'a Shared, u64);

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.0.forget(self.1);
    }
}

impl Shared {
    fn new(options: Options) -> Self {
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

    fn admit(&self, stream: &Arc<TcpStream>) -> Option<u64> {
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

    /// Chooses the reply.
    pub(crate) fn pick(&self, request: &Request) -> Picked {
        if request.api.is_none() {
            return Picked::Nothing;
        }
        lock(&self.script).pick(request)
    }

    /// Records a request.
    pub(crate) fn receive(&self, raw: RawRequest, connection: u64) -> Arc<Request> {
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
        request
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
