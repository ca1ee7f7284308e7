// Hostile text in every field that a model, a tool, a file, a session or an extension can reach: hostile.mjs CHROMIUM. Nothing
// of it may run, be fetched, become an element or open anything; the policy must find nothing to forbid.

import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Agent, stream } from './agent.mjs';
import { check, open } from './browser.mjs';
import { serve } from './server.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const payloads = JSON.parse(readFileSync(join(here, '../../crates/store/src/export/tests/payloads.json'), 'utf8'));
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
  agent.first.name = payloads[0];
  agent.first.cwd = payloads[1];
  agent.first.tree = payloads.map((payload, i) => ({ entry: { id: `t${i}`, parentId: null, type: 'message', message: { role: i % 2 ? 'user' : 'assistant', content: [text(payload)] } }, label: payload, children: [] }));
}

prepare();
const server = await serve(join(here, '../../crates/serve/page'), { onclient: (client) => agent.join(client) });
const page = await open(program);
const violations = [];
page.browser.on('Audits.issueAdded', ({ issue }) => { if (issue.code === 'ContentSecurityPolicyIssue') violations.push(JSON.stringify(issue.details).slice(0, 300)); });
await page.browser.send('Audits.enable');
await page.device('desktop');
await page.goto(server.url);
await page.ready();

const ODD = `(() => {
  const fine = new Set('A ARTICLE ASIDE B BLOCKQUOTE BR BUTTON CIRCLE CODE DEL DETAILS DIALOG DIV EM FORM H1 H2 H3 H4 H5 H6 HEADER HR IMG INPUT KBD LI MAIN MARK NAV NOSCRIPT OL P PATH PRE SECTION SPAN STRONG SUB SUMMARY SUP SVG TABLE TBODY TD TEXTAREA TH THEAD TR UL'.split(' '));
  const bad = [];
  for (const node of document.body.querySelectorAll('*')) {
    if (!fine.has(node.tagName.toUpperCase())) bad.push(node.outerHTML.slice(0, 120));
    for (const { name, value } of node.attributes) {
      if (name.startsWith('on') || name === 'srcdoc' || name === 'action' || (name === 'style' && /url|expression|position/i.test(value))
        || (name === 'href' && node.tagName !== 'path' && !/^(https?:|mailto:|#field)/.test(value)) || (name === 'src' && !/^data:image\\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$/.test(value))) bad.push(name + '=' + value.slice(0, 100));
    }
    if (node.tagName === 'A' && node.getAttribute('href')[0] !== '#' && (node.rel !== 'noreferrer noopener' || node.target !== '_blank')) bad.push('a link without rel: ' + node.outerHTML.slice(0, 100));
  }
  return [...new Set(bad)];
})()`;
const odd = new Set();
async function look() {
  await page.evaluate(`(() => {
    for (const node of document.querySelectorAll('.tool-head[aria-expanded=false], .terminal .more, .bubble .more')) node.click();
    for (const node of document.querySelectorAll('details')) node.open = true;
    for (const node of document.querySelectorAll('.item *')) for (const kind of ['mouseover', 'focus', 'toggle', 'animationstart', 'error', 'load']) if (!(node instanceof HTMLDetailsElement)) node.dispatchEvent(new Event(kind));
  })()`);
  await page.wait(60);
  for (const found of await page.evaluate(ODD)) odd.add(found);
}

const seen = new Set();
let idle = 0;
for (let i = 0; i < 200; i += 1) {
  await look();
  const keys = await page.evaluate("[...document.querySelectorAll('.item')].map((node) => node.dataset.key)");
  const before = seen.size;
  for (const key of keys) seen.add(key);
  await page.evaluate("(() => { const s = document.querySelector('#scroll'); s.scrollTop = 0; s.dispatchEvent(new Event('scroll')); })()");
  await page.wait(30);
  idle = before === seen.size ? idle + 1 : 0;
  if (idle > 6) break;
}
console.log(`${seen.size} items of ${payloads.length} payloads looked at`);
const missing = Array.from({ length: payloads.length * 7 }, (_, i) => String(i + 1)).filter((key) => !seen.has(key));
check(`all items were shown (not ${missing.length}: ${missing[0]} to ${missing.at(-1)})`, !missing.length);

// The rest in an empty conversation, for it is many events.
const troubleBefore = [...page.trouble];
const requestsBefore = [...page.requests];
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
  agent.say({ type: 'bash_execution_update', id: payload, delta: payload });
}
agent.first.todos = [{ id: 'p', name: payloads[2], tasks: payloads.map((payload, i) => ({ id: `${i}`, content: payload, status: payload, notes: payload })) }];
agent.say({ type: 'todo_auto_clear' });
await page.until("document.querySelector('#todos .todos-head')", 60000);
await page.evaluate("document.querySelector('.todos-head').click()");
await look();
for (let i = 0; i < payloads.length; i += 12) {
  agent.say({ type: 'extension_ui_request', id: `d${i}`, method: 'select', title: payloads[i], options: payloads, message: payloads[i + 1] });
  await page.until("document.querySelector('dialog .choice')");
  for (const found of await page.evaluate(ODD)) odd.add(found);
  agent.say({ type: 'extension_ui_request', id: 'c', method: 'cancel', targetId: `d${i}` });
  await page.until("!document.querySelector('dialog')");
}
for (const button of ['.pick.model', '#more']) {
  await page.evaluate(`document.querySelector('${button}').click()`);
  await page.until("document.querySelector('.menu')");
  for (const found of await page.evaluate(ODD)) odd.add(found);
  if (button === '#more') await page.evaluate("[...document.querySelectorAll('.menu-entry')].find((one) => one.textContent.includes('Branches')).click()");
  else await page.evaluate("document.querySelector('.menu').hidePopover()");
}
await page.until("document.querySelectorAll('.tree-row').length > 100");
for (const found of await page.evaluate(ODD)) odd.add(found);
await page.evaluate("document.querySelector('dialog').close(); document.querySelector('#field').value = '/'; document.querySelector('#field').dispatchEvent(new Event('input'))");
await page.until("document.querySelectorAll('.completion-entry').length > 10");
await page.evaluate("document.querySelector('.side-list .more')?.click()");
await page.wait(200);
await look();

const strange = [...requestsBefore, ...page.requests].filter((url) => !url.startsWith(server.url) && !url.startsWith(server.url.replace('http', 'ws')) && !/^(data:image\/(png|jpeg|gif|webp)|blob:|about:blank|chrome)/.test(url));
// A picture with broken data tries to load nothing, but says so.
const trouble = [...troubleBefore, ...page.trouble].filter((words) => !/Failed to load resource|ERR_INVALID_URL/.test(words));
let failed = 0;
for (const [what, found] of Object.entries({ 'nothing ran and nothing failed': trouble, 'nothing was asked elsewhere': strange, 'the policy had nothing to forbid': violations, 'no element or attribute but ours': [...odd] })) {
  if (found.length) { failed += 1; console.log(`FAILED: ${what}: ${found.slice(0, 6).join('\n   ')}`); } else console.log(`ok: ${what}`);
}
await page.evaluate("(() => { const b = document.createElement('div'); b.setAttribute('onclick', 'alert(1)'); document.body.append(b); b.click(); })()");
await page.wait(100);
if (violations.length) console.log('ok: the check itself would have noticed'); else { failed += 1; console.log('FAILED: an inline handler was not noticed'); }
await page.close();
server.close();
process.exit(failed ? 1 : 0);
