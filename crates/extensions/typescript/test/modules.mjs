/** The packages of pi as far as they are made here: typebox, text for terminals, truncation, messages, sessions. */
import { test } from "node:test";
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";
import { temporary } from "./support/temporary.mjs";

const require = createRequire(import.meta.url);
const session = { state: {}, models: { getAll: () => [], find: () => undefined }, call: async () => null };
const modules = require("../modules/index.cjs").createModules(session);
const agent = modules.get("@mariozechner/pi-coding-agent");
const tui = modules.get("@earendil-works/pi-tui");
const ai = modules.get("@mariozechner/pi-ai");
const { Type } = modules.get("typebox");
const { Value } = modules.get("typebox/value");

test("typebox: schemas as a model sees them", () => {
  const schema = Type.Object({
    a: Type.String({ description: "A" }), b: Type.Optional(Type.Integer({ minimum: 1 })), c: Type.Union([Type.Literal("x"), Type.Null()]),
    d: Type.Array(Type.Boolean()), e: Type.Record(Type.String(), Type.Any()), f: Type.Enum({ One: "one", Two: "two" }),
  }, { additionalProperties: false });
  assert.deepEqual(JSON.parse(JSON.stringify(schema)), {
    type: "object", required: ["a", "c", "d", "e", "f"], additionalProperties: false,
    properties: {
      a: { type: "string", description: "A" }, b: { type: "integer", minimum: 1 }, c: { anyOf: [{ type: "string", const: "x" }, { type: "null" }] },
      d: { type: "array", items: { type: "boolean" } }, e: { type: "object", patternProperties: { "^.*$": {} } }, f: { enum: ["one", "two"] },
    },
  });
  assert.deepEqual(Type.Partial(schema).required, undefined);
  assert.deepEqual(Type.Pick(schema, ["a", "b"]).required, ["a"]);
  assert.deepEqual(Object.keys(Type.Omit(schema, Type.Union([Type.Literal("a"), Type.Literal("b")])).properties), ["c", "d", "e", "f"]);
  assert.deepEqual(Type.Required(Type.Partial(Type.Object({ z: Type.Number() }))).required, ["z"]);
  assert.deepEqual(Object.keys(Type.Composite([Type.Object({ a: Type.Any() }), Type.Object({ b: Type.Any() })]).properties), ["a", "b"]);
  assert.equal(Type.IsOptional(schema.properties.b), true);
});

test("typebox: checking, converting, filling", () => {
  const schema = Type.Object({ n: Type.Number(), list: Type.Optional(Type.Array(Type.String())), on: Type.Boolean({ default: true }) }, { additionalProperties: false });
  assert.equal(Value.Check(schema, { n: 1, on: false }), true);
  for (const bad of [{}, { n: "1", on: true }, { n: 1, on: true, x: 1 }, { n: 1, on: true, list: [1] }, null, []]) assert.equal(Value.Check(schema, bad), false);
  assert.deepEqual(Value.Parse(schema, { n: "1", list: "a" }), { n: 1, list: ["a"], on: true });
  assert.throws(() => Value.Parse(schema, {}), /\/n/);
  assert.deepEqual([...Value.Errors(schema, { n: 1, on: 2 })].map(({ path: at }) => at), ["/on"]);
  assert.deepEqual(ai.validateToolArguments({ name: "t", parameters: schema }, { arguments: { n: "2" } }), { n: 2, on: true });
});

test("width, cutting, wrapping", () => {
  assert.equal(tui.visibleWidth("a\x1b[31m日本\x1b[0m👍e\u0301"), 8);
  assert.equal(tui.visibleWidth("\x1b]8;;http://x\x07link\x1b]8;;\x07"), 4);
  assert.equal(tui.truncateToWidth("hello world", 8), "hello...");
  assert.equal(tui.visibleWidth(tui.truncateToWidth("日本語テキスト", 7, "…", true)), 7);
  assert.deepEqual(tui.wrapTextWithAnsi("the quick brown fox", 9), ["the quick", "brown fox"]);
  for (const line of tui.wrapTextWithAnsi(`\x1b[31m${"word ".repeat(40)}日本語${"x".repeat(50)}`, 20)) assert.ok(tui.visibleWidth(line) <= 20, line);
  assert.equal(tui.stripTerminalSequences("\x1b[1mx\x1b[0m"), "x");
});

