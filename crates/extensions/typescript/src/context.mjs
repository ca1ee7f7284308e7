/**
 * The `ctx` of handlers, tools and commands. Everything on it is read when asked for, so a context that is kept shows the
 * session as it is; once the session is gone everything on it throws.
 */
import { createUi, hasNoUi } from "./ui.mjs";
import { ompContext } from "./omp.mjs";

/**
 * The same with every member its own and bound, as extensions take contexts apart and spread them.
 * @returns {object} a plain object
 */
function exposed(context) {
  const members = {};
  for (let from = Object.getPrototypeOf(context); from !== Object.prototype; from = Object.getPrototypeOf(from)) {
    for (const [name, { get, value }] of Object.entries(Object.getOwnPropertyDescriptors(from))) {
      if (name === "constructor" || name in members) continue;
      members[name] = { enumerable: true, configurable: true, ...(get ? { get: get.bind(context) } : { value: value.bind(context), writable: true }) };
    }
  }
  return Object.defineProperties({}, members);
}

/** What every handler gets. */
class HandlerContext {
  #session;
  #extension;
  #ui;

  constructor(session, extension) {
    this.#session = session;
    this.#extension = extension;
  }

  get #live() {
    this.#session.assertLive();
    return this.#session;
  }

  get ui() {
    this.#ui ??= createUi(this.#live, this.#extension);
    return this.#ui;
  }

  get mode() { return this.#live.state.mode; }
  get hasUI() { return this.#live.state.hasUI && !hasNoUi(this.#session, this.#extension); }
  get cwd() { return this.#live.state.cwd; }
  get sessionManager() { return this.#live.entries; }
  get modelRegistry() { return this.#live.models; }
  get model() { return this.#live.state.model ?? undefined; }
  get scopedModels() { return this.#live.state.scopedModels ?? []; }
  get thinkingLevel() { return this.#live.state.thinkingLevel; }
  get signal() { return this.#live.runSignal; }
  /** Hooks before pi 0.31. */
  get sessionFile() { return this.#live.state.sessionFile ?? null; }

  isIdle() { return this.#live.state.isIdle !== false; }
  isProjectTrusted() { return this.#live.state.isTrusted === true; }
  hasPendingMessages() { return this.#live.state.hasPending === true; }
  hasQueuedMessages() { return this.hasPendingMessages(); }
  getContextUsage() { return this.#live.state.contextUsage ?? undefined; }
  getSystemPrompt() { return this.#live.promptOverride ?? this.#live.state.systemPrompt ?? ""; }
  getSystemPromptOptions() { return this.#live.promptOptions(); }
  abort() { this.#live.tell("abort", {}); }
  shutdown() { this.#live.tell("shutdown", {}); }

  /** Runs beside the caller; `onComplete` and `onError` tell the end. */
  compact(options = {}) {
    const settings = typeof options === "string" ? { customInstructions: options } : options;
    // After the caller: what it says next precedes the compaction, as in pi.
    const asking = Promise.resolve().then(() => this.#live.call("compact", { customInstructions: settings.customInstructions }));
    return asking.then(
      (result) => settings.onComplete?.(result),
      (error) => {
        if (settings.onError) settings.onError(error);
        else this.#session.host.log("warn", `compact: ${error.message}`, this.#extension.path);
      },
    );
  }

  /** Hooks before pi 0.31 had it here. */
  async exec(command, args = [], options = {}) {
    const { exec } = await import("./exec.mjs");
    return exec(command, args, { cwd: this.cwd, ...options });
  }
}

/** What command handlers get in addition: whatever would deadlock inside the agent's own loop. */
class CommandContext extends HandlerContext {
  #session;
  #extension;

  constructor(session, extension) {
    super(session, extension);
    this.#session = session;
    this.#extension = extension;
  }

  async waitForIdle() {
    await this.#ask("waitForIdle", {});
  }

  async reload() {
    await this.#ask("reload", {});
  }

  async navigateTree(targetId, options) {
    const { cancelled, ...more } = await this.#ask("navigateTree", { targetId, ...options });
    return { cancelled: cancelled === true, ...(this.#session.generation === "omp" ? more : {}) };
  }

  /**
   * `setup` fills the new session before it starts.
   * @param {{ parentSession?: string, setup?: Function, withSession?: Function }} [options]
   */
  async newSession({ parentSession, setup, withSession } = {}) {
    const params = { parentSession };
    if (setup) {
      const draft = this.#session.modules.get("@earendil-works/pi-coding-agent").SessionManager.inMemory(this.cwd);
      await setup(draft);
      params.entries = draft.getEntries();
    }
    return this.#replace("newSession", params, withSession);
  }

  /** @param {string} entryId @param {{ position?: string, withSession?: Function }} [options] */
  fork(entryId, { position, withSession } = {}) {
    return this.#replace("fork", { entryId, position }, withSession);
  }

  branch(entryId) {
    return this.fork(entryId);
  }

  /** @param {string} sessionPath @param {{ withSession?: Function }} [options] */
  switchSession(sessionPath, { withSession } = {}) {
    return this.#replace("switchSession", { sessionPath }, withSession);
  }

  async #ask(method, params) {
    this.#session.assertLive();
    return (await this.#session.call(method, params)) ?? { cancelled: false };
  }

  async #replace(method, params, withSession) {
    const { session: handle, ...result } = await this.#ask(method, params);
    if (!result.cancelled && withSession) {
      const next = this.#session.host.session(handle ?? this.#session.handle);
      if (!next) throw new Error("the new session is not open");
      await withSession(exposed(new ReplacedContext(next, this.#extension)));
    }
    return { ...result, cancelled: result.cancelled === true };
  }
}

/** The context given to `withSession`: bound to the session that took the old one's place. */
class ReplacedContext extends CommandContext {
  #session;

  constructor(session, extension) {
    super(session, extension);
    this.#session = session;
  }

  async sendMessage(message, options = {}) {
    await this.#session.call("sendMessage", { message, options });
  }

  async sendUserMessage(content, options = {}) {
    await this.#session.call("sendUserMessage", { content, options });
  }
}

/** What a tool's execute gets in addition: other tools. */
class ToolContext extends HandlerContext {
  #session;
  #callId;
  #signal;

  constructor(session, extension, callId, signal) {
    super(session, extension);
    this.#session = session;
    this.#callId = callId;
    this.#signal = signal;
  }

  get tools() { return this.#session.state.tools ?? []; }

  /**
   * Never rejects for failures of the tool: they come back with isError.
   * @param {string} name
   * @param {any} args
   * @param {{ signal?: AbortSignal, onUpdate?: Function }} [options]
   */
  async executeTool(name, args, { signal, onUpdate } = {}) {
    this.#session.assertLive();
    const toolCall = { type: "toolCall", name, arguments: args ?? {} };
    try {
      const { isError, ...result } = await this.#session.call("tool.execute", { name, args, callerId: this.#callId },
        { signal: signal ?? this.#signal, onUpdate });
      return { toolCall, result, isError: isError === true };
    } catch (error) {
      return { toolCall, result: { content: [{ type: "text", text: error.message }], details: {} }, isError: true };
    }
  }
}

/** Makes the contexts of one session; those of handlers are kept, as handlers run often. */
export class ContextMaker {
  #session;
  #kept = new Map();

  /** @param {import("./session.mjs").Session} session */
  constructor(session) {
    this.#session = session;
  }

  handlerContext(extension) {
    let context = this.#kept.get(extension);
    if (!context) this.#kept.set(extension, (context = this.#exposed(new HandlerContext(this.#session, extension), extension)));
    return context;
  }

  commandContext(extension) {
    return this.#exposed(new CommandContext(this.#session, extension), extension);
  }

  toolContext(extension, callId, signal) {
    return this.#exposed(new ToolContext(this.#session, extension, callId, signal), extension);
  }

  #exposed(context, extension) {
    const members = exposed(context);
    if (this.#session.generation !== "omp") return members;
    return Object.defineProperties(members, Object.getOwnPropertyDescriptors(ompContext(this.#session, extension)));
  }
}
