//! Defects that the simulation found, each as a script of its own.

use std::sync::Arc;

use crate::common::World;
use pinion_agent::{CompactOutcome, Effect, Input, LoopSettings, QueueKind, ToolInput, Verdict};
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
        short_summary: None,
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
fn abort_during_context_check_ends_run() {
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
fn abort_during_compaction_before_prompt_ends_run() {
    for outcome in [compacted(), failed()] {
        let mut world = world();
        let messages = vec![Arc::new(Message::user("hi", 0))];
        world.step(Input::Prompt {
            messages,
            full: true,
            limits: None,
            wants_result: false,
        });
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
fn abort_during_overflow_recovery_ends_run() {
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
fn retry_ends_when_overflow_recovery_fails() {
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
fn follow_up_is_sent_when_all_results_terminate() {
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
fn cleared_queue_during_compaction_sends_no_request() {
    let mut world = world();
    world.prompt("go");
    world.queue(QueueKind::FollowUp, "next");
    world.full = true;
    world.answer(&[], StopReason::Stop);
    assert!(
        world.machine.activity().is_compacting() && world.machine.activity().is_running(),
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
fn message_queued_after_clear_runs_after_compaction() {
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
fn queued_message_may_overflow_once_too() {
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
fn stray_tool_result_with_immediate_steering_is_ignored() {
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
