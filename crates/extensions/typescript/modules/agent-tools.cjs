/**
 * `createReadTool` and its like: the agent's own tools, offered to extensions as objects. Running one asks the agent
 * (`tool.builtin`), except where the extension brings operations of its own (tool-ops.cjs).
 */
"use strict";

const NAMES = { read: "Read", bash: "Bash", edit: "Edit", write: "Write", grep: "Grep", find: "Find", ls: "Ls", powershell: "PowerShell" };
const string = (description) => ({ type: "string", description });
const number = (description) => ({ type: "number", description });
const FILE = string("The file, relative to the working directory or absolute");
const PLACE = string("Directory or file; the working directory if left out");
const LIMIT = number("How many to show at most");

const object = (required, properties) => ({ type: "object", properties, required });

/** Only for an agent whose state does not list a tool. */
const FALLBACK = {
  read: ["Show a file: text by lines, or an image.", object(["path"], { path: FILE, offset: number("First line, counted from 1"), limit: LIMIT })],
  bash: ["Run a bash command in the working directory.", object(["command"], { command: string("The command line"), timeout: number("Seconds") })],
  edit: ["Change a file by replacing texts that occur once.", object(["path", "edits"],
    { path: FILE, edits: { type: "array", items: object(["oldText", "newText"], { oldText: string("Text to find"), newText: string("Text to put there") }) } })],
  write: ["Write a file whole.", object(["path", "content"], { path: FILE, content: string("Everything the file shall contain") })],
  grep: ["Search file contents.", object(["pattern"], { pattern: string("Regular expression"), path: PLACE, glob: string("Files to search"),
    ignoreCase: { type: "boolean" }, literal: { type: "boolean" }, context: number("Lines around a match"), limit: LIMIT })],
  find: ["Find files by glob.", object(["pattern"], { pattern: string("Glob"), path: PLACE, limit: LIMIT })],
  ls: ["List a directory.", object([], { path: PLACE, limit: LIMIT })],
  powershell: ["Run a PowerShell command.", object(["command"], { command: string("The command line"), timeout: number("Seconds") })],
};

/** @returns {object} create functions under pi's names */
function create(session) {
  const made = {};
  const makers = {};
  for (const [name, Name] of Object.entries(NAMES)) {
    makers[name] = (cwd, options) => tool(session, name, cwd, options);
    made[`create${Name}Tool`] = makers[name];
    made[`create${Name}ToolDefinition`] = makers[name];
  }
  const several = (names) => (cwd, options = {}) => names.map((name) => makers[name](cwd, options[name]));
  return {
    ...made,
    createCodingTools: several(["read", "bash", "edit", "write"]),
    createReadOnlyTools: several(["read", "grep", "find", "ls"]),
    createLocalBashOperations: (options) => require("./tool-ops.cjs").createLocalBashOperations(options),
  };
}

function tool(session, name, cwd, options = {}) {
  const known = session.state.builtinTools?.find((other) => other.name === name)
    ?? session.state.tools?.find((other) => other.name === name && other.source !== "extension");
  const [description, parameters] = FALLBACK[name];
  return {
    name,
    label: name,
    description: known?.description ?? description,
    parameters: known?.parameters ?? parameters,
    promptSnippet: known?.promptSnippet,
    promptGuidelines: known?.promptGuidelines,
    execute: (toolCallId, args, signal, onUpdate) => execute(session, name, cwd, options, { toolCallId, args, signal, onUpdate }),
  };
}

/** In pi, `grep` and a `find` without a search of the extension run on this machine whatever the operations are. */
const searchesHere = (name, operations) => name === "grep" || (name === "find" && typeof operations.glob !== "function");

async function execute(session, name, cwd, options, { toolCallId, args, signal, onUpdate }) {
  if (options.operations && !searchesHere(name, options.operations)) {
    const { OPERATED } = require("./tool-ops.cjs");
    if (!OPERATED[name]) throw new Error(`${name} with operations of an extension is not available headless`);
    return OPERATED[name](options, cwd ?? session.state.cwd, args, signal, onUpdate);
  }
  const params = { name, toolCallId, args, cwd: cwd ?? session.state.cwd };
  if (options.spawnHook || options.commandPrefix) {
    const base = { command: options.commandPrefix ? `${options.commandPrefix}\n${args.command}` : args.command, cwd: params.cwd, env: { ...process.env } };
    const changed = options.spawnHook?.(base) ?? base;
    params.args = { ...args, command: changed.command };
    params.cwd = changed.cwd;
    params.env = Object.fromEntries(Object.entries(changed.env ?? {}).filter(([key, value]) => process.env[key] !== value));
  }
  const result = await session.call("tool.builtin", params, { signal, onUpdate });
  if (result?.isError) throw new Error(result.content?.map(({ text }) => text ?? "").join("\n") || "the tool failed");
  return result;
}

module.exports = { create };
