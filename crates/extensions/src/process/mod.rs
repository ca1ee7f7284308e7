//! One child process and its connection. Requests get ids, answers are routed to their caller, and a child that is silent
//! for too long during a request is ended. `reader` reads the bytes, `writer` writes them.

mod child;
mod message;
mod pending;
mod pending_answer;
mod reader;
mod routes;
mod updates;
mod watchdog;
mod writer;

use std::sync::Arc;

use ::process::{ChildProcess, Pipes};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::error::ProcessError;
use crate::limits;
use crate::line::{Era, PROTOCOL, Source, ToChild};
use crate::runtime;

pub use self::child::Greeting;
pub use self::message::{Answer, ProcessMessage};
use self::pending::Pending;
pub use self::pending_answer::PendingAnswer;
use self::routes::Routes;
pub use self::updates::Updates;
use self::watchdog::Watchdog;
use self::writer::LineWriter;

/// A child process. Clones share it; it is ended when the last one is dropped.
#[derive(Debug, Clone)]
pub struct ExtensionProcess {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    lines: LineWriter,
    pending: Arc<Pending>,
    routes: Arc<Routes>,
    /// Why it is gone, once it is.
    gone: watch::Receiver<Option<String>>,
    /// Ends the child when the last clone is dropped.
    end: CancellationToken,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

impl ExtensionProcess {
    /// Greets a child that was just started and waits until it is ready. What it says without being asked and about no session
    /// comes out of the receiver. Needs a tokio runtime.
    ///
    /// # Errors
    /// When it is not ready within [`limits::READY_WAIT`]; it is ended then.
    pub async fn open(
        child: impl ChildProcess + 'static,
        pipes: Pipes,
        greeting: Greeting<'_>,
    ) -> Result<(Self, mpsc::Receiver<ProcessMessage>), ProcessError> {
        let end = CancellationToken::new();
        let pending = Arc::new(Pending::default());
        let (rest, receiver) = mpsc::channel(limits::SAID);
        let routes = Arc::new(Routes::new(rest));
        let (tell, gone) = watch::channel(None);
        let (ready, is_ready) = oneshot::channel();
        let lines = LineWriter::start(pipes.input, end.clone());
        reader::start(
            pipes.output,
            pipes.errors,
            Arc::clone(&pending),
            Arc::clone(&routes),
            ready,
            end.clone(),
        );
        let watch = Watchdog {
            pending: Arc::clone(&pending),
            lines: lines.clone(),
            routes: Arc::clone(&routes),
            memory: greeting.memory,
            silence: greeting.silence,
            end: end.clone(),
        };
        watch.start(child, tell);
        let process = Self {
            inner: Arc::new(Inner {
                lines,
                pending,
                routes,
                gone,
                end,
            }),
        };
        process.send(&ToChild::Hello {
            protocol: PROTOCOL,
            agent: "pinion",
            version: greeting.version,
            agent_dir: greeting.agent_dir,
            program: greeting.program,
        });
        match tokio::time::timeout(limits::READY_WAIT, is_ready).await {
            Ok(Ok((PROTOCOL, runtime))) => match runtime::is_too_old(&runtime) {
                Some(why) => Err(ProcessError::NotReady(why)),
                None => Ok((process, receiver)),
            },
            Ok(Ok((other, _))) => Err(ProcessError::NotReady(format!(
                "it speaks version {other} of the protocol, not {PROTOCOL}"
            ))),
            Ok(Err(_)) => Err(ProcessError::NotReady(process.reason().await)),
            Err(_) => Err(ProcessError::NotReady(format!(
                "nothing came from it within {} s",
                limits::READY_WAIT.as_secs()
            ))),
        }
    }

    /// Returns the channel for lines of the child about a session. A line before an answer is in the channel before the
    /// answer arrives: a caller that drains the channel after an answer sees both in the child's order.
    #[must_use]
    pub fn attach(&self, session: &str) -> mpsc::Receiver<ProcessMessage> {
        self.inner.routes.attach(session)
    }

    /// Loads extensions for a session; to be attached before.
    ///
    /// # Errors
    /// When a value cannot be written as JSON.
    pub fn open_session(
        &self,
        session: &str,
        extensions: &[Source],
        flags: &serde_json::Map<String, Value>,
        state: &impl Serialize,
        era: Era,
    ) -> Result<PendingAnswer, ProcessError> {
        let state = raw(state)?;
        Ok(self.ask(None, |id| ToChild::Open {
            id,
            session,
            extensions,
            flags,
            state: &state,
            era,
        }))
    }

    /// Forgets a session; resolves when the child has.
    #[must_use]
    pub fn close_session(&self, session: &str, reason: &str) -> PendingAnswer {
        // Detached first: the session reads no lines any more, and its full channel would block the answer to
        // `Close`.
        self.inner.routes.detach(session);
        self.ask(None, |id| ToChild::Close { id, session, reason })
    }

    /// Tells that the run of a session was aborted.
    pub fn abort(&self, session: &str) {
        self.send(&ToChild::Abort { session });
    }

    /// Tells what changed of a session.
    pub fn state(&self, session: &str, state: &Map<String, Value>) {
        self.send(&ToChild::State { session, state });
    }

