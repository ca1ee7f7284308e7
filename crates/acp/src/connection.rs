//! The state of the connection: which requests are open, which sessions there are, and what each line and event means.
//! Nothing here waits; `server` moves lines, commands and events.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use session::{ClientId, Origin, Outgoing, SessionRequest};
use wire::command::{LoginParams, NoParams};
use wire::model::Model;
use wire::reply::{Accepted, CommandStage, Disposition};
use wire::ui::UiMethod;
use wire::{Event, Reply, Response, SessionCommand};

use crate::elicitation::Scope;
use crate::limits::MAX_OPEN_REQUESTS;
use crate::options::{Part, word};
use crate::purpose::{After, Command, Kind, Purpose, Read};
use crate::rpc::{self, Failure, INTERNAL, INVALID_PARAMS, INVALID_REQUEST, Message, not_found, session_id};

use crate::host::Host;
use crate::output::Output;
use crate::requests::{self, ClientRequests};
use crate::state::{SessionState, Turn};
use crate::{notices, permission, prompt, sessions, tool_calls, updates, usage};

/// Requests that need `initialize` first.
const METHODS: [&str; 12] = [
    "authenticate",
    "logout",
    "session/close",
    "session/delete",
    "session/fork",
    "session/list",
    "session/load",
    "session/new",
    "session/prompt",
    "session/resume",
    "session/set_config_option",
    "session/set_mode",
];

/// Requests about sessions or logins of this process.
const LOCAL: [&str; 5] = [
    "authenticate",
    "logout",
    "session/delete",
    "session/fork",
    "session/list",
];

/// One client.
pub(crate) struct Connection {
    version: String,
    is_initialized: bool,
    /// The sessions are on workers.
    pub(crate) is_gateway: bool,
    /// By the id that the client uses.
    pub(crate) sessions: HashMap<String, SessionState>,
    /// Ids of sessions by their handles.
    pub(crate) names: HashMap<Arc<str>, String>,
    /// Commands without an answer, by number.
    pub(crate) commands: HashMap<u64, Purpose>,
    /// Requests to the client.
    pub(crate) requests: ClientRequests,
    numbers: u64,
    /// Numbers of `logout` requests that have to begin.
    pub(crate) logouts: Vec<u64>,
    /// Models that a session listed last. Sessions that open later begin with them.
    pub(crate) known_models: Vec<Model>,
    /// Messages to write.
    pub(crate) out: Output,
}

impl From<&Host> for Connection {
    /// A connection before `initialize`.
    fn from(host: &Host) -> Self {
        Self {
            version: host.version.clone(),
            is_initialized: false,
            is_gateway: host.is_gateway,
            sessions: HashMap::new(),
            names: HashMap::new(),
            commands: HashMap::new(),
            requests: ClientRequests::new(host),
            numbers: 0,
            logouts: Vec::new(),
            known_models: Vec::new(),
            out: Output::default(),
        }
    }
}

