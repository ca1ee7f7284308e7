// The side bar: sessions that are open and those on disk, searched and grouped by their directory. Beside the page where there
// is room, over it where there is none.

import { age, baseName, oneLine, shortPath } from '../lib/format.js';
import { el, fill, icon, iconButton } from '../lib/dom.js';
import { openMenu } from './menu.js';
import { keep, recall } from '../lib/store.js';

const FIRST = 80;

export class SideBar {
  /**
   * @param {HTMLElement} node
   * @param {{ show: (handle: string) => void, openFile: (path: string) => void, create: (cwd?: string) => void, createElsewhere: () => void, rename: (row: any) => void,
   *   close: (handle: string) => void, remove: (row: any) => void }} actions
   */
  constructor(node, actions) {
    this.node = node;
    this.actions = actions;
    this.most = FIRST;
    this.isWide = matchMedia('(min-width: 1000px)');
    this.search = el('input', { type: 'search', placeholder: 'Search sessions', autocomplete: 'off', spellcheck: false, aria: { label: 'Search sessions' }, oninput: () => { this.most = FIRST; this.render(); } });
    this.list = el('div.sessions', { role: 'list' });
    this.shade = el('div.shade', { onclick: () => this.toggle(false) });
    fill(node,
      el('div.side-head', {}, el('span.brand', {}, el('span.brand-mark', { aria: { hidden: true } }), 'Pinion'),
        iconButton('close', 'Close side bar', () => this.toggle(false), { class: 'side-close' })),
      el('div.side-new', {}, el('button.new-session', { type: 'button', onclick: () => { this.actions.create(); this.leave(); } }, icon('plus'), 'New session'),
        iconButton('folder', 'New session in a directory…', () => { this.leave(); this.actions.createElsewhere(); })),
      el('div.side-search', {}, icon('search'), this.search),
      el('nav.side-list', { aria: { label: 'Sessions' } }, this.list));
    node.after(this.shade);
    node.addEventListener('keydown', (event) => this.key(event));
    this.isWide.addEventListener('change', () => this.settle());
    this.settle();
  }

  settle() {
    this.toggle(this.isWide.matches && recall('side', true), false);
  }

  get isOpen() {
    return this.node.classList.contains('open');
  }

  toggle(on = !this.isOpen, remember = true) {
    this.node.classList.toggle('open', on);
    document.body.classList.toggle('side-open', on);
    this.node.inert = !on;
    // Where it covers the page, the page cannot be reached behind it.
    /** @type {HTMLElement} */ (document.querySelector('.main')).inert = on && !this.isWide.matches;
    if (remember && this.isWide.matches) keep('side', on);
    if (!on || this.isWide.matches) return;
    // On a phone a text field that has the focus opens the keyboard over the list.
    const first = matchMedia('(pointer: coarse)').matches ? this.node.querySelector('.side-close') : this.search;
    first.focus({ preventScroll: true });
  }

  /** After something was chosen the side bar gives the page free again, where it covers it. */
  leave() {
    if (!this.isWide.matches) this.toggle(false);
  }

  focusSearch() {
    this.toggle(true);
    this.search.focus();
    this.search.select();
  }

  key(event) {
    if (event.key === 'Escape' && !this.isWide.matches) { this.toggle(false); return; }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const rows = [...this.list.querySelectorAll('.session-open')];
    event.preventDefault();
    (rows[rows.indexOf(document.activeElement) + step] || (step < 0 ? this.search : null))?.focus();
  }

  /** @param {import('../state/app.js').App} app */
  update(app) {
    this.app = app;
    if (this.planned) return;
    this.planned = true;
    requestAnimationFrame(() => { this.planned = false; this.render(); });
  }

  /** Open sessions, then all others; one that is both is one row. */
  rows() {
    const { app } = this;
    const byId = new Map();
    for (const one of app.listed) byId.set(one.id, { id: one.id, path: one.path, cwd: one.cwd, name: one.name, first: one.firstMessage, modified: one.modified, count: one.messageCount });
    for (const one of app.open) {
      if (app.current && app.isEmptyFirst(one) && !byId.has(one.sessionId)) continue;
      // One that was put away is as good as one on disk; it is opened by its name all the same.
      if (one.evicted && byId.has(one.sessionId) && (one.session || '') !== app.current) continue;
      const known = byId.get(one.sessionId) || { id: one.sessionId, path: one.sessionFile, cwd: one.cwd, modified: null, count: one.messageCount };
      byId.set(one.sessionId, { ...known, name: one.sessionName || known.name, handle: one.session || '', isOpen: true });
    }
    const rows = [...byId.values()];
    const rank = (row) => (row.isOpen && !row.modified ? Infinity : Date.parse(row.modified) || 0);
    return rows.sort((a, b) => rank(b) - rank(a));
  }

