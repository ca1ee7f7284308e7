//! What extensions can see of the session without a request.

use config::resources::CommandInfo;
use serde_json::{Map, Value, json};
use tools::Toolbox;
use wire::SessionRule;
use wire::reply::Commands;

use super::super::session_core::SessionCore;
use super::super::tool_calls::Layer;
use super::{Extensions, described, members};

impl Extensions {
    /// The whole state, for a process that knows nothing of the session yet.
    pub(crate) fn whole_state(&mut self, core: &mut SessionCore) -> Map<String, Value> {
        let mut state = cheap_state(core);
        state.extend(costly_state(self, core));
        // The other processes have it by now: changes are sent before the whole state is asked for.
        self.state.replace(&state);
        state
    }

    /// Sends the processes the changes since the last time, and listeners the events that clients were sent meanwhile. Later events come
    /// behind these, so that listeners receive all events in the order of clients.
    pub(crate) fn sync_state(&mut self, core: &mut SessionCore) {
        // Without processes the stale mark stays for later ones.
        if self.links.pool().is_some() {
            let mut state = cheap_state(core);
            if self.state.take_stale() {
                state.extend(costly_state(self, core));
            }
            let changed = self.state.update(state);
            self.links.send_state(&changed);
            // Once the file is there, processes read the entries from it.
            if !core.conversation.log.is_on_disk() {
                self.links
                    .send_entries(core.conversation.log.entries(), core.conversation.log.header());
            }
        }
        self.send_events(core);
    }

    /// Everything that can be called with a slash: commands of extensions, then templates and skills.
    pub(crate) fn commands(&self, core: &SessionCore) -> Vec<CommandInfo> {
        let mut commands = self.links.commands();
        commands.extend(core.workspace.resources.commands());
        commands.extend(core.mcp.commands());
        commands
    }
}

/// Members that may change with every event.
fn cheap_state(core: &SessionCore) -> Map<String, Value> {
    let agent = &core.agent;
    let dir = agent.next_session_dir(&core.workspace.cwd, core.conversation.log.path());
    members(json!({
        "cwd": core.workspace.cwd.to_string_lossy(),
        "sessionId": core.conversation.log.header().id,
        "sessionFile": core.conversation.log.file_text(),
        "sessionName": core.conversation.log.session_name(),
        "sessionDir": dir.map(|dir| dir.to_string_lossy().into_owned()).unwrap_or_default(),
        "model": core.conversation.choice.model,
        "thinkingLevel": core.conversation.choice.thinking,
        "isIdle": core.machine.is_idle(),
        "hasPending": !core.machine.queues().is_empty(),
        "isTrusted": agent.settings.project == config::trust::ProjectAccess::Full,
        // False in the dialects of the first hooks, whose RPC mode has no dialogs (dialects.md 10.3), and with `--no-ui`.
        "hasUI": agent.options.extensions.has_ui,
        "hookEra": agent.options.dialect.has_hooks(),
        // The system prompt of today's oh-my-pi is a list of texts, for example.
        "newestOmp": agent.options.dialect.follows(SessionRule::ExtensionsSeeOmp),
        // `session_stop` of oh-my-pi is for the main agent alone.
        "isSubagent": agent.options.extensions.is_subagent,
        "mode": "rpc",
        "activeTools": core.tools.active_names(),
        "contextUsage": core.view().context_usage(),
        "leafId": core.conversation.log.leaf_id(),
        "entryCount": core.conversation.log.entries().len(),
    }))
}

/// Members that change with tools, models and resources only.
fn costly_state(extensions: &Extensions, core: &mut SessionCore) -> Map<String, Value> {
    let prompt = core.system_prompt();
    let settings = &core.agent.settings;
    let scope = core.conversation.choice.scope.iter();
    let scope = scope.map(|scoped| json!({"model": scoped.model, "thinkingLevel": scoped.level}));
    members(json!({
        "scopedModels": scope.collect::<Value>(),
        "systemPromptOptions": prompt_options(core),
        "builtinTools": builtin_tools(),
        "systemPrompt": prompt,
        "tools": all_tools(core),
        "commands": extensions.commands(core),
        "settings": settings.raw,
        "modelsFile": extensions.providers.file().to_string_lossy(),
    }))
}

/// What can be called as a slash command, as the reply of `get_commands`.
pub(crate) fn command_list(extensions: &Extensions, core: &SessionCore) -> Commands {
    let commands = extensions.commands(core);
    let values = commands
        .iter()
        .filter_map(|command| serde_json::to_value(command).ok());
    Commands {
        commands: values.collect(),
    }
}

/// All tools, active or not, as extensions see them.
fn all_tools(core: &SessionCore) -> Vec<Value> {
    let tools = core.tools.listed(&Layer::CHOSEN_BY_EXTENSIONS);
    tools.map(|tool| described(tool.as_ref())).collect()
}

/// The parts of the system prompt, under pi's names.
pub(crate) fn prompt_options(core: &SessionCore) -> Value {
    let texts = core.workspace.resources.prompt_texts();
    let tools = Toolbox::infos();
    let tools = tools.iter().filter(|info| core.tools.is_active(&info.spec.name));
    let mut snippets: Map<String, Value> = tools
        .map(|info| (info.spec.name.clone(), json!(info.snippet)))
        .collect();
    let registered = core.tools.layer(Layer::Extension).iter();
    let registered = registered.map(|tool| tool.definition());
    let registered = registered.filter(|tool| core.tools.is_active(&tool.spec.name));
    snippets.extend(registered.filter_map(|tool| Some((tool.spec.name, json!(tool.snippet?)))));
    let files = core.workspace.resources.context_files().iter();
    let files = files.map(|file| json!({"path": file.path, "content": file.content}));
    let skills = core.workspace.resources.skills().iter().map(
        |skill| json!({"name": skill.name, "description": skill.description, "filePath": skill.source.path}),
    );
    json!({
        "customPrompt": texts.custom,
        "appendSystemPrompt": texts.append,
        "selectedTools": core.tools.active_names(),
        "toolSnippets": snippets,
        "cwd": core.workspace.cwd.to_string_lossy(),
        "contextFiles": files.collect::<Value>(),
        "skills": skills.collect::<Value>(),
    })
}

/// The built-in tools, including tools that another one of the same name replaces.
fn builtin_tools() -> Value {
    let tools = Toolbox::infos().iter().map(|info| {
        json!({
            "name": info.spec.name,
            "description": info.spec.description,
            "parameters": info.spec.parameters,
            "promptSnippet": info.snippet,
            "promptGuidelines": info.guidelines,
        })
    });
    tools.collect()
}
