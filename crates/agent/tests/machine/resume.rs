//! Going on where a run died, and queued messages that are edited and removed one by one.

use std::sync::Arc;

use crate::common::World;
use pinion_agent::{Change, CompactOutcome, Input, LoopSettings, QueueKind, Queued, Verdict};
use wire::{CustomMessage, Message, StopReason, UserContent};

fn world() -> World {
    let mut settings = LoopSettings::default();
    settings.retry.enabled = false;
    World::new(settings)
}

fn waiting(world: &World) -> Vec<(u64, String)> {
    let items = world.machine.queues().items();
    items
        .map(|(number, _, item)| (number, item.text.clone()))
        .collect()
}

fn queued(text: &str) -> Queued {
    Queued {
        interrupts: false,
        text: text.to_owned(),
        message: Arc::new(Message::user(text, 0)),
    }
}

#[test]
fn failed_run_continues_without_new_message() {
    let mut world = world();
    world.prompt("hi");
    world.fail("broken", Verdict::Final);
    assert!(world.machine.can_continue());
    world.take();
    world.step(Input::Continue { full: false });
    assert_eq!(world.take(), ["agent_start", "turn_start", "CALL"]);
    assert_eq!(
        world.machine.messages().len(),
        1,
        "the failed answer leaves the conversation"
    );
    world.answer(&[], StopReason::Stop);
    assert!(!world.machine.can_continue());
    assert_eq!(world.machine.messages().len(), 2);
}

#[test]
fn run_aborted_during_tools_continues_after_results() {
    let mut world = world();
    world.prompt("go");
    world.answer(&["a"], StopReason::ToolUse);
    world.prepared(0);
    world.step(Input::Abort);
    world.done(0, "cut off");
    assert!(world.machine.can_continue());
    world.take();
    world.step(Input::Continue { full: false });
    assert_eq!(world.take(), ["agent_start", "turn_start", "CALL"]);
    let last = world.machine.messages().last().cloned();
    assert!(matches!(last.as_deref(), Some(Message::ToolResult(_))));
}

#[test]
fn successful_run_cannot_continue() {
    let mut world = world();
    assert!(!world.machine.can_continue(), "an empty conversation");
    world.prompt("hi");
    assert!(!world.machine.can_continue(), "a run is under way");
    world.answer(&[], StopReason::Stop);
    world.take();
    world.step(Input::Continue { full: false });
    assert!(world.take().is_empty(), "the last run ended properly");
}

#[test]
fn failed_answer_without_request_cannot_continue() {
    let mut world = world();
    world.prompt("hi");
    world.answer(&[], StopReason::Stop);
    let mut failed = crate::common::answer(&[], StopReason::Error);
    failed.error_message = Some("broken".to_owned());
    world.step(Change::Add(Arc::new(Message::Assistant(failed))).into());
    assert!(!world.machine.can_continue());
}

#[test]
fn run_of_extension_message_can_be_resumed() {
    let mut world = world();
    world.prompt("hi");
    world.answer(&[], StopReason::Stop);
    assert!(!world.machine.can_resume(), "nothing is to be answered");
    let note = Message::Custom(CustomMessage {
        custom_type: "note".to_owned(),
        content: UserContent::Text("a process has ended".to_owned()),
        display: true,
        details: None,
        timestamp: 0,
        extra: wire::Extra::default(),
    });
    world.step(Input::Prompt {
        messages: vec![Arc::new(note)],
        full: false,
        limits: None,
        wants_result: false,
    });
    assert!(!world.machine.can_resume(), "a run is under way");
    world.step(Input::Abort);
    world.answer(&[], StopReason::Aborted);
    world.take();
    assert!(world.machine.can_resume() && !world.machine.can_continue());
    world.step(Input::Continue { full: false });
    assert_eq!(world.take(), ["agent_start", "turn_start", "CALL"]);
}

#[test]
fn full_context_is_compacted_before_continuing() {
    let mut world = world();
    world.prompt("hi");
    world.fail("broken", Verdict::Final);
    world.take();
    world.step(Input::Continue { full: true });
    assert!(world.machine.activity().is_compacting());
    world.step(Input::Compacted(CompactOutcome::Failed("no".to_owned())));
    assert!(world.take().contains(&"CALL".to_owned()));
}

#[test]
fn queued_message_is_edited_and_removed_by_id() {
    let mut world = world();
    world.prompt("hi");
    world.queue(QueueKind::FollowUp, "later");
    world.queue(QueueKind::Steering, "one");
    world.queue(QueueKind::Steering, "one");
    assert_eq!(
        waiting(&world),
        [
            (2, "one".to_owned()),
            (3, "one".to_owned()),
            (1, "later".to_owned())
        ]
    );
    world.take();
    world.step(Input::EditQueued(3, queued("two")));
    world.step(Input::RemoveQueued(2));
    assert_eq!(world.take().len(), 2, "the queue is told each time");
    assert_eq!(waiting(&world), [(3, "two".to_owned()), (1, "later".to_owned())]);
    world.step(Input::RemoveQueued(2));
    world.step(Input::EditQueued(2, queued("ghost")));
    assert!(world.take().is_empty(), "what is gone is gone");
}

#[test]
fn queue_ids_are_never_reused() {
    let mut world = world();
    world.queue(QueueKind::Steering, "one");
    world.step(Input::ClearQueue);
    world.queue(QueueKind::Steering, "two");
    assert_eq!(waiting(&world), [(2, "two".to_owned())]);
    assert_eq!(world.machine.queues().newest(), 2);
}

#[test]
fn removing_old_message_during_compaction_keeps_new_ones() {
    let mut world = world();
    world.queue(QueueKind::Steering, "old");
    world.step(Input::Compact);
    world.queue(QueueKind::Steering, "new");
    world.step(Input::RemoveQueued(1));
    world.take();
    world.step(Input::Compacted(CompactOutcome::Failed("no".to_owned())));
    assert!(
        world.take().contains(&"CALL".to_owned()),
        "what was queued during the compaction runs"
    );
}

#[test]
fn message_queued_before_compaction_stays_queued_after_it() {
    let mut world = world();
    world.queue(QueueKind::Steering, "old");
    world.step(Input::Compact);
    world.queue(QueueKind::Steering, "new");
    world.step(Input::RemoveQueued(2));
    world.take();
    world.step(Input::Compacted(CompactOutcome::Failed("no".to_owned())));
    assert!(world.machine.is_idle());
    assert_eq!(waiting(&world), [(1, "old".to_owned())]);
}
