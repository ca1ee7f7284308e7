// A small server for the page's tests: its files with the policy that the agent sends, and a WebSocket at /ws, without any
// package. Who answers on the socket is passed in.

import { createHash } from 'node:crypto';
import { readFileSync, existsSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize } from 'node:path';
import { gzipSync } from 'node:zlib';

export const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; "
  + "manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const TYPES = { '.html': 'text/html; charset=utf-8', '.js': 'application/javascript; charset=utf-8', '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml', '.png': 'image/png', '.webmanifest': 'application/manifest+json', '.txt': 'text/plain; charset=utf-8' };

/**
 * @param {string} root folder of the page
 * @param {{ token?: string, onclient: (client: { send: (frame: any) => void, close: (code?: number) => void, onframe: (frame: any) => void, onclose: () => void }) => void }} options
 */
export async function serve(root, options) {
  const sockets = new Set();
  const asked = [];
  const packed = new Map();
  const server = createServer((request, response) => {
    const url = new URL(request.url, 'http://page');
    asked.push(request.url);
    if (url.pathname === '/api/command') {
      const allowed = !options.token || request.headers.authorization === `Bearer ${options.token}`;
      response.writeHead(server.status || (allowed ? 200 : 401)).end();
      return;
    }
    const path = join(root, normalize(decodeURIComponent(url.pathname)));
    const file = existsSync(path) && statSync(path).isFile() ? path : join(root, 'index.html');
    response.writeHead(200, { 'content-type': TYPES[extname(file)] || 'application/octet-stream', 'content-security-policy': POLICY,
      'content-encoding': 'gzip', 'cache-control': 'no-cache', 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' });
    if (!packed.has(file)) packed.set(file, gzipSync(readFileSync(file)));
    response.end(packed.get(file));
  });
  server.on('upgrade', (request, socket) => {
    const url = new URL(request.url, 'http://page');
    if (server.status) { socket.end(`HTTP/1.1 ${server.status} No\r\ncontent-length: 0\r\n\r\n`); return; }
    if (server.mute) { sockets.add(socket); return; }
    if (server.refusing || (options.token && url.searchParams.get('token') !== options.token)) {
      socket.end('HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n');
      return;
    }
    const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: ${accept}\r\n\r\n`);
    options.onclient(client(socket, sockets));
  });
  await new Promise((resolve) => { server.listen(options.port || 0, '127.0.0.1', resolve); });
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    port: server.address().port,
    asked,
    /** Cuts all connections as a network does that goes away; `refuse` lets nobody in until it is false again. */
    /** Every attempt from now on gets this status; 0: no longer. */
    refuse(status) { server.status = status; },
    /** Attempts are not answered at all. */
    silence(on) { server.mute = on; },
    /** Says goodbye to all, as an agent does that ends. */
    end(code) { server.refusing = true; for (const socket of sockets) socket.farewell?.(code); },
    cut(refuse = false) { server.refusing = refuse; for (const socket of sockets) socket.destroy(); },
    close() { for (const socket of sockets) socket.destroy(); server.close(); server.closeAllConnections(); },
  };
}

function client(socket, sockets) {
  const self = { send, close, onframe() {}, onclose() {} };
  let rest = Buffer.alloc(0);
  let parts = [];
  sockets.add(socket);
  socket.farewell = (code) => close(code);
  socket.setNoDelay(true);
  function write(opcode, data) {
    const length = data.length < 126 ? Buffer.from([data.length]) : data.length < 65536 ? Buffer.from([126, data.length >> 8, data.length & 255])
      : (() => { const head = Buffer.alloc(9); head[0] = 127; head.writeBigUInt64BE(BigInt(data.length), 1); return head; })();
    if (!socket.destroyed) socket.write(Buffer.concat([Buffer.from([0x80 | opcode]), length, data]));
  }
  function send(frame) { write(1, Buffer.from(JSON.stringify(frame))); }
  function close(code = 1000) { write(8, Buffer.from([code >> 8, code & 255])); socket.end(); }
  socket.on('data', (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      if (rest.length < 2) return;
      let size = rest[1] & 127;
      let at = 2;
      if (size === 126) { if (rest.length < 4) return; size = rest.readUInt16BE(2); at = 4; }
      else if (size === 127) { if (rest.length < 10) return; size = Number(rest.readBigUInt64BE(2)); at = 10; }
      if (rest.length < at + 4 + size) return;
      const mask = rest.subarray(at, at + 4);
      const data = Buffer.from(rest.subarray(at + 4, at + 4 + size));
      for (let i = 0; i < data.length; i += 1) data[i] ^= mask[i & 3];
      const [opcode, isLast] = [rest[0] & 15, rest[0] & 128];
      rest = rest.subarray(at + 4 + size);
      if (opcode === 8) { socket.end(); return; }
      if (opcode === 9) write(10, data);
      if (opcode > 2) continue;
      parts.push(data);
      if (isLast) { const text = Buffer.concat(parts).toString(); parts = []; self.onframe(JSON.parse(text)); }
    }
  });
  socket.on('error', () => {});
  socket.on('close', () => { sockets.delete(socket); self.onclose(); });
  return self;
}
