//! Sessions that an extension opens in addition to its own (`createAgentSession`), and the example that does so.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::extensions::{can_run, extended};
use crate::kit::{LONG, Pi, World, of_type, text, until};

/// A world that has the example among the user's extensions.
fn with_example(replies: impl IntoIterator<Item = Reply>) -> World {
    let world = World::new(replies);
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/extensions/sub-agent.ts");
    let dir = world.dir.agent_dir().join("extensions");
    fs::create_dir_all(&dir).unwrap();
    fs::copy(example, dir.join("sub-agent.ts")).unwrap();
    world
}

fn tool_names(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// The result of the first call of a conversation.
fn result(pi: &Pi) -> Value {
    let messages = pi.messages();
    let result = messages.iter().find(|message| message["role"] == "toolResult");
    result.unwrap().clone()
}

#[test]
fn sub_agent_example_runs_task_in_second_session() {
    if !can_run() {
        return;
    }
    let world = with_example([
        Reply::tool("c1", "sub_agent", json!({"task": "Read the note"})),
        Reply::tool("n1", "read", json!({"path": "note.txt"})),
        Reply::text(["It says hello."]),
        Reply::text(["done"]),
    ]);
    world.dir.write("note.txt", "hello").unwrap();
    let pi = world.start();
    let lines = pi.say("Go");
    assert_eq!(text(&result(&pi)), "It says hello.");
    // Only the extension sees the work of the other session.
    assert_eq!(pi.roles(), ["user", "assistant", "toolResult", "assistant"]);
    assert_eq!(of_type(&lines, "agent_start").len(), 1);
    assert_eq!(of_type(&lines, "tool_execution_start").len(), 1);
    let updates = of_type(&lines, "tool_execution_update");
    let shown: Vec<String> = updates.iter().map(|line| text(&line["partialResult"])).collect();
    assert!(
        shown
            .iter()
            .any(|text| text.contains(r#"read {"path":"note.txt"}"#)),
        "{shown:?}"
    );
    let requests = world.server.requests();
    assert_eq!(tool_names(&requests[1].body), ["read", "grep", "find", "ls"]);
    let sent = requests[1].body.to_string();
    assert!(
        sent.contains("You carry out one task on your own") && !sent.contains("\"Go\""),
        "{sent}"
    );
    assert!(requests[2].body.to_string().contains("hello"));
    assert_eq!(world.session_files().len(), 1);
    pi.finish();
}

#[test]
fn abort_ends_session_and_sub_agent() {
    if !can_run() {
        return;
    }
    let world = with_example([
        Reply::tool("c1", "sub_agent", json!({"task": "Think"})),
        Reply::text(["thinking"]).gate("hold").then_text([" more"]),
        Reply::text(["next"]),
    ]);
    let pi = world.start();
    pi.prompt("Go");
    world.server.wait_gate("hold", LONG).unwrap();
    pi.data(json!({"type": "abort"}));
    pi.settled();
    assert_eq!(result(&pi)["isError"], true);
    // The request of the other session was given up.
    until("both requests are over", || {
        world.server.wait_ended(2, LONG).is_ok()
    });
    world.server.release("hold");
    pi.say("Still there?");
    assert_eq!(pi.roles().last().unwrap(), "assistant");
    pi.finish();
}

#[test]
fn sub_session_shares_tools_events_and_owner_lifetime() {
    if !can_run() {
        return;
    }
    let world = extended(
        [
            Reply::tool("t1", "secret", json!({"n": 2})),
            Reply::text(["the ", "end"]),
            Reply::text(["again"]),
            Reply::text(["held"]).gate("hold"),
        ],
        r#"
        const { createAgentSession, SessionManager } = require("@mariozechner/pi-coding-agent");
        let session;
        pi.registerCommand("open", { handler: async (args, ctx) => {
          const note = (what) => ctx.ui.notify(JSON.stringify(what));
          const tool = { name: "secret", label: "S", description: "Doubles", parameters: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
            execute: async (id, params, signal, onUpdate, toolCtx) => ({ content: [{ type: "text", text: id + " " + params.n * 2 + " " + (toolCtx.cwd === ctx.cwd) }] }) };
          ({ session } = await createAgentSession({ sessionManager: SessionManager.inMemory(), noTools: "builtin", customTools: [tool], thinkingLevel: "off" }));
          const seen = [];
          session.subscribe((event) => { if (seen.at(-1) !== event.type) seen.push(event.type); });
          await session.prompt("Use it");
          note(seen);
          note([session.getLastAssistantText(), session.messages.map((m) => m.role), session.model.id === ctx.model.id, session.isStreaming, session.sessionFile ?? null]);
          await session.prompt("More");
          note(session.messages.length);
          try { await session.setModel({ provider: "no", id: "no" }); } catch (error) { note(error.message); }
          await ctx.waitForIdle();
        } });
        pi.registerCommand("hang", { handler: async (args, ctx) => {
          session.prompt("Hold").then(() => ctx.ui.notify("over"), (error) => ctx.ui.notify(error.message));
        } });
        pi.registerCommand("many", { handler: async (args, ctx) => {
          let made = 0;
          try { for (;;) { await createAgentSession({ sessionManager: SessionManager.inMemory() }); made += 1; } } catch (error) { ctx.ui.notify(made + " " + error.message); }
        } });
        "#,
    );
    let pi = world.start();
    let before = pi.lines().len();
    pi.data(json!({"type": "prompt", "message": "/open"}));
    let notes = notes(&pi, before);
    let seen: Vec<String> = serde_json::from_str(&notes[0]).unwrap();
    assert_eq!(
        (seen.first().unwrap().as_str(), seen.last().unwrap().as_str()),
        ("agent_start", "agent_settled")
    );
    assert!(seen.contains(&"message_update".to_owned()) && seen.contains(&"tool_execution_end".to_owned()));
    assert!(!seen.contains(&"host_tool_call".to_owned()), "{seen:?}");
    assert_eq!(
        notes[1],
        r#"["the end",["user","assistant","toolResult","assistant"],true,false,null]"#
    );
    assert_eq!(notes[2], "6");
    assert!(
        notes[3].contains("no/no") || notes[3].contains("not found"),
        "{}",
        notes[3]
    );
    let requests = world.server.requests();
    assert_eq!(tool_names(&requests[0].body), ["secret"]);
    assert!(requests[1].body.to_string().contains("t1 4 true"));
    // The owner's own conversation is untouched.
    assert_eq!((pi.messages().len(), world.session_files().len()), (0, 0));
    pi.data(json!({"type": "prompt", "message": "/hang"}));
    world.server.wait_gate("hold", LONG).unwrap();
    pi.data(json!({"type": "new_session"}));
    world.server.wait_ended(4, LONG).unwrap();
    let before = pi.lines().len();
    pi.data(json!({"type": "prompt", "message": "/many"}));
    let told = self::notes(&pi, before);
    // The command before it may report only now that its session has ended.
    assert!(
        told.iter()
            .any(|note| note.starts_with("16 An extension's session may have 16")),
        "{told:?}"
    );
    pi.finish();
}

fn notes(pi: &Pi, before: usize) -> Vec<String> {
    let lines = pi.lines();
    let frames = of_type(&lines[before..], "extension_ui_request").into_iter();
    let notes = frames.filter(|frame| frame["method"] == "notify");
    notes
        .map(|note| note["message"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn sub_session_has_no_more_rights_than_owner() {
    if !can_run() {
        return;
    }
    let world = with_example([
        Reply::tool("c1", "sub_agent", json!({"task": "Write", "write": true})),
        Reply::tool("n1", "write", json!({"path": "new.txt", "content": "x"})),
        Reply::text(["could not"]),
        Reply::text(["done"]),
    ]);
    let pi = world.start_with(&["--permission-mode", "auto", "--exclude-tools", "bash"]);
    pi.data(json!({"type": "set_permission_mode", "mode": "ask"}));
    pi.prompt("Go");
    // Its questions go to the owner's client.
    for _ in 0..2 {
        let asked = pi.wait("extension_ui_request");
        let answer = if asked["title"].as_str().unwrap().contains("sub_agent") {
            "Allow once"
        } else {
            "Deny"
        };
        pi.agent
            .send(&json!({"type": "extension_ui_response", "id": asked["id"], "value": answer}))
            .unwrap();
    }
    pi.settled();
    assert!(!world.dir.cwd().join("new.txt").exists());
    assert_eq!(
        tool_names(&world.server.requests()[1].body),
        ["read", "edit", "write"]
    );
    assert!(world.server.requests()[2].body.to_string().contains("denied"));
    pi.finish();
}
