//! Sessions that are loaded, resumed, listed, closed and deleted, and their options.

use serde_json::{Value, json};
use testkit::llm::Reply;

use super::{Editor, stop_reason};
use crate::kit::{LONG, World, bash};
use crate::mcp;
use crate::web::Web;

fn ids(reply: &Value) -> Vec<&str> {
    let sessions = reply["result"]["sessions"].as_array().unwrap().iter();
    sessions
        .map(|session| session["sessionId"].as_str().unwrap())
        .collect()
}

/// Parameters of a request about a session.
fn about(session: &str, world: &World) -> Value {
    json!({"sessionId": session, "cwd": world.dir.cwd(), "mcpServers": []})
}

/// The options of a response or an update: ids with current values.
fn options(options: &Value) -> Vec<(String, String)> {
    let options = options["configOptions"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    options
        .map(|option| (text(&option["id"]), text(&option["currentValue"])))
        .collect()
}

#[test]
fn session_survives_restart() {
    let world = World::new([
        bash("c1", "echo made"),
        Reply::text(["First ", "answer"]),
        Reply::text(["Second"]),
    ]);
    let editor = Editor::start(&world);
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "First question");
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    editor.finish();

    let editor = Editor::start(&world);
    let listed = editor.call("l", "session/list", json!({"cwd": world.dir.cwd()}));
    assert_eq!(ids(&listed), [session.as_str()]);
    assert_eq!(listed["result"]["sessions"][0]["title"], "First question");
    let elsewhere = editor.call("e", "session/list", json!({"cwd": "/elsewhere"}));
    assert_eq!(ids(&elsewhere), Vec::<&str>::new());
    let loaded = editor.call("o", "session/load", about(&session, &world));
    assert!(loaded["result"].is_object(), "{loaded}");
    // Updates before the response: the history in its order.
    let lines = editor.agent.lines();
    let updates: Vec<Value> = lines
        .iter()
        .take_while(|line| line.value["id"] != "o")
        .map(|line| line.value["params"]["update"].clone())
        .filter(|update| update.is_object())
        .collect();
    let kinds: Vec<&str> = updates
        .iter()
        .map(|update| update["sessionUpdate"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "user_message_chunk",
            "tool_call",
            "tool_call_update",
            "agent_message_chunk",
            "usage_update"
        ]
    );
    assert_eq!(updates[0]["content"]["text"], "First question");
    assert_eq!(updates[1]["toolCallId"], "c1");
    assert_eq!(updates[2]["status"], "completed");
    assert_eq!(updates[3]["content"]["text"], "First answer");
    editor.prompt("p", &session, "Second question");
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    editor.finish();
    let requests = world.server.requests();
    assert!(requests.last().unwrap().body.to_string().contains("First answer"));
}

#[test]
fn resumed_session_has_context_without_history() {
    let world = World::new([Reply::text(["One"]), Reply::text(["Two"])]);
    let editor = Editor::start(&world);
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "Hi");
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    editor.finish();
    let editor = Editor::start(&world);
    let reply = editor.call(
        "r",
        "session/resume",
        json!({"sessionId": session, "cwd": world.dir.cwd()}),
    );
    assert!(reply["result"].is_object(), "{reply}");
    assert!(editor.updates("user_message_chunk").is_empty());
    editor.prompt("p", &session, "Again");
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    editor.finish();
    assert!(world.server.requests()[1].body.to_string().contains("One"));
}

#[test]
fn unknown_sessions_are_not_found() {
    let world = World::new([]);
    let editor = Editor::start(&world);
    for method in [
        "session/load",
        "session/resume",
        "session/close",
        "session/prompt",
    ] {
        let mut params = about("0190f000-0000-7000-8000-000000000000", &world);
        params["prompt"] = json!([{"type": "text", "text": "Hi"}]);
        let reply = editor.call(method, method, params);
        assert_eq!(reply["error"]["code"], -32002, "{method}: {reply}");
    }
    editor.finish();
}

