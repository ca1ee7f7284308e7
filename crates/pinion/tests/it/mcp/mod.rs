//! MCP servers, by the real program: configured, started when needed, called, dying, asking, changing. What hostile servers
//! can send is tested in the crate `mcp`.

mod approvals;
mod kit;
mod login;

use std::fs;

use serde_json::{Value, json};
use testkit::llm::Reply;

pub(crate) use self::kit::configure;
pub(crate) use self::kit::entry;
use self::kit::{of_method, open_gate};
use crate::kit::{LONG, World, of_type, text, until};

fn call(id: &str, tool: &str, args: Value) -> Reply {
    Reply::tool(id, format!("mcp__kit__{tool}"), args)
}

/// Text and failure of every tool that ended.
fn ends(lines: &[Value]) -> Vec<(String, bool)> {
    let ends = of_type(lines, "tool_execution_end").into_iter();
    ends.map(|end| (text(&end["result"]), end["isError"] == true))
        .collect()
}

fn names(request: &Value) -> Vec<String> {
    let tools = request["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

fn requests(world: &World) -> Vec<Value> {
    world
        .server
        .requests()
        .iter()
        .map(|request| request.body.clone())
        .collect()
}

#[test]
fn mcp_tools_are_offered_and_servers_start_lazily() {
    let world = World::new([
        call("c1", "echo", json!({"text": "hi"})),
        call("c2", "echo", json!({})),
        call("c3", "fail", json!({"any": 1})),
        Reply::text(["done"]),
    ]);
    let log = &configure(&world, &[("kit", "")])["kit"];
    let pi = world.start();
    pi.state();
    assert!(!log.exists(), "nothing was needed yet");
    let lines = pi.say("Go");
    let ends = ends(&lines);
    assert_eq!(ends[0], ("hi".to_owned(), false));
    assert!(ends[1].1 && ends[1].0.contains("text"), "{ends:?}");
    assert_eq!(ends[2], ("it is raining".to_owned(), true));
    let first = &requests(&world)[0];
    let tool = first["tools"]
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["name"] == "mcp__kit__echo");
    assert_eq!(tool.unwrap()["description"], "Says it again");
    let odd = first["tools"]
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["name"] == "mcp__kit__fail");
    assert_eq!(odd.unwrap()["input_schema"]["type"], "object");
    let hello = &of_method(log, "initialize")[0];
    assert_eq!(hello["params"]["clientInfo"]["name"], "pinion");
    pi.finish();
    let listed = of_method(log, "tools/call");
    assert_eq!(listed.len(), 2, "what does not fit the schema is not sent");
}

#[test]
fn mcp_progress_is_reported_and_abort_is_sent() {
    let world = World::new([call("c1", "slow", json!({}))]);
    let log = &configure(&world, &[("kit", "")])["kit"];
    let pi = world.start();
    pi.prompt("Go");
    let update = pi.wait("tool_execution_update");
    assert_eq!(text(&update["partialResult"]), "digging (1/3)");
    pi.get("abort");
    until("the cancellation", || {
        !of_method(log, "notifications/cancelled").is_empty()
    });
    let id = &of_method(log, "tools/call")[0]["id"];
    assert_eq!(
        of_method(log, "notifications/cancelled")[0]["params"]["requestId"],
        *id
    );
    assert_eq!(ends(&pi.lines()), [("Operation aborted".to_owned(), true)]);
    pi.finish();
}

#[test]
fn flood_of_mcp_progress_reaches_client_at_intervals() {
    let args = json!({"text": "done", "reports": 20_000});
    let world = World::new([call("c1", "echo", args), Reply::text(["ok"])]);
    kit::configure(&world, &[("kit", "")]);
    let pi = world.start();
    let lines = pi.say("Go");
    let updates = of_type(&lines, "tool_execution_update").len();
    assert!((1..2_000).contains(&updates), "{updates} updates");
    assert_eq!(ends(&lines), [("done".to_owned(), false)]);
    pi.finish();
}

