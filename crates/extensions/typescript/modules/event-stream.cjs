/** Streams of events with a result, as providers give and extensions make them. */
"use strict";

class EventStream {
  #queue = [];
  #waiting = [];
  #done = false;
  #result;
  #resolve;
  #isComplete;
  #extract;

  /**
   * @param {(event: any) => boolean} isComplete whether an event is the last
   * @param {(event: any) => any} extractResult what the last event makes the result
   */
  constructor(isComplete, extractResult) {
    this.#isComplete = isComplete;
    this.#extract = extractResult;
    this.#result = new Promise((resolve) => { this.#resolve = resolve; });
  }

  push(event) {
    if (this.#done) return;
    if (this.#isComplete(event)) {
      this.#done = true;
      this.#resolve(this.#extract(event));
    }
    const next = this.#waiting.shift();
    if (next) next({ value: event, done: false });
    else this.#queue.push(event);
    if (this.#done) this.#release();
  }

  end(result) {
    this.#done = true;
    if (result !== undefined) this.#resolve(result);
    this.#release();
  }

  #release() {
    for (const next of this.#waiting.splice(0)) next({ value: undefined, done: true });
  }

  result() { return this.#result; }

  async *[Symbol.asyncIterator]() {
    while (true) {
      if (this.#queue.length > 0) {
        yield this.#queue.shift();
        continue;
      }
      if (this.#done) return;
      const { value, done } = await new Promise((resolve) => this.#waiting.push(resolve));
      if (done) return;
      yield value;
    }
  }
}

class AssistantMessageEventStream extends EventStream {
  constructor() {
    super(({ type }) => type === "done" || type === "error", (event) => (event.type === "done" ? event.message : event.error));
  }
}

module.exports = { EventStream, AssistantMessageEventStream };
