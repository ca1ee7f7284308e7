//! Requests that open, list, close and delete sessions. Each takes several commands, one after the other: the answer to one
//! leads to the next.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use session::SessionRequest;
use wire::command::{ListParams, ListScope, NoParams, OpenSessionParams, StatsParams};
use wire::looking::DeleteSessionParams;
use wire::reply::{ListedSession, Messages, OpenedSession};
use wire::{ManagerCommand, Reply, SessionCommand};

use crate::connection::Connection;
use crate::history;
use crate::limits::{LISTED_SESSIONS, TITLE};
use crate::purpose::{After, Command, Kind, Opening, Purpose, Read, Step};
use crate::rpc::{
    self, Failure, INTERNAL, INVALID_PARAMS, INVALID_REQUEST, not_found, not_stored, session_id,
};
use crate::state::SessionState;
use crate::usage;

impl Connection {
    /// Begins `session/new`, `session/load` or `session/resume`.
    pub(crate) fn open(
        &mut self,
        id: &Value,
        kind: Kind,
        params: &Map<String, Value>,
    ) -> Result<Command, Failure> {
        let opening = Opening::read(id, kind, params)?;
        if kind == Kind::New {
            return self.open_file(opening, None);
        }
        if kind == Kind::Fork {
            refuse_while_running(self.sessions.get(&opening.session))?;
            return self.find(opening);
        }
        refuse_while_opening(&self.commands, &opening.session)?;
        let Some(state) = self.sessions.get(&opening.session) else {
            return self.find(opening);
        };
        refuse_while_running(Some(state))?;
        match kind {
            Kind::Load => self.read_history(opening),
            Kind::New | Kind::Resume | Kind::Fork => self.read_stats(opening),
        }
    }

    /// Looks for the file of the session.
    fn find(&mut self, opening: Opening) -> Result<Command, Failure> {
        if self.is_gateway {
            // Workers have the sessions by their ids.
            let session = opening.session.clone();
            return self.open_file(opening, Some(session));
        }
        let params = ListParams {
            scope: ListScope::All,
            texts: false,
        };
        let command = SessionCommand::ListSessions(params);
        self.command(command, None, Purpose::Opening(Step::Find, opening))
    }

    /// Acts on the answer to a command of a request that opens a session.
    pub(crate) fn opening(
        &mut self,
        step: Step,
        mut opening: Opening,
        outcome: &Result<Reply, String>,
    ) -> Option<Command> {
        if let Ok(Reply::OpenedSession(opened)) = outcome {
            self.keep(&mut opening, opened);
        }
        if opening.is_cancelled {
            return self.give_up(&opening.request, opening.opened(), Failure::cancelled());
        }
        let (request, opened) = (opening.request.clone(), opening.opened().map(str::to_owned));
        let next = match (step, outcome) {
            (Step::Find, Ok(Reply::Sessions(found))) => {
                let found = found.sessions.iter().find(|found| found.id == opening.session);
                let is_empty = opening.kind == Kind::Fork && self.sessions.contains_key(&opening.session);
                match found {
                    Some(found) => self.open_file(opening, Some(found.path.clone())),
                    // An open session without messages has no file yet: its copy is a new one.
                    None if is_empty => self.open_file(opening, None),
                    None => Err(not_stored(&opening.session)),
                }
            }
            (Step::Open, Ok(Reply::OpenedSession(_))) => self.opened(opening),
            (Step::History, Ok(Reply::Messages(messages))) => self.replay(opening, messages),
            (Step::Stats, _) => {
                let usage = usage::update(outcome);
                if let (Some(usage), Some(state)) = (usage, self.sessions.get_mut(&opening.session)) {
                    state.told_usage.clone_from(&usage);
                    opening.updates.push(usage);
                }
                self.set_servers(opening)
            }
            (Step::Servers, Ok(_)) => {
                let session = opening.session.clone();
                self.read_config(Read::State, &session, After::Opening(opening))
            }
            (Step::Servers, Err(error)) => Err(Failure::new(INVALID_PARAMS, error.as_str())),
            (_, Err(error)) => Err(Failure::new(INTERNAL, error.as_str())),
            (_, Ok(_)) => Err(Failure::new(INTERNAL, "The session could not be opened")),
        };
        match next {
            Ok(command) => Some(command),
            Err(failure) => self.give_up(&request, opened.as_deref(), failure),
        }
    }

