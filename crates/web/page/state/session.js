// One session as the page knows it: its conversation as a list of items, tool calls by their id, queue, questions, todos and
// everything else that events tell. Pure: events go in, the model changes, and the names of what changed come out.

import { settle, step } from './blocks.js';
import { applyOther, whatStands } from './events.js';

/**
 * @typedef {{ key: number, role: string, message: any, streaming?: boolean, shell?: string, pending?: boolean, isOld?: boolean,
 *   isAdopted?: boolean }} Item
 * @typedef {{ id: string, name: string, args: any, status: 'calling'|'running'|'done'|'error'|'stopped', result: any,
 *   startedAt?: number, tookMs?: number, item?: number, json?: string }} Tool
 * @typedef {{ list: boolean, items: Set<number>, blocks: Map<number, Set<number>>, tools: Set<string>, parts: Set<string> }} Changes
 *   `list`: items came or went; `items`: keys of items that changed; `blocks`: which blocks of an answer grew; `parts`: names
 *   of everything else (`status`, `queue`, `dialogs`, `todos`, `notes`, `state`, `widgets`, `all`)
 */

export class Session {
  constructor(handle, now = () => Date.now()) {
    this.handle = handle;
    this.now = now;
    this.nextKey = 1;
    this.loaded = false;
    this.seq = 0;
    this.reset();
  }

  reset() {
    /** @type {Item[]} */
    this.items = [];
    /** @type {Map<string, Tool>} */
    this.tools = new Map();
    this.byKey = new Map();
    this.state = {};
    this.running = false;
    this.runStarted = null;
    this.retry = null;
    this.compacting = null;
    this.queue = { steering: [], followUp: [], items: null };
    this.dialogs = [];
    this.todos = [];
    this.statuses = new Map();
    this.widgets = new Map();
    this.title = null;
    this.stream = null;
    this.begun = null;
    this.shells = new Map();
    /** The limit that ended the last run, if one did. */
    this.limit = null;
    /** The change of the model in the present run: `from`, `to`, `reason`. */
    this.fallback = null;
    /** Background processes by their id, oldest first. */
    this.processes = new Map();
  }

  /** @returns {Changes} */
  changes() {
    return { list: false, items: new Set(), blocks: new Map(), tools: new Set(), parts: new Set() };
  }

  /** Takes a snapshot in the place of everything. */
  load(snapshot, seq) {
    const shells = [...this.shells].filter(([, item]) => item.isOurs && item.pending);
    this.reset();
    this.seq = seq;
    this.loaded = true;
    const changes = this.changes();
    this.takeState(snapshot.state || {});
    for (const message of snapshot.messages || []) this.add(message, changes);
    for (const item of this.items) item.isOld = true;
    // Commands of ours that still run will say how they end.
    for (const [id, { message }] of shells) this.shells.set(id, this.push({ role: 'bashExecution', pending: true, shell: id, isOurs: true, message }, changes));
    if (snapshot.message) this.begin(snapshot.message, changes);
    for (const dialog of snapshot.dialogs || []) this.dialogs.push({ ...dialog, askedAt: this.now() });
    whatStands(this, snapshot, changes);
    // What had no result and nobody works on any more was stopped.
    if (!this.running) for (const tool of this.tools.values()) if (!isOver(tool)) tool.status = 'stopped';
    changes.parts.add('all');
    changes.list = true;
    return changes;
  }

  takeState(state) {
    this.state = state;
    this.running = Boolean(state.isStreaming || state.isRetrying);
    if (this.running) this.runStarted ??= this.now();
    // A page that came late does not know which retry it is.
    if (state.isRetrying) this.retry ??= { attempt: null, most: null, until: 0, error: '' };
    this.compacting = state.isCompacting ? this.compacting || 'manual' : null;
    this.todos = Array.isArray(state.todoPhases) ? state.todoPhases : [];
  }

  /** Does what an event says. Repeats change nothing. @returns {Changes|null} */
  apply(event) {
    if (typeof event.seq === 'number') {
      if (event.seq <= this.seq) return null;
      this.seq = event.seq;
    }
    const changes = this.changes();
    switch (event.type) {
      case 'message_start': this.messageStart(event.message, changes); break;
      case 'message_update': this.messageUpdate(event, changes); break;
      case 'message_end': this.messageEnd(event.message, changes); break;
      case 'tool_execution_start': this.toolStart(event, changes); break;
      case 'tool_execution_update': this.toolUpdate(event, changes); break;
      case 'tool_execution_end': this.toolEnd(event, changes); break;
      default: applyOther(this, event, changes);
    }
    return changes;
  }