#[test]
fn crashed_mcp_server_fails_call_and_is_restarted() {
    let world = World::new([call("c1", "die", json!({})), Reply::text(["oh"])]);
    configure(&world, &[("kit", "")]);
    let pi = world.start();
    let ends_of_first = ends(&pi.say("Go"));
    assert!(
        ends_of_first[0].1 && ends_of_first[0].0.contains("MCP server kit is not connected"),
        "{ends_of_first:?}"
    );
    until("another connection", || {
        pi.get("get_mcp_servers")["servers"][0]["status"] == "connected"
    });
    world.server.push(call("c2", "echo", json!({"text": "again"})));
    world.server.push(Reply::text(["done"]));
    assert_eq!(ends(&pi.say("Go on")), [("again".to_owned(), false)]);
    pi.finish();
}

#[test]
fn mcp_files_of_omp_count_in_its_dialect() {
    let world = World::new([]);
    let log = world.dir.root().join("kit.log");
    let servers = json!({"mcpServers": {"kit": entry(&log, ""), "off": entry(&log, "")}});
    world.dir.write(".omp/mcp.json", servers.to_string()).unwrap();
    let user = json!({"mcpServers": {}, "disabledServers": ["off"]});
    fs::write(world.dir.agent_dir().join("mcp.json"), user.to_string()).unwrap();
    for (dialect, trust, count) in [
        ("omp-now", "--approve", 2),
        ("omp-now", "--no-approve", 0),
        ("pi-delta", "--approve", 0),
    ] {
        let pi = world.start_with(&["--rpc-dialect", dialect, trust]);
        let servers = pi.get("get_mcp_servers")["servers"].clone();
        let servers = servers.as_array().unwrap();
        assert_eq!(servers.len(), count, "{dialect} {trust}");
        if let [kit, off] = &servers[..] {
            assert_eq!((&kit["name"], &off["name"]), (&json!("kit"), &json!("off")));
            assert_eq!(off["status"], "disabled");
        }
        pi.finish();
    }
}

#[test]
fn ten_megabyte_mcp_result_is_truncated_and_saved() {
    let world = World::new([call("c1", "huge", json!({})), Reply::text(["done"])]);
    configure(&world, &[("kit", "")]);
    let pi = world.start();
    let ends = ends(&pi.say("Go"));
    assert!(
        ends[0].0.len() < 21_000 && ends[0].0.contains("chars truncated…"),
        "{}",
        ends[0].0.len()
    );
    let place = ends[0]
        .0
        .rsplit("[Full text: ")
        .next()
        .unwrap()
        .trim_end_matches(']');
    assert_eq!(fs::metadata(place).unwrap().len(), 10 << 20);
    fs::remove_file(place).unwrap();
    pi.finish();
}

#[test]
fn mcp_elicitation_becomes_dialogs() {
    let world = World::new([call("c1", "ask", json!({})), Reply::text(["done"])]);
    configure(&world, &[("kit", "")]);
    let pi = world.start();
    pi.prompt("Go");
    let asked = pi.wait("extension_ui_request");
    assert_eq!(
        (&asked["method"], &asked["title"]),
        (
            &json!("input"),
            &json!("MCP server kit asks: Who are you?\nYour name")
        )
    );
    pi.agent
        .send(&json!({"type": "extension_ui_response", "id": asked["id"], "value": "Ann"}))
        .unwrap();
    let asked = pi.wait("extension_ui_request");
    assert_eq!(
        (&asked["method"], &asked["options"]),
        (&json!("select"), &json!(["Small", "Large"]))
    );
    pi.agent
        .send(&json!({"type": "extension_ui_response", "id": asked["id"], "value": "Large"}))
        .unwrap();
    pi.settled();
    let answered: Value = serde_json::from_str(&ends(&pi.lines())[0].0).unwrap();
    assert_eq!(
        answered,
        json!({"action": "accept", "content": {"name": "Ann", "size": "l"}})
    );
    pi.finish();
}

