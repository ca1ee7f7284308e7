/**
 * Components of pi-tui that render to lines and take input, without a terminal behind them. Renderers of messages and
 * tools are made of these. What draws on a screen itself is a stub.
 */
"use strict";
const { visibleWidth, truncateToWidth, wrapTextWithAnsi } = require("./tui-text.cjs");
const { matchesKey } = require("./tui-keys.cjs");

const fill = (line, width) => line + " ".repeat(Math.max(0, width - visibleWidth(line)));

/** Lines with space around them and a background. */
function padded(lines, width, paddingX, paddingY, background) {
  const left = " ".repeat(paddingX);
  const paint = (line) => (background ? background(fill(line, width)) : line);
  const empty = Array.from({ length: paddingY }, () => paint(""));
  return [...empty, ...lines.map((line) => paint(left + line)), ...empty];
}

class Text {
  constructor(text = "", paddingX = 1, paddingY = 1, customBgFn) {
    Object.assign(this, { text, paddingX, paddingY, customBgFn });
  }
  setText(text) { this.text = text; }
  setCustomBgFn(fn) { this.customBgFn = fn; }
  invalidate() {}
  render(width) {
    if (!this.text || this.text.trim() === "") return [];
    const lines = wrapTextWithAnsi(this.text.replace(/\t/g, "   "), Math.max(1, width - this.paddingX * 2));
    return padded(lines, width, this.paddingX, this.paddingY, this.customBgFn);
  }
}

class TruncatedText {
  constructor(text, paddingX = 0, paddingY = 0) { Object.assign(this, { text, paddingX, paddingY }); }
  invalidate() {}
  render(width) {
    const line = truncateToWidth(String(this.text).split("\n")[0], Math.max(1, width - this.paddingX * 2));
    return padded([line], width, this.paddingX, this.paddingY);
  }
}

class Spacer {
  constructor(lines = 1) { this.lines = lines; }
  setLines(lines) { this.lines = lines; }
  invalidate() {}
  render() { return Array.from({ length: this.lines }, () => ""); }
}

class Container {
  children = [];
  addChild(child) { this.children.push(child); }
  removeChild(child) { this.children = this.children.filter((other) => other !== child); }
  clear() { this.children = []; }
  invalidate() { for (const child of this.children) child.invalidate?.(); }
  render(width) { return this.children.flatMap((child) => child.render(width)); }
}

class Box extends Container {
  constructor(paddingX = 1, paddingY = 1, bgFn) {
    super();
    Object.assign(this, { paddingX, paddingY, bgFn });
  }
  setBgFn(fn) { this.bgFn = fn; }
  render(width) {
    const lines = super.render(Math.max(1, width - this.paddingX * 2));
    return lines.length === 0 ? [] : padded(lines, width, this.paddingX, this.paddingY, this.bgFn);
  }
}

/** Markdown as its source, wrapped: there are no colours to show it with. */
class Markdown extends Text {
  constructor(text, paddingX = 1, paddingY = 1, theme = {}, defaultTextStyle, options) {
    super(text, paddingX, paddingY);
    Object.assign(this, { theme, defaultTextStyle, options });
  }
}

class Image {
  constructor(data, mimeType, theme, options) { Object.assign(this, { data, mimeType, theme, options }); }
  invalidate() {}
  render() { return [`[Image: ${this.options?.filename ?? this.mimeType}]`]; }
}

class Loader extends Text {
  constructor(ui, spinnerColorFn, messageColorFn, message = "Loading...") {
    super(message, 1, 0);
    this.message = message;
  }
  start() {}
  stop() {}
  dispose() {}
  setMessage(message) { this.setText(message); }
  setIndicator() {}
}

