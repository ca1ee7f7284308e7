//! Sessions on workers in place of sessions of this process. Commands of the connection become JSON lines that name their session, and
//! the lines of the sessions become events and responses.
//!
//! Two tasks share the state: one sends commands, one takes lines. The second never waits for the first, so a gateway that does not read
//! cannot stop the lines that it waits to get rid of.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};
use serve::queues::SessionQueues;
use session::{ClientId, Lane, Origin, Outgoing, SessionRequest};
use tokio::sync::mpsc::{self, Receiver, Sender, WeakSender};
use uuid::Uuid;
use wire::command::OpenSessionParams;
use wire::hosted::Frame;
use wire::reply::OpenedSession;
use wire::ui::{UiMethod, UiRequest};
use wire::{Event, ManagerCommand, Reply, Response, SessionCommand};

use crate::lines;
use crate::purpose::Command;

/// The lines to and from a gateway that serves many sessions.
pub struct Link {
    /// Lines for the sessions, each with the member `session`.
    pub commands: Sender<String>,
    /// Lines of the sessions, each with the member `session`.
    pub lines: Receiver<String>,
    /// Returns true if a text can be the id of a session.
    pub is_session: fn(&str) -> bool,
}

/// A command without a response.
struct Pending {
    session: Arc<str>,
    step: Step,
}

/// What the response to a command is for.
enum Step {
    /// The connection gets it as this reply.
    Answer(Origin, lines::Reader),
    /// The session is stored and can be attached.
    Stored(Origin),
    /// The gateway is attached to the session, whose working directory this is.
    Attached(Origin, String),
    /// Nothing follows.
    Other,
}

impl Step {
    fn is_prompt(&self) -> bool {
        matches!(self, Self::Answer(origin, _) if origin.command == "prompt")
    }
}

/// A session whose lines the connection gets.
struct Attached {
    queue: Sender<Outgoing>,
    /// A run is active, or is about to begin for an accepted prompt.
    is_running: bool,
    /// Open dialogs, with the tool calls that they are about.
    dialogs: HashMap<String, Option<String>>,
}

#[derive(Default)]
struct State {
    last: u64,
    pending: HashMap<u64, Pending>,
    attached: HashMap<Arc<str>, Attached>,
}

/// The part that both tasks share.
struct Workers {
    /// The responses to commands of no attached session.
    first: Sender<Outgoing>,
    joining: Sender<Lane>,
    state: Mutex<State>,
    is_session: fn(&str) -> bool,
}

/// Starts the tasks. Returns what the sessions say. It ends with the lines; the tasks end with it and with `waiting`.
pub(crate) fn start(link: Link, waiting: Receiver<Command>) -> SessionQueues {
    let (first, outgoing) = mpsc::channel(session::limits::OUTBOX);
    let (joining, lanes) = mpsc::channel(session::limits::JOINING);
    let workers = Arc::new(Workers {
        first,
        joining,
        state: Mutex::default(),
        is_session: link.is_session,
    });
    let weak = link.commands.downgrade();
    let commands = Arc::clone(&workers).commands(link.commands, waiting);
    let lines = workers.lines(weak, link.lines);
    tokio::spawn(async move {
        // The lines end after the commands, or without them if the gateway fails.
        let commands = tokio::spawn(commands);
        lines.await;
        commands.abort();
    });
    SessionQueues::new(outgoing, Some(lanes))
}

impl Workers {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the line of a command, and notes what its response is for.
    fn line(&self, session: &Arc<str>, kind: &str, mut params: Map<String, Value>, step: Step) -> String {
        let mut state = self.state();
        state.last += 1;
        let number = state.last;
        let session = Arc::clone(session);
        params.insert("session".to_owned(), json!(&*session));
        params.insert("type".to_owned(), json!(kind));
        params.insert("id".to_owned(), json!(number));
        state.pending.insert(number, Pending { session, step });
        Value::Object(params).to_string()
    }

