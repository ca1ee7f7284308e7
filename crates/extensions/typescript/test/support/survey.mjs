/**
 * Not a test: loads every extension of some folders, each in a session of its own, and prints a table.
 * Usage: node survey.mjs FOLDER...
 */
import fs from "node:fs";
import path from "node:path";
import { FakeAgent } from "./fake-agent.mjs";

const agent = new FakeAgent();
agent.answers = { exec: { stdout: "", stderr: "", code: 0, killed: false } };
const kind = process.env.KIND ?? "extension";
const generation = process.env.GENERATION ?? "pi";
for (const folder of process.argv.slice(2)) {
  const names = fs.readdirSync(folder).filter((name) => /\.ts$/.test(name) || fs.statSync(path.join(folder, name)).isDirectory());
  let good = 0;
  for (const name of names) {
    const started = performance.now();
    const items = await agent.open([path.join(folder, name)], { session: name, kind, generation });
    const bad = items.find((item) => item.error);
    if (bad) console.log(`FAIL ${name}: ${bad.error.split("\n")[0]}`);
    else {
      good += 1;
      const item = items[0];
      const list = (list, key) => (list.length ? `${key}=${list.map((one) => one.name ?? one.shortcut ?? one).join(",")} ` : "");
      console.log(`ok   ${name} (${(performance.now() - started).toFixed(0)} ms) ${list(item.tools, "tools")}${list(item.commands, "commands")}${list(item.flags, "flags")}${list(item.shortcuts, "shortcuts")}${list(item.renderers, "renderers")}${list(item.providers, "providers")}${list(item.events, "events")}`);
    }
    const answer = await agent.ask({ type: "event", session: name, name: "session_start", event: { reason: "startup" } });
    for (const error of answer.errors ?? []) console.log(`     session_start: ${error.error}`);
    await agent.ask({ type: "close", session: name, reason: "quit" });
  }
  console.log(`${good} of ${names.length} in ${folder}\n`);
}
console.log("stderr:", agent.stderr.slice(0, 3000));
for (const line of agent.seen) if (line.type === "failure" || line.type === "log") console.log(JSON.stringify(line).slice(0, 300));
await agent.stop();
