/** Tools, commands, flags, shortcuts, providers, requests to models, and the agent's own tools. */
import { test } from "node:test";
import assert from "node:assert/strict";
import { withAgent } from "./support/fake-agent.mjs";

const one = (body, head = "") => ({ "a.ts": `${head}\nexport default function (pi: any) { ${body} }` });

test("a tool: schema, updates, dialog, result", async () => {
  await withAgent(async (agent) => {
    agent.answers = { "ui.confirm": true };
    const [item] = await agent.open(one(`pi.registerTool({ name: "greet", label: "Greet", description: "Greets", promptSnippet: "s",
      parameters: Type.Object({ name: Type.String({ description: "Who" }), how: Type.Optional(StringEnum(["loud"])) }),
      prepareArguments: (args: any) => ({ name: args.who }),
      async execute(id: string, params: any, signal: AbortSignal, onUpdate: any, ctx: any) {
        onUpdate?.({ content: [{ type: "text", text: "working" }], details: { step: 1 } });
        if (!(await ctx.ui.confirm("Greet?", params.name))) throw new Error("refused");
        return { content: [{ type: "text", text: id + " Hello " + params.name }], details: { greeted: params.name } };
      } });`, `import { Type } from "@sinclair/typebox"; import { StringEnum } from "@mariozechner/pi-ai";`));
    assert.deepEqual(item.tools, [{ name: "greet", label: "Greet", description: "Greets", promptSnippet: "s", prepares: true,
      parameters: { type: "object", required: ["name"], properties: { name: { type: "string", description: "Who" }, how: { type: "string", enum: ["loud"] } } } }]);
    const prepared = await agent.run("tool.prepare", { extension: item.path, name: "greet", args: { who: "Bo" } });
    assert.deepEqual(prepared.value, { args: { name: "Bo" } });
    const answer = await agent.run("tool.execute", { extension: item.path, name: "greet", toolCallId: "t1", args: { name: "Ann" } });
    assert.deepEqual(answer.value, { content: [{ type: "text", text: "t1 Hello Ann" }], details: { greeted: "Ann" } });
    const update = await agent.wait({ type: "update" });
    assert.equal(update.id, answer.id);
    assert.deepEqual(update.value.details, { step: 1 });
  });
});

test("a tool: abort, throwing, no result, unknown", async () => {
  await withAgent(async (agent) => {
    await agent.open(one(`
      pi.registerTool({ name: "wait", execute: (id, p, signal) => new Promise((_, no) => signal.addEventListener("abort", () => no(new Error("stopped")))) });
      pi.registerTool({ name: "bad", async execute() { throw new TypeError("bad tool"); } });
      pi.registerTool({ name: "nothing", async execute() {} });`));
    const waiting = agent.run("tool.execute", { name: "wait", args: {} });
    agent.send({ type: "cancel", id: 2 });
    assert.deepEqual([(await waiting).type, (await waiting).message], ["error", "stopped"]);
    const bad = await agent.run("tool.execute", { name: "bad", args: {} });
    assert.equal(bad.message, "bad tool");
    assert.match(bad.stack, /a\.ts/);
    assert.match((await agent.run("tool.execute", { name: "nothing", args: {} })).message, /properties of undefined \(reading 'isError'\)/);
    assert.match((await agent.run("tool.execute", { name: "none" })).message, /no extension has the tool none/);
    assert.match((await agent.run("no.such", {})).message, /unknown method/);
  });
});

test("tools registered later are told before whatever follows", async () => {
  await withAgent(async (agent) => {
    await agent.open(one(`pi.on("session_start", () => {
      pi.registerTool({ name: "late", description: "d", parameters: {}, async execute() {} });
      pi.setActiveTools(["late"]);
      if (!pi.getAllTools().some((tool) => tool.name === "late") || pi.getActiveTools()[0] !== "late") throw new Error("not listed");
    });`));
    assert.deepEqual((await agent.event("session_start", {})).errors, []);
    const [changed, active] = agent.seen.filter(({ type }) => type === "changed" || type === "call");
    assert.equal(changed.tools[0].name, "late");
    assert.deepEqual(active.params, { names: ["late"] });
  });
});

