// The protocol's own library (npm @agentclientprotocol/sdk), unmodified, in front of our program: every method once.
//
//     node acp-sdk.mjs FOLDER_OF_NODE_MODULES PROGRAM WORK_FOLDER
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { fileURLToPath, pathToFileURL } from "node:url";

const [modules, program, work] = process.argv.slice(2);
const { client, ndJsonStream } = await import(pathToFileURL(join(modules, "@agentclientprotocol/sdk/dist/v1/unstable/acp.js")).href);

function check(what, holds, seen) {
  if (!holds) throw new Error(`acp-sdk: not as expected: ${what}${seen === undefined ? "" : `: ${JSON.stringify(seen)}`}`);
}

const cwd = join(work, "cwd");
mkdirSync(cwd, { recursive: true });
mkdirSync(join(work, "home/.pi/agent"), { recursive: true });
writeFileSync(join(cwd, "note.txt"), "on disk");
const settings = { permissions: { mode: "ask" }, defaultTools: ["+todo_write"], tasks: { todoReminders: false } };
writeFileSync(join(work, "home/.pi/agent/settings.json"), JSON.stringify(settings));
// The server of the recorded transcripts: its one tool asks the user for a name.
const mcpServer = fileURLToPath(new URL("../../xtask/src/examples/acp/mcp_server.py", import.meta.url));
const text = (words) => ({ stream: [{ thinking: ["Hm."], signature: "s" }, { text: words }] });
const tool = (name, args) => ({ stream: [{ tool: { name, args } }] });
const replies = [
  text(["One ", "two."]),
  tool("read", { path: "note.txt" }),
  tool("write", { path: "made.txt", content: "made" }),
  tool("bash", { command: "echo from the terminal" }),
  text(["All done."]),
  tool("bash", { command: "echo side > refused" }),
  text(["Then not."]),
  { stream: [{ text: ["Endless"] }, { delay: 60 }, { text: ["never"] }] },
  { stream: [{ text: ["Endless"] }, { delay: 60 }, { text: ["never"] }] },
  tool("bash", { command: "sleep 600" }),
  tool("mcp__names__ask", {}),
  text(["Hello."]),
  tool("todo_write", { ops: [{ op: "replace", phases: [{ name: "Work", tasks: [{ content: "one" }, { content: "two" }] }] }] }),
  text(["Planned."]),
];
writeFileSync(join(work, "replies.json"), JSON.stringify(replies));

