//! Edges of behaviour in which pi 1.5.2 differs from 0.74, or from what Pinion did: each was recorded from the real pi
//! (`.ci/conformance/scenarios`).

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::extensions::{can_run, command, extended, notes};
use crate::kit::{LONG, Pi, World, bash, of_type};

/// One black pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==";

const NEWEST: [&str; 2] = ["--rpc-dialect", "pi-delta"];

#[test]
fn command_killed_by_signal_has_exit_code() {
    for (dialect, text) in [
        ("pi-delta", "Command exited with code 137"),
        ("pi", "Command was killed by signal 9 (SIGKILL)"),
    ] {
        let world = World::new([bash("c1", "kill -9 $$"), Reply::text(["x"])]);
        let pi = world.start_with(&["--rpc-dialect", dialect]);
        let lines = pi.say("go");
        let result = &of_type(&lines, "tool_execution_end")[0]["result"];
        let shown = result["content"][0]["text"].as_str().unwrap();
        assert!(shown.ends_with(text), "{dialect}: {shown}");
        if dialect == "pi-delta" {
            assert_eq!(result["structuredContent"]["exit_code"], 137);
        }
        pi.finish();
    }
}

#[test]
fn clearing_empty_queue_sends_update() {
    let world = World::new([]);
    let pi = world.start_with(&NEWEST);
    pi.get("clear_queue");
    let lines = pi.lines();
    let updates = of_type(&lines, "queue_update");
    assert_eq!(updates.len(), 1);
    assert_eq!(
        (&updates[0]["steering"], &updates[0]["followUp"]),
        (&json!([]), &json!([]))
    );
    pi.finish();
}

#[test]
fn session_name_is_one_line() {
    let world = World::new([]);
    let pi = world.start_with(&NEWEST);
    pi.data(json!({"type": "set_session_name", "name": " two\nlines\r\n\nhere\n"}));
    assert_eq!(pi.state()["sessionName"], "two lines here");
    let error = pi.error(json!({"type": "set_session_name", "name": "\n"}));
    assert_eq!(error, "Session name cannot be empty");
    pi.finish();
}

#[test]
fn clone_of_unsaved_session_says_so() {
    for (dialect, text) in [
        (
            "pi-delta",
            "This session has not been saved yet. Send a message before cloning or forking it.",
        ),
        ("pi", "Cannot clone session: no current entry selected"),
    ] {
        let world = World::new([]);
        let pi = world.start_with(&["--rpc-dialect", dialect]);
        assert_eq!(pi.error(json!({"type": "clone"})), text);
        pi.finish();
    }
}

#[test]
fn unreadable_image_of_prompt_becomes_note() {
    let image = |data: &str| json!({"type": "image", "data": data, "mimeType": "image/png"});
    let note = "look\n\n[Image omitted: could not be resized below the inline image size limit.]";
    for (dialect, text, count) in [("pi-delta", note, 1), ("pi", "look", 2)] {
        let world = World::new([Reply::text(["x"])]);
        let pi = world.start_with(&["--rpc-dialect", dialect]);
        pi.data(json!({"type": "prompt", "message": "look", "images": [image("AAAA"), image(PIXEL)]}));
        pi.settled();
        let user = pi
            .messages()
            .into_iter()
            .find(|message| message["role"] == "user");
        let content = user.unwrap()["content"].take();
        assert_eq!(
            (&content[0]["text"], content.as_array().unwrap().len()),
            (&json!(text), 1 + count)
        );
        assert_eq!(content[count]["data"], PIXEL, "{dialect}");
        pi.finish();
    }
}