test("a hidden tool is taken back, and one that starts inactive is told as such", async () => {
  await withAgent(async (agent) => {
    const [item] = await agent.open(one(`
      const tool = (name, more) => pi.registerTool({ name, description: name, parameters: {}, async execute() {}, ...more });
      tool("shown");
      tool("later", { defaultActive: false });
      tool("never", { exposure: "hidden" });
      tool("bash", { exposure: "hidden" });
      pi.registerCommand("go", { handler: async (_, ctx) => {
        tool("shown", { exposure: "hidden" });
        ctx.ui.notify(JSON.stringify(pi.getActiveTools()));
      } });`), { state: { activeTools: ["read"], builtinTools: [{ name: "bash" }] } });
    // Without it, the model would get the built-in tool of that name.
    assert.deepEqual(item.tools.map(({ name, defaultActive }) => [name, defaultActive]), [["shown", undefined], ["later", false], ["bash", undefined]]);
    await agent.run("command.run", { name: "go" });
    assert.equal((await agent.call("ui.notify")).params.message, '["read"]');
    assert.deepEqual((await agent.wait({ type: "changed" })).tools.map(({ name }) => name), ["later", "bash"]);
  });
});

test("sequential tools run one after the other, calls inside them at once", async () => {
  await withAgent(async (agent) => {
    agent.answers = { "tool.execute": async ({ name, callerId }, self) => (await self.run("tool.execute", { name, toolCallId: `${callerId}/1`, args: {} })).value };
    await agent.open(one(`
      const order = [];
      const tool = (name, execute) => pi.registerTool({ name, executionMode: "sequential", parameters: {}, execute });
      tool("inner", async () => ({ content: [] }));
      tool("outer", async (id, p, signal, onUpdate, ctx) => {
        order.push(id);
        await ctx.executeTool("inner", {});
        order.push(id);
        return { content: [], details: [...order] };
      });
      tool("deaf", () => new Promise(() => {}));`));
    const run = (name, toolCallId) => agent.run("tool.execute", { name, toolCallId, args: {} });
    const [, second] = await Promise.all([run("outer", "a"), run("outer", "b")]);
    assert.deepEqual(second.value.details, ["a", "a", "b", "b"]);
    run("deaf", "c").catch(() => {});
    const waiting = run("outer", "d");
    // The sixth request is the call of the tool that ignores the abort.
    agent.send({ type: "cancel", id: 6 });
    assert.equal((await waiting).type, "result");
  });
});

test("commands: arguments, completion, errors; flags; shortcuts", async () => {
  await withAgent(async (agent) => {
    const [item] = await agent.open(one(`
      pi.registerFlag("plan", { description: "Plan", type: "boolean", default: false });
      pi.registerCommand("say", { description: "Says", getArgumentCompletions: (p) => [{ value: p + "1", label: "one" }],
        handler: async (args) => pi.setSessionName(args + pi.getFlag("plan") + pi.getFlag("unknown")) });
      pi.registerCommand("boom", { handler: async () => { throw new Error("command exploded"); } });
      pi.registerShortcut("ctrl+x", { description: "X", handler: (ctx) => ctx.ui.notify("pressed") });
      pi.registerMessageRenderer("kind", () => undefined);`), { flags: { plan: true } });
    assert.deepEqual(item.commands, [{ name: "say", description: "Says", completes: true }, { name: "boom" }]);
    assert.deepEqual(item.flags, [{ name: "plan", description: "Plan", type: "boolean", default: false }]);
    assert.deepEqual(item.shortcuts, [{ shortcut: "ctrl+x", description: "X" }]);
    assert.deepEqual(item.renderers, ["kind"]);
    await agent.run("command.run", { extension: item.path, name: "say", args: "x " });
    assert.equal((await agent.call("setSessionName")).params.name, "x trueundefined");
    assert.deepEqual((await agent.run("command.complete", { name: "say", prefix: "p" })).value, { items: [{ value: "p1", label: "one" }] });
    assert.equal((await agent.run("command.run", { name: "boom" })).message, "command exploded");
    await agent.run("shortcut.run", { shortcut: "ctrl+x" });
    assert.equal((await agent.call("ui.notify")).params.message, "pressed");
  });
});

