//! Hook executables: programs that get one event on their standard input. Nothing of this needs Node. How names, exits and
//! bounds are understood in detail is tested in the host crate.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};
use testkit::llm::{ErrorKind, Reply};

use crate::dialect_outputs::speaking;
use crate::kit::{LONG, Pi, World, answered_at, bash, of_type, text, until, write_program};
use crate::permissions::ends;

/// Writes an executable shell script into a folder below the user's `hooks`, the project's or wherever.
pub(crate) fn script(path: PathBuf, body: &str) -> PathBuf {
    write_program(&path, &format!("#!/bin/sh\n{body}\n"));
    path
}

pub(crate) fn hook(world: &World, name: &str, body: &str) -> PathBuf {
    script(world.dir.agent_dir().join("hooks").join(name), body)
}

/// Failures that were told: the hook's file name, the event, the words.
fn failures(pi: &Pi) -> Vec<(String, String, String)> {
    let lines = pi.lines();
    let member = |line: &Value, name: &str| line[name].as_str().unwrap().to_owned();
    of_type(&lines, "extension_error")
        .into_iter()
        .map(|line| {
            let path = PathBuf::from(member(line, "extensionPath"));
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, member(line, "event"), member(line, "error"))
        })
        .collect()
}

/// The JSON lines that hooks wrote into a file of the working directory. A hook may still be writing the last one.
fn written(world: &World, name: &str) -> Vec<Value> {
    let text = fs::read_to_string(world.dir.cwd().join(name)).unwrap_or_default();
    text.split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn hook_gates_block_and_chain_changes() {
    let world = World::new([
        bash("c1", "rm -rf /"),
        bash("c2", "echo swap"),
        Reply::text(["done"]),
    ]);
    hook(
        &world,
        "tool_call-1.sh",
        r#"read -r line; case "$line" in *swap*) echo '{"input": {"command": "echo other"}}';; esac"#,
    );
    hook(
        &world,
        "tool_call-2.sh",
        r#"read -r line; case "$line" in *"rm -rf"*) echo "not that" >&2; exit 2;; *swap*) exit 1;; esac"#,
    );
    let pi = world.start();
    pi.say("Go");
    assert_eq!(
        ends(&pi),
        [(true, "not that".to_owned()), (false, "other\n".to_owned())]
    );
    assert!(failures(&pi).is_empty(), "{:?}", failures(&pi));
    pi.finish();
}

#[test]
fn failing_or_slow_gate_hook_blocks_call() {
    let world = World::new([
        bash("c1", "echo one"),
        Reply::tool("c2", "read", json!({"path": "x"})),
        Reply::text(["done"]),
    ]);
    let gate = script(world.dir.agent_dir().join("gate.sh"), "sleep 30");
    world.settings(json!({"hooks": [
        {"event": "tool_call", "command": ["./gate.sh", "--strict"], "tools": ["bash"], "timeout": 200},
        {"event": "tool_call", "command": ["no-such-program-at-all"], "tools": ["read"]},
    ]}));
    let pi = world.start();
    pi.say("Go");
    let ends = ends(&pi);
    assert_eq!(
        ends[0],
        (
            true,
            format!("Hook {} failed: Hook timed out after 200ms", gate.display())
        )
    );
    assert!(
        ends[1].0 && ends[1].1.contains("could not be started"),
        "{ends:?}"
    );
    until("both failures", || failures(&pi).len() >= 2);
    let failures = failures(&pi);
    assert_eq!(failures.len(), 2, "{failures:?}");
    assert_eq!((&*failures[0].0, &*failures[0].1), ("gate.sh", "tool_call"));
    pi.finish();
    // In the words of the clients of that time.
    let world = World::new([bash("c1", "echo one"), Reply::text(["done"])]);
    hook(&world, "tool_call.sh", "echo broken >&2; exit 1");
    let pi = speaking(&world, "hooks");
    pi.say("Go");
    until("the failure", || !of_type(&pi.lines(), "hook_error").is_empty());
    let lines = pi.lines();
    let error = of_type(&lines, "hook_error")[0];
    assert!(error["hookPath"].as_str().unwrap().ends_with("tool_call.sh"));
    assert_eq!(
        (&error["event"], &error["error"]),
        (&json!("tool_call"), &json!("It exited with code 1: broken"))
    );
    pi.agent.close_stdin();
}

#[test]
fn hook_receives_session_details_but_no_keys() {
    let world = World::new([bash("c1", "echo hi"), Reply::text(["done"])]);
    hook(
        &world,
        "tool_result-look.sh",
        r#"cat > seen.json; env > env.txt; echo '{"content": [{"type": "text", "text": "patched"}], "details": {"n": 1}}'"#,
    );
    let config = world
        .config()
        .env("ANTHROPIC_API_KEY", "sk-secret-of-the-user")
        .env("HARMLESS", "yes");
    let pi = Pi::spawn(config);
    pi.data(json!({"type": "set_session_name", "name": "Gears"}));
    pi.say("Go");
    assert_eq!(ends(&pi), [(false, "patched".to_owned())]);
    let seen = &written(&world, "seen.json")[0];
    let event = &seen["event"];
    assert_eq!(
        (
            &event["type"],
            &event["toolName"],
            &event["input"]["command"],
            &event["isError"]
        ),
        (
            &json!("tool_result"),
            &json!("bash"),
            &json!("echo hi"),
            &json!(false)
        )
    );
    let state = pi.state();
    let session = &seen["session"];
    assert_eq!(
        (&session["id"], &session["file"]),
        (&state["sessionId"], &state["sessionFile"])
    );
    assert_eq!(
        (&session["name"], &session["model"]["id"]),
        (&json!("Gears"), &json!("claude-mock"))
    );
    assert_eq!(session["cwd"], json!(world.dir.cwd().canonicalize().unwrap()));
    assert_eq!(seen["agent"]["name"], "pinion");
    let env = fs::read_to_string(world.dir.cwd().join("env.txt")).unwrap();
    assert!(!env.contains("sk-secret-of-the-user"), "{env}");
    for line in [
        "HARMLESS=yes".to_owned(),
        "PI_HOOK_EVENT=tool_result".to_owned(),
        "PI_HOOK_TOOL=bash".to_owned(),
        format!("PI_SESSION_ID={}", state["sessionId"].as_str().unwrap()),
    ] {
        assert!(env.lines().any(|have| have == line), "{line}\n{env}");
    }
    pi.finish();
}

#[test]
fn notification_hooks_never_delay_and_finish_at_shutdown() {
    // Those of events during the run wait for its end.
    let waits = "while [ ! -e go ]; do sleep 0.02; done; ";
    let world = World::new([bash("c1", "echo hi"), Reply::text(["done"])]);
    for event in [
        "session_start",
        "agent_start",
        "turn_end",
        "tool_execution_end",
        "agent_end",
        "session_shutdown",
    ] {
        let body = format!(
            "{}cat >> {event}.log; echo 'no JSON at all'",
            if event == "session_shutdown" { "" } else { waits }
        );
        hook(&world, &format!("{event}.sh"), &body);
    }
    hook(&world, "turn_start.sh", "sleep 60");
    let pi = world.start();
    pi.say("Go");
    assert!(written(&world, "agent_end.log").is_empty());
    world.dir.write("go", "").unwrap();
    pi.finish();
    let events = |name: &str| written(&world, &format!("{name}.log"));
    assert_eq!(events("session_start")[0]["event"]["reason"], "startup");
    assert_eq!(events("turn_end").len(), 2);
    assert_eq!(events("turn_end")[1]["event"]["turnIndex"], 1);
    assert_eq!(events("tool_execution_end")[0]["event"]["toolName"], "bash");
    assert_eq!(events("agent_end").len(), 1);
    assert_eq!(events("session_shutdown")[0]["event"]["reason"], "quit");
}

#[test]
fn hooks_learn_of_retries_and_queued_messages() {
    let world = World::new([Reply::error(ErrorKind::Overloaded), Reply::text(["done"])]);
    world.settings(
        json!({"retry": {"baseDelayMs": 600_000, "maxAgentDelayMs": 600_000, "provider": {"maxRetries": 0}}}),
    );
    for event in ["auto_retry_start", "auto_retry_end", "queue_update"] {
        hook(&world, &format!("{event}.sh"), &format!("cat >> {event}.log"));
    }
    let pi = world.start();
    pi.prompt("Go");
    pi.wait("auto_retry_start");
    pi.data(json!({"type": "follow_up", "message": "later"}));
    pi.get("abort");
    // The end of the session waits for two seconds only.
    for name in ["auto_retry_start", "auto_retry_end", "queue_update"] {
        until(name, || !written(&world, &format!("{name}.log")).is_empty());
    }
    pi.finish();
    let event = |name: &str| written(&world, &format!("{name}.log"))[0]["event"].clone();
    assert_eq!(event("auto_retry_start")["attempt"], 1);
    assert_eq!(event("auto_retry_end")["success"], false);
    assert_eq!(event("queue_update")["followUp"], json!(["later"]));
}

#[test]
fn hooks_receive_events_of_clients_once() {
    let world = World::new([Reply::text(["done"])]);
    let told = [
        "entry_appended",
        "thinking_level_changed",
        "bash_execution_start",
        "bash_execution_end",
        "agent_settled",
    ];
    for event in told {
        hook(&world, &format!("{event}.sh"), &format!("cat >> {event}.log"));
    }
    let entry = json!({"type": "custom_message", "customType": "kit", "content": "noted", "display": true});
    let answer = json!({"entries": [entry]});
    hook(
        &world,
        "agent_before_settle.sh",
        &format!("cat > /dev/null; echo '{answer}'"),
    );
    let pi = speaking(&world, "pi-delta");
    pi.say("Go");
    pi.data(json!({"type": "set_thinking_level", "level": "high"}));
    pi.data(json!({"type": "bash", "command": "true"}));
    assert!(failures(&pi).is_empty(), "{:?}", failures(&pi));
    let events = |name: &str| {
        let written = written(&world, &format!("{name}.log")).into_iter();
        written.map(|line| line["event"].clone()).collect::<Vec<_>>()
    };
    let is_added = |event: &&Value| event["entry"]["customType"] == "kit";
    // The end of the session waits for two seconds only.
    until("the entry", || {
        events("entry_appended").iter().any(|event| is_added(&event))
    });
    for name in told.into_iter().skip(1) {
        until(name, || !events(name).is_empty());
    }
    pi.finish();
    assert_eq!(events("entry_appended").iter().filter(is_added).count(), 1);
    assert_eq!(events("thinking_level_changed")[0]["level"], "high");
    assert_eq!(events("bash_execution_start")[0]["command"], "true");
    for once in told.into_iter().skip(1) {
        assert_eq!(events(once).len(), 1, "{once}");
    }
}

#[test]
fn hooks_can_cancel_session_changes_and_commands() {
    let world = World::new([Reply::text(["a"])]);
    for event in [
        "session_before_switch",
        "session_before_fork",
        "session_before_tree",
        "user_bash",
    ] {
        hook(&world, &format!("{event}.sh"), "echo 'not now' >&2; exit 2");
    }
    let pi = world.start();
    pi.say("Hi");
    let id = pi.state()["sessionId"].clone();
    assert_eq!(pi.get("new_session")["cancelled"], true);
    assert_eq!(pi.get("clone")["cancelled"], true);
    let entry = pi.get("get_fork_messages")["messages"][0]["entryId"].clone();
    assert_eq!(
        pi.data(json!({"type": "fork", "entryId": entry}))["cancelled"],
        true
    );
    assert_eq!(
        pi.data(json!({"type": "navigate_tree", "targetId": entry}))["cancelled"],
        true
    );
    assert_eq!(pi.state()["sessionId"], id);
    let ran = pi.data(json!({"type": "bash", "command": "ls"}));
    assert_eq!((&ran["output"], &ran["exitCode"]), (&json!("not now"), &json!(2)));
    // The client gets the reason of the cancellation.
    let lines = pi.lines();
    let frames = of_type(&lines, "extension_ui_request");
    let notes: Vec<&str> = frames
        .iter()
        .filter_map(|frame| frame["message"].as_str())
        .collect();
    assert_eq!(notes, ["not now"; 4]);
    pi.finish();
}

#[test]
fn ended_command_never_runs_after_its_hook() {
    for ends in ["new_session", "abort_bash"] {
        let world = World::new([]);
        let wait = "touch asked; n=0; while [ ! -e go ] && [ $n -lt 3000 ]; do sleep 0.02; n=$((n+1)); done";
        hook(&world, "user_bash.sh", wait);
        let pi = world.start();
        let file = |name: &str| world.dir.cwd().join(name);
        let command = pi.send(json!({"type": "bash", "command": "touch ran"}));
        until("the hook", || file("asked").exists());
        let end = pi.send(json!({ "type": ends }));
        assert_eq!(pi.response(&end)["success"], true);
        // A hook that is still there would let the command run now.
        fs::write(file("go"), "").unwrap();
        let response = pi.response(&command);
        assert_eq!(response["error"], "Operation aborted", "{ends}: {response}");
        assert!(!file("ran").exists(), "{ends}");
        if ends == "abort_bash" {
            let lines = pi.lines();
            assert!(answered_at(&lines, &end) < answered_at(&lines, &command));
        }
        pi.finish();
    }
}

#[test]
fn hooks_change_input_and_requests() {
    let world = World::new([Reply::text(["a"])]);
    hook(
        &world,
        "input.sh",
        r#"read -r line; case "$line" in *mine*) exit 2;; *short*) echo '{"text": "a longer text"}';; esac"#,
    );
    hook(
        &world,
        "before_agent_start.sh",
        r#"echo '{"message": {"customType": "kit", "content": "a note", "display": true}, "systemPrompt": "You are a teapot."}'"#,
    );
    hook(
        &world,
        "context.py",
        "exec python3 -c 'import json, sys; messages = json.load(sys.stdin)[\"event\"][\"messages\"]; print(json.dumps({\"messages\": [m for m in messages if m[\"role\"] != \"custom\"]}))'",
    );
    hook(
        &world,
        "before_provider_request.sh",
        "exec python3 -c 'import json, sys; payload = json.load(sys.stdin)[\"event\"][\"payload\"]; payload[\"metadata\"] = {\"user_id\": \"hook\"}; print(json.dumps({\"payload\": payload}))'",
    );
    let pi = world.start();
    assert_eq!(
        pi.data(json!({"type": "prompt", "message": "mine"}))["disposition"],
        "handled"
    );
    pi.say("short");
    assert_eq!(pi.roles(), ["user", "custom", "assistant"]);
    let body = &world.server.requests()[0].body;
    let said = body.to_string();
    assert!(
        said.contains("a longer text") && said.contains("You are a teapot."),
        "{said}"
    );
    assert!(!said.contains("a note"), "{said}");
    assert_eq!(body["metadata"]["user_id"], "hook");
    assert!(failures(&pi).is_empty(), "{:?}", failures(&pi));
    pi.finish();
}

#[test]
fn unusable_hook_files_are_reported_with_reason() {
    let world = World::new([Reply::text(["a"])]);
    hook(&world, "message_update.sh", "exit 1");
    hook(&world, "guard.sh", "exit 1");
    let mute = hook(&world, "tool_call.txt", "exit 1");
    fs::write(&mute, "no first line that says who runs it").unwrap();
    fs::set_permissions(&mute, fs::Permissions::from_mode(0o644)).unwrap();
    let pi = world.start();
    until("all are named", || failures(&pi).len() == 3);
    let failures = failures(&pi);
    assert!(failures.iter().all(|(_, event, _)| event == "load"));
    let why = |name: &str| &failures.iter().find(|(file, ..)| file == name).unwrap().2;
    assert!(why("message_update.sh").contains("message_end"));
    assert!(why("guard.sh").contains("name of an event"));
    assert!(why("tool_call.txt").contains("not executable"));
    pi.say("Go");
    pi.finish();
}

#[test]
fn project_hooks_need_trust_and_run_after_users() {
    let world = World::new([]);
    world.server.set_default(Reply::text(["a"]));
    let project = world.dir.cwd().join(".pi");
    script(
        project.join("hooks/agent_start-p.sh"),
        "echo '\"project\"' >> order.log",
    );
    script(project.join("own.sh"), "echo '\"setting\"' >> order.log");
    let setting = json!({"hooks": [{"event": "agent_start", "command": ["./own.sh"]}]});
    fs::write(project.join("settings.json"), setting.to_string()).unwrap();
    let heard = |args: &[&str], count: usize| {
        let _no_matter = fs::remove_file(world.dir.cwd().join("order.log"));
        let pi = world.start_with(args);
        pi.say("Go");
        // The end of the session waits for two seconds only.
        until("the hooks", || written(&world, "order.log").len() >= count);
        pi.finish();
        let mut heard = written(&world, "order.log");
        heard.sort_by_key(Value::to_string);
        heard
    };
    assert!(heard(&[], 0).is_empty());
    assert_eq!(heard(&["--approve"], 2), ["project", "setting"]);
    let named = script(
        world.dir.root().join("agent_start.sh"),
        "echo '\"named\"' >> order.log",
    );
    let named = named.to_str().unwrap();
    assert_eq!(heard(&["--approve", "--no-hooks", "--hook", named], 1), ["named"]);
    assert!(heard(&["--approve", "--no-extensions"], 0).is_empty());
    // In order: what the user's does the project's sees, not the other way round.
    hook(
        &world,
        "input-u.sh",
        r#"read -r line; case "$line" in *project*) exit 9;; esac; echo '{"text": "of the user"}'"#,
    );
    script(
        project.join("hooks/input-a.sh"),
        r#"read -r line; case "$line" in *"of the user"*) echo '{"text": "of the project"}';; esac"#,
    );
    let pi = world.start_with(&["--approve"]);
    pi.say("Go");
    assert_eq!(text(&pi.messages()[0]), "of the project");
    assert!(failures(&pi).is_empty());
    pi.finish();
}

#[test]
fn abort_kills_running_hook() {
    let world = World::new([bash("c1", "echo hi"), Reply::text(["done"])]);
    hook(&world, "tool_call.sh", "echo $$ > pid; sleep 60");
    let pi = world.start();
    pi.prompt("Go");
    let pid = world.dir.cwd().join("pid");
    until("it runs", || {
        fs::read_to_string(&pid).is_ok_and(|pid| !pid.is_empty())
    });
    // The session answers meanwhile.
    assert_eq!(pi.state()["isStreaming"], true);
    pi.data(json!({"type": "abort"}));
    pi.settled();
    let pid = fs::read_to_string(pid).unwrap();
    let process = PathBuf::from(format!("/proc/{}", pid.trim()));
    until("it is gone", || !process.exists());
    pi.finish();
}

#[test]
fn sessions_of_one_process_run_separate_hooks() {
    let world = World::new([]);
    world.server.set_default(Reply::text(["a"]));
    hook(&world, "session_start.sh", "cat >> starts.log");
    hook(&world, "session_shutdown.sh", "cat >> ends.log");
    let pi = world.start();
    pi.say("Hi");
    pi.get("new_session");
    pi.data(json!({"type": "open_session", "session": "two"}));
    until("three began", || written(&world, "starts.log").len() == 3);
    pi.finish();
    let reasons = |file: &str| {
        let lines = written(&world, file);
        let mut reasons: Vec<String> = lines
            .iter()
            .map(|line| line["event"]["reason"].to_string())
            .collect();
        reasons.sort();
        reasons.join(" ")
    };
    assert_eq!(reasons("starts.log"), r#""new" "startup" "startup""#);
    assert_eq!(reasons("ends.log"), r#""new" "quit" "quit""#);
}

#[test]
fn end_hooks_run_when_client_disconnects() {
    let world = World::new([bash("c1", "sleep 60"), Reply::text(["done"])]);
    hook(&world, "agent_end.sh", "cat >> ends.log");
    hook(&world, "session_shutdown.sh", "cat >> ends.log");
    let pi = world.start();
    pi.prompt("Go");
    pi.wait("tool_execution_start");
    pi.agent.close_stdin();
    pi.agent.wait_exit(LONG).unwrap();
    let mut told: Vec<String> = written(&world, "ends.log")
        .iter()
        .map(|line| line["event"]["type"].to_string())
        .collect();
    told.sort();
    assert_eq!(told, [r#""agent_end""#, r#""session_shutdown""#]);
}

#[test]
fn concurrent_hook_checks_are_limited() {
    let calls = (0..12).map(|n| (format!("c{n}"), "bash", json!({"command": "true"})));
    let batch = calls.fold(Reply::new(), |reply, (id, name, args)| {
        reply.then_tool(&id, name, args)
    });
    let world = World::new([batch, Reply::text(["done"])]);
    hook(
        &world,
        "tool_call.sh",
        r#"mkdir -p running; touch running/$$; ls running | wc -l >> counts.log; sleep 0.05; rm running/$$"#,
    );
    let pi = world.start();
    pi.say("Go");
    assert_eq!(ends(&pi).iter().filter(|(is_error, _)| !is_error).count(), 12);
    let counts = written(&world, "counts.log");
    assert_eq!(counts.len(), 12);
    assert!(
        counts.iter().all(|count| count.as_u64().unwrap() <= 4),
        "{counts:?}"
    );
    pi.finish();
}

#[test]
fn hooks_run_after_extensions_and_never_replace_them() {
    if !crate::extensions::can_run() {
        return;
    }
    let world = World::new([
        bash("c1", "echo first"),
        bash("c2", "echo no"),
        bash("c3", "echo die"),
        Reply::text(["done"]),
    ]);
    let extension = world.dir.agent_dir().join("extensions/kit.ts");
    fs::create_dir_all(extension.parent().unwrap()).unwrap();
    let body = r#"export default (pi) => {
      pi.on("tool_call", async (event) => {
        if (event.input.command === "echo no") return { block: true, reason: "by the extension" };
        if (event.input.command === "echo die") { process.kill(process.pid, "SIGKILL"); await new Promise(() => {}); }
        event.input.command = "echo changed";
      });
      pi.on("tool_result", async (event) => ({ content: [{ type: "text", text: event.content[0].text.trim() + " patched" }] }));
    };"#;
    fs::write(&extension, body).unwrap();
    hook(
        &world,
        "tool_call.sh",
        r#"cat > seen; cat seen >> calls.log; ! grep -q changed seen || echo '{"input": {"command": "echo again"}}'"#,
    );
    hook(
        &world,
        "tool_result.sh",
        r#"! grep -q '"again patched"' || echo '{"content": [{"type": "text", "text": "twice"}]}'"#,
    );
    let pi = world.start();
    pi.say("Go");
    let ends = ends(&pi);
    assert_eq!(ends[0], (false, "twice".to_owned()));
    assert_eq!(ends[1], (true, "by the extension".to_owned()));
    assert!(ends[2].0 && ends[2].1.contains("gave no answer"), "{ends:?}");
    // Neither the blocked call nor the unchecked one reached the hook.
    let seen = written(&world, "calls.log");
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!(seen[0]["event"]["input"]["command"], "echo changed");
    pi.finish();
}