    async fn commands(self: Arc<Self>, sender: Sender<String>, mut waiting: Receiver<Command>) {
        while let Some((request, handle)) = waiting.recv().await {
            let lines = match request {
                SessionRequest::Manager(origin, ManagerCommand::OpenSession(params)) => {
                    self.open(origin, params).await
                }
                SessionRequest::Command(origin, command) => self.command(origin, &command, handle).await,
                SessionRequest::Frame(Frame::UiResponse(answer)) => {
                    let dialog = handle.and_then(|session| {
                        let mut state = self.state();
                        drop(state.attached.get_mut(&*session)?.dialogs.remove(&answer.id));
                        Some(lines::dialog_answer(&session, &answer))
                    });
                    dialog.into_iter().collect()
                }
                SessionRequest::Manager(origin, _) | SessionRequest::Connection(origin, _) => {
                    self.refuse(&origin).await;
                    Vec::new()
                }
                _ => Vec::new(),
            };
            for line in lines {
                if sender.send(line).await.is_err() {
                    return;
                }
            }
        }
    }

    /// Begins to open a session: a new one is stored with its directory first, another one must be stored.
    async fn open(&self, origin: Origin, params: OpenSessionParams) -> Vec<String> {
        if params.fork_path.is_some() {
            self.refuse(&origin).await;
            return Vec::new();
        }
        let (session, cwd) = match params.session_path {
            Some(session) if (self.is_session)(&session) => (session, None),
            Some(session) => {
                self.respond(
                    None,
                    &origin,
                    Err(format!("There is no stored session {session:?}")),
                )
                .await;
                return Vec::new();
            }
            None => (Uuid::new_v4().to_string(), params.cwd),
        };
        let params = cwd.map(|cwd| ("cwd".to_owned(), json!(cwd)));
        let line = self.line(
            &session.into(),
            "open",
            params.into_iter().collect(),
            Step::Stored(origin),
        );
        vec![line]
    }

    async fn command(
        &self,
        origin: Origin,
        command: &SessionCommand,
        handle: Option<Box<str>>,
    ) -> Vec<String> {
        let Some(session) = handle.map(Arc::<str>::from) else {
            self.refuse(&origin).await;
            return Vec::new();
        };
        if let SessionCommand::CloseSession(_) = command {
            return self.close(&origin, &session).await;
        }
        let Some((params, reader)) = lines::command(command) else {
            self.refuse(&origin).await;
            return Vec::new();
        };
        let mut lines = Vec::new();
        // The gateway has lost the session: this attaches it again.
        if !self.state().attached.contains_key(&session) {
            self.attach(&session).await;
            lines.push(self.line(&session, "hello", hello(), Step::Other));
        }
        lines.push(self.line(&session, command.name(), params, Step::Answer(origin, reader)));
        lines
    }

    /// Leaves a session, which stays at its worker. The protocol wants its run to end.
    async fn close(&self, origin: &Origin, session: &Arc<str>) -> Vec<String> {
        let (attached, has_prompt) = {
            let mut state = self.state();
            let mut pending = state.pending.values();
            let has_prompt = pending.any(|pending| pending.session == *session && pending.step.is_prompt());
            (state.attached.remove(session), has_prompt)
        };
        // The gateway passes on no response after `detach` if the worker takes long.
        self.fail(session, "The session was closed").await;
        let mut lines = Vec::new();
        // A prompt without a response is about to begin a run.
        if has_prompt || attached.as_ref().is_some_and(|attached| attached.is_running) {
            lines.push(self.line(session, "abort", Map::new(), Step::Other));
        }
        lines.push(json!({"session": &**session, "type": "detach"}).to_string());
        let queue = attached.map(|attached| attached.queue);
        self.respond(queue.as_ref(), origin, Ok(Reply::Nothing)).await;
        lines
    }

    /// Lets the connection get the lines of a session.
    async fn attach(&self, session: &Arc<str>) -> Sender<Outgoing> {
        let (queue, lane) = mpsc::channel(session::limits::OUTBOX);
        let attached = Attached {
            queue: queue.clone(),
            is_running: false,
            dialogs: HashMap::new(),
        };
        self.state().attached.insert(Arc::clone(session), attached);
        let lane = Lane {
            session: Arc::clone(session),
            queue: lane,
        };
        // Fails when the connection has ended.
        drop(self.joining.send(lane).await);
        queue
    }

    async fn refuse(&self, origin: &Origin) {
        let error = format!("{} is not available through a gateway", origin.command);
        self.respond(None, origin, Err(error)).await;
    }

    async fn respond(
        &self,
        queue: Option<&Sender<Outgoing>>,
        origin: &Origin,
        outcome: Result<Reply, String>,
    ) {
        let response = Response {
            id: origin.id.clone(),
            command: Some(origin.command.into()),
            outcome,
        };
        let item = Outgoing::Response(ClientId::default(), response);
        // Fails when the connection has ended.
        drop(queue.unwrap_or(&self.first).send(item).await);
    }

