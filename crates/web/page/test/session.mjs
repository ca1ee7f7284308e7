// The model of a session: what events make of it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Session } from '../state/session.js';
import { partialMember } from '../state/blocks.js';

const user = (text, timestamp = 1) => ({ role: 'user', content: [{ type: 'text', text }], timestamp });
const answer = (content, more = {}) => ({ role: 'assistant', content, timestamp: 2, stopReason: 'stop', ...more });

function made() {
  let now = 0;
  let seq = 0;
  const session = new Session('', () => now);
  session.load({ state: { sessionId: 's' }, messages: [] }, 0);
  return { session, wait: (ms) => { now += ms; }, say: (event) => { seq += 1; return session.apply({ ...event, seq }); },
    delta: (type, contentIndex, fields) => { seq += 1; return session.apply({ type: 'message_update', seq, assistantMessageEvent: { type, contentIndex, ...fields } }); } };
}

test('a message streams in and ends', () => {
  const { session, say, delta } = made();
  say({ type: 'agent_start' });
  say({ type: 'message_start', message: user('hi') });
  say({ type: 'message_end', message: user('hi') });
  say({ type: 'message_start', message: answer([]) });
  delta('text_start', 0);
  delta('text_delta', 0, { delta: 'Hel' });
  const changes = delta('text_delta', 0, { delta: 'lo' });
  assert.deepEqual([...changes.blocks.values()].map((set) => [...set]), [[0]]);
  assert.equal(session.items.length, 2, 'the user’s message is there once');
  assert.equal(session.items[1].message.content[0].text, 'Hello');
  assert.equal(session.items[1].streaming, true);
  say({ type: 'message_end', message: answer([{ type: 'text', text: 'Hello!' }]) });
  say({ type: 'agent_end', messages: [], willRetry: false });
  assert.equal(session.items[1].message.content[0].text, 'Hello!');
  assert.equal(session.running, false);
  assert.equal(session.messageCount, 2);
});

test('repeats change nothing', () => {
  const { session, delta } = made();
  delta('text_delta', 0, { delta: 'a' });
  assert.equal(session.apply({ type: 'message_update', seq: 1, assistantMessageEvent: { type: 'text_delta', contentIndex: 0, delta: 'a' } }), null);
  assert.equal(session.items[0].message.content[0].text, 'a');
});

test('a page that came late goes on from the answer in the snapshot', () => {
  const session = new Session('');
  session.load({ state: { sessionId: 's', isStreaming: true }, messages: [user('hi')], message: answer([{ type: 'text', text: 'Once' }]) }, 10);
  session.apply({ type: 'message_update', seq: 11, assistantMessageEvent: { type: 'text_delta', contentIndex: 0, delta: ' more' } });
  assert.equal(session.items[1].message.content[0].text, 'Once more');
  assert.equal(session.running, true);
});

test('two calls in one message find their own results', () => {
  const { session, say } = made();
  const calls = ['a', 'b'].map((id) => ({ type: 'toolCall', id, name: 'bash', arguments: { command: id } }));
  say({ type: 'message_start', message: answer([]) });
  say({ type: 'message_end', message: answer(calls, { stopReason: 'toolUse' }) });
  say({ type: 'tool_execution_start', toolCallId: 'a', toolName: 'bash', args: {} });
  say({ type: 'tool_execution_start', toolCallId: 'b', toolName: 'bash', args: {} });
  say({ type: 'tool_execution_end', toolCallId: 'b', toolName: 'bash', result: { content: [] }, isError: false });
  say({ type: 'tool_execution_update', toolCallId: 'a', toolName: 'bash', partialResult: { content: [{ type: 'text', text: 'so far' }] } });
  assert.equal(session.tools.get('a').status, 'running');
  assert.equal(session.tools.get('b').status, 'done');
  say({ type: 'message_end', message: { role: 'toolResult', toolCallId: 'a', toolName: 'bash', content: [], isError: true } });
  assert.equal(session.tools.get('a').status, 'error');
  assert.equal(session.items.length, 1, 'results are shown at their calls');
});

test('a call that nobody knows gets a place', () => {
  const { session, say } = made();
  say({ type: 'tool_execution_start', toolCallId: 'x', toolName: 'ls', args: {} });
  assert.equal(session.items[0].role, 'tool');
});

