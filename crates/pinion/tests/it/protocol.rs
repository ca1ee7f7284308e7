//! The program's description of its protocol, and negotiation with `hello`.

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::kit::{LONG, Pi, World, of_type, until};

fn hello(pi: &Pi, mut wishes: Value) -> Value {
    wishes["type"] = "hello".into();
    pi.data(wishes)
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect()
}

#[test]
fn get_protocol_describes_commands_events_and_limits() {
    let world = World::new([]);
    let pi = world.start();
    let protocol = pi.get("get_protocol");
    assert_eq!(protocol["dialect"], "auto");
    assert_eq!(
        protocol["protocolVersion"].as_str().unwrap().split('.').count(),
        3,
        "{protocol}"
    );
    assert!(
        protocol["version"]
            .as_str()
            .is_some_and(|version| !version.is_empty())
    );
    let lane = |name: &str| {
        let commands = protocol["commands"].as_array().unwrap();
        commands.iter().find(|command| command["name"] == name).unwrap()["lane"].clone()
    };
    assert_eq!(
        (lane("abort"), lane("prompt"), lane("hello")),
        (json!("control"), json!("task"), json!("ordered"))
    );
    assert!(names(&protocol["events"]).contains(&"agent_settled"));
    assert!(names(&protocol["dialects"]).contains(&"xcsh"));
    assert!(names(&protocol["capabilities"]).contains(&"replay"));
    assert_eq!(protocol["limits"]["queuedMessages"], 1_000);
    pi.finish();
}

#[test]
fn every_listed_command_is_known() {
    let world = World::new([]);
    let pi = world.start();
    let protocol = pi.get("get_protocol");
    for command in protocol["commands"].as_array().unwrap() {
        // A number where no command takes one: it fails with a sentence of its own, or does not care.
        let name = command["name"].as_str().unwrap();
        if [
            "abort",
            "abort_bash",
            "continue",
            "export_html",
            "new_session",
            "clone",
            "list_sessions",
        ]
        .contains(&name)
        {
            continue;
        }
        let response = pi.ask(
            json!({"type": name, "message": 1, "command": 1, "sessionPath": 1, "customInstructions": 1}),
        );
        let error = response["error"].as_str().unwrap_or_default();
        assert!(!error.starts_with("Unknown command"), "{response}");
    }
}

#[test]
fn hello_grants_or_refuses_each_option() {
    let world = World::new([]);
    let pi = world.start();
    let welcome = hello(
        &pi,
        json!({"dialect": "klingon", "events": ["agent_end", "auto_compaction_start", "nonsense"], "deltas": "yes",
               "sequence": true, "heartbeat": 0, "sessions": 7}),
    );
    assert_eq!(welcome["dialect"], "auto");
    assert_eq!(names(&welcome["events"]), ["agent_end", "compaction_start"]);
    assert_eq!(
        (&welcome["deltas"], &welcome["sequence"], &welcome["heartbeat"]),
        (&json!(false), &json!(true), &Value::Null)
    );
    let refused = welcome["refused"].as_array().unwrap();
    let refused: Vec<_> = refused
        .iter()
        .map(|refused| (refused["option"].as_str().unwrap(), &refused["value"]))
        .collect();
    assert_eq!(
        refused,
        [
            ("dialect", &json!("klingon")),
            ("events", &json!("nonsense")),
            ("deltas", &json!("yes")),
            ("heartbeat", &json!(0)),
            ("sessions", &json!(7)),
        ]
    );
    let welcome = hello(&pi, json!({"dialect": "pi", "events": null}));
    assert_eq!(
        (&welcome["dialect"], &welcome["events"], &welcome["sequence"]),
        (&json!("pi"), &Value::Null, &json!(true)),
        "what is left out stays"
    );
    assert_eq!(pi.get("get_protocol")["dialect"], "pi");
    pi.finish();
}

#[test]
fn hello_response_keeps_its_order() {
    let world = World::new([]);
    let pi = world.start();
    let lines = ["get_state", "hello", "get_state", "get_protocol", "get_messages"];
    let ids: Vec<String> = lines
        .iter()
        .map(|kind| pi.send(json!({ "type": kind })))
        .collect();
    pi.response(ids.last().unwrap());
    let lines = pi.lines();
    let seen: Vec<&str> = of_type(&lines, "response")
        .iter()
        .map(|line| line["id"].as_str().unwrap())
        .collect();
    assert_eq!(seen, ids);
    pi.finish();
}

