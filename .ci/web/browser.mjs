// What browser tests of the page share: a page on a desktop or a phone, keys, clicks, waiting, pictures, and what went wrong.

import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { eventually, launch, until } from '../export/browser.mjs';
import { firefox } from './firefox.mjs';

export const SIZES = {
  desktop: { width: 1360, height: 900, deviceScaleFactor: 1, mobile: false },
  phone: { width: 390, height: 844, deviceScaleFactor: 2, mobile: true },
};
const KEYS = { Enter: [13, '\r'], Escape: [27], ArrowUp: [38], ArrowDown: [40], ArrowLeft: [37], ArrowRight: [39], Tab: [9], Backspace: [8], Home: [36], End: [35] };

/** One page of Chromium with the methods that `open` builds on. */
async function chromium(program, told) {
  const browser = await launch(program);
  let isPhone = false;
  for (const domain of ['Page', 'Runtime', 'Network', 'Log']) await browser.send(`${domain}.enable`);
  browser.on('Runtime.exceptionThrown', ({ exceptionDetails }) => told.trouble.push(exceptionDetails.exception?.description || exceptionDetails.text));
  browser.on('Runtime.consoleAPICalled', ({ type, args }) => { if (type === 'error' || type === 'assert') told.trouble.push(args.map((arg) => arg.value || arg.description).join(' ')); });
  browser.on('Log.entryAdded', ({ entry }) => { if (entry.level === 'error' && !/ERR_CONNECTION|WebSocket|status of (401|503)/.test(entry.text)) told.trouble.push(`${entry.text} ${entry.url || ''}`); });
  browser.on('Network.requestWillBeSent', ({ request }) => told.requests.push(request.url));
  browser.on('Network.webSocketCreated', ({ url }) => told.requests.push(url));
  browser.on('Page.javascriptDialogOpening', (dialog) => {
    browser.send('Page.handleJavaScriptDialog', told.ondialog(dialog) || { accept: false });
  });
  const mouse = (type, x, y) => browser.send('Input.dispatchMouseEvent', { type, x, y, ...(type === 'mouseMoved' ? {} : { button: 'left', clickCount: 1 }) });
  return {
    name: 'chromium', browser,
    async device(size, touch, theme) {
      isPhone = touch;
      await browser.send('Emulation.setDeviceMetricsOverride', size);
      await browser.send('Emulation.setTouchEmulationEnabled', { enabled: touch });
      await browser.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: theme }] });
    },
    navigate: (url) => browser.send('Page.navigate', { url }),
    evaluate: (expression) => browser.evaluate(expression),
    insert: (text) => browser.send('Input.insertText', { text }),
    async key(name, modifiers) {
      const [code, text] = KEYS[name] || [name.toUpperCase().charCodeAt(0), modifiers & 6 ? undefined : name];
      const event = { key: name, code: KEYS[name] ? name : `Key${name.toUpperCase()}`, windowsVirtualKeyCode: code, modifiers };
      await browser.send('Input.dispatchKeyEvent', { type: 'keyDown', ...event, ...(text && !(modifiers & 6) ? { text } : {}) });
      await browser.send('Input.dispatchKeyEvent', { type: 'keyUp', ...event });
    },
    async press(x, y) {
      if (isPhone) {
        await browser.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints: [{ x, y }] });
        await browser.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
      } else for (const type of ['mouseMoved', 'mousePressed', 'mouseReleased']) await mouse(type, x, y);
    },
    hover: (x, y) => mouse('mouseMoved', x, y),
    screenshot: async () => (await browser.send('Page.captureScreenshot', { format: 'png' })).data,
    close: () => browser.close(),
  };
}

