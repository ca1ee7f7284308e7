// What the tests share: the program under test, the stand-in, and folders that go away.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Agent } from "../src/index.js";

export const PROGRAM = process.env.PINION_PROGRAM;
export const FAKE = fileURLToPath(new URL("fake-agent.mjs", import.meta.url));
export const live = { skip: PROGRAM ? false : "PINION_PROGRAM does not name the agent" };

/** Options with folders that are removed after the test. */
export function options(t, more = {}) {
  const folder = mkdtempSync(join(tmpdir(), "pinion-sdk-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const cwd = join(folder, "work");
  mkdirSync(cwd);
  return { cwd, env: { HOME: folder, PI_CODING_AGENT_DIR: join(folder, "agent") }, ...more };
}

/** The real agent, started, and stopped after the test. */
export async function agent(t, more = {}) {
  const made = new Agent({ stopTimeoutMs: 30_000, ...options(t, more) });
  t.after(() => made.stop());
  await made.start();
  return made;
}

export function fake(t, more = {}) {
  return agent(t, { program: [process.execPath, FAKE], ...more });
}

export async function all(iterable) {
  const items = [];
  for await (const item of iterable) items.push(item);
  return items;
}
