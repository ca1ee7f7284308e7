// Against the real program, with scripted answers.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import {
  CommandError,
  RpcClient,
  RunFailed,
  StartError,
  TimedOut,
  failure,
  reply,
  toolCall,
  toolCalls,
  when,
} from "../src/index.js";
import { Commands } from "../src/commands.js";
import { agent, all, live, options } from "./support.js";

test("text arrives in pieces and ends", live, async (t) => {
  const half = { stream: [{ text: ["first", { delay: 30 }, "second"] }] };
  const it = await agent(t, { script: [reply(["one ", "two ", "three"]), half] });
  const run = await it.run("count");
  assert.equal(run.disposition, "started");
  assert.equal((await all(run.text())).join(""), "one two three");
  const result = await run.result();
  assert.deepEqual(
    [result.text, result.stopReason, result.error, result.aborted],
    ["one two three", "stop", null, false],
  );
  assert.deepEqual(result.messages.map((message) => message.role), ["system", "user", "assistant"]);
  // A piece arrives while the rest of the answer is still to come.
  const slow = await it.run("slowly");
  const pieces = slow.text();
  assert.equal((await pieces.next()).value, "first");
  await slow.abort();
  const rest = await slow.result();
  assert.deepEqual([rest.text, rest.aborted], ["first", true]);
});

test("a recorded conversation is played again", live, async (t) => {
  const given = options(t);
  writeFileSync(join(given.cwd, "note.txt"), "remember the milk");
  const replay = fileURLToPath(new URL("talk.jsonl", import.meta.url));
  const it = await agent(t, { ...given, replay });
  const run = await it.run("What is in note.txt?");
  const ends = (await all(run)).filter((event) => event.type === "tool_execution_end");
  assert.match(ends[0].result.content[0].text, /milk/);
  assert.equal((await run.result()).text, "It reminds you of the milk.");
  await assert.rejects(it.ask("And?"), (error) => error instanceof RunFailed && /no further answer/.test(error.message));
});

test("results fit their schema", live, async (t) => {
  const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
  const right = toolCall("submit_result", { n: 4 });
  const script = [toolCall("submit_result", { n: "x" }), right, right, "no", "no", "no", "no"];
  const it = await agent(t, { script });
  assert.deepEqual(await it.askJson("count", schema), { n: 4 });
  const result = await (await it.run("count", { outputSchema: schema })).result();
  assert.deepEqual([result.result, result.resultError], [{ n: 4 }, null]);
  await assert.rejects(
    it.askJson("count", schema, { limits: { maxTurns: 9 } }),
    (error) => error instanceof RunFailed && error.message === "The model gave no result",
  );
  await assert.rejects(it.askJson("count", { type: "nothing" }), CommandError);
});

test("commands without a method by hand have a generated one", live, async (t) => {
  const it = await agent(t, { script: ["one"] });
  await it.ask("hi");
  const known = await it.setLimits({ limits: { maxTurns: 1 } });
  assert.deepEqual([known.used.turns, known.reached], [1, { kind: "turns", value: 1 }]);
  assert.deepEqual((await it.getLimits({ timeoutMs: 5000 })).limits, { maxTurns: 1 });
  await assert.rejects(it.continue(), CommandError);
  assert.deepEqual(await it.listProcesses(), { processes: [], wakeups: false });
  await it.setFallbackModels({ models: ["offline/echo"] });
  assert.deepEqual(await it.getFallbackModels(), { models: ["offline/echo"] });
});

test("changed files are shown and rewound", live, async (t) => {
  const given = options(t);
  const script = [toolCall("write", { path: "made.txt", content: "one\n" }), "done"];
  const it = await agent(t, { ...given, script, args: ["--checkpoints", "files"] });
  await it.ask("make a file");
  const path = join(given.cwd, "made.txt");
  assert.deepEqual((await it.getChanges()).files.map((file) => file.status), ["added"]);
  const [prompt] = await it.getForkMessages();
  const rewound = await it.rewind(prompt.entryId);
  assert.deepEqual([rewound.restored.length, rewound.kept, rewound.editorText], [1, [], "make a file"]);
  assert.equal(existsSync(path), false);
  assert.equal((await it.unrewind()).restored.length, 1);
  assert.equal(existsSync(path), true);
});

