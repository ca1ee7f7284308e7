//! Extensions in TypeScript, run by the real host under Node: found, loaded, asked, heard, dead. What each event combines to
//! is tested with the host itself, how lines are paired in the crate `extensions`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::dialect_outputs::end;
use crate::kit::{LONG, Pi, World, bash, kinds, of_type, skipped, text, until};
use crate::permissions::ends;

/// Returns true if everything that extensions need is installed; otherwise reports the test as skipped.
pub(crate) fn can_run() -> bool {
    let host = Path::new(env!("CARGO_MANIFEST_DIR")).join("../extensions/typescript/main.mjs");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let missing = if !host.is_file() {
        "the host is not in this source tree"
    } else if !std::env::split_paths(&path).any(|dir| dir.join("node").is_file()) {
        "node is not on PATH"
    } else {
        return true;
    };
    skipped(missing);
    false
}

/// A world with one extension of the user's, whose body this is.
pub(crate) fn extended(replies: impl IntoIterator<Item = Reply>, body: &str) -> World {
    let world = World::new(replies);
    put(&world, "kit.ts", body);
    world
}

pub(crate) fn put(world: &World, name: &str, body: &str) -> String {
    let path = world.dir.agent_dir().join("extensions").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(
        &path,
        format!("export default function (pi: any) {{\n{body}\n}}\n"),
    )
    .unwrap();
    path.display().to_string()
}

/// Runs a slash command to its end.
pub(crate) fn command(pi: &Pi, line: &str) -> Vec<Value> {
    let before = pi.lines().len();
    let data = pi.data(json!({"type": "prompt", "message": line}));
    assert_eq!(data["disposition"], "handled");
    pi.lines()[before..].to_vec()
}

pub(crate) fn notes(lines: &[Value]) -> Vec<String> {
    let frames = of_type(lines, "extension_ui_request").into_iter();
    let notes = frames.filter(|frame| frame["method"] == "notify");
    notes
        .map(|note| note["message"].as_str().unwrap().to_owned())
        .collect()
}

pub(crate) fn failures(pi: &Pi) -> Vec<(String, String)> {
    let lines = pi.lines();
    let member = |line: &Value, name: &str| line[name].as_str().unwrap().to_owned();
    of_type(&lines, "extension_error")
        .into_iter()
        .map(|line| (member(line, "event"), member(line, "error")))
        .collect()
}

/// The processes below one.
pub(crate) fn descendants(pid: u32) -> Vec<String> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let mut names = Vec::new();
    for child in children.split_whitespace() {
        names.push(
            fs::read_to_string(format!("/proc/{child}/comm"))
                .unwrap_or_default()
                .trim()
                .to_owned(),
        );
        names.extend(descendants(child.parse().unwrap()));
    }
    names
}

#[test]
fn no_extensions_start_no_process() {
    let world = World::new([Reply::text(["ok"])]);
    fs::create_dir_all(world.dir.agent_dir().join("extensions")).unwrap();
    let pi = world.start();
    pi.say("Go");
    assert!(
        !descendants(pi.agent.pid())
            .iter()
            .any(|name| name == "node" || name == "MainThread")
    );
    assert!(
        !world
            .dir
            .agent_dir()
            .join("cache")
            .join("extension-models")
            .exists()
    );
    pi.finish();
}

#[test]
fn missing_runtime_is_reported_per_extension() {
    let world = extended([Reply::text(["ok"])], "");
    let other = put(&world, "other.ts", "");
    let pi = Pi::spawn(world.config().env("PATH", "/nonexistent"));
    pi.say("Go");
    let lines = pi.lines();
    let errors = of_type(&lines, "extension_error");
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert_eq!(errors[1]["extensionPath"], other);
    let why = errors[0]["error"].as_str().unwrap();
    assert!(why.contains("was not loaded"), "{why}");
    pi.finish();
}

