/**
 * One session of the agent as its extensions see it: its state, its extensions, its entries.
 * Handlers run in events.mjs, files are loaded in loader.mjs.
 */
import { Events } from "./events.mjs";
import { LiveEntries } from "./entries.mjs";
import { Models } from "./models.mjs";
import { Bus } from "./bus.mjs";
import { Sequence } from "./sequence.mjs";
import { ContextMaker } from "./context.mjs";
import { loadAll } from "./loader.mjs";

/** Thrown when something of a session that is gone is used. Extensions look for "stale after session replacement or reload". */
export const STALE = "This extension ctx is stale after session replacement or reload: "
  + "use the ctx of the current call, or the one given to withSession.";

export class Session {
  /** Registrations changed and the agent has not been told. */
  #dirty = new Set();
  /** Extensions whose changes are told. Those being loaded are described in the answer to the agent. */
  #loaded = new Set();
  #run = null;
  #refused = new Set();

  /**
   * @param {import("./host.mjs").Host} host
   * @param {{session: string, state?: object, flags?: object, generation?: string, hookTimeout?: number}} open
   */
  constructor(host, open) {
    this.host = host;
    this.handle = open.session;
    this.generation = open.generation ?? "pi";
    /** @type {any} `ExtensionState` of the protocol */
    this.state = { isIdle: true, hasPending: false, hasUI: true, mode: "rpc", ...open.state };
    this.flags = { ...open.flags };
    /** @type {any} the modules that extensions import, made when the first one is loaded */
    this.modules = undefined;
    this.hookTimeout = open.hookTimeout;
    /** @type {import("./extension.mjs").Extension[]} in load order */
    this.extensions = [];
    this.closed = false;
    /** Aborted when the session is closed. The agent may never answer a call that was on its way then. */
    this.closing = new AbortController();
    this.loading = true;
    /** Timers that extensions of oh-my-pi started through their contexts. */
    this.timers = new Set();
    /** How many times in a row `session_stop` of oh-my-pi has continued the run. */
    this.stops = 0;
    this.bus = new Bus((error, channel) => this.failure(error, undefined, `bus:${channel}`));
    this.entries = new LiveEntries(this.state);
    this.models = new Models(this);
    this.contexts = new ContextMaker(this);
    this.events = new Events(this);
    this.sequence = new Sequence();
    /** What hears of sessions that extensions opened beside this one, by handle (modules/agent-session.cjs). */
    this.agentSessions = undefined;
    /** The system prompt of the run being prepared, while before_agent_start handlers run. */
    this.promptOverride = undefined;
  }

  /** @returns {Promise<any[]>} one description per extension, in load order */
  async load(specs) {
    const told = await loadAll(this, specs);
    this.loading = false;
    this.#loaded = new Set(this.extensions);
    return told;
  }

  /** More of them, once it is known that the project is trusted: they come before the user's. */
  async loadMore(specs) {
    // A copy, since loading adds to the list.
    const before = [...this.extensions];
    this.loading = true;
    const told = await loadAll(this, specs);
    this.loading = false;
    const added = this.extensions.filter((extension) => !before.includes(extension));
    const at = before.findIndex(({ scope }) => scope === "user");
    this.extensions = at < 0 ? [...before, ...added] : [...before.slice(0, at), ...added, ...before.slice(at)];
    this.#loaded = new Set(this.extensions);
    return told;
  }

  /** Members of the state that changed. */
  update({ type, session, ...changes }) {
    const wasIdle = this.state.isIdle;
    Object.assign(this.state, changes);
    if (changes.flags) Object.assign(this.flags, changes.flags);
    if (wasIdle && this.state.isIdle === false) this.#run = null;
  }

  /** The signal of the run under way, or undefined when there is none. */
  get runSignal() {
    return this.state.isIdle ? undefined : this.settleSignal;
  }

  /** The signal of the newest run, also when it is about to settle and the state says already that none is under way. */
  get settleSignal() {
    this.#run ??= new AbortController();
    return this.#run.signal;
  }

  /** What the system prompt is made of, as far as the agent tells: at least which tools take part and what they add. */
  promptOptions(told = this.state.systemPromptOptions) {
    const { activeTools = [], tools = [], cwd } = this.state;
    const known = new Map([...tools, ...this.extensions.flatMap((extension) => [...extension.tools.values()])].map((tool) => [tool.name, tool]));
    const those = (member) => Object.fromEntries(activeTools.filter((name) => known.get(name)?.[member]).map((name) => [name, known.get(name)[member]]));
    return structuredClone({
      cwd, selectedTools: activeTools, hiddenTools: [], appendSystemPrompt: "", sections: {}, toolSnippets: those("promptSnippet"), toolGuidelines: those("promptGuidelines"),
      promptGuidelines: [], contextFiles: [], skills: [], ...told,
    });
  }

  abortRun() {
    // A handler may ask for the signal only after the abort.
    if (this.state.isIdle === false) this.#run ??= new AbortController();
    this.#run?.abort();
  }

  /** @throws when the session is gone */
  assertLive() {
    if (this.closed) throw new Error(STALE);
  }

  /** @throws when the session is gone or its extensions are still being loaded */
  assertReady() {
    this.assertLive();
    if (this.loading) throw new Error("Actions are not available while extensions load: call them from a handler.");
  }

  /** A call of ours nobody awaits. */
  tell(method, params) {
    this.flush();
    this.host.peer.tell(this.handle, method, params);
  }

  /** A call of ours that is answered. */
  call(method, params, options) {
    this.flush();
    return this.host.peer.call(this.handle, method, params, options);
  }

  /** An extension registered or removed something. */
  changed(extension) {
    if (this.closed || !this.#loaded.has(extension)) return;
    if (this.#dirty.size === 0) queueMicrotask(() => this.flush());
    this.#dirty.add(extension);
  }

  /** Tells the agent of changed registrations; before anything else that may depend on them. */
  flush() {
    if (this.#dirty.size === 0) return;
    const changed = [...this.#dirty];
    this.#dirty.clear();
    for (const extension of changed) {
      this.host.peer.send({ type: "changed", session: this.handle, ...extension.describe(this.state.builtinTools) });
    }
  }

  /** Something a terminal would show: logged once per extension and feature. */
  refuse(path, feature) {
    const key = `${path}\n${feature}`;
    if (this.#refused.has(key)) return;
    this.#refused.add(key);
    this.host.log("warn", `${feature} is not available headless`, path);
  }

  failure(error, path, event) {
    this.host.failure(error, { session: this.handle, path, event });
  }

  /** @returns the extension of a path, or the first that has what is looked for */
  find(path, has) {
    return this.extensions.find((extension) => (!path || extension.path === path || extension.given === path) && has(extension));
  }

  /** Forgets the session: whatever still holds on to it throws. */
  close() {
    this.closed = true;
    this.closing.abort();
    this.#run?.abort();
    for (const timer of this.timers) clearTimeout(timer);
    this.timers.clear();
    this.bus.clear();
    this.#dirty.clear();
    for (const hear of [...(this.agentSessions?.values() ?? [])]) hear({ ended: true });
  }
}
