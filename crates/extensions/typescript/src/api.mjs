/**
 * The object an extension's default function gets: `pi`. Contexts of handlers are in context.mjs.
 * An object belongs to one extension of one session; after the session is gone its actions throw.
 */
import { exec } from "./exec.mjs";
import { registerProvider, unregisterProvider } from "./providers.mjs";
import { hearsOldNames, sourcesOf } from "./legacy.mjs";
import { ompApi } from "./omp.mjs";

/**
 * @param {import("./session.mjs").Session} session
 * @param {import("./extension.mjs").Extension} extension
 */
export function createApi(session, extension) {
  const act = (method, params) => {
    session.assertReady();
    session.tell(method, params);
  };
  const { state } = session;
  const api = {
    ...registrations(session, extension),
    ...messages(session, act),
    events: session.bus,
    exec: (command, args = [], options = {}) => exec(command, args, { cwd: state.cwd, ...options }),

    getSessionName: () => state.sessionName ?? undefined,
    setSessionName(name) {
      act("setSessionName", { name });
      state.sessionName = String(name).trim() || null;
    },
    setLabel(entryId, label) {
      act("setLabel", { entryId, label });
      session.entries.noteLabel(entryId, label);
    },

    getActiveTools: () => [...(state.activeTools ?? [])],
    getAllTools: () => allTools(session),
    setActiveTools(names) {
      session.assertReady();
      chooseTools(session, names);
    },
    getCommands: () => [...(state.commands ?? [])],
    getSettings: () => structuredClone(state.settings ?? {}),

    async setModel(model) {
      session.assertReady();
      const isSet = (await session.call("setModel", { provider: model?.provider, modelId: model?.id })) === true;
      // The state of the agent follows later; the extension reads `ctx.model` now.
      if (isSet) state.model = model;
      return isSet;
    },
    getThinkingLevel: () => state.thinkingLevel ?? "off",
    setThinkingLevel(level) {
      act("setThinkingLevel", { level });
      state.thinkingLevel = level;
    },
  };
  if (session.generation === "omp") {
    // Its extensions may await these.
    for (const name of ["setActiveTools", "setSessionName"]) {
      const act = api[name];
      api[name] = async (...args) => act(...args);
    }
  }
  // Getters stay getters.
  return Object.defineProperties(api, Object.getOwnPropertyDescriptors(generationExtras(session, extension)));
}

/** Everything that registers something. */
function registrations(session, extension) {
  const changed = () => {
    session.assertLive();
    session.changed(extension);
  };
  const need = (condition, message) => {
    if (!condition) throw new Error(message);
  };
  return {
    on: (name, handler) => listen(session, extension, name, handler),
    registerTool(tool) {
      need(tool?.name && typeof tool.execute === "function", "registerTool needs a name and an execute function");
      extension.tools.set(tool.name, tool);
      if (session.generation === "omp" && tool.defaultInactive === true) extension.inactive.add(tool.name);
      else extension.inactive.delete(tool.name);
      // The state of the agent follows later; the extension may ask now.
      const { state } = session;
      if (state.activeTools) state.activeTools = withRegistered(state.activeTools, tool, extension);
      changed();
    },
    unregisterTool(name) {
      if (extension.tools.delete(name)) changed();
    },
    registerCommand(name, options) {
      need(typeof options?.handler === "function", `registerCommand ${name} needs a handler`);
      extension.commands.set(name, options);
      changed();
    },
    registerFlag(name, options = {}) {
      extension.flags.set(name, { description: options.description, type: options.type ?? "boolean", default: options.default });
      changed();
    },
    getFlag(name) {
      const flag = extension.flags.get(name);
      if (!flag) return undefined;
      return given(flag, session.flags[name]) ?? flag.default;
    },
    registerShortcut(shortcut, options) {
      extension.shortcuts.set(shortcut, options);
      changed();
    },
    registerMessageRenderer(customType) {
      extension.renderers.add(customType);
      changed();
    },
    registerEntryRenderer() {},
    registerMarkdownTransformer() {},
    registerToolRenderer() {},
    registerProvider(provider, config) {
      registerProvider(session, extension, provider, config);
      changed();
    },
    unregisterProvider(name) {
      if (unregisterProvider(session, extension, name)) changed();
    },
    registerVirtualModel(model) {
      session.refuse(extension.path, `virtual model ${model?.provider}/${model?.id}`);
    },
    unregisterVirtualModel() {},
    registerMcpServer(name, config) {
      const other = session.extensions.find((one) => one !== extension && one.mcpServers.has(name));
      need(!other, `MCP server ${name} is registered by another extension: ${other?.path}`);
      extension.mcpServers.set(name, config);
      changed();
    },
    unregisterMcpServer(name) {
      if (extension.mcpServers.delete(name)) changed();
    },
    getMcpServers: () => session.extensions.flatMap((other) => (
      [...other.mcpServers].map(([name, config]) => ({ name, config, extensionPath: other.path })))),
  };
}

