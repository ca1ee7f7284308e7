//! Defects that the simulation found, each as a script of its own.

use std::sync::Arc;

use crate::common::World;
use pinion_core::{CompactOutcome, Effect, Input, LoopSettings, QueueKind, ToolInput, Verdict};
use serde_json::json;
use wire::event::CompactionResult;
use wire::state::InterruptMode;
use wire::{Message, StopReason, ToolResult};

fn world() -> World {
    World::new(LoopSettings::default())
}

fn compacted() -> Input {
    let result = CompactionResult {
        summary: "s".to_owned(),
        first_kept_entry_id: "e".to_owned(),
        tokens_before: 9,
        details: json!({}),
        estimated_tokens_after: None,
        usage: None,
    };
    Input::Compacted(CompactOutcome::Done {
        result,
        messages: vec![Arc::new(Message::user("kept", 0))],
    })
}

fn failed() -> Input {
    Input::Compacted(CompactOutcome::Failed("no".to_owned()))
}

/// A tool result that asks the loop to stop.
fn terminate(world: &mut World, slot: usize) {
    let mut result = ToolResult::text("enough");
    result.terminate = Some(true);
    world.step(Input::Tool(
        slot,
        ToolInput::Done {
            result,
            is_error: false,
            duration_ms: 1,
        },
    ));
}

fn last(world: &mut World) -> Vec<String> {
    let lines = world.take();
    lines.into_iter().rev().take(2).collect()
}

#[test]
fn an_abort_while_the_context_is_looked_at_ends_the_run() {
    let mut world = world();
    world.prompt("go");
    world.answer(&["a"], StopReason::ToolUse);
    world.prepared(0);
    world.asks_itself = false;
    world.done(0, "x");
    world.step(Input::Abort);
    world.take();
    world.step(Input::Context(true));
    assert_eq!(
        world.take(),
        [
            "turn_start",
            "assistant Aborted",
            "turn_end 0",
            "agent_end 4",
            "settled aborted",
            "IDLE"
        ]
    );
}

#[test]
fn an_abort_holds_although_the_compaction_before_the_prompt_wins_the_race() {
    for outcome in [compacted(), failed()] {
        let mut world = world();
        let messages = vec![Arc::new(Message::user("hi", 0))];
        world.step(Input::Prompt { messages, full: true });
        world.step(Input::Abort);
        world.step(Input::Abort);
        assert_eq!(world.take()[2..], ["CANCEL COMPACTION"], "cancelled once");
        world.step(outcome);
        assert_eq!(
            world.take()[1..],
            [
                "agent_start",
                "turn_start",
                "user hi",
                "assistant Aborted",
                "turn_end 0",
                "agent_end 2",
                "settled aborted",
                "IDLE"
            ]
        );
    }
}

#[test]
fn an_abort_holds_although_the_compaction_after_an_overflow_wins_the_race() {
    let mut world = world();
    world.prompt("go");
    world.fail("too long", Verdict::Overflow);
    world.step(Input::Abort);
    world.take();
    world.step(compacted());
    assert_eq!(
        world.take(),
        [
            "compaction_end Overflow true false false -",
            "settled aborted",
            "IDLE"
        ]
    );
}

#[test]
fn retrying_ends_when_the_retry_overflows_and_no_room_can_be_made() {
    let mut world = world();
    world.prompt("go");
    world.fail("500", Verdict::Retry(None));
    world.step(Input::RetryDue);
    world.fail("too long", Verdict::Overflow);
    world.take();
    world.step(failed());
    assert_eq!(
        world.take()[1..],
        [
            "retry_end false 1 Context overflow recovery failed: no",
            "settled",
            "IDLE"
        ]
    );
    world.prompt("again");
    world.take();
    world.answer(&[], StopReason::Stop);
    assert!(!world.take().iter().any(|line| line.starts_with("retry_end")));
}

#[test]
fn a_follow_up_is_said_when_all_results_terminate() {
    let mut world = world();
    world.prompt("go");
    world.answer(&["a"], StopReason::ToolUse);
    world.prepared(0);
    world.queue(QueueKind::FollowUp, "next");
    world.take();
    terminate(&mut world, 0);
    assert_eq!(
        world.take()[2..],
        ["turn_end 1", "turn_start", "queue [] []", "user next", "CALL"]
    );
}

#[test]
fn nothing_is_asked_when_the_queues_are_emptied_before_the_turn_for_them() {
    let mut world = world();
    world.prompt("go");
    world.queue(QueueKind::FollowUp, "next");
    world.full = true;
    world.answer(&[], StopReason::Stop);
    assert!(
        world.machine.is_compacting() && world.machine.is_running(),
        "the run is not over"
    );
    world.step(Input::ClearQueue);
    world.take();
    world.step(compacted());
    assert_eq!(
        world.take(),
        [
            "compaction_end Threshold true false false -",
            "agent_end 2",
            "settled",
            "IDLE"
        ]
    );
}

#[test]
fn what_is_queued_after_the_queues_were_emptied_is_new() {
    let mut world = world();
    world.queue(QueueKind::FollowUp, "old");
    world.step(Input::Compact);
    world.step(Input::ClearQueue);
    world.queue(QueueKind::FollowUp, "new");
    world.take();
    world.step(failed());
    assert_eq!(last(&mut world), ["CALL", "user new"]);
}

#[test]
fn a_queued_message_may_overflow_once_too() {
    let mut world = world();
    world.prompt("go");
    for _ in 0..2 {
        world.fail("too long", Verdict::Overflow);
        world.step(compacted());
    }
    assert!(world.machine.is_idle(), "the second overflow is final");
    world.step(Input::Compact);
    world.queue(QueueKind::FollowUp, "other");
    world.step(compacted());
    world.take();
    world.fail("too long", Verdict::Overflow);
    assert_eq!(
        last(&mut world),
        ["COMPACT Overflow", "compaction_start Overflow"]
    );
}

#[test]
fn news_of_a_call_that_does_not_run_interrupt_nothing() {
    let mut world = World::new(LoopSettings {
        interrupt_mode: InterruptMode::Immediate,
        ..LoopSettings::default()
    });
    world.prompt("go");
    world.answer(&["a"], StopReason::ToolUse);
    world.prepared(0);
    world.queue(QueueKind::Steering, "hint");
    world.take();
    world.done(7, "stray");
    assert_eq!(world.take(), Vec::<String>::new());
    assert!(!world.effects.contains(&Effect::CancelTools));
}
