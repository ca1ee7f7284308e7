//! Questions to the user over the protocol (dialects.md 10.4), as far as the agent itself asks any: whether a call may run. The
//! other kinds of questions are tested in the host crate.

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::dialect_outputs::{end, speaking};
use crate::kit::{Pi, World, bash, kinds, of_type, until};
use crate::permissions::{choose, ends, question, world};

/// A world in which the user is asked before each of so many commands.
fn asking(count: usize) -> World {
    let calls = (0..count).map(|n| bash(&format!("c{n}"), "echo hi"));
    world(json!({"mode": "ask"}), calls)
}

fn frames(pi: &Pi) -> Vec<Value> {
    let lines = pi.lines();
    of_type(&lines, "extension_ui_request")
        .into_iter()
        .cloned()
        .collect()
}

fn told(pi: &Pi) -> String {
    ends(pi).last().unwrap().1.clone()
}

#[test]
fn dialog_without_answer_times_out() {
    let world = asking(1);
    world.settings(json!({"permissions": {"mode": "ask"}, "dialogTimeoutMs": 150}));
    let pi = world.start();
    pi.prompt("Go");
    let asked = question(&pi);
    assert_eq!(asked["timeout"], 150);
    pi.settled();
    assert_eq!(
        told(&pi),
        "Permission denied: the user has to allow this call. Denied automatically, since nobody answered within 0.15 s."
    );
    // Late answers, and answers to nothing, are ignored and not answered.
    choose(&pi, &asked, "Allow once");
    choose(&pi, &json!({"id": "nobody-asked"}), "Allow once");
    let before = pi.lines().len();
    pi.state();
    assert_eq!(kinds(&pi.lines()[before..]), ["response"]);
    pi.finish();
}

#[test]
fn client_without_ui_is_asked_nothing() {
    let world = asking(1);
    let pi = world.start_with(&["--no-ui"]);
    pi.prompt("Go");
    pi.settled();
    assert!(told(&pi).starts_with("Permission denied: "), "{}", told(&pi));
    assert_eq!(frames(&pi), [] as [Value; 0]);
    pi.finish();
}

#[test]
fn permission_dialog_appears_within_tool_execution() {
    let world = asking(1);
    let pi = world.start();
    pi.prompt("Go");
    choose(&pi, &question(&pi), "Allow once");
    pi.settled();
    let lines = pi.lines();
    let lines = kinds(&lines);
    let at = |kind: &str| lines.iter().position(|line| *line == kind).unwrap();
    assert!(at("tool_execution_start") < at("extension_ui_request"));
    assert!(at("extension_ui_request") < at("tool_execution_end"));
    pi.finish();
}

#[test]
fn dialog_accepts_only_first_answer_of_right_kind() {
    let world = asking(3);
    let pi = world.start();
    pi.prompt("Go");
    let first = question(&pi);
    choose(&pi, &first, "Allow once");
    choose(&pi, &first, "Deny");
    for members in [
        json!({"confirmed": true}),
        json!({"cancelled": true, "value": "Allow once"}),
    ] {
        let mut answer = members;
        answer["type"] = "extension_ui_response".into();
        answer["id"] = question(&pi)["id"].clone();
        pi.agent.send(&answer).unwrap();
    }
    pi.settled();
    let errors: Vec<bool> = ends(&pi).into_iter().map(|(is_error, _)| is_error).collect();
    assert_eq!(errors, [false, true, true]);
    let ids: Vec<Value> = frames(&pi).iter().map(|frame| frame["id"].clone()).collect();
    assert!(ids[0] != ids[1] && ids[1] != ids[2], "{ids:?}");
    pi.finish();
}

#[test]
fn row_03_dialog_frame_follows_dialect() {
    for dialect in ["auto", "web", "hooks", "omp", "omp-now", "xcsh", "pi", "pi-delta"] {
        let kind = match dialect {
            "hooks" | "omp" => "hook_ui_request",
            _ => "extension_ui_request",
        };
        let world = asking(2);
        let pi = speaking(&world, dialect);
        pi.prompt("Go");
        // Some answers give a client away: the last question must not come after one.
        let mut answers = ["hook_ui_response", "extension_ui_response"];
        if dialect == "auto" {
            answers.reverse();
        }
        for answer in answers {
            let asked = pi.wait(kind);
            assert_eq!(asked["method"], "select");
            let answer = json!({"type": answer, "id": asked["id"], "value": "Allow once"});
            pi.agent.send(&answer).unwrap();
        }
        pi.settled();
        assert!(ends(&pi).iter().all(|(is_error, _)| !is_error), "{dialect}");
        let lines = end(&pi);
        let asked = lines.iter().filter(|line| line.get("options").is_some());
        assert_eq!(asked.count(), 2, "one question, one frame: {dialect}");
    }
}

#[test]
fn dialog_cancel_is_sent_where_supported() {
    for (dialect, hello, is_told) in [
        ("xcsh", json!({}), true),
        ("omp-now", json!({}), true),
        ("pi", json!({}), false),
        ("auto", json!({}), false),
        ("pi", json!({"ui": ["select", "cancel"]}), true),
        ("xcsh", json!({"ui": ["select"]}), false),
        ("xcsh", json!({"ui": null}), true),
    ] {
        let world = asking(1);
        let pi = speaking(&world, dialect);
        let mut hello = hello;
        hello["type"] = "hello".into();
        assert_eq!(pi.data(hello.clone())["refused"], json!([]));
        pi.prompt("Go");
        let asked = question(&pi);
        pi.get("abort");
        let frames = frames(&pi);
        let cancels: Vec<&Value> = frames
            .iter()
            .filter(|frame| frame["method"] == "cancel")
            .collect();
        assert_eq!(cancels.len(), usize::from(is_told), "{dialect} {hello}");
        for cancel in cancels {
            assert_eq!(cancel["targetId"], asked["id"]);
            assert_ne!(cancel["id"], asked["id"]);
        }
        pi.finish();
    }
}

