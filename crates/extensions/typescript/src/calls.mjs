/** Calls of the agent to what extensions registered: tools, commands, shortcuts, providers. */
import { executeOrder } from "./legacy.mjs";
import { PROVIDER_CALLS } from "./providers.mjs";

/**
 * @param {import("./session.mjs").Session} session
 * @param {{id?: number, method: string, params: any}} message
 * @param {AbortSignal|undefined} signal fires on cancel
 * @returns {Promise<any>} the value of the answer
 */
export async function runCall(session, { id, method, params = {} }, signal) {
  const { peer } = session.host;
  const update = (value) => {
    if (id !== undefined) peer.send({ type: "update", id, value });
  };
  const call = CALLS[method];
  if (call) return call(session, params, { signal, update, peer });
  const provider = PROVIDER_CALLS[method];
  if (!provider) throw new Error(`unknown method ${method}`);
  const member = TOLD[method] ?? "oauth";
  // Several may describe one provider, and what a later one says counts.
  const extension = session.extensions.findLast(({ providers }) => providers.get(params.provider)?.told[member]);
  if (!extension) throw new Error(`no extension has the provider ${params.provider}`);
  const tools = { signal, update, extension, room: () => peer.room() };
  return provider(session, extension.providers.get(params.provider), params, tools);
}

/** The member by which the agent knows that a provider has a function for a method. */
const TOLD = { "provider.stream": "streams", "provider.refreshModels": "refreshes" };

const CALLS = {
  "extensions.load": async (session, { extensions }) => ({ extensions: await session.loadMore(extensions) }),
  "tool.execute": executeTool,
  "tool.prepare": (session, { extension, name, args }) => {
    const [tool] = owner(session, extension, name, "tools", "tool");
    return { args: tool.prepareArguments ? tool.prepareArguments(args) : args };
  },
  "command.run": async (session, { extension, name, args }) => {
    const [command, from] = owner(session, extension, name, "commands", "command");
    await command.handler(args ?? "", session.contexts.commandContext(from));
  },
  "command.complete": async (session, { extension, name, prefix }) => {
    const [command] = owner(session, extension, name, "commands", "command");
    return { items: (await command.getArgumentCompletions?.(prefix ?? "")) ?? [] };
  },
  "shortcut.run": async (session, { extension, shortcut }) => {
    const [found, from] = owner(session, extension, shortcut, "shortcuts", "shortcut");
    await found.handler(session.contexts.handlerContext(from));
  },
};

/** @returns {[any, import("./extension.mjs").Extension]} what was registered under a name, and by whom */
function owner(session, path, name, list, word) {
  const extension = session.find(path, (candidate) => candidate[list].has(name));
  if (!extension) throw new Error(`no extension has the ${word} ${name}`);
  return [extension[list].get(name), extension];
}

async function executeTool(session, { extension: path, name, toolCallId, args }, { signal, update, peer }) {
  const [tool, extension] = owner(session, path, name, "tools", "tool");
  let latest;
  // While the agent is behind only the latest state counts: each update replaces the one before.
  const onUpdate = (value) => {
    if (latest) latest.value = value;
    else if (!peer.slow) update(value);
    else {
      latest = { value };
      peer.room().then(() => {
        update(latest.value);
        latest = undefined;
      });
    }
  };
  const context = session.contexts.toolContext(extension, toolCallId, signal);
  const order = executeOrder(session, extension, tool.execute);
  const read = session.generation === "omp" ? readArguments(tool, args) : args;
  const run = async () => tool.execute(toolCallId, read, ...order(signal, onUpdate, context));
  const result = await (tool.executionMode === "sequential" ? session.sequence.run(String(toolCallId), signal, run) : run());
  if (typeof result === "string") return { content: [{ type: "text", text: result }] };
  // The model must not take a missing result for an empty one. Today's pi fails in these words.
  if (result === undefined || result === null) throw new TypeError(`Cannot read properties of ${result} (reading 'isError')`);
  return result;
}

/** The arguments as a schema of oh-my-pi reads them: with defaults and transformations. The agent has checked what JSON Schema can say. */
function readArguments({ parameters }, args) {
  if (typeof parameters?.safeParse !== "function") return args;
  const { success, data, error } = parameters.safeParse(args ?? {});
  if (!success) throw new Error(`Validation failed: ${error.message}`);
  return data;
}
