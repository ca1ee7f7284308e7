//! How the answers of several listeners to one event become one answer (dialects.md 10.2): a table of the events and their
//! rules. The process of TypeScript extensions does this for its own handlers; here its answer is
//! one among several, next to the answers of programs (`pool`) and of hook executables (`session`).

use serde_json::{Map, Value, json};

/// How answers combine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Nothing is answered: it is only told.
    Observe,
    /// The first that cancels is the last that is asked; otherwise the last answer counts.
    Cancel,
    /// The first that blocks is the last that is asked; a changed `input` is what the next one sees.
    Block,
    /// The first answer with this member, unless it is null or `undecided`, is the last that is asked for. So is one with an `error`
    /// in place of a `result`.
    First(&'static str),
    /// These members take the place of the event's, for the next one as well.
    Chain(&'static [&'static str]),
    /// Members of a tool's result, one by one, for the next one as well.
    Patch,
    /// Messages of all, in order; the system prompt is handed on.
    Begin,
    /// Text and images are handed on; who deals with it is the last that is asked.
    Input,
    /// Another message of the same role.
    Message,
    /// Lists of paths are joined.
    Collect,
}

/// Only extensions are asked this.
const TRUST: &str = "project_trust";

/// Proposals at the end of a turn or a run; later listeners see them and may change them.
const BOUNDARY: Rule = Rule::Chain(&["entries", "continue"]);

/// Events with rules of their own, and all events that clients do not receive. Answers to the other [`client_events`] have no effect.
/// `after_provider_response` is missing: it is sent while a request is running, and only to extension processes. A hook executable for
/// it is refused, since it would never run.
const EVENTS: [(&str, Rule); 28] = [
    (TRUST, Rule::First("trusted")),
    ("session_start", Rule::Observe),
    ("session_shutdown", Rule::Observe),
    ("session_before_switch", Rule::Cancel),
    ("session_before_fork", Rule::Cancel),
    ("session_before_compact", Rule::Cancel),
    ("session_compact", Rule::Observe),
    ("session_compact_failed", Rule::Observe),
    ("session_before_tree", Rule::Cancel),
    ("session_tree", Rule::Observe),
    ("agent_before_settle", BOUNDARY),
    ("turn_end", BOUNDARY),
    ("message_end", Rule::Message),
    ("tool_call", Rule::Block),
    ("tool_result", Rule::Patch),
    ("context_with_system", Rule::Chain(&["messages"])),
    ("context", Rule::Chain(&["messages"])),
    ("before_agent_start", Rule::Begin),
    ("before_provider_request", Rule::Chain(&["payload"])),
    ("before_provider_headers", Rule::Chain(&["headers"])),
    ("cache_warming_decision", Rule::Chain(&["action"])),
    ("input", Rule::Input),
    ("user_bash", Rule::First("result")),
    ("model_select", Rule::Observe),
    ("thinking_level_select", Rule::Observe),
    ("resources_discover", Rule::Collect),
    ("ui_prompt_start", Rule::Observe),
    ("ui_prompt_end", Rule::Observe),
];

/// Events of clients that come with every piece of an answer or of an output, and the event that comes once instead. A hook executable
/// for them would be started for every piece.
pub const STREAMED: [(&str, &str); 6] = [
    ("message_update", "message_end"),
    ("tool_execution_update", "tool_execution_end"),
    ("bash_execution_update", "bash_execution_end"),
    ("process_output", "process_end"),
    ("subagent_event", "subagent_lifecycle"),
    ("subagent_progress", "subagent_lifecycle"),
];

/// Events that only clients receive. A listener that fails would get `extension_error` for its own failure without end. In pi, extensions
/// receive a `mcp_servers_change` with the servers that they have registered, which has other members. The connection sends the others,
/// listeners have ended before, or they ask for the commands themselves.
const CLIENTS_ONLY: [&str; 7] = [
    "ready",
    "connected",
    "heartbeat",
    "available_commands_update",
    "session_closed",
    "mcp_servers_change",
    "extension_error",
];

/// What can be patched in a result (dialects.md 10.2, `tool_result`).
pub const RESULT: [&str; 6] = [
    "content",
    "details",
    "isError",
    "usage",
    "structuredContent",
    "terminate",
];

/// Lists of `resources_discover`.
pub const LISTS: [&str; 3] = ["skillPaths", "promptPaths", "themePaths"];

/// The events of clients that extensions receive as well.
pub fn client_events() -> impl Iterator<Item = &'static str> {
    let events = wire::EVENT_NAMES.iter().copied();
    events.filter(|name| !CLIENTS_ONLY.contains(name))
}

