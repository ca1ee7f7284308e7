//! Calls and changes of TypeScript extensions that `extensions` does not cover: messages, tools inside tools, the
//! agent's own tools, and continued runs. Run by the real host under Node.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::extensions::{can_run, command, extended, failures, notes, put};
use crate::kit::{LONG, Pi, World, bash, of_type, text, until};
use crate::mcp::entry;
use crate::permissions::ends;

/// The texts of the messages, by role.
fn said(pi: &Pi) -> Vec<(String, String)> {
    let messages = pi.messages();
    let one = |message: &Value| (message["role"].as_str().unwrap().to_owned(), text(message));
    messages.iter().map(one).collect()
}

#[test]
fn replaced_message_is_stored_emitted_and_sent() {
    if !can_run() {
        return;
    }
    let world = extended(
        [
            Reply::tool("c1", "bash", json!({"command": "echo old"})),
            Reply::text(["the secret is out"]),
            Reply::text(["ok"]),
        ],
        r#"
        pi.on("message_end", async ({ message }) => {
          if (message.role === "user") return { message: { ...message, content: [{ type: "text", text: "[" + message.content[0].text + "]" }] } };
          if (message.role === "toolResult") return { message: { ...message, content: [{ type: "text", text: "seen" }] } };
          const content = message.content.map((block) => block.type === "toolCall" ? { ...block, arguments: { command: "echo new" } }
            : block.type === "text" ? { ...block, text: block.text.replace("secret", "*") } : block);
          return { message: { ...message, content } };
        });
        pi.on("message_end", ({ message }) => { if (message.role === "user") return { message: { role: "assistant", content: [] } }; });
        "#,
    );
    let pi = world.start();
    let lines = pi.say("Go");
    assert_eq!(ends(&pi), [(false, "new\n".to_owned())]);
    let told: Vec<String> = of_type(&lines, "message_end")
        .iter()
        .map(|line| text(&line["message"]))
        .collect();
    assert_eq!(told, ["[Go]", "", "seen", "the * is out"]);
    assert_eq!(text(&of_type(&lines, "turn_end")[0]["toolResults"][0]), "seen");
    let all = &of_type(&lines, "agent_end")[0]["messages"];
    assert_eq!(
        (text(&all[0]), text(&all[3])),
        ("[Go]".to_owned(), "the * is out".to_owned())
    );
    assert_eq!(said(&pi)[3].1, "the * is out");
    pi.say("More");
    let bodies: Vec<String> = world
        .server
        .requests()
        .iter()
        .map(|request| request.body.to_string())
        .collect();
    assert!(
        bodies[1].contains("echo new") && bodies[1].contains("seen"),
        "{}",
        bodies[1]
    );
    assert!(
        bodies[2].contains("[More]") && !bodies[2].contains("secret"),
        "{}",
        bodies[2]
    );
    // Another role is refused, and told.
    assert!(
        failures(&pi)
            .iter()
            .all(|(event, why)| event == "message_end" && why.contains("role"))
    );
    assert_eq!(failures(&pi).len(), 2);
    // The extension replaced the streamed message, which `finish` would reject.
    pi.agent.close_stdin();
    pi.agent.wait_exit(LONG).unwrap();
}

#[test]
fn tool_arguments_are_prepared_before_validation() {
    if !can_run() {
        return;
    }
    let world = extended(
        [
            Reply::tool("c1", "add", json!({"n": "one"})),
            Reply::tool("c2", "add", json!({"n": "throws"})),
            Reply::text(["done"]),
        ],
        r#"
        pi.registerTool({ name: "add", label: "Add", description: "Adds", parameters: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
          prepareArguments(args) { if (args.n === "throws") throw new Error("no such number"); return { n: args.n === "one" ? 1 : args.n }; },
          execute: async (_id, { n }) => ({ content: [{ type: "text", text: String(n + 1) }] }) });
        pi.on("tool_call", (event, ctx) => ctx.ui.notify(JSON.stringify(event.input)));
        "#,
    );
    let pi = world.start();
    let lines = pi.say("Go");
    assert_eq!(
        ends(&pi),
        [(false, "2".to_owned()), (true, "no such number".to_owned())]
    );
    // Events contain the arguments that the model wrote.
    assert_eq!(
        of_type(&lines, "tool_execution_start")[0]["args"],
        json!({"n": "one"})
    );
    assert_eq!(notes(&lines), [r#"{"n":1}"#]);
    pi.finish();
}

#[test]
fn turn_end_and_settle_handlers_continue_with_entries() {
    if !can_run() {
        return;
    }
    let world = extended(
        [
            Reply::text(["first"]),
            Reply::text(["second"]),
            Reply::text(["third"]),
        ],
        r#"
        let turns = 0, settles = 0;
        pi.on("turn_end", (event, ctx) => {
          ctx.ui.notify([event.outcome, typeof event.messageEntryId, event.toolResultEntryIds.length, event.context.canContinue].join(" "));
          if (turns++ === 0) return { entries: [{ type: "custom", customType: "mark", data: { n: 1 } }, { type: "custom_message", customType: "kit", content: "go on", display: true }], continue: true };
        });
        pi.on("agent_before_settle", (event) => {
          if (settles++ === 1) return { entries: [...event.entries, { type: "custom_message", customType: "kit", content: "once more", display: false }], continue: true };
        });
        "#,
    );
    let pi = world.start();
    let lines = pi.say("Go");
    assert_eq!(of_type(&lines, "agent_settled").len(), 1);
    assert_eq!(of_type(&lines, "agent_start").len(), 3);
    assert_eq!(
        of_type(&lines, "entry_appended")[0]["entry"]["customType"],
        "mark"
    );
    let roles = pi.roles();
    assert_eq!(
        roles,
        ["user", "assistant", "custom", "assistant", "custom", "assistant"]
    );
    assert_eq!(notes(&lines), ["completed string 0 false"; 3]);
    let requests = world.server.requests();
    assert!(requests[2].body.to_string().contains("once more"));
    assert!(failures(&pi).is_empty(), "{:?}", failures(&pi));
    pi.finish();
}

#[test]
fn continue_without_message_to_answer_is_refused() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::text(["first"])],
        r#"pi.on("agent_before_settle", () => ({ continue: true }));"#,
    );
    let pi = world.start();
    pi.say("Go");
    until("the refusal", || !failures(&pi).is_empty());
    assert!(
        failures(&pi)[0].1.contains("nothing to answer"),
        "{:?}",
        failures(&pi)
    );
    pi.finish();
}

