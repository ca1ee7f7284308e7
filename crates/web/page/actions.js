// What the user can have done with a session: say something, run a command, stop, rename, fork, go to another place of the tree,
// export, compact. Each is a command or two to the agent and what follows from its answer.

import { CommandError } from './net/connection.js';
import { count, oneLine, textOf } from './lib/format.js';
import { keep, recall } from './lib/store.js';
import { copyText, el, icon } from './lib/dom.js';
import { askSure, askText } from './view/dialogs.js';
import { chooseFolder } from './view/folders.js';
import { openMenu } from './view/menu.js';
import { showHelp } from './view/help.js';
import { asMarkdown } from './lib/plain.js';
import { canNotify, notifies, setNotifies } from './view/notify.js';
import { nextTheme, setTheme, theme } from './view/theme.js';
import { toast } from './view/toasts.js';
import { showTree } from './view/tree.js';
import { showFallback } from './view/fallback.js';
import { showLimits } from './view/limits.js';
import { showProcesses } from './view/processes.js';
import { askForResult } from './view/result.js';
import { showUndo } from './view/undo.js';

export class Actions {
  /** @param {import('./state/app.js').App} app */
  constructor(app, parts) {
    this.app = app;
    this.parts = parts;
    /** Slash commands of the page itself. */
    this.own = new Map(/** @type {[string, (rest: string) => unknown][]} */ ([
      ['new', () => app.create().catch((error) => app.failed(error))],
      ['new-in', () => this.createElsewhere()],
      ['name', (rest) => (rest ? this.setName(rest) : this.rename(null))],
      ['compact', (rest) => this.compact(rest)],
      ['tree', () => this.tree()],
      ['export', (rest) => this.exportSession(rest)],
      ['clone', () => this.clone()],
      ['limits', () => showLimits(app)],
      ['undo', () => this.undo()],
      ['fallback', () => showFallback(app)],
      ['processes', () => showProcesses(app)],
      ['result', (rest) => this.askForResult(rest)],
      ['theme', () => nextTheme()],
      ['help', () => showHelp()],
    ]));
  }

