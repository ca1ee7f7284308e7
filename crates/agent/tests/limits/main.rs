//! Limits of runs: each kind ends a run in order, and no request is made beyond one.

mod family;
mod simulation;

use std::sync::Arc;

use pinion_agent::{
    Change, CompactOutcome, Effect, Input, LoopSettings, Machine, ModelInput, NestedCall, Prepared,
    RetrySettings, Spent, ToolInput, Verdict,
};
use serde_json::{Map, Value, json};
use wire::content::{AssistantBlock, joined_text};
use wire::run_limits::{LimitKind, ReachedLimit};
use wire::{AssistantMessage, Event, Message, RunLimits, StopReason, ToolCall, ToolResult};

/// A machine with a clock, whose effects are kept.
struct World {
    machine: Machine,
    now: i64,
    effects: Vec<Effect>,
}

impl World {
    fn new(limits: RunLimits) -> Self {
        let settings = LoopSettings {
            limits,
            retry: RetrySettings::default(),
            ..LoopSettings::default()
        };
        Self {
            machine: Machine::new(settings, Vec::new()),
            now: 0,
            effects: Vec::new(),
        }
    }

    /// Gives an input; the context has room and every call is allowed.
    fn step(&mut self, input: Input) {
        let mut out = Vec::new();
        self.machine.step(input, self.now, &mut out);
        for effect in out {
            let follows = match &effect {
                Effect::CheckContext => Some(Input::Context(false)),
                Effect::ChooseModel => Some(Input::Fallback(None)),
                Effect::PrepareTool(slot, _) => Some(Input::Tool(*slot, ToolInput::Prepared(Prepared::Run))),
                Effect::Decide(slot) => Some(Input::Tool(*slot, ToolInput::Decided(Prepared::Run))),
                _ => None,
            };
            self.effects.push(effect);
            if let Some(input) = follows {
                self.step(input);
            }
        }
    }

    fn prompt(&mut self, limits: Option<RunLimits>) {
        self.step(Input::Prompt {
            messages: vec![Arc::new(Message::user("go", 0))],
            full: false,
            limits,
            wants_result: false,
        });
    }

    fn answer(&mut self, calls: &[&str], cost: f64) {
        let mut answer = AssistantMessage::begin("api", "provider", "model", self.now);
        answer.stop_reason = if calls.is_empty() {
            StopReason::Stop
        } else {
            StopReason::ToolUse
        };
        answer.usage.input = 10;
        answer.usage.cost.total = cost;
        answer.content.extend(calls.iter().map(|id| {
            AssistantBlock::ToolCall(ToolCall {
                id: (*id).to_owned(),
                name: "tool".to_owned(),
                arguments: Map::from_iter([("same".to_owned(), json!(true))]),
                ..ToolCall::default()
            })
        }));
        self.step(Input::Model(ModelInput::Finished(answer, Verdict::Final)));
    }

    fn fail(&mut self) {
        self.fail_as(Verdict::Retry(None));
    }

    fn fail_as(&mut self, verdict: Verdict) {
        let mut answer = AssistantMessage::begin("api", "provider", "model", self.now);
        answer.stop_reason = StopReason::Error;
        answer.error_message = Some("overloaded".to_owned());
        self.step(Input::Model(ModelInput::Finished(answer, verdict)));
    }

    fn done(&mut self, slot: usize, text: &str) {
        self.step(Input::Tool(
            slot,
            ToolInput::Done {
                result: ToolResult::text(text),
                is_error: false,
                duration_ms: 1,
            },
        ));
    }

    fn requests(&self) -> usize {
        let is_request = |effect: &&Effect| matches!(effect, Effect::CallModel);
        self.effects.iter().filter(is_request).count()
    }

    /// The limits that runs ended with; none for runs that ended otherwise.
    fn ends(&self) -> Vec<Option<(LimitKind, f64)>> {
        let ends = self.effects.iter().filter_map(|effect| match effect {
            Effect::Emit(Event::AgentEnd { limit, .. }) => Some(*limit),
            _ => None,
        });
        ends.map(|limit| limit.map(|ReachedLimit { kind, value }| (kind, value)))
            .collect()
    }
}

fn limits(value: Value) -> RunLimits {
    serde_json::from_value(value).unwrap_or_default()
}

#[test]
fn turns_end_after_results_are_stored() {
    let mut world = World::new(limits(json!({"maxTurns": 2})));
    world.prompt(None);
    world.answer(&["a"], 0.0);
    world.done(0, "one");
    world.answer(&["b"], 0.0);
    world.done(0, "two");
    assert_eq!(world.ends(), [Some((LimitKind::Turns, 2.0))]);
    assert_eq!(world.requests(), 2);
    let newest = world.machine.messages().last();
    assert!(
        newest.is_some_and(|message| matches!(**message, Message::ToolResult(_))),
        "{newest:?}"
    );
    assert!(world.machine.is_idle() && world.machine.can_continue());
}

