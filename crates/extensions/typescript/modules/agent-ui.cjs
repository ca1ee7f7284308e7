/** Themes and the few components of pi-coding-agent that extensions build their own displays from. */
"use strict";
const { Container, Editor, Loader, Text } = require("./tui-components.cjs");

const same = (text) => text;
const MARKDOWN = ["heading", "link", "linkUrl", "code", "codeBlock", "codeBlockBorder", "quote", "quoteBorder", "hr", "listBullet",
  "bold", "italic", "strikethrough", "underline"];

/** A theme without colours; src/ui.mjs has the one of `ctx.ui`. */
class Theme {
  constructor() { this.name = "none"; }
  style(text) { return text; }
  fg(_color, text) { return text; }
  bg(_color, text) { return text; }
  bold(text) { return text; }
  italic(text) { return text; }
  underline(text) { return text; }
  inverse(text) { return text; }
  strikethrough(text) { return text; }
  getFgAnsi() { return ""; }
  getBgAnsi() { return ""; }
  getColorMode() { return "truecolor"; }
  getThinkingBorderColor() { return same; }
  getBashModeBorderColor() { return same; }
}

class DynamicBorder {
  constructor(color = same) { this.color = color; }
  invalidate() {}
  render(width) { return [this.color("─".repeat(Math.max(1, width)))]; }
}

class BorderedLoader extends Container {
  #controller = new AbortController();
  constructor(tui, theme, message) {
    super();
    this.addChild(new DynamicBorder());
    this.addChild(new Loader(tui, same, same, message));
    this.addChild(new DynamicBorder());
  }
  get signal() { return this.#controller.signal; }
  handleInput() {}
  dispose() {}
}

class CustomEditor extends Editor {
  actionHandlers = new Map();
  onAction(action, handler) { this.actionHandlers.set(action, handler); }
}

const KEYS = { "app.interrupt": "escape", "app.tools.expand": "ctrl+o", expandTools: "ctrl+o", "tui.select.confirm": "enter", "tui.select.cancel": "escape", selectConfirm: "enter", selectCancel: "escape" };
const keyText = (name) => KEYS[name] ?? "";

module.exports = {
  Theme, DynamicBorder, BorderedLoader, CustomEditor,
  getMarkdownTheme: () => ({ ...Object.fromEntries(MARKDOWN.map((name) => [name, same])), highlightCode: (code) => code.split("\n") }),
  getSelectListTheme: () => ({ selectedPrefix: same, selectedText: same, description: same, scrollInfo: same, noMatch: same }),
  getSettingsListTheme: () => ({ label: same, value: same, description: same, cursor: "→ ", hint: same }),
  initTheme() {},
  highlightCode: (code) => code.split("\n"),
  renderDiff: (diff) => diff,
  keyText,
  keyHint: (name, description) => `${keyText(name)} ${description}`.trim(),
  rawKeyHint: (key, description) => `${key} ${description}`,
  truncateToVisualLines(text, maxLines, width, paddingX = 0) {
    const lines = new Text(text, paddingX, 0).render(width);
    return { visualLines: lines.slice(-maxLines), skippedCount: Math.max(0, lines.length - maxLines) };
  },
};
