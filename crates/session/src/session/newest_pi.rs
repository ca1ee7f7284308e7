//! Additions to the conversation in a session of today's pi: the system prompt as a message, and omissions of answers that
//! failed (pi-1.5-delta.md 3). Other dialects have neither, and older agents do not read them.

use std::collections::HashSet;
use std::sync::Arc;

use agent::Activity;
use serde_json::{Map, Value, json};
use wire::entry::Compaction;
use wire::event::CompactionReason;
use wire::{Entry, EntryBody, Event, Message, SessionRule, ToolSpec};

use crate::factory::Agent;

use super::clock::now_ms;
use super::session_core::SessionCore;
use super::tool_calls::{ChosenBy, Layer};

/// What the system messages of a branch have told the model.
#[derive(Debug, Default)]
struct Declared {
    /// Pinion's section of the prompt.
    prompt: Option<String>,
    /// The tools as they were declared, by name.
    tools: Vec<(String, Value)>,
    /// Names of all tools that some message added or removed.
    mentioned: HashSet<String>,
}

impl Declared {
    /// `None` if the branch has no system message.
    fn of(branch: &[Arc<Entry>]) -> Option<Self> {
        let mut declared: Option<Self> = None;
        for entry in branch {
            match &entry.body {
                EntryBody::Message(body) if body.message.role() == "system" => {
                    if let Message::Other(message) = &*body.message {
                        declared.get_or_insert_default().apply(message);
                    }
                }
                // A compaction begins with all that holds then.
                EntryBody::Compaction(compaction) => {
                    if let Some(message) = compaction.extra.get("systemMessage") {
                        // Names stay mentioned: the message declares the active tools only, and a tool that was switched off
                        // before must not count as a new one (`restore_tools`).
                        let mentioned = declared.take().unwrap_or_default().mentioned;
                        let anew = Self {
                            mentioned,
                            ..Self::default()
                        };
                        declared.insert(anew).apply(message);
                    }
                }
                _ => {}
            }
        }
        declared
    }

    fn apply(&mut self, message: &Value) {
        let tools = |member: &str| {
            let tools = message
                .get(member)
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            let named = tools.filter_map(|tool| Some((tool.get("name")?.as_str()?.to_owned(), tool.clone())));
            named.collect::<Vec<_>>()
        };
        let (removed, added) = (tools("toolsRemoved"), tools("toolsAdded"));
        let is_listed = |list: &[(String, Value)], name: &str| list.iter().any(|(other, _)| other == name);
        self.tools
            // A tool that is added again takes the place of its former definition.
            .retain(|(name, _)| !is_listed(&removed, name) && !is_listed(&added, name));
        let mentioned = removed.iter().chain(&added).map(|(name, _)| name.clone());
        self.mentioned.extend(mentioned);
        self.tools.extend(added);
        if let Some(prompt) = message.pointer("/sections/prompt").and_then(Value::as_str) {
            self.prompt = Some(prompt.to_owned());
        }
    }
}

/// A path that a client names. In today's pi, `~` at its beginning is the home directory.
pub(super) fn with_home(agent: &Agent, path: String) -> String {
    let home = agent.options.resources.home.as_deref();
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) if agent.options.dialect.follows(SessionRule::PathsHaveHome) => {
            // Without slashes at the beginning: `join` would take the rest for an absolute path.
            let path = home.join(rest.trim_start_matches('/'));
            path.to_string_lossy().into_owned()
        }
        _ => path,
    }
}

impl SessionCore {
    /// Returns true if sessions follow the rule in the dialect of the process.
    pub(super) fn follows(&self, rule: SessionRule) -> bool {
        self.agent.options.dialect.follows(rule)
    }

    /// Stores the thinking level of the next run if the branch says another one: that of a session which the command line opened
    /// with a level of its own.
    pub(super) async fn note_level(&mut self) {
        if !self.follows(SessionRule::PromptsStoreLevel) {
            return;
        }
        let level = self.conversation.choice.thinking.as_str();
        let log = &self.conversation.log;
        let stored = log
            .branch(log.leaf_id())
            .iter()
            .rev()
            .find_map(|entry| match &entry.body {
                EntryBody::ThinkingLevelChange(change) => change.thinking_level.clone(),
                _ => None,
            });
        // Not when the session is opened: today's pi records the level with the next prompt (pi-1.5-delta.md 3).
        if stored.is_some_and(|stored| stored != level) {
            let entry = self.conversation.choice.level_entry();
            self.conversation.log.record(entry, &self.outbox).await;
        }
    }

