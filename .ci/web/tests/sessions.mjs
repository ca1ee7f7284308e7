// Sessions: the side bar, several at once, names, forks, the tree, export, keys.

import { check, same, soon, waitFor } from '../browser.mjs';
import { sayUser, stream, user } from '../agent.mjs';
import { fill } from '../scene.mjs';

const CTRL = 2;

async function side(page) {
  if (!await page.evaluate("document.querySelector('#side').classList.contains('open')")) await page.click('#menu');
  await page.until("document.querySelector('#side.open') && document.querySelectorAll('.session').length > 0");
  await page.wait(250);
}

export async function theListOfSessions(page) {
  await side(page);
  await page.picture('side-bar');
  same('all of them', await page.count('.session'), 6);
  await page.focus('.side-search input');
  await page.type('phone');
  await page.until("document.querySelectorAll('.session').length === 1");
  await page.evaluate("(() => { const field = document.querySelector('.side-search input'); field.value = 'nothing like it'; field.dispatchEvent(new Event('input')); })()");
  await page.until("document.querySelector('.side-empty')");
}
theListOfSessions.prepare = fill;

export async function severalAtOnce(page, agent) {
  agent.listed[1].messages = [user('Why is it slow?')];
  sayUser(agent, 'Keep going');
  agent.say({ type: 'agent_start' });
  await side(page);
  await page.click('[data-id=a1] .session-open');
  await page.until("document.querySelector('.user')?.innerText.includes('Why is it slow?')");
  check('the address', (await page.evaluate('location.search')).includes('session=a1'));
  stream(agent, [{ type: 'text', text: 'Done meanwhile' }]);
  sayUser(agent, 'in the other one', 'h1');
  await page.until("document.querySelectorAll('.user').length === 2");
  check('not here', !(await page.text('.transcript')).includes('meanwhile'));
  await side(page);
  same('works in the other', await page.count('[data-id=s-first] .dot'), 1);
  await page.picture('several');
  await page.click('[data-id=s-first] .session-open');
  await page.until("document.querySelector('.transcript').innerText.includes('Done meanwhile')");
  same('nobody was switched', agent.asked('switch_session').length, 0);
}
severalAtOnce.prepare = fill;

export async function theAddressNamesTheSession(page) {
  await page.until("document.querySelector('#name').innerText.includes('Release 0.4')");
}
theAddressNamesTheSession.prepare = fill;
theAddressNamesTheSession.query = '?session=b1';

export async function aNewSession(page, agent) {
  await side(page);
  await page.click('.new-session');
  await page.until("document.querySelector('.blank h1')");
  await soon(() => same('in the same directory', agent.asked('open_session')[0].cwd, '/home/ada/rack'));
  await side(page);
  await page.evaluate("document.querySelector('[title=\"New session in site\"]').click()");
  await page.until("document.querySelector('.name')?.innerText.includes('New session')");
  await waitFor('the second session', () => agent.asked('open_session').length === 2);
  await soon(() => same('in another one', agent.asked('open_session')[1].cwd, '/home/ada/gears/site'));
}
aNewSession.prepare = fill;

export async function renaming(page, agent) {
  await page.click('#name');
  await page.until("document.querySelector('dialog input')");
  await page.picture('rename');
  await page.evaluate("document.querySelector('dialog input').value = 'Cut gears'");
  await page.key('Enter');
  await page.until("document.querySelector('#name').innerText.includes('Cut gears')");
  await soon(() => same('the name', agent.first.name, 'Cut gears'));
}

export async function forking(page, agent) {
  sayUser(agent, 'same');
  sayUser(agent, 'other');
  sayUser(agent, 'same');
  await page.until("document.querySelectorAll('.user').length === 3");
  await page.evaluate("document.querySelectorAll('.user')[0].querySelector('[title=\"Edit in a fork\"]').click()");
  await page.until("document.querySelector('#field').value === 'text of u0'");
  await soon(() => same('where', agent.asked('fork')[0].entryId, 'u0'));
  await page.evaluate('localStorage.clear()');
}

