/** Finding and loading files: folders, packages, dependencies, errors, and pi's module names. */
import { test } from "node:test";
import assert from "node:assert/strict";
import path from "node:path";
import { withAgent } from "./support/fake-agent.mjs";

const named = (name) => `export default function (pi) { pi.registerCommand(${JSON.stringify(name)}, { handler() {} }); }`;
const commands = (items) => items.map((item) => item.commands?.map(({ name }) => name).join() ?? item.error);

test("one that does not parse, one that throws, one without a factory: the others go on", async () => {
  await withAgent(async (agent) => {
    const items = await agent.open({
      "bad.ts": "export default function (pi) { this is not typescript\n",
      "throws.ts": `export default async function () { throw new Error("at start"); }`,
      "none.ts": `export const x = 1;`,
      "missing.ts": `import x from "no-such-package-here"; export default () => x;`,
      "good.ts": named("good"),
    });
    assert.match(items[0].error, /^Failed to load extension: ParseError: .*bad\.ts/s);
    assert.equal(items[1].error, "Failed to load extension: at start");
    assert.equal(items[2].error, `Extension does not export a valid factory function: ${items[2].path}`);
    assert.match(items[3].error, /Cannot find module 'no-such-package-here'/);
    assert.equal(items[3].error.includes("Require stack"), false);
    assert.equal(items[4].commands[0].name, "good");
    const [gone] = await agent.open([path.join(agent.dir, "not-there.ts")], { session: "s2" });
    assert.match(gone.error, /no such file/);
  });
});

test("asynchronous factories are waited for, in order", async () => {
  await withAgent(async (agent) => {
    await agent.open({
      "a.ts": `export default async (pi: any) => { await new Promise((go) => setTimeout(go, 50)); pi.on("input", (e: any) => ({ action: "transform", text: e.text + "a" })); }`,
      "b.ts": `export default (pi: any) => { pi.on("input", (e: any) => ({ action: "transform", text: e.text + "b" })); }`,
    });
    assert.equal((await agent.event("input", { text: "" })).value.text, "ab");
  });
});

test("more extensions come before the user's, and what those register meanwhile is told", async () => {
  await withAgent(async (agent) => {
    const input = (letter) => `pi.on("input", (e) => ({ action: "transform", text: e.text + "${letter}" }));`;
    await agent.open({ "user.js": `export default function (pi) { ${input("u")}
      pi.events.on("loading", () => pi.on("tool_call", () => ({ block: true }))); }` });
    const more = agent.file("more.js", `export default function (pi) { ${input("p")} pi.events.emit("loading"); }`);
    const { value } = await agent.run("extensions.load", { extensions: [{ path: more, scope: "project", kind: "extension" }] });
    assert.deepEqual(value.extensions.map((item) => [item.path, item.events]), [[more, ["input"]]]);
    const changed = await agent.wait({ type: "changed" });
    assert.deepEqual([path.basename(changed.path), changed.events], ["user.js", ["input", "tool_call"]]);
    assert.equal((await agent.event("input", { text: "" })).value.text, "pu");
    assert.deepEqual(agent.seen.filter(({ type }) => type === "changed"), []);
  });
});

test("folders: index file, package.json, several entries", async () => {
  await withAgent(async (agent) => {
    agent.file("one/index.ts", named("one"));
    agent.file("two/package.json", JSON.stringify({ pi: { extensions: ["./src/main.ts", "./src/second.ts"] } }));
    agent.file("two/src/main.ts", named("main"));
    agent.file("two/src/second.ts", named("second"));
    agent.file("three/x.ts", named("x"));
    agent.file("four/readme.md", "");
    const items = await agent.open(["one", "two", "three", "four"].map((name) => path.join(agent.dir, name)));
    assert.deepEqual(commands(items).slice(0, 4), ["one", "main", "second", "x"]);
    assert.match(items[4].error, /no extension in/);
    assert.deepEqual(items.slice(0, 3).map(({ given }) => path.basename(given)), ["one", "two", "two"]);
    assert.equal((await agent.run("command.run", { extension: path.join(agent.dir, "two"), name: "second" })).type, "result");
  });
});

