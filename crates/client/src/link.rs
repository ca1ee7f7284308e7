//! The connection that all sessions of an agent share: commands and their answers, listeners, tools of the host. Here: what
//! sessions do with it. What comes in is dealt with in `inbound`.

mod inbound;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::timeout;

pub(crate) use inbound::read;

use crate::dialog::Handler;
use crate::error::{Error, Result};
use crate::event::Event;
use crate::events::Events;
use crate::limits::{DEEPEST, MAX_WAITING, SHALLOW};
use crate::nested;
use crate::options::Times;
use crate::tool::HostTool;

/// Commands that take as long as what they start.
const SLOW: [&str; 6] = ["prompt", "bash", "compact", "navigate_tree", "handoff", "login"];

type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// The connection.
pub(crate) struct Link {
    writer: Arc<AsyncMutex<Option<Writer>>>,
    state: Mutex<State>,
    dialogs: Option<Handler>,
    pub(crate) times: Times,
}

#[derive(Default)]
struct State {
    next_id: u64,
    pending: HashMap<String, Pending>,
    listeners: Vec<Listener>,
    tools: HashMap<Option<String>, Vec<HostTool>>,
    /// Calls of tools and dialogs under way, by their id.
    tasks: HashMap<String, AbortHandle>,
    ended: Option<Error>,
}

struct Pending {
    command: String,
    answer: oneshot::Sender<Result<Box<RawValue>>>,
    /// Begins to listen with the answer, so that nothing is heard of what came before.
    listener: Option<Listener>,
}

/// Where events of a session go.
struct Listener {
    session: Option<String>,
    sender: mpsc::Sender<Event>,
    /// Why nothing more comes.
    end: Arc<Mutex<Option<Error>>>,
}

impl Link {
    pub(crate) fn new(writer: Writer, dialogs: Option<Handler>, times: Times) -> Arc<Self> {
        Arc::new(Self {
            writer: Arc::new(AsyncMutex::new(Some(writer))),
            state: Mutex::default(),
            dialogs,
            times,
        })
    }

    /// Sends a command and waits for its answer.
    pub(crate) async fn call<R: DeserializeOwned>(
        &self,
        session: Option<&str>,
        command: &str,
        params: &impl Serialize,
    ) -> Result<R> {
        let params = serde_json::to_value(params).map_err(|error| Error::Protocol(error.to_string()))?;
        let answer = self.send(session, command, params, None).await?;
        read_answer(command, &answer)
    }

    /// Sends a command and waits for its answer as it is.
    pub(crate) async fn call_raw(
        &self,
        session: Option<&str>,
        command: &str,
        params: &impl Serialize,
    ) -> Result<Box<RawValue>> {
        let params = serde_json::to_value(params).map_err(|error| Error::Protocol(error.to_string()))?;
        self.send(session, command, params, None).await
    }

    /// Sends a command whose response begins a run, and returns the run's events too.
    pub(crate) async fn call_and_listen<R: DeserializeOwned>(
        &self,
        session: Option<&str>,
        command: &str,
        params: &impl Serialize,
    ) -> Result<(R, Events)> {
        let params = serde_json::to_value(params).map_err(|error| Error::Protocol(error.to_string()))?;
        let (listener, events) = self.listener(session);
        let answer = self.send(session, command, params, Some(listener)).await?;
        Ok((read_answer(command, &answer)?, events))
    }

    async fn send(
        &self,
        session: Option<&str>,
        command: &str,
        params: Value,
        listener: Option<Listener>,
    ) -> Result<Box<RawValue>> {
        let (answer, answered) = oneshot::channel();
        let id = {
            let mut state = self.state();
            if let Some(error) = &state.ended {
                return Err(error.clone());
            }
            state.next_id += 1;
            let id = format!("rs{}", state.next_id);
            let command = command.to_owned();
            let pending = Pending {
                command,
                answer,
                listener,
            };
            state.pending.insert(id.clone(), pending);
            id
        };
        let _forgotten = Forget { link: self, id: &id };
        let limit = if SLOW.contains(&command) {
            self.times.slow
        } else {
            self.times.command
        };
        self.write(&line(command, Some(&id), session, params)).await?;
        match timeout(limit, answered).await {
            Err(_) => Err(Error::timed_out(format!("{command}: no answer"), limit)),
            Ok(Err(_)) => Err(self.end_error()),
            Ok(Ok(answer)) => answer,
        }
    }

