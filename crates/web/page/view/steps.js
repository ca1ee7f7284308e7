// What stands for a long run of tool calls while it is folded: one line that says what they did. Which runs the user opened or
// folded is remembered.

import { count } from '../lib/format.js';
import { el, icon, setText } from '../lib/dom.js';
import { keep, recall } from '../lib/store.js';
import { summary } from '../state/turns.js';

const MOST_KEPT = 300;

/** What the user chose, over all sessions. */
export class Choices {
  constructor() {
    const kept = recall('steps', []);
    this.map = new Map(/** @type {[string, boolean][]} */ (Array.isArray(kept) ? kept.filter(Array.isArray) : []));
  }

  get(name) { return this.map.get(name); }

  set(name, isOpen) {
    this.map.delete(name);
    this.map.set(name, isOpen);
    keep('steps', [...this.map].slice(-MOST_KEPT));
  }
}

export class StepsLine {
  /** @param {() => void} ontoggle */
  constructor(ontoggle) {
    this.count = el('span.steps-count');
    this.words = el('span.steps-words');
    this.failed = el('span.steps-failed');
    this.node = el('button.steps', { type: 'button', aria: { expanded: false }, onclick: ontoggle },
      icon('layers'), this.count, this.words, this.failed, el('span.tool-turn', {}, icon('chevron')));
  }

  /** @param {import('../state/turns.js').Run} run */
  update(session, run, isOpen) {
    const { words, failed } = summary(session, run);
    setText(this.count, count(run.tools.length, 'step'));
    setText(this.words, words);
    setText(this.failed, failed ? `${failed} failed` : '');
    this.node.title = words;
    this.node.setAttribute('aria-expanded', String(isOpen));
    this.node.classList.toggle('working', !run.isOver);
  }
}
