/** How the results of handlers combine, event by event (line.rs, dialects.md 10.2). */
import { test } from "node:test";
import assert from "node:assert/strict";
import { withAgent } from "./support/fake-agent.mjs";

/** Two files, so that the order of loading counts as well as that of registration. */
const pair = (first, second = "") => ({
  "a.ts": `export default function (pi: any) { ${first} }`,
  "b.ts": `export default function (pi: any) { ${second} }`,
});

async function combined(name, event, first, second, options) {
  let answer;
  await withAgent(async (agent) => {
    await agent.open(pair(first, second), options);
    answer = await agent.event(name, event);
  });
  return answer;
}

test("tool_call: the first block wins and the rest is not asked", async () => {
  const { value, errors } = await combined("tool_call", { toolName: "bash", input: { command: "x" } },
    `pi.on("tool_call", () => ({ block: false })); pi.on("tool_call", async () => ({ block: true, reason: "no" }));`,
    `pi.on("tool_call", () => { throw new Error("not reached"); });`);
  assert.deepEqual(value, { block: true, reason: "no" });
  assert.deepEqual(errors, []);
});

test("tool_call: the default reason, and whether the agent shall end", async () => {
  const { value } = await combined("tool_call", { input: {} }, `pi.on("tool_call", () => ({ block: true, reason: "", terminate: true }));`);
  assert.deepEqual(value, { block: true, terminate: true, reason: "Tool execution was blocked" });
});

test("tool_call: input changed in place goes on and goes back", async () => {
  const { value } = await combined("tool_call", { input: { command: "ls" } },
    `pi.on("tool_call", (e) => { e.input.command += " -l"; });`, `pi.on("tool_call", (e) => { e.input.command += " /"; });`);
  assert.deepEqual(value, { input: { command: "ls -l /" } });
});

test("tool_call: nothing returned, nothing changed: null", async () => {
  const { value } = await combined("tool_call", { input: { a: 1 } }, `pi.on("tool_call", () => undefined);`);
  assert.equal(value, null);
});

test("tool_call: a throwing handler blocks with its message and is reported", async () => {
  for (const thrown of [`throw new Error("broken");`, `return Promise.reject(new Error("broken"));`]) {
    const { value, errors } = await combined("tool_call", { input: {} }, `pi.on("tool_call", () => { ${thrown} });`,
      `pi.on("tool_call", () => ({ block: false }));`);
    assert.deepEqual(value, { block: true, reason: "broken" });
    assert.deepEqual(errors.map(({ event, error }) => [event, error]), [["tool_call", "broken"]]);
  }
});

test("other events: a throwing handler is reported and the next goes on", async () => {
  const { value, errors } = await combined("input", { text: "hi" },
    `pi.on("input", () => { throw new Error("first fails"); });`, `pi.on("input", (e) => ({ action: "transform", text: e.text + "!" }));`);
  assert.deepEqual(value, { action: "transform", text: "hi!" });
  assert.equal(errors.length, 1);
  assert.equal(errors[0].error, "first fails");
  assert.equal(errors[0].event, "input");
  assert.match(errors[0].path, /a\.ts$/);
});

test("tool_result: patches chain, errors can be turned both ways", async () => {
  const event = { toolName: "bash", content: [{ type: "text", text: "0" }], details: { a: 1 }, isError: true };
  const { value } = await combined("tool_result", event,
    `pi.on("tool_result", (e) => ({ content: [{ type: "text", text: e.content[0].text + "1" }] }));`,
    `pi.on("tool_result", (e) => ({ content: [{ type: "text", text: e.content[0].text + "2" }], isError: !e.isError, details: e.details }));`);
  assert.deepEqual(value, { content: [{ type: "text", text: "012" }], isError: false, details: { a: 1 } });
});

test("context: messages chain; changes in place count", async () => {
  const event = { messages: [{ role: "user", content: "a" }] };
  const chained = await combined("context", event, `pi.on("context", (e) => ({ messages: [...e.messages, 1] }));`,
    `pi.on("context", (e) => ({ messages: [...e.messages, 2] }));`);
  assert.deepEqual(chained.value, { messages: [...event.messages, 1, 2] });
  const inPlace = await combined("context", event, `pi.on("context", (e) => { e.messages.push(3); });`);
  assert.deepEqual(inPlace.value, { messages: [...event.messages, 3] });
  const none = await combined("context", event, `pi.on("context", () => {});`);
  assert.equal(none.value, null);
});

