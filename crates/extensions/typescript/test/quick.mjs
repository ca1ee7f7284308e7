/** The quick way through TypeScript: what it does itself, what it leaves to Babel, and that nobody sees which it was. */
import { test } from "node:test";
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import zlib from "node:zlib";
import { createRequire } from "node:module";
import { translate } from "../src/quick.mjs";
import { withAgent } from "./support/fake-agent.mjs";
import { temporary } from "./support/temporary.mjs";

const unpacked = path.join(temporary("sucrase-"), "sucrase.cjs");
fs.writeFileSync(unpacked, zlib.gunzipSync(fs.readFileSync(new URL("../vendor/sucrase/sucrase.cjs.gz", import.meta.url))));
const { transform } = createRequire(import.meta.url)(unpacked);
const quick = (source, more) => translate(transform, { source, filename: "/x/a.ts", ts: true, async: true, ...more });
const command = (value) => `export default (pi: any) => pi.registerCommand(String(${value}), { handler() {} });`;

/** The same files through the host; answers the command's name. */
async function loaded(files) {
  let name;
  await withAgent(async (agent) => {
    for (const [file, source] of Object.entries(files)) agent.file(file, source);
    const [item] = await agent.open([path.join(agent.dir, "main.ts")]);
    assert.equal(item.error, undefined);
    [{ name }] = item.commands;
  });
  return name;
}

test("what it does not know is Babel's", () => {
  for (const source of [
    "export namespace N { export const a = 1; }", "module M { }", "@sealed\nclass A {}", "import fs = require('fs');", "export = 3;",
    "export const a = 1, b = 2;", "const x = ;", "const y = `unfinished",
  ]) assert.equal(quick(source), undefined, source);
  assert.equal(quick("const a = <b/>;", { filename: "/x/a.tsx" }), undefined);
  assert.equal(quick("const a = 1;", { async: false }), undefined);
  assert.match(quick("declare namespace N { const a: number; }\nexport const b = 1;"), /exports\.b = b/);
});

test("types go, lines stay where they were", () => {
  const code = quick("import type { A } from 'a';\nimport { B, c } from 'b';\ninterface D {}\nexport const e = c as B;\n");
  assert.equal(code.includes("'a'"), false);
  assert.equal(code.split("\n").findIndex((line) => line.includes("exports.e")), 3);
  assert.equal(code.match(/jitiImport\('b'\)/g).length, 1);
});

test("what Babel gets instead loads just so", async () => {
  assert.equal(await loaded({ "main.ts": `namespace N { export const a = "namespace"; } export const one = 1, two = 2; ${command("N.a + two")}` }), "namespace2");
});

test("import.meta, import() and words that look like them", async () => {
  assert.equal(await loaded({
    "late.ts": `export default "late"; export const more = 1;`,
    "main.ts": `import path from "node:path"; import { EventEmitter } from "node:events"; import Events from "node:events";
      class Own extends Events { word = "import.meta.url"; constructor(public readonly name: string) { super(); } }
      const { default: late, more } = await import(new URL("./late.ts", import.meta.url).pathname);
      const here = path.basename(import.meta.filename) + (import.meta.dirname === __dirname);
      enum Kind { A = 1, B }
      const other = { import: (x: string) => x, meta: { import: { meta: "own" } } };
      ${command(`[late, more, here, new Own("n").name, new Own("n").word, new Own("") instanceof EventEmitter, Kind.B, Kind[1], other.import("i"), other?.meta.import.meta].join()`)}`,
  }), "late,1,main.tstrue,n,import.meta.url,true,2,A,i,own");
});

test("a module may declare what CommonJS gives", async () => {
  const own = `import path from "node:path"; import { createRequire } from "node:module"; import { fileURLToPath } from "node:url";
    const require = createRequire(import.meta.url); const __filename = fileURLToPath(import.meta.url); const __dirname = path.dirname(__filename);`;
  assert.notEqual(quick(own), undefined);
  assert.equal(await loaded({ "main.ts": `${own} ${command(`require("node:path").basename(__filename) + (__dirname === path.dirname(__filename))`)}` }), "main.tstrue");
});

