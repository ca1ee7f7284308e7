// One view for each role of message. All have `node`, `update(item, which)` and, where there may be tool calls, `updateTool(id)`.

import { count, imagesOf, oneLine, textOf, tokens } from '../lib/format.js';
import { strip } from '../lib/ansi.js';
import { copy, el, fill, icon, iconButton, setText } from '../lib/dom.js';
import { AnswerView } from './answer.js';
import { markdown } from './markdown.js';
import { terminalView } from './toolbody.js';
import { ToolCard } from './tool.js';
import { showPicture } from './picture.js';
import { ResultView } from './result.js';

/** @param {any} item @param {any} session @param {{ onedit?: (item: any) => void }} actions */
export function viewOf(item, session, actions) {
  try {
    return made(item, session, actions);
  } catch (error) {
    // One message that we cannot show must not hide all others.
    console.error(error);
    return new UnknownView({ ...item, message: { content: 'This message cannot be shown.' } });
  }
}

function made(item, session, actions) {
  switch (item.role) {
    case 'user': return new UserView(item, actions);
    case 'assistant': return new AnswerView(item, session);
    case 'bashExecution': return new ShellView(item);
    case 'tool': return new OrphanView(item, session);
    case 'compactionSummary': return new SummaryView(item, 'shrink', `Conversation compacted${item.message.tokensBefore ? ` (${tokens(item.message.tokensBefore)} tokens before)` : ''}`);
    case 'branchSummary': return new SummaryView(item, 'tree', 'Summary of another branch');
    case 'notice': return new NoticeView(item);
    case 'result': return new ResultView(item);
    case 'custom':
    case 'hookMessage': return new CustomView(item);
    default: return new UnknownView(item);
  }
}

class UserView {
  constructor(item, actions) {
    this.actions = actions;
    this.bubble = el('div.bubble', { dir: 'auto' });
    this.node = el('article.item.user', { data: { key: item.key }, aria: { label: 'You' } });
    this.update(item);
  }

  update(item) {
    const text = textOf(item.message.content);
    const pictures = imagesOf(item.message.content).map((source) => el('button.thumb', { type: 'button', aria: { label: 'Show image' }, onclick: () => showPicture(source) }, el('img', { src: source, alt: 'Image from you', loading: 'lazy' })));
    const copyButton = iconButton('copy', 'Copy message', () => copy(text, copyButton), { class: 'small' });
    fill(this.bubble, text ? folded(text) : null);
    this.bubble.hidden = !text;
    fill(this.node,
      pictures.length ? el('div.thumbs', {}, ...pictures) : null, this.bubble,
      el('div.actions', {}, copyButton, this.actions.onedit ? iconButton('fork', 'Edit in a fork', () => this.actions.onedit(item), { class: 'small' }) : null));
  }
}

/** A long text shows its beginning first. */
function folded(text) {
  const lines = text.split('\n').length;
  if (text.length < 2400 && lines < 30) return el('div.said', { text });
  const short = text.split('\n').slice(0, 16).join('\n').slice(0, 1400);
  const said = el('div.said', { text: `${short}…` });
  const button = el('button.more', { type: 'button', text: `Show all (${count(lines, 'line')})` });
  button.addEventListener('click', () => {
    const isShort = said.textContent !== text;
    said.textContent = isShort ? text : `${short}…`;
    button.textContent = isShort ? 'Show less' : `Show all (${count(lines, 'line')})`;
  });
  return el('div', {}, said, button);
}

class ShellView {
  constructor(item) {
    this.node = el('article.item.shell', { data: { key: item.key }, aria: { label: 'Shell command' } });
    this.update(item);
  }

  update(item) {
    const { message, pending } = item;
    const notes = [];
    if (pending) notes.push('running…');
    else if (message.cancelled) notes.push('stopped');
    else if (message.exitCode) notes.push(`exit ${message.exitCode}`);
    if (message.excludeFromContext) notes.push('not seen by the model');
    if (message.fullOutputPath) notes.push(`whole output in ${message.fullOutputPath}`);
    const screen = terminalView(message.output, { command: message.command || '(a command of another page)', live: pending });
    const button = !pending && (message.output || message.command) ? el('button.tool-copy', { type: 'button', title: 'Copy output', aria: { label: 'Copy output' } }, icon('copy')) : null;
    button?.addEventListener('click', () => copy(strip(message.output || message.command), button));
    fill(this.node, screen, button, notes.length ? el('p.remark', { text: notes.join(' · '), class: message.exitCode || message.cancelled ? 'bad' : '' }) : null);
    if (pending) screen.scrollTop = screen.scrollHeight;
  }
}

class OrphanView {
  constructor(item, session) {
    this.card = new ToolCard(session.tool(item.message.toolCallId));
    this.node = el('article.item.answer', { data: { key: item.key } }, this.card.node);
  }

  update() { this.card.update(); }

  updateTool() { this.card.update(); }
}

/** A line of the agent about the run, such as a change of the model. */
class NoticeView {
  constructor(item) {
    this.node = el('article.item.notice', { data: { key: item.key } }, icon('warn'), el('span', { text: oneLine(item.message.text, 600), dir: 'auto' }));
  }

  update() {}
}

class SummaryView {
  constructor(item, name, title) {
    const text = el('div.prose');
    const details = el('details.summary', {}, el('summary', {}, icon(name), el('span', { text: title }), el('span.tool-turn', {}, icon('chevron'))), text);
    details.addEventListener('toggle', () => { if (details.open && !text.firstChild) fill(text, markdown(String(item.message.summary ?? ''))); });
    this.node = el('article.item.divider', { data: { key: item.key } }, details);
  }

  update() {}
}

class CustomView {
  constructor(item) {
    this.kind = el('span.custom-kind');
    this.body = el('div.prose');
    this.node = el('article.item.custom', { data: { key: item.key } }, this.kind, this.body);
    this.update(item);
  }

  update(item) {
    setText(this.kind, oneLine(item.message.customType, 60));
    fill(this.body, markdown(textOf(item.message.content)),
      ...imagesOf(item.message.content).map((source) => el('img.picture', { src: source, alt: 'Image from an extension' })));
  }
}

/** A role that a later agent may have: its text, if any. */
class UnknownView {
  constructor(item) {
    this.node = el('article.item.custom', { data: { key: item.key } }, el('div.said', { text: textOf(item.message.content) }));
    this.node.hidden = !this.node.textContent;
  }

  update() {}
}
