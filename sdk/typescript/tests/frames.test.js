// Against a stand-in: host tools, dialogs, many sessions, and an agent that misbehaves.
import assert from "node:assert/strict";
import { test } from "node:test";
import { AgentExited, CommandError, Lagged, ProtocolError, RpcClient, StartError, TimedOut } from "../src/index.js";
import { FAKE, agent, all, fake, options } from "./support.js";

const weather = { name: "weather", description: "Says what the weather will be.", execute: ({ city }) => `${city}: rain` };
const asked = async (session, text) => JSON.parse(await session.ask(text, { timeoutMs: 20_000 }));

test("a function answers, and what it throws is an error result", async (t) => {
  const broken = { name: "broken", description: "Always fails.", execute: async () => { throw new Error("no such x"); } };
  const it = await fake(t, { tools: [weather, broken] });
  const { result, isError } = await asked(it, 'call weather {"city":"Oslo"}');
  assert.deepEqual([result, isError], [{ content: [{ type: "text", text: "Oslo: rain" }] }, undefined]);
  const failed = await asked(it, "call broken {}");
  assert.deepEqual([failed.isError, failed.result.content[0].text], [true, "no such x"]);
  assert.equal((await asked(it, "call missing {}")).result.content[0].text, "Tool missing not found");
  assert.deepEqual((await it.call("get_tools")).tools[0].parameters, { type: "object", properties: {} });
});

test("a result that JSON cannot express is an error result", async (t) => {
  const odd = { name: "odd", description: "Returns what JSON does not have.", execute: () => ({ content: [], details: { n: 1n } }) };
  const it = await fake(t, { tools: [odd] });
  assert.equal((await asked(it, "call odd {}")).isError, true);
});

test("tools of an unanswered set can be called", async (t) => {
  const it = await fake(t, { commandTimeoutMs: 300 });
  await assert.rejects(it.setTools([{ name: "late", description: "Late", execute: () => "here" }]), TimedOut);
  assert.equal((await asked(it, "call late {}")).result.content[0].text, "here");
});

test("updates come before the result", async (t) => {
  const slow = {
    name: "slow",
    description: "Takes its time.",
    async execute(_, call) {
      await call.update("half");
      return { content: [{ type: "text", text: "whole" }], details: { n: 2 } };
    },
  };
  const it = await fake(t, { tools: [slow] });
  const run = await it.run("call slow {}");
  const updates = (await all(run)).filter((event) => event.type === "tool_execution_update");
  assert.equal(updates[0].partialResult.content[0].text, "half");
  assert.deepEqual(JSON.parse((await run.result()).text).result.details, { n: 2 });
});

test("a cancelled call is told and not answered", async (t) => {
  let told;
  const cancelled = new Promise((resolve) => (told = resolve));
  const patient = {
    name: "patient",
    description: "Waits until nobody wants it.",
    async execute(_, call) {
      call.signal.addEventListener("abort", told);
      await call.update("waiting");
      await cancelled;
      return "late";
    },
  };
  const it = await fake(t, { tools: [patient] });
  assert.equal(await it.ask("cancel patient {}"), "cancelled");
  await cancelled;
  assert.equal(await it.ask("still there"), "first: still there");
});

test("a refused set leaves the old one; sessions have tools of their own", async (t) => {
  const it = await fake(t, { tools: [weather] });
  await assert.rejects(it.setTools([weather, weather]), CommandError);
  await assert.rejects(it.setTools([{ ...weather, name: "odd", parameters: { n: 1n } }]), TypeError);
  assert.equal((await asked(it, 'call weather {"city":"Oslo"}')).isError, undefined);
  const second = await it.openSession();
  const answer = await asked(second, 'call weather {"city":"Oslo"}');
  assert.deepEqual([answer.isError, answer.session], [true, "s1"]);
});

async function dialog(t, question, onDialog, more) {
  const it = await fake(t, { onDialog, ...more });
  const { id, type, ...answer } = await asked(it, "dialog " + JSON.stringify(question));
  assert.equal(type, "extension_ui_response");
  return answer;
}

test("dialogs of each kind", async (t) => {
  const answers = { select: ({ options }) => options[0], confirm: () => true, input: () => "typed", editor: ({ prefill }) => prefill + "!" };
  const handler = (question) => answers[question.method](question);
  assert.deepEqual(await dialog(t, { method: "select", title: "Which?", options: ["a", "b"] }, handler), { value: "a" });
  assert.deepEqual(await dialog(t, { method: "confirm", title: "Sure?", message: "" }, handler), { confirmed: true });
  assert.deepEqual(await dialog(t, { method: "input", title: "Name", timeout: 5000 }, handler), { value: "typed" });
  assert.deepEqual(await dialog(t, { method: "editor", title: "Text", prefill: "x" }, handler), { value: "x!" });
});

