//! Hook points: what waits for subscribers, and what their answers change.

use std::sync::Arc;

use crate::common::{World, answer, head};
use pinion_agent::{
    Change, CompactOutcome, Effect, HookPoint, HooksOutcome, Input, LoopSettings, ModelInput, NestedCall,
    Prepared, Subscriptions, ToolInput, Verdict,
};
use wire::{AssistantMessage, Event, Message, RunLimits, StopReason, ToolResult};

fn world(points: &[&str]) -> World {
    let mut world = World::new(LoopSettings::default());
    let waits = points.iter().map(|name| (*name).to_owned()).collect();
    let tells = Vec::new();
    world.step(Change::Hooks(Subscriptions { waits, tells }).into());
    world
}

/// The questions to hooks among effects.
fn asked(effects: &[Effect]) -> Vec<(u64, HookPoint)> {
    let asked = effects.iter().filter_map(|effect| match effect {
        Effect::RunHooks(ticket, point) => Some((*ticket, point.clone())),
        _ => None,
    });
    asked.collect()
}

/// Answers the newest question. Without one the machine gets a ticket that it never gave, and ignores it.
fn done(world: &mut World, outcome: HooksOutcome) -> Vec<Effect> {
    let ticket = asked(&world.effects).pop().map_or(u64::MAX, |(ticket, _)| ticket);
    world.step(Input::HooksDone(ticket, outcome))
}

fn user(text: &str) -> Arc<Message> {
    Arc::new(Message::user(text, 0))
}

fn result(text: &str) -> ToolInput {
    ToolInput::Done {
        result: ToolResult::text(text),
        is_error: false,
        duration_ms: 1,
    }
}

#[test]
fn event_with_subscriber_holds_back_what_follows() {
    let mut world = world(&["turn_start"]);
    world.prompt("go");
    assert_eq!(world.take(), ["agent_start", "HOOKS turn_start"]);
    assert!(world.machine.is_holding() && world.machine.activity().is_running());
    world.queue(pinion_agent::QueueKind::FollowUp, "later");
    assert_eq!(world.take(), [""; 0]);
    done(&mut world, HooksOutcome::Unchanged);
    assert_eq!(
        world.take(),
        ["turn_start", "user go", "CALL", "queue [] [\"later\"]"]
    );
    assert!(!world.machine.is_holding());
}

#[test]
fn late_answer_of_hooks_changes_nothing() {
    let mut world = world(&["agent_start"]);
    world.prompt("go");
    done(&mut world, HooksOutcome::Unchanged);
    assert_eq!(done(&mut world, HooksOutcome::Continue), []);
    assert_eq!(world.step(Input::HooksDone(99, HooksOutcome::Unchanged)), []);
}

#[test]
fn abort_releases_event_and_withdraws_its_hooks() {
    let mut world = world(&["agent_start"]);
    world.prompt("go");
    world.take();
    world.step(Input::Abort);
    assert_eq!(
        world.take(),
        [
            "CANCEL HOOKS",
            "agent_start",
            "turn_start",
            "user go",
            "CALL",
            "CANCEL MODEL"
        ]
    );
}

#[test]
fn replaced_message_appears_in_conversation_and_later_events() {
    let mut world = world(&["message_end"]);
    world.prompt("go");
    done(&mut world, HooksOutcome::Unchanged);
    world.step(Input::Model(ModelInput::Started(head())));
    let calling = answer(&["a"], StopReason::ToolUse);
    world.step(Input::Model(ModelInput::Finished(calling, Verdict::Final)));
    done(&mut world, HooksOutcome::Unchanged);
    world.prepared(0);
    world.effects.clear();
    world.step(Input::Tool(0, result("secret")));
    let new = user("other");
    let mut effects = done(&mut world, HooksOutcome::Message(Arc::clone(&new)));
    assert!(effects.contains(&Effect::Persist(Arc::clone(&new))));
    assert!(effects.contains(&Effect::CallModel));
    world.answer(&[], StopReason::Stop);
    effects.extend(done(&mut world, HooksOutcome::Unchanged));
    let end = effects.iter().find_map(|effect| match effect {
        Effect::Emit(Event::AgentEnd { messages, .. }) => Some(messages.clone()),
        _ => None,
    });
    assert!(end.unwrap().iter().any(|message| Arc::ptr_eq(message, &new)));
    // What the tool itself gave back stays in the events before its message.
    assert!(!format!("{effects:?}{:?}", world.machine).contains("secret"));
}

