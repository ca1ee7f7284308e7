// How fast the page is: bench.mjs CHROMIUM [PROGRAM]. First paint and bytes (of the agent itself, too, when it is named), a
// conversation of 5,000 messages, 200 deltas a second, also at the end of a turn of 2,000 steps. The limits are those of the page's design, with room for a machine that has other things to do.

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { Agent } from './agent.mjs';
import { open } from './browser.mjs';
import { serve } from './server.mjs';
import { start, stopped } from './started.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '../../crates/web/page');
const [program, agentProgram] = process.argv.slice(2);
let failed = 0;
function say(what, value, most, unit) {
  const ok = value <= most;
  if (!ok) failed += 1;
  console.log(`${ok ? 'ok' : 'FAILED'}: ${what}: ${Math.round(value * 10) / 10} ${unit} (at most ${most})`);
}

const files = readdirSync(root, { recursive: true }).map(String).filter((name) => !name.endsWith('.md') && !name.includes('test') && statSync(join(root, name)).isFile());
const packed = (names) => names.reduce((sum, name) => sum + gzipSync(readFileSync(join(root, name))).length, 0) / 1000;
// Fetched with the first terminal only.
const isLater = (name) => name.startsWith('vendor/xterm');
say('all files of the page, packed, without those of terminals', packed(files.filter((name) => !isLater(name))), 300, 'kB');
say('files that the first terminal fetches, packed', packed(files.filter(isLater)), 100, 'kB');

const agent = new Agent();
const server = await serve(root, { onclient: (client) => agent.join(client) });
const page = await open(program);
await page.device('desktop');
await page.goto(server.url);
await page.ready();
let arrived = 0;
page.browser.on('Network.loadingFinished', ({ encodedDataLength }) => { arrived += encodedDataLength; });
await page.browser.send('Network.setCacheDisabled', { cacheDisabled: true });
// The service worker would answer a second time from what it keeps.
await page.browser.send('Network.setBypassServiceWorker', { bypass: true });
/** First paint of the best of some loads, for the machine does other things; and the bytes of the last. */
async function firstPaint(url) {
  const paints = [];
  for (let i = 0; i < 5; i += 1) {
    arrived = 0;
    await page.goto(url);
    await page.ready();
    paints.push(await page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"));
  }
  return { best: Math.min(...paints), all: paints.map(Math.round) };
}
const own = await firstPaint(server.url);
say(`first paint (${own.all})`, own.best, 300, 'ms');
if (agentProgram) {
  const home = mkdtempSync(join(tmpdir(), 'page-bench-'));
  const real = await start(agentProgram, home, ['--port', '0', '--model', 'offline/echo']);
  const theirs = await firstPaint(real.url);
  say(`first paint of the agent's own page (${theirs.all})`, theirs.best, 300, 'ms');
  say('what came over the line for it', arrived / 1000, 300, 'kB');
  await stopped(real.child, 'SIGKILL');
  rmSync(home, { recursive: true, force: true });
}

const words = 'The pinion drives the rack, tooth by tooth, and **nothing** slips. See `crates/store/src/recover.rs` for the rest.\n\n';
for (let i = 0; i < 2500; i += 1) {
  agent.first.messages.push({ role: 'user', content: `Question ${i}: ${words}`, timestamp: i },
    { role: 'assistant', content: [{ type: 'thinking', thinking: words }, { type: 'text', text: words.repeat(3) }, ...(i % 3 ? [] : [{ type: 'toolCall', id: `c${i}`, name: 'bash', arguments: { command: 'make' } }])], stopReason: 'stop', timestamp: i });
}
await page.goto('about:blank');
const begin = performance.now();
await page.goto(server.url);
await page.until("document.querySelectorAll('.item').length > 20", 20000);
say('5,000 messages until they are shown', performance.now() - begin, 2500, 'ms');
say('items in the document', await page.count('.item'), 200, '');
const FRAMES = `new Promise((done) => { const gaps = []; let last = performance.now(); const end = last + MS; const step = (now) => { gaps.push(now - last); last = now; ACT; if (now < end) requestAnimationFrame(step); else done(gaps.slice(1).sort((a, b) => a - b)); }; requestAnimationFrame(step); })`;
const watch = (ms, act = '') => page.evaluate(FRAMES.replace('MS', ms).replace('ACT', act));
const figures = (gaps) => ({ half: gaps[Math.floor(gaps.length / 2)], p95: gaps[Math.floor(gaps.length * 0.95)], p99: gaps[Math.floor(gaps.length * 0.99)], worst: gaps.at(-1) });
const scrolling = figures(await watch(3000, "document.querySelector('#scroll').scrollTop -= 60"));
say('scrolling through 5,000 messages, 95 of 100 frames within', scrolling.p95, 34, 'ms');
await page.evaluate("document.querySelector('.jump').click()");

agent.say({ type: 'agent_start' });
agent.say({ type: 'message_start', message: { role: 'assistant', content: [], timestamp: 1 } });
const delta = (text) => agent.say({ type: 'message_update', assistantMessageEvent: { type: 'text_delta', contentIndex: 0, delta: text } });
const idle = figures(await watch(1000));
let sent = 0;
const source = `${words.repeat(4)}- a list\n- of things\n\n\`\`\`rust\nfn main() { println!("x"); }\n\`\`\`\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n`;
async function streamed(ms) {
  sent = 0;
  const timer = setInterval(() => { for (let i = 0; i < 5; i += 1) { delta(source.slice(sent % source.length).slice(0, 12)); sent += 12; } }, 25);
  const found = figures(await watch(ms));
  clearInterval(timer);
  return found;
}
const streaming = await streamed(6000);
console.log(`frames while nothing happens: ${JSON.stringify(idle)}; at 200 deltas a second: ${JSON.stringify(streaming)}; ${sent / 12} deltas`);
say('200 deltas a second, 95 of 100 frames within', streaming.p95, 25, 'ms');
say('and 99 of 100', streaming.p99, 50, 'ms');

// The same at the end of a turn that had the model do 2,000 things.
const kept = agent.first.messages;
agent.first.messages = [{ role: 'user', content: 'Do it all', timestamp: 1 }];
for (let i = 0; i < 2000; i += 1) {
  agent.first.messages.push({ role: 'assistant', content: [{ type: 'toolCall', id: `t${i}`, name: i % 5 ? 'read' : 'edit', arguments: { path: `src/${i}.rs` } }], stopReason: 'toolUse', timestamp: i },
    { role: 'toolResult', toolCallId: `t${i}`, toolName: i % 5 ? 'read' : 'edit', content: [{ type: 'text', text: words }], details: { diff: '-1 a\n+1 b' }, isError: false, timestamp: i });
}
agent.first.message = null;
await page.goto(server.url);
await page.until("document.querySelectorAll('.tool').length > 20", 20000);
agent.say({ type: 'agent_start' });
agent.say({ type: 'message_start', message: { role: 'assistant', content: [], timestamp: 1 } });
const long = await streamed(4000);
// The page's own work is a tenth of that time; the rest is the drawing, which has no graphics card here.
say('the same after 2,000 steps in one turn, 95 of 100 frames within', long.p95, 34, 'ms');
say('and 99 of 100', long.p99, 50, 'ms');
agent.first.messages = kept;
agent.first.message = null;
agent.first.running = false;
await page.goto(server.url);
await page.until("document.querySelectorAll('.item').length > 20", 20000);
say('what the page keeps in memory', await page.evaluate('performance.memory.usedJSHeapSize') / 1e6, 120, 'MB');
await page.close();
server.close();
process.exit(failed ? 1 : 0);