#[test]
fn mcp_prompts_become_slash_commands_resources_are_readable() {
    let world = World::new([
        Reply::tool("c1", "list_mcp_resources", json!({})),
        Reply::tool(
            "c2",
            "read_mcp_resource",
            json!({"server": "kit", "uri": "kit://a"}),
        ),
        Reply::text(["hello"]),
    ]);
    configure(&world, &[("kit", "")]);
    let pi = world.start();
    let commands = pi.get("get_commands")["commands"].clone();
    let command = commands
        .as_array()
        .unwrap()
        .iter()
        .find(|command| command["name"] == "mcp:kit:greet")
        .unwrap();
    assert_eq!(
        (&command["source"], &command["description"]),
        (&json!("prompt"), &json!("Greets"))
    );
    let error = pi.error(json!({"type": "prompt", "message": "/mcp:kit:greet"}));
    assert_eq!(error, "The prompt needs the argument who");
    let lines = pi.say("/mcp:kit:greet Ann");
    assert_eq!(text(&pi.messages()[0]), "Say hello to Ann.");
    let ends = ends(&lines);
    assert!(
        ends[0].0.contains("\"uri\": \"kit://a\"") && !ends[0].0.contains("icons"),
        "{ends:?}"
    );
    assert_eq!(ends[1], ("what a holds".to_owned(), false));
    // Queued messages have the text of the prompt, as with templates.
    pi.data(json!({"type": "steer", "message": "/mcp:kit:greet Bob"}));
    pi.data(json!({"type": "follow_up", "message": "/mcp:kit:greet Eve"}));
    assert_eq!(
        pi.get("clear_queue"),
        json!({"steering": ["Say hello to Bob."], "followUp": ["Say hello to Eve."]})
    );
    let error = pi.error(json!({"type": "follow_up", "message": "/mcp:kit:greet"}));
    assert_eq!(error, "The prompt needs the argument who");
    pi.finish();
}

#[test]
fn mcp_tools_added_later_are_available_next_turn() {
    let world = World::new([call("c1", "grow", json!({})), Reply::text(["done"])]);
    configure(&world, &[("kit", "")]);
    let pi = world.start();
    pi.say("Go");
    until("the new tool", || {
        let tools = pi.get("get_mcp_servers")["servers"][0]["tools"].clone();
        tools.as_array().unwrap().contains(&json!("mcp__kit__late"))
    });
    world.server.push(call("c2", "late", json!({})));
    world.server.push(Reply::text(["done"]));
    assert_eq!(ends(&pi.say("Go on")), [("called late".to_owned(), false)]);
    let all = requests(&world);
    assert!(!names(&all[0]).contains(&"mcp__kit__late".to_owned()));
    assert!(names(&all[2]).contains(&"mcp__kit__late".to_owned()));
    pi.finish();
}

#[test]
fn set_mcp_servers_configures_session_and_reports_status() {
    let world = World::new([
        call("c1", "echo", json!({"text": "hi"})),
        Reply::text(["done"]),
        Reply::text(["none"]),
    ]);
    let pi = world.start();
    let log = world.dir.root().join("kit.log");
    let set = |servers: Value| json!({"type": "set_mcp_servers", "mcpServers": servers});
    let error = pi.error(set(
        json!({"kit": entry(&log, ""), "odd": {"type": "sse", "url": "http://x"}}),
    ));
    assert!(error.starts_with("MCP server \"odd\": "), "{error}");
    assert_eq!(pi.get("get_mcp_servers"), json!({"servers": []}));
    let servers = pi.data(set(json!({"kit": entry(&log, "")})))["servers"].clone();
    assert_eq!(
        (&servers[0]["name"], &servers[0]["source"]),
        (&json!("kit"), &json!("session"))
    );
    let told = pi.agent.wait(
        |line| line["type"] == "mcp_servers_change" && line["servers"][0]["status"] == "connected",
        crate::kit::LONG,
    );
    assert_eq!(told.unwrap()["servers"][0]["title"], "kit 1.0");
    assert_eq!(ends(&pi.say("Go")), [("hi".to_owned(), false)]);
    // Another session file changes nothing about them.
    pi.get("new_session");
    assert_eq!(pi.get("get_mcp_servers")["servers"][0]["status"], "connected");
    assert_eq!(of_method(&log, "initialize").len(), 1);
    pi.data(json!({"type": "mcp_reconnect", "server": "kit"}));
    until("another connection", || of_method(&log, "initialize").len() == 2);
    assert_eq!(
        pi.error(json!({"type": "mcp_reconnect", "server": "x"})),
        "There is no MCP server \"x\""
    );
    pi.data(set(json!({})));
    pi.say("Go on");
    assert!(
        names(requests(&world).last().unwrap())
            .iter()
            .all(|name| !name.starts_with("mcp__"))
    );
    pi.finish();
}