    fn open_file(&mut self, opening: Opening, session_path: Option<String>) -> Result<Command, Failure> {
        let (session_path, fork_path) = match opening.kind {
            Kind::Fork => (None, session_path),
            Kind::New | Kind::Load | Kind::Resume => (session_path, None),
        };
        let params = OpenSessionParams {
            cwd: Some(opening.cwd.clone()),
            session_path,
            fork_path,
            ..OpenSessionParams::default()
        };
        let origin = self.origin("open_session", Purpose::Opening(Step::Open, opening))?;
        let command = SessionRequest::Manager(origin, ManagerCommand::OpenSession(params));
        Ok((command, None))
    }

    /// Ends a request that failed or was cancelled, and closes the session that it has opened.
    pub(crate) fn give_up(
        &mut self,
        request: &Value,
        opened: Option<&str>,
        failure: Failure,
    ) -> Option<Command> {
        self.fail(request, failure);
        self.discard(opened?)
    }

    /// Notes a session that was opened.
    fn keep(&mut self, opening: &mut Opening, opened: &OpenedSession) {
        let handle: Arc<str> = opened.session.as_str().into();
        opening.session.clone_from(&opened.session_id);
        opening.has_opened = true;
        self.names.insert(Arc::clone(&handle), opened.session_id.clone());
        let state = SessionState::new(handle, Path::new(&opened.cwd));
        self.sessions.insert(opened.session_id.clone(), state);
    }

    /// Goes on with a session that was opened.
    fn opened(&mut self, opening: Opening) -> Result<Command, Failure> {
        match opening.kind {
            Kind::New => self.set_servers(opening),
            Kind::Load => self.read_history(opening),
            Kind::Resume | Kind::Fork => self.read_stats(opening),
        }
    }

    fn read_history(&mut self, opening: Opening) -> Result<Command, Failure> {
        let session = opening.session.clone();
        let command = SessionCommand::GetMessages(NoParams {});
        self.command(command, Some(&session), Purpose::Opening(Step::History, opening))
    }

    /// The history comes before everything that servers of the client cause.
    fn replay(&mut self, opening: Opening, messages: &Messages) -> Result<Command, Failure> {
        let Some(state) = self.sessions.get_mut(&opening.session) else {
            return Err(not_found(&opening.session));
        };
        state.has_title = !messages.messages.is_empty();
        for message in &messages.messages {
            for update in history::of_message(message, &state.cwd) {
                self.out.push(rpc::update(&opening.session, &update));
            }
        }
        self.read_stats(opening)
    }

    /// Reads tokens and cost of a stored session.
    fn read_stats(&mut self, opening: Opening) -> Result<Command, Failure> {
        let session = opening.session.clone();
        let command = SessionCommand::GetSessionStats(StatsParams { by_model: false });
        self.command(command, Some(&session), Purpose::Opening(Step::Stats, opening))
    }

    /// Sets the servers of the client. The session answers when their connections begin, not when they are ready.
    fn set_servers(&mut self, opening: Opening) -> Result<Command, Failure> {
        let session = opening.session.clone();
        if opening.servers.mcp_servers.is_empty() {
            return self.read_config(Read::State, &session, After::Opening(opening));
        }
        let command = SessionCommand::SetMcpServers(opening.servers.clone());
        self.command(command, Some(&session), Purpose::Opening(Step::Servers, opening))
    }

    /// Closes a session that its client never gets.
    fn discard(&mut self, session: &str) -> Option<Command> {
        let command = SessionCommand::CloseSession(NoParams {});
        let command = self.command(command, Some(session), Purpose::Other).ok();
        let state = self.sessions.remove(session)?;
        self.names.remove(&state.handle);
        // A client may prompt without waiting for the response that gives it the session.
        if let Some(turn) = state.turn {
            self.fail(&turn.request, Failure::new(INTERNAL, "The session was closed"));
        }
        command
    }

