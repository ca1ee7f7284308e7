/** Hooks and custom tools of the older generations (dialects.md 10). */
import { test } from "node:test";
import assert from "node:assert/strict";
import { withAgent } from "./support/fake-agent.mjs";

const message = (id, parentId, role) => ({ type: "message", id, parentId, timestamp: "2026-01-01T00:00:00Z", message: { role, content: "x" } });
const notices = (agent) => agent.seen.filter(({ method }) => method === "ui.notify").map(({ params }) => params.message);

test("hooks of the first generation: the session event and its reasons", async () => {
  await withAgent(async (agent) => {
    agent.answers = { "ui.select": null };
    const [item] = await agent.open({ "h.ts": `export default function (pi) {
      pi.on("session", async (event, ctx) => {
        ctx.ui.notify(event.reason + (event.targetTurnIndex ?? "") + ":" + ctx.sessionFile + ":" + event.entries.length);
        if (event.reason === "start") ctx.ui.notify("chosen " + (await ctx.ui.select("?", [])) + ":/f:0");
        if (event.reason === "before_clear" || event.reason === "before_branch") return { cancel: true };
      });
      pi.on("tool_result", () => ({ isError: true })); pi.on("tool_result", (e) => e.old && { result: "bare text" });
      pi.on("agent_start", (e, ctx) => { pi.send("more", [{ type: "image", content: "AA", mimeType: "image/png" }]); return ctx.exec("echo", ["x"]).then((r) => ctx.ui.notify(r.stdout.trim())); });
    }` }, { kind: "hook", generation: "hooks", state: { sessionFile: "/f", isIdle: false } });
    for (const name of ["session_start", "session_before_switch", "session_before_fork", "session_shutdown"]) assert.ok(item.events.includes(name), name);
    await agent.event("session_start", { reason: "startup" });
    await agent.event("session_start", { reason: "resume" });
    assert.deepEqual((await agent.event("session_before_switch", { reason: "new" })).value, { cancel: true });
    assert.equal((await agent.event("session_before_switch", { reason: "resume" })).value, null);
    agent.send({ type: "entries", session: "s1", from: 0, entries: [message("u1", null, "user"), message("a1", "u1", "assistant"), message("u2", "a1", "user")] });
    assert.deepEqual((await agent.event("session_before_fork", { entryId: "u2" })).value, { cancel: true });
    await agent.event("session_shutdown", { reason: "quit" });
    assert.deepEqual(notices(agent).map((text) => text.split(":")[0]), ["start", "chosen null", "switch", "before_new", "before_clear", "before_switch", "before_branch1", "shutdown"]);
    assert.ok(notices(agent).every((text) => /:\/f:[03]$/.test(text)));
    assert.equal((await agent.event("tool_result", { isError: true, content: [] })).value, null);
    assert.deepEqual((await agent.event("tool_result", { isError: false, content: [] })).value, { isError: true });
    assert.deepEqual((await agent.event("tool_result", { old: true, content: [] })).value, { content: [{ type: "text", text: "bare text" }] });
    await agent.event("agent_start", {});
    assert.deepEqual((await agent.call("sendUserMessage")).params,
      { content: [{ type: "text", text: "more" }, { type: "image", data: "AA", mimeType: "image/png" }], options: { deliverAs: "steer" } });
    assert.equal(notices(agent).at(-1), "x");
  });
});

test("hooks between: renamed events, a bare trigger, the first message only", async () => {
  await withAgent(async (agent) => {
    await agent.open({ "h.ts": `export default function (pi) {
      pi.on("session_switch", (e, ctx) => ctx.ui.notify(e.type + e.reason));
      pi.on("session_branch", (e, ctx) => ctx.ui.notify(e.type));
      pi.on("session_before_branch", () => ({ skipConversationRestore: true }));
      pi.on("before_agent_start", () => ({ message: { customType: "one" } }));
      pi.on("before_agent_start", () => ({ message: { customType: "two" } }));
      pi.on("turn_start", () => { pi.sendMessage({ customType: "k", content: "c", display: true }, true); });
    }` }, { kind: "hook", generation: "hooks" });
    await agent.event("session_start", { reason: "resume" });
    await agent.event("session_start", { reason: "fork" });
    assert.deepEqual(notices(agent), ["session_switchresume", "session_branch"]);
    assert.deepEqual((await agent.event("session_before_fork", {})).value, { skipConversationRestore: true });
    assert.deepEqual((await agent.event("before_agent_start", { systemPrompt: "" })).value.messages, [{ customType: "one" }]);
    await agent.event("turn_start", {});
    assert.deepEqual((await agent.call("sendMessage")).params.options, { triggerTurn: true });
  });
});

