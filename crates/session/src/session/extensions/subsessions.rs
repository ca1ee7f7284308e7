//! Sessions that an extension opens for itself (`createAgentSession` of pi's SDK): the same agent with other tools and texts. The
//! extension alone sends them commands and receives their events. They end with the session that they belong to.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use config::{Choice, ExtraPath, Scope};
use extensions::{ExtensionPool, ProcessError};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc::Receiver;
use tools::{Toolbox, pattern::fits};
use wire::hosted::Frame;
use wire::state::PermissionMode;
use wire::{Command, Model, Reply, Response, SessionCommand, ThinkingLevel};

use crate::factory::{Agent, Options, SessionHome};
use crate::limits;
use crate::outbox::{ClientId, Origin, Outgoing};
use crate::requests::{RequestReceiver, RequestSender, SessionRequest, request_queue};
use crate::strings;

use super::links::ExtensionLinks;
use super::request::SubsessionMethod;

/// The open sessions of a session's extensions. A dropped sender ends its session.
#[derive(Default)]
pub(crate) struct Subsessions {
    /// By the place of the process and the handle that the extension chose.
    open: HashMap<(usize, String), RequestSender>,
}

/// The parameters of `session.create`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SubsessionOptions {
    session: String,
    pub(crate) cwd: Option<String>,
    /// Kept in a file among the user's sessions.
    persist: bool,
    pub(crate) session_file: Option<PathBuf>,
    /// Model and thinking level.
    #[serde(flatten)]
    model: ModelOptions,
    #[serde(flatten)]
    tools: ToolOptions,
    #[serde(flatten)]
    texts: TextOptions,
}

/// The model of a subsession.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ModelOptions {
    provider: Option<String>,
    model_id: Option<String>,
    thinking_level: Option<String>,
}

/// The tools of a subsession.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ToolOptions {
    tools: Option<Vec<String>>,
    exclude_tools: Vec<String>,
    /// `all` or `builtin`.
    no_tools: Option<String>,
}

/// The texts that a subsession loads.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TextOptions {
    system_prompt: Option<String>,
    append_system_prompt: Vec<String>,
    no_context_files: bool,
    no_skills: bool,
    no_prompt_templates: bool,
    skill_paths: Vec<PathBuf>,
}

impl Subsessions {
    /// Returns true if no session is open.
    pub(super) fn are_none(&self) -> bool {
        self.open.is_empty()
    }

    /// Ends all of them.
    pub(super) fn dispose(&mut self) {
        self.open.clear();
    }

    /// The permission mode of the owner changes, and with it that of its sessions. A session that cannot be told ends.
    pub(crate) fn set_mode(&mut self, mode: PermissionMode) {
        self.open.retain(|_, sender| sender.set_mode(mode));
    }

    /// Ends the sessions of the extensions in one process.
    pub(super) fn dispose_of(&mut self, place: usize) {
        self.open.retain(|(at, _), _| *at != place);
    }

    /// Checks that a session with these options may be opened.
    ///
    /// # Errors
    /// A message for the extension if it has too many sessions, or the handle is not free.
    pub(crate) fn check(&mut self, place: usize, options: &SubsessionOptions) -> Result<(), String> {
        // Sessions that ended by themselves leave their places.
        self.open.retain(|_, sender| !sender.is_closed());
        let most = limits::SUBORDINATES;
        if self.open.len() >= most {
            return Err(format!(
                "An extension's session may have {most} sessions beside it"
            ));
        }
        // With the place, since extensions of two processes may choose the same handle.
        let key = (place, options.session.clone());
        if options.session.is_empty() || self.open.contains_key(&key) {
            return Err("a session needs a handle of its own".to_owned());
        }
        Ok(())
    }

    /// Takes a session that was opened. Its events go to the extension. Returns the requests that it has to serve.
    pub(crate) fn insert(
        &mut self,
        links: &ExtensionLinks,
        place: usize,
        handle: &str,
        outgoing: Receiver<Outgoing>,
    ) -> Option<RequestReceiver> {
        let owner = Owner {
            pool: links.pool()?.clone(),
            place,
            session: links.handle().to_owned(),
        };
        let (sender, requests) = request_queue();
        self.open.insert((place, handle.to_owned()), sender);
        tokio::spawn(forward(outgoing, owner, handle.to_owned()));
        Some(requests)
    }

    /// Sends a command or a frame to a session, or ends it. `None` if the session answers the command itself.
    ///
    /// # Errors
    /// A message for the extension if the session is not open, or does not accept the line.
    pub(crate) fn request(
        &mut self,
        place: usize,
        id: Option<u64>,
        method: SubsessionMethod,
        params: &Value,
    ) -> Result<Option<Value>, String> {
        let handle = params.get("session").and_then(Value::as_str).unwrap_or_default();
        let key = (place, handle.to_owned());
        if method == SubsessionMethod::Dispose {
            // Also without such a session: it may have ended by itself.
            self.open.remove(&key);
            return Ok(Some(Value::Null));
        }
        let sender = self
            .open
            .get(&key)
            .ok_or_else(|| format!("Session {handle} is not open"))?;
        let line = |member: &str| params.get(member).unwrap_or(&Value::Null);
        let is_frame = method == SubsessionMethod::Frame;
        let request = if is_frame {
            frame(line("frame"))?
        } else {
            command(id, line("command"))?
        };
        // Without waiting: an extension that floods one of its sessions must not stop the session that it belongs to.
        if !sender.try_send(request) {
            return Err(format!("Session {handle} takes no more commands now"));
        }
        Ok(is_frame.then_some(Value::Null))
    }
}