#[test]
fn replaced_answer_decides_which_calls_run() {
    let mut world = world(&["message_end"]);
    world.prompt("go");
    done(&mut world, HooksOutcome::Unchanged);
    world.answer(&["a", "b"], StopReason::ToolUse);
    assert!(!world.machine.is_holding());
    let other = answer(&["b"], StopReason::ToolUse);
    world.take();
    let effects = done(&mut world, HooksOutcome::Answer(other.clone()));
    assert_eq!(world.take(), ["assistant ToolUse", "start b", "PREPARE 0"]);
    let message: Arc<Message> = other.into();
    assert!(effects.contains(&Effect::Persist(message)));
}

#[test]
fn every_message_is_shown_to_hooks_once() {
    let mut world = world(&["message_end"]);
    world.step(Input::Prompt {
        messages: vec![user("one"), user("two")],
        full: false,
        limits: None,
        wants_result: false,
    });
    done(&mut world, HooksOutcome::Unchanged);
    done(&mut world, HooksOutcome::Unchanged);
    world.answer(&[], StopReason::Stop);
    done(&mut world, HooksOutcome::Unchanged);
    assert!(world.machine.is_idle() && !world.machine.is_holding());
    assert_eq!(asked(&world.effects).len(), 3);
}

#[test]
fn hooks_that_want_to_continue_get_one_request() {
    let mut world = world(&["agent_before_settle"]);
    world.prompt("go");
    world.answer(&[], StopReason::Stop);
    // The conversation ends with an answer, so there is nothing to ask.
    world.take();
    done(&mut world, HooksOutcome::Continue);
    let refusal =
        "HOOKS FAILED agent_before_settle there is nothing to answer: the conversation ends with an answer";
    assert_eq!(world.take(), [refusal, "settled", "IDLE"]);
    world.prompt("again");
    world.answer(&[], StopReason::Stop);
    world.step(Change::Add(user("note")).into());
    world.take();
    done(&mut world, HooksOutcome::Continue);
    assert_eq!(world.take(), ["IDLE", "agent_start", "turn_start", "CALL"]);
    world.step(Change::Add(user("more")).into());
    world.answer(&[], StopReason::Stop);
    world.take();
    done(&mut world, HooksOutcome::Unchanged);
    assert_eq!(world.take(), ["settled", "IDLE"]);
}

#[test]
fn abort_before_settling_prevents_continuation() {
    let mut world = world(&["agent_before_settle"]);
    world.prompt("go");
    world.answer(&[], StopReason::Stop);
    world.step(Change::Add(user("note")).into());
    assert!(world.machine.is_idle() && !world.machine.has_settled());
    world.take();
    world.step(Input::Abort);
    done(&mut world, HooksOutcome::Continue);
    assert_eq!(world.take(), ["settled", "IDLE"]);
    assert!(world.machine.has_settled());
    // The abort is about that run only.
    world.prompt("again");
    world.answer(&[], StopReason::Stop);
    world.step(Change::Add(user("more")).into());
    world.take();
    done(&mut world, HooksOutcome::Continue);
    assert_eq!(world.take(), ["IDLE", "agent_start", "turn_start", "CALL"]);
}

#[test]
fn abort_at_last_event_prevents_continuation() {
    let mut world = world(&["turn_end", "agent_before_settle"]);
    world.prompt("go");
    world.take();
    world.fail("no", Verdict::Final);
    assert_eq!(world.take(), ["assistant Error", "HOOKS turn_end"]);
    assert!(world.machine.is_idle() && !world.machine.has_settled());
    world.step(Input::Abort);
    assert_eq!(
        world.take(),
        [
            "CANCEL HOOKS",
            "turn_end 0",
            "agent_end 2",
            "HOOKS agent_before_settle"
        ]
    );
    done(&mut world, HooksOutcome::Continue);
    assert_eq!(world.take(), ["settled", "IDLE"]);
}

