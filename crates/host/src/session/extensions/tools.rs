//! Tools of extensions: what the model is told of them, and how they are run.

use std::collections::HashMap;
use std::sync::Arc;

use config::resources::CommandInfo;
use door::line::Tool;
use door::{Asking, DoorError};
use permissions::{Proposal, Source};
use pinion_core::Prepared;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tools::pattern::fits;
use tools::{ForeignSchema, Toolbox};
use wire::{ToolCall, ToolResult, ToolSpec};

use crate::limits;

use super::super::Session;
use super::super::calls::Reporter;
use super::super::hosted::result;

/// A tool of an extension.
struct Their {
    extension: String,
    tool: Tool,
    schema: ForeignSchema,
}

/// The tools of a session's extensions, and the calls of the current batch.
#[derive(Default)]
pub(in crate::session) struct Theirs {
    tools: Vec<Arc<Their>>,
    prepared: HashMap<usize, Call>,
    /// All calls of the batch, whoever runs them.
    calls: HashMap<usize, ToolCall>,
}

/// A call that waits for its turn to run.
struct Call {
    tool: Arc<Their>,
    id: String,
    args: Map<String, Value>,
}

impl Theirs {
    pub(super) fn names(&self) -> Vec<String> {
        self.tools.iter().map(|their| their.tool.name.clone()).collect()
    }

    /// Is it a tool of an extension?
    pub(in crate::session) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    fn find(&self, name: &str) -> Option<&Arc<Their>> {
        self.tools.iter().find(|their| their.tool.name == name)
    }

    /// The extension that wants to see the arguments of calls of a tool before they are checked.
    fn preparer(&self, name: &str) -> Option<&str> {
        let their = self.find(name).filter(|their| their.tool.prepares)?;
        Some(&their.extension)
    }

    /// Is a call with this id one of the batch?
    pub(super) fn is_under_way(&self, id: &str) -> bool {
        self.calls.values().any(|call| call.id == id)
    }

    pub(super) fn remember(&mut self, slot: usize, call: &ToolCall) {
        self.calls.insert(slot, call.clone());
    }

    pub(super) fn call(&self, slot: usize) -> Option<&ToolCall> {
        self.calls.get(&slot)
    }

    pub(super) fn args(&self, slot: usize) -> Option<&Map<String, Value>> {
        self.prepared.get(&slot).map(|call| &call.args)
    }

    pub(super) fn change_args(&mut self, slot: usize, args: &Map<String, Value>) {
        if let Some(call) = self.prepared.get_mut(&slot) {
            call.args.clone_from(args);
        }
    }

    /// Forgets what was prepared for a batch.
    pub(in crate::session) fn reset(&mut self) {
        self.prepared.clear();
        self.calls.clear();
    }

    /// Checks a call and keeps it, if it is one of theirs.
    pub(in crate::session) fn prepare(&mut self, slot: usize, call: &ToolCall) -> Option<Prepared> {
        let tool = Arc::clone(self.find(&call.name)?);
        Some(match tool.schema.prepare(&call.name, &call.arguments) {
            Ok(args) => {
                let id = call.id.clone();
                self.prepared.insert(slot, Call { tool, id, args });
                Prepared::Run
            }
            Err(error) => Prepared::Refused(ToolResult::error(error)),
        })
    }

    /// A prepared call as it is to be permitted.
    pub(in crate::session) fn proposal_at(&self, slot: usize) -> Option<Proposal<'_>> {
        let Call { tool, args, .. } = self.prepared.get(&slot)?;
        Some(Proposal {
            tool: &tool.tool.name,
            source: Source::Extension(tool.extension.clone()),
            description: &tool.tool.description,
            schema: Some(tool.schema.schema()),
            args,
        })
    }

    /// What the model is told of those among `active`.
    pub(in crate::session) fn specs(&self, active: &[String]) -> impl Iterator<Item = ToolSpec> {
        let tools = self
            .tools
            .iter()
            .filter(|their| active.contains(&their.tool.name));
        tools.map(|their| ToolSpec {
            name: their.tool.name.clone(),
            description: their.tool.description.clone(),
            parameters: their.schema.schema().clone(),
            prefers_strict: false,
        })
    }

    /// Name, line and rules for the system prompt of those among `active`.
    pub(in crate::session) fn hints(&self, active: &[String]) -> Vec<(String, Option<String>, Vec<String>)> {
        let tools = self
            .tools
            .iter()
            .filter(|their| active.contains(&their.tool.name));
        let line = |text: &String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let hint = |their: &Arc<Their>| {
            let tool = &their.tool;
            (
                tool.name.clone(),
                tool.prompt_snippet.as_ref().map(line),
                tool.prompt_guidelines.clone(),
            )
        };
        tools.map(hint).collect()
    }
}

impl super::Extended {
    /// Has the extension of a tool look at the arguments of a call, if it wants to.
    pub(super) fn ask_to_prepare(&self, call: &ToolCall) -> Option<Result<Asking, DoorError>> {
        let extension = self.tools.preparer(&call.name)?;
        let params = json!({"extension": extension, "name": call.name, "args": call.arguments});
        let door = self.door.as_ref()?;
        Some(door.call(&self.handle, "tool.prepare", &params, None))
    }
}

