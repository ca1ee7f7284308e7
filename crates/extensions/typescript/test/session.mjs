/** Contexts over the life of a session: state, replacement, reload, entries, the run's signal. */
import { test } from "node:test";
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { withAgent } from "./support/fake-agent.mjs";

const SOURCE = { "a.ts": `
  let kept: any;
  export default function (pi: any) {
    pi.registerCommand("show", { handler: async (what: string, ctx: any) => { ctx.ui.notify(JSON.stringify(await eval(what)) ?? "undefined"); } });
    pi.registerCommand("keep", { handler: async (_: string, ctx: any) => { kept = ctx; } });
    pi.registerCommand("new", { handler: async (_: string, ctx: any) => {
      const result = await ctx.newSession({ parentSession: "p", setup: async (sm: any) => { sm.appendCustomEntry("made", { n: 1 }); },
        withSession: async (next: any) => { await next.sendMessage({ customType: "x", content: next.cwd }); } });
      let stale = "no error";
      try { ctx.cwd; } catch (error: any) { stale = error.message; }
      let old = "no error";
      try { pi.setSessionName("x"); } catch (error: any) { old = error.message; }
      console.error("RESULT " + JSON.stringify([result, stale.slice(0, 5), old.slice(0, 5)]));
    } });
  }` };

const show = async (agent, what, session) => {
  const answer = await agent.run("command.run", { name: "show", args: what }, session);
  assert.equal(answer.type, "result", answer.message);
  const text = (await agent.call("ui.notify")).params.message;
  return text === "undefined" ? undefined : JSON.parse(text);
};

test("state is read when asked for", async () => {
  await withAgent(async (agent) => {
    await agent.open(SOURCE, { state: { model: { id: "m", provider: "p" }, thinkingLevel: "low", contextUsage: null, systemPrompt: "P", isTrusted: true,
      commands: [{ name: "c" }], activeTools: ["read"] } });
    assert.deepEqual(await show(agent, "[ctx.model.id, ctx.thinkingLevel, ctx.getContextUsage() === undefined, ctx.getSystemPrompt(), ctx.isProjectTrusted(), ctx.mode]"),
      ["m", "low", true, "P", true, "rpc"]);
    agent.send({ type: "state", session: "s1", model: null, contextUsage: { tokens: 5, contextWindow: 10, percent: 50 }, isIdle: false, hasPending: true });
    assert.deepEqual(await show(agent, "[ctx.model === undefined, ctx.getContextUsage().percent, ctx.isIdle(), ctx.hasPendingMessages(), ctx.signal.aborted]"),
      [true, 50, false, true, false]);
    agent.send({ type: "abort", session: "s1" });
    assert.equal(await show(agent, "ctx.signal.aborted"), true);
    agent.send({ type: "state", session: "s1", isIdle: true });
    assert.equal(await show(agent, "ctx.signal === undefined"), true);
  });
});

test("a signal that is first read after the abort is aborted, and the next run has another one", async () => {
  await withAgent(async (agent) => {
    await agent.open(SOURCE, { state: { isIdle: false } });
    agent.send({ type: "abort", session: "s1" });
    assert.equal(await show(agent, "ctx.signal.aborted"), true);
    agent.send({ type: "state", session: "s1", isIdle: true });
    agent.send({ type: "abort", session: "s1" });
    agent.send({ type: "state", session: "s1", isIdle: false });
    assert.equal(await show(agent, "ctx.signal.aborted"), false);
  });
});

test("actions while loading are refused, and only that extension fails", async () => {
  await withAgent(async (agent) => {
    const items = await agent.open({ "bad.ts": `export default (pi: any) => pi.sendUserMessage("x")`, "good.ts": `export default (pi: any) => pi.on("input", () => {})` });
    assert.match(items[0].error, /^Failed to load extension: Actions are not available/);
    assert.deepEqual(items[1].events, ["input"]);
  });
});

