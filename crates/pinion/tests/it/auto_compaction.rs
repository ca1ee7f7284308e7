//! Automatic compaction: the context is nearly full after a run, between turns or before a prompt, or the provider
//! reports an overflow. Its failures are in `auto_compaction_faults`, compaction on request in `compaction`.

use serde_json::{Value, json};
use testkit::llm::{ErrorKind, Reply, Usage};

use crate::check;
use crate::kit::{LONG, Pi, World, answers, bash, kinds, of_type, text};

/// A reply after which the window of 200,000 tokens is nearly full.
pub(crate) fn full(reply: Reply) -> Reply {
    reply.usage(Usage {
        input: 190_000,
        ..Usage::default()
    })
}

/// A world in which a compaction keeps next to nothing.
pub(crate) fn world(replies: impl IntoIterator<Item = Reply>) -> World {
    let world = World::new(replies);
    world.settings(json!({"compaction": {"keepRecentTokens": 5}}));
    world
}

pub(crate) fn summary() -> Reply {
    Reply::text(["THE SUMMARY"])
}

/// The events from the first of a type on, without the small ones inside of turns.
pub(crate) fn outline(lines: &[Value]) -> Vec<&str> {
    let all = kinds(lines);
    all.into_iter()
        .filter(|kind| !["response", "message_start", "message_end"].contains(kind))
        .collect()
}

/// Nothing is known of how full the context is, wherever one asks.
fn usage_is_unknown(pi: &Pi) {
    let unknown = json!({"tokens": null, "contextWindow": 200_000, "percent": null});
    assert_eq!(pi.state()["contextUsage"], unknown);
    assert_eq!(pi.get("get_session_stats")["contextUsage"], unknown);
    assert_eq!(pi.get("get_context_usage")["usage"], unknown);
}

/// Ends the process and looks whether another one finds the same conversation.
pub(crate) fn same_after_restart(world: &World, pi: Pi) {
    let (file, messages) = (pi.file(), pi.messages());
    pi.finish();
    let again = world.start_with(&["--session", file.to_str().unwrap()]);
    assert_eq!(again.messages(), messages);
    again.finish();
}

pub(crate) fn compactions(pi: &Pi) -> Vec<Value> {
    let entries = check::entries(&pi.file());
    entries
        .into_iter()
        .filter(|entry| entry["type"] == "compaction")
        .collect()
}

#[test]
fn full_context_is_compacted_after_run() {
    let world = world([
        full(Reply::text(["a long enough answer"])),
        summary(),
        Reply::text(["next"]),
    ]);
    let pi = world.start();
    let lines = pi.say("A question that is long enough");
    assert_eq!(
        outline(&lines),
        [
            "agent_start",
            "turn_start",
            "turn_end",
            "agent_end",
            "compaction_start",
            "compaction_end",
            "agent_settled"
        ]
    );
    assert_eq!(of_type(&lines, "agent_end")[0]["willRetry"], false);
    let start = of_type(&lines, "compaction_start")[0];
    assert_eq!(*start, json!({"type": "compaction_start", "reason": "threshold"}));
    let end = of_type(&lines, "compaction_end")[0];
    assert_eq!(
        (
            &end["reason"],
            &end["aborted"],
            &end["willRetry"],
            end.get("errorMessage")
        ),
        (&json!("threshold"), &json!(false), &json!(false), None)
    );
    let (result, stored) = (&end["result"], &compactions(&pi)[0]);
    for key in ["summary", "firstKeptEntryId", "tokensBefore", "details"] {
        assert_eq!(result[key], stored[key], "{key}");
    }
    assert!(
        result["summary"].as_str().unwrap().ends_with("THE SUMMARY"),
        "{result}"
    );
    assert!(result["tokensBefore"].as_u64().unwrap() >= 190_000, "{result}");
    assert_eq!(stored["fromHook"], false);
    usage_is_unknown(&pi);
    assert_eq!(pi.roles()[0], "compactionSummary");
    pi.say("Next question");
    let usage = pi.get("get_context_usage")["usage"].clone();
    assert_eq!(usage["tokens"], 120, "known again: {usage}");
    assert_eq!(world.server.requests().len(), 3, "no further compaction");
    same_after_restart(&world, pi);
}

