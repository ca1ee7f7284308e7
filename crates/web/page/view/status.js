// The line above the composer: what the agent is doing and for how long, a retry with its countdown, a compaction; and what
// extensions show there.

import { duration } from '../lib/format.js';
import { el, fill, setText } from '../lib/dom.js';
import { isOver } from '../state/session.js';

export class StatusLine {
  /** @param {HTMLElement} node @param {{ abortRetry: () => void, abort: () => void }} actions */
  constructor(node, actions) {
    this.node = node;
    this.actions = actions;
    this.text = el('span.status-text');
    this.time = el('span.status-time');
    this.button = el('button.link', { type: 'button', onclick: () => this.act?.() });
    this.pulse = el('span.pulse', { aria: { hidden: true } });
    node.append(this.pulse, this.text, this.time, this.button);
    setInterval(() => this.tick(), 500);
  }

  update(session) {
    this.session = session;
    this.tick();
  }

  tick() {
    const { session } = this;
    if (!session) return;
    const { retry, compacting, running } = session;
    this.node.hidden = !(retry || compacting || running);
    this.node.classList.toggle('troubled', Boolean(retry));
    if (this.node.hidden) return;
    this.act = null;
    if (retry) {
      const left = Math.max(0, Math.ceil((retry.until - Date.now()) / 1000));
      const which = retry.attempt === null ? '' : ` (${retry.attempt} of ${retry.most})`;
      setText(this.text, `${left ? `Trying again in ${left} s` : 'Trying again'}${which}: ${retry.error || 'the provider failed'}`);
      this.act = this.actions.abortRetry;
    } else if (compacting) {
      setText(this.text, compacting === 'manual' ? 'Compacting the conversation…' : 'The context is nearly full: compacting…');
      this.act = this.actions.abort;
    } else setText(this.text, this.word());
    const ran = session.runStarted ? Math.floor((Date.now() - session.runStarted) / 1000) : 0;
    setText(this.time, running && !retry && ran ? duration(ran * 1000) : '');
    this.button.hidden = !this.act;
    setText(this.button, retry ? 'Give up' : 'Stop');
  }

  word() {
    const { session } = this;
    const working = [...session.tools.values()].filter((tool) => !isOver(tool) && tool.status === 'running');
    if (working.length > 1) return `Running ${working.length} tools`;
    if (working.length === 1) return working[0].name.toLowerCase() === 'bash' ? 'Running a command' : `Running ${working[0].name.slice(0, 40)}`;
    const block = session.stream?.message.content.findLast((one) => one);
    if (block?.type === 'thinking' && block.open) return 'Thinking';
    if (block?.type === 'toolCall' && block.open) return 'Writing a tool call';
    return block?.type === 'text' ? 'Answering' : 'Working';
  }
}

/** Texts and widgets of extensions. */
export function showExtras(session, { above, below, statuses }) {
  const widgets = [...session.widgets.values()];
  const lines = (list) => list.map((widget) => el('pre.widget', { text: widget.lines.join('\n') }));
  for (const [node, list] of [[above, widgets.filter((widget) => !widget.below)], [below, widgets.filter((widget) => widget.below)]]) {
    fill(node, lines(list));
    node.hidden = !list.length;
  }
  fill(statuses, [...session.statuses.values()].map((text) => el('span.extension-status', { text })));
  statuses.hidden = !session.statuses.size;
}
