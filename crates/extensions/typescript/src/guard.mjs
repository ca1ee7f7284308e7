/**
 * Keeps one extension from ending the process all sessions share, and shows extensions that start the agent again
 * (sub-agents run `process.execPath process.argv[1]`, or `pi`) a way to do so. stdin and stdout are guarded in pipes.mjs.
 */
import fs from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

/** Events whose listeners end the process when they throw. */
const LAST_RESORTS = ["uncaughtException", "unhandledRejection"];

/** A listener that throws (process.exit does) is told of. */
function harmless(listener, told) {
  const guarded = (...args) => {
    try {
      return listener.apply(process, args);
    } catch (error) {
      return told(error);
    }
  };
  // removeListener finds a wrapped listener by this member.
  guarded.listener = listener;
  return guarded;
}

/**
 * @param {(error: Error) => void} told of what an extension tried
 * @returns {(code: number) => never} the real exit
 */
export function guardProcess(told) {
  const exit = process.exit.bind(process);
  process.exit = () => {
    const error = new Error("process.exit is not available in an extension: use ctx.shutdown()");
    told(error);
    throw error;
  };
  // Every extension of every session may add one.
  process.setMaxListeners(0);
  for (const name of ["on", "addListener", "once", "prependListener", "prependOnceListener"]) {
    const original = process[name].bind(process);
    process[name] = (event, listener) => original(event, LAST_RESORTS.includes(event) ? harmless(listener, told) : listener);
  }
  process.argv = [process.argv[0], fileURLToPath(new URL("../agent/cli.mjs", import.meta.url))];
  return exit;
}

/**
 * Lets extensions start the agent: as `pi`, which comes first on their PATH, and through agent/cli.mjs.
 * @param {string} program absolute path of the agent's executable
 * @param {string|undefined} cache a folder of our own
 */
export function offerProgram(program, cache) {
  process.env.PINION_PROGRAM = program;
  if (!cache || process.platform === "win32") return;
  const bin = path.join(cache, "bin");
  const link = path.join(bin, "pi");
  try {
    fs.mkdirSync(bin, { recursive: true });
    if (readLink(link) !== program) {
      const own = `${link}.${process.pid}`;
      fs.symlinkSync(program, own);
      fs.renameSync(own, link);
    }
    process.env.PATH = `${bin}${path.delimiter}${process.env.PATH ?? ""}`;
  } catch {
    // Without it they find the pi that is installed, or none.
  }
}

function readLink(link) {
  try {
    return fs.readlinkSync(link);
  } catch {
    return undefined;
  }
}
