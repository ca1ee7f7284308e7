// The conversation on the page. Of a long one only a window of items is in the document; it moves as one scrolls. New output
// moves the page only while one is at its end.

import { el, icon, setText } from '../lib/dom.js';
import { Turns, changedFiles, isFolded } from '../state/turns.js';
import { viewOf } from './items.js';
import { Choices } from './steps.js';

/** Items in the document at most, and how many come and go at once. */
const WINDOW = 160;
const STEP = 60;
/** This near to the end counts as at the end, in pixels. */
const NEAR = 60;
/** This near to an edge of the window more is shown. */
const AHEAD = 1200;

export class Transcript {
  /** @param {HTMLElement} scroller @param {{ onedit: (item: any) => void, empty: () => Node }} actions */
  constructor(scroller, actions) {
    this.scroller = scroller;
    this.actions = actions;
    this.views = new Map();
    this.from = 0;
    this.to = 0;
    this.atEnd = true;
    this.lastTop = 0;
    this.list = el('div.transcript', { role: 'log', aria: { live: 'off', label: 'Conversation' } });
    this.blank = el('div.blank');
    this.jumpText = el('span');
    this.jump = el('button.jump', { type: 'button', hidden: true, onclick: () => this.toEnd(true) }, icon('down'), this.jumpText);
    scroller.append(this.blank, this.list);
    scroller.nextElementSibling.prepend(this.jump);
    scroller.addEventListener('scroll', () => this.scrolled(), { passive: true });
    // What one opens grows downwards, from where one clicked; it does not push that away.
    this.list.addEventListener('click', (event) => {
      if (!event.target.closest('summary, .tool-head, .steps, .more')) return;
      this.atEnd = false;
      requestAnimationFrame(() => setTimeout(() => this.scrolled(), 60));
    }, { capture: true });
    this.choices = new Choices();
    this.dirtyItems = new Set();
    this.dirtyBlocks = new Map();
    this.dirtyTools = new Set();
    new ResizeObserver(() => { if (this.atEnd) this.stick(); }).observe(this.list);
    new ResizeObserver(() => { if (this.atEnd) this.stick(); }).observe(scroller);
  }

  /** Shows another session, or the same one loaded anew. */
  show(session) {
    const isSame = this.session === session;
    const wasAtEnd = this.atEnd || !isSame;
    const top = this.scroller.scrollTop;
    this.session = session;
    this.views.clear();
    this.list.replaceChildren();
    this.dirtyItems.clear();
    this.dirtyBlocks.clear();
    this.dirtyTools.clear();
    this.turns = new Turns(session);
    this.kept = new Set();
    this.statuses = new Map();
    const end = session.items.length;
    this.render(this.back(end, WINDOW / 2), end);
    this.showBlank();
    if (wasAtEnd) this.toEnd(false);
    else this.scroller.scrollTop = top;
    this.showJump();
  }

  view(item) {
    let view = this.views.get(item.key);
    if (!view) {
      view = viewOf(item, this.session, this.actions);
      this.views.set(item.key, view);
      this.arrange(item.key);
    }
    return view;
  }

  showBlank() {
    const isBlank = this.session.loaded && !this.session.items.length;
    this.blank.hidden = !isBlank;
    if (isBlank && !this.blank.firstChild) this.blank.append(this.actions.empty());
  }

  /** Takes note of changes; they are shown with the next picture. @param {import('../state/session.js').Changes} changes */
  change(changes) {
    if (changes.parts.has('all') && this.session) { this.show(this.session); return; }
    if (!this.session) return;
    for (const key of changes.items) this.dirtyItems.add(key);
    for (const id of changes.tools) this.dirtyTools.add(id);
    for (const [key, blocks] of changes.blocks) {
      const all = this.dirtyBlocks.get(key) || new Set();
      for (const index of blocks) all.add(index);
      this.dirtyBlocks.set(key, all);
    }
    if (changes.list) this.hasNew = true;
    if (!this.planned) {
      this.planned = true;
      // A page in the background gets no pictures, but its title and its end should be right when it comes back.
      if (document.hidden) setTimeout(() => this.paint(), 200);
      else requestAnimationFrame(() => this.paint());
    }
  }

  paint() {
    this.planned = false;
    const isOther = this.hasOtherShape();
    if (this.hasNew) this.append();
    for (const key of this.dirtyItems) this.views.get(key)?.update(this.session.byKey.get(key));
    for (const [key, blocks] of this.dirtyBlocks) {
      if (!this.dirtyItems.has(key)) this.views.get(key)?.update(this.session.byKey.get(key), blocks);
    }
    for (const id of this.dirtyTools) {
      const tool = this.session.tools.get(id);
      if (tool?.item) this.views.get(tool.item)?.updateTool?.(id);
    }
    this.dirtyItems.clear();
    this.dirtyBlocks.clear();
    this.dirtyTools.clear();
    if (isOther) this.arrangeLast();
    if (this.atEnd) this.stick();
    this.showJump();
  }