test("background processes are read, written and killed", live, async (t) => {
  const script = [toolCall("bash", { command: "echo ready; cat", background: true }), "started"];
  const it = await agent(t, { script, args: ["--tools", "bash,process"] });
  await it.ask("start it");
  const [{ processId }] = (await it.listProcesses()).processes;
  await it.writeProcess({ processId, data: "typed\n" });
  const end = Date.now() + 30_000;
  let text = "";
  while (!text.includes("typed") && Date.now() < end) {
    text = (await it.readProcess({ processId })).text;
    await sleep(20);
  }
  assert.match(text, /ready[^]*typed/);
  assert.equal((await it.killProcess({ processId })).processId, processId);
});

test("messages of sub-agents are read", live, async (t) => {
  const script = [toolCall("task", { description: "Say one", prompt: "Say one word." }), "one word", "The answer came."];
  const it = await agent(t, { script, args: ["--tools", "task"], persist: true });
  await it.setSubagentSubscription({ level: "events" });
  const ends = (await all(await it.run("delegate"))).filter((event) => event.type === "tool_execution_end");
  assert.deepEqual((await it.getSubagents()).subagents, []);
  const read = await it.getSubagentMessages({ sessionFile: ends[0].result.details.sessionFile });
  assert.match(JSON.stringify(read.messages), /one word/);
});

test("generated methods send their commands", async () => {
  const sent = [];
  class Recorder extends Commands {
    call(...parts) {
      sent.push(parts);
    }
  }
  const names = Object.getOwnPropertyNames(Commands.prototype).filter((name) => !["constructor", "call"].includes(name));
  assert.ok(names.length > 40);
  for (const name of names) {
    const method = Recorder.prototype[name];
    const [params, options] = [{ a: 1 }, { timeoutMs: 1 }];
    await (method.length === 1 ? method.call(new Recorder(), options) : method.call(new Recorder(), params, options));
    const command = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    const [type, given, last] = sent.pop();
    assert.deepEqual([type, last], [command, options]);
    assert.ok(Object.keys(given).length === (given === params ? 1 : 0));
  }
});

test("updates do not repeat the whole message", live, async (t) => {
  const it = await agent(t, { script: [reply(["a", "b"], { delayMs: 20 })] });
  const updates = (await all(await it.run("x"))).filter((event) => event.type === "message_update");
  assert.ok(updates.length > 0);
  assert.ok(updates.every((event) => !("message" in event)));
});

test("tools run in the working directory", live, async (t) => {
  const given = options(t);
  writeFileSync(join(given.cwd, "note.txt"), "remember the milk");
  const it = await agent(t, { ...given, script: [toolCall("read", { path: "note.txt" }), "done"] });
  const run = await it.run("read it");
  const ends = (await all(run)).filter((event) => event.type === "tool_execution_end");
  assert.match(ends[0].result.content[0].text, /milk/);
  assert.equal((await run.result()).text, "done");
});

test("failures are thrown", live, async (t) => {
  const it = await agent(t, { script: [failure("auth"), failure("auth")] });
  await assert.rejects(it.ask("x"), (error) => error instanceof RunFailed && error.result.stopReason === "error");
  assert.match((await (await it.run("again")).result()).error, /401/);
});

test("refused commands are thrown", live, async (t) => {
  const it = await agent(t, { script: [] });
  await assert.rejects(it.setModel("nobody", "nothing"), { command: "set_model", message: "Model not found: nobody/nothing" });
  await assert.rejects(it.call("no_such_command"), (error) => error instanceof CommandError && error.unknownCommand);
});

