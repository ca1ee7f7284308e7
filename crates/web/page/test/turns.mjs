// Turns and runs of steps: what is folded together, what it is called, which files a turn changed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Session } from '../state/session.js';
import { Turns, changedFiles, summary } from '../state/turns.js';

const call = (id, name = 'read', args = { path: id }) => ({ type: 'toolCall', id, name, arguments: args });
const says = (...content) => ({ role: 'assistant', content: content.map((one) => (typeof one === 'string' ? { type: 'text', text: one } : one)), stopReason: 'stop', timestamp: 9000, usage: { cost: { total: 0.25 } } });
const result = (id, name = 'read', more = {}) => ({ role: 'toolResult', toolCallId: id, toolName: name, content: [], isError: false, ...more });
const asks = (text) => ({ role: 'user', content: text, timestamp: 1000 });
const thought = { type: 'thinking', thinking: 'hm' };

function session(messages, state = {}) {
  const made = new Session('');
  made.load({ state, messages }, 0);
  return made;
}
const four = ['a', 'b', 'c', 'd'];
const steps = [...four.map((id) => says(call(id))), ...four.map((id) => result(id))];

test('calls that no text interrupts are one run; few calls are none', () => {
  const turns = new Turns(session([asks('x'), ...steps, says('done'), asks('y'), says(call('e'), call('f')), result('e'), result('f'), says('also')]));
  assert.deepEqual(turns.list.map((turn) => turn.runs.map((run) => run.tools)), [[four], []]);
  assert.equal(turns.list[0].tookMs, 8000);
  assert.equal(turns.list[0].cost, 1.25);
  assert.equal(turns.list[0].runs[0].isOver, true);
});

test('a text ends a run, and what is thought before it is not part of it', () => {
  const made = session([asks('x'), says(thought, call('a')), says(thought, call('b')), says(call('c'), call('d')), says(thought, 'so', call('e'))]);
  const [run] = new Turns(made).list[0].runs;
  assert.deepEqual(run.tools, four);
  const keys = made.items.map((item) => item.key);
  assert.deepEqual([...run.hides].map(([key, blocks]) => [keys.indexOf(key), [...blocks]]), [[1, [1]], [2, [0, 1]], [3, [0, 1]]]);
  assert.equal(run.head.block, 1, 'the first thought stays');
});

test('the last run of an agent that works is not over', () => {
  const made = session([asks('x'), ...steps], { isStreaming: true });
  const turns = new Turns(made);
  assert.equal(turns.list[0].runs[0].isOver, false);
  assert.equal(turns.list[0].isOver, false);
  made.apply({ type: 'message_end', message: says('done') });
  turns.update();
  assert.equal(turns.list[0].runs[0].isOver, true, 'a text came after it');
  made.apply({ type: 'agent_end', messages: [] });
  made.apply({ type: 'message_start', message: asks('next') });
  turns.update();
  assert.deepEqual(turns.list.map((turn) => turn.to - turn.from), [6, 1]);
});

test('a summary counts by what was done', () => {
  const made = session([asks('x'), says(call('a'), call('b', 'read', { path: 'a' }), call('c', 'bash', { command: 'ls' }), call('d', 'bash', { command: 'x' }), call('e', 'edit', { path: 'q' }), call('f', 'weather', {})),
    result('c', 'bash', { isError: true })]);
  const [run] = new Turns(made).list[0].runs;
  assert.deepEqual(summary(made, run), { words: 'read a file, changed a file, ran 2 commands, weather', failed: 1 });
});

test('the files of a turn are those whose change was done', () => {
  const made = session([asks('x'), says(call('a', 'edit', { path: 'one' }), call('b', 'write', { path: 'two', content: 'x' }), call('c', 'edit', { path: 'one' }), call('d', 'edit', { path: 'three' }), call('e', 'edit', { path: 7 })),
    result('a', 'edit'), result('b', 'write'), result('c', 'edit'), result('d', 'edit', { isError: true }), result('e', 'edit')]);
  const files = changedFiles(made, new Turns(made).list[0]);
  assert.deepEqual([...files].map(([path, tools]) => [path, tools.map((tool) => tool.id)]), [['one', ['a', 'c']], ['two', ['b']]]);
});
