//! Failures of an automatic compaction: summaries that fail, aborts, messages, `kill -9`. `auto_compaction` tests when one starts.

use serde_json::json;
use testkit::llm::{ErrorKind, Reply};

use crate::auto_compaction::{compactions, full, outline, same_after_restart, summary, world};
use crate::kit::{LONG, answers, bash, kinds, of_type, text};

#[test]
fn failed_auto_compaction_is_reported_and_survived() {
    let world = world([
        full(Reply::text(["a long enough answer"])),
        Reply::error(ErrorKind::Auth),
    ]);
    let pi = world.start();
    let lines = pi.say("A question that is long enough");
    let end = of_type(&lines, "compaction_end")[0];
    assert_eq!(
        (&end["reason"], &end["result"], &end["aborted"], &end["willRetry"]),
        (&json!("threshold"), &json!(null), &json!(false), &json!(false))
    );
    let message = end["errorMessage"].as_str().unwrap();
    assert!(
        message.starts_with("Auto-compaction failed: ") && message.contains("401"),
        "{message}"
    );
    assert_eq!(pi.roles(), ["user", "assistant"]);
    assert!(compactions(&pi).is_empty());
    pi.data(json!({"type": "set_auto_compaction", "enabled": false}));
    world.server.push(Reply::text(["goes on"]));
    assert_eq!(text(answers(&pi.say("Next"))[0]), "goes on");
    pi.finish();
}

#[test]
fn failed_compaction_between_turns_continues_run() {
    let world = world([
        full(bash("c1", "echo x")),
        Reply::error(ErrorKind::Auth),
        Reply::text(["done"]),
    ]);
    let pi = world.start();
    let lines = pi.say("A question that is long enough");
    assert_eq!(of_type(&lines, "agent_end").len(), 1);
    assert_eq!(text(answers(&lines)[1]), "done");
    pi.finish();
}

#[test]
fn overflow_with_failed_summary_ends_run() {
    let world = world([
        Reply::text(["a long enough answer"]),
        Reply::error(ErrorKind::ContextOverflow),
        Reply::error(ErrorKind::Auth),
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
            "agent_settled"
        ]
    );
    let end = of_type(&lines, "compaction_end")[0];
    let message = end["errorMessage"].as_str().unwrap();
    assert!(
        message.starts_with("Context overflow recovery failed: "),
        "{message}"
    );
    assert_eq!((&end["willRetry"], &end["result"]), (&json!(false), &json!(null)));
    assert_eq!(text(answers(&pi.say("Less"))[0]), "ok");
    pi.finish();
}

#[test]
fn transient_summary_failure_is_retried() {
    let world = world([
        full(Reply::text(["a long enough answer"])),
        Reply::error(ErrorKind::Overloaded),
        Reply::error(ErrorKind::Server),
        summary(),
    ]);
    let pi = world.start();
    let lines = pi.say("A question that is long enough");
    let result = &of_type(&lines, "compaction_end")[0]["result"];
    assert!(
        result["summary"].as_str().unwrap().ends_with("THE SUMMARY"),
        "{result}"
    );
    assert_eq!(world.server.requests().len(), 4);
    assert!(of_type(&lines, "auto_retry_start").is_empty(), "that is for runs");
    pi.finish();
}

#[test]
fn abort_of_compaction_after_run_keeps_messages() {
    let world = world([
        full(Reply::text(["a long enough answer"])),
        Reply::new().gate("never").then_text(["LATE"]),
    ]);
    let pi = world.start();
    pi.prompt("A question that is long enough");
    pi.wait("compaction_start");
    world.server.wait_gate("never", LONG).unwrap();
    assert_eq!(pi.state()["isCompacting"], true);
    pi.data(json!({"type": "abort"}));
    let lines = pi.lines();
    let end = of_type(&lines, "compaction_end")[0];
    assert_eq!(
        (&end["aborted"], &end["result"], end.get("errorMessage")),
        (&json!(true), &json!(null), None)
    );
    assert_eq!(pi.state()["isCompacting"], false);
    assert_eq!(pi.roles(), ["user", "assistant"]);
    assert!(compactions(&pi).is_empty());
    same_after_restart(&world, pi);
}

#[test]
fn abort_of_compaction_between_turns_ends_run() {
    let world = world([
        full(bash("c1", "echo x")),
        Reply::new().gate("never").then_text(["LATE"]),
    ]);
    let pi = world.start();
    pi.prompt("A question that is long enough");
    pi.wait("compaction_start");
    world.server.wait_gate("never", LONG).unwrap();
    pi.data(json!({"type": "abort"}));
    let lines = pi.lines();
    assert_eq!(of_type(&lines, "compaction_end")[0]["aborted"], true);
    assert_eq!(of_type(&lines, "agent_end").len(), 1);
    assert_eq!(of_type(&lines, "agent_settled")[0]["aborted"], true);
    assert_eq!(answers(&lines).last().unwrap()["stopReason"], "aborted");
    assert_eq!(world.server.requests().len(), 2, "nothing was asked after it");
    same_after_restart(&world, pi);
}

