// A running agent and its first session: starting, ending, and who gets which line.
import { createRequire } from "node:module";
import { AgentExited, CommandError, StartError, TimedOut, within } from "./errors.js";
import { DialogHost, RENDERED } from "./dialogs.js";
import { Events } from "./run.js";
import { Process } from "./process.js";
import { writeScript } from "./script.js";
import { Session } from "./session.js";
import { ToolHost } from "./tools.js";

/** The program of the npm package @pinion-agent/cli if it is installed beside this one, else `pinion` on the PATH. */
function findProgram() {
  try {
    return createRequire(import.meta.url)("@pinion-agent/cli").program();
  } catch {
    return "pinion";
  }
}

/** Commands that take as long as what they start: a shell command, a request to the model. */
const SLOW = new Set(["prompt", "bash", "compact", "navigate_tree", "handoff", "login"]);

const DEFAULTS = {
  dialect: "pi-delta",
  persist: true,
  args: [],
  tools: [],
  startTimeoutMs: 30_000,
  commandTimeoutMs: 30_000,
  slowTimeoutMs: 3_600_000,
  idleTimeoutMs: 900_000,
  dialogTimeoutMs: 600_000,
  stopTimeoutMs: 5_000,
  maxWaitingEvents: 65_536,
};

export class Agent extends Session {
  #options;
  #process;
  #dialogs;
  #pending = new Map();
  #listeners = new Map();
  #nextId = 0;
  #ended;
  #script;

  constructor(options = {}) {
    super(undefined, undefined);
    const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
    this.#options = { ...DEFAULTS, ...given };
    this.#process = new Process((frame) => this.#frame(frame), (id, error) => this.#pending.get(id)?.reject(error), (error) => this.#end(error));
    const send = (frame) => this.#process.write(frame, this.#options.commandTimeoutMs).catch(() => {}); // Whoever waits is told.
    /** @type {ToolHost} not enumerable, as `agent_` */
    this.tools_ = new ToolHost(send);
    Object.defineProperty(this, "tools_", { enumerable: false });
    this.#dialogs = new DialogHost(send, this.#options.onDialog, this.#options.dialogTimeoutMs);
  }

  /** Makes an agent and starts it. */
  static async start(options) {
    const agent = new this(options);
    await agent.start();
    return agent;
  }

  /** Starts the agent and waits until it answers. */
  async start() {
    const { cwd, env, startTimeoutMs, tools } = this.#options;
    try {
      await this.#process.start(this.#commandLine(), { cwd, env });
      await this.call("get_state", {}, { timeoutMs: startTimeoutMs });
      if (this.#options.onDialog) await this.#sayWhatIsRendered(startTimeoutMs);
      if (tools.length > 0) await this.setTools(tools);
    } catch (error) {
      await this.stop();
      if (error instanceof AgentExited || error instanceof TimedOut) {
        throw new StartError(`the agent did not start: ${error.message}`, { cause: error });
      }
      throw error;
    }
  }

  /** So that the agent takes questions back that are over. Agents that do not know how to are asked all the same. */
  async #sayWhatIsRendered(timeoutMs) {
    try {
      await this.call("hello", { ui: RENDERED }, { timeoutMs });
    } catch (error) {
      if (!(error instanceof CommandError && error.unknownCommand)) throw error;
    }
  }

  /** Ends the agent: closes its stdin, waits, helps with signals. May be called twice. */
  async stop() {
    await this.#process.stop(this.#options.stopTimeoutMs);
    this.#end(new AgentExited(this.exitCode, this.getStderr()));
    this.#script?.remove();
    this.#script = undefined;
  }

  async close() {
    await this.stop();
  }

  /** Exit code of the agent, once it has ended. */
  get exitCode() {
    return this.#process.exitCode;
  }

  /** The end of what the agent wrote to stderr. */
  getStderr() {
    return this.#process.stderr;
  }

  /** Opens another session in this process, in a working directory of its own. Needs an agent with many sessions. */
  async openSession(options = {}) {
    const answer = await this.call("open_session", options);
    return new Session(this, answer.session);
  }

