//! Which tool calls may run: modes, rules, questions to the user (issue 6, "Permissions"). What rules mean in detail is tested
//! in the host crate, how questions end in `dialogs`.

use std::fs;

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::kit::{LONG, Pi, World, bash, kinds, of_type, text};

/// A world with `permissions` in the user's settings, whose model makes one call after another and then stops.
pub(crate) fn world(permissions: Value, calls: impl IntoIterator<Item = Reply>) -> World {
    let world = World::new(calls.into_iter().chain([Reply::text(["done"])]));
    world.settings(json!({ "permissions": permissions }));
    world
}

/// The next question, which must be a choice between the three.
pub(crate) fn question(pi: &Pi) -> Value {
    let frame = pi.wait("extension_ui_request");
    assert_eq!(frame["method"], "select", "{frame}");
    assert_eq!(
        frame["options"],
        json!(["Allow once", "Allow for this session", "Deny"])
    );
    frame
}

pub(crate) fn choose(pi: &Pi, question: &Value, value: &str) {
    let answer = json!({"type": "extension_ui_response", "id": question["id"], "value": value});
    pi.agent.send(&answer).unwrap();
}

/// How the calls ended: error or not, and the text.
pub(crate) fn ends(pi: &Pi) -> Vec<(bool, String)> {
    let lines = pi.lines();
    of_type(&lines, "tool_execution_end")
        .into_iter()
        .map(|end| (end["isError"].as_bool().unwrap(), text(&end["result"])))
        .collect()
}

fn refused(pi: &Pi) -> bool {
    let ends = ends(pi);
    let (is_error, said) = ends.last().unwrap();
    assert_eq!(*is_error, said.starts_with("Permission denied: "), "{said}");
    *is_error
}

fn questions(pi: &Pi) -> usize {
    of_type(&pi.lines(), "extension_ui_request").len()
}

fn write(id: &str, path: &str) -> Reply {
    Reply::tool(id, "write", json!({"path": path, "content": "x"}))
}

fn project(world: &World, settings: Value) {
    let dir = world.dir.cwd().join(".pi");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("settings.json"), settings.to_string()).unwrap();
}

#[test]
fn permission_mode_off_is_default() {
    let world = world(json!({"mode": "off", "deny": ["bash"]}), [bash("c1", "echo hi")]);
    let pi = world.start();
    assert!(pi.state().get("permissionMode").is_none());
    pi.say("Go");
    assert_eq!(ends(&pi), [(false, "hi\n".to_owned())]);
    assert_eq!(questions(&pi), 0);
    pi.finish();
}

#[test]
fn denied_call_has_same_events_as_blocked_call() {
    let world = world(
        json!({"deny": ["bash(rm *)"]}),
        [bash("c1", "ls && rm -rf important")],
    );
    let pi = world.start();
    assert_eq!(pi.state()["permissionMode"], "auto");
    let lines = pi.say("Go");
    let end = of_type(&lines, "tool_execution_end")[0];
    let said = "Permission denied: the rule bash(rm *) forbids this call. Do not try to get around it.";
    assert_eq!(end["result"]["content"], json!([{"type": "text", "text": said}]));
    assert_eq!(end["isError"], true);
    assert!(end.get("durationMs").is_none());
    let expected = [
        "response",
        "agent_start",
        "turn_start",
        "message_start",
        "message_end",
        "message_start",
        "message_end",
        "tool_execution_start",
        "tool_execution_end",
        "message_start",
        "message_end",
        "turn_end",
    ];
    assert_eq!(kinds(&lines)[..expected.len()], expected);
    let result = &pi.messages()[2];
    assert_eq!(
        (&result["role"], &result["isError"]),
        (&json!("toolResult"), &json!(true))
    );
    pi.finish();
}

