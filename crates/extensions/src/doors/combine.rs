//! What several answers to one event come to. Within the TypeScript host the same rules hold among its extensions
//! (dialects.md 10.2); here they hold among processes.

use serde_json::{Map, Value};

/// How the answers to an event are put together. Whoever is asked later sees the event as it was changed before.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The event.
    pub event: &'static str,
    /// Members of an answer that take the place of the event's.
    pub chained: &'static [&'static str],
    /// Members that are lists, and are joined.
    pub gathered: &'static [&'static str],
    /// The answer that is the last word has this member.
    pub ends_with: Option<(&'static str, Word)>,
    /// The last answer counts as a whole.
    pub last: bool,
}

/// A value that is the last word.
#[derive(Debug, Clone, Copy)]
pub enum Word {
    /// `true`.
    True,
    /// This text.
    Text(&'static str),
    /// Anything but null.
    Any,
}

const PLAIN: Rule = Rule {
    event: "",
    chained: &[],
    gathered: &[],
    ends_with: None,
    last: false,
};

/// The events whose answers mean something.
pub const RULES: &[Rule] = &[
    Rule {
        event: "tool_call",
        chained: &["input"],
        ends_with: Some(("block", Word::True)),
        ..PLAIN
    },
    Rule {
        event: "tool_result",
        chained: &["content", "details", "structuredContent", "isError", "terminate"],
        ..PLAIN
    },
    Rule {
        event: "context",
        chained: &["messages"],
        ..PLAIN
    },
    Rule {
        event: "context_with_system",
        chained: &["messages"],
        ..PLAIN
    },
    Rule {
        event: "before_agent_start",
        chained: &["systemPrompt", "systemPromptOptions"],
        gathered: &["messages"],
        ..PLAIN
    },
    Rule {
        event: "input",
        chained: &["action", "text", "images"],
        ends_with: Some(("action", Word::Text("handled"))),
        ..PLAIN
    },
    Rule {
        event: "message_end",
        chained: &["message"],
        ..PLAIN
    },
    Rule {
        event: "before_provider_request",
        chained: &["payload"],
        ..PLAIN
    },
    Rule {
        event: "before_provider_headers",
        chained: &["headers"],
        ..PLAIN
    },
    Rule {
        event: "user_bash",
        ends_with: Some(("result", Word::Any)),
        ..PLAIN
    },
    Rule {
        event: "turn_end",
        chained: &["continue"],
        gathered: &["entries"],
        ..PLAIN
    },
    Rule {
        event: "agent_before_settle",
        chained: &["continue"],
        gathered: &["entries"],
        ..PLAIN
    },
    Rule {
        event: "resources_discover",
        gathered: &["skillPaths", "promptPaths", "themePaths"],
        ..PLAIN
    },
    Rule {
        event: "project_trust",
        ends_with: Some(("trusted", Word::Any)),
        ..PLAIN
    },
    Rule {
        event: "session_before_switch",
        ends_with: Some(("cancel", Word::True)),
        last: true,
        ..PLAIN
    },
    Rule {
        event: "session_before_fork",
        ends_with: Some(("cancel", Word::True)),
        last: true,
        ..PLAIN
    },
    Rule {
        event: "session_before_compact",
        ends_with: Some(("cancel", Word::True)),
        last: true,
        ..PLAIN
    },
    Rule {
        event: "session_before_tree",
        ends_with: Some(("cancel", Word::True)),
        last: true,
        ..PLAIN
    },
    Rule {
        event: "cache_warming_decision",
        last: true,
        ..PLAIN
    },
];

/// The rule of an event; that of events whose answers mean nothing keeps the last one.
#[must_use]
pub fn rule(event: &str) -> Rule {
    let known = RULES.iter().find(|rule| rule.event == event);
    known.copied().unwrap_or(Rule { last: true, ..PLAIN })
}

impl Rule {
    /// Takes an answer into what came so far. True when nobody else is to be asked.
    pub fn take(&self, event: &mut Value, sum: &mut Value, answer: Value) -> bool {
        let Value::Object(mut answer) = answer else {
            return false;
        };
        if self.ends(&answer) {
            *sum = Value::Object(answer);
            return true;
        }
        for name in self.chained {
            if let Some(member) = answer.remove(*name) {
                put(event, name, member.clone());
                put(sum, name, member);
            }
        }
        for name in self.gathered {
            if let Some(Value::Array(more)) = answer.remove(*name) {
                match sum.get_mut(*name) {
                    Some(Value::Array(known)) => known.extend(more),
                    _ => put(sum, name, Value::Array(more)),
                }
            }
        }
        if self.last {
            *sum = Value::Object(answer);
        }
        false
    }

