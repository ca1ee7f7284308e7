/**
 * pi-coding-agent's `ModelRuntime` and `resolveCliModel`: what extensions that make sessions of their own choose models with.
 * There is one list of models and it is the agent's; keys and requests are the agent's too.
 */
"use strict";

const LEVELS = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];

/** @param {object} session see src/session.mjs */
function create(session) {
  const { models } = session;
  const ai = () => session.modules.get("@earendil-works/pi-ai");
  const of = (list, provider) => (provider ? list.filter((model) => model.provider === provider) : list);
  const members = {
    getModels: (provider) => of(models.getAll(), provider),
    getAllModels: (provider) => of(models.getAll(), provider),
    getModel: (provider, id) => models.find(provider, id),
    getAvailable: async (provider) => of(models.getAvailable(), provider),
    getAllAvailable: async (provider) => of(models.getAvailable(), provider),
    getAvailableSnapshot: () => models.getAvailable(),
    hasConfiguredAuth: (provider) => models.getProviderAuthStatus(provider).configured,
    getProviders: () => [...new Set(models.getAll().map(({ provider }) => provider))].map((id) => ({ id, name: id })),
    checkAuth: async (provider) => (models.getProviderAuthStatus(provider).configured ? { ok: true } : undefined),
    getAuth: async (what) => models.getProviderAuth(typeof what === "string" ? what : what.provider),
    registerNativeProvider: (provider) => models.registerProvider(provider),
    completeSimple: (model, context, options) => ai().completeSimple(model, context, options),
  };
  /** Whatever else is asked of it, the registry answers. */
  const runtime = new Proxy(models, {
    get(target, name) {
      if (name in members) return members[name];
      const value = target[name];
      return typeof value === "function" ? value.bind(target) : value;
    },
    has: (target, name) => name in members || name in target,
  });
  const ModelRuntime = function () { return runtime; };
  ModelRuntime.create = async () => runtime;
  return { ModelRuntime, resolveCliModel: (asked) => resolve(models.getAll(), asked) };
}

/** A model by `provider/id`, by its id, or by what either begins with; `:level` at the end asks for thinking. */
function resolve(all, { cliProvider, cliModel, cliThinking }) {
  const nothing = { model: undefined, thinkingLevel: cliThinking, warning: undefined, error: undefined };
  if (!cliModel) return nothing;
  const level = LEVELS.find((name) => cliModel.endsWith(`:${name}`));
  const lists = [[cliModel, cliThinking], ...(level ? [[cliModel.slice(0, -level.length - 1), cliThinking ?? level]] : [])];
  const candidates = all.filter(({ provider }) => !cliProvider || provider === cliProvider);
  const tests = [
    ({ provider, id }, text) => `${provider}/${id}` === text, ({ id }, text) => id === text,
    ({ provider, id }, text) => `${provider}/${id}`.startsWith(text), ({ id }, text) => id.startsWith(text),
  ];
  for (const fits of tests) {
    for (const [text, thinkingLevel] of lists) {
      const model = candidates.find((one) => fits(one, text));
      if (model) return { ...nothing, model, thinkingLevel };
    }
  }
  return { ...nothing, error: `Model "${cliModel}" not found. Use --list-models to see available models.` };
}

module.exports = { create };
