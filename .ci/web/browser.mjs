// What browser tests of the page share: a page on a desktop or a phone, keys, clicks, waiting, pictures, and what went wrong.

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { launch, until } from '../export/browser.mjs';

export const SIZES = {
  desktop: { width: 1360, height: 900, deviceScaleFactor: 1, mobile: false },
  phone: { width: 390, height: 844, deviceScaleFactor: 2, mobile: true },
};
const KEYS = { Enter: [13, '\r'], Escape: [27], ArrowUp: [38], ArrowDown: [40], Tab: [9], Backspace: [8], Home: [36], End: [35] };

/** @param {string} program Chromium */
export async function open(program) {
  const browser = await launch(program);
  const trouble = [];
  const requests = [];
  for (const domain of ['Page', 'Runtime', 'Network', 'Log']) await browser.send(`${domain}.enable`);
  browser.on('Runtime.exceptionThrown', ({ exceptionDetails }) => trouble.push(exceptionDetails.exception?.description || exceptionDetails.text));
  browser.on('Runtime.consoleAPICalled', ({ type, args }) => { if (type === 'error' || type === 'assert') trouble.push(args.map((arg) => arg.value || arg.description).join(' ')); });
  browser.on('Log.entryAdded', ({ entry }) => { if (entry.level === 'error' && !/ERR_CONNECTION|WebSocket|status of (401|503)/.test(entry.text)) trouble.push(`${entry.text} ${entry.url || ''}`); });
  browser.on('Network.requestWillBeSent', ({ request }) => requests.push(request.url));
  browser.on('Network.webSocketCreated', ({ url }) => requests.push(url));
  browser.on('Page.javascriptDialogOpening', (dialog) => {
    const answer = self.answer?.(dialog);
    if (!answer) trouble.push(`dialog: ${dialog.message}`);
    browser.send('Page.handleJavaScriptDialog', answer || { accept: false });
  });
  const self = {
    browser, trouble, requests,
    evaluate: (expression) => browser.evaluate(expression),
    until: (expression, ms = 30000) => until(browser, `Boolean(${expression})`, ms),
    wait: (ms) => new Promise((resolve) => { setTimeout(resolve, ms); }),
    size: null,
    /** What a dialog of the browser is answered; without it, one is trouble. */
    answer: null,
    async device(name, theme = 'light') {
      self.size = name;
      await browser.send('Emulation.setDeviceMetricsOverride', SIZES[name]);
      await browser.send('Emulation.setTouchEmulationEnabled', { enabled: name === 'phone' });
      await browser.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: theme }] });
    },
    async goto(url) {
      await browser.send('Page.navigate', { url: 'about:blank' });
      trouble.length = 0;
      requests.length = 0;
      await browser.send('Page.navigate', { url });
      await self.until("document.readyState === 'complete'");
    },
    /** Until the page shows a session. */
    async ready() { await self.until("document.body.dataset.phase === 'open' && document.body.dataset.session"); },
    text: (selector) => browser.evaluate(`document.querySelector(${JSON.stringify(selector)})?.innerText ?? null`),
    count: (selector) => browser.evaluate(`document.querySelectorAll(${JSON.stringify(selector)}).length`),
    async type(text) { await browser.send('Input.insertText', { text }); },
    async key(name, modifiers = 0) {
      const [code, text] = KEYS[name] || [name.toUpperCase().charCodeAt(0), modifiers & 6 ? undefined : name];
      const event = { key: name, code: KEYS[name] ? name : `Key${name.toUpperCase()}`, windowsVirtualKeyCode: code, modifiers };
      await browser.send('Input.dispatchKeyEvent', { type: 'keyDown', ...event, ...(text && !(modifiers & 6) ? { text } : {}) });
      await browser.send('Input.dispatchKeyEvent', { type: 'keyUp', ...event });
    },
    /** Clicks as a person does: something else above it makes that fail. */
    async click(selector) {
      await self.until(`document.querySelector(${JSON.stringify(selector)})`);
      const spot = await browser.evaluate(`(() => { const node = document.querySelector(${JSON.stringify(selector)}); node.scrollIntoView({ block: 'nearest' });
        const box = node.getBoundingClientRect(); const x = box.x + box.width / 2; const y = box.y + box.height / 2; const top = document.elementFromPoint(x, y);
        return { x, y, hit: Boolean(top && (node === top || node.contains(top) || top.contains(node))), what: top?.className }; })()`);
      if (!spot.hit) throw new Error(`${selector} is covered by ${spot.what}`);
      for (const type of ['mousePressed', 'mouseReleased']) await browser.send('Input.dispatchMouseEvent', { type, x: spot.x, y: spot.y, button: 'left', clickCount: 1 });
    },
    focus: (selector) => browser.evaluate(`document.querySelector(${JSON.stringify(selector)}).focus()`),
    async picture(name) {
      const folder = process.env.PICTURES;
      if (!folder) return;
      mkdirSync(folder, { recursive: true });
      await self.wait(220);
      const { data } = await browser.send('Page.captureScreenshot', { format: 'png' });
      writeFileSync(join(folder, `${name}-${self.size}.png`), Buffer.from(data, 'base64'));
    },
    close: () => browser.close(),
  };
  return self;
}

export function check(what, holds) {
  if (!holds) throw new Error(`not as expected: ${what}`);
}

export function same(what, found, wanted) {
  if (JSON.stringify(found) !== JSON.stringify(wanted)) throw new Error(`${what}: ${JSON.stringify(found)} instead of ${JSON.stringify(wanted)}`);
}
