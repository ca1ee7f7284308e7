// The header (name, menu of the session) and the pickers beside the composer: model, thinking, permission, context and cost.

import { cost, shortPath, tokens } from '../lib/format.js';
import { el, fill, icon, setText } from '../lib/dom.js';
import { openMenu } from './menu.js';

const SVG = 'http://www.w3.org/2000/svg';
const ROUND = 2 * Math.PI * 7;
/** What each permission mode is called on its button and in its menu. */
const MODES = {
  off: { name: 'No checks', label: 'Everything may run' }, auto: { name: 'Auto', label: 'All but what rules refuse' },
  ask: { name: 'Ask first', label: 'Ask before changes' }, 'read-only': { name: 'Read only', label: 'Only look' },
};

export class Pickers {
  /** @param {HTMLElement} node @param {{ app: import('../state/app.js').App, compact: () => void }} options */
  constructor(node, { app, compact }) {
    this.app = app;
    this.compact = compact;
    this.model = el('button.pick.model', { type: 'button', title: 'Model', hidden: true, aria: { haspopup: 'dialog', expanded: false }, onclick: () => this.pickModel() });
    this.thinking = el('button.pick.thinking-level', { type: 'button', title: 'Thinking', hidden: true, aria: { haspopup: 'dialog', expanded: false }, onclick: () => this.pickThinking() });
    this.permission = el('button.pick.permission', { type: 'button', title: 'What tools may do', hidden: true, aria: { haspopup: 'dialog', expanded: false }, onclick: () => this.pickPermission() });
    this.ring = ring();
    this.percent = el('span.meter-text');
    this.meter = el('button.pick.meter', { type: 'button', hidden: true, aria: { haspopup: 'dialog', expanded: false }, onclick: () => this.showMeter() }, this.ring, this.percent);
    node.append(this.model, this.thinking, this.permission, this.meter);
  }

  update(session) {
    const { state } = session;
    const name = state.model ? state.model.name || state.model.id : 'No model';
    this.model.hidden = false;
    const { fallback } = session;
    setText(this.model, fallback ? `${name} → ${fallback.to}` : name);
    this.model.title = fallback ? `${fallback.from} failed; ${fallback.to} answers until the run is over` : state.model ? `Model: ${state.model.provider}/${state.model.id}` : 'No model';
    this.thinking.hidden = !state.model?.reasoning;
    fill(this.thinking, icon('thought'), state.thinkingLevel || 'off');
    this.thinking.setAttribute('aria-label', `Thinking: ${state.thinkingLevel || 'off'}`);
    // The agent leaves the mode out of the state while it is off. No state at all: the session is not loaded.
    const mode = state.permissionMode || 'off';
    this.permission.hidden = !state.sessionId || !Object.hasOwn(MODES, mode);
    this.permission.dataset.mode = mode;
    if (this.permissionMode !== mode) { this.permissionMode = mode; fill(this.permission, icon('shield'), el('span', { text: MODES[mode]?.name || '' })); }
    this.permission.setAttribute('aria-label', `Permissions: ${MODES[mode]?.name || mode}`);
    const usage = state.contextUsage;
    const percent = usage?.percent ?? null;
    this.meter.hidden = !usage;
    this.meter.dataset.level = percent >= 80 ? 'high' : percent >= 50 ? 'middle' : 'low';
    /** @type {SVGElement} */ (this.ring.lastChild).style.setProperty('stroke-dashoffset', String(ROUND * (1 - Math.min(100, percent || 0) / 100)));
    setText(this.percent, percent === null ? '' : `${Math.round(percent)} %`);
    const words = usage ? `Context: ${tokens(usage.tokens)} of ${tokens(usage.contextWindow)} tokens${percent === null ? '' : ` (${Math.round(percent)} %)`}` : '';
    this.meter.title = words;
    this.meter.setAttribute('aria-label', words);
  }

  pickModel() {
    const { app } = this;
    const now = app.session.state.model;
    const entries = (app.models || []).map((model) => ({
      label: model.name || model.id, note: `${tokens(model.contextWindow)}${model.reasoning ? ' · thinks' : ''}`, group: model.provider,
      checked: now && model.id === now.id && model.provider === now.provider,
      pick: () => app.tryAsk({ type: 'set_model', provider: model.provider, modelId: model.id }).then(() => app.refresh(0)),
    }));
    if (app.models === null) app.refreshModels().catch(() => {});
    openMenu(this.model, { title: 'Model', entries, search: entries.length > 7 });
  }

  async pickThinking() {
    const { app } = this;
    const answer = await app.tryAsk({ type: 'get_available_thinking_levels' });
    if (!answer) return;
    const { session } = app;
    openMenu(this.thinking, { title: 'Thinking', entries: answer.levels.map((level) => ({
      label: level, checked: level === session.state.thinkingLevel,
      pick: async () => {
        const before = session.state.thinkingLevel;
        session.state.thinkingLevel = level;
        this.update(session);
        const isSet = await app.tryAsk({ type: 'set_thinking_level', level });
        // An event that came meanwhile knows better.
        if (!isSet && session.state.thinkingLevel === level) session.state.thinkingLevel = before;
        app.refresh(0);
      },
    })) });
  }

