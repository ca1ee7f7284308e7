// Markdown blocks to elements. Raw HTML is text. Inline things are in inline.js.

const MARKDOWN_MOST = 150000;
const NESTED_MOST = 10;

/** A message as elements. Very long ones stay plain text. */
function markdown(text) {
  const out = el('div', 'md');
  if (text.length > MARKDOWN_MOST) out.append(longPre(text));
  else out.append(...blocks(text.replace(/\r\n?/g, '\n').replace(/\t/g, '    ').split('\n'), 0));
  return out;
}

const FENCE = /^( *)(`{3,}|~{3,}) *([^`]*)$/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])( +|$)(.*)$/;
const RULE = /^ {0,3}(?:(?:\* *){3,}|(?:- *){3,}|(?:_ *){3,})$/;
const HEADING = /^ {0,3}(#{1,6})(?: +(.*))?$/;
const QUOTE = /^ {0,3}> ?/;
const DELIMITER = /^ *\|?(?: *:?-+:? *\|)+(?: *:?-+:? *)?\|? *$|^ *\| *:?-+:? *\|? *$/;

const begins = (line) => FENCE.test(line) || RULE.test(line) || HEADING.test(line) || QUOTE.test(line) || /^ *(?:[-*+]|1[.)]) +\S/.test(line);

const beginsTable = (lines, at) => {
  const next = lines[at + 1] || '';
  return lines[at].includes('|') && next.length < 1000 && next.includes('-') && DELIMITER.test(next);
};

/** Lines as block elements. */
function blocks(lines, depth) {
  const out = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    if (!line.trim()) { at += 1; continue; }
    if (depth > NESTED_MOST) { out.push(el('p', '', lines.slice(at).join('\n'))); break; }
    const reader = FENCE.test(line) ? fence : RULE.test(line) ? rule : HEADING.test(line) ? heading
      : QUOTE.test(line) ? quote : ITEM.test(line) ? items : /^ {4}/.test(line) ? indented
      : beginsTable(lines, at) ? table : paragraph;
    const [node, next] = reader(lines, at, depth);
    // Each block has the direction of its own words; code has its own.
    if (!node.className) node.dir = 'auto';
    out.push(node);
    at = next;
  }
  return out;
}

function fence(lines, at) {
  const [, indent, mark, info] = FENCE.exec(lines[at]);
  const closing = new RegExp(`^ *${mark[0] === '~' ? '~' : '`'}{${mark.length},} *$`);
  let end = at + 1;
  while (end < lines.length && !closing.test(lines[end])) end += 1;
  const strip = new RegExp(`^ {0,${indent.length}}`);
  const code = lines.slice(at + 1, end).map((line) => line.replace(strip, '')).join('\n');
  return [codeBlock(code, info.trim().split(/[\s,{:]/)[0]), end + 1];
}

/** Code with its language and a button to copy it. */
function codeBlock(code, language) {
  const head = el('div', 'code-head', el('span', '', firstLine(str(language), 24)), copyButton('copy', 'Copy the code', () => code));
  const pre = el('pre', '', el('code', '', highlighted(code, language)));
  pre.dir = 'ltr';
  pre.tabIndex = 0;
  return el('div', 'code', head, pre);
}

const rule = (_lines, at) => [el('hr'), at + 1];

function heading(lines, at) {
  const [, marks, text] = HEADING.exec(lines[at]);
  return [el('h' + Math.min(6, marks.length + 1), '', ...inline(str(text).replace(/(?:^| )#+ *$/, '').trim())), at + 1];
}

function quote(lines, at, depth) {
  let end = at;
  const inner = [];
  while (end < lines.length && lines[end].trim() && (QUOTE.test(lines[end]) || !begins(lines[end]))) {
    inner.push(lines[end].replace(QUOTE, ''));
    end += 1;
  }
  return [el('blockquote', '', ...blocks(inner, depth + 1)), end];
}

function indented(lines, at) {
  let end = at;
  while (end < lines.length && (/^ {4}/.test(lines[end]) || !lines[end].trim())) end += 1;
  return [codeBlock(lines.slice(at, end).map((line) => line.slice(4)).join('\n').trimEnd(), ''), end];
}

function items(lines, at, depth) {
  const first = ITEM.exec(lines[at]);
  const ordered = /\d/.test(first[2]);
  const node = el(ordered ? 'ol' : 'ul');
  if (ordered && parseInt(first[2], 10) !== 1) node.start = parseInt(first[2], 10);
  const base = first[1].length;
  let end = at;
  while (end < lines.length) {
    const item = ITEM.exec(lines[end]);
    if (!item || item[1].length > base + 1 || item[1].length < base - 1 || /\d/.test(item[2]) !== ordered || RULE.test(lines[end])) break;
    const width = item[1].length + item[2].length + Math.min(Math.max(item[3].length, 1), 4);
    const inner = [item[4]];
    end += 1;
    let loose = false;
    while (end < lines.length) {
      const line = lines[end];
      const indent = line.length - line.trimStart().length;
      if (!line.trim()) loose = true;
      else if (indent >= Math.min(width, base + 2)) { inner.push(...(loose ? [''] : []), line.slice(Math.min(indent, width))); loose = false; }
      else if (!loose && !begins(line) && !ITEM.test(line)) inner.push(line.trimStart());
      else break;
      end += 1;
    }
    node.append(listItem(inner, depth));
  }
  return [node, end];
}

function listItem(lines, depth) {
  const task = /^\[([ xX])\] +(.*)$/.exec(lines[0]);
  if (task) lines[0] = task[2];
  const content = blocks(lines, depth + 1);
  const lead = content.length && content[0].tagName === 'P' ? [...content.shift().childNodes] : [];
  const item = el('li', task ? 'task' : '', ...lead, ...content);
  if (task) item.prepend(el('span', task[1] === ' ' ? 'box' : 'box done', task[1] === ' ' ? '☐ ' : '☑ '));
  return item;
}

/** The cells of a row; a bar in code or behind a backslash does not part them. */
function cells(line) {
  const parts = line.trim().replace(/^\|/, '').replace(/(^|[^\\])\|$/, '$1').match(/(?:\\[^]|`[^`]*`|[^|\\]|\\$)+|(?<=\|)(?=\|)/g);
  return list(parts).map((cell) => cell.replace(/\\\|/g, '|').trim());
}

function table(lines, at) {
  const sides = cells(lines[at + 1]).map((cell) => (cell.endsWith(':') ? (cell.startsWith(':') ? 'center' : 'right') : ''));
  const row = (line, tag) => el('tr', '', ...cells(line).slice(0, sides.length).map((cell, i) => el(tag, sides[i] || '', ...inline(cell))));
  const body = el('tbody');
  let end = at + 2;
  while (end < lines.length && lines[end].includes('|') && lines[end].trim()) {
    body.append(row(lines[end], 'td'));
    end += 1;
  }
  return [el('div', 'table', el('table', '', el('thead', '', row(lines[at], 'th')), body)), end];
}

function paragraph(lines, at) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() && !/^ {0,3}(?:=+|-+) *$/.test(lines[end]) && !begins(lines[end]) && !beginsTable(lines, end)) end += 1;
  const text = lines.slice(at, end).map((line) => line.trim()).join('\n');
  const under = lines[end] || '';
  if (/^ {0,3}=+ *$/.test(under)) return [el('h2', '', ...inline(text)), end + 1];
  if (/^ {0,3}-+ *$/.test(under) && under.trim()) return [el('h3', '', ...inline(text)), end + 1];
  return [el('p', '', ...inline(text)), end];
}