#[test]
fn newest_pi_streams_while_it_compacts_by_itself() {
    for (dialect, is_streaming) in [("pi-delta", true), ("pi", false)] {
        let summary = Reply::new().gate("summary").then_text(["THE SUMMARY"]);
        let world = world([full(Reply::text(["a long enough answer"])), summary]);
        let pi = world.start_with(&["--rpc-dialect", dialect]);
        pi.prompt("A question that is long enough");
        world.server.wait_gate("summary", LONG).unwrap();
        let state = pi.state();
        assert_eq!(
            (&state["isCompacting"], &state["isStreaming"]),
            (&json!(true), &json!(is_streaming)),
            "{dialect}"
        );
        world.server.release("summary");
        pi.settled();
        assert_eq!(pi.state()["isStreaming"], false, "{dialect}");
        pi.finish();
    }
}

#[test]
fn context_below_threshold_is_not_compacted() {
    // 200,000 - 16,384 are free for the context; the answer reports 20 tokens of its own.
    for (input, compacts) in [(183_596, false), (183_597, true)] {
        let usage = Usage {
            input,
            ..Usage::default()
        };
        let world = world([Reply::text(["a long enough answer"]).usage(usage), summary()]);
        let pi = world.start();
        let lines = pi.say("A question that is long enough");
        assert_eq!(
            !of_type(&lines, "compaction_start").is_empty(),
            compacts,
            "{input}"
        );
        pi.finish();
    }
}

#[test]
fn cached_tokens_count_towards_threshold() {
    let usage = Usage {
        input: 10,
        cache_read: 150_000,
        cache_write: 40_000,
        ..Usage::default()
    };
    let world = world([Reply::text(["a long enough answer"]).usage(usage), summary()]);
    let pi = world.start();
    assert_eq!(
        of_type(&pi.say("A question that is long enough"), "compaction_end").len(),
        1
    );
    pi.finish();
}

#[test]
fn full_context_is_compacted_between_turns() {
    let world = world([
        full(bash("c1", "echo tool-output")),
        summary(),
        bash("c2", "echo more"),
        Reply::text(["done"]),
    ]);
    let pi = world.start();
    let lines = pi.say("A question that is long enough");
    assert_eq!(
        outline(&lines),
        [
            "agent_start",
            "turn_start",
            "tool_execution_start",
            "tool_execution_end",
            "turn_end",
            "compaction_start",
            "compaction_end",
            "turn_start",
            "tool_execution_start",
            "tool_execution_end",
            "turn_end",
            "turn_start",
            "turn_end",
            "agent_end",
            "agent_settled",
        ]
    );
    let end = of_type(&lines, "agent_end")[0]["messages"]
        .as_array()
        .unwrap()
        .clone();
    let roles: Vec<&Value> = end.iter().map(|message| &message["role"]).collect();
    assert_eq!(
        roles,
        [
            "user",
            "assistant",
            "toolResult",
            "assistant",
            "toolResult",
            "assistant"
        ]
    );
    let requests = world.server.requests();
    let told = requests[2].body["messages"].as_array().unwrap().clone();
    assert!(
        told[0].to_string().contains("THE SUMMARY\\n</summary>"),
        "{told:?}"
    );
    let whole = json!(told).to_string();
    let (calls, results) = (
        whole.matches("tool_use\"").count(),
        whole.matches("tool_result\"").count(),
    );
    assert_eq!(calls, results, "a call and its result stay together: {whole}");
    assert!(
        whole.contains("tool-output") || !whole.contains("\"c1\""),
        "{whole}"
    );
    same_after_restart(&world, pi);
}