#[test]
fn mcp_events_need_explicit_request() {
    let world = World::new([Reply::text(["ok"])]);
    configure(&world, &[("kit", ""), ("dead", "dead")]);
    let pi = world.start();
    pi.say("Go");
    assert!(of_type(&pi.lines(), "mcp_servers_change").is_empty());
    // It is started again and again.
    until("the reason", || {
        let servers = pi.get("get_mcp_servers")["servers"].clone();
        let mut servers = servers.as_array().unwrap().iter();
        let dead = servers.find(|server| server["name"] == "dead").unwrap();
        let why = dead["error"].as_str().unwrap_or_default();
        why.contains("code 3") && why.contains("no licence")
    });
    pi.finish();
}

#[test]
fn project_mcp_servers_start_only_when_trusted() {
    let project = |world: &World| {
        let log = world.dir.root().join("project.log");
        let text = json!({"mcpServers": {"kit": entry(&log, "")}}).to_string();
        fs::write(world.dir.cwd().join(".mcp.json"), text).unwrap();
        log
    };
    let world = World::new([Reply::text(["ok"])]);
    let log = project(&world);
    let pi = world.start();
    pi.say("Go");
    assert!(!log.exists());
    pi.finish();
    let world = World::new([call("c1", "echo", json!({"text": "hi"})), Reply::text(["ok"])]);
    let log = project(&world);
    let pi = world.start_with(&["--approve"]);
    assert_eq!(ends(&pi.say("Go")), [("hi".to_owned(), false)]);
    assert_eq!(pi.get("get_mcp_servers")["servers"][0]["source"], "project");
    assert!(log.exists());
    pi.finish();
}

#[test]
fn mcp_servers_run_outside_sandbox_and_ignore_placeholder() {
    let command = json!({"command": "echo '{}' > .mcp.json/a || echo closed"});
    let world = World::new([
        Reply::tool("c1", "bash", command),
        call("c2", "echo", json!({"text": "hi"})),
        Reply::text(["ok"]),
    ]);
    world.settings(json!({"sandbox": {"mode": "workspace-write"}}));
    configure(&world, &[("kit", "")]);
    let place = world.dir.cwd().join(".mcp.json");
    fs::create_dir(&place).unwrap();
    let pi = world.start_with(&["--approve"]);
    let lines = pi.say("Go");
    assert_eq!(ends(&lines)[1], ("hi".to_owned(), false), "{lines:?}");
    assert!(of_type(&pi.lines(), "notice").is_empty());
    pi.finish();
    assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
    let listed = || world.run(&["mcp", "list", "--json", "--approve"], "");
    let quiet = listed();
    assert!(
        quiet.out.contains("\"problems\":[]") && quiet.code == Some(0),
        "{}",
        quiet.out
    );
    // A directory with content is a mistake of the user.
    fs::write(place.join("a"), "").unwrap();
    assert!(listed().out.contains(".mcp.json: "));
}

#[test]
fn permission_rules_and_flags_apply_to_mcp() {
    let world = World::new([call("c1", "echo", json!({"text": "hi"})), Reply::text(["ok"])]);
    let log = &configure(&world, &[("kit", "")])["kit"];
    world.settings(json!({"permissions": {"deny": ["mcp__kit__*"]}}));
    let pi = world.start_with(&["--exclude-tools", "mcp__kit__huge"]);
    let ends = ends(&pi.say("Go"));
    assert!(ends[0].1 && of_method(log, "tools/call").is_empty(), "{ends:?}");
    assert!(!names(&requests(&world)[0]).contains(&"mcp__kit__huge".to_owned()));
    pi.finish();
    let world = World::new([Reply::text(["ok"])]);
    let log = &configure(&world, &[("kit", "")])["kit"];
    let pi = world.start_with(&["--no-mcp"]);
    pi.say("Go");
    assert!(!log.exists());
    pi.finish();
}

#[test]
fn silent_mcp_server_delays_prompt_ten_seconds() {
    let world = World::new([Reply::text(["ok"])]);
    configure(&world, &[("kit", "mute")]);
    let pi = world.start();
    let before = std::time::Instant::now();
    pi.say("Go");
    // Within a minute a server may still introduce itself.
    assert!(
        before.elapsed() < std::time::Duration::from_secs(50),
        "{:?}",
        before.elapsed()
    );
    pi.finish();
}

fn assert_aborted(response: &Value) {
    assert_eq!(response["success"], false, "{response}");
    assert_eq!(response["error"], "Operation aborted", "{response}");
}

