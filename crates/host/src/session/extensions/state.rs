//! What extensions can look at without asking: sent whole when they are loaded, later only what changed, right before a line
//! that may need it.

use serde_json::{Map, Value, json};
use tools::Toolbox;

use super::super::Session;
use super::super::tool_calls::Layer;
use super::members;

/// What the process knows of the session.
#[derive(Debug)]
pub(super) struct Sent {
    state: Map<String, Value>,
    /// What begins the session for its extensions.
    start: Value,
    /// Tools, commands or the system prompt may have changed.
    stale: bool,
}

impl Default for Sent {
    fn default() -> Self {
        Self {
            state: Map::new(),
            start: json!({"type": "session_start", "reason": "startup"}),
            stale: true,
        }
    }
}

impl Sent {
    /// The process knows nothing any more; `start` is how the session begins for it the next time.
    pub(super) fn forget(&mut self, start: Value) {
        *self = Self {
            start,
            ..Self::default()
        };
    }

    /// What begins the session for its extensions.
    pub(super) fn start(&self) -> Value {
        self.start.clone()
    }

    /// Tools, commands or the system prompt may have changed.
    pub(super) fn mark_stale(&mut self) {
        self.stale = true;
    }
}

impl Session {
    /// Everything, for the first time.
    pub(super) fn whole_state(&mut self) -> Map<String, Value> {
        let mut state = self.cheap_state();
        state.extend(self.dear_state());
        self.extensions.state.state.clone_from(&state);
        self.extensions.state.stale = false;
        state
    }

    /// Sends what changed since the last time.
    pub(in crate::session) fn sync_state(&mut self) {
        if self.extensions.door.is_none() {
            return;
        }
        let mut state = self.cheap_state();
        if std::mem::take(&mut self.extensions.state.stale) {
            state.extend(self.dear_state());
        }
        let sent = &mut self.extensions.state.state;
        let mut changed = Map::new();
        for (name, value) in state {
            if sent.get(&name) != Some(&value) {
                sent.insert(name.clone(), value.clone());
                changed.insert(name, value);
            }
        }
        let extended = &mut self.extensions;
        let Some(door) = &extended.door else { return };
        if !changed.is_empty() {
            door.state(&extended.handle, &changed);
        }
        if self.log.is_on_disk() {
            return;
        }
        let entries = self.log.entries();
        for (place, link) in extended.links.iter_mut().enumerate() {
            if !door.is_there(place) {
                continue;
            }
            if let Some(new) = entries.get(link.entries..).filter(|new| !new.is_empty()) {
                let header = (link.entries == 0).then(|| self.log.header());
                // What cannot be written as JSON is in no file either.
                let _sent = door.entries(place, &extended.handle, link.entries, &new, header);
                link.entries = entries.len();
            }
        }
    }

    /// What may change with every event.
    fn cheap_state(&self) -> Map<String, Value> {
        let agent = &self.agent;
        let dir = agent.session_dir(&self.cwd);
        members(json!({
            "cwd": self.cwd.to_string_lossy(),
            "sessionId": self.log.header().id,
            "sessionFile": self.file_text(),
            "sessionName": self.log.session_name(),
            "sessionDir": dir.map(|dir| dir.to_string_lossy().into_owned()).unwrap_or_default(),
            "model": self.model,
            "thinkingLevel": self.thinking,
            "isIdle": self.machine.is_idle(),
            "hasPending": self.machine.queued() > 0,
            "isTrusted": agent.settings.project == config::trust::ProjectAccess::Full,
            "hasUI": agent.options.extensions.has_ui,
            "mode": "rpc",
            "activeTools": self.tools.active_names(),
            "contextUsage": self.context_usage(),
            "leafId": self.log.leaf_id(),
            "entryCount": self.log.entries().len(),
        }))
    }

    /// What changes with tools and resources only.
    fn dear_state(&mut self) -> Map<String, Value> {
        let prompt = self.system_prompt();
        let settings = &self.agent.settings;
        let scope = self.scope.iter();
        let scope = scope.map(|scoped| json!({"model": scoped.model, "thinkingLevel": scoped.level}));
        members(json!({
            "scopedModels": scope.collect::<Value>(),
            "systemPromptOptions": self.prompt_options(),
            "builtinTools": builtin_tools(),
            "systemPrompt": prompt,
            "tools": self.all_tools(),
            "commands": self.all_commands(),
            "settings": settings.raw,
            "modelsFile": self.extensions.models_file.to_string_lossy(),
        }))
    }

    /// What the system prompt is made of, under pi's names.
    pub(super) fn prompt_options(&self) -> Value {
        let texts = self.resources.prompt_texts();
        let tools = Toolbox::infos();
        let tools = tools.iter().filter(|info| self.tools.is_active(&info.spec.name));
        let mut snippets: Map<String, Value> = tools
            .map(|info| (info.spec.name.clone(), json!(info.snippet)))
            .collect();
        let theirs = self.tools.layer(Layer::Extension).iter();
        let theirs = theirs.map(|tool| tool.definition());
        let theirs = theirs.filter(|tool| self.tools.is_active(&tool.spec.name));
        snippets.extend(theirs.filter_map(|tool| Some((tool.spec.name, json!(tool.snippet?)))));
        let files = self.resources.context_files().iter();
        let files = files.map(|file| json!({"path": file.path, "content": file.content}));
        let skills = self.resources.skills().iter().map(|skill| {
            json!({"name": skill.name, "description": skill.description, "filePath": skill.source.path})
        });
        json!({
            "customPrompt": texts.custom,
            "appendSystemPrompt": texts.append,
            "selectedTools": self.tools.active_names(),
            "toolSnippets": snippets,
            "cwd": self.cwd.to_string_lossy(),
            "contextFiles": files.collect::<Value>(),
            "skills": skills.collect::<Value>(),
        })
    }
}

/// Our own tools as they are, whoever has taken the place of one.
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
