// What the checks of original pages share: the agent with a scripted model behind it, and tabs of a browser in which another page than
// ours is looked at from outside, wherever it keeps its elements. What is checked is decided elsewhere.

import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { extname, join, normalize } from 'node:path';
import { open } from '../browser.mjs';
import { described, startModel } from './model.mjs';
import { broken } from './rules.mjs';

/** A home of its own for agents, with a model that answers as told. */
export async function world() {
  const root = mkdtempSync(join(tmpdir(), 'original-page-'));
  const at = (...names) => join(root, ...names);
  for (const name of ['home', 'agent', 'work']) mkdirSync(at(name));
  const model = await startModel();
  writeFileSync(at('agent', 'models.json'), JSON.stringify(described(model.url)));
  writeFileSync(at('agent', 'settings.json'), JSON.stringify({ retry: { enabled: false, provider: { maxRetries: 0 } } }));
  return { at, model, has: (name) => existsSync(at('work', name)), put: (name, text = '') => writeFileSync(at('work', name), text),
    close() { model.close(); rmSync(root, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }); } };
}

/** Starts the agent; gives its address as it prints it. */
export async function startAgent(program, place, args) {
  const env = { PATH: process.env.PATH, HOME: place.at('home'), PI_CODING_AGENT_DIR: place.at('agent') };
  const child = spawn(program, ['--mode', 'web', '--port', '0', '--provider', 'scripted', '--model', 'one', ...args], { cwd: place.at('work'), env });
  let [printed, errors] = ['', ''];
  child.stderr.on('data', (chunk) => { errors += chunk; });
  const url = await new Promise((resolve, reject) => {
    child.stdout.on('data', (chunk) => { printed += chunk; const found = /UI:\s+(\S+)/.exec(printed)?.[1]; if (found) resolve(found); });
    child.on('exit', (code) => reject(new Error(`the agent ended with ${code}: ${errors}`)));
    setTimeout(() => reject(new Error('the agent says no address')), 20000).unref();
  });
  return { url, errors: () => errors, async stop() {
    if (child.exitCode !== null) return child.exitCode;
    const ended = new Promise((resolve) => { child.on('exit', resolve); });
    child.kill('SIGTERM');
    setTimeout(() => child.kill('SIGKILL'), 5000).unref();
    return ended;
  } };
}