test("before_agent_start: all messages, the prompt chained and visible on ctx", async () => {
  const { value } = await combined("before_agent_start", { prompt: "p", systemPrompt: "base" },
    `pi.on("before_agent_start", (e) => ({ message: { customType: "a", content: "1" }, systemPrompt: e.systemPrompt + " A" }));`,
    `pi.on("before_agent_start", (e, ctx) => ({ message: { customType: "b", content: ctx.getSystemPrompt() }, systemPrompt: e.systemPrompt + " B" }));`);
  assert.deepEqual(value.messages, [{ customType: "a", content: "1" }, { customType: "b", content: "base A" }]);
  assert.equal(value.systemPrompt, "base A B");
});

test("before_agent_start: changed options of the prompt count", async () => {
  await withAgent(async (agent) => {
    await agent.open(pair(`pi.on("before_agent_start", (e) => {
        e.systemPromptOptions.selectedTools.push("bash", "nothing");
        e.systemPromptOptions.promptGuidelines.push("Be kind");
        e.systemPromptOptions.sections.house = "No shouting";
      });`, `pi.on("before_agent_start", (e) => { if (e.prompt === "force") e.systemPromptOptions.forceSystemPrompt = "all of it"; });
      pi.on("before_agent_start", (e, ctx) => ({ message: { customType: "t", content: ctx.getSystemPrompt() + " " + pi.getActiveTools() } }));`),
    { state: { systemPrompt: "base", tools: [{ name: "read" }, { name: "bash" }], activeTools: ["read"] } });
    const start = async (prompt) => (await agent.event("before_agent_start", { prompt, systemPrompt: "base" })).value;
    const added = "base\n\n<house>\nNo shouting\n</house>\n\n<rules>\n- Be kind\n</rules>";
    assert.deepEqual(await start("go"), { messages: [{ customType: "t", content: `${added} read` }], systemPrompt: added });
    assert.deepEqual((await agent.call("setActiveTools")).params, { names: ["read", "bash", "nothing"] });
    assert.deepEqual(await start("force"), { messages: [{ customType: "t", content: "all of it read,bash" }], systemPrompt: "all of it" });
  });
});

test("before_agent_start: a prompt that is replaced as a whole has the sections before it", async () => {
  const { value } = await combined("before_agent_start", { prompt: "p", systemPrompt: "base" },
    `pi.on("before_agent_start", (e) => { e.systemPromptOptions.sections.house = "No shouting"; });`,
    `pi.on("before_agent_start", (e) => ({ systemPrompt: e.systemPrompt + " B" }));`);
  assert.equal(value.systemPrompt, "base\n\n<house>\nNo shouting\n</house> B");
});

test("input: transforms chain, handled stops", async () => {
  const { value } = await combined("input", { text: "x", images: [] },
    `pi.on("input", (e) => ({ action: "transform", text: e.text + "1" })); pi.on("input", () => ({ action: "continue" }));`,
    `pi.on("input", (e) => e.text === "x1" ? { action: "handled" } : undefined); pi.on("input", () => { throw new Error("no"); });`);
  assert.deepEqual(value, { action: "handled" });
});

test("session_before_*: the first cancel stops, otherwise the last result", async () => {
  for (const name of ["session_before_switch", "session_before_fork", "session_before_compact", "session_before_tree"]) {
    const stopped = await combined(name, {}, `pi.on("${name}", () => ({ cancel: true, skipConversationRestore: true }));`,
      `pi.on("${name}", () => { throw new Error("no"); });`);
    assert.deepEqual(stopped.value, { cancel: true, skipConversationRestore: true });
    assert.deepEqual(stopped.errors, []);
  }
  const { value } = await combined("session_before_compact", { preparation: {} },
    `pi.on("session_before_compact", () => ({ compaction: { summary: "1" } }));`,
    `pi.on("session_before_compact", (e) => ({ compaction: { summary: "2" + (e.signal instanceof AbortSignal) } }));`);
  assert.deepEqual(value, { compaction: { summary: "2true" } });
});

