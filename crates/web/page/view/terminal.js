// One terminal: xterm.js, fetched when the first one is shown, in the page's colours and under its policy, which allows no
// inline style.

import { el } from '../lib/dom.js';

const LIBRARY = '../vendor/xterm-6.0.0.min.js';
const SCROLLBACK = 5000;
let loading = null;

function load() {
  loading ||= Promise.all([import(LIBRARY), new Promise((resolve, reject) => {
    document.head.append(el('link', { rel: 'stylesheet', href: './vendor/xterm-6.0.0.css', onload: resolve, onerror: () => reject(new Error('The style of terminals could not be loaded.')) }));
  })]).then(([{ Terminal }]) => { Terminal.styleElement = styleElement; return Terminal; }).catch((error) => { loading = null; throw error; });
  return loading;
}

/** Stands for a style element, which the page's policy refuses: its text goes into a style sheet of the document. */
function styleElement() {
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  const node = el('i', { hidden: true });
  let text = '';
  Object.defineProperty(node, 'textContent', { get: () => text, set: (value) => { text = String(value); sheet.replaceSync(text); } });
  node.remove = () => { document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet); Element.prototype.remove.call(node); };
  return node;
}

function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(name).trim();
  const names = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];
  const theme = { background: of('--sunken'), foreground: of('--ink'), cursor: of('--accent'), cursorAccent: of('--sunken'), selectionBackground: of('--found') };
  names.forEach((name, index) => { theme[name] = of(`--t-${index}`); theme[`bright${name[0].toUpperCase()}${name.slice(1)}`] = of(`--t-${index}`); });
  return theme;
}

/** @param {HTMLElement} place @param {{ isTerminal: boolean, onData: (data: string) => void, onResize: (columns: number, rows: number) => void, onLeave: () => void }} options */
export async function openTerminal(place, { isTerminal, onData, onResize, onLeave }) {
  const Terminal = await load();
  const font = getComputedStyle(document.documentElement).getPropertyValue('--mono').trim();
  const term = new Terminal({
    fontFamily: font, fontSize: 13, theme: colours(), scrollback: SCROLLBACK, disableStdin: !isTerminal, convertEol: !isTerminal, cursorBlink: false,
  });
  term.open(place);
  term.attachCustomKeyEventHandler((event) => {
    if (!isTerminal) return false;
    if (event.key !== 'Escape' || !event.shiftKey) return true;
    if (event.type === 'keydown') { event.preventDefault(); onLeave(); }
    return false;
  });
  term.onData(onData);
  let size = '';
  const fit = () => {
    const screen = place.querySelector('.xterm-screen')?.getBoundingClientRect();
    if (!screen?.width || !place.clientWidth) return;
    const columns = Math.max(2, Math.floor((place.clientWidth - 22) / (screen.width / term.cols)));
    const rows = Math.max(2, Math.floor((place.clientHeight - 12) / (screen.height / term.rows)));
    if (size === `${columns} ${rows}`) return;
    size = `${columns} ${rows}`;
    term.resize(columns, rows);
    if (isTerminal) onResize(columns, rows);
  };
  let timer = null;
  const observer = new ResizeObserver(() => { clearTimeout(timer); timer = setTimeout(fit, 80); });
  observer.observe(place);
  return {
    /** Resolves when the text is on the screen: whoever prints faster than that waits. */
    write: (text) => new Promise((resolve) => { term.write(text, () => resolve(null)); }),
    focus: () => term.focus(),
    close() { observer.disconnect(); clearTimeout(timer); term.dispose(); },
  };
}
