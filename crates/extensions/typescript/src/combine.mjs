/**
 * How the results of the handlers of one event become one result (dialects.md 10.2, line.rs).
 *
 * Each combiner is made for one event and has: `event(extension)`, what the next handler sees (undefined: it is left out);
 * `take(result, extension)`, which may say "stop"; `value()`, the combined result or undefined; and optionally
 * `threw(message, extension)`, which says whether a throwing handler is part of the result, and `done()`.
 */

import { createRequire } from "node:module";
import { chooseTools } from "./api.mjs";
import { isHookEra } from "./legacy.mjs";
import { isNewestOmp, promptList } from "./omp.mjs";

const require = createRequire(import.meta.url);

/** Events without a result. */
export const observe = (event) => ({ event: () => event, take() {}, value() {} });

/** The last result that is one wins. */
const last = (event) => {
  let result;
  return { event: () => event, take: (value) => { result = value ?? result; }, value: () => result };
};

/** The first that cancels stops; otherwise the last result. */
const cancellable = (event) => {
  let result;
  return {
    event: () => event,
    take(value) {
      result = value ?? result;
      return value?.cancel ? "stop" : undefined;
    },
    value: () => result,
  };
};

/** The first result with one of the members decides. */
const first = (...members) => (event) => {
  let result;
  return {
    event: () => event,
    take(value) {
      if (!members.some((member) => value?.[member] !== undefined && value[member] !== "undecided")) return undefined;
      result = value;
      return "stop";
    },
    value: () => result,
  };
};

/** Handlers that return a member replace it for the next; changes made in place count too. */
const chained = (member, wrap = (value) => ({ [member]: value }), unwrap = (result) => result?.[member]) => (event) => {
  const before = JSON.stringify(event[member]);
  let replaced = false;
  return {
    event: () => event,
    take(result) {
      const value = unwrap(result);
      if (value === undefined) return;
      event[member] = value;
      replaced = true;
    },
    value: () => (replaced || JSON.stringify(event[member]) !== before ? wrap(event[member]) : undefined),
  };
};

const toolCall = (event, session) => {
  const before = JSON.stringify(event.input);
  const blocked = isHookEra(session) ? "Tool execution was blocked by a hook" : "Tool execution was blocked";
  let block;
  return {
    event: () => event,
    take(result) {
      if (!result?.block) {
        // In oh-my-pi, the answer may replace the arguments.
        if (isNewestOmp(session) && result?.input && typeof result.input === "object") event.input = result.input;
        return undefined;
      }
      block = { ...result, block: true, reason: result.reason || blocked };
      return "stop";
    },
    threw(message, extension) {
      const isNamed = session.generation === "omp" && !isHookEra(session);
      block = { block: true, reason: isNamed ? `Extension ${extension.path} failed: ${message}` : message };
      return true;
    },
    value() {
      const changed = JSON.stringify(event.input) !== before;
      return block || changed ? { ...block, ...(changed ? { input: event.input } : {}) } : undefined;
    },
  };
};

const RESULT_MEMBERS = ["content", "details", "isError", "usage", "structuredContent", "terminate"];

const toolResult = (event, session) => {
  const patch = {};
  const given = { ...event };
  // Hooks only saw results that were none of errors, as they were, and the last of them counted.
  const isOld = (extension) => extension.kind === "hook" && isHookEra(session);
  const seenByOld = given.isError ? undefined : given;
  return {
    event: (extension) => (isOld(extension) ? seenByOld : event),
    take(result, extension) {
      if (!result || typeof result !== "object") return;
      // The first hooks returned bare text.
      if (typeof result.result === "string" && extension.kind === "hook") result = { content: [{ type: "text", text: result.result }] };
      if (isOld(extension)) for (const name of Object.keys(patch)) delete patch[name];
      const dropsStructure = result.content !== undefined && result.structuredContent === undefined;
      for (const name of RESULT_MEMBERS) {
        if (result[name] !== undefined) patch[name] = event[name] = result[name];
      }
      if (dropsStructure && event.structuredContent !== undefined) {
        delete event.structuredContent;
        patch.structuredContent = null;
      }
    },
    value: () => (Object.keys(patch).length > 0 ? patch : undefined),
  };
};