#[test]
fn run_compacted_midway_survives_kill_9() {
    let world = world([
        full(bash("c1", "echo x")),
        summary(),
        Reply::text(["half"]).gate("never"),
    ]);
    let pi = world.start();
    pi.prompt("A question that is long enough");
    pi.wait("compaction_end");
    pi.wait_update("text_delta");
    let (file, messages) = (pi.file(), pi.messages());
    pi.agent.kill9().unwrap();
    pi.agent.wait_exit(LONG).unwrap();
    let again = world.start_with(&["--session", file.to_str().unwrap()]);
    assert_eq!(again.messages(), messages);
    again.finish();
}

#[test]
fn full_context_is_compacted_before_prompt() {
    let world = world([Reply::text(["a long enough answer"]).usage(Usage {
        input: 150_000,
        ..Usage::default()
    })]);
    let pi = world.start();
    pi.say("A question that is long enough");
    assert!(of_type(&pi.lines(), "compaction_start").is_empty());
    // Another model has a window of 100,000.
    pi.data(json!({"type": "set_model", "provider": "mock-anthropic", "modelId": "claude-plain"}));
    assert_eq!(pi.state()["contextUsage"]["contextWindow"], 100_000);
    world.server.push(summary());
    world.server.push(Reply::text(["next"]));
    let lines = pi.say("Next question");
    assert_eq!(
        kinds(&lines),
        [
            "compaction_start",
            "compaction_end",
            "response",
            "agent_start",
            "turn_start",
            "message_start",
            "message_end",
            "message_start",
            "message_end",
            "turn_end",
            "agent_end",
            "agent_settled",
        ]
    );
    let request = world.server.requests()[2].body["messages"].to_string();
    assert!(
        request.contains("THE SUMMARY") && request.contains("Next question"),
        "{request}"
    );
    same_after_restart(&world, pi);
}

#[test]
fn overflow_is_compacted_and_retried() {
    let world = world([
        Reply::text(["a long enough answer"]),
        Reply::error(ErrorKind::ContextOverflow),
        summary(),
        Reply::text(["now it fits"]),
    ]);
    let pi = world.start();
    pi.say("A question that is long enough");
    let lines = pi.say("Too much");
    assert_eq!(
        kinds(&lines),
        [
            "response",
            "agent_start",
            "turn_start",
            "message_start",
            "message_end",
            "message_start",
            "message_end",
            "turn_end",
            "agent_end",
            "compaction_start",
            "compaction_end",
            "agent_start",
            "turn_start",
            "message_start",
            "message_end",
            "turn_end",
            "agent_end",
            "agent_settled",
        ]
    );
    let again: Vec<&Value> = of_type(&lines, "agent_end")
        .iter()
        .map(|end| &end["willRetry"])
        .collect();
    assert_eq!(again, [true, false]);
    let end = of_type(&lines, "compaction_end")[0];
    assert_eq!(
        (&end["reason"], &end["willRetry"]),
        (&json!("overflow"), &json!(true))
    );
    assert!(of_type(&lines, "auto_retry_start").is_empty());
    assert_eq!(text(answers(&lines)[1]), "now it fits");
    let request = world.server.requests()[3].body["messages"].to_string();
    assert!(
        request.contains("THE SUMMARY") && request.contains("Too much"),
        "{request}"
    );
    let messages = pi.messages();
    assert!(
        messages.iter().all(|message| message["stopReason"] != "error"),
        "{messages:?}"
    );
    assert!(
        check::messages(&pi.file())
            .iter()
            .any(|message| message["stopReason"] == "error")
    );
    pi.finish();
}

#[test]
fn session_with_overflow_is_unchanged_after_restart() {
    let world = world([
        Reply::text(["a long enough answer"]),
        Reply::error(ErrorKind::ContextOverflow),
        summary(),
        Reply::text(["now it fits"]),
    ]);
    let pi = world.start();
    pi.say("A question that is long enough");
    pi.say("Too much");
    same_after_restart(&world, pi);
}

