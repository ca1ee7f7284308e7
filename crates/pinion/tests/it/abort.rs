//! `abort` at every moment: the run ends, the abort is answered, the next prompt works.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::llm::{Before, ErrorKind, Reply};

use crate::kit::{LONG, Pi, World, answers, bash, of_type, text, until};

/// Aborts and checks what must hold at any moment; `world` still has a reply for one more prompt.
fn abort(pi: &Pi) {
    let id = pi.send(json!({"type": "abort"}));
    assert_eq!(pi.settled()["aborted"], true);
    let response = pi.response(&id);
    assert_eq!(response["success"], true);
    let state = pi.state();
    assert_eq!(
        (&state["isStreaming"], &state["isRetrying"]),
        (&json!(false), &json!(false))
    );
}

fn works_again(pi: &Pi) {
    let lines = pi.say("Again");
    assert_eq!(text(answers(&lines)[0]), "back");
}

fn last_answer(pi: &Pi) -> Value {
    answers(&pi.lines()).last().copied().cloned().unwrap()
}

fn back() -> Reply {
    Reply::text(["back"])
}

#[test]
fn abort_before_response_head_ends_run() {
    let gate = Before {
        gate: Some("never".into()),
        ..Before::default()
    };
    let world = World::new([Reply::text(["x"]).before(gate), back()]);
    let pi = world.start();
    pi.prompt("Go");
    world.server.wait_gate("never", LONG).unwrap();
    abort(&pi);
    assert_eq!(last_answer(&pi)["stopReason"], "aborted");
    works_again(&pi);
    pi.finish();
}

#[test]
fn abort_between_head_and_text_ends_run() {
    let world = World::new([Reply::new().gate("never").then_text(["x"]), back()]);
    let pi = world.start();
    pi.prompt("Go");
    world.server.wait_gate("never", LONG).unwrap();
    abort(&pi);
    assert_eq!(last_answer(&pi)["stopReason"], "aborted");
    works_again(&pi);
    pi.finish();
}

#[test]
fn abort_during_text_keeps_partial_answer() {
    for chat in [false, true] {
        let world = World::new([Reply::text(["half of "]).gate("never").then_text(["it"]), back()]);
        let pi = if chat { world.start_openai() } else { world.start() };
        pi.prompt("Go");
        pi.wait_update("text_delta");
        abort(&pi);
        let answer = last_answer(&pi);
        assert_eq!(answer["stopReason"], "aborted");
        assert_eq!(text(&answer), "half of ", "what came is kept");
        assert_eq!(pi.get("get_last_assistant_text")["text"], "half of");
        works_again(&pi);
        pi.finish();
    }
}

#[test]
fn abort_during_thinking_ends_run() {
    let world = World::new([
        Reply::new().thinking(["hm"], "s").gate("never").then_text(["x"]),
        back(),
    ]);
    let pi = world.start();
    pi.prompt("Go");
    pi.wait_update("thinking_delta");
    abort(&pi);
    works_again(&pi);
    let second = world.server.requests()[1].body.to_string();
    assert!(second.contains("Again"), "{second}");
    pi.finish();
}

