//! Results that join the conversation when their calls end, as in oh-my-pi.

use std::sync::Arc;

use crate::common::{World, answer};
use pinion_agent::convert::{close_dangling_calls, to_llm};
use pinion_agent::{
    Change, Effect, HooksOutcome, Input, LoopSettings, QueueKind, ResultOrder, Subscriptions,
};
use wire::state::InterruptMode;
use wire::{Event, Message, StopReason, ToolResultMessage};

/// A world in which the calls `a` and `b` run.
fn calling(interrupt_mode: InterruptMode) -> World {
    let mut world = World::new(LoopSettings {
        results: ResultOrder::Ends,
        interrupt_mode,
        ..LoopSettings::default()
    });
    world.prompt("go");
    world.answer(&["a", "b"], StopReason::ToolUse);
    world.prepared(0);
    world.prepared(1);
    world.take();
    world
}

/// The call of a result, or the role of another message.
fn name(message: &Message) -> &str {
    match message {
        Message::ToolResult(result) => &result.tool_call_id,
        other => other.role(),
    }
}

fn names(messages: &[Arc<Message>]) -> Vec<&str> {
    messages.iter().map(|message| name(message)).collect()
}

/// The results that the newest `turn_end` shows.
fn results_of_turn(world: &World) -> Vec<Arc<Message>> {
    let found = world.effects.iter().rev().find_map(|effect| match effect {
        Effect::Emit(Event::TurnEnd { tool_results, .. }) => Some(tool_results.clone()),
        _ => None,
    });
    found.unwrap_or_default()
}

#[test]
fn results_follow_ends_of_their_calls() {
    let mut world = calling(InterruptMode::Wait);
    world.done(1, "two");
    assert_eq!(world.take(), ["end b two", "result b two"]);
    assert_eq!(names(world.machine.messages()), ["user", "assistant", "b"]);
    let stored = world.effects.iter().rev().find_map(|effect| match effect {
        Effect::Persist(message) => Some(name(message)),
        _ => None,
    });
    assert_eq!(stored, Some("b"), "a crash must not lose it");
    world.done(0, "one");
    assert_eq!(
        world.take(),
        ["end a one", "result a one", "turn_end 2", "turn_start", "CALL"]
    );
    assert_eq!(names(&results_of_turn(&world)), ["b", "a"]);
    assert_eq!(names(world.machine.messages()), ["user", "assistant", "b", "a"]);
    let asked = to_llm(world.machine.messages(), false);
    assert_eq!(
        names(&asked),
        ["user", "assistant", "a", "b"],
        "the model gets them in the order of its calls"
    );
}

#[test]
fn refused_call_has_its_result_at_once() {
    let mut world = World::new(LoopSettings {
        results: ResultOrder::Ends,
        ..LoopSettings::default()
    });
    world.prompt("go");
    world.answer(&["a", "b"], StopReason::ToolUse);
    world.take();
    world.refused(0, "no");
    assert_eq!(world.take(), ["end a no", "result a no", "start b", "PREPARE 1"]);
}

#[test]
fn abort_keeps_told_results() {
    let mut world = calling(InterruptMode::Wait);
    world.done(1, "two");
    world.take();
    world.step(Input::Abort);
    assert_eq!(world.take(), ["CANCEL TOOLS"]);
    world.done(0, "half");
    assert_eq!(
        world.take(),
        [
            "end a half",
            "result a half",
            "turn_end 2",
            "turn_start",
            "assistant Aborted",
            "turn_end 0",
            "agent_end 5",
            "settled aborted",
            "IDLE"
        ]
    );
    assert_eq!(
        names(world.machine.messages()),
        ["user", "assistant", "b", "a", "assistant"]
    );
}

#[test]
fn steering_skips_calls_without_result_only() {
    let mut world = calling(InterruptMode::Immediate);
    world.queue(QueueKind::Steering, "stop");
    world.take();
    world.done(1, "two");
    assert_eq!(world.take(), ["end b two", "result b two", "CANCEL TOOLS"]);
    world.done(0, "half");
    let skipped = "Skipped due to queued user message.";
    assert_eq!(
        world.take()[..2],
        [format!("end a {skipped}"), format!("result a {skipped}")]
    );
}

