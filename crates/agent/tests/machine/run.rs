//! Runs as scripts of inputs and effects.

use std::sync::Arc;

use crate::common::World;
use pinion_agent::{Activity, Change, Fallback, Input, LoopSettings, ModelInput, QueueKind, Queued, Verdict};
use wire::state::{InterruptMode, QueueMode};
use wire::{Message, StopReason};

fn world() -> World {
    World::new(LoopSettings::default())
}

#[test]
fn prompt_without_tools_runs_one_turn() {
    let mut world = world();
    world.prompt("hi");
    assert_eq!(world.take(), ["agent_start", "turn_start", "user hi", "CALL"]);
    assert!(!world.machine.is_idle());
    world.answer(&[], StopReason::Stop);
    assert_eq!(
        world.take(),
        ["assistant Stop", "turn_end 0", "agent_end 2", "settled", "IDLE"]
    );
    assert!(world.machine.is_idle());
    assert_eq!(world.machine.messages().len(), 2);
}

#[test]
fn message_is_persisted_before_its_event() {
    let mut world = world();
    world.prompt("hi");
    world.answer(&[], StopReason::Stop);
    let order: Vec<&str> = world
        .effects
        .iter()
        .filter_map(|effect| match effect {
            pinion_agent::Effect::Persist(_) => Some("disk"),
            pinion_agent::Effect::Emit(wire::Event::MessageEnd { .. }) => Some("told"),
            _ => None,
        })
        .collect();
    assert_eq!(order, ["disk", "told", "disk", "told"]);
}

#[test]
fn tools_run_concurrently_and_report_in_call_order() {
    let mut world = world();
    world.prompt("go");
    world.take();
    world.answer(&["a", "b", "c"], StopReason::ToolUse);
    world.prepared(0);
    world.prepared(1);
    world.refused(2, "Tool tool not found");
    assert_eq!(
        world.take(),
        [
            "assistant ToolUse",
            "start a",
            "PREPARE 0",
            "start b",
            "PREPARE 1",
            "start c",
            "PREPARE 2",
            "end c Tool tool not found",
            "RUN 0",
            "RUN 1",
        ]
    );
    world.done(1, "second");
    world.done(0, "first");
    assert_eq!(
        world.take(),
        [
            "end b second",
            "end a first",
            "result a first",
            "result b second",
            "result c Tool tool not found",
            "turn_end 3",
            "turn_start",
            "CALL",
        ]
    );
}

#[test]
fn thousands_of_calls_run_in_batches() {
    let mut world = world();
    world.prompt("go");
    let ids: Vec<String> = (0..100).map(|n| n.to_string()).collect();
    world.answer(
        &ids.iter().map(String::as_str).collect::<Vec<_>>(),
        StopReason::ToolUse,
    );
    for slot in 0..100 {
        world.prepared(slot);
    }
    let running = world.take().iter().filter(|line| line.starts_with("RUN")).count();
    assert_eq!(running, pinion_agent::limits::MAX_PARALLEL_TOOLS);
    for slot in 0..100 {
        world.done(slot, "x");
    }
    assert_eq!(world.take().last().map(String::as_str), Some("CALL"));
}

#[test]
fn calls_of_truncated_answer_do_not_run() {
    let mut world = world();
    world.prompt("go");
    world.take();
    world.answer(&["a"], StopReason::Length);
    let lines = world.take();
    assert!(
        !lines
            .iter()
            .any(|line| line.starts_with("RUN") || line.starts_with("PREPARE")),
        "{lines:?}"
    );
    assert_eq!(lines.last().map(String::as_str), Some("CALL"));
}

#[test]
fn steering_precedes_next_turn_follow_ups_come_last() {
    let mut world = world();
    world.prompt("go");
    world.queue(QueueKind::FollowUp, "later");
    world.queue(QueueKind::Steering, "now");
    world.take();
    world.answer(&["a"], StopReason::ToolUse);
    world.prepared(0);
    world.done(0, "x");
    assert_eq!(
        world.take()[6..],
        [
            "turn_end 1",
            "turn_start",
            "queue [] [\"later\"]",
            "user now",
            "CALL"
        ]
        .map(String::from)
    );
    world.answer(&[], StopReason::Stop);
    assert_eq!(
        world.take(),
        [
            "assistant Stop",
            "turn_end 0",
            "turn_start",
            "queue [] []",
            "user later",
            "CALL"
        ]
    );
    world.answer(&[], StopReason::Stop);
    assert_eq!(world.take().last().map(String::as_str), Some("IDLE"));
}