#[test]
fn abort_during_call_arguments_ends_run() {
    let half = [r#"{"command": "touch "#];
    let call = Reply::new().tool_chunks("c1", "bash", half).gate("never");
    for chat in [false, true] {
        let mut call = call.clone();
        // The gate stands between two pieces of the arguments.
        call.stream.clear();
        let parts = json!([{"tool": {"id": "c1", "name": "bash",
            "arg_chunks": ["{\"command\": \"touch ", {"gate": "never"}, "must-not-run\"}"]}}]);
        call.stream = serde_json::from_value(parts).unwrap();
        let world = World::new([call, back()]);
        let pi = if chat { world.start_openai() } else { world.start() };
        pi.prompt("Go");
        pi.wait_update("toolcall_delta");
        abort(&pi);
        assert!(
            of_type(&pi.lines(), "tool_execution_start").is_empty(),
            "half a call is not run"
        );
        works_again(&pi);
        // Half a call must not be sent without a result, or at all.
        let second = world.server.requests()[1].body["messages"].to_string();
        assert!(
            !second.contains("tool_use") || second.contains("tool_result"),
            "{second}"
        );
        assert!(!world.dir.cwd().join("must-not-run").exists());
        pi.finish();
    }
}

#[test]
fn abort_while_tools_run_ends_tools() {
    let world = World::new([
        bash("c1", "touch begun; sleep 600").then_tool(
            "c2",
            "bash",
            json!({"command": "touch begun2; sleep 600"}),
        ),
        back(),
    ]);
    let pi = world.start();
    pi.prompt("Go");
    until("the tools", || {
        ["begun", "begun2"]
            .iter()
            .all(|name| world.dir.cwd().join(name).exists())
    });
    abort(&pi);
    let lines = pi.lines();
    let ends = of_type(&lines, "tool_execution_end");
    assert_eq!(ends.len(), 2);
    assert!(ends.iter().all(|end| end["isError"] == true));
    assert_eq!(last_answer(&pi)["stopReason"], "aborted");
    works_again(&pi);
    let second = world.server.requests()[1].body["messages"].to_string();
    assert_eq!(second.matches("tool_result").count(), 2, "{second}");
    pi.finish();
}

#[test]
fn abort_with_queued_tools_ends_every_call() {
    let world = World::new([
        Reply::many_tools(100, "bash", json!({"command": "touch begun; sleep 600"})),
        back(),
    ]);
    let pi = world.start();
    pi.prompt("Go");
    until("a tool", || world.dir.cwd().join("begun").exists());
    abort(&pi);
    assert_eq!(of_type(&pi.lines(), "tool_execution_start").len(), 100);
    assert_eq!(of_type(&pi.lines(), "tool_execution_end").len(), 100);
    works_again(&pi);
    pi.finish();
}

#[test]
fn abort_during_retry_wait_cancels_retry() {
    let world = World::new([Reply::error(ErrorKind::Overloaded), back()]);
    world.settings(
        json!({"retry": {"baseDelayMs": 600_000, "maxAgentDelayMs": 600_000, "provider": {"maxRetries": 0}}}),
    );
    let pi = world.start();
    pi.prompt("Go");
    pi.wait("auto_retry_start");
    let state = pi.state();
    assert_eq!(state["isRetrying"], true);
    abort(&pi);
    let end = of_type(&pi.lines(), "auto_retry_end")[0].clone();
    assert_eq!(end["success"], false);
    assert_eq!(end["finalError"], "Retry cancelled");
    works_again(&pi);
    pi.finish();
}

#[test]
fn abort_without_run_succeeds() {
    let world = World::new([back()]);
    let pi = world.start();
    assert_eq!(pi.ask(json!({"type": "abort"}))["success"], true);
    works_again(&pi);
    pi.finish();
}

#[test]
fn repeated_abort_ends_run_once() {
    let world = World::new([Reply::text(["x"]).gate("never"), back()]);
    let pi = world.start();
    pi.prompt("Go");
    pi.wait_update("text_delta");
    let ids: Vec<String> = (0..3).map(|_| pi.send(json!({"type": "abort"}))).collect();
    for id in &ids {
        assert_eq!(pi.response(id)["success"], true);
    }
    pi.settled();
    assert_eq!(of_type(&pi.lines(), "agent_end").len(), 1);
    works_again(&pi);
    pi.finish();
}

#[test]
fn abort_keeps_queued_messages() {
    let world = World::new([Reply::text(["x"]).gate("never"), back(), back()]);
    let pi = world.start();
    pi.prompt("Go");
    pi.wait_update("text_delta");
    pi.data(json!({"type": "steer", "message": "Kept"}));
    abort(&pi);
    assert_eq!(pi.state()["pendingMessageCount"], 1);
    assert_eq!(pi.get("clear_queue")["steering"], json!(["Kept"]));
    works_again(&pi);
    pi.finish();
}

#[test]
fn abort_response_follows_settled_event() {
    let world = World::new([bash("c1", "touch begun; sleep 600")]);
    let pi = world.start();
    pi.prompt("Go");
    until("the tool", || world.dir.cwd().join("begun").exists());
    let id = pi.send(json!({"type": "abort"}));
    pi.response(&id);
    let lines = pi.lines();
    let at = |fits: &dyn Fn(&Value) -> bool| lines.iter().position(fits).unwrap();
    assert!(at(&|line| line["type"] == "agent_settled") < at(&|line| line["id"] == id.as_str()));
    until("the tool's end", || pi.agent.processes().len() <= 2);
    pi.finish();
}

#[test]
fn abort_and_prompt_replaces_current_run() {
    let world = World::new([Reply::text(["x"]).gate("never"), back()]);
    let pi = world.start();
    pi.prompt("Go");
    pi.wait_update("text_delta");
    let data = pi.data(json!({"type": "abort_and_prompt", "message": "Rather this"}));
    assert_eq!(data["disposition"], "started");
    pi.wait("agent_end");
    pi.wait("agent_end");
    pi.settled();
    assert_eq!(text(&last_answer(&pi)), "back");
    let lines = pi.lines();
    let first_end = lines.iter().position(|line| line["type"] == "agent_end").unwrap();
    let answer = lines
        .iter()
        .position(|line| line["command"] == "abort_and_prompt")
        .unwrap();
    assert!(first_end < answer, "the old run ends first");
    pi.finish();
}

#[test]
fn abort_at_random_moments_settles() {
    // Turn after turn of text and tools; the abort comes a little later each time, wherever that is.
    let world = World::new([]);
    world.server.set_rule(|request| match request.n % 3 {
        0 => Reply::text(["a ", "b ", "c "]).then_tool(
            format!("c{}", request.n),
            "bash",
            json!({"command": "echo x"}),
        ),
        1 => Reply::new()
            .then_tool(format!("c{}", request.n), "ls", json!({}))
            .then_tool(
                format!("d{}", request.n),
                "bash",
                json!({"command": "sleep 0.005"}),
            ),
        _ => Reply::error(ErrorKind::Overloaded),
    });
    let pi = world.start();
    for step in 0..40 {
        pi.agent.skip();
        pi.prompt("Go");
        std::thread::sleep(Duration::from_millis(step * 2));
        let id = pi.send(json!({"type": "abort"}));
        assert_eq!(pi.response(&id)["success"], true);
        assert_eq!(pi.state()["isStreaming"], false);
    }
    let ends = of_type(&pi.lines(), "agent_settled").len();
    assert_eq!(ends, 40);
    pi.finish();
}