test("keys", () => {
  for (const [data, id] of [["\r", "enter"], ["\x1b", "escape"], ["\x03", "ctrl+c"], ["\x1b[A", "up"], ["\x1b[1;5C", "ctrl+right"], ["\x1b[Z", "shift+tab"],
    ["\x1b[3~", "delete"], ["\x1b[97;5u", "ctrl+a"], ["a", "a"], ["A", "shift+a"], [" ", "space"], ["\x1bb", "alt+b"], ["\x1bOP", "f1"], ["?", "?"]]) {
    assert.equal(tui.parseKey(data), id);
    assert.equal(tui.matchesKey(data, id), true, id);
  }
  assert.equal(tui.matchesKey("\r", tui.Key.return), true);
  assert.equal(tui.matchesKey("\x1b[99;6u", tui.Key.ctrlShift("c")), true);
  assert.equal(tui.matchesKey("x", "y"), false);
  assert.equal(tui.isKeyRelease("\x1b[97;1:3u"), true);
});

test("components render to lines of the width asked", () => {
  const box = new tui.Box(1, 1, (text) => text);
  box.addChild(new tui.Text("some text that is long enough to wrap", 0, 0));
  box.addChild(new tui.Spacer(1));
  box.addChild(new tui.Markdown("# Title", 0, 0, agent.getMarkdownTheme()));
  const lines = box.render(20);
  assert.ok(lines.length > 4 && lines.every((line) => tui.visibleWidth(line) <= 20));
  const list = new tui.SelectList([{ value: "a", label: "A" }, { value: "b", label: "B" }], 5, {});
  let chosen;
  list.onSelect = ({ value }) => { chosen = value; };
  list.handleInput("\x1b[B");
  list.handleInput("\r");
  assert.equal(chosen, "b");
  assert.deepEqual(tui.fuzzyFilter(["abc", "axbxc", "zzz"], "abc", (x) => x), ["abc", "axbxc"]);
  assert.equal(new agent.DynamicBorder().render(3)[0], "───");
});

test("truncation", () => {
  const lines = Array.from({ length: 3000 }, (_, at) => `line ${at + 1}`).join("\n");
  const head = agent.truncateHead(lines);
  assert.deepEqual([head.truncated, head.truncatedBy, head.outputLines, head.totalLines], [true, "lines", 2000, 3000]);
  assert.ok(agent.truncateTail(lines, { maxLines: 2 }).content === "line 2999\nline 3000");
  assert.equal(agent.truncateHead("x".repeat(60_000)).firstLineExceedsLimit, true);
  const tail = agent.truncateTail(`a\n${"é".repeat(60_000)}`, { maxBytes: 101 });
  assert.deepEqual([tail.lastLinePartial, tail.content], [true, "é".repeat(50)]);
  assert.equal(agent.truncateHead("short").truncated, false);
  const whole = agent.truncateTail("line\n".repeat(2000));
  assert.deepEqual([whole.truncated, whole.totalLines, whole.content.length], [false, 2000, 10_000]);
  assert.deepEqual([agent.formatSize(5), agent.formatSize(51_200), agent.formatSize(3_145_728)], ["5B", "50.0KB", "3.0MB"]);
  assert.equal(agent.truncateLine("x".repeat(600)).wasTruncated, true);
});

