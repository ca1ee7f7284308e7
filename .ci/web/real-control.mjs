// Limits, undo and terminals of the page on the agent itself: real-control.mjs CHROMIUM PROGRAM [PAGE_FOLDER]. A script plays the model.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { check, open, same, waitFor } from './browser.mjs';
import { command, press } from './dialog.mjs';
import { start, stopped } from './started.mjs';

const [program, agentProgram, folder] = process.argv.slice(2);
const home = mkdtempSync(join(tmpdir(), 'page-check-'));
const notes = join(home, 'notes.txt');
writeFileSync(notes, 'one\n');
const tool = (name, args) => ({ stream: [{ tool: { name, args } }] });
const COMMAND = 'printf ready; while read line; do printf \'\\033[38;2;200;0;0mgot %s\\033[0m in %s\' "$line" "$(stty size)"; done';
writeFileSync(join(home, 'replies.json'), JSON.stringify([tool('write', { path: notes, content: 'two\n' }), tool('bash', { command: COMMAND, background: true, pty: true }), { stream: [{ text: 'Done.' }] }]));
const page = await open(program);
const screen = "(document.querySelector('.xterm-rows')?.innerText.replaceAll('\\u00a0', ' ') || '')";
let agent = null;
let failed = null;
try {
  agent = await start(agentProgram, home, ['--port', '0', '--web-token', '--model', 'offline/script', '--script', join(home, 'replies.json'), '--tools', 'write,bash,process', '--checkpoints', 'files',
    '--max-turns', '3', ...(folder ? ['--serve-ui', folder] : [])]);
  await page.device('desktop');
  await page.goto(agent.url);
  await page.ready();
  await page.focus('#field');
  await page.type('Write two and start it');
  await page.key('Enter');
  await page.until("document.querySelector('#processes')?.innerText.trim() === '1' && !document.body.classList.contains('running')");
  same('the file', readFileSync(notes, 'utf8'), 'two\n');

  await page.click('#processes');
  await page.until(`${screen}.includes('ready')`);
  await page.until("document.activeElement?.classList.contains('xterm-helper-textarea')");
  // The size of the terminal reaches the program a moment after its output is shown.
  let said = 0;
  await waitFor('the program knows the size', async () => {
    said += 1;
    await page.type(`hello${said}`);
    await page.key('Enter');
    await page.until(`/got hello${said} in \\d+ \\d+/.test(${screen})`);
    const [, rows] = new RegExp(`got hello${said} in (\\d+) \\d+`).exec(await page.evaluate(screen));
    return Number(rows) === await page.evaluate("document.querySelectorAll('.xterm-rows > div').length");
  });
  await page.picture('real-terminal');
  await page.click('dialog .check-row');
  const wakeups = async () => (await agent.command({ type: 'list_processes' })).data.wakeups;
  await waitFor('its end may wake the session', wakeups);
  await press(page, 'Kill');
  await page.until("document.querySelector('.process-state').innerText === 'killed'");
  await press(page, 'Close');

  await command(page, '/undo');
  await page.until("document.querySelector('.undo-files .changes-file')");
  check('the diff', (await page.text('.undo-files')).includes('notes.txt'));
  await press(page, 'Files and conversation');
  await page.until("document.querySelector('.undo-report').innerText.includes('1 file restored.')");
  same('restored', readFileSync(notes, 'utf8'), 'one\n');
  await page.until("!document.querySelector('.item')");
  await page.picture('real-undo');
  await press(page, 'Undo the last rewind');
  await page.until("document.querySelector('.undo-report').innerText.includes('The rewind was undone.') && document.querySelector('.item')");
  same('and back', readFileSync(notes, 'utf8'), 'two\n');
  await press(page, 'Close');

  // Three requests were allowed, and three were made: the next prompt is refused until the limit is raised.
  await command(page, '/limits');
  same('the limit', await page.evaluate("document.querySelector('dialog[open] input').value"), '3');
  await page.type('9');
  await press(page, 'Save');
  await page.until("!document.querySelector('dialog[open]')");
  same('set', (await agent.command({ type: 'get_limits' })).data.limits.maxTurns, 9);
  if (page.trouble.length) throw new Error(page.trouble.join('; '));
} catch (error) {
  failed = error;
  await page.picture('failed-real-control').catch(() => {});
} finally {
  await page.close();
  if (agent) await stopped(agent.child);
  rmSync(home, { recursive: true, force: true });
}
console.log(failed ? `FAILED the page's limits, undo and terminals on the agent itself: ${failed.message}` : 'ok: limits, undo and terminals of the page on the agent itself');
process.exit(failed ? 1 : 0);