test('thinking has a length', () => {
  const { session, wait, delta, say } = made();
  delta('thinking_start', 0);
  wait(3200);
  delta('thinking_end', 0, { content: 'hm' });
  say({ type: 'message_end', message: answer([{ type: 'thinking', thinking: 'hm' }]) });
  assert.equal(session.items[0].message.content[0].took, 3200);
});

test('failure, retry, giving up', () => {
  const { session, say } = made();
  say({ type: 'agent_start' });
  say({ type: 'message_end', message: answer([], { stopReason: 'error', errorMessage: '529' }) });
  say({ type: 'agent_end', messages: [], willRetry: true });
  assert.equal(session.running, true);
  say({ type: 'auto_retry_start', attempt: 1, maxAttempts: 3, delayMs: 2000, errorMessage: '529' });
  assert.equal(session.retry.until, 2000);
  const changes = say({ type: 'auto_retry_end', success: false, attempt: 3, finalError: '529 again' });
  assert.equal(session.retry, null);
  assert.equal(session.running, false);
  assert.match(changes.notes[0].text, /529 again/);
});

test('a retry that began holds the run', () => {
  const { session, say } = made();
  say({ type: 'auto_retry_start', attempt: 1, maxAttempts: 3, delayMs: 1, errorMessage: 'x' });
  say({ type: 'agent_start' });
  assert.equal(session.retry, null);
  assert.equal(session.running, true);
});

test('questions come, are answered elsewhere, and are in the snapshot', () => {
  const { session, say } = made();
  say({ type: 'extension_ui_request', id: 'q1', method: 'confirm', title: 'Sure?' });
  say({ type: 'extension_ui_request', id: 'q1', method: 'confirm', title: 'Sure?' });
  assert.equal(session.dialogs.length, 1);
  say({ type: 'extension_ui_request', id: 'c', method: 'cancel', targetId: 'q1' });
  assert.equal(session.dialogs.length, 0);
  session.load({ state: {}, messages: [], dialogs: [{ id: 'q2', method: 'input' }] }, 5);
  assert.equal(session.dialogs[0].id, 'q2');
});

test('status, widgets, queue', () => {
  const { session, say } = made();
  say({ type: 'extension_ui_request', method: 'setStatus', statusKey: 'a', statusText: 'x' });
  say({ type: 'extension_ui_request', method: 'setWidget', widgetKey: 'w', widgetLines: ['1', '2'], widgetPlacement: 'belowEditor' });
  say({ type: 'queue_update', steering: ['s'], followUp: [] });
  assert.equal(session.statuses.get('a'), 'x');
  assert.deepEqual(session.widgets.get('w'), { lines: ['1', '2'], below: true });
  assert.deepEqual(session.queue.steering, ['s']);
  say({ type: 'extension_ui_request', method: 'setStatus', statusKey: 'a' });
  assert.equal(session.statuses.size, 0);
});

test('a shell command of ours is there while it runs', () => {
  const { session, say } = made();
  session.startShell('id1', 'make', false);
  say({ type: 'bash_execution_update', id: 'id1', delta: 'cc\n' });
  assert.equal(session.items.length, 1);
  assert.equal(session.items[0].message.output, 'cc\n');
  session.endShell('id1', { output: 'cc\n', exitCode: 0, cancelled: false });
  assert.equal(session.items[0].pending, false);
  assert.equal(session.items[0].message.exitCode, 0);
});

test('events of any shape break nothing', () => {
  const { session, say } = made();
  for (const event of [{ type: 'message_start' }, { type: 'message_end', message: null }, { type: 'message_update' }, { type: 'tool_execution_end' }, { type: 'unknown' },
    { type: 'message_update', assistantMessageEvent: { type: 'text_delta', contentIndex: -1 } }, { type: 'message_update', assistantMessageEvent: { type: 'text_delta', contentIndex: 1e9 } },
    { type: 'message_end', message: { role: 'toolResult' } }, { type: 'message_end', message: { role: '__proto__', content: 3 } }, { type: 'queue_update' }]) say(event);
  assert.ok(session.items.length < 8);
});

test('arguments can be read while they arrive', () => {
  assert.equal(partialMember('{"command":"ls -la \\"x', ['path', 'command']), 'ls -la "x');
  assert.equal(partialMember('{"comm', ['command']), '');
});