const TYPES = { '.html': 'text/html', '.js': 'application/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };

/** The page at an address of its own, away from the agent. */
export async function elsewhere(folder) {
  const server = createServer((request, response) => {
    const asked = join(folder, normalize(new URL(request.url, 'http://page').pathname));
    const file = existsSync(asked) && statSync(asked).isFile() ? asked : join(folder, 'index.html');
    response.writeHead(200, { 'content-type': TYPES[extname(file)] || 'application/octet-stream' }).end(readFileSync(file));
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return { origin: `http://127.0.0.1:${server.address().port}`, close() { server.close(); server.closeAllConnections(); } };
}

/** A browser with one tab that looks at a page's elements, in a shadow tree (`host`) or not. */
export async function openTab(chromium, host = null, patience = 15000) {
  const page = await open(chromium);
  const { browser } = page;
  const root = host ? `document.querySelector(${JSON.stringify(host)}).shadowRoot` : 'document';
  const sockets = new Map();
  const said = [];
  const told = new Set();
  const frame = (sent) => ({ requestId, response }) => sockets.get(requestId)?.frames.push({ sent, text: response.payloadData });
  browser.on('Network.webSocketCreated', ({ requestId, url }) => sockets.set(requestId, { url, frames: [], isOver: false }));
  browser.on('Network.webSocketClosed', ({ requestId }) => { const socket = sockets.get(requestId); if (socket) socket.isOver = true; });
  browser.on('Network.webSocketFrameSent', frame(true));
  browser.on('Network.webSocketFrameReceived', frame(false));
  browser.on('Runtime.consoleAPICalled', ({ args }) => said.push(args.map((arg) => arg.value ?? arg.description).join(' ')));
  // The originals ask a stranger for their letters.
  await browser.send('Network.setBlockedURLs', { urls: ['*://fonts.googleapis.com/*', '*://fonts.gstatic.com/*'] });
  const all = (selector) => `[...${root}.querySelectorAll(${JSON.stringify(selector)})]`;
  const tab = {
    page, said, root,
    device: (name) => page.device(name),
    async goto(url) { said.length = 0; await page.goto(url); },
    until: (expression, ms = patience) => page.until(expression, ms),
    evaluate: page.evaluate,
    texts: (selector) => page.evaluate(`${all(selector)}.map((node) => node.innerText.trim())`),
    count: (selector) => page.evaluate(`${all(selector)}.length`),
    /** Until a frame of this kind came. */
    async hears(what) {
      for (let i = 0; i < patience / 50; i += 1) { const found = tab.frames().filter((frame) => !frame.sent && what(frame)); if (found.length) return found; await page.wait(50); }
      throw new Error(`no frame like ${what}`);
    },
    /** Until an element with this text is there. */
    shows: (selector, text) => tab.until(`${all(selector)}.some((node) => node.innerText.includes(${JSON.stringify(text)}))`),
    has: (selector) => tab.until(`${root}.querySelector(${JSON.stringify(selector)})`),
    hasNo: (selector) => tab.until(`!${root}.querySelector(${JSON.stringify(selector)})`),
    /** Clicks the element (with this text, if given; at a share of its width) as a finger does: what covers it is in the way. */
    async click(selector, text = '', share = 0.5) {
      const found = `${all(selector)}.find((node) => node.innerText.includes(${JSON.stringify(text)}))`;
      await tab.until(`${found} && !${found}.disabled`);
      await page.wait(250);
      const spot = await page.evaluate(`(() => { const node = ${found}; node.scrollIntoView({ block: 'nearest' }); const box = node.getBoundingClientRect();
        const [x, y] = [box.x + box.width * ${share}, box.y + box.height / 2]; const top = ${root}.elementFromPoint(x, y); return { x, y, hit: node.contains(top) }; })()`);
      if (!spot.hit) throw new Error(`${selector} ${text} is covered`);
      for (const type of ['mousePressed', 'mouseReleased']) await browser.send('Input.dispatchMouseEvent', { type, x: spot.x, y: spot.y, button: 'left', clickCount: 1 });
    },
    async type(selector, text) {
      await tab.until(`${root}.querySelector(${JSON.stringify(selector)}) && !${root}.querySelector(${JSON.stringify(selector)}).disabled`);
      await page.evaluate(`${root}.querySelector(${JSON.stringify(selector)}).focus()`);
      await page.type(text);
    },
    /** The frames of the newest connection. */
    frames: () => [...sockets.values()].at(-1)?.frames.map(({ sent, text }) => ({ sent, ...JSON.parse(text) })) || [],
    /** What newly broke the rules on all connections, and what the page complained about. Answers may still be under way. */
    async trouble() {
      const look = () => [...sockets.values()].flatMap(({ frames, isOver }) => broken(frames, !isOver));
      let wrong = look();
      for (let i = 0; i < 60 && wrong.some((text) => text.startsWith('no answer')); i += 1) { await page.wait(50); wrong = look(); }
      const mine = page.trouble.filter((text) => !/fonts\.g|favicon|\/icons\/|ERR_BLOCKED|websocket error/.test(text));
      const all = [...wrong, ...mine, ...said.filter((text) => /failed to|Failed to/.test(text))].filter((text) => !told.has(text));
      for (const text of all) told.add(text);
      return all;
    },
    forget() { sockets.clear(); said.length = 0; page.trouble.length = 0; },
    picture: (name) => page.picture(name),
    close: () => page.close(),
  };
  return tab;
}