#[test]
fn abort_withdraws_start_of_held_call() {
    let mut world = world(&["tool_execution_end"]);
    world.prompt("go");
    world.answer(&["a", "b"], StopReason::ToolUse);
    world.prepared(0);
    world.take();
    // The last call is prepared, so the first one would start behind its end.
    world.refused(1, "no");
    assert_eq!(world.take(), ["HOOKS tool_execution_end"]);
    world.step(Input::Abort);
    assert_eq!(
        world.take(),
        [
            "CANCEL HOOKS",
            "end b no",
            "CANCEL TOOLS",
            "HOOKS tool_execution_end"
        ]
    );
    done(&mut world, HooksOutcome::Unchanged);
    assert_eq!(world.take().first().unwrap(), "end a Operation aborted");
    assert!(!world.effects.contains(&Effect::RunTool(0)));
    assert!(world.machine.is_idle());
}

#[test]
fn replaced_answer_counts_use_of_its_request() {
    let mut world = world(&["message_end"]);
    world.prompt("go");
    done(&mut world, HooksOutcome::Unchanged);
    world.step(Input::Model(ModelInput::Started(head())));
    let mut billed = answer(&[], StopReason::Stop);
    billed.usage.input = 10;
    world.step(Input::Model(ModelInput::Finished(billed, Verdict::Final)));
    let without_usage = answer(&[], StopReason::Stop);
    done(&mut world, HooksOutcome::Answer(without_usage));
    assert_eq!(world.machine.budget().used().tokens, 10);
}

#[test]
fn limits_of_prompt_hold_for_request_of_hooks() {
    let mut world = world(&["agent_before_settle"]);
    world.step(Input::Prompt {
        messages: vec![user("go")],
        full: false,
        limits: Some(RunLimits {
            max_turns: Some(1),
            ..RunLimits::default()
        }),
        wants_result: false,
    });
    world.answer(&[], StopReason::Stop);
    world.step(Change::Add(user("note")).into());
    world.take();
    done(&mut world, HooksOutcome::Continue);
    let refusal = "HOOKS FAILED agent_before_settle a limit is reached, so the model is not asked again";
    assert_eq!(world.take(), [refusal, "settled", "IDLE"]);
    world.prompt("without limits");
    assert!(world.take().contains(&"CALL".to_owned()));
}

#[test]
fn reread_conversation_keeps_message_at_hooks() {
    let mut world = world(&["message_end"]);
    world.prompt("go");
    world.step(Change::Conversation(vec![user("old")]).into());
    assert_eq!(world.machine.messages(), [user("old"), user("go")]);
    world.take();
    done(&mut world, HooksOutcome::Unchanged);
    world.step(Change::Conversation(vec![user("old")]).into());
    assert_eq!(world.machine.messages(), [user("old")], "it is stored now");
}

#[test]
fn abort_withdraws_hooks_before_compaction() {
    let mut world = world(&["session_before_compact"]);
    world.step(Input::Compact);
    assert_eq!(
        world.take(),
        ["compaction_start Manual", "HOOKS session_before_compact"]
    );
    world.step(Input::Abort);
    assert_eq!(world.take(), ["CANCEL HOOKS", "END COMPACTION false"]);
    assert_eq!(done(&mut world, HooksOutcome::Unchanged), []);
    world.step(Input::Compacted(CompactOutcome::Aborted));
    world.step(Input::Prompt {
        messages: vec![user("go")],
        full: true,
        limits: None,
        wants_result: false,
    });
    world.step(Input::Abort);
    world.take();
    // Unlike a refusal, it ends the run.
    world.step(Input::Compacted(CompactOutcome::Aborted));
    let lines = world.take();
    assert_eq!(lines[lines.len() - 2..], ["settled aborted", "IDLE"]);
}