#[test]
fn messages_queued_while_idle_join_next_prompt() {
    let mut world = world();
    world.queue(QueueKind::Steering, "one");
    world.queue(QueueKind::Steering, "two");
    world.take();
    world.prompt("go");
    assert_eq!(
        world.take(),
        [
            "agent_start",
            "turn_start",
            "user go",
            "queue [\"two\"] []",
            "user one",
            "CALL"
        ]
    );
    let mut all = World::new(LoopSettings {
        steering_mode: QueueMode::All,
        ..LoopSettings::default()
    });
    all.queue(QueueKind::Steering, "one");
    all.queue(QueueKind::Steering, "two");
    all.prompt("go");
    assert_eq!(
        all.take()[4..],
        [
            "user go",
            "queue [\"two\"] []",
            "user one",
            "queue [] []",
            "user two",
            "CALL"
        ]
        .map(String::from)
    );
}

#[test]
fn immediate_steering_cancels_remaining_tools() {
    let settings = LoopSettings {
        interrupt_mode: InterruptMode::Immediate,
        ..LoopSettings::default()
    };
    let mut world = World::new(settings);
    world.prompt("go");
    world.answer(&["a", "b"], StopReason::ToolUse);
    world.prepared(0);
    world.prepared(1);
    world.queue(QueueKind::Steering, "stop that");
    world.take();
    world.done(0, "kept");
    world.done(1, "lost");
    assert_eq!(
        world.take(),
        [
            "end a kept",
            "CANCEL TOOLS",
            "end b Skipped due to queued user message.",
            "result a kept",
            "result b Skipped due to queued user message.",
            "turn_end 2",
            "turn_start",
            "queue [] []",
            "user stop that",
            "CALL",
        ]
    );
}

#[test]
fn fallback_keeps_messages_behind_failed_answer() {
    let mut world = world();
    world.has_fallback = true;
    world.prompt("go");
    world.fail("gone", Verdict::Unavailable);
    assert!(world.take().ends_with(&["CHOOSE".to_owned()]));
    let note = Arc::new(Message::user("note", 0));
    world.step(Change::Add(Arc::clone(&note)).into());
    world.step(Input::Fallback(Some(Fallback {
        from: "a/b".to_owned(),
        to: "c/d".to_owned(),
    })));
    let messages = world.machine.messages();
    assert_eq!(messages.len(), 2, "the failed answer has left the conversation");
    assert_eq!(messages.last(), Some(&note));
}

#[test]
fn abort_while_the_model_answers() {
    let mut world = world();
    world.prompt("go");
    world.step(Input::Model(ModelInput::Started(crate::common::head())));
    world.take();
    world.step(Input::Abort);
    world.step(Input::Abort);
    assert_eq!(world.take(), ["CANCEL MODEL"]);
    let mut message = crate::common::answer(&["a"], StopReason::Aborted);
    message.error_message = Some("Request was aborted".to_owned());
    world.step(Input::Model(ModelInput::Finished(message, Verdict::Final)));
    assert_eq!(
        world.take(),
        [
            "assistant Aborted",
            "turn_end 0",
            "agent_end 2",
            "settled aborted",
            "IDLE"
        ]
    );
}

#[test]
fn answer_racing_with_abort_starts_no_tools() {
    let mut world = world();
    world.prompt("go");
    world.step(Input::Abort);
    world.take();
    world.answer(&["a"], StopReason::ToolUse);
    assert_eq!(
        world.take(),
        [
            "assistant Aborted",
            "turn_end 0",
            "agent_end 2",
            "settled aborted",
            "IDLE"
        ]
    );
}

#[test]
fn abort_during_tools_keeps_queues() {
    let mut world = world();
    world.prompt("go");
    world.answer(&["a", "b"], StopReason::ToolUse);
    world.prepared(0);
    world.prepared(1);
    world.queue(QueueKind::Steering, "waits");
    world.take();
    world.step(Input::Abort);
    assert_eq!(world.take(), ["CANCEL TOOLS"]);
    world.done(0, "Command aborted");
    world.done(1, "Command aborted");
    assert_eq!(
        world.take(),
        [
            "end a Command aborted",
            "end b Command aborted",
            "result a Command aborted",
            "result b Command aborted",
            "turn_end 2",
            "turn_start",
            "assistant Aborted",
            "turn_end 0",
            "agent_end 5",
            "settled aborted",
            "IDLE",
        ]
    );
    assert_eq!(world.machine.queues().len(), 1);
}

#[test]
fn abort_while_a_call_is_prepared() {
    let mut world = world();
    world.prompt("go");
    world.answer(&["a", "b"], StopReason::ToolUse);
    world.take();
    world.step(Input::Abort);
    assert_eq!(world.take(), ["CANCEL TOOLS"]);
    world.prepared(0);
    let lines = world.take();
    assert_eq!(
        lines[..3],
        ["end a Operation aborted", "start b", "end b Operation aborted"].map(String::from)
    );
    assert_eq!(lines.last().map(String::as_str), Some("IDLE"));
}

