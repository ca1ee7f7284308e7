/** A scripted agent: starts the host, sends lines, and waits for what comes back. */
import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { temporary } from "./temporary.mjs";

export const MAIN = fileURLToPath(new URL("../../main.mjs", import.meta.url));
/** The runtime the host is tested with. */
const RUNTIME = process.env.HOST_RUNTIME ?? process.execPath;
/** Longest wait for anything, in ms: far more than a busy machine needs. */
const PATIENCE = 30_000;

export class FakeAgent {
  #child;
  #next = 1;
  #buffer = "";
  #pending = new Map();
  #seen = [];
  #waiting = [];
  stderr = "";
  /** Raw lines that were not JSON. */
  garbage = [];
  /** Answers to the host's calls, by method; a function gets the parameters and the agent. */
  answers = {};

  constructor({ agentDir, cwd } = {}) {
    this.dir = agentDir ?? temporary("host-");
    this.#child = spawn(RUNTIME, [MAIN], { stdio: ["pipe", "pipe", "pipe"], cwd: cwd ?? this.dir });
    this.#child.stdin.on("error", () => {});
    this.#child.stdout.setEncoding("utf8").on("data", (text) => this.#take(text));
    this.#child.stderr.setEncoding("utf8").on("data", (text) => { this.stderr += text; });
    this.exited = new Promise((resolve) => this.#child.on("exit", (code, signal) => resolve({ code, signal })));
    this.send({ type: "hello", protocol: 1, agent: "test", version: "0", agentDir: this.dir, cacheDir: path.join(os.tmpdir(), "host-test-cache"), limits: {} });
  }

  #take(text) {
    this.#buffer += text;
    const lines = this.#buffer.split("\n");
    this.#buffer = lines.pop();
    for (const line of lines) {
      try {
        this.#receive(JSON.parse(line));
      } catch (error) {
        if (error instanceof SyntaxError) this.garbage.push(line);
        else throw error;
      }
    }
  }

  #receive(message) {
    const mine = message.id !== undefined && ["result", "error", "pong"].includes(message.type) && this.#pending.get(message.id);
    if (mine) {
      this.#pending.delete(message.id);
      mine(message);
      return;
    }
    const at = this.#waiting.findIndex(({ wanted }) => wanted(message));
    if (at >= 0) this.#waiting.splice(at, 1)[0].resolve(message);
    else this.#seen.push(message);
    if (message.type === "call" && message.id !== undefined && message.method in this.answers) this.#answer(message);
  }

  async #answer({ id, method, params }) {
    const answer = this.answers[method];
    try {
      const value = typeof answer === "function" ? await answer(params, this, id) : answer;
      if (value !== FakeAgent.SILENT) this.send({ type: "result", id, value: value ?? null });
    } catch (error) {
      this.send({ type: "error", id, message: error.message });
    }
  }

  /** An answer that is none. */
  static SILENT = Symbol("silent");

  send(message) {
    this.#child.stdin.write(`${JSON.stringify(message)}\n`);
  }

  /** Sends with an id and waits for the answer line. */
  ask(message) {
    const id = this.#next++;
    const answered = new Promise((resolve) => this.#pending.set(id, resolve));
    this.send({ ...message, id });
    return within(answered, `an answer to ${JSON.stringify(message).slice(0, 100)}`, this);
  }

  /** The first line, seen or to come, that fits. */
  wait(wanted) {
    const fits = typeof wanted === "function" ? wanted : (message) => Object.entries(wanted).every(([key, value]) => message[key] === value);
    const at = this.#seen.findIndex(fits);
    if (at >= 0) return Promise.resolve(this.#seen.splice(at, 1)[0]);
    return within(new Promise((resolve) => this.#waiting.push({ wanted: fits, resolve })), JSON.stringify(wanted) ?? String(wanted), this);
  }

  /** The host's next call of a method. */
  call(method) {
    return this.wait((message) => message.type === "call" && message.method === method);
  }

  /** Lines nobody waited for, in order. */
  get seen() { return this.#seen; }

  /**
   * Opens a session with extension sources, written to files.
   * @param {Record<string, string>|string[]} files name: source, or paths
   */
  async open(files, { session = "s1", state = {}, kinds = {}, kind = "extension", ...rest } = {}) {
    const extensions = Array.isArray(files) ? files.map((file) => ({ path: file, scope: "user", kind }))
      : Object.entries(files).map(([name, source]) => ({ path: this.file(name, source), scope: "user", kind: kinds[name] ?? kind }));
    const base = { cwd: this.dir, sessionId: `id-${session}`, sessionFile: null, isIdle: true, hasUI: true, mode: "rpc", tools: [], activeTools: [] };
    const answer = await this.ask({ type: "open", session, extensions, flags: {}, generation: "pi", state: { ...base, ...state }, ...rest });
    return answer.value.extensions;
  }

  file(name, source) {
    const file = path.join(this.dir, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, source);
    return file;
  }

  /** An awaited event: its combined value. */
  async event(name, event = {}, session = "s1") {
    return this.ask({ type: "event", session, name, event });
  }

  async run(method, params, session = "s1") {
    return this.ask({ type: "call", session, method, params });
  }

  async stop() {
    this.#child.stdin.end();
    return within(this.exited, "the host's end", this);
  }

  kill() { this.#child.kill("SIGKILL"); }
}

function within(promise, what, agent) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no ${what}\nseen: ${JSON.stringify(agent.seen).slice(0, 2000)}\nstderr: ${agent.stderr.slice(-2000)}`)), PATIENCE);
    timer.unref();
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Runs a test body with an agent, and ends the host after it. */
export async function withAgent(body, options) {
  const agent = new FakeAgent(options);
  try {
    await body(agent);
    await agent.stop();
  } finally {
    agent.kill();
  }
}
