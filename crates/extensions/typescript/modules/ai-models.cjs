/** Arithmetic on models and messages: costs, thinking levels, overflow, transcripts of pi 1.x (pi-core.md 4.3). */
"use strict";

const LEVELS = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];

/** Fills in the cost of a usage, in dollars; rates are per million tokens. */
function calculateCost(model, usage) {
  const tier = (model.cost.tiers ?? []).findLast(({ inputTokensAbove }) => usage.input + usage.cacheRead + usage.cacheWrite > inputTokensAbove);
  const rates = { ...model.cost, ...tier };
  const cost = {};
  for (const name of ["input", "output", "cacheRead", "cacheWrite"]) cost[name] = ((rates[name] ?? 0) / 1e6) * (usage[name] ?? 0);
  cost.total = cost.input + cost.output + cost.cacheRead + cost.cacheWrite;
  usage.cost = cost;
  return cost;
}

function getSupportedThinkingLevels(model) {
  if (!model.reasoning) return ["off"];
  const map = model.thinkingLevelMap ?? {};
  return LEVELS.filter((level) => (level === "xhigh" || level === "max" ? map[level] != null : map[level] !== null));
}

/** The nearest level the model has, a lower one first. */
function clampThinkingLevel(model, level) {
  const have = getSupportedThinkingLevels(model);
  if (have.includes(level)) return level;
  const at = LEVELS.indexOf(level);
  return LEVELS.slice(0, at).findLast((lower) => have.includes(lower)) ?? have.find((higher) => LEVELS.indexOf(higher) > at) ?? "off";
}

const OVERFLOW = [
  /prompt is too long/i, /request_too_large/i, /input is too long for requested model/i, /exceeds the context window/i,
  /exceeds (?:the )?(?:model'?s )?maximum context length/i, /input token count.*exceeds the maximum/i, /maximum prompt length is \d+/i,
  /reduce the length of the messages/i, /maximum context length is \d+ tokens/i, /is longer than the model's context length/i,
  /exceeds the limit of \d+/i, /exceeds the available context size/i, /greater than the context length/i, /context window exceed(?:s limit|ed)/i,
  /exceeded model token limit/i, /too large for model with \d+ maximum context length/i, /model_context_window_exceeded/i,
  /prompt too long/i, /prompt exceeds max length/i, /context[ _]length[ _]exceeded/i, /too many tokens/i, /token limit exceeded/i,
  /^4(?:00|13)\s*(?:status code)?\s*\(no body\)/i, /^413\b/, /API error \(413\):/i,
];
const NOT_OVERFLOW = [/^Throttling error:/i, /^Service unavailable:/i, /rate limit/i, /too many requests/i];

/** Whether an answer failed because the context was too long, said or silently. */
function isContextOverflow({ stopReason, errorMessage = "", usage }, contextWindow) {
  if (stopReason === "error") return !NOT_OVERFLOW.some((not) => not.test(errorMessage)) && OVERFLOW.some((pattern) => pattern.test(errorMessage));
  if (!contextWindow || !usage) return false;
  const sent = usage.input + usage.cacheRead;
  if (stopReason === "stop") return sent > contextWindow;
  return stopReason === "length" && usage.output === 0 && sent >= 0.99 * contextWindow;
}

/** Prompts and tools of contexts that have them beside their messages, by the list of messages. */
const BESIDE = new WeakMap();

/** Whoever asks the messages of this context for prompt and tools is to find them. */
function remember({ systemPrompt, tools, messages }) {
  if (Array.isArray(messages)) BESIDE.set(messages, { prompt: systemPrompt ?? "", tools: tools ?? [] });
}

/** The prompt and tools after all system messages of a transcript, in order. */
function currentSystem(messages) {
  if (BESIDE.has(messages) && !messages.some(({ role }) => role === "system")) return BESIDE.get(messages);
  const sections = new Map();
  const tools = new Map();
  let content = "";
  for (const message of messages) {
    if (message.role !== "system") continue;
    if (typeof message.content === "string" && message.content) content = message.content;
    for (const [name, text] of Object.entries(message.sections ?? {})) {
      if (text === null) sections.delete(name);
      else sections.set(name, text);
    }
    for (const { name } of message.toolsRemoved ?? []) tools.delete(name);
    for (const tool of message.toolsAdded ?? []) tools.set(tool.name, tool);
  }
  return { prompt: sections.size > 0 ? [...sections.values()].join("\n\n") : content, tools: [...tools.values()] };
}

function collapseSystemMessages(context) {
  const { prompt, tools } = currentSystem(context.messages);
  const rest = context.messages.filter(({ role }) => role !== "system");
  const first = prompt || tools.length > 0 ? [{ role: "system", content: prompt, toolsAdded: tools, timestamp: rest[0]?.timestamp ?? 0 }] : [];
  return { ...context, messages: [...first, ...rest] };
}

/** The same context with prompt and tools beside the messages. */
function besides(context) {
  const messages = context?.messages ?? [];
  if (!messages.some(({ role }) => role === "system")) return context;
  const { prompt, tools } = currentSystem(messages);
  const own = { systemPrompt: context.systemPrompt ?? prompt, tools: context.tools ?? tools };
  return { ...context, ...own, messages: messages.filter(({ role }) => role !== "system") };
}

module.exports = {
  remember, besides,
  calculateCost, getSupportedThinkingLevels, clampThinkingLevel, isContextOverflow, collapseSystemMessages,
  getOverflowPatterns: () => [...OVERFLOW],
  modelsAreEqual: (a, b) => Boolean(a && b) && a.id === b.id && a.provider === b.provider,
  hasApi: (model, api) => model.api === api,
  getCurrentSystemPrompt: (messages) => currentSystem(messages).prompt,
  getCurrentTools: (messages) => currentSystem(messages).tools,
  getInitialSystemMessage: (messages) => (messages[0]?.role === "system" ? messages[0] : undefined),
  withoutInitialSystemMessage: (messages) => (messages[0]?.role === "system" ? messages.slice(1) : messages),
  getSystemMessageText: (message) => currentSystem([{ ...message, role: "system" }]).prompt,
  isRecoverableLength: () => false,
};