#[test]
fn replaced_result_is_not_repeated_for_programs() {
    if !can_run() {
        return;
    }
    let world = extended(
        [
            Reply::tool("c1", "read", json!({"path": "a.txt"})),
            Reply::tool("c2", "odd", json!({"how": 7})),
            Reply::tool("c3", "odd", json!({})),
            Reply::text(["x"]),
        ],
        r#"
        pi.on("tool_result", async (event) => event.toolName === "read" ? { content: [{ type: "text", text: "changed" }] } : undefined);
        pi.registerTool({ name: "odd", label: "Odd", description: "Odd",
          parameters: { type: "object", properties: { how: { type: "string" } }, required: ["how"] },
          execute: async (_id, params) => ({ content: [{ type: "text", text: JSON.stringify(params) }] }) });
        "#,
    );
    world.dir.write("a.txt", "alpha\n").unwrap();
    let pi = world.start_with(&NEWEST);
    let lines = pi.say("go");
    let ends = of_type(&lines, "tool_execution_end");
    let text = |end: &Value| end["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(text(ends[0]), "changed");
    assert_eq!(ends[0]["result"].get("structuredContent"), None);
    assert_eq!(text(ends[1]), r#"{"how":"7"}"#, "a number for a text");
    assert_eq!(
        text(ends[2]),
        "Validation failed for tool \"odd\":\n  - how: missing\n\nReceived arguments:\n{}"
    );
    pi.finish();
}

#[test]
fn extensions_change_prompt_options_of_every_run() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::text(["a"]), Reply::text(["b"])],
        r#"
        pi.registerCommand("run", { handler: async () => { pi.sendMessage({ customType: "kit", content: "go", display: true }, { triggerTurn: true }); } });
        pi.on("before_agent_start", (event) => {
          event.systemPromptOptions.selectedTools = ["read"];
          event.systemPromptOptions.forceSystemPrompt = "Only this.";
          const content = event.messageType + " " + (event.message?.content ?? event.prompt);
          return { message: { customType: "kit", content, display: true } };
        });
        "#,
    );
    let pi = world.start_with(&NEWEST);
    pi.agent.skip();
    command(&pi, "/run");
    pi.settled();
    pi.say("Hi");
    for (request, added) in world.server.requests().iter().zip(["custom go", "user Hi"]) {
        let body = &request.body;
        assert!(body["messages"].to_string().contains(added), "{body}");
        assert!(body["system"].to_string().contains("Only this."), "{body}");
        let tools = body["tools"].as_array().unwrap().iter();
        assert_eq!(tools.map(|tool| &tool["name"]).collect::<Vec<_>>(), ["read"]);
    }
    assert_eq!(world.server.requests().len(), 2);
    pi.finish();
}

#[test]
fn extension_cannot_move_during_a_run() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::text(["x"]).gate("end").then_text(["y"])],
        r#"
        pi.registerCommand("nav", { handler: async (_args, ctx) => {
          const first = ctx.sessionManager.getEntries()[0];
          try { await ctx.navigateTree(first.id); ctx.ui.notify("moved"); }
          catch (error) { ctx.ui.notify(error.message); }
        } });
        "#,
    );
    let pi = world.start_with(&NEWEST);
    pi.prompt("go");
    world.server.wait_gate("end", LONG).unwrap();
    let told = notes(&command(&pi, "/nav"));
    assert_eq!(
        told,
        ["Wait for the current response to finish before navigating the session tree."]
    );
    world.server.release("end");
    pi.settled();
    assert_eq!(pi.messages().last().unwrap()["stopReason"], "stop");
    assert_eq!(notes(&command(&pi, "/nav")), ["moved"]);
    pi.finish();
}

#[test]
fn queued_text_has_no_notes_about_images() {
    let world = World::new([Reply::text(["x"]).gate("end"), Reply::text(["y"])]);
    let pi = world.start_with(&NEWEST);
    pi.prompt("go");
    world.server.wait_gate("end", LONG).unwrap();
    let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
    pi.data(json!({"type": "steer", "message": "look", "images": [image]}));
    assert_eq!(pi.get("get_queue")["items"][0]["text"], "look");
    world.server.release("end");
    pi.settled();
    let said = json!(pi.messages()).to_string();
    assert!(said.contains("look\\n\\n[Image omitted"), "{said}");
    pi.finish();
}