/// The names of all events that hook executables can be run for.
pub fn names() -> impl Iterator<Item = &'static str> {
    let ruled = EVENTS.iter().map(|(name, _)| *name);
    let is_other = |name: &&str| {
        let is_streamed = STREAMED.iter().any(|(streamed, _)| streamed == name);
        !is_streamed && EVENTS.iter().all(|(ruled, _)| ruled != name)
    };
    let names = ruled.chain(client_events().filter(is_other));
    names.filter(|name| *name != TRUST)
}

/// Returns the rule of an event; answers to unknown events have no effect.
pub fn rule(event: &str) -> Rule {
    let known = EVENTS.iter().find(|(name, _)| *name == event);
    known.map_or(Rule::Observe, |(_, rule)| *rule)
}

/// Whether the next listener gets the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// The next one.
    On,
    /// The answer is final; later listeners are skipped.
    Stop,
}

/// Answers to one event on their way to become one.
#[derive(Debug)]
pub struct Combining {
    rule: Rule,
    event: Value,
    value: Map<String, Value>,
}

impl Combining {
    /// Starts without an answer.
    pub fn new(name: &str, event: Value) -> Self {
        Self {
            rule: rule(name),
            event,
            value: Map::new(),
        }
    }

    /// What the next one sees.
    pub fn event(&self) -> &Value {
        &self.event
    }

    /// All answers in one; null if no listener returned a value.
    pub fn into_value(self) -> Value {
        if self.value.is_empty() {
            Value::Null
        } else {
            Value::Object(self.value)
        }
    }

    /// Combines the next answer, and its source.
    ///
    /// # Errors
    /// When the event does not accept it; earlier answers stay.
    pub fn take(&mut self, answer: Value, from: &str) -> Result<Flow, String> {
        let Value::Object(mut answer) = answer else {
            return Ok(Flow::On);
        };
        match self.rule {
            Rule::Observe => {}
            Rule::Cancel => {
                let cancels = is(&answer, "cancel");
                // The last answer counts, unless one cancels.
                self.value = answer;
                return Ok(flow(cancels));
            }
            Rule::Block => return Ok(self.block(answer)),
            Rule::First(member) => {
                let given = answer.get(member).unwrap_or(&Value::Null);
                // A trust handler may answer "undecided", which leaves the decision to the next one.
                // A listener that runs commands elsewhere could not run this one, which must not run here instead.
                let failed = member == "result" && answer.get("error").is_some_and(Value::is_string);
                let decides = failed || (!given.is_null() && given.as_str() != Some("undecided"));
                if decides {
                    self.value = answer;
                }
                return Ok(flow(decides));
            }
            Rule::Chain(members) => {
                for member in members {
                    if let Some(changed) = answer.remove(*member) {
                        self.hand_on(member, changed);
                    }
                }
            }
            Rule::Patch => self.patch(answer),
            Rule::Begin => self.begin(answer),
            Rule::Input => return Ok(self.input(answer)),
            Rule::Message => return self.message(answer),
            Rule::Collect => self.collect(answer, from),
        }
        Ok(Flow::On)
    }

    /// A changed member, for the answer and for the next one.
    fn hand_on(&mut self, member: &str, changed: Value) {
        if let Value::Object(event) = &mut self.event {
            event.insert(member.to_owned(), changed.clone());
        }
        self.value.insert(member.to_owned(), changed);
    }

    fn block(&mut self, mut answer: Map<String, Value>) -> Flow {
        if let Some(input) = answer.remove("input").filter(Value::is_object) {
            self.hand_on("input", input);
        }
        let blocks = is(&answer, "block");
        if blocks {
            self.value.extend(answer);
        }
        flow(blocks)
    }

    fn patch(&mut self, mut answer: Map<String, Value>) {
        let has_structure = self
            .event
            .get("structuredContent")
            .is_some_and(|value| !value.is_null());
        // A replaced text no longer matches the structured form of the old result.
        let outdated = answer.contains_key("content") && !answer.contains_key("structuredContent");
        for member in RESULT {
            if let Some(changed) = answer.remove(member) {
                self.hand_on(member, changed);
            }
        }
        if outdated && has_structure {
            self.hand_on("structuredContent", Value::Null);
        }
    }

    fn begin(&mut self, mut answer: Map<String, Value>) {
        let mut added = Vec::new();
        for member in ["message", "messages"] {
            match answer.remove(member) {
                None | Some(Value::Null) => {}
                Some(Value::Array(several)) => added.extend(several),
                Some(one) => added.push(one),
            }
        }
        if !added.is_empty() {
            // The messages of all listeners are kept, whereas a later system prompt replaces an earlier one.
            let messages = self.value.entry("messages").or_insert_with(|| json!([]));
            if let Value::Array(messages) = messages {
                messages.append(&mut added);
            }
        }
        for member in ["systemPrompt", "systemPromptOptions"] {
            if let Some(changed) = answer.remove(member).filter(|changed| !changed.is_null()) {
                self.hand_on(member, changed);
            }
        }
    }

