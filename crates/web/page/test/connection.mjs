// The connection: waits that grow, waking up, answers that find their command, commands that are lost with it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CommandError, Connection } from '../net/connection.js';

function world() {
  const w = { now: 0, timers: [], sockets: [], phases: [], events: [], opened: [] };
  class Socket {
    constructor(address) { this.address = address; this.sent = []; w.sockets.push(this); }
    send(text) { this.sent.push(JSON.parse(text)); }
    close() { this.closed = true; }
  }
  w.refused = null;
  w.connection = new Connection({
    address: () => 'ws://here/ws', Socket, now: () => w.now, random: () => 0.5,
    refusal: async () => w.refused,
    timers: { set: (act, ms) => { const timer = { act, at: w.now + ms }; w.timers.push(timer); return timer; }, clear: (timer) => { w.timers = w.timers.filter((one) => one !== timer); } },
    onphase: (phase, retryAt) => w.phases.push([phase, retryAt]), onevent: (event) => w.events.push(event), onopen: (again) => w.opened.push(again),
  });
  w.pass = (ms) => {
    const end = w.now + ms;
    for (;;) {
      const due = w.timers.filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at)[0];
      if (!due) break;
      w.now = due.at;
      w.timers = w.timers.filter((one) => one !== due);
      due.act();
    }
    w.now = end;
  };
  w.last = () => w.sockets.at(-1);
  return w;
}
const settle = () => new Promise((resolve) => { setImmediate(resolve); });

test('waits half a second, twice that, and at most ten seconds', async () => {
  const w = world();
  w.connection.connect();
  const waits = [];
  for (let i = 0; i < 8; i += 1) {
    w.last().onclose({ code: 1006 });
    await settle();
    waits.push(w.phases.at(-1)[1] - w.now);
    w.pass(waits.at(-1));
  }
  assert.deepEqual(waits, [500, 1000, 2000, 4000, 8000, 10000, 10000, 10000]);
  assert.equal(w.sockets.length, 9);
});

test('the waits begin anew after a connection', async () => {
  const w = world();
  w.connection.connect();
  w.last().onclose({ code: 1006 });
  await settle();
  w.pass(500);
  w.last().onopen();
  w.last().onclose({ code: 1006 });
  assert.equal(w.phases.at(-1)[0], 'lost');
  assert.equal(w.phases.at(-1)[1] - w.now, 500);
  w.pass(500);
  w.last().onopen();
  assert.deepEqual(w.opened, [false, true]);
});

test('a refusal for want of a token stops the attempts', async () => {
  const w = world();
  w.refused = 'denied';
  w.connection.connect();
  w.last().onclose({ code: 1006 });
  await settle();
  assert.equal(w.phases.at(-1)[0], 'denied');
  w.pass(60000);
  assert.equal(w.sockets.length, 1);
});

test('waking connects at once, and asks whether anybody is there when it is connected', async () => {
  const w = world();
  w.connection.connect();
  w.last().onclose({ code: 1006 });
  await settle();
  w.connection.wake();
  assert.equal(w.sockets.length, 2);
  w.last().onopen();
  w.connection.wake();
  assert.equal(w.last().sent.at(-1).type, 'list_open_sessions', 'no session has to answer');
  w.pass(4000);
  await settle();
  assert.equal(w.sockets.length, 3, 'nobody answered');
});

test('a silent connection is asked by itself', async () => {
  const w = world();
  w.connection.connect();
  w.last().onopen();
  const asked = w.last();
  w.pass(25000);
  assert.equal(asked.sent.at(-1)?.type, 'list_open_sessions');
  asked.onmessage({ data: JSON.stringify({ type: 'response', id: asked.sent.at(-1).id, success: true, data: {} }) });
  await settle();
  w.pass(10000);
  assert.equal(w.sockets.length, 1);
});

test('answers find their command; a refusal is an error of its own kind', async () => {
  const w = world();
  w.connection.connect();
  w.last().onopen();
  const good = w.connection.request({ type: 'get_state' });
  const bad = w.connection.request({ type: 'set_model' });
  const [first, second] = w.last().sent;
  assert.notEqual(first.id, second.id);
  w.last().onmessage({ data: JSON.stringify({ type: 'response', id: second.id, success: false, error: 'No such model' }) });
  w.last().onmessage({ data: JSON.stringify({ type: 'response', id: first.id, success: true, data: { a: 1 } }) });
  assert.deepEqual(await good, { a: 1 });
  await assert.rejects(bad, (error) => error instanceof CommandError && error.message === 'No such model');
});

test('commands under way fail when the connection is lost, and cannot be sent without one', async () => {
  const w = world();
  w.connection.connect();
  w.last().onopen();
  const asked = w.connection.request({ type: 'prompt', message: 'x' });
  w.last().onclose({ code: 1006 });
  await assert.rejects(asked, /lost/);
  await assert.rejects(w.connection.request({ type: 'get_state' }), /no connection/);
});

test('reading too slowly connects again at once; an agent that ends is waited for', () => {
  const w = world();
  w.connection.connect();
  w.last().onopen();
  w.last().onclose({ code: 1013 });
  assert.equal(w.sockets.length, 2);
  w.last().onopen();
  w.last().onclose({ code: 1001 });
  assert.equal(w.phases.at(-1)[0], 'ended');
});

test('the last number is remembered; lines that are no objects are passed over', () => {
  const w = world();
  w.connection.connect();
  w.last().onopen();
  for (const data of ['{"type":"a","seq":4}', 'no json', 'null', '3', '{"type":"b","seq":5}']) w.last().onmessage({ data });
  assert.equal(w.connection.lastSeq, 5);
  assert.deepEqual(w.events.map((event) => event.type), ['a', 'b']);
});

test('events before the answer to a replay are left out, except dialogs: they come again behind those that were missed', async () => {
  const w = world();
  const say = (frame) => w.last().onmessage({ data: JSON.stringify(frame) });
  const again = () => { w.last().onclose({ code: 1013 }); w.last().onopen(); };
  w.connection.connect();
  w.last().onopen();
  say({ type: 'a', seq: 4 });
  again();
  w.connection.request({ type: 'replay', after: w.connection.lastSeq });
  say({ type: 'c', seq: 6 });
  say({ type: 'extension_ui_request', method: 'confirm', seq: 7 });
  assert.equal(w.connection.lastSeq, 4);
  say({ type: 'response', id: w.last().sent.at(-1).id, success: true, data: { events: 2 } });
  for (const frame of [{ type: 'b', seq: 5 }, { type: 'c', seq: 6 }]) say(frame);
  assert.deepEqual(w.events.map((event) => [event.type, event.seq]), [['a', 4], ['extension_ui_request', undefined], ['b', 5], ['c', 6]]);
  const lost = w.connection.request({ type: 'replay', after: 6 });
  again();
  await assert.rejects(lost, /lost/);
  say({ type: 'd', seq: 7 });
  assert.equal(w.connection.lastSeq, 7);
});

test('an attempt without an answer is given up', async () => {
  const w = world();
  w.connection.connect();
  w.pass(40000);
  await settle();
  assert.equal(w.phases.at(-1)[0], 'lost');
  w.pass(500);
  assert.equal(w.sockets.length, 2);
  w.last().onopen();
  w.pass(40000);
  assert.equal(w.phases.at(-1)[0], 'open');
});