class CancellableLoader extends Loader {
  #controller = new AbortController();
  get signal() { return this.#controller.signal; }
  get aborted() { return this.signal.aborted; }
  handleInput(data) {
    if (!matchesKey(data, "escape")) return;
    this.#controller.abort();
    this.onAbort?.();
  }
}

/** Up, down, enter and escape over a list. */
class SelectList {
  #filtered;
  #index = 0;
  constructor(items, maxVisible = 10, theme = {}, layout) {
    Object.assign(this, { items, maxVisible, theme, layout });
    this.#filtered = items;
  }
  setFilter(filter) {
    const wanted = filter.toLowerCase();
    this.#filtered = this.items.filter(({ value }) => value.toLowerCase().startsWith(wanted));
    this.#index = 0;
  }
  setSelectedIndex(index) { this.#index = Math.max(0, Math.min(index, this.#filtered.length - 1)); }
  getSelectedItem() { return this.#filtered[this.#index] ?? null; }
  invalidate() {}
  handleInput(data) {
    const count = this.#filtered.length;
    if (matchesKey(data, "up") || matchesKey(data, "down")) {
      this.#index = count ? (this.#index + (matchesKey(data, "up") ? count - 1 : 1)) % count : 0;
      if (this.getSelectedItem()) this.onSelectionChange?.(this.getSelectedItem());
    } else if (matchesKey(data, "enter")) {
      if (this.getSelectedItem()) this.onSelect?.(this.getSelectedItem());
    } else if (matchesKey(data, "escape") || matchesKey(data, "ctrl+c")) this.onCancel?.();
  }
  render(width) {
    const from = Math.max(0, Math.min(this.#index - Math.floor(this.maxVisible / 2), this.#filtered.length - this.maxVisible));
    return this.#filtered.slice(from, from + this.maxVisible).map((item, at) => {
      const line = `${from + at === this.#index ? "→ " : "  "}${item.label ?? item.value}${item.description ? `  ${item.description}` : ""}`;
      return truncateToWidth(line, width);
    });
  }
}

/** Settings with a list of values each. */
class SettingsList {
  #index = 0;
  constructor(items, maxVisible, theme, onChange, onCancel, options) {
    Object.assign(this, { items, maxVisible, theme, onChange, onCancel, options });
  }
  updateValue(id, value) {
    const item = this.items.find((other) => other.id === id);
    if (item) item.currentValue = value;
  }
  selectItem(id) { this.#index = Math.max(0, this.items.findIndex((item) => item.id === id)); }
  invalidate() {}
  handleInput(data) {
    const count = this.items.length;
    const item = this.items[this.#index];
    if (matchesKey(data, "up")) this.#index = (this.#index + count - 1) % count;
    else if (matchesKey(data, "down")) this.#index = (this.#index + 1) % count;
    else if (matchesKey(data, "escape")) this.onCancel?.();
    else if (item?.values && (matchesKey(data, "enter") || matchesKey(data, "space"))) {
      const next = item.values[(item.values.indexOf(item.currentValue) + 1) % item.values.length];
      item.currentValue = next;
      this.onChange?.(item.id, next);
    }
  }
  render(width) {
    return this.items.map((item, at) => truncateToWidth(`${at === this.#index ? "→ " : "  "}${item.label}  ${item.currentValue}`, width));
  }
}

/** One line of text. */
class Input {
  #value = "";
  focused = false;
  getValue() { return this.#value; }
  setValue(value) { this.#value = value; }
  invalidate() {}
  handleInput(data) {
    if (matchesKey(data, "enter")) this.onSubmit?.(this.#value);
    else if (matchesKey(data, "escape")) this.onEscape?.();
    else if (matchesKey(data, "backspace")) this.#value = this.#value.slice(0, -1);
    else if (!/[\x00-\x1f\x7f]/.test(data)) this.#value += data;
  }
  render(width) { return [truncateToWidth(`> ${this.#value}`, width)]; }
}

/** Several lines of text. */
class Editor {
  #text = "";
  focused = false;
  disableSubmit = false;
  constructor(...args) { this.options = args; }
  getText() { return this.#text; }
  getExpandedText() { return this.#text; }
  setText(text) {
    this.#text = text;
    this.onChange?.(text);
  }
  insertTextAtCursor(text) { this.setText(this.#text + text); }
  getLines() { return this.#text.split("\n"); }
  getCursor() { return { line: this.getLines().length - 1, col: this.getLines().at(-1).length }; }
  addToHistory() {}
  setAutocompleteProvider() {}
  isShowingAutocomplete() { return false; }
  setPaddingX() {}
  getPaddingX() { return 0; }
  requestRender() {}
  invalidate() {}
  handleInput(data) {
    if (matchesKey(data, "enter") && !this.disableSubmit) {
      const text = this.#text;
      this.setText("");
      this.onSubmit?.(text);
    } else if (matchesKey(data, "backspace")) this.setText(this.#text.slice(0, -1));
    else if (!/[\x00-\x08\x0b-\x1f\x7f]/.test(data)) this.setText(this.#text + data);
  }
  render(width) { return wrapTextWithAnsi(this.#text, width); }
}

/** Characters of the query in order, anywhere in the text; a lower score is better. */
function fuzzyMatch(query, text) {
  const wanted = query.toLowerCase();
  const within = text.toLowerCase();
  let at = -1;
  let score = 0;
  for (const character of wanted) {
    const found = within.indexOf(character, at + 1);
    if (found < 0) return { matches: false, score: 0 };
    score += found - at - 1;
    at = found;
  }
  return { matches: true, score };
}

function fuzzyFilter(items, query, getText = String) {
  const words = query.trim().split(/\s+/).filter(Boolean);
  const scored = items.map((item) => {
    const found = words.map((word) => fuzzyMatch(word, getText(item)));
    return { item, all: found.every(({ matches }) => matches), score: found.reduce((sum, { score }) => sum + score, 0) };
  });
  return scored.filter(({ all }) => all).sort((a, b) => a.score - b.score).map(({ item }) => item);
}

module.exports = {
  Text, TruncatedText, Spacer, Container, Box, Markdown, Image, Loader, CancellableLoader, SelectList, SettingsList, Input, Editor,
  fuzzyMatch, fuzzyFilter,
};
