//! Messages that come while a run is under way.

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::kit::{LONG, Pi, World, bash, kinds, of_type, text};

/// A world whose first answer stops at the gate `mid`; `more` follow.
fn gated(more: impl IntoIterator<Item = Reply>) -> World {
    let world = World::new([Reply::text(["one "]).gate("mid").then_text(["two"])]);
    for reply in more {
        world.server.push(reply);
    }
    world
}

fn at_gate(world: &World, pi: &Pi) {
    pi.prompt("First");
    world.server.wait_gate("mid", LONG).unwrap();
}

/// Texts of the user messages that the model was sent, by request.
fn told(world: &World, request: usize) -> Vec<String> {
    let requests = world.server.requests();
    let messages = requests[request].body["messages"].as_array().unwrap();
    let users = messages.iter().filter(|message| message["role"] == "user");
    users
        .flat_map(|message| message["content"].as_array().unwrap().clone())
        .filter_map(|block| block["text"].as_str().map(str::to_owned))
        .collect()
}

#[test]
fn prompt_during_run_needs_streaming_behavior() {
    let world = gated([]);
    let pi = world.start();
    at_gate(&world, &pi);
    let error = pi.error(json!({"type": "prompt", "message": "Second"}));
    assert_eq!(
        error,
        "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message."
    );
    world.server.release("mid");
    pi.settled();
    assert_eq!(pi.messages().len(), 2);
    pi.finish();
}

#[test]
fn prompt_can_be_queued_as_either_kind() {
    for behaviour in ["steer", "followUp"] {
        let world = gated([Reply::text(["three"])]);
        let pi = world.start();
        at_gate(&world, &pi);
        let data = pi.data(json!({"type": "prompt", "message": "Second", "streamingBehavior": behaviour}));
        assert_eq!(data["disposition"], "queued");
        let update = pi.wait("queue_update");
        let queue = if behaviour == "steer" {
            "steering"
        } else {
            "followUp"
        };
        assert_eq!(update[queue], json!(["Second"]), "{update}");
        let state = pi.state();
        assert_eq!(state["pendingMessageCount"], 1);
        assert_eq!(state["queuedMessageCount"], 1);
        world.server.release("mid");
        pi.settled();
        assert_eq!(told(&world, 1), ["First", "Second"]);
        assert_eq!(of_type(&pi.lines(), "agent_end").len(), 1, "it is one run");
        assert_eq!(pi.state()["pendingMessageCount"], 0);
        pi.finish();
    }
}

#[test]
fn empty_queue_is_reported_before_message_start() {
    let world = gated([Reply::text(["three"])]);
    let pi = world.start();
    at_gate(&world, &pi);
    pi.data(json!({"type": "steer", "message": "Second"}));
    pi.agent.skip();
    world.server.release("mid");
    pi.wait("turn_end");
    pi.wait("turn_start");
    let update = pi.wait("queue_update");
    assert_eq!(update["steering"], json!([]));
    assert_eq!(text(&pi.wait("message_start")["message"]), "Second");
    pi.settled();
    pi.finish();
}

#[test]
fn steering_precedes_follow_ups_one_at_a_time() {
    let world = gated(["a", "b", "c", "d"].map(|word| Reply::text([word])));
    let pi = world.start();
    at_gate(&world, &pi);
    for (kind, message) in [
        ("follow_up", "F1"),
        ("follow_up", "F2"),
        ("steer", "S1"),
        ("steer", "S2"),
    ] {
        assert_eq!(
            pi.data(json!({"type": kind, "message": message}))["disposition"],
            "queued"
        );
    }
    world.server.release("mid");
    pi.settled();
    assert_eq!(world.server.requests().len(), 5);
    assert_eq!(told(&world, 4), ["First", "S1", "S2", "F1", "F2"]);
    assert_eq!(told(&world, 1), ["First", "S1"]);
    pi.finish();
}

#[test]
fn queue_mode_all_sends_everything_together() {
    let world = gated(["a", "b"].map(|word| Reply::text([word])));
    let pi = world.start();
    pi.data(json!({"type": "set_steering_mode", "mode": "all"}));
    pi.data(json!({"type": "set_follow_up_mode", "mode": "all"}));
    at_gate(&world, &pi);
    for (kind, message) in [
        ("follow_up", "F1"),
        ("follow_up", "F2"),
        ("steer", "S1"),
        ("steer", "S2"),
    ] {
        pi.data(json!({"type": kind, "message": message}));
    }
    world.server.release("mid");
    pi.settled();
    assert_eq!(told(&world, 1), ["First", "S1", "S2"]);
    assert_eq!(told(&world, 2), ["First", "S1", "S2", "F1", "F2"]);
    pi.finish();
}