#[test]
fn extension_commands_and_tools_are_registered() {
    if !can_run() {
        return;
    }
    let world = extended(
        [
            Reply::tool("c1", "greet", json!({"name": "Ann"})),
            Reply::tool("c2", "greet", json!({})),
            Reply::text(["done"]),
        ],
        r#"
        pi.registerCommand("hello", { description: "Says hello", handler: async (args, ctx) => ctx.ui.notify("hi " + args + " " + ctx.isIdle()) });
        pi.registerTool({ name: "greet", label: "Greet", description: "Greets", promptSnippet: "greets  people", parameters: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
          async execute(id, params, signal, onUpdate) {
            onUpdate({ content: [{ type: "text", text: "working" }] });
            return { content: [{ type: "text", text: "Hello " + params.name }], details: { id } };
          } });
        "#,
    );
    let pi = world.start();
    let commands = pi.get("get_commands")["commands"].clone();
    assert_eq!(
        (
            &commands[0]["name"],
            &commands[0]["source"],
            &commands[0]["description"]
        ),
        (&json!("hello"), &json!("extension"), &json!("Says hello"))
    );
    assert_eq!(notes(&command(&pi, "/hello you there")), ["hi you there true"]);
    pi.say("Go");
    let ends = ends(&pi);
    assert_eq!(ends[0], (false, "Hello Ann".to_owned()));
    assert!(ends[1].0 && ends[1].1.contains("name"), "{ends:?}");
    let lines = pi.lines();
    assert_eq!(
        of_type(&lines, "tool_execution_end")[0]["result"]["details"]["id"],
        "c1"
    );
    assert_eq!(
        text(&of_type(&lines, "tool_execution_update")[0]["partialResult"]),
        "working"
    );
    let request = &world.server.requests()[0].body;
    let tools = request["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == "greet"));
    assert!(request["system"].to_string().contains("- greet: greets people"));
    pi.finish();
}

#[test]
fn extension_tool_replaces_built_in_and_reads_flags() {
    if !can_run() {
        return;
    }
    let world = extended(
        [bash("c1", "rm -rf /"), Reply::text(["done"])],
        r#"
        pi.registerFlag("answer", { type: "string", default: "none" });
        pi.registerTool({ name: "bash", label: "bash", description: "Not a shell", parameters: { type: "object", properties: { command: { type: "string" } } },
          execute: async (id, params) => ({ content: [{ type: "text", text: pi.getFlag("answer") + ": " + params.command }] }) });
        "#,
    );
    let pi = world.start_with(&["--answer", "no"]);
    pi.say("Go");
    assert_eq!(ends(&pi), [(false, "no: rm -rf /".to_owned())]);
    let tools = world.server.requests()[0].body["tools"].clone();
    let bashes = tools
        .as_array()
        .unwrap()
        .iter()
        .filter(|tool| tool["name"] == "bash");
    assert_eq!(
        bashes.map(|tool| tool["description"].clone()).collect::<Vec<_>>(),
        ["Not a shell"]
    );
    pi.finish();
}

#[test]
fn tool_call_handler_blocks_changes_or_fails_closed() {
    if !can_run() {
        return;
    }
    let world = extended(
        [
            bash("c1", "echo blocked"),
            bash("c2", "echo changed"),
            bash("c3", "echo throws"),
            bash("c4", "echo quiet"),
            Reply::text(["done"]),
        ],
        r#"
        pi.on("tool_call", async (event) => {
          if (event.input.command.includes("blocked")) return { block: true };
          if (event.input.command.includes("changed")) event.input.command = "echo other";
          if (event.input.command.includes("throws")) throw new Error("no idea");
        });
        "#,
    );
    let pi = world.start();
    pi.say("Go");
    assert_eq!(
        ends(&pi),
        [
            (true, "Tool execution was blocked".to_owned()),
            (false, "other\n".to_owned()),
            (true, "no idea".to_owned()),
            (false, "quiet\n".to_owned()),
        ]
    );
    assert_eq!(failures(&pi), [("tool_call".to_owned(), "no idea".to_owned())]);
    pi.finish();
}

#[test]
fn killed_extension_process_is_restarted_and_blocks_call() {
    if !can_run() {
        return;
    }
    let world = extended(
        [
            bash("c1", "echo kill"),
            Reply::text(["done"]),
            Reply::text(["again"]),
        ],
        r#"
        pi.on("session_start", (event, ctx) => ctx.ui.setStatus("start", event.reason));
        pi.on("tool_call", async () => { process.kill(process.pid, "SIGKILL"); await new Promise(() => {}); });
        "#,
    );
    let pi = world.start();
    pi.say("Go");
    let (is_error, said) = ends(&pi)[0].clone();
    assert!(is_error && said.contains("gave no answer"), "{said}");
    until("the extensions are there again", || {
        let lines = pi.lines();
        let starts = of_type(&lines, "extension_ui_request").into_iter();
        starts.filter(|frame| frame["statusText"] == "reload").count() == 1
    });
    let failures = failures(&pi);
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert!(failures[0].1.contains("signal 9"), "{failures:?}");
    pi.say("More");
    pi.finish();
}

#[test]
fn command_does_not_wait_for_run_after_restart_of_extensions() {
    if !can_run() {
        return;
    }
    let world = extended(
        [
            Reply::text(["one "]).gate("mid").then_text(["two"]),
            Reply::text(["three"]),
        ],
        r#"
        pi.registerCommand("die", { handler: async () => { process.kill(process.pid, "SIGKILL"); await new Promise(() => {}); } });
        "#,
    );
    let pi = world.start();
    pi.prompt("Go");
    world.server.wait_gate("mid", LONG).unwrap();
    pi.send(json!({"type": "prompt", "message": "/die"}));
    until("the process has ended", || {
        failures(&pi).iter().any(|(_, error)| error.contains("signal 9"))
    });
    // The extensions are loaded again while the run goes on.
    let data = pi.data(json!({"type": "steer", "message": "Now"}));
    assert_eq!(data["disposition"], "queued");
    world.server.release("mid");
    pi.settled();
    assert_eq!(pi.roles(), ["user", "assistant", "user", "assistant"]);
    pi.finish();
}

#[test]
fn repeatedly_crashing_extension_process_is_not_restarted() {
    if !can_run() {
        return;
    }
    let world = extended([Reply::text(["ok"])], r#"process.kill(process.pid, "SIGKILL");"#);
    let pi = world.start();
    until("it is given up", || {
        failures(&pi)
            .iter()
            .any(|(_, error)| error.contains("left alone"))
    });
    pi.say("Go");
    pi.finish();
}

#[test]
fn hanging_handler_blocks_neither_commands_nor_abort() {
    if !can_run() {
        return;
    }
    let world = extended(
        [bash("c1", "echo hi"), Reply::text(["done"])],
        r#"
        pi.on("turn_start", async (event) => { if (event.turnIndex === 1) await new Promise(() => {}); });
        pi.registerCommand("stuck", { handler: async () => { await new Promise(() => {}); } });
        "#,
    );
    let pi = world.start();
    pi.send(json!({"type": "prompt", "message": "/stuck"}));
    pi.prompt("Go");
    pi.wait("turn_end");
    assert_eq!(pi.state()["isStreaming"], true);
    pi.data(json!({"type": "abort"}));
    pi.settled();
    assert_eq!(pi.state()["isStreaming"], false);
    let lines = pi.lines();
    assert_eq!(of_type(&lines, "turn_start").len(), 2);
    pi.agent.close_stdin();
    pi.agent.wait_exit(crate::kit::LONG).unwrap();
}

#[test]
fn input_handler_transforms_and_agent_start_adds_messages() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::text(["a"]), Reply::text(["b"])],
        r#"
        pi.on("input", async (event) => {
          if (event.text === "mine") return { action: "handled" };
          if (event.text === "short") return { action: "transform", text: "a longer text" };
        });
        pi.on("before_agent_start", async (event) => ({ message: { customType: "kit", content: "about " + event.prompt, display: false }, systemPrompt: "You are a teapot." }));
        pi.on("context", async (event) => ({ messages: event.messages.filter((message) => message.role !== "custom") }));
        "#,
    );
    let pi = world.start();
    let data = pi.data(json!({"type": "prompt", "message": "mine"}));
    assert_eq!(data["disposition"], "handled");
    pi.say("short");
    assert_eq!(pi.roles(), ["user", "custom", "assistant"]);
    let requests = world.server.requests();
    let body = requests[0].body.to_string();
    assert!(
        body.contains("a longer text") && body.contains("You are a teapot."),
        "{body}"
    );
    assert!(!body.contains("about a longer text"), "{body}");
    pi.finish();
}

