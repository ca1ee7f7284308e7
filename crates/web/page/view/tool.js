// The card of one tool call: what it is about in a line, how it goes, and on demand everything it gave.

import { isOver } from '../state/session.js';
import { partialMember } from '../state/blocks.js';
import { baseName, duration, oneLine, shortPath, textOf, visible } from '../lib/format.js';
import { strip } from '../lib/ansi.js';
import { diffText, tally } from '../lib/diff.js';
import { copy, el, fill, icon, setText } from '../lib/dom.js';
import { diffOf } from './diffview.js';
import { toolBody } from './toolbody.js';

const KINDS = {
  bash: { label: 'Shell', icon: 'terminal', members: ['command'] },
  read: { label: 'Read', icon: 'file', members: ['path', 'file_path'] },
  write: { label: 'Write', icon: 'file', members: ['path', 'file_path'] },
  edit: { label: 'Edit', icon: 'pencil', members: ['path', 'file_path'] },
  grep: { label: 'Search', icon: 'search', members: ['pattern', 'query'] },
  find: { label: 'Find', icon: 'folder', members: ['pattern', 'glob'] },
  glob: { label: 'Find', icon: 'folder', members: ['pattern', 'glob'] },
  task: { label: 'Sub-agent', icon: 'fork', members: ['description', 'prompt'] },
  process: { label: 'Process', icon: 'terminal', members: ['processId', 'action'] },
  fetch: { label: 'Fetch', icon: 'link', members: ['url'] },
  submit_result: { label: 'Result', icon: 'check', members: [] },
  ls: { label: 'List', icon: 'folder', members: ['path'] },
};
const ANY = ['path', 'command', 'query', 'pattern', 'url', 'name', 'description', 'title', 'prompt'];
const WORDS = { calling: 'is being written', running: 'is running', done: 'done', error: 'failed', stopped: 'was stopped' };

/** A tool call in a few words: what kind it is and what it is about. */
export function callLine(name, args) {
  const called = String(name).toLowerCase();
  const kind = Object.hasOwn(KINDS, called) ? KINDS[called] : { label: String(name), members: ANY };
  const member = kind.members.find((one) => typeof args?.[one] === 'string' && args[one]);
  const subject = !member ? '' : member === 'path' || member === 'file_path' ? baseName(args[member]) : args[member];
  return oneLine(visible(`${kind.label} ${subject}`.slice(0, 400), { blanks: true }), 80).trim();
}

export class ToolCard {
  constructor(tool) {
    this.tool = tool;
    this.label = el('span.tool-label');
    this.subject = el('span.tool-subject');
    this.note = el('span.tool-note');
    this.mark = el('span.tool-mark', { role: 'img' });
    this.kindIcon = el('span.tool-icon');
    this.head = el('button.tool-head', { type: 'button', aria: { expanded: false }, onclick: () => this.toggle() },
      this.kindIcon, this.label, this.subject, this.note, this.mark, el('span.tool-turn', {}, icon('chevron')));
    this.body = el('div.tool-body', { hidden: true });
    this.node = el('section.tool', { data: { call: tool.id } }, this.head, this.body);
    this.chosen = null;
    this.update();
  }

  /** Shows what changed. */
  update() {
    const { tool } = this;
    const called = tool.name.toLowerCase();
    const kind = Object.hasOwn(KINDS, called) ? KINDS[called] : { label: tool.name || 'Tool', icon: 'tool', members: ANY };
    if (this.iconName !== kind.icon) { this.iconName = kind.icon; fill(this.kindIcon, icon(kind.icon)); }
    setText(this.label, oneLine(visible(String(kind.label).slice(0, 200), { blanks: true }), 60));
    this.showSubject(kind);
    this.node.dataset.status = tool.status;
    if (this.mark.dataset.status !== tool.status) {
      this.mark.dataset.status = tool.status;
      this.mark.setAttribute('aria-label', WORDS[tool.status]);
      fill(this.mark, tool.status === 'done' ? icon('check') : tool.status === 'error' ? icon('close') : null);
    }
    setText(this.note, this.remark());
    const isOpen = this.chosen ?? this.opensByItself();
    this.head.setAttribute('aria-expanded', String(isOpen));
    this.body.hidden = !isOpen;
    if (isOpen) this.showBody();
  }

