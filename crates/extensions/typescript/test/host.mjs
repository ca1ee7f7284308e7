/** The process: pipes, pings, failures, its end, many sessions, and the length of a round trip. */
import { test } from "node:test";
import assert from "node:assert/strict";
import { withAgent, FakeAgent } from "./support/fake-agent.mjs";

test("whatever is printed goes to stderr, from child processes too", async () => {
  await withAgent(async (agent) => {
    await agent.open({ "a.ts": `
      import { spawnSync, execSync, spawn } from "node:child_process";
      console.log("at load");
      export default function (pi: any) {
        pi.registerCommand("print", { handler: async () => {
          console.log("log"); console.info("info"); console.error("error"); console.table([1]);
          process.stdout.write("raw\\n");
          spawnSync("echo", ["child one"], { stdio: "inherit" });
          execSync("echo child two", { stdio: ["ignore", "inherit", "inherit"] });
          await new Promise((go) => spawn("echo", ["child three"], { stdio: [0, 1, 2] }).on("close", go));
          let read = 0;
          for await (const chunk of process.stdin) read += chunk.length;
          if (read) throw new Error("stdin is ours");
        } });
      }` });
    const answer = await agent.run("command.run", { name: "print" });
    assert.equal(answer.type, "result");
    assert.deepEqual(agent.garbage, []);
    for (const text of ["at load", "log", "info", "error", "raw", "child one", "child two", "child three"]) {
      assert.match(agent.stderr, new RegExp(text));
    }
  });
});

test("ready, pong, unknown lines, and bad ones", async () => {
  await withAgent(async (agent) => {
    const ready = await agent.wait({ type: "ready" });
    assert.equal(ready.protocol, 1);
    agent.send({ type: "something new", id: 5 });
    agent.send("not an object");
    assert.equal((await agent.ask({ type: "ping" })).type, "pong");
  });
});

test("errors outside of anything awaited are told and the host lives", async () => {
  await withAgent(async (agent) => {
    await agent.open({ "a.ts": `export default function (pi: any) {
      pi.registerCommand("late", { handler: async () => {
        setTimeout(() => { throw new Error("from a timer"); }, 0);
        Promise.reject(new Error("nobody caught it"));
      } });
    }` });
    await agent.run("command.run", { name: "late" });
    const texts = [await agent.wait({ type: "failure" }), await agent.wait({ type: "failure" })];
    assert.deepEqual(texts.map(({ error }) => error).sort(), ["from a timer", "nobody caught it"]);
    assert.match(texts[0].path, /a\.ts$/);
    assert.equal((await agent.ask({ type: "ping" })).type, "pong");
  });
});

test("ends when its input ends", async () => {
  const agent = new FakeAgent();
  await agent.open({ "a.ts": `export default function () { setInterval(() => {}, 1000); }` });
  const { code } = await agent.stop();
  assert.equal(code, 0);
});

test("a ping is not answered while a handler loops without end", async () => {
  const agent = new FakeAgent();
  try {
    await agent.open({ "a.ts": `export default function (pi: any) { pi.on("tool_call", () => { for (;;); }); }` });
    agent.send({ type: "event", session: "s1", id: 90, name: "tool_call", event: { input: {} } });
    let answered = false;
    agent.ask({ type: "ping" }).then(() => { answered = true; }, () => {});
    await new Promise((go) => setTimeout(go, 500));
    assert.equal(answered, false);
  } finally {
    agent.kill();
  }
});

test("two sessions share nothing", async () => {
  const source = { "a.ts": `
    let count = 0;
    export default function (pi: any) {
      pi.events.on("tick", () => { count += 1; });
      pi.registerCommand("tick", { handler: async () => { pi.events.emit("tick", 1); } });
      pi.registerCommand("say", { handler: async (_: string, ctx: any) => ctx.ui.notify(ctx.cwd + " " + count + " " + pi.getFlag("f")) });
      pi.registerFlag("f", { type: "string", default: "none" });
    }` };
  await withAgent(async (agent) => {
    await agent.open(source, { session: "one", state: { cwd: "/one" }, flags: { f: "set" } });
    await agent.open(source, { session: "two", state: { cwd: "/two" } });
    await agent.run("command.run", { name: "tick" }, "one");
    await agent.run("command.run", { name: "tick" }, "one");
    await agent.run("command.run", { name: "say" }, "one");
    await agent.run("command.run", { name: "say" }, "two");
    const said = [await agent.call("ui.notify"), await agent.call("ui.notify")];
    assert.deepEqual(said.map(({ session, params }) => [session, params.message]), [["one", "/one 2 set"], ["two", "/two 0 none"]]);
  });
});