    fn input(&mut self, mut answer: Map<String, Value>) -> Flow {
        let action = answer.get("action").and_then(Value::as_str).map(str::to_owned);
        if action.as_deref() == Some("handled") || is(&answer, "handled") {
            answer.insert("action".to_owned(), json!("handled"));
            self.value = answer;
            return Flow::Stop;
        }
        let changes = match action.as_deref() {
            Some(action) => action == "transform",
            None => answer.contains_key("text"),
        };
        if changes {
            self.value.insert("action".to_owned(), json!("transform"));
            for member in ["text", "images"] {
                if let Some(changed) = answer.remove(member).filter(|changed| !changed.is_null()) {
                    self.hand_on(member, changed);
                }
            }
        }
        Flow::On
    }

    fn message(&mut self, mut answer: Map<String, Value>) -> Result<Flow, String> {
        let Some(message) = answer.remove("message").filter(Value::is_object) else {
            return Ok(Flow::On);
        };
        let role = |message: &Value| {
            message
                .get("role")
                .and_then(Value::as_str)
                .unwrap_or("none")
                .to_owned()
        };
        let (is, becomes) = (
            self.event.get("message").map(&role).unwrap_or_default(),
            role(&message),
        );
        if is != becomes {
            return Err(format!(
                "message_end must keep the role {is}, not make it {becomes}"
            ));
        }
        self.hand_on("message", message);
        Ok(Flow::On)
    }

    fn collect(&mut self, mut answer: Map<String, Value>, from: &str) {
        for list in LISTS {
            let Some(Value::Array(paths)) = answer.remove(list) else {
                continue;
            };
            let named = |path: Value| match path {
                Value::String(path) => json!({"path": path, "extensionPath": from}),
                named => named,
            };
            let all = self.value.entry(list).or_insert_with(|| json!([]));
            if let Value::Array(all) = all {
                all.extend(paths.into_iter().map(named));
            }
        }
    }
}

fn is(answer: &Map<String, Value>, member: &str) -> bool {
    answer.get(member) == Some(&Value::Bool(true))
}

