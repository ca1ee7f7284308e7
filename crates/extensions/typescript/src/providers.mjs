/**
 * Providers that extensions bring: what the agent is told of them, and the calls it makes (`provider.*`).
 */

import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { remember } = require("../modules/ai-models.cjs");
const { defaultProviderAuthContext } = require("../modules/ai-provider.cjs");

/**
 * @param {string|{ id: string, [member: string]: any }} provider a name with a configuration, or a whole provider object of pi 1.x
 * @param {object} [config]
 */
export function registerProvider(session, extension, provider, config) {
  const native = typeof provider === "object" && provider !== null;
  const name = native ? provider.id : provider;
  if (!name) throw new Error("registerProvider needs a name");
  if (!native && !config) throw new Error("Provider config is required when registering by name");
  const before = native ? undefined : extension.providers.get(name);
  const entry = native ? nativeProvider(provider) : configured(merged(before, config));
  extension.providers.set(name, entry);
  if (!session.loading) session.tell("registerProvider", { name, config: entry.told });
}

/** @returns {boolean} whether it was there */
export function unregisterProvider(session, extension, name) {
  if (!extension.providers.delete(name)) return false;
  if (!session.loading) session.tell("unregisterProvider", { name });
  return true;
}

/** Who registers again changes what it says, and what it leaves out stays. */
function merged(before, config) {
  if (!before || before.told.native) return config;
  return { ...before.config, ...Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined)) };
}

function configured(config) {
  const { streamSimple, stream, oauth, refreshModels, images, classifiers, ...data } = config;
  return {
    config,
    stream: streamSimple ?? stream,
    oauth,
    refreshModels,
    told: {
      ...data,
      oauth: oauth && { name: oauth.name, isSubscription: oauth.isSubscription, changesModels: Boolean(oauth.modifyModels) },
      streams: Boolean(streamSimple ?? stream) || undefined,
      refreshes: Boolean(refreshModels) || undefined,
    },
  };
}

function nativeProvider(provider) {
  const { name, baseUrl, headers, auth } = provider;
  const models = [...(provider.getModels?.() ?? [])].map((model) => ({ ...model, provider: undefined }));
  const { oauth } = auth ?? {};
  /** The newest result of the login, and the key that tells its requests from others: the agent carries nothing else. */
  let login;
  return {
    config: provider,
    stream: async (model, context, options) => {
      const request = await authorized(provider, model, options, login);
      return provider.streamSimple(request.model, transcript(context), request.options);
    },
    oauth: oauth && {
      login: (callbacks) => oauth.login(interaction(callbacks)),
      refreshToken: (credentials, signal) => oauth.refresh(credentials, signal),
      getAuth: async (credentials) => {
        const given = await oauth.toAuth(credentials);
        // A login may give headers only. The agent needs a key for a provider with a login, and its token is one.
        login = { key: given.apiKey ?? credentials.access, auth: given };
        return { apiKey: login.key, headers: given.headers };
      },
    },
    refreshModels: async (context) => {
      await provider.refreshModels(context);
      return [...provider.getModels()].map((model) => ({ ...model, provider: undefined }));
    },
    told: {
      native: true, name, baseUrl, headers, models, streams: true, authenticates: Boolean(auth),
      refreshes: typeof provider.refreshModels === "function" || undefined,
      oauth: oauth?.login && { name: oauth.name, changesModels: false },
      // It finds its key itself, if it needs one.
      open: !auth || Boolean(auth.apiKey),
    },
  };
}

/** A request with the key, the headers and the address that the login or the provider itself has for it. */
async function authorized(provider, model, options, login) {
  const isLogin = Boolean(login?.key) && options.apiKey === login.key;
  const found = isLogin ? login : await ownKey(provider, model, options);
  const { auth = {}, env } = found ?? {};
  return {
    model: auth.baseUrl ? { ...model, baseUrl: auth.baseUrl } : model,
    options: {
      ...options,
      ...(env ? { env: { ...env, ...options.env } } : {}),
      // Without the key of the agent if the provider gave only headers: a gateway may forward it to another provider.
      apiKey: found ? auth.apiKey : options.apiKey,
      headers: withHeaders(auth.headers, options.headers),
    },
  };
}

/** A whole provider knows itself where its key is. */
async function ownKey(provider, model, options) {
  const { apiKey } = provider.auth ?? {};
  if (typeof apiKey?.resolve !== "function") return undefined;
  const found = await apiKey.resolve({
    ctx: defaultProviderAuthContext(),
    credential: options.apiKey ? { type: "api_key", key: options.apiKey } : undefined,
    signal: options.signal,
    model,
  });
  if (!found && !options.apiKey) throw new Error(`No API key found for ${provider.id}`);
  return found;
}

