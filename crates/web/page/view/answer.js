// An answer of the model: its texts, its reasoning and its tool calls, in the order they came.

import { cost, duration } from '../lib/format.js';
import { copy, el, icon, setText } from '../lib/dom.js';
import { GrowingMarkdown } from './markdown.js';
import { changesView } from './changes.js';
import { StepsLine } from './steps.js';
import { ToolCard } from './tool.js';

class TextView {
  constructor() {
    this.node = el('div.prose', { dir: 'auto' });
    this.markdown = new GrowingMarkdown(this.node);
  }

  update(block, streaming) {
    const isOpen = streaming && block.open !== false;
    const sign = `${isOpen} ${block.text.length}`;
    if (sign === this.sign) return;
    this.sign = sign;
    if (isOpen) this.markdown.grow(block.text);
    else this.markdown.finish(block.text);
    this.node.classList.toggle('growing', isOpen);
    this.node.hidden = !block.text.trim();
  }
}

class ThinkingView {
  constructor() {
    this.word = el('span');
    this.text = el('div.thinking-text', { dir: 'auto' });
    this.node = el('details.thinking', {}, el('summary', {}, icon('thought'), this.word, el('span.tool-turn', {}, icon('chevron'))), this.text);
    this.node.addEventListener('toggle', () => this.show());
  }

  update(block, streaming) {
    this.block = block;
    const isOpen = streaming && block.open !== false;
    this.node.classList.toggle('working', isOpen);
    const known = block.took >= 1000 ? `Thought for ${duration(block.took)}` : 'Thought';
    setText(this.word, isOpen ? 'Thinking…' : block.redacted ? 'Thought (not shown by the provider)' : known);
    this.node.hidden = !isOpen && !block.thinking && !block.redacted;
    this.show();
  }

  show() {
    if (this.node.open) setText(this.text, this.block?.thinking || '');
  }
}

export class AnswerView {
  /** @param {import('../state/session.js').Item} item @param {import('../state/session.js').Session} session */
  constructor(item, session) {
    this.session = session;
    this.blocks = [];
    this.lines = new Map();
    this.foot = el('div.answer-foot');
    this.content = el('div.answer-content');
    this.node = el('article.item.answer', { data: { key: item.key }, aria: { label: 'Answer' } }, this.content, this.foot);
    this.update(item);
  }

  /** Shows the item as it is now; `which` limits the work to some blocks. */
  update(item, which = null) {
    this.item = item;
    item.message.content.forEach((block, index) => {
      if (which && !which.has(index) && this.blocks[index]) return;
      this.showBlock(block, index, Boolean(item.streaming));
    });
    while (this.blocks.length > item.message.content.length) this.blocks.pop()?.node.remove();
    if (!which) this.showFoot();
    this.node.classList.toggle('empty', !this.node.textContent && !item.streaming);
  }

  showBlock(block, index, streaming) {
    let view = this.blocks[index];
    if (view && view.kind !== kindOf(block)) { view.node.remove(); view = null; }
    if (!view) {
      view = this.made(block);
      this.blocks[index] = view;
      const next = this.blocks.slice(index + 1).find(Boolean);
      this.content.insertBefore(view.node, next ? next.node : null);
    }
    if (view.card) view.card.update();
    else view.update(block, streaming);
  }

  made(block) {
    if (block.type === 'thinking') return Object.assign(new ThinkingView(), { kind: 'thinking' });
    if (block.type === 'toolCall') {
      const card = new ToolCard(this.session.tool(block.id));
      return { kind: kindOf(block), node: card.node, card };
    }
    if (block.type === 'text') return Object.assign(new TextView(), { kind: 'text' });
    return { kind: block.type, node: el('div', { hidden: true }), update() {} };
  }

  /** Opens thoughts and calls: blocks by their place, calls by their id. */
  open(places) {
    for (const place of places) {
      const view = typeof place === 'number' ? this.blocks[place] : this.blocks.find((one) => one?.card?.tool.id === place);
      if (view?.card) view.card.open();
      else if (view?.node instanceof HTMLDetailsElement) { view.node.open = true; view.show(); }
    }
  }

  /** A call's result came. */
  updateTool(id) {
    for (const view of this.blocks) if (view?.card && view.card.tool.id === id) view.card.update();
  }

  showFoot() {
    const { message, streaming } = this.item;
    this.foot.replaceChildren();
    if (streaming) return;
    if (message.stopReason === 'error') {
      this.foot.append(el('div.failure', { role: 'alert' }, icon('warn'), el('span', { text: message.errorMessage || 'The provider failed.' })));
    } else if (message.stopReason === 'aborted') this.foot.append(el('p.remark', { text: 'Stopped' }));
    else if (message.stopReason === 'length') this.foot.append(el('p.remark', { text: 'The answer reached its greatest length.' }));
    const text = message.content.filter((block) => block.type === 'text').map((block) => block.text).join('\n\n').trim();
    const { turn } = this;
    if (turn?.files?.size) this.foot.append(changesView(turn.files));
    if (!text || message.stopReason === 'toolUse') return;
    const button = el('button.icon-button.small', { type: 'button', title: 'Copy answer', aria: { label: 'Copy answer' } }, icon('copy'));
    button.addEventListener('click', () => copy(text, button));
    const spent = turn ? [turn.tookMs >= 3000 ? duration(turn.tookMs) : '', turn.cost ? cost(turn.cost) : ''].filter(Boolean).join(' · ') : '';
    this.foot.append(el('div.actions', {}, button, spent ? el('span.turn-figures', { text: spent, title: 'Time and cost of this turn' }) : null));
  }

  /** This answer ends a turn: what the turn took and changed. Null: it does not. */
  endTurn(turn) {
    const sign = turn ? `${turn.tookMs} ${turn.cost} ${[...turn.files].map(([path, tools]) => `${path} ${tools.length}`)}` : '';
    if (sign === (this.turnSign || '')) return;
    this.turnSign = sign;
    this.turn = turn;
    this.showFoot();
  }

  /**
   * Folds runs of calls that this answer has a part of.
   * @param {{ run: import('../state/turns.js').Run, isOpen: boolean, hasLine: boolean, toggle: () => void }[]} runs
   */
  fold(runs) {
    const hidden = new Set();
    const shown = new Set();
    for (const { run, isOpen, hasLine, toggle } of runs) {
      if (!isOpen) for (const index of run.hides.get(this.item.key) || []) hidden.add(index);
      if (!hasLine || run.head.item !== this.item.key) continue;
      shown.add(run.id);
      let line = this.lines.get(run.id);
      if (!line) { line = new StepsLine(toggle); this.lines.set(run.id, line); }
      line.update(this.session, run, isOpen);
      const before = this.blocks[run.head.block]?.node;
      if (before && line.node.nextSibling !== before) before.before(line.node);
    }
    for (const [id, line] of this.lines) if (!shown.has(id)) { line.node.remove(); this.lines.delete(id); }
    this.blocks.forEach((view, index) => view?.node.classList.toggle('folded', hidden.has(index)));
  }
}

function kindOf(block) {
  return block.type === 'toolCall' ? `call ${block.id}` : block.type;
}