  /** Our commands and the agent's, for the list that `/` opens. */
  commandList() {
    const own = [
      { name: 'new', description: 'Open a new session' }, { name: 'new-in', description: 'Open a new session in another directory' }, { name: 'name', description: 'Name this session', takesText: true },
      { name: 'compact', description: 'Summarise the older part of the conversation', takesText: true }, { name: 'tree', description: 'Show the branches' },
      { name: 'export', description: 'Write the session as a page', takesText: true }, { name: 'clone', description: 'Go on in a copy' },
      { name: 'limits', description: 'Limits of turns, tool calls, tokens, cost and time' }, { name: 'undo', description: 'Show the changes of a turn or run and go back' },
      { name: 'fallback', description: 'Models for when the model fails' }, { name: 'processes', description: 'Terminals of background processes' },
      { name: 'result', description: 'Ask for a result that fits a JSON Schema', takesText: true },
      { name: 'theme', description: 'Light, dark, system' }, { name: 'help', description: 'Keyboard shortcuts' },
    ].map((command) => ({ ...command, own: true }));
    const theirs = this.app.commands.filter((command) => command && command.name).map((command) => ({
      name: String(command.name).replace(/^\//, ''), description: [command.description, command.source].filter(Boolean).join(' · '),
    }));
    const taken = new Set(theirs.map((command) => command.name));
    return [...theirs, ...own.filter((command) => !taken.has(command.name))];
  }

  /** Files of the session's directory that fit what is typed after `@`. */
  async files(query) {
    try {
      return (await this.app.ask({ type: 'find_files', query, limit: 50 }, this.app.current, 5000)).files || [];
    } catch {
      return null;
    }
  }

  /** A new session in a directory that is asked for. */
  async createElsewhere() {
    const { app } = this;
    const recent = [...new Set([...app.open, ...app.listed].map((one) => one.cwd).filter((cwd) => typeof cwd === 'string' && cwd))];
    const start = app.open.find((one) => (one.session || '') === app.current)?.cwd || '';
    const cwd = await chooseFolder({ start, recent, list: (path) => app.ask({ type: 'list_directory', path }) });
    if (cwd) await app.create(cwd).catch((error) => app.failed(error));
  }

  /** Says something. False: it was not taken, and is to be kept. */
  async send(message, images, mode) {
    const { app } = this;
    try {
      await app.ask({ type: 'prompt', message, ...(images.length ? { images } : {}), streamingBehavior: mode });
      return true;
    } catch (error) {
      toast('error', error instanceof CommandError ? error.message
        : `${error.message} Your message is still here; look whether it arrived before you send it again.`);
      return false;
    }
  }

  /** Runs a shell command on the user's behalf. */
  async shell(command, hidden) {
    const { app } = this;
    const { session, current } = app;
    const id = `${app.connection.prefix}_sh${Math.random().toString(36).slice(2)}`;
    const asked = app.ask({ type: 'bash', id, command, ...(hidden ? { excludeFromContext: true } : {}) }, current);
    app.emit('change', { session, changes: session.startShell(id, command, hidden) });
    try {
      const result = await asked;
      app.emit('change', { session, changes: session.endShell(id, result) });
      return true;
    } catch (error) {
      app.emit('change', { session, changes: session.endShell(id, { cancelled: true, output: error.message }) });
      return error instanceof CommandError;
    }
  }

  /** Stops everything: the run, a retry, a compaction, shell commands. Messages that wait go back to the composer first. */
  async stop() {
    const { app } = this;
    const { session } = app;
    if ([...session.shells.values()].some((item) => item.pending)) app.ask({ type: 'abort_bash' }).catch(() => {});
    if (!session.running && !session.compacting) return;
    document.body.classList.add('stopping');
    try {
      // The stop does not wait for the queue: a queue outlives it.
      await Promise.all([app.ask({ type: 'abort' }), this.takeQueue(session)]);
    } catch (error) {
      app.failed(error);
    } finally {
      document.body.classList.remove('stopping');
    }
  }

  /** Takes the waiting messages of a session back into the composer. Images cannot be taken back: such a queue stays. */
  async takeQueue(session) {
    const { queue } = session;
    if (!queue.steering.length && !queue.followUp.length) return;
    // Events have only the texts of the queue; which messages have images must be known before the queue is cleared.
    const items = queue.items || (await this.app.ask({ type: 'get_queue' }, session.handle)).items || [];
    if (items.some((item) => item.images)) return;
    const taken = await this.app.ask({ type: 'clear_queue' }, session.handle);
    this.giveBack(session, [...(taken.steering || []), ...(taken.followUp || [])]);
  }

  /** Puts texts before what is being typed in a session. */
  giveBack(session, texts) {
    const text = texts.join('\n\n');
    if (!text) return;
    if (session === this.app.session) this.parts.composer().add(text);
    else this.parts.composer().addDraft(session.state.sessionId, text);
  }

  /**
   * Notes the waiting messages of a session in this browser. The agent has them in memory only: if it has been started anew since,
   * they go back to the composer and the user is told.
   */
  keepQueue(session) {
    const id = session.state.sessionId;
    if (!id) return;
    const texts = [...session.queue.steering, ...session.queue.followUp];
    const kept = recall(`queue-${id}`);
    if (!texts.length && Array.isArray(kept?.texts) && kept.instance && this.app.instance && kept.instance !== this.app.instance) {
      // The agent may have taken messages after this page last heard of it: these are in the conversation now.
      const taken = session.said.slice(0, Math.max(0, session.said.length - kept.said)).map((item) => textOf(item.message.content));
      const lost = kept.texts.map(String).filter((text) => !taken.includes(text));
      this.giveBack(session, lost);
      if (lost.length) toast('warning', `The agent was restarted before it took ${count(lost.length, 'waiting message')}. The text is in the field again.`);
    }
    keep(`queue-${id}`, texts.length ? { instance: this.app.instance, said: session.said.length, texts } : null);
  }

  async setName(name, handle = this.app.current) {
    const { app } = this;
    if (await app.tryAsk({ type: 'set_session_name', name }, handle)) {
      app.refresh(0);
      await app.refreshLists();
    }
  }

  /** Asks for another name; for one that is not open it is opened for the moment. */
  async rename(row) {
    const { app } = this;
    const now = row ? row.name || '' : app.session.state.sessionName || '';
    const name = (await askText('Name of the session', now, 'Rename'))?.trim();
    if (!name || name === now) return;
    if (!row || row.isOpen) { await this.setName(name, row ? row.handle : app.current); return; }
    try {
      const handle = await app.openFile(row.path);
      await this.setName(name, handle);
      await app.ask({ type: 'close_session' }, handle);
      await app.refreshLists();
    } catch (error) { app.failed(error); }
  }

  /** Deletes a session, if that is meant. */
  async remove(row) {
    const name = oneLine(row.name || row.first, 120) || 'New session';
    if (!await askSure('Delete this session?', `“${name}” is moved to the trash folder beside the sessions.`, 'Delete', { danger: true })) return;
    await this.app.remove(row.path).catch((error) => this.app.failed(error));
  }

  async openFile(path) {
    const { app } = this;
    try {
      await app.show(await app.openFile(path));
    } catch (error) { app.failed(error); }
  }

  async compact(customInstructions) {
    await this.app.tryAsk({ type: 'compact', ...(customInstructions ? { customInstructions } : {}) });
  }

  async clone() {
    const answer = await this.app.tryAsk({ type: 'clone' });
    if (answer && !answer.cancelled) toast('info', 'You are in a copy now.');
  }

  async exportSession(outputPath = '') {
    const answer = await this.app.tryAsk({ type: 'export_html', ...(outputPath ? { outputPath } : {}) });
    if (answer) toast('info', `Written to ${answer.path}`);
  }

  /** The whole conversation into the clipboard. */
  async copyAll() {
    const { items, tools } = this.app.session;
    if (await copyText(asMarkdown(items, tools))) toast('info', 'The conversation is in the clipboard.');
    else toast('warning', 'The browser does not let the page copy.');
  }

  async tree() {
    const { app } = this;
    const data = await app.tryAsk({ type: 'get_tree' });
    if (!data) return;
    showTree(data, {
      go: (targetId, summarize) => this.go(targetId, summarize),
      fork: (entryId) => this.fork(entryId),
      label: async (targetId, old) => {
        const label = await askText('Label', old, 'Set');
        if (label !== null) await app.tryAsk({ type: 'set_entry_label', targetId, label });
      },
    });
  }

  async go(targetId, summarize) {
    const { app } = this;
    const { session } = app;
    const answer = await app.tryAsk({ type: 'navigate_tree', targetId, ...(summarize ? { summarize: true } : {}) });
    if (!answer || answer.cancelled) return;
    await app.load(session.handle);
    if (answer.editorText) this.edit(session, answer.editorText);
  }

  async fork(entryId) {
    const { app } = this;
    const { session } = app;
    if (session.running && !await askSure('Fork', 'The agent is working; a fork stops it.', 'Stop and fork')) return;
    const answer = await app.tryAsk({ type: 'fork', entryId }, session.handle);
    if (!answer || answer.cancelled) return;
    await app.load(session.handle);
    await app.refreshLists();
    this.edit(session, answer.text || '');
    if (session === app.session) this.parts.composer().field.focus();
  }

  /** Puts a text of a session into the composer. If another session is shown by now, it becomes a draft. */
  edit(session, text) {
    if (session === this.app.session) this.parts.composer().set(text);
    else this.giveBack(session, [text]);
  }

  /** A fork at a user's message: which entry it is says the agent. */
  async forkAt(item) {
    const answer = await this.app.tryAsk({ type: 'get_fork_messages' });
    if (!answer) return;
    const text = textOf(item.message.content);
    const said = this.app.session.items.filter((one) => one.role === 'user' && textOf(one.message.content) === text);
    const same = (answer.messages || []).filter((message) => message.text === text);
    // Messages with the same words: the same one counted from the end.
    const fromEnd = said.length - said.indexOf(item);
    const entry = same[same.length - fromEnd] || same.at(-1);
    if (entry) await this.fork(entry.entryId);
    else toast('warning', 'One cannot fork at this message.');
  }

  /** What changed in files, and the way back. */
  undo() {
    return showUndo(this.app, this.parts.composer());
  }

  /** A message whose run ends with a value that fits a schema. */
  askForResult(message) {
    const handle = this.app.current;
    askForResult((words, outputSchema) => this.app.ask({ type: 'prompt', message: words, outputSchema }, handle), message);
  }

  sessionMenu() {
    const { app } = this;
    const chosen = theme();
    const entries = [
      { label: 'Rename…', icon: 'pencil', pick: () => this.rename(null) },
      { label: 'Branches…', icon: 'tree', pick: () => this.tree() },
      { label: 'Changes and undo…', icon: 'undo', pick: () => this.undo() },
      { label: 'Limits…', icon: 'gauge', pick: () => showLimits(app) },
      { label: 'Fallback models…', icon: 'layers', pick: () => showFallback(app) },
      { label: 'Background processes…', icon: 'terminal', pick: () => showProcesses(app) },
      { label: 'Ask for a result…', icon: 'check', pick: () => this.askForResult('') },
      { label: 'Go on in a copy', icon: 'fork', pick: () => this.clone() },
      { label: 'Export as a page', icon: 'export', pick: () => this.exportSession() },
      { label: 'Find…', icon: 'search', pick: () => this.parts.find() },
      { label: 'Copy as Markdown', icon: 'copy', pick: () => this.copyAll() },
      { label: 'Compact now', icon: 'shrink', pick: () => this.compact('') },
      app.current || !app.session.items.length ? { label: 'Close session', icon: 'close', pick: () => app.shut(app.current).catch((error) => app.failed(error)) } : null,
      { label: 'As the system', group: 'Theme', icon: 'more', checked: chosen === 'system', pick: () => setTheme('system') },
      { label: 'Light', group: 'Theme', icon: 'sun', checked: chosen === 'light', pick: () => setTheme('light') },
      { label: 'Dark', group: 'Theme', icon: 'moon', checked: chosen === 'dark', pick: () => setTheme('dark') },
      canNotify() ? { label: 'Notify me when it is done', group: 'Page', icon: 'bell', checked: notifies(), pick: () => setNotifies(!notifies()) } : null,
      { label: 'Keyboard shortcuts', group: 'Page', icon: 'help', hint: '?', pick: showHelp },
    ].filter(Boolean);
    openMenu(this.parts.moreButton(), { title: 'Session', entries });
  }
}

/** What an empty conversation shows. */
export function emptyPage(app, composer, choose) {
  const hints = ['What does this project do?', 'Find and fix a failing test', 'Review my uncommitted changes'];
  return el('div.blank-inner', {}, el('span.brand-mark.large', { aria: { hidden: true } }), el('h1', { text: 'What shall we build?' }),
    el('button.place', { type: 'button', title: 'Start in another directory', onclick: choose }, icon('folder'),
      el('span', { text: app.open.find((one) => (one.session || '') === app.current)?.cwd || '' })),
    el('div.hints', {}, ...hints.map((text) => el('button.hint', { type: 'button', text, onclick: () => { composer.set(text); composer.field.focus(); } }))));
}
