/**
 * JSON lines both ways: splitting, parsing, and writing with a bounded queue. What the lines mean is host.mjs's.
 */

/** Longest line accepted and sent, in bytes (line.rs). */
export const MAX_LINE = 32 * 1024 * 1024;
/** Characters gathered before they are written at once. */
const BATCH = 64 * 1024;
/** Bytes waiting for the agent above which callers that can wait do wait. */
const SLOW_ABOVE = 1024 * 1024;
/** Bytes waiting for the agent above which a line that nobody awaits is refused. */
const REFUSE_ABOVE = 64 * 1024 * 1024;

export class Lines {
  #input;
  #output;
  #parts = [];
  #length = 0;
  #skipping = false;
  #batch = null;
  #batched = 0;
  #waiting = [];

  /**
   * @param {import("node:stream").Readable} input
   * @param {import("node:stream").Writable} output
   */
  constructor(input, output) {
    this.#input = input;
    this.#output = output;
    output.on("drain", () => {
      for (const go of this.#waiting.splice(0)) go();
    });
    // The agent is gone: the end of the input says so too, and decides.
    output.on("error", () => {});
  }

  /**
   * @param {{line: (message: object) => void, end: () => void, problem: (text: string) => void}} to
   */
  start(to) {
    this.#input.on("data", (chunk) => this.#take(chunk, to));
    this.#input.on("end", () => to.end());
    this.#input.on("error", () => to.end());
    this.#input.on("close", () => to.end());
  }

  #take(chunk, to) {
    let from = 0;
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      this.#add(chunk.subarray(from, at), to);
      const whole = this.#parts.length === 1 ? this.#parts[0] : Buffer.concat(this.#parts);
      const skip = this.#skipping;
      this.#parts = [];
      this.#length = 0;
      this.#skipping = false;
      if (!skip && whole.length > 0) this.#parse(whole, to);
      from = at + 1;
    }
    if (from < chunk.length) this.#add(from ? chunk.subarray(from) : chunk, to);
  }

  #add(part, to) {
    this.#length += part.length;
    if (this.#length > MAX_LINE) {
      if (!this.#skipping) to.problem(`a line of more than ${MAX_LINE} bytes was skipped`);
      this.#skipping = true;
      this.#parts = [];
    }
    if (!this.#skipping) this.#parts.push(part);
  }

  #parse(buffer, to) {
    let message;
    try {
      message = JSON.parse(buffer.toString("utf8"));
    } catch (error) {
      to.problem(`a line is not JSON: ${error.message}`);
      return;
    }
    if (message && typeof message === "object") to.line(message);
  }

  /**
   * Sends one message. Lines of one turn of the event loop leave in one write.
   * @param {object} message
   * @param {boolean} [droppable] nobody awaits it: throws when the agent has not read for long
   */
  send(message, droppable = false) {
    if (droppable && this.#output.writableLength > REFUSE_ABOVE) {
      throw new Error("the agent does not read: too much is waiting to be sent");
    }
    const text = JSON.stringify(message);
    if (text.length > MAX_LINE / 4 && Buffer.byteLength(text) > MAX_LINE) throw new Error(`a message of ${text.length} bytes is longer than a line may be`);
    if (this.#batch === null) {
      this.#batch = [];
      queueMicrotask(() => this.flush());
    }
    this.#batch.push(text);
    this.#batched += text.length;
    if (this.#batched > BATCH) this.flush();
  }

  /** Writes what was sent since the last write. */
  flush() {
    if (this.#batch === null) return;
    const text = `${this.#batch.join("\n")}\n`;
    this.#batch = null;
    this.#batched = 0;
    this.#output.write(text);
  }

  /** Whether the agent reads more slowly than we write. */
  get slow() {
    return this.#output.writableLength > SLOW_ABOVE;
  }

  /** Resolves once there is room again. */
  async room() {
    if (this.slow) await new Promise((go) => this.#waiting.push(go));
  }
}
