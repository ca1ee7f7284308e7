//! Features of the fork that the web protocol comes from, other than the seed's examples: every command that its socket
//! takes, a session in another directory, the tree, the tools, reading everything again; and the events for its pages.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Value, json};
use testkit::llm::{ErrorKind, Reply};

use super::{Tab, Web};
use crate::kit::{LONG, World};

/// Every command that the fork's socket takes (web.md 1.5), as one of its clients may send it.
fn commands() -> Vec<Value> {
    let bare = [
        "abort",
        "get_state",
        "get_messages",
        "list_sessions",
        "get_context_usage",
        "clear_queue",
        "cycle_model",
        "get_available_models",
        "cycle_thinking_level",
        "abort_retry",
        "abort_bash",
        "get_session_stats",
        "get_fork_messages",
        "get_last_assistant_text",
        "get_commands",
        "get_session_tree",
        "reload_resources",
        "get_tools",
        "list_directory",
        "new_session",
        "compact",
    ];
    let mut all: Vec<Value> = bare.iter().map(|name| json!({ "type": name })).collect();
    all.extend([
        json!({"type": "prompt", "message": "Hello", "images": []}),
        json!({"type": "steer", "message": "left"}),
        json!({"type": "follow_up", "message": "later"}),
        json!({"type": "set_model", "provider": "mock-anthropic", "modelId": "claude-mock"}),
        json!({"type": "set_thinking_level", "level": "high"}),
        json!({"type": "set_steering_mode", "mode": "all"}),
        json!({"type": "set_follow_up_mode", "mode": "one-at-a-time"}),
        json!({"type": "set_auto_compaction", "enabled": true}),
        json!({"type": "set_auto_retry", "enabled": true}),
        json!({"type": "bash", "command": "true"}),
        json!({"type": "export_html"}),
        json!({"type": "switch_session", "sessionPath": "nowhere.jsonl"}),
        json!({"type": "fork", "entryId": "00000000"}),
        json!({"type": "set_session_name", "name": "Gears"}),
        json!({"type": "navigate_tree", "targetId": "00000000"}),
        json!({"type": "set_entry_label", "targetId": "00000000", "label": "x"}),
        json!({"type": "set_active_tools", "toolNames": ["read"]}),
    ]);
    all
}

#[test]
fn every_command_of_fork_is_known() {
    let world = World::new([Reply::text(["Hi."])]);
    let web = Web::start(&world, &[]);
    let mut tab = web.tab();
    for command in commands() {
        let answer = tab.ask(command.clone());
        assert_eq!(answer["command"], command["type"]);
        let error = answer["error"].as_str().unwrap_or_default();
        let is_known = !error.starts_with("Unknown command")
            && !error.starts_with(&format!("Invalid {} command", command["type"].as_str().unwrap()));
        assert!(is_known, "{command}: {answer}");
    }
    web.finish();
}

/// Events that ask or tell under an id of their own.
const ASKS: [&str; 5] = [
    "extension_ui_request",
    "host_tool_call",
    "host_tool_cancel",
    "host_uri_request",
    "host_uri_cancel",
];

#[test]
fn fork_events_have_no_command_ids() {
    let call = Reply::tool("tc_1", "bash", json!({"command": "echo tool"}));
    let world = World::new([call, Reply::text(["Done."])]);
    let web = Web::start(&world, &[]);
    let (mut tab, mut other) = (web.tab(), web.tab());
    let ran = tab.ask(json!({"type": "bash", "command": "echo \"from a shell\"; exit 4"}));
    assert_eq!(ran["data"]["exitCode"], 4);
    tab.say("Go");
    tab.data(json!({"type": "set_session_name", "name": "Gears"}));
    tab.data(json!({"type": "new_session"}));
    for tab in [&mut tab, &mut other] {
        // Events that this client has not read yet.
        tab.data(json!({"type": "get_state"}));
        let seen = tab.seen.borrow();
        let events = seen.iter().filter(|line| line["type"] != "response");
        for event in events.clone() {
            let asks = event["type"].as_str().is_some_and(|kind| ASKS.contains(&kind));
            assert!(asks || event.get("id").is_none(), "{event}");
        }
        let shell: Vec<&Value> = events
            .filter(|event| event["bashId"] == "b1" && event["commandId"] == ran["id"])
            .collect();
        assert_eq!(shell.first().unwrap()["type"], "bash_execution_start");
        assert_eq!(shell.last().unwrap()["type"], "bash_execution_end");
        assert!(shell.iter().any(|event| event["delta"] == "from a shell\n"));
    }
    web.finish();
}

