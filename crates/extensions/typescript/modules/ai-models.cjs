/** Arithmetic on models and messages: costs, thinking levels, overflow, transcripts of pi 1.x (pi-core.md 4.3). */
"use strict";
const { contentText } = require("./messages.cjs");

const LEVELS = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];

/** Fills in the cost of a usage, in dollars; rates are per million tokens. */
function calculateCost(model, usage) {
  const { input = 0, output = 0, cacheRead = 0, cacheWrite = 0, cacheWrite1h = 0 } = usage;
  const tiers = (model.cost.tiers ?? []).filter(({ inputTokensAbove }) => input + cacheRead + cacheWrite > inputTokensAbove);
  const rates = { ...model.cost, ...tiers.sort((a, b) => a.inputTokensAbove - b.inputTokensAbove).at(-1) };
  const price = (name, tokens) => ((rates[name] ?? 0) / 1e6) * tokens;
  const cost = {
    input: price("input", input),
    output: price("output", output),
    cacheRead: price("cacheRead", cacheRead),
    // Anthropic charges twice the price of the input for what is kept for an hour.
    cacheWrite: price("cacheWrite", cacheWrite - cacheWrite1h) + price("input", 2 * cacheWrite1h),
  };
  usage.cost = { ...cost, total: cost.input + cost.output + cost.cacheRead + cost.cacheWrite };
  return usage.cost;
}

function getSupportedThinkingLevels(model) {
  if (!model.reasoning) return ["off"];
  const map = model.thinkingLevelMap ?? {};
  return LEVELS.filter((level) => (level === "xhigh" || level === "max" ? map[level] != null : map[level] !== null));
}

/** The nearest level the model has, a higher one first. */
function clampThinkingLevel(model, level) {
  const have = getSupportedThinkingLevels(model);
  const at = LEVELS.indexOf(level);
  if (at < 0) return have[0] ?? "off";
  return LEVELS.slice(at).find((higher) => have.includes(higher)) ?? have.at(-1) ?? "off";
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
  const texts = [];
  const sections = new Map();
  const tools = new Map();
  for (const message of messages) {
    if (message.role !== "system") continue;
    texts.push(contentText(message.content));
    for (const [name, text] of Object.entries(message.sections ?? {})) {
      if (text === null) sections.delete(name);
      else sections.set(name, text);
    }
    for (const { name } of message.toolsRemoved ?? []) tools.delete(name);
    for (const tool of message.toolsAdded ?? []) tools.set(tool.name, tool);
  }
  return { prompt: [...texts, ...sections.values()].filter(Boolean).join("\n\n"), tools: [...tools.values()] };
}

/** Prompt and tools as one message, which stands for all system messages. */
function currentSystemMessage(messages) {
  const { prompt, tools } = currentSystem(messages);
  if (!prompt && tools.length === 0) return undefined;
  return { role: "system", content: prompt, toolsAdded: tools, timestamp: messages[0]?.timestamp ?? 0 };
}

function collapseSystemMessages(context) {
  const first = currentSystemMessage(context.messages);
  const rest = context.messages.filter(({ role }) => role !== "system");
  return { ...context, messages: first ? [first, ...rest] : rest };
}

/** The same context with prompt and tools beside the messages. */
function besides(context) {
  const messages = context?.messages ?? [];
  if (!messages.some(({ role }) => role === "system")) return context;
  const { prompt, tools } = currentSystem(messages);
  const own = { systemPrompt: context.systemPrompt ?? prompt, tools: context.tools ?? tools };
  return { ...context, ...own, messages: messages.filter(({ role }) => role !== "system") };
}

/** The type of a model. A model that names none chats. */
const getModelType = (model) => model.type ?? "chat";
const isModelType = (model, type) => getModelType(model) === type;

/** Prompt and tools as the message that a transcript begins with; none without either. */
function createInitialSystemMessage(systemPrompt, tools) {
  if (!systemPrompt && !tools?.length) return undefined;
  return { role: "system", content: systemPrompt ?? "", ...(tools?.length ? { toolsAdded: tools } : {}), timestamp: 0 };
}

/** A context as a transcript. */
function normalizeContext({ systemPrompt, tools, messages }) {
  const first = createInitialSystemMessage(systemPrompt, tools);
  return { messages: first ? [first, ...messages] : messages };
}

/** The members of a tool that a model receives. */
function toToolDeclaration({ name, description, parameters, constrainedSampling }) {
  const sampling = constrainedSampling === undefined ? {} : { constrainedSampling };
  return { name, description, parameters: JSON.parse(JSON.stringify(parameters)), ...sampling };
}
const declarationsEqual = (a, b) => JSON.stringify(toToolDeclaration(a)) === JSON.stringify(toToolDeclaration(b));

/** The difference between two lists of tools. A changed tool is removed and added. */
function getToolStateChanges(previous, current) {
  const lacks = (list) => (tool) => !list.some((other) => other.name === tool.name && declarationsEqual(other, tool));
  return {
    toolsAdded: current.filter(lacks(previous)).map(toToolDeclaration),
    toolsRemoved: previous.filter(lacks(current)).map(({ name }) => ({ name })),
  };
}

/** Each tool that a transcript declares, also if it removes it later. */
function getDeclaredTools(messages) {
  const tools = messages.flatMap(({ role, toolsAdded }) => (role === "system" ? toolsAdded ?? [] : []));
  return [...new Map(tools.map((tool) => [tool.name, tool])).values()];
}

module.exports = {
  remember, besides, getModelType, isModelType,
  createInitialSystemMessage, normalizeContext, toToolDeclaration, declarationsEqual, getToolStateChanges, getDeclaredTools,
  resolveTranscript: (context, acceptsLaterPrompts) => (acceptsLaterPrompts ? context : collapseSystemMessages(context)),
  calculateCost, getSupportedThinkingLevels, clampThinkingLevel, isContextOverflow, collapseSystemMessages,
  getOverflowPatterns: () => [...OVERFLOW],
  modelsAreEqual: (a, b) => Boolean(a && b) && a.id === b.id && a.provider === b.provider,
  hasApi: (model, api) => model.api === api,
  getCurrentSystemMessage: currentSystemMessage,
  getCurrentSystemPrompt: (messages) => currentSystem(messages).prompt,
  getCurrentTools: (messages) => currentSystem(messages).tools,
  getInitialSystemMessage: (messages) => (messages[0]?.role === "system" ? messages[0] : undefined),
  withoutInitialSystemMessage: (messages) => (messages[0]?.role === "system" ? messages.slice(1) : messages),
  getSystemMessageText: (message) => currentSystem([{ ...message, role: "system" }]).prompt,
  isRecoverableLength: ({ stopReason, usage }, wanted) => stopReason === "length" && wanted > 0 && usage.output < wanted,
};
