//! The state of the connection: which requests are open, which sessions there are, and what each line and event means.
//! Nothing here waits; `server` moves lines, commands and events.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use session::{ClientId, Origin, Outgoing, SessionRequest};
use wire::command::{NoParams, OpenSessionParams};
use wire::hosted::Frame;
use wire::mcp::McpServersParams;
use wire::reply::Disposition;
use wire::ui::{UiMethod, UiRequest};
use wire::{Event, ManagerCommand, Reply, Response, SessionCommand};

use crate::limits::MAX_OPEN_REQUESTS;
use crate::rpc::{self, Failure, INTERNAL, INVALID_PARAMS, INVALID_REQUEST, Message, NOT_FOUND};
use crate::state::{SessionState, Turn};
use crate::{mcp_servers, permission, prompt, updates};

/// A command or frame for a session, and the session's handle.
pub(crate) type Command = (SessionRequest, Option<Box<str>>);

/// What a command on its way is for.
#[derive(Debug)]
enum Purpose {
    /// `session/new`, with the id of the request and the MCP servers of the client.
    New(Value, McpServersParams),
    /// The MCP servers of `session/new`, with the id of the request and that of the session.
    Servers(Value, String),
    /// `session/prompt`, with the id of the session.
    Prompt(String),
    /// Nothing waits for the answer.
    Other,
}

/// A request to the client.
#[derive(Debug)]
struct Asked {
    /// The session that asks.
    handle: Arc<str>,
    /// Id of its dialog.
    dialog: String,
}

/// One client.
#[derive(Debug)]
pub(crate) struct Connection {
    version: String,
    is_initialized: bool,
    /// By the id that the client uses.
    sessions: HashMap<String, SessionState>,
    /// Ids of sessions by their handles.
    names: HashMap<Arc<str>, String>,
    /// Commands without an answer, by number.
    commands: HashMap<u64, Purpose>,
    /// Permission requests without an answer, by number.
    asked: HashMap<u64, Asked>,
    numbers: u64,
    /// Messages to write.
    out: Vec<Value>,
}

impl Connection {
    pub(crate) fn new(version: &str) -> Self {
        Self {
            version: version.to_owned(),
            is_initialized: false,
            sessions: HashMap::new(),
            names: HashMap::new(),
            commands: HashMap::new(),
            asked: HashMap::new(),
            numbers: 0,
            out: Vec::new(),
        }
    }

    /// Appends everything that is to be written.
    pub(crate) fn write(&mut self, batch: &mut Vec<u8>) {
        for message in self.out.drain(..) {
            batch.extend_from_slice(message.to_string().as_bytes());
            batch.push(b'\n');
        }
    }

    /// Acts on a line. Returns the command that follows from it.
    pub(crate) fn message(&mut self, message: Message) -> Option<Command> {
        match message {
            Message::Invalid { id, failure } => {
                self.out.push(rpc::response(&id, Err(failure)));
                None
            }
            Message::Answer { id, result } => {
                let asked = self.asked.remove(&id.as_u64()?)?;
                let frame = permission::answer(&asked.dialog, result.as_ref())?;
                Some((SessionRequest::Frame(frame), Some((*asked.handle).into())))
            }
            Message::Notification { method, params } => self.notification(&method, &params),
            Message::Request { id, method, params } => match self.request(&id, &method, &params) {
                Ok(command) => command,
                Err(failure) => {
                    self.out.push(rpc::response(&id, Err(failure)));
                    None
                }
            },
        }
    }