#[test]
fn empty_session_survives_restart() {
    let world = World::new([Reply::text(["One"])]);
    let editor = Editor::start(&world);
    let session = editor.session("n", &world);
    editor.finish();
    let editor = Editor::start(&world);
    // Nothing was said in it, so no list shows it.
    let listed = editor.call("l", "session/list", json!({}));
    assert_eq!(ids(&listed), Vec::<&str>::new());
    let loaded = editor.call("o", "session/load", about(&session, &world));
    assert!(loaded["result"].is_object(), "{loaded}");
    editor.prompt("p", &session, "Hi");
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    let listed = editor.call("l2", "session/list", json!({}));
    assert_eq!(ids(&listed), [session.as_str()]);
    editor.finish();
}

#[test]
fn sessions_of_rpc_mode_are_loaded() {
    let world = World::new([Reply::text(["Over RPC"]), Reply::text(["Over ACP"])]);
    let pi = world.start();
    pi.say("First");
    let session = pi.state()["sessionId"].as_str().unwrap().to_owned();
    pi.finish();
    let editor = Editor::start(&world);
    let loaded = editor.call("o", "session/load", about(&session, &world));
    assert!(loaded["result"].is_object(), "{loaded}");
    assert_eq!(
        editor.updates("agent_message_chunk")[0]["content"]["text"],
        "Over RPC"
    );
    editor.prompt("q", &session, "Second");
    assert_eq!(stop_reason(&editor.response("q")), "end_turn");
    editor.finish();
    assert!(world.server.requests()[1].body.to_string().contains("Over RPC"));
}