    fn ends(&self, answer: &Map<String, Value>) -> bool {
        let Some((name, wanted)) = self.ends_with else {
            return false;
        };
        let member = answer.get(name).unwrap_or(&Value::Null);
        match wanted {
            Word::True => member.as_bool() == Some(true),
            Word::Text(text) => member.as_str() == Some(text),
            Word::Any => !member.is_null(),
        }
    }
}

fn put(value: &mut Value, name: &str, member: Value) {
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    if let Value::Object(members) = value {
        members.insert(name.to_owned(), member);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{RULES, rule};

    /// What the answers come to, how many were asked, and the event that the last one saw.
    fn combined(name: &str, mut event: Value, answers: &[Value]) -> (Value, usize, Value) {
        let (mut sum, mut asked) = (Value::Null, 0);
        for answer in answers {
            asked += 1;
            if rule(name).take(&mut event, &mut sum, answer.clone()) {
                break;
            }
        }
        (sum, asked, event)
    }

    #[test]
    fn the_first_block_counts_and_changed_input_goes_on() {
        let (sum, asked, event) = combined(
            "tool_call",
            json!({"toolName": "bash", "input": {"command": "a"}}),
            &[
                json!({"input": {"command": "b"}, "block": false}),
                json!(null),
                json!({"block": true, "reason": "no"}),
                json!({}),
            ],
        );
        assert_eq!((sum, asked), (json!({"block": true, "reason": "no"}), 3));
        assert_eq!(event["input"]["command"], "b");
    }

    #[test]
    fn patches_are_chained_and_lists_joined() {
        let (sum, _, event) = combined(
            "tool_result",
            json!({"content": [], "isError": true}),
            &[json!({"isError": false}), json!({"details": 1, "more": 2})],
        );
        assert_eq!(sum, json!({"isError": false, "details": 1}));
        assert_eq!(event, json!({"content": [], "isError": false, "details": 1}));
        let (sum, _, event) = combined(
            "before_agent_start",
            json!({"systemPrompt": "a"}),
            &[
                json!({"messages": [1], "systemPrompt": "b"}),
                json!({"messages": [2]}),
            ],
        );
        assert_eq!(sum, json!({"messages": [1, 2], "systemPrompt": "b"}));
        assert_eq!(event, json!({"systemPrompt": "b"}));
    }

    #[test]
    fn who_deals_with_input_and_who_refuses_have_the_last_word() {
        let input = [
            json!({"action": "transform", "text": "b"}),
            json!({"action": "handled"}),
            json!({"action": "transform", "text": "c"}),
        ];
        assert_eq!(
            combined("input", json!({"text": "a"}), &input).0,
            json!({"action": "handled"})
        );
        let refusals = [json!({"label": 1}), json!({"cancel": true}), json!({"label": 2})];
        let (sum, asked, _) = combined("session_before_tree", json!({}), &refusals);
        assert_eq!((sum, asked), (json!({"cancel": true}), 2));
        let bash = [
            json!({"result": null}),
            json!({"result": {"output": ""}}),
            json!({"result": {}}),
        ];
        assert_eq!(combined("user_bash", json!({}), &bash).1, 2);
    }

    #[test]
    fn every_rule_is_there_once() {
        for (place, rule) in RULES.iter().enumerate() {
            assert!(
                RULES
                    .iter()
                    .skip(place + 1)
                    .all(|other| other.event != rule.event)
            );
        }
        assert_eq!(
            combined("agent_end", json!({}), &[json!({"a": 1}), json!(5)]).0,
            json!({"a": 1})
        );
    }
}
