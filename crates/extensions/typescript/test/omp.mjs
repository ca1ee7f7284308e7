/** Extensions of oh-my-pi: what they find beyond what those of pi find, and answers that only they give. */
import { test } from "node:test";
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { withAgent } from "./support/fake-agent.mjs";

const require = createRequire(import.meta.url);
const OMP = { generation: "omp", state: { newestOmp: true } };
const notices = (agent) => agent.seen.filter(({ method }) => method === "ui.notify").map(({ params }) => params.message);
const logged = (agent) => agent.seen.filter(({ type }) => type === "log").map(({ message }) => message);

test("schemas of zod: what they tell and how they read", () => {
  const z = require("../modules/zod.cjs").create();
  assert.equal(z.z.string, z.string);
  const schema = z.object({
    name: z.string().min(1).describe("Who"), mode: z.enum(["a", "b"]).default("a"), count: z.number().int().max(9).optional(),
    list: z.array(z.union([z.string(), z.number()])).nullable(), any: z.record(z.string(), z.unknown()).optional(),
  });
  assert.deepEqual(JSON.parse(JSON.stringify(schema)), {
    type: "object", required: ["name", "list"],
    properties: {
      name: { type: "string", minLength: 1, description: "Who" }, mode: { type: "string", enum: ["a", "b"], default: "a" },
      count: { type: "integer", maximum: 9 }, list: { anyOf: [{ type: "array", items: { anyOf: [{ type: "string" }, { type: "number" }] } }, { type: "null" }] },
      any: { type: "object", additionalProperties: {} },
    },
  });
  assert.deepEqual(schema.parse({ name: "x", list: ["a", 1], other: 1 }), { name: "x", mode: "a", list: ["a", 1] });
  assert.match(schema.safeParse({ name: "", list: 1, count: 1.5 }).error.message, /name: must be at least 1; count: must be an integer; list: must be an array/);
  assert.equal(schema.strict().toJSONSchema().additionalProperties, false);
  assert.equal(schema.partial().toJSONSchema().required, undefined);
  assert.equal(z.string().trim().transform((text) => text.length).parse(" ab "), 2);
  assert.equal(z.number().catch(7).parse("x"), 7);
  assert.deepEqual(z.literal(["a"]).toJSONSchema(), { type: "string", const: "a" });
  assert.equal(z.object({ a: z.string() }).describe("D").strict().safeParse({ a: "x", b: 1 }).success, false);
  assert.throws(() => z.object({ a: z.string() }).refine(({ a }) => a !== "x").strict(), /comes before refine/);
  assert.throws(() => z.string().refine((text) => text === "x", "no x").parse("y"), /no x/);
});

test("schemas of arktype, as far as parameters need them", () => {
  const type = require("../modules/arktype.cjs").create(require("../modules/zod.cjs").create());
  const schema = type({ path: "string", "limit?": "1 <= number <= 100", mode: "'a' | 'b'", tags: "string[]", "deep?": { on: "boolean = true" }, "+": "reject" });
  assert.deepEqual(schema.toJSONSchema(), {
    type: "object", required: ["path", "mode", "tags"], additionalProperties: false,
    properties: {
      path: { type: "string" }, limit: { type: "number", minimum: 1, maximum: 100 }, mode: { type: "string", enum: ["a", "b"] },
      tags: { type: "array", items: { type: "string" } }, deep: { type: "object", properties: { on: { type: "boolean", default: true } } },
    },
  });
  assert.deepEqual(type("string", "|", "number").toJSONSchema(), { anyOf: [{ type: "string" }, { type: "number" }] });
  assert.deepEqual(type("string", "[]").toJSONSchema(), { type: "array", items: { type: "string" } });
  assert.throws(() => type("string", "&", "number"), /not supported here/);
  assert.throws(() => type("Map<string>"), /not supported here: use pi.zod or typebox/);
});