test("the first oh-my-pi: its clients had nobody to ask", async () => {
  await withAgent(async (agent) => {
    await agent.open({ "h.ts": `export default function (pi) {
      pi.on("tool_call", () => ({ block: true })); pi.on("tool_result", () => ({ isError: true })); pi.on("tool_result", (e, ctx) => ({ details: [e.isError, ctx.hasUI] }));
    }` }, { kind: "hook", generation: "omp", state: { hasUI: false, hookEra: true } });
    assert.equal((await agent.event("tool_call", { input: {} })).value.reason, "Tool execution was blocked by a hook");
    assert.equal((await agent.event("tool_result", { isError: true, content: [] })).value, null);
    assert.deepEqual((await agent.event("tool_result", { isError: false, content: [] })).value, { details: [false, false] });
  });
});

test("today's extensions do not hear the old names", async () => {
  await withAgent(async (agent) => {
    const [item] = await agent.open({ "a.ts": `export default (pi) => { pi.on("session_switch", () => {}); }` });
    assert.deepEqual(item.events, ["session_switch"]);
  });
});

test("a hook that takes too long is given up, but not on tool_call", async () => {
  await withAgent(async (agent) => {
    await agent.open({ "h.ts": `export default (pi) => { const slow = () => new Promise((go) => setTimeout(() => go({ block: true }), 120)); pi.on("turn_start", slow); pi.on("tool_call", slow); }` },
      { kind: "hook", generation: "hooks", hookTimeout: 40 });
    assert.equal((await agent.event("turn_start", {})).errors[0].error, "Hook timed out after 40ms");
    assert.equal((await agent.event("tool_call", { input: {} })).value.reason, "Tool execution was blocked by a hook");
  });
});

test("custom tools: factories, several tools, onSession, three orders of arguments", async () => {
  await withAgent(async (agent) => {
    const items = await agent.open({
      "t.ts": `import { Type } from "@sinclair/typebox";
        const factory = (pi) => [
          { name: "oldest", label: "O", description: pi.cwd, parameters: Type.Object({}), async execute(id, params, signal, onUpdate) { onUpdate({ content: [] }); return { content: [], details: signal instanceof AbortSignal }; },
            async onSession(event, ctx) { pi.ui.notify("nobody sees it"); console.error("onSession " + event.reason + event.entries.length + pi.hasUI + ctx.hasUI + (await pi.ui.confirm("?", "?"))); } },
          { name: "middle", parameters: {}, async execute(id, params, onUpdate, ctx, signal) { onUpdate({ content: [] }); return { content: [], details: [ctx.isIdle(), signal instanceof AbortSignal, ctx.hasQueuedMessages()] }; } },
          { name: "runs", parameters: {}, execute: async () => ({ content: [], details: (await pi.exec("echo", ["y"])).stdout }) },
        ];
        export default factory;`,
    }, { kind: "tool", generation: "hooks" });
    assert.deepEqual(items[0].tools.map(({ name }) => name), ["oldest", "middle", "runs"]);
    assert.equal(items[0].tools[0].description, agent.dir);
    assert.equal((await agent.run("tool.execute", { name: "oldest", args: {} })).value.details, true);
    assert.deepEqual((await agent.run("tool.execute", { name: "middle", args: {} })).value.details, [true, true, false]);
    assert.equal((await agent.run("tool.execute", { name: "runs", args: {} })).value.details, "y\n");
    await agent.event("session_start", { reason: "startup" });
    await agent.event("session_shutdown", {});
    assert.deepEqual(notices(agent), []);
    await agent.stop();
    assert.match(agent.stderr, /onSession start0falsefalsefalse\nonSession shutdown0falsefalsefalse/);
  });
});
