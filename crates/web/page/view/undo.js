// Undo: what the session, one of its runs or one of its turns changed in files, as diffs; going back to before it with files,
// conversation or both; and taking that back.

import { oneLine, shortPath, textOf } from '../lib/format.js';
import { readUnified, tally } from '../lib/diff.js';
import { count } from '../lib/format.js';
import { el, fill } from '../lib/dom.js';
import { fileView } from './changes.js';
import { openDialog } from './dialogs.js';
import { callLine } from './tool.js';

const MOST_FILES = 300;
const MOST_POINTS = 400;

/**
 * What can be undone: the whole session, then its runs, newest first, each with its turns. `entryId` names it for `get_changes`,
 * `before` for `rewind`: the entry after which nothing of it had happened.
 * @typedef {{ scope: string, entryId?: string, before: string|null, label: string }} Point
 */

/** @param {{ tree: any[], leafId: string|null }} data @returns {Point[]} */
export function pointsOf(data) {
  const entries = new Map();
  const stack = [...data.tree || []];
  while (stack.length) {
    const node = stack.pop();
    if (node.entry) entries.set(node.entry.id, node.entry);
    for (const child of node.children || []) stack.push(child);
  }
  const path = [];
  const seen = new Set();
  for (let entry = entries.get(data.leafId); entry && !seen.has(entry.id); entry = entries.get(entry.parentId)) { seen.add(entry.id); path.unshift(entry); }
  const runs = [];
  for (const entry of path) {
    const { message } = entry;
    if (entry.type !== 'message') continue;
    if (message?.role === 'user') runs.push([{ scope: 'run', entryId: entry.id, before: entry.id, label: `Run: ${oneLine(textOf(message.content), 90) || 'image'}` }]);
    else if (message?.role === 'assistant' && runs.length) {
      const calls = (Array.isArray(message.content) ? message.content : []).filter((block) => block?.type === 'toolCall');
      const did = calls.map((call) => callLine(call.name, call.arguments)).join(' · ');
      if (calls.length) runs.at(-1).push({ scope: 'turn', entryId: entry.id, before: entry.parentId, label: `\u00a0\u00a0Turn: ${oneLine(did, 90)}` });
    }
  }
  const session = { scope: 'session', before: runs[0]?.[0].before ?? null, label: 'The whole session' };
  return [session, ...runs.reverse().flat().slice(0, MOST_POINTS)];
}

const STATUS = { added: 'added', modified: '', deleted: 'deleted' };

function fileOf(file) {
  const lines = typeof file.diff === 'string' ? readUnified(file.diff) : [];
  const modes = file.oldMode && file.newMode && file.oldMode !== file.newMode ? `mode ${file.oldMode} to ${file.newMode}` : '';
  return { path: String(file.path), lines, ...tally(lines), note: [STATUS[file.status] ?? String(file.status), modes, file.truncated ? 'diff is cut' : ''].filter(Boolean).join(' · ') };
}

/** What a rewind did, in words. */
function report(done, answer) {
  const lines = [`${done} ${count((answer.restored || []).length, 'file')} restored.`];
  for (const file of answer.kept || []) lines.push(`Kept: ${shortPath(file.path)}: ${file.message || file.reason}`);
  if ((answer.unknown || []).length) lines.push(`${count(answer.unknown.length, 'other call')} may have changed files that the checkpoints do not contain.`);
  if (answer.cancelled) lines.push('An extension kept the conversation where it was.');
  return lines.join('\n');
}

/** @param {import('../state/app.js').App} app @param {import('./composer.js').Composer} composer gets the text of a message that was rewound */
export async function showUndo(app, composer) {
  const handle = app.current;
  const data = await app.tryAsk({ type: 'get_tree' }, handle);
  if (!data) return;
  let points = pointsOf(data);
  const choice = el('select', { aria: { label: 'Changes of' } });
  const list = el('div.changes.undo-files', { tabIndex: -1 });
  const said = el('p.undo-report', { role: 'status' });
  const force = el('input', { type: 'checkbox' });
  const rewinds = [['both', 'Files and conversation'], ['files', 'Files only'], ['conversation', 'Conversation only']].map(([what, text]) => el('button', { type: 'button', text, onclick: () => rewind(what) }));
  const offer = () => fill(choice, ...points.map((point, index) => el('option', { value: String(index), text: point.label })));
  let asked = 0;
  let given = '';
  const show = async () => {
    const point = points[Number(choice.value)] || points[0];
    for (const button of rewinds) button.disabled = !point.before;
    asked += 1;
    const mine = asked;
    const answer = await app.ask({ type: 'get_changes', scope: point.scope, ...(point.entryId ? { entryId: point.entryId } : {}) }, handle).catch((error) => ({ error }));
    if (mine !== asked) return;
    if (answer.error) { fill(list, el('p.folders-trouble', { text: answer.error.message })); return; }
    const files = (answer.files || []).map(fileOf);
    fill(list, files.slice(0, MOST_FILES).map((file) => fileView(file, files.length === 1)), files.length > MOST_FILES ? el('p.remark', { text: `${files.length - MOST_FILES} more files` }) : null,
      files.length ? null : el('p.menu-empty', { text: 'No changes' }),
      (answer.unknown || []).length ? el('p.remark', { text: `${count(answer.unknown.length, 'other call')} may have changed files that the checkpoints do not contain.` }) : null);
  };
  const act = async (done, command) => {
    said.textContent = '';
    try {
      const answer = await app.ask({ ...command, ...(force.checked ? { force: true } : {}) }, handle);
      said.textContent = report(done, answer);
      if (app.current === handle) await app.load(handle);
      if (app.current === handle && (answer.editorText || composer.field.value === given)) composer.set(answer.editorText || '');
      given = answer.editorText || '';
      points = pointsOf(await app.ask({ type: 'get_tree' }, handle));
      offer();
      await show();
    } catch (error) { said.textContent = error.message; }
  };
  function rewind(what) {
    const point = points[Number(choice.value)] || points[0];
    if (point.before) act('Rewound.', { type: 'rewind', entryId: point.before, what });
  }
  choice.addEventListener('change', show);
  offer();
  openDialog('Changes and undo', (end) => [choice, list,
    el('div.undo-actions', { role: 'group', aria: { label: 'Rewind to before this' } }, el('span', { text: 'Rewind to before this:' }), ...rewinds),
    el('label.check-row', {}, force, el('span', { text: 'Overwrite files that others have changed' })), said,
    el('div.dialog-foot', {}, el('button', { type: 'button', text: 'Undo the last rewind', onclick: () => act('The rewind was undone.', { type: 'unrewind' }) }), el('button.primary', { type: 'button', text: 'Close', onclick: end }))], { wide: true });
  choice.focus();
  await show();
}