test("what puts something into the session", async () => {
  await withAgent(async (agent) => {
    agent.answers = { setModel: true };
    await agent.open(one(`pi.registerCommand("go", { handler: async () => {
      pi.sendMessage({ customType: "k", content: "c", display: true }, { triggerTurn: true });
      pi.sendUserMessage("typed", { deliverAs: "steer" });
      pi.appendEntry("k-state", { n: 1 });
      pi.setLabel("e1", "mark");
      pi.setThinkingLevel("high");
      const out = await pi.exec("echo", ["hello"], { timeout: 5000 });
      pi.setSessionName([await pi.setModel({ provider: "p", id: "m" }), pi.getThinkingLevel(), out.stdout.trim(), out.code, out.killed].join());
      if (pi.getSessionName() !== "true,high,hello,0,false") throw new Error(pi.getSessionName());
    } });`));
    assert.equal((await agent.run("command.run", { name: "go" })).type, "result");
    const said = Object.fromEntries(agent.seen.filter(({ type }) => type === "call").map(({ method, params }) => [method, params]));
    assert.deepEqual(said.sendMessage, { message: { customType: "k", content: "c", display: true }, options: { triggerTurn: true } });
    assert.deepEqual(said.sendUserMessage, { content: "typed", options: { deliverAs: "steer" } });
    assert.deepEqual(said.appendEntry, { customType: "k-state", data: { n: 1 } });
    assert.deepEqual(said.setLabel, { entryId: "e1", label: "mark" });
    assert.deepEqual(said.setModel, { provider: "p", modelId: "m" });
  });
});

test("context has the model that was set", async () => {
  await withAgent(async (agent) => {
    agent.answers = { setModel: ({ modelId }) => modelId === "m" };
    await agent.open(one(`pi.registerCommand("go", { handler: async (_, ctx) => {
      await pi.setModel({ provider: "p", id: "m" });
      await pi.setModel({ provider: "p", id: "without-key" });
      ctx.ui.notify(ctx.model?.id);
    } });`));
    await agent.run("command.run", { name: "go" });
    assert.equal((await agent.call("ui.notify")).params.message, "m");
  });
});

test("exec: failure, time limit, signal", async () => {
  await withAgent(async (agent) => {
    await agent.open(one(`pi.registerCommand("go", { handler: async (_, ctx) => {
      const stop = new AbortController(); setTimeout(() => stop.abort(), 50);
      const results = [await pi.exec("sh", ["-c", "echo e >&2; exit 3"]), await pi.exec("sleep", ["20"], { timeout: 50 }),
        await pi.exec("sleep", ["20"], { signal: stop.signal }), await pi.exec("no-such-program-here", [])];
      ctx.ui.notify(JSON.stringify(results.map(({ code, killed, stderr }) => [code, killed, killed ? "" : stderr.length > 0])));
    } });`));
    await agent.run("command.run", { name: "go" });
    assert.equal((await agent.call("ui.notify")).params.message, '[[3,false,true],[1,true,""],[1,true,""],[1,false,true]]');
  });
});

test("exec: a descendant that holds the pipes, output that is cut", async () => {
  await withAgent(async (agent) => {
    await agent.open(one(`pi.registerCommand("go", { handler: async (_, ctx) => {
      const held = await pi.exec("sh", ["-c", "sleep 60 & echo $! >&2; echo hi"]);
      process.kill(Number(held.stderr));
      const cut = await pi.exec("yes", [], { maxBuffer: 1001 });
      const both = await pi.exec("sh", ["-c", "printf 123; printf 45 >&2"], { maxBuffer: 5 });
      ctx.ui.notify(JSON.stringify([held.stdout, held.code, held.killed, cut.code, cut.killed, cut.truncated, cut.stdout.length, both.truncated]));
    } });`));
    await agent.run("command.run", { name: "go" });
    assert.equal((await agent.call("ui.notify")).params.message, '["hi\\n",0,false,1,true,true,1001,false]');
  });
});

