/**
 * Older generations: names of events before pi 0.35, the API objects of hooks and custom tools (dialects.md 10.1, 10.3).
 * The agent sends today's names; what an older file listens to is derived from them here.
 */

import { continuation, stopEvent } from "./omp.mjs";

const startedAs = (...reasons) => (event) => reasons.includes(event.reason ?? "startup");
const leaving = (reason) => (event) => event.reason === reason;
const always = () => true;
const byItself = (event) => event.reason !== "manual";
const quitting = (event) => (event.reason ?? "quit") === "quit";

/**
 * The one `session` event of the first hooks: its reason, and the event of today it comes from.
 * @type {[string, string, (event: any) => boolean][]}
 */
const SESSION_REASONS = [
  ["session_start", "start", startedAs("startup", "reload")],
  ["session_start", "switch", startedAs("resume")],
  ["session_start", "new", startedAs("new")],
  ["session_start", "clear", startedAs("new")],
  ["session_start", "branch", startedAs("fork")],
  ["session_before_switch", "before_switch", leaving("resume")],
  ["session_before_switch", "before_new", leaving("new")],
  ["session_before_switch", "before_clear", leaving("new")],
  ["session_before_fork", "before_branch", always],
  ["session_before_compact", "before_compact", always],
  ["session_compact", "compact", always],
  ["session_shutdown", "shutdown", quitting],
];

/**
 * Names between the first hooks and today's.
 * @type {[string, string, (event: any) => boolean][]}
 */
const RENAMED = [
  ["session_start", "session_switch", startedAs("new", "resume")],
  ["session_start", "session_new", startedAs("new")],
  ["session_start", "session_branch", startedAs("fork")],
  ["session_start", "session_fork", startedAs("fork")],
  ["session_before_switch", "session_before_new", leaving("new")],
  ["session_before_fork", "session_before_branch", always],
];

/**
 * Names of oh-my-pi, which only its generation has.
 * @type {[string, string, (event: any) => boolean][]}
 */
const OMP_NAMES = [
  ["compaction_start", "auto_compaction_start", byItself],
  ["compaction_end", "auto_compaction_end", byItself],
  ["model_fallback", "retry_fallback_applied", always],
  ["agent_before_settle", "session_stop", always],
];

/** Members that events under these names have beyond those of today's. */
const MORE = {
  auto_compaction_start: { action: "context-full" },
  auto_compaction_end: { action: "context-full" },
  retry_fallback_applied: { role: "default" },
};

/** Whether the client is of the days of hooks: pi before 0.35, the first oh-my-pi, whose hooks had nobody to ask. */
export function isHookEra({ generation, state }) {
  return generation === "hooks" || state.hookEra === true;
}

/** Whether a file of this kind hears older names. */
export function hearsOldNames(session, extension) {
  return session.generation !== "pi" || extension.kind !== "extension";
}

/** The names that files of this generation may listen to. */
function renamed({ generation }) {
  return generation === "omp" ? [...RENAMED, ...OMP_NAMES] : RENAMED;
}

/** The events of today that an older name is derived from. */
export function sourcesOf(session, oldName) {
  if (oldName === "session") return SESSION_REASONS.map(([from]) => from);
  return renamed(session).filter(([, to]) => to === oldName).map(([from]) => from);
}

/** @returns {{extension: object, handler: Function, seen: object}[]} handlers under older names, with what they see */
export function translate(session, extension, name, event) {
  const calls = [];
  const add = (oldName, made) => {
    for (const handler of extension.handlers.get(oldName) ?? []) calls.push({ extension, handler, seen: made });
  };
  if (extension.handlers.has("session")) {
    for (const [from, reason, when] of SESSION_REASONS) {
      if (from === name && when(event)) add("session", sessionEvent(session, event, reason));
    }
  }
  for (const [from, to, when] of renamed(session)) {
    if (from !== name || !when(event)) continue;
    if (to === "session_stop") calls.push(...stopHandlers(session, extension, event));
    else add(to, { ...event, ...MORE[to], type: to });
  }
  for (const handler of toolHandlers(extension, name, event)) calls.push(handler);
  return calls;
}

