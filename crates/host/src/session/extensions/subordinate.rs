//! Sessions that an extension opens beside its own (`createAgentSession` of pi's SDK): the same agent with other tools and
//! texts, spoken to in the commands of the protocol, heard by the extension alone. They end with the session they belong to.
//!
//! `session.create` opens one, `session.command` is a command to it, `session.frame` an answer to a question of it,
//! `session.dispose` ends it. Its events go to the extension as `session_event`.

use std::collections::HashMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use config::{Choice, ExtraPath, Scope};
use door::{DoorError, Doors};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc::Receiver;
use tools::{Toolbox, pattern::fits};
use wire::hosted::Frame;
use wire::{Command, Reply, Response, SessionCommand, ThinkingLevel};

use crate::agent::{Agent, SessionHome};
use crate::limits;
use crate::mail::{Mail, Mailbox, Slot, mailbox};
use crate::off_thread::off_thread;
use crate::outbox::{ClientId, Origin, Outgoing};
use crate::strings;

use super::super::{Opening, Session};

/// Those of a session, by the handle that the extension chose. To drop one ends it.
#[derive(Default)]
pub(super) struct Subordinates {
    /// With the place of the process that the extension is in.
    open: HashMap<(usize, String), Slot>,
}

impl Subordinates {
    /// Are there none?
    pub(super) fn are_none(&self) -> bool {
        self.open.is_empty()
    }

    /// Ends all of them.
    pub(super) fn dispose(&mut self) {
        self.open.clear();
    }

    /// Ends those of the extensions in one process.
    pub(super) fn dispose_of(&mut self, place: usize) {
        self.open.retain(|(at, _), _| *at != place);
    }
}

/// What an extension wants of a session.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Wanted {
    session: String,
    cwd: Option<String>,
    /// Kept in a file among the user's sessions.
    persist: bool,
    session_file: Option<PathBuf>,
    provider: Option<String>,
    model_id: Option<String>,
    thinking_level: Option<String>,
    tools: Option<Vec<String>>,
    exclude_tools: Vec<String>,
    /// `all` or `builtin`.
    no_tools: Option<String>,
    system_prompt: Option<String>,
    append_system_prompt: Vec<String>,
    no_context_files: bool,
    no_skills: bool,
    no_prompt_templates: bool,
    skill_paths: Vec<PathBuf>,
}

impl Session {
    /// What an extension wants of sessions of its own. Commands are answered by them.
    pub(super) async fn subordinate(
        &mut self,
        (place, id): (usize, Option<u64>),
        method: &str,
        params: Value,
    ) -> Result<Option<Value>, String> {
        let handle = params.get("session").and_then(Value::as_str).unwrap_or_default();
        match method {
            "session.create" => self.open_subordinate(place, params).await.map(Some),
            "session.dispose" => {
                let key = (place, handle.to_owned());
                self.extensions.subordinates.open.remove(&key);
                Ok(Some(Value::Null))
            }
            "session.command" | "session.frame" => {
                let gone = || format!("Session {handle} is not open");
                let open = &self.extensions.subordinates.open;
                let slot = open.get(&(place, handle.to_owned())).ok_or_else(gone)?;
                let (member, is_frame) = match method {
                    "session.frame" => ("frame", true),
                    _ => ("command", false),
                };
                let line = params.get(member).unwrap_or(&Value::Null);
                let mail = if is_frame {
                    frame(line)?
                } else {
                    command(id, line)?
                };
                if !slot.try_send(mail) {
                    return Err(format!("Session {handle} takes no more commands now"));
                }
                Ok(is_frame.then_some(Value::Null))
            }
            other => Err(format!("{other} is not available here")),
        }
    }

