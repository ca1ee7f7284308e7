// A diff on the page: its lines, the words that changed in them, and the colours of the language once the highlighter is there.

import { makeDiff, readDiff } from '../lib/diff.js';
import { el } from '../lib/dom.js';
import { highlighted } from './code.js';

/** Lines of a diff that are shown; the rest is left out. */
export const MOST_LINES = 2000;
/** Longer diffs stay without colours. */
const MOST_COLOURED = 600;

/** The lines of an edit's diff, or null when there is none (yet). */
export function diffOf(tool) {
  const text = tool.result?.details?.diff;
  if (typeof text === 'string' && text) return readDiff(text);
  const args = tool.args || {};
  const edits = Array.isArray(args.edits) ? args.edits : [args];
  const pairs = edits.map((edit) => [edit?.oldText ?? edit?.old_text ?? edit?.old_string, edit?.newText ?? edit?.new_text ?? edit?.new_string])
    .filter(([before, after]) => typeof before === 'string' && typeof after === 'string');
  if (!pairs.length) return null;
  return pairs.flatMap(([before, after], index) => [...(index ? [{ kind: 'gap', number: '', text: '' }] : []), ...makeDiff(before, after)]);
}

/** A diff as a table. @param {import('../lib/diff.js').Line[]} lines @param {string} [lang] */
export function diffView(lines, lang = '') {
  const coloured = [];
  const rows = lines.slice(0, MOST_LINES).map((line) => {
    if (line.kind === 'gap') return el('div.diff-gap', { text: '⋯' });
    const sign = { add: '+', del: '−', same: ' ' }[line.kind];
    const text = el('span.diff-text', {}, ...(line.parts || [{ text: line.text, changed: false }])
      .map((part) => (part.changed ? el('mark', { text: part.text }) : part.text)), '\n');
    coloured.push([text, line]);
    return el(`div.diff-line.${line.kind}`, {},
      el('span.diff-number', { text: line.number, aria: { hidden: true } }), el('span.diff-sign', { text: sign }), text);
  });
  if (lines.length > MOST_LINES) rows.push(el('div.diff-gap', { text: `… ${lines.length - MOST_LINES} more lines` }));
  if (lang && lines.length <= MOST_COLOURED) colour(coloured, lang);
  return el('div.diff', { tabIndex: 0, role: 'region', aria: { label: 'Changes' } }, el('div.diff-body', {}, ...rows));
}

async function colour(rows, lang) {
  for (const [node, line] of rows) {
    const fragment = await highlighted(line.text, lang);
    if (!fragment || fragment.textContent !== line.text) return;
    if (line.parts) mark(fragment, line.parts);
    node.replaceChildren(fragment, '\n');
  }
}

/** Puts marks around the parts that changed, through whatever elements the colours made. */
function mark(fragment, parts) {
  const walker = document.createTreeWalker(fragment, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode);
  let at = 0;
  const changed = parts.map(({ text, changed: is }) => { const from = at; at += text.length; return is ? [from, at] : null; }).filter(Boolean);
  let begin = 0;
  for (const node of texts) {
    const end = begin + node.data.length;
    const pieces = [];
    let done = begin;
    for (const [from, to] of changed) {
      if (to <= begin || from >= end) continue;
      const [first, last] = [Math.max(from, begin), Math.min(to, end)];
      pieces.push(node.data.slice(done - begin, first - begin), el('mark', { text: node.data.slice(first - begin, last - begin) }));
      done = last;
    }
    if (pieces.length) node.replaceWith(...pieces.filter((piece) => piece !== ''), node.data.slice(done - begin));
    begin = end;
  }
}
