// Background processes: the button that counts them, and a dialog with a live terminal for each: output, input, size, killing, and
// whether their ends wake the session.

import { oneLine, visible } from '../lib/format.js';
import { el, fill, icon, setText } from '../lib/dom.js';
import { openDialog } from './dialogs.js';
import { CommandError } from '../net/connection.js';
import { openTerminal } from './terminal.js';

/** Least time between two reads of a process that prints without end. */
const READ_MS = 60;
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
  // The reader of the process that is shown: how far it is, and what the process was like then. Between two reads it waits for events.
  let reader = null;
  const tabs = el('div.process-tabs', { role: 'tablist', aria: { label: 'Processes' } });
  const state = el('span.process-state', { role: 'status' });
  const place = el('div.process-screen', { role: 'region', aria: { label: 'Terminal' } });
  const input = el('input', { type: 'text', autocomplete: 'off', spellcheck: false, placeholder: 'A line for its input', aria: { label: 'Input of the process' } });
  const line = el('div.process-input', {}, input, el('button', { type: 'button', text: 'Send', onclick: () => sendLine() }));
  const kill = el('button.danger', { type: 'button', text: 'Kill', onclick: () => app.tryAsk({ type: 'kill_process', processId: shown }, handle).then((process) => { if (process?.processId) { session.processes.set(process.processId, process); show(); } }) });
  const hint = el('p.remark', { text: 'Shift+Esc leaves the terminal.' });
  const wake = el('input', { type: 'checkbox', checked: known.wakeups === true, onchange: () => setWakeups(wake.checked) });
  let close = null;

  const write = (data) => app.ask({ type: 'write_process', processId: shown, data }, handle).catch((error) => app.failed(error));
  const sendLine = () => { write(`${input.value}\n`); input.value = ''; input.focus(); };
  const setWakeups = async (enabled) => { if (!await app.tryAsk({ type: 'set_process_wakeups', enabled }, handle)) wake.checked = !enabled; };
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
    reader = null;
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
      reader = { processId: process.processId, next: 0, known: process, isBusy: false };
      read(reader);
    } catch (error) { setText(state, error.message); }
  }

  /** Reads once, and goes on if there is more. The event of the next output is asked for with each read. */
  async function read(mine) {
    mine.isBusy = true;
    try {
      const answer = await app.ask({ type: 'read_process', processId: mine.processId, fromByte: mine.next, maxBytes: MOST_BYTES, notify: true }, handle);
      if (mine !== reader) return;
      mine.known = answer.process;
      if (session.processes.get(mine.processId)?.status !== answer.process.status) { session.processes.set(mine.processId, answer.process); show(); }
      mine.hasMore = Boolean(answer.text) && answer.nextByte < answer.process.outputBytes;
      mine.next = answer.nextByte;
      if (answer.droppedBytes) await terminal.write(`\r\n[${answer.droppedBytes} bytes are not kept any more]\r\n`);
      if (answer.text) await terminal.write(answer.text);
    } catch (error) {
      if (mine !== reader) return;
      setText(state, error.message);
      mine.hasMore = false;
      // Without a connection it goes on when the page is connected again.
      if (error instanceof CommandError) return;
    }
    setTimeout(() => { mine.isBusy = false; goOn(mine); }, READ_MS);
  }

  /** Reads if the process has printed or ended since the last read. */
  function goOn(mine) {
    if (!mine || mine !== reader || mine.isBusy || !node.open) return;
    const now = session.processes.get(mine.processId);
    const isBehind = now && (now.outputBytes > mine.known.outputBytes || now.status !== mine.known.status);
    if (mine.hasMore || isBehind) read(mine);
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
    return [tabs, el('div.process-head', {}, state, kill), place, line, hint, el('label.check-row', {}, wake, el('span', { text: 'Wake the session when a process ends' })), el('div.dialog-foot', {}, close)];
  }, { wide: true });
  node.classList.add('process-dialog');
  // In a terminal Escape belongs to the program that runs in it.
  node.addEventListener('cancel', (event) => { const process = session.processes.get(shown); if (process?.terminal && process.status === 'running' && place.contains(document.activeElement)) event.preventDefault(); });
  const follow = ({ session: changed, changes }) => {
    if (!node.open || changed !== session) return;
    if (changes.parts.has('processes')) show();
    if (changes.parts.has('processes') || changes.parts.has('output')) goOn(reader);
  };
  // What was printed while there was no connection: the events may be gone.
  const again = () => { if (reader) { show(); reader.hasMore = true; goOn(reader); } };
  app.on('change', follow);
  app.on('ready', again);
  node.addEventListener('close', () => { round += 1; reader = null; terminal?.close(); app.off('change', follow); app.off('ready', again); });
  show();
  if (shown) choose(shown);
  else close.focus();
}