test("messages: for the model, as text, in tokens", () => {
  const [user] = agent.convertToLlm([{ role: "bashExecution", command: "ls", output: "a", exitCode: 2, timestamp: 1 }, { role: "bashExecution", excludeFromContext: true }]);
  assert.equal(user.content[0].text, "Ran `ls`\n```\na\n```\n\nCommand exited with code 2");
  const talk = [{ role: "user", content: "hi" }, { role: "assistant", content: [{ type: "text", text: "yes" }, { type: "toolCall", name: "read", arguments: { path: "f" } }] },
    { role: "toolResult", content: [{ type: "text", text: "x".repeat(2005) }] }];
  assert.equal(agent.serializeConversation(talk), `[User]: hi\n\n[Assistant]: yes\n\n[Assistant tool calls]: read(path="f")\n\n[Tool result]: ${"x".repeat(2000)}\n[5 more characters left out]`);
  assert.equal(agent.estimateTokens({ role: "user", content: "x".repeat(9) }), 3);
  const usage = { input: 1_000_000, output: 1_000_000, cacheRead: 0, cacheWrite: 0 };
  assert.equal(ai.calculateCost({ cost: { input: 3, output: 15, cacheRead: 0, cacheWrite: 0 } }, usage).total, 18);
  assert.equal(ai.isContextOverflow({ stopReason: "error", errorMessage: "400 prompt is too long: 3 tokens" }), true);
  assert.equal(ai.isContextOverflow({ stopReason: "error", errorMessage: "429 rate limit: too many tokens" }), false);
  assert.deepEqual(ai.parseStreamingJson('{"path": "a/b", "edits": [{"old": "x\\n'), { path: "a/b", edits: [{ old: "x\n" }] });
  assert.equal(ai.clampThinkingLevel({ reasoning: true }, "xhigh"), "high");
  assert.equal(ai.clampThinkingLevel({ reasoning: true, thinkingLevelMap: { medium: null } }, "medium"), "high");
  assert.equal(ai.calculateCost({ cost: { input: 3, output: 15, cacheRead: 0, cacheWrite: 4 } }, { cacheWrite: 2_000_000, cacheWrite1h: 1_000_000 }).total, 10);
  assert.equal(ai.isRecoverableLength({ stopReason: "length", usage: { output: 5 } }, 6), true);
  const system = [{ role: "system", content: "A", sections: { b: "B", c: "C" } }, { role: "user", content: "u" }, { role: "system", content: "", sections: { c: null } }];
  assert.equal(ai.getCurrentSystemPrompt(system), "A\n\nB");
  assert.equal(ai.getCurrentSystemMessage(system).content, "A\n\nB");
  assert.equal(agent.estimateTokens({ role: "user", content: [{ type: "image" }] }), 1200);
  assert.equal(agent.serializeConversation([{ role: "assistant", content: [{ type: "thinking", thinking: "hm" }, { type: "text", text: "yes" }] }]), "[Assistant]: yes");
});

test("frontmatter", () => {
  const { frontmatter, body } = agent.parseFrontmatter('---\r\nname: a b\ntools: read, bash\nlist:\n  - one\n  - "two"\nnested:\n  on: true\n  n: 3\ntext: |\n  l1\n  l2\ninline: [x, y]\n---\n\nBody\n');
  assert.deepEqual(frontmatter, { name: "a b", tools: "read, bash", list: ["one", "two"], nested: { on: true, n: 3 }, text: "l1\nl2", inline: ["x", "y"] });
  assert.equal(body, "Body");
  assert.deepEqual(agent.parseFrontmatter("no fence"), { frontmatter: {}, body: "no fence" });
});

test("event streams end with their result", async () => {
  const stream = ai.createAssistantMessageEventStream();
  setTimeout(() => {
    stream.push({ type: "start" });
    stream.push({ type: "done", message: { ok: 1 } });
  }, 5);
  const seen = [];
  for await (const { type } of stream) seen.push(type);
  assert.deepEqual(seen, ["start", "done"]);
  assert.deepEqual(await stream.result(), { ok: 1 });
});