#[test]
fn permission_dialog_allows_once_for_session_or_denies() {
    let calls = (0..5).map(|n| bash(&format!("c{n}"), "echo hi"));
    let world = world(json!({"mode": "ask"}), calls);
    let pi = world.start();
    pi.prompt("Go");
    let first = question(&pi);
    assert_eq!(first["title"], "Allow bash?\necho hi");
    assert_eq!(first["timeout"], 300_000);
    choose(&pi, &first, "Deny");
    choose(&pi, &question(&pi), "Allow once");
    choose(&pi, &question(&pi), "What?");
    choose(&pi, &question(&pi), "Allow for this session");
    pi.settled();
    let ends = ends(&pi);
    let denied = "Permission denied: the user does not allow this call.";
    assert_eq!(ends[0], (true, denied.to_owned()));
    assert_eq!(ends[1], (false, "hi\n".to_owned()));
    assert_eq!(ends[2], (true, denied.to_owned()));
    assert_eq!(
        ends[3..],
        [(false, "hi\n".to_owned()), (false, "hi\n".to_owned())]
    );
    assert_eq!(questions(&pi), 4);
    pi.finish();
}

#[test]
fn session_grant_ends_with_session() {
    let world = World::new([
        bash("c1", "echo hi"),
        Reply::text(["done"]),
        bash("c2", "echo hi"),
        Reply::text(["done"]),
    ]);
    let pi = world.start_with(&["--permission-mode", "ask"]);
    for _ in 0..2 {
        pi.prompt("Go");
        choose(&pi, &question(&pi), "Allow for this session");
        pi.settled();
        assert_eq!(ends(&pi).last(), Some(&(false, "hi\n".to_owned())));
        pi.get("new_session");
    }
    assert_eq!(questions(&pi), 2, "one for each session");
    pi.finish();
}

#[test]
fn parallel_calls_ask_for_permission_sequentially() {
    let call = bash("c1", "echo one").then_tool("c2", "bash", json!({"command": "echo two"}));
    let world = world(json!({"mode": "ask", "allow": ["read"]}), [call]);
    let pi = world.start();
    pi.prompt("Go");
    let first = question(&pi);
    assert_eq!(questions(&pi), 1);
    choose(&pi, &first, "Deny");
    let second = question(&pi);
    assert_eq!(second["title"], "Allow bash?\necho two");
    choose(&pi, &second, "Allow once");
    pi.settled();
    let said: Vec<bool> = ends(&pi).into_iter().map(|(is_error, _)| is_error).collect();
    assert_eq!(said, [true, false]);
    pi.finish();
}

#[test]
fn reading_tools_and_allowed_calls_need_no_dialog() {
    let calls = [
        Reply::tool("c1", "ls", json!({})),
        Reply::tool("c2", "read", json!({"path": "a.txt"})),
        bash("c3", "cat a.txt | wc -l"),
        write("c4", "out/new.txt"),
    ];
    let allow = ["bash(cat *)", "bash(wc *)", "write(out/**)"];
    let world = world(json!({"mode": "ask", "allow": allow}), calls);
    fs::write(world.dir.cwd().join("a.txt"), "a\n").unwrap();
    let pi = world.start_with(&["--tools", "ls,read,bash,write"]);
    pi.say("Go");
    assert!(ends(&pi).iter().all(|(is_error, _)| !is_error), "{:?}", ends(&pi));
    assert_eq!(questions(&pi), 0);
    assert!(world.dir.cwd().join("out/new.txt").exists());
    pi.finish();
}

#[test]
fn links_and_dots_do_not_bypass_permissions() {
    let calls = [
        write("c1", "out/../secret.txt"),
        write("c2", "out/link/stolen.txt"),
        Reply::tool("c3", "read", json!({"path": "out/door"})),
        write("c4", "out/fine.txt"),
    ];
    let world = world(
        json!({"mode": "ask", "allow": ["write(out/**)"], "deny": ["read(secret.txt)"]}),
        calls,
    );
    let cwd = world.dir.cwd().to_path_buf();
    fs::create_dir_all(cwd.join("out")).unwrap();
    fs::create_dir_all(cwd.join("elsewhere")).unwrap();
    fs::write(cwd.join("secret.txt"), "secret").unwrap();
    std::os::unix::fs::symlink("../elsewhere", cwd.join("out/link")).unwrap();
    std::os::unix::fs::symlink("../secret.txt", cwd.join("out/door")).unwrap();
    let pi = world.start();
    pi.prompt("Go");
    choose(&pi, &question(&pi), "Deny");
    let second = question(&pi);
    let title = second["title"].as_str().unwrap();
    assert!(title.contains("out/link/stolen.txt (which is "), "{title}");
    assert!(
        title.contains("elsewhere/stolen.txt)\nCreates the file: 1 line, 1 byte\n"),
        "{title}"
    );
    choose(&pi, &second, "Deny");
    pi.settled();
    let said: Vec<bool> = ends(&pi).into_iter().map(|(is_error, _)| is_error).collect();
    assert_eq!(said, [true, true, true, false]);
    assert_eq!(fs::read_to_string(cwd.join("secret.txt")).unwrap(), "secret");
    assert!(!cwd.join("elsewhere/stolen.txt").exists());
    assert_eq!(questions(&pi), 2);
    pi.finish();
}