impl Session {
    /// What extensions registered has changed; `old` are the names of the tools they had before.
    pub(super) fn take_registrations(&mut self, old: &[String]) {
        let extended = &mut self.extensions;
        let mut tools: Vec<Arc<Their>> = Vec::new();
        for extension in &extended.registered {
            for tool in extension.tools.iter().take(limits::REGISTRATIONS) {
                // The first one of a name counts, as with commands.
                if tools.iter().all(|known| known.tool.name != tool.name) {
                    tools.push(Arc::new(Their {
                        extension: extension.path.clone(),
                        schema: ForeignSchema::new(tool.parameters.clone()),
                        tool: tool.clone(),
                    }));
                }
            }
        }
        extended.tools.tools = tools;
        extended.state.mark_stale();
        self.system_prompt = None;
        let options = &self.agent.options;
        let theirs = &self.extensions.tools;
        self.active_tools
            .retain(|name| !old.contains(name) || theirs.has(name) || options.tools.contains(name));
        for name in theirs.names() {
            let named = |list: &[String]| list.iter().any(|item| fits(item, &name));
            let may = options.only_tools.as_ref().is_none_or(|only| named(only));
            let is_new = !old.contains(&name) && !self.active_tools.contains(&name);
            if may && is_new && !named(&options.excluded_tools) {
                self.active_tools.push(name);
            }
        }
    }

    /// All tools, active or not, as extensions see them.
    pub(in crate::session) fn all_tools(&self) -> Vec<Value> {
        let theirs = &self.extensions.tools;
        let infos = Toolbox::infos();
        let own = infos.iter().filter(|info| !theirs.has(&info.spec.name));
        let own = own.map(|info| {
            json!({
                "name": info.spec.name,
                "description": info.spec.description,
                "parameters": info.spec.parameters,
                "promptGuidelines": info.guidelines,
                "source": {"path": format!("<builtin:{}>", info.spec.name), "source": "builtin", "scope": "temporary", "origin": "top-level"},
            })
        });
        let theirs = theirs.tools.iter().map(|their| {
            json!({
                "name": their.tool.name,
                "description": their.tool.description,
                "parameters": their.tool.parameters,
                "promptGuidelines": their.tool.prompt_guidelines,
                "source": {"path": their.extension, "source": "extension", "scope": "user", "origin": "top-level"},
            })
        });
        own.chain(theirs).chain(self.mcp.tools().described()).collect()
    }

    /// What can be called with a slash: commands of extensions, then templates and skills.
    pub(in crate::session) fn all_commands(&self) -> Vec<Value> {
        let extended = &self.extensions;
        let mut commands: Vec<CommandInfo> = Vec::new();
        for extension in &extended.registered {
            let place = |path: &String| {
                let mut found = extended.found.iter();
                found
                    .find(|found| found.source.path == *path)
                    .map(|found| found.info.clone())
            };
            let given = || extension.given.as_ref().and_then(place);
            let Some(info) = place(&extension.path).or_else(given) else {
                continue;
            };
            for command in extension.commands.iter().take(limits::REGISTRATIONS) {
                if commands.iter().all(|known| known.name != command.name) {
                    commands.push(CommandInfo::of_extension(command, &info));
                }
            }
        }
        commands.extend(self.resources.commands());
        commands.extend(self.mcp.commands());
        commands
            .iter()
            .filter_map(|command| serde_json::to_value(command).ok())
            .collect()
    }
    /// Runs a prepared call of theirs beside the session. False: it is none.
    pub(in crate::session) fn run_theirs(&mut self, slot: usize) -> bool {
        let Some(call) = self.extensions.tools.prepared.remove(&slot) else {
            return false;
        };
        self.sync_state();
        let reporter = self.calls.reporter(slot);
        let (updates, news) = mpsc::channel(door::limits::UPDATES);
        let params = json!({
            "extension": call.tool.extension,
            "name": call.tool.tool.name,
            "toolCallId": call.id,
            "args": call.args,
        });
        let extended = &self.extensions;
        let asking = match &extended.door {
            Some(door) => door.call(&extended.handle, "tool.execute", &params, Some(updates)),
            None => Err(DoorError::Gone("it has just ended".to_owned())),
        };
        tokio::spawn(execute(reporter, asking, news));
        true
    }
}

/// Waits for the end of a call and reports each step. A call that was cancelled and does not end in time is given up.
async fn execute(reporter: Reporter, asking: Result<Asking, DoorError>, mut news: mpsc::Receiver<Value>) {
    let cancel = reporter.cancel.clone();
    let answer = match asking {
        Err(error) => Err(error),
        Ok(mut asking) => {
            let mut given_up = std::pin::pin!(async {
                cancel.cancelled().await;
                tokio::time::sleep(limits::CANCEL_GRACE).await;
            });
            let mut withdrawn = false;
            loop {
                tokio::select! {
                    biased;
                    Some(value) = news.recv() => {
                        if let Some(partial) = result(value) {
                            reporter.progress(partial).await;
                        }
                    }
                    answer = &mut asking => break answer.map(|answer| answer.value),
                    () = cancel.cancelled(), if !withdrawn => {
                        asking.cancel();
                        withdrawn = true;
                    }
                    () = &mut given_up => break Err(DoorError::Failed(crate::strings::ABORTED.to_owned())),
                }
            }
        }
    };
    while let Ok(value) = news.try_recv() {
        if let Some(partial) = result(value) {
            reporter.progress(partial).await;
        }
    }
    let (done, is_error) = match answer {
        Ok(value) => {
            let is_error = value.get("isError") == Some(&Value::Bool(true));
            let terminate = value.get("terminate").and_then(Value::as_bool);
            let done = result(value).unwrap_or_else(|| ToolResult::text(""));
            (ToolResult { terminate, ..done }, is_error)
        }
        Err(error) => (ToolResult::error(error.to_string()), true),
    };
    reporter.done(done, is_error).await;
}
