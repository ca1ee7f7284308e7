/** Names of keys and what a terminal sends for them (legacy and kitty sequences), as far as extensions compare them. */
"use strict";

const NAMED = ["escape", "esc", "enter", "return", "tab", "space", "backspace", "delete", "insert", "clear", "home", "end",
  "pageUp", "pageDown", "up", "down", "left", "right", ...Array.from({ length: 12 }, (_, at) => `f${at + 1}`)];
const SYMBOLS = {
  backtick: "`", hyphen: "-", equals: "=", leftbracket: "[", rightbracket: "]", backslash: "\\", semicolon: ";", quote: "'",
  comma: ",", period: ".", slash: "/", exclamation: "!", at: "@", hash: "#", dollar: "$", percent: "%", caret: "^",
  ampersand: "&", asterisk: "*", leftparen: "(", rightparen: ")", underscore: "_", plus: "+", pipe: "|", tilde: "~",
  leftbrace: "{", rightbrace: "}", colon: ":", lessthan: "<", greaterthan: ">", question: "?",
};
const MODIFIERS = {
  ctrl: "ctrl", shift: "shift", alt: "alt", super: "super", ctrlShift: "ctrl+shift", shiftCtrl: "shift+ctrl", ctrlAlt: "ctrl+alt",
  altCtrl: "alt+ctrl", shiftAlt: "shift+alt", altShift: "alt+shift", ctrlSuper: "ctrl+super", superCtrl: "super+ctrl",
  shiftSuper: "shift+super", superShift: "super+shift", altSuper: "alt+super", superAlt: "super+alt",
  ctrlShiftAlt: "ctrl+shift+alt", ctrlShiftSuper: "ctrl+shift+super",
};

const Key = {
  ...Object.fromEntries(NAMED.map((name) => [name, name])),
  ...SYMBOLS,
  ...Object.fromEntries(Object.entries(MODIFIERS).map(([name, prefix]) => [name, (key) => `${prefix}+${key}`])),
};

const SAME = { esc: "escape", return: "enter" };
/** Final letters and numbers of CSI sequences. */
const LETTERS = { A: "up", B: "down", C: "right", D: "left", H: "home", F: "end", E: "clear", P: "f1", Q: "f2", R: "f3", S: "f4", Z: "tab" };
const NUMBERS = {
  1: "home", 2: "insert", 3: "delete", 4: "end", 5: "pageUp", 6: "pageDown", 7: "home", 8: "end", 11: "f1", 12: "f2", 13: "f3", 14: "f4",
  15: "f5", 17: "f6", 18: "f7", 19: "f8", 20: "f9", 21: "f10", 23: "f11", 24: "f12",
};
const CODES = { 9: "tab", 13: "enter", 27: "escape", 32: "space", 127: "backspace", 57414: "enter" };

/** @returns {string} modifiers in one order, then the key */
function normal(id) {
  const parts = String(id).split("+");
  const key = parts.pop() || "+";
  const order = ["ctrl", "shift", "alt", "super"].filter((name) => parts.includes(name));
  const name = key.length === 1 ? key.toLowerCase() : key;
  return [...order, SAME[name] ?? name].join("+");
}

function withBits(bits, key) {
  const names = [[4, "ctrl"], [1, "shift"], [2, "alt"], [8, "super"]].filter(([bit]) => bits & bit).map(([, name]) => name);
  return normal([...names, key].join("+"));
}

/** @returns {string|undefined} the name of the key in what a terminal sent */
function parseKey(data) {
  const kitty = /^\x1b\[(\d+)(?::\d*)*(?:;(\d+)(?::\d+)?)?u$/.exec(data);
  if (kitty) return withBits(Number(kitty[2] ?? 1) - 1, CODES[kitty[1]] ?? String.fromCodePoint(Number(kitty[1])));
  const other = /^\x1b\[27;(\d+);(\d+)~$/.exec(data);
  if (other) return withBits(Number(other[1]) - 1, CODES[other[2]] ?? String.fromCodePoint(Number(other[2])));
  const numbered = /^\x1b\[(\d+)(?:;(\d+)(?::\d+)?)?~$/.exec(data);
  if (numbered) return NUMBERS[numbered[1]] && withBits(Number(numbered[2] ?? 1) - 1, NUMBERS[numbered[1]]);
  const lettered = /^\x1b(?:\[|O)(?:1;(\d+)(?::\d+)?)?([A-Z])$/.exec(data);
  if (lettered && LETTERS[lettered[2]]) return withBits(lettered[2] === "Z" ? 1 : Number(lettered[1] ?? 1) - 1, LETTERS[lettered[2]]);
  if (data.length === 2 && data[0] === "\x1b") {
    const key = parseKey(data[1]);
    return key && normal(`alt+${key}`);
  }
  return data.length === 1 || [...data].length === 1 ? plain(data) : undefined;
}

function plain(data) {
  const code = data.codePointAt(0);
  if (data === "\r" || data === "\n") return "enter";
  if (data === "\x7f" || data === "\b") return "backspace";
  if (CODES[code]) return CODES[code];
  if (code === 0) return "ctrl+space";
  if (code < 27) return `ctrl+${String.fromCharCode(code + 96)}`;
  if (code < 32) return `ctrl+${String.fromCharCode(code + 64).toLowerCase()}`;
  return /^[A-Z]$/.test(data) ? `shift+${data.toLowerCase()}` : data;
}

/** Whether input is a key. */
function matchesKey(data, keyId) {
  const key = parseKey(data);
  return key !== undefined && key === normal(keyId);
}

const kittyEvent = (data, event) => new RegExp(`^\\x1b\\[[\\d:]*;\\d+:${event}[u~A-Z]`).test(data);

module.exports = {
  Key, matchesKey, parseKey,
  isKeyRelease: (data) => kittyEvent(data, 3),
  isKeyRepeat: (data) => kittyEvent(data, 2),
  isKittyProtocolActive: () => false,
  setKittyProtocolActive() {},
  decodeKittyPrintable: (data) => {
    const key = parseKey(data);
    return key && [...key].length === 1 ? key : undefined;
  },
};