#[test]
fn extensions_can_cancel_session_changes_and_commands() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::text(["a"])],
        r#"
        pi.on("session_before_switch", async () => ({ cancel: true }));
        pi.on("session_before_fork", async () => ({ cancel: true }));
        pi.on("session_before_tree", async () => ({ cancel: true }));
        pi.on("user_bash", async (event) => ({ result: { output: "not " + event.command, exitCode: 3, cancelled: false, truncated: false } }));
        "#,
    );
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
    assert_eq!((&ran["output"], &ran["exitCode"]), (&json!("not ls"), &json!(3)));
    pi.finish();
}

#[test]
fn session_change_restarts_extensions() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::text(["a"])],
        r#"
        let count = 0;
        pi.on("session_start", (event, ctx) => ctx.ui.notify("start " + event.reason));
        pi.on("session_shutdown", (event, ctx) => ctx.ui.notify("end " + event.reason));
        pi.registerCommand("count", { handler: async (_args, ctx) => ctx.ui.notify("count " + ++count) });
        "#,
    );
    let pi = world.start();
    command(&pi, "/count");
    assert_eq!(pi.get("new_session")["cancelled"], false);
    command(&pi, "/count");
    assert_eq!(
        notes(&pi.lines()),
        ["start startup", "count 1", "end new", "start new", "count 1"]
    );
    pi.finish();
}

