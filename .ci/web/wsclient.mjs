// A WebSocket client without any package: text frames of any length, both ways. Node has one of its own only from version 22.

import { randomBytes } from 'node:crypto';
import { request } from 'node:http';

/** Connects; gives `send(text)`, `close()` and the callbacks `onmessage(text)` and `onclose()`. @param {string} address `ws:` only */
export function connect(address) {
  return new Promise((resolve, reject) => {
    const url = new URL(address);
    const asking = request({ host: url.hostname, port: url.port, path: url.pathname + url.search,
      headers: { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13', 'sec-websocket-key': randomBytes(16).toString('base64') } });
    asking.on('error', reject);
    asking.on('response', (response) => reject(new Error(`no WebSocket there: ${response.statusCode}`)));
    asking.on('upgrade', (_response, socket, head) => resolve(client(socket, head)));
    asking.end();
  });
}

function client(socket, head) {
  const self = { onmessage() {}, onclose() {}, send: (text) => write(1, Buffer.from(text)), close: () => socket.destroy() };
  let rest = Buffer.alloc(0);
  let parts = [];

  /** Frames of a client are masked (RFC 6455, 5.3). */
  function write(opcode, data) {
    const mask = randomBytes(4);
    const length = data.length < 126 ? Buffer.from([0x80 | data.length]) : data.length < 65536 ? Buffer.from([0xfe, data.length >> 8, data.length & 255]) : Buffer.alloc(9);
    if (data.length >= 65536) { length[0] = 0xff; length.writeBigUInt64BE(BigInt(data.length), 1); }
    const masked = Buffer.from(data);
    for (let i = 0; i < masked.length; i += 1) masked[i] ^= mask[i & 3];
    if (!socket.destroyed) socket.write(Buffer.concat([Buffer.from([0x80 | opcode]), length, mask, masked]));
  }

  function read(chunk) {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      if (rest.length < 2) return;
      let size = rest[1] & 127;
      let at = 2;
      if (size === 126) { if (rest.length < 4) return; size = rest.readUInt16BE(2); at = 4; }
      else if (size === 127) { if (rest.length < 10) return; size = Number(rest.readBigUInt64BE(2)); at = 10; }
      if (rest.length < at + size) return;
      const [opcode, isLast, data] = [rest[0] & 15, rest[0] & 128, rest.subarray(at, at + size)];
      rest = rest.subarray(at + size);
      if (opcode === 8) { socket.end(); return; }
      if (opcode === 9) write(10, data);
      if (opcode > 2) continue;
      parts.push(data);
      if (isLast) { const text = Buffer.concat(parts).toString(); parts = []; self.onmessage(text); }
    }
  }

  socket.on('data', read);
  socket.on('error', () => {});
  socket.on('close', () => self.onclose());
  if (head.length) setImmediate(() => read(head));
  return self;
}
