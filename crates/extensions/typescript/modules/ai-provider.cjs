/** `createProvider` of pi-ai, and the parts that extensions make whole providers of (src/providers.mjs). */
"use strict";
const fs = require("node:fs");
const os = require("node:os");
const { AssistantMessageEventStream } = require("./event-stream.cjs");
const { Partial } = require("./ai-stream.cjs");
const { getModelType, isModelType } = require("./ai-models.cjs");

class ModelsError extends Error {
  constructor(code, message, options) {
    super(message, options);
    this.name = "ModelsError";
    this.code = code;
  }
}

/** A stream whose source is made meanwhile. If that fails, the stream ends with the error. */
function lazyStream(model, setup, _observer, signal) {
  const stream = new AssistantMessageEventStream();
  const pass = async () => {
    const source = await setup();
    let hasEnded = false;
    for await (const event of source) {
      hasEnded ||= event.type === "done" || event.type === "error";
      stream.push(event);
    }
    stream.end(hasEnded ? undefined : await source.result?.());
  };
  pass().catch((error) => {
    const reason = signal?.aborted ? "aborted" : "error";
    stream.push({ type: "error", reason, error: new Partial(model).failed(reason, error?.message ?? String(error)) });
  });
  return stream;
}

/** The functions of an API whose module is loaded with the first request. */
function lazyApi(load) {
  const later = (name) => (model, context, options) => (
    lazyStream(model, async () => (await load())[name](model, context, options), undefined, options?.signal));
  return { stream: later("stream"), streamSimple: later("streamSimple") };
}

/** A login whose module is loaded when it is first used. */
function lazyOAuth({ name, isSubscription, loginLabel, load }) {
  let loading;
  const loaded = () => (loading ??= load());
  return {
    name, isSubscription, loginLabel,
    login: async (...args) => (await loaded()).login(...args),
    refresh: async (...args) => (await loaded()).refresh(...args),
    toAuth: async (credential) => (await loaded()).toAuth(credential),
  };
}

/** A key that is stored, or else in the first of these variables that is set. */
function envApiKeyAuth(name, variables) {
  return {
    name,
    login: async (interaction) => ({ type: "api_key", key: await interaction.prompt({ type: "secret", message: `Enter ${name}` }) }),
    async resolve({ ctx, credential, signal }) {
      signal?.throwIfAborted();
      if (credential?.key) return { auth: { apiKey: credential.key }, env: credential.env, source: "stored credential" };
      for (const variable of variables) {
        const value = await ctx.env(variable);
        if (value) return { auth: { apiKey: value }, source: variable };
      }
      return undefined;
    },
  };
}

/** Where whole providers look for their keys. */
function defaultProviderAuthContext() {
  return {
    async env(name) {
      const value = process.env[name];
      return value?.trim() ? value : undefined;
    },
    fileExists: async (file) => fs.existsSync(file.replace(/^~/, os.homedir())),
  };
}

const TYPES = ["chat", "image", "classifier"];

/** A whole provider of its parts. `api` serves all models, or is a map by the API of a model. */
function createProvider(input) {
  const { id, api, models, fetchModels } = input;
  const single = typeof api?.stream === "function" ? api : undefined;
  const maps = [single ? undefined : api, input.images, input.classifiers];
  if (!single && !maps.some((map) => Object.values(map ?? {}).some(Boolean))) {
    throw new Error(`Provider ${id}: at least one of "api", "images", or "classifiers" is required.`);
  }
  let fetched = [];
  const same = (a) => (b) => a.id === b.id && getModelType(a) === getModelType(b);
  const all = () => [...models.map((model) => fetched.find(same(model)) ?? model), ...fetched.filter((model) => !models.some(same(model)))];
  const ask = (name) => (model, context, options) => {
    const functions = single ?? api?.[model.api];
    if (functions) return functions[name](model, context, options);
    return lazyStream(model, async () => {
      throw new ModelsError("stream", `Provider ${id} has no API implementation for "${model.api}"`);
    }, undefined, options?.signal);
  };
  const refreshModels = async (context) => {
    const stored = context.stored?.models.filter(({ provider }) => provider === id);
    if (stored && !(await context.publish({ update: () => { fetched = stored; } }))) return;
    if (!context.allowNetwork || context.signal?.aborted) return;
    const found = (await fetchModels(context)).filter((model) => TYPES.includes(getModelType(model)));
    if (context.signal?.aborted) return;
    await context.publish({ persist: { models: found, checkedAt: Date.now() }, update: () => { fetched = found; } });
  };
  return {
    id,
    name: input.name ?? id,
    baseUrl: input.baseUrl,
    headers: input.headers,
    auth: input.auth,
    getModels: () => all().filter((model) => isModelType(model, "chat")),
    getAllModels: all,
    refreshModels: fetchModels && refreshModels,
    filterModels: input.filterModels,
    filterAllModels: input.filterAllModels,
    stream: ask("stream"),
    streamSimple: ask("streamSimple"),
  };
}

module.exports = { ModelsError, createProvider, defaultProviderAuthContext, envApiKeyAuth, lazyApi, lazyOAuth, lazyStream };
