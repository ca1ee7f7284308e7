// Replies for tests: the agent plays them instead of asking a model. Everything else (tools, events, files) is real.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * An answer; each chunk arrives as a delta of its own.
 * @param {string|string[]} chunks
 * @param {{ thinking?: string, delayMs?: number }} [options]
 */
export function reply(chunks, { thinking, delayMs } = {}) {
  const list = Array.isArray(chunks) ? chunks : [chunks];
  const text = delayMs ? list.flatMap((chunk) => [{ delay: delayMs / 1000 }, chunk]) : list;
  return { stream: [...(thinking ? [{ thinking }] : []), { text }] };
}

/** An answer that calls one tool. */
export function toolCall(name, args = {}) {
  return toolCalls([name, args]);
}

/** An answer that calls several tools. */
export function toolCalls(...calls) {
  return { stream: calls.map(([name, args]) => ({ tool: { name, args: args ?? {} } })) };
}

/** The provider fails. */
export function failure(kind = "server", message) {
  return { error: { kind, ...(message === undefined ? {} : { message }) } };
}

/** The answer for requests that contain a text, however often they come. */
export function when(wanted, answer) {
  const reply_ = typeof answer === "string" ? reply(answer) : answer;
  return { ...reply_, match: { contains: wanted }, repeat: true };
}

/** Writes replies to a temporary file; plain strings are answers. */
export function writeScript(replies) {
  const folder = mkdtempSync(join(tmpdir(), "pinion-script-"));
  const path = join(folder, "script.json");
  writeFileSync(path, JSON.stringify(replies.map((item) => (typeof item === "string" ? reply(item) : item))));
  return { path, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