#[test]
fn abort_of_overflow_recovery_stops_retry() {
    let world = world([
        Reply::text(["a long enough answer"]),
        Reply::error(ErrorKind::ContextOverflow),
        Reply::new().gate("never").then_text(["LATE"]),
    ]);
    let pi = world.start();
    pi.say("A question that is long enough");
    pi.agent.skip();
    pi.prompt("Too much");
    pi.wait("compaction_start");
    world.server.wait_gate("never", LONG).unwrap();
    pi.data(json!({"type": "abort"}));
    let lines = pi.lines();
    let end = of_type(&lines, "compaction_end")[0];
    assert_eq!(
        (&end["aborted"], &end["willRetry"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(
        kinds(&lines)
            .iter()
            .filter(|kind| **kind == "agent_start")
            .count(),
        2,
        "not asked again"
    );
    world.server.push(Reply::text(["ok"]));
    assert_eq!(text(answers(&pi.say("Less"))[0]), "ok");
    pi.finish();
}

#[test]
fn abort_of_compaction_before_prompt_shows_run() {
    let world = world([full(Reply::text(["a long enough answer"]))]);
    let pi = world.start();
    pi.data(json!({"type": "set_auto_compaction", "enabled": false}));
    pi.say("A question that is long enough");
    pi.data(json!({"type": "set_auto_compaction", "enabled": true}));
    world.server.push(Reply::new().gate("never").then_text(["LATE"]));
    pi.agent.skip();
    let asked = pi.send(json!({"type": "prompt", "message": "Second"}));
    pi.wait("compaction_start");
    world.server.wait_gate("never", LONG).unwrap();
    pi.data(json!({"type": "abort"}));
    assert_eq!(
        pi.response(&asked)["success"],
        true,
        "it has a run, which ends at once"
    );
    let lines = pi.lines();
    assert_eq!(of_type(&lines, "agent_end").len(), 2);
    assert_eq!(of_type(&lines, "agent_settled").last().unwrap()["aborted"], true);
    assert_eq!(pi.roles(), ["user", "assistant", "user", "assistant"]);
    assert_eq!(pi.messages()[3]["stopReason"], "aborted");
    same_after_restart(&world, pi);
}

#[test]
fn messages_during_auto_compaction_run_afterwards() {
    let world = world([
        full(Reply::text(["a long enough answer"])),
        Reply::new().gate("summary").then_text(["THE SUMMARY"]),
        Reply::text(["to the steer"]),
        Reply::text(["to the prompt"]),
        Reply::text(["to the follow-up"]),
    ]);
    let pi = world.start();
    pi.prompt("A question that is long enough");
    world.server.wait_gate("summary", LONG).unwrap();
    let refused = pi.error(json!({"type": "prompt", "message": "Refused"}));
    assert!(refused.contains("already processing"), "{refused}");
    pi.data(json!({"type": "follow_up", "message": "FOLLOW"}));
    let data = pi.data(json!({"type": "prompt", "message": "PROMPT", "streamingBehavior": "steer"}));
    assert_eq!(data["disposition"], "queued");
    pi.data(json!({"type": "steer", "message": "STEER"}));
    assert_eq!(pi.state()["pendingMessageCount"], 3);
    assert_eq!(world.server.requests().len(), 2, "nothing is asked meanwhile");
    world.server.release("summary");
    pi.settled();
    let users: Vec<String> = pi
        .messages()
        .iter()
        .filter(|message| message["role"] == "user")
        .map(text)
        .collect();
    assert_eq!(
        users[users.len() - 3..],
        ["PROMPT", "STEER", "FOLLOW"],
        "each in its kind"
    );
    assert_eq!(pi.state()["pendingMessageCount"], 0);
    let lines = pi.lines();
    assert_eq!(of_type(&lines, "agent_end").len(), 2);
    assert_eq!(of_type(&lines, "agent_settled").len(), 1);
    same_after_restart(&world, pi);
}

#[test]
fn kill_9_during_compaction_changes_nothing() {
    let world = world([
        full(Reply::text(["a long enough answer"])),
        Reply::new().gate("never").then_text(["LATE"]),
    ]);
    let pi = world.start();
    pi.prompt("A question that is long enough");
    pi.wait("compaction_start");
    let (file, messages) = (pi.file(), pi.messages());
    pi.agent.kill9().unwrap();
    pi.agent.wait_exit(LONG).unwrap();
    let again = world.start_with(&["--session", file.to_str().unwrap()]);
    assert_eq!(again.messages(), messages);
    again.finish();
}