test("session files: open, list, in memory", async () => {
  const dir = temporary("sessions-");
  const file = path.join(dir, "2026_x.jsonl");
  fs.writeFileSync(file, [{ type: "session", version: 3, id: "x", timestamp: "2026-01-01T00:00:00Z", cwd: "/w" },
    { type: "message", id: "1", parentId: null, timestamp: "2026-01-01T00:00:01Z", message: { role: "user", content: [{ type: "text", text: "first" }], timestamp: 5 } },
    { type: "session_info", id: "2", parentId: "1", name: "named" }].map((line) => `${JSON.stringify(line)}\n`).join(""));
  const manager = agent.SessionManager.open(file);
  assert.deepEqual([manager.getSessionId(), manager.getCwd(), manager.getSessionName(), manager.getEntries().length], ["x", "/w", "named", 2]);
  const [info] = await agent.SessionManager.list("/w", dir);
  assert.deepEqual([info.firstMessage, info.messageCount, info.name, info.modified.getTime()], ["first", 1, "named", 5]);
  assert.throws(() => manager.appendCustomEntry("x"), /not available headless/);
  fs.writeFileSync(path.join(dir, "damaged.jsonl"), `${JSON.stringify({ type: "message", id: "1", parentId: null })}\n`);
  let turned = false;
  setImmediate(() => { turned = true; });
  assert.deepEqual([(await agent.SessionManager.list("/w", dir)).length, turned], [1, true]);
  const memory = agent.SessionManager.inMemory("/m");
  const first = memory.appendMessage({ role: "user", content: "a" });
  memory.appendCustomEntry("k", { n: 1 });
  memory.branch(first);
  memory.appendMessage({ role: "user", content: "b" });
  assert.deepEqual(memory.buildSessionContext().messages.map(({ content }) => content), ["a", "b"]);
  const summary = memory.appendCompaction("s", first, 5, undefined, true, { input: 1 });
  assert.deepEqual([memory.getEntryCount(), memory.getEntry(summary).usage.input], [4, 1]);
  assert.equal(memory.appendUsage("summary", "p", "m", { input: 2 }).usage.input, 2);
  memory.appendSessionInfo("two\nlines");
  assert.equal(memory.getSessionName(), "two lines");
});

test("the context of a session: edits of answers, older compactions, the prompt", () => {
  const memory = agent.SessionManager.inMemory("/m");
  const say = (role, content) => memory.appendMessage({ role, content });
  say("system", "P");
  const kept = say("user", "a");
  memory.appendCompaction("old", kept, 1);
  const answer = say("assistant", [{ type: "text", text: "b" }]);
  memory.appendCompaction("new", kept, 2);
  memory.appendContextEdit(answer, { content: "c" });
  assert.deepEqual(memory.buildSessionContext().messages.map(({ summary, content }) => summary ?? content), ["new", "a", [{ type: "text", text: "c" }]]);
});

test("tools over an extension's operations: edits keep line ends and do not overlap", async () => {
  let stored = "a\r\nb\nc\n";
  const operations = { readFile: async () => Buffer.from(stored), writeFile: async (_, text) => { stored = text; } };
  const tool = agent.createEditTool("/w", { operations });
  const edit = (...edits) => tool.execute("t", { path: "f", edits: edits.map(([oldText, newText]) => ({ oldText, newText })) });
  await edit(["b\nc", "B\nC"], ["a", "A\nA"]);
  assert.equal(stored, "A\r\nA\r\nB\nC\n");
  await assert.rejects(edit(["A\nB", "x"], ["B\nC", "y"]), /edits\[0\] and edits\[1\] overlap/);
  await assert.rejects(edit(["B\nC", "B\nC"]), /No changes/);
  assert.equal(stored, "A\r\nA\r\nB\nC\n");
});