export async function forkTextStaysWithItsSession(page, agent) {
  const field = "document.querySelector('#field')";
  const { take } = agent;
  const forks = [];
  agent.take = (client, command) => {
    // It is answered once another session is shown.
    if (command.type === 'fork') forks.push(() => take.call(agent, client, command));
    else take.call(agent, client, command);
  };
  agent.first.name = 'First';
  sayUser(agent, 'same');
  await page.until("document.querySelectorAll('.user').length === 1");
  await page.evaluate("document.querySelector('.user [title=\"Edit in a fork\"]').click()");
  await waitFor('the fork', () => forks.length > 0);
  await side(page);
  await page.click('[data-id=s-second] .session-open');
  await page.until("location.search.includes('s-second')");
  await page.focus('#field');
  await page.type('of the second');
  forks[0]();
  await side(page);
  await page.until("document.querySelector('[data-id=s-fork]')");
  same('what was typed', await page.evaluate(`${field}.value`), 'of the second');
  await page.click('[data-id=s-fork] .session-open');
  await page.until(`${field}.value === 'text of u0'`);
  await page.evaluate('localStorage.clear()');
}
forkTextStaysWithItsSession.prepare = (agent) => agent.make('h9', 's-second');

export async function theTree(page, agent) {
  const node = (id, role, text, children = []) => ({ entry: { id, parentId: null, type: 'message', message: { role, content: [{ type: 'text', text }] } }, children });
  agent.first.tree = [node('1', 'user', 'Make a rack', [node('2', 'assistant', 'Here is one', [node('3', 'user', 'In steel', [node('4', 'assistant', 'Steel it is')]), node('5', 'user', 'In brass', [node('6', 'assistant', 'Brass it is')])])])];
  const link = (item, parentId) => { item.entry.parentId = parentId; for (const child of item.children) link(child, item.entry.id); };
  link(agent.first.tree[0], null);
  agent.first.leaf = '6';
  await page.click('#more');
  await page.until("document.querySelector('.menu:popover-open')");
  await page.picture('session-menu');
  await page.evaluate("[...document.querySelectorAll('.menu-entry')].find((one) => one.textContent.includes('Branches')).click()");
  await page.until("document.querySelectorAll('.tree-row').length === 6");
  await page.picture('tree');
  same('the branch that one is on', await page.count('.tree-row.on'), 4);
  await page.evaluate("[...document.querySelectorAll('.tree-row')].find((row) => row.textContent.includes('In steel')).querySelector('.link').click()");
  await page.until("document.querySelector('#field').value === 'Try it otherwise'");
  await soon(() => same('where', agent.first.wentTo, '3'));
  await page.evaluate('localStorage.clear()');
}

export async function exporting(page, agent) {
  await page.focus('#field');
  await page.type('/export notes.html');
  await page.key('Enter', CTRL);
  await page.until("document.querySelector('.toast')?.innerText.includes('session.html')");
  await soon(() => same('where to', agent.asked('export_html')[0].outputPath, 'notes.html'));
}

export async function keysAndHelp(page) {
  await page.evaluate('document.activeElement.blur()');
  await page.key('?');
  await page.until("document.querySelector('dialog .keys')");
  await page.picture('keys');
  await page.key('Escape');
  await page.until("!document.querySelector('dialog')");
  await page.key('k', CTRL);
  await page.until("document.activeElement === document.querySelector('.side-search input')");
}

export async function anotherPageSwitches(page, agent) {
  sayUser(agent, 'old');
  await page.until("document.querySelectorAll('.user').length === 1");
  agent.first.sessionId = 's-other';
  agent.first.messages = [user('quite new'), user('and more')];
  agent.say({ type: 'session_changed', reason: 'switch', sessionId: 's-other', messageCount: 2 });
  await page.until("document.querySelectorAll('.user').length === 2");
  check('the address', (await page.evaluate('location.search')).includes('s-other'));
}

export async function aNewSessionInADirectory(page, agent) {
  agent.folders = { '/home/ada/rack': ['crates', 'docs'], '/home/ada': ['gears', 'lab', 'rack'], '/home/ada/gears': ['site', 'wheel'], '/home/ada/gears/wheel': [], '/srv': ['data'] };
  await side(page);
  await page.click('[title="New session in a directory…"]');
  await page.until("document.querySelectorAll('.folder').length === 2");
  same('where one is', await page.evaluate("[...document.querySelectorAll('.crumb')].map((one) => one.innerText)"), ['~', 'rack']);
  await page.picture('folders');
  await page.evaluate("document.querySelector('.crumb').click()");
  await page.until("document.querySelectorAll('.folder').length === 3");
  await page.focus('.folder-dialog input');
  await page.type('gea');
  await page.until("document.querySelectorAll('.folder').length === 1");
  await page.key('Enter');
  await page.until("document.querySelectorAll('.folder').length === 2 && document.querySelector('.folder').innerText === 'site'");
  await page.type('/nowhere');
  await page.key('Enter');
  await page.until("document.querySelector('.folders-trouble').innerText.includes('does not exist')");
  await page.evaluate("document.querySelector('.folder-dialog input').value = ''");
  await page.evaluate("[...document.querySelectorAll('.folder')].at(-1).click()");
  await page.until("document.querySelector('.crumb[aria-current]').innerText === 'wheel'");
  await page.click('.folder-dialog .primary');
  await page.until("document.querySelector('.blank h1') && !document.querySelector('dialog')");
  await soon(() => same('where', agent.asked('open_session')[0].cwd, '/home/ada/gears/wheel'));
}
aNewSessionInADirectory.prepare = fill;

