// Limits of the session's runs: the bar that names the limit that ended a run, and the dialog that shows and sets all of them.

import { LIMITS, limitWords } from '../state/control.js';
import { openDialog } from './dialogs.js';
import { cost, tokens } from '../lib/format.js';
import { el, fill, icon } from '../lib/dom.js';

/** The bar above the composer. @param {HTMLElement} node @param {any} session @param {() => void} change */
export function showLimit(node, session, change) {
  node.hidden = !session.limit || session.running;
  if (node.hidden) { node.replaceChildren(); return; }
  fill(node, icon('gauge'), el('span', { text: `Limit reached: ${limitWords(session.limit)}.` }), el('button.link', { type: 'button', text: 'Raise and continue…', onclick: change }));
}

function useWords(kind, used) {
  const value = used?.[kind];
  if (typeof value !== 'number') return '';
  return `used ${kind === 'cost' ? cost(value) : kind === 'tokens' ? tokens(value) : Math.round(value)}`;
}

/** @param {import('../state/app.js').App} app */
export async function showLimits(app) {
  const handle = app.current;
  const answer = await app.tryAsk({ type: 'get_limits' }, handle);
  if (!answer) return;
  const now = answer.limits || {};
  const reached = answer.reached || app.session.limit;
  const fields = LIMITS.map(({ member, kind, name }) => ({ member, node: el('input', { type: 'number', min: '0', step: kind === 'cost' ? 'any' : '1', value: now[member] ?? '', placeholder: 'none', aria: { label: name } }), kind, name }));
  const warn = el('input', { type: 'checkbox', checked: Boolean(now.warn) });
  const reset = el('input', { type: 'checkbox' });
  const trouble = el('p.folders-trouble', { role: 'alert' });
  openDialog('Limits of runs', (end) => {
    const save = async (goOn) => {
      trouble.textContent = '';
      const bad = fields.find(({ node }) => node.value === '' && node.validity.badInput);
      if (bad) { trouble.textContent = `${bad.name}: not a number`; bad.node.focus(); return; }
      const limits = Object.fromEntries(fields.filter(({ node }) => node.value !== '').map(({ member, node }) => [member, Number(node.value)]));
      try {
        await app.ask({ type: 'set_limits', limits: { ...limits, ...(warn.checked ? { warn: true } : {}) }, ...(reset.checked ? { reset: true } : {}) }, handle);
        if (goOn) await app.ask({ type: 'continue' }, handle);
        else await checkAgain(app, handle);
        end();
      } catch (error) { trouble.textContent = error.message; }
    };
    return [
      reached ? el('p.dialog-message', { text: `Reached: ${limitWords(reached)}. Raise the limit to continue.` }) : el('p.dialog-message', { text: 'A run that reaches a limit ends. An empty field is no limit.' }),
      el('div.limit-rows', {}, ...fields.map(({ node, name, kind }) => el('label.limit-row', {}, el('span', { text: name }), node, el('span.limit-used', { text: useWords(kind, answer.used) })))),
      el('label.check-row', {}, warn, el('span', { text: 'Tell the model once at 80 %' })), el('label.check-row', {}, reset, el('span', { text: 'Count from 0 again' })), trouble,
      el('div.dialog-foot', {}, el('button', { type: 'button', text: 'Cancel', onclick: end }), el('button', { type: 'button', class: reached ? '' : 'primary', text: 'Save', onclick: () => save(false) }),
        reached ? el('button.primary', { type: 'button', text: 'Save and continue', onclick: () => save(true) }) : null)];
  });
  const first = fields.find(({ kind }) => kind === reached?.kind) || fields[0];
  first.node.focus();
  first.node.select();
}

/** Whether a limit still holds the session. */
async function checkAgain(app, handle) {
  const answer = await app.ask({ type: 'get_limits' }, handle);
  const session = app.sessionOf(handle);
  session.limit = answer.reached || null;
  const changes = session.changes();
  changes.parts.add('limit');
  app.emit('change', { session, changes });
}
