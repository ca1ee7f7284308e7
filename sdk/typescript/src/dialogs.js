// Questions of the agent and of extensions to the user. Nothing waits for ever: without a callback they are cancelled at once.
import { TimedOut, within } from "./errors.js";

const ASKING = new Set(["select", "confirm", "input", "editor"]);
/** What the agent is told that we understand; what only tells something comes as an event. */
export const RENDERED = [...ASKING, "cancel", "notify", "setStatus", "setWidget", "setTitle", "set_editor_text", "open_url"];

/** The dialogs that are open. */
export class DialogHost {
  #send;
  #handler;
  #limit;
  #open = new Map();

  constructor(send, handler, limitMs) {
    this.#send = send;
    this.#handler = handler;
    this.#limit = limitMs;
  }

  async requested(frame) {
    if (frame.method === "cancel") {
      this.#open.get(frame.targetId)?.abort();
      this.#open.delete(frame.targetId);
      return;
    }
    if (!ASKING.has(frame.method)) return;
    const controller = new AbortController();
    this.#open.set(frame.id, controller);
    const limit = Math.min(this.#limit, frame.timeout || this.#limit);
    /** @type {{ cancelled?: boolean, timedOut?: boolean, reason?: string, confirmed?: boolean, value?: string }} */
    let answer = { cancelled: true };
    try {
      const asked = Promise.resolve(this.#handler?.(frame, controller.signal));
      // A question that is over is not waited for, whatever the callback does.
      const over = new Promise((resolve) => controller.signal.addEventListener("abort", () => resolve(null)));
      const value = await within(Promise.race([asked, over]), limit, "nobody answered the dialog");
      if (typeof value === "object" && typeof value?.deny === "string") {
        // `cancelled` denies in every language of the options.
        if (value.deny !== "") answer.reason = value.deny;
      } else if (value !== undefined && value !== null) {
        answer = frame.method === "confirm" ? { confirmed: Boolean(value) } : { value: String(value) };
      }
    } catch (error) {
      // A broken callback must not stall the agent.
      if (error instanceof TimedOut) answer.timedOut = true;
    }
    if (!this.#open.delete(frame.id)) return;
    controller.abort();
    const session = frame.session === undefined ? {} : { session: frame.session };
    await this.#send({ type: "extension_ui_response", id: frame.id, ...session, ...answer });
  }

  cancelAll() {
    for (const controller of this.#open.values()) controller.abort();
    this.#open.clear();
  }
}
