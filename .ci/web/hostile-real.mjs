// Hostile text through the agent itself, with the policy that it sends: hostile-real.mjs CHROMIUM PROGRAM. A session file, other
// sessions, a model's answers, tools' output, names of files and directories, commands of another client.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { check, open } from './browser.mjs';
import { watch } from './inspect.mjs';
import { start, stopped } from './started.mjs';

const [program, agentProgram] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const payloads = JSON.parse(readFileSync(join(here, '../../crates/export/src/tests/payloads.json'), 'utf8'));
const home = mkdtempSync(join(tmpdir(), 'page-hostile-'));
const sessions = join(home, 'sessions');
const work = join(home, 'work');
for (const dir of [sessions, work]) mkdirSync(dir, { recursive: true });
const text = (words) => ({ type: 'text', text: words });
const time = '2026-11-21T10:00:00.000Z';

/** Writes a session; gives its path. */
function session(name, id, fill) {
  const lines = [{ type: 'session', version: 3, id, timestamp: time, cwd: work }];
  let last = null;
  let made = 0;
  const add = (type, body) => { made += 1; const entry = made.toString(16).padStart(8, '0'); lines.push({ type, id: entry, parentId: last, timestamp: time, ...body }); last = entry; return entry; };
  fill(add, (message) => add('message', { message: { timestamp: made + 1, ...message } }));
  const path = join(sessions, `${name}.jsonl`);
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  return path;
}

const usage = { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } };
const file = session('2026-11-21T10-00-00-000Z_01a1fb5a-7501-7c62-bc5c-cebc5d52d56c', '01a1fb5a-7501-7c62-bc5c-cebc5d52d56c', (add, say) => {
  add('session_info', { name: payloads[0] });
  payloads.forEach((payload, index) => {
    add('label', { targetId: say({ role: 'user', content: [text(payload)] }), label: payload });
    const calls = ['bash', 'read', 'write', 'edit', 'grep', payload.slice(0, 60) || 'x'].map((name, i) => ({ type: 'toolCall', id: `call_${index}_${i}`, name,
      arguments: { command: payload, path: payload, pattern: payload, content: payload, edits: [{ oldText: payload, newText: `${payload}.` }], [payload]: payload } }));
    say({ role: 'assistant', api: payload, provider: payload, model: payload, usage, stopReason: index % 2 ? 'error' : 'stop', errorMessage: payload,
      content: [{ type: 'thinking', thinking: payload }, text(`Words **${payload}** and [a](${payload}) ![b](${payload})\n\n\`\`\`${payload}\n${payload}\n\`\`\``), ...calls] });
    for (const call of calls) say({ role: 'toolResult', toolCallId: call.id, toolName: call.name, content: [text(payload), { type: 'image', mimeType: 'image/svg+xml', data: 'PHN2Zz4=' }], details: { diff: `-1 ${payload}\n+1 ${payload}.`, fullOutputPath: payload }, isError: index % 3 === 0 });
    say({ role: 'bashExecution', command: payload, output: payload, exitCode: 1, cancelled: false, truncated: true, fullOutputPath: payload });
    add('custom_message', { customType: payload, content: payload, display: true });
    add('branch_summary', { fromId: 'root', summary: payload });
  });
});
payloads.slice(0, 60).forEach((payload, i) => session(`2026-11-20T10-00-00-000Z_other-${i}`, `other-${i}`, (add, say) => {
  if (i % 2) add('session_info', { name: payload });
  say({ role: 'user', content: [text(payload)] });
}));
const names = payloads.filter((payload) => !/[/\0]/.test(payload) && Buffer.byteLength(payload) < 200 && !['.', '..', ''].includes(payload.trim()));
for (const [i, name] of names.entries()) if (i % 2) mkdirSync(join(work, name), { recursive: true }); else writeFileSync(join(work, name), name);
// What a model says now, in pieces, and what it has tools do: files with such names, and output.
const replies = [{ stream: [{ thinking: payloads.join('\n') }, { text: payloads.flatMap((payload) => [payload.slice(0, 5), payload.slice(5), '\n\n']) },
  ...names.slice(0, 8).map((name) => ({ tool: { name: 'write', args: { path: `made/${name}`, content: name } } })),
  { tool: { name: 'bash', args: { command: 'ls made; cat made/*' } } }, { tool: { name: payloads[3].slice(0, 60), args: { path: payloads[4] } } }] },
{ stream: [{ text: 'All of it was said.' }] }];
writeFileSync(join(home, 'replies.json'), JSON.stringify(replies));