const menuOf = async (page, id, words) => {
  await page.evaluate(`document.querySelector('[data-id=${id}] .icon-button').click()`);
  await page.until("document.querySelector('.menu:popover-open')");
  await page.evaluate(`[...document.querySelectorAll('.menu-entry')].find((one) => one.textContent.includes('${words}')).click()`);
};

export async function deletingASession(page, agent) {
  await side(page);
  await menuOf(page, 'b2', 'Delete');
  await page.until("document.querySelector('dialog .danger')");
  await page.wait(250);
  check('its name', (await page.text('dialog')).includes('Make the page readable'));
  await page.picture('delete');
  await page.key('Escape');
  await page.until("!document.querySelector('dialog')");
  same('nothing was deleted', agent.asked('delete_session').length, 0);
  await menuOf(page, 'b2', 'Delete');
  await page.until("document.querySelector('dialog .danger')");
  await page.wait(250);
  await page.click('dialog .danger');
  await page.until("!document.querySelector('[data-id=b2]')");
  await soon(() => same('which', agent.asked('delete_session').map((one) => one.sessionPath), ['/sessions/b2.jsonl']));
  // One that is open, and shown, is closed first.
  await side(page);
  await page.click('[data-id=a1] .session-open');
  await page.until("location.search.includes('a1')");
  await side(page);
  await menuOf(page, 'a1', 'Delete');
  await page.until("document.querySelector('dialog .danger')");
  await page.wait(250);
  await page.click('dialog .danger');
  await page.until("!document.querySelector('[data-id=a1]') && location.search.includes('s-first')");
  await soon(() => same('both', agent.asked('delete_session').length, 2));
  await page.evaluate("document.querySelector('[data-id=s-first] .icon-button').click()");
  await page.until("document.querySelector('.menu:popover-open')");
  check('not the first one of the agent', !(await page.text('.menu')).includes('Delete'));
}
deletingASession.prepare = fill;

export async function anotherPageCloses(page, agent) {
  await side(page);
  await page.click('[data-id=a1] .session-open');
  await page.until("location.search.includes('a1')");
  agent.sessions.delete('h1');
  agent.say({ type: 'session_closed', reason: 'closed', sessionId: 'a1' }, 'h1');
  await page.until("location.search.includes('s-first') && document.querySelector('.toast')?.innerText.includes('closed elsewhere')");
}
anotherPageCloses.prepare = fill;

export async function whatStandsIsThereAfterAReload(page) {
  await page.until("document.querySelectorAll('.queued .queued-text').length === 2");
  check('the retry', (await page.text('#status')).includes('2 of 3'));
  check('a tool that runs', (await page.text('[data-call=t1] .terminal')).includes('half way'));
  check('a command that runs', (await page.text('.shell .terminal')).includes('so far'));
  check('what extensions show', (await page.text('.statuses')).includes('main') && (await page.text('.widget')).includes('Tests'));
}
whatStandsIsThereAfterAReload.prepare = (agent) => {
  agent.first.running = true;
  agent.first.queue = [{ id: '1', kind: 'steer', text: 'a', images: 0 }, { id: '2', kind: 'followUp', text: 'b', images: 0 }];
  agent.first.messages.push(user('go'), { role: 'assistant', content: [{ type: 'toolCall', id: 't1', name: 'bash', arguments: { command: 'make' } }], stopReason: 'toolUse', timestamp: 1 });
  agent.first.stands = { queue: { steering: ['a'], followUp: ['b'] }, retry: { attempt: 2, maxAttempts: 3, delayMs: 60000, errorMessage: 'busy' },
    tools: [{ toolCallId: 't1', toolName: 'bash', args: { command: 'make' }, partialResult: { content: [{ type: 'text', text: 'half way' }] } }],
    bash: [{ id: '1', bashId: 'b1', command: 'ls', output: 'so far' }],
    shown: [{ id: '1', method: 'setStatus', statusKey: 'git', statusText: 'main' }, { id: '2', method: 'setWidget', widgetKey: 'w', widgetLines: ['Tests'] }] };
};
