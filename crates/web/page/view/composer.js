// The field at the bottom: what is typed, attached and sent; drafts; keys; and what stands around it while the agent works.

import { keep, recall } from '../lib/store.js';
import { textOf } from '../lib/format.js';
import { el, icon, iconButton, setText } from '../lib/dom.js';
import { Attachments } from './attach.js';
import { Completion } from './complete.js';

const isTouch = () => matchMedia('(pointer: coarse)').matches;

export class Composer {
  /**
   * @param {{ send: (text: string, images: any[], mode: 'steer'|'followUp') => Promise<boolean>, shell: (command: string, hidden: boolean) => Promise<boolean>,
   *   stop: () => void, commands: () => any[], files: (query: string) => Promise<any[]|null>, own: Map<string, (rest: string) => void> }} actions
   */
  constructor(root, actions) {
    this.actions = actions;
    this.field = root.querySelector('textarea');
    this.session = null;
    this.history = null;
    /** @type {'steer'|'followUp'} */
    this.mode = recall('while-running', 'steer') === 'followUp' ? 'followUp' : 'steer';
    this.attachments = new Attachments(() => this.look());
    this.completion = new Completion(this.field, { commands: () => this.actions.commands(), files: (query) => this.actions.files(query),
      pick: (command) => this.picked(command), changed: () => { this.look(); this.saveSoon(); } });
    this.sendButton = el('button.send', { type: 'button', aria: { label: 'Send' }, title: 'Send', onclick: () => this.submit() }, icon('send'));
    this.stopButton = el('button.stop', { type: 'button', aria: { label: 'Stop' }, title: 'Stop (Esc)', hidden: true, onclick: () => this.actions.stop() }, icon('stop'));
    this.modeButton = el('button.mode', { type: 'button', hidden: true, onclick: () => this.setMode(this.mode === 'steer' ? 'followUp' : 'steer') });
    this.shellMark = el('span.shell-mark', { hidden: true });
    this.blindNote = el('p.blind-note', { hidden: true, role: 'status', text: 'This model cannot see images. It is told that one was left out.' });
    this.tools = el('div.composer-tools');
    const right = el('div.composer-right', {}, this.modeButton, this.stopButton, this.sendButton);
    root.append(this.attachments.field);
    root.prepend(this.completion.node, this.attachments.node, this.blindNote);
    root.querySelector('.composer-row').replaceChildren(this.attachments.button,
      iconButton('terminal', 'Run a shell command (!)', () => this.toggleShell()), this.tools, right);
    root.querySelector('.composer-field').prepend(this.shellMark);
    this.root = root;
    this.listen();
    this.setMode(this.mode);
    this.look();
  }

  listen() {
    const { field } = this;
    this.attachments.listen(field, document.documentElement);
    field.addEventListener('input', () => { this.history = null; this.look(); this.completion.look(); this.saveSoon(); });
    field.addEventListener('keydown', (event) => this.key(event));
    field.addEventListener('click', () => this.completion.look());
    addEventListener('pagehide', () => this.save());
  }

  key(event) {
    // While an input method is composing, its keys are its own; Safari reports the last one as 229.
    if (event.isComposing || event.keyCode === 229) return;
    if (this.completion.key(event)) return;
    if (event.key === 'Enter' && !event.shiftKey) {
      const isSend = event.ctrlKey || event.metaKey || event.altKey || !isTouch();
      if (!isSend) return;
      event.preventDefault();
      this.submit(event.altKey);
    } else if (event.key === 'Escape') {
      if (this.isShell && this.field.value.replace(/!+/, '').trim() === '') this.set('');
      else if (this.running || this.hasShell) { event.preventDefault(); this.actions.stop(); }
    } else if (event.key === 'ArrowUp' || event.key === 'ArrowDown') this.recallSaid(event);
  }

  get isShell() {
    return this.field.value.startsWith('!');
  }

  /** Up: what was said before. Down: back to what was being typed. */
  recallSaid(event) {
    const { field } = this;
    const isUp = event.key === 'ArrowUp';
    if (event.shiftKey || event.altKey || event.ctrlKey || event.metaKey) return;
    if (this.history === null && (!isUp || field.value !== '')) return;
    const said = (this.session?.items || []).filter((item) => item.role === 'user' || (item.role === 'bashExecution' && item.message.command))
      .map((item) => (item.role === 'user' ? textOf(item.message.content) : `!${item.message.command}`)).filter(Boolean).reverse();
    if (!said.length) return;
    const at = this.history === null ? 0 : this.history + (isUp ? 1 : -1);
    if (at >= said.length) return;
    event.preventDefault();
    this.set(at < 0 ? '' : said[at]);
    this.history = at < 0 ? null : at;
    field.setSelectionRange(field.value.length, field.value.length);
  }

  /** Another text in the field. */
  set(text) {
    this.field.value = text;
    this.history = null;
    this.look();
    this.completion.look();
    this.saveSoon();
  }

  /** A text that goes before what is being typed. */
  add(text) {
    const typed = this.field.value;
    this.set(typed.trim() ? `${text}\n\n${typed}` : text);
    this.field.focus();
  }

