// What a turn changed in files, at its end: how many, how many lines, and for each file the diff when it is opened.

import { diffText, tally } from '../lib/diff.js';
import { baseName, count, shortPath } from '../lib/format.js';
import { copy, el, icon } from '../lib/dom.js';
import { languageOf } from './code.js';
import { diffOf, diffView } from './diffview.js';

const MOST_FILES = 300;

/** The lines that the calls of one file changed, one after the other. */
function linesOf(tools) {
  return tools.flatMap((tool, index) => {
    const lines = diffOf(tool) || (typeof tool.args?.content === 'string'
      ? tool.args.content.replace(/\n$/, '').split('\n').map((text, at) => ({ kind: 'add', number: String(at + 1), text })) : []);
    return index && lines.length ? [{ kind: 'gap', number: '', text: '' }, ...lines] : lines;
  });
}

function figures({ added, removed }) {
  return el('span.changes-figures', { aria: { label: `${added} lines added, ${removed} removed` } },
    added || !removed ? el('span.changes-added', { text: `+${added}` }) : null, removed ? el('span.changes-removed', { text: `−${removed}` }) : null);
}

/** @param {Map<string, any[]>} files */
export function changesView(files) {
  const each = [...files].map(([path, tools]) => { const lines = linesOf(tools); return { path, lines, ...tally(lines) }; });
  const sum = { added: 0, removed: 0 };
  for (const file of each) { sum.added += file.added; sum.removed += file.removed; }
  const button = el('button.icon-button.small', { type: 'button', title: 'Copy all changes', aria: { label: 'Copy all changes' } }, icon('copy'));
  button.addEventListener('click', (event) => {
    event.preventDefault();
    copy(each.map((file) => `--- ${file.path}\n${diffText(file.lines)}\n`).join('\n'), button);
  });
  const list = el('div.changes-list');
  const all = el('details.changes', {}, el('summary', {}, icon('pencil'), el('span.changes-title', { text: `${count(each.length, 'file')} changed` }), figures(sum), button,
    el('span.tool-turn', {}, icon('chevron'))), list);
  all.addEventListener('toggle', () => { if (all.open && !list.firstChild) list.append(...each.slice(0, MOST_FILES).map((file) => fileView(file, each.length === 1))); });
  return all;
}

/** @param {{ path: string, lines: any[], added: number, removed: number, note?: string }} file */
export function fileView(file, isOpen) {
  const name = baseName(file.path);
  const line = shortPath(file.path);
  const button = el('button.icon-button.small', { type: 'button', title: 'Copy changes', aria: { label: `Copy changes of ${name}` } }, icon('copy'));
  button.addEventListener('click', (event) => { event.preventDefault(); copy(diffText(file.lines), button); });
  const node = el('details.changes-file', {}, el('summary', { title: file.path }, el('span.tool-subject', {},
    el('span.tool-directory', { text: line.slice(0, line.length - name.length) }), el('span', { text: name })), file.note ? el('span.changes-note', { text: file.note }) : null, figures(file), button, el('span.tool-turn', {}, icon('chevron'))));
  const show = () => { if (node.open && node.children.length === 1) node.append(file.lines.length ? diffView(file.lines, languageOf(file.path)) : el('p.tool-empty', { text: 'Nothing is known of what changed' })); };
  node.addEventListener('toggle', show);
  node.open = isOpen;
  return node;
}
