//! Requests about the options of a session, and what else the connection reads of a session: usage, commands, todos.

use serde_json::{Map, Value, json};
use wire::command::{NoParams, PermissionModeParams, SetModelParams, StatsParams, ThinkingParams};
use wire::state::PermissionMode;
use wire::{Reply, SessionCommand, ThinkingLevel};

use crate::config::{LEVEL, MODE, MODEL};
use crate::connection::Connection;
use crate::purpose::{After, Command, Ended, Kind, Purpose, Read};
use crate::rpc::{self, Failure, INTERNAL, INVALID_PARAMS, not_found, session_id};
use crate::usage;

fn mode(word: &str) -> Result<SessionCommand, Failure> {
    let mode = PermissionMode::parse(word).ok_or_else(|| unknown(MODE, word))?;
    Ok(SessionCommand::SetPermissionMode(PermissionModeParams { mode }))
}

fn unknown(option: &str, value: &str) -> Failure {
    let shown: String = value.chars().take(100).collect();
    Failure::new(
        INVALID_PARAMS,
        format!("The option {option} has no value {shown:?}"),
    )
}

/// Reads a member that must be a string.
pub(crate) fn word<'a>(params: &'a Map<String, Value>, name: &str) -> Result<&'a str, Failure> {
    let word = params.get(name).and_then(Value::as_str);
    word.ok_or_else(|| Failure::new(INVALID_PARAMS, format!("The member {name} must be a string")))
}

/// A part of a session that updates describe.
pub(crate) enum Part {
    /// Tokens and cost. The request that has ended gets its response after the update.
    Usage(Option<Ended>),
    /// Slash commands.
    Commands,
    /// MCP servers, which are followed from then on; then the slash commands, which would otherwise wait for the servers.
    Servers,
    /// Todos.
    Plan,
}

impl Connection {
    /// Begins `session/set_mode`.
    pub(crate) fn set_mode(&mut self, id: &Value, params: &Map<String, Value>) -> Result<Command, Failure> {
        let name = session_id(params)?;
        let command = mode(word(params, "modeId")?)?;
        self.command(
            command,
            Some(name),
            Purpose::Config(Read::Changed, name.to_owned(), After::Mode(id.clone())),
        )
    }

    /// Begins `session/set_config_option`.
    pub(crate) fn set_option(&mut self, id: &Value, params: &Map<String, Value>) -> Result<Command, Failure> {
        let name = session_id(params)?;
        let state = self.sessions.get(name).ok_or_else(|| not_found(name))?;
        let value = word(params, "value")?;
        let (option, command) = match word(params, "configId")? {
            MODE => (MODE, mode(value)?),
            MODEL => {
                let (provider, model) = value.split_once('/').ok_or_else(|| unknown(MODEL, value))?;
                let params = SetModelParams {
                    provider: Some(provider.to_owned()),
                    model_id: Some(model.to_owned()),
                };
                (MODEL, SessionCommand::SetModel(params))
            }
            LEVEL => {
                let level = ThinkingLevel::parse(value).filter(|level| state.config.levels.contains(level));
                level.ok_or_else(|| unknown(LEVEL, value))?;
                let level = value.to_owned();
                (LEVEL, SessionCommand::SetThinkingLevel(ThinkingParams { level }))
            }
            other => {
                let shown: String = other.chars().take(100).collect();
                let message = format!("There is no configuration option {shown:?}");
                return Err(Failure::new(INVALID_PARAMS, message));
            }
        };
        let after = After::Option(id.clone(), option);
        self.command(
            command,
            Some(name),
            Purpose::Config(Read::Changed, name.to_owned(), after),
        )
    }

    /// Reads options of a session, and then does what follows.
    pub(crate) fn read_config(
        &mut self,
        read: Read,
        session: &str,
        after: After,
    ) -> Result<Command, Failure> {
        let command = match read {
            Read::Changed | Read::State => SessionCommand::GetState(NoParams {}),
            Read::Levels => SessionCommand::GetAvailableThinkingLevels(NoParams {}),
            Read::Models => SessionCommand::GetAvailableModels(NoParams {}),
        };
        self.command(
            command,
            Some(session),
            Purpose::Config(read, session.to_owned(), after),
        )
    }