/** Handlers of oh-my-pi that may let a run go on: not one that was aborted, and none of a sub-agent. */
function stopHandlers(session, extension, event) {
  if (event.outcome === "aborted" || session.state.isSubagent) return [];
  return (extension.handlers.get("session_stop") ?? []).map((handler) => ({
    extension,
    seen: event,
    async handler(given, ctx) {
      const signal = session.settleSignal;
      const answer = await handler(stopEvent(session, signal), ctx);
      // The abort may come while the handler works.
      return signal.aborted ? undefined : continuation(session, given, answer);
    },
  }));
}

function sessionEvent(session, event, reason) {
  const entries = session.entries.getEntries();
  return {
    ...event,
    ...event.preparation,
    type: "session",
    reason,
    entries,
    ...(event.entryId ? { targetTurnIndex: turnOf(session, event.entryId) } : {}),
    sessionFile: session.state.sessionFile ?? null,
    previousSessionFile: event.previousSessionFile ?? null,
  };
}

/** The first hooks counted user messages, from 0. */
function turnOf(session, entryId) {
  return session.entries.getBranch(entryId).filter(({ id, message }) => message?.role === "user" && id !== entryId).length;
}

/** Custom tools were told of changes of session through `onSession`. */
function toolHandlers(extension, name, event) {
  if (extension.onSession.length === 0) return [];
  const reason = toolReason(name, event);
  if (!reason) return [];
  const seen = { ...event, reason, previousSessionFile: event.previousSessionFile };
  return extension.onSession.map((onSession) => ({
    extension,
    seen,
    handler: (given, ctx) => onSession({ ...given, entries: ctx.sessionManager.getEntries() }, ctx),
  }));
}

function toolReason(name, event) {
  if (name === "session_shutdown") return "shutdown";
  if (name === "session_tree") return "tree";
  if (name !== "session_start") return undefined;
  return { startup: "start", reload: "start", resume: "switch", new: "new", fork: "branch" }[event.reason ?? "startup"];
}

/** Events through which `onSession` of custom tools is called. */
export const TOOL_SESSION_EVENTS = ["session_start", "session_tree", "session_shutdown"];

/** The order in which a tool's execute takes what follows the arguments: it changed twice. */
export const ORDERS = {
  /** pi 0.50 and later. */
  now: (signal, onUpdate, ctx) => [signal, onUpdate, ctx],
  /** pi 0.31 to 0.49, and custom tools of omp. */
  updateFirst: (signal, onUpdate, ctx) => [onUpdate, ctx, signal],
};

/** Reads the order from the names of the parameters; files too old or too small to tell take their generation's. */
export function executeOrder(session, extension, execute) {
  const parameters = /^[^(]*\(([^)]*)\)/.exec(Function.prototype.toString.call(execute))?.[1] ?? "";
  const third = parameters.split(",")[2]?.trim().replace(/^_+/, "") ?? "";
  if (/^(on)?_?(update|progress)/i.test(third)) return ORDERS.updateFirst;
  if (/^(signal|abort)/i.test(third)) return ORDERS.now;
  return extension.kind === "tool" && session.generation === "omp" ? ORDERS.updateFirst : ORDERS.now;
}

/**
 * Loads what the factory of a custom tool file returns.
 * @param {any} pi the API object, which older tool files use as well
 */
export function registerCustomTools(extension, pi, made) {
  for (const tool of [].concat(made ?? [])) {
    if (!tool || typeof tool.execute !== "function") continue;
    pi.registerTool(tool);
    if (typeof tool.onSession === "function") {
      extension.onSession.push(tool.onSession.bind(tool));
      for (const name of TOOL_SESSION_EVENTS) extension.heard.add(name);
    }
  }
}