  #commandLine() {
    const o = this.#options;
    const program = o.program ?? process.env.PINION_PROGRAM ?? findProgram();
    const pairs = {
      "--rpc-dialect": o.dialect,
      "--provider": o.provider,
      "--model": o.model,
      "--thinking": o.thinking,
      "--session": o.session,
      "--session-dir": o.sessionDir,
      "--record": o.record,
      "--replay": o.replay,
    };
    if (o.script !== undefined) {
      if (Array.isArray(o.script)) this.#script = writeScript(o.script);
      pairs["--model"] = "offline/script";
      pairs["--script"] = this.#script?.path ?? o.script;
    }
    const words = Object.entries(pairs).filter(([, value]) => value !== undefined && value !== null).flat();
    return [...[program].flat(), "--mode", "rpc", ...words, ...(o.persist ? [] : ["--no-session"]), ...o.args];
  }

  /** For sessions: a command and its answer. `onAnswer` is called before any event that follows the answer is seen. */
  async send_(handle, type, params, timeoutMs, onAnswer) {
    if (this.#ended) throw this.#ended;
    const limit = timeoutMs ?? (SLOW.has(type) ? this.#options.slowTimeoutMs : this.#options.commandTimeoutMs);
    const id = `js${++this.#nextId}`;
    const answer = new Promise((resolve, reject) => this.#pending.set(id, { type, resolve, reject, onAnswer }));
    answer.catch(() => {});
    try {
      await this.#process.write({ id, type, ...(handle === undefined ? {} : { session: handle }), ...params }, limit);
      return await within(answer, limit, `${type}: no answer`);
    } finally {
      this.#pending.delete(id);
    }
  }

  /** For sessions: their events as an iterator. */
  listen_(handle, idleTimeoutMs = this.#options.idleTimeoutMs) {
    const events = new Events(idleTimeoutMs, (closed) => this.#of(handle).delete(closed), this.#options.maxWaitingEvents);
    if (this.#ended) events.fail(this.#ended);
    this.#of(handle).add(events);
    return events;
  }

  /** For sessions: their events to a function. What it throws is an uncaught exception, not the agent's end. */
  hear_(handle, listener) {
    const ear = {
      put(event) {
        try {
          listener(event);
        } catch (error) {
          queueMicrotask(() => {
            throw error;
          });
        }
      },
      fail() {},
      close() {},
    };
    this.#of(handle).add(ear);
    return () => this.#of(handle).delete(ear);
  }

  /** For sessions: nobody listens to this one any more. */
  forget_(handle) {
    this.tools_.forget(handle);
    for (const listener of [...this.#of(handle)]) listener.close();
    this.#listeners.delete(handle);
  }

  #of(handle) {
    let listeners = this.#listeners.get(handle);
    if (!listeners) this.#listeners.set(handle, (listeners = new Set()));
    return listeners;
  }

  #frame(frame) {
    if (frame.type === "response") {
      this.#answer(frame);
      return;
    }
    if (frame.type === "host_tool_call") void this.tools_.called(frame);
    else if (frame.type === "host_tool_cancel") this.tools_.cancelled(frame.targetId);
    else if (frame.type === "extension_ui_request") void this.#dialogs.requested(frame);
    for (const listener of [...(this.#listeners.get(frame.session) ?? [])]) listener.put(frame);
  }

  #answer(frame) {
    const waiting = this.#pending.get(frame.id);
    if (!waiting) return;
    this.#pending.delete(frame.id);
    waiting.onAnswer?.();
    if (frame.success) waiting.resolve(frame.data);
    else waiting.reject(new CommandError(waiting.type, String(frame.error ?? "failed"), frame.code));
  }

  #end(error) {
    if (this.#ended) return;
    this.#ended = error;
    this.tools_.cancelAll();
    this.#dialogs.cancelAll();
    for (const { reject } of this.#pending.values()) reject(error);
    for (const listeners of this.#listeners.values()) for (const listener of listeners) listener.fail(error);
  }
}

/** The agent under the name and with the options of pi's RpcClient, for hosts that switch. */
export class RpcClient extends Agent {
  /** @param {{ cliPath?: string, [option: string]: any }} [options] */
  constructor({ cliPath, ...options } = {}) {
    // A script is run by node, as pi's client does; anything else is a program.
    const program = cliPath && /\.[cm]?[jt]s$/.test(cliPath) ? [process.execPath, cliPath] : cliPath;
    // Events as pi 0.7x writes them: `message_update` carries the whole message.
    super({ dialect: "pi", program, ...options });
  }
}