test("the bus connects the extensions of one session; a throwing listener is told of", async () => {
  await withAgent(async (agent) => {
    await agent.open({
      "a.ts": `export default (pi: any) => { pi.events.on("x", () => { throw new Error("listener"); }); const { on } = pi.events; on("x", (v: any) => pi.setSessionName("got " + v.n)); }`,
      "b.ts": `export default (pi: any) => { pi.registerCommand("go", { handler: () => pi.events.emit("x", { n: 7 }) }); }`,
    });
    await agent.run("command.run", { name: "go" });
    assert.equal((await agent.call("setSessionName")).params.name, "got 7");
    assert.equal((await agent.wait({ type: "failure" })).error, "listener");
  });
});

test("a line near the limit goes both ways", async () => {
  await withAgent(async (agent) => {
    await agent.open({ "a.ts": `export default (pi: any) => { pi.on("input", (e: any) => ({ action: "transform", text: e.text + "é" })); }` });
    const text = "x".repeat(6_000_000);
    assert.equal((await agent.event("input", { text })).value.text.length, text.length + 1);
  });
});

test("round trips", async (t) => {
  await withAgent(async (agent) => {
    await agent.open({ "a.ts": `export default (pi: any) => { pi.on("tool_call", async (e: any) => { if (e.input.n < 0) return { block: true }; }); }` });
    const run = async (rounds) => {
      const started = performance.now();
      for (let n = 0; n < rounds; n += 1) await agent.event("tool_call", { toolName: "bash", input: { command: "ls", n } });
      return (performance.now() - started) / rounds;
    };
    await run(200);
    t.diagnostic(`1000 round trips, ${(await run(1000)).toFixed(3)} ms each`);
  });
});

test("an extension cannot end the process; a timer that outlives its session is told of once", async () => {
  await withAgent(async (agent) => {
    await agent.open({ "a.ts": `export default (pi: any) => {
      pi.registerCommand("exit", { handler: async () => process.exit(3) });
      pi.registerCommand("tick", { handler: async (_: any, ctx: any) => { setInterval(() => ctx.ui.notify("x"), 5); } }); }` });
    assert.match((await agent.run("command.run", { name: "exit" })).message, /process.exit is not available/);
    assert.match((await agent.wait({ type: "failure" })).error, /process.exit/);
    await agent.run("command.run", { name: "tick" });
    await agent.ask({ type: "close", session: "s1", reason: "reload" });
    assert.match((await agent.wait({ type: "failure" })).error, /stale/);
    await new Promise((go) => setTimeout(go, 60));
    await agent.ask({ type: "ping" });
    assert.equal(agent.seen.filter(({ type }) => type === "failure").length, 0);
  });
});

test("an extension's last resort cannot end the process either", async () => {
  await withAgent(async (agent) => {
    await agent.open({ "a.ts": `process.on("uncaughtException", () => process.exit(1)); process.on("unhandledRejection", () => process.exit(1));
      export default (pi: any) => pi.registerCommand("late", { handler: async () => { setTimeout(() => { throw new Error("late"); }, 0); Promise.reject(new Error("unheard")); } });` });
    await agent.run("command.run", { name: "late" });
    for (const text of ["late", "unheard"]) await agent.wait(({ type, error }) => type === "failure" && error === text);
    assert.equal((await agent.ask({ type: "ping" })).type, "pong");
  });
});

test("contexts can be taken apart and spread", async () => {
  await withAgent(async (agent) => {
    await agent.open({ "a.ts": `export default (pi: any) => pi.registerCommand("go", { handler: async (_: any, ctx: any) => {
      const { isIdle, ui, waitForIdle } = ctx; const copy = { ...ctx, extra: 1 };
      ui.notify(JSON.stringify([isIdle(), typeof waitForIdle, copy.cwd === ctx.cwd, copy.hasPendingMessages(), Object.keys(copy).includes("sessionManager")]));
    } })` });
    await agent.run("command.run", { name: "go" });
    assert.equal((await agent.call("ui.notify")).params.message, '[true,"function",true,false,true]');
  });
});

test("a flood nobody reads is refused to the extension, not kept without end", async () => {
  const { Lines } = await import("../src/lines.mjs");
  const { Writable, Readable } = await import("node:stream");
  const stuck = new Writable({ write() {} });
  const lines = new Lines(new Readable({ read() {} }), stuck);
  const line = { text: "x".repeat(100_000) };
  assert.throws(() => { for (let n = 0; n < 2000; n += 1) lines.send(line, true); }, /does not read/);
  assert.ok(stuck.writableLength < 70_000_000);
  lines.send(line);
  assert.equal(lines.slow, true);
});

test("extensions that start the agent again find it", async () => {
  await withAgent(async (agent) => {
    agent.send({ type: "hello", protocol: 1, agentDir: agent.dir, program: "/bin/echo" });
    await agent.open({ "a.ts": `import { spawnSync } from "node:child_process";
      export default (pi: any) => pi.registerCommand("go", { handler: async () => pi.setSessionName(spawnSync(process.execPath, [process.argv[1], "--mode", "json"]).stdout + (await pi.exec("pi", ["-p", "x"])).stdout) })` });
    await agent.run("command.run", { name: "go" });
    assert.equal((await agent.call("setSessionName")).params.name, "--mode json\n-p x\n");
  });
});
