//! Compaction in the flow of runs.

use std::sync::Arc;

use crate::common::World;
use pinion_agent::{CompactOutcome, Input, LoopSettings, QueueKind, Verdict};
use serde_json::json;
use wire::event::CompactionResult;
use wire::{Message, StopReason};

fn world() -> World {
    World::new(LoopSettings::default())
}

fn done() -> Input {
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

#[test]
fn compaction_after_full_run_precedes_settling() {
    let mut world = world();
    world.prompt("go");
    world.take();
    world.full = true;
    world.answer(&[], StopReason::Stop);
    assert_eq!(
        world.take(),
        [
            "assistant Stop",
            "turn_end 0",
            "agent_end 2",
            "compaction_start Threshold",
            "COMPACT Threshold"
        ]
    );
    assert!(world.machine.activity().is_compacting() && !world.machine.is_idle());
    world.step(done());
    assert_eq!(
        world.take(),
        ["compaction_end Threshold true false false -", "settled", "IDLE"]
    );
    assert_eq!(world.machine.messages().len(), 1);
}

#[test]
fn compaction_between_turns_continues_run() {
    let mut world = world();
    world.prompt("go");
    world.answer(&["a"], StopReason::ToolUse);
    world.prepared(0);
    world.take();
    world.full = true;
    world.done(0, "x");
    assert_eq!(
        world.take()[2..],
        ["turn_end 1", "compaction_start Threshold", "COMPACT Threshold"].map(String::from)
    );
    world.step(done());
    assert_eq!(
        world.take(),
        [
            "compaction_end Threshold true false false -",
            "turn_start",
            "CALL"
        ]
    );
}

#[test]
fn compaction_before_prompt_precedes_run() {
    let mut world = world();
    world.step(Input::Prompt {
        messages: vec![Arc::new(Message::user("hi", 0))],
        full: true,
        limits: None,
        wants_result: false,
    });
    assert_eq!(world.take(), ["compaction_start Threshold", "COMPACT Threshold"]);
    world.step(Input::Compacted(CompactOutcome::Failed("no".to_owned())));
    assert_eq!(
        world.take(),
        [
            "compaction_end Threshold false false false Auto-compaction failed: no",
            "agent_start",
            "turn_start",
            "user hi",
            "CALL",
        ]
    );
}

#[test]
fn overflow_is_retried_once() {
    let mut world = world();
    world.prompt("go");
    world.take();
    world.fail("too long", Verdict::Overflow);
    assert_eq!(
        world.take(),
        [
            "assistant Error",
            "turn_end 0",
            "agent_end 2 retry",
            "compaction_start Overflow",
            "COMPACT Overflow"
        ]
    );
    world.step(done());
    assert_eq!(
        world.take(),
        [
            "compaction_end Overflow true false true -",
            "agent_start",
            "turn_start",
            "CALL"
        ]
    );
    world.fail("too long", Verdict::Overflow);
    let lines = world.take();
    assert!(
        lines[3].starts_with("compaction_end Overflow false false false Context overflow"),
        "{lines:?}"
    );
    assert_eq!(lines.last().map(String::as_str), Some("IDLE"));
}

#[test]
fn aborted_compaction_ends_waiting_run() {
    let mut world = world();
    world.prompt("go");
    world.answer(&["a"], StopReason::ToolUse);
    world.prepared(0);
    world.full = true;
    world.done(0, "x");
    world.take();
    world.step(Input::Abort);
    assert_eq!(world.take(), ["CANCEL COMPACTION"]);
    world.step(Input::Compacted(CompactOutcome::Aborted));
    assert_eq!(
        world.take(),
        [
            "compaction_end Threshold false true false -",
            "turn_start",
            "assistant Aborted",
            "turn_end 0",
            "agent_end 4",
            "settled aborted",
            "IDLE",
        ]
    );
}

#[test]
fn message_queued_during_compaction_runs_afterwards() {
    let mut world = world();
    world.queue(QueueKind::FollowUp, "old");
    world.step(Input::Compact);
    world.take();
    world.step(done());
    assert_eq!(
        world.take().last().map(String::as_str),
        Some("IDLE"),
        "what waited before still waits"
    );
    world.step(Input::Compact);
    world.queue(QueueKind::Steering, "new");
    world.take();
    world.step(done());
    assert_eq!(
        world.take(),
        [
            "compaction_end Manual true false false -",
            "agent_start",
            "turn_start",
            "queue [] [\"old\"]",
            "user new",
            "CALL",
        ]
    );
}
