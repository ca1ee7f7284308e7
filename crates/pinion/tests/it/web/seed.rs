//! Every example that the description of the web protocol prints, on a socket: each command as it is written there, under its id; each
//! answer and each event with the members, types and order that it shows. That the original page lives with them is `.ci/original-page`.

use std::fs;

use serde_json::{Value, json};
use testkit::llm::{Reply, Usage};

use super::{Tab, Web};
use crate::extensions::can_run;
use crate::kit::World;

/// Has `line` what the example shows? Words that say what a thing is are the same, all others are of the same kind.
fn shows(line: &Value, example: &Value, key: &str) -> bool {
    match example {
        Value::Null => line.is_null(),
        Value::Bool(_) => line == example,
        Value::Number(_) => line.is_number(),
        Value::String(_) if ["id", "type", "command", "role", "method", "reason", "error"].contains(&key) => {
            line == example
        }
        // A user's message may be a string or blocks of text.
        Value::String(_) => line.is_string() || (key == "content" && line.is_array()),
        Value::Array(examples) => line.as_array().is_some_and(|items| {
            let found = |example: &Value| items.iter().any(|item| shows(item, example, ""));
            examples.iter().all(found)
        }),
        Value::Object(members) => members
            .iter()
            .all(|(key, example)| shows(&line[key], example, key)),
    }
}

/// Some line matches the example. Ids that the test did not choose are not compared.
fn seen(lines: &[Value], example: &Value) {
    let near = |line: &&Value| line["type"] == example["type"] && line["command"] == example["command"];
    assert!(
        lines.iter().any(|line| shows(line, example, "")),
        "nothing shows {example}\n{:#?}",
        lines.iter().filter(near).collect::<Vec<_>>()
    );
}

/// Sends a command exactly as it is written; gives its one answer.
fn exactly(tab: &mut Tab, command: &Value) -> Value {
    tab.send_text(&command.to_string());
    let answer = tab.wait(|line| line["type"] == "response" && line.get("id") == command.get("id"));
    assert_eq!(answer["command"], command["type"]);
    answer
}

fn kinds(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["type"].as_str().unwrap()).collect()
}

fn delta(line: &Value) -> &str {
    line["assistantMessageEvent"]["type"].as_str().unwrap_or_default()
}

/// A session of another directory, as a file.
fn elsewhere(world: &World) {
    let dir = world.dir.agent_dir().join("sessions/--elsewhere--");
    fs::create_dir_all(&dir).unwrap();
    let cwd = world.dir.root().join("elsewhere");
    fs::create_dir_all(&cwd).unwrap();
    let header = json!({"type": "session", "version": 3, "id": "session_1", "timestamp": "2024-12-03T14:00:00.000Z", "cwd": cwd});
    let message = json!({"type": "message", "id": "aaaaaaaa", "parentId": null, "timestamp": "2024-12-03T14:00:01.000Z",
        "message": {"role": "user", "content": "Help me refactor the authentication module", "timestamp": 1_733_234_567_890_i64}});
    let name = json!({"type": "session_info", "id": "bbbbbbbb", "parentId": "aaaaaaaa", "timestamp": "2024-12-03T14:00:02.000Z", "name": "Refactor auth module"});
    fs::write(
        dir.join("session1.jsonl"),
        format!("{header}\n{message}\n{name}\n"),
    )
    .unwrap();
}