test("tools over an extension's operations: long output, an abort before the start, pipes that stay open", async () => {
  const { Output } = require("../modules/tool-ops.cjs");
  const output = new Output();
  for (let part = 0; part < 64; part += 1) output.push("line\n".repeat(10_000));
  assert.ok(output.text.length < 1_200_000);
  assert.deepEqual([output.cut.totalLines, output.cut.totalBytes, output.cut.outputLines], [640_000, 3_200_000, 2000]);
  const local = agent.createLocalBashOperations();
  await assert.rejects(local.exec("echo x", "/", { onData() {}, signal: AbortSignal.abort() }), /aborted/);
  let printed = "";
  const { exitCode } = await local.exec("sleep 60 & echo $!; exit 3", "/", { onData: (data) => { printed += data; } });
  process.kill(Number(printed));
  assert.equal(exitCode, 3);
});

test("a local command waits for output that is not taken, and loses nothing", async () => {
  let size = 0;
  let taken = 0;
  const onData = (data) => {
    assert.equal(taken, 0, "nothing comes while the pipe is paused");
    size += data.length;
    taken += 1;
    return new Promise((go) => setImmediate(() => { taken -= 1; go(); }));
  };
  const { exitCode } = await agent.createLocalBashOperations().exec("head -c 3000000 /dev/zero; exit 3", "/", { onData });
  assert.deepEqual([size, exitCode], [3_000_000, 3]);
});

test("one change of a file at a time", async () => {
  const order = [];
  const work = (name, ms) => agent.withFileMutationQueue("/tmp/some-file", async () => {
    order.push(`${name}<`);
    await new Promise((go) => setTimeout(go, ms));
    order.push(`${name}>`);
  });
  await Promise.all([work("a", 20), work("b", 1)]);
  assert.deepEqual(order, ["a<", "a>", "b<", "b>"]);
});

test("skills, found as the agent finds them", () => {
  const dir = temporary("skills-");
  const skill = (file, name, more = "") => {
    fs.mkdirSync(path.dirname(path.join(dir, file)), { recursive: true });
    fs.writeFileSync(path.join(dir, file), `---\nname: ${name}\ndescription: about <${name}>\n${more}---\nDo it.\n`);
  };
  skill("skills/one/SKILL.md", "one");
  skill("skills/one/deep/SKILL.md", "hidden below one");
  skill("skills/group/two/SKILL.md", "two", "disable-model-invocation: true\n");
  skill("skills/direct.md", "direct");
  skill("work/.pi/skills/one/SKILL.md", "one");
  fs.mkdirSync(path.join(dir, "skills/none"));
  fs.writeFileSync(path.join(dir, "skills/none/SKILL.md"), "---\nname: none\n---\n");
  const { skills, diagnostics } = agent.loadSkills({ cwd: path.join(dir, "work"), agentDir: dir, skillPaths: [], includeDefaults: true });
  assert.deepEqual(skills.map(({ name, disableModelInvocation }) => [name, disableModelInvocation]), [["direct", false], ["two", true], ["one", false]]);
  assert.deepEqual(diagnostics.map(({ type }) => type), ["warning", "collision"]);
  const [own] = agent.loadSkillsFromDir({ dir: path.join(dir, "work/.pi/skills"), source: "mine" }).skills;
  assert.equal(own.sourceInfo.source, "mine");
  assert.equal(own.baseDir, path.join(dir, "work/.pi/skills/one"));
  const block = agent.formatSkillsForPrompt(skills);
  assert.match(block, /<name>one<\/name>\n {4}<description>about &lt;one&gt;<\/description>/);
  assert.equal(block.includes("<name>two"), false);
  assert.equal(agent.formatSkillsForPrompt([]), "");
});