    async fn lines(self: Arc<Self>, commands: WeakSender<String>, mut lines: Receiver<String>) {
        while let Some(line) = lines.recv().await {
            let Ok(Value::Object(mut line)) = serde_json::from_str(&line) else {
                continue;
            };
            let Some(Value::String(session)) = line.shift_remove("session") else {
                continue;
            };
            let session = Arc::<str>::from(session);
            match line.get("type").and_then(Value::as_str) {
                Some("response") => {
                    let Some(next) = self.response(&session, line).await else {
                        continue;
                    };
                    // Never waits: the lines would wait with it.
                    let is_sent = commands
                        .upgrade()
                        .is_some_and(|sender| sender.try_send(next).is_ok());
                    if !is_sent {
                        self.lose(&session, "The gateway takes no commands").await;
                    }
                }
                Some("detached") => {
                    let error = line.get("error").and_then(Value::as_str);
                    self.lose(&session, error.unwrap_or("The session cannot be reached"))
                        .await;
                }
                _ => self.event(&session, line).await,
            }
        }
    }

    /// Takes a response. Returns the command that follows from it.
    async fn response(&self, session: &Arc<str>, mut line: Map<String, Value>) -> Option<String> {
        let number = line.get("id").and_then(Value::as_u64)?;
        let is_success = line.get("success") == Some(&Value::Bool(true));
        let disposition = line.get("data").and_then(|data| data.get("disposition"));
        let is_handled = disposition.and_then(Value::as_str) == Some("handled");
        let step = {
            let mut state = self.state();
            let step = state.pending.remove(&number)?.step;
            // Under the same lock: a session that is closed before `agent_start` has a run to abort, too.
            if step.is_prompt()
                && is_success
                && !is_handled
                && let Some(attached) = state.attached.get_mut(session)
            {
                attached.is_running = true;
            }
            step
        };
        let data = line.shift_remove("data").unwrap_or_default();
        let error = (!is_success).then(|| match line.get("error").and_then(Value::as_str) {
            Some(error) => error.to_owned(),
            None => "The worker refused the command".to_owned(),
        });
        match (step, error) {
            (Step::Other, _) => {}
            (Step::Stored(origin) | Step::Attached(origin, _), Some(error)) => {
                self.respond(None, &origin, Err(error)).await;
            }
            (Step::Stored(origin), None) => {
                let cwd = data.get("cwd").and_then(Value::as_str).unwrap_or_default();
                let next = Step::Attached(origin, cwd.to_owned());
                return Some(self.line(session, "hello", hello(), next));
            }
            (Step::Attached(origin, cwd), None) => {
                let opened = OpenedSession {
                    session: (**session).to_owned(),
                    session_id: (**session).to_owned(),
                    session_file: None,
                    cwd: Path::new(&cwd).to_string_lossy().into_owned(),
                };
                // First in the queue of the session, so that the connection knows the session before its events.
                let queue = self.attach(session).await;
                let reply = Reply::OpenedSession(Box::new(opened));
                self.respond(Some(&queue), &origin, Ok(reply)).await;
            }
            (Step::Answer(origin, reader), error) => {
                let outcome = match error {
                    Some(error) => Err(error),
                    None => reader(data).ok_or_else(|| {
                        format!("The worker answered {} in an unknown format", origin.command)
                    }),
                };
                let queue = self.queue(session);
                self.respond(queue.as_ref(), &origin, outcome).await;
            }
        }
        None
    }

    fn queue(&self, session: &Arc<str>) -> Option<Sender<Outgoing>> {
        Some(self.state().attached.get(session)?.queue.clone())
    }

    /// The session is not attached any more: its commands fail.
    async fn lose(&self, session: &Arc<str>, reason: &str) {
        self.state().attached.remove(session);
        self.fail(session, reason).await;
    }

    /// Answers the commands of a session that wait for a response.
    async fn fail(&self, session: &Arc<str>, reason: &str) {
        let failed: Vec<Pending> = {
            let mut state = self.state();
            let failed = state.pending.extract_if(|_, pending| pending.session == *session);
            failed.map(|(_, pending)| pending).collect()
        };
        for pending in failed {
            match pending.step {
                Step::Answer(origin, _) | Step::Stored(origin) | Step::Attached(origin, _) => {
                    self.respond(None, &origin, Err(reason.to_owned())).await;
                }
                Step::Other => {}
            }
        }
    }

