// Every method of pi's own RpcClient of any version, unmodified, in front of our program with the offline model.
//
//     node rpc-client.mjs PI_PACKAGE PROGRAM FOLDER
//
// The client starts `node CLI`, so it gets a shim that starts PROGRAM with the same arguments.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [pi, program, folder] = process.argv.slice(2);
const { version } = JSON.parse(readFileSync(join(pi, "package.json"), "utf8"));
const { RpcClient } = await import(pathToFileURL(join(pi, "dist/modes/rpc/rpc-client.js")).href);

const work = join(folder, "work");
mkdirSync(join(folder, "home"), { recursive: true });
mkdirSync(work, { recursive: true });
const shim = join(folder, "shim.cjs");
writeFileSync(join(work, "listed.txt"), "");
writeFileSync(
  shim,
  `const child = require("node:child_process").spawn(${JSON.stringify(program)}, process.argv.slice(2), { stdio: "inherit" });
process.on("SIGTERM", () => child.kill("SIGTERM"));
child.on("exit", (code, signal) => process.exit(code ?? (signal ? 1 : 0)));`,
);

function check(what, holds, seen) {
  if (!holds) throw new Error(`${version}: not as expected: ${what}: ${JSON.stringify(seen)?.slice(0, 500)}`);
}
async function refused(what, error, asking) {
  const said = await asking.then(() => "no error", (reason) => reason.message);
  check(what, said === error, said);
}

// Methods that are no part of the interface: the client calls them itself.
const INTERNAL = ["constructor", "handleLine", "createProcessExitError", "rejectPendingRequests", "send", "getData"];
const called = new Set(INTERNAL);
const env = { PATH: process.env.PATH, HOME: join(folder, "home"), PI_CODING_AGENT_DIR: join(folder, "home"), PI_OFFLINE: "1" };
const client = new Proxy(new RpcClient({ cliPath: shim, cwd: work, env, args: ["--session-dir", join(folder, "sessions")] }), {
  get(target, name) {
    called.add(name);
    const value = target[name];
    return typeof value === "function" ? value.bind(target) : value;
  },
});
const has = (name) => name in RpcClient.prototype;

await client.start();
const state = await client.getState();
check("a state with a model", state.model.provider === "offline" && state.isStreaming === false, state);
check("stderr is kept", client.getStderr().startsWith("No model is configured"), client.getStderr());

let heard = 0;
const off = client.onEvent(() => heard++);
const events = await client.promptAndWait("List the files in this directory", undefined, 30_000);
off();
// Older clients skip a listener when the one before it leaves, so that the last event may be missing or doubled.
check("a listener", Math.abs(heard - events.length) <= 1, [heard, events.length]);
const types = new Set(events.map((event) => event.type));
for (const type of ["agent_start", "message_update", "tool_execution_end", "turn_end", "agent_end"]) {
  check(`an event ${type}`, types.has(type), [...types]);
}
const answer = await client.getLastAssistantText();
check("the last answer", answer.includes("listed.txt"), answer);
check("a shell command", (await client.bash("echo hi")).output === "hi\n");
const messages = await client.getMessages();
check("the conversation", messages.filter((message) => message.role !== "system").length === 5, messages);
check("the counts", (await client.getSessionStats()).toolCalls === 1);
const idle = client.waitForIdle(30_000);
await client.prompt("Hello");
await idle;

// Messages that wait, and what ends a wait.
await client.setSteeringMode("all");
await client.setFollowUpMode("all");
const modes = await client.getState();
check("the modes", modes.steeringMode === "all" && modes.followUpMode === "all", modes);
const collected = client.collectEvents(30_000);
await client.prompt("Hello once more");
await client.abort();
check("a run that ends", (await collected).length > 0);
check("an idle state", (await client.getState()).isStreaming === false);
await client.abortRetry();
await client.abortBash();
await client.setAutoRetry(true);
await client.setAutoCompaction(false);
check("compaction is off", (await client.getState()).autoCompactionEnabled === false);

const models = await client.getAvailableModels();
const model = await client.setModel(models[0].provider, models[0].id);
check("the model", model.id === models[0].id, model);
check("one model only", (await client.cycleModel()) === null);
await refused("an unknown model", "Model not found: nobody/nothing", client.setModel("nobody", "nothing"));
await client.setThinkingLevel("off");
check("one level only", (await client.cycleThinkingLevel()) === null);
if (has("getAvailableThinkingLevels")) check("levels", (await client.getAvailableThinkingLevels()).join() === "off");
check("a list of commands", Array.isArray(await client.getCommands()));
await client.setSessionName("a name");
check("the name", (await client.getState()).sessionName === "a name");
await refused("a small session", "Nothing to compact (session too small)", client.compact("briefly"));
const html = join(folder, "page.html");
check("an export", (await client.exportHtml(html)).path === html && readFileSync(html, "utf8").includes("<html"));

if (has("getEntries")) {
  const { entries, leafId } = await client.getEntries();
  check("entries", entries.at(-1).id === leafId && (await client.getEntries(leafId)).entries.length === 0, leafId);
  await refused("an unknown entry", "Entry not found: nope", client.getEntries("nope"));
  check("the tree", (await client.getTree()).leafId === leafId);
}

const { sessionFile } = await client.getState();
const [first] = await client.getForkMessages();
check("messages to fork at", first.text === "List the files in this directory", first);
check("a fork", (await client.fork(first.entryId)).text === first.text);
check("a new session", (await client.newSession(sessionFile)).cancelled === false);
const none = (await client.getMessages()).filter((message) => message.role !== "system");
check("nothing in it", none.length === 0, none);
check("the old session", (await client.switchSession(sessionFile)).cancelled === false);
if (has("clone")) {
  check("a clone", (await client.clone()).cancelled === false);
  check("another file", (await client.getState()).sessionFile !== sessionFile);
}

// Without a run, messages wait for the next prompt.
await client.steer("first");
await client.followUp("second");
check("queued messages", (await client.getState()).pendingMessageCount === 2);
if (has("clearQueue")) {
  const { steering, followUp } = await client.clearQueue();
  check("an emptied queue", steering.join() === "first" && followUp.join() === "second", [steering, followUp]);
}
await client.stop();

const methods = Object.getOwnPropertyNames(RpcClient.prototype).filter((name) => !called.has(name));
check("every method was called", methods.length === 0, methods);
console.log(`ok: pi's RpcClient ${version}: ${called.size - INTERNAL.length} methods, ${events.length} events in its first run`);