#[test]
fn hooks_may_refuse_compaction_or_let_it_pass() {
    let mut world = world(&["session_before_compact"]);
    world.step(Input::Compact);
    world.take();
    done(&mut world, HooksOutcome::Unchanged);
    assert_eq!(world.take(), ["COMPACT Manual"]);
    let failed = CompactOutcome::Failed("no".to_owned());
    world.step(Input::Compacted(failed));
    world.step(Input::Compact);
    world.take();
    done(&mut world, HooksOutcome::Cancel);
    assert_eq!(world.take(), ["END COMPACTION false"]);
}

#[test]
fn run_goes_on_after_refused_compaction() {
    let refused = || Input::Compacted(CompactOutcome::Aborted);
    let mut world = world(&["session_before_compact"]);
    // Before the run.
    world.step(Input::Prompt {
        messages: vec![user("go")],
        full: true,
        limits: None,
        wants_result: false,
    });
    done(&mut world, HooksOutcome::Cancel);
    world.take();
    world.step(refused());
    assert_eq!(
        world.take(),
        [
            "compaction_end Threshold false true false -",
            "agent_start",
            "turn_start",
            "user go",
            "CALL"
        ]
    );
    // Between two turns.
    world.answer(&["a"], StopReason::ToolUse);
    world.prepared(0);
    world.full = true;
    world.done(0, "x");
    done(&mut world, HooksOutcome::Cancel);
    world.take();
    world.step(refused());
    assert_eq!(world.take()[1..], ["turn_start", "CALL"]);
    // After the run.
    world.full = true;
    world.answer(&[], StopReason::Stop);
    done(&mut world, HooksOutcome::Cancel);
    world.take();
    world.step(refused());
    assert_eq!(world.take()[1..], ["settled", "IDLE"]);
}

#[test]
fn denied_permission_ends_call_with_its_reason() {
    let mut world = world(&[]);
    world.decides_itself = false;
    world.prompt("go");
    world.answer(&["a"], StopReason::ToolUse);
    world.prepared(0);
    assert!(world.effects.contains(&Effect::Decide(0)));
    let denied = Prepared::Refused(ToolResult::error("denied"));
    world.take();
    world.step(Input::Tool(0, ToolInput::Decided(denied)));
    assert_eq!(world.take().first().unwrap(), "end a denied");
}

#[test]
fn abort_withdraws_pending_permission() {
    let mut world = world(&[]);
    world.decides_itself = false;
    world.prompt("go");
    world.answer(&["a", "b"], StopReason::ToolUse);
    world.prepared(0);
    world.take();
    world.step(Input::Abort);
    let lines = world.take();
    assert_eq!(
        lines.get(..4).unwrap(),
        [
            "CANCEL TOOLS",
            "end a Operation aborted",
            "start b",
            "end b Operation aborted"
        ]
    );
    assert!(world.machine.is_idle());
    // The user answers too late.
    assert_eq!(world.step(Input::Tool(0, ToolInput::Decided(Prepared::Run))), []);
}

#[test]
fn hooks_check_call_before_permissions() {
    let mut world = world(&["tool_call", "tool_result"]);
    world.decides_itself = false;
    world.prompt("go");
    world.answer(&["a", "b"], StopReason::ToolUse);
    world.prepared(0);
    assert!(!world.effects.contains(&Effect::Decide(0)));
    done(&mut world, HooksOutcome::Unchanged);
    assert!(world.effects.contains(&Effect::Decide(0)));
    world.step(Input::Tool(0, ToolInput::Decided(Prepared::Run)));
    world.prepared(1);
    world.take();
    done(&mut world, HooksOutcome::Refused(ToolResult::error("blocked")));
    assert_eq!(world.take(), ["end b blocked", "RUN 0"]);
    world.step(Input::Tool(0, result("secret")));
    assert_eq!(world.take(), ["HOOKS tool_result"]);
    let changed = HooksOutcome::Result {
        result: ToolResult::text("other"),
        is_error: false,
    };
    done(&mut world, changed);
    assert_eq!(world.take().first().unwrap(), "end a other");
}