#[test]
fn requests_of_left_session_are_not_carried_out_in_next_one() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::text(["a"])],
        r#"
        pi.on("session_shutdown", ({ reason }) => { if (reason === "new") pi.sendUserMessage("save notes"); });
        pi.registerCommand("later", { handler: async () => { pi.sendMessage({ customType: "kit", content: "old", display: true }, { deliverAs: "nextTurn" }); } });
        "#,
    );
    let pi = world.start();
    command(&pi, "/later");
    assert_eq!(pi.get("new_session")["cancelled"], false);
    pi.say("Hi");
    assert_eq!(pi.roles(), ["user", "assistant"]);
    assert_eq!(text(&pi.messages()[0]), "Hi");
    let left = "The session was left before this was done";
    assert_eq!(failures(&pi), [("send_user_message".to_owned(), left.to_owned())]);
    pi.finish();
}

#[test]
fn shutdown_handler_is_heard_after_input_ends() {
    if !can_run() {
        return;
    }
    let world = extended(
        [],
        r#"
        pi.registerCommand("ready", { handler: async () => {} });
        pi.on("session_shutdown", async (event, ctx) => {
          ctx.ui.notify("end " + event.reason);
          ctx.ui.notify("answer " + await ctx.ui.confirm("Sure?", "Really?"));
          throw new Error("too late");
        });
        "#,
    );
    let pi = world.start();
    command(&pi, "/ready");
    let lines = end(&pi);
    assert_eq!(notes(&lines), ["end quit", "answer false"]);
    let error = of_type(&lines, "extension_error");
    assert_eq!(error[0]["error"], "too late");
    assert_eq!(lines.last(), error.last().copied(), "nothing follows");
}

