/**
 * A tool that gives a task to a second session: its own prompt, its own tools, an empty conversation. The model sees only
 * the answer; what happens on the way shows as progress of the call.
 *
 *     pinion -e examples/extensions/sub-agent.ts -p "Have a sub-agent count the files here"
 */
import { createAgentSession, DefaultResourceLoader, SessionManager } from "@earendil-works/pi-coding-agent";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { Type } from "typebox";

const PROMPT = "You carry out one task on your own and answer with its result: briefly, complete, without questions.";

export default function (pi: ExtensionAPI) {
  pi.registerTool({
    name: "sub_agent",
    label: "Sub-agent",
    description: "Gives a task to an agent with an empty conversation and returns its answer. It sees only the task.",
    parameters: Type.Object({
      task: Type.String({ description: "The task, with everything one has to know" }),
      write: Type.Optional(Type.Boolean({ description: "May it change files and run commands? Default: no" })),
    }),

    async execute(_id, { task, write }, signal, onUpdate, ctx) {
      const loader = new DefaultResourceLoader({ cwd: ctx.cwd, systemPrompt: PROMPT, noSkills: true, noPromptTemplates: true });
      const { session } = await createAgentSession({
        cwd: ctx.cwd,
        model: ctx.model,
        tools: write ? ["read", "bash", "edit", "write"] : ["read", "grep", "find", "ls"],
        resourceLoader: loader,
        sessionManager: SessionManager.inMemory(ctx.cwd),
      });
      const steps: string[] = [];
      const show = (text: string) => onUpdate?.({ content: [{ type: "text", text: [...steps, text].join("\n") }], details: { steps } });
      const unsubscribe = session.subscribe((event) => {
        if (event.type === "tool_execution_start") steps.push(`${event.toolName} ${JSON.stringify(event.args)}`);
        if (event.type === "message_end" || event.type === "tool_execution_start") show(session.getLastAssistantText() ?? "");
      });
      const stop = () => void session.abort();
      signal?.addEventListener("abort", stop, { once: true });
      try {
        await session.prompt(task);
        const last = session.messages.findLast((message) => message.role === "assistant");
        if (last?.role === "assistant" && last.stopReason === "error") throw new Error(last.errorMessage ?? "The sub-agent failed");
        if (signal?.aborted) throw new Error("The sub-agent was stopped");
        return { content: [{ type: "text", text: session.getLastAssistantText() ?? "(no answer)" }], details: { steps } };
      } finally {
        signal?.removeEventListener("abort", stop);
        unsubscribe();
        session.dispose();
      }
    },
  });
}
