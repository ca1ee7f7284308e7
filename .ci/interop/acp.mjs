// pi-acp, unmodified, between an ACP host (the protocol's own library, as pi-acp brought it) and our program (see mocked.py).
//
//     mocked.py PROGRAM KIT node acp.mjs FOLDER_OF_NODE_MODULES
//
// pi-acp starts `pi`, which the path leads to our program.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [modules] = process.argv.slice(2);
const { version } = JSON.parse(readFileSync(join(modules, "pi-acp/package.json"), "utf8"));
const { ClientSideConnection, ndJsonStream } = await import(
  pathToFileURL(join(modules, "@agentclientprotocol/sdk/dist/acp.js")).href
);
const cwd = process.env.PI_WORK;

function check(what, holds, seen) {
  if (!holds) throw new Error(`pi-acp ${version}: not as expected: ${what}${seen === undefined ? "" : `: ${JSON.stringify(seen)}`}`);
}

let updates = [];
let seen = () => {};
const host = () => ({
  async requestPermission() {
    return { outcome: { outcome: "cancelled" } };
  },
  async sessionUpdate({ update }) {
    updates.push(update);
    seen();
  },
});
/** Waits until what came since the last prompt fits. */
async function until(what, fits) {
  const limit = Date.now() + 30_000;
  while (!fits()) {
    check(what, Date.now() < limit, updates);
    await new Promise((resolve) => {
      seen = resolve;
      setTimeout(resolve, 1000);
    });
  }
}

function start() {
  const child = spawn(process.execPath, [join(modules, "pi-acp/dist/index.js")], { cwd, stdio: ["pipe", "pipe", "inherit"] });
  const connection = new ClientSideConnection(host, ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const stop = async () => {
    child.stdin.end();
    const left = setTimeout(() => child.kill("SIGTERM"), 2000);
    await ended;
    clearTimeout(left);
  };
  return { connection, stop };
}

/** The text of all pieces of one kind. */
const joined = (kind) => updates.filter((update) => update.sessionUpdate === kind).map((update) => update.content.text).join("");
const said = () => joined("agent_message_chunk");

let { connection: agent, stop } = start();
const hello = await agent.initialize({ protocolVersion: 1, clientCapabilities: {} });
check("the hello", hello.protocolVersion === 1 && hello.agentCapabilities.loadSession === true, hello);
const session = await agent.newSession({ cwd, mcpServers: [] });
const { sessionId } = session;
check("the model", JSON.stringify(session).includes("mock/claude-mock"), session);
check("thinking levels as modes", session.modes.availableModes.some((mode) => mode.id === "high"), session.modes);
await until("a list of commands", () => updates.some((update) => update.sessionUpdate === "available_commands_update"));
await agent.setSessionMode({ sessionId, modeId: "high" });

/** Says something and waits for the end of the turn. */
async function say(text) {
  updates = [];
  return await agent.prompt({ sessionId, prompt: [{ type: "text", text }] });
}

const first = await say("Run the tool");
check("the end of the turn", first.stopReason === "end_turn", first);
const count = updates.length;
check("the thinking", joined("agent_thought_chunk") === "Let me see.", updates);
check("the text", said() === "I shall run it. \u00fc\u2028\u{1f600}The answer is complete.", updates);
const call = updates.find((update) => update.sessionUpdate === "tool_call");
check("the call of the tool", call?.toolCallId === "toolu_1", updates);
const steps = updates.filter((update) => update.sessionUpdate === "tool_call_update" && update.toolCallId === "toolu_1");
check("the tool at work", [call, ...steps].some((step) => step.status === "in_progress"), steps);
check("the tool at its end", steps.at(-1).status === "completed" && JSON.stringify(steps).includes("ran-by-the-agent"), steps);

const hanging = say("Hang");
await until("the beginning of an answer", () => said() === "Begun");
await agent.cancel({ sessionId });
const cancelled = await hanging;
check("a cancelled turn", cancelled.stopReason === "cancelled", cancelled);

const after = await say("After that");
check("a turn after the abort", after.stopReason === "end_turn" && said() === "Still alive.", updates);
await stop();

// Another pi-acp finds the session on disk, opens it and shows what was said.
({ connection: agent, stop } = start());
await agent.initialize({ protocolVersion: 1, clientCapabilities: {} });
const list = await (agent.listSessions ?? agent.unstable_listSessions).call(agent, { cwd });
check("the session in the list", list.sessions.some((one) => one.sessionId === sessionId), list);
updates = [];
await agent.loadSession({ sessionId, cwd, mcpServers: [] });
await until("the conversation again", () => said().includes("Still alive.") && joined("user_message_chunk").includes("After that"));
check("all of it", joined("user_message_chunk").includes("Run the tool") && said().includes("The answer is complete."), updates);
await stop();
console.log(`ok: pi-acp ${version}: tool, cancel, answer after it, session found again, ${count} updates in the first turn`);
process.exit(0);
