//! Retries in detail: which events in which order with which fields, how long the waits are, and what can happen in one. That
//! there are retries at all is in `retry`.

use serde_json::{Value, json};
use testkit::llm::{Before, ErrorKind, ErrorReply, Reply};

use crate::check;
use crate::kit::{LONG, Pi, World, answered_at, answers, bash, kinds, of_type, text, until};

/// An error of Anthropic with this status and text.
fn failure(status: u16, message: &str) -> Reply {
    let mut reply = Reply::error(ErrorKind::Invalid);
    let error = reply.error.get_or_insert_with(ErrorReply::default);
    (error.status, error.message) = (Some(status), Some(message.to_owned()));
    reply
}

/// Waits of ten minutes.
fn slow(world: &World) {
    world.settings(
        json!({"retry": {"baseDelayMs": 600_000, "maxAgentDelayMs": 600_000, "provider": {"maxRetries": 0}}}),
    );
}

fn delays(lines: &[Value]) -> Vec<&Value> {
    of_type(lines, "auto_retry_start")
        .iter()
        .map(|start| &start["delayMs"])
        .collect()
}

const FAILED: [&str; 7] = [
    "agent_start",
    "turn_start",
    "message_start",
    "message_end",
    "turn_end",
    "agent_end",
    "auto_retry_start",
];

#[test]
fn retries_emit_events_until_success() {
    let world = World::new([
        Reply::error(ErrorKind::Overloaded),
        Reply::error(ErrorKind::RateLimit),
        Reply::text(["ok"]),
    ]);
    let pi = world.start();
    let lines = pi.say("Hi");
    let mut expected = vec![
        "response",
        "agent_start",
        "turn_start",
        "message_start",
        "message_end",
    ];
    expected.extend(&FAILED[2..]);
    expected.extend(FAILED);
    expected.extend([
        "agent_start",
        "turn_start",
        "message_start",
        "message_end",
        "auto_retry_end",
        "turn_end",
        "agent_end",
        "agent_settled",
    ]);
    assert_eq!(kinds(&lines), expected);
    let start = of_type(&lines, "auto_retry_start")[0];
    let failed = answers(&lines)[0];
    assert_eq!(
        *start,
        json!({"type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "delayMs": 10,
               "errorMessage": failed["errorMessage"]})
    );
    assert_eq!(
        *of_type(&lines, "auto_retry_end")[0],
        json!({"type": "auto_retry_end", "success": true, "attempt": 2})
    );
    let roles = |end: &Value| -> Vec<Value> {
        let messages = end["messages"].as_array().unwrap().iter();
        messages.map(|message| message["role"].clone()).collect()
    };
    let ends = of_type(&lines, "agent_end");
    assert_eq!(roles(ends[0]), ["user", "assistant"]);
    assert_eq!(
        (roles(ends[1]), roles(ends[2])),
        (vec![json!("assistant")], vec![json!("assistant")])
    );
    assert_eq!(
        check::roles(&pi.file()),
        ["user", "assistant", "assistant", "assistant"]
    );
    pi.finish();
}

#[test]
fn retries_emit_events_until_final_failure() {
    let world = World::new([Reply::error(ErrorKind::Overloaded).repeat()]);
    world.settings(json!({"retry": {"baseDelayMs": 1, "maxRetries": 2, "provider": {"maxRetries": 0}}}));
    let pi = world.start();
    let lines = pi.say("Hi");
    let mut expected = vec![
        "response",
        "agent_start",
        "turn_start",
        "message_start",
        "message_end",
    ];
    expected.extend(&FAILED[2..]);
    expected.extend(FAILED);
    expected.extend(&FAILED[..6]);
    expected.extend(["auto_retry_end", "agent_settled"]);
    assert_eq!(kinds(&lines), expected);
    assert_eq!(of_type(&lines, "auto_retry_start")[0]["maxAttempts"], 2);
    let last = answers(&lines)[2];
    assert_eq!(
        *of_type(&lines, "auto_retry_end")[0],
        json!({"type": "auto_retry_end", "success": false, "attempt": 2, "finalError": last["errorMessage"]})
    );
    assert_eq!(
        pi.roles(),
        ["user", "assistant"],
        "only the last failure is part of the conversation"
    );
    assert_eq!(of_type(&lines, "agent_settled")[0]["aborted"], false);
    pi.finish();
}

