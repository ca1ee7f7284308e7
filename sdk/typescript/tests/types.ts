// Checked by the TypeScript compiler only: what the declarations promise to users.
import { Agent, RpcClient, reply, type Data, type Params, type Tool } from "../src/index.js";

const tool: Tool<{ city: string }> = {
  name: "weather",
  description: "Says what the weather will be.",
  execute: async ({ city }, call) => {
    await call.update("looking");
    return call.signal.aborted ? undefined : city.toUpperCase();
  },
};

export async function main(): Promise<void> {
  const agent = await Agent.start({ tools: [tool], script: [reply("x"), "y"], onDialog: (dialog) => dialog.method === "confirm" });
  const run = await agent.run("hello", { streamingBehavior: "steer" });
  for await (const event of run) {
    if (event.type === "message_end" && event.message.role === "assistant") event.message.stopReason satisfies string;
  }
  const count = await agent.askJson<{ n: number }>("count", { type: "object" }, { limits: { maxTurns: 3 } });
  count.n satisfies number;
  const report = await agent.askJson("review", {
    type: "object",
    properties: {
      files: { type: "array", items: { type: "string" } },
      severity: { enum: ["low", "high"] },
      line: { type: ["integer", "null"] },
      more: { anyOf: [{ type: "boolean" }, { type: "object", properties: { x: { const: 1 } }, required: ["x"] }] },
    },
    required: ["files", "severity"],
  });
  report.files[0] satisfies string | undefined;
  report.severity satisfies "low" | "high";
  report.line satisfies number | null | undefined;
  report.more satisfies boolean | { x: 1 } | undefined;
  // @ts-expect-error no such member
  void report.lines;
  // @ts-expect-error may be missing
  report.line satisfies number | null;
  const state = await agent.call("get_state");
  state.sessionId satisfies string;
  const answer: Data<"bash"> = await agent.call("bash", { command: "ls" } satisfies Params<"bash">);
  answer.output satisfies string;
  // @ts-expect-error a parameter of another type
  const wrong: Params<"bash"> = { command: 1 };
  void wrong;
  const known = await agent.setLimits({ limits: { maxTurns: 3 } });
  known.used.turns satisfies number;
  const processes = await agent.listProcesses({ timeoutMs: 1000 });
  processes.processes[0]?.processId satisfies string | undefined;
  // @ts-expect-error parameters are missing
  await agent.killProcess();
  const anything = await agent.call("a_command_of_tomorrow", { x: 1 });
  void anything.y;
  // @ts-expect-error no such level
  await agent.setThinkingLevel("huge");
  await agent.stop();

  const client = new RpcClient({ cliPath: "pinion", args: ["--no-session"] });
  const off = client.onEvent((event) => void event.type);
  const events = await client.promptAndWait("hi", [{ type: "image", data: "", mimeType: "image/png" }], 1000);
  events.length satisfies number;
  const models = await client.getAvailableModels();
  models[0]?.contextWindow satisfies number | undefined;
  off();
}
