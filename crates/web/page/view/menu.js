// Menus that open at a button: a list to pick from, with a search field where the list is long. Esc and a click elsewhere close
// it; arrows move; on a phone it is a sheet at the bottom.

import { el, fill, icon } from '../lib/dom.js';

/**
 * @typedef {{ label: string, note?: string, hint?: string, icon?: string, checked?: boolean, danger?: boolean, disabled?: boolean,
 *   group?: string, pick: () => void }} Entry
 */

/** @param {HTMLElement} anchor @param {{ title: string, entries: Entry[], search?: boolean, head?: Node }} options */
export function openMenu(anchor, { title, entries, search = false, head = null }) {
  /** @type {HTMLElement|null} */ (document.querySelector('.menu'))?.hidePopover?.();
  const list = el('div.menu-list', { role: 'listbox', aria: { label: title } });
  const field = search ? el('input.menu-search', { type: 'search', placeholder: 'Search', aria: { label: `Search: ${title}` }, autocomplete: 'off', spellcheck: false }) : null;
  const menu = el('div.menu', { popover: 'auto', role: 'dialog', aria: { label: title } }, head, field, list);
  let at = -1;
  let shown = [];
  const mark = (index) => {
    at = index;
    [...list.querySelectorAll('.menu-entry')].forEach((node, i) => {
      node.classList.toggle('at', i === at);
      if (i === at) node.scrollIntoView({ block: 'nearest' });
    });
  };
  const pick = (entry) => {
    if (entry.disabled) return;
    menu.hidePopover();
    entry.pick();
  };
  const show = () => {
    const words = (field?.value || '').toLowerCase().split(/\s+/).filter(Boolean);
    shown = entries.filter((entry) => words.every((word) => `${entry.label} ${entry.note || ''} ${entry.group || ''}`.toLowerCase().includes(word)));
    let group = null;
    fill(list, shown.slice(0, 300).flatMap((entry) => {
      const nodes = entry.group && entry.group !== group ? [el('div.menu-group', { text: entry.group })] : [];
      group = entry.group || null;
      nodes.push(el('button.menu-entry', { type: 'button', role: 'option', aria: { selected: Boolean(entry.checked) }, disabled: entry.disabled, class: entry.danger ? 'danger' : '', onclick: () => pick(entry) },
        entry.icon ? icon(entry.icon) : null, el('span.menu-label', { text: entry.label }),
        entry.note ? el('span.menu-note', { text: entry.note }) : null,
        entry.hint ? el('kbd', { text: entry.hint }) : null, entry.checked ? icon('check') : null));
      return nodes;
    }), shown.length ? null : el('p.menu-empty', { text: 'Nothing found' }));
    mark(field ? 0 : shown.findIndex((entry) => entry.checked));
  };
  menu.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      const step = event.key === 'ArrowDown' ? 1 : -1;
      mark((at + step + shown.length) % Math.max(1, shown.length));
      if (!field) list.querySelectorAll('.menu-entry')[at]?.focus();
    } else if (event.key === 'Enter' && field && shown[at] && !event.isComposing) { event.preventDefault(); pick(shown[at]); }
  });
  field?.addEventListener('input', show);
  menu.addEventListener('toggle', (event) => { if (event.newState === 'closed') { menu.remove(); anchor.setAttribute('aria-expanded', 'false'); if (document.activeElement === document.body) anchor.focus(); } });
  document.body.append(menu);
  show();
  menu.showPopover();
  anchor.setAttribute('aria-expanded', 'true');
  place(menu, anchor);
  const isTouch = matchMedia('(pointer: coarse)').matches;
  if (field && !isTouch) field.focus();
  else (list.querySelector('.menu-entry.at') || list.querySelector('.menu-entry'))?.focus({ preventScroll: true });
  return menu;
}

/** Below the anchor, or above where there is more room. The style sheet makes it a sheet on narrow screens. */
export function place(menu, anchor) {
  if (innerWidth < 560) return;
  const box = anchor.getBoundingClientRect();
  const { offsetWidth, offsetHeight } = menu;
  const below = innerHeight - box.bottom - 16;
  const isAbove = below < offsetHeight && box.top > below;
  const room = Math.max(120, isAbove ? box.top - 16 : below);
  menu.style.setProperty('max-height', `${Math.min(580, room)}px`);
  const height = Math.min(offsetHeight, room, 580);
  menu.style.setProperty('left', `${Math.max(8, Math.min(innerWidth - offsetWidth - 8, box.left))}px`);
  menu.style.setProperty('top', `${isAbove ? box.top - height - 6 : box.bottom + 6}px`);
}