fn refusal(tab: &mut Tab, command: Value) -> String {
    let answer = tab.ask(command);
    assert_eq!(answer["success"], false, "{answer}");
    answer["error"].as_str().unwrap().to_owned()
}

fn output(tab: &mut Tab, command: &str) -> String {
    let ran = tab.data(json!({"type": "bash", "command": command}));
    ran["output"].as_str().unwrap().trim_end().to_owned()
}

/// What of the request that the model got first and last is the system prompt.
fn newest_request(world: &World) -> String {
    world.server.requests().last().unwrap().body.to_string()
}

#[test]
fn new_session_accepts_other_directory() {
    let pwd = Reply::tool("tc_1", "bash", json!({"command": "pwd -P"}));
    let world = World::new([pwd, Reply::text(["There."])]);
    let place = world.dir.cwd().join("places/gears");
    fs::create_dir_all(place.join(".pi/prompts")).unwrap();
    fs::write(place.join("AGENTS.md"), "Words of this place.").unwrap();
    fs::write(
        place.join(".pi/settings.json"),
        r#"{"compaction": {"enabled": false}, "steeringMode": "all"}"#,
    )
    .unwrap();
    fs::write(place.join(".pi/prompts/turn.md"), "Turn them.").unwrap();
    fs::write(world.dir.cwd().join("file"), "x").unwrap();
    let web = Web::start(&world, &["--approve"]);
    let mut tab = web.tab();
    let before = tab.data(json!({"type": "get_state"}));
    assert_eq!(before["autoCompactionEnabled"], true);
    // Nothing happens for a directory that is not there.
    for (cwd, error) in [
        ("places/none", "Path does not exist: "),
        ("file", "Path is not a directory: "),
    ] {
        let path = world.dir.cwd().join(cwd);
        let refused = refusal(&mut tab, json!({"type": "new_session", "cwd": cwd}));
        assert_eq!(refused, format!("{error}{}", path.display()));
    }
    // The first session may become ready after the client came.
    let quiet = |line: &Value| line["type"] == "response" || line["type"] == "ready";
    assert!(tab.seen.borrow().iter().all(quiet));
    assert_eq!(
        tab.data(json!({"type": "get_state"}))["sessionId"],
        before["sessionId"]
    );

    let from = tab.seen.borrow().len();
    let answer = tab.ask(json!({"type": "new_session", "cwd": place}));
    assert_eq!(answer["data"], json!({"cancelled": false}), "{answer}");
    let seen = tab.seen.borrow()[from..].to_vec();
    let changed = seen
        .iter()
        .find(|line| line["type"] == "session_changed")
        .unwrap();
    assert_eq!(changed["reason"], "new");
    let file = changed["sessionFile"].as_str().unwrap();
    assert!(file.contains("-places-gears--/"), "{file}");
    // Settings, context files, templates, tools and commands of the user: all of that place.
    let state = tab.data(json!({"type": "get_state"}));
    assert_eq!(
        (&state["autoCompactionEnabled"], &state["steeringMode"]),
        (&json!(false), &json!("all"))
    );
    let commands = tab.data(json!({"type": "get_commands"}));
    assert!(commands.to_string().contains("\"turn\""), "{commands}");
    let real = place.canonicalize().unwrap();
    assert_eq!(output(&mut tab, "pwd -P"), real.to_str().unwrap());
    let lines = tab.say("Where?");
    let ended = lines
        .iter()
        .find(|line| line["type"] == "tool_execution_end")
        .unwrap();
    assert!(ended.to_string().contains(real.to_str().unwrap()), "{ended}");
    assert!(newest_request(&world).contains("Words of this place."));
    let listed = tab.data(json!({"type": "list_sessions"}));
    assert_eq!(listed["sessions"][0]["cwd"], json!(place));
    // Relative to where the session is now; and nothing named means staying there.
    tab.data(json!({"type": "new_session", "cwd": ".."}));
    assert_eq!(
        output(&mut tab, "pwd -P"),
        real.parent().unwrap().to_str().unwrap()
    );
    for command in [
        json!({"type": "new_session"}),
        json!({"type": "new_session", "cwd": ""}),
    ] {
        tab.data(command);
        assert_eq!(
            output(&mut tab, "pwd -P"),
            real.parent().unwrap().to_str().unwrap()
        );
    }
    // Back: the value of the settings applies again.
    tab.data(json!({"type": "new_session", "cwd": world.dir.cwd()}));
    assert_eq!(
        tab.data(json!({"type": "get_state"}))["autoCompactionEnabled"],
        true
    );
    web.finish();
}