    /// Gives an event to the connection. Events before the session is attached are in its history.
    async fn event(&self, session: &Arc<str>, line: Map<String, Value>) {
        let Some(event) = lines::event(line) else {
            return;
        };
        let (queue, over) = {
            let mut state = self.state();
            let Some(attached) = state.attached.get_mut(session) else {
                return;
            };
            (attached.queue.clone(), attached.note(&event))
        };
        for event in over.into_iter().chain([event]) {
            // Fails when the connection has ended.
            drop(queue.send(Outgoing::Event(Arc::new(event))).await);
        }
    }
}

impl Attached {
    /// Follows an event. Returns the cancellations of dialogs that another client has answered: the session does not report them.
    fn note(&mut self, event: &Event) -> Vec<Event> {
        let is_over = |call: Option<&str>| match event {
            Event::AgentSettled { .. } => true,
            Event::ToolExecutionEnd { tool_call_id, .. } => call == Some(tool_call_id),
            _ => false,
        };
        let over = self.dialogs.extract_if(|_, call| is_over(call.as_deref()));
        let over = over.map(|(dialog, _)| cancel(dialog)).collect();
        match event {
            Event::AgentStart => self.is_running = true,
            // A change of the session aborts the run, or drops the prompt whose run has not begun.
            Event::AgentSettled { .. } | Event::SessionChanged { .. } => self.is_running = false,
            Event::ExtensionUiRequest { request } => match (&request.target_id, request.method) {
                (Some(target), UiMethod::Cancel) => drop(self.dialogs.remove(target)),
                (_, UiMethod::Select | UiMethod::Confirm | UiMethod::Input | UiMethod::Editor) => {
                    self.dialogs
                        .insert(request.id.clone(), request.tool_call_id.clone());
                }
                _ => {}
            },
            _ => {}
        }
        over
    }
}

fn cancel(dialog: String) -> Event {
    let mut request = UiRequest::new(Uuid::new_v4().to_string(), UiMethod::Cancel);
    request.target_id = Some(dialog);
    Event::ExtensionUiRequest {
        request: Box::new(request),
    }
}

fn hello() -> Map<String, Value> {
    Map::from_iter([("deltas".to_owned(), json!(true))])
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::{Map, Value, json};
    use session::{ClientId, Origin, Outgoing};
    use tokio::sync::mpsc;
    use wire::Reply;

    use super::{Step, Workers};

    fn origin(command: &'static str) -> Origin {
        Origin {
            client: ClientId::default(),
            id: None,
            command,
        }
    }

    #[tokio::test]
    async fn close_ends_prompt_without_run() {
        let (first, mut responses) = mpsc::channel(8);
        let (joining, _lanes) = mpsc::channel(8);
        let workers = Workers {
            first,
            joining,
            state: Mutex::default(),
            is_session: |_| true,
        };
        let [idle, busy, accepted, handled] = ["idle", "busy", "accepted", "handled"].map(Arc::<str>::from);
        for session in [&idle, &busy, &accepted, &handled] {
            workers.attach(session).await;
        }
        let prompt = |session: &Arc<str>| {
            let step = Step::Answer(origin("prompt"), |_| Some(Reply::Nothing));
            let line = workers.line(session, "prompt", Map::new(), step);
            serde_json::from_str::<Value>(&line).unwrap()["id"].clone()
        };
        prompt(&busy);
        // Answered, and `agent_start` has not come.
        for (session, disposition) in [(&accepted, "started"), (&handled, "handled")] {
            let response =
                json!({"id": prompt(session), "success": true, "data": {"disposition": disposition}});
            let Value::Object(response) = response else {
                unreachable!()
            };
            assert!(workers.response(session, response).await.is_none());
        }
        for (session, expected) in [
            (&idle, vec!["detach"]),
            (&busy, vec!["abort", "detach"]),
            (&accepted, vec!["abort", "detach"]),
            (&handled, vec!["detach"]),
        ] {
            let lines = workers.close(&origin("close_session"), session).await;
            let kinds: Vec<Value> = lines
                .iter()
                .map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].clone())
                .collect();
            assert_eq!(kinds, expected);
        }
        let Some(Outgoing::Response(_, response)) = responses.recv().await else {
            panic!("no response to the prompt");
        };
        assert_eq!(response.command, Some(json!("prompt")));
        assert!(response.outcome.is_err());
    }
}
