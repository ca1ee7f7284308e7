// What goes on around the conversation: telling who looks elsewhere, copying.

import { check, same } from '../browser.mjs';
import { sayUser, stream } from '../agent.mjs';
import { fill } from '../scene.mjs';

const away = (is) => `Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${is} }); document.dispatchEvent(new Event('visibilitychange'))`;
const menu = (words) => `[...document.querySelectorAll('.menu-entry')].find((one) => one.textContent.includes('${words}'))`;
/** A browser that grants everything and writes down what it was asked to show. */
const STUB = `globalThis.notes = []; globalThis.asked = 0; globalThis.Notification = class { static permission = 'default';
  static requestPermission() { globalThis.asked += 1; Notification.permission = 'granted'; return Promise.resolve('granted'); }
  constructor(title, options) { globalThis.notes.push([title, options.body]); } close() {} }`;
const STUB_CLIPBOARD = 'navigator.clipboard.writeText = (text) => { globalThis.copied = text; return Promise.resolve(); }';

function run(agent, words) {
  agent.say({ type: 'agent_start' });
  stream(agent, [{ type: 'text', text: words }]);
  agent.say({ type: 'agent_end', messages: [], willRetry: false });
}

export async function whoLooksElsewhereIsTold(page, agent) {
  await page.evaluate(STUB);
  sayUser(agent, 'Go');
  await page.evaluate(away(true));
  run(agent, 'Nobody saw this.');
  await page.until("document.title.startsWith('✓')");
  same('nothing without leave', await page.evaluate('[globalThis.asked, globalThis.notes.length]'), [0, 0]);
  await page.evaluate(away(false));
  await page.until("!document.title.startsWith('✓')");
  await page.click('#more');
  await page.until("document.querySelector('.menu:popover-open')");
  await page.evaluate(`${menu('Notify me')}.click()`);
  await page.until("document.querySelector('.toast')?.innerText.includes('You will be told')");
  run(agent, 'One looks at the page.');
  await page.until("document.querySelector('.transcript').innerText.includes('One looks')");
  await page.evaluate(away(true));
  run(agent, 'The wheel is cut.');
  await page.until('globalThis.notes.length === 1');
  same('the notification', await page.evaluate('globalThis.notes[0]'), ['Pinion is done', 'The wheel is cut.']);
  agent.say({ type: 'extension_ui_request', id: 'q', method: 'confirm', title: 'Really delete?' });
  await page.until('globalThis.notes.length === 2');
  same('a question', await page.evaluate('globalThis.notes[1]'), ['Pinion asks', 'Really delete?']);
  same('asked once', await page.evaluate('globalThis.asked'), 1);
  await page.evaluate(`${away(false)}; localStorage.clear()`);
}

export async function aRunThatEndedElsewhereIsMarked(page, agent) {
  if (!await page.evaluate("document.querySelector('#side').classList.contains('open')")) await page.click('#menu');
  agent.say({ type: 'agent_start' });
  await page.wait(250);
  await page.click('[data-id=a1] .session-open');
  await page.until("location.search.includes('a1')");
  agent.say({ type: 'agent_end', messages: [], willRetry: false });
  await page.until("document.querySelector('[data-id=s-first] .dot.over')");
  if (!await page.evaluate("document.querySelector('#side').classList.contains('open')")) await page.click('#menu');
  await page.wait(250);
  await page.click('[data-id=s-first] .session-open');
  await page.until("location.search.includes('s-first') && !document.querySelector('.dot.over')");
}
aRunThatEndedElsewhereIsMarked.prepare = fill;

export async function everythingCanBeCopied(page, agent) {
  await page.evaluate(STUB_CLIPBOARD);
  const copied = async (selector) => {
    await page.evaluate('globalThis.copied = null');
    await page.evaluate(`document.querySelector(${JSON.stringify(selector)}).click()`);
    await page.until('globalThis.copied !== null');
    return page.evaluate('globalThis.copied');
  };
  check('what one said', (await copied('.user [title="Copy message"]')).startsWith('The store loses'));
  check('an answer', (await copied('[title="Copy answer"]')).includes('| whole entry, line feed |'));
  check('code', (await copied('.prose .code-copy')).startsWith('fn is_entry'));
  check('changes', (await copied('[data-call=c3] .tool-copy')).includes('\n+    let end = if is_entry'));
  const output = await copied('[data-call=c4] .tool-copy');
  check('output, without colours', output.includes('Compiling store') && !output.includes('\u001b'));
  agent.first.messages.push({ role: 'bashExecution', command: 'ls', output: 'one two', exitCode: 0, timestamp: 1 });
  agent.say({ type: 'session_changed', reason: 'reload', sessionId: 's-first' });
  await page.until("document.querySelector('.shell .tool-copy')");
  same('a command of one’s own', await copied('.shell .tool-copy'), 'one two');
  await page.click('#more');
  await page.until("document.querySelector('.menu:popover-open')");
  await page.evaluate(`globalThis.copied = null; ${menu('Copy as Markdown')}.click()`);
  await page.until("globalThis.copied?.includes('## You')");
  const all = await page.evaluate('globalThis.copied');
  check('all of it', all.includes('**bash** `cargo test -p store recover`') && all.includes('$ ls\none two'));
}
everythingCanBeCopied.prepare = fill;
