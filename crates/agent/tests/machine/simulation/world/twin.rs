//! A second machine without subscribers to events. What the real one holds back while hooks run must leave it later, complete and
//! in the same order, so the rules of `check` are checked on the twin's effects.

use std::collections::{BTreeMap, VecDeque};

use pinion_agent::{Activity, Change, Effect, HookPoint, Input, Machine, ModelInput, Subscriptions};

use super::super::check::must;

/// Hook points that hold back a call or a compaction only: the twin has their subscribers, too.
const CALLS: [&str; 3] = ["tool_call", "tool_result", "session_before_compact"];

#[derive(Debug, Default)]
pub(super) struct Twin {
    pub(super) machine: Machine,
    /// Effects that the real machine has to show.
    due: VecDeque<Effect>,
    /// Tickets of the real machine for the twin's questions.
    tickets: BTreeMap<u64, u64>,
    /// Questions of the real machine that the twin does not ask; true if it is about an answer.
    own: BTreeMap<u64, bool>,
    /// An answer that hooks see before the twin does.
    withheld: Option<Input>,
}

impl Twin {
    pub(super) fn new(machine: Machine) -> Self {
        Self {
            machine,
            ..Self::default()
        }
    }

    /// Does the real machine hold nothing back that the twin has done?
    pub(super) fn is_even(&self) -> bool {
        self.due.is_empty() && self.withheld.is_none() && self.own.is_empty()
    }

    /// Has everything that the twin did left the real machine?
    pub(super) fn is_done(&self) -> bool {
        self.due.is_empty()
    }

    /// Do hooks look at an answer?
    pub(super) fn withholds(&self) -> bool {
        self.withheld.is_some()
    }

    /// The calls that the twin has started and the real machine does not start any more: an abort comes while it holds them back.
    pub(super) fn withdraw_starts(&mut self) -> Vec<usize> {
        let started = |effect: &Effect| match effect {
            Effect::RunTool(slot) => Some(*slot),
            _ => None,
        };
        let slots = self.due.iter().filter_map(started).collect();
        self.due.retain(|effect| started(effect).is_none());
        slots
    }

    /// What the twin is given for an input of the real machine, which is as it was before it.
    pub(super) fn translate(&mut self, input: &Input, real: &Machine) -> Option<Input> {
        match input {
            Input::HooksDone(ticket, outcome) => match self.own.remove(ticket) {
                Some(true) => self.withheld.take(),
                Some(false) => None,
                None => {
                    // The ticket stays known: its withdrawal may wait behind other hooks while this answer comes.
                    let own = self.tickets.get(ticket).copied().unwrap_or(u64::MAX);
                    Some(Input::HooksDone(own, outcome.clone()))
                }
            },
            Input::Model(ModelInput::Finished(..)) => {
                let is_seen = real
                    .subscriptions()
                    .waits
                    .iter()
                    .any(|name| name == "message_end");
                if is_seen && (real.activity() == Activity::Asking { has_begun: true }) {
                    self.withheld = Some(input.clone());
                    return None;
                }
                Some(input.clone())
            }
            Input::Change(Change::Hooks(subscribed)) => {
                let waits = subscribed.waits.iter();
                let waits = waits
                    .filter(|name| CALLS.contains(&name.as_str()))
                    .cloned()
                    .collect();
                let tells = Vec::new();
                Some(Change::Hooks(Subscriptions { waits, tells }).into())
            }
            other => Some(other.clone()),
        }
    }

    /// The twin did this; the real machine has to follow.
    pub(super) fn did(&mut self, effects: &[Effect]) {
        self.due.extend(effects.iter().cloned());
    }

    /// The real machine did this. Returns the effect to carry out: the same, with the messages that `check` knows.
    pub(super) fn follow(&mut self, effect: Effect) -> Result<Effect, String> {
        let shown = match &effect {
            Effect::RunHooks(
                ticket,
                HookPoint::ToolCall { .. } | HookPoint::ToolResult { .. } | HookPoint::Compact { .. },
            ) => {
                let Some(Effect::RunHooks(own, point)) = self.due.pop_front() else {
                    return Err("hooks of a call at the wrong time".to_owned());
                };
                self.tickets.insert(*ticket, own);
                must(
                    matches!(&effect, Effect::RunHooks(_, real) if *real == point),
                    "hooks of another call",
                )?;
                return Ok(effect);
            }
            Effect::RunHooks(ticket, point) => {
                let is_answer = matches!(point, HookPoint::Answer(_));
                self.own.insert(*ticket, is_answer);
                return Ok(effect);
            }
            Effect::CancelHooks(ticket) if self.own.remove(ticket).is_some() => return Ok(effect),
            Effect::CancelHooks(ticket) => {
                let own = self.tickets.remove(ticket).ok_or("withdrew unknown hooks")?;
                Effect::CancelHooks(own)
            }
            Effect::Tell(event, _) => Effect::Emit(event.clone()),
            other => other.clone(),
        };
        match self.due.pop_front() {
            Some(due) if due == shown => Ok(match due {
                Effect::Persist(_) => due,
                _ => effect,
            }),
            due => Err(format!("{due:?} had to leave, not this")),
        }
    }
}