test("the agent's own tools as objects", async () => {
  await withAgent(async (agent) => {
    agent.answers = { "tool.builtin": ({ name, args }) => (name === "bash" ? { isError: true, content: [{ type: "text", text: "exit 1" }] } : { content: [{ type: "text", text: args.path }] }) };
    await agent.open(one(`
      const read = createReadTool("/w"); const bash = createBashTool("/w", { spawnHook: (c) => ({ ...c, command: "pre; " + c.command, env: { ...c.env, EXTRA: "1" } }) });
      const write = createWriteTool("/w", { operations: { mkdir: async () => {}, writeFile: async (p, c) => pi.setSessionName(p + c) } });
      pi.registerTool({ ...read, execute: (...args) => read.execute(...args) });
      pi.registerTool({ ...bash, name: "mybash" });
      pi.registerTool(write);`, `import { createReadTool, createBashTool, createWriteTool } from "@earendil-works/pi-coding-agent";`),
    { state: { tools: [{ name: "read", description: "the agent's text", parameters: { type: "object" } }] } });
    const answer = await agent.run("tool.execute", { name: "read", toolCallId: "t", args: { path: "f" } });
    assert.equal(answer.value.content[0].text, "f");
    assert.deepEqual((await agent.call("tool.builtin")).params, { name: "read", toolCallId: "t", args: { path: "f" }, cwd: "/w" });
    assert.equal((await agent.run("tool.execute", { name: "mybash", args: { command: "x" } })).message, "exit 1");
    const { params } = await agent.call("tool.builtin");
    assert.equal(params.args.command, "pre; x");
    assert.deepEqual(params.env, { EXTRA: "1" });
    await agent.run("tool.execute", { name: "write", args: { path: "a", content: "b" } });
    assert.equal((await agent.call("setSessionName")).params.name, "/w/ab");
  });
});

test("other tools from inside a tool", async () => {
  await withAgent(async (agent) => {
    agent.answers = { "tool.execute": ({ name }) => { if (name === "bad") throw new Error("no such tool"); return { content: [], isError: false }; } };
    await agent.open(one(`pi.registerTool({ name: "outer", async execute(id, p, signal, onUpdate, ctx) {
      return { content: [], details: [await ctx.executeTool("inner", { a: 1 }), await ctx.executeTool("bad", {})] }; } });`));
    const { value } = await agent.run("tool.execute", { name: "outer", toolCallId: "o", args: {} });
    assert.deepEqual((await agent.call("tool.execute")).params, { name: "inner", args: { a: 1 }, callerId: "o" });
    assert.deepEqual(value.details[0], { toolCall: { type: "toolCall", name: "inner", arguments: { a: 1 } }, result: { content: [] }, isError: false });
    assert.deepEqual(value.details[1], { toolCall: { type: "toolCall", name: "bad", arguments: {} },
      result: { content: [{ type: "text", text: "no such tool" }], details: {} }, isError: true });
  });
});

const MESSAGE = { role: "assistant", content: [{ type: "text", text: "hello" }], stopReason: "stop", usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 } };

