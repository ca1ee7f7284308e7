//! Several sessions in one process: opened, talked to side by side, listed, closed.

use std::path::PathBuf;

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::check;
use crate::extensions::{can_run, extended};
use crate::kit::{LONG, Pi, World, bash, kinds, text};

/// A working directory next to the world's own.
fn directory(world: &World, name: &str) -> PathBuf {
    let dir = world.dir.cwd().join(name);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

fn open(pi: &Pi, more: Value) -> Value {
    let mut command = json!({"type": "open_session"});
    command
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    pi.data(command)
}

/// The lines of one session; those of the first have no name.
fn lines_of(pi: &Pi, session: Option<&str>) -> Vec<Value> {
    let mut lines = pi.lines();
    lines.retain(|line| line["session"].as_str() == session);
    lines
}

fn wait_settled(pi: &Pi, session: &str) {
    pi.agent
        .wait(
            |line| line["type"] == "agent_settled" && line["session"] == session,
            LONG,
        )
        .unwrap();
}

#[test]
fn concurrent_sessions_run_in_their_own_directories() {
    let world = World::new([]);
    let replies = [
        Reply::text(["slow "])
            .gate("slow")
            .then_text(["answer"])
            .when_contains("Slowly"),
        bash("c1", "pwd").when_contains("Where"),
        Reply::text(["there"]).when_contains("Where"),
    ];
    for reply in replies {
        world.server.push(reply);
    }
    let pi = world.start();
    let other = directory(&world, "other");
    let opened = open(&pi, json!({"cwd": other, "session": "side"}));
    assert_eq!(opened["session"], "side");
    assert_eq!(opened["cwd"], other.to_str().unwrap());
    pi.prompt("Slowly");
    pi.wait_update("text_delta");
    // The first session is in the middle of its answer; the other one answers whole.
    pi.data(json!({"type": "prompt", "session": "side", "message": "Where are you?"}));
    wait_settled(&pi, "side");
    assert_eq!(pi.state()["isStreaming"], true);
    world.server.release("slow");
    pi.agent
        .wait(
            |line| line["type"] == "agent_settled" && line.get("session").is_none(),
            LONG,
        )
        .unwrap();
    let side = pi.data(json!({"type": "get_messages", "session": "side"}))["messages"].clone();
    assert_eq!(
        text(&side[2]).trim(),
        other.to_str().unwrap(),
        "the tool ran there"
    );
    assert_eq!(text(pi.messages().last().unwrap()), "slow answer");
    let told = lines_of(&pi, Some("side"));
    assert_eq!(
        kinds(&told).iter().filter(|kind| **kind == "agent_start").count(),
        1
    );
    assert!(
        told.iter().any(|line| line["type"] == "response"),
        "its responses name it too"
    );
    let file = PathBuf::from(opened["sessionFile"].as_str().unwrap());
    assert_eq!(check::header(&file)["cwd"], other.to_str().unwrap());
    pi.finish();
}

#[test]
fn session_directory_settings_and_instructions_apply() {
    let world = World::new([Reply::text(["one"]), Reply::text(["two"])]);
    let pi = world.start();
    let other = directory(&world, "other");
    std::fs::write(other.join("AGENTS.md"), "OTHER-RULES").unwrap();
    open(&pi, json!({"cwd": other, "session": "side"}));
    pi.say("Here");
    pi.data(json!({"type": "prompt", "session": "side", "message": "There"}));
    wait_settled(&pi, "side");
    let asked: Vec<bool> = world
        .server
        .requests()
        .iter()
        .map(|request| request.body.to_string().contains("OTHER-RULES"))
        .collect();
    assert_eq!(asked, [false, true]);
    pi.finish();
}

#[test]
fn open_sessions_are_listed_and_closed() {
    let world = World::new([Reply::text(["half"]).gate("never")]);
    let pi = world.start();
    let first = open(&pi, json!({}))["session"].as_str().unwrap().to_owned();
    let second = open(&pi, json!({}))["session"].as_str().unwrap().to_owned();
    assert_ne!(first, second);
    pi.data(json!({"type": "set_session_name", "session": second, "name": "Second"}));
    let listed = pi.get("list_open_sessions")["sessions"].clone();
    assert_eq!(listed.as_array().unwrap().len(), 3);
    assert!(listed[0].get("session").is_none(), "the first one has no handle");
    assert_eq!(
        (&listed[2]["session"], &listed[2]["sessionName"]),
        (&json!(second), &json!("Second"))
    );
    // Closing ends the run properly first.
    pi.data(json!({"type": "prompt", "session": first, "message": "Go"}));
    pi.agent
        .wait(|line| line["assistantMessageEvent"]["type"] == "text_delta", LONG)
        .unwrap();
    pi.data(json!({"type": "close_session", "session": first}));
    let told = lines_of(&pi, Some(&first));
    assert_eq!(
        kinds(&told)[kinds(&told).len() - 4..],
        ["turn_end", "agent_end", "agent_settled", "response"]
    );
    assert_eq!(
        pi.error(json!({"type": "get_state", "session": first})),
        format!("No open session: {first}")
    );
    assert_eq!(
        pi.get("list_open_sessions")["sessions"].as_array().unwrap().len(),
        2
    );
    pi.finish();
}

#[test]
fn session_file_opens_once_and_handles_are_validated() {
    let world = World::new([Reply::text(["kept"])]);
    let pi = world.start();
    pi.say("Keep this");
    let file = pi.file();
    pi.finish();
    let pi = world.start();
    let opened = open(&pi, json!({"sessionPath": file, "session": "old"}));
    assert_eq!(opened["sessionFile"], file.to_str().unwrap());
    let messages = pi.data(json!({"type": "get_messages", "session": "old"}));
    assert_eq!(text(&messages["messages"][1]), "kept");
    let error = |more: Value| {
        let mut command = json!({"type": "open_session"});
        command
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        pi.error(command)
    };
    assert!(error(json!({"sessionPath": file})).contains("open in another process"));
    assert_eq!(error(json!({"session": "old"})), "Session is open already: old");
    assert_eq!(
        error(json!({"session": ""})),
        "A session handle has 1 to 64 bytes"
    );
    assert!(error(json!({"cwd": "/no/such/place"})).starts_with("No such directory"));
    assert_eq!(
        pi.error(json!({"type": "close_session"})),
        "The first session cannot be closed; it ends with the process"
    );
    assert_eq!(
        pi.error(json!({"type": "get_state", "session": 5})),
        "session must be a string"
    );
    pi.finish();
}

#[test]
fn end_of_input_ends_and_stores_all_sessions() {
    let world = World::new([
        Reply::text(["cut off"]).gate("never"),
        Reply::text(["cut off"]).gate("never"),
    ]);
    let pi = world.start();
    let opened = open(&pi, json!({"session": "side"}));
    pi.prompt("One");
    pi.wait_update("text_delta");
    pi.data(json!({"type": "prompt", "session": "side", "message": "Two"}));
    pi.agent
        .wait(
            |line| line["session"] == "side" && line["assistantMessageEvent"]["type"] == "text_delta",
            LONG,
        )
        .unwrap();
    let files = [pi.file(), PathBuf::from(opened["sessionFile"].as_str().unwrap())];
    pi.agent.close_stdin();
    assert_eq!(pi.agent.wait_exit(LONG).unwrap().code(), Some(0));
    for file in files {
        let said = check::messages(&file);
        assert_eq!(text(said.last().unwrap()), "cut off");
        assert_eq!(said.last().unwrap()["stopReason"], "aborted");
    }
}

#[test]
fn hundred_idle_sessions_use_little_memory() {
    let world = World::new([]);
    let pi = world.start();
    pi.state();
    // Not the pages of the program, which the first session brings in.
    let memory = || crate::kit::memory_kb(pi.agent.pid(), "RssAnon");
    // What else the process allocates meanwhile counts in one of the two halves only.
    let each = [(); 2].map(|()| {
        let before = memory();
        let ids: Vec<String> = (0..50)
            .map(|_| pi.send(json!({"type": "open_session"})))
            .collect();
        for id in ids {
            assert_eq!(pi.response(&id)["success"], true);
        }
        memory().saturating_sub(before) / 50
    });
    assert!(
        each.iter().any(|each| *each <= 200),
        "{each:?} kB for an idle session"
    );
    pi.finish();
}

#[test]
fn hello_sessions_limits_events_to_named_sessions() {
    let world = World::new([Reply::text(["aside"]), Reply::text(["here"])]);
    let pi = world.start();
    open(&pi, json!({"session": "side"}));
    let welcome = pi.data(json!({"type": "hello", "sessions": [""], "sequence": true}));
    assert_eq!(welcome["sessions"], json!([""]));
    pi.data(json!({"type": "prompt", "session": "side", "message": "There"}));
    // Its answers still come.
    crate::kit::until("the other session to finish", || {
        let state = pi.data(json!({"type": "get_state", "session": "side"}));
        state["isStreaming"] == false && state["messageCount"] == 2
    });
    pi.say("Here");
    let lines = pi.lines();
    let told = |line: &&Value| line["type"] != "response" && line["session"] == "side";
    assert_eq!(lines.iter().filter(told).count(), 0);
    let numbers: Vec<u64> = lines.iter().filter_map(|line| line["seq"].as_u64()).collect();
    assert!(
        numbers.windows(2).all(|pair| pair[1] == pair[0] + 1),
        "{numbers:?}"
    );
    assert!(pi.data(json!({"type": "hello", "sessions": 7}))["refused"][0]["option"] == "sessions");
    pi.finish();
}

#[test]
fn commands_pipelined_behind_open_session_keep_order() {
    let world = World::new([Reply::text(["at once"])]);
    let pi = world.start();
    let ids = [
        pi.send(json!({"type": "open_session", "session": "a"})),
        pi.send(json!({"type": "prompt", "session": "a", "message": "Hi"})),
        pi.send(json!({"type": "open_session", "session": "b", "cwd": "/no/such/place"})),
        pi.send(json!({"type": "get_state", "session": "b"})),
    ];
    let outcomes: Vec<bool> = ids.iter().map(|id| pi.response(id)["success"] == true).collect();
    assert_eq!(outcomes, [true, true, false, false]);
    wait_settled(&pi, "a");
    // A handle is free again as soon as its session is closed.
    pi.data(json!({"type": "close_session", "session": "a"}));
    assert_eq!(open(&pi, json!({"session": "a"}))["session"], "a");
    assert_eq!(
        pi.data(json!({"type": "get_state", "session": "a"}))["messageCount"],
        0
    );
    pi.finish();
}

#[test]
fn host_result_without_session_reaches_its_call() {
    let world = World::new([Reply::tool("c1", "echo", json!({})), Reply::text(["heard"])]);
    let pi = world.start();
    open(&pi, json!({"session": "side"}));
    let tools = json!([{"name": "echo", "description": "Echoes", "parameters": {"type": "object"}}]);
    pi.data(json!({"type": "set_host_tools", "session": "side", "tools": tools}));
    pi.data(json!({"type": "prompt", "session": "side", "message": "Go"}));
    let call = pi.wait("host_tool_call");
    assert_eq!(call["session"], "side");
    let content = json!([{"type": "text", "text": "an echo"}]);
    pi.agent
        .send(&json!({"type": "host_tool_result", "id": call["id"], "result": {"content": content}}))
        .unwrap();
    wait_settled(&pi, "side");
    let messages = pi.data(json!({"type": "get_messages", "session": "side"}));
    assert_eq!(text(&messages["messages"][2]), "an echo");
    pi.finish();
}

#[test]
fn hello_keeps_detected_dialect() {
    let world = World::new([]);
    let pi = world.start();
    pi.get("get_branch_messages");
    assert_eq!(pi.get("get_protocol")["dialect"], "omp");
    let welcome = pi.data(json!({"type": "hello", "sequence": true}));
    assert_eq!(welcome["dialect"], "omp");
    assert_eq!(pi.get("get_protocol")["dialect"], "omp");
    pi.finish();
}

#[test]
fn refused_dialect_keeps_detection() {
    let world = World::new([]);
    let pi = world.start();
    // Found out, not chosen: ids of unknown commands are kept.
    pi.data(json!({"type": "set_todos", "phases": []}));
    assert_eq!(pi.get("get_protocol")["dialect"], "xcsh");
    let welcome = pi.data(json!({"type": "hello", "dialect": "klingon", "deltas": "maybe"}));
    assert_eq!(welcome["dialect"], "xcsh");
    assert_eq!(welcome["refused"].as_array().unwrap().len(), 2);
    let id = pi.send(json!({"type": "no_such_command"}));
    pi.agent
        .wait(|line| line["id"] == id.as_str() && line["success"] == false, LONG)
        .unwrap();
    pi.finish();
}

#[test]
fn open_session_copies_or_opens_never_both() {
    let world = World::new([Reply::text(["One"])]);
    let pi = world.start();
    pi.say("First");
    let file = pi.file();
    let opened = pi.data(json!({"type": "open_session", "forkPath": file}));
    let messages = pi.data(json!({"type": "get_messages", "session": opened["session"]}));
    assert_eq!(messages["messages"].as_array().unwrap().len(), 2, "{messages}");
    assert_ne!(opened["sessionFile"], json!(file));
    let both = json!({"type": "open_session", "sessionPath": file, "forkPath": file});
    assert_eq!(pi.error(both), "sessionPath and forkPath exclude each other");
    pi.finish();
}

#[test]
fn abort_before_close_is_answered_although_tool_hangs() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::tool("c1", "hang", json!({}))],
        r#"
        pi.registerTool({ name: "hang", label: "Hang", description: "Hangs", parameters: { type: "object", properties: {} },
          execute: () => new Promise(() => {}) });
        "#,
    );
    let pi = world.start();
    open(&pi, json!({"session": "side"}));
    pi.data(json!({"type": "prompt", "session": "side", "message": "Go"}));
    pi.agent
        .wait(
            |line| line["type"] == "tool_execution_start" && line["session"] == "side",
            LONG,
        )
        .unwrap();
    let sent = ["abort", "close_session"].map(|command| pi.send(json!({"type": command, "session": "side"})));
    for id in &sent {
        assert_eq!(pi.response(id)["success"], true);
    }
    // The run of the closed session was cut off, which `finish` does not expect.
    pi.agent.close_stdin();
    assert_eq!(pi.agent.wait_exit(LONG).unwrap().code(), Some(0));
}