#[test]
fn sessions_of_web_page_are_loaded() {
    let world = World::new([Reply::text(["In the page"]), Reply::text(["Over ACP"])]);
    let web = Web::start(&world, &[]);
    let mut tab = web.tab();
    tab.say("First");
    let session = tab.data(json!({"type": "get_state"}))["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    drop(tab);
    web.finish();
    let editor = Editor::start(&world);
    let loaded = editor.call("o", "session/load", about(&session, &world));
    assert!(loaded["result"].is_object(), "{loaded}");
    assert_eq!(
        editor.updates("agent_message_chunk")[0]["content"]["text"],
        "In the page"
    );
    editor.prompt("q", &session, "Second");
    assert_eq!(stop_reason(&editor.response("q")), "end_turn");
    editor.finish();
    assert!(
        world.server.requests()[1]
            .body
            .to_string()
            .contains("In the page")
    );
}

/// A session as pi writes it.
const OF_PI: [&str; 5] = [
    r#"{"type":"session","version":3,"id":"0199a000-0000-7000-8000-000000000001","timestamp":"2026-01-02T03:04:05.000Z","cwd":"CWD"}"#,
    r#"{"type":"model_change","id":"aaaa0001","parentId":null,"timestamp":"2026-01-02T03:04:05.001Z","provider":"mock-anthropic","modelId":"claude-mock"}"#,
    r#"{"type":"thinking_level_change","id":"aaaa0002","parentId":"aaaa0001","timestamp":"2026-01-02T03:04:05.002Z","thinkingLevel":"off"}"#,
    r#"{"type":"message","id":"aaaa0003","parentId":"aaaa0002","timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"user","content":[{"type":"text","text":"Asked in pi"}],"timestamp":1767323046000}}"#,
    r#"{"type":"message","id":"aaaa0004","parentId":"aaaa0003","timestamp":"2026-01-02T03:04:07.000Z","message":{"role":"assistant","content":[{"type":"text","text":"Answered in pi"}],"api":"anthropic-messages","provider":"mock-anthropic","model":"claude-mock","usage":{"input":10,"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":12,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"stop","timestamp":1767323047000}}"#,
];

#[test]
fn history_comes_before_updates_of_servers() {
    let world = World::new([Reply::text(["Over ACP"])]);
    let cwd = world.dir.cwd().to_string_lossy().into_owned();
    let text = OF_PI.join("\n").replace("CWD", &cwd) + "\n";
    let file = world.dir.agent_dir().join("sessions/--pi--/1_pi.jsonl");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    world.dir.write(&file, text).unwrap();
    let entry = mcp::entry(&world.dir.root().join("kit.log"), "");
    let env = entry["env"].as_object().unwrap().iter();
    let env: Vec<Value> = env
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    let session = "0199a000-0000-7000-8000-000000000001";
    let mut params = about(session, &world);
    params["mcpServers"] =
        json!([{"name": "kit", "command": entry["command"], "args": entry["args"], "env": env}]);
    let editor = Editor::start(&world);
    let loaded = editor.call("o", "session/load", params);
    assert!(loaded["result"].is_object(), "{loaded}");
    let has_prompt = |line: &Value| {
        let commands = line["params"]["update"]["availableCommands"].as_array();
        commands.is_some_and(|commands| commands.iter().any(|command| command["name"] == "mcp:kit:greet"))
    };
    editor.agent.wait(has_prompt, LONG).unwrap();
    let lines = editor.agent.lines();
    let updates: Vec<&Value> = lines
        .iter()
        .map(|line| &line.value["params"]["update"])
        .filter(|update| update.is_object())
        .collect();
    let texts: Vec<&Value> = updates.iter().map(|update| &update["content"]["text"]).collect();
    assert_eq!(texts[..2], ["Asked in pi", "Answered in pi"]);
    assert_eq!(updates[2]["sessionUpdate"], "usage_update");
    editor.prompt("p", session, "Next");
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    editor.finish();
    assert!(
        world.server.requests()[0]
            .body
            .to_string()
            .contains("Answered in pi")
    );
}

#[test]
fn closing_session_cancels_its_prompt() {
    let world = World::new([bash("c1", "sleep 600")]);
    let editor = Editor::start(&world);
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "Go");
    let starts = |line: &Value| line["params"]["update"]["sessionUpdate"] == "tool_call";
    editor.agent.wait(starts, LONG).unwrap();
    let reply = editor.call("c", "session/close", json!({"sessionId": session}));
    assert_eq!(reply["result"], json!({}), "{reply}");
    assert_eq!(stop_reason(&editor.response("p")), "cancelled");
    editor.prompt("q", &session, "More");
    assert_eq!(editor.response("q")["error"]["code"], -32002);
    let loaded = editor.call("o", "session/load", about(&session, &world));
    assert!(loaded["result"].is_object(), "{loaded}");
    editor.finish();
}

#[test]
fn deleted_session_is_not_listed() {
    let world = World::new([Reply::text(["One"])]);
    let editor = Editor::start(&world);
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "Hi");
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    let open = editor.call("d1", "session/delete", json!({"sessionId": session}));
    assert_eq!(open["error"]["code"], -32600, "{open}");
    editor.call("c", "session/close", json!({"sessionId": session}));
    let deleted = editor.call("d2", "session/delete", json!({"sessionId": session}));
    assert_eq!(deleted["result"], json!({}), "{deleted}");
    let listed = editor.call("l", "session/list", json!({}));
    assert_eq!(ids(&listed), Vec::<&str>::new());
    let again = editor.call("d3", "session/delete", json!({"sessionId": session}));
    assert_eq!(again["result"], json!({}), "{again}");
    editor.finish();
}