/// A session of two exchanges, of which a compaction summarises the first one.
fn two_exchanges(dialect: &str, summary: Reply) -> (World, Pi) {
    let world = World::new([Reply::text(["One."]), Reply::text(["Two."]), summary]);
    world.settings(json!({"compaction": {"keepRecentTokens": 5}}));
    let pi = world.start_with(&["--rpc-dialect", dialect]);
    pi.say(&"Remember the word elephant. ".repeat(40));
    pi.say("And this one, too.");
    (world, pi)
}

#[test]
fn prompt_during_compaction_is_always_refused() {
    let summary = Reply::new().gate("summary").then_text(["Elephants."]);
    let (world, pi) = two_exchanges("pi-delta", summary);
    let compact = pi.send(json!({"type": "compact"}));
    world.server.wait_gate("summary", LONG).unwrap();
    for behavior in ["steer", "followUp"] {
        let error = pi.error(json!({"type": "prompt", "message": "Now", "streamingBehavior": behavior}));
        let start = "Cannot submit a prompt while compaction is in progress";
        assert!(error.starts_with(start), "{behavior}: {error}");
    }
    assert_eq!(pi.state()["pendingMessageCount"], 0);
    world.server.release("summary");
    assert_eq!(pi.response(&compact)["success"], true);
    pi.finish();
}

#[test]
fn summaries_are_asked_for_as_answers() {
    for dialect in ["pi-delta", "pi"] {
        let (world, pi) = two_exchanges(dialect, Reply::text(["Elephants."]));
        let result = pi.data(json!({"type": "compact"}));
        // With prompt and tools, or without.
        let counts_all = result["estimatedTokensAfter"].as_u64().unwrap() > 500;
        assert_eq!(counts_all, dialect == "pi-delta", "{result}");
        let requests = world.server.requests();
        let is_same = requests[2].body["max_tokens"] == requests[0].body["max_tokens"];
        assert_eq!(is_same, dialect == "pi-delta", "{}", requests[2].body);
        pi.finish();

        let (world, pi) = two_exchanges(dialect, Reply::text(["Elephants."]));
        let entries = pi.get("get_entries");
        let mut entries = entries["entries"].as_array().unwrap().iter();
        let first = entries
            .find(|entry| entry["message"]["role"] == "assistant")
            .unwrap();
        pi.data(json!({"type": "navigate_tree", "targetId": first["id"], "summarize": true}));
        let requests = world.server.requests();
        let is_same = requests[2].body["thinking"] == requests[0].body["thinking"];
        assert_eq!(is_same, dialect == "pi-delta", "{}", requests[2].body);
        pi.finish();
    }
}

#[test]
fn paths_of_clients_may_begin_at_home() {
    let world = World::new([Reply::text(["a"])]);
    let pi = world.start_with(&NEWEST);
    pi.say("go");
    let page = world.dir.home().join("page.html");
    let exported = pi.data(json!({"type": "export_html", "outputPath": "~/page.html"}));
    assert_eq!(exported["path"], page.to_str().unwrap());
    assert!(page.is_file());
    let other = world.dir.home().join("other.jsonl");
    pi.data(json!({"type": "switch_session", "sessionPath": "~/other.jsonl"}));
    assert_eq!(pi.state()["sessionFile"], other.to_str().unwrap());
    pi.finish();
}

#[test]
fn reasoning_of_another_model_is_left_out() {
    for (dialect, blocks) in [
        ("pi-delta", json!(["Read it."])),
        ("pi", json!(["Plan.", "Read it."])),
    ] {
        let world = World::new([
            Reply::new().thinking(["Plan."], "sig").then_text(["Read it."]),
            Reply::text(["x"]),
        ]);
        let pi = world.start_with(&["--rpc-dialect", dialect]);
        pi.say("go");
        pi.data(json!({"type": "set_model", "provider": "mock-anthropic", "modelId": "claude-plain"}));
        pi.say("on");
        let requests = world.server.requests();
        let answer = &requests[1].body["messages"][1]["content"];
        let texts: Vec<&Value> = answer
            .as_array()
            .unwrap()
            .iter()
            .map(|block| &block["text"])
            .collect();
        assert_eq!(json!(texts), blocks, "{dialect}");
        pi.finish();
    }
}