#[test]
fn higher_limit_and_continue_resume() {
    let mut world = World::new(limits(json!({"maxTurns": 1})));
    world.prompt(None);
    world.answer(&["a"], 0.0);
    world.done(0, "one");
    world.step(
        Change::Limits {
            limits: limits(json!({"maxTurns": 2})),
            reset: false,
        }
        .into(),
    );
    world.step(Input::Continue { full: false });
    world.answer(&[], 0.0);
    assert_eq!(world.ends(), [Some((LimitKind::Turns, 1.0)), None]);
    assert_eq!(world.machine.budget().used().turns, 2);
}

#[test]
fn run_that_ends_by_itself_has_no_limit() {
    let mut world = World::new(limits(json!({"maxTurns": 1})));
    world.prompt(None);
    world.answer(&[], 0.0);
    assert_eq!(world.ends(), [None]);
}

#[test]
fn retries_count_as_turns() {
    let mut world = World::new(limits(json!({"maxTurns": 2})));
    world.prompt(None);
    world.fail();
    world.step(Input::RetryDue);
    world.fail();
    assert_eq!(world.ends(), [None, Some((LimitKind::Turns, 2.0))]);
    assert!(world.machine.is_idle());
}

#[test]
fn sums_of_costs_reach_limit() {
    let mut world = World::new(limits(json!({"maxCost": 0.3})));
    world.prompt(None);
    for call in ["a", "b", "c"] {
        world.answer(&[call], 0.1);
        world.done(0, call);
    }
    // 0.1 + 0.1 + 0.1 is not quite 0.3 with floats.
    assert_eq!(world.ends(), [Some((LimitKind::Cost, 0.3))]);
}

#[test]
fn calls_beyond_limit_are_refused() {
    let mut world = World::new(limits(json!({"maxToolCalls": 2})));
    world.prompt(None);
    world.answer(&["a", "b", "c"], 0.0);
    world.done(0, "one");
    world.done(1, "two");
    assert_eq!(world.ends(), [Some((LimitKind::ToolCalls, 2.0))]);
    let started = world.effects.iter();
    let started = started.filter(|effect| matches!(effect, Effect::RunTool(_)));
    assert_eq!(started.count(), 2);
    let texts: Vec<String> = world
        .machine
        .messages()
        .iter()
        .map(|message| format!("{message:?}"))
        .collect();
    assert!(
        texts[4].contains("The limit of tool calls is reached"),
        "{}",
        texts[4]
    );
    assert_eq!(world.machine.budget().used().tool_calls, 2);
}

#[test]
fn calls_up_to_limit_are_answered() {
    let mut world = World::new(limits(json!({"maxToolCalls": 1})));
    world.prompt(None);
    world.answer(&["a"], 0.0);
    world.done(0, "one");
    world.answer(&[], 0.0);
    assert_eq!(world.ends(), [None]);
}

#[test]
fn time_ends_run_that_is_aborted_at_deadline() {
    let mut world = World::new(limits(json!({"maxSeconds": 2})));
    world.now = 1_000;
    world.prompt(None);
    assert_eq!(world.machine.deadline(), Some(3_000));
    world.now = 2_500;
    world.answer(&["a"], 0.0);
    assert_eq!(world.machine.deadline(), Some(3_000));
    world.now = 3_000;
    world.step(Input::Abort);
    assert!(world.effects.contains(&Effect::CancelTools));
    world.done(0, "late");
    assert_eq!(world.ends(), [Some((LimitKind::Seconds, 2.0))]);
    // Idle time does not count.
    world.now = 60_000;
    assert_eq!(world.machine.budget().used().seconds, 2.0);
    assert_eq!(world.machine.deadline(), None);
}

#[test]
fn time_is_named_beside_other_limits() {
    let mut world = World::new(limits(json!({"maxTurns": 1, "maxSeconds": 2})));
    world.prompt(None);
    world.answer(&["a"], 0.0);
    world.now = 2_000;
    world.step(Input::Abort);
    world.done(0, "late");
    assert_eq!(world.ends(), [Some((LimitKind::Seconds, 2.0))]);
}

#[test]
fn time_over_in_retry_delay_is_named() {
    let mut world = World::new(limits(json!({"maxSeconds": 2})));
    world.prompt(None);
    world.fail();
    world.now = 2_000;
    assert_eq!(world.machine.deadline(), Some(2_000));
    world.step(Input::Abort);
    assert_eq!(world.ends(), [None, Some((LimitKind::Seconds, 2.0))]);
    assert_eq!(world.requests(), 1);
    assert!(world.machine.is_idle());
}

#[test]
fn limit_in_retry_delay_ends_retries() {
    let mut world = World::new(limits(json!({"maxTurns": 5})));
    world.prompt(None);
    world.fail();
    let limits = limits(json!({"maxTurns": 1}));
    world.step(Change::Limits { limits, reset: false }.into());
    world.step(Input::RetryDue);
    assert_eq!(world.ends(), [None, Some((LimitKind::Turns, 1.0))]);
    let mut ends = world.effects.iter().filter_map(|effect| match effect {
        Effect::Emit(Event::AutoRetryEnd { final_error, .. }) => final_error.as_deref(),
        _ => None,
    });
    assert_eq!(ends.next(), Some("Limit reached: 1 turn"));
}

