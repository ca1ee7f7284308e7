// A headless Chromium over its debugging pipe, without any package. What is checked in it is decided elsewhere.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const ANSWER_MS = 60000;

/** Starts a browser; gives `send(method, params)`, `on(method, listener)` and `close()`, all for one page. */
export async function launch(program) {
  const profile = mkdtempSync(join(tmpdir(), 'export-check-'));
  const child = spawn(program, ['--headless=new', '--no-sandbox', '--disable-gpu', '--no-first-run', '--hide-scrollbars',
    '--disable-background-networking', '--disable-component-update', '--disable-default-apps', '--disable-dev-shm-usage',
    '--remote-debugging-pipe', `--user-data-dir=${profile}`, 'about:blank'], { detached: true, stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
  const waiting = new Map();
  const listeners = new Map();
  let last = 0;
  /** @type {string|undefined} */
  let session = undefined;
  let rest = '';
  child.stdio[4].setEncoding('utf8');
  child.stdio[4].on('data', (chunk) => {
    const messages = (rest + chunk).split('\0');
    rest = messages.pop();
    for (const text of messages) {
      const message = JSON.parse(text);
      if (message.id !== undefined) {
        const { resolve, reject } = waiting.get(message.id) || { resolve() {}, reject() {} };
        waiting.delete(message.id);
        if (message.error) reject(new Error(message.error.message)); else resolve(message.result);
      } else for (const listener of listeners.get(message.method) || []) listener(message.params);
    }
  });
  child.on('exit', () => { for (const { reject } of waiting.values()) reject(new Error('the browser ended')); });
  const send = (method, params = {}) => new Promise((resolve, reject) => {
    last += 1;
    const timer = setTimeout(() => reject(new Error(`${method}: no answer`)), ANSWER_MS);
    const settle = (action) => (value) => { clearTimeout(timer); action(value); };
    waiting.set(last, { resolve: settle(resolve), reject: settle(reject) });
    child.stdio[3].write(JSON.stringify({ id: last, method, params, sessionId: session }) + '\0');
  });
  const on = (method, listener) => listeners.set(method, [...(listeners.get(method) || []), listener]);
  const { targetInfos } = await send('Target.getTargets');
  const { targetId } = targetInfos.find((target) => target.type === 'page');
  session = (await send('Target.attachToTarget', { targetId, flatten: true })).sessionId;
  const close = async () => {
    const ended = new Promise((resolve) => { child.on('exit', resolve); });
    const end = () => { try { process.kill(-child.pid, 'SIGKILL'); } catch { /* all gone */ } };
    const timer = setTimeout(end, 5000);
    child.stdio[3].write(JSON.stringify({ id: 0, method: 'Browser.close' }) + '\0');
    await ended;
    clearTimeout(timer);
    end();
    // A helper process may be writing its last words.
    try { rmSync(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }); } catch { /* a temporary folder stays */ }
  };
  /** The value of an expression in the page; a promise is waited for. */
  const evaluate = async (expression) => {
    const { result, exceptionDetails } = await send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description || exceptionDetails.text);
    return result.value;
  };
  return { send, on, close, evaluate };
}

/** Waits until an expression in the page is true. */
export async function until(browser, expression, ms = 30000) {
  const end = Date.now() + ms;
  let failure = '';
  while (Date.now() < end) {
    try {
      if (await browser.evaluate(expression)) return;
    } catch (error) {
      // The page went to another address meanwhile.
      if (!/context|navigated/.test(error.message)) throw error;
      failure = ` (${error.message})`;
    }
    await new Promise((resolve) => { setTimeout(resolve, 20); });
  }
  throw new Error(`not within ${ms} ms: ${expression}${failure}`);
}

/** Waits until something outside of the page holds; says whether it did. */
export async function eventually(holds, ms = 30000) {
  const end = Date.now() + ms;
  while (!await holds()) {
    if (Date.now() > end) return false;
    await new Promise((resolve) => { setTimeout(resolve, 20); });
  }
  return true;
}

/** Opens an exported page; gives the milliseconds until it could be read. */
export async function open(browser, file, rest = '') {
  await browser.send('Page.navigate', { url: 'about:blank' });
  const begin = performance.now();
  await browser.send('Page.navigate', { url: pathToFileURL(resolve(file)).href + rest });
  await until(browser, "document.documentElement?.dataset.ready === '1' && !!document.querySelector('.entry')");
  await browser.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
  return performance.now() - begin;
}

export const DESKTOP = { width: 1280, height: 900, deviceScaleFactor: 1, mobile: false };
export const PHONE = { width: 390, height: 844, deviceScaleFactor: 1, mobile: true };
