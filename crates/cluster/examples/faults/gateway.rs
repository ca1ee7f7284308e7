//! Gateways that many clients share, and the connection of one client to its session through one of them.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::place::{Place, is};

/// One process with the clients of many sessions.
pub(crate) struct Gateway {
    pub(crate) child: Mutex<Child>,
    input: Mutex<ChildStdin>,
    routes: Arc<Mutex<HashMap<String, Sender<Value>>>>,
    ids: AtomicU64,
}

impl Gateway {
    pub(crate) fn start(place: &Place) -> Result<Self> {
        let mut child = Command::new(&place.cluster)
            .args(["attach", "--each", &place.address("", "client=rig")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let output = child.stdout.take().context("no stdout")?;
        let input = child.stdin.take().context("no stdin")?;
        let routes: Arc<Mutex<HashMap<String, Sender<Value>>>> = Arc::default();
        let readers = Arc::clone(&routes);
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let Ok(Value::Object(mut line)) = serde_json::from_str(&line) else {
                    continue;
                };
                let session = line.shift_remove("session").unwrap_or_default();
                let routes = lock(&readers);
                if let Some(route) = routes.get(session.as_str().unwrap_or_default()) {
                    // Fails when the client has gone to another gateway.
                    drop(route.send(Value::Object(line)));
                }
            }
            lock(&readers).clear();
        });
        Ok(Self {
            child: Mutex::new(child),
            input: Mutex::new(input),
            routes,
            ids: AtomicU64::new(0),
        })
    }

    fn send(&self, session: &str, command: &Value) -> Result<()> {
        let mut command = command.clone();
        if let Some(command) = command.as_object_mut() {
            command.insert("session".to_owned(), session.into());
        }
        writeln!(lock(&self.input), "{command}")?;
        Ok(())
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let mut child = lock(&self.child);
        drop(child.kill());
        drop(child.wait());
    }
}

/// A client of one session.
pub(crate) struct Link {
    gateway: Arc<Gateway>,
    session: String,
    pub(crate) lines: Receiver<Value>,
    /// Lines that were not taken yet.
    pub(crate) seen: Vec<Value>,
}

impl Link {
    pub(crate) fn new(gateway: Arc<Gateway>, session: &str) -> Self {
        let (sender, lines) = channel();
        lock(&gateway.routes).insert(session.to_owned(), sender);
        Self {
            gateway,
            session: session.to_owned(),
            lines,
            seen: Vec::new(),
        }
    }

    /// Waits for the next line that fits.
    pub(crate) fn find(&mut self, wait: Duration, fits: impl Fn(&Value) -> bool) -> Result<Value> {
        let begin = Instant::now();
        loop {
            let line = self.lines.recv_timeout(wait.saturating_sub(begin.elapsed()))?;
            self.seen.push(line.clone());
            if is(&line, "type", "detached") {
                bail!("{line}");
            }
            if fits(&line) {
                return Ok(line);
            }
        }
    }

    /// Sends a command and waits for its response for as long as the gateway itself answers.
    pub(crate) fn ask(&mut self, wait: Duration, command: &Value) -> Result<Value> {
        self.gateway.send(&self.session, command)?;
        let id = command.get("id").cloned();
        let is_response = |line: &Value| is(line, "type", "response") && line.get("id") == id.as_ref();
        loop {
            match self.find(wait, is_response) {
                Ok(response) => return Ok(response),
                Err(error) if error.is::<RecvTimeoutError>() => {}
                Err(error) => return Err(error),
            }
            self.set(wait, json!({"type": "hello"}))?;
            if let Some(response) = self.seen.iter().find(|line| is_response(line)) {
                return Ok(response.clone());
            }
        }
    }

    /// Sends a command that concerns the connection, under an id of its own.
    pub(crate) fn set(&mut self, wait: Duration, mut command: Value) -> Result<Value> {
        let id = self.gateway.ids.fetch_add(1, Ordering::Relaxed);
        let id = format!("{} {id}", self.session);
        if let Some(command) = command.as_object_mut() {
            command.insert("id".to_owned(), json!(id));
        }
        self.gateway.send(&self.session, &command)?;
        let id = command.get("id");
        self.find(wait, |line| is(line, "type", "response") && line.get("id") == id)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Fails when the gateway is gone.
        drop(self.gateway.send(&self.session, &json!({"type": "detach"})));
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