    async fn open_subordinate(&mut self, place: usize, params: Value) -> Result<Value, String> {
        let wanted: Wanted = serde_json::from_value(params).map_err(|error| error.to_string())?;
        let door = self.extensions.door.clone().ok_or("the extension is gone")?;
        let open = &mut self.extensions.subordinates.open;
        open.retain(|_, slot| !slot.is_closed());
        if open.len() >= limits::SUBORDINATES {
            return Err(format!(
                "An extension's session may have {} sessions beside it",
                limits::SUBORDINATES
            ));
        }
        let key = (place, wanted.session.clone());
        if wanted.session.is_empty() || open.contains_key(&key) {
            return Err("a session needs a handle of its own".to_owned());
        }
        let handle = wanted.session.clone();
        let agent = self.agent_of(&wanted)?;
        let (outbox, outgoing) = self.outbox.for_another(limits::OUTBOX);
        let opening = match wanted.session_file {
            Some(file) => Opening::File(agent.cwd.join(file)),
            None => Opening::New { id: None },
        };
        let started = off_thread(move || Session::start(agent, outbox, &opening)).await;
        let session = started.map_err(|error| error.to_string())?;
        let state = serde_json::to_value(session.session_state()).map_err(|error| error.to_string())?;
        let told = json!({
            "state": state,
            "cwd": session.cwd.to_string_lossy(),
            "messages": session.machine.messages(),
            "activeTools": session.tools.active_names(),
        });
        let (slot, mailbox) = mailbox();
        self.extensions.subordinates.open.insert(key, slot);
        tokio::task::spawn_local(run(session, mailbox));
        let owner = Owner {
            doors: door,
            place,
            session: self.extensions.handle.clone(),
        };
        tokio::spawn(forward(outgoing, owner, handle));
        Ok(told)
    }

    /// The agent of such a session. It may do no more than the one that it belongs to.
    fn agent_of(&self, wanted: &Wanted) -> Result<Arc<Agent>, String> {
        let cwd = match &wanted.cwd {
            Some(cwd) => self.cwd.join(cwd),
            None => self.cwd.clone(),
        };
        if !cwd.is_dir() {
            return Err(crate::strings::no_such_directory(&cwd));
        }
        let mut agent = self.agent.maker.make(&cwd);
        let options = &mut agent.options;
        options.extensions = Choice {
            only_named: true,
            ..Choice::default()
        };
        if !self.permitting.mode().is_off() {
            options.permission_mode = Some(self.permitting.mode());
        }
        if !wanted.persist && wanted.session_file.is_none() {
            options.sessions = SessionHome::Memory;
        }
        let start = &mut options.start;
        if let (Some(provider), Some(model)) = (&wanted.provider, &wanted.model_id) {
            (start.provider, start.model) = (Some(provider.clone()), Some(model.clone()));
        } else {
            let (provider, model) = (self.model.provider.clone(), self.model.id.clone());
            (start.provider, start.model) = (Some(provider), Some(model));
        }
        if let Some(level) = wanted.thinking_level.as_deref().and_then(ThinkingLevel::parse) {
            start.thinking = Some(level);
        }
        choose_tools(options, wanted);
        let resources = &mut options.resources;
        resources.context_files &= !wanted.no_context_files;
        resources.skills &= !wanted.no_skills;
        resources.templates &= !wanted.no_prompt_templates;
        let skills = wanted.skill_paths.iter().map(|path| ExtraPath {
            path: path.clone(),
            scope: Scope::Temporary,
        });
        resources.skill_paths.extend(skills);
        if wanted.system_prompt.is_some() || !wanted.append_system_prompt.is_empty() {
            resources.system_prompt.clone_from(&wanted.system_prompt);
            resources
                .append_system_prompt
                .clone_from(&wanted.append_system_prompt);
            resources.literal = true;
        }
        Ok(Arc::new(agent))
    }
}

