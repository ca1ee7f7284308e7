// Markdown inside a block: emphasis, code, links, autolinks. Blocks are in markdown.js.

const INLINE_SPECIAL = /[\\`*_~[\]!<&\n]|https?:\/\//g;
const ENTITIES = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0', copy: '©', mdash: '—', ndash: '–', hellip: '…', rarr: '→', larr: '←', times: '×' };

/** Where a link may lead: pages and mail, nothing that runs or reads. */
function safeAddress(address) {
  const cleaned = address.replace(/[\u0000-\u0020\u007f-\u009f]/g, '');
  return /^(https?:\/\/|mailto:)/i.test(cleaned) ? cleaned : null;
}

/** A link that opens in a new tab and tells nobody where it came from; text only when it leads nowhere good. */
function link(address, children) {
  const safe = safeAddress(address);
  if (!safe) return el('span', 'no-link', ...children);
  const node = el('a', '', ...children);
  node.href = safe;
  node.target = '_blank';
  node.rel = 'noopener noreferrer nofollow';
  node.title = safe;
  return node;
}

/** Inline Markdown as nodes. */
function inline(text) {
  const parts = [];
  const brackets = [];
  const push = (value) => {
    const last = parts[parts.length - 1];
    if (typeof value === 'string' && last && last.text !== undefined) last.text += value;
    else parts.push(typeof value === 'string' ? { text: value } : value);
  };
  const runs = codeRuns(text);
  let at = 0;
  INLINE_SPECIAL.lastIndex = 0;
  for (;;) {
    INLINE_SPECIAL.lastIndex = at;
    const match = INLINE_SPECIAL.exec(text);
    if (!match) break;
    if (match.index > at) push(text.slice(at, match.index));
    at = inlineAt(text, match.index, match[0], parts, brackets, push, runs);
  }
  push(text.slice(at));
  return emphasis(parts);
}

/** What begins at a special character; gives where to go on. */
function inlineAt(text, at, mark, parts, brackets, push, runs) {
  const next = text[at + 1] || '';
  switch (mark) {
    case '\\':
      if (next === '\n') { push({ node: el('br') }); return at + 2; }
      if (/[!-/:-@[-`{-~]/.test(next)) { push(next); return at + 2; }
      push('\\');
      return at + 1;
    case '\n': push({ node: el('br') }); return at + 1;
    case '`': return codeAt(text, at, push, runs);
    case '!':
      if (next === '[') { brackets.push({ part: parts.length, image: true, from: at + 2 }); parts.push({ text: '![', wall: true }); parts.push({ text: '' }); return at + 2; }
      push('!');
      return at + 1;
    case '[': brackets.push({ part: parts.length, image: false, from: at + 1 }); parts.push({ text: '[', wall: true }); parts.push({ text: '' }); return at + 1;
    case ']': return bracketAt(text, at, parts, brackets, push);
    case '<': {
      const auto = /^<(https?:\/\/[^\s<>]{1,2000}|mailto:[^\s<>]{1,200})>/i.exec(text.slice(at, at + 2010));
      if (auto) { push({ node: link(auto[1], [auto[1]]) }); return at + auto[0].length; }
      push('<');
      return at + 1;
    }
    case '&': {
      const entity = /^&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]{2,8}));/i.exec(text.slice(at, at + 12));
      const code = entity && (entity[1] ? parseInt(entity[1], 10) : entity[2] ? parseInt(entity[2], 16) : 0);
      const letter = entity && (entity[3] ? ENTITIES[entity[3]] : code > 0 && code < 0x110000 ? String.fromCodePoint(code) : null);
      push(letter || '&');
      return at + (letter ? entity[0].length : 1);
    }
    case '*': case '_': case '~': {
      let end = at;
      while (text[end] === mark) end += 1;
      push({ mark, count: end - at, text: undefined, ...flanks(text, at, end, mark) });
      return end;
    }
    default: {
      const address = /^https?:\/\/[^\s<>"'`|\\^{}]+/.exec(text.slice(at, at + 2000));
      if (!address) { push(mark); return at + mark.length; }
      let found = address[0].replace(/[.,:;!?*_~]+$/, '');
      while (found.endsWith(')') && found.split(')').length > found.split('(').length) found = found.slice(0, -1);
      if (brackets.length) push(found); else push({ node: link(found, [found]) });
      return at + found.length;
    }
  }
}

