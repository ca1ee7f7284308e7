/**
 * Providers that extensions bring: what the agent is told of them, and the calls it makes (`provider.*`).
 */

/**
 * @param {string|object} provider a name with a configuration, or a whole provider object of pi 1.x
 * @param {object} [config]
 */
export function registerProvider(session, extension, provider, config) {
  const native = typeof provider === "object" && provider !== null;
  const name = native ? provider.id : provider;
  if (!name) throw new Error("registerProvider needs a name");
  const entry = native ? nativeProvider(provider) : configured(config ?? {});
  extension.providers.set(name, entry);
  if (!session.loading) session.tell("registerProvider", { name, config: entry.told });
}

/** @returns {boolean} whether it was there */
export function unregisterProvider(session, extension, name) {
  if (!extension.providers.delete(name)) return false;
  if (!session.loading) session.tell("unregisterProvider", { name });
  return true;
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
  return {
    config: provider,
    stream: (...args) => provider.streamSimple(...args),
    auth,
    told: { native: true, name, baseUrl, headers, models: [...(provider.getModels?.() ?? [])], streams: true, authenticates: Boolean(auth) },
  };
}

/** Calls of the agent to a provider: [method]: (session, entry, params, tools) => value */
export const PROVIDER_CALLS = {
  "provider.stream": stream,
  "provider.refreshModels": (session, { refreshModels }, params, { signal }) => refreshModels({ ...params, signal, publish() {} }),
  "provider.oauth.login": (session, { oauth }, params, { signal, extension }) => oauth.login(loginCallbacks(session, extension, signal)),
  "provider.oauth.refresh": (session, { oauth }, { credentials }, { signal }) => oauth.refreshToken(credentials, signal),
  "provider.oauth.key": (session, { oauth }, { credentials }) => ({ apiKey: oauth.getApiKey(credentials) }),
  "provider.oauth.models": (session, { oauth }, { models, credentials }) => oauth.modifyModels?.(models, credentials) ?? models,
};

/** Runs the extension's stream; its events are updates, its message the result. */
async function stream(session, entry, { request }, { signal, update, room }) {
  const { model, context, options = {} } = request;
  if (!entry.stream) throw new Error(`the provider ${model?.provider} has no stream of its own`);
  const events = await entry.stream(model, context, {
    ...options,
    signal,
    onPayload: async (payload) => (await session.events.local("before_provider_request", { payload }))?.payload,
    onResponse: (response) => session.events.notify("after_provider_response", { status: response?.status, headers: response?.headers ?? {} }),
  });
  let message;
  for await (const event of events) {
    if (event.type === "done") message = event.message;
    if (event.type === "error") message = event.error;
    update(lean(event));
    await room();
  }
  return message ?? (await events.result());
}

/** The cumulative message is left out: the agent builds its own. */
function lean({ partial, ...event }) {
  return event.type === "start" ? { ...event, partial } : event;
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