test("user_bash: the first result", async () => {
  const result = await combined("user_bash", { command: "x", cwd: "/" }, `pi.on("user_bash", () => undefined);`,
    `pi.on("user_bash", () => ({ result: { output: "o", exitCode: 0 } }));`);
  assert.deepEqual(result.value, { result: { output: "o", exitCode: 0 } });
  const failed = await combined("user_bash", { command: "x", cwd: "/" },
    `pi.on("user_bash", () => ({ operations: { exec: async () => { throw new Error("no host"); } } }));`);
  assert.deepEqual(failed.value, { error: "no host" });
  assert.deepEqual(failed.errors, []);
});

/** Runs a command of the user through operations with this `exec`; `go` of the extension resolves with the next `input` event. */
async function operated(exec, body) {
  await withAgent(async (agent) => {
    await agent.open(pair(`let resume; const go = new Promise((done) => { resume = done; });
      pi.on("input", () => { resume(); });
      pi.on("user_bash", (event) => ({ operations: { exec: ${exec} } }));`));
    // The first request was `open`.
    await body(agent, agent.event("user_bash", { command: "x", cwd: "/", outputId: 7 }), 2);
  });
}

test("user_bash: output of operations is sent while they run, one piece at a time", async () => {
  const exec = `async (command, cwd, { onData }) => {
    onData(Buffer.from("ran " + command + JSON.stringify(event)));
    for (const part of [[0xe2, 0x82], [0xac], [0x20]]) onData(Buffer.from(part));
    await go;
    onData("end");
    return { exitCode: 3 };
  }`;
  await operated(exec, async (agent, answer) => {
    const first = await agent.call("bash.output");
    assert.deepEqual(first.params, { outputId: 7, text: `ran x${JSON.stringify({ command: "x", cwd: "/", type: "user_bash" })}` });
    await agent.event("input", { text: "" });
    agent.answers["bash.output"] = null;
    agent.send({ type: "result", id: first.id, value: null });
    const texts = [];
    const { value } = await answer;
    for (const { method, params } of agent.seen.filter(({ type }) => type === "call")) if (method === "bash.output") texts.push(params.text);
    assert.equal(texts.join(""), "\u20ac end");
    assert.deepEqual(value, { result: { exitCode: 3, cancelled: false, truncated: false } });
  });
});

test("user_bash: output that the agent does not take is bounded, and its end is kept", async () => {
  const exec = `async (command, cwd, { onData }) => {
    const part = Buffer.alloc(1 << 20, "x");
    for (let n = 0; n < 32; n += 1) onData(part);
    onData("the end");
    return { exitCode: 0 };
  }`;
  await operated(exec, async (agent, answer) => {
    const first = await agent.call("bash.output");
    agent.answers["bash.output"] = null;
    agent.send({ type: "result", id: first.id, value: null });
    const { value } = await answer;
    const texts = [first, ...agent.seen.filter(({ method }) => method === "bash.output")].map(({ params }) => params.text);
    const all = texts.join("");
    assert.ok(all.length < 9 << 20, `${all.length}`);
    assert.match(all, /\n\[\.\.\. \d+ characters omitted \.\.\.\]\n/);
    assert.ok(all.endsWith("the end"));
    assert.equal(value.result.truncated, true);
  });
});

test("user_bash: an abort reaches operations, and the output until then counts", async () => {
  const exec = `async (command, cwd, { onData, signal }) => {
    onData("begun");
    await new Promise((aborted) => signal.addEventListener("abort", aborted));
    onData(", aborted");
    throw new Error("aborted");
  }`;
  await operated(exec, async (agent, answer, id) => {
    agent.answers["bash.output"] = null;
    assert.equal((await agent.call("bash.output")).params.text, "begun");
    agent.send({ type: "cancel", id });
    assert.equal((await agent.call("bash.output")).params.text, ", aborted");
    assert.deepEqual((await answer).value, { result: { cancelled: true, truncated: false } });
  });
});

