// Events as they come, and what a prompt led to.
import { Lagged, RunFailed, within } from "./errors.js";

/** Events that may wait to be taken. */
const MAX_WAITING = 65536;

/** Events of a session until `close` or the agent's end. What came before an error is given out before it is thrown. */
export class Events {
  #waiting = [];
  #first = 0;
  #wake;
  #error;
  #closed = false;
  #idle;
  #limit;
  #onClose;

  constructor(idleTimeoutMs, onClose, limit = MAX_WAITING) {
    this.#idle = idleTimeoutMs;
    this.#onClose = onClose;
    this.#limit = limit;
  }

  async next() {
    while (this.#first === this.#waiting.length) {
      if (this.#error) throw this.#error;
      if (this.#closed) return { done: true, value: undefined };
      const woken = new Promise((resolve) => (this.#wake = resolve));
      await within(woken, this.#idle, "no event");
    }
    const value = this.#waiting[this.#first++];
    if (this.#first > 1024 && this.#first * 2 > this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#first);
      this.#first = 0;
    }
    return { done: false, value };
  }

  async return() {
    this.close();
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  close() {
    this.#closed = true;
    this.#onClose?.(this);
    this.#wake?.();
  }

  /** For the client: an event came. */
  put(event) {
    if (this.#closed || this.#error) return;
    if (this.#waiting.length - this.#first >= this.#limit) {
      this.fail(new Lagged(`${this.#limit} events are waiting to be taken`));
      return;
    }
    this.#waiting.push(event);
    this.#wake?.();
  }

  /** For the client: what came so far belongs to something else. */
  clear() {
    this.#waiting = [];
    this.#first = 0;
  }

  /** For the client: nothing will come any more. */
  fail(error) {
    this.#error ??= error;
    this.#wake?.();
  }
}

/** How a run ended. */
export class RunResult {
  text = "";
  messages = [];
  stopReason = null;
  error = null;
  aborted = false;
  result = undefined;
  resultError = null;

  see(event) {
    if (event.type === "agent_settled") {
      this.aborted = Boolean(event.aborted);
    } else if (event.type === "agent_end" && !event.willRetry) {
      if ("result" in event) this.result = event.result;
      this.resultError = event.resultError ?? null;
    } else if (event.type === "message_end") {
      this.messages.push(event.message);
      if (event.message.role === "assistant") {
        const blocks = event.message.content.filter((block) => block.type === "text");
        this.text = blocks.map((block) => block.text).join("");
        this.stopReason = event.message.stopReason;
        this.error = this.stopReason === "error" ? (event.message.errorMessage ?? "the answer failed") : null;
        this.aborted = this.stopReason === "aborted";
      }
    }
  }

  /** Throws RunFailed when the last answer failed or was aborted. */
  throwIfFailed() {
    if (this.error !== null || this.aborted) throw new RunFailed(this);
    return this;
  }

  /** Throws RunFailed when the run gave no result that fits the schema of its prompt. */
  throwIfNoResult() {
    if (this.result === undefined) throw new RunFailed(this);
    return this;
  }
}

/** What follows a prompt, until nothing more happens by itself. Iterate over it for events, over `text()` for text. */
export class Run {
  #session;
  #events;
  #done;
  #result = new RunResult();

  constructor(session, events, disposition) {
    this.#session = session;
    this.#events = events;
    this.disposition = disposition;
    this.#done = disposition === "handled";
    if (this.#done) events.close();
  }

  async *[Symbol.asyncIterator]() {
    while (!this.#done) {
      const { done, value } = await this.#events.next();
      if (done) return;
      this.#result.see(value);
      if (value.type === "agent_settled") {
        this.#done = true;
        this.#events.close();
      }
      yield value;
    }
  }

  /** The answer's text, piece by piece. */
  async *text() {
    for await (const event of this) {
      if (event.type === "message_update" && event.assistantMessageEvent.type === "text_delta") {
        yield event.assistantMessageEvent.delta;
      }
    }
  }

  /** Waits for the end. Does not throw when the model failed; see `throwIfFailed`. */
  async result() {
    for await (const _ of this);
    return this.#result;
  }

  async abort() {
    await this.#session.abort();
  }

  /** Stops listening. The run itself goes on. */
  close() {
    this.#events.close();
  }
}
