//! Events around runs that fail, in the order of each family of dialects.

use crate::common::World;
use pinion_agent::{CompactOutcome, FailureRules, Input, LoopSettings, QueueKind, Verdict};
use wire::StopReason;

fn world(failures: FailureRules) -> World {
    World::new(LoopSettings {
        failures,
        ..LoopSettings::default()
    })
}

/// A world in which a run has failed once and is tried again.
fn retried(failures: FailureRules) -> World {
    let mut world = world(failures);
    world.prompt("go");
    world.fail("500", Verdict::Retry(None));
    world.step(Input::RetryDue);
    world.take();
    world
}

#[test]
fn aborted_answer_ends_retries_as_in_pi() {
    for failures in [FailureRules::Pi, FailureRules::NewestPi] {
        let mut world = retried(failures);
        world.step(Input::Abort);
        world.take();
        world.answer(&[], StopReason::Aborted);
        assert_eq!(
            world.take(),
            [
                "assistant Aborted",
                "retry_end true 1 -",
                "turn_end 0",
                "agent_end 1",
                "settled aborted",
                "IDLE"
            ]
        );
    }
    let mut world = retried(FailureRules::General);
    world.step(Input::Abort);
    world.take();
    world.answer(&[], StopReason::Aborted);
    let lines = world.take();
    assert!(lines[3].starts_with("retry_end false 1"), "{lines:?}");
}

#[test]
fn error_after_abort_is_cancelled_retry() {
    let mut world = retried(FailureRules::NewestPi);
    world.step(Input::Abort);
    world.take();
    world.fail("500 again", Verdict::Retry(None));
    assert_eq!(
        world.take(),
        [
            "assistant Error",
            "turn_end 0",
            "agent_end 1",
            "retry_end false 1 Retry cancelled",
            "settled aborted",
            "IDLE"
        ]
    );
}

#[test]
fn retries_end_before_recovery_in_newest_pi() {
    let mut world = retried(FailureRules::NewestPi);
    world.fail("too long", Verdict::Overflow);
    let lines = world.take();
    assert_eq!(
        lines[2..4],
        [
            "agent_end 1 retry".to_owned(),
            "retry_end false 1 too long".to_owned()
        ]
    );
    // pi 0.74 goes on counting.
    let mut world = retried(FailureRules::Pi);
    world.fail("too long", Verdict::Overflow);
    assert!(!world.take().iter().any(|line| line.starts_with("retry_end")));
}

#[test]
fn newest_pi_compacts_full_context_after_failure() {
    for verdict in [Verdict::Final, Verdict::Unavailable] {
        let mut world = world(FailureRules::NewestPi);
        world.prompt("go");
        world.queue(QueueKind::FollowUp, "later");
        world.take();
        world.full = true;
        world.fail("401", verdict);
        assert_eq!(
            world.take()[2..],
            ["agent_end 2", "compaction_start Threshold", "COMPACT Threshold"]
        );
        // Messages follow, also if the compaction failed.
        world.step(Input::Compacted(CompactOutcome::Failed("529".to_owned())));
        let lines = world.take();
        assert!(
            lines[0].starts_with("compaction_end Threshold false"),
            "{lines:?}"
        );
        assert_eq!(
            lines[1..],
            ["agent_start", "turn_start", "queue [] []", "user later", "CALL"]
        );
    }
    for failures in [FailureRules::General, FailureRules::Pi] {
        let mut world = world(failures);
        world.prompt("go");
        world.full = true;
        world.fail("401", Verdict::Final);
        assert!(
            world.machine.is_idle(),
            "{failures:?} looks before the next prompt"
        );
    }
}

#[test]
fn messages_follow_failure_in_newest_pi_only() {
    for verdict in [Verdict::Final, Verdict::Unavailable] {
        let mut world = world(FailureRules::NewestPi);
        world.prompt("go");
        world.queue(QueueKind::FollowUp, "later");
        world.queue(QueueKind::Steering, "hint");
        world.take();
        world.fail("401", verdict);
        let lines = world.take();
        assert_eq!(
            lines[2..],
            [
                "agent_end 2",
                "agent_start",
                "turn_start",
                "queue [] [\"later\"]",
                "user hint",
                "CALL"
            ]
        );
        // Nothing begins after an abort (GUARANTEES.md, 3).
        world.step(Input::Abort);
        world.answer(&[], StopReason::Aborted);
        assert_eq!(world.take().last().map(String::as_str), Some("IDLE"));
        assert_eq!(world.machine.queues().len(), 1);
    }
    let mut world = world(FailureRules::Pi);
    world.prompt("go");
    world.queue(QueueKind::Steering, "hint");
    world.fail("401", Verdict::Final);
    assert!(world.machine.is_idle() && world.machine.queues().len() == 1);
}

