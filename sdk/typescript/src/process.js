// The agent as a child process: lines in, lines out, an end in bounded time. Knows nothing of what the lines mean.
import { spawn } from "node:child_process";
import { AgentExited, ProtocolError, StartError, within } from "./errors.js";

/** Longest line, in bytes. */
const MAX_LINE = 256 * 1024 * 1024;
/** How much of stderr is kept, in characters. */
const STDERR_TAIL = 64 * 1024;

export class Process {
  stderr = "";
  exitCode = null;
  #child;
  #ended;
  #onFrame;
  #onEnd;
  #parts = [];
  #size = 0;
  #broken;

  constructor(onFrame, onEnd) {
    this.#onFrame = onFrame;
    this.#onEnd = onEnd;
  }

  async start(argv, { cwd, env }) {
    const child = spawn(argv[0], argv.slice(1), { cwd, env: { ...process.env, ...env }, stdio: "pipe", windowsHide: true });
    this.#child = child;
    child.stdin.on("error", () => {}); // The end is told by "close".
    child.stdout.on("data", (chunk) => this.#read(chunk));
    child.stderr.setEncoding("utf8");
    child.stderr.on("data", (text) => {
      this.stderr = (this.stderr + text).slice(-STDERR_TAIL);
    });
    this.#ended = new Promise((resolve) => {
      child.once("exit", (code) => {
        this.exitCode = code;
        // Grandchildren may keep the pipes open: what comes within a second is read, then it is over.
        const late = setTimeout(resolve, 1000);
        child.once("close", () => {
          clearTimeout(late);
          resolve();
        });
      });
    });
    await new Promise((resolve, reject) => {
      child.once("spawn", resolve);
      child.once("error", (error) => reject(new StartError(`cannot start ${argv[0]}: ${error.message}`, { cause: error })));
    });
    child.on("error", () => {});
    this.#ended.then(() => this.#onEnd(this.#broken ?? new AgentExited(this.exitCode, this.stderr)));
  }

  /** Writes one line, waiting while the agent does not read. */
  async write(frame, timeoutMs) {
    if (!this.#child) throw new StartError("the agent was not started");
    const line = JSON.stringify(frame) + "\n";
    const written = new Promise((resolve, reject) => {
      this.#child.stdin.write(line, (error) => (error ? reject(error) : resolve()));
    });
    try {
      await within(written, timeoutMs, "the agent did not read its input");
    } catch (error) {
      if (!("code" in error)) throw error;
      await within(this.#ended, 2000, "").catch(() => {});
      throw new AgentExited(this.exitCode, this.stderr);
    }
  }

  /** Closes stdin, which ends the agent; helps with SIGTERM and SIGKILL when it takes longer than that. */
  async stop(timeoutMs) {
    if (!this.#child || this.#child.pid === undefined) return;
    this.#child.stdin.end();
    for (const hurry of [undefined, "SIGTERM", "SIGKILL"]) {
      if (hurry) this.#child.kill(hurry);
      const done = await within(this.#ended.then(() => true), timeoutMs, "").catch(() => false);
      if (done) break;
    }
    this.#child.stdout.destroy();
    this.#child.stderr.destroy();
  }

  #read(chunk) {
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0 && !this.#broken; end = chunk.indexOf(10, start)) {
      this.#parts.push(chunk.subarray(start, end));
      this.#line(Buffer.concat(this.#parts).toString("utf8"));
      this.#parts = [];
      this.#size = 0;
      start = end + 1;
    }
    if (start < chunk.length) {
      this.#parts.push(chunk.subarray(start));
      this.#size += chunk.length - start;
    }
    if (this.#size > MAX_LINE) this.#break(new ProtocolError(`a line is longer than ${MAX_LINE} bytes`));
  }

  #line(text) {
    if (!text.trim()) return;
    let frame;
    try {
      frame = JSON.parse(text);
    } catch {
      this.#break(new ProtocolError(`not JSON: ${text.slice(0, 200)}`));
      return;
    }
    if (frame && typeof frame === "object") this.#onFrame(frame);
  }

  #break(error) {
    this.#broken ??= error;
    this.#parts = [];
    this.#child.stdout.destroy();
    this.#onEnd(error);
  }
}
