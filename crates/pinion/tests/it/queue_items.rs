//! Queued messages one by one: their ids, editing, taking them out. And `continue`.

use serde_json::{Value, json};
use testkit::llm::{ErrorKind, Reply};

use crate::kit::{LONG, Pi, World, bash, of_type, text};

fn at_gate(more: impl IntoIterator<Item = Reply>) -> (World, Pi) {
    let world = World::new([Reply::text(["one "]).gate("mid").then_text(["two"])]);
    for reply in more {
        world.server.push(reply);
    }
    let pi = world.start();
    pi.prompt("First");
    world.server.wait_gate("mid", LONG).unwrap();
    (world, pi)
}

fn queue(pi: &Pi, kind: &str, message: &str) -> String {
    let data = pi.data(json!({"type": kind, "message": message}));
    assert_eq!(data["disposition"], "queued");
    data["id"].as_str().unwrap().to_owned()
}

fn items(pi: &Pi) -> Vec<(String, String)> {
    let items = pi.get("get_queue")["items"].as_array().unwrap().clone();
    let words = |item: &Value, key: &str| item[key].as_str().unwrap().to_owned();
    items
        .iter()
        .map(|item| (words(item, "kind"), words(item, "text")))
        .collect()
}

/// What the user is seen to say in the conversation.
fn said(pi: &Pi) -> Vec<String> {
    let messages = pi.messages();
    let users = messages.iter().filter(|message| message["role"] == "user");
    users.map(text).collect()
}

#[test]
fn equal_queued_messages_have_distinct_ids() {
    let (world, pi) = at_gate([Reply::text(["three"]), Reply::text(["four"])]);
    let first = queue(&pi, "steer", "Same");
    let second = queue(&pi, "steer", "Same");
    let third = queue(&pi, "follow_up", "Later");
    assert!(first != second && second != third);
    pi.data(json!({"type": "edit_queued", "queuedId": second, "message": "Other"}));
    pi.data(json!({"type": "remove_queued", "queuedId": first}));
    assert_eq!(
        items(&pi),
        [
            ("steer".to_owned(), "Other".to_owned()),
            ("followUp".to_owned(), "Later".to_owned())
        ]
    );
    let lines = pi.lines();
    let last = of_type(&lines, "queue_update").last().copied().cloned().unwrap();
    assert_eq!(
        (&last["steering"], &last["followUp"]),
        (&json!(["Other"]), &json!(["Later"]))
    );
    world.server.release("mid");
    pi.settled();
    assert_eq!(said(&pi), ["First", "Other", "Later"]);
    assert!(items(&pi).is_empty());
    pi.finish();
}

#[test]
fn sent_queue_item_cannot_be_changed() {
    let (world, pi) = at_gate([Reply::text(["three"])]);
    let id = queue(&pi, "steer", "Now");
    world.server.release("mid");
    pi.settled();
    for command in [
        json!({"type": "edit_queued", "queuedId": id, "message": "Too late"}),
        json!({"type": "remove_queued", "queuedId": id}),
        json!({"type": "remove_queued", "queuedId": "nonsense"}),
    ] {
        let error = pi.error(command);
        assert!(error.starts_with("No queued message has the id "), "{error}");
    }
    assert_eq!(said(&pi), ["First", "Now"]);
    pi.finish();
}

#[test]
fn edited_queue_item_keeps_images() {
    let (world, pi) = at_gate([Reply::text(["three"])]);
    let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
    let data = pi.data(json!({"type": "follow_up", "message": "Look", "images": [image]}));
    pi.data(json!({"type": "edit_queued", "queuedId": data["id"], "message": "Look here"}));
    assert_eq!(pi.get("get_queue")["items"][0]["images"], 1);
    world.server.release("mid");
    pi.settled();
    let body = world.server.requests()[1].body.to_string();
    assert!(body.contains("aGk=") && body.contains("Look here"), "{body}");
    pi.finish();
}

#[test]
fn edited_queue_item_keeps_documents() {
    let (world, pi) = at_gate([Reply::text(["three"])]);
    let document = json!({"type": "document", "fileName": "n.txt", "extractedText": "Line 7"});
    let data = pi.data(json!({
        "type": "prompt",
        "message": "Look",
        "streamingBehavior": "followUp",
        "attachments": [document],
    }));
    pi.data(json!({"type": "edit_queued", "queuedId": data["id"], "message": "Look here"}));
    world.server.release("mid");
    pi.settled();
    let body = world.server.requests()[1].body.to_string();
    assert!(body.contains("Line 7") && body.contains("Look here"), "{body}");
    pi.finish();
}

#[test]
fn prompt_that_starts_run_has_no_queue_id() {
    let world = World::new([Reply::text(["one"])]);
    let pi = world.start();
    let data = pi.data(json!({"type": "prompt", "message": "Go"}));
    assert_eq!(data, json!({"disposition": "started"}));
    pi.settled();
    pi.finish();
}

#[test]
fn failed_run_continues_without_new_message() {
    let world = World::new([Reply::error(ErrorKind::Server), Reply::text(["better"])]).without_retries();
    let pi = world.start();
    pi.say("Go");
    assert_eq!(pi.get("continue")["disposition"], "started");
    pi.settled();
    assert_eq!(said(&pi), ["Go"]);
    assert_eq!(text(pi.messages().last().unwrap()), "better");
    let first = &world.server.requests()[0].body["messages"];
    assert_eq!(
        first,
        &world.server.requests()[1].body["messages"],
        "asked the same once more"
    );
    assert_eq!(
        pi.error(json!({"type": "continue"})),
        "Nothing to continue: the conversation does not wait for an answer"
    );
    pi.finish();
}

#[test]
fn run_aborted_during_tool_continues() {
    let world = World::new([bash("c1", "sleep 600"), Reply::text(["better"])]);
    let pi = world.start();
    pi.prompt("Go");
    pi.wait("tool_execution_start");
    assert_eq!(
        pi.error(json!({"type": "continue"})),
        "Cannot continue: the agent is already processing"
    );
    pi.get("abort");
    pi.get("continue");
    pi.settled();
    pi.wait("message_end");
    pi.settled();
    assert_eq!(text(pi.messages().last().unwrap()), "better");
    assert_eq!(said(&pi), ["Go"]);
    pi.finish();
}

#[test]
fn killed_session_continues_after_restart() {
    let world = World::new([bash("c1", "sleep 600"), Reply::text(["better"])]);
    let pi = world.start();
    pi.prompt("Go");
    pi.wait("tool_execution_start");
    let file = pi.file();
    pi.agent.kill9().unwrap();
    // The file is its own until the system has taken it down.
    pi.agent.wait_exit(LONG).unwrap();
    let pi = world.start_with(&["--session", file.to_str().unwrap()]);
    pi.get("continue");
    pi.settled();
    assert_eq!(text(pi.messages().last().unwrap()), "better");
    assert_eq!(said(&pi), ["Go"]);
    pi.finish();
}