    /// The message with the system prompt and the declarations of the tools, which precedes the first prompt of a session; later,
    /// a message with what has changed since other tools are active.
    pub(super) fn system_message(&mut self) -> Option<Arc<Message>> {
        if !self.follows(SessionRule::DeclaresTools) {
            return None;
        }
        let log = &self.conversation.log;
        let message = match Declared::of(&log.branch(log.leaf_id())) {
            None => self.declaration(),
            Some(declared) => self.declared_again(&declared)?,
        };
        Some(Arc::new(Message::Other(message)))
    }

    /// Makes the tools active that the branch declares, as today's pi does with a session that is opened or whose leaf moves. A tool of
    /// an extension that the branch does not mention stays active. Optional tools, which reach further than others, need the user's own
    /// choice in any case.
    /// `begins`: the session takes the place of another one. What an extension chose counted for that one; the choice of a client stays.
    pub(super) fn restore_tools(&mut self, begins: bool) {
        if !self.follows(SessionRule::DeclaresTools) {
            return;
        }
        if begins {
            let options = &self.agent.options;
            let allows = |layer: Layer, name: &str| match layer {
                // A list of tools on the command line counts for servers only if it names some (pi 1.x).
                Layer::Mcp => options.allows_server_tool(name),
                _ => options.allows_tool(name),
            };
            self.tools.begin_session(options.tools.clone(), allows);
        }
        // A file must not widen what a client chose.
        if self.tools.chosen_by() == ChosenBy::Client {
            return;
        }
        let log = &self.conversation.log;
        // Tools that the command line names take precedence over those of the file (pi-1.5-delta.md 3).
        let Some(changes) = self.agent.options.tool_filter.restored.clone() else {
            return;
        };
        let Some(declared) = Declared::of(&log.branch(log.leaf_id())) else {
            return;
        };
        let is_optional = |name: &String| self.tools.has(Layer::Optional, name);
        let is_new = |name: &&String| {
            !declared.mentioned.contains(*name) && !self.tools.has(Layer::BuiltIn, name) && !is_optional(name)
        };
        let new = self.tools.active_names().iter().filter(is_new).cloned();
        let known = declared.tools.iter().map(|(name, _)| name.clone());
        let mut names: Vec<String> = known.chain(new).collect();
        for change in &changes {
            let (sign, name) = change.split_at_checked(1).unwrap_or_default();
            names.retain(|known| known != name);
            if sign == "+" {
                names.push(name.to_owned());
            }
        }
        let options = &self.agent.options;
        names.retain(|name| match is_optional(name) {
            true => options.tools.contains(name),
            false => self.may_activate(name),
        });
        let declined = declared.mentioned.into_iter();
        let declined = declined.filter(|name| !names.contains(name)).collect();
        self.tools
            .activate(self.tools.active_first(names), ChosenBy::Session);
        // Extensions and servers register their tools later, which would make these active again (`ToolRegistry::replace`).
        self.tools.decline(declined);
        self.workspace.forget_system_prompt();
    }

