// A stand-in for the agent: the frames of host tools, dialogs and many sessions, and misbehaviour on request. The words are
// those of the stand-in of the Python tests.
import { createInterface } from "node:readline";

const tools = new Map();
const waiting = new Map();
const toCancel = new Set();
let count = 0;

function say(frame, session) {
  process.stdout.write(JSON.stringify(session === undefined ? frame : { ...frame, session }) + "\n");
}

function settle(text, session) {
  const message = { role: "assistant", content: [{ type: "text", text }], stopReason: "stop" };
  say({ type: "message_end", message }, session);
  say({ type: "agent_settled", aborted: false }, session);
}

function prompt(text, session) {
  const [word, ...more] = text.split(" ");
  const rest = more.join(" ");
  count += 1;
  say({ type: "agent_start" }, session);
  if (word === "call" || word === "cancel") {
    const [name, ...args] = more;
    waiting.set(`h${count}`, session);
    if (word === "cancel") toCancel.add(`h${count}`);
    say({ type: "host_tool_call", id: `h${count}`, toolCallId: `t${count}`, toolName: name, arguments: JSON.parse(args.join(" ")) }, session);
  } else if (word === "dialog") {
    waiting.set(`d${count}`, session);
    say({ type: "extension_ui_request", id: `d${count}`, ...JSON.parse(rest) }, session);
  } else if (word === "flood") {
    for (let number = 0; number < Number(rest); number += 1) say({ type: "notice", level: "info", message: String(number) }, session);
    settle("flooded", session);
  } else if (word === "die") {
    process.stderr.write("dying as asked\n", () => process.exit(3));
  } else if (word === "garbage") {
    process.stdout.write("this is not JSON\n");
  } else if (word !== "silent") {
    settle(`${session ?? "first"}: ${text}`, session);
  }
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const frame = JSON.parse(line);
  const { type, session, id } = frame;
  const answer = (data) => say({ id, type: "response", command: type, success: true, data }, session);
  const refuse = (error) => say({ id, type: "response", command: type, success: false, error }, session);
  if (type === "get_state") answer({ sessionId: session ?? "first", argv: process.argv.slice(2) });
  else if (type === "prompt") {
    if (frame.message === "mute") return;
    const handled = frame.message.startsWith("/");
    answer({ disposition: handled ? "handled" : "started" });
    if (!handled) prompt(frame.message, session);
  } else if (type === "set_host_tools") {
    const names = frame.tools.map((tool) => tool.name);
    if (new Set(names).size !== names.length) refuse("RPC host tool names must be unique");
    else {
      tools.set(session, frame.tools);
      if (!names.includes("late")) answer({ toolNames: names });
    }
  } else if (type === "get_tools") answer({ tools: tools.get(session) ?? [] });
  else if (type === "host_tool_update") {
    say({ type: "tool_execution_update", toolCallId: id, partialResult: frame.partialResult }, waiting.get(id));
    if (toCancel.has(id)) {
      say({ type: "host_tool_cancel", id: "c1", targetId: id }, waiting.get(id));
      settle("cancelled", waiting.get(id));
    }
  } else if (type === "host_tool_result" || type === "extension_ui_response") settle(JSON.stringify(frame), waiting.get(id));
  else if (type === "open_session") answer({ session: frame.session ?? "s1", sessionId: "x", sessionFile: null, cwd: frame.cwd ?? "." });
  else if (type === "abort") {
    answer();
    settle("aborted", session);
  } else if (type === "close_session") answer();
  else if (type === "deep") {
    const tree = '[{"entry":{},"children":'.repeat(frame.depth) + "[]" + "}]".repeat(frame.depth);
    process.stdout.write(`{"id":"${id}","type":"response","command":"deep","success":true,"data":{"tree":${tree}}}\n`);
  } else if (type === "torn") process.stdout.write(`{"id":"${id}","type":"response","success":true,"data":[[[\n`);
  else refuse(`Unknown command: ${type}`);
});
