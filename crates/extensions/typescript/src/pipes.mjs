/**
 * Takes the protocol's pipes for the host alone: process.stdout and console write to stderr from here on,
 * process.stdin is empty, and child processes of extensions cannot inherit the pipes.
 * Framing lives in lines.mjs.
 */
import net from "node:net";
import fs from "node:fs";
import { Console } from "node:console";
import { Readable } from "node:stream";
import childProcess from "node:child_process";
import { syncBuiltinESMExports } from "node:module";

/** Bun's own objects for the standard pipes are the ones that work there. */
const BUN = Boolean(process.versions.bun);

/** Methods of console that print. */
const PRINTING = ["log", "info", "debug", "warn", "error", "dir", "table", "trace", "group", "groupCollapsed",
  "groupEnd", "assert", "count", "countReset", "time", "timeEnd", "timeLog", "dirxml"];

/**
 * @param {string|undefined} fds descriptors as "READ,WRITE"; stdin and stdout when absent
 * @returns {{input: import("node:stream").Readable, output: import("node:stream").Writable}}
 */
export function takePipes(fds) {
  const [readFd, writeFd] = (fds ?? "0,1").split(",").map(Number);
  delete process.env.PINION_DOOR_FDS;
  const input = openReader(readFd);
  const output = openWriter(writeFd);
  divertPrinting();
  shieldChildren();
  return { input, output };
}

/** A pipe or socket is read by the event loop; anything else (a file, a terminal) through the thread pool. */
function openReader(fd) {
  if (BUN && fd === 0) return process.stdin;
  return isPipe(fd) ? new net.Socket({ fd, readable: true, writable: false }) : fs.createReadStream("", { fd });
}

function openWriter(fd) {
  if (BUN && fd === 1) return process.stdout;
  return isPipe(fd) ? new net.Socket({ fd, readable: false, writable: true }) : fs.createWriteStream("", { fd });
}

function isPipe(fd) {
  if (BUN) return false;
  const stat = fs.fstatSync(fd);
  return stat.isFIFO() || stat.isSocket();
}

function divertPrinting() {
  const { stderr } = process;
  const empty = new Readable({ read() { this.push(null); } });
  Object.assign(empty, { fd: 0 });
  Object.defineProperty(process, "stdout", { configurable: true, enumerable: true, get: () => stderr });
  Object.defineProperty(process, "stdin", { configurable: true, enumerable: true, get: () => empty });
  const quiet = new Console({ stdout: stderr, stderr });
  for (const name of PRINTING) console[name] = quiet[name].bind(quiet);
}

/** Child processes that would share our stdin and stdout get nothing to read and stderr to write to instead. */
function shieldChildren() {
  const own = (stdio) => {
    if (stdio === "inherit") return ["ignore", 2, 2];
    if (!Array.isArray(stdio)) return stdio;
    return stdio.map((entry, at) => {
      const target = entry === "inherit" ? at : entry;
      if (target === 0 || target === process.stdin) return "ignore";
      return target === 1 ? 2 : entry;
    });
  };
  for (const name of ["spawn", "spawnSync", "execSync", "execFileSync", "fork"]) {
    const original = childProcess[name];
    childProcess[name] = function (...args) {
      const at = args.findIndex((arg, index) => index > 0 && arg && typeof arg === "object" && !Array.isArray(arg));
      if (at > 0 && args[at].stdio !== undefined) args[at] = { ...args[at], stdio: own(args[at].stdio) };
      else if (name === "fork") addForkOptions(args, at);
      return original.apply(this, args);
    };
  }
  syncBuiltinESMExports();
}

/** fork() inherits all three by default. */
function addForkOptions(args, at) {
  const stdio = ["ignore", 2, 2, "ipc"];
  if (at > 0) {
    if (!args[at].silent) args[at] = { ...args[at], stdio };
  } else {
    if (!Array.isArray(args[1])) args.splice(1, args.length - 1, []);
    args.push({ stdio });
  }
}
