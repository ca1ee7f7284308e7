/**
 * Runs the handlers of one session's events and combines what they return (dialects.md 10.2, line.rs).
 * How one event combines is in combine.mjs; older names of events are in legacy.mjs.
 */
import { createRequire } from "node:module";
import { COMBINE, observe } from "./combine.mjs";
import { describe } from "./peer.mjs";
import { isHookEra, translate } from "./legacy.mjs";

/** Events whose handlers finish before the next one of them begins, as the agent emits them in one stream. */
const STREAM = new Set(["agent_start", "agent_end", "agent_settled", "turn_start", "turn_end", "message_start",
  "message_update", "message_end", "tool_execution_start", "tool_execution_update", "tool_execution_end"]);
/** Events that wait for that stream: what they decide on has been seen by then. */
const AFTER_STREAM = new Set(["tool_call"]);

/** Of these the host forgets the newest once very many wait for handlers that do not end. */
const UPDATES = new Set(["message_update", "tool_execution_update"]);
const MAX_WAITING = 10_000;

export class Events {
  #session;
  #stream = Promise.resolve();
  #streaming = 0;

  /** @param {import("./session.mjs").Session} session */
  constructor(session) {
    this.#session = session;
  }

  /** An event nobody awaits. */
  notify(name, event) {
    if (this.#streaming > MAX_WAITING && UPDATES.has(name)) return;
    const work = async () => {
      const { errors } = await this.#run(name, event, undefined);
      for (const { path, error, stack } of errors ?? []) {
        this.#session.host.peer.send({ type: "failure", session: this.#session.handle, path, event: name, error, stack });
      }
    };
    if (STREAM.has(name)) this.#inOrder(work);
    else work();
  }

  /** @returns {Promise<{value: object|null, errors: object[]}>} the combined result of an awaited event */
  async ask(name, event, signal) {
    if (STREAM.has(name)) return this.#inOrder(() => this.#run(name, event, signal));
    if (this.#streaming > 0 && AFTER_STREAM.has(name)) await this.#stream;
    return this.#run(name, event, signal);
  }

  #inOrder(work) {
    this.#streaming += 1;
    const done = this.#streaming === 1 ? work() : this.#stream.then(work);
    this.#stream = done.then(() => {}, () => {}).then(() => { this.#streaming -= 1; });
    return done;
  }

  /** Combines without an agent behind it: for what an extension of ours starts itself. */
  async local(name, event) {
    return (await this.#run(name, event, undefined)).value;
  }

  async #run(name, raw, signal) {
    const session = this.#session;
    const errors = [];
    const event = raw && typeof raw === "object" ? raw : {};
    event.type ??= name;
    // For the agent's method `bash.output`; the event of pi does not have it.
    const { outputId } = event;
    if (name === "user_bash") delete event.outputId;
    if (signal && (name === "session_before_compact" || name === "session_before_tree")) event.signal ??= signal;
    // As in pi, where the event of the provider has the message so far, too.
    if (name === "message_update" && event.assistantMessageEvent) event.assistantMessageEvent.partial ??= event.message;
    // As in pi, where the member exists also without instructions.
    if (name === "session_before_compact") event.customInstructions ??= undefined;
    const combine = (COMBINE[name] ?? observe)(event, session);
    for (const { extension, handler, seen } of listeners(session, name, event)) {
      if (signal?.aborted) {
        // Whoever was not asked has not agreed.
        combine.threw?.("The check was cancelled", extension);
        break;
      }
      try {
        const given = seen ?? combine.event(extension);
        if (given === undefined) continue;
        let result = handler(given, session.contexts.handlerContext(extension));
        if (typeof result?.then === "function") result = await bounded(session, extension, name, result);
        if (combine.take(result, extension) === "stop") break;
      } catch (error) {
        const { message, stack } = describe(error);
        const blocks = combine.threw?.(message, extension);
        // Clients of the hook era know no error for a check that threw.
        if (!blocks || !isHookEra(session)) errors.push({ path: extension.path, event: name, error: message, stack });
        if (blocks) break;
      }
    }
    combine.done?.();
    let value = combine.value() ?? null;
    if (value?.operations && name === "user_bash") {
      // After an abort, or when a handler before has failed, the agent does not run the command either.
      value = signal?.aborted || errors.length > 0 ? null : await runOperations(session, value.operations, { ...event, outputId }, signal);
    }
    return { value, errors };
  }
}

/** Handlers in load order, then in order of registration; older names last within an extension. */
function listeners(session, name, event) {
  const calls = [];
  for (const extension of session.extensions) {
    for (const handler of extension.handlers.get(name) ?? []) calls.push({ extension, handler });
    if (extension.heard.has(name)) calls.push(...translate(session, extension, name, event));
  }
  return calls;
}

/** A user's shell command by an extension's own means. Its output is sent while it runs. */
async function runOperations(session, operations, { command, cwd, outputId }, signal) {
  const { operationsToolBash } = createRequire(import.meta.url)("../modules/tool-ops.cjs");
  // A reload closes the session while the command runs, and a piece without an answer would hold back its end.
  const options = { signal: session.closing.signal };
  const send = (text) => session.host.peer.call(session.handle, "bash.output", { outputId, text }, options);
  try {
    return { result: await operationsToolBash(operations, { command, cwd }, signal, send) };
  } catch (error) {
    return { error: describe(error).message };
  }
}

/** Hooks of the first generation had a time limit, except on tool_call (dialects.md 10.3). */
function bounded(session, extension, name, promise) {
  const limit = session.hookTimeout;
  if (!limit || extension.kind !== "hook" || name === "tool_call") return promise;
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Hook timed out after ${limit}ms`)), limit);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
