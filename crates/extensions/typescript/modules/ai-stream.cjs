/** Requests to models: they go to the agent (`llm.stream`), which has the keys and speaks the providers' protocols. */
"use strict";
const { AssistantMessageEventStream } = require("./event-stream.cjs");
const { besides } = require("./ai-models.cjs");

/** Extensions may name a transport by its API: the request then goes past registered providers. */
const APIS = {
  Anthropic: "anthropic-messages", OpenAIResponses: "openai-responses", OpenAICompletions: "openai-completions",
  OpenAICodexResponses: "openai-codex-responses", AzureOpenAIResponses: "azure-openai-responses", Google: "google-generative-ai",
  GoogleVertex: "google-vertex", Mistral: "mistral-conversations",
};
/** The same under the names of pi 1.x. */
const API_OBJECTS = {
  anthropicMessagesApi: "anthropic-messages", openAIResponsesApi: "openai-responses", openAICompletionsApi: "openai-completions",
  openAICodexResponsesApi: "openai-codex-responses", azureOpenAIResponsesApi: "azure-openai-responses",
  googleGenerativeAIApi: "google-generative-ai", googleVertexApi: "google-vertex", mistralConversationsApi: "mistral-conversations",
  bedrockConverseStreamApi: "bedrock-converse-stream", piMessagesApi: "pi-messages",
};

/** Providers registered by API name inside this process (`registerApiProvider`), per session. */
function createStreams(session) {
  const registered = new Map();

  const viaAgent = (model, context, options = {}, extra = {}) => {
    const stream = new AssistantMessageEventStream();
    const { signal, ...rest } = options;
    const told = Object.fromEntries(Object.entries(rest).filter(([, value]) => typeof value !== "function"));
    const builder = new Partial(model);
    let ended = false;
    const onUpdate = (event) => {
      if (event.type === "done" || event.type === "error") return;
      stream.push(builder.see(event));
    };
    const finish = (message) => {
      ended = true;
      const bad = message.stopReason === "error" || message.stopReason === "aborted";
      stream.push(bad ? { type: "error", reason: message.stopReason, error: message } : { type: "done", reason: message.stopReason, message });
    };
    session.call("llm.stream", { model, context: besides(context), options: told, ...extra }, { signal, onUpdate }).then(finish, (error) => {
      if (!ended) finish(builder.failed(signal?.aborted ? "aborted" : "error", error.message));
    });
    return stream;
  };

  const streamSimple = (model, context, options) => {
    const own = registered.get(model?.api);
    return own ? (own.streamSimple ?? own.stream)(model, context, options) : viaAgent(model, context, options, { simple: true });
  };
  const stream = (model, context, options) => {
    const own = registered.get(model?.api);
    return own ? (own.stream ?? own.streamSimple)(model, context, options) : viaAgent(model, context, options);
  };
  const direct = (api) => (model, context, options) => viaAgent({ ...model, api }, context, options, { direct: true });

  const made = {
    stream,
    streamSimple,
    complete: (...args) => stream(...args).result(),
    completeSimple: (...args) => streamSimple(...args).result(),
    registerApiProvider: (provider) => registered.set(provider.api, provider),
    unregisterApiProviders: () => registered.clear(),
    clearApiProviders: () => registered.clear(),
    resetApiProviders: () => registered.clear(),
    getApiProvider: (api) => registered.get(api),
    getApiProviders: () => [...registered.values()],
    registerBuiltInApiProviders() {},
  };
  for (const [name, api] of Object.entries(APIS)) made[`stream${name}`] = made[`streamSimple${name}`] = direct(api);
  for (const [name, api] of Object.entries(API_OBJECTS)) made[name] = () => ({ api, stream: direct(api), streamSimple: direct(api) });
  return made;
}

/** The message so far, which each event carries; the agent does not send it with every one. */
class Partial {
  #message;

  /** @param {object} [model] who answers; @param {object} [begun] the message so far, where it is known */
  constructor(model = {}, begun = undefined) {
    this.#message = begun ? structuredClone(begun) : {
      role: "assistant", content: [], api: model.api, provider: model.provider, model: model.id, stopReason: "stop", timestamp: Date.now(),
      usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } },
    };
  }

  see(event) {
    if (event.partial) this.#message = event.partial;
    else this.#apply(event);
    return { ...event, partial: this.#message };
  }

  #apply({ type, contentIndex: at, delta, content, toolCall, id, toolName }) {
    const blocks = this.#message.content;
    if (type === "text_start") blocks[at] = { type: "text", text: "" };
    else if (type === "thinking_start") blocks[at] = { type: "thinking", thinking: "" };
    else if (type === "toolcall_start") blocks[at] = { type: "toolCall", id, name: toolName, arguments: {} };
    else if (type === "text_delta" && blocks[at]) blocks[at].text += delta;
    else if (type === "thinking_delta" && blocks[at]) blocks[at].thinking += delta;
    else if (type === "text_end" && blocks[at] && content !== undefined) blocks[at].text = content;
    else if (type === "thinking_end" && blocks[at] && content !== undefined) blocks[at].thinking = content;
    else if (type === "toolcall_end" && toolCall) blocks[at] = toolCall;
  }

  failed(stopReason, errorMessage) {
    return { ...this.#message, stopReason, errorMessage };
  }
}

module.exports = { createStreams, Partial };