#[test]
fn built_in_tools_run_for_extensions() {
    if !can_run() {
        return;
    }
    let world = extended(
        [],
        r#"
        const { createBashTool, createReadTool, createWriteTool } = require("@mariozechner/pi-coding-agent");
        pi.on("tool_call", () => ({ block: true }));
        pi.registerCommand("run", { handler: async (_args, ctx) => {
          const say = (result) => ctx.ui.notify(result.content[0].text.trim());
          let updates = 0;
          await createWriteTool(ctx.cwd).execute("w", { path: "made.txt", content: "one\ntwo" });
          say(await createReadTool(ctx.cwd).execute("r", { path: "made.txt", offset: 2 }));
          const bash = createBashTool(ctx.cwd, { spawnHook: (spawn) => ({ ...spawn, env: { ...spawn.env, KIT: "yes" } }) });
          say(await bash.execute("b", { command: "echo $KIT" }, undefined, () => { updates += 1; }));
          ctx.ui.notify("updates " + (updates > 0));
          try { await createReadTool(ctx.cwd).execute("r", { path: "missing.txt" }); } catch (error) { ctx.ui.notify("failed " + error.message.includes("missing.txt")); }
          const stop = new AbortController();
          setTimeout(() => stop.abort(), 100);
          const began = Date.now();
          try { await bash.execute("b", { command: "sleep 30" }, stop.signal); } catch (error) { ctx.ui.notify("stopped " + (Date.now() - began < 10000)); }
        } });
        "#,
    );
    let pi = world.start();
    let lines = command(&pi, "/run");
    assert_eq!(
        notes(&lines),
        ["two", "yes", "updates true", "failed true", "stopped true"],
        "{:?}",
        failures(&pi)
    );
    pi.finish();
}

#[test]
fn extension_tool_calls_pass_through_hooks() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::tool("c1", "outer", json!({})), Reply::text(["done"])],
        r#"
        pi.on("tool_call", (event) => { if (event.input.command?.includes("forbidden")) return { block: true, reason: "not that" }; });
        pi.on("tool_result", (event) => { if (event.parentToolCallId) return { details: { parent: event.parentToolCallId } }; });
        pi.registerTool({ name: "inner", label: "Inner", description: "Inner", parameters: { type: "object", properties: { a: { type: "number" } }, required: ["a"] },
          execute: async (id, { a }, _signal, onUpdate) => { onUpdate({ content: [{ type: "text", text: "half" }] }); return { content: [{ type: "text", text: id + " " + a }] }; } });
        pi.registerTool({ name: "outer", label: "Outer", description: "Outer", parameters: { type: "object", properties: {} },
          async execute(_id, _params, _signal, _update, ctx) {
            const updates = [];
            const results = await Promise.all([
              ctx.executeTool("inner", { a: 1 }, { onUpdate: (value) => updates.push(value.content[0].text) }),
              ctx.executeTool("bash", { command: "echo hello" }),
              ctx.executeTool("bash", { command: "echo forbidden" }),
              ctx.executeTool("inner", {}),
              ctx.executeTool("nothing", {}),
            ]);
            const lines = results.map(({ result, isError }) => [isError, result.content[0].text.trim().split("\n")[0], result.details?.parent].join("|"));
            return { content: [{ type: "text", text: [...lines, ...updates].join("\n") }] };
          } });
        "#,
    );
    let pi = world.start();
    let lines = pi.say("Go");
    let ends = of_type(&lines, "tool_execution_end");
    let outer = ends.iter().find(|end| end["toolCallId"] == "c1").unwrap();
    let said = text(&outer["result"]);
    let said: Vec<&str> = said.lines().collect();
    assert_eq!(said[0], "false|c1/1 1|c1");
    assert_eq!(said[1], "false|hello|c1");
    assert_eq!(said[2], "true|not that|");
    assert!(said[3].starts_with("true|Validation failed"), "{}", said[3]);
    assert_eq!(&said[4..], ["true|Tool nothing not found|", "half"]);
    let starts = of_type(&lines, "tool_execution_start");
    let inner: Vec<&Value> = starts
        .iter()
        .filter(|start| start["parentToolCallId"] == "c1")
        .map(|start| &start["toolCallId"])
        .collect();
    assert_eq!(inner, ["c1/1", "c1/2", "c1/3", "c1/4", "c1/5"]);
    assert!(starts[0].get("parentToolCallId").is_none());
    assert_eq!(ends.len(), 6);
    assert_eq!(pi.roles(), ["user", "assistant", "toolResult", "assistant"]);
    pi.finish();
}

#[test]
fn permissions_and_abort_apply_to_nested_calls() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::tool("c1", "outer", json!({})), Reply::text(["done"])],
        r#"
        pi.registerTool({ name: "outer", label: "Outer", description: "Outer", parameters: { type: "object", properties: {} },
          async execute(_id, _params, _signal, _update, ctx) {
            const denied = await ctx.executeTool("bash", { command: "curl example.org" });
            ctx.ui.notify(denied.result.content[0].text);
            const { result } = await ctx.executeTool("bash", { command: "sleep 30" });
            return result;
          } });
        "#,
    );
    world.settings(json!({"permissions": {"mode": "auto", "deny": ["bash(curl *)"]}}));
    let pi = world.start();
    pi.prompt("Go");
    pi.agent
        .wait(
            |line| line["type"] == "tool_execution_start" && line["toolCallId"] == "c1/2",
            LONG,
        )
        .unwrap();
    assert!(
        notes(&pi.lines())[0].contains("Permission denied"),
        "{:?}",
        notes(&pi.lines())
    );
    pi.data(json!({"type": "abort"}));
    pi.settled();
    let lines = pi.lines();
    let ends = of_type(&lines, "tool_execution_end");
    assert!(
        ends.iter()
            .any(|end| end["toolCallId"] == "c1/2" && end["isError"] == true)
    );
    pi.finish();
}