  pickPermission() {
    const { app } = this;
    openMenu(this.permission, { title: 'What tools may do', entries: Object.entries(MODES).map(([mode, { label }]) => ({
      label, checked: mode === (app.session.state.permissionMode || 'off'),
      pick: () => app.tryAsk({ type: 'set_permission_mode', mode }).then(() => app.refresh(0)),
    })) });
  }

  showMeter() {
    const { session } = this.app;
    const usage = session.state.contextUsage;
    const { stats } = session;
    const line = (name, value) => el('div.figure', {}, el('span', { text: name }), el('b', { text: value }));
    const head = el('div.figures', {},
      usage ? line('Context', `${tokens(usage.tokens)} / ${tokens(usage.contextWindow)}`) : null,
      stats ? line('Input', tokens(stats.tokens.input + stats.tokens.cacheRead + stats.tokens.cacheWrite)) : null,
      stats && stats.tokens.cacheRead ? line('of it cached', tokens(stats.tokens.cacheRead)) : null,
      stats ? line('Output', tokens(stats.tokens.output)) : null,
      stats ? line('Cost', cost(stats.cost)) : null,
      stats ? line('Messages', String(stats.totalMessages)) : null);
    const { autoCompactionEnabled } = session.state;
    openMenu(this.meter, { title: 'Context', head, entries: [
      { label: 'Compact now', icon: 'shrink', pick: () => this.compact() },
      { label: 'Compact by itself when full', checked: autoCompactionEnabled, pick: () => this.app.tryAsk({ type: 'set_auto_compaction', enabled: !autoCompactionEnabled }).then(() => this.app.refresh(0)) },
    ] });
  }
}

function ring() {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', '0 0 18 18');
  svg.setAttribute('class', 'ring');
  svg.setAttribute('aria-hidden', 'true');
  for (const name of ['ring-rest', 'ring-used']) {
    const circle = document.createElementNS(SVG, 'circle');
    circle.setAttribute('cx', '9');
    circle.setAttribute('cy', '9');
    circle.setAttribute('r', '7');
    circle.setAttribute('class', name);
    circle.style.setProperty('stroke-dasharray', String(ROUND));
    svg.append(circle);
  }
  return svg;
}

/** The name in the header; a click renames. */
export function showName(button, app) {
  const { session } = app;
  const open = app.open.find((one) => (one.session || '') === app.current);
  const listed = app.listed.find((one) => one.id === session.state.sessionId);
  const first = session.said.at(-1);
  const name = session.state.sessionName || listed?.name || listed?.firstMessage || (first ? textOfSaid(first) : '') || 'New session';
  const line = name.replace(/\s+/g, ' ').slice(0, 120);
  const place = shortPath(open?.cwd || listed?.cwd || '');
  fill(button, el('span.name-text', { text: line, dir: 'auto' }), place ? el('span.name-place', { text: place }) : null);
  button.title = 'Rename';
  const wants = session.dialogs.length ? '? ' : session.running ? '● ' : app.unseen ? '✓ ' : '';
  document.title = `${wants}${session.title || `${line.slice(0, 60)} – Pinion`}`;
  return line;
}

function textOfSaid(item) {
  const { content } = item.message;
  return typeof content === 'string' ? content : (content || []).find((block) => block.type === 'text')?.text || '';
}

/** The list of todos; folded to a line that counts. */
export function showTodos(node, phases, isOpen, toggle) {
  const tasks = phases.flatMap((phase) => phase.tasks || []);
  node.hidden = !tasks.length;
  if (!tasks.length) return;
  const done = tasks.filter((task) => task.status === 'completed' || task.status === 'abandoned').length;
  const now = tasks.find((task) => task.status === 'in_progress') || tasks.find((task) => task.status === 'pending');
  const head = el('button.todos-head', { type: 'button', aria: { expanded: isOpen }, onclick: toggle },
    icon('check'), el('span.todos-now', { text: now && !isOpen ? now.content : 'Todos', dir: 'auto' }), el('span.todos-count', { text: `${done} / ${tasks.length}` }), el('span.tool-turn', {}, icon('chevron')));
  fill(node, head, isOpen ? el('div.todos-list', {}, ...phases.flatMap((phase) => [
    phases.length > 1 ? el('h3', { text: phase.name, dir: 'auto' }) : null,
    ...(phase.tasks || []).map((task) => el('div.todo', { data: { status: task.status } },
      el('span.todo-mark', { role: 'img', aria: { label: String(task.status).replace('_', ' ') } }), el('span', { text: task.content, title: task.notes || '', dir: 'auto' })))])) : null);
}
