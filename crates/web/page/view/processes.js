// Background processes: the button that counts them, and a dialog with a live terminal for each: output, input, size, killing.

import { oneLine, visible } from '../lib/format.js';
import { el, fill, icon, setText } from '../lib/dom.js';
import { openDialog } from './dialogs.js';
import { openTerminal } from './terminal.js';

/** How often output is asked for: while it comes, and while it does not. */
const BUSY_MS = 60;
const QUIET_MS = 350;
const MOST_BYTES = 131072;

/** The button in the header. */
export function showProcessCount(button, session) {
  const running = [...session.processes.values()].filter((one) => one.status === 'running').length;
  button.hidden = !session.processes.size;
  const words = `Background processes: ${running} running`;
  button.title = words;
  button.setAttribute('aria-label', words);
  fill(button, icon('terminal'), el('span.process-count', { text: String(running) }));
}

function stateWords(process) {
  if (process.status === 'running') return 'running';
  if (process.status === 'killed') return 'killed';
  return process.signal ? `ended by signal ${process.signal}` : `exit ${process.exitCode ?? '?'}`;
}

/** @param {import('../state/app.js').App} app @param {string|null} [wanted] the process to show first */
export async function showProcesses(app, wanted = null) {
  const handle = app.current;
  const { session } = app;
  const known = await app.tryAsk({ type: 'list_processes' }, handle);
  if (!known) return;
  for (const process of known.processes || []) session.processes.set(process.processId, process);
  const all = () => [...session.processes.values()];
  let shown = wanted || all().findLast((one) => one.status === 'running')?.processId || all().at(-1)?.processId || null;
  let terminal = null;
  let round = 0;
  const tabs = el('div.process-tabs', { role: 'tablist', aria: { label: 'Processes' } });
  const state = el('span.process-state', { role: 'status' });
  const place = el('div.process-screen', { role: 'region', aria: { label: 'Terminal' } });
  const input = el('input', { type: 'text', autocomplete: 'off', spellcheck: false, placeholder: 'A line for its input', aria: { label: 'Input of the process' } });
  const line = el('div.process-input', {}, input, el('button', { type: 'button', text: 'Send', onclick: () => sendLine() }));
  const kill = el('button.danger', { type: 'button', text: 'Kill', onclick: () => app.tryAsk({ type: 'kill_process', processId: shown }, handle).then((process) => { if (process?.processId) { session.processes.set(process.processId, process); show(); } }) });
  const hint = el('p.remark', { text: 'Shift+Esc leaves the terminal.' });
  let close = null;

  const write = (data) => app.ask({ type: 'write_process', processId: shown, data }, handle).catch((error) => app.failed(error));
  const sendLine = () => { write(`${input.value}\n`); input.value = ''; input.focus(); };
  input.addEventListener('keydown', (event) => { if (event.key === 'Enter' && !event.isComposing) { event.preventDefault(); sendLine(); } });

  function show() {
    const list = all();
    if (!session.processes.has(shown)) shown = list.at(-1)?.processId || null;
    fill(tabs, list.map((process) => el('button.process-tab', { type: 'button', role: 'tab', tabIndex: process.processId === shown ? 0 : -1, data: { state: process.status }, title: visible(process.command, { blanks: true }),
      aria: { selected: process.processId === shown }, onclick: () => choose(process.processId) }, el('b', { text: process.processId }), el('span', { text: oneLine(visible(process.command, { blanks: true }), 40) }))));
    const process = session.processes.get(shown);
    setText(state, process ? stateWords(process) : 'No background processes');
    kill.hidden = process?.status !== 'running';
    line.hidden = !process || process.terminal || process.status !== 'running';
    hint.hidden = !process?.terminal;
  }

  async function choose(id) {
    shown = id;
    show();
    await watch();
    const process = session.processes.get(id);
    if (process?.terminal) terminal?.focus();
    else if (!line.hidden) input.focus();
    else tabs.querySelector('[aria-selected=true]')?.focus();
  }

  async function watch() {
    round += 1;
    const mine = round;
    terminal?.close();
    terminal = null;
    fill(place);
    const process = session.processes.get(shown);
    if (!process) return;
    try {
      const opened = await openTerminal(place, {
        isTerminal: process.terminal && process.status === 'running', onData: write, onLeave: () => (kill.hidden ? close : kill).focus(),
        onResize: (columns, rows) => { app.ask({ type: 'resize_process', processId: process.processId, columns, rows }, handle).catch(() => {}); },
      });
      if (mine !== round || !node.open) { opened.close(); return; }
      terminal = opened;
      read(process.processId, mine, 0);
    } catch (error) { setText(state, error.message); }
  }

  async function read(processId, mine, fromByte) {
    if (mine !== round || !node.open) return;
    // Known before the answer: its last output is in it then.
    const wasOver = session.processes.get(processId)?.status !== 'running';
    const answer = await app.ask({ type: 'read_process', processId, fromByte, maxBytes: MOST_BYTES }, handle).catch((error) => ({ error }));
    if (mine !== round || !node.open) return;
    if (answer.error) {
      // A connection that comes back goes on where it was.
      setText(state, answer.error.message);
      setTimeout(() => { if (mine === round) { show(); read(processId, mine, fromByte); } }, QUIET_MS * 6);
      return;
    }
    if (answer.droppedBytes) await terminal.write(`\r\n[${answer.droppedBytes} bytes are not kept any more]\r\n`);
    if (answer.text) await terminal.write(answer.text);
    if (wasOver && !answer.text) return;
    setTimeout(() => read(processId, mine, answer.nextByte), answer.text ? BUSY_MS : QUIET_MS);
  }

  tabs.addEventListener('keydown', (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const ids = all().map((one) => one.processId);
    shown = ids[(ids.indexOf(shown) + step + ids.length) % ids.length];
    show();
    tabs.querySelector('[aria-selected=true]')?.focus();
    watch();
  });
  const node = openDialog('Background processes', (end) => {
    close = el('button.primary', { type: 'button', text: 'Close', onclick: end });
    return [tabs, el('div.process-head', {}, state, kill), place, line, hint, el('div.dialog-foot', {}, close)];
  }, { wide: true });
  node.classList.add('process-dialog');
  // In a terminal Escape belongs to the program that runs in it.
  node.addEventListener('cancel', (event) => { const process = session.processes.get(shown); if (process?.terminal && process.status === 'running' && place.contains(document.activeElement)) event.preventDefault(); });
  const follow = ({ session: changed, changes }) => { if (node.open && changed === session && changes.parts.has('processes')) show(); };
  app.on('change', follow);
  node.addEventListener('close', () => { round += 1; terminal?.close(); app.off('change', follow); });
  show();
  if (shown) choose(shown);
  else close.focus();
}
