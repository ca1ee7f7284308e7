// Hostile text in every field that a model, a tool, a file, a directory, a session or an extension can reach: hostile.mjs
// CHROMIUM. Nothing of it may run, be fetched, become an element or open anything; the policy must find nothing to forbid.

import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Agent, stream } from './agent.mjs';
import { check, open } from './browser.mjs';
import { watch } from './inspect.mjs';
import { serve } from './server.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const payloads = JSON.parse(readFileSync(join(here, '../../crates/export/src/tests/payloads.json'), 'utf8'));
const [program] = process.argv.slice(2);
const agent = new Agent();
const text = (words) => ({ type: 'text', text: words });
const TOOLS = ['bash', 'read', 'write', 'edit', 'grep', 'custom'];

function prepare() {
  const { messages } = agent.first;
  payloads.forEach((payload, index) => {
    const time = index + 1;
    const calls = TOOLS.map((name, i) => ({ type: 'toolCall', id: `c${index}-${i}${payload}`, name: name === 'custom' ? payload : name,
      arguments: { command: payload, path: payload, pattern: payload, content: payload, edits: [{ oldText: payload, newText: `${payload} ` }], [payload]: payload } }));
    messages.push({ role: 'user', content: [text(payload), { type: 'image', mimeType: payload, data: payload }, { type: 'image', mimeType: 'image/png', data: payload }], timestamp: time });
    messages.push({ role: 'assistant', content: [{ type: 'thinking', thinking: payload }, text(payload), text(`Words **${payload}** and [a](${payload}) ![b](${payload})\n\n\`\`\`${payload}\n${payload}\n\`\`\`\n\n| ${payload} |\n|---|\n| ${payload} |`), ...calls],
      stopReason: index % 2 ? 'error' : 'stop', errorMessage: payload, model: payload, timestamp: time });
    for (const call of calls) {
      messages.push({ role: 'toolResult', toolCallId: call.id, toolName: call.name, content: [text(`${payload}\n\u001b[31m${payload}\u001b]8;;javascript:alert(1)\u0007`), { type: 'image', mimeType: 'image/svg+xml', data: payload }],
        details: { diff: `-1 ${payload}\n+1 ${payload}.`, fullOutputPath: payload }, isError: index % 3 === 0, timestamp: time });
    }
    messages.push({ role: 'bashExecution', command: payload, output: payload, exitCode: 1, fullOutputPath: payload, truncated: true, cancelled: false, timestamp: time });
    messages.push({ role: 'custom', customType: payload, content: payload, display: true, timestamp: time }, { role: payload, content: payload, timestamp: time },
      { role: 'compactionSummary', summary: payload, tokensBefore: payload, timestamp: time }, { role: 'branchSummary', summary: payload, fromId: payload, timestamp: time });
  });
  agent.listed = payloads.map((payload, i) => ({ path: payload, id: `l${i}${payload}`, cwd: payload, name: i % 2 ? payload : undefined, firstMessage: payload, created: payload, modified: i % 2 ? payload : '2026-11-20T10:00:00Z', messageCount: payload }));
  agent.models = payloads.map((payload) => ({ ...agent.models[0], id: payload, name: payload, provider: payload, contextWindow: payload }));
  agent.slash = payloads.map((payload) => ({ name: payload, description: payload, source: payload }));
  agent.files = payloads.map((payload, i) => ({ path: i % 2 ? `in/${payload}` : payload, isDirectory: i % 3 === 0 }));
  agent.folders = { '/home/ada': payloads, [payloads[1]]: payloads };
  for (const payload of payloads) agent.folders[`/home/ada/${payload}`] = [payload];
  agent.first.name = payloads[0];
  agent.first.cwd = payloads[1];
  agent.first.tree = payloads.map((payload, i) => ({ entry: { id: `t${i}`, parentId: null, type: 'message', message: { role: i % 2 ? 'user' : 'assistant', content: [text(payload)] } }, label: payload, children: [] }));
}

prepare();
const server = await serve(join(here, '../../crates/web/page'), { onclient: (client) => agent.join(client) });
const page = await open(program);
const eye = await watch(page, server.url);
await page.device('desktop');
await page.goto(server.url);
await page.ready();

await eye.walk();
console.log(`${eye.seen.size} items of ${payloads.length} payloads looked at`);
const missing = Array.from({ length: payloads.length * 7 }, (_, i) => String(i + 1)).filter((key) => !eye.seen.has(key));
check(`all items were shown (not ${missing.length}: ${missing[0]} to ${missing.at(-1)})`, !missing.length);
await page.evaluate("document.querySelector('#scroll').scrollTop = 0");
// Folded steps, changed files and their diffs were there.
await page.until("document.querySelector('.steps') && document.querySelector('.changes-file .diff')");

