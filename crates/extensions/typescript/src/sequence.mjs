/** Calls of tools whose `executionMode` is "sequential": each waits for the one before. */

export class Sequence {
  /** @type {Promise<unknown>} */
  #last = Promise.resolve();
  #running = new Set();

  /**
   * Runs a call when those before it have ended.
   * @template T
   * @param {string} id the call
   * @param {AbortSignal|undefined} signal
   * @param {() => Promise<T>} work
   * @returns {Promise<T>}
   */
  async run(id, signal, work) {
    // The caller runs already: a call that it makes itself would wait for ever.
    if ([...this.#running].some((caller) => id.startsWith(`${caller}/`))) return work();
    const before = this.#last;
    let end = () => {};
    // A tool may go on after an abort. It must not hold up the calls of later turns.
    const ended = new Promise((resolve) => {
      end = () => resolve(undefined);
      if (signal?.aborted) end();
      else signal?.addEventListener("abort", end, { once: true });
    });
    this.#last = before.then(() => ended);
    await Promise.race([before, ended]);
    this.#running.add(id);
    try {
      if (signal?.aborted) throw new Error("Operation aborted");
      return await work();
    } finally {
      this.#running.delete(id);
      signal?.removeEventListener("abort", end);
      end();
    }
  }
}