/// A session of two exchanges whose extension has this body.
fn two_exchanges(more: impl IntoIterator<Item = Reply>, body: &str) -> (World, Pi) {
    let answers = ["One.", "Two."].map(|answer| Reply::text([answer]));
    let world = extended(answers.into_iter().chain(more), body);
    let pi = world.start();
    pi.say("First");
    pi.say("Second");
    (world, pi)
}

#[test]
fn extension_commands_navigate_tree() {
    if !can_run() {
        return;
    }
    let (_world, pi) = two_exchanges(
        [Reply::text(["What was left."])],
        r#"
        pi.on("session_before_tree", (event) => {
          const { preparation } = event;
          if (preparation.label === "theirs") return { summary: { summary: "By hand: " + preparation.entriesToSummarize.length, details: { n: 1 } }, label: "ours" };
          if (preparation.label === "no") return { cancel: true };
          return { customInstructions: "Be short." };
        });
        pi.on("session_tree", (event, ctx) => ctx.ui.notify(["tree", event.newLeafId === ctx.sessionManager.getLeafId(), event.oldLeafId !== event.newLeafId, event.fromExtension, event.summaryEntry?.details?.n].join(" ")));
        const user = (ctx, at) => ctx.sessionManager.getEntries().filter((entry) => entry.message?.role === "user")[at].id;
        for (const [name, options] of [["theirs", { summarize: true, label: "theirs" }], ["asked", { summarize: true }], ["no", { label: "no" }], ["plain", {}]])
          pi.registerCommand(name, { handler: async (at, ctx) => ctx.ui.notify(JSON.stringify(await ctx.navigateTree(user(ctx, Number(at)), options))) });
        "#,
    );
    let first = |line: &str| -> (Vec<String>, Value) {
        let mut said = notes(&command(&pi, line));
        let answer = serde_json::from_str(&said.remove(said.len() - 1)).unwrap();
        (said, answer)
    };
    assert_eq!(first("/no 1").1, json!({"cancelled": true}));
    let (tree, answer) = first("/theirs 1");
    // No more than pi says.
    assert_eq!(answer, json!({"cancelled": false}));
    assert_eq!(tree, ["tree true true true 1"]);
    assert_eq!(
        said(&pi)[2],
        ("branchSummary".to_owned(), "By hand: 1".to_owned())
    );
    let entries = pi.get("get_entries")["entries"].clone();
    let label = entries
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["type"] == "label");
    assert_eq!(label.unwrap()["label"], "ours");
    let (tree, _) = first("/asked 0");
    assert_eq!(tree, ["tree true true false "]);
    assert!(said(&pi)[0].1.contains("What was left."));
    assert_eq!(first("/plain 1").0, ["tree true true  "]);
    let error = failures(&pi);
    assert!(error.is_empty(), "{error:?}");
    pi.finish();
}

#[test]
fn extension_instructions_reach_branch_summary() {
    if !can_run() {
        return;
    }
    let (world, pi) = two_exchanges(
        [Reply::text(["What was left."])],
        r#"pi.on("session_before_tree", () => ({ customInstructions: "Only this: rhyme.", replaceInstructions: true }));"#,
    );
    let target = pi.get("get_fork_messages")["messages"][1]["entryId"].clone();
    pi.data(json!({"type": "navigate_tree", "targetId": target, "summarize": true}));
    let body = world.server.requests()[2].body.to_string();
    assert!(body.contains("Only this: rhyme."), "{body}");
    pi.finish();
}

#[test]
fn extension_commands_create_sessions() {
    if !can_run() {
        return;
    }
    let (_world, pi) = two_exchanges(
        [],
        r#"
        pi.on("session_start", (event, ctx) => ctx.ui.notify("start " + event.reason + " " + typeof event.previousSessionFile));
        pi.on("session_shutdown", (event, ctx) => ctx.ui.notify("end " + event.reason + " " + typeof event.targetSessionFile));
        pi.on("session_before_fork", (event, ctx) => ctx.ui.notify("fork " + event.position));
        pi.on("session_before_switch", (event, ctx) => ctx.ui.notify("switch " + event.reason));
        const entry = (ctx, at) => ctx.sessionManager.getEntries().filter((entry) => entry.type === "message")[at].id;
        pi.registerCommand("at", { handler: async (n, ctx) => { await ctx.fork(entry(ctx, Number(n)), { position: "at" }); } });
        pi.registerCommand("before", { handler: async (n, ctx) => { try { await ctx.fork(entry(ctx, Number(n))); } catch (error) { ctx.ui.notify(error.message); } } });
        pi.registerCommand("open", { handler: async (path, ctx) => { await ctx.switchSession(path); } });
        pi.registerCommand("wait", { handler: async (_a, ctx) => { pi.sendUserMessage("Wait for it"); await ctx.waitForIdle(); ctx.ui.notify("idle " + ctx.isIdle() + " " + ctx.sessionManager.getEntries().length); } });
        pi.registerCommand("reload", { handler: async (_a, ctx) => { await ctx.reload(); } });
        "#,
    );
    let file = pi.file();
    let roles = |pi: &Pi| pi.roles().len();
    assert_eq!(
        notes(&command(&pi, "/at 1")),
        ["fork at", "end fork string", "start fork string"]
    );
    assert_eq!(roles(&pi), 2);
    assert_eq!(
        notes(&command(&pi, "/before 1")),
        ["Invalid entry ID for forking"]
    );
    let open = format!("/open {}", file.display());
    assert_eq!(
        notes(&command(&pi, &open)),
        ["switch resume", "end resume string", "start resume string"]
    );
    assert_eq!((roles(&pi), pi.file()), (4, file));
    command(&pi, "/before 2");
    assert_eq!(roles(&pi), 2);
    assert_eq!(
        notes(&command(&pi, "/reload")),
        ["end reload undefined", "start reload undefined"]
    );
    // Each session has a file of its own, and `finish` looks at one.
    pi.agent.close_stdin();
    pi.agent.wait_exit(LONG).unwrap();
}