#[test]
fn options_change_the_session() {
    let world = World::new([bash("c1", "touch made.txt"), Reply::text(["done"])]);
    let editor = Editor::start(&world);
    let reply = editor.call(
        "n",
        "session/new",
        json!({"cwd": world.dir.cwd(), "mcpServers": []}),
    );
    let session = reply["result"]["sessionId"].as_str().unwrap().to_owned();
    let known = options(&reply["result"]);
    assert_eq!(known[0], ("mode".to_owned(), "off".to_owned()), "{reply}");
    assert_eq!(
        known[1],
        ("model".to_owned(), "mock-anthropic/claude-mock".to_owned())
    );
    assert_eq!(reply["result"]["modes"]["currentModeId"], "off");
    let set = |id: &str, option: &str, value: Value| {
        editor.call(
            id,
            "session/set_config_option",
            json!({"sessionId": session, "configId": option, "value": value}),
        )
    };
    let changed = set("m", "mode", json!("read-only"));
    let changed = options(&changed["result"]);
    assert_eq!(changed[0], ("mode".to_owned(), "read-only".to_owned()));
    assert_eq!(changed.len(), known.len(), "the list is complete");
    let told = editor.updates("current_mode_update").pop().unwrap();
    assert_eq!(told["currentModeId"], "read-only");
    let same = set("s", "model", json!("mock-anthropic/claude-mock"));
    assert_eq!(options(&same["result"])[1], known[1], "{same}");
    for (id, option, value) in [
        ("e1", "mode", json!("yolo")),
        ("e2", "model", json!("none/such")),
        ("e3", "model", json!("none")),
        ("e4", "thought_level", json!("much")),
        ("e5", "colour", json!("red")),
        ("e6", "mode", json!(true)),
    ] {
        let reply = set(id, option, value);
        assert_eq!(reply["error"]["code"], -32602, "{id}: {reply}");
    }
    editor.prompt("p", &session, "Go");
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    assert!(!world.dir.cwd().join("made.txt").exists());
    editor.finish();
}

#[test]
fn session_mode_is_the_permission_mode() {
    let world = World::new([bash("c1", "touch made.txt"), Reply::text(["done"])]);
    let editor = Editor::start(&world);
    let session = editor.session("n", &world);
    let params = json!({"sessionId": session, "modeId": "ask"});
    let reply = editor.call("m", "session/set_mode", params);
    assert_eq!(reply["result"], json!({}), "{reply}");
    let told = editor.updates("config_option_update").pop().unwrap();
    assert_eq!(options(&told)[0].1, "ask");
    let params = json!({"sessionId": session, "modeId": "yolo"});
    let reply = editor.call("e", "session/set_mode", params);
    assert_eq!(reply["error"]["code"], -32602, "{reply}");
    editor.prompt("p", &session, "Go");
    let question = editor.question();
    editor.send(json!({"id": question["id"], "result": {"outcome": {"outcome": "cancelled"}}}));
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    assert!(!world.dir.cwd().join("made.txt").exists());
    editor.finish();
}

#[test]
fn second_load_at_once_is_refused() {
    let world = World::new([Reply::text(["One"])]);
    let editor = Editor::start(&world);
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "Hi");
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    editor.call("c", "session/close", json!({"sessionId": session}));
    let load = |id: &str| {
        let params = about(&session, &world);
        json!({"id": id, "method": "session/load", "params": params})
    };
    // One write: the second line arrives while the first request is open.
    editor.send_together([load("o1"), load("o2")]);
    assert_eq!(editor.response("o2")["error"]["code"], -32600);
    assert!(editor.response("o1")["result"].is_object());
    assert_eq!(editor.updates("user_message_chunk").len(), 1);
    let again = editor.call("o3", "session/load", about(&session, &world));
    assert!(again["result"].is_object(), "{again}");
    editor.finish();
}

#[test]
fn refused_servers_leave_open_session_open() {
    let world = World::new([Reply::text(["One"]), Reply::text(["Two"])]);
    let editor = Editor::start(&world);
    let session = editor.session("n", &world);
    editor.prompt("p", &session, "Hi");
    assert_eq!(stop_reason(&editor.response("p")), "end_turn");
    let mut params = about(&session, &world);
    params["mcpServers"] = json!([{"name": "kit", "command": "true", "args": [5], "env": []}]);
    let refused = editor.call("o", "session/load", params);
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    editor.prompt("q", &session, "Again");
    assert_eq!(stop_reason(&editor.response("q")), "end_turn");
    editor.finish();
}