test("a new session: setup, withSession, and everything old throws", async () => {
  await withAgent(async (agent) => {
    agent.answers = {
      async newSession() {
        agent.send({ type: "close", session: "s1", reason: "new" });
        await agent.open(SOURCE, { session: "s2", state: { cwd: "/next" } });
        return { cancelled: false, session: "s2" };
      },
      sendMessage: null,
    };
    await agent.open(SOURCE);
    await agent.run("command.run", { name: "new" });
    const { params } = await agent.call("newSession");
    assert.equal(params.parentSession, "p");
    assert.deepEqual(params.entries.map(({ type, customType, data, parentId }) => [type, customType, data, parentId]), [["custom", "made", { n: 1 }, null]]);
    const sent = await agent.call("sendMessage");
    assert.deepEqual([sent.session, sent.params.message.content], ["s2", "/next"]);
    await agent.run("command.run", { name: "show", args: "1" }, "s2");
    assert.match(agent.stderr, /RESULT \[\{"cancelled":false\},"This ","This "\]/);
    assert.match((await agent.run("command.run", { name: "show", args: "1" }, "s1")).message, /no session s1/);
  });
});

test("cancelled replacements, navigation, waiting, compaction", async () => {
  await withAgent(async (agent) => {
    agent.answers = { newSession: { cancelled: true }, fork: { cancelled: true }, switchSession: { cancelled: true }, navigateTree: { cancelled: false, editorText: "t" },
      waitForIdle: null, reload: null, compact: { summary: "s" } };
    await agent.open(SOURCE);
    assert.deepEqual(await show(agent, "ctx.newSession()"), { cancelled: true });
    assert.deepEqual(await show(agent, "ctx.fork('e', { position: 'at', withSession: () => { throw 1 } })"), { cancelled: true });
    assert.deepEqual(await show(agent, "ctx.switchSession('/f')"), { cancelled: true });
    assert.deepEqual(await show(agent, "ctx.navigateTree('e', { summarize: true })"), { cancelled: false });
    assert.equal(await show(agent, "ctx.waitForIdle()"), undefined);
    assert.deepEqual(await show(agent, "new Promise((onComplete) => ctx.compact({ customInstructions: 'i', onComplete }))"), { summary: "s" });
    assert.deepEqual((await agent.call("fork")).params, { entryId: "e", position: "at" });
    assert.deepEqual((await agent.call("navigateTree")).params, { targetId: "e", summarize: true });
    assert.deepEqual((await agent.call("compact")).params, { customInstructions: "i" });
    await show(agent, "(ctx.abort(), ctx.shutdown(), 1)");
    assert.equal((await agent.call("abort")).id, undefined);
    await agent.call("shutdown");
  });
});

test("a reload reads the files anew", async () => {
  await withAgent(async (agent) => {
    const files = { "lib.ts": `export const value = 1;`, "plain.js": `export const other = 1;`,
      "a.ts": `import { value } from "./lib"; import { other } from "./plain.js"; export default (pi: any) => { pi.registerCommand("v" + value + other, { handler() {} }); }` };
    const open = async () => (await agent.open([agent.file("a.ts", files["a.ts"])]))[0].commands[0].name;
    agent.file("lib.ts", files["lib.ts"]);
    agent.file("plain.js", files["plain.js"]);
    assert.equal(await open(), "v11");
    agent.file("lib.ts", "export const value = 2;");
    agent.file("plain.js", "export const other = 3;");
    await agent.ask({ type: "close", session: "s1", reason: "reload" });
    assert.equal(await open(), "v23");
  });
});

const entry = (id, parentId, more) => ({ type: "message", id, parentId, timestamp: `2026-01-01T00:00:0${id}.000Z`, message: { role: "user", content: id }, ...more });