test("models for sessions of an extension's own", async () => {
  const list = [{ provider: "a", id: "one-large" }, { provider: "b", id: "one" }, { provider: "b", id: "two:free" }];
  const models = { getAll: () => list, getAvailable: () => list.slice(1), find: (provider, id) => list.find((one) => one.provider === provider && one.id === id), getError: () => "none" };
  const pi = require("../modules/index.cjs").createModules({ state: {}, models }).get("@earendil-works/pi-coding-agent");
  const modelRuntime = await pi.ModelRuntime.create();
  assert.deepEqual(modelRuntime.getModels("b").length, 2);
  assert.deepEqual(await modelRuntime.getAvailable("a"), []);
  assert.equal(modelRuntime.getModel("b", "one"), list[1]);
  assert.equal(modelRuntime.getError(), "none");
  const resolved = (cliModel, more) => {
    const { model, thinkingLevel, error } = pi.resolveCliModel({ cliModel, modelRuntime, ...more });
    return [model && `${model.provider}/${model.id}`, thinkingLevel, error?.slice(0, 12)];
  };
  assert.deepEqual(resolved("one"), ["b/one", undefined, undefined]);
  assert.deepEqual(resolved("a/one-large:high"), ["a/one-large", "high", undefined]);
  assert.deepEqual(resolved("two:free"), ["b/two:free", undefined, undefined]);
  assert.deepEqual(resolved("one", { cliProvider: "a" }), ["a/one-large", undefined, undefined]);
  assert.deepEqual(resolved("three"), [undefined, undefined, 'Model "three']);
});

test("arguments of a tool call in pieces", () => {
  const call = new ai.ToolCallArgumentsStream();
  assert.deepEqual(call.append('{"path": "a'), { path: "a" });
  assert.deepEqual(call.append('.ts", "n": 1}'), { path: "a.ts", n: 1 });
  assert.deepEqual(call.finish(), { arguments: { path: "a.ts", n: 1 } });
  assert.equal(call.replace(`${call.text} `).delta, " ");
  assert.deepEqual(call.replace('{"b": 2}'), { delta: undefined, arguments: { b: 2 } });
  assert.deepEqual(new ai.ToolCallArgumentsStream().finish(), { arguments: {} });
  const broken = ai.parseToolCallArguments("[1]");
  assert.deepEqual([broken.arguments, broken.argumentsError], [{}, "Tool arguments must be a JSON object\n\nReceived arguments:\n[1]"]);
});

test("a provider of its parts: models, requests, keys", async () => {
  const model = (id, more) => ({ id, provider: "own", api: "x", name: id, ...more });
  const api = { stream: () => "plain", streamSimple: (asked, context, options) => [asked.id, context, options] };
  const provider = ai.createProvider({
    id: "own", auth: { apiKey: ai.envApiKeyAuth("Own key", ["NO_SUCH_VARIABLE", "HOME"]) }, models: [model("a"), model("i", { type: "image" })], api,
    fetchModels: async () => [model("a", { name: "A" }), model("b"), model("z", { type: "unknown" })],
  });
  assert.equal(provider.name, "own");
  assert.deepEqual(provider.getModels().map(({ id }) => id), ["a"]);
  assert.deepEqual(provider.streamSimple(model("a"), 1, 2), ["a", 1, 2]);
  const published = [];
  const publish = async ({ update, persist }) => {
    published.push(persist?.models.length);
    update();
    return true;
  };
  await provider.refreshModels({ publish, allowNetwork: true, stored: { models: [model("s"), { ...model("t"), provider: "other" }] } });
  assert.deepEqual(provider.getModels().map(({ id, name }) => [id, name]), [["a", "A"], ["b", "b"]]);
  assert.deepEqual(provider.getAllModels().map(({ id }) => id), ["a", "i", "b"]);
  assert.deepEqual(published, [undefined, 2]);
  const { apiKey } = provider.auth;
  const ctx = ai.defaultProviderAuthContext();
  assert.deepEqual(await apiKey.resolve({ ctx }), { auth: { apiKey: process.env.HOME }, source: "HOME" });
  assert.equal((await apiKey.resolve({ ctx, credential: { key: "stored" } })).auth.apiKey, "stored");
  assert.deepEqual(await apiKey.login({ prompt: async ({ message }) => message }), { type: "api_key", key: "Enter Own key" });
  const byApi = ai.createProvider({ id: "own", auth: {}, models: [], api: { y: api } });
  assert.equal(byApi.stream(model("a", { api: "y" })), "plain");
  const failed = await byApi.stream(model("a")).result();
  assert.deepEqual([failed.stopReason, failed.errorMessage], ["error", 'Provider own has no API implementation for "x"']);
  assert.equal(byApi.refreshModels, undefined);
  assert.throws(() => ai.createProvider({ id: "own", auth: {}, models: [], api: {} }), /at least one of "api", "images", or "classifiers" is required/);
});