#[test]
fn seed_commands_are_answered_with_ids() {
    let usage = Usage {
        input: 42_000,
        ..Usage::default()
    };
    let world = World::new([Reply::text(["Hello", " there"]).usage(usage)]);
    elsewhere(&world);
    let web = Web::start(&world, &[]);
    let mut tab = web.tab();
    // No usage before the first prompt: absent or nothing used, never half of it.
    let fresh = exactly(&mut tab, &json!({"id": "req_8", "type": "get_context_usage"}));
    let fresh = &fresh["data"]["usage"];
    assert!(fresh.is_null() || fresh["tokens"].is_number(), "{fresh}");
    let asked = exactly(
        &mut tab,
        &json!({"id": "req_1", "type": "prompt", "message": "Hello, world!"}),
    );
    seen(
        &[asked],
        &json!({"id": "req_1", "type": "response", "command": "prompt", "success": true}),
    );
    tab.wait_type("agent_end");
    let all = tab.seen.borrow().clone();
    let at = |kind: &str| kinds(&all).iter().position(|one| *one == kind).unwrap();
    assert!(all.iter().position(|line| line["id"] == "req_1").unwrap() < at("agent_start"));
    let stopped = exactly(&mut tab, &json!({"id": "req_2", "type": "abort"}));
    seen(
        &[stopped],
        &json!({"id": "req_2", "type": "response", "command": "abort", "success": true}),
    );
    tab.data(json!({"type": "set_session_name", "name": "Refactor auth module"}));
    seen(
        &[exactly(&mut tab, &json!({"id": "req_3", "type": "get_state"}))],
        &json!({"id": "req_3", "type": "response", "command": "get_state", "success": true,
            "data": {"sessionId": "abc123", "sessionName": "Refactor auth module", "isStreaming": false}}),
    );
    let messages = exactly(&mut tab, &json!({"id": "req_4", "type": "get_messages"}));
    seen(
        &[messages],
        &json!({"id": "req_4", "type": "response", "command": "get_messages", "success": true, "data": {"messages": [
            {"role": "user", "content": "Hello", "timestamp": 1_733_234_567_890_i64},
            {"role": "assistant", "content": [{"type": "text", "text": "Hi!"}], "timestamp": 1_733_234_567_891_i64}]}}),
    );
    let usage = exactly(&mut tab, &json!({"id": "req_8", "type": "get_context_usage"}));
    seen(
        std::slice::from_ref(&usage),
        &json!({"id": "req_8", "type": "response", "command": "get_context_usage", "success": true,
            "data": {"usage": {"tokens": 42000, "contextWindow": 200_000, "percent": 21}}}),
    );
    let usage = &usage["data"]["usage"];
    let share = usage["tokens"].as_f64().unwrap() / usage["contextWindow"].as_f64().unwrap() * 100.0;
    assert!(
        (usage["percent"].as_f64().unwrap() - share).abs() < 0.01,
        "{usage}"
    );
    let ours = tab.data(json!({"type": "get_state"}))["sessionId"].clone();
    let listed = exactly(
        &mut tab,
        &json!({"id": "req_5", "type": "list_sessions", "scope": "all"}),
    );
    seen(
        std::slice::from_ref(&listed),
        &json!({"id": "req_5", "type": "response", "command": "list_sessions", "success": true, "data": {"sessions": [{
            "path": "/home/user/.pi/agent/sessions/session1.jsonl", "id": "session_1", "cwd": "/home/user/project", "name": "Refactor auth module",
            "created": "2024-12-03T14:00:00.000Z", "modified": "2024-12-03T15:30:00.000Z", "messageCount": 12,
            "firstMessage": "Help me refactor the authentication module"}]}}),
    );
    let ids = |list: &Value| -> Vec<Value> {
        list["data"]["sessions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["id"].clone())
            .collect()
    };
    assert_eq!(ids(&listed), [ours.clone(), json!("session_1")]);
    let default = exactly(&mut tab, &json!({"id": "req_5", "type": "list_sessions"}));
    assert_eq!(ids(&default), ids(&listed));
    let here = exactly(
        &mut tab,
        &json!({"id": "req_5", "type": "list_sessions", "scope": "cwd"}),
    );
    assert_eq!(ids(&here), [ours]);
    let other = listed["data"]["sessions"][1]["path"].clone();
    let switched = exactly(
        &mut tab,
        &json!({"id": "req_6", "type": "switch_session", "sessionPath": other}),
    );
    assert_eq!(switched["success"], true, "{switched}");
    let fresh = exactly(&mut tab, &json!({"id": "req_7", "type": "new_session"}));
    assert_eq!(fresh["success"], true, "{fresh}");
    web.finish();
}

#[test]
fn seed_events_arrive_in_order() {
    let call = Reply::new()
        .thinking(["Let me ", "analyze..."], "sig")
        .then_text(["Here's what ", "I found:"])
        .then_tool("tc_1", "read", json!({"path": "README.md"}));
    let broken = Reply::tool("tc_2", "bash", json!({"command": "echo total; exit 1"}));
    let world = World::new([call, broken, Reply::text(["Hello ", "again"])]);
    fs::write(world.dir.cwd().join("README.md"), "file contents...").unwrap();
    let web = Web::start(&world, &[]);
    let mut tab = web.tab();
    let lines = tab.say("Hello!");
    for example in [
        json!({"type": "agent_start"}),
        json!({"type": "agent_end"}),
        json!({"type": "message_update", "message": {"role": "assistant", "content": [], "timestamp": 1_733_234_567_890_i64},
            "assistantMessageEvent": {"type": "text_delta", "delta": "Hello "}}),
        json!({"type": "message_end", "message": {"role": "assistant", "content": [{"type": "text", "text": "Hello!"}], "timestamp": 1_733_234_567_890_i64}}),
        json!({"type": "tool_execution_start", "toolName": "bash"}),
        json!({"type": "tool_execution_end", "toolName": "bash", "result": {"content": [{"type": "text", "text": "total 48\n..."}]}, "isError": false}),
        json!({"type": "tool_execution_end", "toolName": "bash", "result": {"content": [{"type": "text", "text": ""}]}, "isError": true}),
        json!({"type": "message_end", "message": {"role": "user", "content": "Hello!", "timestamp": 1_733_234_567_890_i64}}),
        json!({"type": "message_end", "message": {"role": "assistant", "content": [{"type": "text", "text": "Here's what I found:"},
            {"type": "thinking", "thinking": "Let me analyze..."}, {"type": "toolCall", "id": "", "name": "read", "arguments": {"path": "README.md"}}],
            "timestamp": 1_733_234_567_890_i64}}),
        json!({"type": "message_end", "message": {"role": "toolResult", "toolCallId": "tc_1", "toolName": "read",
            "content": [{"type": "text", "text": "file contents..."}], "isError": false, "timestamp": 1_733_234_567_890_i64}}),
    ] {
        // The id of a call is the model's own.
        let anonymous = |value: &Value| -> Value {
            serde_json::from_str(&value.to_string().replace("\"id\":\"tc_1\"", "\"id\":\"\"")).unwrap()
        };
        let lines: Vec<Value> = lines.iter().map(anonymous).collect();
        seen(&lines, &example);
    }
    let events: Vec<Value> = lines
        .iter()
        // On a busy machine, a tab connects before the session is ready.
        .filter(|line| line["type"] != "response" && line["type"] != "ready")
        .cloned()
        .collect();
    assert!(events.iter().all(|line| line.get("id").is_none()));
    assert_eq!(kinds(&events)[0], "agent_start");
    let end = kinds(&events)
        .iter()
        .position(|kind| *kind == "agent_end")
        .unwrap();
    assert!(
        events[end + 1..]
            .iter()
            .all(|line| line["type"] == "agent_settled")
    );
    blocks_are_whole(&events);
    let at = |what: &dyn Fn(&Value) -> bool| events.iter().position(what).unwrap();
    for id in ["tc_1", "tc_2"] {
        let called = at(&|line| {
            delta(line) == "toolcall_end" && line["assistantMessageEvent"]["toolCall"]["id"] == *id
        });
        let told = &events[called]["assistantMessageEvent"]["toolCall"];
        assert!(
            told["type"] == "toolCall" && told["arguments"].is_object(),
            "{told}"
        );
        let started = at(&|line| line["type"] == "tool_execution_start" && line["toolCallId"] == *id);
        let ended = at(&|line| line["type"] == "tool_execution_end" && line["toolCallId"] == *id);
        assert!(called < started && started < ended);
    }
    web.finish();
}

/// Each block is started, written and ended before the next one, and says at its end what its pieces said.
fn blocks_are_whole(events: &[Value]) {
    let mut open: Option<(String, String)> = None;
    let mut found = Vec::new();
    for event in events.iter().filter(|line| line["type"] == "message_update") {
        let (kind, what) = delta(event).split_once('_').unwrap_or((delta(event), ""));
        match what {
            "start" => {
                assert!(open.is_none(), "{event}");
                open = Some((kind.to_owned(), String::new()));
            }
            "delta" => {
                let (of, text) = open.as_mut().unwrap();
                assert_eq!(of, kind);
                text.push_str(event["assistantMessageEvent"]["delta"].as_str().unwrap());
            }
            "end" => {
                let (of, text) = open.take().unwrap();
                assert_eq!(of, kind);
                if kind != "toolcall" {
                    assert_eq!(event["assistantMessageEvent"]["content"], text);
                }
                found.push(of);
            }
            _ => assert!(["start", "done", "error"].contains(&kind), "{event}"),
        }
    }
    assert!(open.is_none());
    assert_eq!(found, ["thinking", "text", "toolcall", "toolcall", "text"]);
}

#[test]
fn session_changes_have_reasons() {
    let world = World::new([Reply::text(["One."])]);
    elsewhere(&world);
    let web = Web::start(&world, &[]);
    let (mut tab, mut other) = (web.tab(), web.tab());
    tab.say("Hi");
    let user = tab.data(json!({"type": "get_fork_messages"}))["messages"][0]["entryId"].clone();
    let path = world
        .dir
        .agent_dir()
        .join("sessions/--elsewhere--/session1.jsonl");
    let own = tab.data(json!({"type": "get_state"}))["sessionFile"].clone();
    for (reason, command) in [
        ("switch", json!({"type": "switch_session", "sessionPath": path})),
        ("new", json!({"type": "new_session"})),
        ("switch", json!({"type": "switch_session", "sessionPath": own})),
        ("tree", json!({"type": "navigate_tree", "targetId": user})),
        ("fork", json!({"type": "fork", "entryId": user})),
    ] {
        let before = tab.seen.borrow().len();
        let answer = tab.ask(command.clone());
        assert_eq!(answer["success"], true, "{command} {answer}");
        let told = tab.seen.borrow()[before..]
            .iter()
            .find(|line| line["type"] == "session_changed")
            .cloned();
        let told = told.unwrap_or_else(|| panic!("{command}: nothing before its answer"));
        assert!(
            shows(
                &told,
                &json!({"type": "session_changed", "reason": reason, "sessionId": "abc123"}),
                ""
            ),
            "{told}"
        );
        assert_eq!(told.get("id"), None);
        assert_eq!(other.wait_type("session_changed")["sessionId"], told["sessionId"]);
        let named = command["sessionPath"] == json!(path);
        let name = told["sessionName"].as_str();
        assert_eq!(name, named.then_some("Refactor auth module"), "{told}");
        assert_eq!(
            tab.data(json!({"type": "get_state"}))["sessionId"],
            told["sessionId"]
        );
    }
    web.finish();
}

#[test]
fn missing_session_file_is_refused() {
    let world = World::new([]);
    let web = Web::start(&world, &[]);
    let mut tab = web.tab();
    let missing = tab.ask(json!({"type": "switch_session", "sessionPath": "/path/to/session.jsonl"}));
    let example = json!({"type": "response", "command": "switch_session", "success": false, "error": "Session file not found"});
    assert!(shows(&missing, &example, ""), "{missing}");
    // The first session may become ready after the client came.
    let is_ready = |line: &Value| line["type"] == "ready";
    let others = tab.seen.borrow().iter().filter(|line| !is_ready(line)).count();
    assert!(missing.get("data").is_none() && others == 1);
    web.finish();
}

#[test]
fn invalid_lines_are_reported_and_connection_stays() {
    let world = World::new([]);
    let web = Web::start(&world, &[]);
    let mut tab = web.tab();
    let unknown = exactly(&mut tab, &json!({"id": "req_9", "type": "no_such_command"}));
    assert_eq!(
        (&unknown["success"], unknown["error"].is_string()),
        (&json!(false), true)
    );
    let number = exactly(&mut tab, &json!({"id": 7, "type": "get_state"}));
    assert_eq!(number["id"], 7);
    let nameless = exactly(&mut tab, &json!({"type": "get_state"}));
    assert!(nameless.get("id").is_none(), "{nameless}");
    for (number, frame) in [
        "",
        "no json",
        "{",
        "null",
        "5",
        "\"text\"",
        "[]",
        "{}",
        "{\"type\": 5}",
        "{\"id\": \"x\"}",
        "{\"type\": \"prompt\"}",
        "{\"type\": \"prompt\", \"message\": 5}",
        "{\"type\": \"switch_session\"}",
        "{\"type\": \"list_sessions\", \"scope\": \"moon\"}",
    ]
    .iter()
    .enumerate()
    {
        let before = tab.seen.borrow().len();
        tab.send_text(frame);
        exactly(
            &mut tab,
            &json!({"id": format!("after {number}"), "type": "get_state"}),
        );
        let seen = tab.seen.borrow();
        let between = &seen[before..seen.len() - 1];
        assert!(between.len() <= 1, "{frame}: {between:?}");
        let refused = |line: &Value| {
            line["type"] == "response" && line["success"] == false && line["error"].is_string()
        };
        assert!(between.iter().all(refused), "{frame}: {between:?}");
    }
    web.finish();
}

/// Asks, fails and hears, as the description shows it.
const EXTENSION: &str = r#"export default function (pi: any) {
    pi.registerCommand("ask", { handler: async (_args: any, ctx: any) => {
      const said = [await ctx.ui.select("Which?", ["selected option", "other"]), await ctx.ui.confirm("Sure?", "Really?"), await ctx.ui.input("Name")];
      ctx.ui.setEditorText("words");
      ctx.ui.notify(JSON.stringify(said), "info");
      throw new Error("Provider rate limit exceeded");
    } });
}"#;