#[test]
fn new_session_starts_with_content_of_setup() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::text(["Answer"])],
        r#"
        pi.registerCommand("setup", { handler: async (_a, ctx) => { await ctx.newSession({
          setup: async (manager) => {
            const id = manager.appendMessage({ role: "user", content: [{ type: "text", text: "From setup" }], timestamp: 1 });
            manager.appendLabelChange(id, "begin");
            manager.appendSessionInfo("set up");
          },
          withSession: async (next) => { next.ui.notify(next.sessionManager.getSessionName()); await next.sendUserMessage("Go on"); },
        }); } });
        "#,
    );
    let pi = world.start();
    pi.agent.skip();
    pi.send(json!({"type": "prompt", "message": "/setup"}));
    pi.settled();
    assert_eq!(notes(&pi.lines()), ["set up"]);
    assert_eq!(pi.roles(), ["user", "user", "assistant"]);
    assert_eq!(pi.state()["sessionName"], "set up");
    assert!(world.server.requests()[0].body.to_string().contains("From setup"));
    let text = fs::read_to_string(pi.file()).unwrap();
    let entries: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let label = entries.iter().find(|entry| entry["type"] == "label").unwrap();
    assert_eq!(label["targetId"], entries[1]["id"]);
    assert!(failures(&pi).is_empty(), "{:?}", failures(&pi));
    pi.finish();
}

/// The events that the table in the code lists as sent, and as not sent.
fn table() -> (BTreeSet<String>, BTreeSet<String>) {
    let text = include_str!("../../../session/src/session/extensions/heard.txt");
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let rows = rows.map(|line| line.split(';').map(str::trim).collect::<Vec<_>>());
    let (sent, other): (Vec<_>, Vec<_>) = rows.partition(|row| row[1] != "no");
    let names = |rows: Vec<Vec<&str>>| rows.iter().map(|row| row[0].to_owned()).collect();
    (names(sent), names(other))
}

/// What the extension of the test below has heard.
fn heard(world: &World) -> BTreeSet<String> {
    let text = fs::read_to_string(world.dir.cwd().join("heard.log")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn every_event_of_table_is_delivered() {
    if !can_run() {
        return;
    }
    let (sent, others) = table();
    let names: Vec<&String> = sent.iter().chain(&others).collect();
    let body = r#"
        const { appendFileSync } = require("node:fs");
        for (const name of NAMES) pi.on(name, (event, ctx) => {
          if (event.type !== name) throw new Error(name);
          appendFileSync(ctx.cwd + "/heard.log", name + "\n");
        });
        pi.registerCommand("ask", { handler: async (_a, ctx) => { await ctx.ui.confirm("Sure?", "Are you?"); } });
        "#;
    let body = body.replace("NAMES", &serde_json::to_string(&names).unwrap());
    let call = bash("c1", "echo one; sleep 0.3; echo two");
    let replies = [call, Reply::text(["Done."]), Reply::text(["Summary."])];
    let world = extended(replies, &body);
    world.settings(json!({"compaction": {"keepRecentTokens": 1}, "cacheWarming": "idle"}));
    // One second after a request of this model, a refresh of its cache is to be decided.
    let models = world.dir.agent_dir().join("models.json");
    let mut known: Value = serde_json::from_str(&fs::read_to_string(&models).unwrap()).unwrap();
    known["providers"]["mock-openai"]["models"][0]["promptCache"] = json!({"short": 11});
    world.dir.write_models(&known).unwrap();
    let brought = world.dir.cwd().join(".pi/extensions");
    fs::create_dir_all(&brought).unwrap();
    fs::write(brought.join("brought.ts"), "export default () => {};").unwrap();
    let pi = world.start();
    pi.error(json!({"type": "compact"}));
    pi.say("Go");
    pi.data(json!({"type": "set_session_name", "name": "Gears"}));
    pi.data(json!({"type": "set_thinking_level", "level": "high"}));
    pi.data(json!({"type": "bash", "command": "true"}));
    pi.agent.skip();
    let asked = pi.send(json!({"type": "prompt", "message": "/ask"}));
    let question = pi.wait("extension_ui_request");
    pi.agent
        .send(&json!({"type": "extension_ui_response", "id": question["id"], "confirmed": true}))
        .unwrap();
    pi.response(&asked);
    pi.data(json!({"type": "compact"}));
    let entry = pi.get("get_entries")["entries"][0]["id"].clone();
    pi.data(json!({"type": "navigate_tree", "targetId": entry}));
    pi.data(json!({"type": "set_model", "provider": "mock-openai", "modelId": "gpt-mock"}));
    pi.get("new_session");
    world.server.set_default(Reply::text(["Later."]));
    pi.data(json!({"type": "set_model", "provider": "mock-anthropic", "modelId": "claude-mock"}));
    pi.say("Again");
    pi.get("clone");
    pi.data(json!({"type": "set_model", "provider": "mock-openai", "modelId": "gpt-mock"}));
    pi.say("Once more");
    until("all are heard", || heard(&world).len() >= sent.len());
    pi.finish();
    assert_eq!(heard(&world), sent);
}

#[test]
fn response_to_new_model_waits_for_handlers() {
    if !can_run() {
        return;
    }
    let (_world, pi) = two_exchanges(
        [],
        r#"
        pi.on("model_select", async (event) => {
          await new Promise((resolve) => setTimeout(resolve, 50));
          pi.setThinkingLevel("high");
          if (event.source === "set") throw new Error("not for me");
        });
        "#,
    );
    let model = pi.data(json!({"type": "set_model", "provider": "mock-openai", "modelId": "gpt-mock"}));
    assert_eq!(model["id"], "gpt-mock");
    assert_eq!(pi.state()["thinkingLevel"], "high");
    assert_eq!(of_type(&pi.lines(), "extension_error")[0]["error"], "not for me");
    pi.data(json!({"type": "set_thinking_level", "level": "low"}));
    let cycled = pi.data(json!({"type": "cycle_model"}));
    assert_ne!(cycled["model"]["id"], "gpt-mock");
    assert_eq!(cycled["thinkingLevel"], "high");
    pi.finish();
}

#[test]
fn sent_message_with_expansion_runs_command() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::text(["ok"])],
        r#"
        let wanted = true;
        pi.on("session_start", (event, ctx) => ctx.ui.notify("start " + event.reason));
        pi.on("agent_settled", () => { if (wanted) pi.sendUserMessage("/again now", { expandPromptTemplates: true }); wanted = false; });
        pi.registerCommand("again", { handler: async (args, ctx) => { ctx.ui.notify("again " + args); await ctx.reload(); } });
        pi.registerCommand("bad", { handler: async () => { throw new Error("bad command"); } });
        pi.registerCommand("send", { handler: async () => pi.sendUserMessage("/bad", { expandPromptTemplates: true }) });
        "#,
    );
    let pi = world.start();
    pi.say("Go");
    until("the reload", || {
        notes(&pi.lines()).contains(&"start reload".to_owned())
    });
    assert_eq!(notes(&pi.lines()), ["start startup", "again now", "start reload"]);
    command(&pi, "/send");
    until("the failure", || !failures(&pi).is_empty());
    assert_eq!(failures(&pi), [("command".to_owned(), "bad command".to_owned())]);
    // None of the commands reached the model.
    assert_eq!((pi.messages().len(), world.server.requests().len()), (2, 1));
    pi.finish();
}