function start(app, capabilities, more = []) {
  const args = ["acp", "--model", "offline/script", "--script", join(work, "replies.json"), ...more];
  const env = { PATH: process.env.PATH, HOME: join(work, "home"), LANG: "C.UTF-8" };
  const child = spawn(program, args, { cwd, env, stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((done) => child.on("exit", done));
  const stream = ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const talk = (conversation) =>
    app.connectWith(stream, async (agent) => {
      const first = { protocolVersion: 1, clientCapabilities: capabilities, clientInfo: { name: "acp-sdk", version: "1" } };
      const opened = await agent.request("initialize", first);
      check("version 1", opened.protocolVersion === 1, opened);
      await conversation(agent, opened);
    });
  return { talk, stop: async () => (child.stdin.end(), ended) };
}

const updates = [];
const kinds = () => new Set(updates.map((update) => update.sessionUpdate));
const joined = (kind) => updates.filter((update) => update.sessionUpdate === kind).map((update) => update.content.text).join("");
const asked = [];
const called = new Set();
let allow = "allow_once";
const terminals = new Map();
const host = client({ name: "acp-sdk" })
  .onNotification("session/update", ({ params }) => void updates.push(params.update))
  .onRequest("session/request_permission", ({ params }) => {
    asked.push(params);
    const option = params.options.find((option) => option.kind === allow);
    return { outcome: { outcome: "selected", optionId: option.optionId } };
  })
  .onRequest("fs/read_text_file", ({ params }) => {
    called.add("fs/read_text_file");
    return { content: params.path.endsWith("note.txt") ? "unsaved words" : "" };
  })
  .onRequest("fs/write_text_file", ({ params }) => {
    called.add("fs/write_text_file");
    writeFileSync(params.path, params.content);
    return {};
  })
  .onRequest("terminal/create", ({ params }) => {
    called.add("terminal/create");
    const child = spawn(params.command, params.args ?? [], { cwd: params.cwd ?? cwd });
    const terminal = { output: "", exit: new Promise((done) => child.on("exit", (exitCode, signal) => done({ exitCode, signal }))), child };
    for (const pipe of [child.stdout, child.stderr]) pipe.on("data", (data) => (terminal.output += data));
    terminals.set("t1", terminal);
    return { terminalId: "t1" };
  })
  .onRequest("terminal/output", async ({ params }) => {
    called.add("terminal/output");
    const { output, exit } = terminals.get(params.terminalId);
    const running = new Promise((done) => setTimeout(done, 20, undefined));
    return { output, truncated: false, exitStatus: (await Promise.race([exit, running])) ?? null };
  })
  .onRequest("terminal/wait_for_exit", async ({ params }) => {
    called.add("terminal/wait_for_exit");
    return terminals.get(params.terminalId).exit;
  })
  .onRequest("terminal/kill", ({ params }) => {
    called.add("terminal/kill");
    terminals.get(params.terminalId).child.kill("SIGKILL");
    return {};
  })
  .onRequest("elicitation/create", ({ params }) => {
    called.add("elicitation/create");
    check("a form of the session", params.mode === "form" && params.sessionId && params.requestedSchema.properties.value, params);
    return { action: "accept", content: { value: "Ada" } };
  })
  .onRequest("terminal/release", () => (called.add("terminal/release"), {}));

const prompt = (words) => [{ type: "text", text: words }];
const able = { fs: { readTextFile: true, writeTextFile: true }, terminal: true, elicitation: { form: {} } };
/** Waits until what has come fits. */
async function until(what, fits) {
  const limit = Date.now() + 30_000;
  while (!fits()) {
    check(what, Date.now() < limit, updates);
    await new Promise((later) => setTimeout(later, 10));
  }
}
const first = start(host, able);
let sessionId;
await first.talk(async (agent, opened) => {
  const { agentCapabilities } = opened;
  check("loads sessions", agentCapabilities.loadSession === true, agentCapabilities);
  const server = { name: "names", command: "python3", args: [mcpServer], env: [{ name: "LANG", value: "C.UTF-8" }] };
  const session = await agent.request("session/new", { cwd, mcpServers: [server] });
  sessionId = session.sessionId;
  const modes = session.configOptions.find((option) => option.category === "mode");
  check("a mode option", modes && session.modes.currentModeId === "ask", session);
  const ended = await agent.request("session/prompt", { sessionId, prompt: prompt("Count") });
  check("the turn ends", ended.stopReason === "end_turn", ended);
  // The library may handle updates and requests after the response that follows them.
  await until("the answer in pieces", () => joined("agent_message_chunk") === "One two.");
  check("thoughts", joined("agent_thought_chunk") === "Hm.", updates);
  await until("a usage", () => kinds().has("usage_update"));
  const usage = updates.findLast((update) => update.sessionUpdate === "usage_update");
  check("usage", usage?.used > 0 && usage.size >= usage.used && usage.cost.currency === "USD", usage);

  updates.length = 0;
  await agent.request("session/prompt", {
    sessionId,
    prompt: [...prompt("Use tools"), { type: "resource", resource: { uri: "file:///x.txt", text: "embedded" } }, { type: "resource_link", uri: "file:///y.txt", name: "y" }],
  });
  await until("all tools done", () => joined("agent_message_chunk") === "All done.");
  check("tool calls are told", kinds().has("tool_call") && kinds().has("tool_call_update"), [...kinds()]);
  check("permission for write and bash", asked.length === 2 && asked[0].toolCall.content?.[0]?.type === "diff", asked);
  check("written by the client", readFileSync(join(cwd, "made.txt"), "utf8") === "made");
  // The agent does not wait for the answer to its release, so the turn may end before the request is handled here.
  await until("files and terminals of the client", () => ["fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/release"].every((name) => called.has(name)));
  check("unsaved words were read", JSON.stringify(updates).includes("unsaved words"), updates);
  check("output of the terminal", JSON.stringify(updates).includes("t1"), updates);

  allow = "reject_once";
  updates.length = 0;
  await agent.request("session/prompt", { sessionId, prompt: prompt("Try again") });
  await until("a refused call fails", () => updates.some((update) => update.status === "failed"));
  check("a refused command does not run", !existsSync(join(cwd, "refused")));

  await agent.request("session/set_mode", { sessionId, modeId: "read-only" });
  const options = await agent.request("session/set_config_option", { sessionId, configId: modes.id, value: "ask" });
  check("all options come back", options.configOptions.length >= 2 && options.configOptions.find((option) => option.id === modes.id).currentValue === "ask", options);

  updates.length = 0;
  const turn = agent.request("session/prompt", { sessionId, prompt: prompt("Without end") });
  await until("an answer", () => joined("agent_message_chunk").includes("Endless"));
  await agent.notify("session/cancel", { sessionId });
  check("cancelled", (await turn).stopReason === "cancelled");

  updates.length = 0;
  const aborted = new AbortController();
  const request = agent.request("session/prompt", { sessionId, prompt: prompt("Again") }, { cancellationSignal: aborted.signal });
  await until("an answer", () => joined("agent_message_chunk").includes("Endless"));
  aborted.abort();
  // The protocol allows the result and the error.
  const end = await request.catch((error) => error);
  check("a cancelled request", end.stopReason === "cancelled" || end.code === -32800, end);

  allow = "allow_once";
  called.clear();
  const sleeping = agent.request("session/prompt", { sessionId, prompt: prompt("Sleep") });
  await until("a terminal", () => called.has("terminal/wait_for_exit"));
  await agent.notify("session/cancel", { sessionId });
  check("a cancelled command", (await sleeping).stopReason === "cancelled");
  await until("the terminal is killed and released", () => called.has("terminal/kill") && called.has("terminal/release"));

  updates.length = 0;
  await agent.request("session/prompt", { sessionId, prompt: prompt("Ask me") });
  check("the form is shown", called.has("elicitation/create"), [...called]);
  await until("its answer is used", () => JSON.stringify(updates).includes("The user is Ada."));

  updates.length = 0;
  await agent.request("session/prompt", { sessionId, prompt: prompt("Plan") });
  await until("a plan", () => kinds().has("plan"));
  const plan = updates.findLast((update) => update.sessionUpdate === "plan");
  check("the plan", plan?.entries.map((entry) => entry.content).join() === "one,two", plan ?? updates);
});
await first.stop();

// A later process: sessions are listed, loaded, resumed, copied, closed and deleted.
const second = start(host, able);
await second.talk(async (agent) => {
  const listed = await agent.request("session/list", { cwd });
  check("the session is listed", listed.sessions.some((session) => session.sessionId === sessionId), listed);
  updates.length = 0;
  await agent.request("session/load", { sessionId, cwd, mcpServers: [] });
  await until("history is replayed to its end", () => joined("agent_message_chunk").includes("Planned."));
  check("history is replayed", joined("user_message_chunk").startsWith("Count") && joined("agent_message_chunk").includes("All done."), updates);
  await agent.request("session/close", { sessionId });
  updates.length = 0;
  await agent.request("session/resume", { sessionId, cwd, mcpServers: [] });
  check("nothing is replayed", joined("agent_message_chunk") === "", updates);
  const copy = await agent.request("session/fork", { sessionId, cwd, mcpServers: [] });
  check("a session of its own", copy.sessionId !== sessionId, copy);
  await agent.request("session/close", { sessionId: copy.sessionId });
  await agent.request("session/delete", { sessionId: copy.sessionId });
  await agent.request("session/close", { sessionId });
  const error = await agent.request("session/prompt", { sessionId, prompt: prompt("Still there?") }).catch((error) => error);
  check("a closed session refuses", typeof error.code === "number", error);
  const unknown = await agent.request("no/such_method", {}).catch((error) => error);
  check("unknown methods", unknown.code === -32601, unknown);
  const login = await agent.request("authenticate", { methodId: "no-such-login" }).catch((error) => error);
  check("an unknown login is refused", typeof login.code === "number", login);
  await agent.request("logout", {});
  await agent.request("session/delete", { sessionId });
  const left = await agent.request("session/list", { cwd });
  check("deleted", !left.sessions.some((session) => session.sessionId === sessionId), left);
});
await second.stop();

// Unattended: a client that cannot be asked gets nothing run that needs permission.
const silent = client({ name: "acp-sdk" }).onNotification("session/update", ({ params }) => void updates.push(params.update));
writeFileSync(join(work, "replies.json"), JSON.stringify([tool("bash", { command: "touch ran" }), text(["No."])]));
const third = start(silent, {});
await third.talk(async (agent) => {
  const { sessionId } = await agent.request("session/new", { cwd, mcpServers: [] });
  updates.length = 0;
  await agent.request("session/prompt", { sessionId, prompt: prompt("Run it") });
  await until("a call fails unattended", () => updates.some((update) => update.status === "failed"));
  check("nothing ran unattended", !existsSync(join(cwd, "ran")));
});
await third.stop();
console.log("ok: acp-sdk: every method of the protocol's library");
