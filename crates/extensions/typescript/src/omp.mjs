/**
 * What extensions of oh-my-pi find on their API object and on contexts, beyond what those of pi find, and its commands in
 * TypeScript (`commands/NAME/index.ts`).
 */
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/** How many times in a row `session_stop` may continue a run. */
const MAX_STOPS = 8;

/** What the model gets if `session_stop` blocks the end without a reason, as in oh-my-pi. */
const UNEXPLAINED = "A session_stop handler blocked completion without a reason. Resolve the outstanding work before finishing.";

/** Words in ids of models that name their families. */
const FAMILIES = /claude|gpt|gemini|gemma|grok|llama|mistral|qwen|deepseek|kimi|glm|minimax|nova/i;

/** Whether the client is one of today's oh-my-pi, whose system prompt is a list of texts. */
export function isNewestOmp({ generation, state }) {
  return generation === "omp" && state.newestOmp === true;
}

/** @returns {object} members for the API object; getters stay getters */
export function ompApi(session, extension) {
  const refuse = (feature) => () => session.refuse(extension.path, feature);
  // Custom tools of other generations share the rest.
  const own = session.generation !== "omp" ? {} : {
    registerComposerShape() {},
    registerFileWriteFallback: refuse("fallback for writing files"),
    registerFileDeleteFallback: refuse("fallback for deleting files"),
    pushPendingAction: refuse("pending action"),
    getServiceTiers: () => ({}),
    setServiceTier: refuse("service tier"),
  };
  return {
    ...own,
    registerAssistantThinkingRenderer() {},
    get logger() { return require("../modules/utils.cjs").logger(session, extension.path); },
    get zod() { return session.modules.get("@oh-my-pi/omptype/zod"); },
    get arktype() { return session.modules.get("@oh-my-pi/omptype").type; },
    get typebox() { return session.modules.get("typebox"); },
    get pi() { return session.modules.get("@earendil-works/pi-coding-agent"); },
  };
}

/** @returns {object} members for contexts */
export function ompContext(session, extension) {
  /** @type {any} */
  const members = {
    get agent() { return { kind: "main", id: "Main", name: "main", depth: 0 }; },
    get models() { return modelQuery(session); },
    getAsyncJobSnapshot: () => null,
    setInterval: (callback, ms, ...args) => timer(session, extension, setInterval, callback, ms, args),
    setTimeout: (callback, ms, ...args) => timer(session, extension, setTimeout, callback, ms, args),
    clearTimer(handle) {
      clearTimeout(handle);
      session.timers.delete(handle);
    },
    /** @param {any} [options] */
    async compact(options) {
      session.assertLive();
      /** @type {any} */
      const settings = typeof options === "string" ? { customInstructions: options } : options ?? {};
      const { customInstructions, onComplete, onError } = settings;
      try {
        const result = await session.call("compact", { customInstructions });
        onComplete?.(result);
      } catch (error) {
        // A caller that awaits the compaction must not continue as if it had succeeded.
        if (!onError) throw error;
        onError(error);
      }
    },
  };
  if (isNewestOmp(session)) {
    members.getSystemPrompt = () => {
      session.assertLive();
      return promptList(session.promptOverride ?? session.state.systemPrompt);
    };
  }
  return members;
}

/** The system prompt as today's oh-my-pi has it. */
export function promptList(text) {
  return text ? [text] : [];
}

/** Starts a timer that ends with the session. Errors of its callback become `extension_error`. */
function timer(session, extension, start, callback, ms, args) {
  session.assertLive();
  const handle = start(async () => {
    if (start === setTimeout) session.timers.delete(handle);
    try {
      await callback(...args);
    } catch (error) {
      session.failure(error, extension.path, "timer");
    }
  }, ms);
  handle.unref?.();
  session.timers.add(handle);
  return handle;
}

/** Models as today's oh-my-pi lets extensions ask for them. */
function modelQuery(session) {
  return {
    list: () => session.models.getAvailable(),
    current: () => session.state.model ?? undefined,
    resolve(spec) {
      const models = session.models.getAvailable();
      const fits = (wanted) => models.find(({ provider, id }) => wanted === `${provider}/${id}` || wanted === id);
      // The thinking level behind a colon is no part of the model; ids may have colons of their own.
      return fits(String(spec)) ?? fits(String(spec).replace(/:[a-z]+$/, ""));
    },
    family: ({ id, provider }) => (FAMILIES.exec(id)?.[0] ?? provider).toLowerCase(),
  };
}

/**
 * What `session_stop` wants, as an answer to the event that a run can be continued at.
 * @param {any} event `agent_before_settle`, with what was proposed so far
 * @returns {object|undefined}
 */
export function continuation(session, event, answer) {
  const isBlock = answer?.decision === "block";
  const given = [answer?.additionalContext, answer?.reason].filter((text) => typeof text === "string" && text.trim() !== "");
  const texts = isBlock ? [...given.reverse(), UNEXPLAINED] : given;
  if ((!isBlock && answer?.continue !== true) || texts.length === 0 || event.continue) return undefined;
  if (session.stops >= MAX_STOPS) {
    session.host.log("warn", `session_stop has continued the run ${MAX_STOPS} times: it ends now`);
    return undefined;
  }
  session.stops += 1;
  const draft = { type: "custom_message", customType: "session-stop-continuation", content: texts[0], display: false };
  return { entries: [...(event.entries ?? []), draft], continue: true };
}

/** What handlers of `session_stop` see. */
export function stopEvent(session, signal) {
  const messages = session.entries.getBranch().filter(({ type }) => type === "message").map(({ message }) => message);
  return {
    type: "session_stop",
    messages,
    turn_id: Math.max(0, messages.filter(({ role }) => role === "assistant").length - 1),
    last_assistant_message: messages.findLast(({ role }) => role === "assistant"),
    session_id: session.state.sessionId,
    session_file: session.state.sessionFile ?? undefined,
    stop_hook_active: session.stops > 0,
    signal,
  };
}

/**
 * Loads what the factory of a command file returns.
 * @throws in the words of oh-my-pi
 */
export function registerCustomCommands(session, extension, pi, made) {
  for (const command of [].concat(made ?? [])) {
    if (!command?.name || typeof command.name !== "string") throw new Error("Command must have a name");
    if (!command.description || typeof command.description !== "string") throw new Error(`Command "${command.name}" must have a description`);
    if (typeof command.execute !== "function") throw new Error(`Command "${command.name}" must have an execute function`);
    const completes = typeof command.getArgumentCompletions === "function";
    pi.registerCommand(command.name, {
      description: command.description,
      ...(completes ? { getArgumentCompletions: (prefix) => command.getArgumentCompletions(prefix, session.state.cwd) } : {}),
      async handler(text, ctx) {
        const answer = await command.execute(words(text), ctx, text);
        // A text is the prompt in place of the command.
        if (typeof answer === "string" && answer !== "") pi.sendUserMessage(answer);
      },
    });
  }
}

/** The words of a command line; quotes keep words together. */
function words(text) {
  const found = text.matchAll(/(?:[^\s"']+|"[^"]*"|'[^']*')+/g);
  return [...found].map(([word]) => word.replace(/"([^"]*)"|'([^']*)'/g, (_, double, single) => double ?? single));
}
