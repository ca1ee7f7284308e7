// Messages that wait while the agent works: what they say, which queue they are in; each can be changed or taken back.

import { oneLine } from '../lib/format.js';
import { el, fill, iconButton } from '../lib/dom.js';
import { openDialog } from './dialogs.js';

export class QueueView {
  /** @param {{ ask: (command: any) => Promise<any>, restore: (session: any, texts: string[]) => void }} actions */
  constructor(node, actions) {
    this.node = node;
    this.actions = actions;
  }

  /** Shows the queue of a session; the ids are asked for, since events only have the texts. */
  async update(session) {
    const { queue } = session;
    this.session = session;
    const count = queue.steering.length + queue.followUp.length;
    this.shown = queue;
    if (!count) { this.node.hidden = true; this.node.replaceChildren(); return; }
    this.show(queue.items || [
      ...queue.steering.map((text) => ({ kind: 'steer', text })), ...queue.followUp.map((text) => ({ kind: 'followUp', text }))]);
    if (queue.items) return;
    const answer = await this.actions.ask({ type: 'get_queue' });
    if (!answer || this.shown !== queue) return;
    queue.items = answer.items || [];
    this.show(queue.items);
  }

  show(items) {
    this.node.hidden = !items.length;
    // Images cannot be taken back: of such messages the agent gives only the text.
    const head = items.every((item) => item.id && !item.images) && el('li.queue-head', {}, el('span', { text: items.length === 1 ? 'Waiting' : `${items.length} waiting` }),
      el('button.link', { type: 'button', text: 'Restore to editor', title: 'Takes all of them back into the field', onclick: () => this.restore() }));
    fill(this.node, head, items.map((item) => el('li.queued', {},
      el('span.queued-kind', { text: item.kind === 'steer' ? 'Next' : 'After' , title: item.kind === 'steer' ? 'Steers: goes to the model after the current step' : 'Follow-up: goes to the model when the run is over' }),
      el('span.queued-text', { text: oneLine(item.text, 200) || 'Image', title: String(item.text).slice(0, 2000) }),
      item.images ? el('span.queued-images', { text: `${item.images} img` }) : null,
      item.id ? iconButton('pencil', 'Edit', () => this.edit(item), { class: 'small' }) : null,
      item.id ? iconButton('close', 'Remove', () => this.actions.ask({ type: 'remove_queued', queuedId: item.id }), { class: 'small' }) : null)));
  }

  /** Takes all messages back, to be said otherwise. */
  async restore() {
    const { session } = this;
    const taken = await this.actions.ask({ type: 'clear_queue' });
    if (taken) this.actions.restore(session, [...(taken.steering || []), ...(taken.followUp || [])]);
  }

  edit(item) {
    const field = el('textarea', { rows: 6, value: item.text, aria: { label: 'Message' } });
    openDialog('Change a waiting message', (end) => [field, el('div.dialog-foot', {},
      el('button', { type: 'button', text: 'Cancel', onclick: end }),
      el('button.primary', { type: 'button', text: 'Save', onclick: async () => {
        if (await this.actions.ask({ type: 'edit_queued', queuedId: item.id, message: field.value })) end();
      } }))]);
    field.focus();
  }
}