#[test]
fn run_that_extension_waits_for_ends_with_input() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::text(["one "]).gate("never")],
        r#"
        pi.registerCommand("wait", { handler: async (_args, ctx) => {
          pi.sendUserMessage("Wait for it");
          await ctx.waitForIdle();
          ctx.ui.notify("idle");
        } });
        "#,
    );
    let pi = world.start();
    let waiting = pi.send(json!({"type": "prompt", "message": "/wait"}));
    world.server.wait_gate("never", LONG).unwrap();
    let lines = end(&pi);
    assert!(
        lines.iter().any(|line| line["id"] == waiting.as_str()),
        "{lines:?}"
    );
}

#[test]
fn shutdown_while_extensions_load_waits_for_held_commands() {
    if !can_run() {
        return;
    }
    let world = extended(
        [],
        r#"
        pi.on("session_start", async (_event, ctx) => {
          const { existsSync } = await import("node:fs");
          ctx.shutdown();
          while (!existsSync("go")) await new Promise((done) => setTimeout(done, 20));
        });
        "#,
    );
    let pi = world.start();
    let listed = pi.send(json!({"type": "get_commands"}));
    // Answered while the other command waits, so that it has arrived.
    pi.data(json!({"type": "abort_bash"}));
    std::fs::write(world.dir.cwd().join("go"), "").unwrap();
    let listed = pi.response(&listed);
    assert_eq!(listed["success"], true, "{listed}");
    pi.agent.wait_exit(LONG).unwrap();
}

#[test]
fn extension_actions_apply_in_order() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::text(["a"]), Reply::text(["b"])],
        r#"
        pi.registerCommand("do", { handler: async () => {
          pi.appendEntry("kit", { n: 1 });
          pi.setSessionName("named");
          pi.setThinkingLevel("high");
          pi.setActiveTools(["read"]);
          pi.sendMessage({ customType: "kit", content: "a note", display: true });
        } });
        pi.registerCommand("run", { handler: async () => { pi.sendMessage({ customType: "kit", content: "go", display: true }, { triggerTurn: true }); } });
        pi.registerCommand("say", { handler: async () => { pi.sendUserMessage("from an extension"); } });
        pi.registerCommand("model", { handler: async (_a, ctx) => { ctx.ui.notify(String(await pi.setModel({ provider: "no", id: "such" }))); } });
        "#,
    );
    let pi = world.start();
    let lines = command(&pi, "/do");
    assert_eq!(
        kinds(&lines)[..5],
        [
            "entry_appended",
            "session_info_changed",
            "thinking_level_changed",
            "message_start",
            "message_end"
        ]
    );
    assert_eq!(pi.state()["sessionName"], "named");
    assert_eq!(notes(&command(&pi, "/model")), ["false"]);
    for line in ["/run", "/say"] {
        pi.agent.skip();
        command(&pi, line);
        pi.settled();
    }
    assert_eq!(pi.roles(), ["custom", "custom", "assistant", "user", "assistant"]);
    let tools = world.server.requests()[0].body["tools"].clone();
    assert_eq!(tools.as_array().unwrap().len(), 1);
    pi.finish();
}

#[test]
fn extension_receives_events_of_clients_once() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::text(["a"])],
        r#"
        const seen = [];
        for (const name of ["entry_appended", "session_info_changed", "thinking_level_changed", "agent_start", "message_start", "message_end",
          "agent_settled", "bash_execution_end"]) pi.on(name, () => { seen.push(name); });
        pi.registerCommand("do", { handler: async () => {
          pi.appendEntry("kit", { n: 1 });
          pi.setSessionName("named");
          pi.setThinkingLevel("high");
          pi.sendMessage({ customType: "kit", content: "a note", display: true });
        } });
        pi.registerCommand("seen", { handler: async (_a, ctx) => { ctx.ui.notify(seen.splice(0).join(" ")); } });
        "#,
    );
    let pi = world.start();
    // A handler may still run when the next command begins, so the names can come with later notes.
    let seen = |count: usize| {
        let mut names = Vec::new();
        for _ in 0..100 {
            let notes = notes(&command(&pi, "/seen"));
            names.extend(
                notes
                    .iter()
                    .flat_map(|note| note.split_whitespace())
                    .map(str::to_owned),
            );
            if names.len() >= count {
                break;
            }
        }
        names
    };
    let sent: Vec<_> = kinds(&command(&pi, "/do"))[..5]
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(seen(5), sent);
    pi.data(json!({"type": "bash", "command": "true"}));
    pi.say("Go");
    let run = "agent_start message_start message_end message_start message_end agent_settled";
    assert_eq!(seen(7).join(" "), format!("bash_execution_end {run}"));
    pi.finish();
}

