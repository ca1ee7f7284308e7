// The models that a run continues with when its model fails for good: their list, in the order in which they are tried.

import { openDialog } from './dialogs.js';
import { el, fill, iconButton } from '../lib/dom.js';

/** @param {import('../state/app.js').App} app */
export async function showFallback(app) {
  const handle = app.current;
  const answer = await app.tryAsk({ type: 'get_fallback_models' }, handle);
  if (!answer) return;
  if (!app.models) await app.refreshModels().catch(() => {});
  const chosen = [...answer.models || []];
  const list = el('ol.fallback-list', { aria: { label: 'Fallback models' } });
  const trouble = el('p.folders-trouble', { role: 'alert' });
  const names = (app.models || []).map((model) => `${model.provider}/${model.id}`);
  const add = el('select', { aria: { label: 'Add a fallback model' } });
  const show = (focus = null) => {
    fill(list, chosen.map((name, index) => el('li', {}, el('span', { text: name }),
      index ? iconButton('up', `Try ${name} earlier`, () => { chosen.splice(index - 1, 2, name, chosen[index - 1]); show(index - 1); }, { class: 'small' }) : null,
      iconButton('close', `Remove ${name}`, () => { chosen.splice(index, 1); show(Math.max(0, index - 1)); }, { class: 'small' }))),
    chosen.length ? null : el('p.menu-empty', { text: 'None. A run whose model fails ends.' }));
    fill(add, el('option', { value: '', text: 'Add a model…' }), ...names.filter((name) => !chosen.includes(name)).map((name) => el('option', { value: name, text: name })));
    if (focus !== null) /** @type {HTMLElement} */ (list.children[focus]?.querySelector('button') || add).focus();
  };
  add.addEventListener('change', () => { if (add.value) { chosen.push(add.value); show(); } });
  openDialog('Fallback models', (end) => [
    el('p.dialog-message', { text: 'If the model is overloaded, out of quota or refused, the run continues with the next of these.' }), list, add, trouble,
    el('div.dialog-foot', {}, el('button', { type: 'button', text: 'Cancel', onclick: end }), el('button.primary', { type: 'button', text: 'Save',
      onclick: async () => { try { await app.ask({ type: 'set_fallback_models', models: chosen }, handle); end(); } catch (error) { trouble.textContent = error.message; } } }))]);
  show();
  add.focus();
}