#[test]
fn extension_events_have_members_of_pi() {
    if !can_run() {
        return;
    }
    let (world, pi) = two_exchanges(
        [Reply::text(["Summary."])],
        r#"
        const show = (name, members) => pi.on(name, (event, ctx) => ctx.ui.notify(name + " " + JSON.stringify(members(event, ctx))));
        show("session_compact", (e) => [e.reason, e.fromExtension, e.willRetry, e.compactionEntry.type]);
        show("session_compact_failed", (e) => [e.reason, e.aborted, e.errorMessage, e.willRetry, e.fromExtension]);
        show("model_select", (e, ctx) => [e.model.id, e.previousModel.id, e.source, ctx.model.id]);
        show("thinking_level_select", (e) => [e.level, e.previousLevel]);
        show("session_info_changed", (e) => [e.name]);
        show("ui_prompt_start", (e) => [e.reason, e.kind, e.title]);
        show("ui_prompt_end", (e) => [e.kind]);
        pi.registerCommand("ask", { handler: async (_a, ctx) => { await Promise.all([ctx.ui.input("Name?"), ctx.ui.input("Again?")]); } });
        "#,
    );
    world.settings(json!({"compaction": {"keepRecentTokens": 1}}));
    pi.data(json!({"type": "set_session_name", "name": "Gears"}));
    pi.data(json!({"type": "set_thinking_level", "level": "high"}));
    pi.data(json!({"type": "set_model", "provider": "mock-openai", "modelId": "gpt-mock"}));
    let asked = pi.send(json!({"type": "prompt", "message": "/ask"}));
    for title in ["Name?", "Again?"] {
        let question = pi.agent.wait(|line| line["title"] == title, LONG).unwrap();
        pi.agent
            .send(&json!({"type": "extension_ui_response", "id": question["id"], "value": "x"}))
            .unwrap();
    }
    pi.response(&asked);
    pi.error(json!({"type": "compact"}));
    until("the failure", || {
        notes(&pi.lines())
            .iter()
            .any(|note| note.starts_with("session_compact"))
    });
    let said = notes(&pi.lines());
    assert_eq!(said[0], r#"session_info_changed ["Gears"]"#);
    assert_eq!(said[1], r#"thinking_level_select ["high","medium"]"#);
    assert_eq!(
        said[2],
        r#"model_select ["gpt-mock","claude-mock","set","gpt-mock"]"#
    );
    assert!(
        said.contains(&r#"ui_prompt_start ["ui_prompt","input","Name?"]"#.to_owned()),
        "{said:?}"
    );
    assert_eq!(
        said.iter()
            .filter(|note| note.starts_with("ui_prompt_end"))
            .count(),
        1,
        "{said:?}"
    );
    let failed = said
        .iter()
        .find(|note| note.starts_with("session_compact_failed"))
        .unwrap();
    assert!(
        failed.starts_with(r#"session_compact_failed ["manual",false,"#),
        "{failed}"
    );
    pi.finish();
}

#[test]
fn extensions_provide_skills_and_prompts() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::text(["ok"])],
        r#"pi.on("resources_discover", (event) => ({ skillPaths: ["./kit-skills"], promptPaths: [event.cwd + "/kit-prompts"] }));"#,
    );
    let skills = world.dir.agent_dir().join("extensions/kit-skills/gears");
    fs::create_dir_all(&skills).unwrap();
    fs::write(
        skills.join("SKILL.md"),
        "---\nname: gears\ndescription: How to oil gears\n---\nUse oil.",
    )
    .unwrap();
    let prompts = world.dir.cwd().join("kit-prompts");
    fs::create_dir_all(&prompts).unwrap();
    fs::write(prompts.join("polish.md"), "Polish the $1 now.").unwrap();
    let pi = world.start();
    let commands = pi.get("get_commands")["commands"].clone();
    let names: Vec<&Value> = commands
        .as_array()
        .unwrap()
        .iter()
        .map(|command| &command["name"])
        .collect();
    assert_eq!(names, ["polish", "skill:gears"]);
    pi.say("/polish brass");
    let body = world.server.requests()[0].body.to_string();
    assert!(
        body.contains("Polish the brass now.") && body.contains("How to oil gears"),
        "{body}"
    );
    pi.finish();
}

#[test]
fn context_handlers_change_messages_and_system_prompt() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::text(["ok"])],
        r#"
        pi.on("context", ({ messages }) => ({ messages: [...messages, { role: "user", content: "one more", timestamp: 1 }] }));
        pi.on("context_with_system", ({ messages }) => ({ messages: [{ role: "system", content: "Teapot " + messages.length, timestamp: 1 }, ...messages.slice(1)] }));
        "#,
    );
    let pi = world.start();
    pi.say("Hi");
    let body = &world.server.requests()[0].body;
    assert!(body["system"].to_string().contains("Teapot 3"), "{body}");
    assert!(body["messages"].to_string().contains("one more"), "{body}");
    pi.finish();
}

#[test]
fn user_bash_handler_runs_command_or_fails() {
    if !can_run() {
        return;
    }
    let world = extended(
        [],
        r#"
        pi.on("user_bash", (event) => {
          if (event.command === "fail") throw new Error("no");
          if (event.command.startsWith("echo no")) return { block: true };
          if (event.command === "mine") return { operations: { exec: async (command, cwd, { onData }) => { onData(Buffer.from("ran " + command + "\n")); return { exitCode: 4 }; } } };
        });
        "#,
    );
    let pi = world.start();
    let ran = pi.data(json!({"type": "bash", "command": "mine"}));
    assert_eq!(
        (&ran["output"], &ran["exitCode"]),
        (&json!("ran mine\n"), &json!(4))
    );
    assert_eq!(
        pi.data(json!({"type": "bash", "command": "echo hi"}))["output"],
        "hi\n"
    );
    assert_eq!(pi.error(json!({"type": "bash", "command": "fail"})), "no");
    let error = pi.error(json!({"type": "bash", "command": "echo no >left"}));
    assert!(error.starts_with("Invalid user_bash handler result"), "{error}");
    assert!(!world.dir.cwd().join("left").exists(), "the command ran");
    assert_eq!(pi.messages().len(), 2);
    pi.finish();
}