test("the API object and contexts of oh-my-pi; modules under its names", async () => {
  await withAgent(async (agent) => {
    const [item] = await agent.open({ "a.ts": `import chalk from "@oh-my-pi/pi-utils/chalk"; import { isEnoent } from "@oh-my-pi/pi-utils"; import { z } from "@oh-my-pi/omptype/zod";
      import { type } from "@oh-my-pi/omptype"; import { Type } from "@oh-my-pi/omptype/typebox";
      export default (pi: any) => {
        pi.registerFileWriteFallback(() => false); pi.registerComposerShape({}); pi.setLabel("Mine"); pi.setServiceTier("openai", "priority");
        pi.pi.logger.info("told", { a: 1 });
        pi.registerTool({ name: "t", label: "T", description: "", defaultInactive: true, parameters: pi.zod.object({ n: pi.zod.number().default(3) }),
          async execute(id: string, params: any) { return { content: [{ type: "text", text: String(params.n) }] }; } });
        pi.on("agent_start", async (e: any, ctx: any) => {
          const facts = [chalk.bold.red("x"), isEnoent(Object.assign(new Error(), { code: "ENOENT" })), z.string().parse("s"), typeof type("string").parse, Type.String().type,
            ctx.agent.kind, ctx.models.current().id, ctx.models.family({ id: "claude-x", provider: "p" }), ctx.getSystemPrompt(), ctx.getAsyncJobSnapshot(),
            await pi.setActiveTools(["t"]).then(() => "set"), Object.keys(pi.getServiceTiers()).length];
          ctx.setTimeout(() => { throw new Error("late"); }, 0);
          ctx.clearTimer(ctx.setInterval(() => ctx.ui.notify("never"), 0));
          ctx.ui.notify(JSON.stringify(facts));
        });
      };` }, { generation: "omp", state: { newestOmp: true, systemPrompt: "S", model: { provider: "p", id: "m" } } });
    assert.equal(item.error, undefined);
    assert.deepEqual([item.tools[0].defaultActive, item.tools[0].parameters.properties], [false, { n: { type: "number", default: 3 } }]);
    await agent.event("agent_start", {});
    assert.deepEqual(JSON.parse(notices(agent)[0]), ["x", true, "s", "function", "string", "main", "m", "claude", ["S"], null, "set", 0]);
    const { error, event } = await agent.wait({ type: "failure" });
    assert.deepEqual([error, event], ["late", "timer"]);
    assert.ok(logged(agent).includes("fallback for writing files is not available headless") && logged(agent).includes('told {"a":1}'));
    const told = await agent.ask({ type: "call", session: "s1", method: "tool.execute", params: { name: "t", toolCallId: "c", args: {} } });
    assert.equal(told.value.content[0].text, "3");
  });
});

test("answers of today's oh-my-pi: a list as system prompt, other arguments, a failure that names the extension", async () => {
  await withAgent(async (agent) => {
    await agent.open({ "a.ts": `export default (pi: any) => {
      pi.on("before_agent_start", (e: any) => ({ systemPrompt: [...e.systemPrompt, "More."] }));
      pi.on("before_agent_start", (e: any) => ({ systemPrompt: [...e.systemPrompt, "Last."] }));
      pi.on("tool_call", (e: any) => { if (e.input.bad) throw new Error("bad"); return { input: { a: 2 } }; });
    };` }, OMP);
    assert.equal((await agent.event("before_agent_start", { prompt: "x", systemPrompt: "S" })).value.systemPrompt, "S\n\nMore.\n\nLast.");
    assert.deepEqual((await agent.event("tool_call", { input: { a: 1 } })).value, { input: { a: 2 } });
    const { block, reason } = (await agent.event("tool_call", { input: { bad: true } })).value;
    assert.ok(block && /^Extension .*a\.ts failed: bad$/.test(reason), reason);
  });
});

test("session_stop lets a run go on, not without end", async () => {
  await withAgent(async (agent) => {
    const [item] = await agent.open({ "a.ts": `export default (pi: any) => {
      let seen: boolean[] = [];
      pi.on("session_stop", (e: any, ctx: any) => { seen.push(e.stop_hook_active); ctx.ui.notify(String(e.stop_hook_active)); return { continue: true, additionalContext: "Go on." }; });
      pi.on("auto_compaction_start", (e: any, ctx: any) => ctx.ui.notify(e.type + " " + e.action));
    };` }, OMP);
    assert.ok(item.events.includes("agent_before_settle") && item.events.includes("compaction_start"));
    const settle = async (outcome = "completed") => (await agent.event("agent_before_settle", { outcome, entries: [], continue: false })).value;
    assert.deepEqual(await settle(), { entries: [{ type: "custom_message", customType: "session-stop-continuation", content: "Go on.", display: false }], continue: true });
    for (let round = 0; round < 7; round += 1) assert.equal((await settle()).continue, true);
    assert.equal(await settle(), null);
    assert.equal(await settle("aborted"), null);
    assert.deepEqual(notices(agent).slice(0, 2), ["false", "true"]);
    await agent.event("compaction_start", { reason: "manual" });
    await agent.event("compaction_start", { reason: "threshold" });
    assert.equal(notices(agent).at(-1), "auto_compaction_start context-full");
  });
});