fn flow(stops: bool) -> Flow {
    if stops { Flow::Stop } else { Flow::On }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Combining, EVENTS, Flow, Rule, STREAMED, client_events, names, rule};

    /// What becomes of answers to an event, how many were asked for, and what one more would see.
    fn combined(name: &str, event: Value, answers: &[Value]) -> (Value, usize, Value) {
        let mut combining = Combining::new(name, event);
        let mut asked = 0;
        for answer in answers {
            asked += 1;
            if combining.take(answer.clone(), "me") == Ok(Flow::Stop) {
                break;
            }
        }
        let seen = combining.event().clone();
        (combining.into_value(), asked, seen)
    }

    #[test]
    fn first_cancel_stops_chain_otherwise_last_answer_wins() {
        let event = json!({"type": "session_before_switch"});
        let (value, asked, _) = combined(
            "session_before_switch",
            event.clone(),
            &[json!({"a": 1}), json!({"cancel": true}), json!({"b": 2})],
        );
        assert_eq!((value, asked), (json!({"cancel": true}), 2));
        let (value, asked, _) = combined(
            "session_before_fork",
            event.clone(),
            &[json!({"a": 1}), Value::Null, json!({"b": 2}), Value::Null],
        );
        assert_eq!((value, asked), (json!({"b": 2}), 4));
        assert_eq!(
            combined("session_before_tree", event, &[Value::Null]).0,
            Value::Null
        );
    }

    #[test]
    fn block_stops_chain_after_passing_changed_input_on() {
        let event = json!({"type": "tool_call", "input": {"command": "a"}});
        let (value, asked, seen) = combined(
            "tool_call",
            event,
            &[
                json!({"input": {"command": "b"}}),
                json!({"block": true, "reason": "no"}),
                json!({"block": false}),
            ],
        );
        assert_eq!(asked, 2);
        assert_eq!(
            value,
            json!({"block": true, "reason": "no", "input": {"command": "b"}})
        );
        assert_eq!(seen["input"]["command"], "b");
    }

    #[test]
    fn combined_members_are_passed_on_and_patches_merged() {
        let (value, _, seen) = combined(
            "context",
            json!({"messages": [1]}),
            &[json!({"messages": [1, 2]}), json!({"other": 1})],
        );
        assert_eq!(
            (value, seen),
            (json!({"messages": [1, 2]}), json!({"messages": [1, 2]}))
        );
        let (value, _, seen) = combined(
            "turn_end",
            json!({"entries": [], "continue": false}),
            &[
                json!({"entries": [1]}),
                json!({"entries": [1, 2], "continue": true}),
                json!({}),
            ],
        );
        assert_eq!(
            (&value, &value),
            (&json!({"entries": [1, 2], "continue": true}), &seen)
        );
        let event = json!({"content": [], "isError": false, "structuredContent": {"x": 1}});
        let (value, _, seen) = combined(
            "tool_result",
            event,
            &[json!({"isError": true}), json!({"content": ["y"]})],
        );
        assert_eq!(
            value,
            json!({"isError": true, "content": ["y"], "structuredContent": null})
        );
        assert_eq!(seen["isError"], true);
    }

    #[test]
    fn before_agent_start_joins_messages_keeps_last_prompt() {
        let (value, _, seen) = combined(
            "before_agent_start",
            json!({"systemPrompt": "a"}),
            &[
                json!({"message": {"n": 1}, "systemPrompt": "b"}),
                json!({"messages": [{"n": 2}]}),
            ],
        );
        assert_eq!(
            value,
            json!({"messages": [{"n": 1}, {"n": 2}], "systemPrompt": "b"})
        );
        assert_eq!(seen["systemPrompt"], "b");
    }

    #[test]
    fn input_is_transformed_until_handled() {
        let event = json!({"text": "a"});
        let changes = [json!({"text": "b"}), json!({"action": "continue", "text": "c"})];
        let (value, _, seen) = combined("input", event.clone(), &changes);
        assert_eq!(value, json!({"action": "transform", "text": "b"}));
        assert_eq!(seen["text"], "b");
        let handled = [
            json!({"text": "b"}),
            json!({"handled": true}),
            json!({"text": "c"}),
        ];
        let (value, asked, _) = combined("input", event, &handled);
        assert_eq!((value["action"].as_str(), asked), (Some("handled"), 2));
    }

    #[test]
    fn message_end_keeps_role_and_lists_join() {
        let mut combining = Combining::new("message_end", json!({"message": {"role": "user"}}));
        assert!(
            combining
                .take(json!({"message": {"role": "assistant"}}), "me")
                .is_err()
        );
        assert!(
            combining
                .take(json!({"message": {"role": "user", "n": 1}}), "me")
                .is_ok()
        );
        assert_eq!(combining.into_value()["message"]["n"], 1);
        let lists = [
            json!({"skillPaths": ["/a"]}),
            json!({"skillPaths": [{"path": "/b"}]}),
        ];
        let (value, _, _) = combined("resources_discover", json!({}), &lists);
        assert_eq!(
            value,
            json!({"skillPaths": [{"path": "/a", "extensionPath": "me"}, {"path": "/b"}]})
        );
    }

    #[test]
    fn first_decision_stops_chain() {
        let ran = [
            json!({}),
            json!({"result": null}),
            json!({"result": {"output": "x"}}),
            json!({"result": {}}),
        ];
        let (value, asked, _) = combined("user_bash", json!({}), &ran);
        assert_eq!((value, asked), (json!({"result": {"output": "x"}}), 3));
        let failed = [json!({"error": "no host"}), json!({"result": {}})];
        let (value, asked, _) = combined("user_bash", json!({}), &failed);
        assert_eq!((value, asked), (json!({"error": "no host"}), 1));
        let trust = [
            json!({"trusted": "undecided"}),
            json!({"trusted": "no"}),
            json!({"trusted": "yes"}),
        ];
        let (value, asked, _) = combined("project_trust", json!({}), &trust);
        assert_eq!((value, asked), (json!({"trusted": "no"}), 2));
    }

    #[test]
    fn every_event_has_one_rule() {
        for (place, (name, _)) in EVENTS.iter().enumerate() {
            assert!(EVENTS.iter().skip(place + 1).all(|(other, _)| other != name));
        }
        assert!(!names().any(|name| name == "project_trust"));
    }

    #[test]
    fn observed_events_combine_to_no_answer() {
        let (value, _, _) = combined("agent_end", json!({}), &[json!({"cancel": true, "block": true})]);
        assert_eq!(value, Value::Null);
        assert_eq!(rule("message_update"), Rule::Observe);
    }

    #[test]
    fn hooks_run_for_client_events_that_come_once() {
        let names: Vec<&str> = names().collect();
        for event in [
            "entry_appended",
            "queue_update",
            "agent_start",
            "notice",
            "tool_call",
        ] {
            assert_eq!(names.iter().filter(|name| **name == event).count(), 1, "{event}");
        }
        for (streamed, once) in STREAMED {
            assert!(!names.contains(&streamed) && names.contains(&once), "{streamed}");
            assert!(client_events().any(|name| name == streamed));
        }
        for event in [
            "extension_error",
            "heartbeat",
            "available_commands_update",
            "mcp_servers_change",
        ] {
            assert!(!names.contains(&event) && client_events().all(|name| name != event));
        }
    }
}
