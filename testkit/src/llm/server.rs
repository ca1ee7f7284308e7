//! The scripted server itself: listening, its threads, what a test can ask it. Each connection is served in `conn`.

use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::Value;

use super::conn;
use super::record::{Recorded, Request};
use super::reply::Reply;
use super::shared::{Log, Options, Shared, lock};
use crate::error::{Error, Result};
use crate::limits::SHUTDOWN_GRACE;

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
