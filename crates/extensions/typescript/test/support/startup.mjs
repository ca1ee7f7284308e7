/**
 * Not a test: measures the time from spawn to `ready` and to ten extensions loaded, and the length of round trips.
 * Usage: node startup.mjs FOLDER_OF_EXTENSIONS
 */
import fs from "node:fs";
import path from "node:path";
import os from "node:os";
import { spawn } from "node:child_process";
import { MAIN } from "./fake-agent.mjs";

const NAMES = ["permission-gate", "protected-paths", "todo", "hello", "pirate", "git-checkpoint", "status-line", "tools", "summarize", "confirm-destructive"];
const folder = process.argv[2];
const cacheDir = fs.mkdtempSync(path.join(os.tmpdir(), "startup-"));

async function once() {
  const started = performance.now();
  const child = spawn(process.env.HOST_RUNTIME ?? process.execPath, [...(process.env.HOST_ARGS?.split(" ") ?? []), MAIN], { stdio: ["pipe", "pipe", "inherit"] });
  const send = (message) => child.stdin.write(`${JSON.stringify(message)}\n`);
  const times = {};
  send({ type: "hello", protocol: 1, agentDir: cacheDir, cacheDir });
  send({ type: "open", id: 1, session: "s", state: { cwd: "/" }, generation: "pi",
    extensions: NAMES.map((name) => ({ path: path.join(folder, `${name}.ts`), kind: "extension", scope: "user" })) });
  let rest = "";
  await new Promise((resolve) => child.stdout.on("data", (data) => {
    rest += data;
    const lines = rest.split("\n");
    rest = lines.pop();
    for (const line of lines) {
      const message = JSON.parse(line);
      if (message.type === "ready") times.ready = performance.now() - started;
      if (message.type === "result") {
        times.loaded = performance.now() - started;
        times.failed = message.value.extensions.filter(({ error }) => error).length;
        resolve();
      }
    }
  }));
  times.rss = Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${child.pid}/status`, "utf8"))[1]) / 1024;
  child.stdin.end();
  return Object.fromEntries(Object.entries(times).map(([key, value]) => [key, Math.round(value)]));
}

console.log("cold", await once());
for (let round = 0; round < 5; round += 1) console.log("warm", await once());
fs.rmSync(cacheDir, { recursive: true });
