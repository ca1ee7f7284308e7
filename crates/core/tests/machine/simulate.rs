//! Thousands of random runs: whatever happens, every start has its end, every call one result, and the session settles.

use std::collections::HashMap;

use crate::common::World;
use pinion_core::{
    CompactOutcome, Effect, Input, LoopSettings, ModelInput, Prepared, QueueKind, ToolInput, Verdict,
};
use proptest::prelude::*;
use wire::state::{InterruptMode, QueueMode};
use wire::{Event, StopReason, ToolResult};

#[derive(Debug, Clone)]
enum Move {
    Prompt,
    Steer,
    FollowUp,
    Clear,
    Abort,
    AbortRetry,
    /// The world moves on: the model answers with so many calls, or the n-th pending tool reports.
    Go(u8),
    Fail(bool),
    Overflow,
    Compact,
    /// The next look at the context finds it full.
    Full,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        3 => Just(Move::Prompt),
        2 => Just(Move::Steer),
        2 => Just(Move::FollowUp),
        1 => Just(Move::Clear),
        2 => Just(Move::Abort),
        1 => Just(Move::AbortRetry),
        12 => any::<u8>().prop_map(Move::Go),
        2 => any::<bool>().prop_map(Move::Fail),
        1 => Just(Move::Overflow),
        1 => Just(Move::Compact),
        1 => Just(Move::Full),
    ];
    prop::collection::vec(one, 1..120)
}

/// What the world owes the machine.
#[derive(Default)]
struct Owed {
    model: bool,
    cancelled: bool,
    prepare: Vec<usize>,
    running: Vec<usize>,
    timer: bool,
    compacting: bool,
}

impl Owed {
    fn note(&mut self, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::CallModel => {
                    assert!(!self.model, "two requests at once");
                    self.model = true;
                    self.cancelled = false;
                }
                Effect::CancelModel => self.cancelled = true,
                Effect::PrepareTool(slot, _) => self.prepare.push(*slot),
                Effect::RunTool(slot) => self.running.push(*slot),
                Effect::Compact(_) => {
                    assert!(
                        !self.model && !self.compacting,
                        "compacting beside something else"
                    );
                    self.compacting = true;
                    self.cancelled = false;
                }
                Effect::CancelCompaction => self.cancelled = true,
                Effect::StartRetryTimer(_) => self.timer = true,
                Effect::CancelRetryTimer => self.timer = false,
                Effect::Idle => {
                    assert!(
                        !self.model && self.running.is_empty() && self.prepare.is_empty(),
                        "idle too early"
                    );
                }
                _ => {}
            }
        }
    }

    /// Something the world can report now.
    fn next(&mut self, choice: u8) -> Option<Input> {
        if self.timer {
            self.timer = false;
            return Some(Input::RetryDue);
        }
        if self.compacting {
            self.compacting = false;
            let outcome = if self.cancelled {
                CompactOutcome::Aborted
            } else {
                CompactOutcome::Failed("no".to_owned())
            };
            return Some(Input::Compacted(outcome));
        }
        if self.model {
            self.model = false;
            let stop = match () {
                () if self.cancelled => StopReason::Aborted,
                () if choice.is_multiple_of(11) => StopReason::Length,
                () => StopReason::Stop,
            };
            let calls: Vec<String> = (0..choice % 4).map(|n| n.to_string()).collect();
            let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
            let message = crate::common::answer(&calls, stop);
            return Some(Input::Model(ModelInput::Finished(message, Verdict::Final)));
        }
        if let Some(slot) = self.prepare.pop() {
            let outcome = if choice.is_multiple_of(5) {
                Prepared::Refused(ToolResult::error("no"))
            } else {
                Prepared::Run
            };
            return Some(Input::Tool(slot, ToolInput::Prepared(outcome)));
        }
        if self.running.is_empty() {
            return None;
        }
        let slot = self.running.remove(usize::from(choice) % self.running.len());
        let result = ToolResult::text("x");
        Some(Input::Tool(
            slot,
            ToolInput::Done {
                result,
                is_error: false,
                duration_ms: 0,
            },
        ))
    }
}

