// What the page knows as a whole: the connection, the sessions that are open, which of them is shown, lists of sessions, models
// and commands. Views listen to it and ask it to do things; it touches no element.

import { CommandError, Connection } from '../net/connection.js';
import { loadControl, watchShell } from './control.js';
import { QUESTIONS } from './events.js';
import { lastUsed, newestOther } from './recent.js';
import { Session } from './session.js';

/** How long to wait before figures are asked for again, so that a busy run does not ask all the time. */
const REFRESH_MS = 400;

export class App {
  /** @param {{ address: () => string, refusal?: any, wanted?: string|null, lastUsed?: string|null, Socket?: any }} options */
  constructor(options) {
    this.wanted = options.wanted || null;
    /** Id of the session that this browser showed last; opened first if the address names none. */
    this.lastUsed = options.lastUsed || null;
    this.sessions = new Map();
    this.current = '';
    /** Handle of the session that is shown once it is loaded; `current` is shown until then. */
    this.wantedHandle = '';
    this.open = [];
    this.listed = [];
    this.commands = [];
    this.models = null;
    this.stats = null;
    this.busy = new Map();
    /** Sessions whose run ended while another one was shown. */
    this.unread = new Set();
    /** Did a run end while nobody looked? */
    this.unseen = false;
    /** Is the session that is shown the one that commands would go to? Not while it comes back after a loss. */
    this.isReady = false;
    /** Says which process the agent is. */
    this.instance = null;
    this.listeners = new Map();
    this.held = new Map();
    this.loading = new Map();
    this.connection = new Connection({
      ...options,
      onphase: (phase, retryAt) => { this.isReady = false; this.emit('phase', { phase, retryAt }); },
      onevent: (event) => this.take(event),
      onopen: (again) => this.beginSurely(again),
    });
  }

  on(name, listener) {
    this.listeners.set(name, [...(this.listeners.get(name) || []), listener]);
  }

  off(name, listener) {
    this.listeners.set(name, (this.listeners.get(name) || []).filter((one) => one !== listener));
  }

  emit(name, what) {
    for (const listener of this.listeners.get(name) || []) listener(what);
  }

  failed(error) {
    // A mistake of ours, not a refusal.
    if (error instanceof TypeError || error instanceof RangeError) console.error(error);
    this.emit('notes', [{ level: 'error', text: error.message }]);
  }

  /** The session that is shown. */
  get session() {
    return this.sessionOf(this.current);
  }

  sessionOf(handle) {
    let session = this.sessions.get(handle);
    if (!session) {
      session = new Session(handle);
      this.sessions.set(handle, session);
    }
    return session;
  }

  /** A command for the session that is shown, or another one. */
  ask(command, handle = this.current, wait = undefined) {
    return this.connection.request(handle ? { ...command, session: handle } : command, wait);
  }

  /** The same; a failure is shown and null comes back. */
  async tryAsk(command, handle = this.current) {
    try {
      return await this.ask(command, handle);
    } catch (error) {
      this.failed(error);
      return null;
    }
  }

  /** Begins, and tries again while there is a connection but no session. */
  async beginSurely(again) {
    const { socket } = this.connection;
    try {
      await this.begin(again);
    } catch (error) {
      if (socket !== this.connection.socket) return;
      this.failed(error);
      setTimeout(() => { if (socket === this.connection.socket && !this.isReady) this.beginSurely(again); }, REFRESH_MS * 5);
    }
  }

  /** Now the session that is shown is the one that commands go to. */
  ready() {
    this.isReady = true;
    this.emit('ready');
  }

  /** After a connection is open: everything, or only what was missed. */
  async begin(again) {
    if (again && this.session.loaded && await this.resume()) {
      this.ready();
      this.refresh(0);
      await this.refreshLists();
      return;
    }
    for (const session of this.sessions.values()) session.loaded = false;
    await this.refreshOpen();
    const wanted = this.session.state.sessionId || this.wanted;
    this.wanted = null;
    let handle = this.current;
    if (wanted) {
      handle = await this.handleOf(wanted).catch(() => null);
      if (handle === null) {
        this.emit('notes', [{ level: 'warning', text: 'That session is not here any more.' }]);
        handle = '';
      }
    }
    if (!wanted) handle = await lastUsed(this).catch(() => null) ?? handle;
    await this.show(handle);
    this.ready();
    await Promise.allSettled([this.refreshList(), this.refreshCommands(), this.refreshModels()]);
  }

