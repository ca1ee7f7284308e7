/**
 * Calls in both directions over the lines: ids, what is pending, updates and cancelling.
 * Which methods exist is the business of calls.mjs (theirs) and of api.mjs, ui.mjs and context.mjs (ours).
 */

/** An error the agent answered a call with. */
export class AgentError extends Error {
  constructor(message) {
    super(message);
    this.name = "AgentError";
  }
}

export class Peer {
  #lines;
  #next = 1;
  #ours = new Map();
  #theirs = new Map();

  /** @param {import("./lines.mjs").Lines} lines */
  constructor(lines) {
    this.#lines = lines;
  }

  /** @param {object} message */
  send(message, droppable = false) {
    this.#lines.send(message, droppable);
  }

  /** Resolves when the agent has room for more. */
  room() {
    return this.#lines.room();
  }

  get slow() {
    return this.#lines.slow;
  }

  /** A call nobody awaits. */
  tell(session, method, params) {
    this.send({ type: "call", session, method, params }, true);
  }

  /**
   * A call that is answered.
   * @param {string} session
   * @param {string} method
   * @param {object} params
   * @param {{signal?: AbortSignal, onUpdate?: (value: any) => void}} [options]
   * @returns {Promise<any>} the value of the answer
   */
  call(session, method, params, { signal, onUpdate } = {}) {
    if (signal?.aborted) return Promise.reject(abortError(signal));
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      const abort = () => {
        if (!this.#ours.delete(id)) return;
        this.send({ type: "cancel", id });
        reject(abortError(signal));
      };
      const done = () => {
        this.#ours.delete(id);
        signal?.removeEventListener("abort", abort);
      };
      this.#ours.set(id, { resolve, reject, done, onUpdate });
      signal?.addEventListener("abort", abort, { once: true });
      try {
        this.send({ type: "call", session, id, method, params });
      } catch (error) {
        done();
        reject(error);
      }
    });
  }

  /** The agent's `result`, `error` or `update` for one of our calls. */
  answer(message) {
    const call = this.#ours.get(message.id);
    if (!call) return;
    if (message.type === "update") {
      call.onUpdate?.(message.value);
      return;
    }
    call.done();
    if (message.type === "result") call.resolve(message.value);
    else call.reject(new AgentError(message.message ?? "the agent could not do it"));
  }

  /**
   * Runs something the agent awaits and answers it.
   * @param {number} id
   * @param {(signal: AbortSignal) => Promise<object>} work resolves with the members of the result line
   */
  async serve(id, work) {
    const controller = new AbortController();
    this.#theirs.set(id, controller);
    try {
      const members = await work(controller.signal);
      this.#result({ type: "result", id, ...members });
    } catch (error) {
      this.#result({ type: "error", id, ...describe(error) });
    } finally {
      this.#theirs.delete(id);
    }
  }

  #result(message) {
    try {
      this.send(message);
    } catch (error) {
      this.send({ type: "error", id: message.id, message: `the result cannot be sent: ${error.message}` });
    }
  }

  /** The agent no longer wants the answer. */
  cancel(id) {
    this.#theirs.get(id)?.abort();
  }
}

/** @returns {{message: string, stack?: string}} what to say of anything that was thrown */
export function describe(error) {
  if (error instanceof Error || (error && typeof error.message === "string")) {
    return { message: error.message || error.name || "Error", stack: error.stack };
  }
  return { message: String(error) };
}

function abortError(signal) {
  return signal.reason instanceof Error ? signal.reason : new DOMException("The operation was aborted", "AbortError");
}