    fn request(
        &mut self,
        id: &Value,
        method: &str,
        params: &Map<String, Value>,
    ) -> Result<Option<Command>, Failure> {
        if self.is_open(id) {
            return Err(Failure::new(
                INVALID_REQUEST,
                "A request with this id is open already",
            ));
        }
        if method == "initialize" {
            let result = self.initialize(params)?;
            self.out.push(rpc::response(id, Ok(result)));
            return Ok(None);
        }
        if !matches!(method, "authenticate" | "session/new" | "session/prompt") {
            return Err(Failure::no_method(method));
        }
        if !self.is_initialized {
            return Err(Failure::new(INVALID_REQUEST, "Call initialize first"));
        }
        if self.commands.len() >= MAX_OPEN_REQUESTS {
            return Err(Failure::new(INTERNAL, "Too many requests are open"));
        }
        match method {
            "session/new" => {
                let servers = mcp_servers::read(params)?;
                let params = new_session(params)?;
                let origin = self.origin("open_session", Purpose::New(id.clone(), servers))?;
                let command = ManagerCommand::OpenSession(params);
                Ok(Some((SessionRequest::Manager(origin, command), None)))
            }
            "session/prompt" => self.prompt(id, params).map(Some),
            _ => Err(Failure::new(
                INVALID_PARAMS,
                "There is no such authentication method: log in with pinion auth login PROVIDER",
            )),
        }
    }

    fn initialize(&mut self, params: &Map<String, Value>) -> Result<Value, Failure> {
        let version = params.get("protocolVersion");
        let text = version.and_then(Value::as_str);
        let number = version
            .and_then(Value::as_u64)
            .or(text.and_then(|text| text.parse().ok()));
        if number.is_none_or(|number| number > u64::from(u16::MAX)) {
            return Err(Failure::new(
                INVALID_PARAMS,
                "The member protocolVersion must be an integer of 16 bits",
            ));
        }
        if std::mem::replace(&mut self.is_initialized, true) {
            return Err(Failure::new(
                INVALID_REQUEST,
                "The connection is initialized already",
            ));
        }
        Ok(json!({
            // Some clients (acplint 0.1) send the version as a string and expect one.
            "protocolVersion": text.map_or(json!(1), |_| json!("1")),
            "agentCapabilities": {
                "loadSession": false,
                "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
                "mcpCapabilities": {"http": true, "sse": false},
            },
            "authMethods": [],
            "agentInfo": {"name": "pinion", "title": "Pinion", "version": self.version},
        }))
    }

    fn prompt(&mut self, id: &Value, params: &Map<String, Value>) -> Result<Command, Failure> {
        let name = session_id(params)?;
        let state = self.sessions.get_mut(name).ok_or_else(|| not_found(name))?;
        if state.turn.is_some() {
            return Err(Failure::new(
                INVALID_REQUEST,
                "A prompt is running in this session: cancel it first",
            ));
        }
        let prompt = prompt::read(params)?;
        state.turn = Some(Turn::new(id.clone()));
        let handle = Arc::clone(&state.handle);
        let origin = self.origin("prompt", Purpose::Prompt(name.to_owned()))?;
        let command = SessionRequest::Command(origin, SessionCommand::Prompt(prompt));
        Ok((command, Some((*handle).into())))
    }

    fn notification(&mut self, method: &str, params: &Map<String, Value>) -> Option<Command> {
        let state = match method {
            "session/cancel" => self.sessions.get_mut(params.get("sessionId")?.as_str()?)?,
            "$/cancel_request" => {
                let id = params.get("requestId")?;
                let mut states = self.sessions.values_mut();
                states.find(|state| state.turn.as_ref().is_some_and(|turn| turn.request == *id))?
            }
            // A notification is never answered, so an unknown one is ignored.
            _ => return None,
        };
        let turn = state.turn.as_mut()?;
        turn.is_cancelled = true;
        let handle = Arc::clone(&state.handle);
        let origin = self.origin("abort", Purpose::Other).ok()?;
        let command = SessionRequest::Command(origin, SessionCommand::Abort(NoParams {}));
        Some((command, Some((*handle).into())))
    }

    /// Acts on the output of a session; `handle` is none for the first session and for the manager. Returns the command
    /// that follows from it.
    pub(crate) fn outgoing(&mut self, handle: Option<&Arc<str>>, item: &Outgoing) -> Option<Command> {
        match item {
            Outgoing::Response(_, response) => self.answered(response),
            Outgoing::Event(event) => self.event(handle?, event),
            _ => None,
        }
    }

