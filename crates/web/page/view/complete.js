// What the composer offers while one types: commands after `/`, files after `@`. Arrow keys choose, Tab or Enter takes, Esc
// closes.

import { baseName, oneLine } from '../lib/format.js';
import { el, fill, icon } from '../lib/dom.js';

const MOST = 50;
const WAIT = 70;
/** A file is named at the beginning of a word. */
const NAMES_FILE = /(^|[\s([{"'`])@(?:"([^"\n]*)|([^\s@"]*))$/;

export class Completion {
  /**
   * @param {HTMLTextAreaElement} field
   * @param {{ commands: () => any[], files: (query: string) => Promise<{ path: string, isDirectory: boolean }[]|null>, pick: (command: any) => void,
   *   changed: () => void }} options `files` gives null when they cannot be found here
   */
  constructor(field, options) {
    this.field = field;
    this.options = options;
    this.found = [];
    this.at = 0;
    this.asked = 0;
    this.node = el('div.completion', { id: 'completion', role: 'listbox', hidden: true, aria: { label: 'Commands' } });
    field.addEventListener('blur', () => setTimeout(() => this.close(), 150));
  }

  get isOpen() {
    return !this.node.hidden;
  }

  /** Looks at what is typed. */
  look() {
    this.asked += 1;
    clearTimeout(this.timer);
    const { value } = this.field;
    if (this.dismissed === value) { this.close(); return; }
    const typed = /^\/([^\s]*)$/.exec(value)?.[1]?.toLowerCase();
    if (typed !== undefined) this.lookForCommands(typed);
    else if (this.fileTyped()) this.lookForFiles();
    else this.close();
  }

  lookForCommands(typed) {
    const score = (name) => (name.startsWith(typed) ? 0 : name.includes(typed) ? 1 : 2);
    this.found = this.options.commands().map((command) => ({ ...command, rank: score(String(command.name).toLowerCase()) }))
      .filter((command) => command.rank < 2).sort((a, b) => a.rank - b.rank).slice(0, MOST)
      .map((command) => ({ name: `/${command.name}`, note: oneLine(command.description, 120), take: () => this.options.pick(command) }));
    this.at = 0;
    this.show('Commands');
  }

  /** The beginning of a file's name before the caret: where it begins, and what of it is there. */
  fileTyped() {
    const { field } = this;
    if (field.value.startsWith('!') || field.selectionStart !== field.selectionEnd) return null;
    const before = field.value.slice(0, field.selectionStart);
    const match = NAMES_FILE.exec(before);
    return match && { from: match.index + match[1].length, query: match[2] ?? match[3] };
  }

  lookForFiles() {
    const { asked } = this;
    this.timer = setTimeout(async () => {
      const typed = this.fileTyped();
      const files = typed && await this.options.files(typed.query);
      // Somebody typed on, or went away, while they were looked for.
      if (asked !== this.asked) return;
      if (!files || !files.length) { this.close(); return; }
      this.found = files.slice(0, MOST).map((file) => ({ file, take: () => this.takeFile(file) }));
      this.at = 0;
      this.show('Files');
    }, WAIT);
  }

  /** Puts a file's name into the text; in a directory one can go on. */
  takeFile({ path, isDirectory }) {
    const { field } = this;
    const typed = this.fileTyped();
    if (!typed) return;
    const name = String(path).replace(/\/+$/, '') + (isDirectory ? '/' : '');
    const text = /[\s"]/.test(name) ? `@"${name}${isDirectory ? '' : '" '}` : `@${name}${isDirectory ? '' : ' '}`;
    const after = field.value.slice(field.selectionStart).replace(/^"? ?/, (end) => (isDirectory ? end : ''));
    field.value = field.value.slice(0, typed.from) + text + after;
    field.setSelectionRange(typed.from + text.length, typed.from + text.length);
    this.options.changed();
    if (isDirectory) this.look();
  }

  show(label) {
    this.node.hidden = !this.found.length;
    if (label) this.node.setAttribute('aria-label', label);
    this.field.setAttribute('aria-expanded', String(this.isOpen));
    fill(this.node, this.found.map((entry, index) => el('button.completion-entry', {
      type: 'button', role: 'option', id: `completion-${index}`, tabIndex: -1, class: entry.file ? 'is-file' : '', aria: { selected: index === this.at },
      onmousedown: (event) => event.preventDefault(), onclick: () => this.pick(index),
    }, ...(entry.file ? fileParts(entry.file) : [el('span.completion-name', { text: entry.name }), el('span.completion-note', { text: entry.note })]))));
    this.node.children[this.at]?.scrollIntoView({ block: 'nearest' });
    if (this.isOpen) this.field.setAttribute('aria-activedescendant', `completion-${this.at}`);
    else this.field.removeAttribute('aria-activedescendant');
  }

  /** True when the key was for the list. */
  key(event) {
    if (!this.isOpen) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) this.at = (this.at + step + this.found.length) % this.found.length;
    else if (event.key === 'Tab' || (event.key === 'Enter' && !event.shiftKey)) { this.pick(this.at); event.preventDefault(); return true; }
    else if (event.key === 'Escape') { this.dismissed = this.field.value; this.close(); event.preventDefault(); return true; }
    else return false;
    event.preventDefault();
    this.show();
    return true;
  }

  pick(index) {
    const entry = this.found[index];
    this.close();
    entry?.take();
  }

  close() {
    this.found = [];
    if (this.isOpen) this.show();
  }
}

function fileParts({ path, isDirectory }) {
  const whole = String(path).replace(/\/+$/, '');
  const name = baseName(whole);
  return [icon(isDirectory ? 'folder' : 'file'), el('span.completion-name', { text: isDirectory ? `${name}/` : name }),
    el('span.completion-note', { text: whole.slice(0, whole.length - name.length).replace(/\/$/, '') })];
}