// The rest in an empty conversation, for it is many events.
eye.keep();
agent.first.messages = [];
await page.goto(server.url);
await page.ready();
for (const [index, payload] of payloads.entries()) {
  const dialog = { type: 'extension_ui_request', id: `q${payload}`, title: payload, message: payload, options: [payload], placeholder: payload, prefill: payload };
  // All four go through the same code for what they say; opening a dialog takes a while.
  for (const method of [['select', 'confirm', 'input', 'editor'][index % 4]]) {
    agent.say({ ...dialog, method });
    agent.say({ type: 'extension_ui_request', id: 'c', method: 'cancel', targetId: dialog.id });
  }
  for (const fields of [{ method: 'notify', message: payload, notifyType: payload }, { method: 'setStatus', statusKey: payload, statusText: payload }, { method: 'setWidget', widgetKey: payload, widgetLines: [payload], widgetPlacement: payload },
    { method: 'setTitle', title: payload }, { method: 'open_url', url: payload, launchUrl: payload, instructions: payload }]) agent.say({ type: 'extension_ui_request', id: 'n', ...fields });
  agent.say({ type: 'extension_error', extensionPath: payload, event: payload, error: payload });
  agent.say({ type: 'notice', level: payload, message: payload });
  agent.say({ type: 'queue_update', steering: [payload], followUp: [payload] });
  agent.say({ type: 'auto_retry_start', attempt: payload, maxAttempts: payload, delayMs: 5, errorMessage: payload });
  agent.say({ type: 'session_info_changed', name: payload });
  stream(agent, [{ type: 'thinking', thinking: payload }, { type: 'text', text: payload }, { type: 'toolCall', id: `s${payload}`, name: payload, arguments: { path: payload } }], { chunk: 3 });
  agent.say({ type: 'tool_execution_update', toolCallId: `s${payload}`, toolName: payload, args: {}, partialResult: { content: [text(payload)] } });
  // Shell commands of other pages: one that says its beginning, one that does not, one that could not be started.
  agent.say({ type: 'bash_execution_start', id: payload, bashId: `a${index}${payload}`, command: payload });
  agent.say({ type: 'bash_execution_update', id: payload, bashId: `a${index}${payload}`, delta: payload });
  agent.say({ type: 'bash_execution_end', id: payload, bashId: `a${index}${payload}`, command: payload, output: payload, exitCode: payload, fullOutputPath: payload, cancelled: false });
  agent.say({ type: 'bash_execution_end', id: payload, bashId: `b${index}`, command: payload, error: payload });
  agent.say({ type: 'bash_execution_update', id: payload, delta: payload });
}
agent.first.todos = [{ id: 'p', name: payloads[2], tasks: payloads.map((payload, i) => ({ id: `${i}`, content: payload, status: payload, notes: payload })) }];
agent.say({ type: 'todo_auto_clear' });
await page.until("document.querySelector('#todos .todos-head')", 60000);
await page.evaluate("document.querySelector('.todos-head').click()");
await eye.look();
for (let i = 0; i < payloads.length; i += 12) {
  agent.say({ type: 'extension_ui_request', id: `d${i}`, method: 'select', title: payloads[i], options: payloads, message: payloads[i + 1] });
  await page.until("document.querySelector('dialog .choice')");
  await eye.glance();
  agent.say({ type: 'extension_ui_request', id: 'c', method: 'cancel', targetId: `d${i}` });
  await page.until("!document.querySelector('dialog')");
}
/** Picks from a menu that opens. An earlier one may still be on its way out. */
async function pick(words) {
  const entry = `[...document.querySelectorAll('.menu-entry')].find((one) => one.textContent.includes('${words}'))`;
  await page.until(entry);
  await page.evaluate(`${entry}.click()`);
}
/** Closes the dialog, which leaves the document a moment later. */
async function closeDialog() {
  await page.evaluate("document.querySelector('dialog').close()");
  await page.until("!document.querySelector('dialog')");
}
for (const button of ['.pick.model', '#more']) {
  await page.until("!document.querySelector('.menu')");
  await page.evaluate(`document.querySelector('${button}').click()`);
  await page.until("document.querySelector('.menu')");
  await eye.glance();
  if (button === '#more') await pick('Branches');
  else await page.evaluate("document.querySelector('.menu').hidePopover()");
}
await page.until("document.querySelectorAll('.tree-row').length > 100");
await eye.glance();
await closeDialog();

const typed = (words) => page.evaluate(`(() => { const field = document.querySelector('#field'); field.value = ${JSON.stringify(words)}; field.setSelectionRange(field.value.length, field.value.length); field.dispatchEvent(new Event('input')); })()`);
await typed('/');
await page.until("document.querySelectorAll('.completion-entry').length > 10");
await eye.glance();
// Every file's name, fifty at a time, and what taking one leaves in the field.
for (let i = 0; i < agent.files.length; i += 50) {
  agent.files = [...agent.files.slice(50), ...agent.files.slice(0, 50)];
  await typed('look at @');
  await page.until("document.querySelectorAll('.completion-entry.is-file').length === 50");
  await eye.glance();
}
await page.evaluate("document.querySelector('.completion-entry.is-file').click()");
await typed('');

await page.evaluate("document.querySelector('[title=\"New session in a directory…\"]').click()");
await page.until(`document.querySelectorAll('.folder').length === ${payloads.length} && document.querySelector('.recent')`);
await eye.glance();
// From there one can go home, and into directories with any name.
for (const payload of payloads.slice(0, 60)) {
  await page.evaluate(`(() => { const field = document.querySelector('.folder-dialog input'); field.value = ${JSON.stringify(`/home/ada/${payload}`)}; field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true })); })()`);
}
await page.until("document.querySelectorAll('.folder').length === 1 && document.querySelectorAll('.crumb').length > 1");
await eye.glance();
await page.evaluate("(() => { const field = document.querySelector('.folder-dialog input'); field.value = '/<img src=x onerror=alert(1)>'; field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true })); })()");
await page.until("document.querySelector('.folders-trouble').textContent.includes('onerror')");
await eye.glance();
await closeDialog();

await page.evaluate("document.querySelector('#more').click()");
await page.until("document.querySelector('.menu')");
await pick('Find');
for (const payload of payloads.slice(0, 40)) await page.evaluate(`(() => { const field = document.querySelector('.find input'); field.value = ${JSON.stringify(payload)}; field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true })); })()`);
await page.wait(400);
await eye.look();
await page.evaluate("document.querySelector('.side-list .more')?.click()");
await page.wait(200);
await eye.look();

const failed = await eye.report();
await page.close();
server.close();
process.exit(failed ? 1 : 0);
