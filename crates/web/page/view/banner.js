// What the page says while there is no connection, and the question for a token.

import { remember, token } from '../net/token.js';
import { el, fill } from '../lib/dom.js';
import { askText } from './dialogs.js';
import { announce } from './toasts.js';

const WORDS = {
  connecting: 'Connecting…',
  lost: 'The connection to the agent was lost.',
  ended: 'The agent has ended.',
  busy: 'The agent has too many clients.',
  denied: 'The agent wants a token.',
};

export class Banner {
  /** @param {HTMLElement} node @param {{ connect: () => void }} actions */
  constructor(node, actions) {
    this.node = node;
    this.actions = actions;
    setInterval(() => { if (this.retryAt) this.tick(); }, 500);
  }

  update(phase, retryAt) {
    const wasLost = this.phase && this.phase !== 'open' && this.phase !== 'connecting';
    clearTimeout(this.timer);
    const before = this.phase;
    this.phase = phase;
    this.retryAt = retryAt;
    document.body.dataset.phase = phase;
    if (phase === 'open') {
      if (wasLost || this.node.classList.contains('shown')) this.back();
      else this.hide();
      return;
    }
    if (phase === 'connecting') {
      // Most of the time it is there before one could read it; after a loss the words stay as they are.
      if (!this.node.classList.contains('shown')) this.timer = setTimeout(() => this.show(), 800);
      return;
    }
    if (before !== phase) announce(WORDS[phase]);
    this.show();
  }

  show() {
    this.clock = el('span.banner-clock');
    const action = this.phase === 'denied'
      ? el('button.link', { type: 'button', text: 'Enter token', onclick: () => this.askToken() })
      : this.phase === 'connecting' ? null : el('button.link', { type: 'button', text: 'Try now', onclick: () => this.actions.connect() });
    fill(this.node, el('span.banner-dot', { aria: { hidden: true } }), el('span', { text: WORDS[this.phase] }), this.clock, action);
    this.node.className = `banner shown ${this.phase}`;
    this.tick();
    if (this.phase === 'denied' && !this.asked) { this.asked = true; this.askToken(); }
  }

  tick() {
    if (!this.clock || !this.retryAt || this.phase === 'open') return;
    const left = Math.max(0, Math.ceil((this.retryAt - Date.now()) / 1000));
    this.clock.textContent = left ? `Next attempt in ${left} s. What you write is kept.` : 'Trying…';
  }

  back() {
    fill(this.node, el('span.banner-dot', { aria: { hidden: true } }), el('span', { text: 'Connected again' }));
    this.node.className = 'banner shown back';
    announce('Connected again');
    this.timer = setTimeout(() => this.hide(), 1600);
  }

  hide() {
    this.node.className = 'banner';
    this.node.replaceChildren();
    this.clock = null;
  }

  async askToken() {
    const text = await askText('Token of the agent', '', 'Connect', { placeholder: 'It is printed where the agent was started', secret: true });
    if (text === null || !text.trim()) return;
    remember(text.trim());
    if (token()) this.actions.connect();
  }
}
