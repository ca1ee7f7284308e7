//! Hooks, permissions and calls of tools: they answer by chance, late, or never.

use pinion_agent::compaction::Finished;
use pinion_agent::{
    Change, Effect, HookPoint, HooksOutcome, Input, NestedCall, Prepared, Subscriptions, ToolInput, is_nested,
};
use wire::ToolResult;

use super::super::check::Checked;
use super::{Owed, World};

/// Points that may have subscribers.
const POINTS: [&str; 11] = [
    "tool_call",
    "tool_result",
    "session_before_compact",
    "message_end",
    "agent_before_settle",
    "agent_start",
    "turn_end",
    "tool_execution_end",
    "message_update",
    "agent_end",
    "agent_settled",
];

impl Owed {
    /// Is a question of a run out?
    pub(super) fn asks_something(&self) -> bool {
        !self.decisions.is_empty()
            || !self.hooks.is_empty()
            || !self.hung_decisions.is_empty()
            || !self.hung_hooks.is_empty()
    }
}

impl World {
    pub(super) fn is_hung(&self) -> bool {
        !self.owed.hung_decisions.is_empty() || !self.owed.hung_hooks.is_empty()
    }

    pub(super) fn subscribe(&mut self) -> Checked {
        if self.twin.withholds() {
            return Ok(());
        }
        let (mut waits, mut tells) = (Vec::new(), Vec::new());
        let rare = self.rng.once_in(2);
        for (at, name) in POINTS.iter().enumerate() {
            if at >= 3 && rare {
                break;
            }
            match self.rng.below(4) {
                0 => waits.push((*name).to_owned()),
                1 if at >= 5 => tells.push((*name).to_owned()),
                _ => {}
            }
        }
        self.tell(Change::Hooks(Subscriptions { waits, tells }))
    }

    /// A running tool calls another one, or a tool that does not run wants to.
    pub(super) fn nest(&mut self) -> Checked {
        self.requests += 1;
        let request = (!self.rng.once_in(8)).then_some(self.requests);
        self.check.seen.push("call of a tool");
        self.step(Input::Nest(NestedCall {
            request,
            parent: "call_0".to_owned(),
            name: "tool".to_owned(),
            args: serde_json::Map::new(),
        }))
    }

    pub(super) fn withdraw_nested(&mut self) -> Checked {
        let request = self.requests.saturating_sub(self.rng.next() % 3);
        self.step(Input::WithdrawNested(request))
    }

    /// The machine asks hooks or permissions.
    pub(super) fn ask(&mut self, question: Effect) {
        let hangs = self.rng.once_in(self.hangs);
        match question {
            Effect::Decide(slot) if hangs => {
                self.check.seen.push("permission never answered");
                self.owed.hung_decisions.push(slot);
            }
            Effect::Decide(slot) => self.owed.decisions.push(slot),
            Effect::RunHooks(ticket, _) if hangs => {
                self.check.seen.push("hook never answers");
                self.owed.hung_hooks.push(ticket);
            }
            Effect::RunHooks(ticket, point)
                if !matches!(
                    point,
                    HookPoint::ToolCall { .. } | HookPoint::ToolResult { .. } | HookPoint::Compact { .. }
                ) =>
            {
                self.check.seen.push("run waits for hooks of an event");
                self.owed.hooks.push((ticket, point));
            }
            Effect::RunHooks(ticket, point) => self.owed.hooks.push((ticket, point)),
            _ => {}
        }
    }

    /// The caller bounds how long hooks may take after an abort.
    pub(super) fn end_grace(&mut self) {
        let hung = std::mem::take(&mut self.owed.hung_hooks);
        let answer = |ticket| (ticket, HookPoint::Settle { aborted: true });
        self.owed.hooks.extend(hung.into_iter().map(answer));
    }

    pub(super) fn cancel_hooks(&mut self, ticket: u64) {
        self.check.seen.push("hooks withdrawn");
        self.owed.hooks.retain(|(own, _)| *own != ticket);
        self.owed.hung_hooks.retain(|own| *own != ticket);
    }

    pub(super) fn cancel_decisions(&mut self, which: impl Fn(usize) -> bool) {
        self.owed.decisions.retain(|slot| !which(*slot));
        self.owed.hung_decisions.retain(|slot| !which(*slot));
    }

    pub(super) fn cancel_tool(&mut self, slot: usize) {
        self.cancel_decisions(|own| own == slot);
        self.owed.prepare.retain(|own| *own != slot);
        self.owed.running.retain(|own| *own != slot);
    }

    /// The answer to one of the questions; none if none is open.
    pub(super) fn answer_question(&mut self) -> Option<Input> {
        if let Some(slot) = self.owed.decisions.pop() {
            let decision = if self.rng.once_in(5) {
                self.check.seen.push("permission denied");
                Prepared::Refused(ToolResult::error("denied"))
            } else {
                Prepared::Run
            };
            return Some(Input::Tool(slot, ToolInput::Decided(decision)));
        }
        let at = self.rng.below(self.owed.hooks.len());
        if at >= self.owed.hooks.len() {
            return None;
        }
        let (ticket, point) = self.owed.hooks.swap_remove(at);
        Some(Input::HooksDone(ticket, self.outcome(point)))
    }

    fn outcome(&mut self, point: HookPoint) -> HooksOutcome {
        match point {
            HookPoint::ToolCall { slot, .. } if self.rng.once_in(4) => {
                let seen = if is_nested(slot) {
                    "call of a tool blocked"
                } else {
                    "call blocked"
                };
                self.check.seen.push(seen);
                HooksOutcome::Refused(ToolResult::error("blocked"))
            }
            HookPoint::Compact { .. } => match self.rng.below(3) {
                0 => HooksOutcome::Cancel,
                1 => made().map_or(HooksOutcome::Cancel, |made| {
                    HooksOutcome::Compacted(Box::new(made))
                }),
                _ => HooksOutcome::Unchanged,
            },
            HookPoint::ToolResult { .. } if self.rng.once_in(2) => {
                self.check.seen.push("result changed");
                HooksOutcome::Result {
                    result: ToolResult::text(self.text("changed ")),
                    is_error: self.rng.once_in(2),
                }
            }
            _ => HooksOutcome::Unchanged,
        }
    }
}

/// A compaction as hooks make it; what it says is not looked at here.
fn made() -> Option<Finished> {
    let value = serde_json::json!({
        "entry": {"summary": "s", "firstKeptEntryId": "e0", "tokensBefore": 1},
        "result": {"summary": "s", "firstKeptEntryId": "e0", "tokensBefore": 1, "details": {}},
    });
    serde_json::from_value(value).ok()
}