#[test]
fn session_with_retries_is_unchanged_after_restart() {
    let world = World::new([Reply::error(ErrorKind::Overloaded), Reply::text(["ok"])]);
    let pi = world.start();
    pi.say("Hi");
    let (file, messages) = (pi.file(), pi.messages());
    pi.finish();
    let again = world.start_with(&["--session", file.to_str().unwrap()]);
    assert_eq!(again.messages(), messages);
    again.finish();
}

#[test]
fn retry_delays_double_up_to_cap() {
    let world = World::new([Reply::error(ErrorKind::Overloaded).repeat()]);
    world.settings(
        json!({"retry": {"baseDelayMs": 8, "maxRetries": 5, "maxAgentDelayMs": 30,
                                    "provider": {"maxRetries": 0}}}),
    );
    let pi = world.start();
    let lines = pi.say("Hi");
    assert_eq!(delays(&lines), [8, 16, 30, 30, 30]);
    let requests = world.server.requests();
    for (pair, delay) in requests.windows(2).zip([8, 16, 30, 30, 30]) {
        let wait = pair[1].at - pair[0].at;
        assert!(
            wait >= std::time::Duration::from_millis(delay),
            "{wait:?} instead of {delay} ms"
        );
    }
    pi.finish();
}

#[test]
fn retry_delay_follows_provider_headers() {
    // Name and value of the header, the wait; the cap is 700 ms.
    let cases = [
        ("retry-after", "0.4", 400),
        ("retry-after-ms", "300", 300),
        ("retry-after", "3600", 700),
        ("retry-after", "Fri, 31 Dec 2100 23:59:59 GMT", 700),
        ("retry-after", "0", 10),
        ("retry-after", "-5", 10),
        ("retry-after", "soon", 10),
        ("retry-after", "Thu, 01 Jan 1970 00:00:00 GMT", 10),
    ];
    for (name, value, delay) in cases {
        let world = World::new([
            Reply::error(ErrorKind::RateLimit).header(name, value),
            Reply::text(["ok"]),
        ]);
        world.settings(
            json!({"retry": {"baseDelayMs": 10, "maxAgentDelayMs": 700, "provider": {"maxRetries": 0}}}),
        );
        let pi = world.start();
        assert_eq!(delays(&pi.say("Hi")), [delay], "{name}: {value}");
        pi.finish();
    }
}

