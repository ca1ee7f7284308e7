// Searching the conversation that is shown. The browser's own search only sees the part of a long conversation that is in the
// document; this one sees all of it. The same keys pressed once more leave it to the browser.

import { find } from '../state/search.js';
import { el, iconButton, setText } from '../lib/dom.js';
import { announce } from './toasts.js';

const WAIT = 120;

export class Find {
  /** @param {HTMLElement} place before which it stands @param {import('./transcript.js').Transcript} transcript */
  constructor(place, transcript) {
    this.transcript = transcript;
    this.found = [];
    this.at = -1;
    this.field = el('input', { type: 'search', placeholder: 'Find in this conversation', autocomplete: 'off', spellcheck: false, aria: { label: 'Find in this conversation' },
      oninput: () => { clearTimeout(this.timer); this.timer = setTimeout(() => this.search(), WAIT); }, onkeydown: (event) => this.key(event) });
    this.told = el('span.find-told', { role: 'status' });
    this.node = el('div.find', { role: 'search', hidden: true }, this.field, this.told,
      iconButton('up', 'Previous', () => this.go(-1), { class: 'small' }), iconButton('down', 'Next', () => this.go(1), { class: 'small' }),
      iconButton('close', 'Close', () => this.close(), { class: 'small' }));
    place.before(this.node);
  }

  get isOpen() { return !this.node.hidden; }

  open() {
    this.node.hidden = false;
    this.field.focus();
    this.field.select();
    if (this.field.value) this.search();
  }

  close() {
    this.node.hidden = true;
    this.found = [];
    this.paint();
    /** @type {HTMLElement} */ (document.querySelector('#field')).focus({ preventScroll: true });
  }

  key(event) {
    if (event.isComposing) return;
    if (event.key === 'Enter') { event.preventDefault(); clearTimeout(this.timer); if (this.searched !== this.field.value) this.search(); else this.go(event.shiftKey ? -1 : 1); }
    else if (event.key === 'Escape') { event.preventDefault(); event.stopPropagation(); this.close(); }
  }

  /** The newest place first: one searches for what was said a while ago, not at the beginning. */
  search() {
    this.searched = this.field.value;
    this.found = find(this.transcript.session, this.field.value);
    this.at = this.found.length;
    if (this.found.length) this.go(-1);
    else { this.tell(); this.paint(); }
  }

  go(step) {
    if (!this.found.length) return;
    this.at = (this.at + step + this.found.length) % this.found.length;
    const { key, places } = this.found[this.at];
    this.tell();
    const { at } = this;
    this.transcript.reveal(key, places)?.then(() => { if (at === this.at) this.paint(key); });
  }

  tell() {
    const words = this.found.length ? `${this.at + 1} of ${this.found.length}` : this.field.value.trim() ? 'Nothing found' : '';
    setText(this.told, words);
    announce(words);
  }

  /** Marks what was found in the document, and moves to the first place in the message that one went to. */
  paint(key = null) {
    if (!globalThis.CSS?.highlights) return;
    CSS.highlights.delete('found');
    CSS.highlights.delete('found-here');
    const wanted = this.field.value.trim().toLowerCase();
    if (!this.isOpen || !wanted || !this.found.length) return;
    const ranges = rangesIn(this.transcript.list, wanted);
    const here = ranges.filter((range) => range.startContainer.parentElement.closest('.item')?.dataset.key === String(key));
    CSS.highlights.set('found', new Highlight(...ranges));
    if (!here.length) return;
    CSS.highlights.set('found-here', new Highlight(...here));
    const spot = here[0].startContainer.parentElement;
    if (spot.checkVisibility?.()) spot.scrollIntoView({ block: 'center' });
  }
}

function rangesIn(root, wanted) {
  const ranges = [];
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  while (walker.nextNode() && ranges.length < 2000) {
    const node = /** @type {Text} */ (walker.currentNode);
    const text = node.data.toLowerCase();
    for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
      const range = document.createRange();
      range.setStart(node, at);
      range.setEnd(node, Math.min(node.data.length, at + wanted.length));
      ranges.push(range);
    }
  }
  return ranges;
}