test("modules that import each other: functions are there from the beginning, values stay alive", async () => {
  assert.equal(await loaded({
    "a.ts": `import { table } from "./b.js"; export function first(): string { return "first"; } function inner() { return "inner"; }
      export { inner as second }; export let count = 0; export const grow = () => { count += 1; }; export const seen = () => table;`,
    "b.ts": `import { first, second } from "./a.js"; export const table = { first, second };`,
    "main.ts": `import { seen, count, grow } from "./a.js"; grow(); grow(); ${command(`seen().first() + seen().second() + count`)}`,
  }), "firstinner2");
});

test("an extension of JavaScript modules: each session has its own, in strict mode too", async () => {
  await withAgent(async (agent) => {
    agent.file("pack/package.json", JSON.stringify({ type: "module", pi: { extensions: ["./dist/index.js"] } }));
    agent.file("pack/dist/index.js", `import { next } from "./counter.js"; export default (pi) => pi.registerCommand("n" + next(), { handler() {} });`);
    agent.file("pack/dist/counter.js", `import { start } from "./deep/start.js"; let n = start; export const next = () => { n += 1; return n; };`);
    agent.file("pack/dist/deep/start.js", `export const start = 1; export default import.meta.url;`);
    for (const session of ["one", "two"]) {
      const [item] = await agent.open([path.join(agent.dir, "pack")], { session });
      assert.equal(item.error, undefined);
      assert.equal(item.commands[0].name, "n2");
    }
  });
});

test("a theme may be wrapped, and is each extension's own", async () => {
  await withAgent(async (agent) => {
    await agent.open({ "a.ts": `export default (pi: any) => pi.registerCommand("c", { handler(_: string, ctx: any) {
      const theme = new Proxy(ctx.ui.theme, { get: (target, name) => typeof target[name] === "function" ? (...args: any[]) => target[name](...args) : target[name] });
      ctx.ui.notify(theme.fg("accent", "painted") + theme.bold("!"));
    } });` });
    await agent.run("command.run", { name: "c" });
    assert.equal((await agent.call("ui.notify")).params.message, "painted!");
  });
});

test("before_agent_start tells what the prompt is made of, even where the agent does not", async () => {
  await withAgent(async (agent) => {
    await agent.open({ "a.ts": `export default (pi: any) => { pi.registerTool({ name: "mine", description: "", promptSnippet: "one line", parameters: {}, execute() {} });
      pi.on("before_agent_start", (e: any) => ({ systemPrompt: JSON.stringify([e.systemPromptOptions.selectedTools, e.systemPromptOptions.toolSnippets]) })); };` },
    { state: { cwd: "/", activeTools: ["read", "mine"] } });
    assert.equal((await agent.event("before_agent_start", { prompt: "x", systemPrompt: "" })).value.systemPrompt, '[["read","mine"],{"mine":"one line"}]');
    await agent.open({ "b.ts": `export default (pi: any) => { pi.on("before_agent_start", (e: any) => { e.systemPromptOptions.sections.guide = "Be " + e.systemPromptOptions.tone; }); };` }, { session: "s2" });
    const { value } = await agent.event("before_agent_start", { prompt: "x", systemPrompt: "All.", systemPromptOptions: { tone: "brief" } }, "s2");
    assert.equal(value.systemPrompt, "All.\n\n<guide>\nBe brief\n</guide>");
  });
});

test("while many files load, the agent is answered", async () => {
  await withAgent(async (agent) => {
    const busy = "const until = performance.now() + 150; while (performance.now() < until);";
    const names = Array.from({ length: 10 }, (_, n) => `m${n}`);
    for (const name of names) agent.file(`${name}.ts`, `${busy} export const ${name} = 1;`);
    agent.file("n.ts", `${names.map((name) => `import { ${name} } from "./${name}";`).join("\n")} namespace Babel { export const does = 1; } ${busy}
      ${command(`[${names.join()}].length + Babel.does`)}`);
    const opened = agent.open([path.join(agent.dir, "n.ts")]);
    const order = [];
    const pinged = agent.ask({ type: "ping" }).then(() => order.push("pong"));
    const [item] = await opened.finally(() => order.push("open"));
    await pinged;
    assert.equal(item.error, undefined);
    assert.equal(item.commands[0].name, "11");
    assert.deepEqual(order, ["pong", "open"]);
  });
});