#[test]
fn dialog_not_rendered_by_client_is_not_sent() {
    for hello in [
        json!({"type": "hello", "ui": ["notify", "confirm"]}),
        json!({"type": "hello", "ui": []}),
        json!({"type": "hello", "events": ["agent_settled", "tool_execution_end"]}),
    ] {
        let world = asking(1);
        let pi = world.start();
        pi.data(hello.clone());
        pi.prompt("Go");
        pi.settled();
        assert!(told(&pi).ends_with("no client can show the question."), "{hello}");
        assert!(frames(&pi).is_empty());
        // The wish can be taken back.
        world.server.push(bash("c9", "echo hi"));
        world.server.push(Reply::text(["done"]));
        pi.data(json!({"type": "hello", "ui": null, "events": null}));
        pi.prompt("Again");
        choose(&pi, &question(&pi), "Allow once");
        pi.settled();
        end(&pi);
    }
}

#[test]
fn hello_reports_accepted_ui_methods() {
    let world = World::new([]);
    let pi = world.start();
    let data = pi.data(json!({"type": "hello", "ui": ["setTitle", "select", "dance", 5]}));
    assert_eq!(data["ui"], json!(["select", "setTitle"]));
    let refused: Vec<&Value> = data["refused"]
        .as_array()
        .unwrap()
        .iter()
        .map(|no| &no["value"])
        .collect();
    assert_eq!(refused, [&json!("dance"), &json!(5)]);
    let data = pi.data(json!({"type": "hello", "ui": "all"}));
    assert_eq!(data["ui"], json!(["select", "setTitle"]));
    assert_eq!(data["refused"][0]["option"], "ui");
    assert_eq!(pi.data(json!({"type": "hello", "ui": null}))["ui"], Value::Null);
    let protocol = pi.get("get_protocol");
    assert!(
        protocol["capabilities"]
            .as_array()
            .unwrap()
            .contains(&json!("dialogs"))
    );
    assert_eq!(protocol["limits"]["dialogSeconds"], 300);
    assert_eq!(protocol["limits"]["openDialogs"], 64);
    pi.finish();
}

#[test]
fn end_of_input_rejects_open_dialogs() {
    let world = asking(1);
    let pi = world.start();
    pi.prompt("Go");
    question(&pi);
    let file = pi.file();
    end(&pi);
    let kept = std::fs::read_to_string(file).unwrap();
    let last = kept
        .lines()
        .rev()
        .find(|line| line.contains("toolResult"))
        .unwrap();
    assert!(last.contains("\"isError\":true"), "{last}");
}

#[test]
fn session_change_cancels_dialog() {
    let world = asking(1);
    let pi = speaking(&world, "xcsh");
    pi.prompt("Go");
    let asked = question(&pi);
    pi.get("new_session");
    let frames = frames(&pi);
    assert_eq!(frames.last().unwrap()["targetId"], asked["id"]);
    choose(&pi, &asked, "Allow once");
    assert_eq!(pi.state()["messageCount"], 0);
    pi.finish();
}

#[test]
fn replay_snapshot_contains_open_dialog() {
    let world = asking(1);
    let pi = world.start();
    pi.data(json!({"type": "hello", "sequence": true}));
    pi.prompt("Go");
    let asked = question(&pi);
    let snapshot = pi.data(json!({"type": "replay"}))["snapshot"].clone();
    let mut expected = asked.clone();
    for member in ["type", "seq"] {
        expected.as_object_mut().unwrap().remove(member);
    }
    assert_eq!(snapshot["dialogs"], json!([expected]));
    let after = asked["seq"].as_u64().unwrap() - 1;
    pi.agent.skip();
    pi.data(json!({"type": "replay", "after": after}));
    assert_eq!(question(&pi), asked);
    choose(&pi, &asked, "Allow once");
    pi.settled();
    let snapshot = pi.data(json!({"type": "replay"}))["snapshot"].clone();
    assert!(snapshot.get("dialogs").is_none(), "{snapshot}");
    pi.finish();
}

#[test]
fn dialogs_of_concurrent_sessions_are_separate() {
    let done = || Reply::text(["done"]);
    let world = World::new([bash("c1", "echo hi"), bash("c1", "echo hi"), done(), done()]);
    world.settings(json!({"permissions": {"mode": "ask"}}));
    let pi = world.start();
    pi.data(json!({"type": "open_session", "session": "side"}));
    // One connection: what it renders counts for all.
    pi.data(json!({"type": "hello", "ui": ["select"]}));
    for session in [Value::Null, json!("side")] {
        pi.data(json!({"type": "prompt", "message": "Go", "session": session}));
    }
    let mut asked = [question(&pi), question(&pi)];
    asked.sort_by_key(|frame| frame.get("session").is_some());
    assert_eq!(asked[1]["session"], "side");
    // An answer finds its question, whether it names the session or not.
    choose(&pi, &asked[1], "Allow once");
    choose(&pi, &asked[0], "Deny");
    until("both sessions to settle", || {
        of_type(&pi.lines(), "agent_settled").len() == 2
    });
    for line in pi
        .lines()
        .iter()
        .filter(|line| line["type"] == "tool_execution_end")
    {
        assert_eq!(line["isError"], line.get("session").is_none(), "{line}");
    }
    pi.data(json!({"type": "hello", "ui": []}));
    pi.data(json!({"type": "close_session", "session": "side"}));
    pi.finish();
}
