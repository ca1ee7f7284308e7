//! The protocol on sockets: several clients of one session, connections that come back, dialogs, the end.

use serde_json::{Value, json};
use testkit::llm::Reply;

use super::{Web, terminate};
use crate::kit::World;

fn kinds(lines: &[Value]) -> Vec<&str> {
    let events = lines.iter().filter(|line| line["type"] != "response");
    let kinds = events.map(|line| line["type"].as_str().unwrap());
    kinds.filter(|kind| *kind != "message_update").collect()
}

fn deltas(lines: &[Value]) -> String {
    let updates = lines
        .iter()
        .filter(|line| line["assistantMessageEvent"]["type"] == "text_delta");
    updates
        .map(|line| line["assistantMessageEvent"]["delta"].as_str().unwrap())
        .collect()
}

#[test]
fn documented_conversation_works_over_socket() {
    let world = World::new([Reply::text(["Hello", " there", "!"])]);
    let web = Web::start(&world, &[]);
    let mut tab = web.tab();
    let state = tab.data(json!({"type": "get_state"}));
    assert_eq!(state["isStreaming"], false);
    assert!(state["sessionId"].is_string());
    assert_eq!(tab.data(json!({"type": "get_messages"}))["messages"], json!([]));
    assert_eq!(
        tab.data(json!({"type": "list_sessions", "scope": "all"}))["sessions"],
        json!([])
    );
    let lines = tab.say("Hello, world!");
    assert_eq!(
        kinds(&lines),
        [
            "agent_start",
            "turn_start",
            "message_start",
            "message_end",
            "message_start",
            "message_end",
            "turn_end",
            "agent_end",
            "agent_settled"
        ]
    );
    assert_eq!(deltas(&lines), "Hello there!");
    for line in lines.iter().filter(|line| line["type"] == "message_update") {
        assert_eq!(line["message"]["role"], "assistant");
        assert_eq!(line["message"]["content"], json!([]));
        assert!(line["message"]["timestamp"].is_i64());
        assert!(line["assistantMessageEvent"].get("partial").is_none());
    }
    assert!(
        lines
            .iter()
            .all(|line| line["type"] == "response" || line.get("id").is_none())
    );
    let sessions = tab.data(json!({"type": "list_sessions"}))["sessions"].clone();
    assert_eq!(sessions[0]["id"], state["sessionId"]);
    assert_eq!(sessions[0]["firstMessage"], "Hello, world!");
    let usage = tab.data(json!({"type": "get_context_usage"}))["usage"].clone();
    assert!(usage["contextWindow"].as_u64().unwrap() > 0, "{usage}");
    let missing = tab.ask(json!({"type": "switch_session", "sessionPath": "/nowhere/x.jsonl"}));
    assert_eq!(missing["success"], false);
    tab.send_text(r#"{"id": 7, "type": "get_state"}"#);
    tab.wait(|line| line["id"] == 7);
    tab.send_text("{}");
    let refused = tab.wait_type("response");
    assert_eq!(refused["error"], "Unknown command: undefined");
    web.finish();
}

#[test]
fn events_reach_all_clients_responses_only_sender() {
    let world = World::new([Reply::text(["One."]), Reply::text(["Two."])]);
    let web = Web::start(&world, &[]);
    let (mut one, mut two) = (web.tab(), web.tab());
    one.data(json!({"type": "get_state"}));
    two.data(json!({"type": "get_state"}));
    let asked = one.say("Hi");
    two.wait_type("agent_settled");
    let heard = two.seen.borrow().clone();
    let events = |lines: &[Value]| -> Vec<Value> {
        // `ready` comes when the first session has started, for one client perhaps before it asks.
        let is_event = |line: &&Value| line["type"] != "response" && line["type"] != "ready";
        lines.iter().filter(is_event).cloned().collect()
    };
    assert_eq!(events(&asked), events(&heard));
    assert_eq!(heard.iter().filter(|line| line["type"] == "response").count(), 1);
    let numbers: Vec<u64> = events(&asked)
        .iter()
        .map(|line| line["seq"].as_u64().unwrap())
        .collect();
    assert!(
        numbers.windows(2).all(|pair| pair[1] == pair[0] + 1),
        "{numbers:?}"
    );
    // A client that wants less hears less.
    let welcome =
        two.data(json!({"type": "hello", "events": ["agent_end"], "dialect": "pi", "heartbeat": 5}));
    assert_eq!(welcome["refused"].as_array().unwrap().len(), 2, "{welcome}");
    one.say("Again");
    let line = two.line().unwrap();
    assert_eq!(line["type"], "agent_end");
    assert!(two.is_quiet());
    web.finish();
}

#[test]
fn reconnecting_client_receives_missed_events() {
    let world = World::new([Reply::text(["One."]), Reply::text(["Two."])]);
    let web = Web::start(&world, &[]);
    let mut one = web.tab();
    let lines = one.say("Hi");
    let last = lines.last().unwrap()["seq"].as_u64().unwrap();
    drop(one);
    let mut two = web.tab();
    let missed = two.say("Again");
    let mut back = web.tab_at(&format!("/ws?after={last}"));
    back.wait_type("agent_settled");
    let again = back.seen.borrow().clone();
    let numbers =
        |lines: &[Value]| -> Vec<u64> { lines.iter().filter_map(|line| line["seq"].as_u64()).collect() };
    assert_eq!(numbers(&again).first(), Some(&(last + 1)));
    assert_eq!(numbers(&again).last(), numbers(&missed).last());
    assert_eq!(deltas(&again), "Two.");
    // By command, too; and a snapshot where there is nothing to go on from.
    let answer = back.data(json!({"type": "replay", "after": last}));
    assert!(answer["events"].as_u64().unwrap() > 5 && answer.get("snapshot").is_none());
    assert_eq!(back.line().unwrap()["seq"], last + 1);
    let answer = two.data(json!({"type": "replay", "after": 1_000_000}));
    assert_eq!(answer["snapshot"]["messages"].as_array().unwrap().len(), 4);
    let answer = two.data(json!({"type": "replay"}));
    assert_eq!(answer["snapshot"]["state"]["messageCount"], 4);
    web.finish();
}

#[test]
fn session_change_ends_run_before_its_event() {
    let world = World::new([Reply::text(["Long"]).gate("never").then_text(["."])]);
    let web = Web::start(&world, &[]);
    let (mut one, mut two) = (web.tab(), web.tab());
    one.data(json!({"type": "prompt", "message": "Hi"}));
    two.wait(|line| line["assistantMessageEvent"]["type"] == "text_delta");
    let before = two.data(json!({"type": "get_state"}));
    let answer = two.ask(json!({"type": "new_session"}));
    assert_eq!(answer["data"]["cancelled"], false);
    let seen = two.seen.borrow().clone();
    let at = |what: &str| seen.iter().position(|line| line["type"] == what).unwrap();
    let answered = seen.iter().position(|line| line["id"] == answer["id"]).unwrap();
    assert!(at("agent_end") < at("session_changed") && at("session_changed") < answered);
    let changed = one.wait_type("session_changed");
    assert_eq!(changed["reason"], "new");
    assert_ne!(changed["sessionId"], before["sessionId"]);
    web.finish();
}

#[test]
fn open_dialog_reaches_late_clients_until_answered() {
    let call = Reply::tool("c1", "bash", json!({"command": "echo done > made"}));
    let world = World::new([call, Reply::text(["Made."])]);
    let web = Web::start(&world, &["--permission-mode", "ask"]);
    let mut one = web.tab();
    one.data(json!({"type": "prompt", "message": "Go"}));
    let question = one.wait_type("extension_ui_request");
    let mut late = web.tab();
    let again = late.wait_type("extension_ui_request");
    assert_eq!(
        (&again["id"], &again["options"]),
        (&question["id"], &question["options"])
    );
    let allow = question["options"][0].clone();
    late.send_text(
        &json!({"type": "extension_ui_response", "id": question["id"], "value": allow}).to_string(),
    );
    let over = one.wait_type("extension_ui_request");
    assert_eq!(
        (&over["method"], &over["targetId"]),
        (&json!("cancel"), &question["id"])
    );
    one.wait_type("agent_settled");
    assert!(world.dir.cwd().join("made").exists());
    // Who comes now is not asked any more.
    let mut last = web.tab();
    last.data(json!({"type": "get_state"}));
    assert_eq!(last.seen.borrow().len(), 1);
    web.finish();
}

#[test]
fn several_sessions_share_web_server() {
    let world = World::new([Reply::text(["One."]), Reply::text(["Two."])]);
    let web = Web::start(&world, &[]);
    let (mut one, mut two) = (web.tab(), web.tab());
    let opened = one.data(json!({"type": "open_session", "session": "other"}));
    assert_eq!(opened["session"], "other");
    two.data(json!({"type": "hello", "sessions": ["other"]}));
    // Events before the answer may be of any session.
    let before = two.seen.borrow().len();
    one.say("To the first");
    one.data(json!({"type": "prompt", "message": "To the other", "session": "other"}));
    one.wait(|line| line["type"] == "agent_settled" && line["session"] == "other");
    two.wait_type("agent_settled");
    let heard = two.seen.borrow();
    let after = &heard[before..];
    let mut events = after.iter().filter(|line| line["type"] != "response");
    assert!(events.all(|line| line["session"] == "other"), "{after:?}");
    assert_eq!(deltas(after), "Two.");
    drop(heard);
    web.finish();
}

#[test]
fn answered_dialog_of_other_session_is_withdrawn() {
    let call = |name: &str| Reply::tool("c1", "bash", json!({"command": format!("echo > {name}")}));
    let world = World::new([
        call("one"),
        Reply::text(["Done."]),
        call("two"),
        Reply::text(["Done."]),
    ]);
    let web = Web::start(&world, &[]);
    let (mut one, mut two) = (web.tab(), web.tab());
    one.data(json!({"type": "open_session", "session": "other"}));
    one.data(json!({"type": "set_permission_mode", "mode": "ask", "session": "other"}));
    two.data(json!({"type": "hello", "sessions": ["other"]}));
    // An answer that names no session goes to the session that asked.
    for session in [None, Some("other")] {
        one.data(json!({"type": "prompt", "message": "Go", "session": "other"}));
        let question = one.wait(|line| line["method"] == "select");
        let allow = &question["options"][0];
        let mut answer = json!({"type": "extension_ui_response", "id": question["id"], "value": allow});
        if let Some(session) = session {
            answer["session"] = session.into();
        }
        one.send_text(&answer.to_string());
        let over = two.wait(|line| line["method"] == "cancel");
        assert_eq!(
            (&over["targetId"], &over["session"]),
            (&question["id"], &json!("other"))
        );
        one.wait_type("agent_settled");
        let mut late = web.tab();
        late.data(json!({"type": "get_state"}));
        let told = late.seen.borrow();
        assert!(
            told.iter().all(|line| line["type"] != "extension_ui_request"),
            "{told:?}"
        );
    }
    assert!(world.dir.cwd().join("one").exists() && world.dir.cwd().join("two").exists());
    web.finish();
}

#[test]
fn client_disconnect_keeps_run_and_shutdown_closes() {
    let world = World::new([Reply::text(["Go"]).gate("on").then_text(["ne."])]);
    let mut web = Web::start(&world, &[]);
    let mut one = web.tab();
    one.data(json!({"type": "prompt", "message": "Hi"}));
    one.wait(|line| line["assistantMessageEvent"]["type"] == "text_delta");
    drop(one);
    let mut two = web.tab();
    assert_eq!(two.data(json!({"type": "get_state"}))["isStreaming"], true);
    world.server.release("on");
    two.wait_type("agent_settled");
    terminate(web.pid());
    assert_eq!(two.line(), Err(1001));
    assert_eq!(web.wait().code(), Some(0), "{}", web.errors());
}