#[test]
fn read_only_mode_refuses_writes_and_other_commands() {
    let calls = [
        write("c1", "a"),
        bash("c2", "touch b"),
        bash("c3", "cat c; touch d"),
        bash("c4", "cat c"),
        Reply::tool("c5", "read", json!({"path": "c"})),
    ];
    let world = world(
        json!({"mode": "read-only", "allow": ["bash(cat *)", "write"]}),
        calls,
    );
    fs::write(world.dir.cwd().join("c"), "see").unwrap();
    let pi = world.start();
    pi.say("Go");
    let ends = ends(&pi);
    assert!(
        ends[0]
            .1
            .starts_with("Permission denied: this session is read-only, write may")
    );
    assert!(
        ends[1]
            .1
            .starts_with("Permission denied: this session is read-only, and only")
    );
    let errors: Vec<bool> = ends.iter().map(|(is_error, _)| *is_error).collect();
    assert_eq!(errors, [true, true, true, false, false]);
    for name in ["a", "b", "d"] {
        assert!(!world.dir.cwd().join(name).exists(), "{name}");
    }
    assert_eq!(questions(&pi), 0);
    pi.finish();
}

#[test]
fn project_rules_forbid_but_never_allow() {
    for approval in [&[][..], &["--approve"]] {
        let world = world(
            json!({"mode": "ask"}),
            [bash("c1", "echo hi"), bash("c2", "curl x")],
        );
        project(
            &world,
            json!({"permissions": {"mode": "off", "allow": ["bash"], "deny": ["bash(curl *)"]}}),
        );
        let pi = world.start_with(approval);
        assert_eq!(pi.state()["permissionMode"], "ask");
        pi.prompt("Go");
        choose(&pi, &question(&pi), "Allow once");
        pi.settled();
        assert!(refused(&pi), "{approval:?}");
        assert_eq!(questions(&pi), 1);
        pi.warns("a project allows nothing by itself");
        pi.finish();
    }
    let world = world(json!({}), [write("c1", "a")]);
    project(&world, json!({"permissions": {"mode": "read-only"}}));
    let pi = world.start_with(&["--permission-mode", "auto", "--approve"]);
    assert_eq!(pi.state()["permissionMode"], "read-only");
    let loosened = pi.data(json!({"type": "set_permission_mode", "mode": "off"}));
    assert_eq!(loosened["permissionMode"], "read-only");
    pi.say("Go");
    assert!(refused(&pi));
    pi.finish();
}

#[test]
fn permission_mode_is_set_by_flag_and_command() {
    let world = world(json!({"mode": "ask"}), [write("c1", "a"), write("c2", "b")]);
    let done = world.run(&["--permission-mode", "readonly", "-p", "x"], "");
    assert_eq!(done.code, Some(2));
    assert!(done.err.contains("off, auto, ask or read-only"), "{}", done.err);
    let pi = world.start_with(&["--permission-mode", "off"]);
    assert!(pi.state().get("permissionMode").is_none());
    let error = pi.error(json!({"type": "set_permission_mode", "mode": "yolo"}));
    assert!(
        error.starts_with("Invalid set_permission_mode command: "),
        "{error}"
    );
    let set = pi.data(json!({"type": "set_permission_mode", "mode": "read-only"}));
    assert_eq!(set, json!({"permissionMode": "read-only"}));
    // It is the client's choice and stays.
    pi.get("new_session");
    assert_eq!(pi.state()["permissionMode"], "read-only");
    pi.say("Go");
    assert!(refused(&pi));
    let capabilities = &pi.get("get_protocol")["capabilities"];
    assert!(capabilities.as_array().unwrap().contains(&json!("permissions")));
    pi.finish();
}