test("entries from a file that grows, is cut off, and is replaced", async () => {
  await withAgent(async (agent) => {
    const file = path.join(agent.dir, "s.jsonl");
    const header = { type: "session", version: 3, id: "id-s1", timestamp: "2026-01-01T00:00:00Z", cwd: "/w" };
    const line = (value) => `${JSON.stringify(value)}\n`;
    await agent.open(SOURCE, { state: { sessionFile: file, sessionId: "id-s1", sessionDir: agent.dir, sessionName: null } });
    const ids = () => show(agent, "ctx.sessionManager.getEntries().map((e) => e.id)");
    assert.deepEqual(await ids(), []);
    fs.writeFileSync(file, line(header) + line(entry("1", null)) + line(entry("2", "1")));
    assert.deepEqual(await ids(), ["1", "2"]);
    const torn = line(entry("3", "1"));
    fs.appendFileSync(file, `not json\n${torn.slice(0, 30)}`);
    assert.deepEqual(await ids(), ["1", "2"]);
    fs.appendFileSync(file, torn.slice(30));
    fs.appendFileSync(file, line({ type: "label", id: "4", parentId: "3", targetId: "2", label: "mark", timestamp: "2026-01-01T00:00:04Z" }));
    assert.deepEqual(await ids(), ["1", "2", "3", "4"]);
    assert.deepEqual(await show(agent, "[ctx.sessionManager.getLeafId(), ctx.sessionManager.getBranch().map((e) => e.id), ctx.sessionManager.getLabel('2'), ctx.sessionManager.getHeader().cwd]"),
      ["4", ["1", "3", "4"], "mark", "/w"]);
    assert.deepEqual(await show(agent, "ctx.sessionManager.getTree().map(function f(n) { return [n.entry.id, n.label, n.children.map(f)] })"),
      [["1", null, [["2", "mark", []], ["3", null, [["4", null, []]]]]]]);
    agent.send({ type: "state", session: "s1", leafId: "2", sessionName: "named" });
    assert.deepEqual(await show(agent, "[ctx.sessionManager.buildSessionContext().messages.map((m) => m.content), ctx.sessionManager.getSessionName(), ctx.sessionManager.getSessionFile() !== undefined]"),
      [["1", "2"], "named", true]);
    fs.rmSync(file);
    fs.writeFileSync(file, line(header) + line(entry("9", null)));
    assert.deepEqual(await ids(), ["9"]);
    const { message } = await agent.run("command.run", { name: "show", args: "ctx.sessionManager.appendMessage({})" });
    assert.match(message, /not available headless/);
  });
});

test("entries that are not on disk are pushed, and stay once when the file begins", async () => {
  await withAgent(async (agent) => {
    const file = path.join(agent.dir, "s.jsonl");
    await agent.open(SOURCE, { state: { sessionFile: file } });
    agent.send({ type: "entries", session: "s1", from: 0, header: { type: "session", id: "h", cwd: "/c" }, entries: [entry("1", null)] });
    agent.send({ type: "entries", session: "s1", from: 1, entries: [entry("2", "1")] });
    const ids = () => show(agent, "[ctx.sessionManager.getHeader().id, ...ctx.sessionManager.getEntries().map((e) => e.id)]");
    assert.deepEqual(await ids(), ["h", "1", "2"]);
    fs.writeFileSync(file, [{ type: "session", id: "h", cwd: "/c" }, entry("1", null), entry("2", "1"), entry("3", "2")].map((e) => `${JSON.stringify(e)}\n`).join(""));
    assert.deepEqual(await ids(), ["h", "1", "2", "3"]);
  });
});

test("a compaction hides what is before it; edits replace", async () => {
  await withAgent(async (agent) => {
    await agent.open(SOURCE, { state: { sessionFile: null } });
    agent.send({ type: "entries", session: "s1", from: 0, entries: [entry("1", null), entry("2", "1"),
      { type: "compaction", id: "3", parentId: "2", summary: "S", firstKeptEntryId: "2", tokensBefore: 9, timestamp: "2026-01-01T00:00:03Z" }, entry("4", "3"),
      { type: "context_edit", id: "5", parentId: "4", targetId: "4", replacement: null, timestamp: "2026-01-01T00:00:05Z" }] });
    assert.deepEqual(await show(agent, "ctx.sessionManager.buildSessionContext().messages.map((m) => m.summary ?? m.content)"), ["S", "2"]);
  });
});

test("the models come from the snapshot", async () => {
  await withAgent(async (agent) => {
    const file = agent.file("models.json", JSON.stringify({ models: [{ provider: "p", id: "a" }, { provider: "p", id: "b" }], available: ["p/b"] }));
    await agent.open(SOURCE, { state: { modelsFile: file } });
    assert.deepEqual(await show(agent, "[ctx.modelRegistry.getAll().length, ctx.modelRegistry.getAvailable().map((m) => m.id), ctx.modelRegistry.find('p', 'a').id, ctx.modelRegistry.hasConfiguredAuth({ provider: 'p', id: 'a' })]"),
      [2, ["b"], "a", false]);
    fs.writeFileSync(file, JSON.stringify([{ provider: "q", id: "c", more: "to change the size" }]));
    assert.deepEqual(await show(agent, "ctx.modelRegistry.getAvailable().map((m) => m.id)"), ["c"]);
  });
});