#[test]
fn reread_conversation_keeps_told_results() {
    let mut world = calling(InterruptMode::Wait);
    world.done(1, "two");
    // Reading the file closes the call that still runs.
    let read = close_dangling_calls(world.machine.messages().to_vec());
    assert_eq!(names(&read), ["user", "assistant", "b", "a"]);
    world.step(Change::Conversation(read).into());
    assert_eq!(names(world.machine.messages()), ["user", "assistant", "b"]);
    world.done(0, "one");
    assert_eq!(names(world.machine.messages()), ["user", "assistant", "b", "a"]);
}

#[test]
fn replaced_result_is_in_turn_end() {
    let mut world = calling(InterruptMode::Wait);
    let subscribed = Subscriptions {
        waits: vec!["message_end".to_owned()],
        tells: Vec::new(),
    };
    world.step(Change::Hooks(subscribed).into());
    world.done(1, "two");
    let ticket = world.effects.iter().rev().find_map(|effect| match effect {
        Effect::RunHooks(ticket, _) => Some(*ticket),
        _ => None,
    });
    let Message::ToolResult(mut changed) = world.machine.messages()[2].as_ref().clone() else {
        panic!("no result")
    };
    changed.is_error = true;
    let changed = Arc::new(Message::ToolResult(changed));
    let outcome = HooksOutcome::Message(Arc::clone(&changed));
    world.step(Input::HooksDone(ticket.unwrap(), outcome));
    world.step(Change::Hooks(Subscriptions::default()).into());
    world.done(0, "one");
    assert_eq!(results_of_turn(&world)[0], changed);
    assert_eq!(world.machine.messages()[2], changed);
}

#[test]
fn equal_call_ids_keep_order_of_results() {
    let mut world = World::new(LoopSettings::default());
    world.prompt("go");
    world.answer(&["a", "b", "a"], StopReason::ToolUse);
    for slot in 0..3 {
        world.prepared(slot);
    }
    for (slot, text) in ["one", "two", "three"].into_iter().enumerate() {
        world.done(slot, text);
    }
    let asked = to_llm(world.machine.messages(), false);
    assert_eq!(names(&asked), ["user", "assistant", "a", "b", "a"]);
    assert_eq!(asked, world.machine.messages());
}

#[test]
fn calls_with_same_id_keep_their_order() {
    let mut world = World::new(LoopSettings {
        results: ResultOrder::Ends,
        ..LoopSettings::default()
    });
    world.prompt("go");
    world.answer(&["a", "b", "a"], StopReason::ToolUse);
    for slot in 0..3 {
        world.prepared(slot);
    }
    world.take();
    world.done(2, "three");
    assert_eq!(world.take(), ["end a three"]);
    world.done(1, "two");
    world.done(0, "one");
    let lines = world.take();
    assert_eq!(
        lines[2..5],
        ["result a one", "result b two", "result a three"],
        "{lines:?}"
    );
}

#[test]
fn request_has_every_result_once() {
    let result = |id: &str| {
        Arc::new(Message::ToolResult(ToolResultMessage {
            tool_call_id: id.to_owned(),
            tool_name: "tool".to_owned(),
            content: Vec::new(),
            details: None,
            is_error: false,
            duration_ms: None,
            timestamp: 0,
            extra: wire::Extra::default(),
        }))
    };
    let asks = || Arc::new(Message::Assistant(answer(&["a", "b"], StopReason::ToolUse)));
    let talk = [
        asks(),
        result("b"),
        result("other"),
        result("a"),
        result("b"),
        asks(),
        result("b"),
    ];
    assert_eq!(
        names(&to_llm(&talk, false)),
        ["assistant", "a", "b", "other", "b", "assistant", "b"]
    );
}