/// Checks the order of everything that was told.
fn check(effects: &[Effect]) {
    let (mut run, mut turn, mut open) = (false, false, None::<String>);
    let mut calls: HashMap<String, (u32, u32)> = HashMap::new();
    for effect in effects {
        let Effect::Emit(event) = effect else { continue };
        match event {
            Event::AgentStart => assert!(!std::mem::replace(&mut run, true), "run in a run"),
            Event::AgentEnd { .. } => assert!(std::mem::replace(&mut run, false) && !turn, "stray agent_end"),
            Event::TurnStart => {
                assert!(run && !std::mem::replace(&mut turn, true), "stray turn_start");
                calls.clear();
            }
            Event::TurnEnd { tool_results, .. } => {
                assert!(std::mem::replace(&mut turn, false), "stray turn_end");
                assert!(
                    calls.values().all(|(starts, ends)| starts == ends),
                    "a call without an end"
                );
                assert_eq!(calls.len(), tool_results.len(), "a call without a result");
            }
            Event::MessageStart { message } => assert!(open.replace(message.role().to_owned()).is_none()),
            Event::MessageEnd { message } => assert_eq!(open.take().as_deref(), Some(message.role())),
            Event::ToolExecutionStart { tool_call_id, .. } => {
                calls.entry(tool_call_id.clone()).or_default().0 += 1;
            }
            Event::ToolExecutionEnd { tool_call_id, .. } => {
                calls.entry(tool_call_id.clone()).or_default().1 += 1
            }
            Event::AgentSettled { .. } => assert!(!run && !turn && open.is_none(), "settled too early"),
            _ => {}
        }
    }
    assert!(!run && !turn && open.is_none(), "something never ended");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    #[test]
    fn every_start_has_its_end(moves in moves(), immediate: bool, all: bool) {
        let mut settings = LoopSettings::default();
        if immediate { settings.interrupt_mode = InterruptMode::Immediate; }
        if all { settings.steering_mode = QueueMode::All; settings.follow_up_mode = QueueMode::All; }
        let mut world = World::new(settings);
        let mut owed = Owed::default();
        let mut queued = 0_usize;
        for next in moves {
            let input = match next {
                Move::Prompt => Some(Input::Prompt { messages: vec![std::sync::Arc::new(wire::Message::user("p", 0))], full: false }),
                Move::Steer | Move::FollowUp => {
                    let kind = if matches!(next, Move::Steer) { QueueKind::Steering } else { QueueKind::FollowUp };
                    queued += 1;
                    let message = std::sync::Arc::new(wire::Message::user("q", 0));
                    Some(Input::Enqueue(kind, pinion_core::Queued { text: "q".to_owned(), message }))
                }
                Move::Clear => { queued -= world.machine.queued(); Some(Input::ClearQueue) }
                Move::Abort => Some(Input::Abort),
                Move::AbortRetry => Some(Input::AbortRetry),
                Move::Go(choice) => owed.next(choice),
                Move::Fail(retry) if owed.model => {
                    owed.model = false;
                    let verdict = if retry { Verdict::Retry(None) } else { Verdict::Final };
                    let message = crate::common::answer(&[], StopReason::Error);
                    Some(Input::Model(ModelInput::Finished(message, verdict)))
                }
                Move::Overflow if owed.model => {
                    owed.model = false;
                    let message = crate::common::answer(&[], StopReason::Error);
                    Some(Input::Model(ModelInput::Finished(message, Verdict::Overflow)))
                }
                Move::Compact => Some(Input::Compact),
                Move::Full => { world.full = true; None }
                Move::Fail(_) | Move::Overflow => None,
            };
            if let Some(input) = input {
                let effects = world.step(input);
                owed.note(&effects);
            }
        }
        // Let everything come to its end.
        for round in 0..2_000_u32 {
            let Some(input) = owed.next(if round % 3 == 0 { 4 } else { 8 }) else { break };
            let effects = world.step(input);
            owed.note(&effects);
        }
        prop_assert!(world.machine.is_idle(), "never idle");
        check(&world.effects);
        let delivered = world.machine.messages().iter()
            .filter(|message| matches!(message.as_ref(), wire::Message::User(user) if user.content.text() == "q")).count();
        prop_assert_eq!(delivered + world.machine.queued(), queued, "a queued message was lost or doubled");
    }
}
