// The page on the agent itself: real.mjs CHROMIUM PROGRAM [PAGE_FOLDER]. The page that is in the program, unless a folder is
// given; the model is the offline one. Here is what the scripted agent of the other tests may have got wrong.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { check, open, same } from './browser.mjs';
import { start, startAtOwnPort, stopped } from './started.mjs';

const [program, agentProgram, folder] = process.argv.slice(2);
const home = mkdtempSync(join(tmpdir(), 'page-check-'));
mkdirSync(join(home, 'wheels/small'), { recursive: true });
writeFileSync(join(home, 'wheels/cut gears.txt'), 'teeth');
const args = ['--model', 'offline/echo', ...(folder ? ['--serve-ui', folder] : [])];
const page = await open(program);
let agent = null;
let failed = null;
const end = (value) => `[...document.querySelectorAll('${value}')].at(-1)`;
try {
  agent = await startAtOwnPort(agentProgram, home, ['--web-token', ...args]);
  const { url } = agent;
  check('the address has a token', url.includes('token='));
  await page.device('desktop');
  await page.goto(url);
  await page.ready();
  check('the token is gone', !(await page.evaluate('location.href')).includes('token'));
  await page.until("document.querySelector('.blank h1')");

  await page.focus('#field');
  await page.type('List the files in this directory');
  await page.key('Enter');
  await page.until(`${end('.answer')}?.innerText.includes('came back')`);
  await page.until("!document.body.classList.contains('running')");
  same('messages', await page.count('.user'), 1);
  same('the tool', await page.evaluate("document.querySelector('.tool').dataset.status"), 'done');
  await page.picture('real-answer');

  await page.type('!echo "from the shell"; exit 3');
  await page.key('Enter');
  await page.until("document.querySelector('.shell .remark')?.innerText.includes('exit 3')");

  // What another client runs is shown here, too.
  await agent.command({ type: 'bash', id: 'other', command: 'echo elsewhere; exit 4' });
  await page.until("[...document.querySelectorAll('.shell .remark')].some((one) => one.innerText.includes('exit 4'))");
  check('its command', (await page.evaluate(`${end('.shell')}.innerText`)).includes('echo elsewhere'));

  await page.type('see @gear');
  await page.until("document.querySelector('.completion-entry.is-file')?.innerText.includes('cut gears.txt')");
  await page.key('Tab');
  same('the file', await page.evaluate("document.querySelector('#field').value"), 'see @"wheels/cut gears.txt" ');
  await page.evaluate("document.querySelector('#field').value = ''");

  await page.type('/name A real name');
  await page.key('Enter');
  await page.until("document.querySelector('#name').innerText.includes('A real name')");

  const address = await page.evaluate('location.href');
  await page.click('.new-session');
  await page.until("document.querySelector('.blank h1') && !document.querySelector('.item')");
  await page.focus('#field');
  await page.type('hello');
  await page.until("!document.querySelector('.send').disabled");
  await page.key('Enter');
  await page.until(`${end('.answer')}?.innerText.includes('You wrote')`);
  await page.until("document.querySelectorAll('.session').length === 2");

  await page.click('[title="New session in a directory…"]');
  await page.until("[...document.querySelectorAll('.folder')].some((one) => one.innerText === 'wheels')");
  await page.evaluate("[...document.querySelectorAll('.folder')].find((one) => one.innerText === 'wheels').click()");
  await page.until("document.querySelector('.folder')?.innerText === 'small'");
  await page.click('.folder-dialog .primary');
  await page.until("document.querySelector('.name-place')?.innerText.endsWith('/wheels')");

  await page.goto(address);
  await page.ready();
  await page.until("document.querySelector('#name').innerText.includes('A real name') && document.querySelector('.shell')");
  same('all of it again', await page.evaluate("[...document.querySelectorAll('.item')].map((node) => node.className.split(' ')[1])"), ['user', 'answer', 'answer', 'shell', 'shell']);

  // The agent ends and is started anew: the session comes back from disk, and what one was writing stays.
  await page.focus('#field');
  await page.type('a draft');
  await stopped(agent.child);
  await page.until("document.querySelector('.banner.shown')");
  agent = await start(agentProgram, home, ['--port', new URL(url).port, '--web-token', agent.token, ...args]);
  await page.until("document.body.dataset.phase === 'open' && document.querySelectorAll('.shell').length === 2");
  same('the draft', await page.evaluate("document.querySelector('#field').value"), 'a draft');
  same('the address', await page.evaluate('location.href'), address);
  await page.evaluate("(() => { const field = document.querySelector('#field'); field.value = ''; field.dispatchEvent(new Event('input')); })()");
  await page.focus('#field');
  await page.type('Say it again');
  // Nothing is sent before the session is there again: it would go into another one.
  await page.until("!document.querySelector('.send').disabled");
  await page.key('Enter');
  await page.until(`${end('.answer')}?.innerText.includes('Say it again')`);
  await page.until("!document.body.classList.contains('running')");

  await page.evaluate("document.querySelector('#more').click()");
  await page.until("document.querySelector('.menu:popover-open')");
  await page.evaluate("[...document.querySelectorAll('.menu-entry')].find((one) => one.textContent.includes('Branches')).click()");
  await page.until("document.querySelectorAll('.tree-row').length > 4");
  await page.evaluate("document.querySelector('dialog').close()");
  await page.until("!document.querySelector('dialog')");

  await page.focus('#field');
  await page.type('/export page.html');
  await page.key('Enter');
  await page.until("[...document.querySelectorAll('.toast')].some((one) => one.innerText.includes('page.html'))");

  await page.evaluate("document.querySelector('.user [title=\"Edit in a fork\"]').click()");
  await page.until("document.querySelector('#field').value === 'List the files in this directory' && document.querySelector('.blank h1')");
  await stopped(agent.child);
  await page.until("document.querySelector('.banner.shown')");

  // The agent dies during a run, and a message waits: the page that reconnects has it.
  const busy = join(home, 'busy');
  mkdirSync(busy);
  writeFileSync(join(busy, 'replies.json'), JSON.stringify([{ stream: [{ tool: { id: 'c1', name: 'bash', args: { command: 'sleep 60' } } }] }]));
  const script = ['--model', 'offline/script', '--script', join(busy, 'replies.json'), ...(folder ? ['--serve-ui', folder] : [])];
  agent = await startAtOwnPort(agentProgram, busy, ['--web-token', ...script]);
  const again = agent.url;
  await page.goto(again);
  await page.ready();
  await page.focus('#field');
  await page.type('Wait a minute');
  await page.key('Enter');
  await page.until("document.querySelector('.tool')?.dataset.status === 'running'");
  await page.type('do not lose this');
  await page.key('Enter');
  await page.until("document.querySelectorAll('.queued').length === 1");
  await stopped(agent.child, 'SIGKILL');
  await page.until("document.querySelector('.banner.shown')");
  agent = await start(agentProgram, busy, ['--port', new URL(again).port, '--web-token', agent.token, ...script]);
  // The toast goes by itself.
  await page.until("[...document.querySelectorAll('.toast')].some((one) => one.innerText.includes('restarted before it took 1 waiting message'))");
  await page.until("document.querySelector('#field').value === 'do not lose this'");
  await page.until("document.querySelector('.user')?.innerText.includes('Wait a minute') && document.querySelector('.stop').hidden");
  same('no message waits', await page.count('.queued'), 0);
  await page.picture('real-queue-after-restart');
  await stopped(agent.child, 'SIGKILL');
  await page.until("document.querySelector('.banner.shown')");
  if (page.trouble.length) throw new Error(page.trouble.join('; '));
} catch (error) {
  failed = error;
  await page.picture('failed-real').catch(() => {});
}
await page.close();
if (agent) await stopped(agent.child, 'SIGKILL');
rmSync(home, { recursive: true, force: true });
console.log(failed ? `FAILED: on the agent itself: ${failed.message}` : 'ok: on the agent itself');
process.exit(failed ? 1 : 0);
