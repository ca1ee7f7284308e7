// The list above the composer while a slash command is typed.

import { oneLine } from '../lib/format.js';
import { el, fill } from '../lib/dom.js';

const MOST = 50;

export class Completion {
  /** @param {HTMLTextAreaElement} field @param {() => { name: string, description?: string }[]} commands */
  constructor(field, commands, onpick) {
    this.field = field;
    this.commands = commands;
    this.onpick = onpick;
    this.found = [];
    this.at = 0;
    this.node = el('div.completion', { id: 'completion', role: 'listbox', hidden: true, aria: { label: 'Commands' } });
    field.addEventListener('blur', () => setTimeout(() => this.close(), 150));
  }

  get isOpen() {
    return !this.node.hidden;
  }

  /** Looks at what is typed. */
  look() {
    const typed = /^\/([^\s]*)$/.exec(this.field.value)?.[1]?.toLowerCase();
    if (typed === undefined || this.dismissed === this.field.value) { this.close(); return; }
    const score = (name) => (name.startsWith(typed) ? 0 : name.includes(typed) ? 1 : 2);
    this.found = this.commands().map((command) => ({ ...command, rank: score(String(command.name).toLowerCase()) }))
      .filter((command) => command.rank < 2).sort((a, b) => a.rank - b.rank).slice(0, MOST);
    this.at = 0;
    this.show();
  }

  show() {
    this.node.hidden = !this.found.length;
    this.field.setAttribute('aria-expanded', String(this.isOpen));
    fill(this.node, this.found.map((command, index) => el('button.completion-entry', {
      type: 'button', role: 'option', id: `completion-${index}`, tabIndex: -1, aria: { selected: index === this.at },
      onmousedown: (event) => event.preventDefault(), onclick: () => this.pick(index),
    }, el('span.completion-name', { text: `/${command.name}` }), el('span.completion-note', { text: oneLine(command.description, 120) }))));
    this.node.children[this.at]?.scrollIntoView({ block: 'nearest' });
    if (this.isOpen) this.field.setAttribute('aria-activedescendant', `completion-${this.at}`);
    else this.field.removeAttribute('aria-activedescendant');
  }

  /** True when the key was for the list. */
  key(event) {
    if (!this.isOpen) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) this.at = (this.at + step + this.found.length) % this.found.length;
    else if (event.key === 'Tab' || event.key === 'Enter') { this.pick(this.at); event.preventDefault(); return true; }
    else if (event.key === 'Escape') { this.dismissed = this.field.value; this.close(); event.preventDefault(); return true; }
    else return false;
    event.preventDefault();
    this.show();
    return true;
  }

  pick(index) {
    const command = this.found[index];
    this.close();
    if (command) this.onpick(command);
  }

  close() {
    this.found = [];
    if (this.isOpen) this.show();
  }
}
