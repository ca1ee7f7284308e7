/**
 * Built-in tools over an extension's own operations (a remote machine, a sandbox): the functions cannot leave this
 * process, so the tools are done here, in a plain form of pi-core.md 5. Without operations the agent's own tools run.
 */
"use strict";
const path = require("node:path");
const { spawn } = require("node:child_process");
const { truncateHead, truncateTail, formatSize, DEFAULT_MAX_BYTES } = require("./truncate.cjs");

const text = (value, details) => ({ content: [{ type: "text", text: value }], details });
const absolute = (cwd, file) => path.resolve(cwd, file.replace(/^@/, ""));
/** Milliseconds between two updates of a running command. */
const UPDATE_EVERY = 100;

async function read({ operations }, cwd, { path: file, offset = 1, limit }) {
  const target = absolute(cwd, file);
  await operations.access?.(target);
  const mime = await operations.detectImageMimeType?.(target);
  const buffer = Buffer.from(await operations.readFile(target));
  if (mime) {
    return { content: [{ type: "text", text: `Read image file [${mime}]` }, { type: "image", data: buffer.toString("base64"), mimeType: mime }] };
  }
  const lines = buffer.toString("utf8").split("\n");
  const first = Math.max(1, offset);
  if (first > lines.length) throw new Error(`Offset ${first} is beyond end of file (${lines.length} lines total)`);
  const chosen = lines.slice(first - 1, limit ? first - 1 + limit : undefined);
  const cut = truncateHead(chosen.join("\n"));
  if (cut.firstLineExceedsLimit) {
    return text(`[Line ${first} is ${formatSize(Buffer.byteLength(chosen[0]))}, exceeds ${formatSize(DEFAULT_MAX_BYTES)} limit.]`, { truncation: cut });
  }
  if (cut.truncated) {
    const end = first + cut.outputLines - 1;
    const why = cut.truncatedBy === "bytes" ? ` (${formatSize(DEFAULT_MAX_BYTES)} limit)` : "";
    return text(`${cut.content}\n\n[Showing lines ${first}-${end} of ${lines.length}${why}. Use offset=${end + 1} to continue.]`, { truncation: cut });
  }
  const rest = lines.length - (first - 1 + chosen.length);
  return text(rest > 0 ? `${cut.content}\n\n[${rest} more lines in file. Use offset=${first + chosen.length} to continue.]` : cut.content);
}

async function write({ operations }, cwd, { path: file, content }) {
  const target = absolute(cwd, file);
  await operations.mkdir(path.dirname(target));
  await operations.writeFile(target, content);
  return text(`Successfully wrote ${content.length} bytes to ${file}`);
}

async function edit({ operations }, cwd, { path: file, edits }) {
  const target = absolute(cwd, file);
  await operations.access?.(target);
  const before = Buffer.from(await operations.readFile(target)).toString("utf8");
  const crlf = before.includes("\r\n");
  let after = before.replace(/\r\n/g, "\n");
  const base = after;
  const places = edits.map(({ oldText, newText }, at) => {
    const wanted = oldText.replace(/\r\n/g, "\n");
    const found = wanted ? base.split(wanted).length - 1 : 0;
    if (found === 0) throw new Error(`Could not find edits[${at}] in ${file}. The oldText must match exactly.`);
    if (found > 1) throw new Error(`Found ${found} occurrences of edits[${at}] in ${file}. Each oldText must be unique.`);
    return { from: base.indexOf(wanted), length: wanted.length, newText: newText.replace(/\r\n/g, "\n") };
  }).sort((a, b) => b.from - a.from);
  for (const { from, length, newText } of places) after = after.slice(0, from) + newText + after.slice(from + length);
  if (after === base) throw new Error(`No changes made to ${file}.`);
  await operations.writeFile(target, crlf ? after.replace(/\n/g, "\r\n") : after);
  return text(`Successfully replaced ${edits.length} block(s) in ${file}.`, { diff: "", patch: "" });
}

async function bash({ operations, commandPrefix, spawnHook }, cwd, { command, timeout }, signal, onUpdate) {
  let context = { command: commandPrefix ? `${commandPrefix}\n${command}` : command, cwd, env: { ...process.env } };
  if (spawnHook) context = spawnHook(context) ?? context;
  const { code, output } = await run(operations, context, { timeout, signal, onUpdate });
  const cut = truncateTail(output);
  const shown = cut.truncated ? `${cut.content}\n\n[Showing the last ${cut.outputLines} of ${cut.totalLines} lines]` : cut.content || "(no output)";
  if (code !== 0) throw new Error(`${shown}\n\nCommand exited with code ${code}`);
  return text(shown, cut.truncated ? { truncation: cut } : undefined);
}

/** Runs a command through operations, keeping what it prints. */
async function run(operations, { command, cwd, env }, { timeout, signal, onUpdate }) {
  const parts = [];
  let last = 0;
  const onData = (data) => {
    parts.push(Buffer.from(data));
    const now = Date.now();
    if (!onUpdate || now - last < UPDATE_EVERY) return;
    last = now;
    onUpdate(text(truncateTail(Buffer.concat(parts).toString("utf8")).content));
  };
  const output = () => Buffer.concat(parts).toString("utf8");
  try {
    const { exitCode } = await operations.exec(command, cwd, { onData, signal, timeout, env });
    return { code: exitCode, output: output() };
  } catch (error) {
    const before = output() ? `${output()}\n\n` : "";
    if (signal?.aborted) throw new Error(`${before}Command aborted`, { cause: error });
    const late = /^timeout:(.*)$/.exec(error.message);
    throw new Error(late ? `${before}Command timed out after ${late[1]} seconds` : before + error.message, { cause: error });
  }
}

/** The answer to a `user_bash` event whose handler gave operations. */
async function operationsToolBash(operations, { command, cwd }, signal) {
  const parts = [];
  const printed = () => Buffer.concat(parts).toString("utf8");
  let code;
  try {
    ({ exitCode: code } = await operations.exec(command, cwd, { onData: (data) => parts.push(Buffer.from(data)), signal }));
  } catch (error) {
    // An aborted command still has the output that it printed before.
    if (!signal?.aborted) throw Object.assign(new Error(error?.message ?? String(error)), { printed: printed() });
  }
  const cancelled = signal?.aborted === true;
  const cut = truncateTail(printed());
  return { output: cut.content, exitCode: cancelled ? undefined : code ?? undefined, cancelled, truncated: cut.truncated };
}

/** A local shell as operations. */
function createLocalBashOperations({ shellPath } = {}) {
  return {
    exec: (command, cwd, { onData, signal, timeout, env }) => new Promise((resolve, reject) => {
      const child = spawn(shellPath ?? "/bin/bash", ["-c", command], { cwd, env: env ?? process.env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
      let late = false;
      const kill = () => {
        try {
          process.kill(-child.pid, "SIGKILL");
        } catch {
          child.kill("SIGKILL");
        }
      };
      const timer = timeout > 0 ? setTimeout(() => { late = true; kill(); }, timeout * 1000) : undefined;
      signal?.addEventListener("abort", kill, { once: true });
      child.stdout.on("data", onData);
      child.stderr.on("data", onData);
      child.on("error", reject);
      child.on("close", (code, name) => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", kill);
        if (signal?.aborted) reject(new Error("aborted"));
        else if (late) reject(new Error(`timeout:${timeout}`));
        else resolve({ exitCode: code ?? (name ? 137 : null) });
      });
    }),
  };
}

module.exports = { OPERATED: { read, write, edit, bash }, operationsToolBash, createLocalBashOperations };