test("a prompt during a run is refused or queued", live, async (t) => {
  // The run lasts until the file is there.
  const waiting = toolCall("bash", { command: "until [ -e go ]; do sleep 0.02; done" });
  const given = options(t);
  const it = await agent(t, { ...given, script: [waiting, "first", "after"] });
  const run = await it.run("long");
  await assert.rejects(it.run("now"), CommandError);
  const joined = await it.run("later", { streamingBehavior: "followUp" });
  assert.equal(joined.disposition, "queued");
  writeFileSync(join(given.cwd, "go"), "");
  assert.equal((await joined.result()).text, "after");
  assert.equal((await run.result()).text, "after");
});

test("abort ends a run", live, async (t) => {
  const it = await agent(t, { script: [reply(["a", "b"], { delayMs: 30_000 })] });
  const run = await it.run("long");
  await run.abort();
  const result = await run.result();
  assert.ok(result.aborted);
  assert.throws(() => result.throwIfFailed(), RunFailed);
});

test("waits have limits", live, async (t) => {
  // Chosen by the prompt, since a run that ends early may not have asked the model. Requests repeat old prompts: the first answer
  // that fits is taken.
  const it = await agent(t, { script: [when("zebra", "next"), when("walrus", reply(["a", "b"], { delayMs: 30_000 }))] });
  await assert.rejects(it.ask("walrus", { timeoutMs: 300 }), TimedOut);
  await it.abort();
  await assert.rejects(all(await it.run("walrus", { idleTimeoutMs: 300 })), TimedOut);
  await it.abort();
  assert.equal(await it.ask("zebra"), "next");
});

test("methods unwrap what commands answer", live, async (t) => {
  const it = await agent(t, { script: ["hello"] });
  await it.ask("hi");
  assert.equal(await it.getLastAssistantText(), "hello");
  assert.equal((await it.getMessages()).length, 3);
  assert.equal((await it.getSessionStats()).assistantMessages, 1);
  assert.equal((await it.bash("echo out; exit 3")).exitCode, 3);
  await it.setSessionName("mine");
  assert.equal((await it.getState()).sessionName, "mine");
  assert.equal((await it.listSessions()).length, 1);
  assert.deepEqual(await it.newSession(), { cancelled: false });
  assert.deepEqual(await it.getMessages(), []);
});

test("closing during a run is quick and clean", live, async (t) => {
  const it = await agent(t, { script: [toolCall("bash", { command: "sleep 60" })] });
  for await (const event of await it.run("sleep")) if (event.type === "tool_execution_start") break;
  await it.stop();
  assert.equal(it.exitCode, 0);
  await it.stop();
  await assert.rejects(it.getState());
});

test("bad arguments say why", live, async (t) => {
  await assert.rejects(agent(t, { dialect: "klingon" }), (error) => error instanceof StartError && /pi-delta/.test(error.message));
  await assert.rejects(agent(t, { program: "/nowhere/to/be/found" }), StartError);
});

test("the client of pi, by its names", live, async (t) => {
  const { cwd, env } = options(t);
  const client = new RpcClient({ cliPath: process.env.PINION_PROGRAM, cwd, env, provider: "offline", model: "echo", args: ["--no-session"] });
  t.after(() => client.stop());
  await client.start();
  const heard = [];
  const stop = client.onEvent((event) => heard.push(event.type));
  const events = await client.promptAndWait("List the files in this directory", undefined, 30_000);
  assert.deepEqual(heard, events.map((event) => event.type));
  assert.ok(events.find((event) => event.type === "message_update").message, "events have the form of pi's");
  stop();
  const idle = client.waitForIdle(30_000);
  await client.prompt("hello");
  await idle;
  assert.match(await client.getLastAssistantText(), /hello/);
  assert.equal(client.getStderr(), "");
  await client.stop();
});