    /// Writes a line, waiting while the agent does not read.
    pub(crate) async fn write(&self, line: &Map<String, Value>) -> Result<()> {
        let mut bytes = serde_json::to_vec(line).map_err(|error| Error::Protocol(error.to_string()))?;
        bytes.push(b'\n');
        let limit = self.times.command;
        let written = match timeout(limit, Arc::clone(&self.writer).lock_owned()).await {
            // In a task of its own: a caller that is dropped after half a line must not close the agent's stdin.
            Ok(turn) => tokio::spawn(timeout(limit, write_line(turn, bytes))).await,
            Err(late) => Ok(Err(late)),
        };
        match written {
            Ok(Err(_)) => Err(Error::timed_out("the agent did not read its input", limit)),
            Ok(Ok(Some(()))) => Ok(()),
            Ok(Ok(None)) | Err(_) => Err(self.end_error()),
        }
    }

    /// Closes the agent's stdin.
    pub(crate) async fn close_input(&self) {
        let closing = async {
            if let Some(mut writer) = self.writer.lock().await.take() {
                let _gone_already = writer.shutdown().await;
            }
        };
        let _half_written = timeout(self.times.stop, closing).await;
    }

    /// Events of a session from now on.
    pub(crate) fn events(&self, session: Option<&str>) -> Events {
        let (listener, events) = self.listener(session);
        let mut state = self.state();
        if let Some(error) = &state.ended {
            listener.close(error);
        } else {
            state.listeners.push(listener);
        }
        events
    }

    fn listener(&self, session: Option<&str>) -> (Listener, Events) {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        let end = Arc::<Mutex<Option<Error>>>::default();
        let listener = Listener {
            session: session.map(str::to_owned),
            sender,
            end: Arc::clone(&end),
        };
        (listener, Events::new(receiver, end, self.times.idle))
    }

    /// Replaces the tools of a session; returns the earlier ones.
    pub(crate) fn replace_tools(&self, session: Option<&str>, tools: Vec<HostTool>) -> Vec<HostTool> {
        let mut state = self.state();
        state
            .tools
            .insert(session.map(str::to_owned), tools)
            .unwrap_or_default()
    }

    /// Drops the receivers of a session.
    pub(crate) fn forget(&self, session: Option<&str>) {
        let mut state = self.state();
        state.tools.remove(&session.map(str::to_owned));
        state
            .listeners
            .retain(|listener| listener.session.as_deref() != session);
    }

    /// Fails all pending calls after the agent's end.
    pub(crate) fn end(&self, error: &Error) {
        let mut state = self.state();
        if state.ended.is_some() {
            return;
        }
        state.ended = Some(error.clone());
        state.pending.clear();
        for (_, task) in state.tasks.drain() {
            task.abort();
        }
        for listener in state.listeners.drain(..) {
            listener.close(error);
        }
    }

    /// Why nothing works any more.
    fn end_error(&self) -> Error {
        let known = self.state().ended.clone();
        known.unwrap_or(Error::Exited {
            code: None,
            stderr: String::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes a line. None if nothing can be written any more.
async fn write_line(mut turn: OwnedMutexGuard<Option<Writer>>, line: Vec<u8>) -> Option<()> {
    // Taken out while it writes: after half a line nothing else may be written.
    let mut writer = turn.take()?;
    writer.write_all(&line).await.ok()?;
    writer.flush().await.ok()?;
    *turn = Some(writer);
    Some(())
}

impl fmt::Debug for Link {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Link").finish_non_exhaustive()
    }
}

impl Listener {
    fn close(&self, error: &Error) {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        end.get_or_insert_with(|| error.clone());
    }
}

/// Reads an answer as a type. Deep answers are first read without recursion; too deep ones are refused, since dropping
/// their value would overflow the stack.
fn read_answer<R: DeserializeOwned>(command: &str, answer: &RawValue) -> Result<R> {
    let wrong = |what: String| Error::Protocol(format!("answer of {command}: {what}"));
    let text = answer.get();
    match nested::depth(text) {
        0..=SHALLOW => serde_json::from_str(text).map_err(|error| wrong(error.to_string())),
        depth if depth <= DEEPEST => {
            let value = nested::parse(text).map_err(wrong)?;
            serde_json::from_value(value).map_err(|error| wrong(error.to_string()))
        }
        depth => Err(wrong(format!(
            "{depth} containers are inside each other, more than {DEEPEST}; Session::tree and Session::call_raw have no such limit"
        ))),
    }
}

/// Removes a pending command when its caller is dropped.
struct Forget<'a> {
    link: &'a Link,
    id: &'a str,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.link.state().pending.remove(self.id);
    }
}

/// Writes a line with these members, without null members.
pub(crate) fn line(
    kind: &str,
    id: Option<&str>,
    session: Option<&str>,
    members: Value,
) -> Map<String, Value> {
    let mut line = Map::new();
    line.extend(id.map(|id| ("id".to_owned(), Value::from(id))));
    line.insert("type".to_owned(), kind.into());
    line.extend(session.map(|session| ("session".to_owned(), Value::from(session))));
    if let Value::Object(members) = members {
        line.extend(members.into_iter().filter(|(_, value)| !value.is_null()));
    }
    line
}
