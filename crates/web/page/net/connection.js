// The way to the agent: a WebSocket that is opened again whenever it is lost, commands with their answers, and the numbers of
// events. It knows no sessions and no page; the clock, the socket and the browser's events are passed in, so that it can be
// tested without any of them.

/**
 * @typedef {'connecting'|'open'|'lost'|'denied'|'busy'|'ended'} Phase `lost` waits for the next attempt, `denied` for a token,
 *   `busy` is an agent with too many clients, `ended` an agent that said goodbye (attempts go on: it may come back)
 */

const FIRST_WAIT = 500;
const LONGEST_WAIT = 10000;
const ANSWER_WAIT = 30000;
const PROBE_WAIT = 4000;
/** How long an attempt may take. A gateway opens a session for up to 30 seconds first. */
const CONNECT_WAIT = 40000;
/** After so long without a word the page asks whether anybody is there. */
const SILENCE = 25000;
/** Commands that may take as long as they like. */
const SLOW = new Set(['prompt', 'bash', 'compact', 'abort', 'navigate_tree', 'export_html', 'fork', 'clone', 'switch_session',
  'new_session', 'open_session', 'close_session', 'abort_and_prompt', 'replay']);
/** Methods of `extension_ui_request` that open a dialog or close one. */
const DIALOGS = new Set(['select', 'confirm', 'input', 'editor', 'cancel']);

export class CommandError extends Error {}

export class Connection {
  /**
   * @param {{
   *   address: () => string,
   *   refusal?: () => Promise<'denied'|'busy'|null>,
   *   onphase?: (phase: Phase, retryAt: number|null) => void,
   *   onevent?: (event: any) => void,
   *   onopen?: (again: boolean) => void,
   *   Socket?: any, now?: () => number, timers?: { set: typeof setTimeout, clear: typeof clearTimeout }, random?: () => number,
   * }} options
   */
  constructor(options) {
    this.options = {
      Socket: globalThis.WebSocket,
      now: () => Date.now(),
      timers: { set: (f, ms) => setTimeout(f, ms), clear: (timer) => clearTimeout(timer) },
      random: Math.random,
      ...options,
    };
    /** @type {Phase} */
    this.phase = 'connecting';
    this.lastSeq = 0;
    /** Id of the `replay` that has no answer yet. The missed events follow its answer. */
    this.replaying = null;
    this.wasOpen = false;
    this.failures = 0;
    this.waiting = new Map();
    this.made = 0;
    this.heard = 0;
    // Several pages talk to one agent, and some events name the command they belong to.
    this.prefix = `p${Math.floor(this.options.random() * 2 ** 40).toString(36)}`;
  }

  /** Opens a connection now, whatever was planned. */
  connect() {
    const { timers, Socket, now } = this.options;
    timers.clear(this.retryTimer);
    this.drop();
    this.setPhase('connecting', null);
    let socket;
    try {
      socket = new Socket(this.options.address());
    } catch {
      this.closed(0);
      return;
    }
    this.socket = socket;
    this.isOpen = false;
    socket.onopen = () => {
      if (this.socket !== socket) return;
      this.isOpen = true;
      timers.clear(this.retryTimer);
      this.failures = 0;
      this.heard = now();
      const again = this.wasOpen;
      this.wasOpen = true;
      this.setPhase('open', null);
      this.watch();
      this.options.onopen?.(again);
    };
    socket.onmessage = (message) => { if (this.socket === socket) this.take(message.data); };
    socket.onclose = (event) => { if (this.socket === socket) this.closed(event.code); };
    socket.onerror = () => {};
    // Browsers wait minutes for a network that swallows everything.
    this.retryTimer = timers.set(() => { if (this.socket === socket && !this.isOpen) this.closed(0); }, CONNECT_WAIT);
  }

  /** Connects at once if it is not connected: the network came back, somebody looks at the page. */
  wake() {
    if (this.isOpen) this.probe();
    else if (this.phase !== 'connecting') this.connect();
  }

  /** Is anybody there? A socket over a network that has gone says nothing by itself for minutes. */
  probe() {
    if (!this.isOpen || this.probing) return;
    this.probing = true;
    // The agent answers it within two seconds, also while its sessions wait for something and answer no ordered command.
    this.request({ type: 'list_open_sessions' }, PROBE_WAIT).catch((error) => {
      if (!(error instanceof CommandError) && this.isOpen) this.connect();
    }).finally(() => { this.probing = false; });
  }