    /// Acts on the answer to a command about options.
    pub(crate) fn config(
        &mut self,
        read: Read,
        session: &str,
        mut after: After,
        outcome: &Result<Reply, String>,
    ) -> Option<Command> {
        let (request, opened) = (after.request().cloned(), after.opened().map(str::to_owned));
        let failed = |connection: &mut Self, failure: Failure| {
            connection.give_up(request.as_ref()?, opened.as_deref(), failure)
        };
        let reply = match outcome {
            Ok(reply) => reply,
            Err(error) => {
                let code = if read == Read::Changed {
                    INVALID_PARAMS
                } else {
                    INTERNAL
                };
                return failed(self, Failure::new(code, error.as_str()));
            }
        };
        let Some(state) = self.sessions.get_mut(session) else {
            return failed(self, not_found(session));
        };
        let next = match (read, reply, reply.state()) {
            (Read::Changed, ..) => {
                if matches!(after, After::Option(_, MODEL)) {
                    state.config.fallback = None;
                }
                self.read_config(Read::State, session, after)
            }
            (Read::State, _, Some(read)) => {
                state.config.read_state(read);
                if let After::Opening(opening) = &mut after {
                    opening.updates.extend(usage::stored_plan(read));
                }
                self.read_config(Read::Levels, session, after)
            }
            (Read::Levels, Reply::ThinkingLevels(read), _) => {
                state.config.levels.clone_from(&read.levels);
                return self.after(session, after);
            }
            (Read::Models, Reply::Models(read), _) => {
                state.config.read_models(&read.models);
                self.known_models.clone_from(&read.models);
                self.tell_options(session);
                return self.read(Part::Servers, session);
            }
            _ => Err(Failure::new(
                INTERNAL,
                "The options of the session could not be read",
            )),
        };
        match next {
            Ok(command) => Some(command),
            Err(failure) => failed(self, failure),
        }
    }

    fn after(&mut self, session: &str, after: After) -> Option<Command> {
        let known = &self.known_models;
        let state = self.sessions.get_mut(session)?;
        if state.config.has_no_models() {
            state.config.read_models(known);
        }
        let (options, modes) = (state.config.options(), state.config.modes());
        match after {
            After::Opening(opening) if opening.is_cancelled => {
                self.give_up(&opening.request, opening.opened(), Failure::cancelled())
            }
            After::Opening(opening) => {
                state.config.told = options.clone();
                state.config.told_mode = state.config.mode;
                let result = opening.result(options, modes);
                let response = rpc::response(&opening.request, Ok(result));
                let updates = opening.updates.iter();
                let updates = updates.map(|update| rpc::update(session, update));
                // The client learns the id of a copy from the response.
                if opening.kind == Kind::Fork {
                    self.out.push(response);
                    self.out.extend(updates);
                } else {
                    self.out.extend(updates);
                    self.out.push(response);
                }
                // Local servers may take a while to list their models, so the response does not wait for them.
                self.read_config(Read::Models, session, After::Update).ok()
            }
            After::Option(request, _) => {
                state.config.told = options.clone();
                self.tell_mode(session);
                let result = json!({"configOptions": options});
                self.out.push(rpc::response(&request, Ok(result)));
                None
            }
            After::Mode(request) => {
                state.config.told_mode = state.config.mode;
                self.tell_options(session);
                self.out.push(rpc::response(&request, Ok(json!({}))));
                None
            }
            After::Update => {
                self.tell_mode(session);
                self.tell_options(session);
                None
            }
        }
    }

    /// Sends the permission mode if the client does not have it.
    fn tell_mode(&mut self, session: &str) {
        let Some(state) = self.sessions.get_mut(session) else {
            return;
        };
        let mode = state.config.mode;
        if std::mem::replace(&mut state.config.told_mode, mode) != mode {
            let update = json!({"sessionUpdate": "current_mode_update", "currentModeId": mode.as_str()});
            self.out.push(rpc::update(session, &update));
        }
    }

    /// Sends the options if the client does not have them.
    pub(crate) fn tell_options(&mut self, session: &str) {
        let Some(state) = self.sessions.get_mut(session) else {
            return;
        };
        let options = state.config.options();
        if options != state.config.told {
            state.config.told = options.clone();
            let update = json!({"sessionUpdate": "config_option_update", "configOptions": options});
            self.out.push(rpc::update(session, &update));
        }
    }

    /// Reads a part of a session, for an update. `None` for an unknown session.
    pub(crate) fn read(&mut self, part: Part, session: &str) -> Option<Command> {
        let name = || session.to_owned();
        let (command, purpose) = match part {
            Part::Usage(ended) => {
                let params = StatsParams { by_model: false };
                (
                    SessionCommand::GetSessionStats(params),
                    Purpose::Usage(name(), ended),
                )
            }
            Part::Commands => (
                SessionCommand::GetCommands(NoParams {}),
                Purpose::Commands(name()),
            ),
            Part::Servers => (
                SessionCommand::GetMcpServers(NoParams {}),
                Purpose::Commands(name()),
            ),
            Part::Plan => (SessionCommand::GetState(NoParams {}), Purpose::Plan(name())),
        };
        self.command(command, Some(session), purpose).ok()
    }
}