#[test]
fn second_overflow_ends_run() {
    let world = world([
        Reply::text(["a long enough answer"]),
        Reply::error(ErrorKind::ContextOverflow),
        summary(),
        Reply::error(ErrorKind::ContextOverflow),
        Reply::text(["ok"]),
    ]);
    let pi = world.start();
    pi.say("A question that is long enough");
    let lines = pi.say("Too much");
    assert_eq!(
        outline(&lines),
        [
            "agent_start",
            "turn_start",
            "turn_end",
            "agent_end",
            "compaction_start",
            "compaction_end",
            "agent_start",
            "turn_start",
            "turn_end",
            "agent_end",
            "compaction_end",
            "agent_settled",
        ]
    );
    let end = of_type(&lines, "compaction_end")[1];
    assert_eq!(
        (&end["reason"], &end["result"], &end["willRetry"], &end["aborted"]),
        (&json!("overflow"), &json!(null), &json!(false), &json!(false))
    );
    let message = end["errorMessage"].as_str().unwrap();
    assert!(
        message.starts_with("Context overflow recovery failed after one compact-and-retry attempt."),
        "{message}"
    );
    assert_eq!(pi.messages().last().unwrap()["stopReason"], "error");
    assert_eq!(text(answers(&pi.say("Less"))[0]), "ok", "the session can be used");
    pi.finish();
}

#[test]
fn each_prompt_may_overflow_once() {
    let world = world([]);
    let pi = world.start();
    world.server.push(Reply::text(["a long enough answer"]));
    pi.say("A question that is long enough");
    for round in 0..2 {
        world.server.push(Reply::error(ErrorKind::ContextOverflow));
        world.server.push(summary());
        world.server.push(Reply::text(["fits, and is long enough"]));
        let lines = pi.say(&format!("Too much in round {round}, and long enough"));
        assert_eq!(
            text(answers(&lines)[1]),
            "fits, and is long enough",
            "{:?}",
            kinds(&lines)
        );
    }
    assert_eq!(compactions(&pi).len(), 2);
    pi.finish();
}

#[test]
fn overflow_with_auto_compaction_off_fails() {
    let world = world([
        Reply::text(["a long enough answer"]),
        Reply::error(ErrorKind::ContextOverflow),
    ]);
    let pi = world.start();
    pi.data(json!({"type": "set_auto_compaction", "enabled": false}));
    assert_eq!(pi.state()["autoCompactionEnabled"], false);
    pi.say("A question that is long enough");
    let lines = pi.say("Too much");
    assert_eq!(
        outline(&lines),
        [
            "agent_start",
            "turn_start",
            "turn_end",
            "agent_end",
            "agent_settled"
        ]
    );
    assert_eq!(of_type(&lines, "agent_end")[0]["willRetry"], false);
    assert_eq!(answers(&lines)[0]["stopReason"], "error");
    assert_eq!(world.server.requests().len(), 2);
    pi.finish();
}

#[test]
fn full_context_with_auto_compaction_off_stays() {
    let world = world([
        full(Reply::text(["a long enough answer"])),
        summary(),
        Reply::text(["ok"]),
    ]);
    let pi = world.start();
    pi.data(json!({"type": "set_auto_compaction", "enabled": false}));
    let lines = pi.say("A question that is long enough");
    assert!(of_type(&lines, "compaction_start").is_empty());
    pi.data(json!({"type": "set_auto_compaction", "enabled": true}));
    let lines = pi.say("And now");
    assert_eq!(
        kinds(&lines)[..3],
        ["compaction_start", "compaction_end", "response"],
        "made up for before the next prompt"
    );
    let settings = std::fs::read_to_string(world.dir.agent_dir().join("settings.json")).unwrap();
    assert!(
        !settings.contains("\"enabled\""),
        "the file is not changed: {settings}"
    );
    pi.finish();
}

#[test]
fn compaction_setting_disables_auto_compaction() {
    let world = World::new([full(Reply::text(["a long enough answer"]))]);
    world.settings(json!({"compaction": {"enabled": false, "keepRecentTokens": 5}}));
    let pi = world.start();
    assert_eq!(pi.state()["autoCompactionEnabled"], false);
    assert!(of_type(&pi.say("A question that is long enough"), "compaction_start").is_empty());
    pi.finish();
}