    /// Begins `session/list`.
    pub(crate) fn list(&mut self, id: &Value, params: &Map<String, Value>) -> Result<Command, Failure> {
        let text = |name: &str| match params.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(Failure::new(
                INVALID_PARAMS,
                format!("The member {name} must be a string"),
            )),
        };
        let purpose = Purpose::List {
            request: id.clone(),
            cwd: text("cwd")?,
            cursor: text("cursor")?,
        };
        let params = ListParams {
            scope: ListScope::All,
            texts: false,
        };
        self.command(SessionCommand::ListSessions(params), None, purpose)
    }

    /// Begins `session/close`. A prompt that runs in the session ends with `cancelled`.
    pub(crate) fn close(&mut self, id: &Value, params: &Map<String, Value>) -> Result<Command, Failure> {
        let name = session_id(params)?;
        let state = self.sessions.get_mut(name).ok_or_else(|| not_found(name))?;
        state.turn.iter_mut().for_each(|turn| turn.is_cancelled = true);
        let purpose = Purpose::Close(id.clone(), name.to_owned());
        let command = SessionCommand::CloseSession(NoParams {});
        self.command(command, Some(name), purpose)
    }

    pub(crate) fn closed(&mut self, id: &Value, session: &str, outcome: &Result<Reply, String>) {
        if let Err(error) = outcome {
            return self.fail(id, Failure::new(INTERNAL, error.as_str()));
        }
        if let Some(state) = self.sessions.remove(session) {
            self.names.remove(&state.handle);
            if let Some(turn) = state.turn {
                let (request, outcome) = turn.end(true);
                self.out.push(rpc::response(&request, outcome));
            }
        }
        self.out.push(rpc::response(id, Ok(json!({}))));
    }

    /// Begins `session/delete`.
    pub(crate) fn delete(&mut self, id: &Value, params: &Map<String, Value>) -> Result<Command, Failure> {
        let name = session_id(params)?;
        if self.sessions.contains_key(name) {
            let message = "The session is open: close it first";
            return Err(Failure::new(INVALID_REQUEST, message));
        }
        refuse_while_opening(&self.commands, name)?;
        let purpose = Purpose::FindToDelete(id.clone(), name.to_owned());
        let params = ListParams {
            scope: ListScope::All,
            texts: false,
        };
        self.command(SessionCommand::ListSessions(params), None, purpose)
    }

    pub(crate) fn found_to_delete(
        &mut self,
        id: Value,
        session: &str,
        outcome: &Result<Reply, String>,
    ) -> Option<Command> {
        let found = match outcome {
            Ok(Reply::Sessions(found)) => found.sessions.iter().find(|found| found.id == session),
            Ok(_) => None,
            Err(error) => {
                self.fail(&id, Failure::new(INTERNAL, error.as_str()));
                return None;
            }
        };
        let Some(found) = found else {
            // A session without a file is deleted already.
            self.out.push(rpc::response(&id, Ok(json!({}))));
            return None;
        };
        let session_path = found.path.clone();
        let origin = self.origin("delete_session", Purpose::Delete(id)).ok()?;
        let command = ManagerCommand::DeleteSession(DeleteSessionParams { session_path });
        Some((SessionRequest::Manager(origin, command), None))
    }
}

fn refuse_while_running(state: Option<&SessionState>) -> Result<(), Failure> {
    if state.is_some_and(|state| state.turn.is_some()) {
        let message = "A prompt is running in this session: cancel it first";
        return Err(Failure::new(INVALID_REQUEST, message));
    }
    Ok(())
}

/// Two requests would open the file of one session twice, and each copy would lack the messages of the other.
fn refuse_while_opening(commands: &HashMap<u64, Purpose>, session: &str) -> Result<(), Failure> {
    let mut openings = commands.values().filter_map(Purpose::opening);
    if openings.any(|opening| opening.session == session) {
        let message = "Another request is opening this session: wait for its response";
        return Err(Failure::new(INVALID_REQUEST, message));
    }
    Ok(())
}

/// The result of `session/list`: the sessions of a directory, or of all, from the one after `cursor` on.
pub(crate) fn listed(
    sessions: &[ListedSession],
    cwd: Option<&str>,
    cursor: Option<&str>,
) -> Result<Value, Failure> {
    // Every session has a file, and most clients open one at each start.
    let is_used = |session: &ListedSession| session.message_count > 0 || session.name.is_some();
    let is_wanted = |session: &&ListedSession| is_used(session) && cwd.is_none_or(|cwd| session.cwd == cwd);
    let wanted: Vec<&ListedSession> = sessions.iter().filter(is_wanted).collect();
    let start = match cursor {
        None => 0,
        Some(cursor) => {
            let last = wanted.iter().position(|session| session.id == cursor);
            let last = last.ok_or_else(|| {
                Failure::new(
                    INVALID_PARAMS,
                    "The member cursor is not that of an earlier response",
                )
            })?;
            last + 1
        }
    };
    let page: Vec<&ListedSession> = wanted.iter().skip(start).take(LISTED_SESSIONS).copied().collect();
    let infos: Vec<Value> = page.iter().map(|session| info(session)).collect();
    let mut result = Map::from_iter([("sessions".to_owned(), infos.into())]);
    if start + page.len() < wanted.len()
        && let Some(last) = page.last()
    {
        result.insert("nextCursor".to_owned(), last.id.as_str().into());
    }
    Ok(result.into())
}

fn info(session: &ListedSession) -> Value {
    json!({
        "sessionId": session.id,
        "cwd": session.cwd,
        "title": title(session.name.as_deref().unwrap_or(&session.first_message)),
        "updatedAt": session.modified,
    })
}

/// A title is one line. None if there is no text.
pub(crate) fn title(text: &str) -> Option<String> {
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    Some(line.trim().chars().take(TITLE).collect())
}
