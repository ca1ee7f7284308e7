// The page begins here: makes the app and the views, and ties one to the other. What a view looks like and what the agent says
// is not decided here.

import { refusal, socketAddress } from './net/token.js';
import { App } from './state/app.js';
import { fill, icon } from './lib/dom.js';
import { oneLine, textOf } from './lib/format.js';
import { keep, recall } from './lib/store.js';
import { Composer } from './view/composer.js';
import { Banner } from './view/banner.js';
import { Questions, openDialog } from './view/dialogs.js';
import { Pickers, showName, showTodos } from './view/header.js';
import { QueueView } from './view/queue.js';
import { SideBar } from './view/sidebar.js';
import { StatusLine, showExtras } from './view/status.js';
import { announce, toast } from './view/toasts.js';
import { NoModel } from './view/nomodel.js';
import { tell } from './view/notify.js';
import { Transcript } from './view/transcript.js';
import { Find } from './view/find.js';
import { showLimit, showLimits } from './view/limits.js';
import { showProcessCount, showProcesses } from './view/processes.js';
import { showSubagent } from './view/subagent.js';
import { viewOf } from './view/items.js';
import { listenToKeys } from './view/help.js';
import { tint } from './view/theme.js';
import { followViewport } from './view/viewport.js';
import { Actions, emptyPage } from './actions.js';

const find = (id) => document.getElementById(id);
const app = new App({ address: socketAddress, refusal, wanted: new URL(location.href).searchParams.get('session'), lastUsed: recall('last-session') });

const actions = new Actions(app, {
  find: () => finder.open(),
  composer: () => composer, nameButton: () => find('name'), moreButton: () => find('more'),
});
const composer = new Composer(find('composer'), {
  send: (text, images, mode) => { transcript.toEnd(true); return actions.send(text, images, mode); },
  shell: (command, hidden) => { transcript.toEnd(true); return actions.shell(command, hidden); },
  stop: () => actions.stop(),
  commands: () => actions.commandList(),
  files: (query) => actions.files(query),
  own: actions.own,
});
const transcript = new Transcript(find('scroll'), { onedit: (item) => actions.forkAt(item), empty: () => emptyPage(app, composer, () => actions.createElsewhere()) });
const finder = new Find(find('scroll'), transcript);
const banner = new Banner(find('banner'), { connect: () => app.connection.connect() });
const side = new SideBar(find('side'), {
  show: (handle) => app.show(handle).catch((error) => app.failed(error)),
  openFile: (path) => actions.openFile(path),
  create: (cwd) => app.create(cwd).catch((error) => app.failed(error)),
  createElsewhere: () => actions.createElsewhere(),
  rename: (row) => actions.rename(row),
  remove: (row) => actions.remove(row),
  close: (handle) => app.shut(handle).catch((error) => app.failed(error)),
});
const pickers = new Pickers(composer.tools, { app, compact: () => actions.compact('') });
const noModel = new NoModel(find('no-model'), app);
const status = new StatusLine(find('status'), { abortRetry: () => app.tryAsk({ type: 'abort_retry' }), abort: () => actions.stop() });
const queue = new QueueView(find('queue'), { ask: (command) => app.tryAsk(command), restore: (session, texts) => actions.giveBack(session, texts) });
const questions = new Questions({
  answer: (id, answer) => {
    const handle = app.current;
    const isSent = app.connection.send({ type: 'extension_ui_response', id, ...answer, ...(handle ? { session: handle } : {}) });
    if (isSent) app.session.dialogs = app.session.dialogs.filter((dialog) => dialog.id !== id);
    else toast('warning', 'There is no connection; the answer was not sent.');
    return isSent;
  },
});

let todosOpen = Boolean(recall('todos-open', false));

/** Shows parts of the session that is shown; without names, all of them. */
function showParts(session, parts = null) {
  const wants = (...names) => !parts || parts.has('all') || names.some((name) => parts.has(name));
  if (wants('status')) status.update(session);
  if (wants('status', 'state')) {
    composer.update(composing(session));
    document.body.classList.toggle('running', session.running);
  }
  if (wants('state')) { pickers.update(session); composer.update(composing(session)); noModel.update(session); }
  if (wants('state', 'status', 'dialogs')) showName(find('name'), app);
  if (wants('queue')) { queue.update(session); actions.keepQueue(session); }
  if (wants('dialogs')) questions.show(session.dialogs);
  if (wants('widgets')) showExtras(session, { above: find('widgets-above'), below: find('widgets-below'), statuses: find('statuses') });
  if (wants('todos')) showTodoList(session);
  if (wants('limit', 'status')) showLimit(find('limit'), session, () => showLimits(app));
  if (wants('processes')) showProcessCount(find('processes'), session);
}

function showTodoList(session) {
  showTodos(find('todos'), session.todos, todosOpen, () => {
    todosOpen = !todosOpen;
    keep('todos-open', todosOpen || null);
    showTodoList(session);
  });
}

function composing(session) {
  return {
    running: session.running || Boolean(session.compacting), online: app.isReady,
    hasShell: [...session.shells.values()].some((item) => item.pending),
    // Unknown for models that do not say what they take.
    seesImages: Array.isArray(session.state.model?.input) ? session.state.model.input.includes('image') : undefined,
  };
}