/** Where runs of backticks of each length begin, so that an opening one finds its end without searching. */
function codeRuns(text) {
  const runs = new Map();
  for (const match of text.matchAll(/`+/g)) {
    if (!runs.has(match[0].length)) runs.set(match[0].length, { at: [], next: 0 });
    runs.get(match[0].length).at.push(match.index);
  }
  return runs;
}

function codeAt(text, at, push, runs) {
  let end = at;
  while (text[end] === '`') end += 1;
  // After an escaped mark, the rest of its run may have a length that was not counted.
  const run = runs.get(end - at) || { at: [], next: 0 };
  while (run.next < run.at.length && run.at[run.next] < end) run.next += 1;
  if (run.next >= run.at.length) {
    push(text.slice(at, end));
    return end;
  }
  const close = run.at[run.next];
  let code = text.slice(end, close).replace(/\n/g, ' ');
  if (code.length > 2 && code.startsWith(' ') && code.endsWith(' ') && code.trim()) code = code.slice(1, -1);
  push({ node: el('code', '', code) });
  return close + (end - at);
}

/** May a run of marks open or close emphasis? */
function flanks(text, from, to, mark) {
  const before = text[from - 1] || ' ';
  const after = text[to] || ' ';
  const blank = /\s/;
  const punctuation = /[!-/:-@[-`{-~\p{P}]/u;
  const left = !blank.test(after) && (!punctuation.test(after) || blank.test(before) || punctuation.test(before));
  const right = !blank.test(before) && (!punctuation.test(before) || blank.test(after) || punctuation.test(after));
  if (mark === '_') return { open: left && (!right || punctuation.test(before)), close: right && (!left || punctuation.test(after)) };
  if (mark === '~') return { open: left && to - from === 2, close: right && to - from === 2 };
  return { open: left, close: right };
}

/** A closing bracket: a link, an image (named, never loaded), or just a bracket. */
function bracketAt(text, at, parts, brackets, push) {
  const open = brackets.pop();
  if (!open) { push(']'); return at + 1; }
  const target = text[at + 1] === '(' && /^\(\s*(?:<([^<>\n]{0,2000})>|((?:[^\s()\\]|\\[^]|\([^\s()]{0,500}\)){0,2000}))(?:\s+(?:"[^"]{0,500}"|'[^']{0,500}'))?\s*\)/.exec(text.slice(at + 1, at + 5000));
  if (!target) { push(']'); return at + 1; }
  const inner = emphasis(parts.splice(open.part).slice(1));
  const address = (target[1] ?? target[2]).replace(/\\([!-/:-@[-`{-~])/g, '$1');
  if (open.image) push({ node: link(address, ['🖼 ', ...(inner.length ? inner : ['image'])]) });
  else push({ node: link(address, inner) });
  return at + 1 + target[0].length;
}

/** Pairs of marks become emphasis; the rest becomes text. */
function emphasis(parts) {
  const stack = [{ mark: '', out: [] }];
  const open = { '*': 0, _: 0, '~': 0 };
  const top = () => stack[stack.length - 1];
  const fall = () => {
    const { mark, count, out } = stack.pop();
    open[mark] -= 1;
    top().out.push(mark.repeat(count), ...out);
  };
  for (const part of parts) {
    if (part.node) { top().out.push(part.node); continue; }
    if (!part.mark) { if (part.text) top().out.push(part.text); continue; }
    let left = part.count;
    while (part.close && left > 0 && open[part.mark] > 0) {
      while (top().mark !== part.mark) fall();
      const taken = Math.min(left, top().count, part.mark === '~' ? 2 : left >= 2 && top().count >= 2 ? 2 : 1);
      const tag = part.mark === '~' ? 's' : taken === 2 ? 'strong' : 'em';
      const level = top();
      const node = el(tag, '', ...level.out);
      left -= taken;
      level.count -= taken;
      level.out = [node];
      if (level.count === 0) {
        stack.pop();
        open[part.mark] -= 1;
        top().out.push(node);
      }
    }
    if (left > 0 && part.open && stack.length < 40) {
      stack.push({ mark: part.mark, count: left, out: [] });
      open[part.mark] += 1;
    } else if (left > 0) top().out.push(part.mark.repeat(left));
  }
  while (stack.length > 1) fall();
  return stack[0].out;
}