#[test]
fn event_filter_passes_only_named_events() {
    let world = World::new([Reply::text(["one ", "two"])]);
    let pi = world.start();
    hello(&pi, json!({"events": ["message_end", "agent_settled"]}));
    pi.agent.skip();
    pi.prompt("Go");
    pi.settled();
    let lines = pi.lines();
    let mut seen: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    seen.retain(|kind| *kind != "response" && *kind != "ready");
    assert_eq!(seen, ["message_end", "message_end", "agent_settled"]);
}

#[test]
fn filtered_updates_carry_whole_message() {
    let world = World::new([Reply::text(["one ", "two"])]);
    let pi = world.start();
    hello(&pi, json!({"events": ["message_update", "agent_settled"]}));
    pi.prompt("Go");
    pi.settled();
    let lines = pi.lines();
    let last = of_type(&lines, "message_update")
        .last()
        .copied()
        .cloned()
        .unwrap();
    assert_eq!(last["message"]["content"][0]["text"], "one two");
    assert_eq!(last["message"]["model"], "claude-mock");
}

#[test]
fn updates_allowed_again_start_with_next_answer() {
    let world = World::new([
        Reply::text(["one "]).gate("mid").then_text(["two"]),
        Reply::text(["three"]),
    ]);
    let pi = world.start();
    hello(&pi, json!({"events": ["message_start", "agent_settled"]}));
    pi.prompt("Go");
    until("the first half", || {
        pi.get("replay")["snapshot"]["message"]["content"][0]["text"] == "one "
    });
    hello(&pi, json!({"events": null}));
    world.server.release("mid");
    pi.settled();
    assert!(
        of_type(&pi.lines(), "message_update").is_empty(),
        "half an answer"
    );
    pi.say("Again");
    let lines = pi.lines();
    let first = of_type(&lines, "message_update")[0];
    assert_eq!(first["assistantMessageEvent"]["type"], "text_start");
}

#[test]
fn update_form_changes_between_answers() {
    let world = World::new([
        Reply::text(["one "]).gate("mid").then_text(["two"]),
        Reply::text(["three ", "four"]),
        Reply::text(["five"]),
    ]);
    let pi = world.start();
    pi.prompt("Go");
    world.server.wait_gate("mid", LONG).unwrap();
    pi.wait_update("text_delta");
    assert_eq!(hello(&pi, json!({"deltas": true}))["deltas"], true);
    world.server.release("mid");
    pi.settled();
    let lines = pi.lines();
    assert!(
        of_type(&lines, "message_update")
            .iter()
            .all(|line| line.get("message").is_some()),
        "one answer has one form"
    );
    let second = pi.say("Again");
    let updates = of_type(&second, "message_update");
    assert!(updates.len() > 2 && updates.iter().all(|line| line.get("message").is_none()));
    hello(&pi, json!({"deltas": null}));
    let third = pi.say("And again");
    assert!(
        of_type(&third, "message_update")
            .iter()
            .all(|line| line.get("message").is_some())
    );
    pi.finish();
}

#[test]
fn delta_dialect_implies_delta_updates() {
    let world = World::new([Reply::text(["one"])]);
    let pi = world.start();
    let welcome = hello(&pi, json!({"dialect": "pi-delta"}));
    assert_eq!(
        (&welcome["dialect"], &welcome["deltas"]),
        (&json!("pi-delta"), &json!(true))
    );
    let lines = pi.say("Go");
    assert!(
        of_type(&lines, "message_update")
            .iter()
            .all(|line| line.get("message").is_none())
    );
    pi.finish();
}

#[test]
fn heartbeat_is_sent_during_silence_until_run_ends() {
    let world = World::new([
        Reply::tool(
            "c1",
            "bash",
            json!({"command": "while [ ! -e go ]; do sleep 0.01; done"}),
        ),
        Reply::text(["done"]),
    ]);
    let pi = world.start();
    assert_eq!(hello(&pi, json!({"heartbeat": 1}))["heartbeat"], 1);
    pi.prompt("Go");
    pi.wait("tool_execution_start");
    let beat = pi.wait("heartbeat");
    assert_eq!(
        (&beat["isStreaming"], &beat["isRetrying"], &beat["runningTools"]),
        (&json!(true), &json!(false), &json!(["c1"]))
    );
    assert!(beat["silentMs"].as_u64().unwrap() >= 1_000, "{beat}");
    pi.wait("heartbeat");
    world.dir.write("go", "").unwrap();
    pi.settled();
    let before = pi.lines().len();
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    assert_eq!(pi.lines().len(), before, "an idle session is silent");
    pi.finish();
}

#[test]
fn events_without_hello_have_no_sequence() {
    let world = World::new([Reply::text(["one"])]);
    let pi = world.start();
    let lines = pi.say("Go");
    assert!(lines.iter().all(|line| line.get("seq").is_none()));
    pi.finish();
}
