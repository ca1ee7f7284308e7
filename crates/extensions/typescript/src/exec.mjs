/** `pi.exec`: a program with arguments, run without a shell, in the host's own environment. */
import { spawn } from "node:child_process";

/** Bytes kept of both outputs together, by default. A program that writes more is stopped. */
const MAX_OUTPUT = 128 * 1024 * 1024;
/** From the polite signal to the other one, in ms. */
const GRACE = 5000;
/** Silence of the outputs after the program's end, in ms. Its descendants may keep the pipes open for any time. */
const IDLE = 100;

/**
 * @param {string} command
 * @param {string[]} args
 * @param {{cwd?: string, timeout?: number, signal?: AbortSignal, env?: object, stdin?: string, maxBuffer?: number}} options timeout in ms,
 *   maxBuffer in bytes of both outputs
 * @returns {Promise<{stdout: string, stderr: string, code: number, killed: boolean, truncated: boolean}>}
 */
export function exec(command, args, { cwd, timeout, signal, env, stdin, maxBuffer = MAX_OUTPUT }) {
  return new Promise((resolve) => {
    if (!Number.isInteger(maxBuffer) || maxBuffer < 0) throw new RangeError("maxBuffer must be a number of bytes");
    let room = maxBuffer;
    let truncated = false;
    let killed = false;
    let settled = false;
    /** The exit code once the program has ended, null when a signal ended it. */
    let exit;
    let late;
    let hard;
    let idle;
    const child = spawn(command, args, {
      cwd, env: env ? { ...process.env, ...env } : process.env, stdio: [stdin === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    });
    const finish = (code, problem) => {
      if (settled) return;
      settled = true;
      clearTimeout(late);
      clearTimeout(hard);
      clearTimeout(idle);
      signal?.removeEventListener("abort", stop);
      for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe?.destroy();
      // Output that is not whole is no success, as in pi.
      resolve({ stdout: out(), stderr: problem ?? err(), code: truncated && code === 0 ? 1 : code, killed, truncated });
    };
    const end = () => finish(exit ?? (killed ? 1 : 0));
    const endWhenIdle = () => {
      clearTimeout(idle);
      // When the event loop was busy, timers run before the pipes are read: what waits in them comes first.
      const own = setTimeout(() => setImmediate(() => { if (own === idle) end(); }), IDLE);
      idle = own;
    };
    const stop = () => {
      if (exit !== undefined) end();
      if (settled || killed) return;
      killed = true;
      child.kill("SIGTERM");
      hard = setTimeout(() => child.kill("SIGKILL"), GRACE);
    };
    const fitting = (part) => {
      const kept = part.subarray(0, room);
      room -= kept.length;
      truncated ||= kept.length < part.length;
      return kept;
    };
    const heard = () => {
      if (truncated) stop();
      else if (exit !== undefined) endWhenIdle();
    };
    const out = collect(child.stdout, fitting, heard);
    const err = collect(child.stderr, fitting, heard);
    if (stdin !== undefined) child.stdin.on("error", () => {}).end(stdin);
    if (timeout > 0) late = setTimeout(stop, timeout);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
    child.on("error", (error) => finish(1, error.message));
    child.on("exit", (code) => {
      exit = code;
      endWhenIdle();
    });
    // All pipes are closed: there is nothing to wait for.
    child.on("close", end);
  });
}

/**
 * @param {import("node:stream").Readable} stream
 * @param {(part: Buffer) => Buffer} fitting what there is room for of a part
 * @param {() => void} heard called after every part
 * @returns {() => string} what was kept so far
 */
function collect(stream, fitting, heard) {
  const parts = [];
  stream.on("data", (part) => {
    const kept = fitting(part);
    if (kept.length > 0) parts.push(kept);
    heard();
  });
  return () => Buffer.concat(parts).toString("utf8");
}