/** Headers over others. Names that differ in case only are one header. */
function withHeaders(below, over) {
  if (!below) return over;
  const names = new Set(Object.keys(over ?? {}).map((name) => name.toLowerCase()));
  return { ...Object.fromEntries(Object.entries(below).filter(([name]) => !names.has(name.toLowerCase()))), ...over };
}

/** How providers of pi 1.x talk to the user during a login, in the words of those before. */
function interaction({ signal, onAuth, onDeviceCode, onPrompt, onProgress, onSelect }) {
  return {
    signal,
    prompt: async (prompt) => (prompt.type === "select" ? onSelect(prompt) : onPrompt(prompt)),
    notify(event) {
      if (event.type === "auth_url") onAuth(event);
      else if (event.type === "device_code") onDeviceCode(event);
      else if (event.message) onProgress(event.message);
    },
  };
}

/** pi 1.x: the prompt and the tools are a message. */
function transcript({ systemPrompt, tools = [], messages = [] }) {
  if (!systemPrompt && tools.length === 0) return { messages };
  const system = { role: "system", content: systemPrompt ?? "", toolsAdded: tools, timestamp: messages[0]?.timestamp ?? 0 };
  return { messages: [system, ...messages] };
}

/** Calls of the agent to a provider: [method]: (session, entry, params, tools) => value */
export const PROVIDER_CALLS = {
  "provider.stream": stream,
  "provider.refreshModels": refresh,
  "provider.oauth.login": (session, { oauth }, params, { signal, extension }) => oauth.login(loginCallbacks(session, extension, signal)),
  "provider.oauth.refresh": (session, { oauth }, { credentials }, { signal }) => oauth.refreshToken(credentials, signal),
  "provider.oauth.key": async (session, { oauth, told }, { credentials }) => (
    told.native ? oauth.getAuth(credentials) : { apiKey: await oauth.getApiKey(credentials) }),
  "provider.oauth.models": (session, { oauth }, { models, credentials }) => oauth.modifyModels?.(models, credentials) ?? models,
};

/** Finds out which models there are. They stay part of what the provider says of itself. */
async function refresh(session, entry, { provider, ...context }, { signal }) {
  const publish = async (publication) => {
    publication?.update?.();
    return true;
  };
  const models = await entry.refreshModels({ ...context, signal, publish });
  if (Array.isArray(models)) entry.told = { ...entry.told, models };
  return models;
}

/** Runs the extension's stream; its events are updates, its message the result. */
async function stream(session, entry, { request }, { signal, update, room }) {
  const { model, context, options = {} } = request;
  if (!entry.stream) throw new Error(`the provider ${model?.provider} has no stream of its own`);
  remember(context);
  const events = await entry.stream(model, context, {
    ...options,
    signal,
    onPayload: async (payload) => (await session.events.local("before_provider_request", { payload }))?.payload,
    onResponse: (response) => session.events.notify("after_provider_response", { status: response?.status, headers: response?.headers ?? {} }),
  });
  let message;
  for await (const event of events) {
    if (event.type === "done") message = event.message;
    else if (event.type === "error") message = event.error;
    else update(lean(event));
    await room();
  }
  return message ?? (await ended(events));
}

/** The result of a stream that ended; one that ended without a result has none. */
function ended(events) {
  const nothing = new Promise((resolve) => setTimeout(resolve, 1000, null));
  return typeof events.result === "function" ? Promise.race([events.result(), nothing]) : null;
}

/** The cumulative message is left out: the agent builds its own. What only the message says of a call is said with its start. */
function lean({ partial, message, error, ...event }) {
  if (event.type !== "toolcall_start") return event;
  const { id, name } = partial?.content?.[event.contentIndex] ?? {};
  return { id, toolName: name, ...event };
}

/** A login talks to the user through the dialogs every extension has. */
function loginCallbacks(session, extension, signal) {
  const { ui } = session.contexts.handlerContext(extension);
  const ask = async (prompt) => {
    const answer = await ui.input(prompt?.message ?? "", prompt?.placeholder, { signal });
    if (answer === undefined && !prompt?.allowEmpty) throw new Error("Login cancelled");
    return answer ?? "";
  };
  return {
    signal,
    onAuth: ({ url, instructions }) => ui.openUrl(url, { instructions }),
    onDeviceCode: ({ verificationUri, userCode }) => ui.openUrl(verificationUri, { instructions: `Code: ${userCode}` }),
    onPrompt: ask,
    onManualCodeInput: () => ask({ message: "Paste the code or the address you were sent to" }),
    onProgress: (message) => ui.notify(message),
    async onSelect({ message, options }) {
      const label = await ui.select(message, options.map((option) => option.label), { signal });
      return options.find((option) => option.label === label)?.id;
    },
  };
}