const beforeAgentStart = (event, session) => {
  const messages = [];
  event.systemPromptOptions = session.promptOptions(event.systemPromptOptions);
  const before = structuredClone(event.systemPromptOptions);
  const given = event.systemPrompt ?? "";
  let hookMessage = false;
  /** The prompt that the options give so far. A handler may have put anything there, and a failure here would lose the answers of all handlers. */
  const prompt = () => {
    const options = event.systemPromptOptions ?? {};
    if (typeof options.forceSystemPrompt === "string") return options.forceSystemPrompt;
    // The agent's own prompt has no place for these.
    const added = Object.entries(options.sections ?? {}).filter(([name, text]) => before.sections[name] !== text);
    const rules = [].concat(options.promptGuidelines ?? []).filter((rule) => !before.promptGuidelines.includes(rule)).map((rule) => `- ${rule}`);
    if (rules.length > 0) added.push(["rules", rules.join("\n")]);
    return [given, ...added.map(([name, text]) => `<${name}>\n${text}\n</${name}>`)].join("\n\n");
  };
  return {
    event: () => (isNewestOmp(session) ? { ...event, systemPrompt: promptList(event.systemPrompt) } : event),
    take(result, extension) {
      const added = [].concat(result?.message ?? [], result?.messages ?? []);
      if (added.length > 0 && !(extension.kind === "hook" && isHookEra(session) && hookMessage)) {
        messages.push(...added);
        hookMessage = true;
      }
      let forced;
      if (typeof result?.systemPromptAppend === "string") forced = `${event.systemPrompt ?? ""}\n\n${result.systemPromptAppend}`;
      if (typeof result?.systemPrompt === "string") forced = result.systemPrompt;
      // Today's oh-my-pi has a list of texts.
      if (session.generation === "omp" && Array.isArray(result?.systemPrompt)) forced = result.systemPrompt.filter((text) => typeof text === "string").join("\n\n");
      if (forced !== undefined) event.systemPromptOptions = Object.assign(event.systemPromptOptions ?? {}, { forceSystemPrompt: forced });
      // The next handler may make a whole prompt of it, which must have what this one added.
      const now = prompt();
      if (now !== (event.systemPrompt ?? "")) session.promptOverride = event.systemPrompt = now;
    },
    done() {
      session.promptOverride = undefined;
    },
    value() {
      const { selectedTools } = event.systemPromptOptions ?? {};
      if (Array.isArray(selectedTools) && String(selectedTools) !== String(before.selectedTools)) chooseTools(session, selectedTools);
      const made = prompt();
      const systemPrompt = made === given ? undefined : made;
      return messages.length === 0 && systemPrompt === undefined ? undefined : { messages, systemPrompt };
    },
  };
};

const input = (event) => {
  let action = "continue";
  return {
    event: () => event,
    take(result) {
      if (!result) return undefined;
      if (result.action === "handled" || result.handled === true) {
        action = "handled";
        return "stop";
      }
      if (result.action === "transform" || (result.action === undefined && typeof result.text === "string")) {
        action = "transform";
        if (typeof result.text === "string") event.text = result.text;
        if (result.images !== undefined) event.images = result.images;
      }
      return undefined;
    },
    value() {
      if (action === "continue") return undefined;
      return action === "handled" ? { action } : { action, text: event.text, images: event.images };
    },
  };
};

/** Whether an answer has exactly one of the two forms. Earlier versions of pi accept a result of which members are missing. */
function replacesCommand({ operations, result }) {
  if ((operations === undefined) === (result === undefined)) return false;
  if (operations !== undefined) return typeof operations?.exec === "function";
  const fits = (member, type) => [undefined, null].includes(result[member]) || typeof result[member] === type;
  return typeof result?.output === "string" && fits("exitCode", "number") && fits("cancelled", "boolean")
    && fits("truncated", "boolean") && fits("fullOutputPath", "string");
}