    fn event(&mut self, handle: &Arc<str>, event: &Event) -> Option<Command> {
        let Some(name) = self.names.get(handle) else {
            // The client does not know the session yet.
            return cancel_dialog(handle, event);
        };
        let state = self.sessions.get_mut(name)?;
        if let Some(update) = updates::of_event(event) {
            self.out.push(rpc::update(name, &update));
        }
        if let Some((request, outcome)) = state.note(event) {
            self.out.push(rpc::response(&request, outcome));
        }
        match event {
            Event::ExtensionUiRequest {
                request,
                permission_for,
            } => {
                let call = permission_for.as_deref();
                let params = call.map(|call| permission::params(name, call, request));
                self.dialog(handle, request, params)
            }
            _ => None,
        }
    }

    /// Acts on a dialog of a session. `permission` has the parameters of the request if it is about a tool call.
    fn dialog(
        &mut self,
        handle: &Arc<str>,
        dialog: &UiRequest,
        permission: Option<Value>,
    ) -> Option<Command> {
        if let Some(params) = permission {
            self.numbers += 1;
            let asked = Asked {
                handle: Arc::clone(handle),
                dialog: dialog.id.clone(),
            };
            self.asked.insert(self.numbers, asked);
            let request = rpc::request(self.numbers, "session/request_permission", &params);
            self.out.push(request);
            return None;
        }
        match dialog.method {
            UiMethod::Cancel => {
                let ended = dialog.target_id.as_deref();
                let mut asked = self.asked.iter();
                let (&number, _) = asked.find(|(_, asked)| Some(asked.dialog.as_str()) == ended)?;
                self.asked.remove(&number);
                self.out.push(rpc::cancel(number));
                None
            }
            _ => cancelled(handle, dialog),
        }
    }

    fn answered(&mut self, response: &Response) -> Option<Command> {
        let number = response.id.as_ref().and_then(|id| id.get().parse().ok());
        let purpose = number.and_then(|number: u64| self.commands.remove(&number))?;
        match purpose {
            Purpose::New(id, servers) => self.opened(id, servers, &response.outcome),
            Purpose::Servers(id, session) => self.connected(&id, &session, &response.outcome),
            Purpose::Prompt(session) => {
                self.prompted(&session, &response.outcome);
                None
            }
            Purpose::Other => None,
        }
    }

    fn opened(
        &mut self,
        id: Value,
        servers: McpServersParams,
        outcome: &Result<Reply, String>,
    ) -> Option<Command> {
        let opened = match outcome {
            Ok(Reply::OpenedSession(opened)) => opened,
            Ok(_) => return self.fail(&id, "The session was not opened"),
            Err(error) => return self.fail(&id, error),
        };
        let handle: Arc<str> = opened.session.as_str().into();
        let name = opened.session_id.clone();
        self.names.insert(Arc::clone(&handle), name.clone());
        self.sessions
            .insert(name.clone(), SessionState::new(Arc::clone(&handle)));
        if servers.mcp_servers.is_empty() {
            self.out.push(rpc::response(&id, Ok(json!({"sessionId": name}))));
            return None;
        }
        // The answer comes when the servers are being connected, not when they are.
        let origin = self.origin("set_mcp_servers", Purpose::Servers(id, name)).ok()?;
        let command = SessionRequest::Command(origin, SessionCommand::SetMcpServers(servers));
        Some((command, Some((*handle).into())))
    }

    fn connected(&mut self, id: &Value, session: &str, outcome: &Result<Reply, String>) -> Option<Command> {
        let Err(error) = outcome else {
            self.out
                .push(rpc::response(id, Ok(json!({"sessionId": session}))));
            return None;
        };
        let failure = Failure::new(INVALID_PARAMS, error.as_str());
        self.out.push(rpc::response(id, Err(failure)));
        let state = self.sessions.remove(session)?;
        self.names.remove(&state.handle);
        let origin = self.origin("close_session", Purpose::Other).ok()?;
        let command = SessionRequest::Command(origin, SessionCommand::CloseSession(NoParams {}));
        Some((command, Some((*state.handle).into())))
    }