/** The active tools after a tool was registered, as the agent takes them. */
function withRegistered(active, { name, exposure, defaultActive }, { inactive }) {
  if (exposure === "hidden") return active.filter((other) => other !== name);
  return defaultActive === false || inactive.has(name) || active.includes(name) ? active : [...active, name];
}

/** The command line does not know what kind a flag is: a boolean one may have taken the next word, a string one may have none. */
function given({ type }, value) {
  if (type === "boolean") return typeof value === "string" ? value !== "false" : value;
  return value === true ? undefined : value;
}

/** @returns {() => void} removes the handler */
function listen(session, extension, name, handler) {
  session.assertLive();
  if (typeof handler !== "function") throw new Error(`on ${name} needs a handler`);
  extension.handlers.set(name, [...(extension.handlers.get(name) ?? []), handler]);
  if (hearsOldNames(session, extension)) for (const source of sourcesOf(session, name)) extension.heard.add(source);
  session.changed(extension);
  return () => {
    extension.handlers.set(name, (extension.handlers.get(name) ?? []).filter((other) => other !== handler));
    session.changed(extension);
  };
}

/** What puts something into the session. */
function messages(session, act) {
  const isOmp = session.generation === "omp";
  return {
    /** The second argument was a bare "trigger a turn" before pi 0.33. During a run, its `false` was not the one of today. */
    sendMessage(message, options) {
      const given = typeof options === "boolean" ? { triggerTurn: options || undefined } : options ?? {};
      act("sendMessage", { message, options: isOmp ? delivery(given) : given });
    },
    /** In oh-my-pi it joins a run that is active, whatever the options say. */
    sendUserMessage: (content, options) => (
      act("sendUserMessage", { content, options: isOmp ? { ...options, deliverAs: options?.deliverAs ?? "steer" } : options ?? {} })),
    appendEntry: (customType, data) => act("appendEntry", { customType, data }),
    /** Hooks before pi 0.31: text and attachments, queued while streaming. */
    send(text, attachments) {
      const images = (attachments ?? []).filter(({ type }) => type === "image")
        .map(({ content, mimeType }) => ({ type: "image", data: content, mimeType }));
      const content = images.length > 0 ? [{ type: "text", text }, ...images] : text;
      act("sendUserMessage", { content, options: session.state.isIdle ? {} : { deliverAs: "steer" } });
    },
  };
}

/** What oh-my-pi delivers as an aside starts a run if none is active. */
function delivery(options) {
  return options.deliverAs === "aside" ? { ...options, triggerTurn: true } : options;
}

/** Makes tools the active ones. The state of the agent follows later; extensions may ask now. */
export function chooseTools(session, names) {
  session.tell("setActiveTools", { names });
  const known = new Set(allTools(session).filter(({ exposure }) => exposure !== "hidden").map(({ name }) => name));
  session.state.activeTools = names.filter((name) => known.has(name));
}

/** The agent's list, and what was registered since it was sent. */
function allTools(session) {
  const known = new Map((session.state.tools ?? []).map((tool) => [tool.name, { sourceInfo: tool.source, exposure: "direct", ...tool }]));
  for (const extension of session.extensions) {
    for (const tool of extension.tools.values()) {
      const told = known.get(tool.name);
      // Another tool of this name counts, or the agent has this one without the members that mean nothing to it.
      if (told) {
        if (told.sourceInfo?.path === extension.path) Object.assign(told, members(tool));
        continue;
      }
      const { name, description, parameters, promptGuidelines } = tool;
      const sourceInfo = { path: extension.path, source: "extension", scope: extension.scope, origin: "top-level" };
      known.set(name, { name, description, parameters, promptGuidelines, ...members(tool), sourceInfo });
    }
  }
  return [...known.values()];
}

/** Members of a tool that only extensions read. */
function members({ exposure = "direct", namespace, annotations, reachesTools }) {
  return {
    exposure,
    ...(namespace ? { namespace } : {}),
    ...(annotations ? { annotations: { ...annotations } } : {}),
    ...(reachesTools ? { reachesTools } : {}),
  };
}

/** What only custom tools and omp's extensions find on their API object. */
function generationExtras(session, extension) {
  if (extension.kind !== "tool" && session.generation !== "omp") return {};
  return Object.defineProperties({
    get cwd() { return session.state.cwd; },
    get hasUI() { return session.contexts.handlerContext(extension).hasUI; },
    get ui() { return session.contexts.handlerContext(extension).ui; },
    /** omp: one argument names the extension itself. */
    setLabel(entryId, label) {
      if (label === undefined) return;
      session.assertReady();
      session.tell("setLabel", { entryId, label });
    },
  }, Object.getOwnPropertyDescriptors(ompApi(session, extension)));
}
