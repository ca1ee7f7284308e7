// pi's own RpcClient of any version, unmodified, through a run with a tool, an abort, and a run after it (see mocked.py).
//
//     mocked.py PROGRAM KIT node rpc-run.mjs PI_PACKAGE
//
// The client starts `node CLI`, so it gets a shim that starts our program with the same arguments and goes when it is told to.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [pi] = process.argv.slice(2);
const { PI_PROGRAM: program, PI_WORK: work } = process.env;
const { version } = JSON.parse(readFileSync(join(pi, "package.json"), "utf8"));
const { RpcClient } = await import(pathToFileURL(join(pi, "dist/modes/rpc/rpc-client.js")).href);

const shim = join(work, "..", "shim.cjs");
writeFileSync(
  shim,
  `const child = require("node:child_process").spawn(${JSON.stringify(program)}, process.argv.slice(2), { stdio: "inherit" });
process.on("SIGTERM", () => child.kill("SIGTERM"));
child.on("exit", (code, signal) => process.exit(code ?? (signal ? 1 : 0)));`,
);

function check(what, holds) {
  if (!holds) throw new Error(`${version}: not as expected: ${what}`);
}

const client = new RpcClient({ cliPath: shim, cwd: work, provider: "mock", model: "claude-mock" });
await client.start();
const before = await client.getState();
check("the state before", before.model.id === "claude-mock" && before.isStreaming === false && before.messageCount === 0);
check("the model among the models", (await client.getAvailableModels()).some((model) => model.id === "claude-mock"));
check("a list of commands", Array.isArray(await client.getCommands()));

const events = await client.promptAndWait("Run the tool", undefined, 30_000);
const updates = events.filter((event) => event.type === "message_update").map((event) => event.assistantMessageEvent);
const joined = (kind) => updates.filter((update) => update.type === kind).map((update) => update.delta).join("");
check("the thinking in pieces", joined("thinking_delta") === "Let me see.");
check("the text in pieces", joined("text_delta") === "I shall run it. \u00fc\u2028\u{1f600}The answer is complete.");
check("the call of the tool", updates.some((update) => update.type === "toolcall_end" && update.toolCall.name === "bash"));
const started = events.find((event) => event.type === "tool_execution_start");
check("the tool's arguments", started.args.command === "echo ran-by-the-agent");
const ended = events.find((event) => event.type === "tool_execution_end");
check("the tool's result", ended.isError === false && ended.result.content[0].text === "ran-by-the-agent\n");
check("the last answer", (await client.getLastAssistantText()) === "The answer is complete.");

let begun;
const hanging = new Promise((resolve) => (begun = resolve));
const off = client.onEvent((event) => {
  if (event.type === "message_update" && event.assistantMessageEvent.type === "text_delta") begun();
});
const idle = client.collectEvents(30_000);
await client.prompt("Hang");
await hanging;
off();
// Pieces that are late on a busy machine arrive as one; this one comes alone, since the rest is never said.
check("the state in a run", (await client.getState()).isStreaming === true);
await client.abort();
const aborted = (await idle).findLast((event) => event.type === "message_end").message;
check("an aborted answer", aborted.stopReason === "aborted" && aborted.content[0].text === "Begun");
check("the state after the abort", (await client.getState()).isStreaming === false);

await client.promptAndWait("After that", undefined, 30_000);
check("an answer after the abort", (await client.getLastAssistantText()) === "Still alive.");
check("the conversation", (await client.getMessages()).filter((message) => message.role !== "system").length === 8);
const stats = await client.getSessionStats();
check("the counts", stats.toolCalls === 1 && stats.userMessages === 3 && stats.cost > 0);
const [fork] = await client.getForkMessages();
check("a fork", (await client.fork(fork.entryId)).text === "Run the tool");
check("nothing queued", (await client.getState()).pendingMessageCount === 0);
// Calls that came with later versions, where this one has them.
if (client.clearQueue) check("an emptied queue", (await client.clearQueue()).steering.length === 0);
if (client.getAvailableThinkingLevels) check("thinking levels", (await client.getAvailableThinkingLevels()).includes("high"));
if (client.getEntries) check("entries", Array.isArray((await client.getEntries()).entries));
if (client.getTree) check("a tree", Array.isArray((await client.getTree()).tree));
await client.stop();
console.log(`ok: pi's RpcClient ${version}: tool, abort, answer after it, ${events.length} events in the first run`);