/// Which tools the model may call. What the user switched off stays off.
fn choose_tools(options: &mut crate::agent::Options, wanted: &Wanted) {
    let infos = Toolbox::infos();
    let allowed = |name: &str| {
        let only = options.only_tools.as_ref();
        only.is_none_or(|only| only.iter().any(|item| fits(item, name)))
            && !options.excluded_tools.iter().any(|item| fits(item, name))
    };
    let edits = |list: &[String]| list.iter().all(|item| item.starts_with(['+', '-']));
    match (&wanted.tools, wanted.no_tools.as_deref()) {
        (Some(list), _) if !list.is_empty() && edits(list) => {
            for item in list {
                let (sign, name) = item.split_at_checked(1).unwrap_or_default();
                options.tools.retain(|tool| tool != name);
                if sign == "+" && infos.iter().any(|info| info.spec.name == name) {
                    options.tools.push(name.to_owned());
                }
            }
        }
        (Some(list), _) => {
            let names = infos.iter().map(|info| info.spec.name.as_str());
            let names = names.filter(|name| list.iter().any(|item| fits(item, name)) && allowed(name));
            options.tools = names.map(str::to_owned).collect();
            options.only_tools = Some(list.clone());
        }
        (None, Some("all")) => {
            options.tools.clear();
            options.only_tools = Some(Vec::new());
        }
        (None, Some(_)) => options.tools.clear(),
        (None, None) => {}
    }
    options
        .excluded_tools
        .extend(wanted.exclude_tools.iter().cloned());
    let excluded = &options.excluded_tools;
    options
        .tools
        .retain(|name| !excluded.iter().any(|item| fits(item, name)));
}

/// Boxed, since a session may hold sessions.
fn run(session: Session, mailbox: Mailbox) -> Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(session.run(mailbox))
}

/// A command as mail. The id of the extension's call is that of the command, so that the response finds back.
fn command(id: Option<u64>, line: &Value) -> Result<Mail, String> {
    let name = line.get("type").and_then(Value::as_str).unwrap_or_default();
    let parsed = Command::parse(name, &line.to_string()).map_err(|error| error.to_string())?;
    let command = match parsed {
        Command::Manager(_)
        | Command::Connection(_)
        | Command::Session(
            SessionCommand::CloseSession(_)
            | SessionCommand::SetProjectTrust(_)
            | SessionCommand::SetPermissionMode(_),
        ) => return Err(strings::not_available(name)),
        Command::Session(command) => command,
    };
    let origin = Origin {
        client: ClientId::default(),
        id: id.and_then(|id| RawValue::from_string(id.to_string()).ok()),
        command: command.name(),
    };
    Ok(Mail::Command(origin, command))
}

fn frame(line: &Value) -> Result<Mail, String> {
    let name = line.get("type").and_then(Value::as_str).unwrap_or_default();
    let frame = Frame::parse(name, &line.to_string());
    frame
        .map(Mail::Frame)
        .ok_or_else(|| format!("{name} is no frame"))
}

/// Carries what a session says to the extension until it has ended.
async fn forward(mut outgoing: Receiver<Outgoing>, owner: Owner, handle: String) {
    while let Some(item) = outgoing.recv().await {
        match item {
            Outgoing::Event(event) => {
                let event = json!({"session": handle, "event": event.as_ref()});
                // What is no JSON cannot be told.
                let _told = owner.tell(&event);
            }
            Outgoing::Response(_, response) => answer(&owner.doors, response),
            Outgoing::Connection(..) => {}
            Outgoing::Flush(done) => drop(done.send(())),
        }
    }
    let ended = json!({"session": handle, "ended": true});
    let _told = owner.tell(&ended);
}

/// The extension that opened a session, and the session that it belongs to.
struct Owner {
    doors: Doors,
    place: usize,
    session: String,
}

impl Owner {
    fn tell(&self, event: &Value) -> Result<(), DoorError> {
        self.doors
            .tell_at(self.place, &self.session, "session_event", event)
    }
}

fn answer(door: &Doors, response: Response) {
    let Some(id) = response.id.and_then(|id| id.get().parse().ok()) else {
        return;
    };
    match response.outcome {
        Ok(Reply::Nothing) => drop(door.answer(id, &Value::Null)),
        Ok(reply) => drop(door.answer(id, &reply)),
        Err(error) => door.refuse(id, &error),
    }
}