  /** Asks for the events that were missed. False when everything has to be loaded anew. */
  async resume() {
    const { connection } = this;
    const known = this.session.state.sessionId;
    let answer;
    try {
      answer = await connection.request({ type: 'replay', after: connection.lastSeq, ...(this.instance ? { instance: this.instance } : {}) });
    } catch {
      this.restarted();
      return false;
    }
    if (this.isOther(answer)) { this.restarted(); return false; }
    if (answer.snapshot) return false;
    const state = await this.ask({ type: 'get_state' }).catch(() => null);
    if (!state || state.sessionId !== known) return false;
    const { session } = this;
    const isWhole = session.running || state.isStreaming || session.messageCount === state.messageCount;
    if (!isWhole) await this.load(this.current);
    return true;
  }

  /** Does an answer come from another process than those before? */
  isOther(answer) {
    const before = this.instance;
    if (answer.instanceId) this.instance = String(answer.instanceId);
    return Boolean(before && answer.instanceId && before !== this.instance);
  }

  /** Another agent is there now: it numbers events and names sessions anew. Which session is shown stays the same, if it is on disk. */
  restarted() {
    this.wanted = this.session.state.sessionId || this.wanted;
    this.connection.lastSeq = 0;
    this.sessions.clear();
    this.held.clear();
    this.unread.clear();
    this.current = '';
  }

  /** Loads a session as it is now. Asked while that is under way, it is loaded once more. */
  load(handle, onloaded = null) {
    const under = this.loading.get(handle);
    if (under) {
      under.again ||= under.promise.then(() => this.load(handle, onloaded));
      return under.again;
    }
    const promise = this.loadNow(handle, onloaded).finally(() => this.loading.delete(handle));
    this.loading.set(handle, { promise, again: null });
    return promise;
  }

  /** Events that arrive meanwhile wait. */
  async loadNow(handle, onloaded) {
    const held = [];
    this.held.set(handle, held);
    try {
      const answer = await this.ask({ type: 'replay' }, handle).catch((error) => { this.giveUp(handle, held, error); throw error; });
      if (this.isOther(answer)) { this.restarted(); throw new Error('The agent was started anew.'); }
      const session = this.sessionOf(handle);
      const changes = session.load(answer.snapshot || {}, answer.lastSeq || 0);
      this.held.delete(handle);
      if (onloaded) onloaded(session);
      else this.emit('change', { session, changes });
      for (const event of held) this.pass(session, event);
      loadControl(this, session);
    } finally {
      this.held.delete(handle);
    }
  }

  /** A load failed. Refused, it leaves the session as it was, with what has waited; without a connection all of it is loaded anew. */
  giveUp(handle, held, error) {
    this.held.delete(handle);
    const session = this.sessions.get(handle);
    if (session && error instanceof CommandError) for (const event of held) this.pass(session, event);
    else if (session) session.loaded = false;
  }

  /**
   * Shows a session that is open, once it is loaded: until then the page shows the one before, and commands go to that one. It is not
   * shown if the load fails, or another session is wanted meanwhile.
   */
  async show(handle) {
    const before = this.current;
    this.wantedHandle = handle;
    const enter = (session) => {
      if (this.wantedHandle !== handle) return;
      this.current = handle;
      this.unread.delete(handle);
      this.emit('show', session);
    };
    const session = this.sessionOf(handle);
    if (session.loaded) enter(session);
    else await this.load(handle, enter);
    if (this.current !== handle) return;
    this.refresh(0);
    if (before !== handle) this.refreshCommands();
  }

  /** The handle of a session by its id; opens it if it is not open. Null: there is none. */
  async handleOf(id) {
    const open = this.open.find((one) => one.sessionId === id);
    if (open) return open.session || '';
    const { sessions } = await this.ask({ type: 'list_sessions', scope: 'all' }, '');
    const listed = (sessions || []).find((one) => one.id === id);
    return listed ? this.openFile(listed.path) : null;
  }

  /** Whether an open session is the agent's first one and nothing has happened in it. */
  isEmptyFirst(one) {
    return !one.session && !one.messageCount && !one.isStreaming && !one.sessionName;
  }

  async openFile(path) {
    const open = this.open.find((one) => one.sessionFile && one.sessionFile === path);
    if (open) return open.session || '';
    const opened = await this.ask({ type: 'open_session', sessionPath: path }, '');
    await this.refreshOpen();
    return opened.session;
  }

  /** Opens a new session beside the others and shows it. */
  async create(where = null) {
    const cwd = where || this.open.find((one) => (one.session || '') === this.current)?.cwd;
    // The empty first session is as good as a new one.
    const first = this.open.find((one) => this.isEmptyFirst(one));
    if (first && this.current && first.cwd === cwd) { await this.show(''); return; }
    const opened = await this.ask({ type: 'open_session', ...(cwd ? { cwd } : {}) }, '');
    await this.refreshOpen();
    await this.show(opened.session);
  }