#[test]
fn output_of_extension_command_is_streamed() {
    if !can_run() {
        return;
    }
    let world = extended(
        [],
        r#"
        let go = () => {};
        pi.registerCommand("go", { handler: async () => go() });
        pi.on("user_bash", () => ({ operations: { exec: async (command, cwd, { onData, signal }) => {
          onData(Buffer.from("\x1b[31mbegun\r\n"));
          await new Promise((done) => { go = done; signal.addEventListener("abort", done); });
          if (command === "exit") { process.kill(process.pid, "SIGKILL"); await new Promise(() => {}); }
          onData(Buffer.from("ended\n"));
          return { exitCode: 5 };
        } } }));
        "#,
    );
    let pi = world.start();
    let begin = |command: &str| {
        let id = pi.send(json!({"type": "bash", "command": command}));
        let update = pi.wait("bash_execution_update");
        assert_eq!((&update["id"], &update["delta"]), (&json!(id), &json!("begun\n")));
        id
    };
    let id = begin("whole");
    command(&pi, "/go");
    let ran = pi.response(&id)["data"].clone();
    assert_eq!(
        (&ran["output"], &ran["exitCode"], &ran["cancelled"]),
        (&json!("begun\nended\n"), &json!(5), &json!(false))
    );
    pi.agent.skip();
    let id = begin("aborted");
    pi.data(json!({"type": "abort_bash"}));
    let ran = pi.response(&id)["data"].clone();
    assert_eq!(
        (&ran["output"], ran.get("exitCode"), &ran["cancelled"]),
        (&json!("begun\nended\n"), None, &json!(true))
    );
    pi.agent.skip();
    // The extension process ends in the middle.
    let id = begin("exit");
    pi.send(json!({"type": "prompt", "message": "/go"}));
    let response = pi.response(&id);
    assert!(
        response["error"].as_str().unwrap().contains("process is gone"),
        "{response}"
    );
    assert_eq!(pi.messages().len(), 2, "a failed command is not stored");
    pi.finish();
}

#[test]
fn extension_input_handlers_apply_to_steering() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::text(["ok"]), Reply::text(["ok"])],
        r#"
        pi.registerCommand("now", { handler: async () => {} });
        pi.on("input", (event) => {
          if (event.text === "mine") return { action: "handled" };
          if (event.text === "short") return { action: "transform", text: "longer " + event.source };
        });
        "#,
    );
    let pi = world.start();
    let why = "Extension command \"/now\" cannot be queued. Use prompt() or execute the command when not streaming.";
    for kind in ["steer", "follow_up"] {
        assert_eq!(pi.error(json!({"type": kind, "message": "/now please"})), why);
        let data = pi.data(json!({"type": kind, "message": "mine"}));
        assert_eq!(data["disposition"], "handled");
        assert_eq!(
            pi.data(json!({"type": kind, "message": "short"}))["disposition"],
            "queued"
        );
    }
    let waiting = pi.get("get_queue")["items"].clone();
    let texts: Vec<&Value> = waiting
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["text"])
        .collect();
    assert_eq!(texts, ["longer rpc", "longer rpc"]);
    pi.finish();
}

#[test]
fn extension_context_reflects_current_flags_and_tools() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::text(["ok"]), Reply::text(["ok"])],
        r#"
        pi.registerFlag("plan", { type: "boolean", default: false });
        pi.registerFlag("depth", { type: "string", default: "none" });
        pi.registerFlag("quiet", { type: "boolean", default: false });
        pi.registerTool({ name: "bash", label: "b", description: "Mine", parameters: { type: "object", properties: {} }, execute: async () => ({ content: [] }) });
        const { createBashTool } = require("@mariozechner/pi-coding-agent");
        pi.registerCommand("look", { handler: async (_a, ctx) => ctx.ui.notify(JSON.stringify({
          flags: [pi.getFlag("plan"), pi.getFlag("depth"), pi.getFlag("quiet")],
          usage: ctx.getContextUsage()?.tokens > 0,
          scoped: ctx.scopedModels.map(({ model }) => model.id),
          options: [ctx.getSystemPromptOptions().selectedTools, ctx.getSystemPromptOptions().toolSnippets.read !== undefined],
          builtin: createBashTool(ctx.cwd).description !== "Mine",
          active: pi.getActiveTools(),
          models: ctx.modelRegistry.getAvailable().length > 1,
        })) });
        pi.registerCommand("limit", { handler: async () => pi.setActiveTools(["read", "bash", "nothing"]) });
        "#,
    );
    let pi = world.start_with(&["--plan", "--depth", "3", "--models", "gpt-mock"]);
    pi.say("Hi");
    command(&pi, "/limit");
    let look = notes(&command(&pi, "/look")).remove(0);
    let look: Value = serde_json::from_str(&look).unwrap();
    assert_eq!(look["flags"], json!([true, "3", false]));
    assert_eq!(look["scoped"], json!(["gpt-mock"]));
    assert_eq!(look["options"], json!([["read", "bash"], true]));
    assert_eq!(look["active"], json!(["read", "bash"]));
    assert_eq!(
        (&look["usage"], &look["builtin"], &look["models"]),
        (&json!(true), &json!(true), &json!(true))
    );
    pi.say("Hi");
    let tools = world.server.requests()[1].body["tools"].clone();
    assert_eq!(tools.as_array().unwrap().len(), 2);
    pi.finish();
}

