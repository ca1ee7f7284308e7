// pi's own RpcClient, unmodified, in front of our program: every call that a host makes in its first minutes.
//
//     node rpc-client.mjs PI_PACKAGE PROGRAM FOLDER
//
// The client starts `node CLI`, so it gets a shim that starts PROGRAM with the same arguments.
import { writeFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [pi, program, folder] = process.argv.slice(2);
const { RpcClient } = await import(pathToFileURL(join(pi, "dist/modes/rpc/rpc-client.js")).href);

mkdirSync(join(folder, "home"), { recursive: true });
const shim = join(folder, "shim.cjs");
writeFileSync(
  shim,
  `const child = require("node:child_process").spawn(${JSON.stringify(program)}, process.argv.slice(2), { stdio: "inherit" });
process.on("SIGTERM", () => child.kill("SIGTERM"));
child.on("exit", (code, signal) => process.exit(code ?? (signal ? 1 : 0)));`,
);

function check(what, holds) {
  if (!holds) throw new Error(`not as expected: ${what}`);
}

const env = { PATH: process.env.PATH, HOME: join(folder, "home"), PI_CODING_AGENT_DIR: join(folder, "home") };
const client = new RpcClient({ cliPath: shim, cwd: folder, env, args: ["--no-session"] });
await client.start();
const state = await client.getState();
check("a state with a model", state.model.provider === "offline" && state.isStreaming === false);
const events = await client.promptAndWait("List the files in this directory", undefined, 30_000);
const types = new Set(events.map((event) => event.type));
for (const type of ["agent_start", "message_update", "tool_execution_end", "turn_end", "agent_end"]) {
  check(`an event ${type}`, types.has(type));
}
check("the last answer", (await client.getLastAssistantText()).includes("shim.cjs"));
check("a shell command", (await client.bash("echo hi")).output === "hi\n");
check("the conversation", (await client.getMessages()).length === 5);
check("the counts", (await client.getSessionStats()).toolCalls === 1);
check("messages to fork at", (await client.getForkMessages()).length === 1);
check("models", (await client.getAvailableModels()).length > 0);
await client.setSteeringMode("all");
await client.steer("first");
await client.followUp("second");
check("queued messages", (await client.getState()).pendingMessageCount === 2);
check("a new session", (await client.newSession()).cancelled === false);
check("nothing in it", (await client.getMessages()).length === 0);
await client.stop();
console.log(`ok: pi's RpcClient, ${events.length} events in its run`);
