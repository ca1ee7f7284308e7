/** The extensions of the recorded scenarios (one file each in scenarios/), driven as the recordings drive them. */
import { test } from "node:test";
import assert from "node:assert/strict";
import fs from "node:fs";
import { fileURLToPath } from "node:url";
import { withAgent } from "./support/fake-agent.mjs";

const FOLDER = fileURLToPath(new URL("./scenarios/", import.meta.url));
const open = (agent, name, options) => agent.open([`${FOLDER}${name}.ts`], options);
const notices = (agent) => agent.seen.filter(({ method }) => method === "ui.notify").map(({ params }) => params.message);

test("all load but the one that is not TypeScript", async () => {
  await withAgent(async (agent) => {
    const names = fs.readdirSync(FOLDER).map((file) => file.replace(/\.ts$/, ""));
    for (const name of names) {
      const [item] = await open(agent, name, { session: name });
      if (name === "load-failure") assert.match(item.error, /^Failed to load extension: ParseError: Missing semicolon\./);
      else {
        assert.equal(item.error, undefined, name);
        assert.ok(item.events.length + item.tools.length + item.commands.length > 0, name);
      }
    }
  });
});

test("cancelling a switch, a fork, a compaction", async () => {
  await withAgent(async (agent) => {
    await open(agent, "cancel-switch", { session: "a" });
    await open(agent, "cancel-fork", { session: "b" });
    await open(agent, "compact-cancel", { session: "c" });
    assert.deepEqual((await agent.event("session_before_switch", { reason: "resume", targetSessionFile: "/x" }, "a")).value, { cancel: true });
    assert.deepEqual((await agent.event("session_before_fork", { entryId: "e", position: "at" }, "b")).value, { cancel: true });
    assert.deepEqual((await agent.event("session_before_compact", { preparation: {} }, "c")).value, { cancel: true });
    assert.deepEqual(notices(agent), ["switch resume file", "fork at"]);
  });
});

test("input and before_agent_start", async () => {
  await withAgent(async (agent) => {
    await open(agent, "input");
    assert.deepEqual((await agent.event("input", { text: "ping", source: "rpc" })).value, { action: "handled" });
    assert.deepEqual((await agent.event("input", { text: "?quick why", source: "rpc" })).value, { action: "transform", text: "Briefly: why" });
    assert.equal((await agent.event("input", { text: "plain", source: "rpc" })).value, null);
    const { value } = await agent.event("before_agent_start", { prompt: "Briefly: why", systemPrompt: "S" });
    assert.deepEqual(value, { messages: [{ customType: "kit", content: "injected context", display: true, details: { a: 1 } }], systemPrompt: "S\nINJECTED-SYSTEM" });
    assert.deepEqual(notices(agent), ["pong rpc"]);
  });
});

test("provider request, tool block, tool result", async () => {
  await withAgent(async (agent) => {
    await open(agent, "provider-request", { session: "a" });
    await open(agent, "tool-block", { session: "b" });
    await open(agent, "tool-result-error", { session: "c" });
    assert.equal((await agent.event("context", { messages: [1] }, "a")).value.messages.length, 2);
    assert.deepEqual((await agent.event("before_provider_request", { payload: { model: "m", max_tokens: 5 } }, "a")).value, { payload: { model: "m", max_tokens: 77 } });
    assert.deepEqual((await agent.event("tool_call", { toolName: "bash", input: { command: "rm -rf /" } }, "b")).value, { block: true, reason: "Dangerous" });
    assert.equal((await agent.event("tool_call", { toolName: "bash", input: { command: "ls" } }, "b")).value, null);
    assert.deepEqual((await agent.event("tool_result", { isError: true }, "c")).value, { isError: false, content: [{ type: "text", text: "forgiven" }] });
    assert.deepEqual((await agent.event("tool_result", { isError: false }, "c")).value, { isError: true });
  });
});

test("errors, time limits, a dialog in session_start, printing", async () => {
  await withAgent(async (agent) => {
    agent.answers = { "ui.select": null, "ui.confirm": false, "ui.input": null };
    await open(agent, "errors", { session: "a" });
    await open(agent, "ui-timeout", { session: "b" });
    await open(agent, "dialog-session-start-timeout", { session: "c" });
    await open(agent, "console-log", { session: "d" });
    assert.equal((await agent.run("command.run", { name: "boom" }, "a")).message, "command exploded");
    assert.equal((await agent.event("turn_start", {}, "a")).errors[0].error, "turn_start exploded");
    await agent.run("command.run", { name: "t" }, "b");
    await agent.event("session_start", { reason: "startup" }, "c");
    await agent.run("command.run", { name: "log" }, "d");
    assert.deepEqual(notices(agent), ["[null,false,null]", "answer false"]);
    assert.deepEqual(agent.garbage, []);
  });
});

test("every event of a run is heard", async () => {
  await withAgent(async (agent) => {
    const [item] = await open(agent, "events-order");
    for (const name of item.events) await agent.event(name, name.startsWith("message") ? { message: { role: "user" } } : { input: {} });
    assert.equal(agent.seen.filter(({ method }) => method === "ui.setStatus").length, item.events.length);
    assert.ok(item.events.length >= 16);
  });
});

test("messages, entries, names from a command", async () => {
  await withAgent(async (agent) => {
    await open(agent, "send-message");
    for (const name of ["note", "trigger", "user"]) await agent.run("command.run", { name });
    const said = agent.seen.filter(({ type }) => type === "call").map(({ method }) => method);
    assert.deepEqual(said, ["sendMessage", "appendEntry", "setSessionName", "sendMessage", "sendUserMessage"]);
  });
});