  /** Did anything change but the length of texts? */
  hasOtherShape() {
    const { session } = this;
    let isOther = this.hasNew || this.dirtyItems.size > 0;
    for (const id of this.dirtyTools) {
      const status = session.tools.get(id)?.status;
      if (this.statuses.get(id) !== status) { this.statuses.set(id, status); isOther = true; }
    }
    for (const key of this.dirtyBlocks.keys()) {
      const content = session.byKey.get(key)?.message.content || [];
      const shape = `${key} ${content.length} ${Boolean(content.at(-1)?.text?.trim())}`;
      if (this.shape !== shape) { this.shape = shape; isOther = true; }
    }
    return isOther;
  }

  /** Folds what is over of the turns that may have changed. */
  arrangeLast() {
    const { items } = this.session;
    const turns = this.turns.update();
    this.render(this.from, this.to);
    for (const turn of turns) {
      for (let i = Math.max(turn.from, this.from); i < Math.min(turn.to, this.to); i += 1) this.arrange(items[i].key);
    }
  }

  /** Shows what an item has to do with its turn: runs of calls that are folded, and at the end what the turn took and changed. */
  arrange(key) {
    const view = this.views.get(key);
    if (!view?.fold || !this.turns) return;
    const runs = this.turns.runsOf.get(key) || [];
    view.fold(runs.map((run) => ({ run, hasLine: true, isOpen: this.isOpen(run), toggle: () => this.toggleRun(run.id) })));
    const turn = this.turns.turnOf.get(key);
    const isLast = turn?.isOver && turn.last === key;
    view.endTurn(isLast ? { tookMs: turn.tookMs, cost: turn.cost, files: this.filesOf(turn) } : null);
  }

  /** The files of a turn, if there is more to them than one change that is shown anyway. */
  filesOf(turn) {
    const files = changedFiles(this.session, turn);
    const calls = [...files.values()].flat().length;
    return calls > 1 || (calls && turn.runs.length) ? files : new Map();
  }

  /** A run that somebody reads while it ends is not folded under their eyes. */
  isOpen(run) {
    const chosen = this.choices.get(`${this.session.state.sessionId} ${run.id}`);
    if (chosen !== undefined) return chosen;
    if (!run.isOver) { this.kept.add(run.id); return true; }
    if (this.kept.has(run.id) && this.atEnd) this.kept.delete(run.id);
    return this.kept.has(run.id);
  }

  toggleRun(id) {
    const run = this.turns.list.flatMap((turn) => turn.runs).find((one) => one.id === id);
    if (!run) return;
    this.choices.set(`${this.session.state.sessionId} ${id}`, !this.isOpen(run));
    const node = this.views.get(run.head.item)?.node;
    const head = this.session.items.findIndex((item) => item.key === run.head.item);
    this.hold(node && { node, top: node.getBoundingClientRect().top }, () => {
      this.render(this.from, this.to);
      // A very long run does not have to be in the document as a whole.
      if (this.views.size > WINDOW * 2) { const from = this.back(head, STEP / 2); this.render(from, this.ahead(from, WINDOW)); }
      for (const key of run.hides.keys()) this.arrange(key);
    });
  }

  /** New items at the end: shown if the window reaches there. */
  append() {
    this.hasNew = false;
    const { items } = this.session;
    this.showBlank();
    if (!this.atEnd && this.views.size > WINDOW * 2) return;
    this.turns.update();
    if (this.to < items.length) this.render(this.from, items.length);
    if (this.atEnd && this.views.size > WINDOW) this.render(this.back(this.to, WINDOW / 2), this.to);
  }

  /** Is an item shown at all, or is it only a part of a run that is folded? */
  isShown(item) {
    const runs = this.turns.runsOf.get(item.key);
    return !runs || !isFolded(item, runs.filter((run) => !this.isOpen(run)), this.turns.turnOf.get(item.key));
  }

  /** The place from which on so many items are shown before another place. */
  back(index, count) {
    const { items } = this.session;
    let at = index;
    for (let left = count; at > 0 && left > 0; at -= 1) if (this.isShown(items[at - 1])) left -= 1;
    return at;
  }

  /** The place up to which so many are shown after another place. */
  ahead(index, count) {
    const { items } = this.session;
    let at = index;
    for (let left = count; at < items.length && left > 0; at += 1) if (this.isShown(items[at])) left -= 1;
    return at;
  }