#[test]
fn message_without_turn_follows_active_turn() {
    if !can_run() {
        return;
    }
    let world = extended(
        [bash("c1", "echo hi"), Reply::text(["done"])],
        r#"
        const note = (content) => pi.sendMessage({ customType: "kit", content, display: true }, { triggerTurn: false });
        pi.on("tool_call", () => note("called"));
        pi.on("turn_end", () => note("ended"));
        "#,
    );
    let pi = world.start();
    pi.say("Go");
    assert_eq!(
        pi.roles(),
        [
            "user",
            "assistant",
            "toolResult",
            "custom",
            "custom",
            "assistant",
            "custom"
        ]
    );
    // The next request has them, and none is made for them.
    let requests = world.server.requests();
    assert_eq!(requests.len(), 2);
    let sent = requests[1].body.to_string();
    assert!(sent.contains("called") && sent.contains("ended"), "{sent}");
    pi.finish();
}

#[test]
fn only_trusted_projects_load_extensions() {
    if !can_run() {
        return;
    }
    let world = World::new([]);
    let dir = world.dir.cwd().join(".pi").join("extensions");
    fs::create_dir_all(&dir).unwrap();
    fs::write(
        dir.join("x.ts"),
        "export default (pi) => { pi.registerCommand('theirs', { handler: async () => {} }); };",
    )
    .unwrap();
    let named = |args: &[&str]| {
        let pi = world.start_with(args);
        let commands = pi.get("get_commands")["commands"].clone();
        pi.finish();
        commands.as_array().unwrap().len()
    };
    assert_eq!(named(&[]), 0);
    assert_eq!(named(&["--approve"]), 1);
    assert_eq!(named(&["--approve", "--no-extensions"]), 0);
    let file = dir.join("x.ts").display().to_string();
    assert_eq!(named(&["--no-extensions", "-e", &file]), 1);
}

#[test]
fn endless_loop_in_extension_fails_only_its_call() {
    if !can_run() {
        return;
    }
    let world = extended(
        [bash("c1", "echo hi"), Reply::text(["done"])],
        r#"pi.on("tool_call", () => { for (;;); });"#,
    );
    let pi = Pi::spawn(world.config().env("PINION_EXTENSION_SILENCE", "3"));
    pi.prompt("Go");
    pi.wait("tool_execution_start");
    // The session answers while the extension hangs.
    assert_eq!(pi.state()["isStreaming"], true);
    pi.settled();
    let (is_error, said) = ends(&pi)[0].clone();
    assert!(is_error && said.contains("did not answer for 3 s"), "{said}");
    pi.finish();
}

