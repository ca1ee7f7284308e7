/** `pi.exec`: a program with arguments, run without a shell, in the host's own environment. */
import { spawn } from "node:child_process";

/** Bytes kept of each output. */
const MAX_OUTPUT = 64 * 1024 * 1024;
/** From the polite signal to the other one, in ms. */
const GRACE = 5000;

/**
 * @param {string} command
 * @param {string[]} args
 * @param {{cwd?: string, timeout?: number, signal?: AbortSignal, env?: object, stdin?: string}} options timeout in ms
 * @returns {Promise<{stdout: string, stderr: string, code: number, killed: boolean, truncated: boolean}>}
 */
export function exec(command, args, { cwd, timeout, signal, env, stdin }) {
  return new Promise((resolve) => {
    let killed = false;
    let late;
    let hard;
    const child = spawn(command, args, {
      cwd, env: env ? { ...process.env, ...env } : process.env, stdio: [stdin === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    });
    const stop = () => {
      killed = true;
      child.kill("SIGTERM");
      hard = setTimeout(() => child.kill("SIGKILL"), GRACE);
    };
    const out = collect(child.stdout);
    const err = collect(child.stderr);
    const finish = (code, problem) => {
      clearTimeout(late);
      clearTimeout(hard);
      signal?.removeEventListener("abort", stop);
      const truncated = out.isCut() || err.isCut();
      resolve({ stdout: out(), stderr: problem ?? err(), code, killed, truncated });
    };
    if (stdin !== undefined) child.stdin.on("error", () => {}).end(stdin);
    if (timeout > 0) late = setTimeout(stop, timeout);
    if (signal?.aborted) stop();
    else signal?.addEventListener("abort", stop, { once: true });
    child.on("error", (error) => finish(1, error.message));
    child.on("close", (code) => finish(code ?? (killed ? 1 : 0)));
  });
}

/** @returns {{(): string, isCut(): boolean}} what came so far, the beginning of it when it is very long */
function collect(stream) {
  const parts = [];
  let length = 0;
  let isCut = false;
  stream.on("data", (part) => {
    isCut ||= length + part.length > MAX_OUTPUT;
    if (length >= MAX_OUTPUT) return;
    length += part.length;
    parts.push(part);
  });
  return Object.assign(() => Buffer.concat(parts).subarray(0, MAX_OUTPUT).toString("utf8"), { isCut: () => isCut });
}
