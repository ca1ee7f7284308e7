// Every method of oh-my-pi's own RpcClient, unmodified, from 14 on, in front of our program with the offline model.
//
//     bun omp-methods.ts OMP_PACKAGE PROGRAM FOLDER
import { join } from "node:path";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";

const [omp, program, folder] = process.argv.slice(2);
const { version } = await Bun.file(join(omp, "package.json")).json();
const { RpcClient, defineRpcClientTool } = await import(join(omp, "src/modes/rpc/rpc-client.ts"));

function check(what: string, holds: boolean, seen?: unknown) {
  if (!holds) throw new Error(`${version}: not as expected: ${what}: ${JSON.stringify(seen)?.slice(0, 500)}`);
}
async function refused(what: string, error: string, asking: Promise<unknown>, code?: string) {
  const said: any = await asking.then(() => new Error("no error"), (error: unknown) => error);
  check(what, said.message === error && said.code === code, [said.message, said.code]);
}
const called = new Set<string>(["constructor"]);
const folders = ["home", "work", "sessions"].map((name) => join(folder, name));
for (const each of folders) mkdirSync(each, { recursive: true });
// Until 18 the client starts `bun CLI`, so it gets a shim that starts PROGRAM with the same arguments.
const shim = join(folder, "shim.cjs");
writeFileSync(
  shim,
  `const child = require("node:child_process").spawn(${JSON.stringify(program)}, process.argv.slice(2), { stdio: "inherit" });
process.on("SIGTERM", () => child.kill("SIGTERM"));
child.on("exit", (code, signal) => process.exit(code ?? (signal ? 1 : 0)));`,
);
// The package of Bun has its program under another name.
symlinkSync(process.execPath, join(folder, "bun"));
process.env.PATH = `${folder}:${process.env.PATH}`;
const plain = new RpcClient({
  command: [program], cliPath: shim, cwd: folders[1], env: { HOME: folders[0], PI_OFFLINE: "1" }, sessionDir: folders[2],
});
// Methods and events that came with 18.3.
const newer = "onPromptResult" in RpcClient.prototype;
// Notes which methods were called. Private fields need the client itself as `this`.
const client: any = new Proxy(plain, {
  get(target: any, name: string) {
    called.add(name);
    const value = target[name];
    return typeof value === "function" ? value.bind(target) : value;
  },
});

const results: any[] = [];
let settled = 0;
await client.start();
const offs = newer ? [
  client.onPromptResult((result: any) => results.push(result)), client.onSessionSettled(() => settled++),
  client.onAvailableCommandsUpdate(() => {}), client.onSubagentLifecycle(() => {}), client.onSubagentProgress(() => {}),
  client.onSubagentEvent(() => {}), client.onEvent(() => {}), client.onSessionEvent(() => {}),
] : [client.onEvent(() => {})];
if (newer) check("a new session is settled", (await client.getState()).isSettled === true);
check("stderr is kept", client.getStderr().startsWith("No model is configured"), client.getStderr());

// Prompts end with their own result, and the lines of a message share an id.
const events = await client.promptAndWait("Hello");
check("a complete run", events.at(-1).type === "agent_end");
if (newer) {
  const ids = (type: string) => events.filter((event: any) => event.type === type).map((event: any) => event.messageId);
  check("message ids", ids("message_start").join() === "msg-1,msg-2" && ids("message_end").join() === "msg-1,msg-2", ids("message_end"));
  check("ids of updates", new Set(ids("message_update")).size === 1 && ids("message_update")[0] === "msg-2", ids("message_update"));
  const id = await client.prompt("Again");
  await client.waitForSettled();
  check("the result of the prompt", results.at(-1).id === id && results.at(-1).status === "completed" && results.at(-1).agentInvoked, results);
  check("settled twice", settled === 2, settled);
}
// One of the two at a time: a listener that leaves hides the event from the next one in the client's list.
const collected = client.collectEvents();
await client.prompt("Once more");
await client.steer("Hurry");
await client.followUp("And this");
check("collected events", (await collected).at(-1).type === "agent_end");
// Behind the end of that run, one of the two may have begun another. Its end must not be taken for that of the next prompt.
while ((await client.getState()).isStreaming) await Bun.sleep(20);
await client.abort();
const idle = client.waitForIdle();
await client.abortAndPrompt("Something else");
await idle;
if (newer) await client.waitForSettled();

