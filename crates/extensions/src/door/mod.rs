//! One child process and its connection. Requests get ids, answers are routed to their caller, and a child that is silent
//! for too long during a request is ended. `reading` reads the bytes, `writing` writes them.

mod asking;
mod pending;
mod reading;
mod routes;
mod streaming;
mod watching;
mod writing;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::error::DoorError;
use crate::limits;
use crate::line::{Era, Failure, PROTOCOL, Registered, Source, ToChild};
use crate::runtime;

pub use self::asking::Asking;
use self::pending::Pending;
use self::routes::Routes;
pub use self::streaming::Updates;
use self::watching::Watch;
use self::writing::Lines;

/// The streams of a child.
pub struct Pipes {
    /// Its standard input.
    pub input: Box<dyn AsyncWrite + Send + Unpin>,
    /// Its standard output.
    pub output: Box<dyn AsyncRead + Send + Unpin>,
    /// Its standard error.
    pub errors: Box<dyn AsyncRead + Send + Unpin>,
}

/// The first line to a child.
#[derive(Debug, Clone, Copy)]
pub struct Greeting<'a> {
    /// Version of the agent.
    pub version: &'a str,
    /// Where settings, keys and sessions are.
    pub agent_dir: &'a str,
    /// The agent itself, for extensions that start it again.
    pub program: Option<&'a str>,
    /// Bytes of memory that the child may hold; with more it is ended.
    pub memory: u64,
    /// How long it may say nothing when it is asked whether it lives.
    pub silence: Duration,
}

/// A process that can be waited for and ended.
pub trait Child: Send {
    /// Resolves when it has ended, with a word on how.
    fn ended(&mut self) -> Pin<Box<dyn Future<Output = String> + Send + '_>>;

    /// Bytes of memory that it holds now, where that can be known.
    fn memory(&self) -> Option<u64> {
        None
    }

    /// Ends it with all that it started.
    fn kill(&mut self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// What a child says that was not asked for.
#[derive(Debug)]
#[non_exhaustive]
pub enum Said {
    /// A request of the child. If it has an id, the agent must call [`Door::answer`] or [`Door::refuse`].
    Call {
        /// To answer to.
        id: Option<u64>,
        /// What.
        method: String,
        /// With what.
        params: Value,
    },
    /// It does not wait for the answer to a call of its own any more.
    Withdrawn(u64),
    /// What an extension registered, anew.
    Changed(Box<Registered>),
    /// An error outside any request, such as a rejected promise without a handler.
    Failed(Failure),
    /// A line for the log: its level and text.
    Log(String, String),
    /// A line that was printed, with its end taken off.
    Printed(String),
    /// It is gone, and why. The last thing it says.
    Gone(String),
}

/// What came of an event or a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// The value; null if no listener returned one.
    pub value: Value,
    /// Extensions that failed on the way, although there is an answer.
    pub errors: Vec<Failure>,
}

/// A child process. Clones share it; it is ended when the last one is dropped.
#[derive(Debug, Clone)]
pub struct Door {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    lines: Lines,
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

impl Door {
    /// Greets a child that was just started and waits until it is ready. What it says without being asked and about no session
    /// comes out of the receiver. Needs a tokio runtime.
    ///
    /// # Errors
    /// When it is not ready within [`limits::READY_WAIT`]; it is ended then.
    pub async fn open(
        child: impl Child + 'static,
        pipes: Pipes,
        greeting: Greeting<'_>,
    ) -> Result<(Self, mpsc::Receiver<Said>), DoorError> {
        let end = CancellationToken::new();
        let pending = Arc::new(Pending::default());
        let (rest, receiver) = mpsc::channel(limits::SAID);
        let routes = Arc::new(Routes::new(rest));
        let (tell, gone) = watch::channel(None);
        let (ready, is_ready) = oneshot::channel();
        let lines = Lines::start(pipes.input, end.clone());
        reading::start(
            pipes.output,
            pipes.errors,
            Arc::clone(&pending),
            Arc::clone(&routes),
            ready,
            end.clone(),
        );
        let watch = Watch {
            pending: Arc::clone(&pending),
            lines: lines.clone(),
            routes: Arc::clone(&routes),
            memory: greeting.memory,
            silence: greeting.silence,
            end: end.clone(),
        };
        watch.start(child, tell);
        let door = Self {
            inner: Arc::new(Inner {
                lines,
                pending,
                routes,
                gone,
                end,
            }),
        };
        door.send(&ToChild::Hello {
            protocol: PROTOCOL,
            agent: "pinion",
            version: greeting.version,
            agent_dir: greeting.agent_dir,
            program: greeting.program,
        });
        match tokio::time::timeout(limits::READY_WAIT, is_ready).await {
            Ok(Ok((PROTOCOL, runtime))) => match runtime::is_too_old(&runtime) {
                Some(why) => Err(DoorError::NotReady(why)),
                None => Ok((door, receiver)),
            },
            Ok(Ok((other, _))) => Err(DoorError::NotReady(format!(
                "it speaks version {other} of the protocol, not {PROTOCOL}"
            ))),
            Ok(Err(_)) => Err(DoorError::NotReady(door.reason().await)),
            Err(_) => Err(DoorError::NotReady(format!(
                "nothing came from it within {} s",
                limits::READY_WAIT.as_secs()
            ))),
        }
    }

