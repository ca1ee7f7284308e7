// A session of the agent: its commands as methods, by the names that pi's RpcClient has for them.
import { Commands } from "./commands.js";
import { ProtocolError, TimedOut, within } from "./errors.js";
import { Run } from "./run.js";
import { definition } from "./tools.js";

export class Session extends Commands {
  /** @param {any} agent the agent; undefined when the object is the agent itself @param {string|undefined} handle */
  constructor(agent, handle) {
    super();
    this.handle = handle;
    /** @type {any} not enumerable, so that a printed session does not print its agent */
    this.agent_ = undefined;
    Object.defineProperty(this, "agent_", { value: agent ?? this, enumerable: false, writable: false, configurable: false });
  }

  /**
   * Sends any command and gives what it answers. Parameters that are undefined are left out.
   * @param {string} type
   * @param {object} [params]
   * @param {{ timeoutMs?: number }} [options]
   */
  call(type, params = {}, { timeoutMs } = {}) {
    return this.agent_.send_(this.handle, type, params, timeoutMs);
  }

  // Prompting

  async prompt(message, images) {
    await this.call("prompt", { message, images });
  }

  /**
   * Prompts and gives what follows.
   * @param {string} message
   * @param {{ images?: object[], streamingBehavior?: string, outputSchema?: object, limits?: object, fallbackModels?: string[],
   *   idleTimeoutMs?: number }} [options]
   */
  async run(message, { idleTimeoutMs, ...options } = {}) {
    const events = this.events({ idleTimeoutMs });
    try {
      const { images, streamingBehavior, outputSchema, limits, fallbackModels } = options;
      const params = { message, images, streamingBehavior, outputSchema, limits, fallbackModels };
      const accepted = await this.agent_.send_(this.handle, "prompt", params, undefined, () => events.clear());
      return new Run(this, events, accepted?.disposition ?? "started");
    } catch (error) {
      events.close();
      throw error;
    }
  }

