// oh-my-pi's own RpcClient, unmodified, with a tool of its own, in front of our program (see mocked.py).
//
//     mocked.py PROGRAM KIT bun omp-client.ts OMP_PACKAGE
import { join } from "node:path";

const [omp] = process.argv.slice(2);
const { version } = await Bun.file(join(omp, "package.json")).json();
const { RpcClient, defineRpcClientTool } = await import(join(omp, "src/modes/rpc/rpc-client.ts"));

function check(what: string, holds: boolean) {
  if (!holds) throw new Error(`${version}: not as expected: ${what}`);
}

let cancelled: () => void = () => {};
const cancel = new Promise<void>((resolve) => (cancelled = resolve));
let asked: () => void = () => {};
const slow = new Promise<void>((resolve) => (asked = resolve));
const lookup = defineRpcClientTool({
  name: "lookup",
  label: "Look up",
  description: "Looks something up",
  parameters: { type: "object", properties: { key: { type: "string" } }, required: ["key"] },
  async execute({ key }: { key: string }, context: any) {
    if (key === "colour") {
      context.sendUpdate("looking");
      return { content: [{ type: "text", text: "blue, says the host" }], details: { from: "host" } };
    }
    context.signal.addEventListener("abort", cancelled);
    asked();
    return await new Promise<never>(() => {});
  },
});

const client = new RpcClient({
  command: [process.env.PI_PROGRAM], cwd: process.env.PI_WORK, provider: "mock", model: "claude-mock", customTools: [lookup],
});
await client.start();
const before = await client.getState();
check("the state before", before.model.id === "claude-mock" && before.isStreaming === false && before.messageCount === 0);
check("todos and queue in the state", Array.isArray(before.todoPhases) && before.queuedMessageCount === 0);
check("the model among the models", (await client.getAvailableModels()).some((model: any) => model.id === "claude-mock"));

const events = await client.promptAndWait("Run the tool", undefined, 30_000);
const updates = events.filter((event: any) => event.type === "message_update").map((event: any) => event.assistantMessageEvent);
const joined = (kind: string) => updates.filter((update: any) => update.type === kind).map((update: any) => update.delta).join("");
check("the thinking in pieces", joined("thinking_delta") === "Let me see.");
check("the text in pieces", joined("text_delta") === "I shall run it. \u00fc\u2028\u{1f600}The answer is complete.");
check("the call of the tool", updates.some((update: any) => update.type === "toolcall_end" && update.toolCall.name === "bash"));
const ended: any = events.find((event: any) => event.type === "tool_execution_end");
check("the tool's result", !ended.isError && ended.result.content[0].text.startsWith("ran-by-the-agent\n"));
check("the last answer", (await client.getLastAssistantText()) === "The answer is complete.");

// In the middle of an answer: stop it and say something else.
let begun: () => void = () => {};
const hanging = new Promise<void>((resolve) => (begun = resolve));
const off = client.onEvent((event: any) => {
  if (event.type === "message_update" && event.assistantMessageEvent.type === "text_delta") begun();
});
const first = client.collectEvents(30_000);
await client.prompt("Hang");
await hanging;
off();
check("the state in a run", (await client.getState()).isStreaming === true);
const second = first.then(() => client.waitForIdle(30_000));
await client.abortAndPrompt("After that");
const aborted: any = (await first).findLast((event: any) => event.type === "message_end" && event.message.role === "assistant");
check("an aborted answer", aborted.message.stopReason === "aborted");
await second;
check("an answer after the abort", (await client.getLastAssistantText()) === "Still alive.");

const hosted = await client.promptAndWait("Ask the host", undefined, 30_000);
const update: any = hosted.find((event: any) => event.type === "tool_execution_update");
check("the host's progress", update.partialResult.content[0].text === "looking");
const answered: any = hosted.find((event: any) => event.type === "tool_execution_end");
check("the host's result", answered.result.content[0].text === "blue, says the host" && answered.result.details.from === "host");
check("the answer with it", (await client.getLastAssistantText()) === "The host has answered.");

const idle = client.waitForIdle(30_000);
await client.prompt("Ask it slowly");
await slow;
await client.abort();
await cancel;
await idle;
check("the state after the abort", (await client.getState()).isStreaming === false);

check("a shell command", (await client.bash("echo hi")).output.trim() === "hi");
check("the counts", (await client.getSessionStats()).toolCalls === 3);
const [branch] = await client.getBranchMessages();
check("a branch", (await client.branch(branch.entryId)).text === "Run the tool");
check("other tools", (await client.setCustomTools([])).length === 0);
check("the messages", (await client.getMessages()).length === 0);
check("a new session", (await client.newSession()).cancelled === false);
await client.stop();
console.log(`ok: oh-my-pi's RpcClient ${version}: tool, host's tool, abort in both, ${events.length} events in the first run`);
process.exit(0);