  /**
   * Closes a session. The agent's first one ends with the agent; while it is empty it leaves the list instead, and the session that
   * was changed last is shown.
   */
  async shut(handle) {
    if (!handle) {
      const next = this.open.findLast((one) => one.session && !one.evicted)?.session ?? await newestOther(this);
      if (next === null) throw new Error('There is no other session. The first one ends with the agent.');
      await this.show(next);
      return;
    }
    if (this.current === handle) await this.show('');
    await this.ask({ type: 'close_session' }, handle);
    this.sessions.delete(handle);
    await this.refreshLists();
  }

  /** Another page closed a session, or the agent put one away, which comes back by itself when it is needed. */
  wasClosed(handle, { reason }) {
    if (reason === 'closed' && handle) {
      this.sessions.delete(handle);
      if (this.current === handle) {
        this.emit('notes', [{ level: 'warning', text: 'This session was closed elsewhere. It is still on disk.' }]);
        this.show('').catch((error) => this.failed(error));
      }
    }
    this.refreshLists();
  }

  /** Deletes a session's file; one that is open is closed first. */
  async remove(path) {
    const open = this.open.find((one) => one.sessionFile === path);
    if (open?.session) await this.shut(open.session);
    await this.ask({ type: 'delete_session', sessionPath: path }, '');
    await this.refreshLists();
  }

  take(event) {
    const handle = event.session || '';
    const held = this.held.get(handle);
    if (held) { held.push(event); return; }
    this.pass(this.sessionOf(handle), event);
  }

  pass(session, event) {
    this.noteBusy(session.handle, event);
    if (event.type === 'session_closed') { this.wasClosed(session.handle, event); return; }
    if (!session.loaded) {
      // It will be loaded when it is shown; a question cannot wait for that.
      if (event.type === 'extension_ui_request' && QUESTIONS.has(event.method)) this.emit('elsewhere', { session, event });
      return;
    }
    const changes = session.apply(event);
    if (!changes) return;
    if (changes.parts.has('stale')) {
      this.load(session.handle).then(() => this.refreshLists()).catch((error) => this.failed(error));
    }
    if (event.type === 'bash_execution_update') watchShell(this, session, session.shellName(event));
    if (changes.parts.has('settled') || changes.parts.has('usage') || changes.parts.has('refresh')) this.refresh();
    if (changes.parts.has('settled')) this.refreshLists();
    if (changes.notes) this.emit('notes', changes.notes);
    this.emit('change', { session, changes });
  }

  noteBusy(handle, event) {
    if (event.type === 'agent_start') this.busy.set(handle, true);
    else if (event.type === 'agent_settled' || (event.type === 'agent_end' && !event.willRetry)) {
      if (this.busy.delete(handle)) this.emit('over', { handle });
    } else return;
    this.emit('open');
  }

  /** Asks for the figures again, a little later. */
  refresh(wait = REFRESH_MS) {
    clearTimeout(this.refreshTimer);
    this.refreshTimer = setTimeout(() => this.refreshNow().catch(() => {}), wait);
  }

  async refreshNow() {
    const { session } = this;
    // Taken when it comes: an event may follow it before the figures are there, and is newer.
    const taken = this.ask({ type: 'get_state' }, session.handle).then((state) => {
      const { running } = session;
      session.takeState(state);
      if (!session.running) session.runStarted = null;
      return running !== session.running;
    });
    const figures = this.ask({ type: 'get_session_stats' }, session.handle).catch(() => null);
    const [isOther, stats] = await Promise.all([taken, figures]);
    const changes = session.changes();
    if (isOther) changes.parts.add('status');
    changes.parts.add('state').add('todos');
    session.stats = stats;
    this.emit('change', { session, changes });
  }

  async refreshOpen() {
    const answer = await this.ask({ type: 'list_open_sessions' }, '').catch(() => ({ sessions: [] }));
    this.open = answer.sessions || [];
    this.busy = new Map(this.open.filter((one) => one.isStreaming).map((one) => [one.session || '', true]));
    this.emit('open');
  }

  async refreshList() {
    const answer = await this.ask({ type: 'list_sessions', scope: 'all' }, '');
    this.listed = answer.sessions || [];
    this.emit('open');
  }

  refreshLists() {
    clearTimeout(this.listTimer);
    return new Promise((resolve) => {
      this.listTimer = setTimeout(() => Promise.allSettled([this.refreshOpen(), this.refreshList()]).then(resolve), 100);
    });
  }

  async refreshCommands() {
    const handle = this.current;
    const answer = await this.ask({ type: 'get_commands' }, handle).catch(() => ({ commands: [] }));
    if (handle !== this.current) return; // It waits for MCP servers: another session is shown by now.
    this.commands = answer.commands || [];
    this.emit('commands');
  }

  async refreshModels() {
    const answer = await this.ask({ type: 'get_available_models' });
    this.models = answer.models || [];
    this.emit('models');
  }
}