#[test]
fn seed_extension_frames_are_sent() {
    if !can_run() {
        return;
    }
    let world = World::new([]);
    let dir = world.dir.agent_dir().join("extensions");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("kit.ts"), EXTENSION).unwrap();
    let web = Web::start(&world, &[]);
    let mut tab = web.tab();
    // An answer to nothing is no answer at all.
    tab.send_text(
        &json!({"type": "extension_ui_response", "id": "uuid-1", "value": "selected option"}).to_string(),
    );
    tab.send(json!({"type": "prompt", "message": "/ask"}));
    for (method, answer) in [
        ("select", json!({"value": "selected option"})),
        ("confirm", json!({"confirmed": true})),
        ("input", json!({"cancelled": true})),
    ] {
        let question = tab.wait(|line| line["type"] == "extension_ui_request" && line["method"] == method);
        assert!(question["title"].is_string(), "{question}");
        let mut frame = json!({"type": "extension_ui_response", "id": question["id"]});
        frame
            .as_object_mut()
            .unwrap()
            .extend(answer.as_object().unwrap().clone());
        tab.send_text(&frame.to_string());
    }
    let text = tab.wait(|line| line["method"] == "set_editor_text");
    assert_eq!(text["text"], "words");
    let told = tab.wait(|line| line["method"] == "notify");
    assert_eq!(told["message"], r#"["selected option",true,null]"#);
    let failed = tab.wait_type("extension_error");
    assert!(
        failed["error"]
            .as_str()
            .unwrap()
            .contains("Provider rate limit exceeded"),
        "{failed}"
    );
    assert!(failed.get("id").is_none());
    assert!(tab.is_quiet() || tab.seen.borrow().last().unwrap()["type"] == "response");
    let again = tab
        .seen
        .borrow()
        .iter()
        .filter(|line| line["type"] == "extension_error")
        .count();
    assert_eq!(again, 1);
    web.finish();
}