    /// What has changed since the last system message. `None` if that is nothing: a prompt that says another date alone is not worth a
    /// message, since requests have the prompt of now in any case.
    fn declared_again(&mut self, declared: &Declared) -> Option<Value> {
        let tools = self.declared_tools();
        let now = Vec::from_iter(tools.iter().map(|tool| (tool.name.clone(), json!(tool))));
        // A tool with another definition is removed and added again.
        let removed = declared.tools.iter().filter(|tool| !now.contains(tool));
        let removed = Vec::from_iter(removed.map(|(name, _)| json!({"name": name})));
        let added = now.iter().filter(|tool| !declared.tools.contains(tool));
        let added = Vec::from_iter(added.map(|(_, tool)| tool));
        let prompt = self.system_prompt();
        let is_new = declared.prompt.as_deref().map(without_date) != Some(without_date(&prompt));
        if removed.is_empty() && added.is_empty() && !is_new {
            return None;
        }
        let mut message = Map::from_iter([
            ("role".to_owned(), "system".into()),
            ("content".to_owned(), "".into()),
        ]);
        let members = [
            ("sections", is_new.then(|| json!({"prompt": prompt}))),
            ("toolsAdded", (!added.is_empty()).then(|| json!(added))),
            ("toolsRemoved", (!removed.is_empty()).then(|| json!(removed))),
            ("timestamp", Some(now_ms().into())),
        ];
        for (name, value) in members {
            message.extend(value.map(|value| (name.to_owned(), value)));
        }
        Some(message.into())
    }

    /// The active tools as the user ordered them. Requests keep an order of their own, for the caches of providers.
    fn declared_tools(&self) -> Vec<ToolSpec> {
        let mut tools = self.tools.specs();
        let names = self.tools.active_names();
        tools.sort_by_key(|tool| {
            names
                .iter()
                .position(|name| *name == tool.name)
                .unwrap_or(names.len())
        });
        tools
    }

    /// System prompt and tools as they are now.
    fn declaration(&mut self) -> Value {
        let tools = self.declared_tools();
        let members = [
            ("role", "system".into()),
            ("content", "".into()),
            ("sections", json!({"prompt": self.system_prompt()})),
            ("timestamp", now_ms().into()),
        ];
        let tools = (!tools.is_empty()).then(|| ("toolsAdded", json!(tools)));
        let members = members.into_iter().chain(tools);
        members.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Adds prompt and tools to a compaction: the message that has them may not be kept.
    pub(super) fn complete_compaction(&mut self, entry: &mut Compaction) {
        let log = &self.conversation.log;
        // A branch that has declared nothing yet does so with its next prompt.
        if self.follows(SessionRule::DeclaresTools) && Declared::of(&log.branch(log.leaf_id())).is_some() {
            let declaration = self.declaration();
            entry.extra = Map::from_iter([("systemMessage".to_owned(), declaration)]).into();
        }
    }

    /// Returns true if the end of the run must not say that another one follows: in today's pi the end of a run that overflowed does
    /// not.
    pub(super) fn hides_recovery(&self) -> bool {
        let overflow = CompactionReason::Overflow;
        let recovers = || {
            let activity = self.machine.activity();
            matches!(activity, Activity::Compacting { reason, .. } if reason == overflow)
        };
        self.follows(SessionRule::OverflowsEndRuns) && recovers()
    }

    /// Leaves the newest message out of the context from now on: an answer that failed, which is tried again.
    pub(super) async fn omit_failed_answer(&mut self) {
        if !self.follows(SessionRule::LeavesOutFailedAnswers) {
            return;
        }
        let log = &self.conversation.log;
        let branch = log.branch(log.leaf_id());
        let is_message = |body: &EntryBody| matches!(body, EntryBody::Message(_));
        let newest = branch.iter().rev().find(|entry| is_message(&entry.body));
        let Some(target) = newest.map(|entry| entry.id.clone()) else {
            return;
        };
        // Null leaves the entry out of the context. The answer itself stays in the file (pi-1.5-delta.md 3).
        let edit = Map::from_iter([
            ("type".to_owned(), Value::from("context_edit")),
            ("targetId".to_owned(), target.into()),
            ("replacement".to_owned(), Value::Null),
        ]);
        let appended = self
            .conversation
            .log
            .append(EntryBody::Other(edit), &self.outbox)
            .await;
        // Without the entry, the failed answer is left out when the conversation is converted, as in older dialects.
        if let Ok(entry) = appended {
            self.outbox.tell(Event::EntryAppended { entry }).await;
        }
    }
}

/// A system prompt without the line that says the date.
fn without_date(prompt: &str) -> Vec<&str> {
    let is_date = |line: &&str| line.starts_with("Current date: ");
    prompt.lines().filter(|line| !is_date(line)).collect()
}
