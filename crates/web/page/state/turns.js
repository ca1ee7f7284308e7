// What belongs together in a conversation: a turn is what the user said and all that came of it; a run of steps is the tool calls
// in it that no text interrupts. Pure: reads a session's items and tools, changes nothing.

import { isOver } from './session.js';

/** So many calls in a row are folded to one line when they are over. */
export const FOLDED_FROM = 4;

/**
 * @typedef {{ id: string, tools: string[], head: { item: number, block: number }, hides: Map<number, Set<number>>, isOver: boolean,
 *   isLast: boolean }} Run `hides`: which blocks of which items are not shown while it is folded
 * @typedef {{ from: number, to: number, runs: Run[], last: number|null, tools: string[], tookMs: number|null, cost: number,
 *   isOver: boolean }} Turn `last`: the key of its last answer
 */

/** All turns of a conversation; those before the last stay as they were found. */
export class Turns {
  /** @param {import('./session.js').Session} session */
  constructor(session) {
    this.session = session;
    this.list = [];
    /** The turn and the runs that an item belongs to. */
    this.turnOf = new Map();
    this.runsOf = new Map();
    this.update();
  }

  /** Looks at what came since. @returns {Turn[]} the turns that may be other ones now */
  update() {
    const { items } = this.session;
    const last = this.list.pop();
    const fresh = [];
    let from = last ? last.from : 0;
    while (from < items.length) {
      let to = from + 1;
      while (to < items.length && items[to].role !== 'user') to += 1;
      const turn = turnAt(this.session, from, to);
      this.list.push(turn);
      fresh.push(turn);
      this.note(turn);
      from = to;
    }
    return fresh;
  }

  note(turn) {
    const { items } = this.session;
    for (let i = turn.from; i < turn.to; i += 1) this.runsOf.delete(items[i].key);
    for (const run of turn.runs) {
      for (const key of run.hides.keys()) this.runsOf.set(key, [...(this.runsOf.get(key) || []), run]);
    }
    for (let i = turn.from; i < turn.to; i += 1) this.turnOf.set(items[i].key, turn);
  }
}

/** @returns {Turn} */
function turnAt(session, from, to) {
  const items = session.items.slice(from, to);
  const isOpen = session.running && to === session.items.length;
  const answers = items.filter((item) => item.role === 'assistant');
  const runs = runsIn(session, items, isOpen);
  const tools = answers.flatMap((item) => item.message.content.filter((block) => block.type === 'toolCall' && block.id).map((block) => block.id));
  const begin = items[0].role === 'user' ? items[0].message.timestamp : null;
  const last = answers.at(-1);
  const end = last?.message.timestamp;
  return {
    from, to, runs, tools, last: last ? last.key : null, isOver: !isOpen,
    tookMs: typeof begin === 'number' && typeof end === 'number' && end > begin ? end - begin : null,
    cost: answers.reduce((sum, item) => sum + (Number(item.message.usage?.cost?.total) || 0), 0),
  };
}

/** @returns {Run[]} */
function runsIn(session, items, isOpen) {
  const runs = [];
  let run = null;
  // Thoughts belong to a run only when more calls follow them.
  let passengers = [];
  const end = () => { run = null; passengers = []; };
  for (const item of items) {
    if (item.role !== 'assistant') { end(); continue; }
    item.message.content.forEach((block, index) => {
      if (!block) return;
      if (block.type === 'toolCall' && block.id) {
        if (!run) {
          run = { id: block.id, tools: [], head: { item: item.key, block: index }, hides: new Map(), isOver: true, isLast: false };
          runs.push(run);
          passengers = [];
        }
        for (const [key, at] of [...passengers, [item.key, index]]) hide(run, key, at);
        passengers = [];
        run.tools.push(block.id);
      } else if (block.type === 'text' && block.text?.trim()) end();
      else if (run) passengers.push([item.key, index]);
    });
    if (['error', 'aborted', 'length'].includes(item.message.stopReason) && !item.streaming) end();
  }
  if (run && isOpen) run.isLast = true;
  for (const one of runs) one.isOver = !one.isLast && one.tools.every((id) => { const tool = session.tools.get(id); return !tool || isOver(tool); });
  return runs.filter((one) => one.tools.length >= FOLDED_FROM);
}

/** Is nothing of an item left to see when these runs are folded? @param {Run[]} runs @param {Turn} turn */
export function isFolded(item, runs, turn) {
  if (!runs.length || item.streaming || turn.last === item.key || runs.some((run) => run.head.item === item.key)) return false;
  if (['error', 'aborted', 'length'].includes(item.message.stopReason)) return false;
  return item.message.content.every((block, index) => runs.some((run) => run.hides.get(item.key)?.has(index)) || (block?.type === 'text' && !block.text.trim()));
}

function hide(run, key, index) {
  const blocks = run.hides.get(key);
  if (blocks) blocks.add(index);
  else run.hides.set(key, new Set([index]));
}

const KINDS = {
  read: 'read', bash: 'ran', shell: 'ran', edit: 'changed', write: 'changed', multiedit: 'changed', grep: 'searched', find: 'searched', glob: 'searched', ls: 'searched',
};

/** What the calls of a run did, in a few words, and how many of them failed. */
export function summary(session, run) {
  const found = { read: new Set(), changed: new Set(), searched: 0, ran: 0, other: new Map() };
  let failed = 0;
  for (const id of run.tools) {
    const tool = session.tools.get(id);
    if (!tool) continue;
    if (tool.status === 'error') failed += 1;
    const name = tool.name.toLowerCase();
    const kind = Object.hasOwn(KINDS, name) ? KINDS[name] : 'other';
    if (kind === 'read' || kind === 'changed') found[kind].add(String(tool.args?.path ?? tool.args?.file_path ?? id));
    else if (kind === 'other') found.other.set(tool.name, (found.other.get(tool.name) || 0) + 1);
    else found[kind] += 1;
  }
  const many = (count, one, more) => (count === 1 ? one : more.replace('#', String(count)));
  const words = [
    found.read.size && many(found.read.size, 'read a file', 'read # files'), found.searched && many(found.searched, 'searched', 'searched # times'),
    found.changed.size && many(found.changed.size, 'changed a file', 'changed # files'), found.ran && many(found.ran, 'ran a command', 'ran # commands'),
    ...[...found.other].slice(0, 3).map(([name, count]) => `${name.slice(0, 40)}${count > 1 ? ` × ${count}` : ''}`), found.other.size > 3 && 'other tools',
  ].filter(Boolean);
  return { words: words.join(', '), failed };
}

/** The files that a turn changed, in the order they were touched: each with the calls that did. */
export function changedFiles(session, turn) {
  const files = new Map();
  for (const id of turn.tools) {
    const tool = session.tools.get(id);
    if (!tool || tool.status !== 'done' || !['edit', 'write', 'multiedit'].includes(tool.name.toLowerCase())) continue;
    const path = tool.args?.path ?? tool.args?.file_path;
    if (typeof path !== 'string' || !path) continue;
    files.set(path, [...(files.get(path) || []), tool]);
  }
  return files;
}