test("requests to models go to the agent, events come back with the message so far", async () => {
  await withAgent(async (agent) => {
    agent.answers = {
      "llm.stream": ({ context }, self, id) => {
        if (context.fail) throw new Error("no key");
        for (const event of [{ type: "start" }, { type: "text_start", contentIndex: 0 }, { type: "text_delta", contentIndex: 0, delta: "hel" }]) self.send({ type: "update", id, value: event });
        return MESSAGE;
      },
      "llm.key": ({ provider }) => (provider === "p" ? { apiKey: "secret", headers: { h: "1" } } : null),
    };
    await agent.open(one(`pi.registerCommand("go", { handler: async (_, ctx) => {
      const model = { provider: "p", id: "m", api: "x" };
      const seen = [];
      for await (const event of streamSimple(model, { messages: [] }, { onPayload() {}, apiKey: "k" })) seen.push(event.type + (event.type === "text_delta" ? event.partial.content[0].text : ""));
      const done = await complete(model, { messages: [] });
      const failed = await complete(model, { messages: [], fail: true });
      ctx.ui.notify(JSON.stringify([seen, done.content[0].text, failed.stopReason, failed.errorMessage,
        await ctx.modelRegistry.getApiKeyAndHeaders(model), (await ctx.modelRegistry.getApiKeyAndHeaders({ provider: "q", id: "n" })).ok]));
    } });`, `import { complete, streamSimple } from "@mariozechner/pi-ai";`));
    await agent.run("command.run", { name: "go" });
    const got = JSON.parse((await agent.call("ui.notify")).params.message);
    assert.deepEqual(got, [["start", "text_start", "text_deltahel", "done"], "hello", "error", "no key", { ok: true, apiKey: "secret", headers: { h: "1" } }, false]);
    assert.deepEqual((await agent.call("llm.stream")).params.options, { apiKey: "k" });
  });
});

test("providers: calls are named, whole providers find their key, and who registers again keeps the rest", async () => {
  await withAgent(async (agent) => {
    agent.answers = { "llm.stream": ({ context }) => ({ role: "assistant", content: [{ type: "text", text: JSON.stringify(context) }], stopReason: "stop" }) };
    const [item] = await agent.open(one(`
      pi.registerProvider("mine", { baseUrl: "http://x", api: "mine-api", apiKey: "$KEY" });
      pi.registerProvider("mine", { headers: { h: "1" }, baseUrl: undefined });
      const call = { type: "toolCall", id: "c1", name: "ls", arguments: {} };
      pi.registerProvider({ id: "whole", name: "Whole", getModels: () => [{ id: "w", api: "x", provider: "whole" }],
        auth: { apiKey: { name: "key", resolve: async ({ ctx }) => ({ auth: { apiKey: await ctx.env("HOME") } }) } },
        streamSimple(model, context, options) {
          const stream = createAssistantMessageEventStream();
          const message = { role: "assistant", content: [call], stopReason: options.apiKey === process.env.HOME ? "toolUse" : "stop" };
          if (context.messages[0].role === "user") return openAICompletionsApi().streamSimple(model, context, options);
          stream.push({ type: "toolcall_start", contentIndex: 0, partial: message });
          stream.push({ type: "done", reason: "toolUse", message });
          return stream;
        } });`,
    `import { createAssistantMessageEventStream, openAICompletionsApi } from "@earendil-works/pi-ai";`));
    const [mine, whole] = item.providers;
    assert.deepEqual(mine.config, { baseUrl: "http://x", api: "mine-api", apiKey: "$KEY", headers: { h: "1" } });
    assert.deepEqual(whole.config, { native: true, name: "Whole", models: [{ id: "w", api: "x" }], streams: true, authenticates: true, open: true });
    const ask = (context) => agent.run("provider.stream", { provider: "whole", request: { model: { provider: "whole", id: "w" }, context, options: {} } });
    const { value } = await ask({ systemPrompt: "P", messages: [{ role: "user", content: "u" }] });
    assert.equal(value.stopReason, "toolUse");
    assert.deepEqual(agent.seen.filter(({ type }) => type === "update").map((u) => u.value), [{ type: "toolcall_start", contentIndex: 0, id: "c1", toolName: "ls" }]);
    const passed = await ask({ messages: [{ role: "user", content: "u" }] });
    assert.deepEqual(JSON.parse(passed.value.content[0].text).messages, [{ role: "user", content: "u" }]);
  });
});

