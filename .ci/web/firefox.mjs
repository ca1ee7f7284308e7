// A headless Firefox over WebDriver BiDi, without any package: what browser tests need of it. The page that drives it is in browser.mjs.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from './wsclient.mjs';

const ANSWER_MS = 60000;
const START_MS = 60000;
/** Keys by the code points that WebDriver has for them. */
const KEYS = { Enter: '\uE007', Escape: '\uE00C', ArrowUp: '\uE013', ArrowDown: '\uE015', ArrowLeft: '\uE012', ArrowRight: '\uE014', Tab: '\uE004', Backspace: '\uE003', Home: '\uE011', End: '\uE010' };
/** Modifiers by their bit in the tests. */
const MODIFIERS = [[1, '\uE00A'], [2, '\uE009'], [8, '\uE008']];
/** No update, no telemetry, no first-run page. */
const PREFERENCES = { 'app.update.disabledForTesting': true, 'browser.shell.checkDefaultBrowser': false, 'datareporting.policy.dataSubmissionEnabled': false,
  'browser.startup.page': 0, 'browser.aboutwelcome.enabled': false, 'toolkit.telemetry.reportingpolicy.firstRun': false, 'remote.active-protocols': 1, 'ui.prefersReducedMotion': 0 };
/** What a phone's screen says of itself: a coarse pointer that does not hover. */
const TOUCH = { 'ui.primaryPointerCapabilities': 1, 'ui.allPointerCapabilities': 1, 'dom.w3c_touch_events.enabled': 1 };

