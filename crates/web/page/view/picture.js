// A picture as large as the window allows.

import { el, iconButton } from '../lib/dom.js';

/** @param {string} source a `data:` address that was checked */
export function showPicture(source) {
  const dialog = el('dialog.picture-dialog', { aria: { label: 'Image' } },
    iconButton('close', 'Close', () => dialog.close()), el('img', { src: source, alt: 'Image' }));
  dialog.addEventListener('click', (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