    /// Tells entries that no file has; the first time with the session's header.
    ///
    /// # Errors
    /// When they cannot be written as JSON.
    pub fn entries(
        &self,
        session: &str,
        from: usize,
        entries: &impl Serialize,
        header: Option<&impl Serialize>,
    ) -> Result<(), ProcessError> {
        let (entries, header) = (raw(entries)?, header.map(raw).transpose()?);
        self.send(&ToChild::Entries {
            session,
            from,
            entries: &entries,
            header: header.as_deref(),
        });
        Ok(())
    }

    /// Tells of something that happened, without waiting for anything.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn tell(&self, session: &str, name: &str, event: &impl Serialize) -> Result<(), ProcessError> {
        let event = raw(event)?;
        self.send(&ToChild::Event {
            session,
            id: None,
            name,
            event: &event,
        });
        Ok(())
    }

    /// Tells of something that happens, and waits for what the handlers make of it.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn event(
        &self,
        session: &str,
        name: &str,
        event: &impl Serialize,
    ) -> Result<PendingAnswer, ProcessError> {
        let event = raw(event)?;
        Ok(self.ask(None, |id| ToChild::Event {
            session,
            id: Some(id),
            name,
            event: &event,
        }))
    }

    /// Has something done. News of it goes to `updates`.
    ///
    /// # Errors
    /// When the parameters cannot be written as JSON.
    pub fn call(
        &self,
        session: &str,
        method: &str,
        params: &impl Serialize,
        updates: Option<mpsc::Sender<Value>>,
    ) -> Result<PendingAnswer, ProcessError> {
        let params = raw(params)?;
        Ok(self.ask(updates, |id| ToChild::Call {
            session,
            id,
            method,
            params: &params,
        }))
    }

    /// Has something done whose news all count, in their order. They end before the answer comes.
    ///
    /// # Errors
    /// When the parameters cannot be written as JSON.
    pub fn stream(
        &self,
        session: &str,
        method: &str,
        params: &impl Serialize,
    ) -> Result<(PendingAnswer, Updates), ProcessError> {
        let params = raw(params)?;
        let (id, answer, updates) = self.inner.pending.enter_stream();
        let call = ToChild::Call {
            session,
            id,
            method,
            params: &params,
        };
        self.send_request(id, &call);
        Ok((PendingAnswer::one(id, answer, self.clone()), updates))
    }

    /// Tells how far a call of the child has come, once the child has room for it.
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    pub async fn update(&self, id: u64, value: &impl Serialize) -> Result<(), ProcessError> {
        let value = raw(value)?;
        self.inner.lines.room().await;
        self.send(&ToChild::Update { id, value: &value });
        Ok(())
    }

    /// Answers a call of the child. An answer that does not fit into a line becomes a refusal, so that the call ends.
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    pub fn answer(&self, id: u64, value: &impl Serialize) -> Result<(), ProcessError> {
        let value = raw(value)?;
        if let Err(error) = self.inner.lines.send(&ToChild::Result { id, value: &value }) {
            self.refuse(id, &error.to_string());
        }
        Ok(())
    }

    /// Sends an update without waiting; later updates replace unsent ones.
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    pub fn update_now(&self, id: u64, value: &impl Serialize) -> Result<(), ProcessError> {
        let value = raw(value)?;
        self.send(&ToChild::Update { id, value: &value });
        Ok(())
    }

    /// Refuses a call of the child.
    pub fn refuse(&self, id: u64, message: &str) {
        self.send(&ToChild::Error { id, message });
    }

    /// Returns true after the child's end.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.inner.gone.borrow().is_some()
    }

    /// The extensions that the child was busy with when it went; empty while it lives.
    #[must_use]
    pub fn suspects(&self) -> Vec<String> {
        self.inner.pending.suspects()
    }

    /// Waits until it is gone, and says why.
    async fn reason(&self) -> String {
        let mut gone = self.inner.gone.clone();
        match gone.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            Err(_) => "it was ended".to_owned(),
        }
    }

    /// Sends a line that is not answered. The log says when it cannot be sent.
    fn send(&self, line: &ToChild<'_>) {
        if let Err(error) = self.inner.lines.send(line) {
            self.inner.routes.warn(error.to_string());
        }
    }

    /// Sends a request. If it cannot be sent, it fails at once: no answer would come.
    fn send_request(&self, id: u64, line: &ToChild<'_>) {
        if let Err(error) = self.inner.lines.send(line) {
            self.inner.pending.settle(id, Err(error));
        }
    }

    fn ask<'a>(
        &self,
        updates: Option<mpsc::Sender<Value>>,
        line: impl FnOnce(u64) -> ToChild<'a>,
    ) -> PendingAnswer {
        let (id, answer) = self.inner.pending.enter(updates);
        self.send_request(id, &line(id));
        PendingAnswer::one(id, answer, self.clone())
    }
}

fn raw(value: &impl Serialize) -> Result<Box<RawValue>, ProcessError> {
    to_raw_value(value).map_err(|error| ProcessError::Odd(error.to_string()))
}
