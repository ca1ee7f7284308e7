// Sub-agents: how far one is, in the card of its call, and its whole conversation in a dialog that grows while it works.

import { Session, isOver } from '../state/session.js';
import { cost, count, duration, oneLine, tokens } from '../lib/format.js';
import { el, fill, icon } from '../lib/dom.js';

/** Least time between two reads: progress may come faster. */
const READ_MS = 250;

/** What a call of `task` shows. The button asks the page for the conversation with an event. */
export function taskView(tool) {
  const { details } = tool.result;
  const facts = [details.agent, details.resolvedModel, count(Number(details.toolCount) || 0, 'tool call'), `${tokens(Number(details.tokens) || 0)} tokens`,
    details.cost ? cost(details.cost) : '', details.durationMs >= 1000 ? duration(details.durationMs) : ''].filter(Boolean).join(' · ');
  const did = [...(Array.isArray(details.recentTools) ? details.recentTools : [])].reverse().map((one) => `${one.tool} ${oneLine(one.args, 120)}`);
  if (details.currentTool) did.push(`${details.currentTool} ${oneLine(details.currentToolArgs, 120)} …`);
  const open = el('button.link', { type: 'button', onclick: () => open.dispatchEvent(new CustomEvent('subagent', { bubbles: true, detail: tool })) }, 'Show its conversation');
  return el('div.task', {}, el('p.task-facts', {}, icon('fork'), el('span', { text: facts, dir: 'auto' })), did.length ? el('ul.task-did', {}, ...did.map((text) => el('li', { text, dir: 'auto' }))) : null, open);
}

/**
 * @param {any} tool a call of `task` @param {import('../state/app.js').App} app
 * @param {{ openDialog: typeof import('./dialogs.js').openDialog, viewOf: typeof import('./items.js').viewOf }} views
 */
export function showSubagent(tool, app, { openDialog, viewOf }) {
  const handle = app.current;
  const details = tool.result?.details || {};
  const nested = new Session(handle);
  nested.running = true;
  const views = new Map();
  const list = el('div.transcript.nested', { role: 'log', tabIndex: 0, aria: { label: 'Conversation of the sub-agent' } });
  const said = el('p.remark', { role: 'status', text: 'Loading…' });
  const node = openDialog(`Sub-agent ${oneLine(details.agent || '', 40)}: ${oneLine(details.description || details.task || '', 80)}`, (end) => [list, said,
    el('div.dialog-foot', {}, el('button.primary', { type: 'button', text: 'Close', onclick: end }))], { wide: true });
  list.focus();
  const add = (messages) => {
    const changes = nested.changes();
    for (const message of messages) nested.add(message, changes);
    const isAtEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
    for (const item of nested.items) {
      if (views.has(item.key)) continue;
      const view = viewOf(item, nested, {});
      views.set(item.key, view);
      list.append(view.node);
    }
    for (const id of changes.tools) views.get(nested.tools.get(id)?.item)?.updateTool?.(id);
    if (isAtEnd) list.scrollTop = list.scrollHeight;
  };
  let next = 0;
  let isBusy = false;
  let isBehind = false;
  const read = async () => {
    if (!node.open) return;
    isBehind = isBusy;
    if (isBusy) return;
    isBusy = true;
    // Asked before the answer: a message of the last moment is not missed.
    const wasOver = isOver(app.sessionOf(handle).tools.get(tool.id) || tool);
    try {
      const answer = await app.ask({ type: 'get_subagent_messages', fromByte: next, ...(details.sessionFile ? { sessionFile: details.sessionFile } : { subagentId: details.id }) }, handle);
      if (answer.reset && next) { nested.reset(); views.clear(); fill(list); }
      add(answer.messages || []);
      next = answer.nextByte ?? next;
      said.textContent = wasOver ? '' : 'Working…';
    } catch (error) { said.textContent = error.message; }
    setTimeout(() => { isBusy = false; if (isBehind) read(); }, READ_MS);
  };
  // Each event of the call's progress says that the conversation may be longer.
  const follow = ({ session, changes }) => { if (session === app.sessionOf(handle) && changes.tools.has(tool.id)) read(); };
  app.on('change', follow);
  app.on('ready', read);
  node.addEventListener('close', () => { app.off('change', follow); app.off('ready', read); });
  read();
}