  /** A text that goes before the draft of a session that is not shown. */
  addDraft(sessionId, text) {
    const draft = recall(`draft-${sessionId}`, '');
    keep(`draft-${sessionId}`, typeof draft === 'string' && draft.trim() ? `${text}\n\n${draft}` : text);
  }

  toggleShell() {
    const { value } = this.field;
    this.set(value.startsWith('!') ? value.replace(/^!+\s?/, '') : `!${value}`);
    this.field.focus();
  }

  setMode(mode) {
    this.mode = mode;
    keep('while-running', mode);
    setText(this.modeButton, mode === 'steer' ? 'Steer' : 'Follow-up');
    this.modeButton.title = mode === 'steer'
      ? 'Sent after the current step. Alt+Enter: as a follow-up' : 'Sent when the run is over. Alt+Enter: to steer';
    this.look();
  }

  /** What the field's text and the session's state mean for everything around it. */
  look() {
    const { value } = this.field;
    const isShell = this.isShell;
    const hasText = isShell ? value.replace(/^!+/, '').trim() !== '' : value.trim() !== '';
    this.root.classList.toggle('is-shell', isShell);
    this.blindNote.hidden = !this.attachments.images.length || this.seesImages !== false;
    this.shellMark.hidden = !isShell;
    setText(this.shellMark, value.startsWith('!!') ? 'Shell, not seen by the model' : 'Shell');
    this.sendButton.disabled = !(hasText || (this.attachments.images.length && !isShell)) || !this.online;
    this.stopButton.hidden = !(this.running || this.hasShell);
    this.sendButton.hidden = Boolean(this.running) && this.sendButton.disabled;
    this.modeButton.hidden = !this.running || isShell || this.sendButton.hidden;
    this.field.placeholder = this.running ? 'Say something while it works…' : 'Ask. @ names files, / commands, ! the shell';
    if (!CSS.supports('field-sizing', 'content')) {
      this.field.style.setProperty('height', 'auto');
      this.field.style.setProperty('height', `${Math.min(this.field.scrollHeight, innerHeight * 0.4)}px`);
    }
  }

  /** The session's state. */
  update({ running, online, hasShell = false, seesImages }) {
    if (this.running === running && this.online === online && this.hasShell === hasShell && this.seesImages === seesImages) return;
    this.running = running;
    this.seesImages = seesImages;
    this.hasShell = hasShell;
    this.online = online;
    this.look();
  }

  picked(command) {
    if (command.own && !command.takesText) { this.set(''); this.actions.own.get(command.name)(''); return; }
    this.set(`/${command.name} `);
    this.field.focus();
  }

  async submit(otherMode = false) {
    if (this.sendButton.disabled) return;
    const text = this.field.value.trim();
    this.completion.close();
    const own = /^\/(\S+)\s*([\s\S]*)$/.exec(text);
    // As in the list: a command of the agent has the name, if both have it.
    if (own && this.actions.commands().some((command) => command.own && command.name === own[1])) {
      this.set('');
      this.actions.own.get(own[1])(own[2].trim());
      return;
    }
    const { session } = this;
    // The button that was clicked may hide now; what is typed next belongs in the field.
    if (!isTouch()) this.field.focus();
    if (this.isShell) {
      const hidden = text.startsWith('!!');
      this.set('');
      this.save();
      if (!await this.actions.shell(text.replace(/^!!?\s*/, ''), hidden)) this.restore(session, text, []);
      return;
    }
    const mode = otherMode ? (this.mode === 'steer' ? 'followUp' : 'steer') : this.mode;
    const images = this.attachments.hand();
    this.set('');
    this.save();
    if (!await this.actions.send(text, images, mode)) this.restore(session, text, images);
  }

  /** What could not be sent is a draft again, before what was typed since. */
  restore(session, text, images) {
    const isHere = session === this.session;
    // A shell command stands in the conversation; joined with another text it would be another command.
    const isLeft = text.startsWith('!') && !(isHere && !this.field.value);
    if (text && !isLeft) {
      if (isHere) this.add(text);
      else if (session?.state.sessionId) this.addDraft(session.state.sessionId, text);
    }
    if (isHere && images.length) this.attachments.back(images);
    this.save();
  }

  saveSoon() {
    clearTimeout(this.saveTimer);
    this.saveTimer = setTimeout(() => this.save(), 400);
  }

  save() {
    clearTimeout(this.saveTimer);
    if (this.draftOf) keep(`draft-${this.draftOf}`, this.field.value);
  }

  /** Another session is shown: its draft comes back. */
  show(session) {
    const id = session.state.sessionId;
    if (this.session === session && this.draftOf === id) return;
    const typed = this.draftOf ? '' : this.field.value;
    if (this.draftOf) this.save();
    this.session = session;
    this.draftOf = id;
    const draft = recall(`draft-${id}`, '');
    this.field.value = typed || (typeof draft === 'string' ? draft : '');
    this.history = null;
    this.look();
  }
}
