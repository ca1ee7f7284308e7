// Output of terminals: colours become spans, everything else that steers a terminal goes.

const ANSI_TOKENS = /\u001b\[([0-9;:]*)m|\u001b\[[0-?]*[ -/]*[@-~]|\u001b[\]PX^_][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b[ -/]*[0-~]?|[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;

/** Text without anything that steers a terminal. */
const withoutAnsi = (text) => text.replace(ANSI_TOKENS, '');

/** A line that was written over is what was written last. */
function lastWritten(text) {
  if (!text.includes('\r')) return text;
  return text.split('\n').map((line) => {
    let end = line.length;
    while (end > 0 && line[end - 1] === '\r') end -= 1;
    return line.slice(line.lastIndexOf('\r', end - 1) + 1, end);
  }).join('\n');
}

/** Terminal output as coloured text. */
function ansi(text) {
  const out = document.createDocumentFragment();
  text = lastWritten(text);
  if (!text.includes('\u001b')) {
    out.append(withoutAnsi(text));
    return out;
  }
  let style = {};
  let from = 0;
  const put = (piece) => {
    if (!piece) return;
    const names = ['bold', 'dim', 'italic', 'under', 'strike', 'inverse'].filter((name) => style[name]).map((name) => 'a-' + name);
    if (typeof style.fg === 'number') names.push('a-f' + style.fg);
    if (typeof style.bg === 'number') names.push('a-b' + style.bg);
    if (!names.length && !style.fg && !style.bg) { out.append(piece); return; }
    const span = el('span', names.join(' '), piece);
    if (typeof style.fg === 'string') span.style.color = style.fg;
    if (typeof style.bg === 'string') span.style.backgroundColor = style.bg;
    out.append(span);
  };
  for (const match of text.matchAll(ANSI_TOKENS)) {
    put(text.slice(from, match.index));
    if (match[1] !== undefined) style = graphics(style, match[1]);
    from = match.index + match[0].length;
  }
  put(text.slice(from));
  return out;
}

/** The style after one "select graphic rendition". */
function graphics(style, codes) {
  let next = { ...style };
  const numbers = codes.split(/[;:]/).map((code) => parseInt(code || '0', 10) || 0);
  for (let i = 0; i < numbers.length; i += 1) {
    const n = numbers[i];
    if (n === 0) next = {};
    else if (n === 1) next.bold = true;
    else if (n === 2) next.dim = true;
    else if (n === 3) next.italic = true;
    else if (n === 4) next.under = true;
    else if (n === 7) next.inverse = true;
    else if (n === 9) next.strike = true;
    else if (n === 22) next.bold = next.dim = false;
    else if (n === 23) next.italic = false;
    else if (n === 24) next.under = false;
    else if (n === 27) next.inverse = false;
    else if (n === 29) next.strike = false;
    else if (n >= 30 && n <= 37) next.fg = n - 30;
    else if (n >= 90 && n <= 97) next.fg = n - 82;
    else if (n === 39) next.fg = undefined;
    else if (n >= 40 && n <= 47) next.bg = n - 40;
    else if (n >= 100 && n <= 107) next.bg = n - 92;
    else if (n === 49) next.bg = undefined;
    else if (n === 38 || n === 48) {
      const key = n === 38 ? 'fg' : 'bg';
      if (numbers[i + 1] === 5) { next[key] = colour256(numbers[i + 2]); i += 2; }
      else if (numbers[i + 1] === 2) { next[key] = `rgb(${numbers.slice(i + 2, i + 5).map((c) => Math.min(255, c || 0)).join(',')})`; i += 4; }
    }
  }
  return next;
}

/** One of the 256 colours: a number for the first 16, which the theme defines, else a CSS colour. */
function colour256(n) {
  n = Math.min(255, Math.max(0, n || 0));
  if (n < 16) return n;
  if (n >= 232) { const grey = (n - 232) * 10 + 8; return `rgb(${grey},${grey},${grey})`; }
  const part = (value) => (value ? value * 40 + 55 : 0);
  return `rgb(${part(Math.floor((n - 16) / 36))},${part(Math.floor((n - 16) / 6) % 6)},${part((n - 16) % 6)})`;
}