test("whole providers: a login is told, renewed and gives its key", async () => {
  await withAgent(async (agent) => {
    const [item] = await agent.open(one(`
      pi.registerProvider({ id: "whole", name: "Whole", getModels: () => [], streamSimple() {}, auth: { oauth: { name: "Sign in",
        login: async () => ({ type: "oauth", access: "a", refresh: "r", expires: 1 }),
        refresh: async (credential) => ({ ...credential, access: credential.access + "2" }),
        toAuth: async (credential) => ({ apiKey: "key of " + credential.access }) } } });`));
    assert.deepEqual(item.providers[0].config.oauth, { name: "Sign in", changesModels: false });
    const ask = (method, credentials) => agent.run(`provider.oauth.${method}`, { provider: "whole", credentials });
    assert.equal((await ask("login")).value.access, "a");
    assert.equal((await ask("refresh", { access: "a" })).value.access, "a2");
    assert.deepEqual((await ask("key", { access: "a2" })).value, { apiKey: "key of a2" });
  });
});

test("whole providers: headers and address of a login, of the provider and of the request", async () => {
  await withAgent(async (agent) => {
    await agent.open(one(`
      const answer = (model, context, { apiKey, headers, env }) => {
        const stream = createAssistantMessageEventStream();
        const text = JSON.stringify([model.baseUrl, apiKey ?? null, headers ?? null, env ?? null]);
        stream.push({ type: "done", reason: "stop", message: { role: "assistant", content: [{ type: "text", text }], stopReason: "stop" } });
        return stream;
      };
      pi.registerProvider({ id: "whole", getModels: () => [], streamSimple: answer, auth: {
        apiKey: { name: "k", resolve: async ({ credential }) => (credential
          ? { auth: { headers: { "X-Key": credential.key } } }
          : { auth: { apiKey: "own", baseUrl: "http://own", headers: { "X-A": "own", b: "own" } }, env: { E: "1" } }) },
        oauth: { name: "Sign in", login: async () => ({}), toAuth: async ({ access }) => ({ headers: { Authorization: access }, baseUrl: "http://login" }) } } });`,
    `import { createAssistantMessageEventStream } from "@earendil-works/pi-ai";`));
    const ask = async (options) => {
      const { value } = await agent.run("provider.stream", { provider: "whole", request: { model: { provider: "whole", id: "w", baseUrl: "http://x" }, context: { messages: [] }, options } });
      return JSON.parse(value.content[0].text);
    };
    assert.deepEqual(await ask({ headers: { "x-a": "asked" } }), ["http://own", "own", { b: "own", "x-a": "asked" }, { E: "1" }]);
    // A gateway may forward a key to another provider, so it is sent in the header only.
    assert.deepEqual(await ask({ apiKey: "stored" }), ["http://x", null, { "X-Key": "stored" }, null]);
    // The agent has to have a key, which is no key of a request if the login gave none.
    const key = await agent.run("provider.oauth.key", { provider: "whole", credentials: { access: "token" } });
    assert.deepEqual(key.value, { apiKey: "token", headers: { Authorization: "token" } });
    assert.deepEqual(await ask({ apiKey: "token" }), ["http://login", null, { Authorization: "token" }, null]);
  });
});