#[test]
fn extensions_see_what_session_made_of_their_choices() {
    if !can_run() {
        return;
    }
    let world = extended(
        [],
        r#"
        pi.registerCommand("look", { handler: async (_a, ctx) => ctx.ui.notify([pi.getThinkingLevel(), ...pi.getActiveTools()].join(" ")) });
        pi.registerCommand("choose", { handler: async () => { pi.setThinkingLevel("max"); pi.setActiveTools(["read", "bash"]); } });
        pi.registerCommand("add", { handler: async () => {
          pi.registerTool({ name: "greet", label: "g", description: "Greets", parameters: { type: "object", properties: {} }, execute: async () => ({ content: [] }) });
        } });
        "#,
    );
    // The model has no level above this one, and the command line allows one tool.
    let pi = world.start_with(&["--tools", "read", "--thinking", "high"]);
    for line in ["/look", "/choose", "/look", "/add", "/look"] {
        for seen in notes(&command(&pi, line)) {
            assert_eq!(seen, "high read", "{line}");
        }
    }
    assert_eq!(notes(&pi.lines()).len(), 3);
    pi.finish();
}

#[test]
fn extensions_add_and_remove_mcp_servers() {
    if !can_run() {
        return;
    }
    let world = World::new([
        Reply::tool("c1", "mcp__kit__echo", json!({"text": "hi"})),
        Reply::text(["done"]),
        Reply::text(["gone"]),
    ]);
    let log = world.dir.root().join("kit.log");
    let kit = entry(&log, "");
    let body = format!(
        r#"
        pi.registerMcpServer("kit", {kit});
        pi.registerMcpServer("odd", {{ command: 7 }});
        pi.registerCommand("drop", {{ handler: async () => pi.unregisterMcpServer("kit") }});
        "#
    );
    put(&world, "kit.ts", &body);
    let pi = world.start();
    pi.say("Go");
    assert_eq!(ends(&pi), [(false, "hi".to_owned())]);
    let lines = pi.lines();
    let told = of_type(&lines, "notice")[0]["message"].as_str().unwrap();
    assert!(told.starts_with("MCP server \"odd\": "), "{told}");
    let servers = pi.get("get_mcp_servers")["servers"].clone();
    assert_eq!(
        (&servers[0]["name"], &servers[0]["source"]),
        (&json!("kit"), &json!("extension"))
    );
    command(&pi, "/drop");
    assert_eq!(pi.get("get_mcp_servers"), json!({"servers": []}));
    pi.say("Go on");
    let tools = world.server.requests()[2].body["tools"].to_string();
    assert!(!tools.contains("mcp__kit__echo"), "{tools}");
    pi.finish();
}

#[test]
fn abort_waits_briefly_for_message_end_handlers() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::text(["one secret"]), Reply::text(["two"])],
        r#"
        for (const name of ["turn_end", "agent_end", "agent_settled"]) pi.on(name, () => {});
        pi.on("message_end", async ({ message }, ctx) => {
          if (message.role !== "assistant") return;
          ctx.ui.notify("asked");
          if (message.content[0].text === "two") await new Promise(() => {});
          await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
          return { message: { ...message, content: [{ type: "text", text: "changed" }] } };
        });
        "#,
    );
    let pi = world.start();
    for (at, told) in ["changed", "two"].into_iter().enumerate() {
        pi.prompt("Go");
        until("the question", || notes(&pi.lines()).len() == at + 1);
        pi.agent.skip();
        pi.data(json!({"type": "abort"}));
        pi.settled();
        assert_eq!(said(&pi).last().unwrap().1, told);
    }
    pi.agent.close_stdin();
    pi.agent.wait_exit(LONG).unwrap();
}

#[test]
fn aborted_signal_does_not_reach_next_run() {
    if !can_run() {
        return;
    }
    let world = extended(
        [bash("c1", "true"), bash("c2", "true"), Reply::text(["done"])],
        r#"
        pi.on("tool_call", async (event, ctx) => {
          ctx.ui.notify(event.toolCallId + " " + ctx.signal.aborted);
          if (event.toolCallId === "c1") await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
        });
        "#,
    );
    let pi = world.start();
    pi.prompt("Go");
    until("the question", || notes(&pi.lines()).len() == 1);
    pi.agent.skip();
    pi.data(json!({"type": "abort"}));
    pi.settled();
    pi.say("Again");
    assert_eq!(notes(&pi.lines()), ["c1 false", "c2 false"]);
    pi.finish();
}

#[test]
fn extension_completions_and_shortcuts_work_over_rpc() {
    if !can_run() {
        return;
    }
    let world = extended(
        [],
        r#"
        pi.registerCommand("deploy", { handler: async () => {},
          getArgumentCompletions: (prefix) => ["staging", "production"].filter((name) => name.startsWith(prefix)).map((name) => ({ value: name, label: name })) });
        pi.registerCommand("bare", { handler: async () => {} });
        pi.registerShortcut("ctrl+shift+d", { description: "Deploy", handler: async (ctx) => ctx.ui.notify("pressed") });
        pi.registerShortcut("ctrl+x", { handler: async () => { throw new Error("not now"); } });
        "#,
    );
    let pi = world.start();
    let complete = |name: &str, prefix: &str| {
        pi.data(json!({"type": "complete_arguments", "name": name, "prefix": prefix}))["items"].clone()
    };
    assert_eq!(
        complete("deploy", "st"),
        json!([{"value": "staging", "label": "staging"}])
    );
    assert_eq!(complete("deploy", "").as_array().unwrap().len(), 2);
    assert_eq!(complete("bare", "x"), json!([]));
    let why = pi.error(json!({"type": "complete_arguments", "name": "none", "prefix": ""}));
    assert_eq!(why, "No extension has the command /none");
    let keys = pi.get("get_shortcuts")["shortcuts"].clone();
    assert_eq!(
        (&keys[0]["shortcut"], &keys[0]["description"]),
        (&json!("ctrl+shift+d"), &json!("Deploy"))
    );
    assert!(keys[0]["extensionPath"].as_str().unwrap().ends_with("kit.ts"));
    pi.data(json!({"type": "run_shortcut", "shortcut": "ctrl+shift+d"}));
    assert_eq!(notes(&pi.lines()), ["pressed"]);
    pi.data(json!({"type": "run_shortcut", "shortcut": "ctrl+x"}));
    assert_eq!(failures(&pi), [("shortcut".to_owned(), "not now".to_owned())]);
    pi.error(json!({"type": "run_shortcut", "shortcut": "f1"}));
    pi.finish();
}

