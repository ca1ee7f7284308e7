// The same features with nothing but the keyboard: Tab reaches what the mouse would click, Enter and the arrows work it.

import { check, same, soon } from '../browser.mjs';
import { sayUser, stream, user } from '../agent.mjs';

const MOST_TABS = 80;
const CTRL = 2;

/** Presses Tab until the focused element fits; the element can be seen then. */
async function tabTo(page, selector) {
  const isThere = `document.activeElement?.matches(${JSON.stringify(selector)})`;
  for (let i = 0; i < MOST_TABS; i += 1) {
    if (await page.evaluate(isThere)) {
      await page.until('Number(getComputedStyle(document.activeElement).opacity) > 0.7');
      return;
    }
    await page.key('Tab');
  }
  throw new Error(`Tab does not reach ${selector}`);
}

/** Moves through the open menu to the entry with this text, and picks it. */
async function pick(page, text) {
  await page.until("document.activeElement?.matches('.menu:popover-open .menu-entry')");
  const entries = await page.count('.menu:popover-open .menu-entry');
  for (let i = 0; i < entries; i += 1) {
    if (await page.evaluate(`document.activeElement.textContent.includes(${JSON.stringify(text)})`)) {
      await page.key('Enter');
      return;
    }
    await page.key('ArrowDown');
  }
  throw new Error(`the arrows do not reach ${text}`);
}

/** Opens the session menu. */
async function openMore(page) {
  await page.focus('#field');
  await tabTo(page, '#more');
  await page.key('Enter');
}

const EMPTY = { path: '/sessions/b1.jsonl', id: 'b1', cwd: '/home/ada/rack', name: 'Release 0.4', created: '2026-01-01T00:00:00Z', modified: '2026-01-01T00:00:00Z', messageCount: 1, firstMessage: 'Hello', allMessagesText: '' };
const isAtEnd = "(() => { const node = document.querySelector('#scroll'); return node.scrollHeight - node.scrollTop - node.clientHeight < 4; })()";

export async function enterScrolledUpGoesToEnd(page, agent) {
  await page.until("document.querySelectorAll('.user').length > 10");
  await page.evaluate("(() => { const node = document.querySelector('#scroll'); node.scrollTop = 0; node.dispatchEvent(new Event('scroll')); })()");
  await page.until("!document.querySelector('.jump').hidden");
  await page.focus('#field');
  await page.type('And now?');
  // A phone's Enter is a new line; with Control it sends there, too.
  await page.key('Enter', page.size === 'phone' ? CTRL : 0);
  await page.until(isAtEnd);
  sayUser(agent, 'And now?');
  stream(agent, [{ type: 'text', text: 'Now this.' }]);
  await page.until(`document.querySelector('.transcript').lastElementChild.innerText.includes('Now this.') && ${isAtEnd}`);
}
enterScrolledUpGoesToEnd.prepare = (agent) => { for (let i = 0; i < 30; i += 1) { sayUser(agent, `Question ${i}`); stream(agent, [{ type: 'text', text: `Answer ${i}\n\n`.repeat(5) }]); } };

export async function tabReachesMessageActions(page, agent) {
  await page.until("document.querySelectorAll('.user').length === 2");
  await page.focus('#field');
  await tabTo(page, '.user [aria-label="Copy message"]');
  await page.picture('keyboard-message-actions');
  await page.key('Tab');
  await tabTo(page, '.user [aria-label="Edit in a fork"]');
  await page.key('Enter');
  await page.until("document.querySelector('#field').value.startsWith('text of u')");
  await soon(() => same('forks', agent.asked('fork').length, 1));
}
tabReachesMessageActions.prepare = (agent) => { agent.first.messages = [user('First'), { role: 'assistant', content: [{ type: 'text', text: 'Yes.' }], stopReason: 'stop', timestamp: 1 }, user('Second')]; };

export async function keysChoosePermissionModeFromOff(page, agent) {
  await page.until("document.querySelector('.permission').textContent === 'No checks'");
  await page.focus('#field');
  await tabTo(page, '.permission');
  await page.key('Enter');
  await pick(page, 'Ask before');
  await page.until("document.querySelector('.permission').innerText === 'Ask first'");
  await soon(() => same('asked', agent.asked('set_permission_mode').map((one) => one.mode), ['ask']));
  same('the focus is back', await page.evaluate("document.activeElement.matches('.permission')"), true);
}

export async function escapeReturnsWaitingMessages(page, agent) {
  agent.say({ type: 'agent_start' });
  await page.until("!document.querySelector('.stop').hidden");
  await page.focus('#field');
  for (const text of ['first', 'second']) {
    await page.type(text);
    await page.key('Enter', page.size === 'phone' ? CTRL : 0);
    await page.until("document.querySelector('#field').value === ''");
  }
  await page.until("document.querySelectorAll('.queued').length === 2");
  await page.type('typed meanwhile');
  await page.key('Escape');
  await page.until("document.querySelector('#field').value === 'first\\n\\nsecond\\n\\ntyped meanwhile'");
  await page.until("!document.querySelectorAll('.queued').length && document.querySelector('.stop').hidden");
  await soon(() => same('aborts', agent.asked('abort').length, 1));
}

