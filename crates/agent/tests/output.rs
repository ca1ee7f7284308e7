//! Results that a run must give: accepted, repaired, given up, and what `agent_end` says of them.

use std::sync::Arc;

use pinion_agent::{
    CompactOutcome, Effect, Input, LoopSettings, Machine, ModelInput, Prepared, QueueKind, Queued, ToolInput,
    Verdict, output,
};
use serde_json::{Value, json};
use wire::content::AssistantBlock;
use wire::{AssistantMessage, Event, Message, RunLimits, StopReason, ToolCall, ToolResult};

/// A machine whose calls are all prepared and allowed; the test gives their results.
struct World {
    machine: Machine,
    effects: Vec<Effect>,
}

impl World {
    fn new(settings: LoopSettings) -> Self {
        Self {
            machine: Machine::new(settings, Vec::new()),
            effects: Vec::new(),
        }
    }

    fn prompted() -> Self {
        let mut world = Self::new(LoopSettings::default());
        world.prompt(true);
        world
    }

    fn step(&mut self, input: Input) {
        let mut out = Vec::new();
        self.machine.step(input, 0, &mut out);
        for effect in out {
            let follows = match &effect {
                Effect::CheckContext => Some(Input::Context(false)),
                Effect::ChooseModel => Some(Input::Fallback(None)),
                Effect::PrepareTool(slot, call) if call.arguments.contains_key("invalid") => {
                    let refused = Prepared::Refused(ToolResult::error("it does not fit"));
                    Some(Input::Tool(*slot, ToolInput::Prepared(refused)))
                }
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

    fn prompt(&mut self, wants_result: bool) {
        self.step(Input::Prompt {
            messages: vec![Arc::new(Message::user("go", 0))],
            full: false,
            limits: None,
            wants_result,
        });
    }

    /// An answer with these calls: names and arguments.
    fn answer(&mut self, calls: &[(&str, Value)]) {
        let mut answer = AssistantMessage::begin("api", "provider", "model", 0);
        let is_text = calls.is_empty();
        answer.stop_reason = if is_text {
            StopReason::Stop
        } else {
            StopReason::ToolUse
        };
        answer
            .content
            .extend(calls.iter().enumerate().map(|(slot, (name, args))| {
                AssistantBlock::ToolCall(ToolCall {
                    id: slot.to_string(),
                    name: (*name).to_owned(),
                    arguments: args.as_object().cloned().unwrap_or_default(),
                    ..ToolCall::default()
                })
            }));
        self.step(Input::Model(ModelInput::Finished(answer, Verdict::Final)));
    }

    fn text(&mut self) {
        self.answer(&[]);
    }

    fn submit(&mut self, value: &Value) {
        self.answer(&[(output::TOOL, json!({"value": value}))]);
        self.accept(0, value);
    }

    fn submit_invalid(&mut self) {
        self.answer(&[(output::TOOL, json!({"invalid": true}))]);
    }

    /// The tool took the value.
    fn accept(&mut self, slot: usize, value: &Value) {
        let result = ToolResult {
            structured_content: Some(value.clone()),
            terminate: Some(true),
            ..ToolResult::text("accepted")
        };
        self.done(slot, result, false);
    }

    fn done(&mut self, slot: usize, result: ToolResult, is_error: bool) {
        self.step(Input::Tool(
            slot,
            ToolInput::Done {
                result,
                is_error,
                duration_ms: 1,
            },
        ));
    }

    fn requests(&self) -> usize {
        let is_request = |effect: &&Effect| matches!(effect, Effect::CallModel);
        self.effects.iter().filter(is_request).count()
    }

    /// `will_retry`, result and error of each run.
    fn ends(&self) -> Vec<(bool, Option<Value>, Option<String>)> {
        let ends = self.effects.iter().filter_map(|effect| match effect {
            Effect::Emit(Event::AgentEnd {
                will_retry,
                result,
                result_error,
                ..
            }) => Some((*will_retry, result.clone(), result_error.clone())),
            _ => None,
        });
        ends.collect()
    }

    fn gives(&self, value: &Value) {
        assert_eq!(self.ends(), [(false, Some(value.clone()), None)]);
        assert!(self.machine.is_idle() && !self.machine.output().is_expected());
    }

    fn fails(&self, error: &str) {
        assert_eq!(self.ends(), [(false, None, Some(error.to_owned()))]);
        assert!(self.machine.is_idle());
    }

    /// Texts of the messages that only the model gets.
    fn reminders(&self) -> usize {
        let is_reminder = |effect: &&Effect| matches!(effect, Effect::Persist(message) if matches!(&**message, Message::Custom(custom) if !custom.display));
        self.effects.iter().filter(is_reminder).count()
    }
}

#[test]
fn accepted_result_ends_run() {
    let mut world = World::prompted();
    assert!(world.machine.output().is_expected());
    world.submit(&json!({"n": 1}));
    world.gives(&json!({"n": 1}));
    assert_eq!(world.requests(), 1);
}

#[test]
fn null_is_a_result() {
    let mut world = World::prompted();
    world.submit(&Value::Null);
    world.gives(&Value::Null);
}

#[test]
fn answers_without_result_are_reminded() {
    let mut world = World::prompted();
    world.text();
    world.text();
    world.submit(&json!(3));
    world.gives(&json!(3));
    assert_eq!((world.requests(), world.reminders()), (3, 2));
}

#[test]
fn stubborn_models_are_given_up() {
    let mut world = World::prompted();
    (0..4).for_each(|_| world.text());
    world.fails("The model gave no result");
    assert_eq!((world.requests(), world.reminders()), (4, 3));

    let mut world = World::prompted();
    (0..4).for_each(|_| world.submit_invalid());
    world.fails("it does not fit");
    assert_eq!((world.requests(), world.reminders()), (4, 0));

    let mut world = World::prompted();
    world.submit_invalid();
    world.text();
    world.submit_invalid();
    world.text();
    world.fails("it does not fit");
}

#[test]
fn repaired_result_counts() {
    let mut world = World::prompted();
    world.submit_invalid();
    world.submit(&json!("right"));
    world.gives(&json!("right"));
}

#[test]
fn other_tools_run_before_and_beside_result() {
    let mut world = World::prompted();
    world.answer(&[("bash", json!({}))]);
    world.done(0, ToolResult::text("ok"), false);
    assert_eq!(world.reminders(), 0);
    world.answer(&[("bash", json!({})), (output::TOOL, json!({}))]);
    world.accept(1, &json!([1]));
    assert!(world.ends().is_empty(), "the other call still runs");
    world.done(0, ToolResult::text("ok"), false);
    world.gives(&json!([1]));
}

#[test]
fn last_result_of_answer_counts() {
    let mut world = World::prompted();
    world.answer(&[(output::TOOL, json!({})), (output::TOOL, json!({}))]);
    world.accept(1, &json!("second"));
    world.accept(0, &json!("first"));
    world.gives(&json!("second"));
}

#[test]
fn failed_call_gives_no_result() {
    let mut world = World::prompted();
    world.answer(&[(output::TOOL, json!({}))]);
    let refused_by_hook = ToolResult {
        structured_content: Some(json!(1)),
        ..ToolResult::error("no")
    };
    world.done(0, refused_by_hook, true);
    assert!(world.ends().is_empty());
    world.submit(&json!(2));
    world.gives(&json!(2));
}

#[test]
fn prompt_without_schema_has_no_result() {
    let mut world = World::new(LoopSettings::default());
    world.prompt(false);
    world.submit(&json!(1));
    assert_eq!(world.ends(), [(false, None, None)]);
}

#[test]
fn steering_after_result_may_change_it() {
    let mut world = World::prompted();
    world.answer(&[(output::TOOL, json!({}))]);
    world.step(Input::Enqueue(
        QueueKind::Steering,
        Queued {
            text: "better".to_owned(),
            message: Arc::new(Message::user("better", 0)),
            interrupts: false,
        },
    ));
    world.accept(0, &json!(1));
    assert!(world.ends().is_empty());
    world.submit(&json!(2));
    world.gives(&json!(2));
}

#[test]
fn text_after_steering_keeps_result() {
    let mut world = World::prompted();
    world.answer(&[(output::TOOL, json!({}))]);
    world.step(Input::Enqueue(
        QueueKind::FollowUp,
        Queued {
            text: "thanks".to_owned(),
            message: Arc::new(Message::user("thanks", 0)),
            interrupts: false,
        },
    ));
    world.accept(0, &json!(1));
    world.text();
    world.gives(&json!(1));
    assert_eq!(world.reminders(), 0);
}

#[test]
fn retried_run_still_owes_result() {
    let mut world = World::prompted();
    let mut answer = AssistantMessage::begin("api", "provider", "model", 0);
    answer.stop_reason = StopReason::Error;
    answer.error_message = Some("overloaded".to_owned());
    let failed = |verdict| Input::Model(ModelInput::Finished(answer.clone(), verdict));
    let mut settings = world.machine.settings();
    settings.retry.enabled = true;
    settings.retry.max_retries = 1;
    world.step(pinion_agent::Change::Settings(settings).into());
    world.step(failed(Verdict::Retry(None)));
    world.step(Input::RetryDue);
    world.submit(&json!(1));
    assert_eq!(world.ends(), [(true, None, None), (false, Some(json!(1)), None)]);

    world.effects.clear();
    world.prompt(true);
    world.step(failed(Verdict::Final));
    world.fails("overloaded");
}

#[test]
fn announced_run_that_never_begins_says_why() {
    let mut answer = AssistantMessage::begin("api", "provider", "model", 0);
    answer.stop_reason = StopReason::Error;
    answer.error_message = Some("failed".to_owned());
    let no_room = CompactOutcome::Failed("no".to_owned());
    let table = [
        (
            Verdict::Retry(None),
            Input::Abort,
            "The run was aborted before the model gave a result",
        ),
        (Verdict::Retry(None), Input::AbortRetry, "Retry cancelled"),
        (
            Verdict::Overflow,
            Input::Compacted(no_room),
            "Context overflow recovery failed: no",
        ),
        (
            Verdict::Overflow,
            Input::Compacted(CompactOutcome::Aborted),
            "Context overflow recovery failed: Compaction cancelled",
        ),
    ];
    for (verdict, input, error) in table {
        let failed = Input::Model(ModelInput::Finished(answer.clone(), verdict));
        let mut world = World::prompted();
        world.step(failed.clone());
        world.step(input.clone());
        assert_eq!(
            world.ends(),
            [(true, None, None), (false, None, Some(error.to_owned()))]
        );
        assert!(world.machine.is_idle() && world.requests() == 1);
        // Without a schema there is nothing to tell.
        let mut world = World::new(LoopSettings::default());
        world.prompt(false);
        world.step(failed);
        world.step(input);
        assert_eq!(world.ends(), [(true, None, None)]);
        assert!(world.machine.is_idle());
    }
}

#[test]
fn aborted_and_limited_runs_say_why() {
    let mut world = World::prompted();
    world.step(Input::Abort);
    let mut answer = AssistantMessage::begin("api", "provider", "model", 0);
    answer.stop_reason = StopReason::Aborted;
    world.step(Input::Model(ModelInput::Finished(answer, Verdict::Final)));
    world.fails("The run was aborted before the model gave a result");

    let limits: RunLimits = serde_json::from_value(json!({"maxTurns": 1})).unwrap();
    let mut world = World::new(LoopSettings {
        limits,
        ..LoopSettings::default()
    });
    world.prompt(true);
    world.submit_invalid();
    world.fails("Limit reached: 1 turn");
    // With a higher limit the run goes on, and still owes its result.
    world.effects.clear();
    let limits: RunLimits = serde_json::from_value(json!({"maxTurns": 5})).unwrap();
    world.step(pinion_agent::Change::Limits { limits, reset: false }.into());
    world.step(Input::Continue { full: false });
    assert!(world.machine.output().is_expected());
    world.submit(&json!(1));
    world.gives(&json!(1));
}

#[test]
fn next_prompt_forgets_result() {
    let mut world = World::prompted();
    (0..4).for_each(|_| world.text());
    world.effects.clear();
    world.prompt(false);
    assert!(!world.machine.output().is_expected());
    world.text();
    assert_eq!(world.ends(), [(false, None, None)]);
}