test("the registry of models: types, providers, what it cannot do; members of all tools", async () => {
  await withAgent(async (agent) => {
    agent.answers = { "llm.key": ({ modelId }) => (modelId === "open" ? { baseUrl: "http://x" } : null) };
    const tools = [{ name: "read", description: "d", source: { path: "<builtin:read>", source: "builtin" } }];
    const [item] = await agent.open(one(`
      pi.registerTool({ name: "mine", parameters: {}, exposure: "deferred", namespace: "n", annotations: { readOnlyHint: true }, async execute() {} });
      try { pi.registerProvider("none"); } catch (error) { pi.registerFlag(error.message, {}); }
      pi.registerProvider("named", { name: "Named", baseUrl: "http://n", api: "x", models: [{ id: "m" }] });
      pi.registerProvider({ id: "whole", name: "Whole", getModels: () => [], streamSimple() {} });
      pi.registerCommand("go", { handler: async (_, ctx) => {
        const { modelRegistry: all } = ctx;
        const model = { provider: "p", id: "i", api: "x" };
        const image = await all.generateImages(model);
        const refreshed = await all.refresh();
        ctx.ui.notify(JSON.stringify([
          all.findOfType("classifier", "p", "i") ?? null, all.getModelsOfType("chat", "named").map(({ id }) => id), (await all.getAvailableOfType("image")).length,
          (await all.classify(model)).stopReason, image.output, image.errorMessage, refreshed.aborted, refreshed.errors.size,
          all.getProvider("named").name, all.getProviderDisplayName("whole"), all.getProvider("unknown") ?? null, all.getRegisteredNativeProvider("whole").id,
          await all.getApiKeyAndHeaders({ provider: "p", id: "open" }), await all.getApiKeyAndHeaders(model),
          pi.getAllTools().map(({ name, exposure, namespace, annotations }) => ({ name, exposure, namespace, annotations })),
        ]));
      } });`), { state: { tools } });
    assert.equal(item.flags[0].name, "Provider config is required when registering by name");
    // The agent has the second tool by now, without the members that only extensions read.
    agent.send({ type: "state", session: "s1", tools: [...tools, { name: "mine", description: "", source: { path: `${agent.dir}/a.ts`, source: "extension" } }] });
    await agent.run("command.run", { name: "go" });
    assert.deepEqual(JSON.parse((await agent.call("ui.notify")).params.message), [
      null, ["m"], 0, "error", [], "Provider p does not support image generation", false, 0, "Named", "Whole", null, "whole",
      { ok: true, baseUrl: "http://x" }, { ok: false, error: 'No API key found for "p"' },
      [{ name: "read", exposure: "direct" }, { name: "mine", exposure: "deferred", namespace: "n", annotations: { readOnlyHint: true } }],
    ]);
  });
});

test("providers: what is told, streaming, login", async () => {
  await withAgent(async (agent) => {
    agent.answers = { "ui.input": "code" };
    const [item] = await agent.open(one(`
      pi.on("before_provider_request", (e) => ({ ...e.payload, hooked: true }));
      pi.registerProvider("mine", { baseUrl: "http://x", api: "mine-api", apiKey: "$KEY", models: [{ id: "m1", name: "M" }],
        streamSimple(model, context, options) {
          const stream = createAssistantMessageEventStream();
          (async () => {
            const payload = await options.onPayload({ a: 1 });
            const message = { role: "assistant", content: [{ type: "text", text: JSON.stringify(payload) + options.apiKey }], stopReason: "stop" };
            stream.push({ type: "start", partial: message });
            stream.push({ type: "text_delta", contentIndex: 0, delta: "d", partial: message });
            stream.push({ type: "done", reason: "stop", message });
          })();
          return stream;
        },
        oauth: { name: "Mine", async login(cb) { cb.onAuth({ url: "http://login" }); return { access: await cb.onPrompt({ message: "Code?" }) }; },
          async refreshToken(c) { return { access: c.access + "2" }; }, getApiKey: (c) => c.access } });`,
    `import { createAssistantMessageEventStream } from "@earendil-works/pi-ai";`));
    assert.deepEqual(item.providers, [{ name: "mine", config: { baseUrl: "http://x", api: "mine-api", apiKey: "$KEY", models: [{ id: "m1", name: "M" }],
      oauth: { name: "Mine", changesModels: false }, streams: true } }]);
    const { value } = await agent.run("provider.stream", { provider: "mine", request: { model: { provider: "mine", id: "m1" }, context: { messages: [] }, options: { apiKey: "K" } } });
    assert.equal(value.content[0].text, '{"a":1,"hooked":true}K');
    assert.deepEqual(agent.seen.filter(({ type }) => type === "update").map((u) => u.value), [{ type: "start" }, { type: "text_delta", contentIndex: 0, delta: "d" }]);
    assert.deepEqual((await agent.run("provider.oauth.login", { provider: "mine" })).value, { access: "code" });
    assert.equal((await agent.call("ui.openUrl")).params.url, "http://login");
    assert.deepEqual((await agent.run("provider.oauth.refresh", { provider: "mine", credentials: { access: "c" } })).value, { access: "c2" });
    assert.deepEqual((await agent.run("provider.oauth.key", { provider: "mine", credentials: { access: "c" } })).value, { apiKey: "c" });
    assert.match((await agent.run("provider.stream", { provider: "other" })).message, /no extension has the provider other/);
  });
});