/** @param {string} program Chromium or Firefox */
export async function open(program) {
  const trouble = [];
  const requests = [];
  const told = {
    trouble, requests,
    ondialog(dialog) {
      const answer = self.answer?.(dialog);
      if (!answer) trouble.push(`dialog: ${dialog.message}`);
      return answer;
    },
  };
  const engine = /firefox/.test(basename(program)) ? firefox(program, told) : await chromium(program, told);
  /** The middle of an element that nothing covers. */
  async function spotOf(selector) {
    await self.until(`document.querySelector(${JSON.stringify(selector)})`);
    // A menu that still slides in would be missed: the element must stand still for two pictures.
    const spot = await self.evaluate(`(async () => { const node = document.querySelector(${JSON.stringify(selector)}); node.scrollIntoView({ block: 'nearest' });
      const place = () => { const box = node.getBoundingClientRect(); return { x: box.x + box.width / 2, y: box.y + box.height / 2 }; };
      let at = place();
      for (let i = 0; i < 100; i += 1) {
        await new Promise((next) => { requestAnimationFrame(() => requestAnimationFrame(next)); setTimeout(next, 200); });
        const now = place(); if (now.x === at.x && now.y === at.y) break; at = now;
      }
      const top = document.elementFromPoint(at.x, at.y);
      return { ...at, hit: Boolean(top && (node === top || node.contains(top) || top.contains(node))), what: String(top?.className) }; })()`);
    if (!spot.hit) throw new Error(`${selector} is covered by ${spot.what}`);
    return spot;
  }
  const self = {
    browser: engine.browser, engine: engine.name, trouble, requests,
    evaluate: engine.evaluate,
    until: (expression, ms = 30000) => until(engine, `Boolean(${expression})`, ms),
    wait: (ms) => new Promise((resolve) => { setTimeout(resolve, ms); }),
    size: null,
    /** What a dialog of the browser is answered; without it, one is trouble. */
    answer: null,
    async device(name, theme = 'light') {
      self.size = name;
      await engine.device(SIZES[name], name === 'phone', theme);
    },
    async goto(url) {
      await engine.navigate('about:blank');
      trouble.length = 0;
      requests.length = 0;
      await engine.navigate(url);
      await self.until("document.readyState === 'complete'");
    },
    /** Until the page shows a session. */
    async ready() { await self.until("document.body.dataset.phase === 'open' && document.body.dataset.session"); },
    text: (selector) => self.evaluate(`document.querySelector(${JSON.stringify(selector)})?.innerText ?? null`),
    count: (selector) => self.evaluate(`document.querySelectorAll(${JSON.stringify(selector)}).length`),
    async type(text) { await engine.insert(text); },
    key: (name, modifiers = 0) => engine.key(name, modifiers),
    /** Clicks with the mouse, or taps on a phone. Fails if something else is above the element. */
    async click(selector) {
      const { x, y } = await spotOf(selector);
      await engine.press(x, y);
    },
    /** Moves the mouse over an element. */
    async hover(selector) {
      const { x, y } = await spotOf(selector);
      await engine.hover(x, y);
    },
    focus: (selector) => self.evaluate(`document.querySelector(${JSON.stringify(selector)}).focus()`),
    async picture(name) {
      const folder = process.env.PICTURES;
      if (!folder) return;
      mkdirSync(folder, { recursive: true });
      await self.wait(220);
      writeFileSync(join(folder, `${name}-${self.size}${engine.name === 'firefox' ? '-firefox' : ''}.png`), Buffer.from(await engine.screenshot(), 'base64'));
    },
    close: () => engine.close(),
  };
  return self;
}

/** Repeats a check of what the scripted agent was sent until it holds: a page shows what it has done before the agent has read of it. */
export async function soon(act) {
  let failure = null;
  const holds = await eventually(() => {
    try {
      act();
      return true;
    } catch (error) {
      failure = error;
      return false;
    }
  });
  if (!holds) throw failure;
}

/** Waits until something outside of the page holds. */
export async function waitFor(what, holds) {
  if (!await eventually(holds)) throw new Error(`not in time: ${what}`);
}

export function check(what, holds) {
  if (!holds) throw new Error(`not as expected: ${what}`);
}

export function same(what, found, wanted) {
  if (JSON.stringify(found) !== JSON.stringify(wanted)) throw new Error(`${what}: ${JSON.stringify(found)} instead of ${JSON.stringify(wanted)}`);
}