/** The first answer decides. A handler may have meant to stop the command with an answer that is none, so the command does not run. */
const userBash = (event, session) => {
  if (session.generation !== "pi") return first("result", "operations")(event);
  let replaced;
  return {
    event: () => event,
    take(result) {
      if (result === undefined) return undefined;
      if (result === null || !replacesCommand(result)) {
        throw new Error("Invalid user_bash handler result: return undefined for local execution or exactly one valid { operations } or { result } object");
      }
      replaced = result;
      return "stop";
    },
    threw: () => true,
    value: () => replaced,
  };
};

const messageEnd = (event) => {
  let replaced = false;
  return {
    event: () => event,
    take(result) {
      const message = result?.message;
      if (!message) return;
      if (message.role !== event.message?.role) {
        throw new Error(`message_end must keep the role ${event.message?.role}, not make it ${message.role}`);
      }
      event.message = message;
      replaced = true;
    },
    value: () => (replaced ? { message: event.message } : undefined),
  };
};

const resources = () => (event) => {
  const found = { skillPaths: [], promptPaths: [], themePaths: [] };
  return {
    event: () => event,
    take(result, extension) {
      for (const name of Object.keys(found)) {
        for (const path of result?.[name] ?? []) found[name].push({ path, extensionPath: extension.path });
      }
    },
    value: () => found,
  };
};

/** Entries and the wish to go on, each handler seeing what was proposed so far. */
const boundary = (event, session) => {
  let given = false;
  event.entries ??= [];
  event.continue ??= false;
  const get = () => conversation(session);
  // Large, and few look at it.
  Object.defineProperty(event, "context", { configurable: true, enumerable: false, get });
  return {
    event: () => event,
    take(result) {
      if (!result || typeof result !== "object") return;
      if (Array.isArray(result.entries)) event.entries = result.entries;
      if (typeof result.continue === "boolean") event.continue = result.continue;
      given ||= result.entries !== undefined || result.continue !== undefined;
    },
    done() {
      // Counted for all handlers of `session_stop` together: one that wants nothing must not let another one go on without end.
      if (event.type === "agent_before_settle" && !event.continue) session.stops = 0;
    },
    value: () => (given ? { entries: event.entries, continue: event.continue } : undefined),
  };
};

/** The conversation as the next request would see it. */
function conversation(session) {
  const { buildSessionProjection } = require("../modules/session-tree.cjs");
  const { convertToLlm } = require("../modules/messages.cjs");
  const { entries, messages } = buildSessionProjection(session.entries.getBranch());
  const newest = messages.findLast(({ role, stopReason }) => !(role === "assistant" && (stopReason === "error" || stopReason === "aborted")));
  return {
    contextEntries: entries,
    contextMessages: messages,
    get llmMessages() { return convertToLlm(messages); },
    pendingMessages: [],
    canContinue: newest !== undefined && newest.role !== "assistant",
  };
}

/** Headers are changed in place. A handler may also return them. */
const headers = chained("headers");

/** One combiner for each event that has a result; all others are only observed. */
export const COMBINE = {
  tool_call: toolCall,
  tool_result: toolResult,
  context: chained("messages"),
  context_with_system: chained("messages"),
  before_agent_start: beforeAgentStart,
  before_provider_request: chained("payload", undefined, (result) => result),
  before_provider_headers: headers,
  input,
  user_bash: userBash,
  user_python: first("result"),
  message_end: messageEnd,
  session_before_switch: cancellable,
  session_before_fork: cancellable,
  session_before_branch: cancellable,
  session_before_new: cancellable,
  session_before_compact: cancellable,
  session_before_tree: cancellable,
  "session.compacting": last,
  resources_discover: resources(),
  project_trust: first("trusted"),
  cache_warming_decision: last,
  turn_end: boundary,
  agent_before_settle: boundary,
};
