/**
 * Sorts the agent's messages: to the sessions, to the calls that wait, to the end. One per process.
 */
import { createRequire } from "node:module";
import { Peer, describe } from "./peer.mjs";
import { Session, STALE } from "./session.mjs";
import { guardProcess, offerProgram } from "./guard.mjs";
import { cacheDir } from "./transform.mjs";
import { runCall } from "./calls.mjs";

const { setAgentDir } = createRequire(import.meta.url)("../modules/paths.cjs");

/** Version of the protocol spoken (line.rs). */
export const PROTOCOL = 1;

export class Host {
  #lines;
  #sessions = new Map();
  #exit;
  #staleSeen = new Set();
  /** Files of extensions and the session each was last loaded for, closed ones too: they may still throw. */
  #files = new Map();
  /** Everything the first line told. */
  hello = { agentDir: "", limits: {} };

  /** @param {import("./lines.mjs").Lines} lines */
  constructor(lines) {
    this.#lines = lines;
    this.peer = new Peer(lines);
    this.#exit = guardProcess((error) => this.failure(error));
  }

  /** @param {any} message one line of the agent */
  receive(message) {
    switch (message.type) {
      case "event": return this.#event(message);
      case "state": return this.#sessions.get(message.session)?.update(message);
      case "result": case "error": case "update": return this.peer.answer(message);
      case "call": return this.#call(message);
      case "ping": return this.peer.send({ type: "pong", id: message.id });
      case "cancel": return this.peer.cancel(message.id);
      case "entries": return this.#sessions.get(message.session)?.entries.push(message);
      case "abort": return this.#sessions.get(message.session)?.abortRun();
      case "open": return this.#open(message);
      case "close": return this.#close(message);
      case "hello": return this.#hello(message);
      default: return undefined;
    }
  }

  #hello(message) {
    this.hello = { ...this.hello, ...message };
    setAgentDir(message.agentDir);
    if (message.agentDir) process.env.PI_CODING_AGENT_DIR ??= message.agentDir;
    if (message.program) offerProgram(message.program, cacheDir(this.hello));
    this.peer.send({ type: "ready", protocol: PROTOCOL, name: "typescript", runtime: runtime() });
    this.#lines.flush();
  }

  #open(message) {
    this.peer.serve(message.id, async () => {
      this.#sessions.get(message.session)?.close();
      const session = new Session(this, message);
      this.#sessions.set(message.session, session);
      const extensions = await session.load(message.extensions ?? []);
      for (const { path } of extensions) this.#files.set(path, message.session);
      return { value: { extensions } };
    });
  }

  #close(message) {
    const session = this.#sessions.get(message.session);
    this.#sessions.delete(message.session);
    session?.close();
    if (message.id !== undefined) this.peer.send({ type: "result", id: message.id, value: null });
  }

  #event(message) {
    const session = this.#sessions.get(message.session);
    if (message.name === "session_event") {
      session?.agentSessions?.get(message.event.session)?.(message.event);
      return;
    }
    if (message.id === undefined) {
      session?.events.notify(message.name, message.event);
      return;
    }
    this.peer.serve(message.id, (signal) => {
      if (!session) throw new Error(`no session ${message.session} is open`);
      return session.events.ask(message.name, message.event, signal);
    });
  }

  #call(message) {
    const session = this.#sessions.get(message.session);
    const work = (signal) => {
      if (!session) throw new Error(`no session ${message.session} is open`);
      return runCall(session, message, signal);
    };
    if (message.id !== undefined) this.peer.serve(message.id, async (signal) => ({ value: (await work(signal)) ?? null }));
    else Promise.resolve().then(() => work(undefined)).catch((error) => this.failure(error));
  }

  /** @returns {Session|undefined} an open session */
  session(handle) {
    return this.#sessions.get(handle);
  }

  /**
   * Something was thrown where nobody awaits it: tell, and live on.
   * @param {unknown} error
   * @param {{session?: string, path?: string, event?: string}} [where]
   */
  failure(error, where) {
    try {
      const { message, stack } = describe(error);
      if (message === STALE && this.#known(stack)) return;
      this.peer.send({ type: "failure", ...(where ?? this.#blame(stack)), error: message, stack });
    } catch {
      // Nothing is left to tell it to.
    }
  }

  /** A timer that outlived its session throws each time: told once. */
  #known(stack) {
    const known = this.#staleSeen.has(stack);
    if (this.#staleSeen.size < 1000) this.#staleSeen.add(stack);
    return known;
  }

  /** The extension whose file stands in a stack. */
  #blame(stack) {
    if (!stack) return {};
    for (const { handle, extensions } of this.#sessions.values()) {
      const found = extensions.find(({ path }) => stack.includes(path));
      if (found) return { session: handle, path: found.path };
    }
    for (const [path, session] of this.#files) if (stack.includes(path)) return { session, path };
    return {};
  }

  /** A line for the agent's log. */
  log(level, message, path) {
    this.peer.send({ type: "log", level, path, message });
  }

  /** The agent closed our input. */
  end() {
    this.#lines.flush();
    this.#exit(0);
  }
}

function runtime() {
  return process.versions.bun ? `bun ${process.versions.bun}` : `node ${process.versions.node}`;
}