#[test]
fn abort_refuses_prompts_that_wait_for_mcp_servers() {
    let world = World::new([Reply::text(["Fine."]).repeat()]);
    let log = &configure(&world, &[("kit", "gated")])["kit"];
    let pi = world.start();
    // The second one waits behind the first.
    let prompts = ["First", "Second"].map(|text| pi.send(json!({"type": "prompt", "message": text})));
    pi.data(json!({"type": "abort"}));
    for id in &prompts {
        assert_aborted(&pi.response(id));
    }
    open_gate(log);
    pi.say("Go on");
    assert_eq!(pi.roles(), ["user", "assistant"]);
    let sent = requests(&world);
    assert_eq!(sent.len(), 1, "{sent:?}");
    pi.finish();
}

#[test]
fn abort_and_prompt_replaces_prompt_waiting_for_mcp() {
    let world = World::new([Reply::text(["Fine."]).repeat()]);
    let log = &configure(&world, &[("kit", "gated")])["kit"];
    let pi = world.start();
    let first = pi.send(json!({"type": "prompt", "message": "First"}));
    let second = pi.send(json!({"type": "abort_and_prompt", "message": "Rather this"}));
    assert_aborted(&pi.response(&first));
    // Not held: its response says that the commands before it have been taken.
    pi.data(json!({"type": "set_limits", "limits": {}}));
    assert!(requests(&world).is_empty(), "the prompt waits for the server");
    open_gate(log);
    assert_eq!(pi.response(&second)["data"]["disposition"], "started");
    pi.settled();
    assert_eq!(text(&pi.messages()[0]), "Rather this");
    let sent = requests(&world);
    assert_eq!(sent.len(), 1, "{sent:?}");
    pi.finish();
}

#[test]
fn end_of_input_refuses_prompt_waiting_for_mcp() {
    let world = World::new([Reply::text(["Fine."]).repeat()]);
    configure(&world, &[("kit", "gated")]);
    let pi = world.start();
    let id = pi.send(json!({"type": "prompt", "message": "Go"}));
    pi.agent.close_stdin();
    assert_eq!(pi.agent.wait_exit(LONG).unwrap().code(), Some(0));
    pi.wait_ended();
    assert_aborted(&pi.response(&id));
    assert!(of_type(&pi.lines(), "agent_start").is_empty());
    assert!(requests(&world).is_empty());
}

#[test]
fn mcp_servers_are_configured_by_commands() {
    let world = World::new([]);
    let log = world.dir.root().join("kit.log");
    let kit = entry(&log, "");
    let variable = |name: &str| format!("{name}={}", kit["env"][name].as_str().unwrap());
    let mut args = vec!["mcp", "add", "kit"];
    let variables = [variable("MCP_KIT_LOG"), variable("MCP_KIT_HOW")];
    for variable in &variables {
        args.extend(["--env", variable]);
    }
    args.extend(["--", kit["command"].as_str().unwrap()]);
    args.extend(
        kit["args"]
            .as_array()
            .unwrap()
            .iter()
            .map(|arg| arg.as_str().unwrap()),
    );
    let added = world.run(&args, "");
    assert_eq!(added.code, Some(0), "{}", added.err);
    let listed = world.run(&["mcp", "list", "--json"], "");
    assert_eq!(listed.code, Some(0), "{}{}", listed.out, listed.err);
    let listed: Value = serde_json::from_str(&listed.out).unwrap();
    assert_eq!(
        (&listed["servers"][0]["status"], &listed["servers"][0]["title"]),
        (&json!("connected"), &json!("kit 1.0"))
    );
    let doctor = world.run(&["doctor", "--json"], "").out;
    let doctor: Value = serde_json::from_str(&doctor).unwrap();
    assert_eq!(doctor["tools"]["mcpServers"], json!(["kit"]));
    let odd = world.run(&["mcp", "add", "a b", "--url", "http://x"], "");
    assert_eq!(odd.code, Some(1));
    assert_eq!(world.run(&["mcp", "remove", "kit"], "").code, Some(0));
    assert_eq!(world.run(&["mcp", "remove", "kit"], "").code, Some(1));
    let text = fs::read_to_string(world.dir.agent_dir().join("mcp.json")).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&text).unwrap(),
        json!({"mcpServers": {}})
    );
}
