/**
 * A list of things to do: a tool for the model, /todos for people. The list lives in entries of the session, so that it
 * belongs to the branch of the conversation that made it and is there again after a restart, a switch or a fork.
 */
import { Type } from "typebox";
import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";

type Item = { id: number; text: string; done: boolean };

const ENTRY = "todo-example";

export default function (pi: ExtensionAPI) {
  let items: Item[] = [];

  /** The newest list on the way from the root of the session to where it stands. */
  const restore = (ctx: ExtensionContext) => {
    items = [];
    for (const entry of ctx.sessionManager.getBranch()) {
      if (entry.type === "custom" && entry.customType === ENTRY) items = structuredClone(entry.data.items);
    }
    show(ctx);
  };

  const show = (ctx: ExtensionContext) => {
    const open = items.filter((item) => !item.done).length;
    ctx.ui.setStatus("todo", items.length > 0 ? `${open} of ${items.length} to do` : undefined);
  };

  const list = () =>
    items.map((item) => `${item.done ? "[x]" : "[ ]"} #${item.id} ${item.text}`).join("\n") || "Nothing to do.";

  pi.on("session_start", async (_event, ctx) => restore(ctx));
  pi.on("session_tree", async (_event, ctx) => restore(ctx));

  pi.registerTool({
    name: "todo",
    label: "Todo",
    description: "Keeps a list of things to do: add one, mark one as done, list them",
    promptSnippet: "Keep a list of things to do",
    parameters: Type.Object({
      action: Type.Union([Type.Literal("add"), Type.Literal("done"), Type.Literal("list")]),
      text: Type.Optional(Type.String({ description: "What is to be done (for add)" })),
      id: Type.Optional(Type.Number({ description: "Number of the item (for done)" })),
    }),
    async execute(_id, params, _signal, _onUpdate, ctx) {
      if (params.action === "add") {
        if (!params.text) throw new Error("add needs a text");
        items.push({ id: items.length + 1, text: params.text, done: false });
      } else if (params.action === "done") {
        const item = items.find((candidate) => candidate.id === params.id);
        if (!item) throw new Error(`there is no #${params.id}`);
        item.done = true;
      }
      if (params.action !== "list") pi.appendEntry(ENTRY, { items: structuredClone(items) });
      show(ctx);
      return { content: [{ type: "text", text: list() }], details: { items: structuredClone(items) } };
    },
  });

  pi.registerCommand("todos", {
    description: "Shows what is to be done",
    handler: async (_args, ctx) => ctx.ui.notify(list()),
  });
}
