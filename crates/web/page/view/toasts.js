// Short messages at the edge of the page. Errors stay until they are dismissed.

import { el, icon, iconButton } from '../lib/dom.js';

const STAY_MS = 6000;
const MOST = 4;
let shelf = null;

/** @param {'info'|'warning'|'error'|string} level @param {string} text @param {Node} [extra] */
export function toast(level, text, extra) {
  if (!shelf) {
    shelf = el('div.toasts', { role: 'region', aria: { label: 'Messages' } });
    document.body.append(shelf);
  }
  const kind = ['warning', 'error'].includes(level) ? level : 'info';
  const same = [...shelf.children].find((node) => node.dataset.text === text);
  if (same) same.remove();
  const node = el(`div.toast.${kind}`, { role: kind === 'error' ? 'alert' : 'status', data: { text } },
    kind === 'info' ? null : icon('warn'), el('span.toast-text', { text }), extra, iconButton('close', 'Dismiss', () => node.remove(), { class: 'small' }));
  shelf.append(node);
  while (shelf.children.length > MOST) shelf.firstChild.remove();
  if (kind !== 'error') setTimeout(() => node.remove(), STAY_MS);
}

let speaker = null;

/** Has a screen reader say something when it has a moment. */
export function announce(text) {
  if (!speaker) {
    speaker = el('div.offscreen', { role: 'status', aria: { live: 'polite' } });
    document.body.append(speaker);
  }
  speaker.textContent = text;
}