  messageStart(message, changes) {
    if (!message) return;
    if (message.role === 'assistant') this.begin(message, changes);
    else if (message.role !== 'toolResult') this.begun = this.add(message, changes);
  }

  begin(message, changes) {
    const item = this.push({ role: 'assistant', streaming: true, message: { ...message, content: [] } }, changes);
    item.message.content = settle([], message.content);
    for (const block of item.message.content) this.noteCall(block, item, changes);
    this.stream = item;
  }

  messageUpdate(event, changes) {
    if (!this.stream) this.begin({ role: 'assistant', content: [], ...event.message }, changes);
    const item = this.stream;
    const kind = event.assistantMessageEvent;
    if (!kind) return;
    const index = step(item.message.content, kind, this.now());
    if (index < 0) return;
    if (event.usage) item.message.usage = event.usage;
    const block = item.message.content[index];
    this.noteCall(block, item, changes);
    if (!changes.blocks.has(item.key)) changes.blocks.set(item.key, new Set());
    changes.blocks.get(item.key).add(index);
  }

  messageEnd(message, changes) {
    if (!message) return;
    if (message.role === 'assistant') {
      const item = this.stream || this.push({ role: 'assistant', message: { content: [] } }, changes);
      item.message = { ...message, content: settle(item.message.content, message.content) };
      item.streaming = false;
      this.stream = null;
      for (const block of item.message.content) this.noteCall(block, item, changes);
      changes.items.add(item.key);
      changes.parts.add('usage');
    } else if (message.role === 'toolResult') this.takeResult(message, changes);
    else this.endOther(message, changes);
  }

  /** The end of a message that has shown itself with its start, or was in the snapshot already. */
  endOther(message, changes) {
    const { begun } = this;
    this.begun = null;
    const last = this.items[this.items.length - 1];
    const known = begun?.role === message.role ? begun
      : last?.isOld && last.message.timestamp === message.timestamp && JSON.stringify(last.message) === JSON.stringify(message) ? last : null;
    if (!known) { this.add(message, changes); return; }
    known.message = message;
    changes.items.add(known.key);
  }

  /** Adds a message that is complete. @returns {Item|undefined} */
  add(message, changes) {
    if (!message || typeof message !== 'object') return undefined;
    if (message.role === 'toolResult') { this.takeResult(message, changes); return undefined; }
    if (message.role === 'bashExecution' && this.adoptShell(message, changes)) return undefined;
    if (message.role === 'custom' && message.display === false) return undefined;
    const item = this.push({ role: String(message.role), message: { ...message } }, changes);
    if (message.role === 'assistant') {
      item.message.content = settle([], message.content);
      for (const block of item.message.content) this.noteCall(block, item, changes);
    }
    return item;
  }

  /** A shell command of ours that is shown while it runs becomes the message that it left. */
  adoptShell(message, changes) {
    const item = this.items.findLast((one) => one.role === 'bashExecution' && one.shell && !one.isAdopted && one.message.command === message.command
      && (one.pending || one.message.output === message.output));
    if (!item) return false;
    item.isAdopted = true;
    item.message = { ...message };
    item.pending = false;
    changes.items.add(item.key);
    return true;
  }

  /** What a shell command is known by: our own by the command's id, those of other pages by the agent's name for it. */
  shellName(event) {
    const id = String(event.commandId ?? event.id ?? '');
    return this.shells.has(id) || event.bashId === undefined ? id : `bash ${event.bashId}`;
  }

  /** A shell command of some page ended; one whose beginning was missed is shown all the same. */
  shellEnded(event, changes) {
    const id = this.shellName(event);
    const { output, exitCode, cancelled, truncated, fullOutputPath } = event;
    const result = { command: String(event.command ?? ''), output: event.error ? String(event.error) : String(output ?? ''), exitCode, cancelled: event.error ? true : cancelled, truncated,
      fullOutputPath, excludeFromContext: event.excludeFromContext };
    let item = this.shells.get(id);
    if (!item || !this.byKey.has(item.key)) item = this.push({ role: 'bashExecution', shell: id, message: {} }, changes);
    this.shells.delete(id);
    item.pending = false;
    item.message = { ...item.message, ...result };
    changes.items.add(item.key);
    changes.parts.add('status');
  }