/// A world whose call `a` runs and makes a call of its own.
fn nesting(points: &[&str]) -> World {
    let mut world = world(points);
    world.prompt("go");
    world.answer(&["a"], StopReason::ToolUse);
    world.prepared(0);
    if points.contains(&"tool_call") {
        done(&mut world, HooksOutcome::Unchanged);
    }
    world.take();
    assert_eq!(world.machine.nested_calls("a"), Some(0));
    assert_eq!(world.machine.nested_calls("b"), None);
    world.step(Input::Nest(NestedCall {
        request: Some(7),
        parent: "a".to_owned(),
        name: "tool".to_owned(),
        args: serde_json::Map::new(),
    }));
    world
}

/// The slot of the nested call; `usize::MAX` if it was not prepared.
fn nested_slot(world: &World) -> usize {
    let slot = world.effects.iter().rev().find_map(|effect| match effect {
        Effect::PrepareTool(slot, call) if call.id == "a/1" => Some(*slot),
        _ => None,
    });
    slot.unwrap_or(usize::MAX)
}

fn answers(world: &World) -> Vec<(u64, bool)> {
    let answers = world.effects.iter().filter_map(|effect| match effect {
        Effect::AnswerNested {
            request, is_error, ..
        } => Some((*request, *is_error)),
        _ => None,
    });
    answers.collect()
}

#[test]
fn call_of_tool_answers_its_request_only() {
    let mut world = nesting(&[]);
    let slot = nested_slot(&world);
    world.prepared(slot);
    world.step(Input::Tool(slot, result("inner")));
    assert_eq!(answers(&world), [(7, false)]);
    assert!(world.machine.messages().len() == 2 && world.machine.nested_calls("a") == Some(0));
}

#[test]
fn turn_ends_calls_that_tool_left_behind() {
    let mut world = nesting(&[]);
    let slot = nested_slot(&world);
    world.prepared(slot);
    let effects = world.step(Input::Tool(0, result("ok")));
    assert!(effects.contains(&Effect::CancelTool(slot)));
    assert_eq!(answers(&world), [(7, true)]);
    assert_eq!(world.step(Input::Tool(slot, result("late"))), []);
}

#[test]
fn abort_withdraws_permission_of_call_whose_parent_ended() {
    let mut world = nesting(&["tool_result"]);
    let slot = nested_slot(&world);
    world.step(Input::Tool(slot, ToolInput::Prepared(Prepared::Run)));
    assert!(world.effects.contains(&Effect::Decide(slot)));
    world.step(Input::Tool(0, result("reviewed")));
    let effects = world.step(Input::Abort);
    assert!(effects.contains(&Effect::CancelTools));
    assert_eq!(answers(&world), [(7, true)]);
}

#[test]
fn withdrawn_call_of_tool_does_not_start() {
    let mut world = nesting(&["tool_call"]);
    let slot = nested_slot(&world);
    world.prepared(slot);
    let effects = world.step(Input::WithdrawNested(7));
    assert!(effects.contains(&Effect::CancelTool(slot)));
    assert_eq!(done(&mut world, HooksOutcome::Unchanged), []);
    assert!(!world.effects.contains(&Effect::RunTool(slot)));
    assert_eq!(answers(&world), []);
}

#[test]
fn aborted_run_refuses_calls_of_tools() {
    let mut world = nesting(&[]);
    let slot = nested_slot(&world);
    world.step(Input::Abort);
    world.prepared(slot);
    assert_eq!(answers(&world), [(7, true)]);
    world.step(Input::Nest(NestedCall {
        request: Some(8),
        parent: "a".to_owned(),
        name: "tool".to_owned(),
        args: serde_json::Map::new(),
    }));
    assert_eq!(answers(&world), [(7, true), (8, true)]);
}

#[test]
fn session_without_subscribers_asks_no_hooks() {
    let mut world = world(&[]);
    world.prompt("go");
    world.answer(&["a"], StopReason::ToolUse);
    world.prepared(0);
    world.step(Input::Tool(0, result("ok")));
    let answer: AssistantMessage = answer(&[], StopReason::Stop);
    world.step(Input::Model(ModelInput::Finished(answer, Verdict::Final)));
    assert_eq!(asked(&world.effects), []);
    assert!(world.machine.is_idle());
}