#[test]
fn retry_succeeds_after_failure() {
    let mut world = world();
    world.prompt("go");
    world.take();
    world.fail("overloaded", Verdict::Retry(None));
    assert_eq!(
        world.take(),
        [
            "assistant Error",
            "turn_end 0",
            "agent_end 2 retry",
            "retry 1 2000",
            "TIMER 2000"
        ]
    );
    assert_eq!(
        world.machine.activity(),
        Activity::WaitingToRetry { joined: false }
    );
    assert_eq!(
        world.machine.messages().len(),
        1,
        "the failed answer left the conversation"
    );
    world.step(Input::RetryDue);
    assert_eq!(world.take(), ["agent_start", "turn_start", "CALL"]);
    world.answer(&[], StopReason::Stop);
    assert_eq!(
        world.take(),
        [
            "assistant Stop",
            "retry_end true 1 -",
            "turn_end 0",
            "agent_end 1",
            "settled",
            "IDLE"
        ]
    );
}

#[test]
fn messages_of_extensions_wait_unseen() {
    let mut world = world();
    world.prompt("go");
    world.take();
    let note = r#"{"role":"custom","customType":"note","content":"hidden","display":true,"timestamp":0}"#;
    let queued = Queued {
        text: "hidden".to_owned(),
        message: Arc::new(Message::from_json(note).unwrap()),
        interrupts: false,
    };
    let effects = world.step(Input::Enqueue(QueueKind::Steering, queued));
    assert!(effects.is_empty(), "{effects:?}");
    let queues = world.machine.queues();
    assert_eq!((queues.len(), queues.shown()), (1, 0));
    world.answer(&[], StopReason::Stop);
    assert!(!world.take().iter().any(|effect| effect.starts_with("queue")));
}

#[test]
fn prompt_in_retry_delay_begins_retry() {
    let join = |text| Input::Join(vec![Arc::new(Message::user(text, 0))]);
    for (ends_delay, expected) in [
        (
            Input::RetryDue,
            vec!["agent_start", "turn_start", "user more", "CALL"],
        ),
        (
            Input::AbortRetry,
            vec![
                "NO TIMER",
                "retry_end false 1 Retry cancelled",
                "agent_start",
                "turn_start",
                "user more",
                "CALL",
            ],
        ),
        (
            Input::Abort,
            vec![
                "NO TIMER",
                "retry_end false 1 Retry cancelled",
                "settled aborted",
                "IDLE",
            ],
        ),
    ] {
        let mut world = world();
        world.step(join("idle"));
        world.prompt("go");
        world.fail("overloaded", Verdict::Retry(None));
        assert_eq!(
            world.machine.activity(),
            Activity::WaitingToRetry { joined: false }
        );
        world.step(join("more"));
        world.step(join("one joins"));
        world.take();
        world.step(ends_delay);
        assert_eq!(world.take(), expected);
    }
}

#[test]
fn retries_end_after_last_attempt() {
    let mut world = world();
    world.prompt("go");
    for _ in 0..3 {
        world.fail("500", Verdict::Retry(None));
        world.step(Input::RetryDue);
    }
    world.take();
    world.fail("500 again", Verdict::Retry(None));
    assert_eq!(
        world.take(),
        [
            "assistant Error",
            "turn_end 0",
            "agent_end 1",
            "retry_end false 3 500 again",
            "settled",
            "IDLE"
        ]
    );
    assert!(matches!(
        world.machine.messages().last().map(AsRef::as_ref),
        Some(Message::Assistant(_))
    ));
}

#[test]
fn abort_during_retry_wait_settles_as_aborted() {
    let mut world = world();
    world.prompt("go");
    world.fail("500", Verdict::Retry(None));
    world.take();
    world.step(Input::Abort);
    assert!(world.take().contains(&"settled aborted".to_owned()));
}

#[test]
fn retry_wait_can_be_aborted_and_steered() {
    let mut world = world();
    world.prompt("go");
    world.fail("500", Verdict::Retry(Some(7_000)));
    world.queue(QueueKind::Steering, "hint");
    world.take();
    world.step(Input::AbortRetry);
    assert_eq!(
        world.take(),
        ["NO TIMER", "retry_end false 1 Retry cancelled", "settled", "IDLE"]
    );
    world.step(Input::RetryDue);
    assert_eq!(world.take(), Vec::<String>::new(), "a late timer does nothing");

    world.prompt("again");
    world.fail("500", Verdict::Retry(None));
    world.queue(QueueKind::Steering, "hint 2");
    world.take();
    world.step(Input::RetryDue);
    assert_eq!(
        world.take(),
        ["agent_start", "turn_start", "queue [] []", "user hint 2", "CALL"]
    );
}

#[test]
fn final_failures_are_not_retried() {
    let mut world = world();
    world.prompt("go");
    world.take();
    world.fail("401", Verdict::Final);
    assert_eq!(
        world.take(),
        ["assistant Error", "turn_end 0", "agent_end 2", "settled", "IDLE"]
    );
}

#[test]
fn prompt_while_busy_is_ignored() {
    let mut world = world();
    world.prompt("go");
    world.take();
    world.prompt("second");
    assert_eq!(world.take(), Vec::<String>::new());
}