impl SubsessionOptions {
    /// The handle that the extension chose.
    pub(crate) fn handle(&self) -> &str {
        &self.session
    }

    /// Configures the agent of a subsession. It may do no more than the session that it belongs to.
    pub(crate) fn configure(&self, mut agent: Agent, mode: PermissionMode, model: &Model) -> Arc<Agent> {
        let options = &mut agent.options;
        // Without extensions: they could open sessions of their own, one inside the other.
        options.extensions = Choice {
            only_named: true,
            ..Choice::default()
        };
        // A session without permissions has no mode to pass on.
        if !mode.is_off() {
            options.permission_mode = Some(mode);
        }
        if !self.persist && self.session_file.is_none() {
            options.sessions = SessionHome::Memory;
        }
        let start = &mut options.start;
        let (provider, id) = match (&self.model.provider, &self.model.model_id) {
            (Some(provider), Some(id)) => (provider, id),
            // Half a name is no model: the session begins with that of its owner.
            _ => (&model.provider, &model.id),
        };
        (start.provider, start.model) = (Some(provider.clone()), Some(id.clone()));
        let level = self.model.thinking_level.as_deref();
        if let Some(level) = level.and_then(ThinkingLevel::parse) {
            start.thinking = Some(level);
        }
        choose_tools(options, &self.tools);
        self.texts.apply(options);
        agent.into_subordinate()
    }
}

impl TextOptions {
    fn apply(&self, options: &mut Options) {
        let resources = &mut options.resources;
        // Only switched off: what the user left out stays out.
        resources.context_files &= !self.no_context_files;
        resources.skills &= !self.no_skills;
        resources.templates.load &= !self.no_prompt_templates;
        let skills = self.skill_paths.iter().map(|path| ExtraPath {
            path: path.clone(),
            scope: Scope::Temporary,
        });
        resources.skill_paths.extend(skills);
        if self.system_prompt.is_some() || !self.append_system_prompt.is_empty() {
            resources.system_prompt.clone_from(&self.system_prompt);
            resources
                .append_system_prompt
                .clone_from(&self.append_system_prompt);
            // These are texts of the extension. A text of the command line may name a file instead.
            resources.literal = true;
        }
    }
}

/// Chooses the tools that the model may call. Tools that the user switched off stay off.
fn choose_tools(options: &mut Options, wanted: &ToolOptions) {
    let infos = Toolbox::infos();
    // The extension names the tools: the tools that a stored session declared must not come back.
    if wanted.tools.is_some() || wanted.no_tools.is_some() {
        options.tool_filter.restored = None;
    }
    // `+name` and `-name` change the active tools, plain names replace them.
    let edits = |list: &[String]| list.iter().all(|item| item.starts_with(['+', '-']));
    match (&wanted.tools, wanted.no_tools.as_deref()) {
        // An empty list has no edits: it leaves no tool.
        (Some(list), _) if !list.is_empty() && edits(list) => {
            for item in list {
                let (sign, name) = item.split_at_checked(1).unwrap_or_default();
                // For `+name`, too, so that no name is in the list twice.
                options.tools.retain(|tool| tool != name);
                let is_known = infos.iter().any(|info| info.spec.name == name);
                if sign == "+" && is_known && options.allows_tool(name) {
                    options.tools.push(name.to_owned());
                }
            }
        }
        (Some(list), _) => {
            let names = infos.iter().map(|info| info.spec.name.as_str());
            let names = names.filter(|name| list.iter().any(|item| fits(item, name)));
            let names = names.filter(|name| options.allows_tool(name));
            options.tools = names.map(str::to_owned).collect();
            // In addition to the list of the user, whose limit must not get wider.
            options.tool_filter.only.push(list.clone());
        }
        (None, Some("all")) => {
            options.tools.clear();
            // A list without names lets no tool through, those of MCP servers included.
            options.tool_filter.only.push(Vec::new());
        }
        (None, Some(_)) => options.tools.clear(),
        (None, None) => {}
    }
    options
        .tool_filter
        .excluded
        .extend(wanted.exclude_tools.iter().cloned());
    let excluded = &options.tool_filter.excluded;
    options
        .tools
        .retain(|name| !excluded.iter().any(|item| fits(item, name)));
}

