/** Measuring and cutting terminal text: widths of characters, escape sequences, wrapping. Components are tui-components.cjs. */
"use strict";

// Colours, cursor movements, links and other commands to a terminal.
const ANSI = /\x1b(?:\[[0-9;:?<=>]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|_[^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])/y;
const ANSI_ALL = new RegExp(ANSI.source, "g");
const PLAIN = /^[\x20-\x7e]*$/;
const RESET = "\x1b[0m";

const segmenter = new Intl.Segmenter();

/** @returns {string} without escape sequences */
function stripTerminalSequences(text) {
  return text.includes("\x1b") ? text.replace(ANSI_ALL, "") : text;
}

// East Asian wide and full-width ranges, as first and last code points.
const WIDE = [
  [0x1100, 0x115f], [0x231a, 0x231b], [0x2329, 0x232a], [0x23e9, 0x23ec], [0x25fd, 0x25fe], [0x2614, 0x2615], [0x2e80, 0x303e],
  [0x3041, 0x33ff], [0x3400, 0x4dbf], [0x4e00, 0x9fff], [0xa000, 0xa4cf], [0xa960, 0xa97f], [0xac00, 0xd7a3], [0xf900, 0xfaff],
  [0xfe30, 0xfe6f], [0xff01, 0xff60], [0xffe0, 0xffe6], [0x1f300, 0x1f64f], [0x1f680, 0x1f6ff], [0x1f900, 0x1f9ff], [0x20000, 0x3fffd],
];

/** Columns of one character as a reader sees it. */
function graphemeWidth(text) {
  const code = text.codePointAt(0);
  if (code < 32 || (code >= 0x7f && code < 0xa0)) return 0;
  if (/^\p{Mark}|^[\u200b-\u200f\u2060\ufeff]/u.test(text)) return 0;
  if (text.includes("\ufe0f") || /^\p{Emoji_Presentation}/u.test(text)) return 2;
  return WIDE.some(([from, to]) => code >= from && code <= to) ? 2 : 1;
}

/** @returns {number} columns the text takes; a tab takes three, as in pi */
function visibleWidth(text) {
  if (PLAIN.test(text)) return text.length;
  let width = 0;
  for (const { segment } of segmenter.segment(stripTerminalSequences(text).replace(/\t/g, "   "))) width += graphemeWidth(segment);
  return width;
}

/** @yields {{text: string, width: number, escape: boolean}} characters and escape sequences */
function* pieces(text) {
  let at = 0;
  while (at < text.length) {
    if (text[at] === "\x1b") {
      ANSI.lastIndex = at;
      const found = ANSI.exec(text)?.[0] ?? "\x1b";
      yield { text: found, width: 0, escape: true };
      at += found.length;
      continue;
    }
    const next = text.indexOf("\x1b", at);
    const end = next < 0 ? text.length : next;
    for (const { segment } of segmenter.segment(text.slice(at, end))) {
      const shown = segment === "\t" ? "   " : segment;
      yield { text: shown, width: segment === "\t" ? 3 : graphemeWidth(segment), escape: false };
    }
    at = end;
  }
}

/** Cuts to a number of columns, with an ellipsis where something is missing. */
function truncateToWidth(text, maxWidth, ellipsis = "...", pad = false) {
  const width = visibleWidth(text);
  if (width <= maxWidth) return pad ? text + " ".repeat(maxWidth - width) : text;
  const room = Math.max(0, maxWidth - visibleWidth(ellipsis));
  let cut = "";
  let used = 0;
  for (const piece of pieces(text)) {
    if (used + piece.width > room) break;
    cut += piece.text;
    used += piece.width;
  }
  const tail = visibleWidth(ellipsis) <= maxWidth ? ellipsis : "";
  const made = cut + (cut.includes("\x1b") ? RESET : "") + tail;
  return pad ? made + " ".repeat(Math.max(0, maxWidth - visibleWidth(made))) : made;
}

/** The part between two columns. */
function sliceByColumn(text, start, length) {
  let at = 0;
  let made = "";
  for (const piece of pieces(text)) {
    if (piece.escape || (at >= start && at + piece.width <= start + length)) made += piece.text;
    at += piece.width;
  }
  return made;
}

/** Breaks into lines of at most `width` columns, at spaces where possible; colours go on in the next line. */
function wrapTextWithAnsi(text, width) {
  const lines = [];
  let active = "";
  for (const raw of String(text).split("\n")) {
    const wrapped = wrapLine(active + raw, Math.max(1, width));
    lines.push(...wrapped.lines);
    active = wrapped.active;
  }
  return lines;
}

function wrapLine(text, width) {
  const lines = [];
  let line = "";
  let used = 0;
  let word = "";
  let wordWidth = 0;
  let active = "";
  const flush = () => {
    line += word;
    used += wordWidth;
    word = "";
    wordWidth = 0;
  };
  const next = () => {
    lines.push(line.trimEnd());
    line = active;
    used = 0;
  };
  for (const piece of pieces(text)) {
    if (piece.escape) {
      word += piece.text;
      active = /^\x1b\[0?m$/.test(piece.text) ? "" : active + (piece.text.endsWith("m") ? piece.text : "");
      continue;
    }
    if (/^\s+$/.test(piece.text)) {
      flush();
      if (used + piece.width > width) next();
      else {
        line += piece.text;
        used += piece.width;
      }
      continue;
    }
    if (used + wordWidth + piece.width > width) {
      if (used > 0 && wordWidth + piece.width <= width) next();
      else {
        flush();
        next();
      }
    }
    word += piece.text;
    wordWidth += piece.width;
  }
  flush();
  lines.push(line);
  return { lines, active };
}

module.exports = { visibleWidth, truncateToWidth, wrapTextWithAnsi, sliceByColumn, stripTerminalSequences };