test("user_bash: a command whose session is reloaded still ends, with the output until then", async () => {
  const exec = `async (command, cwd, { onData }) => {
    onData("begun");
    return { exitCode: 3 };
  }`;
  await operated(exec, async (agent, answer) => {
    // The agent does not answer calls of a session that it has closed.
    await agent.call("bash.output");
    agent.send({ type: "close", session: "s1", reason: "reload" });
    assert.deepEqual((await answer).value, { result: { exitCode: 3, cancelled: false, truncated: true } });
  });
});

test("user_bash: operations do not run after a handler that failed", async () => {
  const { value, errors } = await combined("user_bash", { command: "x", cwd: "/" }, `pi.on("user_bash", () => { throw new Error("no"); });`,
    `pi.on("user_bash", () => ({ operations: { exec: async () => ({ exitCode: 0 }) } }));`, { generation: "omp", state: { newestOmp: true } });
  assert.deepEqual([value, errors.map(({ error }) => error)], [null, ["no"]]);
});

test("user_bash: an answer that is none fails, and nobody else is asked", async () => {
  for (const answer of ["null", "{ block: true }", "{ result: 'denied' }", "{ result: { output: 'o', exitCode: '0' } }", "{ operations: {} }",
    "{ result: { output: 'o' }, operations: { exec() {} } }"]) {
    const { value, errors } = await combined("user_bash", { command: "x", cwd: "/" }, `pi.on("user_bash", () => (${answer}));`,
      `pi.on("user_bash", () => ({ result: { output: "not reached" } }));`);
    assert.equal(value, null, answer);
    assert.deepEqual(errors.map(({ event, error }) => [event, error.split(":")[0]]), [["user_bash", "Invalid user_bash handler result"]], answer);
  }
  const thrown = await combined("user_bash", { command: "x", cwd: "/" }, `pi.on("user_bash", () => { throw new Error("no"); });`,
    `pi.on("user_bash", () => ({ result: { output: "not reached" } }));`);
  assert.deepEqual([thrown.value, thrown.errors.map(({ error }) => error)], [null, ["no"]]);
});

test("message_end: replaced in turn, never with another role", async () => {
  const { value, errors } = await combined("message_end", { message: { role: "assistant", content: [] } },
    `pi.on("message_end", () => ({ message: { role: "user", content: "x" } }));`,
    `pi.on("message_end", (e) => ({ message: { ...e.message, content: [1] } }));`);
  assert.deepEqual(value, { message: { role: "assistant", content: [1] } });
  assert.match(errors[0].error, /role assistant/);
});

test("message_update: the event of the provider has the message so far", async () => {
  await withAgent(async (agent) => {
    await agent.open(pair(`pi.on("message_update", (e) => pi.setSessionName(e.assistantMessageEvent.partial.content[0].text));`));
    const event = { message: { role: "assistant", content: [{ type: "text", text: "so far" }] }, assistantMessageEvent: { type: "text_delta", contentIndex: 0, delta: "far" } };
    agent.send({ type: "event", session: "s1", name: "message_update", event });
    assert.equal((await agent.call("setSessionName")).params.name, "so far");
  });
});

test("before_provider_request and headers", async () => {
  const payload = await combined("before_provider_request", { payload: { a: 1 } },
    `pi.on("before_provider_request", (e) => ({ ...e.payload, b: 2 }));`, `pi.on("before_provider_request", (e) => { e.payload.c = 3; });`);
  assert.deepEqual(payload.value, { payload: { a: 1, b: 2, c: 3 } });
  const headers = await combined("before_provider_headers", { headers: { x: "1" } }, `pi.on("before_provider_headers", (e) => { e.headers.y = null; });`);
  assert.deepEqual(headers.value, { headers: { x: "1", y: null } });
});

