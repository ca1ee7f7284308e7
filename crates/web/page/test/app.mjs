// The app: loads that fail, which session is shown, and what it tells of sessions that are not shown.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { App } from '../state/app.js';

/** A page whose first session is loaded up to the event 3. */
function world() {
  const w = { sockets: [] };
  class Socket {
    constructor() { this.sent = []; w.sockets.push(this); }
    send(text) { this.sent.push(JSON.parse(text)); }
    close() {}
  }
  w.app = new App({ address: () => 'ws://here/ws', Socket });
  w.app.connection.connect();
  w.socket = w.sockets[0];
  w.say = (frame) => w.socket.onmessage({ data: JSON.stringify(frame) });
  w.socket.onopen();
  w.session = w.app.sessionOf('');
  w.session.load({ state: { sessionId: 's' }, messages: [] }, 3);
  w.loading = w.app.load('');
  w.say({ type: 'message_end', seq: 4, message: { role: 'user', content: 'Hi', timestamp: 1 } });
  return w;
}

test('a load that is lost with the connection is made up for after it', async () => {
  const w = world();
  w.socket.onclose({ code: 1006 });
  await assert.rejects(w.loading, /lost/);
  // The next connection asks for events after the last one that came, which this session has not taken.
  assert.deepEqual([w.app.connection.lastSeq, w.session.seq, w.session.loaded], [4, 3, false]);
  w.app.connection.close();
});

test('a refused load leaves the session with what has waited', async () => {
  const w = world();
  const { id } = w.socket.sent.find((command) => command.type === 'replay');
  assert.equal(w.session.items.length, 0);
  w.say({ type: 'response', id, success: false, error: 'Too many commands wait' });
  await assert.rejects(w.loading, /Too many/);
  assert.deepEqual([w.session.loaded, w.session.items.length], [true, 1]);
  w.app.connection.close();
});

test('of a session that is not loaded, only questions are told', () => {
  const w = world();
  const told = [];
  w.app.on('elsewhere', ({ event }) => told.push(event.method));
  for (const method of ['setStatus', 'notify', 'cancel', 'confirm']) w.say({ type: 'extension_ui_request', session: 's1', method, id: method });
  assert.deepEqual(told, ['confirm']);
  w.loading.catch(() => {});
  w.app.connection.close();
});

test('commands go to the session that is shown while others load', async () => {
  const w = world();
  const answer = (session, end) => {
    const { id } = w.socket.sent.findLast((command) => command.type === 'replay' && command.session === session);
    w.say({ type: 'response', id, ...end });
  };
  const loaded = { success: true, data: { snapshot: { state: {}, messages: [] }, lastSeq: 4 } };
  answer(undefined, loaded);
  await w.loading;
  const shown = [];
  w.app.on('show', ({ handle }) => shown.push(handle));
  const slow = w.app.show('slow');
  assert.equal(w.app.current, '');
  const fast = w.app.show('fast');
  answer('fast', loaded);
  await fast;
  answer('slow', loaded);
  await slow;
  assert.deepEqual([w.app.current, shown], ['fast', ['fast']]);
  const refused = w.app.show('gone');
  answer('gone', { success: false, error: 'There is no session "gone"' });
  await assert.rejects(refused, /no session/);
  assert.equal(w.app.current, 'fast');
  w.app.connection.close();
});