#[test]
fn turn_end_context_edit_changes_later_requests() {
    if !can_run() {
        return;
    }
    let world = extended(
        [
            bash("c1", "echo a long output"),
            Reply::text(["ok"]),
            Reply::text(["ok"]),
        ],
        r#"
        let turns = 0;
        pi.on("turn_end", (event, ctx) => {
          turns += 1;
          if (turns === 1) return { entries: [{ type: "context_edit", targetId: event.toolResultEntryIds[0], replacement: "short" }] };
          const [first] = ctx.sessionManager.getEntries().filter((entry) => entry.type === "message");
          if (turns === 2) return { entries: [
            { type: "compaction", summary: "All of it.", firstKeptEntryId: event.messageEntryId },
            { type: "compaction", summary: "Nothing.", firstKeptEntryId: "nowhere" },
            { type: "message", message: first.message },
          ] };
        });
        "#,
    );
    let pi = world.start();
    pi.say("Go");
    let body = world.server.requests()[1].body["messages"].to_string();
    assert!(
        body.contains("short") && !body.contains("a long output\\n"),
        "{body}"
    );
    assert_eq!(pi.roles(), ["compactionSummary", "assistant"]);
    pi.say("More");
    let body = world.server.requests()[2].body["messages"].to_string();
    assert!(body.contains("All of it.") && !body.contains("short"), "{body}");
    let failures: Vec<String> = failures(&pi).into_iter().map(|(_, why)| why).collect();
    assert_eq!(
        failures,
        [
            "Entry not found: nowhere",
            "an entry of the type message cannot be added here"
        ]
    );
    // The conversation is shorter than the events, which `finish` would reject.
    pi.agent.close_stdin();
    pi.agent.wait_exit(LONG).unwrap();
}

#[test]
fn nested_call_asks_permission_and_ends_with_tool() {
    if !can_run() {
        return;
    }
    let world = extended(
        [
            Reply::tool("c1", "waits", json!({})),
            Reply::tool("c2", "leaves", json!({})),
            Reply::text(["done"]),
        ],
        r#"
        const tool = (name, execute) => pi.registerTool({ name, label: name, description: name, parameters: { type: "object", properties: {} }, execute });
        tool("waits", (_id, _params, _signal, _update, ctx) => ctx.executeTool("bash", { command: "echo hi" }).then(({ result }) => result));
        tool("leaves", async (_id, _params, _signal, _update, ctx) => {
          ctx.executeTool("bash", { command: "sleep 30" });
          await new Promise((resolve) => setTimeout(resolve, 300));
          return { content: [{ type: "text", text: "left" }] };
        });
        "#,
    );
    world.settings(json!({"permissions": {"mode": "ask", "allow": ["waits", "leaves", "bash(sleep *)"]}}));
    let pi = world.start();
    pi.prompt("Go");
    let question = pi.wait("extension_ui_request");
    assert!(
        question["title"].as_str().unwrap().contains("echo hi"),
        "{question}"
    );
    pi.agent
        .send(&json!({"type": "extension_ui_response", "id": question["id"], "value": "Allow once"}))
        .unwrap();
    pi.settled();
    let lines = pi.lines();
    let ends = of_type(&lines, "tool_execution_end");
    let end = |id: &str| {
        let found = ends.iter().find(|end| end["toolCallId"] == id);
        found
            .map(|end| (text(&end["result"]), end["isError"] == true))
            .unwrap()
    };
    assert_eq!(end("c1"), ("hi\n".to_owned(), false));
    assert_eq!(end("c2"), ("left".to_owned(), false));
    assert_eq!(end("c2/1"), ("Operation aborted".to_owned(), true));
    assert_eq!(ends.len(), 4);
    pi.finish();
}

#[test]
fn local_models_found_later_reach_extensions() {
    if !can_run() {
        return;
    }
    let world = extended(
        [],
        r#"pi.registerCommand("look", { handler: async (_a, ctx) => ctx.ui.notify(ctx.modelRegistry.getAvailable().map(({ id }) => id).join(" ")) });"#,
    );
    let front = crate::local_models::ollama(&world);
    let variables = crate::local_models::variables(&front);
    let config = variables
        .into_iter()
        .fold(world.config(), |config, (name, value)| config.env(name, value));
    let pi = Pi::spawn(config);
    let has = |pi: &Pi| notes(&command(pi, "/look")).remove(0).contains("qwen3:8b");
    assert!(!has(&pi));
    until("the list is written", || {
        // Asked again: the server may be late on a busy machine.
        pi.get("get_available_models");
        has(&pi)
    });
    pi.finish();
}

/// As pi 1.5.2 answers for the same flags.
#[test]
fn commands_of_flags_say_their_source() {
    if !can_run() {
        return;
    }
    let world = World::new([]);
    let (cwd, root) = (world.dir.cwd(), world.dir.cwd().join("own"));
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(
        "e.js",
        "export default (pi) => pi.registerCommand('hi', { handler: async () => {} });",
    );
    write("prompts/tidy.md", "Tidy up.");
    write(
        "skills/gears/SKILL.md",
        "---\nname: gears\ndescription: Oil\n---\nUse oil.",
    );
    let pi = world.start_with(&[
        "-e",
        "./own/x/../e.js",
        "--prompt-template",
        "own/prompts/../prompts",
        "--skill",
        "own/skills",
    ]);
    let commands = pi.get("get_commands")["commands"].clone();
    let info = |name: &str| {
        let mut commands = commands.as_array().unwrap().iter();
        commands.find(|command| command["name"] == name).unwrap()["sourceInfo"].clone()
    };
    let path = |path: &str| cwd.join("own").join(path).to_str().unwrap().to_owned();
    let temporary = |source: &str, file: &str| json!({"path": path(file), "source": source, "scope": "temporary", "origin": "top-level"});
    let with_base = |mut info: Value, base: &str| {
        info["baseDir"] = json!(path(base));
        info
    };
    assert_eq!(info("hi"), temporary("cli", "e.js"));
    assert_eq!(
        info("tidy"),
        with_base(temporary("local", "prompts/tidy.md"), "prompts")
    );
    assert_eq!(
        info("skill:gears"),
        with_base(temporary("local", "skills/gears/SKILL.md"), "skills/gears")
    );
    pi.finish();
}