/// A command to a subsession. It has the id of the extension's request, so that the response answers it.
fn command(id: Option<u64>, line: &Value) -> Result<SessionRequest, String> {
    let name = line.get("type").and_then(Value::as_str).unwrap_or_default();
    let parsed = Command::parse(name, &line.to_string()).map_err(|error| error.to_string())?;
    let command = match parsed {
        // Other sessions are none of the extension's business; trust and permissions are the user's to change.
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
    Ok(SessionRequest::Command(origin, command))
}

fn frame(line: &Value) -> Result<SessionRequest, String> {
    let name = line.get("type").and_then(Value::as_str).unwrap_or_default();
    let frame = Frame::parse(name, &line.to_string());
    frame
        .map(SessionRequest::Frame)
        .ok_or_else(|| format!("{name} is no frame"))
}

/// Sends the events and responses of a session to its extension until the session has ended.
async fn forward(mut outgoing: Receiver<Outgoing>, owner: Owner, handle: String) {
    // Until the channel is closed, which is when the session has ended: its last events count.
    while let Some(item) = outgoing.recv().await {
        match item {
            Outgoing::Event(event) => {
                let event = json!({"session": handle, "event": event.as_ref()});
                // A value that is no JSON cannot be sent.
                let _told = owner.tell(&event);
            }
            Outgoing::Response(_, response) => answer(&owner.pool, response),
            Outgoing::Connection(..) | Outgoing::OptionsChanged | Outgoing::PendingWakeup(_) => {}
            Outgoing::Flush(done) => drop(done.send(())),
        }
    }
    let ended = json!({"session": handle, "ended": true});
    let _told = owner.tell(&ended);
}

/// The extension that opened a session, and the session that it belongs to.
struct Owner {
    pool: ExtensionPool,
    place: usize,
    session: String,
}

impl Owner {
    fn tell(&self, event: &Value) -> Result<(), ProcessError> {
        self.pool
            .tell_at(self.place, &self.session, "session_event", event)
    }
}

fn answer(process: &ExtensionPool, response: Response) {
    // A call without an id gets no response (docs/reference/extension-protocol.md).
    let Some(id) = response.id.and_then(|id| id.get().parse().ok()) else {
        return;
    };
    match response.outcome {
        Ok(Reply::Nothing) => drop(process.answer(id, &Value::Null)),
        Ok(reply) => drop(process.answer(id, &reply)),
        Err(error) => process.refuse(id, &error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subsession_options_read_all_groups() {
        let options: SubsessionOptions = serde_json::from_value(json!({
            "session": "s1", "persist": true, "provider": "p", "modelId": "m", "tools": ["read"],
            "excludeTools": ["bash"], "systemPrompt": "x", "noSkills": true,
        }))
        .unwrap();
        assert_eq!((options.handle(), options.persist), ("s1", true));
        assert_eq!(options.model.model_id.as_deref(), Some("m"));
        assert_eq!(options.tools.tools, Some(vec!["read".to_owned()]));
        assert_eq!(options.tools.exclude_tools, ["bash"]);
        assert!(options.texts.no_skills && options.texts.system_prompt.as_deref() == Some("x"));
    }

    #[tokio::test]
    async fn mode_of_owner_reaches_open_subsessions() {
        let mut sessions = Subsessions::default();
        let (sender, mut requests) = request_queue();
        sessions.open.insert((0, "a".to_owned()), sender);
        sessions.set_mode(PermissionMode::ReadOnly);
        match requests.next(false).await {
            Some(SessionRequest::Command(_, SessionCommand::SetPermissionMode(params))) => {
                assert_eq!(params.mode, PermissionMode::ReadOnly);
            }
            other => panic!("{other:?}"),
        }
        for _ in 0..limits::MAILBOX {
            sessions.set_mode(PermissionMode::Ask);
        }
        assert!(!sessions.are_none());
        sessions.set_mode(PermissionMode::ReadOnly);
        assert!(sessions.are_none(), "its queue is full, so it ends");
    }

    #[tokio::test]
    async fn subsession_handle_is_free_after_dispose() {
        let mut sessions = Subsessions::default();
        let options: SubsessionOptions = serde_json::from_value(json!({"session": "a"})).unwrap();
        assert!(sessions.check(0, &options).is_ok());
        let (sender, mut requests) = request_queue();
        sessions.open.insert((0, "a".to_owned()), sender);
        assert!(sessions.check(0, &options).is_err() && sessions.check(1, &options).is_ok());
        let command = json!({"session": "a", "command": {"type": "abort"}});
        let sent = sessions.request(0, Some(4), SubsessionMethod::Command, &command);
        assert_eq!(sent, Ok(None));
        assert!(requests.next(false).await.is_some());
        // Trust and permissions are decided by the session that it belongs to.
        let command = json!({"session": "a", "command": {"type": "set_permission_mode", "mode": "off"}});
        assert!(
            sessions
                .request(0, Some(5), SubsessionMethod::Command, &command)
                .is_err()
        );
        let closed = sessions.request(0, None, SubsessionMethod::Dispose, &json!({"session": "a"}));
        assert_eq!(closed, Ok(Some(json!(null))));
        assert!(sessions.check(0, &options).is_ok() && sessions.are_none());
    }
}