const agent = await start(agentProgram, work, ['--port', '0', '--web-token', '--model', 'offline/script', '--script', join(home, 'replies.json'), '--session-dir', sessions, '--session', file]);
const page = await open(program);
let failed = 1;
try {
  const policy = (await fetch(agent.origin, { headers: { authorization: `Bearer ${agent.token}` } })).headers.get('content-security-policy') || '';
  check(`the policy of the agent's own page: ${policy}`, policy.includes("default-src 'none'") && policy.includes("script-src 'self'") && !policy.includes('unsafe'));
  const eye = await watch(page, agent.origin);
  await page.device('desktop');
  await page.goto(agent.url);
  await page.ready();
  await page.until("document.querySelectorAll('.item').length > 40");
  await eye.walk();
  console.log(`${eye.seen.size} items of the agent looked at`);
  check('all items were shown', eye.seen.size >= payloads.length * 4);

  await page.evaluate("document.querySelector('.jump').click()");
  await page.focus('#field');
  await page.type('Say all of it');
  await page.key('Enter');
  await page.until("[...document.querySelectorAll('.answer')].at(-1)?.innerText.includes('All of it was said.')");
  await eye.look();
  for (const payload of payloads.slice(0, 30)) await agent.command({ type: 'bash', id: payload.slice(0, 40), command: `printf %s '${payload.replace(/'/g, "'\\''")}'` });
  await page.until("document.querySelectorAll('.shell').length >= 30");
  await eye.look();
  for (const words of ['@', '@a', '@img', '@"x ', '/']) {
    await page.evaluate(`(() => { const field = document.querySelector('#field'); field.value = ${JSON.stringify(words)}; field.setSelectionRange(field.value.length, field.value.length); field.dispatchEvent(new Event('input')); })()`);
    await page.wait(350);
    // Names of files.
    if (words === '@') await page.until("document.querySelectorAll('.completion-entry.is-file').length > 20");
    await eye.glance();
  }
  await page.evaluate("(() => { const field = document.querySelector('#field'); field.value = ''; field.dispatchEvent(new Event('input')); })(); document.querySelector('[title=\"New session in a directory…\"]').click()");
  await page.until("document.querySelectorAll('.folder').length > 20");
  await eye.glance();
  await page.evaluate("document.querySelectorAll('.folder')[3].click()");
  await page.until("document.querySelectorAll('.crumb').length > 2 && !document.querySelector('.folder')");
  await eye.glance();
  await page.evaluate("document.querySelector('dialog').close(); document.querySelector('#more').click()");
  await page.until("document.querySelector('.menu') && !document.querySelector('dialog')");
  await page.evaluate("[...document.querySelectorAll('.menu-entry')].find((one) => one.textContent.includes('Branches')).click()");
  await page.until("document.querySelectorAll('.tree-row').length > 100");
  await eye.glance();
  await page.evaluate("document.querySelector('dialog').close()");
  // Other sessions.
  await page.until("document.querySelectorAll('.session').length > 30");
  await eye.look();
  failed = await eye.report();
} catch (error) {
  console.log(`FAILED: hostile text through the agent: ${error.message}`);
  await page.picture('failed-hostile-real').catch(() => {});
}
await page.close();
await stopped(agent.child, 'SIGKILL');
rmSync(home, { recursive: true, force: true });
process.exit(failed ? 1 : 0);
