//! The order of events is judged rightly, and times are summed up rightly.

use std::time::Duration;

use serde_json::{Value, json};

use super::moment::Moment;
use super::times::Times;
use super::watch::Watch;

fn events(kinds: &[&str]) -> Vec<Value> {
    let line = |kind: &&str| match kind.split_once(' ') {
        Some((kind, call)) => json!({"type": kind, "toolCallId": call}),
        None => json!({ "type": kind }),
    };
    kinds.iter().map(line).collect()
}

fn problems(kinds: &[&str]) -> Vec<String> {
    let mut watch = Watch::default();
    for line in events(kinds) {
        watch.see(&line);
    }
    watch.expect_idle("at the end");
    watch.take_problems()
}

const RUN: [&str; 12] = [
    "agent_start",
    "turn_start",
    "message_start",
    "message_end",
    "message_start",
    "message_update",
    "message_end",
    "tool_execution_start a",
    "tool_execution_end a",
    "turn_end",
    "agent_end",
    "agent_settled",
];

#[test]
fn complete_run_has_no_violations() {
    assert!(problems(&RUN).is_empty(), "{:?}", problems(&RUN));
}

#[test]
fn missing_events_are_detected() {
    for (left_out, kind) in RUN.iter().enumerate() {
        if matches!(*kind, "message_update" | "agent_settled") {
            continue;
        }
        let mut kinds = RUN.to_vec();
        kinds.remove(left_out);
        assert!(!problems(&kinds).is_empty(), "without {kind}");
    }
}

#[test]
fn events_after_end_are_detected() {
    for late in [
        "message_update",
        "message_end",
        "tool_execution_update a",
        "turn_end",
        "agent_end",
    ] {
        let mut kinds = RUN.to_vec();
        kinds.insert(RUN.len() - 1, late);
        assert!(!problems(&kinds).is_empty(), "{late} behind agent_end");
        let mut kinds = RUN.to_vec();
        kinds.push(late);
        assert!(
            problems(&kinds).iter().any(|problem| problem.contains("settled")),
            "{late}"
        );
    }
}

#[test]
fn unfinished_retry_and_compaction_are_detected() {
    let whole = [
        "auto_retry_start",
        "auto_retry_end",
        "compaction_start",
        "compaction_end",
    ];
    assert!(problems(&whole).is_empty());
    for left_out in 0..whole.len() {
        let mut kinds = whole.to_vec();
        kinds.remove(left_out);
        assert_eq!(problems(&kinds).len(), 1);
    }
}

#[test]
fn missing_and_duplicate_responses_are_detected() {
    let mut watch = Watch::default();
    watch.asked("a", true);
    watch.asked("b", false);
    watch.see(&json!({"type": "response", "id": "a"}));
    assert!(watch.take_problems().is_empty());
    watch.see(&json!({"type": "response", "id": "a"}));
    watch.expect_answered();
    assert_eq!(watch.take_problems().len(), 2);
}

#[test]
fn activity_after_request_is_no_violation() {
    let mut watch = Watch::default();
    for line in events(&["agent_settled"]) {
        watch.see(&line);
    }
    watch.asked("p", true);
    for line in events(&RUN) {
        watch.see(&line);
    }
    assert!(watch.take_problems().is_empty());
}

#[test]
fn percentiles_are_by_rank() {
    let times: Times = (1..=200).rev().map(Duration::from_millis).collect();
    assert_eq!(times.to_string(), "100.00 / 198.00 / 200.00");
    assert_eq!(times.over(Duration::from_millis(190)), 10);
    assert_eq!(Times::default().percentile(99), Duration::ZERO);
}

#[test]
fn abort_moment_names_round_trip() {
    for moment in Moment::ALL {
        assert_eq!(Moment::named(moment.name()).unwrap(), moment);
    }
    assert!(Moment::named("never").is_err());
}
