// Terminal output as coloured pieces of text. Escape sequences that are no colours are left out; a carriage return begins
// its line anew, as in a terminal. Pure: gives data, no elements.

/**
 * @typedef {{ fg?: number|string, bg?: number|string, bold?: boolean, dim?: boolean, italic?: boolean, underline?: boolean,
 *   strike?: boolean, inverse?: boolean }} Style colours 0..15 are the theme's, others are `#rrggbb`
 * @typedef {{ text: string, style: Style|null }} Piece
 */

// A colour sequence is caught in group 1; everything else that a terminal would swallow matches too.
const ESCAPE = /\x1b\[([0-9;:]*)m|\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[PX^_][^\x1b]*(?:\x1b\\)?|\x1b[ -/]*[0-~]?|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]/g;

/** @param {string} text @returns {Piece[]} */
export function parse(text) {
  const source = overwritten(text);
  const pieces = [];
  let style = null;
  let from = 0;
  const push = (part) => {
    if (!part) return;
    const last = pieces[pieces.length - 1];
    if (last && last.style === style) last.text += part;
    else pieces.push({ text: part, style });
  };
  for (const match of source.matchAll(ESCAPE)) {
    push(source.slice(from, match.index));
    from = match.index + match[0].length;
    if (match[1] !== undefined) style = changed(style, match[1]);
  }
  push(source.slice(from));
  return pieces;
}

/** The text alone. */
export function strip(text) {
  return overwritten(text).replace(ESCAPE, '');
}

/** What is left of lines that were written over after a carriage return. */
function overwritten(text) {
  const lines = String(text).replace(/\r+\n/g, '\n');
  if (!lines.includes('\r')) return lines;
  return lines.split('\n').map((line) => {
    const parts = line.split('\r').filter(Boolean);
    return parts.length ? parts[parts.length - 1] : '';
  }).join('\n');
}

/** @returns {Style|null} */
function changed(style, codes) {
  const numbers = codes.split(/[;:]/).map(Number);
  let next = { ...style };
  for (let i = 0; i < numbers.length; i += 1) {
    const code = numbers[i];
    if (code === 0) next = {};
    else if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.underline = true;
    else if (code === 7) next.inverse = true;
    else if (code === 9) next.strike = true;
    else if (code === 22) { delete next.bold; delete next.dim; }
    else if (code === 23) delete next.italic;
    else if (code === 24) delete next.underline;
    else if (code === 27) delete next.inverse;
    else if (code === 29) delete next.strike;
    else if (code >= 30 && code <= 37) next.fg = code - 30;
    else if (code >= 40 && code <= 47) next.bg = code - 40;
    else if (code >= 90 && code <= 97) next.fg = code - 82;
    else if (code >= 100 && code <= 107) next.bg = code - 92;
    else if (code === 39) delete next.fg;
    else if (code === 49) delete next.bg;
    else if (code === 38 || code === 48) {
      const [colour, used] = extended(numbers.slice(i + 1));
      if (colour !== null) next[code === 38 ? 'fg' : 'bg'] = colour;
      i += used;
    }
  }
  return Object.keys(next).length ? next : null;
}

/** A colour of the palette of 256, or a true colour; and how many numbers it took. */
function extended(numbers) {
  if (numbers[0] === 5 && numbers[1] >= 0 && numbers[1] <= 255) return [palette(numbers[1]), 2];
  if (numbers[0] === 2 && numbers.length >= 4) return [hex(numbers.slice(1, 4)), 4];
  return [null, numbers.length];
}

function palette(index) {
  if (index < 16) return index;
  if (index >= 232) return hex([index, index, index].map((grey) => 8 + (grey - 232) * 10));
  const level = (step) => (step ? 55 + step * 40 : 0);
  const cube = index - 16;
  return hex([level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6)]);
}

function hex(channels) {
  return `#${channels.map((value) => Math.max(0, Math.min(255, value | 0)).toString(16).padStart(2, '0')).join('')}`;
}
