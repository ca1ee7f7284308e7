/** Messages as the model sees them, as text, and their size (pi-core.md 1.12, 3.3, 3.5). */
"use strict";

const COMPACTION_SUMMARY_PREFIX = "The conversation history before this point was compacted into the following summary:\n\n<summary>\n";
const COMPACTION_SUMMARY_SUFFIX = "\n</summary>";
const BRANCH_SUMMARY_PREFIX = "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n";
const BRANCH_SUMMARY_SUFFIX = "</summary>";
/** Characters of a tool result or argument that a summary request holds. */
const MAX_TOOL_CHARS = 2000;
/** Characters an image counts as. */
const IMAGE_CHARS = 4800;

const user = (content, timestamp) => ({ role: "user", content: typeof content === "string" ? [{ type: "text", text: content }] : content, timestamp });

function bashExecutionToText({ command, output, cancelled, exitCode, truncated, fullOutputPath }) {
  const parts = [`Ran \`${command}\`\n${output ? `\`\`\`\n${output}\n\`\`\`` : "(no output)"}`];
  if (cancelled) parts.push("(command cancelled)");
  else if (exitCode) parts.push(`Command exited with code ${exitCode}`);
  if (truncated && fullOutputPath) parts.push(`[Output truncated. Full output: ${fullOutputPath}]`);
  return parts.join("\n\n");
}

/** @returns {object[]} only what a model takes */
function convertToLlm(messages) {
  return messages.flatMap((message) => {
    switch (message.role) {
      case "user": case "assistant": case "toolResult": case "system": return [message];
      case "bashExecution": return message.excludeFromContext ? [] : [user(bashExecutionToText(message), message.timestamp)];
      case "custom": return [user(message.content, message.timestamp)];
      case "branchSummary": return [user(BRANCH_SUMMARY_PREFIX + message.summary + BRANCH_SUMMARY_SUFFIX, message.timestamp)];
      case "compactionSummary": return [user(COMPACTION_SUMMARY_PREFIX + message.summary + COMPACTION_SUMMARY_SUFFIX, message.timestamp)];
      default: return [];
    }
  });
}

/** @returns {string} text blocks joined */
function contentText(content, separator = "\n") {
  if (typeof content === "string") return content;
  return (content ?? []).filter(({ type }) => type === "text").map(({ text }) => text).join(separator);
}

function shortened(text) {
  if (text.length <= MAX_TOOL_CHARS) return text;
  return `${text.slice(0, MAX_TOOL_CHARS)}\n[${text.length - MAX_TOOL_CHARS} more characters left out]`;
}

/** @returns {string} a conversation as text for a summary: it cannot be mistaken for one to go on with */
function serializeConversation(messages) {
  const parts = [];
  for (const { role, content } of messages) {
    if (role === "user") parts.push(["User", contentText(content)]);
    else if (role === "toolResult") parts.push(["Tool result", shortened(contentText(content))]);
    else if (role === "assistant") {
      const calls = content.filter(({ type }) => type === "toolCall").map(callText).join("; ");
      parts.push(["Assistant", contentText(content)], ["Assistant tool calls", calls]);
    }
  }
  return parts.filter(([, text]) => text).map(([who, text]) => `[${who}]: ${text}`).join("\n\n");
}

function callText({ name, arguments: given }) {
  return `${name}(${Object.entries(given ?? {}).map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(", ")})`;
}

/** @returns {number} tokens, guessed from characters */
function estimateTokens(message) {
  const { role, content } = message;
  let chars = 0;
  if (role === "bashExecution") chars = (message.command?.length ?? 0) + (message.output?.length ?? 0);
  else if (message.summary !== undefined) chars = message.summary.length;
  else if (typeof content === "string") chars = content.length;
  else {
    for (const block of content ?? []) {
      if (block.type === "text") chars += block.text.length;
      else if (block.type === "thinking") chars += block.thinking.length;
      else if (block.type === "toolCall") chars += block.name.length + JSON.stringify(block.arguments ?? {}).length;
      else if (block.type === "image") chars += IMAGE_CHARS;
    }
  }
  if (role === "system") {
    for (const text of Object.values(message.sections ?? {})) chars += text?.length ?? 0;
    if (message.toolsAdded) chars += JSON.stringify(message.toolsAdded).length;
  }
  return Math.ceil(chars / 4);
}

function calculateContextTokens(usage) {
  return usage.totalTokens || usage.input + usage.output + usage.cacheRead + usage.cacheWrite;
}

function lastAssistantUsage(messages) {
  const at = messages.findLastIndex(({ role, stopReason, usage }) => (
    role === "assistant" && usage && stopReason !== "aborted" && stopReason !== "error"));
  return at < 0 ? undefined : { usage: messages[at].usage, index: at };
}

/** @returns {{tokens: number, usageTokens: number, trailingTokens: number, lastUsageIndex: number|null}} */
function estimateContextTokens(messages) {
  const last = lastAssistantUsage(messages);
  const sum = (list) => list.reduce((total, message) => total + estimateTokens(message), 0);
  if (!last) return { tokens: sum(messages), usageTokens: 0, trailingTokens: sum(messages), lastUsageIndex: null };
  const usageTokens = calculateContextTokens(last.usage);
  const trailingTokens = sum(messages.slice(last.index + 1));
  return { tokens: usageTokens + trailingTokens, usageTokens, trailingTokens, lastUsageIndex: last.index };
}

const at = (timestamp) => (typeof timestamp === "number" ? timestamp : Date.parse(timestamp) || Date.now());

module.exports = {
  COMPACTION_SUMMARY_PREFIX, COMPACTION_SUMMARY_SUFFIX, BRANCH_SUMMARY_PREFIX, BRANCH_SUMMARY_SUFFIX,
  DEFAULT_COMPACTION_SETTINGS: { enabled: true, reserveTokens: 16384, keepRecentTokens: 20000 },
  bashExecutionToText, convertToLlm, contentText, serializeConversation, estimateTokens, calculateContextTokens, estimateContextTokens,
  getLastAssistantUsage(entries) {
    return lastAssistantUsage(entries.map((entry) => entry.message ?? entry))?.usage;
  },
  shouldCompact: (tokens, window, settings) => settings.enabled && tokens > window - settings.reserveTokens,
  createCustomMessage: (customType, content, display, details, timestamp) => ({ role: "custom", customType, content, display, details, timestamp: at(timestamp) }),
  createBranchSummaryMessage: (summary, fromId, timestamp) => ({ role: "branchSummary", summary, fromId, timestamp: at(timestamp) }),
  createCompactionSummaryMessage: (summary, tokensBefore, timestamp) => ({ role: "compactionSummary", summary, tokensBefore, timestamp: at(timestamp) }),
};
