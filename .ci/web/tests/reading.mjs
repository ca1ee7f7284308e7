// What a reader sees: numbers in tables, retries that the user stopped, the changes a permission is asked for, steps of branches; and
// which session is shown.

import { check, same, soon } from '../browser.mjs';
import { sayUser, stream, user } from '../agent.mjs';

export async function numericColumnsAlignRight(page, agent) {
  sayUser(agent, 'Figures');
  stream(agent, [{ type: 'text', text: '| work | pi | Pinion | note |\n|---|---|---|---|\n| start | 1.57 | 0.006 s | fast |\n| memory | 132 MB | 7.1 MB | 1 agent |\n| list | – | 4 % | |\n' }]);
  await page.until("document.querySelectorAll('.prose tbody tr').length === 3");
  const align = (column) => page.evaluate(`[...document.querySelectorAll('.prose tr')].map((row) => getComputedStyle(row.cells[${column}]).textAlign)`);
  same('names', await align(0), ['start', 'start', 'start', 'start']);
  same('numbers', await align(1), ['end', 'end', 'end', 'end']);
  same('numbers with units', await align(2), ['end', 'end', 'end', 'end']);
  same('words', await align(3), ['start', 'start', 'start', 'start']);
  await page.picture('numeric-table');
}

export async function stoppedRetryIsNoFailure(page, agent) {
  agent.say({ type: 'agent_start' });
  agent.say({ type: 'auto_retry_start', attempt: 1, maxAttempts: 3, delayMs: 60000, errorMessage: '529 Overloaded' });
  await page.until("document.querySelector('#status').innerText.includes('Trying again')");
  await page.focus('#field');
  if (page.size === 'phone') await page.click('.stop');
  else await page.key('Escape');
  agent.say({ type: 'auto_retry_end', success: false, attempt: 1, finalError: 'Retry cancelled' });
  await page.until("[...document.querySelectorAll('.toast')].some((one) => one.innerText.includes('The retry was stopped'))");
  check('no failure', await page.evaluate("![...document.querySelectorAll('.toast')].some((one) => one.innerText.includes('Gave up') || one.classList.contains('error'))"));
}

export async function permissionShowsEditAsDiff(page, agent) {
  agent.say({ type: 'extension_ui_request', id: 'p1', method: 'select', title: 'Allow edit?\n/home/ada/rack/src/a.rs\n 10 fn main() {\n-11     old();\n+11     new();\n 12 }',
    options: ['Allow once', 'Allow for this session', 'Deny'], timeout: 300000 });
  await page.until("document.querySelector('dialog .diff')");
  same('added', await page.text('dialog .diff-line.add .diff-text').then((text) => text.trim()), 'new();');
  same('removed', await page.text('dialog .diff-line.del .diff-text').then((text) => text.trim()), 'old();');
  check('the path stands before', (await page.text('dialog .dialog-about')).includes('src/a.rs'));
  await page.picture('permission-diff');
  await page.click('dialog .choice:first-child');
  await page.until("!document.querySelector('dialog')");
  await soon(() => same('allowed', agent.answers.map((one) => one.value), ['Allow once']));
}

export async function permissionForCommandStaysText(page, agent) {
  const command = ['cat <<END', '+1 harmless', ' ...', '-2 harmless', ...Array.from({ length: 2100 }, (_, i) => `+${i} line`), 'END', 'the last command'];
  agent.say({ type: 'extension_ui_request', id: 'p2', method: 'select', title: `Allow bash?\n${command.join('\n')}`, options: ['Allow once', 'Allow for this session', 'Deny'] });
  await page.until("document.querySelector('dialog .dialog-about')");
  same('no diff', await page.count('dialog .diff'), 0);
  same('every line', await page.evaluate("document.querySelector('dialog .dialog-about').textContent"), command.join('\n'));
  agent.say({ type: 'extension_ui_request', id: 'c2', method: 'cancel', targetId: 'p2' });
  await page.until("!document.querySelector('dialog')");
  const edit = ['/home/ada/rack/a.rs', ...Array.from({ length: 2100 }, (_, i) => `+${i} line`)];
  agent.say({ type: 'extension_ui_request', id: 'p3', method: 'select', title: `Allow edit?\n${edit.join('\n')}`, options: ['Allow once', 'Allow for this session', 'Deny'] });
  await page.until("document.querySelector('dialog .dialog-about')");
  same('a diff that would be cut', await page.evaluate("document.querySelector('dialog .dialog-about').textContent"), edit.join('\n'));
}

