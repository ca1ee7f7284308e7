// Turns: long runs of steps are folded to a line, and at the end stands what changed in files.

import { check, same } from '../browser.mjs';
import { runTool, sayUser, stream, user } from '../agent.mjs';
import { fill } from '../scene.mjs';

const call = (id, name = 'read', args = { path: `src/${id}.rs` }) => ({ type: 'toolCall', id, name, arguments: args });
const shown = (id) => `Boolean(document.querySelector("[data-call=${id}]")?.checkVisibility())`;

function step(agent, id, ...more) {
  stream(agent, [call(id, ...more)], { stopReason: 'toolUse' });
  runTool(agent, call(id, ...more), 'text of it');
}

export async function longRunsOfStepsAreFolded(page, agent) {
  sayUser(agent, 'Look around');
  agent.say({ type: 'agent_start' });
  for (const id of ['a', 'b', 'c', 'd', 'e']) step(agent, id);
  await page.until("document.querySelector('.steps')?.innerText.includes('5 steps')");
  // The running one is open.
  await page.until(`${shown('a')} && ${shown('e')}`);
  await page.picture('steps-running');
  stream(agent, [{ type: 'text', text: 'I have seen enough.' }]);
  agent.say({ type: 'agent_end', messages: [], willRetry: false });
  await page.until(`!${shown('a')} && !${shown('e')}`);
  check('what it did', (await page.text('.steps')).includes('read 5 files'));
  await page.click('.steps');
  await page.until(`${shown('a')} && ${shown('e')}`);
  same('said to everybody', await page.evaluate("document.querySelector('.steps').getAttribute('aria-expanded')"), 'true');
  await page.goto(await page.evaluate('location.href'));
  await page.ready();
  await page.until(`document.querySelector('.steps') && ${shown('c')}`);
  await page.click('.steps');
  await page.until(`!${shown('c')}`);
  await page.evaluate('localStorage.clear()');
}

export async function stepsThatOneReadsStayOpen(page, agent) {
  for (let i = 0; i < 30; i += 1) sayUser(agent, `words ${i}\n\nand more\n\nof them`);
  agent.say({ type: 'agent_start' });
  for (const id of ['a', 'b', 'c', 'd']) step(agent, id);
  await page.until("document.querySelector('.steps')");
  await page.evaluate("document.querySelector('#scroll').scrollTop -= 300");
  await page.until("!document.querySelector('.jump').hidden");
  stream(agent, [{ type: 'text', text: 'Done.' }]);
  agent.say({ type: 'agent_end', messages: [], willRetry: false });
  await page.wait(300);
  check('nothing moves under the eyes of who reads', await page.evaluate(shown('b')));
  await page.evaluate('localStorage.clear()');
}

export async function aFailureInAFoldIsSaid(page) {
  await page.until("document.querySelector('.steps')");
  same('failed', await page.text('.steps-failed'), '1 failed');
}
aFailureInAFoldIsSaid.prepare = (agent) => {
  const ids = ['a', 'b', 'c', 'd'];
  agent.first.messages.push(user('go'), { role: 'assistant', content: ids.map((id) => call(id)), stopReason: 'toolUse', timestamp: 1 },
    ...ids.map((id) => ({ role: 'toolResult', toolCallId: id, toolName: 'read', content: [], isError: id === 'b', timestamp: 2 })),
    { role: 'assistant', content: [{ type: 'text', text: 'So it is.' }], stopReason: 'stop', timestamp: 3 });
};

export async function whatATurnChangedIsAPanel(page) {
  await page.until("document.querySelector('.changes')");
  check('how much', /3 files changed\s*\+8\s*−2/.test(await page.text('.changes > summary')));
  await page.click('.changes > summary .changes-title');
  await page.until("document.querySelectorAll('.changes-file').length === 3");
  await page.click('.changes-file summary');
  await page.until("document.querySelector('.changes-file .diff .hljs-keyword')");
  check('words that changed are marked', await page.count('.changes-file .diff mark') > 1);
  await page.evaluate("document.querySelector('.changes').scrollIntoView({ block: 'center' })");
  await page.picture('changes');
  await page.evaluate("navigator.clipboard.writeText = (text) => { globalThis.copied = text; return Promise.resolve(); }");
  await page.click('.changes > summary .icon-button');
  await page.until('globalThis.copied');
  const text = await page.evaluate('globalThis.copied');
  check(`a diff to paste: ${text}`, text.includes('--- /home/ada/rack/crates/store/src/append.rs') && text.includes('\n+    if !self.ends_with_line_feed'));
  check('copying folds nothing', await page.evaluate("document.querySelector('.changes').open"));
  check('no sideways scrolling', await page.evaluate('document.documentElement.scrollWidth <= innerWidth'));
}
whatATurnChangedIsAPanel.prepare = fill;

export async function aTurnOfThousandsOfSteps(page) {
  await page.until("document.querySelector('.steps')?.innerText.includes('2,000 steps')");
  check('what one asked', await page.evaluate("document.querySelector('.user').checkVisibility()"));
  check('folded items are not there at all', await page.count('.item') < 5);
  await page.click('.steps');
  await page.until("document.querySelectorAll('.tool').length > 100");
  check('a part of them', await page.count('.item') < 400);
  check('the line stays where it was clicked', await page.evaluate("document.querySelector('.steps').getBoundingClientRect().top > 0"));
  for (let i = 0; i < 12; i += 1) { await page.evaluate("document.querySelector('#scroll').scrollTop += 3000"); await page.wait(60); }
  // One gets on.
  await page.until("Number(/\\d+/.exec(document.querySelector('.tool-subject').textContent)[0]) > 100");
  check('still a part', await page.count('.item') < 400);
  await page.click('.jump');
  await page.until("document.querySelector('.transcript').innerText.includes('That was all.')");
  await page.evaluate('localStorage.clear()');
}
aTurnOfThousandsOfSteps.prepare = (agent) => {
  agent.first.messages.push(user('Do it all'));
  for (let i = 0; i < 2000; i += 1) {
    agent.first.messages.push({ role: 'assistant', content: [call(`t${i}`, 'read', { path: `file-${i}` })], stopReason: 'toolUse', timestamp: i },
      { role: 'toolResult', toolCallId: `t${i}`, toolName: 'read', content: [], isError: false, timestamp: i });
  }
  agent.first.messages.push({ role: 'assistant', content: [{ type: 'text', text: 'That was all.' }], stopReason: 'stop', timestamp: 3000 });
};
