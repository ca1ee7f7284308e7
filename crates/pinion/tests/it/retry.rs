//! Temporary and permanent failures.

use serde_json::{Value, json};
use testkit::llm::{ErrorKind, Reply};

use crate::kit::{Pi, World, answers, kinds, of_type, text, until};

#[test]
fn transient_failure_is_retried() {
    let world = World::new([
        Reply::error(ErrorKind::Overloaded),
        Reply::error(ErrorKind::RateLimit),
        Reply::text(["ok"]),
    ]);
    let pi = world.start();
    let lines = pi.say("Hi");
    let starts = of_type(&lines, "auto_retry_start");
    assert_eq!(starts.len(), 2);
    assert_eq!(
        (&starts[0]["attempt"], &starts[1]["attempt"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(
        (&starts[0]["delayMs"], &starts[1]["delayMs"]),
        (&json!(10), &json!(20))
    );
    assert_eq!(starts[0]["maxAttempts"], 3);
    assert!(
        starts[0]["errorMessage"].as_str().unwrap().contains("529"),
        "{}",
        starts[0]
    );
    let ends: Vec<&Value> = of_type(&lines, "agent_end")
        .into_iter()
        .map(|end| &end["willRetry"])
        .collect();
    assert_eq!(ends, [true, true, false]);
    let over = of_type(&lines, "auto_retry_end");
    assert_eq!(
        (over.len(), &over[0]["success"], &over[0]["attempt"]),
        (1, &json!(true), &json!(2))
    );
    assert_eq!(of_type(&lines, "agent_settled").len(), 1);
    let kinds = kinds(&lines);
    let at = |kind: &str| kinds.iter().position(|k| *k == kind).unwrap();
    assert!(at("agent_end") < at("auto_retry_start"));
    let roles: Vec<Value> = pi
        .messages()
        .iter()
        .map(|message| message["role"].clone())
        .collect();
    assert_eq!(
        roles,
        ["user", "assistant"],
        "failed answers are no part of the conversation"
    );
    pi.finish();
}

#[test]
fn retries_stop_after_last_attempt() {
    let world = World::new([Reply::error(ErrorKind::Server).repeat()]);
    let pi = world.start();
    let lines = pi.say("Hi");
    assert_eq!(world.server.requests().len(), 4);
    let over = of_type(&lines, "auto_retry_end")[0];
    assert_eq!((&over["success"], &over["attempt"]), (&json!(false), &json!(3)));
    assert!(over["finalError"].as_str().unwrap().contains("500"), "{over}");
    assert_eq!(answers(&lines).last().unwrap()["stopReason"], "error");
    assert_eq!(
        pi.say("Hi").len(),
        lines.len(),
        "the count starts anew with the next prompt"
    );
    pi.finish();
}

#[test]
fn retry_waits_for_retry_after_header() {
    let world = World::new([
        Reply::error(ErrorKind::RateLimit).header("retry-after", "1"),
        Reply::text(["ok"]),
    ]);
    let pi = world.start();
    let lines = pi.say("Hi");
    assert_eq!(of_type(&lines, "auto_retry_start")[0]["delayMs"], 1000);
    let requests = world.server.requests();
    assert!(requests[1].at - requests[0].at >= std::time::Duration::from_millis(990));
    pi.finish();
}

#[test]
fn permanent_failures_are_not_retried() {
    for kind in [ErrorKind::Auth, ErrorKind::Invalid, ErrorKind::TooLarge] {
        let world = World::new([Reply::error(kind), Reply::text(["ok"])]);
        let pi = world.start();
        let lines = pi.say("Hi");
        assert!(of_type(&lines, "auto_retry_start").is_empty(), "{kind:?}");
        assert_eq!(answers(&lines)[0]["stopReason"], "error");
        assert_eq!(world.server.requests().len(), 1);
        assert_eq!(text(answers(&pi.say("Again"))[0]), "ok");
        pi.finish();
    }
}

#[test]
fn retries_can_be_disabled() {
    let world = World::new([Reply::error(ErrorKind::Overloaded), Reply::text(["ok"])]);
    let pi = world.start();
    pi.data(json!({"type": "set_auto_retry", "enabled": false}));
    let lines = pi.say("Hi");
    assert!(of_type(&lines, "auto_retry_start").is_empty());
    assert_eq!(of_type(&lines, "agent_end")[0]["willRetry"], false);
    pi.finish();
}

#[test]
fn retry_wait_can_be_ended() {
    let world = World::new([Reply::error(ErrorKind::Overloaded), Reply::text(["ok"])]);
    world.settings(
        json!({"retry": {"baseDelayMs": 600_000, "maxAgentDelayMs": 600_000, "provider": {"maxRetries": 0}}}),
    );
    let pi = world.start();
    pi.prompt("Go");
    pi.wait("auto_retry_start");
    pi.data(json!({"type": "abort_retry"}));
    pi.settled();
    assert_eq!(of_type(&pi.lines(), "auto_retry_end")[0]["success"], false);
    pi.say("Again");
    pi.finish();
}

/// In today's pi, a message that waits begins a run although the retry was cancelled. The response comes before it.
#[test]
fn queued_message_follows_cancelled_retry_in_newest_pi() {
    let world = World::new([Reply::error(ErrorKind::Overloaded), Reply::text(["ok"])]);
    world.settings(
        json!({"retry": {"baseDelayMs": 600_000, "maxAgentDelayMs": 600_000, "provider": {"maxRetries": 0}}}),
    );
    let pi = world.start_with(&["--rpc-dialect", "pi-delta"]);
    pi.prompt("Go");
    pi.wait("auto_retry_start");
    pi.data(json!({"type": "follow_up", "message": "Later"}));
    pi.data(json!({"type": "abort_retry"}));
    pi.settled();
    let lines = pi.lines();
    let after: Vec<&str> = kinds(&lines)
        .into_iter()
        .skip_while(|kind| *kind != "auto_retry_end")
        .take(5)
        .collect();
    assert_eq!(
        after,
        [
            "auto_retry_end",
            "response",
            "agent_start",
            "turn_start",
            "queue_update"
        ]
    );
    assert_eq!(text(answers(&lines).last().unwrap()), "ok");
    assert_eq!(of_type(&lines, "agent_settled").len(), 1);
    pi.finish();
}

#[test]
fn prompt_during_retry_wait_is_refused_or_queued() {
    let world = World::new([
        Reply::error(ErrorKind::Overloaded),
        // The delay may be over before the prompt arrives: the run is not.
        Reply::text(["ok"]).gate("retry"),
        Reply::text(["and ok"]),
    ]);
    world.settings(json!({"retry": {"baseDelayMs": 300, "provider": {"maxRetries": 0}}}));
    // Today's pi is busy during the delay.
    let pi = world.start_with(&["--rpc-dialect", "pi-delta"]);
    pi.prompt("Go");
    pi.wait("auto_retry_start");
    let refused = pi.error(json!({"type": "prompt", "message": "Second"}));
    assert!(refused.contains("already processing"), "{refused}");
    let queued = pi.data(json!({"type": "prompt", "message": "Second", "streamingBehavior": "followUp"}));
    assert_eq!(queued["disposition"], "queued");
    world.server.release("retry");
    pi.settled();
    let lines = pi.lines();
    assert_eq!(text(answers(&lines).last().unwrap()), "and ok");
    assert_eq!(of_type(&lines, "agent_settled").len(), 1);
    pi.finish();
}

/// A session in the delay of a retry, with a steering message and a prompt; none if the delay was over before they arrived.
fn with_prompt_in_delay() -> Option<(World, Pi)> {
    let world = World::new([
        Reply::error(ErrorKind::Overloaded),
        Reply::text(["one"]).gate("retry"),
        Reply::text(["two"]),
    ]);
    world.settings(json!({"retry": {"baseDelayMs": 1000, "provider": {"maxRetries": 0}}}));
    let pi = world.start();
    pi.prompt("Go");
    pi.wait("auto_retry_start");
    pi.data(json!({"type": "steer", "message": "Before"}));
    let joined = pi.ask(json!({"type": "prompt", "message": "Second"}));
    // During the retry it is refused.
    (joined["data"]["disposition"] == "started").then_some((world, pi))
}

/// Recorded from pi 0.74.2: the retry begins with the prompt, with what waited then, and later messages follow.
#[test]
fn prompt_during_retry_wait_begins_retry() {
    let mut begun = None;
    until("a prompt that arrives in the delay", || {
        begun = with_prompt_in_delay();
        begun.is_some()
    });
    let (world, pi) = begun.unwrap();
    pi.data(json!({"type": "prompt", "message": "After", "streamingBehavior": "steer"}));
    assert_eq!(pi.state()["isStreaming"], true);
    let refused = pi.error(json!({"type": "prompt", "message": "Third"}));
    assert!(refused.contains("already processing"), "{refused}");
    world.server.release("retry");
    pi.settled();
    let said: Vec<String> = pi.messages().iter().map(text).collect();
    assert_eq!(said, ["Go", "Second", "Before", "one", "After", "two"]);
    assert_eq!(of_type(&pi.lines(), "auto_retry_end")[0]["success"], true);
    assert_eq!(world.server.requests().len(), 3);
    pi.finish();
}

#[test]
fn abort_in_retry_wait_withdraws_prompt() {
    let world = World::new([Reply::error(ErrorKind::Overloaded), Reply::text(["ok"])]);
    world.settings(json!({"retry": {"baseDelayMs": 20_000, "provider": {"maxRetries": 0}}}));
    let pi = world.start();
    pi.prompt("Go");
    pi.wait("auto_retry_start");
    pi.data(json!({"type": "prompt", "message": "Withdrawn"}));
    pi.data(json!({"type": "abort"}));
    pi.settled();
    pi.say("Next");
    let file = std::fs::read_to_string(pi.file()).unwrap();
    assert!(!file.contains("Withdrawn"), "{file}");
    let said: Vec<String> = pi.messages().iter().map(text).collect();
    assert_eq!(said, ["Go", "Next", "ok"]);
    pi.finish();
}

#[test]
fn retry_inside_tool_loop_does_not_repeat_tool() {
    let world = World::new([
        Reply::tool("c1", "ls", json!({})),
        Reply::error(ErrorKind::Overloaded),
        Reply::text(["ok"]),
    ]);
    let pi = world.start();
    let lines = pi.say("Go");
    assert_eq!(
        of_type(&lines, "tool_execution_start").len(),
        1,
        "the tool is not run again"
    );
    let requests = world.server.requests();
    assert_eq!(requests[1].body["messages"], requests[2].body["messages"]);
    pi.finish();
}