  /** A shell command of ours begins. @returns {Changes} */
  startShell(id, command, excludeFromContext) {
    const changes = this.changes();
    const message = { role: 'bashExecution', command, output: '', excludeFromContext };
    this.shells.set(id, this.push({ role: 'bashExecution', pending: true, shell: id, isOurs: true, message }, changes));
    changes.parts.add('status');
    return changes;
  }

  /** It ended; null when nothing is known of it (the connection was lost). @returns {Changes} */
  endShell(id, result) {
    const changes = this.changes();
    const item = this.shells.get(id);
    this.shells.delete(id);
    changes.parts.add('status');
    if (!item || !this.byKey.has(item.key)) return changes;
    item.pending = false;
    item.message = { ...item.message, ...(result || { cancelled: true }) };
    changes.items.add(item.key);
    return changes;
  }

  push(fields, changes) {
    const item = { key: this.nextKey, ...fields };
    this.nextKey += 1;
    this.items.push(item);
    this.byKey.set(item.key, item);
    changes.list = true;
    return item;
  }

  /** Remembers a tool call of an answer, so that its card and its result find each other. */
  noteCall(block, item, changes) {
    if (!block || block.type !== 'toolCall' || !block.id) return;
    const tool = this.tool(block.id);
    tool.name = String(block.name || tool.name);
    tool.item = item.key;
    if (!block.open && block.arguments) tool.args = block.arguments;
    if (block.open) tool.json = block.json;
    else delete tool.json;
    changes.tools.add(block.id);
  }

  tool(id) {
    let tool = this.tools.get(id);
    if (!tool) {
      tool = { id, name: '', args: {}, status: 'calling', result: null };
      this.tools.set(id, tool);
    }
    return tool;
  }

  toolStart(event, changes) {
    const tool = this.tool(String(event.toolCallId));
    tool.name = String(event.toolName || tool.name);
    if (event.args) tool.args = event.args;
    tool.status = 'running';
    tool.startedAt = this.now();
    changes.tools.add(tool.id);
    this.orphan(tool, changes);
  }

  /** A call that no answer shows gets an item of its own. */
  orphan(tool, changes) {
    if (tool.item) return;
    tool.item = this.push({ role: 'tool', message: { toolCallId: tool.id } }, changes).key;
  }

  toolUpdate(event, changes) {
    const tool = this.tool(String(event.toolCallId));
    if (isOver(tool)) return;
    tool.name = String(event.toolName || tool.name);
    tool.status = 'running';
    tool.result = event.partialResult;
    this.orphan(tool, changes);
    changes.tools.add(tool.id);
  }

  toolEnd(event, changes) {
    const tool = this.tool(String(event.toolCallId));
    tool.name = String(event.toolName || tool.name);
    tool.status = event.isError ? 'error' : 'done';
    tool.result = event.result;
    tool.tookMs = event.durationMs ?? (tool.startedAt ? this.now() - tool.startedAt : undefined);
    this.orphan(tool, changes);
    changes.tools.add(tool.id);
  }

  takeResult(message, changes) {
    const tool = this.tool(String(message.toolCallId));
    tool.name = String(message.toolName || tool.name);
    tool.status = message.isError ? 'error' : 'done';
    tool.result = { content: message.content, details: message.details };
    this.orphan(tool, changes);
    changes.tools.add(tool.id);
  }

  /** How many messages the agent counts: to see whether something was missed. */
  get messageCount() {
    let count = 0;
    for (const item of this.items) if (item.role !== 'tool' && item.role !== 'error' && item.role !== 'notice' && item.role !== 'result' && !item.streaming && !item.pending) count += 1;
    for (const tool of this.tools.values()) if (isOver(tool) && tool.status !== 'stopped') count += 1;
    return count;
  }

  /** What the user said, newest first: for the up key. */
  get said() {
    return this.items.filter((item) => item.role === 'user').reverse();
  }
}

/** Has a tool call come to its end? */
export function isOver(tool) {
  return tool.status === 'done' || tool.status === 'error' || tool.status === 'stopped';
}
