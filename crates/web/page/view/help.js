// The sheet of keyboard shortcuts, and the keys that work anywhere on the page.

import { el } from '../lib/dom.js';
import { openDialog } from './dialogs.js';

const isApple = /Mac|iPhone|iPad/.test(navigator.platform);
const MOD = isApple ? '⌘' : 'Ctrl';

/** @type {[string, [string[], string][]][]} */
const KEYS = [
  ['Writing', [
    [['Enter'], 'Send; while it works: steer, or queue as a follow-up'],
    [['Shift', 'Enter'], 'New line'],
    [['Alt', 'Enter'], 'Send the other way (follow-up instead of steer)'],
    [['↑'], 'What was said before, in an empty field'],
    [['/'], 'Commands'],
    [['@'], 'Files of the directory'],
    [['!'], 'Run a shell command; !! keeps it from the model'],
    [['Esc'], 'Stop the run'],
  ]],
  ['Anywhere', [
    [[MOD, 'K'], 'Search sessions'],
    [[MOD, 'F'], 'Find in a long conversation; once more: the browser’s own search'],
    [[MOD, 'B'], 'Side bar'],
    [[MOD, 'Shift', 'O'], 'New session'],
    [[MOD, 'Shift', 'M'], 'Model'],
    [[MOD, '↑ / ↓'], 'Beginning and end of the conversation'],
    [['?'], 'This sheet'],
  ]],
];

export function showHelp() {
  openDialog('Keyboard shortcuts', (end) => [
    el('div.keys', {}, ...KEYS.map(([title, rows]) => el('section', {}, el('h3', { text: title }),
      ...rows.map(([keys, text]) => el('div.key-row', {}, el('span', { text }), el('span.key-names', {}, ...keys.map((key) => el('kbd', { text: key })))))))),
    el('div.dialog-foot', {}, el('button.primary', { type: 'button', text: 'Close', autofocus: true, onclick: end })),
  ], { wide: true });
}

/** @param {Record<string, () => void>} actions `search`, `find` (gives what to do, or null), `side`, `create`, `model`, `start`, `end`, `stop`, `type` */
export function listenToKeys(actions) {
  addEventListener('keydown', (event) => {
    if (event.isComposing || event.defaultPrevented || document.querySelector('dialog[open], .menu')) return;
    const mod = isApple ? event.metaKey : event.ctrlKey;
    const field = event.target instanceof Element && event.target.matches('input, textarea, select') ? event.target : null;
    const typing = field !== null;
    const hasText = Boolean(/** @type {HTMLInputElement|null} */ (field)?.value);
    const key = event.key.toLowerCase();
    const act = mod && !event.altKey ? {
      k: actions.search, f: event.shiftKey ? null : actions.find(), b: event.shiftKey ? null : actions.side, o: event.shiftKey ? actions.create : null, m: event.shiftKey ? actions.model : null,
      arrowup: hasText ? null : actions.start, arrowdown: hasText ? null : actions.end,
    }[key] : !typing && !event.ctrlKey && !event.metaKey && !event.altKey ? { '?': showHelp, escape: actions.stop }[key] : null;
    if (act) { event.preventDefault(); act(); return; }
    // Somebody begins to type without having chosen the field.
    if (!typing && !mod && !event.altKey && event.key.length === 1 && event.key !== ' ' && !getSelection()?.toString()
      && !(event.target instanceof Element && event.target.closest('button, a, summary, [tabindex]'))) actions.type();
  });
}