export async function permissionModeIsChosenFromOff(page, agent) {
  await page.until("document.querySelector('.permission').textContent === 'No checks'");
  await page.click('.permission');
  await page.until("document.querySelectorAll('.menu:popover-open .menu-entry').length === 4");
  await page.evaluate("[...document.querySelectorAll('.menu-entry')].find((node) => node.textContent.includes('Ask before')).dataset.test = 'ask'");
  await page.click('[data-test=ask]');
  await page.until("document.querySelector('.permission').innerText === 'Ask first'");
  await soon(() => same('asked', agent.asked('set_permission_mode').map((one) => one.mode), ['ask']));
}

const entry = (id, parentId, message) => ({ type: 'message', id, parentId, timestamp: '2026-01-01T00:00:00Z', message });

export async function branchesNameTheirSteps(page, agent) {
  const call = (id, name, args) => ({ type: 'toolCall', id, name, arguments: args });
  const node = (one, ...children) => ({ entry: one, children });
  agent.first.tree = [node(entry('e1', null, user('Fix it')), node(entry('e2', 'e1', { role: 'assistant', content: [call('c1', 'read', { path: 'src/store/recover.rs' }), call('c2', 'bash', { command: 'cargo test' })] }),
    node(entry('e3', 'e2', { role: 'toolResult', toolCallId: 'c2', isError: true, content: [] }), node(entry('e4', 'e3', { role: 'assistant', content: [], stopReason: 'aborted' })))))];
  agent.first.leaf = 'e4';
  await page.click('#more');
  await page.until("document.querySelector('.menu:popover-open')");
  await page.evaluate("[...document.querySelectorAll('.menu-entry')].find((node) => node.textContent.includes('Branches')).dataset.test = 'tree'");
  await page.click('[data-test=tree]');
  await page.until("document.querySelectorAll('.tree-row').length === 3");
  same('steps', await page.evaluate("[...document.querySelectorAll('.tree-text')].map((one) => one.textContent)"), ['Fix it', 'Read recover.rs · Shell cargo test (failed)', 'Stopped']);
  await page.picture('branches-with-steps');
  await page.key('Escape');
}

export async function lastUsedSessionOpensFirst(page, agent, server) {
  await page.until("document.querySelector('#name').innerText.includes('Release')");
  await page.evaluate("localStorage.setItem('pinion-last-session', JSON.stringify('gone'))");
  await page.goto(server.url);
  await page.ready();
  await page.until("document.querySelector('.blank h1')");
  same('a session that is gone is not looked for', await page.count('.toast'), 0);
}
lastUsedSessionOpensFirst.prepare = (agent) => {
  agent.listed = [{ path: '/sessions/b1.jsonl', id: 'b1', cwd: '/home/ada/rack', name: 'Release 0.4', created: '2026-01-01T00:00:00Z', modified: '2026-01-01T00:00:00Z', messageCount: 1, firstMessage: 'Hello', allMessagesText: '' }];
};
lastUsedSessionOpensFirst.remembered = { 'last-session': 'b1' };

export async function emptyFirstSessionCanBeClosed(page, agent) {
  await page.until("document.querySelector('.blank h1')");
  await page.click('#more');
  await page.until("document.querySelector('.menu:popover-open')");
  await page.evaluate("[...document.querySelectorAll('.menu-entry')].find((node) => node.textContent.includes('Close session')).dataset.test = 'close'");
  await page.click('[data-test=close]');
  await page.until("document.querySelector('#name').innerText.includes('Release')");
  same('the agent was not asked to close its first session', agent.asked('close_session').length, 0);
  if (page.size === 'phone') await page.click('#menu');
  await page.until("document.querySelectorAll('.session').length === 1");
}
emptyFirstSessionCanBeClosed.prepare = (agent) => {
  agent.listed = [{ path: '/sessions/b1.jsonl', id: 'b1', cwd: '/home/ada/rack', name: 'Release 0.4', created: '2026-01-01T00:00:00Z', modified: '2026-01-01T00:00:00Z', messageCount: 1, firstMessage: 'Hello', allMessagesText: '' }];
};