#[test]
fn unknown_permission_mode_is_taken_as_ask() {
    let world = world(json!({"mode": "readonly"}), []);
    let pi = world.start();
    assert_eq!(pi.state()["permissionMode"], "ask");
    pi.warns("should be off, auto, ask or read-only; taken as ask");
    pi.finish();
}

#[test]
fn host_tools_need_permission_user_commands_do_not() {
    let call = Reply::tool("c1", "lookup", json!({}));
    let world = world(json!({"mode": "ask", "deny": ["bash"]}), [call]);
    let pi = world.start();
    let tool = json!({"name": "lookup", "description": "d", "parameters": {"type": "object"}});
    pi.data(json!({"type": "set_host_tools", "tools": [tool]}));
    assert_eq!(
        pi.data(json!({"type": "bash", "command": "echo mine"}))["output"],
        "mine\n"
    );
    pi.prompt("Go");
    let asked = question(&pi);
    assert_eq!(asked["title"], "Allow lookup?\nTool of the client\nNo arguments");
    assert!(of_type(&pi.lines(), "host_tool_call").is_empty());
    choose(&pi, &asked, "Allow once");
    let called = pi.wait("host_tool_call");
    let result = json!({"content": [{"type": "text", "text": "found"}]});
    let frame = json!({"type": "host_tool_result", "id": called["id"], "result": result});
    pi.agent.send(&frame).unwrap();
    pi.settled();
    assert_eq!(ends(&pi), [(false, "found".to_owned())]);
    pi.finish();
}

#[test]
fn abort_cancels_permission_dialog() {
    let calls = bash("c1", "touch a").then_tool("c2", "bash", json!({"command": "touch b"}));
    let world = world(json!({"mode": "ask"}), [calls]);
    let pi = world.start();
    pi.prompt("Go");
    let asked = question(&pi);
    pi.get("abort");
    // Too late.
    choose(&pi, &asked, "Allow once");
    assert_eq!(pi.state()["isStreaming"], false);
    let aborted = (true, "Operation aborted".to_owned());
    assert_eq!(ends(&pi), [aborted.clone(), aborted]);
    assert!(!world.dir.cwd().join("a").exists() && !world.dir.cwd().join("b").exists());
    // A client of pi has no frame for that.
    assert_eq!(questions(&pi), 1);
    pi.finish();
}

#[test]
fn permission_dialog_without_client_denies() {
    for mode in [&["-p"][..], &["--mode", "json", "-p"]] {
        let world = world(json!({"mode": "ask"}), [bash("c1", "touch a")]);
        let model = ["--provider", "mock-anthropic", "--model", "claude-mock"];
        let done = world.run(&[&model[..], mode, &["Go"]].concat(), "");
        assert_eq!(done.code, Some(0), "{}", done.err);
        assert!(!done.out.contains("extension_ui_request"), "{}", done.out);
        assert!(!world.dir.cwd().join("a").exists());
        let told = world.server.requests()[1].body.to_string();
        let said = "the user has to allow this call, but no client can show the question.";
        assert!(told.contains(said), "{told}");
    }
}

#[test]
fn permission_mode_auto_is_invisible_to_old_clients() {
    let world = world(json!({"mode": "auto"}), [bash("c1", "echo hi")]);
    let pi = world.start();
    pi.agent.wait_type("ready", LONG).unwrap();
    pi.say("Go");
    assert_eq!(ends(&pi), [(false, "hi\n".to_owned())]);
    pi.finish();
}

#[test]
fn system_prompt_states_permission_limits() {
    let world = World::new([Reply::text(["one"]), Reply::text(["two"]), Reply::text(["three"])]);
    world.settings(json!({
        "permissions": {"mode": "auto", "deny": ["bash(curl *)"]},
        "bashTimeoutMs": 90_000
    }));
    let pi = world.start();
    let system = |number: usize| world.server.requests()[number].body["system"].to_string();
    pi.say("Go");
    let first = system(0);
    assert!(first.contains("rules deny calls: bash(curl *)."), "{first}");
    assert!(first.contains("is stopped after 90 seconds"), "{first}");
    pi.data(json!({"type": "set_permission_mode", "mode": "read-only"}));
    pi.say("Go");
    assert!(system(1).contains("This session is read-only"), "{}", system(1));
    pi.data(json!({"type": "set_permission_mode", "mode": "auto"}));
    pi.say("Go");
    assert_eq!(system(2), first);
    pi.finish();
}