  showSubject(kind) {
    const { tool } = this;
    const args = tool.args || {};
    const member = kind.members.find((name) => typeof args[name] === 'string' && args[name]);
    const text = tool.json !== undefined ? partialMember(tool.json, kind.members) : member ? args[member] : '';
    const isPath = member === 'path' || member === 'file_path';
    const line = oneLine(visible(String(isPath ? shortPath(text) : text).slice(0, 1000), { blanks: true }), 200);
    if (isPath && line) {
      const name = baseName(line);
      if (this.subject.textContent !== line) fill(this.subject, el('span.tool-directory', { text: line.slice(0, line.length - name.length) }), el('span', { text: name }));
    } else setText(this.subject, line);
    this.subject.title = visible(String(text).slice(0, 1000), { blanks: true });
  }

  /** The few words at the end of the line. */
  remark() {
    const { tool } = this;
    const name = tool.name.toLowerCase();
    if (tool.status === 'calling' || tool.status === 'stopped') return tool.status === 'stopped' ? 'stopped' : '';
    if (name === 'edit' && tool.status === 'done') {
      const lines = diffOf(tool);
      if (lines) { const { added, removed } = tally(lines); return `+${added} −${removed}`; }
    }
    if (name === 'bash' && isOver(tool)) {
      const code = /Command exited with code (-?\d+)\s*$/.exec(textOf(tool.result?.content).slice(-200))?.[1];
      if (code) return `exit ${code}`;
    }
    return tool.tookMs >= 1000 ? duration(tool.tookMs) : '';
  }

  /** Changes and failures are what one wants to see; all other calls are a line until they are asked. */
  opensByItself() {
    const { tool } = this;
    const name = tool.name.toLowerCase();
    if (tool.status === 'error') return true;
    if (name === 'edit') return tool.status !== 'calling' && (diffOf(tool)?.length || 0) <= 80;
    if (tool.result && Array.isArray(tool.result.content) && tool.result.content.some((block) => block?.type === 'image')) return true;
    if (name === 'task' && tool.status === 'running') return true;
    return name === 'bash' && tool.status === 'running' && Boolean(textOf(tool.result?.content));
  }

  open() {
    this.chosen = true;
    this.update();
  }

  toggle() {
    this.chosen = this.body.hidden;
    this.update();
  }

  showBody() {
    const { tool } = this;
    // A finished call shows the same forever.
    const sign = `${tool.status} ${tool.result ? 1 : 0} ${isOver(tool) ? '' : `${textOf(tool.result?.content).length} ${tool.result?.details?.durationMs ?? ''}`}`;
    if (this.sign === sign && isOver(tool)) return;
    if (this.sign === sign) return;
    this.sign = sign;
    const parts = toolBody(tool);
    const text = textOf(tool.result?.content);
    const changed = parts.some((part) => part.matches('.diff')) && diffOf(tool);
    if (isOver(tool) && (changed || (text && parts.some((part) => part.matches('.terminal, .arguments'))))) {
      const label = changed ? 'Copy changes' : 'Copy output';
      const button = el('button.tool-copy', { type: 'button', title: label, aria: { label } }, icon('copy'));
      button.addEventListener('click', () => copy(changed ? diffText(changed) : strip(text), button));
      parts.push(button);
    }
    const full = tool.result?.details?.fullOutputPath;
    if (typeof full === 'string') parts.push(el('p.tool-full', { text: `The whole output is in ${full}` }));
    fill(this.body, parts.length ? parts : el('p.tool-empty', { text: isOver(tool) ? 'No output' : 'No output yet' }));
    for (const terminal of this.body.querySelectorAll('.terminal')) if (!isOver(tool)) terminal.scrollTop = terminal.scrollHeight;
  }
}
