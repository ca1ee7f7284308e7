/** The namespace of pi-coding-agent for one session. Names that are not here are stubs (names.cjs). */
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const { agentDir } = require("./paths.cjs");

/** The version of pi whose interface this is. */
const VERSION = "1.5.2";

/** One change of a file at a time, by its real path. */
const queues = new Map();

async function withFileMutationQueue(file, work) {
  const key = realPath(file);
  const before = queues.get(key) ?? Promise.resolve();
  const mine = before.then(work, work);
  const settled = mine.catch(() => {});
  queues.set(key, settled);
  try {
    return await mine;
  } finally {
    if (queues.get(key) === settled) queues.delete(key);
  }
}

/** Found at once, so that changes take place in the order they were asked for. */
function realPath(file) {
  try {
    return fs.realpathSync(file);
  } catch {
    return path.resolve(file);
  }
}

const isResultOf = (name) => (event) => event.toolName === name;

/** Members made when first read: most extensions need few of them. */
function lazily(target, members) {
  for (const [name, make] of Object.entries(members)) {
    Object.defineProperty(target, name, { enumerable: true, configurable: true, get: make });
  }
  return target;
}

/** The exports of a file of this folder, loaded when one of them is read. */
function from(target, file, names) {
  return lazily(target, Object.fromEntries(names.map((name) => [name, () => require(file)[name]])));
}

function create(session) {
  const made = {
    VERSION,
    APP_NAME: "pi",
    CONFIG_DIR_NAME: ".pi",
    CURRENT_SESSION_VERSION: 3,
    getAgentDir: agentDir,
    getPackageDir: agentDir,
    defineTool: (tool) => tool,
    isToolCallEventType: (name, event) => event.toolName === name,
    isBashToolResult: isResultOf("bash"),
    isReadToolResult: isResultOf("read"),
    isEditToolResult: isResultOf("edit"),
    isWriteToolResult: isResultOf("write"),
    isGrepToolResult: isResultOf("grep"),
    isFindToolResult: isResultOf("find"),
    isLsToolResult: isResultOf("ls"),
    isPowerShellToolResult: isResultOf("powershell"),
    withFileMutationQueue,
    createEventBus: () => {
      const handlers = new Map();
      const on = (channel, handler) => {
        handlers.set(channel, [...(handlers.get(channel) ?? []), handler]);
        return () => handlers.set(channel, handlers.get(channel).filter((other) => other !== handler));
      };
      return { on, emit: (channel, data) => (handlers.get(channel) ?? []).forEach((handler) => handler(data)), clear: () => handlers.clear() };
    },
    createSyntheticSourceInfo: (file, { source = "extension", scope = "temporary", origin = "top-level", baseDir } = {}) => ({ path: file, source, scope, origin, baseDir }),
    getShellConfig: () => ({ shell: "/bin/bash", args: ["-c"] }),
    migrateSessionEntries() {},
    /** What extensions share in pi; here nothing reads it, but resource loaders of extensions hand it on. */
    createExtensionRuntime: () => ({ flagValues: new Map(), pendingProviderRegistrations: [] }),
    getLatestCompactionEntry: (entries) => entries.findLast(({ type }) => type === "compaction") ?? null,
    wrapRegisteredTool: ({ definition }) => definition,
    copyToClipboard: async () => { throw new Error("copyToClipboard of pi-coding-agent is not available headless"); },
    formatDimensionNote: () => undefined,
  };
  from(made, "./truncate.cjs", ["DEFAULT_MAX_LINES", "DEFAULT_MAX_BYTES", "formatSize", "truncateHead", "truncateTail", "truncateLine"]);
  from(made, "./messages.cjs", ["convertToLlm", "serializeConversation", "estimateTokens", "calculateContextTokens", "getLastAssistantUsage",
    "shouldCompact", "DEFAULT_COMPACTION_SETTINGS"]);
  from(made, "./text-files.cjs", ["parseFrontmatter", "stripFrontmatter", "getLanguageFromPath", "parseSkillBlock"]);
  from(made, "./skills.cjs", ["loadSkills", "loadSkillsFromDir", "formatSkillsForPrompt"]);
  from(made, "./session-tree.cjs", ["buildSessionContext", "buildContextEntries", "buildSessionProjection"]);
  from(made, "./session-file.cjs", ["parseSessionEntries"]);
  from(made, "./session-manager.cjs", ["SessionManager"]);
  from(made, "./agent-ui.cjs", UI_NAMES);
  let auth;
  const authFor = () => (auth ??= require("./settings.cjs").createAuth(session));
  lazily(made, { AuthStorage: () => authFor().AuthStorage, ModelRegistry: () => authFor().ModelRegistry });
  from(made, "./settings.cjs", ["SettingsManager"]);
  let runtime;
  const runtimeFor = () => (runtime ??= require("./model-runtime.cjs").create(session));
  lazily(made, { ModelRuntime: () => runtimeFor().ModelRuntime, resolveCliModel: () => runtimeFor().resolveCliModel });
  // Only oh-my-pi has it here.
  if (session?.generation === "omp") lazily(made, { logger: () => require("./utils.cjs").logger(session) });
  lazily(made, { sessionEntryToContextMessages: () => require("./session-tree.cjs").entryMessages });
  let sessions;
  const sessionNames = ["createAgentSession", "AgentSession", "DefaultResourceLoader"];
  lazily(made, Object.fromEntries(sessionNames.map((name) => [name, () => (sessions ??= require("./agent-session.cjs").create(session))[name]])));
  let tools;
  const toolNames = ["Read", "Bash", "Edit", "Write", "Grep", "Find", "Ls", "PowerShell"].flatMap((name) => [`create${name}Tool`, `create${name}ToolDefinition`])
    .concat(["createCodingTools", "createReadOnlyTools", "createLocalBashOperations"]);
  lazily(made, Object.fromEntries(toolNames.map((name) => [name, () => (tools ??= require("./agent-tools.cjs").create(session))[name]])));
  return made;
}

/** Exports of agent-ui.cjs, named here so that it is not loaded for its names. */
const UI_NAMES = ["Theme", "DynamicBorder", "BorderedLoader", "CustomEditor", "getMarkdownTheme", "getSelectListTheme",
  "getSettingsListTheme", "initTheme", "highlightCode", "renderDiff", "keyText", "keyHint", "rawKeyHint", "truncateToVisualLines"];

module.exports = { create, lazily, from };