  /**
   * Sends a command and gives the `data` of its answer.
   * @param {{ type: string, [member: string]: any }} command
   * @param {number} [wait] milliseconds; commands that may take long wait as long as the connection lives
   */
  request(command, wait) {
    const { timers } = this.options;
    if (!this.isOpen) return Promise.reject(new Error('There is no connection to the agent.'));
    this.made += 1;
    const id = command.id ?? `${this.prefix}_${this.made}`;
    const limit = wait ?? (SLOW.has(command.type) ? 0 : ANSWER_WAIT);
    return new Promise((resolve, reject) => {
      const timer = limit && timers.set(() => {
        this.waiting.delete(id);
        reject(new Error(`The agent did not answer (${command.type}).`));
      }, limit);
      this.waiting.set(id, { resolve, reject, timer });
      if (command.type === 'replay' && command.after !== undefined) this.replaying = id;
      this.socket.send(JSON.stringify({ ...command, id }));
    });
  }

  /** Sends a frame that is not answered. */
  send(frame) {
    if (this.isOpen) this.socket.send(JSON.stringify(frame));
    return Boolean(this.isOpen);
  }

  close() {
    this.options.timers.clear(this.retryTimer);
    this.drop();
  }

  take(text) {
    this.heard = this.options.now();
    let frame;
    try {
      frame = JSON.parse(text);
    } catch {
      return;
    }
    if (!frame || typeof frame !== 'object') return;
    if (frame.type === 'response') {
      if (frame.id === this.replaying) this.replaying = null;
      const asked = this.waiting.get(frame.id);
      if (!asked) return;
      this.waiting.delete(frame.id);
      this.options.timers.clear(asked.timer);
      if (frame.success) asked.resolve(frame.data ?? {});
      else asked.reject(new CommandError(String(frame.error || 'The agent refused.')));
      return;
    }
    if (typeof frame.seq === 'number' && this.replaying !== null) {
      // It comes again after the answer, behind the missed events. Taken now, it would make them look like repeats.
      if (!DIALOGS.has(frame.method)) return;
      // The session answers only after the user if it waits for this dialog. Without its number it hides no event.
      delete frame.seq;
    }
    // Which of them are repeats is known where sessions are: each has its own mark.
    if (typeof frame.seq === 'number' && frame.seq > this.lastSeq) this.lastSeq = frame.seq;
    this.options.onevent?.(frame);
  }

  drop() {
    const socket = this.socket;
    this.socket = null;
    this.isOpen = false;
    this.replaying = null;
    this.options.timers.clear(this.watchTimer);
    if (socket) {
      socket.onopen = null;
      socket.onmessage = null;
      socket.onclose = null;
      try { socket.close(); } catch { /* it is closed */ }
    }
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    for (const asked of waiting) {
      this.options.timers.clear(asked.timer);
      asked.reject(new Error('The connection was lost.'));
    }
  }

  closed(code) {
    const wasOpen = this.isOpen;
    this.drop();
    if (code === 1013) { this.connect(); return; }
    if (wasOpen || !this.options.refusal) { this.later(code === 1001 ? 'ended' : 'lost'); return; }
    this.setPhase('connecting', null);
    const asked = this.options.refusal();
    asked.catch(() => null).then((refusal) => {
      if (this.socket) return;
      if (refusal === 'denied') this.setPhase('denied', null);
      else this.later(refusal || 'lost');
    });
  }

  /** Plans the next attempt: half a second, twice that, ... ten seconds; a little by chance, for there may be many pages. */
  later(phase) {
    const { timers, now, random } = this.options;
    const wait = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** this.failures) * (0.8 + random() * 0.4);
    this.failures += 1;
    this.setPhase(phase, now() + wait);
    timers.clear(this.retryTimer);
    this.retryTimer = timers.set(() => this.connect(), wait);
  }

  watch() {
    const { timers, now } = this.options;
    timers.clear(this.watchTimer);
    this.watchTimer = timers.set(() => {
      if (now() - this.heard >= SILENCE) this.probe();
      this.watch();
    }, SILENCE);
  }

  setPhase(phase, retryAt) {
    this.phase = phase;
    this.retryAt = retryAt;
    this.options.onphase?.(phase, retryAt);
  }
}
