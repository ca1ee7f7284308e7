//! Rules that watch answers, seen through the machine: what matches, what follows.
#![expect(clippy::unwrap_used, reason = "helpers of a test may panic")]
#![expect(clippy::indexing_slicing, reason = "helpers of a test may panic")]

mod flow;
mod matching;
mod properties;
mod repeats;

use std::sync::Arc;

use pinion_agent::ttsr::{Rules, TtsrSettings};
use pinion_agent::{Change, Effect, Input, LoopSettings, Machine, ModelInput, Verdict};
use wire::rule::{RuleInterrupt, RuleSource};
use wire::{AssistantMessage, Event, Message, Rule, StopReason, StreamEvent, ToolCall, Usage};

/// A rule with this condition; the rest is changed by the test.
fn rule(name: &str, condition: &str) -> Rule {
    Rule {
        name: name.to_owned(),
        path: format!("/rules/{name}.md"),
        content: format!("Mind {name}."),
        globs: Vec::new(),
        always_apply: None,
        description: None,
        condition: vec![condition.to_owned()],
        scope: Vec::new(),
        interrupt_mode: None,
        source: RuleSource {
            provider: "native".to_owned(),
            provider_name: "Pinion".to_owned(),
            path: format!("/rules/{name}.md"),
            level: "project".to_owned(),
        },
    }
}

fn scoped(name: &str, condition: &str, scope: &[&str]) -> Rule {
    Rule {
        scope: scope.iter().map(ToString::to_string).collect(),
        ..rule(name, condition)
    }
}

/// A machine that waits for its model, with rules.
struct World {
    machine: Machine,
    now: i64,
    effects: Vec<Effect>,
}

impl World {
    fn new(rules: Vec<Rule>) -> Self {
        Self::with(rules, TtsrSettings::default(), &[])
    }

    fn with(rules: Vec<Rule>, settings: TtsrSettings, told: &[&str]) -> Self {
        let (rules, problems) = Rules::new(rules, "/project");
        assert!(problems.is_empty(), "{problems:?}");
        let mut machine = Machine::new(LoopSettings::default(), Vec::new());
        let change = Change::Rules {
            rules: Arc::new(rules),
            settings,
            told: told.iter().map(ToString::to_string).collect(),
        };
        machine.step(change.into(), 0, &mut Vec::new());
        let mut world = Self {
            machine,
            now: 0,
            effects: Vec::new(),
        };
        world.prompt();
        world
    }

    fn step(&mut self, input: Input) {
        self.now += 1;
        let from = self.effects.len();
        self.machine.step(input, self.now, &mut self.effects);
        if self.effects[from..].contains(&Effect::CheckContext) {
            self.step(Input::Context(false));
        }
        if self.effects[from..].contains(&Effect::ChooseModel) {
            self.step(Input::Fallback(None));
        }
    }

    fn prompt(&mut self) {
        self.step(Input::Prompt {
            messages: vec![Arc::new(Message::user("Go", 0))],
            full: false,
            limits: None,
            wants_result: false,
        });
        self.begin();
    }

    fn begin(&mut self) {
        self.step(Input::Model(ModelInput::Started(head())));
    }

    fn stream(&mut self, event: StreamEvent) {
        self.step(Input::Model(ModelInput::Update(event, Usage::default())));
    }

    fn text(&mut self, delta: &str) {
        self.stream(StreamEvent::TextDelta {
            content_index: 0,
            delta: delta.to_owned(),
        });
    }

    fn thinking(&mut self, delta: &str) {
        self.stream(StreamEvent::ThinkingDelta {
            content_index: 0,
            delta: delta.to_owned(),
        });
    }

    fn tool_start(&mut self, content_index: usize, tool: &str) {
        self.stream(StreamEvent::ToolcallStart {
            content_index,
            id: format!("call{content_index}"),
            tool_name: tool.to_owned(),
        });
    }

    fn tool(&mut self, content_index: usize, delta: &str) {
        self.stream(StreamEvent::ToolcallDelta {
            content_index,
            delta: delta.to_owned(),
        });
    }

    fn tool_end(&mut self, content_index: usize, tool: &str, arguments: &str) {
        self.stream(StreamEvent::ToolcallEnd {
            content_index,
            tool_call: ToolCall {
                id: format!("call{content_index}"),
                name: tool.to_owned(),
                arguments: serde_json::from_str(arguments).unwrap(),
                thought_signature: None,
                extra: wire::Extra::default(),
            },
        });
    }

    fn finish(&mut self, stop_reason: StopReason) {
        let answer = AssistantMessage {
            stop_reason,
            ..head()
        };
        self.step(Input::Model(ModelInput::Finished(answer, Verdict::Final)));
    }

    /// Names of the rules that stopped an answer since the last call.
    fn stopped(&mut self) -> Vec<String> {
        let mut names = Vec::new();
        for effect in self.effects.drain(..) {
            if let Effect::Emit(Event::TtsrTriggered { rules }) = effect {
                names.extend(rules.iter().map(|rule| rule.name.clone()));
            }
        }
        names
    }

    /// What happened since the last call, in a word each.
    fn log(&mut self) -> Vec<String> {
        self.effects.drain(..).filter_map(short).collect()
    }
}

fn head() -> AssistantMessage {
    AssistantMessage::begin("api", "provider", "model", 0)
}

fn short(effect: Effect) -> Option<String> {
    Some(match effect {
        Effect::CallModel => "CALL".to_owned(),
        Effect::CancelModel => "CANCEL".to_owned(),
        Effect::Record(body) => format!("record {}", serde_json::to_value(body_entry(body)).unwrap()),
        Effect::Persist(message) => format!("persist {}", message.role()),
        Effect::Emit(event) => match event {
            Event::AgentEnd { will_retry, .. } => format!("agent_end {will_retry}"),
            Event::AgentSettled { aborted } => format!("settled {aborted}"),
            Event::MessageEnd { message } => match message.as_assistant() {
                Some(answer) => format!("end {:?}", answer.stop_reason),
                None => format!("end {}", message.role()),
            },
            Event::TtsrTriggered { .. } => "triggered".to_owned(),
            Event::AgentStart => "agent_start".to_owned(),
            _ => return None,
        },
        _ => return None,
    })
}

fn body_entry(body: wire::EntryBody) -> serde_json::Value {
    let entry = wire::Entry {
        id: String::new(),
        parent_id: None,
        timestamp: String::new(),
        body,
    };
    serde_json::to_value(&entry).unwrap()["injectedRules"].clone()
}

/// What stops an answer of this text, in one piece.
fn stops_text(rules: Vec<Rule>, text: &str) -> bool {
    let mut world = World::new(rules);
    world.text(text);
    !world.stopped().is_empty()
}

const ALL_MODES: [RuleInterrupt; 4] = [
    RuleInterrupt::Always,
    RuleInterrupt::ProseOnly,
    RuleInterrupt::ToolOnly,
    RuleInterrupt::Never,
];