export async function keysFindModelInPanel(page, agent) {
  await page.until("!document.querySelector('#no-model').hidden && document.querySelectorAll('#no-model .hint').length === 3");
  await page.evaluate("for (const node of document.querySelectorAll('#no-model .hint')) node.dataset.test = node.innerText.includes('API key') ? 'key' : node.innerText.includes('local server') ? 'local' : 'login'");
  await page.focus('#field');
  await tabTo(page, '[data-test=key]');
  await page.key('Enter');
  await page.until("document.querySelector('#no-model code')?.innerText.startsWith('pinion auth login')");
  agent.models = [agent.models[0], { ...agent.models[0], id: 'llama', name: 'Llama', provider: 'ollama' }];
  await tabTo(page, '[data-test=local]');
  await page.key('Enter');
  await page.until("document.querySelector('.pick.model').innerText === 'Llama' && document.querySelector('#no-model').hidden");
  await soon(() => same('the model', agent.asked('set_model')[0].modelId, 'llama'));
}
keysFindModelInPanel.prepare = (agent) => {
  agent.models = [{ ...agent.models[0], id: 'echo', name: 'Offline echo (not an AI)' }];
  agent.first.model = agent.models[0];
};

export async function keysAnswerPermissionWithDiff(page, agent) {
  const ask = (id) => agent.say({ type: 'extension_ui_request', id, method: 'select', title: 'Allow edit?\n/home/ada/rack/src/a.rs\n 10 fn main() {\n-11     old();\n+11     new();\n 12 }',
    options: ['Allow once', 'Allow for this session', 'Deny'], timeout: 300000 });
  await page.focus('#field');
  ask('p1');
  await page.until("document.querySelector('dialog .diff') && document.activeElement.closest('dialog')");
  check('an Enter meant for the message allows nothing', await page.evaluate("document.activeElement.innerText.includes('Deny')"));
  await tabTo(page, 'dialog .dialog-diff');
  await tabTo(page, 'dialog .choice:first-child');
  await page.key('Enter');
  await page.until("!document.querySelector('dialog')");
  await soon(() => same('allowed', agent.answers.map((one) => one.value), ['Allow once']));
  same('the focus is back', await page.evaluate('document.activeElement.id'), 'field');
  ask('p2');
  await page.until("document.querySelector('dialog .choice')");
  await page.key('Escape');
  await page.until("!document.querySelector('dialog')");
  await soon(() => same('denied', agent.answers.map((one) => one.value), ['Allow once', 'Deny']));
}

const entry = (id, parentId, message) => ({ type: 'message', id, parentId, timestamp: '2026-01-01T00:00:00Z', message });

export async function keysGoToBranch(page, agent) {
  const node = (one, ...children) => ({ entry: one, children });
  agent.first.tree = [node(entry('e1', null, user('Fix it')), node(entry('e2', 'e1', { role: 'assistant', content: [{ type: 'text', text: 'Fixed.' }] })),
    node(entry('e3', 'e1', { role: 'assistant', content: [{ type: 'text', text: 'Not fixed.' }] })))];
  agent.first.leaf = 'e3';
  await openMore(page);
  await pick(page, 'Branches');
  await page.until("document.querySelectorAll('.tree-row').length === 3");
  await page.evaluate("[...document.querySelectorAll('.tree-row')].find((row) => row.innerText.includes('Fixed.')).dataset.test = 'row'");
  await tabTo(page, '[data-test=row] button');
  await page.picture('keyboard-branches');
  await page.key('Enter');
  await page.until('!document.querySelector("dialog")');
  await soon(() => same('where to', agent.asked('navigate_tree').map((one) => one.targetId), ['e2']));
}

export async function keysCloseEmptyFirstSession(page, agent) {
  await page.until("document.querySelector('.blank h1')");
  await openMore(page);
  await pick(page, 'Close session');
  await page.until("document.querySelector('#name').innerText.includes('Release')");
  same('the agent was not asked to close its first session', agent.asked('close_session').length, 0);
}
keysCloseEmptyFirstSession.prepare = (agent) => { agent.listed = [EMPTY]; };

export async function keysOpenListedSession(page) {
  await page.until("document.querySelector('.blank h1')");
  await page.focus('#field');
  await page.key('k', CTRL);
  await page.until("document.activeElement.closest('.side-search')");
  await page.type('Release');
  await page.until("document.querySelectorAll('.session-open').length === 1");
  await page.key('ArrowDown');
  await page.until("document.activeElement.matches('.session-open')");
  await page.key('Enter');
  await page.until("document.querySelector('#name').innerText.includes('Release')");
}
keysOpenListedSession.prepare = (agent) => { agent.listed = [EMPTY]; };

// A headless Firefox has no focused window: Enter on a button that Tab has reached does not click it, on any page.
for (const test of [tabReachesMessageActions, keysChoosePermissionModeFromOff, keysFindModelInPanel, keysAnswerPermissionWithDiff, keysGoToBranch,
  keysCloseEmptyFirstSession, keysOpenListedSession]) test.chromium = true;
