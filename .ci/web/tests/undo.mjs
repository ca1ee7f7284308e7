// Undo: the changes of the session, a run or a turn; going back, and taking that back.

import { check, same, soon } from '../browser.mjs';
import { button, command, press, tabTo } from '../dialog.mjs';
import { user } from '../agent.mjs';

const entry = (id, parentId, message) => ({ entry: { type: 'message', id, parentId, message }, children: [] });

function prepare(agent) {
  const first = entry('u1', null, user('Write the parser'));
  const turn = entry('a1', 'u1', { role: 'assistant', content: [{ type: 'toolCall', id: 'c1', name: 'edit', arguments: { path: 'src/parse.rs' } }] });
  const result = entry('r1', 'a1', { role: 'toolResult', toolCallId: 'c1', content: [] });
  const second = entry('a2', 'r1', { role: 'assistant', content: [{ type: 'toolCall', id: 'c2', name: 'write', arguments: { path: 'src/lex.rs' } }] });
  const done = entry('u2', 'a2', user('Now the tests'));
  const nodes = [first, turn, result, second, done];
  nodes.slice(0, -1).forEach((node, index) => node.children.push(nodes[index + 1]));
  agent.first.tree = [first];
  agent.first.leaf = 'u2';
  agent.first.messages.push(user('Write the parser'));
  const parse = { path: '/home/ada/rack/src/parse.rs', status: 'modified', oldMode: '100644', newMode: '100644', diff: '@@ -3,2 +3,2 @@\n fn parse() {\n-    old()\n+    new()\n' };
  const lex = { path: '/home/ada/rack/src/lex.rs', status: 'added', newMode: '100644', diff: '@@ -0,0 +1 @@\n+fn lex() {}\n' };
  agent.control.changes = { checkpoints: 'files', files: [parse, lex], unknown: [{}] };
  agent.control.changesOf = { a1: { checkpoints: 'files', files: [parse], unknown: [] }, u2: { checkpoints: 'files', files: [], unknown: [] } };
}

const choose = (page, label) => page.evaluate(`(() => { const list = document.querySelector('dialog select'); list.value = [...list.options].find((one) => one.text.includes(${JSON.stringify(label)})).value; list.dispatchEvent(new Event('change')); })()`);

export async function changesOfTurnAreShownAndUndone(page, agent) {
  await page.click('#more');
  await page.until("[...document.querySelectorAll('.menu-entry')].some((one) => one.innerText.includes('Changes and undo'))");
  await page.evaluate("[...document.querySelectorAll('.menu-entry')].find((one) => one.innerText.includes('Changes and undo')).click()");
  await page.until("document.querySelectorAll('.undo-files .changes-file').length === 2");
  same('what can be undone', await page.evaluate("[...document.querySelector('dialog select').options].map((one) => one.text.trim())"),
    ['The whole session', 'Run: Now the tests', 'Run: Write the parser', 'Turn: Edit parse.rs', 'Turn: Write lex.rs']);
  check('what is not known', (await page.text('.undo-files')).includes('1 other call may have changed files'));
  await page.click('.changes-file summary');
  await page.until("document.querySelector('.diff-line.add')?.innerText.includes('new()')");
  same('line numbers', await page.evaluate("[...document.querySelectorAll('.diff-number')].map((one) => one.innerText)"), ['3', '4', '4']);
  await page.picture('undo');
  await choose(page, 'Now the tests');
  await page.until("document.querySelector('.undo-files').innerText.includes('No changes')");
  await choose(page, 'Edit parse.rs');
  await page.until("document.querySelectorAll('.undo-files .changes-file').length === 1");
  await soon(() => same('asked', agent.asked('get_changes').map((one) => [one.scope, one.entryId]), [['session', undefined], ['run', 'u2'], ['turn', 'a1']]));
  agent.control.rewound = { restored: [{ path: '/home/ada/rack/src/parse.rs', status: 'modified' }], kept: [{ path: '/home/ada/rack/src/x.rs', reason: 'changed', message: 'changed since by others' }], unknown: [], editorText: 'Write the parser' };
  await press(page, 'Files and conversation');
  await page.until("document.querySelector('.undo-report').innerText.includes('1 file restored.')");
  check('what was kept', (await page.text('.undo-report')).includes('Kept: ~/rack/src/x.rs: changed since by others'));
  same('the message is in the field', await page.evaluate("document.querySelector('#field').value"), 'Write the parser');
  await page.click('dialog input[type=checkbox]');
  await press(page, 'Undo the last rewind');
  await page.until("document.querySelector('.undo-report').innerText.includes('The rewind was undone.')");
  same('it stays, as the second answer names it again', await page.evaluate("document.querySelector('#field').value"), 'Write the parser');
  const asked = (type) => { const { entryId, what, force } = agent.asked(type)[0]; return [entryId, what, force]; };
  await soon(() => same('the commands', [asked('rewind'), asked('unrewind')], [['u1', 'both', undefined], [undefined, undefined, true]]));
  await page.evaluate('localStorage.clear()');
}
changesOfTurnAreShownAndUndone.prepare = prepare;

export async function keysUndoRun(page, agent) {
  await command(page, '/undo');
  await page.until("document.activeElement?.tagName === 'SELECT' && document.querySelector('.changes-file')");
  await page.key('ArrowDown');
  await page.key('ArrowDown');
  await page.until("document.querySelector('dialog select').value === '2'");
  await tabTo(page, 'Files only');
  await page.key('Enter');
  await page.until("document.querySelector('.undo-report').innerText.includes('Rewound.')");
  await soon(() => same('the command', [agent.asked('rewind')[0].entryId, agent.asked('rewind')[0].what], ['u1', 'files']));
  await tabTo(page, 'Undo the last rewind');
  await page.key('Enter');
  await page.until("document.querySelector('.undo-report').innerText.includes('The rewind was undone.')");
  await soon(() => same('taken back', agent.asked('unrewind').length, 1));
  await page.key('Escape');
  await page.until("!document.querySelector('dialog[open]')");
}
keysUndoRun.prepare = prepare;

export async function undoWithoutCheckpointsSaysWhy(page, agent) {
  agent.control.noCheckpoints = true;
  await command(page, '/undo');
  await page.until("document.querySelector('.undo-files').innerText.includes('Checkpoints are off')");
  check('nothing to go back to', await page.evaluate(`${button('Files only')}.disabled`));
}