app.on('phase', ({ phase, retryAt }) => {
  banner.update(phase, retryAt);
  composer.update(composing(app.session));
});
app.on('ready', () => composer.update(composing(app.session)));
app.on('show', (session) => {
  transcript.show(session);
  composer.show(session);
  showParts(session);
  side.update(app);
  address(session);
});
app.on('change', ({ session, changes }) => {
  if (changes.parts.has('dialogs')) side.update(app);
  if (session !== app.session) {
    if (changes.parts.has('dialogs') && session.dialogs.length) elsewhere(session);
    return;
  }
  transcript.change(changes);
  if (changes.parts.size) showParts(session, changes.parts);
  if (changes.parts.has('all')) { composer.show(session); address(session); }
  if (changes.parts.has('editor')) composer.set(changes.editorText);
  if (changes.openUrl) openUrl(changes.openUrl);
  if (changes.parts.has('dialogs') && session.dialogs.length) tell('Pinion asks', oneLine(session.dialogs[0].title, 200));
  if (changes.parts.has('settled')) finished(session);
  else if (changes.parts.has('status')) announce(session.retry ? session.retry.error : session.compacting ? 'Compacting' : session.running ? 'Working' : '');
});
app.on('elsewhere', ({ session }) => elsewhere(session));
app.on('open', () => { side.update(app); showName(find('name'), app); });
app.on('over', ({ handle }) => {
  if (handle === app.current) return;
  app.unread.add(handle);
  side.update(app);
  tell('Pinion is done', 'in another session', () => app.show(handle).catch((error) => app.failed(error)));
});
app.on('commands', () => composer.completion.look());
app.on('notes', (notes) => { for (const note of notes) toast(note.level, note.text); });

/** A question in a session that is not shown. */
function elsewhere(session) {
  tell('Pinion asks', 'Another session waits for an answer.', () => app.show(session.handle).catch((error) => app.failed(error)));
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'link';
  button.textContent = 'Show';
  button.addEventListener('click', () => { button.closest('.toast')?.remove(); app.show(session.handle).catch((error) => app.failed(error)); });
  toast('warning', 'Another session asks something.', button);
}

/** A page that an extension wants opened: only on a click, and only the web. */
function openUrl({ url, text }) {
  if (!/^https?:\/\//i.test(url)) return;
  const link = document.createElement('a');
  Object.assign(link, { href: url, target: '_blank', rel: 'noreferrer noopener', className: 'link', textContent: 'Open' });
  toast('warning', oneLine(text, 300), link);
}

/** The session's id stands in the address, so that a reload or a bookmark comes back to it. */
function address(session) {
  const url = new URL(location.href);
  const id = session.state.sessionId;
  document.body.dataset.session = id || '';
  if (id && session.items.length) keep('last-session', id);
  if (!id || url.searchParams.get('session') === id) return;
  url.searchParams.set('session', id);
  history.replaceState(null, '', url.pathname + url.search);
}

/** A run is over: a screen reader gets the answer's beginning, somebody who looks elsewhere a notification. */
function finished(session) {
  if (session.state.sessionId && session.items.length) keep('last-session', session.state.sessionId);
  const answer = session.items.findLast((item) => item.role === 'assistant');
  const text = answer ? oneLine(textOf(answer.message.content), 240) : '';
  announce(answer?.message.stopReason === 'error' ? `Failed: ${oneLine(answer.message.errorMessage, 200)}` : text || 'Done');
  if (document.hidden) { app.unseen = true; showName(find('name'), app); }
  tell(answer?.message.stopReason === 'error' ? 'Pinion failed' : 'Pinion is done', text);
}

fill(find('menu'), icon('menu'));
fill(find('more'), icon('more'));
find('menu').addEventListener('click', () => side.toggle());
find('name').addEventListener('click', () => actions.rename(null));
find('more').addEventListener('click', () => actions.sessionMenu());
find('processes').addEventListener('click', () => showProcesses(app));
find('scroll').addEventListener('subagent', (event) => showSubagent(/** @type {CustomEvent} */ (event).detail, app, { openDialog, viewOf }));
listenToKeys({
  search: () => side.focusSearch(), find: () => (transcript.isPart && !finder.isOpen ? () => finder.open() : null), side: () => side.toggle(), create: () => app.create().catch((error) => app.failed(error)),
  model: () => pickers.pickModel(), start: () => transcript.toStart(), end: () => transcript.toEnd(true),
  stop: () => { if (app.session.running) actions.stop(); }, type: () => composer.field.focus(),
});
addEventListener('online', () => app.connection.wake());
document.addEventListener('visibilitychange', () => {
  if (document.hidden) return;
  app.connection.wake();
  if (app.unseen) { app.unseen = false; showName(find('name'), app); }
});
addEventListener('pageshow', (event) => { if (event.persisted) app.connection.wake(); });
tint();
followViewport();
if (!matchMedia('(pointer: coarse)').matches) composer.field.focus({ preventScroll: true });
app.connection.connect();
if ('serviceWorker' in navigator && isSecureContext) {
  navigator.serviceWorker.register('./sw.js').catch(() => {});
  // Once there is time, the service worker keeps what this page is made of.
  setTimeout(() => navigator.serviceWorker.ready.then((worker) => worker.active?.postMessage({
    keep: performance.getEntriesByType('resource').map((entry) => entry.name).filter((name) => name.startsWith(location.origin)),
  })), 3000);
}