test("dialogs without an answer are cancelled", async (t) => {
  const question = { method: "confirm", title: "Sure?", message: "" };
  assert.deepEqual(await dialog(t, question, undefined), { cancelled: true });
  assert.deepEqual(await dialog(t, question, () => undefined), { cancelled: true });
  assert.deepEqual(await dialog(t, question, () => ({ deny: "" })), { cancelled: true });
  assert.deepEqual(await dialog(t, question, () => ({ deny: "too risky" })), { cancelled: true, reason: "too risky" });
  assert.deepEqual(await dialog(t, question, () => { throw new Error("broken"); }), { cancelled: true });
  const never = () => new Promise(() => {});
  assert.deepEqual(await dialog(t, question, never, { dialogTimeoutMs: 200 }), { cancelled: true, timedOut: true });
  assert.deepEqual(await dialog(t, { ...question, timeout: 200 }, never), { cancelled: true, timedOut: true });
});

test("events go to their session", async (t) => {
  const it = await fake(t);
  const other = await it.openSession({ session: "other" });
  assert.deepEqual(await Promise.all([it.ask("hello"), other.ask("hello")]), ["first: hello", "other: hello"]);
  const events = other.events();
  await other.close();
  assert.deepEqual(await events.next(), { done: true, value: undefined });
});

test("an agent that dies or says nonsense", async (t) => {
  const dying = await fake(t);
  await assert.rejects(dying.ask("die"), (error) => error instanceof AgentExited && error.exitCode === 3 && /as asked/.test(error.stderr));
  await assert.rejects(dying.getState(), AgentExited);
  await assert.rejects((await fake(t)).ask("garbage"), ProtocolError);
});

test("an agent that is silent", async (t) => {
  const it = await fake(t, { slowTimeoutMs: 300 });
  await assert.rejects(it.prompt("mute"), TimedOut);
  await assert.rejects(it.waitForIdle(200), TimedOut);
  await assert.rejects(it.ask("silent", { timeoutMs: 300 }), TimedOut);
});

test("limits count from the prompt on", async (t) => {
  const it = await fake(t);
  await assert.rejects(it.ask("mute", { timeoutMs: 300 }), /no complete answer/);
  await assert.rejects(it.promptAndWait("mute", undefined, 300), /not idle/);
});

test("a handled prompt has no run", async (t) => {
  const run = await (await fake(t)).run("/command");
  assert.deepEqual([run.disposition, await all(run)], ["handled", []]);
});

test("events that nobody takes are bounded", async (t) => {
  const it = await fake(t, { maxWaitingEvents: 100 });
  const run = await it.run("flood 1000");
  await it.getState();
  await assert.rejects(all(run), Lagged);
});

test("programs that are no agents", async (t) => {
  await assert.rejects(agent(t, { program: [process.execPath, "-e", "process.exit(1)"] }), StartError);
  const deaf = "process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)";
  const started = agent(t, { program: [process.execPath, "-e", deaf], startTimeoutMs: 500, stopTimeoutMs: 300 });
  await assert.rejects(started, StartError);
});

test("RpcClient runs a script with node", async (t) => {
  const client = new RpcClient({ cliPath: FAKE, ...options(t), provider: "p", model: "m" });
  t.after(() => client.stop());
  await client.start();
  const { argv } = await client.getState();
  assert.deepEqual(argv, ["--mode", "rpc", "--rpc-dialect", "pi", "--provider", "p", "--model", "m"]);
});

test("an answer of any depth is an answer", async (t) => {
  const it = await fake(t);
  for (const depth of [600, 200_000]) {
    let { tree } = await it.call("deep", { depth });
    let nodes = 0;
    for (; tree.length > 0; tree = tree[0].children) nodes += 1;
    assert.equal(nodes, depth);
  }
});

test("an answer that cannot be read fails one call", async (t) => {
  const it = await fake(t);
  const [torn, state] = await Promise.allSettled([it.call("torn"), it.call("get_state")]);
  assert.ok(torn.reason instanceof ProtocolError, String(torn.reason));
  assert.equal(state.value.sessionId, "first");
  assert.equal(await it.ask("hello"), "first: hello");
});