    /// Returns the channel for lines of the child about a session. A line before an answer is in the channel before the
    /// answer arrives: a caller that drains the channel after an answer sees both in the child's order.
    #[must_use]
    pub fn attach(&self, session: &str) -> mpsc::Receiver<Said> {
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
    ) -> Result<Asking, DoorError> {
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
    pub fn close_session(&self, session: &str, reason: &str) -> Asking {
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
    ) -> Result<(), DoorError> {
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
    pub fn tell(&self, session: &str, name: &str, event: &impl Serialize) -> Result<(), DoorError> {
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
    pub fn event(&self, session: &str, name: &str, event: &impl Serialize) -> Result<Asking, DoorError> {
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
    ) -> Result<Asking, DoorError> {
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
    ) -> Result<(Asking, Updates), DoorError> {
        let params = raw(params)?;
        let (id, answer, updates) = self.inner.pending.enter_stream();
        self.send(&ToChild::Call {
            session,
            id,
            method,
            params: &params,
        });
        Ok((Asking::one(id, answer, self.clone()), updates))
    }

    /// Tells how far a call of the child has come, once the child has room for it.
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    pub async fn update(&self, id: u64, value: &impl Serialize) -> Result<(), DoorError> {
        let value = raw(value)?;
        self.inner.lines.room().await;
        self.send(&ToChild::Update { id, value: &value });
        Ok(())
    }

    /// Answers a call of the child.
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    pub fn answer(&self, id: u64, value: &impl Serialize) -> Result<(), DoorError> {
        let value = raw(value)?;
        self.send(&ToChild::Result { id, value: &value });
        Ok(())
    }

    /// Sends an update without waiting; later updates replace unsent ones.
    ///
    /// # Errors
    /// When the value cannot be written as JSON.
    pub fn update_now(&self, id: u64, value: &impl Serialize) -> Result<(), DoorError> {
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

    fn send(&self, line: &ToChild<'_>) {
        self.inner.lines.send(line);
    }

    fn ask<'a>(&self, updates: Option<mpsc::Sender<Value>>, line: impl FnOnce(u64) -> ToChild<'a>) -> Asking {
        let (id, answer) = self.inner.pending.enter(updates);
        self.send(&line(id));
        Asking::one(id, answer, self.clone())
    }
}

fn raw(value: &impl Serialize) -> Result<Box<RawValue>, DoorError> {
    to_raw_value(value).map_err(|error| DoorError::Odd(error.to_string()))
}