if (newer) {
  // Filters hold back events of runs only.
  check("the filter", JSON.stringify(await client.setEventFilter(["agent_end"])) === '["agent_end"]');
  const few = await client.promptAndWait("Quietly");
  check("filtered events", few.length === 1 && few[0].type === "agent_end", few);
  check("no filter", (await client.setEventFilter(null)) === null);

  await refused("fast mode", "Fast mode is unavailable for the current model.", client.setFastMode(true));
  check("slow mode", JSON.stringify(await client.setFastMode(false)) === '{"enabled":false,"active":false}');
  check("a subscription", (await client.setSubagentSubscription("events")) === "events");
  check("no sub-agents", (await client.getSubagents()).length === 0);
  await refused("no messages of one", "Unknown subagent or session file unavailable: x", client.getSubagentMessages({ subagentId: "x" }));
}

const models = await client.getAvailableModels();
const model = await client.setModel(models[0].provider, models[0].id);
check("the model", model.id === models[0].id);
check("one model only", (await client.cycleModel()) === null);
if (newer) check("levels", (await client.getAvailableThinkingLevels())[0] === "off");
await client.setThinkingLevel("off");
check("one level only", (await client.cycleThinkingLevel()) === null);
if (newer) check("commands", Array.isArray(await client.getAvailableCommands()));
await client.setSteeringMode("all");
await client.setFollowUpMode("all");
const state = await client.getState();
check("the modes", state.steeringMode === "all" && state.followUpMode === "all", state);

if (newer) {
  const page = await client.getMessagesPage({ limit: 2 });
  check("a page", page.messages.length === 2 && page.totalMessages > 2 && typeof page.nextCursor === "string", page);
  const next = await client.getMessagesPage({ cursor: page.nextCursor });
  check("the next page", next.messages.length === page.totalMessages - 2 && next.nextCursor === undefined);
  check("all messages", (await client.getMessages()).length === page.totalMessages);
  const { entries, leafId } = await client.getEntries();
  check("entries", entries.at(-1).id === leafId && (await client.getEntries(leafId)).entries.length === 0);
  await refused("an unknown entry", "Unknown entries cursor: nope", client.getEntries("nope"), "unknown_since");
  check("the tree", (await client.getTree()).leafId === leafId);

  await client.promptAndWait("Changed meanwhile");
  await refused("an old cursor", "RPC message cursor is stale", client.getMessagesPage({ cursor: page.nextCursor }), "stale_cursor");
  await refused("a page of none", "RPC message page limit must be between 1 and 256", client.getMessagesPage({ limit: 0 }));
}

await client.setAutoCompaction(true);
await client.setAutoRetry(true);
await client.abortRetry();
check("bash", (await client.bash("echo out")).output === "out\n");
await client.abortBash();
check("statistics", (await client.getSessionStats()).userMessages > 1);
check("an export", (await client.exportHtml(join(folder, "page.html"))).path === join(folder, "page.html"));
await refused("a small session", "Nothing to compact (session too small)", client.compact());
await refused("a small handoff", "Nothing to hand off (already compacted)", client.handoff());
check("the last answer", (await client.getLastAssistantText()).length > 0);

const { sessionFile } = await client.getState();
const [first] = await client.getBranchMessages();
check("a branch", (await client.branch(first.entryId)).text === "Hello");
await refused("an empty handoff", "Nothing to hand off (no messages yet)", client.handoff());
check("a new session", (await client.newSession()).cancelled === false);
check("the old session", (await client.switchSession(sessionFile)).cancelled === false);
check("its messages", (await client.getMessages()).length > 2);
if (newer) {
  const other = join(folder, "other");
  const opened = await client.openSession(other);
  check("a directory without sessions", !opened.resumed && opened.sessionFile.startsWith(other), opened);
  await client.promptAndWait("In the other directory");
  check("the same again", (await client.openSession(other)).resumed === true);
  await client.openSession(folders[2]);
  const back = await client.openSession(other);
  check("back to it", back.resumed && back.sessionId === opened.sessionId && (await client.getMessages()).length === 2, back);

  // A line above 1 MiB comes in chunks, which the client puts together.
  await client.setAutoCompaction(false);
  const long = "x".repeat(3_000_000);
  await client.promptAndWait(long);
  check("a long message", (await client.getMessages())[2].content[0].text.length === long.length);
}

check("providers", (await client.getLoginProviders()).length > 0);
await refused("a login", "Unknown OAuth provider: nope", client.login("nope"));
const tool = defineRpcClientTool({ name: "t", description: "A tool", parameters: { type: "object" }, execute: () => "x" });
check("custom tools", (await client.setCustomTools([tool])).join() === "t");
for (const off of offs) off();
await client.stop();

const methods = Object.getOwnPropertyNames(RpcClient.prototype).filter((name) => !called.has(name));
check("every method was called", methods.length === 0, methods);
console.log(`ok: oh-my-pi ${version}: ${called.size - 1} methods of its RpcClient`);
process.exit(0);