test("transcripts: the first message, changes of tools", () => {
  const tool = (description) => ({ name: "t", description, parameters: {}, execute() {} });
  assert.equal(ai.createInitialSystemMessage("", []), undefined);
  assert.deepEqual(ai.normalizeContext({ systemPrompt: "P", messages: [1] }).messages, [{ role: "system", content: "P", timestamp: 0 }, 1]);
  const told = { name: "t", description: "b", parameters: {} };
  assert.deepEqual(ai.getToolStateChanges([tool("a")], [tool("b")]), { toolsAdded: [told], toolsRemoved: [{ name: "t" }] });
  assert.deepEqual(ai.getToolStateChanges([tool("b")], [tool("b")]), { toolsAdded: [], toolsRemoved: [] });
  assert.deepEqual(ai.getDeclaredTools([{ role: "system", toolsAdded: [told] }, { role: "user" }]), [told]);
});

test("lists of files over operations of an extension", async () => {
  const folders = ["/w", "/w/Sub", "/w/many"];
  const names = { "/w": ["b.ts", "Sub", "broken", "a.ts"], "/w/many": ["1", "2", "3"] };
  const operations = {
    exists: async (file) => folders.includes(file),
    stat: async (file) => {
      if (file.endsWith("broken")) throw new Error("broken link");
      return { isDirectory: () => folders.includes(file) };
    },
    readdir: async (dir) => names[dir],
    glob: async (pattern, root, { limit }) => ["/w/src/a.ts", "b.ts", "/w/dir/"].slice(0, limit).map((file) => (pattern === "none" ? "" : file)).filter(Boolean),
  };
  const run = async (tool, args) => {
    const { content, details } = await tool.execute("t", args);
    return [content[0].text, details];
  };
  const list = agent.createLsTool("/w", { operations });
  assert.deepEqual(await run(list, {}), ["a.ts\nb.ts\nSub/", undefined]);
  assert.deepEqual(await run(list, { path: "Sub/../many", limit: 2 }), ["1\n2\n\n[2 entries limit reached. Use limit=4 for more]", { entryLimitReached: 2 }]);
  await assert.rejects(run(list, { path: "/none" }), /^Error: Path not found: \/none$/);
  const search = agent.createFindTool("/w", { operations });
  assert.deepEqual(await run(search, { pattern: "*" }), ["src/a.ts\nb.ts\ndir/", undefined]);
  assert.deepEqual(await run(search, { pattern: "*", limit: 1 }), ["src/a.ts\n\n[1 results limit reached]", { resultLimitReached: 1 }]);
  assert.deepEqual(await run(search, { pattern: "none" }), ["No files found matching pattern", undefined]);
  const asked = [];
  const remote = require("../modules/index.cjs").createModules({ ...session, call: async (method, params) => asked.push([method, params.name]) && { content: [] } });
  const pi = remote.get("@earendil-works/pi-coding-agent");
  await pi.createGrepTool("/w", { operations: { isDirectory: async () => true } }).execute("t", { pattern: "x" });
  await pi.createFindTool("/w", { operations: { exists: async () => true } }).execute("t", { pattern: "x" });
  assert.deepEqual(asked, [["tool.builtin", "grep"], ["tool.builtin", "find"]]);
});

test("styles and colours leave texts as they are", () => {
  const theme = new agent.Theme();
  assert.equal(theme.style("text", { fg: "success", bold: true }), "text");
  assert.equal(tui.styleText("text", { fg: tui.rgbColor(1, 2, 3) }), "text");
  assert.equal(tui.replaceControlCharacters("a\r\nb"), "a b");
});