test('shell commands of other pages are shown from beginning to end', () => {
  const session = new Session('');
  session.load({ state: {}, messages: [] }, 0);
  session.startShell('mine', 'make', false);
  session.apply({ type: 'bash_execution_start', id: 'mine', bashId: 'b1', command: 'make' });
  session.apply({ type: 'bash_execution_start', id: '1', bashId: 'b2', command: 'ls' });
  session.apply({ type: 'bash_execution_start', id: '1', bashId: 'b3', command: 'pwd' });
  session.apply({ type: 'bash_execution_update', id: '1', bashId: 'b2', delta: 'one' });
  session.apply({ type: 'bash_execution_update', id: 'mine', bashId: 'b1', delta: 'so' });
  assert.deepEqual(session.items.map((item) => [item.message.command, item.message.output, item.pending]), [['make', 'so', true], ['ls', 'one', true], ['pwd', '', true]]);
  session.apply({ type: 'bash_execution_end', id: '1', bashId: 'b2', command: 'ls', output: 'one two', exitCode: 0, cancelled: false, truncated: false });
  session.apply({ type: 'bash_execution_end', id: 'mine', bashId: 'b1', command: 'make', output: 'so it is', exitCode: 2, cancelled: false, truncated: false });
  session.endShell('mine', { output: 'so it is', exitCode: 2 });
  session.apply({ type: 'bash_execution_end', id: '9', bashId: 'b9', command: 'missed', output: 'x', exitCode: 0 });
  session.apply({ type: 'bash_execution_end', id: '1', bashId: 'b3', command: 'pwd', error: 'No shell' });
  assert.deepEqual(session.items.map((item) => [item.message.command, item.message.output, item.pending, item.message.exitCode]),
    [['make', 'so it is', false, 2], ['ls', 'one two', false, 0], ['pwd', 'No shell', false, undefined], ['missed', 'x', false, 0]]);
  session.apply({ type: 'message_end', message: { role: 'bashExecution', command: 'ls', output: 'one two', exitCode: 0, timestamp: 1 } });
  assert.equal(session.items.length, 4, 'its message is the same');
});

test('a command of ours outlives a conversation that is loaded anew', () => {
  const session = new Session('');
  session.load({ state: {}, messages: [] }, 0);
  session.startShell('mine', 'make', false);
  session.load({ state: {}, messages: [{ role: 'user', content: 'x', timestamp: 1 }] }, 5);
  assert.deepEqual(session.items.map((item) => item.role), ['user', 'bashExecution']);
  session.endShell('mine', { output: 'done', exitCode: 0 });
  assert.deepEqual([session.items[1].pending, session.items[1].message.output], [false, 'done']);
});

test('a snapshot says what stands: retry, queue, tools and commands that run, what extensions show', () => {
  const session = new Session('', () => 1000);
  const frames = [{ id: '1', method: 'setStatus', statusKey: 'git', statusText: 'main' }, { id: '2', method: 'setWidget', widgetKey: 'w', widgetLines: ['a'] }, { id: '3', method: 'setTitle', title: 'T' }];
  session.load({ state: { isStreaming: true }, messages: [{ role: 'assistant', content: [{ type: 'toolCall', id: 'c', name: 'bash', arguments: {} }], timestamp: 1 }],
    retry: { attempt: 2, maxAttempts: 3, delayMs: 4000, errorMessage: 'busy' }, queue: { steering: ['a'], followUp: ['b'] },
    tools: [{ toolCallId: 'c', toolName: 'bash', args: { command: 'make' }, partialResult: { content: [{ type: 'text', text: 'half' }] } }],
    bash: [{ id: '1', bashId: 'b1', command: 'ls', output: 'so far' }], shown: frames }, 9);
  assert.deepEqual(session.retry, { attempt: 2, most: 3, until: 5000, error: 'busy' });
  assert.deepEqual(session.queue, { steering: ['a'], followUp: ['b'], items: null });
  assert.deepEqual([session.tools.get('c').status, session.tools.get('c').args.command], ['running', 'make']);
  assert.deepEqual(session.items.map((item) => [item.role, Boolean(item.pending)]), [['assistant', false], ['bashExecution', true]]);
  session.apply({ type: 'bash_execution_update', id: '1', bashId: 'b1', delta: ', more' });
  assert.equal(session.items[1].message.output, 'so far, more');
  assert.deepEqual([session.statuses.get('git'), session.widgets.get('w').lines, session.title], ['main', ['a'], 'T']);
  session.load({ state: {}, messages: [] }, 12);
  assert.deepEqual([session.statuses.size, session.widgets.size, session.title, session.retry], [0, 0, null, null], 'what is not said does not stand');
});