  render() {
    const { app } = this;
    if (!app) return;
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = this.rows().filter((row) => words.every((word) => `${row.name || ''} ${row.first || ''} ${row.cwd || ''}`.toLowerCase().includes(word)));
    const open = rows.filter((row) => row.isOpen);
    const groups = [['Open', open], ...grouped(rows.filter((row) => !row.isOpen).slice(0, this.most))];
    const rest = rows.length - open.length - this.most;
    const focused = /** @type {HTMLElement|null|undefined} */ (document.activeElement?.closest?.('.session'))?.dataset.id;
    fill(this.list, groups.filter(([, list]) => list.length).flatMap(([title, list]) => [
      this.heading(title), ...list.map((row) => this.row(row))]),
    rest > 0 ? el('button.more', { type: 'button', text: `Show ${rest} more`, onclick: () => { this.most += 200; this.render(); } }) : null,
    rows.length ? null : el('p.side-empty', { text: words.length ? 'No session has these words.' : 'No sessions yet.' }));
    if (focused) this.list.querySelector(`[data-id="${CSS.escape(focused)}"] .session-open`)?.focus({ preventScroll: true });
  }

  /** A directory's name, with a button for a new session there. */
  heading(title) {
    if (title === 'Open') return el('h3.side-group', { text: title });
    const name = baseName(title) || '/';
    return el('div.side-group', { title }, el('h3', { text: name }),
      title ? iconButton('plus', `New session in ${name}`, () => { this.actions.create(title); this.leave(); }, { class: 'small' }) : null);
  }

  row(row) {
    const { app } = this;
    const isHere = row.isOpen && row.handle === app.current;
    const name = oneLine(row.name || row.first, 90) || 'New session';
    const isBusy = row.isOpen && app.busy.has(row.handle);
    const wants = row.isOpen && (app.sessions.get(row.handle)?.dialogs.length || 0) > 0;
    const state = wants ? 'asks' : isBusy ? 'works' : row.isOpen && app.unread.has(row.handle) ? 'over' : '';
    const more = iconButton('more', `Actions for ${name}`, () => openMenu(more, { title: name, entries: this.entries(row) }), { class: 'small' });
    return el('div.session', { role: 'listitem', data: { id: row.id }, class: isHere ? 'here' : '' },
      el('button.session-open', { type: 'button', aria: isHere ? { current: 'page' } : {}, title: `${name}\n${shortPath(row.cwd)}`, onclick: () => this.choose(row) },
        el('span.session-name', { text: name, dir: 'auto' }),
        el('span.session-note', {}, state ? el('span.dot', { class: state, role: 'img', aria: { label: { asks: 'asks something', works: 'is working', over: 'is done' }[state] } }) : null,
          row.isOpen ? `${baseName(row.cwd)} · ` : '', row.modified ? age(row.modified, Date.now()) : 'new', row.count ? ` · ${row.count}` : '')), more);
  }

  choose(row) {
    if (row.isOpen) this.actions.show(row.handle);
    else this.actions.openFile(row.path);
    this.leave();
  }

  entries(row) {
    return [
      { label: 'Rename…', icon: 'pencil', pick: () => this.actions.rename(row) },
      row.path ? { label: 'Copy path of file', icon: 'link', pick: () => navigator.clipboard?.writeText(row.path) } : null,
      row.isOpen && (row.handle || !row.count) ? { label: 'Close', note: row.count ? 'It stays on disk' : '', icon: 'close', pick: () => this.actions.close(row.handle) } : null,
      // The first session of the agent cannot be closed.
      row.path && !(row.isOpen && !row.handle) ? { label: 'Delete…', icon: 'trash', danger: true, pick: () => this.actions.remove(row) } : null,
    ].filter(Boolean);
  }
}

function grouped(rows) {
  const groups = new Map();
  for (const row of rows) groups.set(row.cwd || '', [...(groups.get(row.cwd || '') || []), row]);
  return [...groups];
}