  /** Prompts and gives the text of the last answer; throws RunFailed when the model failed. After `timeoutMs` it aborts. */
  async ask(message, options = {}) {
    return (await this.#finish(message, options)).throwIfFailed().text;
  }

  /** Prompts and gives a value that fits the JSON Schema; throws RunFailed if the run gives none. */
  async askJson(message, schema, options = {}) {
    return (await this.#finish(message, { ...options, outputSchema: schema })).throwIfNoResult().result;
  }

  async #finish(message, { timeoutMs = 3_600_000, ...options }) {
    let run;
    const finish = async () => {
      run = await this.run(message, options);
      return await run.result();
    };
    try {
      // The answer to the prompt, too: it comes after a compaction or the start of MCP servers.
      return await within(finish(), timeoutMs, "no complete answer");
    } catch (error) {
      if (error instanceof TimedOut) {
        run?.close();
        this.abort().catch(() => {});
      }
      throw error;
    }
  }

  async steer(message, images) {
    await this.call("steer", { message, images });
  }

  async followUp(message, images) {
    await this.call("follow_up", { message, images });
  }

  async abort() {
    await this.call("abort");
  }

  clearQueue() {
    return this.call("clear_queue");
  }

  // Events

  /**
   * All events from now on, as an async iterator.
   * @param {{ idleTimeoutMs?: number }} [options]
   */
  events({ idleTimeoutMs } = {}) {
    return this.agent_.listen_(this.handle, idleTimeoutMs);
  }

  /** Calls a function with every event; gives a function that ends it. */
  onEvent(listener) {
    return this.agent_.hear_(this.handle, listener);
  }

  /** Resolves when nothing more happens by itself. Begin to wait before, or right after, prompting. */
  async waitForIdle(timeoutMs = 60_000) {
    await this.collectEvents(timeoutMs);
  }

  /** Events from now until nothing more happens by itself. */
  async collectEvents(timeoutMs = 60_000) {
    const events = this.events({ idleTimeoutMs: timeoutMs });
    const collect = async () => {
      const collected = [];
      for await (const event of events) {
        collected.push(event);
        if (event.type === "agent_settled") break;
      }
      return collected;
    };
    try {
      return await within(collect(), timeoutMs, "the agent is not idle");
    } finally {
      events.close();
    }
  }

  /** Prompts and gives all events of the run. */
  async promptAndWait(message, images, timeoutMs = 60_000) {
    let run;
    const collect = async () => {
      run = await this.run(message, { images });
      const collected = [];
      for await (const event of run) collected.push(event);
      return collected;
    };
    try {
      return await within(collect(), timeoutMs, "the agent is not idle");
    } finally {
      run?.close();
    }
  }

  // State

  getState() {
    return this.call("get_state");
  }

  async getMessages() {
    return (await this.call("get_messages")).messages;
  }

  getEntries(since) {
    return this.call("get_entries", { since });
  }

  getTree() {
    return this.call("get_tree");
  }

  async getLastAssistantText() {
    return (await this.call("get_last_assistant_text")).text;
  }

  getSessionStats() {
    return this.call("get_session_stats");
  }

  async getContextUsage() {
    return (await this.call("get_context_usage")).usage;
  }

  async getCommands() {
    return (await this.call("get_commands")).commands;
  }

  // Model and modes

  setModel(provider, modelId) {
    return this.call("set_model", { provider, modelId });
  }

  cycleModel() {
    return this.call("cycle_model");
  }

  async getAvailableModels() {
    return (await this.call("get_available_models")).models;
  }

  async setThinkingLevel(level) {
    await this.call("set_thinking_level", { level });
  }

  cycleThinkingLevel() {
    return this.call("cycle_thinking_level");
  }

  async getAvailableThinkingLevels() {
    return (await this.call("get_available_thinking_levels")).levels;
  }

  async setSteeringMode(mode) {
    await this.call("set_steering_mode", { mode });
  }

  async setFollowUpMode(mode) {
    await this.call("set_follow_up_mode", { mode });
  }

  async setAutoCompaction(enabled) {
    await this.call("set_auto_compaction", { enabled });
  }

  async setAutoRetry(enabled) {
    await this.call("set_auto_retry", { enabled });
  }

  async abortRetry() {
    await this.call("abort_retry");
  }

  // Work beside the conversation

  compact(customInstructions) {
    return this.call("compact", { customInstructions });
  }

  /** @param {string} command @param {{ excludeFromContext?: boolean, timeoutMs?: number }} [options] */
  bash(command, { excludeFromContext, timeoutMs } = {}) {
    return this.call("bash", { command, excludeFromContext }, { timeoutMs });
  }

  async abortBash() {
    await this.call("abort_bash");
  }

  exportHtml(outputPath) {
    return this.call("export_html", { outputPath });
  }

  // Session files

  newSession(parentSession) {
    return this.call("new_session", { parentSession });
  }

  switchSession(sessionPath) {
    return this.call("switch_session", { sessionPath });
  }

  fork(entryId) {
    return this.call("fork", { entryId });
  }

  clone() {
    return this.call("clone");
  }

  async getForkMessages() {
    return (await this.call("get_fork_messages")).messages;
  }

  navigateTree(targetId, options = {}) {
    return this.call("navigate_tree", { targetId, ...options });
  }

  getChanges(options = {}) {
    return this.call("get_changes", { ...options });
  }

  rewind(entryId, options = {}) {
    return this.call("rewind", { entryId, ...options });
  }

  unrewind(options = {}) {
    return this.call("unrewind", { ...options });
  }

  async listSessions(scope) {
    return (await this.call("list_sessions", { scope })).sessions;
  }

  async setSessionName(name) {
    await this.call("set_session_name", { name });
  }

  // Tools of the host

  /** Gives the session these tools in place of those it was given before. Needs an agent with host tools. */
  async setTools(tools) {
    const host = this.agent_.tools_;
    const before = host.of(this.handle);
    // The new ones can be called from the moment the agent knows them.
    host.replace(this.handle, tools);
    try {
      return (await this.call("set_host_tools", { tools: tools.map(definition) }))?.toolNames ?? [];
    } catch (error) {
      // After these errors the agent has the command, or may still take it.
      if (!(error instanceof TimedOut || error instanceof ProtocolError)) host.replace(this.handle, before);
      throw error;
    }
  }

  /** Closes the session; the agent goes on. */
  async close() {
    await this.call("close_session");
    this.agent_.forget_(this.handle);
  }
}
