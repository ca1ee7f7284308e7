/** Sessions that extensions open beside their own: what their owner sees of them (played agent). */
import { test } from "node:test";
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { withAgent } from "./support/fake-agent.mjs";

const USER = { role: "user", content: "hello", timestamp: 1 };
const BEGUN = { role: "assistant", content: [], api: "a", provider: "p", model: "m", usage: {}, stopReason: "stop", timestamp: 2 };
const ANSWER = { ...BEGUN, content: [{ type: "text", text: "Hi there" }] };

/** A run as the agent tells it: of a message that grows only what is new. */
function* run() {
  yield { type: "agent_start" };
  yield { type: "message_start", message: USER };
  yield { type: "message_end", message: USER };
  yield { type: "message_start", message: BEGUN };
  yield { type: "message_update", usage: {}, assistantMessageEvent: { type: "text_start", contentIndex: 0 } };
  yield { type: "message_update", usage: {}, assistantMessageEvent: { type: "text_delta", contentIndex: 0, delta: "Hi " } };
  yield { type: "message_update", usage: {}, assistantMessageEvent: { type: "text_delta", contentIndex: 0, delta: "there" } };
  yield { type: "message_end", message: ANSWER };
  yield { type: "agent_settled" };
}

async function talk(manager, state = {}) {
  let seen;
  await withAgent(async (agent) => {
    const file = path.join(agent.dir, "child.jsonl");
    agent.answers["session.create"] = ({ persist }) => (
      { state: { sessionId: "child", sessionFile: persist ? file : undefined, ...state }, messages: [], activeTools: ["read"], cwd: agent.dir });
    agent.answers["session.command"] = ({ session, command }) => {
      assert.equal(command.type, "prompt");
      const lines = [{ type: "session", version: 3, id: "child", cwd: agent.dir }, { type: "message", id: "u", parentId: null, message: USER },
        { type: "message", id: "a", parentId: "u", message: ANSWER }];
      fs.writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
      for (const event of run()) agent.send({ type: "event", session: "s1", name: "session_event", event: { session, event } });
      return { disposition: "started" };
    };
    await agent.open({ "a.ts": `import { createAgentSession, SessionManager } from "@earendil-works/pi-coding-agent";
      export default (pi: any) => pi.registerCommand("c", { async handler(_: string, ctx: any) {
        const manager = ${manager};
        const { session } = await createAgentSession({ cwd: ctx.cwd, sessionManager: manager });
        const texts: string[] = [];
        session.subscribe((e: any) => { if (e.type === "message_update") texts.push(e.message.content[0].text + "/" + e.assistantMessageEvent.partial.content.length); });
        await session.prompt("hello");
        const branch = session.sessionManager.getBranch().map((e: any) => e.message.role);
        ctx.ui.notify(JSON.stringify({ texts, branch, id: session.sessionManager.getSessionId() === "child", file: Boolean(session.sessionManager.getSessionFile()), persisted: session.sessionManager.isPersisted() }));
      } });` });
    await agent.run("command.run", { name: "c" });
    seen = JSON.parse((await agent.call("ui.notify")).params.message);
  });
  return seen;
}

test("messages grow in the listener's eyes, and a session's manager shows what its file has", async () => {
  const texts = ["/1", "Hi /1", "Hi there/1"];
  assert.deepEqual(await talk("SessionManager.create(ctx.cwd)"), { texts, branch: ["user", "assistant"], id: true, file: true, persisted: true });
  assert.deepEqual(await talk("undefined"), { texts, branch: ["user", "assistant"], id: true, file: true, persisted: true });
});

test("a session in memory is shown by its manager, too", async () => {
  const seen = await talk("SessionManager.inMemory(ctx.cwd)");
  assert.deepEqual([seen.branch, seen.file, seen.persisted], [["user", "assistant"], false, false]);
});
