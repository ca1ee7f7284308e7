/** The namespace of pi-tui: text, keys and components that need no terminal, and answers for a terminal that is not there. */
"use strict";

/** Bindings that extensions ask for by name, with pi's default keys. */
const KEYBINDINGS = {
  "tui.select.up": ["up"], "tui.select.down": ["down"], "tui.select.confirm": ["enter"], "tui.select.cancel": ["escape", "ctrl+c"],
  "tui.select.pageUp": ["pageUp"], "tui.select.pageDown": ["pageDown"], "tui.input.submit": ["enter"], "tui.input.tab": ["tab"],
  selectUp: ["up"], selectDown: ["down"], selectConfirm: ["enter"], selectCancel: ["escape", "ctrl+c"],
};

function create() {
  const keys = require("./tui-keys.cjs");
  class KeybindingsManager {
    matches(data, name) { return this.getKeys(name).some((key) => keys.matchesKey(data, key)); }
    getKeys(name) { return KEYBINDINGS[name] ?? []; }
    getDefinition(name) { return KEYBINDINGS[name] && { defaultKeys: KEYBINDINGS[name] }; }
    getConflicts() { return []; }
    getUserBindings() { return {}; }
    setUserBindings() {}
  }
  const bindings = new KeybindingsManager();
  return {
    ...require("./tui-text.cjs"),
    ...keys,
    ...require("./tui-components.cjs"),
    KeybindingsManager,
    TUI_KEYBINDINGS: {},
    getKeybindings: () => bindings,
    setKeybindings() {},
    getEditorKeybindings: () => bindings,
    CURSOR_MARKER: "\x1b_pi:c\x07",
    isFocusable: (component) => Boolean(component && "focused" in component),
    isViewportTUI: () => false,
    getCapabilities: () => ({ images: null, trueColor: false, hyperlinks: false }),
    detectCapabilities: () => ({ images: null, trueColor: false, hyperlinks: false }),
    setCapabilities() {},
    setCapabilityOverrides() {},
    resetCapabilitiesCache() {},
    getCellDimensions: () => ({ widthPx: 9, heightPx: 18 }),
    setCellDimensions() {},
    getImageDimensions: () => null,
    hyperlink: (text) => text,
    imageFallback: (mimeType) => `[Image: ${mimeType}]`,
    renderImage: () => null,
    renderLatex: (text) => text,
    getNativeClipboard: () => undefined,
    ...colours(),
  };
}

/** Colours can be made, as extensions do when they are loaded. Texts stay without. */
function colours() {
  const colour = (kind) => (...parts) => Object.freeze({ kind, parts });
  const made = ["rgb", "indexed", "okhsl", "oklch"].map((kind) => [`${kind}Color`, colour(kind)]);
  return {
    ...Object.fromEntries(made),
    parseColor: colour("parsed"),
    mixColors: colour("mixed"),
    foregroundAnsi: () => "",
    backgroundAnsi: () => "",
    getTerminalColorMode: () => "256color",
    styleText: (text) => text,
    styleTextWithAnsi: (text) => text,
    renderFakeCursor: (text) => text,
    replaceControlCharacters: (text) => text.replace(/[\x00-\x1f\x7f-\x9f]+/g, " "),
    isAppleTerminalSession: () => false,
    setImageTranscoder() {},
  };
}

module.exports = { create };
