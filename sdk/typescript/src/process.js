// The agent as a child process: lines in, lines out, an end in bounded time. Knows nothing of what the lines mean.
import { spawn } from "node:child_process";
import { AgentExited, ProtocolError, StartError, within } from "./errors.js";

/** Longest line, in bytes. */
const MAX_LINE = 256 * 1024 * 1024;
/** How much of stderr is kept, in characters. */
const STDERR_TAIL = 64 * 1024;
/** Bytes at both ends of a line in which the id of an answer is looked for that cannot be read. */
const ENDS = 4096;

/** The id of the command that a line answers which cannot be read. */
function responseId(ends) {
  if (!ends.some((end) => end.includes('"response"'))) return undefined;
  return ends.map((end) => /"id"\s*:\s*"(js[0-9]+)"/.exec(end)?.[1]).find((id) => id !== undefined);
}

export class Process {
  stderr = "";
  exitCode = null;
  #child;
  #ended;
  #onFrame;
  #onUnreadable;
  #onEnd;
  #parts = [];
  #size = 0;
  #isTooLong = false;
  #broken;

  /** `onUnreadable` is called with the id of a command whose answer cannot be read, and the reason. */
  constructor(onFrame, onUnreadable, onEnd) {
    this.#onFrame = onFrame;
    this.#onUnreadable = onUnreadable;
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
    this.#ended = /** @type {Promise<void>} */ (new Promise((resolve) => {
      child.once("exit", (code) => {
        this.exitCode = code;
        // Grandchildren may keep the pipes open: what comes within a second is read, then it is over.
        const late = setTimeout(resolve, 1000);
        child.once("close", () => {
          clearTimeout(late);
          resolve();
        });
      });
    }));
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
    const written = /** @type {Promise<void>} */ (new Promise((resolve, reject) => {
      this.#child.stdin.write(line, (error) => (error ? reject(error) : resolve()));
    }));
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
      this.#line(Buffer.concat(this.#parts));
      this.#parts = [];
      this.#size = 0;
      this.#isTooLong = false;
      start = end + 1;
    }
    if (start < chunk.length) {
      this.#parts.push(chunk.subarray(start));
      this.#size += chunk.length - start;
    }
    // Of a line that is too long only the ends are kept.
    if (this.#size > MAX_LINE || (this.#isTooLong && this.#size > 1 << 20)) {
      const all = Buffer.concat(this.#parts);
      this.#parts = [Buffer.from(all.subarray(0, ENDS)), Buffer.from(all.subarray(-ENDS))];
      this.#size = 2 * ENDS;
      this.#isTooLong = true;
    }
  }

  #line(bytes) {
    let frame;
    try {
      if (this.#isTooLong) throw new RangeError(`a line is longer than ${MAX_LINE} bytes`);
      const text = bytes.toString("utf8");
      if (!text.trim()) return;
      frame = JSON.parse(text);
    } catch (error) {
      const ends = [bytes.subarray(0, ENDS), bytes.subarray(-ENDS)].map((end) => end.toString("utf8"));
      const id = responseId(ends);
      const start = ends[0].slice(0, 200);
      if (id === undefined) this.#break(new ProtocolError(`not JSON: ${start}`));
      else this.#onUnreadable(id, new ProtocolError(`the answer cannot be read (${error.message}): ${start}`));
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