#[test]
fn billing_errors_are_not_retried() {
    for (status, message) in [
        (
            429,
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        (429, "insufficient_quota: rate limit"),
        (429, "Monthly usage limit reached"),
        (403, "Your available balance is too low; rate limit 0"),
        (500, "internal error: billing is not active"),
    ] {
        let world = World::new([failure(status, message), Reply::text(["ok"])]);
        let pi = world.start();
        let lines = pi.say("Hi");
        assert!(delays(&lines).is_empty(), "{message}");
        assert_eq!(of_type(&lines, "agent_end")[0]["willRetry"], false);
        let error = answers(&lines)[0]["errorMessage"].as_str().unwrap();
        assert!(error.contains(message), "{error}");
        assert_eq!(world.server.requests().len(), 1);
        pi.finish();
    }
}

#[test]
fn status_numbers_in_text_match_whole_only() {
    for (message, retried) in [
        ("bad request (request id: req_011a500bC)", false),
        ("bad request of 15003 bytes, key k429", false),
        ("upstream said 503 to us", true),
        ("code=502;", true),
    ] {
        let world = World::new([failure(400, message), Reply::text(["ok"])]);
        let pi = world.start();
        assert_eq!(delays(&pi.say("Hi")).len(), usize::from(retried), "{message}");
        pi.finish();
    }
}

#[test]
fn session_is_busy_during_retry_wait() {
    let world = World::new([Reply::error(ErrorKind::Overloaded)]);
    slow(&world);
    let pi = world.start();
    pi.prompt("Hi");
    pi.wait("auto_retry_start");
    let state = pi.state();
    assert_eq!(
        (
            &state["isRetrying"],
            &state["isCompacting"],
            &state["messageCount"]
        ),
        (&json!(true), &json!(false), &json!(1)),
        "{state}"
    );
    pi.data(json!({"type": "abort_retry"}));
    pi.settled();
    let state = pi.state();
    assert_eq!(
        (&state["isRetrying"], &state["isStreaming"]),
        (&json!(false), &json!(false))
    );
    pi.finish();
}

#[test]
fn retry_wait_can_be_aborted() {
    for command in ["abort_retry", "abort"] {
        let world = World::new([Reply::error(ErrorKind::Overloaded)]);
        slow(&world);
        let pi = world.start();
        pi.prompt("Hi");
        pi.wait("auto_retry_start");
        pi.data(json!({ "type": command }));
        pi.settled();
        let lines = pi.lines();
        let after: Vec<&str> = kinds(&lines)
            .into_iter()
            .skip_while(|kind| *kind != "auto_retry_start")
            .filter(|kind| *kind != "response")
            .collect();
        assert_eq!(
            after,
            ["auto_retry_start", "auto_retry_end", "agent_settled"],
            "{command}"
        );
        assert_eq!(
            *of_type(&lines, "auto_retry_end")[0],
            json!({"type": "auto_retry_end", "success": false, "attempt": 1, "finalError": "Retry cancelled"})
        );
        assert_eq!(world.server.requests().len(), 1);
        world.server.push(Reply::text(["ok"]));
        let lines = pi.say("Again");
        assert_eq!(text(answers(&lines)[0]), "ok");
        assert!(
            of_type(&lines, "auto_retry_end").is_empty(),
            "the count is forgotten"
        );
        pi.finish();
    }
}

#[test]
fn abort_retry_without_wait_does_nothing() {
    let world = World::new([Reply::text(["half"]).gate("mid").then_text([" and half"])]);
    let pi = world.start();
    pi.data(json!({"type": "abort_retry"}));
    pi.prompt("Hi");
    pi.wait_update("text_delta");
    pi.data(json!({"type": "abort_retry"}));
    world.server.release("mid");
    assert_eq!(pi.settled()["aborted"], false, "a run is not a wait");
    assert_eq!(pi.get("get_last_assistant_text")["text"], "half and half");
    pi.finish();
}

#[test]
fn auto_retry_can_be_disabled_and_enabled() {
    let world = World::new([
        Reply::error(ErrorKind::Overloaded),
        Reply::error(ErrorKind::Overloaded),
        Reply::text(["ok"]),
    ]);
    let pi = world.start();
    pi.data(json!({"type": "set_auto_retry", "enabled": false}));
    assert!(delays(&pi.say("Hi")).is_empty());
    pi.data(json!({"type": "set_auto_retry", "enabled": true}));
    assert_eq!(delays(&pi.say("Hi")).len(), 1);
    let settings = std::fs::read_to_string(world.dir.agent_dir().join("settings.json")).unwrap();
    assert!(
        !settings.contains("enabled"),
        "the file is not changed: {settings}"
    );
    pi.finish();
}

#[test]
fn auto_retry_disabled_during_wait_finishes_announced_attempt() {
    // The delay may be over before the command arrives: the attempt is not.
    let gate = Before {
        gate: Some("retry".to_owned()),
        ..Before::default()
    };
    let world = World::new([
        Reply::error(ErrorKind::Overloaded),
        Reply::error(ErrorKind::Overloaded).before(gate),
        Reply::error(ErrorKind::Overloaded).repeat(),
    ]);
    world.settings(json!({"retry": {"baseDelayMs": 200, "provider": {"maxRetries": 0}}}));
    let pi = world.start();
    pi.prompt("Hi");
    pi.wait("auto_retry_start");
    pi.data(json!({"type": "set_auto_retry", "enabled": false}));
    world.server.release("retry");
    pi.settled();
    let lines = pi.lines();
    assert_eq!(
        world.server.requests().len(),
        2,
        "what was announced is done, but no more"
    );
    let end = of_type(&lines, "auto_retry_end");
    assert_eq!(
        (end.len(), &end[0]["success"], &end[0]["attempt"]),
        (1, &json!(false), &json!(1))
    );
    pi.finish();
}

/// A session in the delay of a retry, with a follow-up and a steering message; none if the delay was over before they arrived.
fn with_messages_in_delay() -> Option<(World, Pi)> {
    let world = World::new([
        Reply::error(ErrorKind::Overloaded),
        Reply::text(["to both"]).gate("retry"),
        Reply::text(["to the follow-up"]),
    ]);
    world.settings(json!({"retry": {"baseDelayMs": 300, "provider": {"maxRetries": 0}}}));
    let pi = world.start();
    pi.prompt("Hi");
    pi.wait("auto_retry_start");
    pi.data(json!({"type": "follow_up", "message": "FOLLOW"}));
    let steering = pi.send(json!({"type": "steer", "message": "STEER"}));
    pi.response(&steering);
    let retry = pi
        .agent
        .wait_for("the retry", true, 2, LONG, |line| line["type"] == "agent_start");
    retry.unwrap();
    let lines = pi.lines();
    let begins = lines.iter().rposition(|line| line["type"] == "agent_start")?;
    (answered_at(&lines, &steering) < begins).then_some((world, pi))
}

#[test]
fn steering_joins_retry_and_follow_ups_wait() {
    let mut begun = None;
    until("messages that arrive in the delay", || {
        begun = with_messages_in_delay();
        begun.is_some()
    });
    let (world, pi) = begun.unwrap();
    world.server.release("retry");
    pi.settled();
    let said = |request: usize| world.server.requests()[request].body["messages"].to_string();
    assert!(
        said(1).contains("STEER") && !said(1).contains("FOLLOW"),
        "{}",
        said(1)
    );
    assert!(said(2).contains("FOLLOW"));
    assert_eq!(world.server.requests().len(), 3);
    assert_eq!(pi.state()["pendingMessageCount"], 0);
    pi.finish();
}

#[test]
fn retry_count_restarts_after_each_answer() {
    let world = World::new([
        Reply::error(ErrorKind::Overloaded),
        Reply::error(ErrorKind::Overloaded),
        bash("c1", "echo x"),
        Reply::error(ErrorKind::Overloaded),
        Reply::text(["ok"]),
    ]);
    let pi = world.start();
    let lines = pi.say("Hi");
    assert_eq!(delays(&lines), [10, 20, 10]);
    let ends: Vec<&Value> = of_type(&lines, "auto_retry_end")
        .iter()
        .map(|end| &end["attempt"])
        .collect();
    assert_eq!(ends, [2, 1]);
    pi.finish();
}

#[test]
fn partial_answer_before_failure_is_not_sent_again() {
    let world = World::new([
        Reply::text(["HALF AN ANSWER"]).error_event(ErrorKind::Overloaded),
        Reply::text(["whole"]),
    ]);
    let pi = world.start();
    let lines = pi.say("Hi");
    let all = answers(&lines);
    assert_eq!(
        (text(all[0]), &all[0]["stopReason"]),
        ("HALF AN ANSWER".to_owned(), &json!("error"))
    );
    assert!(!world.server.requests()[1].body.to_string().contains("HALF"));
    assert!(!pi.messages().iter().any(|message| text(message).contains("HALF")));
    pi.finish();
}

#[test]
fn retry_that_overflows_is_compacted() {
    let world = World::new([
        Reply::text(["a long enough answer"]),
        Reply::error(ErrorKind::Overloaded),
        Reply::error(ErrorKind::ContextOverflow),
        Reply::text(["THE SUMMARY"]),
        Reply::error(ErrorKind::Overloaded),
        Reply::text(["ok"]),
    ]);
    world.settings(json!({"compaction": {"keepRecentTokens": 5}}));
    let pi = world.start();
    pi.say("A question that is long enough");
    let lines = pi.say("Too much");
    let order: Vec<&str> = kinds(&lines)
        .into_iter()
        .filter(|kind| {
            kind.starts_with("auto_") || kind.starts_with("compaction_") || kind.starts_with("agent_")
        })
        .collect();
    assert_eq!(
        order,
        [
            "agent_start",
            "agent_end",
            "auto_retry_start",
            "agent_start",
            "agent_end",
            "compaction_start",
            "compaction_end",
            "agent_start",
            "agent_end",
            "auto_retry_start",
            "agent_start",
            "auto_retry_end",
            "agent_end",
            "agent_settled",
        ]
    );
    assert_eq!(text(answers(&lines).last().unwrap()), "ok");
    pi.finish();
}

#[test]
fn kill_9_during_retry_wait_keeps_session() {
    let world = World::new([Reply::error(ErrorKind::Overloaded)]);
    slow(&world);
    let pi = world.start();
    pi.prompt("Hi");
    pi.wait("auto_retry_start");
    let file = pi.file();
    pi.agent.kill9().unwrap();
    pi.agent.wait_exit(LONG).unwrap();
    world.server.push(Reply::text(["ok"]));
    let again: Pi = world.start_with(&["--session", file.to_str().unwrap()]);
    assert_eq!(text(answers(&again.say("Again"))[0]), "ok");
    again.finish();
}

#[test]
fn provider_level_retries_emit_no_events() {
    let soon = |kind| Reply::error(kind).header("retry-after-ms", "5");
    let world = World::new([
        soon(ErrorKind::Overloaded),
        soon(ErrorKind::Server),
        Reply::text(["ok"]),
    ]);
    world.settings(
        json!({"retry": {"baseDelayMs": 10, "provider": {"maxRetries": 2, "maxRetryDelayMs": 20}}}),
    );
    let pi = world.start();
    let lines = pi.say("Hi");
    assert_eq!(world.server.requests().len(), 3);
    assert!(delays(&lines).is_empty());
    assert_eq!(check::roles(&pi.file()), ["user", "assistant"]);
    pi.finish();
}

#[test]
fn retry_delay_beyond_limit_is_left_to_session() {
    let late = Reply::error(ErrorKind::Overloaded).header("retry-after-ms", "21");
    let world = World::new([late, Reply::text(["ok"])]);
    world.settings(
        json!({"retry": {"baseDelayMs": 10, "provider": {"maxRetries": 2, "maxRetryDelayMs": 20}}}),
    );
    let pi = world.start();
    assert_eq!(delays(&pi.say("Hi")), [21]);
    pi.finish();
}

#[test]
fn provider_retry_waits_only_as_asked() {
    let world = World::new([Reply::error(ErrorKind::Overloaded), Reply::text(["ok"])]);
    world.settings(
        json!({"retry": {"baseDelayMs": 10, "provider": {"maxRetries": 2, "maxRetryDelayMs": 20}}}),
    );
    let pi = world.start();
    assert!(delays(&pi.say("Hi")).is_empty());
    pi.finish();
}

#[test]
fn max_retries_zero_disables_retries() {
    let world = World::new([Reply::error(ErrorKind::Overloaded), Reply::text(["ok"])]);
    world.settings(json!({"retry": {"baseDelayMs": 10, "maxRetries": 0, "provider": {"maxRetries": 0}}}));
    let pi = world.start();
    let lines = pi.say("Hi");
    assert!(delays(&lines).is_empty() && of_type(&lines, "auto_retry_end").is_empty());
    assert_eq!(of_type(&lines, "agent_end")[0]["willRetry"], false);
    pi.finish();
}

#[test]
fn aborted_retry_emits_retry_end() {
    let world = World::new([
        Reply::error(ErrorKind::Overloaded),
        Reply::text(["half"]).gate("never"),
    ]);
    let pi = world.start();
    pi.prompt("Hi");
    pi.wait_update("text_delta");
    pi.data(json!({"type": "abort"}));
    let lines = pi.lines();
    let order: Vec<&str> = kinds(&lines)
        .into_iter()
        .filter(|kind| kind.starts_with("auto_") || kind.starts_with("agent_"))
        .collect();
    assert_eq!(
        order,
        [
            "agent_start",
            "agent_end",
            "auto_retry_start",
            "agent_start",
            "auto_retry_end",
            "agent_end",
            "agent_settled"
        ]
    );
    // The words of pi: an answer that is no error, here an aborted one, ends the retries.
    let end = of_type(&lines, "auto_retry_end")[0];
    assert_eq!((&end["success"], &end["attempt"]), (&json!(true), &json!(1)));
    assert_eq!(of_type(&lines, "agent_settled")[0]["aborted"], true);
    pi.finish();
}

#[test]
fn permanently_failing_retry_emits_retry_end() {
    let world = World::new([
        Reply::error(ErrorKind::Overloaded),
        Reply::error(ErrorKind::Auth),
        Reply::text(["ok"]),
    ]);
    let pi = world.start();
    let lines = pi.say("Hi");
    let end = of_type(&lines, "auto_retry_end");
    assert_eq!(
        (end.len(), &end[0]["success"], &end[0]["attempt"]),
        (1, &json!(false), &json!(1))
    );
    assert!(
        end[0]["finalError"].as_str().unwrap().contains("401"),
        "{}",
        end[0]
    );
    assert!(of_type(&pi.say("Again"), "auto_retry_end").is_empty());
    pi.finish();
}