impl Connection {
    /// Acts on a line. Returns the command that follows from it.
    pub(crate) fn message(&mut self, message: Message) -> Option<Command> {
        match message {
            Message::Invalid { id, failure } => {
                self.out.push(rpc::response(&id, Err(failure)));
                None
            }
            Message::Answer { id, result } => {
                self.requests
                    .answer(&id, result, &mut self.sessions, &mut self.out)
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
        if is_open(&self.sessions, &self.commands, id) {
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
        if !METHODS.contains(&method) || self.is_gateway && LOCAL.contains(&method) {
            return Err(Failure::no_method(method));
        }
        if !self.is_initialized {
            return Err(Failure::new(INVALID_REQUEST, "Call initialize first"));
        }
        if self.commands.len() >= MAX_OPEN_REQUESTS {
            return Err(Failure::new(INTERNAL, "Too many requests are open"));
        }
        match method {
            "session/new" => self.open(id, Kind::New, params),
            "session/load" => self.open(id, Kind::Load, params),
            "session/resume" => self.open(id, Kind::Resume, params),
            "session/fork" => self.open(id, Kind::Fork, params),
            "session/list" => self.list(id, params),
            "session/close" => self.close(id, params),
            "session/delete" => self.delete(id, params),
            "session/set_config_option" => self.set_option(id, params),
            "session/set_mode" => self.set_mode(id, params),
            "session/prompt" => self.prompt(id, params),
            "logout" => {
                self.origin("logout", Purpose::LogOut(id.clone()))?;
                self.logouts.push(self.numbers);
                return Ok(None);
            }
            _ => {
                let provider_id = self.requests.provider(word(params, "methodId")?)?;
                // The session ends a login that is open, and refuses its request.
                self.out.extend(self.requests.withdraw_pages());
                let login = SessionCommand::Login(LoginParams { provider_id });
                self.command(login, None, Purpose::LogIn(id.clone()))
            }
        }
        .map(Some)
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
        self.is_initialized = true;
        self.requests.read_client(params);
        let (sessions, auth) = if self.is_gateway {
            (json!({"resume": {}, "close": {}}), json!({}))
        } else {
            let sessions = json!({"list": {}, "resume": {}, "close": {}, "delete": {}, "fork": {}});
            (sessions, json!({"logout": {}}))
        };
        Ok(json!({
            // Some clients (acplint 0.1) send the version as a string and expect one.
            "protocolVersion": text.map_or(json!(1), |_| json!("1")),
            "agentCapabilities": {
                "loadSession": true,
                "sessionCapabilities": sessions,
                "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
                "mcpCapabilities": {"http": true, "sse": false},
                "auth": auth,
            },
            "authMethods": self.requests.auth_methods(),
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
        let mut turn = Turn::new(id.clone());
        if !state.has_title {
            turn.title = sessions::title(&prompt.message);
        }
        state.turn = Some(turn);
        let purpose = Purpose::Prompt(name.to_owned());
        self.command(SessionCommand::Prompt(prompt), Some(name), purpose)
    }

    fn notification(&mut self, method: &str, params: &Map<String, Value>) -> Option<Command> {
        let session = match method {
            "session/cancel" => params.get("sessionId")?.as_str()?.to_owned(),
            "$/cancel_request" => {
                let id = params.get("requestId")?;
                let has_prompt =
                    |state: &SessionState| state.turn.as_ref().is_some_and(|turn| turn.request == *id);
                match self.sessions.iter().find(|(_, state)| has_prompt(state)) {
                    Some((session, _)) => session.clone(),
                    None => return self.cancel_request(id),
                }
            }
            // A notification is never answered, so an unknown one is ignored.
            _ => return None,
        };
        let state = self.sessions.get_mut(&session)?;
        let turn = state.turn.as_mut()?;
        turn.is_cancelled = true;
        let handle = Arc::clone(&state.handle);
        let origin = self.origin("abort", Purpose::Other).ok()?;
        let command = SessionRequest::Command(origin, SessionCommand::Abort(NoParams {}));
        Some((command, Some((*handle).into())))
    }

    /// Cancels a request that is no prompt. Requests that end by themselves in a moment get their usual response.
    fn cancel_request(&mut self, id: &Value) -> Option<Command> {
        let mut commands = self.commands.values_mut();
        let purpose = commands.find(|purpose| purpose.request() == Some(id))?;
        match purpose {
            Purpose::Opening(_, opening) | Purpose::Config(_, _, After::Opening(opening)) => {
                opening.is_cancelled = true;
                None
            }
            Purpose::List { .. } => {
                *purpose = Purpose::Other;
                self.fail(id, Failure::cancelled());
                None
            }
            Purpose::LogIn(_) => {
                *purpose = Purpose::Other;
                self.fail(id, Failure::cancelled());
                self.out.extend(self.requests.withdraw_pages());
                // The first session logs in, and nothing else runs in it.
                self.command(SessionCommand::Abort(NoParams {}), None, Purpose::Other)
                    .ok()
            }
            _ => None,
        }
    }

    /// Acts on the output of a session; `handle` is none for the first session and for the manager. Returns the command
    /// that follows from it. `old_text` is the text of the file that [`replaced_file`](Self::replaced_file) returned.
    pub(crate) fn outgoing(
        &mut self,
        handle: Option<&Arc<str>>,
        item: &Outgoing,
        old_text: Option<&str>,
    ) -> Option<Command> {
        match item {
            Outgoing::Response(_, response) => self.answered(response),
            Outgoing::Event(event) => self.event(handle, event, old_text),
            Outgoing::OptionsChanged => {
                let name = self.names.get(handle?)?.clone();
                self.read_config(Read::State, &name, After::Update).ok()
            }
            _ => None,
        }
    }

    fn event(&mut self, handle: Option<&Arc<str>>, event: &Event, old_text: Option<&str>) -> Option<Command> {
        let name = handle.and_then(|handle| self.names.get(handle));
        let (Some(handle), Some(name)) = (handle, name) else {
            // The client does not know the session: the first one never, the others not yet.
            return self.hidden_dialog(handle, event);
        };
        let state = self.sessions.get_mut(name)?;
        if let Event::MessageUpdate {
            assistant_message_event,
            ..
        } = event
        {
            if let Some((kind, text)) = updates::streamed(assistant_message_event) {
                self.out.push_text(name, kind, text);
            }
            return None;
        }
        state.begin(event, old_text);
        let notice = notices::of_event(event, &self.requests.client, state.compactions);
        if let Some(update) = notice.or_else(|| updates::of_event(event, state)) {
            self.out.push(rpc::update(name, &update));
        }
        let ended = state.note(event);
        let fallback = match event {
            Event::ModelFallback { to, .. } => Some(to.clone()),
            Event::AgentSettled { .. } => None,
            _ => state.config.fallback.clone(),
        };
        if fallback != state.config.fallback {
            state.config.fallback = fallback;
            let name = name.clone();
            self.tell_options(&name);
        }
        let name = self.names.get(handle)?;
        if let Some((request, outcome)) = ended {
            let outcome = outcome.map_err(|failure| self.requests.prompt_failure(&failure.message));
            // The response follows the usage of the turn.
            let name = name.clone();
            return self.read(Part::Usage(Some((request, outcome))), &name);
        }
        match event {
            Event::ExtensionUiRequest { request } => {
                let state = self.sessions.get(name)?;
                let call = request.tool_call_id.as_deref().map(|call| state.call(call));
                let params = call.map(|call| permission::params(name, call, request));
                let scope = Scope::Session(name);
                (self.requests).dialog(Some(handle), request, scope, params, &mut self.out)
            }
            Event::ThinkingLevelChanged { .. } | Event::SessionChanged { .. } => {
                let name = name.clone();
                // A prompt that was accepted and has not settled gets no run any more, so no other event ends it.
                if matches!(event, Event::SessionChanged { .. })
                    && let Some(state) = self.sessions.get_mut(&name)
                    && let Some(turn) = state.turn.take_if(|turn| turn.is_started)
                {
                    let (request, outcome) = turn.end(true);
                    self.out.push(rpc::response(&request, outcome));
                }
                self.read_config(Read::State, &name, After::Update).ok()
            }
            _ => {
                let (part, name) = (changed_part(event)?, name.clone());
                self.read(part, &name)
            }
        }
    }

    /// Acts on a dialog of a session that the client does not know. A login of the client asks through the first session.
    fn hidden_dialog(&mut self, handle: Option<&Arc<str>>, event: &Event) -> Option<Command> {
        let Event::ExtensionUiRequest { request, .. } = event else {
            return None;
        };
        if request.method == UiMethod::Cancel {
            let target = request.target_id.as_deref()?;
            self.out.extend(self.requests.withdraw(target));
            return None;
        }
        let mut purposes = self.commands.values();
        let login = purposes.find_map(|purpose| match purpose {
            Purpose::LogIn(id) if handle.is_none() => Some(id.clone()),
            _ => None,
        });
        match login {
            Some(id) => (self.requests).dialog(None, request, Scope::Request(&id), None, &mut self.out),
            None => requests::cancelled(handle, request),
        }
    }

    fn answered(&mut self, response: &Response) -> Option<Command> {
        let number = response.id.as_ref().and_then(|id| id.get().parse().ok());
        let purpose = number.and_then(|number: u64| self.commands.remove(&number))?;
        let outcome = &response.outcome;
        match purpose {
            Purpose::Opening(step, opening) => self.opening(step, opening, outcome),
            Purpose::Config(read, session, after) => self.config(read, &session, after, outcome),
            Purpose::List { request, cwd, cursor } => {
                let result = match outcome {
                    Ok(Reply::Sessions(found)) => {
                        sessions::listed(&found.sessions, cwd.as_deref(), cursor.as_deref())
                    }
                    Ok(_) => Err(Failure::new(INTERNAL, "The sessions could not be listed")),
                    Err(error) => Err(Failure::new(INTERNAL, error.as_str())),
                };
                self.out.push(rpc::response(&request, result));
                None
            }
            Purpose::Close(id, session) => {
                self.closed(&id, &session, outcome);
                None
            }
            Purpose::FindToDelete(id, session) => self.found_to_delete(id, &session, outcome),
            Purpose::Delete(id) | Purpose::LogIn(id) | Purpose::LogOut(id) => {
                let result = match outcome {
                    Ok(_) => Ok(json!({})),
                    Err(error) => Err(Failure::new(INTERNAL, error.as_str())),
                };
                self.out.push(rpc::response(&id, result));
                None
            }
            Purpose::Usage(session, ended) => {
                let update = usage::update(outcome);
                if let (Some(update), Some(state)) = (update, self.sessions.get_mut(&session))
                    && update != state.told_usage
                {
                    self.out.push(rpc::update(&session, &update));
                    state.told_usage = update;
                }
                if let Some((request, outcome)) = ended {
                    self.out.push(rpc::response(&request, outcome));
                }
                None
            }
            Purpose::Commands(session) if matches!(outcome, Ok(Reply::McpServers(_))) => {
                self.read(Part::Commands, &session)
            }
            Purpose::Commands(session) => {
                // A server that starts reports several steps, most of which change no command.
                let update = usage::update(outcome);
                if let (Some(update), Some(state)) = (update, self.sessions.get_mut(&session))
                    && update != state.told_commands
                {
                    self.out.push(rpc::update(&session, &update));
                    state.told_commands = update;
                }
                None
            }
            Purpose::Plan(session) => {
                let update = usage::update(outcome).map(|update| rpc::update(&session, &update));
                self.out.extend(update);
                None
            }
            Purpose::Prompt(session) => {
                self.prompted(&session, outcome);
                None
            }
            Purpose::Other => None,
        }
    }

    pub(crate) fn fail(&mut self, id: &Value, failure: Failure) {
        self.out.push(rpc::response(id, Err(failure)));
    }

    fn prompted(&mut self, session: &str, outcome: &Result<Reply, String>) {
        if matches!(outcome, Ok(Reply::Accepted(accepted)) if accepted.stage == CommandStage::Begun) {
            // The response to the end of the slash command ends the turn.
            return;
        }
        let Some(state) = self.sessions.get_mut(session) else {
            return;
        };
        let runs =
            matches!(outcome, Ok(Reply::Accepted(accepted)) if accepted.disposition != Disposition::Handled);
        if runs {
            let title = state.turn.as_mut().and_then(|turn| {
                turn.is_started = true;
                turn.title.take()
            });
            if let Some(title) = title {
                state.has_title = true;
                let update = json!({"sessionUpdate": "session_info_update", "title": title});
                self.out.push(rpc::update(session, &update));
            }
            return;
        }
        let Some(turn) = state.turn.take() else {
            return;
        };
        let (id, outcome) = match outcome {
            Err(error) if !turn.is_cancelled => (turn.request, Err(self.requests.prompt_failure(error))),
            Ok(Reply::Accepted(Accepted {
                stage: CommandStage::GivenUp(error),
                ..
            })) if !turn.is_cancelled => (turn.request, Err(self.requests.prompt_failure(error))),
            // A cancelled prompt that had not begun is refused by the session, and is no failure for the client.
            _ => turn.end(false),
        };
        self.out.push(rpc::response(&id, outcome));
    }

    /// A session has ended: its prompt never gets another answer, and nothing waits for its dialogs.
    pub(crate) fn left(&mut self, handle: &Arc<str>) {
        self.requests.forget(handle);
        let name = self.names.get(handle);
        let state = name.and_then(|name| self.sessions.get_mut(name));
        if let Some(turn) = state.and_then(|state| state.turn.take()) {
            let failure = Failure::new(INTERNAL, "The session was closed");
            self.out.push(rpc::response(&turn.request, Err(failure)));
        }
    }

    /// Makes a command for a session of this connection, or for the first session of the process, which no client sees.
    pub(crate) fn command(
        &mut self,
        command: SessionCommand,
        session: Option<&str>,
        purpose: Purpose,
    ) -> Result<Command, Failure> {
        let handle = match session {
            None => None,
            Some(name) => {
                let state = self.sessions.get(name).ok_or_else(|| not_found(name))?;
                Some(Box::from(&*state.handle))
            }
        };
        let origin = self.origin(command.name(), purpose)?;
        Ok((SessionRequest::Command(origin, command), handle))
    }

    pub(crate) fn origin(&mut self, command: &'static str, purpose: Purpose) -> Result<Origin, Failure> {
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

/// The part of a session that an event has changed.
fn changed_part(event: &Event) -> Option<Part> {
    match event {
        Event::TurnEnd { .. } => Some(Part::Usage(None)),
        Event::ToolExecutionEnd { tool_name, .. } => usage::changes_todos(tool_name).then_some(Part::Plan),
        Event::TodoAutoClear => Some(Part::Plan),
        Event::McpServersChange { .. } => Some(Part::Commands),
        _ => None,
    }
}

/// Returns the file that the call of an event replaces as a whole. Its diff needs the text from before.
pub(crate) fn replaced_file(
    connection: &Connection,
    handle: Option<&Arc<str>>,
    item: &Outgoing,
) -> Option<PathBuf> {
    let Outgoing::Event(event) = item else {
        return None;
    };
    // A file of this machine may be another than that of the worker.
    if connection.is_gateway {
        return None;
    }
    let state = connection.sessions.get(connection.names.get(handle?)?)?;
    tool_calls::replaced_file(event, &state.cwd)
}

/// Returns true if a request with this id has no response yet.
fn is_open(sessions: &HashMap<String, SessionState>, commands: &HashMap<u64, Purpose>, id: &Value) -> bool {
    let prompts = sessions.values().filter_map(|state| state.turn.as_ref());
    let commands = commands.values().filter_map(Purpose::request);
    prompts
        .map(|turn| &turn.request)
        .chain(commands)
        .any(|open| open == id)
}
