// Stands between the page and the agent and spoils what the agent says, one fault at a time: each must be noticed by some check, or the
// checks are worth nothing. A fault gets a frame and gives what is passed on instead: a frame, several, or text that is no frame.

import { createServer, request as ask } from 'node:http';
import { connect } from 'node:net';

const answer = (kind, change) => (frame) => { if (frame.type === 'response' && frame.command === kind && frame.success) change(frame.data); return frame; };
const drop = (is) => (frame) => (is(frame) ? [] : frame);
const without = (name) => drop((frame) => frame.type === name);
const delta = (frame) => frame.assistantMessageEvent?.type;

export const FAULTS = {
  nothing: (frame) => frame,
  'no session_changed': without('session_changed'),
  'session_changed after its answer': () => {
    let kept = [];
    return (frame) => {
      if (frame.type === 'session_changed') { kept = [frame]; return []; }
      const out = [frame, ...(/_session$/.test(frame.command) ? kept : [])];
      if (out.length > 1) kept = [];
      return out;
    };
  },
  'no ids': (frame) => { if (frame.type === 'response') delete frame.id; return frame; },
  'answers come twice': (frame) => (frame.type === 'response' ? [frame, frame] : frame),
  'events with ids': (frame) => (frame.type === 'agent_start' ? { ...frame, id: 'req_1' } : frame),
  'share of the context from 0 to 1': answer('get_context_usage', (data) => { if (data.usage) data.usage.percent /= 100; }),
  'no end of tools': without('tool_execution_end'),
  'no agent_end': without('agent_end'),
  'no history': answer('get_messages', (data) => { data.messages = []; }),
  'no text': drop((frame) => delta(frame) === 'text_delta'),
  'no thinking': drop((frame) => delta(frame) === 'thinking_delta'),
  'oldest session first': answer('list_sessions', (data) => { data.sessions.reverse(); }),
  'an unknown part in history': answer('get_messages', (data) => { for (const one of data.messages) if (one.role === 'assistant') one.content.push({ type: 'mystery' }); }),
  'no error of tools': (frame) => (frame.type === 'tool_execution_end' ? { ...frame, isError: false } : frame),
  'no call at its end': (frame) => { if (delta(frame) === 'toolcall_end') frame.assistantMessageEvent.toolCall = { type: 'toolCall' }; return frame; },
  'times as text': (frame) => { if (frame.message) frame.message.timestamp = String(frame.message.timestamp); return frame; },
  'not JSON': (frame) => (frame.type === 'agent_end' ? ['oops', frame] : frame),
  'no answer to abort': drop((frame) => frame.type === 'response' && frame.command === 'abort'),
};

/** Frames out of bytes of a server: they are not masked. */
function reader(onframe) {
  let rest = Buffer.alloc(0);
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      if (rest.length < 2) return;
      let [size, at] = [rest[1] & 127, 2];
      if (size === 126) { if (rest.length < 4) return; size = rest.readUInt16BE(2); at = 4; }
      else if (size === 127) { if (rest.length < 10) return; size = Number(rest.readBigUInt64BE(2)); at = 10; }
      if (rest.length < at + size) return;
      onframe(rest.subarray(0, at + size), rest[0], rest.subarray(at, at + size));
      rest = rest.subarray(at + size);
    }
  };
}

function framed(text) {
  const data = Buffer.from(text);
  const head = data.length < 126 ? Buffer.from([0x81, data.length]) : Buffer.alloc(data.length < 65536 ? 4 : 10);
  if (head.length === 4) { head[0] = 0x81; head[1] = 126; head.writeUInt16BE(data.length, 2); }
  if (head.length === 10) { head[0] = 0x81; head[1] = 127; head.writeBigUInt64BE(BigInt(data.length), 2); }
  return Buffer.concat([head, data]);
}

/** @param {string} url the agent's page @param {string} name of a fault; gives the address of the spoilt page */
export async function tamper(url, name) {
  const agent = new URL(url);
  const fault = FAULTS[name].length ? FAULTS[name] : FAULTS[name]();
  const named = (headers) => ({ ...headers, host: agent.host, ...(headers.origin ? { origin: agent.origin } : {}) });
  const server = createServer((from, to) => {
    from.pipe(ask({ host: agent.hostname, port: agent.port, path: from.url, method: from.method, headers: named(from.headers) }, (got) => { to.writeHead(got.statusCode, got.headers); got.pipe(to); }));
  });
  server.on('upgrade', (from, client) => {
    const socket = connect(agent.port, agent.hostname);
    const lines = Object.entries(named(from.headers)).map(([key, value]) => `${key}: ${value}\r\n`).join('');
    socket.write(`GET ${from.url} HTTP/1.1\r\n${lines}\r\n`);
    let head = Buffer.alloc(0);
    const read = reader((whole, first, data) => {
      if (first !== 0x81) { client.write(whole); return; }
      for (const one of [fault(JSON.parse(data))].flat()) client.write(framed(typeof one === 'string' ? one : JSON.stringify(one)));
    });
    socket.on('data', (chunk) => {
      if (head === null) { read(chunk); return; }
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf('\r\n\r\n');
      if (end < 0) return;
      client.write(head.subarray(0, end + 4));
      const rest = head.subarray(end + 4);
      head = null;
      read(rest);
    });
    client.pipe(socket);
    for (const [one, other] of [[client, socket], [socket, client]]) { one.on('error', () => {}); one.on('close', () => other.destroy()); }
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return { url: `http://127.0.0.1:${server.address().port}/`, close() { server.close(); server.closeAllConnections(); } };
}
