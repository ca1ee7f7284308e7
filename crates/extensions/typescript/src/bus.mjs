/** The event bus the extensions of one session share (`pi.events`). */

export class Bus {
  #handlers = new Map();
  #failed;

  /** @param {(error: unknown, channel: string) => void} failed told of handlers that throw */
  constructor(failed) {
    this.#failed = failed;
    this.on = this.on.bind(this);
    this.emit = this.emit.bind(this);
  }

  /** @returns {() => void} unsubscribes */
  on(channel, handler) {
    const list = this.#handlers.get(channel) ?? [];
    this.#handlers.set(channel, [...list, handler]);
    return () => {
      this.#handlers.set(channel, (this.#handlers.get(channel) ?? []).filter((other) => other !== handler));
    };
  }

  /** Calls the handlers at once, in order of subscription. */
  emit(channel, data) {
    for (const handler of this.#handlers.get(channel) ?? []) {
      try {
        Promise.resolve(handler(data)).catch((error) => this.#failed(error, channel));
      } catch (error) {
        this.#failed(error, channel);
      }
    }
  }

  clear() {
    this.#handlers.clear();
  }
}
