//! Sessions so large that the texts of their messages are read only when they are needed. Clients must not notice.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::hooks::hook;
use crate::kit::{Pi, World, of_type, text};

/// A finished session of one exchange whose question has 2 MB.
fn large(world: &World) -> PathBuf {
    world.server.push(Reply::text(["remembered"]));
    let pi = world.start();
    pi.say("Remember this");
    let file = pi.file();
    pi.finish();
    let content = fs::read_to_string(&file).unwrap();
    fs::write(&file, content.replacen("Remember this", &question(), 1)).unwrap();
    file
}

fn question() -> String {
    format!("Remember this: \\\"{}\\\" é", "word ".repeat(400_000))
}

fn opened(world: &World, file: &Path) -> Pi {
    world.start_with(&["--session", file.to_str().unwrap()])
}

/// What the state says of the conversation.
fn said(state: &Value) -> [Value; 3] {
    ["messageCount", "contextUsage", "todoPhases"].map(|name| state[name].clone())
}

#[test]
fn large_session_has_its_whole_state() {
    let world = World::new([]);
    let file = large(&world);
    let pi = opened(&world, &file);
    let before = said(&pi.state());
    let messages = pi.messages();
    assert_eq!(before, said(&pi.state()));
    assert_eq!(before[0], 2);
    assert_eq!(text(&messages[0]), question().replace("\\\"", "\""));
    pi.finish();
}

#[test]
fn first_prompt_sends_all_texts() {
    let world = World::new([]);
    let file = large(&world);
    world.server.push(Reply::text(["yes"]));
    let pi = opened(&world, &file);
    pi.say("Do you?");
    let body = world.server.requests().last().unwrap().body.to_string();
    assert!(body.contains(&question()));
    assert_eq!(pi.messages().len(), 4);
    pi.finish();
}

#[test]
fn switching_to_large_session_and_back_keeps_texts() {
    let world = World::new([]);
    let (file, other) = (large(&world), large(&world));
    let pi = opened(&world, &file);
    for path in [&other, &file] {
        pi.data(json!({"type": "switch_session", "sessionPath": path}));
        assert_eq!(pi.state()["messageCount"], 2);
    }
    let forks = pi.get("get_fork_messages");
    assert_eq!(forks["messages"][0]["text"], question().replace("\\\"", "\""));
    pi.data(json!({"type": "clone"}));
    assert_eq!(text(&pi.messages()[0]).len(), question().len() - 2);
    pi.finish();
}

/// Another program gives the question another id, in the same file. Returns its new content.
fn changed(file: &Path) -> String {
    let content = fs::read_to_string(file).unwrap();
    let mut entries = content
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let question = entries.find(|entry| entry["message"]["role"] == "user").unwrap();
    let content = content.replace(question["id"].as_str().unwrap(), "0badcafe");
    fs::write(file, &content).unwrap();
    content
}

#[test]
fn changed_large_file_refuses_commands_and_stays() {
    let world = World::new([]);
    let file = large(&world);
    let pi = opened(&world, &file);
    assert_eq!(pi.state()["messageCount"], 2);
    let content = changed(&file);
    for command in ["get_messages", "get_tree", "compact"] {
        let error = pi.error(json!({ "type": command }));
        assert!(error.contains("changed by another program"), "{error}");
    }
    let error = pi.error(json!({"type": "prompt", "message": "Hello"}));
    assert!(error.contains("changed by another program"), "{error}");
    assert_eq!(pi.state()["messageCount"], 2);
    // A client can leave the session, and opens the file as it is now.
    pi.get("new_session");
    assert_eq!(pi.messages().len(), 0);
    pi.data(json!({"type": "switch_session", "sessionPath": file}));
    assert_eq!(pi.messages().len(), 2);
    pi.finish();
    assert_eq!(fs::read_to_string(&file).unwrap(), content);
    assert_eq!(world.server.requests().len(), 1);
}

#[test]
fn changed_large_file_can_be_left_past_a_hook() {
    let world = World::new([]);
    let file = large(&world);
    hook(&world, "session_before_switch.sh", "exit 0");
    let pi = opened(&world, &file);
    assert_eq!(pi.state()["messageCount"], 2);
    changed(&file);
    let error = pi.error(json!({"type": "get_messages"}));
    assert!(error.contains("changed by another program"), "{error}");
    // The change waits for the answer of the hook, which must not be refused.
    assert_eq!(pi.get("new_session")["cancelled"], false);
    assert_eq!(pi.messages().len(), 0);
    pi.finish();
}

#[test]
fn torn_large_session_reports_damage() {
    let world = World::new([]);
    let file = large(&world);
    let mut content = fs::read_to_string(&file).unwrap();
    content.push_str("{\"type\":\"message\",\"id\":\"torn");
    fs::write(&file, content).unwrap();
    let pi = opened(&world, &file);
    world.server.push(Reply::text(["more"]));
    pi.say("On");
    assert_eq!(pi.messages().len(), 4);
    assert_eq!(of_type(&pi.lines(), "session_damage").len(), 1);
    pi.finish();
}