#[test]
fn sessions_of_one_process_have_separate_extensions() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::text(["a"])],
        r#"
        let count = 0;
        pi.registerCommand("count", { handler: async (_args, ctx) => {
          const { sessionManager } = ctx;
          ctx.ui.notify([++count, process.pid, sessionManager.getSessionId(), sessionManager.getEntries().length].join(" "));
        } });
        "#,
    );
    let pi = world.start_with(&["--no-session"]);
    let second = pi.data(json!({"type": "open_session"}))["session"].clone();
    let counted = |session: Option<&Value>| -> Vec<String> {
        let mut prompt = json!({"type": "prompt", "message": "/count"});
        if let Some(session) = session {
            prompt["session"] = session.clone();
        }
        let before = pi.lines().len();
        pi.data(prompt);
        let note = notes(&pi.lines()[before..]).remove(0);
        note.split(' ').map(str::to_owned).collect()
    };
    let (one, other) = (counted(None), counted(Some(&second)));
    assert_eq!((&one[0], &other[0]), (&"1".to_owned(), &"1".to_owned()));
    // One process, two sessions.
    assert_eq!(one[1], other[1]);
    assert_ne!(one[2], other[2]);
    assert_eq!(one[3], "2");
    pi.say("Hi");
    let again = counted(None);
    assert_eq!((again[0].as_str(), again[3].as_str()), ("2", "4"));
    pi.finish();
}

#[test]
fn extension_handlers_run_before_client_events() {
    if !can_run() {
        return;
    }
    let world = extended(
        [bash("c1", "echo hi"), Reply::text(["done"])],
        r#"
        for (const name of ["agent_start", "turn_start", "message_end", "tool_execution_end", "turn_end", "agent_end"])
          pi.on(name, (event, ctx) => ctx.ui.notify(name));
        pi.on("tool_result", async (event) => ({ content: [{ type: "text", text: event.content[0].text + "and more" }] }));
        "#,
    );
    let pi = world.start();
    let lines = pi.say("Go");
    assert_eq!(ends(&pi), [(false, "hi\nand more".to_owned())]);
    let mut heard: Option<String> = None;
    for line in &lines {
        let kind = line["type"].as_str().unwrap();
        if kind == "extension_ui_request" {
            heard = line["message"].as_str().map(str::to_owned);
        } else if [
            "agent_start",
            "turn_start",
            "message_end",
            "tool_execution_end",
            "turn_end",
            "agent_end",
        ]
        .contains(&kind)
        {
            assert_eq!(heard.take().as_deref(), Some(kind));
        }
    }
    pi.finish();
}

#[test]
fn abort_ends_dialog_of_extension_tool() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::tool("c1", "ask", json!({})), Reply::text(["done"])],
        r#"
        pi.registerTool({ name: "ask", label: "Ask", description: "Asks", parameters: { type: "object", properties: {} },
          async execute(_id, _params, signal, _update, ctx) {
            const said = await ctx.ui.input("Name?", "", { signal });
            return { content: [{ type: "text", text: "said " + said }] };
          } });
        "#,
    );
    let pi = world.start();
    pi.prompt("Go");
    let asked = pi.wait("extension_ui_request");
    assert_eq!(
        (&asked["method"], &asked["title"]),
        (&json!("input"), &json!("Name?"))
    );
    pi.data(json!({"type": "abort"}));
    pi.settled();
    assert!(ends(&pi)[0].1.contains("said undefined"), "{:?}", ends(&pi));
    pi.finish();
}

#[test]
fn extension_command_continues_in_new_session() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::text(["a"])],
        r#"
        pi.on("session_start", (event, ctx) => ctx.ui.notify("start " + event.reason));
        pi.registerCommand("new", { handler: async (_args, ctx) => {
          const before = ctx.sessionManager.getSessionId();
          const { cancelled } = await ctx.newSession({ withSession: async (next) => next.ui.notify("other " + (next.sessionManager.getSessionId() !== before)) });
        } });
        pi.registerCommand("again", { handler: async (_args, ctx) => { await ctx.reload(); } });
        "#,
    );
    let pi = world.start();
    let id = pi.state()["sessionId"].clone();
    command(&pi, "/new");
    assert_ne!(pi.state()["sessionId"], id);
    command(&pi, "/again");
    assert_eq!(
        notes(&pi.lines()),
        ["start startup", "start new", "other true", "start reload"]
    );
    assert!(failures(&pi).is_empty(), "{:?}", failures(&pi));
    pi.say("Hi");
    pi.finish();
}
