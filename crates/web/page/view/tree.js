// The session's tree: all branches of the conversation, from which one goes on at another place or forks into a new session.

import { oneLine, textOf } from '../lib/format.js';
import { el, fill, icon } from '../lib/dom.js';
import { openDialog } from './dialogs.js';
import { callLine } from './tool.js';

const MOST = 600;

/** @param {{ tree: any[], leafId: string|null }} data @param {{ go: (id: string, summarize: boolean) => void, fork: (id: string) => void, label: (id: string, old: string) => void }} actions */
export function showTree(data, actions) {
  const rows = flat(data.tree || [], data.leafId);
  openDialog('Branches', (end) => {
    const search = el('input', { type: 'search', placeholder: 'Search', aria: { label: 'Search the tree' }, autocomplete: 'off' });
    const list = el('div.tree', { role: 'tree' });
    const show = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const found = rows.filter((row) => words.every((word) => `${row.text} ${row.did || ''} ${row.label || ''}`.toLowerCase().includes(word)));
      fill(list, found.slice(-MOST).map((row) => rowView(row, actions, end)), found.length ? null : el('p.menu-empty', { text: 'Nothing here' }));
    };
    search.addEventListener('input', show);
    show();
    setTimeout(() => list.querySelector('.leaf')?.scrollIntoView({ block: 'center' }));
    return [el('p.dialog-message', { text: 'The branch you are on is marked. Go to another place to continue from there; nothing is lost.' }), search, list,
      el('div.dialog-foot', {}, el('button', { type: 'button', text: 'Close', onclick: end }))];
  }, { wide: true });
}

/** The tree as rows: children of a single line stay at its depth, only real branches go deeper. */
function flat(roots, leafId) {
  const rows = [];
  const failed = failures(roots);
  const stack = roots.map((node) => ({ node, depth: 0 })).reverse();
  while (stack.length) {
    const { node, depth } = stack.pop();
    const entry = node.entry || {};
    const row = describe(entry, failed);
    if (row) rows.push({ ...row, id: entry.id, depth, label: node.label, isLeaf: entry.id === leafId, parentId: entry.parentId });
    const children = node.children || [];
    const deeper = children.length > 1 ? depth + 1 : depth;
    for (let i = children.length - 1; i >= 0; i -= 1) stack.push({ node: children[i], depth: deeper });
  }
  markPath(rows, roots, leafId);
  return rows;
}

function markPath(rows, roots, leafId) {
  const parents = new Map();
  const stack = [...roots];
  while (stack.length) {
    const node = stack.pop();
    if (node.entry) parents.set(node.entry.id, node.entry.parentId);
    // Not as arguments: an engine takes about 100,000 of them.
    for (const child of node.children || []) stack.push(child);
  }
  const path = new Set();
  for (let id = leafId; id && !path.has(id); id = parents.get(id)) path.add(id);
  for (const row of rows) row.isOn = path.has(row.id);
  if (!rows.some((row) => row.isLeaf)) {
    const last = rows.findLast((row) => row.isOn);
    if (last) last.isLeaf = true;
  }
}

/** The calls whose result is an error. */
function failures(roots) {
  const failed = new Set();
  const stack = [...roots];
  while (stack.length) {
    const node = stack.pop();
    const message = node.entry?.message;
    if (message?.role === 'toolResult' && message.isError) failed.add(message.toolCallId);
    for (const child of node.children || []) stack.push(child);
  }
  return failed;
}

/** What a step of the conversation did. Null: nothing that a reader looks for. */
function describe(entry, failed) {
  const { message } = entry;
  if (entry.type === 'message' && message?.role === 'user') return { kind: 'user', icon: 'chevron', text: oneLine(textOf(message.content), 160) || 'Image' };
  if (entry.type === 'message' && message?.role === 'assistant') {
    const text = oneLine(textOf(message.content), 160);
    const calls = (Array.isArray(message.content) ? message.content : []).filter((block) => block?.type === 'toolCall');
    const did = calls.map((call) => `${callLine(call.name, call.arguments)}${failed.has(call.id) ? ' (failed)' : ''}`).join(' · ');
    const end = message.stopReason === 'error' ? `Failed: ${oneLine(message.errorMessage || '', 120)}` : message.stopReason === 'aborted' ? 'Stopped' : '';
    return { kind: 'assistant', icon: calls.length && !text ? 'tool' : null, text: text || did || end || 'Empty answer', did: text ? did : '' };
  }
  if (entry.type === 'message' && message?.role === 'bashExecution') return { kind: 'shell', icon: 'terminal', text: oneLine(message.command, 160) };
  if (entry.type === 'compaction') return { kind: 'note', icon: 'shrink', text: 'Compacted' };
  if (entry.type === 'model_change') return { kind: 'note', icon: 'more', text: `Model: ${oneLine(entry.modelId || '', 80)}` };
  if (entry.type === 'thinking_level_change') return { kind: 'note', icon: 'thought', text: `Thinking: ${oneLine(entry.thinkingLevel || '', 20)}` };
  if (entry.type === 'branch_summary') return { kind: 'note', icon: 'tree', text: 'Summary of a branch' };
  return null;
}

function rowView(row, actions, end) {
  const node = el('div.tree-row', { role: 'treeitem', tabIndex: 0, class: `by-${row.kind} ${row.isOn ? 'on' : ''} ${row.isLeaf ? 'leaf' : ''}`, aria: { level: row.depth + 1, selected: row.isLeaf } },
    row.icon ? icon(row.icon) : el('span.icon'), el('span.tree-text', { text: row.text, dir: 'auto' }, row.did ? el('span.tree-did', { text: ` ${row.did}` }) : null), row.label ? el('span.tree-label', { text: row.label }) : null,
    el('span.tree-actions', {},
      row.isLeaf ? el('span.remark', { text: 'here' }) : el('button.link', { type: 'button', text: 'Go here', onclick: () => { end(); actions.go(row.id, false); } }),
      row.isLeaf ? null : el('button.link', { type: 'button', text: 'with summary', title: 'The model summarises the branch that is left', onclick: () => { end(); actions.go(row.id, true); } }),
      row.kind === 'user' ? el('button.link', { type: 'button', text: 'Fork', onclick: () => { end(); actions.fork(row.id); } }) : null,
      el('button.link', { type: 'button', text: 'Label', onclick: () => { end(); actions.label(row.id, row.label || ''); } })));
  node.style.setProperty('--depth', String(Math.min(row.depth, 12)));
  return node;
}