test("host tools, once the agent has them", live, async (t) => {
  const double = { name: "double", description: "Doubles a number.", parameters: { type: "object", properties: { number: { type: "integer" } } }, execute: ({ number }) => number * 2 };
  const it = await agent(t, { script: [toolCalls(["double", { number: 4 }], ["double", { number: 5 }]), "done"] });
  try {
    assert.deepEqual(await it.setTools([double]), ["double"]);
  } catch (error) {
    if (!error.unknownCommand) throw error;
    t.skip("this agent has no host tools yet");
    return;
  }
  const ends = (await all(await it.run("compute"))).filter((event) => event.type === "tool_execution_end");
  assert.deepEqual(ends.map((end) => end.result.content[0].text).sort(), ["10", "8"]);
});

test("many sessions, once the agent has them", live, async (t) => {
  const given = options(t);
  const it = await agent(t, { ...given, script: [when("red", "RED"), when("blue", "BLUE")] });
  const other = join(given.cwd, "other");
  mkdirSync(other);
  let second;
  try {
    second = await it.openSession({ cwd: other });
  } catch (error) {
    if (!error.unknownCommand) throw error;
    t.skip("this agent has one session");
    return;
  }
  const answers = await Promise.all([it.ask("red"), second.ask("blue")]);
  assert.deepEqual(answers, ["RED", "BLUE"]);
  assert.notEqual((await it.getState()).sessionId, (await second.getState()).sessionId);
  await second.close();
});

test("the example of the README runs", live, async (t) => {
  const page = readFileSync(new URL("../README.md", import.meta.url), "utf8");
  const example = page.match(/```js[^\n]*\n([^]*?)```/)[1];
  assert.ok(example.trimEnd().split("\n").length <= 15);
  const { cwd, env } = options(t);
  const file = join(cwd, "example.mjs");
  writeFileSync(file, example.replace('"pinion-agent"', JSON.stringify(new URL("../src/index.js", import.meta.url).href)));
  const child = spawn(process.execPath, [file], { cwd, env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "inherit"] });
  const output = (await all(child.stdout)).join("");
  assert.match(output, /No files here/);
  assert.match(output, /stop 1/);
});

const ASKING = ["--permission-mode", "ask"];

test("questions reach the callback", live, async (t) => {
  const seen = [];
  const onDialog = (dialog) => {
    seen.push([dialog.method, dialog.options]);
    return dialog.title.includes("allowed") ? "Allow once" : { deny: "not in this project" };
  };
  const calls = ["allowed", "refused"].map((name) => toolCall("bash", { command: `touch ${name}` }));
  const given = options(t);
  const it = await agent(t, { ...given, args: ASKING, onDialog, script: [...calls, "done"] });
  assert.equal(await it.ask("go"), "done");
  const three = ["select", ["Allow once", "Allow for this session", "Deny"]];
  assert.deepEqual(seen, [three, three]);
  assert.deepEqual(readdirSync(given.cwd), ["allowed"]);
  assert.match(JSON.stringify((await it.getMessages())[5]), /not in this project/);
});

test("without a callback the answer is no", live, async (t) => {
  const given = options(t);
  const script = [toolCall("bash", { command: "touch refused" }), "done"];
  const it = await agent(t, { ...given, args: ASKING, script });
  assert.equal(await it.ask("go"), "done");
  assert.deepEqual(readdirSync(given.cwd), []);
});

test("a question is withdrawn with its run", live, async (t) => {
  let asked;
  const question = new Promise((resolve) => (asked = resolve));
  const onDialog = (dialog, signal) => {
    asked(signal);
    return new Promise(() => {});
  };
  const it = await agent(t, { args: ASKING, onDialog, script: [toolCall("bash", { command: "true" })] });
  await it.run("go");
  const signal = await question;
  const over = new Promise((resolve) => signal.addEventListener("abort", resolve));
  await it.abort();
  await over;
});
