// Choosing a directory for a new session: one goes into directories or back by the path above, or types where to.

import { baseName, oneLine, shortPath } from '../lib/format.js';
import { el, fill, icon, setText } from '../lib/dom.js';
import { openDialog } from './dialogs.js';

const MOST = 500;
const MOST_RECENT = 6;

/**
 * @param {{ start: string, recent: string[], list: (path: string) => Promise<{ absolutePath: string, entries: { name: string }[] }> }} options
 *   `list` fails with the reason
 * @returns {Promise<string|null>}
 */
export function chooseFolder({ start, recent, list }) {
  return new Promise((resolve) => {
    let chosen = null;
    let here = '';
    let entries = [];
    let asked = 0;
    const crumbs = el('nav.crumbs', { aria: { label: 'Path' } });
    const field = el('input', { type: 'text', placeholder: 'Filter, or type a path', autocomplete: 'off', spellcheck: false, autocapitalize: 'off', aria: { label: 'Filter, or type a path' } });
    const rows = el('div.folders', { role: 'list', aria: { label: 'Directories' } });
    const trouble = el('p.folders-trouble', { role: 'alert' });
    const use = el('button.primary', { type: 'button', text: 'Start here' });
    const isPath = () => /^[~/\\]|^[A-Za-z]:/.test(field.value.trim());
    const show = () => {
      const wanted = isPath() ? '' : field.value.trim().toLowerCase();
      const found = entries.filter((entry) => String(entry.name).toLowerCase().includes(wanted));
      fill(rows, found.slice(0, MOST).map(({ name }) => el('button.folder', { type: 'button', role: 'listitem', onclick: () => go(joined(here, name)) },
        icon('folder'), el('span', { text: oneLine(name, 200), dir: 'auto' }))), found.length ? null : el('p.menu-empty', { text: entries.length ? 'No directory has this name' : 'No directories in here' }));
    };
    const go = async (path) => {
      asked += 1;
      const mine = asked;
      rows.classList.add('busy');
      try {
        const answer = await list(path);
        if (mine !== asked) return;
        here = String(answer.absolutePath);
        entries = answer.entries || [];
        field.value = '';
        setText(trouble, '');
        use.title = here;
        fill(crumbs, crumbsOf(here, go));
        crumbs.scrollLeft = crumbs.scrollWidth;
        rows.scrollTop = 0;
        show();
      } catch (error) {
        if (mine === asked) setText(trouble, error.message);
      } finally {
        if (mine === asked) rows.classList.remove('busy');
      }
    };
    field.addEventListener('input', show);
    field.addEventListener('keydown', (event) => {
      if (event.isComposing || event.key !== 'Enter') return;
      event.preventDefault();
      if (isPath()) go(field.value.trim());
      else rows.querySelector('.folder')?.click();
    });
    const node = openDialog('New session in a directory', (end) => {
      const take = (path) => { chosen = path; end(); };
      use.addEventListener('click', () => { if (here) take(here); });
      return [recent.length ? el('div.recent', {}, ...recent.slice(0, MOST_RECENT).map((path) => el('button.hint', { type: 'button', title: path, onclick: () => take(path) },
        icon('folder'), el('span', { text: baseName(path) || path })))) : null, crumbs, field, trouble, rows,
      el('div.dialog-foot', {}, el('button', { type: 'button', text: 'Cancel', onclick: end }), use)].filter(Boolean);
    }, { wide: true });
    node.classList.add('folder-dialog');
    node.addEventListener('close', () => resolve(chosen));
    if (!matchMedia('(pointer: coarse)').matches) field.focus();
    go(start);
  });
}

function joined(path, name) {
  const separator = path.includes('\\') && !path.includes('/') ? '\\' : '/';
  return path.endsWith(separator) ? path + name : path + separator + name;
}

/** The parts of a path, each a way back; the home directory is one part. */
function crumbsOf(path, go) {
  const isWindows = path.includes('\\') && !path.startsWith('/');
  const separator = isWindows ? '\\' : '/';
  const short = shortPath(path);
  const isHome = short !== path;
  const home = isHome ? path.slice(0, path.length - short.length + 1) : '';
  const parts = (isHome ? short.slice(1) : path).split(separator).filter(Boolean);
  let so = isHome ? home : isWindows ? '' : '';
  const first = isHome ? ['~', home] : isWindows ? null : ['/', '/'];
  const all = [...(first ? [first] : []), ...parts.map((part) => { so = so || isWindows ? `${so}${so ? separator : ''}${part}` : `/${part}`; return [part, so]; })];
  return all.flatMap(([name, target], index) => [index ? el('span.crumb-turn', { aria: { hidden: true } }, icon('chevron')) : null,
    el('button.crumb', { type: 'button', text: name, aria: index === all.length - 1 ? { current: 'true' } : {}, onclick: () => go(target) })].filter(Boolean));
}