test("JavaScript of both kinds, JSON, dynamic import, import.meta, top-level await", async () => {
  await withAgent(async (agent) => {
    agent.file("pack/package.json", JSON.stringify({ type: "module" }));
    agent.file("pack/data.json", JSON.stringify({ name: "json" }));
    agent.file("pack/lazy.ts", `export const name = "lazy";`);
    agent.file("pack/index.ts", `import data from "./data.json" with { type: "json" }; import { readFileSync } from "node:fs";
      const own = readFileSync(new URL("./data.json", import.meta.url), "utf8").length;
      const { name } = await import("./lazy.ts");
      enum Kind { A = "a" }
      export default function (pi: any) { pi.registerCommand([data.name, name, own, Kind.A].join("-"), { handler() {} }); }`);
    const items = await agent.open([
      agent.file("c.cjs", `module.exports = function (pi) { pi.registerCommand(require("node:path").basename(__filename), { handler() {} }); };`),
      agent.file("m.mjs", `import { Type } from "typebox"; export default (pi) => pi.registerCommand("m" + Type.String().type, { handler() {} });`),
      agent.file("j.js", named("j")),
      path.join(agent.dir, "pack/index.ts"),
    ]);
    assert.deepEqual(commands(items), ["c.cjs", "mstring", "j", "json-lazy-15-a"]);
  });
});

test("packages that want pi's packages themselves", async () => {
  await withAgent(async (agent) => {
    agent.file("node_modules/dep/package.json", JSON.stringify({ name: "dep", type: "module", exports: "./index.js" }));
    agent.file("node_modules/dep/index.js", `import { Text } from "@mariozechner/pi-tui"; import { helper } from "./helper.js"; export const name = helper + Text.name;`);
    agent.file("node_modules/dep/helper.js", `import { VERSION } from "@earendil-works/pi-coding-agent"; export const helper = typeof VERSION;`);
    agent.file("node_modules/plain/package.json", JSON.stringify({ name: "plain", type: "module", exports: "./index.js" }));
    agent.file("node_modules/plain/index.js", `export default "plain"; export const twice = (x) => x + x;`);
    agent.file("node_modules/old/index.js", `exports.old = "old";`);
    const items = await agent.open({ "a.ts": `import { name } from "dep"; import plain, { twice } from "plain"; import { old } from "old"; import * as all from "plain";
      export default (pi: any) => pi.registerCommand([name, twice(plain), old, all.default].join(), { handler() {} });` });
    assert.deepEqual(commands(items), ["stringText,plainplain,old,plain"]);
  });
});

test("every module name of pi, in both scopes, with subpaths; stubs say what they are", async () => {
  await withAgent(async (agent) => {
    const items = await agent.open({ "a.ts": `
      import * as agentA from "@mariozechner/pi-coding-agent"; import * as agentB from "@earendil-works/pi-coding-agent";
      import { getOAuthProviders } from "@mariozechner/pi-ai/oauth"; import { complete, Type as T2 } from "@earendil-works/pi-ai/compat";
      import { uuidv7 } from "@earendil-works/pi-agent-core"; import { Value } from "@sinclair/typebox/value"; import { TypeCompiler } from "@sinclair/typebox/compiler";
      import { Type } from "@sinclair/typebox"; import { Text, TUI, SomethingNew } from "@mariozechner/pi-tui"; import { AgentSessionRuntime, createAgentSessionRuntime } from "@mariozechner/pi-coding-agent";
      class Mine extends TUI { own() { return "own"; } }
      class Newer extends SomethingNew {}
      const caught = (f: any) => { try { f(); return "nothing"; } catch (error: any) { return error.message; } };
      export default async (pi: any) => {
        const schema = Type.Object({ a: Type.Number() });
        const facts = [agentA.CONFIG_DIR_NAME === agentB.CONFIG_DIR_NAME, typeof complete, typeof getOAuthProviders, uuidv7().length, Value.Check(schema, { a: 1 }),
          TypeCompiler.Compile(schema).Check({ a: "1" }), T2.String().type, new Mine().own(), typeof new Newer(), typeof (agentA as any).somethingUnknown];
        pi.registerCommand(JSON.stringify(facts), { description: [caught(() => createAgentSessionRuntime()), caught(() => new TUI()), caught(() => AgentSessionRuntime.create())].join("|"), handler() {} });
      };` });
    assert.equal(items[0].error, undefined);
    assert.equal(items[0].commands[0].name, '[true,"function","function",36,true,false,"string","own","object","undefined"]');
    assert.equal(items[0].commands[0].description, "createAgentSessionRuntime of pi-coding-agent is not available headless|TUI of pi-tui is not available headless|AgentSessionRuntime.create of pi-coding-agent is not available headless");
  });
});
