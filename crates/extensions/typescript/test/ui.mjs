/** ctx.ui: dialogs with answers, time limits and signals, notices, and what needs a terminal. */
import { test } from "node:test";
import assert from "node:assert/strict";
import { withAgent, FakeAgent } from "./support/fake-agent.mjs";

const command = (body) => ({ "a.ts": `export default function (pi: any) { pi.registerCommand("go", { handler: async (args: string, ctx: any) => { ${body} } }); }` });

test("the four dialogs, answered", async () => {
  await withAgent(async (agent) => {
    agent.answers = { "ui.select": "green", "ui.confirm": true, "ui.input": "typed", "ui.editor": "edited" };
    await agent.open(command(`
      const got = [await ctx.ui.select("Pick", ["red", "green"]), await ctx.ui.confirm("Sure?", "Really?"),
        await ctx.ui.input("Name", "here"), await ctx.ui.editor("Edit", "prefilled")];
      ctx.ui.notify(JSON.stringify([args, ...got]), "info");`));
    await agent.run("command.run", { name: "go", args: "a b" });
    assert.deepEqual((await agent.call("ui.select")).params, { title: "Pick", options: ["red", "green"] });
    assert.deepEqual((await agent.call("ui.confirm")).params, { title: "Sure?", message: "Really?" });
    assert.deepEqual((await agent.call("ui.input")).params, { title: "Name", placeholder: "here" });
    assert.deepEqual((await agent.call("ui.editor")).params, { title: "Edit", prefill: "prefilled" });
    assert.deepEqual((await agent.call("ui.notify")).params, { message: '["a b","green",true,"typed","edited"]', notifyType: "info" });
  });
});

test("descriptions of options go along", async () => {
  await withAgent(async (agent) => {
    agent.answers = { "ui.select": "green" };
    await agent.open(command(`await ctx.ui.select("Pick", ["red", { label: "green", description: "as grass" }]);`));
    await agent.run("command.run", { name: "go" });
    const params = { title: "Pick", options: ["red", "green"], optionDetails: [{}, { description: "as grass" }] };
    assert.deepEqual((await agent.call("ui.select")).params, params);
  });
});

test("cancelled, wrong and failed answers are the defaults", async () => {
  await withAgent(async (agent) => {
    agent.answers = { "ui.select": null, "ui.confirm": "yes", "ui.input": () => { throw new Error("gone"); }, "ui.editor": null };
    await agent.open(command(`
      const got = [await ctx.ui.select("S", ["a"]), await ctx.ui.confirm("C", "m"), await ctx.ui.input("I"), await ctx.ui.editor("E")];
      ctx.ui.notify(JSON.stringify(got.map((x) => x === undefined ? "undefined" : x)));`));
    await agent.run("command.run", { name: "go" });
    assert.equal((await agent.call("ui.notify")).params.message, '["undefined",false,"undefined","undefined"]');
  });
});

test("a time limit is sent, and kept here when the agent does not answer; 0 is none", async () => {
  await withAgent(async (agent) => {
    agent.answers = { "ui.confirm": FakeAgent.SILENT, "ui.input": "x" };
    await agent.open(command(`
      const a = await ctx.ui.confirm("C", "m", { timeout: 50 });
      await ctx.ui.input("I", "p", { timeout: 0 });
      ctx.ui.notify(String(a));`));
    const done = agent.run("command.run", { name: "go" });
    const asked = await agent.call("ui.confirm");
    assert.equal(asked.params.timeout, 50);
    assert.equal((await agent.wait({ type: "cancel" })).id, asked.id);
    await done;
    assert.equal("timeout" in (await agent.call("ui.input")).params, false);
    assert.equal((await agent.call("ui.notify")).params.message, "false");
  });
});

test("a signal withdraws the question; a late answer is ignored", async () => {
  await withAgent(async (agent) => {
    agent.answers = { "ui.select": FakeAgent.SILENT };
    await agent.open(command(`
      const stop = new AbortController();
      setTimeout(() => stop.abort(), 30);
      ctx.ui.notify(String(await ctx.ui.select("S", ["a"], { signal: stop.signal })));
      ctx.ui.notify(String(await ctx.ui.confirm("S", "a", { signal: stop.signal })));`));
    const done = agent.run("command.run", { name: "go" });
    const asked = await agent.call("ui.select");
    assert.equal((await agent.wait({ type: "cancel" })).id, asked.id);
    agent.send({ type: "result", id: asked.id, value: "a" });
    assert.equal((await done).type, "result");
    assert.equal((await agent.call("ui.notify")).params.message, "undefined");
    assert.equal((await agent.call("ui.notify")).params.message, "false");
  });
});

test("notices and clearing", async () => {
  await withAgent(async (agent) => {
    await agent.open(command(`
      ctx.ui.notify("plain"); ctx.ui.setStatus("k", "text"); ctx.ui.setStatus("k", undefined);
      ctx.ui.setWidget("w", ["l1"], { placement: "belowEditor" }); ctx.ui.setWidget("w", undefined);
      ctx.ui.setTitle("title"); ctx.ui.setEditorText("text"); ctx.ui.pasteToEditor("pasted"); ctx.ui.setWorkingMessage("no-op");
      ctx.ui.notify(JSON.stringify([ctx.hasUI, ctx.ui.getEditorText(), ctx.isIdle(), ctx.hasPendingMessages(), ctx.cwd === process.cwd()]), "error");`));
    await agent.run("command.run", { name: "go" });
    const said = agent.seen.filter(({ type }) => type === "call").map(({ method, params, id }) => {
      assert.equal(id, undefined);
      return [method, params];
    });
    assert.deepEqual(said, [
      ["ui.notify", { message: "plain" }],
      ["ui.setStatus", { statusKey: "k", statusText: "text" }],
      ["ui.setStatus", { statusKey: "k" }],
      ["ui.setWidget", { widgetKey: "w", widgetLines: ["l1"], widgetPlacement: "belowEditor" }],
      ["ui.setWidget", { widgetKey: "w" }],
      ["ui.setTitle", { title: "title" }],
      ["ui.setEditorText", { text: "text" }],
      ["ui.setEditorText", { text: "pasted" }],
      ["ui.notify", { message: '[true,"",true,false,true]', notifyType: "error" }],
    ]);
  });
});

test("what needs a terminal: nothing, and one line in the log for each", async () => {
  await withAgent(async (agent) => {
    await agent.open(command(`
      const got = [await ctx.ui.custom(() => { throw new Error("not called"); }), await ctx.ui.custom(() => {}),
        ctx.ui.setFooter(() => {}), ctx.ui.setWidget("w", () => {}) ?? ctx.ui.setWidget("w", "text"), ctx.ui.getAllThemes().length, ctx.ui.setTheme("x").error,
        ctx.ui.theme.fg("accent", ctx.ui.theme.style("text", { bold: true })), typeof ctx.ui.onTerminalInput(() => {})];
      ctx.ui.notify(JSON.stringify(got));`));
    await agent.run("command.run", { name: "go" });
    assert.equal((await agent.call("ui.notify")).params.message,
      '[null,null,null,null,0,"Theme switching not supported in RPC mode","text","function"]');
    const logged = agent.seen.filter(({ type }) => type === "log").map(({ message }) => message);
    assert.deepEqual(logged, ["custom UI", "custom footer", "custom widget", "terminal input"].map((name) => `${name} is not available headless`));
  });
});
