/** The namespace of pi-agent-core: what extensions use of it. The agent loop itself runs in the agent: a stub. */
"use strict";
const { from } = require("./agent.cjs");

function create() {
  const made = {
    ok: (value) => ({ ok: true, value }),
    err: (error) => ({ ok: false, error }),
    toError: (value) => (value instanceof Error ? value : new Error(String(value))),
    getOrThrow(result) {
      if (result.ok) return result.value;
      throw result.error;
    },
    getOrUndefined: (result) => (result.ok ? result.value : undefined),
    createTimestamp: () => new Date().toISOString(),
    utf8ByteLength: (text) => Buffer.byteLength(text, "utf8"),
  };
  from(made, "./uuid.cjs", ["uuidv7"]);
  from(made, "./truncate.cjs", ["DEFAULT_MAX_LINES", "DEFAULT_MAX_BYTES", "GREP_MAX_LINE_LENGTH", "formatSize", "truncateHead", "truncateTail", "truncateLine"]);
  from(made, "./session-tree.cjs", ["buildSessionContext"]);
  from(made, "./messages.cjs", ["COMPACTION_SUMMARY_PREFIX", "COMPACTION_SUMMARY_SUFFIX", "BRANCH_SUMMARY_PREFIX", "BRANCH_SUMMARY_SUFFIX",
    "DEFAULT_COMPACTION_SETTINGS", "bashExecutionToText", "convertToLlm", "serializeConversation", "estimateTokens", "calculateContextTokens",
    "estimateContextTokens", "getLastAssistantUsage", "shouldCompact", "createCustomMessage", "createBranchSummaryMessage", "createCompactionSummaryMessage"]);
  return made;
}

module.exports = { create };
