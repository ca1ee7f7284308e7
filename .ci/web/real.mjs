// The page on the agent itself: real.mjs CHROMIUM PROGRAM [PAGE_FOLDER]. The page that is in the program, unless a folder is
// given; the model is the offline one. Here is what the scripted agent of the other tests may have got wrong.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { check, open, same } from './browser.mjs';

const [program, agentProgram, folder] = process.argv.slice(2);
const home = mkdtempSync(join(tmpdir(), 'page-check-'));
const args = ['--mode', 'web', '--port', '0', '--web-token', '--model', 'offline/echo', ...(folder ? ['--serve-ui', folder] : [])];
const agent = spawn(agentProgram, args, { cwd: home, env: { PATH: process.env.PATH, HOME: home, PI_CODING_AGENT_DIR: join(home, 'agent') } });
let printed = '';
const page = await open(program);
let failed = null;
const end = (value) => `[...document.querySelectorAll('${value}')].at(-1)`;
try {
  const url = await new Promise((resolve, reject) => {
    agent.stdout.on('data', (chunk) => {
      printed += chunk;
      const found = /UI:\s+(\S+)/.exec(printed)?.[1];
      if (found) resolve(found);
    });
    agent.on('exit', (code) => reject(new Error(`the agent ended with ${code}`)));
    setTimeout(() => reject(new Error('the agent says no address')), 15000);
  });
  check('the address has a token', url.includes('token='));
  await page.device('desktop');
  await page.goto(url);
  await page.ready();
  check('the token is gone', !(await page.evaluate('location.href')).includes('token'));
  await page.until("document.querySelector('.blank h1')");

  await page.focus('#field');
  await page.type('List the files in this directory');
  await page.key('Enter');
  await page.until(`${end('.answer')}?.innerText.includes('came back')`, 15000);
  await page.until("!document.body.classList.contains('running')", 15000);
  same('messages', await page.count('.user'), 1);
  same('the tool', await page.evaluate("document.querySelector('.tool').dataset.status"), 'done');
  await page.picture('real-answer');

  await page.type('!echo "from the shell"; exit 3');
  await page.key('Enter');
  await page.until("document.querySelector('.shell .remark')?.innerText.includes('exit 3')");

  await page.type('/name A real name');
  await page.key('Enter');
  await page.until("document.querySelector('#name').innerText.includes('A real name')");

  const address = await page.evaluate('location.href');
  await page.click('.new-session');
  await page.until("document.querySelector('.blank h1') && !document.querySelector('.item')");
  await page.type('hello');
  await page.key('Enter');
  await page.until(`${end('.answer')}?.innerText.includes('You wrote')`, 15000);
  await page.until("document.querySelectorAll('.session').length === 2");

  await page.goto(address);
  await page.ready();
  await page.until("document.querySelector('#name').innerText.includes('A real name') && document.querySelector('.shell')");
  same('all of it again', await page.evaluate("[...document.querySelectorAll('.item')].map((node) => node.className.split(' ')[1])"), ['user', 'answer', 'answer', 'shell']);

  await page.evaluate("document.querySelector('#more').click()");
  await page.until("document.querySelector('.menu:popover-open')");
  await page.evaluate("[...document.querySelectorAll('.menu-entry')].find((one) => one.textContent.includes('Branches')).click()");
  await page.until("document.querySelectorAll('.tree-row').length === 4");
  await page.evaluate("document.querySelector('dialog').close()");

  await page.focus('#field');
  await page.type('/export page.html');
  await page.key('Enter');
  await page.until("document.querySelector('.toast')?.innerText.includes('page.html')");

  await page.evaluate("document.querySelector('.user [title=\"Edit in a fork\"]').click()");
  await page.until("document.querySelector('#field').value === 'List the files in this directory' && document.querySelector('.blank h1')");
  agent.kill('SIGTERM');
  await page.until("document.querySelector('.banner.shown')");
  if (page.trouble.length) throw new Error(page.trouble.join('; '));
} catch (error) {
  failed = error;
  await page.picture('failed-real').catch(() => {});
}
await page.close();
agent.kill('SIGKILL');
rmSync(home, { recursive: true, force: true });
console.log(failed ? `FAILED: on the agent itself: ${failed.message}` : 'ok: on the agent itself');
process.exit(failed ? 1 : 0);
