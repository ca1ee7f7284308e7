/** Arguments of a tool call that a provider of an extension receives in pieces. */
"use strict";
const { parseStreamingJson, parseJsonWithRepair } = require("./json-repair.cjs");

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** Reads the whole text of a finished call. Text that is no object gives no arguments, and an error for the model. */
function parseToolCallArguments(text) {
  if (!text?.trim()) return { arguments: {} };
  try {
    const parsed = parseJsonWithRepair(text);
    if (!isObject(parsed)) throw new Error("Tool arguments must be a JSON object");
    return { arguments: parsed };
  } catch (error) {
    return { arguments: {}, argumentsError: `${error.message}\n\nReceived arguments:\n${text}` };
  }
}

/** Characters of the text that may be read again for each piece, and for each character of it. */
const PER_PIECE = 256;
const PER_CHARACTER = 8;

class ToolCallArgumentsStream {
  #text = "";
  #arguments = {};
  #credit = 0;

  get text() { return this.#text; }

  /** @returns {object} the arguments so far. Those of a long text may be a few pieces old. */
  append(delta) {
    this.#text += delta;
    this.#credit += PER_PIECE + PER_CHARACTER * delta.length;
    // The text is read from its beginning, which for each piece would be quadratic.
    if (this.#credit >= this.#text.length) {
      this.#credit = 0;
      const parsed = parseStreamingJson(this.#text);
      this.#arguments = isObject(parsed) ? parsed : {};
    }
    return this.#arguments;
  }

  /** Takes the whole text so far, as some providers send it. `delta` is what was missing, if the text only grew. */
  replace(text) {
    if (text.startsWith(this.#text)) {
      const delta = text.slice(this.#text.length);
      return { delta, arguments: delta === "" ? this.#arguments : this.append(delta) };
    }
    this.#text = "";
    this.#credit = 0;
    return { delta: undefined, arguments: this.append(text) };
  }

  finish() { return parseToolCallArguments(this.#text); }
}

module.exports = { ToolCallArgumentsStream, parseToolCallArguments };
