//! Rules that watch an answer while it streams in and cut it off when it goes astray (TTSR, dialects.md 8): what matches,
//! and the text that the model then gets. `compile` makes rules ready, `syntax` reads conditions, `stream` matches text piece by
//! piece, `paths` knows which
//! files a call is about. The flow of runs around an interruption is the machine's; finding rule files is the caller's.

mod compile;
mod paths;
mod stream;
mod syntax;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;
use wire::message::UserContent;
use wire::rule::RuleInterrupt;
use wire::{CustomMessage, Message, Rule, StreamEvent};

use crate::limits;

pub use compile::Rules;

use self::stream::{Buffer, Kind};

/// `customType` of the message that tells the model a rule.
pub const INJECTION_MESSAGE: &str = "ttsr-injection";

/// When a rule that the model was told is watched again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Repeat {
    /// Never in this session.
    #[default]
    Once,
    /// After so many turns, but never in the very next one.
    AfterGap(u64),
}

/// How rules behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TtsrSettings {
    /// Which matches stop the answer; a rule may say otherwise.
    pub interrupt_mode: RuleInterrupt,
    /// Does an answer that was cut off stay in the conversation that clients see? Models never get it.
    pub keep_partial: bool,
    /// When a rule is watched again.
    pub repeat: Repeat,
}

/// The rules and what they have seen of the current turn.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    rules: Arc<Rules>,
    settings: TtsrSettings,
    /// Turns so far.
    turn: u64,
    /// The turn in which the model was told a rule, by name.
    told: BTreeMap<String, u64>,
    /// What the model will be told when the run would end.
    noted: Vec<Arc<Rule>>,
    buffers: BTreeMap<Kind, Buffer>,
}

impl Watch {
    /// Watches for rules. The model was told those named before, in this session.
    pub(crate) fn new(
        rules: Arc<Rules>,
        settings: TtsrSettings,
        told: impl IntoIterator<Item = String>,
    ) -> Self {
        Self {
            rules,
            settings,
            turn: 0,
            // Turns of an earlier process do not count: its rules count as given before the first turn.
            told: told.into_iter().map(|name| (name, 0)).collect(),
            noted: Vec::new(),
            buffers: BTreeMap::new(),
        }
    }

    pub(crate) fn keeps_partial(&self) -> bool {
        self.settings.keep_partial
    }

    /// A request goes out: the text of the last answer is dropped.
    pub(crate) fn turn_started(&mut self) {
        self.turn += 1;
        self.buffers.clear();
    }

    /// An answer grew. Gives the rules that match now for the first time and stop the answer; the others are noted.
    pub(crate) fn on_update(&mut self, event: &StreamEvent) -> Vec<Arc<Rule>> {
        if self.rules.is_empty() {
            return Vec::new();
        }
        let kind = match event {
            StreamEvent::TextDelta { .. } => Kind::Text,
            StreamEvent::ThinkingDelta { .. } => Kind::Thinking,
            StreamEvent::ToolcallStart { content_index, .. }
            | StreamEvent::ToolcallDelta { content_index, .. }
            | StreamEvent::ToolcallEnd { content_index, .. } => Kind::Tool(*content_index),
            _ => return Vec::new(),
        };
        let matched = match event {
            StreamEvent::ToolcallStart { tool_name, .. } => {
                let buffer = self.new_buffer(Some(tool_name));
                self.buffers.insert(kind, buffer);
                return Vec::new();
            }
            StreamEvent::ToolcallEnd { tool_call, .. } => {
                let buffer = self.buffers.remove(&kind);
                buffer.map_or_else(Vec::new, |mut buffer| {
                    buffer.end(&self.rules, &tool_call.arguments)
                })
            }
            StreamEvent::TextDelta { delta, .. }
            | StreamEvent::ThinkingDelta { delta, .. }
            | StreamEvent::ToolcallDelta { delta, .. } => {
                if !self.buffers.contains_key(&kind) {
                    let buffer = self.new_buffer(None);
                    self.buffers.insert(kind, buffer);
                }
                let buffer = self.buffers.get_mut(&kind);
                buffer.map_or_else(Vec::new, |buffer| buffer.push(&self.rules, kind, delta))
            }
            _ => Vec::new(),
        };
        self.sort_out(matched, kind)
    }

    /// A buffer for the rules that may still match; the tool's name is not known when nothing announced the call.
    fn new_buffer(&self, tool: Option<&str>) -> Buffer {
        let watched = self.rules.iter().enumerate();
        let watched = watched.filter(|(_, rule)| self.may_tell(&rule.rule));
        Buffer::new(tool, watched.map(|(at, _)| at))
    }

    fn may_tell(&self, rule: &Rule) -> bool {
        let waits = self.noted.iter().any(|noted| noted.name == rule.name);
        let told = self.told.get(&rule.name);
        !waits
            && match (told, self.settings.repeat) {
                (None, _) => true,
                (Some(_), Repeat::Once) => false,
                (Some(turn), Repeat::AfterGap(gap)) => {
                    self.turn.saturating_sub(*turn) >= gap.max(limits::MIN_REPEAT_GAP)
                }
            }
    }

    /// Which matches stop the answer? The rest is noted for the end of the run.
    fn sort_out(&mut self, matched: Vec<usize>, kind: Kind) -> Vec<Arc<Rule>> {
        let mut stops = Vec::new();
        for rule in matched.into_iter().filter_map(|at| self.rules.get(at)) {
            let rule = &rule.rule;
            // Another stream of the same answer may have matched it before.
            if !self.may_tell(rule) {
                continue;
            }
            let mode = rule.interrupt_mode.unwrap_or(self.settings.interrupt_mode);
            let is_tool = matches!(kind, Kind::Tool(_));
            match mode {
                RuleInterrupt::Always => stops.push(Arc::clone(rule)),
                RuleInterrupt::ProseOnly if !is_tool => stops.push(Arc::clone(rule)),
                RuleInterrupt::ToolOnly if is_tool => stops.push(Arc::clone(rule)),
                _ => self.noted.push(Arc::clone(rule)),
            }
        }
        stops
    }

    /// Is there something to tell when the run would end?
    pub(crate) fn has_notes(&self) -> bool {
        !self.noted.is_empty()
    }

    pub(crate) fn take_notes(&mut self) -> Vec<Arc<Rule>> {
        std::mem::take(&mut self.noted)
    }

    /// The message that tells the model rules, which count as told from now on.
    pub(crate) fn tell(&mut self, rules: &[Arc<Rule>], now: i64) -> Message {
        for rule in rules {
            self.told.insert(rule.name.clone(), self.turn);
        }
        let mut message = hidden(INJECTION_MESSAGE, text::injection(rules), now);
        if let (true, Message::Custom(custom)) = (self.settings.keep_partial, &mut message) {
            // `discards_answer` reads it when the file is opened: without it the answer has left the conversation.
            custom.details = Some(json!({ "contextMode": "keep" }));
        }
        message
    }
}

/// Does this message say that the answer before it, if it failed, left the conversation?
pub(crate) fn discards_answer(message: &Message) -> bool {
    matches!(message, Message::Custom(custom) if custom.custom_type == INJECTION_MESSAGE && custom.details.is_none())
}

/// A message for the model that clients need not show.
pub(crate) fn hidden(custom_type: &str, text: String, timestamp: i64) -> Message {
    Message::Custom(CustomMessage {
        custom_type: custom_type.to_owned(),
        content: UserContent::Text(text),
        display: false,
        details: None,
        timestamp,
        extra: wire::Extra::default(),
    })
}