    fn fail(&mut self, id: &Value, error: &str) -> Option<Command> {
        let failure = Failure::new(INTERNAL, error);
        self.out.push(rpc::response(id, Err(failure)));
        None
    }

    fn prompted(&mut self, session: &str, outcome: &Result<Reply, String>) {
        let Some(state) = self.sessions.get_mut(session) else {
            return;
        };
        let runs =
            matches!(outcome, Ok(Reply::Accepted(accepted)) if accepted.disposition != Disposition::Handled);
        if runs {
            state.turn.iter_mut().for_each(|turn| turn.is_started = true);
            return;
        }
        let Some(turn) = state.turn.take() else {
            return;
        };
        let (id, outcome) = match outcome {
            Ok(_) => turn.end(false),
            Err(error) => (turn.request, Err(Failure::new(INTERNAL, error.as_str()))),
        };
        self.out.push(rpc::response(&id, outcome));
    }

    /// A session has ended: its prompt never gets another answer, and nothing waits for its dialogs.
    pub(crate) fn left(&mut self, handle: &Arc<str>) {
        self.asked.retain(|_, asked| asked.handle != *handle);
        let name = self.names.get(handle);
        let state = name.and_then(|name| self.sessions.get_mut(name));
        if let Some(turn) = state.and_then(|state| state.turn.take()) {
            let failure = Failure::new(INTERNAL, "The session was closed");
            self.out.push(rpc::response(&turn.request, Err(failure)));
        }
    }

    fn is_open(&self, id: &Value) -> bool {
        let prompts = self.sessions.values().filter_map(|state| state.turn.as_ref());
        let opening = self.commands.values().filter_map(|purpose| match purpose {
            Purpose::New(id, _) | Purpose::Servers(id, _) => Some(id),
            Purpose::Prompt(_) | Purpose::Other => None,
        });
        prompts
            .map(|turn| &turn.request)
            .chain(opening)
            .any(|open| open == id)
    }

    fn origin(&mut self, command: &'static str, purpose: Purpose) -> Result<Origin, Failure> {
        self.numbers += 1;
        let id = RawValue::from_string(self.numbers.to_string());
        let id = id.map_err(|error| Failure::new(INTERNAL, error.to_string()))?;
        self.commands.insert(self.numbers, purpose);
        Ok(Origin {
            client: ClientId::default(),
            id: Some(id),
            command,
        })
    }
}

fn new_session(params: &Map<String, Value>) -> Result<OpenSessionParams, Failure> {
    let cwd = params.get("cwd").and_then(Value::as_str);
    let cwd = cwd.filter(|cwd| Path::new(cwd).is_absolute());
    let cwd = cwd.ok_or_else(|| Failure::new(INVALID_PARAMS, "The member cwd must be an absolute path"))?;
    Ok(OpenSessionParams {
        cwd: Some(cwd.to_owned()),
        ..OpenSessionParams::default()
    })
}

fn cancel_dialog(handle: &Arc<str>, event: &Event) -> Option<Command> {
    match event {
        Event::ExtensionUiRequest { request, .. } => cancelled(handle, request),
        _ => None,
    }
}

/// Dialogs of extensions have no form in this protocol yet: they return their default at once.
fn cancelled(handle: &Arc<str>, dialog: &UiRequest) -> Option<Command> {
    use UiMethod::{Confirm, Editor, Input, Select};
    if !matches!(dialog.method, Select | Confirm | Input | Editor) {
        return None;
    }
    let frame: Frame = permission::cancelled(&dialog.id)?;
    Some((SessionRequest::Frame(frame), Some((**handle).into())))
}

fn session_id(params: &Map<String, Value>) -> Result<&str, Failure> {
    let id = params.get("sessionId").and_then(Value::as_str);
    id.ok_or_else(|| Failure::new(INVALID_PARAMS, "The member sessionId must be a string"))
}

fn not_found(session: &str) -> Failure {
    let shown: String = session.chars().take(100).collect();
    Failure::new(
        NOT_FOUND,
        format!("There is no session {shown:?} on this connection"),
    )
}
