//! What extensions in TypeScript call and change besides what `extensions` shows: messages, tools inside tools, the agent's
//! own tools, and where a run goes on. Run by the real host under Node.

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::extensions::{can_run, command, extended, failures, notes};
use crate::kit::{LONG, Pi, World, of_type, text, until};
use crate::permissions::ends;

/// The texts of the messages, by role.
fn said(pi: &Pi) -> Vec<(String, String)> {
    let messages = pi.messages();
    let one = |message: &Value| (message["role"].as_str().unwrap().to_owned(), text(message));
    messages.iter().map(one).collect()
}

#[test]
fn a_message_that_is_replaced_is_the_one_that_is_stored_told_and_sent() {
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
    // What was told piece by piece is not what it ended as, which `finish` would not have.
    pi.agent.close_stdin();
    pi.agent.wait_exit(LONG).unwrap();
}

#[test]
fn arguments_are_prepared_before_they_are_checked() {
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
    // What the model wrote is what is told.
    assert_eq!(
        of_type(&lines, "tool_execution_start")[0]["args"],
        json!({"n": "one"})
    );
    assert_eq!(notes(&lines), [r#"{"n":1}"#]);
    pi.finish();
}

#[test]
fn the_end_of_a_turn_and_the_last_moment_take_entries_and_go_on() {
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
fn going_on_without_anything_to_answer_is_refused() {
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
fn the_agents_own_tools_run_for_extensions() {
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
fn a_tool_calls_other_tools_with_hooks() {
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
            const lines = results.map(({ content, details, isError }) => [isError, content[0].text.trim().split("\n")[0], details?.parent].join("|"));
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
fn permissions_hold_inside_tools_and_an_abort_ends_them() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::tool("c1", "outer", json!({})), Reply::text(["done"])],
        r#"
        pi.registerTool({ name: "outer", label: "Outer", description: "Outer", parameters: { type: "object", properties: {} },
          async execute(_id, _params, _signal, _update, ctx) {
            const denied = await ctx.executeTool("bash", { command: "curl example.org" });
            ctx.ui.notify(denied.content[0].text);
            const slow = await ctx.executeTool("bash", { command: "sleep 30" });
            return slow;
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
