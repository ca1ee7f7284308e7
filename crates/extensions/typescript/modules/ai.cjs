/** The namespace of pi-ai for one session, with what its subpaths (`/oauth`, `/compat`) export. */
"use strict";
const { lazily, from } = require("./agent.cjs");

function create(session) {
  const made = {
    StringEnum: (values, options) => ({ type: "string", enum: [...values], ...options }),
    createAssistantMessageEventStream: () => new (require("./event-stream.cjs").AssistantMessageEventStream)(),
    ...models(session),
    getEnvApiKey: (provider) => process.env[`${String(provider).toUpperCase().replace(/[^A-Z0-9]/g, "_")}_API_KEY`],
    validateToolArguments: validate,
    validateToolCall(tools, call) {
      const tool = tools.find(({ name }) => name === call.name);
      if (!tool) throw new Error(`Tool "${call.name}" not found`);
      return validate(tool, call);
    },
    registerSessionResourceCleanup: () => () => {},
    cleanupSessionResources: async () => {},
    formatThrownValue: (value) => (value instanceof Error ? value.message : String(value)),
    extractDiagnosticError: (error) => ({ name: error?.name, message: error?.message ?? String(error), stack: error?.stack }),
    createAssistantMessageDiagnostic: (type, error) => ({ type, timestamp: Date.now(), error: error && { name: error.name, message: error.message } }),
    appendAssistantMessageDiagnostic: (message, diagnostic) => { message.diagnostics = [...(message.diagnostics ?? []), diagnostic]; },
    fauxText: (text) => ({ type: "text", text }),
    fauxThinking: (thinking) => ({ type: "thinking", thinking }),
    fauxToolCall: (name, args, options) => ({ type: "toolCall", id: options?.id ?? require("./uuid.cjs").uuidv7(), name, arguments: args }),
    isRetryableAssistantError: ({ stopReason, errorMessage = "" }) => stopReason === "error"
      && /overloaded|rate.?limit|too many requests|(?<![\w])(?:429|500|502|503|504|520|524)(?![\w])|service.?unavailable|connection|timeout|socket/i.test(errorMessage),
  };
  from(made, "./event-stream.cjs", ["EventStream", "AssistantMessageEventStream"]);
  from(made, "./json-repair.cjs", ["parseStreamingJson", "repairJson", "parseJsonWithRepair"]);
  from(made, "./messages.cjs", ["contentText"]);
  from(made, "./uuid.cjs", ["uuidv7"]);
  from(made, "./ai-models.cjs", ["calculateCost", "getSupportedThinkingLevels", "clampThinkingLevel", "isContextOverflow", "collapseSystemMessages",
    "getOverflowPatterns", "modelsAreEqual", "hasApi", "getCurrentSystemMessage", "getCurrentSystemPrompt", "getCurrentTools", "getInitialSystemMessage",
    "withoutInitialSystemMessage", "getSystemMessageText", "isRecoverableLength", "getModelType", "isModelType",
    "createInitialSystemMessage", "normalizeContext", "toToolDeclaration", "declarationsEqual", "getToolStateChanges", "getDeclaredTools",
    "resolveTranscript"]);
  from(made, "./tool-arguments.cjs", ["ToolCallArgumentsStream", "parseToolCallArguments"]);
  from(made, "./ai-provider.cjs", ["ModelsError", "createProvider", "defaultProviderAuthContext", "envApiKeyAuth", "lazyApi", "lazyOAuth",
    "lazyStream"]);
  lazily(made, { Type: () => require("./typebox.cjs").Type });
  return Object.assign(made, require("./ai-stream.cjs").createStreams(session), oauth(session));
}

/** The catalogue is the agent's. */
function models(session) {
  const all = () => session.models.getAll();
  const getModel = (provider, id) => session.models.find(provider, id);
  const getModels = (provider) => all().filter((model) => model.provider === provider);
  const getProviders = () => [...new Set(all().map(({ provider }) => provider))];
  // The second names are those of `pi-ai/providers/all`.
  return { getModel, getModels, getProviders, getBuiltinModel: getModel, getBuiltinModels: getModels, getBuiltinProviders: getProviders };
}

function validate(tool, { arguments: given }) {
  const { Value } = require("./typebox-value.cjs").create();
  return Value.Parse(tool.parameters, structuredClone(given ?? {}));
}

/** Logins are the agent's; keys of a logged-in provider can be asked for. */
function oauth(session) {
  const providers = () => [...new Set(session.models.getAll().map(({ provider }) => provider))].map((id) => ({ id, name: id, available: true }));
  return {
    getOAuthProviders: providers,
    getOAuthProviderInfoList: providers,
    getOAuthProvider: (id) => providers().find((provider) => provider.id === id),
    async getOAuthApiKey(provider) {
      const apiKey = await session.models.getApiKeyForProvider(provider);
      return apiKey ? { apiKey, newCredentials: undefined } : null;
    },
    normalizeDomain: (domain) => domain?.trim().replace(/^https?:\/\//, "").replace(/\/.*$/, "") || null,
  };
}

module.exports = { create };