test("session_stop: all handlers share the limit, an abort ends it, and sub-agents have none", async () => {
  const go = (answer) => `export default (pi: any) => pi.on("session_stop", async (e: any, ctx: any) => {
    ctx.ui.notify(String(e.stop_hook_active)); return ${answer}; });`;
  const settle = async (agent) => (await agent.event("agent_before_settle", { outcome: "completed", entries: [], continue: false })).value;
  await withAgent(async (agent) => {
    await agent.open({ "a.ts": go("undefined"), "b.ts": go(`{ continue: true, additionalContext: "On." }`), "c.ts": go(`{ continue: true, reason: "Too." }`) }, OMP);
    for (let round = 0; round < 8; round += 1) assert.equal((await settle(agent)).entries[0].content, "On.");
    assert.equal(await settle(agent), null);
    assert.deepEqual(notices(agent), ["false", "false", ...Array(25).fill("true")]);
  });
  await withAgent(async (agent) => {
    const waits = `await new Promise((done) => e.signal.addEventListener("abort", done)), { continue: true, reason: "On." }`;
    await agent.open({ "a.ts": go(`(${waits})`) }, OMP);
    for (let round = 0; round < 2; round += 1) {
      const settled = settle(agent);
      assert.equal((await agent.call("ui.notify")).params.message, "false");
      agent.send({ type: "abort", session: "s1" });
      assert.equal(await settled, null);
      agent.send({ type: "state", session: "s1", isIdle: false });
      agent.send({ type: "state", session: "s1", isIdle: true });
    }
  });
  for (const [answer, content] of [[`{ decision: "block", reason: "Why", additionalContext: "More" }`, "Why"], [`{ decision: "block" }`, /without a reason/]]) {
    await withAgent(async (agent) => {
      await agent.open({ "a.ts": go(answer) }, OMP);
      assert.match((await settle(agent)).entries[0].content, new RegExp(content));
    });
  }
  await withAgent(async (agent) => {
    await agent.open({ "a.ts": go(`{ continue: true, reason: "On." }`) }, { ...OMP, state: { newestOmp: true, isSubagent: true } });
    assert.equal(await settle(agent), null);
  });
});

test("commands in TypeScript: words, and a text that is the prompt", async () => {
  await withAgent(async (agent) => {
    const items = await agent.open({
      "one.ts": `export default (api: any) => ({ name: "one", description: "First", execute: (args: string[], ctx: any, raw: string) => args.join("|") + " " + raw + " " + typeof api.exec });`,
      "bad.ts": `export default () => ({ name: "bad" });`,
    }, { ...OMP, kind: "command" });
    assert.deepEqual(items[0].commands.map(({ name, description }) => [name, description]), [["one", "First"]]);
    assert.match(items[1].error, /Command "bad" must have a description/);
    await agent.ask({ type: "call", session: "s1", method: "command.run", params: { name: "one", args: 'a "b c"' } });
    assert.deepEqual((await agent.call("sendUserMessage")).params, { content: 'a|b c a "b c" function', options: { deliverAs: "steer" } });
  });
});

test("extensions and hooks of pi see nothing of oh-my-pi", async () => {
  const extension = `import * as agent from "@earendil-works/pi-coding-agent";
    export default (pi: any) => {
      pi.registerTool({ name: "t", description: "", defaultInactive: true, parameters: {}, async execute() {} });
      pi.on("session_stop", () => ({ continue: true, additionalContext: "Go on." }));
      pi.on("before_agent_start", (e: any) => ({ systemPrompt: [typeof e.systemPrompt] }));
      pi.on("tool_call", (e: any) => { if (e.input.bad) throw new Error("bad"); return { input: { a: 2 } }; });
      pi.on("agent_start", (e: any, ctx: any) => {
        ctx.ui.notify(["zod", "logger", "setServiceTier"].filter((name) => name in pi).concat(["models", "agent", "setTimeout"].filter((name) => name in ctx)).join());
        if (agent.logger) ctx.ui.notify("logger");
        pi.sendUserMessage("x");
      });
    };`;
  for (const kind of ["extension", "hook"]) {
    await withAgent(async (agent) => {
      const [item] = await agent.open({ "a.ts": extension }, { kind, generation: "pi" });
      assert.equal(item.error, undefined);
      assert.equal(item.tools[0].defaultActive, undefined);
      assert.ok(!item.events.includes("agent_before_settle"));
      assert.equal((await agent.event("before_agent_start", { prompt: "x", systemPrompt: "S" })).value, null);
      assert.equal((await agent.event("tool_call", { input: { a: 1 } })).value, null);
      assert.equal((await agent.event("tool_call", { input: { bad: true } })).value.reason, "bad");
      await agent.event("agent_start", {});
      assert.deepEqual(notices(agent), [""]);
      assert.deepEqual((await agent.call("sendUserMessage")).params.options, {});
    });
  }
});