#[test]
fn limit_reached_by_recovery_is_named() {
    let mut world = World::new(limits(json!({"maxTurns": 2})));
    world.prompt(None);
    world.fail_as(Verdict::Overflow);
    let summary = Spent {
        requests: 1,
        ..Spent::default()
    };
    world.step(Input::Spent(summary));
    world.step(Input::Compacted(CompactOutcome::Failed("no".to_owned())));
    assert_eq!(world.ends(), [None, Some((LimitKind::Turns, 2.0))]);
    assert_eq!(world.requests(), 1);
    assert!(world.machine.is_idle());
}

#[test]
fn overflow_at_limit_reports_no_recovery() {
    let mut world = World::new(limits(json!({"maxTurns": 1})));
    world.prompt(None);
    world.fail_as(Verdict::Overflow);
    assert_eq!(world.ends(), [Some((LimitKind::Turns, 1.0))]);
    let is_recovery = |effect: &Effect| matches!(effect, Effect::Emit(Event::CompactionEnd { .. }));
    assert!(!world.effects.iter().any(is_recovery));
}

#[test]
fn user_abort_names_no_limit() {
    let mut world = World::new(limits(json!({"maxTurns": 1, "maxSeconds": 9})));
    world.prompt(None);
    world.answer(&["a"], 0.0);
    world.step(Input::Abort);
    world.done(0, "late");
    assert_eq!(world.ends(), [None]);
}

#[test]
fn same_calls_with_same_results_end_run() {
    let mut world = World::new(limits(json!({"maxRepeats": 3})));
    world.prompt(None);
    for result in ["same", "other", "same", "same", "same"] {
        assert_eq!(world.ends(), []);
        world.answer(&["a"], 0.0);
        world.done(0, result);
    }
    assert_eq!(world.ends(), [Some((LimitKind::Repeats, 3.0))]);
}

#[test]
fn repeated_calls_do_not_prevent_next_prompt() {
    let mut world = World::new(limits(json!({"maxRepeats": 2})));
    for _ in 0..2 {
        world.prompt(None);
        for _ in 0..2 {
            world.answer(&["a"], 0.0);
            world.done(0, "same");
        }
        assert_eq!(world.machine.budget().reached(), None);
    }
    let repeats = Some((LimitKind::Repeats, 2.0));
    assert_eq!(world.ends(), [repeats, repeats]);
}

#[test]
fn nested_call_at_limit_names_the_limit() {
    let mut world = World::new(limits(json!({"maxToolCalls": 1})));
    world.prompt(None);
    world.answer(&["a"], 0.0);
    world.step(Input::Nest(NestedCall {
        request: Some(7),
        parent: "a".to_owned(),
        name: "tool".to_owned(),
        args: Map::new(),
    }));
    let answer = world.effects.iter().find_map(|effect| match effect {
        Effect::AnswerNested { result, .. } => Some(joined_text(&result.content)),
        _ => None,
    });
    let refusal = "The limit of tool calls is reached; this call was not executed";
    assert_eq!(answer.as_deref(), Some(refusal));
}

#[test]
fn limits_of_prompt_end_with_it() {
    let mut world = World::new(limits(json!({"maxTurns": 5})));
    world.prompt(Some(limits(json!({"maxTurns": 1}))));
    world.answer(&["a"], 0.0);
    world.done(0, "one");
    world.prompt(None);
    world.answer(&["b"], 0.0);
    world.done(0, "two");
    world.answer(&[], 0.0);
    assert_eq!(world.ends(), [Some((LimitKind::Turns, 1.0)), None]);
    assert_eq!(world.machine.budget().used().turns, 3);
}

#[test]
fn model_is_told_once_at_80_percent() {
    let mut world = World::new(limits(json!({"maxTurns": 5, "warn": true})));
    world.prompt(None);
    for call in ["a", "b", "c", "d", "e"] {
        world.answer(&[call], 0.0);
        world.done(0, "one");
    }
    let warnings = world.machine.messages().iter().enumerate();
    let warnings: Vec<usize> = warnings
        .filter(|(_, message)| matches!(&***message, Message::Custom(custom) if custom.custom_type == "limit-warning"))
        .map(|(at, _)| at)
        .collect();
    // The user's message, four answers with results, then the warning.
    assert_eq!(warnings, [9]);
}

#[test]
fn machine_without_limits_counts_and_ends_as_ever() {
    let mut world = World::new(RunLimits::default());
    world.prompt(None);
    world.answer(&["a"], 0.5);
    world.done(0, "one");
    world.answer(&[], 0.5);
    let used = world.machine.budget().used();
    assert_eq!(
        (used.turns, used.tool_calls, used.tokens, used.cost),
        (2, 1, 20, 1.0)
    );
    let text = serde_json::to_string(&world.effects).unwrap();
    assert!(!text.contains("limit"), "{text}");
}
