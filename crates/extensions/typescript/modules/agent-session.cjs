/**
 * `createAgentSession` and what belongs to it: a session of the agent's beside the extension's own, spoken to in the
 * commands of the agent's protocol over the door. It has no extensions, keys never come here, and it ends with its owner.
 */
"use strict";
const { randomUUID } = require("node:crypto");
const path = require("node:path");
const { Partial } = require("./ai-stream.cjs");

/** Roles of messages that are entries of a session. */
const KEPT = new Set(["user", "assistant", "toolResult"]);

/** What an answer says, without what it thinks and calls. */
function textOf(message) {
  const { content } = message ?? {};
  if (typeof content === "string") return content;
  return (content ?? []).filter(({ type }) => type === "text").map(({ text }) => text).join("");
}

/** A session as its owner sees it. */
class AgentSession {
  #owner;
  #handle = randomUUID();
  #listeners = new Set();
  #tools = new Map();
  #running = new Map();
  /** Those who wait for the session to be quiet. */
  #waiting = [];
  #state = {};
  #messages = [];
  #activeTools = [];
  #cwd;
  #manager;
  #streaming = false;
  #partial;
  #begun;
  #ended = false;

  constructor(owner) {
    this.#owner = owner;
  }

  /** @returns {Promise<AgentSession>} one that is open */
  async open(options, tools, manager) {
    const sessions = (this.#owner.agentSessions ??= new Map());
    sessions.set(this.#handle, (news) => this.#hear(news));
    try {
      const told = await this.#owner.call("session.create", { session: this.#handle, ...options });
      this.#state = told.state;
      this.#messages = told.messages;
      this.#activeTools = told.activeTools;
      this.#cwd = told.cwd;
      this.#manager = manager;
      if (manager?.isPersisted() && !manager.getSessionFile() && this.#state.sessionFile) manager.follow(this.#state.sessionFile, this.#state.sessionId);
      for (const tool of tools) this.#tools.set(tool.name, tool);
      if (tools.length > 0) {
        const lent = tools.map(({ name, label, description, parameters }) => ({ name, label, description: description ?? "", parameters: plain(parameters) }));
        const { toolNames } = await this.#command({ type: "set_host_tools", tools: lent });
        this.#activeTools = [...this.#activeTools, ...toolNames];
      }
    } catch (error) {
      sessions.delete(this.#handle);
      throw error;
    }
    return this;
  }

  #command(command) {
    if (this.#ended) return Promise.reject(new Error("This session has ended"));
    return this.#owner.call("session.command", { session: this.#handle, command });
  }

  #frame(frame) {
    if (!this.#ended) this.#owner.tell("session.frame", { session: this.#handle, frame });
  }

  #hear({ event, ended }) {
    if (ended) return this.#end();
    switch (event.type) {
      case "agent_start": this.#streaming = true; break;
      case "message_start": this.#begun = new Partial(event.message, event.message); break;
      case "message_update": return void this.#update(event);
      case "message_end":
        this.#partial = undefined;
        this.#messages = [...this.#messages, event.message];
        if (KEPT.has(event.message.role) && !this.#manager?.isPersisted()) this.#manager?.appendMessage(event.message);
        break;
      case "thinking_level_changed": this.#state.thinkingLevel = event.level; break;
      case "host_tool_call": return void this.#runTool(event);
      case "host_tool_cancel": return void this.#running.get(event.targetId)?.abort();
      case "extension_ui_request": return void this.#passOn(event);
      case "compaction_end":
        this.#tell(event);
        return void this.#refresh();
      case "agent_settled": return void this.#settle(event);
    }
    this.#tell(event);
    return undefined;
  }

  /** The agent tells what is new; listeners find the message so far. */
  #update(event) {
    const assistantMessageEvent = this.#begun?.see(event.assistantMessageEvent ?? {}) ?? event.assistantMessageEvent;
    this.#partial = event.message ?? assistantMessageEvent?.partial;
    this.#tell({ ...event, message: this.#partial, assistantMessageEvent });
  }

  #tell(event) {
    for (const listener of [...this.#listeners]) {
      try {
        listener(event);
      } catch (error) {
        this.#owner.failure(error, undefined, "session_event");
      }
    }
  }

  #settle(event) {
    this.#streaming = false;
    this.#tell(event);
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  async #refresh() {
    const { messages } = await this.#command({ type: "get_messages" }).catch(() => ({ messages: this.#messages }));
    this.#messages = messages;
  }

  /** A tool that the extension gave the session. */
  async #runTool({ id, toolCallId, toolName, arguments: args }) {
    const stop = new AbortController();
    this.#running.set(id, stop);
    let result;
    let isError;
    try {
      const tool = this.#tools.get(toolName);
      if (!tool) throw new Error(`Tool ${toolName} not found`);
      const context = this.#context();
      const input = tool.prepareArguments ? tool.prepareArguments(args) : args;
      const onUpdate = (partial) => this.#frame({ type: "host_tool_update", id, partialResult: partial });
      result = await tool.execute(toolCallId, input, stop.signal, onUpdate, context);
      if (typeof result === "string") result = { content: [{ type: "text", text: result }] };
      isError = result?.isError === true;
    } catch (error) {
      result = { content: [{ type: "text", text: error?.message ?? String(error) }] };
      isError = true;
    }
    this.#running.delete(id);
    this.#frame({ type: "host_tool_result", id, result: result ?? { content: [] }, isError });
  }

  #context() {
    const [extension] = this.#owner.extensions;
    const own = { cwd: this.#cwd, model: this.model, sessionManager: this.sessionManager };
    return extension ? { ...this.#owner.contexts.handlerContext(extension), ...own } : own;
  }

  /** A question to the user goes to the owner's client. */
  async #passOn({ id, method, ...params }) {
    const dialogs = { select: "value", input: "value", editor: "value", confirm: "confirmed" };
    const member = dialogs[method];
    if (!member) return;
    const answer = await this.#owner.call(`ui.${method}`, params).catch(() => null);
    const given = answer === null || answer === undefined ? { cancelled: true } : { [member]: answer };
    this.#frame({ type: "extension_ui_response", id, ...given });
  }

  #end() {
    if (this.#ended) return;
    this.#ended = true;
    this.#streaming = false;
    this.#owner.agentSessions?.delete(this.#handle);
    for (const stop of this.#running.values()) stop.abort();
    for (const resolve of this.#waiting.splice(0)) resolve();
    this.#listeners.clear();
  }

  /** @returns {() => void} ends it */
  subscribe(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Resolves when the run has ended with all that follows from it; at once for what only joins a queue. */
  async prompt(text, { images, streamingBehavior, preflightResult } = {}) {
    // Listening begins first: a short run may be over when the answer is looked at.
    let quieten;
    const quiet = new Promise((resolve) => { this.#waiting.push(quieten = resolve); });
    const forget = () => { this.#waiting = this.#waiting.filter((other) => other !== quieten); };
    let told;
    try {
      told = await this.#command({ type: "prompt", message: text, images, streamingBehavior });
    } catch (error) {
      forget();
      preflightResult?.(false);
      throw error;
    }
    preflightResult?.(true);
    if (told?.disposition === "started") return quiet;
    forget();
    return undefined;
  }

  async sendUserMessage(content, options = {}) {
    const images = typeof content === "string" ? undefined : content.filter(({ type }) => type === "image");
    return this.prompt(textOf({ content }), { images, streamingBehavior: options.deliverAs });
  }

  async steer(text, images) { return (await this.#command({ type: "steer", message: text, images }))?.disposition ?? "queued"; }
  async followUp(text, images) { return (await this.#command({ type: "follow_up", message: text, images }))?.disposition ?? "queued"; }

  async abort() {
    if (this.#ended) return;
    await this.#command({ type: "abort" });
    await this.waitForIdle();
  }

  async waitForIdle() {
    if (!this.#streaming || this.#ended) return;
    await new Promise((resolve) => { this.#waiting.push(resolve); });
  }

  /** Aborts what is under way and ends the session. */
  dispose() {
    if (this.#ended) return;
    this.#owner.tell("session.dispose", { session: this.#handle });
    this.#end();
  }

  async setModel(model) {
    this.#state.model = await this.#command({ type: "set_model", provider: model.provider, modelId: model.id });
    return true;
  }
  setThinkingLevel(level) {
    this.#state.thinkingLevel = level;
    this.#later({ type: "set_thinking_level", level });
  }
  setSessionName(name) {
    this.#state.sessionName = name;
    this.#later({ type: "set_session_name", name });
  }
  setAutoCompactionEnabled(enabled) { this.#later({ type: "set_auto_compaction", enabled }); }
  setAutoRetryEnabled(enabled) { this.#later({ type: "set_auto_retry", enabled }); }
  #later(command) {
    this.#command(command).catch((error) => this.#owner.host.log("warn", `${command.type}: ${error.message}`));
  }
  compact(customInstructions) { return this.#command({ type: "compact", customInstructions }); }
  abortRetry() { this.#later({ type: "abort_retry" }); }
  async clearQueue() { return this.#command({ type: "clear_queue" }); }
  async getSessionStats() { return this.#command({ type: "get_session_stats" }); }
  async exportToHtml(outputPath) { return (await this.#command({ type: "export_html", outputPath }))?.path; }

  get messages() { return this.#messages; }
  get model() { return this.#state.model ?? undefined; }
  get thinkingLevel() { return this.#state.thinkingLevel; }
  get isStreaming() { return this.#streaming; }
  get isIdle() { return !this.#streaming; }
  get sessionId() { return this.#state.sessionId; }
  get sessionFile() { return this.#state.sessionFile ?? undefined; }
  get sessionName() { return this.#state.sessionName; }
  get sessionManager() { return this.#manager; }
  get modelRegistry() { return this.#owner.models; }
  get extensionRunner() { return undefined; }
  getActiveToolNames() { return [...this.#activeTools]; }
  getAllTools() { return this.#activeTools.map((name) => ({ name, ...this.#tools.get(name) })); }
  getLastAssistantText() {
    const text = textOf(this.#messages.findLast(({ role }) => role === "assistant")).trim();
    return text || undefined;
  }
  getUserMessagesForForking() { return []; }
  async bindExtensions() {}
  async reload() {}

  /** The agent inside, as far as extensions look at it. */
  get state() {
    return {
      messages: this.#messages,
      model: this.model,
      thinkingLevel: this.thinkingLevel,
      isStreaming: this.#streaming,
      streamMessage: this.#partial ?? null,
      streamingMessage: this.#partial,
      tools: this.getAllTools(),
    };
  }
  get agent() {
    return {
      state: this.state,
      abort: () => void this.abort(),
      waitForIdle: () => this.waitForIdle(),
      subscribe: (listener) => this.subscribe(listener),
      steer: (message) => void this.steer(textOf(message)),
      followUp: (message) => void this.followUp(textOf(message)),
    };
  }
}

/** A schema without what is not JSON. */
function plain(schema) {
  return JSON.parse(JSON.stringify(schema ?? { type: "object", properties: {} }));
}

/** The names in a list of tools: today names, before pi 0.68 the tools themselves. */
function names(tools, custom) {
  if (!Array.isArray(tools)) return undefined;
  if (tools.every((tool) => typeof tool === "string")) return tools;
  return [...tools.map((tool) => (typeof tool === "string" ? tool : tool.name)), ...custom.map(({ name }) => name)];
}

/** Texts of a resource loader. One that is not ours brings all its texts itself. */
async function textsOf(loader, cwd) {
  if (!loader) return {};
  if (loader instanceof DefaultResourceLoader) return loader.wanted(cwd);
  const files = loader.getAgentsFiles?.().agentsFiles ?? [];
  const append = [loader.getAppendSystemPrompt?.() ?? []].flat();
  const context = files.map((file) => `## ${file.path}\n\n${file.content}`);
  return {
    systemPrompt: loader.getSystemPrompt?.() ?? undefined,
    appendSystemPrompt: [...append, ...context],
    noContextFiles: true,
    noSkills: true,
    noPromptTemplates: true,
    skillPaths: (loader.getSkills?.().skills ?? []).map(({ filePath }) => filePath).filter(Boolean),
  };
}

/** pi's resource loader, as far as a session beside another needs it: which texts there are. Its extensions are never loaded. */
class DefaultResourceLoader {
  #options;

  constructor(options = {}) {
    this.#options = options;
  }

  async reload() {}

  wanted(cwd) {
    const o = this.#options;
    const base = o.cwd ?? cwd;
    const prompt = o.systemPromptOverride ? o.systemPromptOverride(o.systemPrompt) : o.systemPrompt;
    const append = [o.appendSystemPrompt ?? []].flat();
    const files = o.agentsFilesOverride?.({ agentsFiles: [] }).agentsFiles ?? [];
    const appended = o.appendSystemPromptOverride ? o.appendSystemPromptOverride(append) : append;
    return {
      systemPrompt: prompt ?? undefined,
      appendSystemPrompt: [...appended, ...files.map((file) => `## ${file.path}\n\n${file.content}`)],
      noContextFiles: o.noContextFiles === true || o.agentsFilesOverride !== undefined,
      noSkills: o.noSkills === true || o.skillsOverride !== undefined,
      noPromptTemplates: o.noPromptTemplates === true || o.promptsOverride !== undefined,
      skillPaths: (o.additionalSkillPaths ?? []).map((file) => path.resolve(base, file)),
    };
  }

  getSystemPrompt() { return this.wanted().systemPrompt; }
  getAppendSystemPrompt() { return this.wanted().appendSystemPrompt; }
  getExtensions() { return { extensions: [], errors: [], runtime: {} }; }
  getSkills() { return { skills: [], diagnostics: [] }; }
  getPrompts() { return { prompts: [], diagnostics: [] }; }
  getThemes() { return { themes: [], diagnostics: [] }; }
  getAgentsFiles() { return { agentsFiles: [] }; }
  getPathMetadata() { return new Map(); }
  extendResources() {}
}

/**
 * @param {object} owner the session of the extension, see src/session.mjs
 */
function create(owner) {
  const { SessionManager } = require("./session-manager.cjs");
  async function createAgentSession(options = {}) {
    const { model, customTools = [], sessionManager, cwd = owner.state.cwd } = options;
    const isInMemory = sessionManager && !sessionManager.isPersisted?.();
    const manager = sessionManager ?? SessionManager.create(cwd);
    if (!manager.getSessionFile() && manager.getEntries().length > 0) {
      throw new Error("createAgentSession cannot take over the entries of a SessionManager in memory");
    }
    const texts = await textsOf(options.resourceLoader, cwd);
    const wanted = {
      cwd,
      ...texts,
      persist: !isInMemory,
      sessionFile: manager.getSessionFile(),
      provider: model?.provider,
      modelId: model?.id,
      thinkingLevel: options.thinkingLevel,
      tools: names(options.tools, customTools),
      excludeTools: options.excludeTools ?? [],
      noTools: options.noTools,
    };
    const session = await new AgentSession(owner).open(wanted, customTools, manager);
    return { session, extensionsResult: { extensions: [], errors: [], runtime: {} } };
  }
  return { createAgentSession, AgentSession, DefaultResourceLoader };
}

module.exports = { create };