test("resources, trust, boundaries, cache warming", async () => {
  const found = await combined("resources_discover", { reason: "startup" }, `pi.on("resources_discover", () => ({ skillPaths: ["/s"] }));`,
    `pi.on("resources_discover", () => ({ skillPaths: ["/t"], promptPaths: ["/p"] }));`);
  assert.deepEqual(found.value.skillPaths.map(({ path }) => path), ["/s", "/t"]);
  assert.deepEqual(found.value.promptPaths.map(({ path }) => path), ["/p"]);
  const trust = await combined("project_trust", { cwd: "/" }, `pi.on("project_trust", () => ({ trusted: "undecided" }));`,
    `pi.on("project_trust", () => ({ trusted: "yes", remember: true }));`);
  assert.deepEqual(trust.value, { trusted: "yes", remember: true });
  const settle = await combined("agent_before_settle", { entries: [], continue: false },
    `pi.on("agent_before_settle", (e) => ({ entries: [...e.entries, { type: "custom", customType: "a" }], continue: true }));`,
    `pi.on("agent_before_settle", (e) => ({ entries: [...e.entries, { type: "custom", customType: String(e.continue) }] }));`);
  assert.deepEqual(settle.value, { entries: [{ type: "custom", customType: "a" }, { type: "custom", customType: "true" }], continue: true });
  const warm = await combined("cache_warming_decision", { action: "warm" }, `pi.on("cache_warming_decision", () => ({ action: "stop" }));`,
    `pi.on("cache_warming_decision", () => {});`);
  assert.deepEqual(warm.value, { action: "stop" });
});

test("an awaited event without a result answers null; a handler can be removed", async () => {
  await withAgent(async (agent) => {
    const [item] = await agent.open(pair(`const off = pi.on("agent_end", () => {}); pi.on("turn_start", () => off());`));
    assert.deepEqual(item.events, ["agent_end", "turn_start"]);
    assert.equal((await agent.event("agent_end", { messages: [] })).value, null);
    await agent.event("turn_start", {});
    const changed = await agent.wait({ type: "changed" });
    assert.deepEqual(changed.events, ["turn_start"]);
  });
});

test("notifications run in order, and tool_call waits for them", async () => {
  await withAgent(async (agent) => {
    await agent.open(pair(`
      pi.on("message_end", async (e, ctx) => { await new Promise((go) => setTimeout(go, 60)); ctx.ui.notify("end"); });
      pi.on("agent_end", (e, ctx) => ctx.ui.notify("agent"));
      pi.on("tool_call", (e, ctx) => { ctx.ui.notify("call"); });`));
    agent.send({ type: "event", session: "s1", name: "message_end", event: { message: { role: "user" } } });
    agent.send({ type: "event", session: "s1", name: "agent_end", event: { messages: [] } });
    await agent.event("tool_call", { input: {} });
    const said = agent.seen.filter(({ method }) => method === "ui.notify").map(({ params }) => params.message);
    assert.deepEqual(said, ["end", "agent", "call"]);
  });
});

test("what a notification's handler throws is a failure line", async () => {
  await withAgent(async (agent) => {
    await agent.open(pair(`pi.on("turn_start", async () => { throw new Error("turn_start exploded"); });`));
    agent.send({ type: "event", session: "s1", name: "turn_start", event: { turnIndex: 0 } });
    const failure = await agent.wait({ type: "failure" });
    assert.equal(failure.error, "turn_start exploded");
    assert.equal(failure.event, "turn_start");
    assert.equal(failure.session, "s1");
    assert.match(failure.path, /a\.ts$/);
  });
});

test("cancel fires the signal of the event's handlers and the rest is not run", async () => {
  await withAgent(async (agent) => {
    await agent.open(pair(
      `pi.on("session_before_compact", (e) => new Promise((go) => e.signal.addEventListener("abort", () => go({ cancel: false }))));`,
      `pi.on("session_before_compact", () => ({ compaction: { summary: "late" } }));`));
    const answer = agent.event("session_before_compact", {});
    agent.send({ type: "cancel", id: 2 });
    assert.deepEqual((await answer).value, { cancel: false });
  });
});

test("a tool_call that is cancelled before all were asked is blocked", async () => {
  await withAgent(async (agent) => {
    await agent.open(pair(`pi.on("tool_call", () => new Promise((go) => setTimeout(go, 80)));`, `pi.on("tool_call", () => ({ block: false }));`));
    const answer = agent.event("tool_call", { input: {} });
    agent.send({ type: "cancel", id: 2 });
    assert.equal((await answer).value.block, true);
  });
});