/** Starts Firefox; gives `send(method, params)`, `on(event, listener)`, `context` and `close()`. */
async function start(program, preferences) {
  const profile = mkdtempSync(join(tmpdir(), 'page-check-'));
  writeFileSync(join(profile, 'user.js'), Object.entries(preferences).map(([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});\n`).join(''));
  const child = spawn(program, ['--headless', '--no-remote', '--remote-debugging-port=0', '--profile', profile, 'about:blank'],
    { detached: true, stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, MOZ_HEADLESS: '1', HOME: profile } });
  const end = () => { try { process.kill(-child.pid, 'SIGKILL'); } catch { /* all gone */ } };
  // A check that is ended from outside, because another one failed, must not leave a browser that slows down what runs next.
  process.once('exit', end);
  process.once('SIGTERM', () => process.exit(143));
  const address = await new Promise((resolve, reject) => {
    const timer = setTimeout(() => { end(); reject(new Error('Firefox did not start in time')); }, START_MS);
    let heard = '';
    child.stderr.setEncoding('utf8');
    child.stderr.on('data', (chunk) => {
      heard = (heard + chunk).slice(-4000);
      const match = /WebDriver BiDi listening on (ws:\S+)/.exec(heard);
      if (match) { clearTimeout(timer); resolve(match[1]); }
    });
    child.on('exit', () => { clearTimeout(timer); reject(new Error(`Firefox ended: ${heard}`)); });
  });
  const socket = await connect(`${address}/session`);
  const waiting = new Map();
  const listeners = new Map();
  let last = 0;
  socket.onmessage = (text) => {
    const message = JSON.parse(text);
    if (message.type === 'event') { for (const listener of listeners.get(message.method) || []) listener(message.params); return; }
    const { resolve, reject } = waiting.get(message.id) || { resolve() {}, reject() {} };
    waiting.delete(message.id);
    if (message.type === 'error') reject(new Error(`${message.error}: ${message.message}`)); else resolve(message.result);
  };
  socket.onclose = () => { for (const { reject } of waiting.values()) reject(new Error('the browser ended')); };
  const send = (method, params = {}) => new Promise((resolve, reject) => {
    last += 1;
    const timer = setTimeout(() => reject(new Error(`${method}: no answer`)), ANSWER_MS);
    const settle = (action) => (value) => { clearTimeout(timer); action(value); };
    waiting.set(last, { resolve: settle(resolve), reject: settle(reject) });
    socket.send(JSON.stringify({ id: last, method, params }));
  });
  await send('session.new', { capabilities: { alwaysMatch: { unhandledPromptBehavior: { default: 'ignore' } } } });
  const { contexts } = await send('browsingContext.getTree');
  return {
    send, context: contexts[0].context,
    on: (event, listener) => listeners.set(event, [...(listeners.get(event) || []), listener]),
    async close() {
      const ended = new Promise((resolve) => { child.on('exit', resolve); });
      const timer = setTimeout(end, 5000);
      send('browser.close').catch(() => {});
      await ended;
      clearTimeout(timer);
      end();
      // A helper process may still be writing.
      try { rmSync(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }); } catch { /* a temporary folder stays */ }
    },
  };
}

/** A value of the page as WebDriver describes it. */
function plain({ type, value }) {
  if (type === 'array') return (value || []).map(plain);
  if (type === 'object') return Object.fromEntries((value || []).map(([name, member]) => [name, plain(member)]));
  if (type === 'null') return null;
  return value;
}

/**
 * One page of Firefox with the methods that `open` of browser.mjs builds on. The size decides which Firefox runs: a phone has touch.
 * @param {string} program @param {{ trouble: string[], requests: string[], ondialog: (dialog: { type: string, message: string }) => any }} told
 */
export function firefox(program, told) {
  let browser = null;
  let isPhone = null;
  const target = () => ({ context: browser.context });

  async function listen() {
    await browser.send('session.subscribe', { events: ['log.entryAdded', 'network.beforeRequestSent', 'browsingContext.userPromptOpened'] });
    browser.on('log.entryAdded', ({ type, level, text }) => {
      // A server that is gone is part of what is tested.
      if ((level === 'error' || (type === 'console' && level === 'assert')) && !/establish a connection|was interrupted while/.test(text)) told.trouble.push(text);
    });
    browser.on('network.beforeRequestSent', ({ request }) => told.requests.push(request.url));
    browser.on('browsingContext.userPromptOpened', ({ type, message }) => {
      const answer = told.ondialog({ type, message }) || { accept: false };
      browser.send('browsingContext.handleUserPrompt', { ...target(), accept: answer.accept, ...(answer.promptText ? { userText: answer.promptText } : {}) }).catch(() => {});
    });
  }

  return {
    name: 'firefox',
    async device(size, touch) {
      if (isPhone !== touch) {
        await browser?.close();
        browser = await start(program, { ...PREFERENCES, ...(touch ? TOUCH : {}) });
        isPhone = touch;
        await listen();
      }
      await browser.send('browsingContext.setViewport', { ...target(), viewport: { width: size.width, height: size.height }, devicePixelRatio: size.deviceScaleFactor });
    },
    navigate: (url) => browser.send('browsingContext.navigate', { ...target(), url, wait: 'complete' }),
    /** The value of an expression in the page; a promise is waited for. */
    async evaluate(expression) {
      const answer = await browser.send('script.evaluate', { target: target(), awaitPromise: true, resultOwnership: 'none', expression });
      if (answer.type === 'exception') throw new Error(answer.exceptionDetails.text);
      return plain(answer.result);
    },
    /** Puts a text in where the cursor is, at once as from a clipboard. */
    insert: (text) => browser.send('script.callFunction', { target: target(), awaitPromise: false, functionDeclaration: 'function (text) { document.execCommand("insertText", false, text); }',
      arguments: [{ type: 'string', value: text }] }),
    async key(name, modifiers) {
      const held = MODIFIERS.filter(([bit]) => modifiers & bit).map(([, value]) => value);
      const value = KEYS[name] || name;
      await browser.send('input.performActions', { ...target(), actions: [{ type: 'key', id: 'keys', actions: [
        ...held.map((one) => ({ type: 'keyDown', value: one })), { type: 'keyDown', value }, { type: 'keyUp', value },
        ...held.toReversed().map((one) => ({ type: 'keyUp', value: one }))] }] });
    },
    async press(x, y) {
      const spot = { type: 'pointerMove', x: Math.round(x), y: Math.round(y) };
      await browser.send('input.performActions', { ...target(), actions: [{ type: 'pointer', id: isPhone ? 'finger' : 'mouse', parameters: { pointerType: isPhone ? 'touch' : 'mouse' },
        actions: [spot, { type: 'pointerDown', button: 0 }, { type: 'pointerUp', button: 0 }] }] });
    },
    async hover(x, y) {
      await browser.send('input.performActions', { ...target(), actions: [{ type: 'pointer', id: 'mouse', parameters: { pointerType: 'mouse' }, actions: [{ type: 'pointerMove', x: Math.round(x), y: Math.round(y) }] }] });
    },
    screenshot: async () => (await browser.send('browsingContext.captureScreenshot', target())).data,
    close: () => browser?.close(),
  };
}