#[test]
fn messages_follow_cancelled_retry_in_newest_pi() {
    let mut world = world(FailureRules::NewestPi);
    world.prompt("go");
    world.fail("500", Verdict::Retry(None));
    world.queue(QueueKind::Steering, "hint");
    world.take();
    world.step(Input::AbortRetry);
    assert_eq!(
        world.take(),
        [
            "NO TIMER",
            "retry_end false 1 Retry cancelled",
            "agent_start",
            "turn_start",
            "queue [] []",
            "user hint",
            "CALL"
        ]
    );
}

#[test]
fn newest_pi_compacts_full_context_after_cancelled_retry() {
    for (failures, next) in [
        (FailureRules::Pi, "settled; IDLE"),
        (
            FailureRules::NewestPi,
            "compaction_start Threshold; COMPACT Threshold",
        ),
    ] {
        let mut world = world(failures);
        world.prompt("go");
        world.fail("500", Verdict::Retry(None));
        world.take();
        world.full = true;
        world.step(Input::AbortRetry);
        assert_eq!(world.take()[2..].join("; "), next, "{failures:?}");
    }
}

#[test]
fn messages_follow_failed_recovery_in_newest_pi() {
    for (failures, next) in [
        (FailureRules::Pi, "settled; IDLE"),
        (
            FailureRules::NewestPi,
            "agent_start; turn_start; queue [] []; user later; CALL",
        ),
    ] {
        for outcome in [CompactOutcome::Failed("no".to_owned()), CompactOutcome::Aborted] {
            let mut world = world(failures);
            world.prompt("go");
            world.fail("too long", Verdict::Overflow);
            world.queue(QueueKind::FollowUp, "later");
            world.take();
            world.step(Input::Compacted(outcome));
            let lines = world.take();
            assert!(lines[0].starts_with("compaction_end Overflow false"), "{lines:?}");
            assert_eq!(lines[1..].join("; "), next, "{failures:?}");
        }
    }
}

#[test]
fn abort_while_model_is_chosen_cancels_retry() {
    for (failures, why) in [
        (FailureRules::Pi, "401"),
        (FailureRules::NewestPi, "Retry cancelled"),
    ] {
        let mut world = retried(failures);
        world.has_fallback = true;
        world.fail("401", Verdict::Unavailable);
        world.step(Input::Abort);
        world.take();
        world.step(Input::Fallback(None));
        let lines = format!("agent_end 1; retry_end false 1 {why}; settled aborted; IDLE");
        assert_eq!(world.take().join("; "), lines);
    }
}

#[test]
fn quota_that_is_back_late_ends_run() {
    let mut world = world(FailureRules::General);
    world.prompt("go");
    world.take();
    world.fail("quota", Verdict::Exhausted(1_800_000));
    assert_eq!(
        world.take(),
        [
            "assistant Error",
            "turn_end 0",
            "agent_end 2",
            "retry_end false 1 Provider requested 1800000ms wait, exceeds retry.maxDelayMs (60000ms). Original error: quota",
            "settled",
            "IDLE"
        ]
    );
    // The next failure has no wait.
    world.prompt("again");
    world.take();
    world.fail("401", Verdict::Unavailable);
    assert!(!world.take().iter().any(|line| line.starts_with("retry_end")));
}

#[test]
fn quota_that_is_back_soon_is_tried_again() {
    let mut world = world(FailureRules::General);
    world.prompt("go");
    world.fail("quota", Verdict::Exhausted(5_000));
    assert!(world.take().contains(&"TIMER 5000".to_owned()));
    world.step(Input::RetryDue);
    world.take();
    world.fail("quota", Verdict::Exhausted(90_000));
    let lines = world.take();
    let wait = "retry_end false 2 Provider requested 90000ms wait";
    assert!(lines.iter().any(|line| line.starts_with(wait)), "{lines:?}");
}

#[test]
fn discarded_answer_leaves_conversation() {
    for (verdict, messages) in [(Verdict::Final, 2), (Verdict::Discarded, 1)] {
        let mut world = world(FailureRules::General);
        world.prompt("go");
        world.fail("too long", verdict);
        assert!(world.machine.is_idle());
        assert_eq!(world.machine.messages().len(), messages, "{verdict:?}");
    }
}