#[test]
fn steering_waits_for_tools_of_turn() {
    let wait = "touch begun; while [ ! -e go ]; do sleep 0.01; done; echo whole";
    let world = World::new([bash("c1", wait), Reply::text(["done"])]);
    let pi = world.start();
    pi.prompt("Go");
    pi.wait("tool_execution_start");
    pi.data(json!({"type": "steer", "message": "Hurry"}));
    world.dir.write("go", "").unwrap();
    pi.settled();
    let end = of_type(&pi.lines(), "tool_execution_end")[0].clone();
    assert_eq!(end["isError"], false);
    assert_eq!(end["result"]["content"][0]["text"], "whole\n");
    assert_eq!(told(&world, 1), ["Go", "Hurry"]);
    pi.finish();
}

#[test]
fn immediate_steering_skips_running_tools() {
    let short = "while [ ! -e go ]; do sleep 0.01; done";
    let world = World::new([
        Reply::tool("short", "bash", json!({ "command": short })).then_tool(
            "long",
            "bash",
            json!({"command": "sleep 600"}),
        ),
        Reply::text(["done"]),
    ]);
    let pi = world.start();
    pi.data(json!({"type": "set_interrupt_mode", "mode": "immediate"}));
    pi.prompt("Go");
    pi.wait("tool_execution_start");
    pi.wait("tool_execution_start");
    pi.data(json!({"type": "steer", "message": "Hurry"}));
    world.dir.write("go", "").unwrap();
    pi.settled();
    let lines = pi.lines();
    let ends = of_type(&lines, "tool_execution_end");
    assert_eq!(ends[0]["toolCallId"], "short");
    assert_eq!(ends[0]["isError"], false);
    assert_eq!(ends[1]["isError"], true);
    assert!(
        ends[1]["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("Skipped"),
        "{}",
        ends[1]
    );
    assert_eq!(told(&world, 1), ["Go", "Hurry"]);
    pi.finish();
}

#[test]
fn queue_can_be_cleared() {
    let world = gated([]);
    let pi = world.start();
    at_gate(&world, &pi);
    pi.data(json!({"type": "steer", "message": "S"}));
    pi.data(json!({"type": "follow_up", "message": "F"}));
    let cleared = pi.get("clear_queue");
    assert_eq!(cleared, json!({"steering": ["S"], "followUp": ["F"]}));
    world.server.release("mid");
    pi.settled();
    assert_eq!(pi.messages().len(), 2);
    let updates = pi.lines();
    let last = of_type(&updates, "queue_update")
        .last()
        .copied()
        .cloned()
        .unwrap();
    assert_eq!((&last["steering"], &last["followUp"]), (&json!([]), &json!([])));
    pi.finish();
}

#[test]
fn queue_size_is_limited() {
    let world = gated([]);
    let pi = world.start();
    at_gate(&world, &pi);
    let ids: Vec<String> = (0..1_001)
        .map(|n| pi.send(json!({"type": "steer", "message": format!("{n}")})))
        .collect();
    let last = pi.response(ids.last().unwrap());
    assert_eq!(last["success"], false, "{last}");
    assert_eq!(pi.get("clear_queue")["steering"].as_array().unwrap().len(), 1_000);
    world.server.release("mid");
    pi.settled();
    pi.finish();
}

#[test]
fn message_queued_while_idle_joins_next_prompt() {
    let world = World::new([Reply::text(["one"]), Reply::text(["two"])]);
    let pi = world.start();
    assert_eq!(
        pi.data(json!({"type": "steer", "message": "S"}))["disposition"],
        "queued"
    );
    pi.say("First");
    assert_eq!(told(&world, 0), ["First", "S"]);
    pi.finish();
}

#[test]
fn queued_images_reach_the_model() {
    let world = gated([Reply::text(["three"])]);
    let pi = world.start();
    at_gate(&world, &pi);
    let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
    pi.data(json!({"type": "follow_up", "message": "Look", "images": [image]}));
    world.server.release("mid");
    pi.settled();
    let body = world.server.requests()[1].body.to_string();
    assert!(body.contains("aGk="), "{body}");
    pi.finish();
}

#[test]
fn prompt_and_abort_in_single_write_keep_order() {
    let world = World::new([
        Reply::text(["later"]).when_contains("Again"),
        Reply::text(["never"]).gate("never"),
    ]);
    let pi = world.start();
    let prompt = pi_line(&pi, json!({"type": "prompt", "message": "Go"}));
    let abort = pi_line(&pi, json!({"type": "abort"}));
    pi.agent.send_raw(format!("{prompt}{abort}").as_bytes()).unwrap();
    assert_eq!(pi.settled()["aborted"], true);
    let lines = pi.lines();
    let seen = kinds(&lines);
    assert_eq!(
        seen.iter().filter(|kind| **kind == "agent_end").count(),
        1,
        "{seen:?}"
    );
    pi.say("Again");
}

/// A command as a line, with an id of its own.
fn pi_line(pi: &Pi, mut command: Value) -> String {
    command["id"] = format!("raw{}", pi.agent.totals().0).into();
    format!("{command}\n")
}
