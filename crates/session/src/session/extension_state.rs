//! What extensions can see of the session without a request.

use config::resources::CommandInfo;
use serde_json::{Map, Value, json};
use tools::Toolbox;
use tools::pattern::fits;

use super::Session;
use super::extensions::{described, extension_tools, members};
use super::tool_calls::Layer;

impl Session {
    /// The whole state, for a process that knows nothing of the session yet.
    pub(super) fn whole_state(&mut self) -> Map<String, Value> {
        let mut state = self.cheap_state();
        state.extend(self.costly_state());
        self.extensions.state.replace(state.clone());
        state
    }

    /// Sends the processes what has changed since the last time.
    pub(super) fn sync_state(&mut self) {
        if self.extensions.links.pool().is_none() {
            return;
        }
        let mut state = self.cheap_state();
        if self.extensions.state.take_stale() {
            state.extend(self.costly_state());
        }
        let extensions = &mut self.extensions;
        let changed = extensions.state.update(state);
        extensions.links.send_state(&changed);
        if !self.conversation.log.is_on_disk() {
            extensions
                .links
                .send_entries(self.conversation.log.entries(), self.conversation.log.header());
        }
    }

    /// Members that may change with every event.
    fn cheap_state(&self) -> Map<String, Value> {
        let agent = &self.agent;
        let dir = agent.next_session_dir(&self.workspace.cwd, self.conversation.log.path());
        members(json!({
            "cwd": self.workspace.cwd.to_string_lossy(),
            "sessionId": self.conversation.log.header().id,
            "sessionFile": self.conversation.log.file_text(),
            "sessionName": self.conversation.log.session_name(),
            "sessionDir": dir.map(|dir| dir.to_string_lossy().into_owned()).unwrap_or_default(),
            "model": self.conversation.choice.model,
            "thinkingLevel": self.conversation.choice.thinking,
            "isIdle": self.machine.is_idle(),
            "hasPending": !self.machine.queues().is_empty(),
            "isTrusted": agent.settings.project == config::trust::ProjectAccess::Full,
            "hasUI": agent.options.extensions.has_ui,
            "mode": "rpc",
            "activeTools": self.tools.active_names(),
            "contextUsage": self.view().context_usage(),
            "leafId": self.conversation.log.leaf_id(),
            "entryCount": self.conversation.log.entries().len(),
        }))
    }

    /// Members that change with tools, models and resources only.
    fn costly_state(&mut self) -> Map<String, Value> {
        let prompt = self.system_prompt();
        let settings = &self.agent.settings;
        let scope = self.conversation.choice.scope.iter();
        let scope = scope.map(|scoped| json!({"model": scoped.model, "thinkingLevel": scoped.level}));
        members(json!({
            "scopedModels": scope.collect::<Value>(),
            "systemPromptOptions": self.prompt_options(),
            "builtinTools": builtin_tools(),
            "systemPrompt": prompt,
            "tools": self.all_tools(),
            "commands": self.all_commands(),
            "settings": settings.raw,
            "modelsFile": self.extensions.providers.file().to_string_lossy(),
        }))
    }

    /// Uses the tools and commands that extensions register now.
    pub(super) fn use_registrations(&mut self) {
        self.extensions.state.mark_stale();
        self.workspace.forget_system_prompt();
        let options = &self.agent.options;
        self.tools.replace(
            Layer::Extension,
            extension_tools(&self.extensions.links),
            // The command line may name a tool before its extension is loaded again.
            |name| options.tools.iter().any(|named| named == name),
            |name| {
                let named = |list: &[String]| list.iter().any(|item| fits(item, name));
                let may = options.only_tools.as_ref().is_none_or(|only| named(only));
                may && !named(&options.excluded_tools)
            },
        );
        self.sync_hooks();
    }

    /// All tools, active or not, as extensions see them.
    fn all_tools(&self) -> Vec<Value> {
        let tools = self.tools.listed(&Layer::CHOSEN_BY_EXTENSIONS);
        tools.map(|tool| described(tool.as_ref())).collect()
    }

    /// Everything that can be called with a slash: commands of extensions, then templates and skills.
    pub(super) fn all_commands(&self) -> Vec<CommandInfo> {
        let mut commands = self.extensions.links.commands();
        commands.extend(self.workspace.resources.commands());
        commands.extend(self.mcp.commands());
        commands
    }

    /// The parts of the system prompt, under pi's names.
    pub(in crate::session) fn prompt_options(&self) -> Value {
        let texts = self.workspace.resources.prompt_texts();
        let tools = Toolbox::infos();
        let tools = tools.iter().filter(|info| self.tools.is_active(&info.spec.name));
        let mut snippets: Map<String, Value> = tools
            .map(|info| (info.spec.name.clone(), json!(info.snippet)))
            .collect();
        let registered = self.tools.layer(Layer::Extension).iter();
        let registered = registered.map(|tool| tool.definition());
        let registered = registered.filter(|tool| self.tools.is_active(&tool.spec.name));
        snippets.extend(registered.filter_map(|tool| Some((tool.spec.name, json!(tool.snippet?)))));
        let files = self.workspace.resources.context_files().iter();
        let files = files.map(|file| json!({"path": file.path, "content": file.content}));
        let skills = self.workspace.resources.skills().iter().map(|skill| {
            json!({"name": skill.name, "description": skill.description, "filePath": skill.source.path})
        });
        json!({
            "customPrompt": texts.custom,
            "appendSystemPrompt": texts.append,
            "selectedTools": self.tools.active_names(),
            "toolSnippets": snippets,
            "cwd": self.workspace.cwd.to_string_lossy(),
            "contextFiles": files.collect::<Value>(),
            "skills": skills.collect::<Value>(),
        })
    }
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