  /** Makes the document hold the items between two places, and no others. */
  render(from, to) {
    this.from = from;
    this.to = to;
    const wanted = this.session.items.slice(from, to).filter((item) => this.isShown(item));
    const keys = new Set(wanted.map((item) => item.key));
    for (const [key, view] of this.views) if (!keys.has(key)) { view.node.remove(); this.views.delete(key); }
    let next = this.list.firstChild;
    for (const item of wanted) {
      const { node } = this.view(item);
      if (node === next) next = node.nextSibling;
      else this.list.insertBefore(node, next);
    }
  }

  scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    const toGo = scrollHeight - scrollTop - clientHeight;
    const isUp = scrollTop < this.lastTop - 1;
    this.lastTop = scrollTop;
    document.body.classList.toggle('scrolled', scrollTop > 6);
    if (toGo < NEAR && this.to >= (this.session?.items.length || 0)) this.atEnd = true;
    else if (isUp) this.atEnd = false;
    // The content grew under us before this was told: nobody scrolled.
    else if (this.atEnd) this.stick();
    this.fillUp();
    this.showJump();
  }

  /** More items where one comes near to the window's edge; some may be folded and take no room. */
  fillUp() {
    if (!this.session) return;
    for (let i = 0; i < 40; i += 1) {
      const { scrollTop, scrollHeight, clientHeight } = this.scroller;
      if (scrollTop < AHEAD && this.from > 0) this.more(-1);
      else if (scrollHeight - scrollTop - clientHeight < AHEAD && this.to < this.session.items.length) this.more(1);
      else return;
    }
  }

  /** Moves the window one step; what one looks at stays where it is. */
  more(direction) {
    this.hold(this.anchor(), () => {
      if (direction < 0) {
        const from = this.back(this.from, STEP);
        this.render(from, Math.min(this.to, this.ahead(from, WINDOW)));
      } else {
        const to = this.ahead(this.to, STEP);
        this.render(Math.max(this.from, this.back(to, WINDOW)), to);
      }
    });
  }

  /** Does something to the list without moving what one looks at. */
  hold(anchor, act) {
    act();
    if (anchor?.node.isConnected) this.scroller.scrollTop += anchor.node.getBoundingClientRect().top - anchor.top;
    this.lastTop = this.scroller.scrollTop;
  }

  /** The first item that can be seen. */
  anchor() {
    const edge = this.scroller.getBoundingClientRect().top;
    for (const node of this.list.children) {
      const { top, bottom } = node.getBoundingClientRect();
      if (bottom > edge) return { node, top };
    }
    return null;
  }

  stick() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.lastTop = this.scroller.scrollTop;
  }

  /** Goes to the end of the conversation. */
  toEnd(isAsked) {
    if (this.session && this.to < this.session.items.length) {
      this.atEnd = true;
      this.show(this.session);
      return;
    }
    this.atEnd = true;
    this.stick();
    if (isAsked) this.showJump();
  }

  /** Goes to its beginning. */
  toStart() {
    this.atEnd = false;
    this.place(0);
    this.scroller.scrollTop = 0;
  }

  /** Puts the window elsewhere. */
  place(from) {
    this.render(from, this.ahead(from, WINDOW / 2));
  }

  /** Goes to an item, and opens what is folded of it. */
  reveal(key, places = []) {
    const index = this.session.items.findIndex((item) => item.key === key);
    if (index < 0) return undefined;
    this.atEnd = false;
    const runs = this.turns.runsOf.get(key) || [];
    for (const run of runs) this.kept.add(run.id);
    if (!this.views.has(key)) this.place(this.back(index, WINDOW / 4));
    for (const run of runs) for (const one of run.hides.keys()) this.arrange(one);
    const view = this.views.get(key);
    view?.open?.(places);
    this.showJump();
    return new Promise((resolve) => { if (view) this.settleAt(view.node, 8, resolve); });
  }

  /** Items get their real heights as they come into view; until then what one looks for moves. */
  settleAt(node, times, done) {
    node.scrollIntoView({ block: 'center' });
    this.lastTop = this.scroller.scrollTop;
    if (times > 0) requestAnimationFrame(() => { if (node.isConnected && !this.atEnd) this.settleAt(node, times - 1, done); });
    else done();
  }

  /** Is part of the conversation not in the document? */
  get isPart() {
    return Boolean(this.session) && this.to - this.from < this.session.items.length;
  }

  showJump() {
    this.jump.hidden = this.atEnd;
    setText(this.jumpText, this.session?.running ? 'New output' : 'To the end');
  }
}