/// A session file of some directory.
pub(super) fn stored(world: &World, cwd: &str, entries: &[Value]) -> PathBuf {
    let dir = world.dir.agent_dir().join("sessions/--stored--");
    fs::create_dir_all(&dir).unwrap();
    let header = json!({"type": "session", "version": 3, "id": "stored_1", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": cwd});
    let mut text = format!("{header}\n");
    for entry in entries {
        text.push_str(&format!("{entry}\n"));
    }
    let path = dir.join("stored.jsonl");
    fs::write(&path, text).unwrap();
    path
}

pub(super) fn entry(number: usize, parent: Option<usize>, body: Value) -> Value {
    let id = |number: usize| format!("{number:08x}");
    let mut entry =
        json!({"id": id(number), "parentId": parent.map(id), "timestamp": "2026-01-01T00:00:01.000Z"});
    entry
        .as_object_mut()
        .unwrap()
        .extend(body.as_object().unwrap().clone());
    entry
}

pub(super) fn said(role: &str, content: Value) -> Value {
    json!({"type": "message", "message": {"role": role, "content": content, "timestamp": 1_767_225_600_000_i64}})
}

#[test]
fn session_tree_matches_page_format() {
    let world = World::new([]);
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let mut result = said("toolResult", text("out"));
    result["message"]["toolName"] = "bash".into();
    result["message"]["toolCallId"] = "tc".into();
    let long = format!("{}🦀{}", "é".repeat(139), "x".repeat(500));
    let entries = [
        entry(
            1,
            None,
            json!({"type": "model_change", "provider": "mock-anthropic", "modelId": "claude-mock"}),
        ),
        entry(
            2,
            Some(1),
            json!({"type": "thinking_level_change", "thinkingLevel": "high"}),
        ),
        entry(3, Some(2), said("user", json!("Plain"))),
        entry(
            4,
            Some(3),
            said(
                "assistant",
                json!([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "One"}, {"type": "text", "text": "two"}]),
            ),
        ),
        entry(5, Some(4), result),
        entry(6, Some(3), said("assistant", json!([]))),
        entry(
            7,
            Some(6),
            json!({"type": "compaction", "summary": "s", "firstKeptEntryId": "00000003", "tokensBefore": 5}),
        ),
        entry(8, Some(7), json!({"type": "session_info", "name": "Gears"})),
        entry(
            9,
            Some(8),
            json!({"type": "label", "targetId": "00000004", "label": "here"}),
        ),
        entry(10, Some(9), said("user", text(&long))),
    ];
    let path = stored(&world, world.dir.cwd().to_str().unwrap(), &entries);
    let web = Web::start(&world, &[]);
    let mut tab = web.tab();
    tab.data(json!({"type": "switch_session", "sessionPath": path}));
    let tree = tab.data(json!({"type": "get_session_tree"}));
    assert_eq!(tree["leafId"], "0000000a", "{tree}");
    let mut found = Vec::new();
    let mut left: Vec<&Value> = tree["nodes"].as_array().unwrap().iter().collect();
    while let Some(node) = left.pop() {
        assert_eq!(node.as_object().unwrap().len(), 2, "{node}");
        found.push(node["entry"].clone());
        left.extend(node["children"].as_array().unwrap().iter().rev());
    }
    let shown = |number: usize| {
        found
            .iter()
            .find(|entry| entry["id"] == format!("{number:08x}"))
            .unwrap()
    };
    for (number, preview) in [
        (1, json!("[model:mock-anthropic/claude-mock]")),
        (2, json!("[thinking:high]")),
        (3, json!("Plain")),
        (4, json!("One two")),
        (5, json!("[toolResult:bash]")),
        (6, Value::Null),
        (7, json!("[compaction]")),
        (8, json!("[session_info:Gears]")),
        (9, json!("[label:here]")),
        (10, json!("é".repeat(139))),
    ] {
        assert_eq!(shown(number)["preview"], preview, "{number}");
    }
    assert_eq!(
        *shown(4),
        json!({"id": "00000004", "parentId": "00000003", "type": "message", "timestamp": "2026-01-01T00:00:01.000Z", "label": "here", "preview": "One two"})
    );
    // A label is taken away, and both forms of the tree know.
    tab.data(json!({"type": "set_entry_label", "targetId": "00000004", "label": " "}));
    let tree = tab.data(json!({"type": "get_session_tree"}));
    assert!(!tree.to_string().contains("\"label\":\"here\""), "{tree}");
    web.finish();
}

#[test]
fn tree_of_hundred_thousand_levels_is_sent() {
    let world = World::new([]);
    let first = json!({"type": "thinking_level_change", "thinkingLevel": "high"});
    let rest = (2..=100_000).map(|number| entry(number, Some(number - 1), said("user", json!("x"))));
    let entries: Vec<Value> = std::iter::once(entry(1, None, first)).chain(rest).collect();
    let path = stored(&world, world.dir.cwd().to_str().unwrap(), &entries);
    let web = Web::start(&world, &[]);
    let mut tab = web.tab();
    tab.data(json!({"type": "switch_session", "sessionPath": path}));
    tab.send_text(r#"{"id":"deep","type":"get_session_tree"}"#);
    // Our parsers refuse such depth.
    let end = Instant::now() + 5 * LONG;
    let text = loop {
        assert!(Instant::now() < end, "no tree comes");
        let text = tab.socket().read().unwrap().into_text().unwrap();
        if text.contains("\"get_session_tree\"") {
            break text;
        }
    };
    assert!(text.contains("\"leafId\":\"000186a0\""));
    assert_eq!(text.matches("\"preview\":\"x\"").count(), 99_999);
    assert_eq!(text.matches('[').count(), text.matches(']').count());
    assert_eq!(tab.data(json!({"type": "get_state"}))["messageCount"], 99_999);
    web.finish();
}

#[test]
fn get_tools_lists_all_and_active_tools() {
    let world = World::new([Reply::text(["One."]), Reply::text(["Two."])]);
    let web = Web::start(&world, &["--exclude-tools", "write"]);
    let mut tab = web.tab();
    let tools = tab.data(json!({"type": "get_tools"}));
    let all = tools["allTools"].as_array().unwrap();
    for tool in all {
        assert!(
            tool["description"].is_string() && tool["parameters"].is_object(),
            "{tool}"
        );
        assert_eq!(tool.as_object().unwrap().len(), 3, "{tool}");
    }
    let has = |list: &Value, name: &str| {
        list.as_array()
            .unwrap()
            .iter()
            .any(|one| one == name || one["name"] == name)
    };
    assert!(
        has(&tools["allTools"], "grep") && has(&tools["allTools"], "write"),
        "{tools}"
    );
    assert!(
        has(&tools["activeToolNames"], "bash") && !has(&tools["activeToolNames"], "grep"),
        "{tools}"
    );
    // Unknown tools are ignored; tools that the command line forbids stay off.
    let chosen =
        tab.data(json!({"type": "set_active_tools", "toolNames": ["grep", "read", "write", "teleport"]}));
    assert_eq!(chosen, json!({"activeToolNames": ["read", "grep"]}));
    assert_eq!(
        tab.data(json!({"type": "get_tools"}))["activeToolNames"],
        chosen["activeToolNames"]
    );
    tab.say("One?");
    let request = world.server.requests().last().unwrap().body.clone();
    let names: Vec<&str> = request["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["read", "grep"]);
    let error = refusal(&mut tab, json!({"type": "set_active_tools"}));
    assert!(error.contains("toolNames"), "{error}");
    web.finish();
}

#[test]
fn reload_resources_rereads_everything() {
    let world = World::new([
        Reply::text(["half"]).gate("go").then_text([" more"]),
        Reply::text(["After."]),
    ]);
    let web = Web::start(&world, &[]);
    let (mut tab, mut other) = (web.tab(), web.tab());
    tab.data(json!({"type": "set_steering_mode", "mode": "all"}));
    let shell = tab.send(json!({"type": "bash", "command": "echo begun; sleep 600"}));
    tab.wait(|line| line["delta"] == "begun\n");
    fs::create_dir_all(world.dir.agent_dir().join("prompts")).unwrap();
    fs::write(world.dir.agent_dir().join("prompts/turn.md"), "Turn them.").unwrap();
    fs::write(world.dir.cwd().join("AGENTS.md"), "Words that came later.").unwrap();
    world.settings(
        json!({"compaction": {"enabled": false}, "steeringMode": "one-at-a-time", "followUpMode": "all"}),
    );
    let before = tab.data(json!({"type": "get_state"}));
    let from = tab.seen.borrow().len();
    let answer = tab.ask(json!({"type": "reload_resources"}));
    assert!(
        answer["data"]["commands"].to_string().contains("\"turn\""),
        "{answer}"
    );
    let seen = tab.seen.borrow()[from..].to_vec();
    let changed = seen
        .iter()
        .find(|line| line["type"] == "session_changed")
        .unwrap();
    assert_eq!(
        (&changed["reason"], &changed["sessionId"]),
        (&json!("reload"), &before["sessionId"])
    );
    assert_eq!(other.wait_type("session_changed"), *changed);
    let state = tab.data(json!({"type": "get_state"}));
    assert_eq!(
        (
            &state["autoCompactionEnabled"],
            &state["followUpMode"],
            &state["steeringMode"]
        ),
        (&json!(false), &json!("all"), &json!("all")),
        "what somebody chose stays so"
    );
    // No command was killed for it.
    assert!(tab.seen.borrow().iter().all(|line| line["id"] != *shell));
    tab.data(json!({"type": "abort_bash"}));
    // Its message must be stored before the run, not parked until the run ends.
    tab.wait(|line| line["id"] == *shell);
    tab.data(json!({"type": "prompt", "message": "Go"}));
    tab.wait(|line| line["assistantMessageEvent"]["type"] == "text_delta");
    assert!(newest_request(&world).contains("Words that came later."));
    let busy = refusal(&mut tab, json!({"type": "reload_resources"}));
    assert_eq!(
        busy,
        "Cannot reload while the agent is working; wait until it is idle"
    );
    world.server.release("go");
    tab.wait_type("agent_settled");
    tab.data(json!({"type": "reload_resources"}));
    tab.say("Once more");
    assert_eq!(tab.data(json!({"type": "get_state"}))["messageCount"], 5);
    web.finish();
}

#[test]
fn session_with_missing_directory_opens_elsewhere() {
    let world = World::new([Reply::text(["Yes."])]);
    let gone = world.dir.root().join("gone");
    let path = stored(
        &world,
        gone.to_str().unwrap(),
        &[entry(1, None, said("user", json!("Old words")))],
    );
    let web = Web::start(&world, &[]);
    let mut tab = web.tab();
    let place = world.dir.cwd().join("elsewhere");
    fs::create_dir_all(&place).unwrap();
    tab.data(json!({"type": "new_session", "cwd": place}));
    let home = world.dir.cwd().canonicalize().unwrap();
    // Again when it is open already.
    for _ in 0..2 {
        tab.data(json!({"type": "switch_session", "sessionPath": path}));
        let notice = tab
            .seen
            .borrow()
            .iter()
            .rfind(|line| line["type"] == "notice")
            .cloned()
            .unwrap();
        assert_eq!(notice["level"], "warning");
        assert!(
            notice["message"]
                .as_str()
                .unwrap()
                .contains(gone.to_str().unwrap()),
            "{notice}"
        );
        assert_eq!(output(&mut tab, "pwd -P"), home.to_str().unwrap());
    }
    assert!(
        tab.data(json!({"type": "get_messages"}))
            .to_string()
            .contains("Old words")
    );
    tab.say("Still there?");
    assert!(fs::read_to_string(&path).unwrap().contains("Still there?"));
    tab.data(json!({"type": "new_session"}));
    // A second session opens in the same way.
    let from = tab.seen.borrow().len();
    let opened = tab.data(json!({"type": "open_session", "session": "old", "sessionPath": path}));
    assert_eq!(opened["cwd"], json!(world.dir.cwd()));
    let is_notice = |line: &Value| line["type"] == "notice" && line["session"] == "old";
    let is_there = tab.seen.borrow()[from..].iter().any(is_notice);
    if !is_there {
        tab.wait(is_notice);
    }
    web.finish();
}

#[test]
fn failed_run_is_reported_as_extension_error() {
    let world = World::new([
        Reply::error(ErrorKind::Overloaded),
        Reply::error(ErrorKind::Invalid),
        Reply::text(["Fine."]),
    ]);
    let web = Web::start(&world, &[]);
    let mut tab = web.tab();
    let lines = tab.say("Go");
    let errors: Vec<&Value> = lines
        .iter()
        .filter(|line| line["type"] == "extension_error")
        .collect();
    // Once: a failure that is retried causes none.
    let [error] = errors[..] else { panic!("{errors:?}") };
    let answer = lines.iter().rfind(|line| line["type"] == "message_end").unwrap();
    assert_eq!(answer["message"]["stopReason"], "error");
    assert_eq!(error["error"], answer["message"]["errorMessage"]);
    assert_eq!(
        (&error["extensionPath"], &error["event"]),
        (&json!("<model>"), &json!("agent_end"))
    );
    assert!(
        tab.say("Again")
            .iter()
            .all(|line| line["type"] != "extension_error")
    );
    web.finish();
}
