/**
 * `ctx.modelRegistry`: the models from the agent's snapshot file, and keys asked of the agent when needed.
 */
import fs from "node:fs";

export class Models {
  #session;
  #read = { path: undefined, stamp: "", models: [], available: new Set(), error: undefined, oauth: new Set() };

  /** @param {import("./session.mjs").Session} session */
  constructor(session) {
    this.#session = session;
  }

  /** The snapshot, read again when the agent has written a new one. */
  get #snapshot() {
    const path = this.#session.state.modelsFile;
    if (!path) return this.#read;
    try {
      const { mtimeMs, size } = fs.statSync(path);
      const stamp = `${mtimeMs}:${size}`;
      if (path !== this.#read.path || stamp !== this.#read.stamp) {
        const raw = JSON.parse(fs.readFileSync(path, "utf8"));
        const models = Array.isArray(raw) ? raw : raw.models ?? [];
        const available = new Set(raw.available ?? models.filter(({ available }) => available !== false).map(key));
        this.#read = { path, stamp, models, available, error: raw.error, oauth: new Set(raw.oauth ?? []) };
      }
    } catch (error) {
      this.#session.host.log("warn", `the list of models cannot be read: ${error.message}`);
      this.#read = { ...this.#read, path };
    }
    return this.#read;
  }

  /** What was registered just now is not in the agent's list yet. */
  get #fresh() {
    const known = new Set(this.#snapshot.models.map(key));
    const providers = this.#session.extensions.flatMap((extension) => [...extension.providers]);
    return providers.flatMap(([provider, { told }]) => (told.models ?? []).map((model) => ({
      name: model.id, reasoning: false, input: ["text"], cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
      contextWindow: 128_000, maxTokens: 16_384, ...model,
      api: model.api ?? told.api, baseUrl: model.baseUrl ?? told.baseUrl, provider,
    }))).filter((model) => !known.has(key(model)));
  }

  getAll() { return [...this.#snapshot.models, ...this.#fresh]; }
  getAvailable() {
    const { models, available } = this.#snapshot;
    return models.filter((model) => available.has(key(model)));
  }
  find(provider, modelId) {
    return this.getAll().find((model) => model.provider === provider && model.id === modelId);
  }
  /** The agent has chat models only, so other types find none. */
  getModelsOfType(type, provider) { return ofType(this.getAll(), type, provider); }
  async getAvailableOfType(type, provider) { return ofType(this.getAvailable(), type, provider); }
  getModelOfType(type, provider, modelId) { return this.getModelsOfType(type, provider).find(({ id }) => id === modelId); }
  findOfType(type, provider, modelId) { return this.getModelOfType(type, provider, modelId); }
  /** In pi these two fail with a result, too. */
  async classify(model) { return { ...unsupported(model, "classification"), answers: {} }; }
  async generateImages(model) { return { ...unsupported(model, "image generation"), output: [] }; }
  getError() { return this.#snapshot.error; }
  hasConfiguredAuth(model) { return this.#snapshot.available.has(key(model)); }
  isUsingOAuth(model) { return this.#snapshot.oauth.has(model.provider); }
  getProviderAuthStatus(provider) {
    const configured = this.getAvailable().some((model) => model.provider === provider);
    return { configured, source: configured ? "agent" : undefined };
  }
  getProviderDisplayName(provider) { return this.getProvider(provider)?.name ?? provider; }
  /** A whole provider as its extension has registered it, or the known members of any other one. */
  getProvider(id) {
    const native = this.getRegisteredNativeProvider(id);
    if (native) return native;
    const models = () => ofType(this.getAll(), "chat", id);
    const [first] = models();
    const config = this.getRegisteredProviderConfig(id);
    if (!first && !config) return undefined;
    return { id, name: config?.name ?? id, baseUrl: config?.baseUrl ?? first?.baseUrl, headers: config?.headers, getModels: models };
  }
  async refresh() { return { aborted: false, errors: new Map() }; }

  /** The key for a model, looked up as for a request of the agent's own. */
  async getApiKey(model) {
    return (await this.#key({ provider: model.provider, modelId: model.id }))?.apiKey;
  }
  async getApiKeyForProvider(provider) { return (await this.#key({ provider }))?.apiKey; }
  async getProviderAuth(provider) {
    const auth = await this.#key({ provider });
    return auth ? { auth, source: "agent" } : undefined;
  }
  async getApiKeyAndHeaders(model) {
    try {
      const found = await this.#session.call("llm.key", { provider: model.provider, modelId: model.id });
      if (!found) return { ok: false, error: `No API key found for "${model.provider}"` };
      return { ok: true, ...found };
    } catch (error) {
      return { ok: false, error: error.message };
    }
  }
  async #key(params) {
    this.#session.assertLive();
    return this.#session.call("llm.key", params);
  }

  stream(model, context, options) { return this.#ai.stream(model, context, options); }
  streamSimple(model, context, options) { return this.#ai.streamSimple(model, context, options); }
  complete(model, context, options) { return this.#ai.complete(model, context, options); }
  get #ai() { return this.#session.modules.get("@earendil-works/pi-ai/compat"); }

  registerProvider(provider, config) { this.#session.extensions[0]?.api.registerProvider(provider, config); }
  unregisterProvider(name) {
    for (const extension of this.#session.extensions) extension.api?.unregisterProvider(name);
  }
  registerVirtualModel(model) { this.#session.extensions[0]?.api.registerVirtualModel(model); }
  unregisterVirtualModel() {}
  getRegisteredProviderIds() { return this.#session.extensions.flatMap(({ providers }) => [...providers.keys()]); }
  getRegisteredProviderConfig(name) {
    return this.#session.extensions.find(({ providers }) => providers.has(name))?.providers.get(name).config;
  }
  getRegisteredNativeProvider(name) {
    return this.#session.extensions.map(({ providers }) => providers.get(name)).find((entry) => entry?.told.native)?.config;
  }
}

/** The models of a type, which is `chat` if a model names none. */
const ofType = (models, type, provider) => (
  models.filter((model) => (model.type ?? "chat") === type && (provider === undefined || model.provider === provider)));

/** The result of an operation that only models of other types have. */
const unsupported = ({ api, provider, id }, what) => ({
  api, provider, model: id, stopReason: "error", timestamp: Date.now(), errorMessage: `Provider ${provider} does not support ${what}`,
});

const key = ({ provider, id }) => `${provider}/${id}`;
