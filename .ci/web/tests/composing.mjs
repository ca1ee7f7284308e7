// The composer: sending, keys, steering, the queue, the shell, images, commands.

import { check, same, soon } from '../browser.mjs';
import { sayUser, stream } from '../agent.mjs';

const field = "document.querySelector('#field')";
const ALT = 1;
const CTRL = 2;
const SHIFT = 8;

export async function sendingAndNewLines(page, agent) {
  await page.focus('#field');
  await page.type('one');
  await page.key('Enter', SHIFT);
  await page.type('two');
  if (page.size === 'phone') await page.click('.send');
  else await page.key('Enter');
  await page.until(`${field}.value === ''`);
  await soon(() => same('the prompt', agent.asked('prompt')[0].message, 'one\ntwo'));
}

export async function anInputMethodKeepsItsEnter(page, agent) {
  await page.focus('#field');
  await page.type('日本');
  await page.evaluate(`${field}.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', keyCode: 229, bubbles: true, cancelable: true }))`);
  await page.evaluate(`${field}.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', isComposing: true, bubbles: true, cancelable: true }))`);
  await page.wait(50);
  same('prompts', agent.asked('prompt').length, 0);
}

export async function steeringAndTheQueue(page, agent) {
  sayUser(agent, 'Work');
  agent.say({ type: 'agent_start' });
  await page.until("!document.querySelector('.stop').hidden");
  await page.focus('#field');
  await page.type('look at the tests first');
  await page.click('.send');
  await page.until("document.querySelectorAll('.queued').length === 1");
  await page.focus('#field');
  await page.type('then write the notes');
  await page.key('Enter', ALT);
  await page.until("document.querySelectorAll('.queued').length === 2");
  await soon(() => same('how', agent.asked('prompt').map((one) => one.streamingBehavior), ['steer', 'followUp']));
  await page.until("document.querySelectorAll('.queued .icon-button').length === 4");
  await page.picture('queue');
  await page.click('li.queued .icon-button');
  await page.until("document.querySelector('dialog textarea')");
  await page.evaluate("document.querySelector('dialog textarea').value = 'changed'");
  await page.click('dialog .primary');
  await page.until("document.querySelector('.queued-text').innerText === 'changed'");
  await page.until("document.querySelector('.queue li.queued:last-child .icon-button:last-child') && !document.querySelector('dialog')");
  await page.click('.queue li.queued:last-child .icon-button:last-child');
  await page.until("document.querySelectorAll('.queued').length === 1");
}

export async function stopping(page, agent) {
  agent.say({ type: 'agent_start' });
  stream(agent, [{ type: 'text', text: 'On and on' }], { end: false });
  await page.until("!document.querySelector('.stop').hidden");
  await page.focus('#field');
  if (page.size === 'phone') await page.click('.stop');
  else await page.key('Escape');
  await page.until("document.querySelector('.stop').hidden");
  await soon(() => same('aborts', agent.asked('abort').length, 1));
}

export async function shellCommands(page, agent) {
  let finish;
  agent.onbash = (command, ok) => {
    agent.say({ type: 'bash_execution_update', id: command.id, delta: '\u001b[32mcompiling\u001b[0m\n' });
    finish = () => ok({ output: '\u001b[32mcompiling\u001b[0m\ndone\n', exitCode: 3, cancelled: false, truncated: false });
  };
  await page.focus('#field');
  await page.type('!make all');
  await page.until("document.querySelector('.composer.is-shell')");
  await page.picture('shell-mode');
  await page.key('Enter', CTRL);
  await page.until("document.querySelector('.shell .terminal')?.innerText.includes('compiling')");
  check('it runs', (await page.text('.shell .remark')).includes('running'));
  finish();
  await page.until("document.querySelector('.shell .remark')?.innerText.includes('exit 3')");
  await page.picture('shell-done');
  await page.type('!!secret');
  await page.key('Enter', CTRL);
  await page.until("document.querySelectorAll('.shell').length === 2");
  await soon(() => same('kept from the model', agent.asked('bash').map((one) => Boolean(one.excludeFromContext)), [false, true]));
  await soon(() => same('without marks', agent.asked('bash')[1].command, 'secret'));
}

export async function stoppingAShellCommand(page, agent) {
  agent.onbash = (command, ok) => { agent.onabortbash = () => ok({ output: 'so far', cancelled: true, truncated: false }); };
  await page.focus('#field');
  await page.type('!sleep 100');
  await page.key('Enter', CTRL);
  await page.until("document.querySelector('.shell') && !document.querySelector('.stop').hidden");
  await page.click('.stop');
  await page.until("document.querySelector('.shell .remark')?.innerText.includes('stopped') && document.querySelector('.stop').hidden");
  same('nothing else was stopped', agent.asked('abort').length, 0);
}

export async function images(page, agent) {
  const picture = 'iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAEklEQVR42mMo+1OGBzGMSmNDAHLTvqGrtjuvAAAAAElFTkSuQmCC';
  const give = (kind) => `(() => { const bytes = Uint8Array.from(atob('${picture}'), (one) => one.charCodeAt(0)); const data = new DataTransfer();
    data.items.add(new File([bytes], 'shot.png', { type: 'image/png' }));
    const event = ${kind === 'paste' ? "Object.defineProperty(new Event('paste', { bubbles: true, cancelable: true }), 'clipboardData', { value: data })" : "new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true })"};
    ${kind === 'paste' ? field : 'document.body'}.dispatchEvent(event); })()`;
  await page.evaluate(give('paste'));
  await page.until("document.querySelectorAll('.attached .thumb').length === 1");
  await page.evaluate(give('drop'));
  await page.until("document.querySelectorAll('.attached .thumb').length === 2");
  await page.picture('images');
  await page.click('.attached .thumb .icon-button');
  await page.until("document.querySelectorAll('.attached .thumb').length === 1");
  await page.click('.send');
  await page.until("document.querySelector('.attached').hidden");
  await soon(() => same('the image', agent.asked('prompt')[0].images, [{ type: 'image', data: picture, mimeType: 'image/png' }]));
}

export async function slashCommands(page, agent) {
  await page.focus('#field');
  await page.type('/re');
  await page.until("document.querySelector('.completion-entry')?.innerText.includes('/review')");
  await page.picture('commands');
  await page.key('Enter', CTRL);
  same('what is typed', await page.evaluate(`${field}.value`), '/review ');
  await page.type('now');
  await page.key('Enter', CTRL);
  await page.until(`${field}.value === ''`);
  await soon(() => same('sent as it is', agent.asked('prompt')[0].message, '/review now'));
  await page.type('/name Better name');
  await page.key('Enter', CTRL);
  await page.until("document.querySelector('#name').innerText.includes('Better name')");
}

export async function commandsOfTheAgentComeFirst(page, agent) {
  await page.focus('#field');
  await page.type('/tr');
  await page.until("document.querySelector('.completion-entry')?.innerText.includes('Draw a tree')");
  same('the page’s own is not offered', await page.count('.completion-entry'), 1);
  await page.type('ee now');
  await page.key('Enter', CTRL);
  await page.until(`${field}.value === ''`);
  await soon(() => same('sent to the agent', agent.asked('prompt')[0].message, '/tree now'));
}
commandsOfTheAgentComeFirst.prepare = (agent) => agent.slash.push({ name: 'tree', description: 'Draw a tree', source: 'extension' });

export async function earlierMessages(page, agent) {
  sayUser(agent, 'first words');
  sayUser(agent, 'second words');
  await page.until("document.querySelectorAll('.user').length === 2");
  await page.focus('#field');
  await page.key('ArrowUp');
  await page.until(`${field}.value === 'second words'`);
  await page.key('ArrowUp');
  await page.until(`${field}.value === 'first words'`);
  await page.key('ArrowDown');
  await page.key('ArrowDown');
  await page.until(`${field}.value === ''`);
}

export async function pickers(page, agent) {
  await page.click('.pick.model');
  await page.until("document.querySelector('.menu:popover-open')");
  await page.picture('models');
  await page.evaluate("[...document.querySelectorAll('.menu-entry')].find((node) => node.textContent.includes('Quick 2')).click()");
  await page.until("document.querySelector('.pick.model').innerText === 'Quick 2'");
  check('no thinking for this one', await page.evaluate("document.querySelector('.thinking-level').hidden"));
  agent.first.model = agent.models[0];
  agent.say({ type: 'agent_end', messages: [], willRetry: false });
  await page.until("!document.querySelector('.thinking-level').hidden");
  await page.click('.thinking-level');
  await page.until("document.querySelectorAll('.menu:popover-open .menu-entry').length === 4");
  await page.evaluate("[...document.querySelectorAll('.menu-entry')].find((node) => node.textContent.includes('high')).click()");
  await page.until("document.querySelector('.thinking-level').innerText.includes('high')");
  await soon(() => same('asked', agent.asked('set_thinking_level')[0].level, 'high'));
}

export async function todosAreAList(page, agent) {
  agent.first.todos = [{ id: 'p', name: 'Work', tasks: [{ id: '1', content: 'Cut the teeth', status: 'completed' }, { id: '2', content: 'Oil it', status: 'in_progress' }] }];
  agent.say({ type: 'todo_auto_clear' });
  await page.until("document.querySelector('#todos')?.innerText.includes('Oil it')");
  same('count', await page.text('.todos-count'), '1 / 2');
  await page.click('.todos-head');
  same('rows', await page.count('.todo'), 2);
  await page.picture('todos');
  await page.evaluate('localStorage.clear()');
}

export async function waitingMessagesComeBack(page, agent) {
  agent.say({ type: 'agent_start' });
  agent.first.queue = [{ id: '1', kind: 'steer', text: 'first', images: 0 }, { id: '2', kind: 'followUp', text: 'second', images: 0 }];
  agent.queueChanged(agent.first);
  await page.until("document.querySelector('.queue-head')?.innerText.includes('2 waiting')");
  await page.focus('#field');
  await page.type('third');
  await page.click('.queue-head .link');
  await page.until(`${field}.value === 'first\\n\\nsecond\\n\\nthird' && document.querySelector('#queue').hidden`);
  agent.first.queue = [{ id: '3', kind: 'steer', text: 'with a picture', images: 1 }];
  agent.queueChanged(agent.first);
  await page.until("document.querySelector('li.queued .icon-button')");
  same('images cannot come back', await page.count('.queue-head'), 0);
  await page.evaluate('localStorage.clear()');
}

export async function namingFiles(page, agent) {
  agent.files = [{ path: 'src/recover.rs', isDirectory: false }, { path: 'src', isDirectory: true }, { path: 'docs/my notes.md', isDirectory: false }, { path: 'src/open.rs', isDirectory: false }];
  await page.focus('#field');
  await page.type('Look at @rec');
  await page.until("document.querySelectorAll('.completion-entry.is-file').length === 1");
  await page.key('Enter', CTRL);
  same('the name', await page.evaluate(`${field}.value`), 'Look at @src/recover.rs ');
  same('nothing was sent', agent.asked('prompt').length, 0);
  await page.type('and @');
  await page.until("document.querySelectorAll('.completion-entry.is-file').length === 4");
  await page.picture('files');
  await page.key('ArrowDown');
  await page.key('Tab');
  same('a directory is gone into', await page.evaluate(`${field}.value`), 'Look at @src/recover.rs and @src/');
  await page.until("document.querySelectorAll('.completion-entry.is-file').length === 2");
  await page.click('.completion-entry:last-child');
  await page.type('and @my');
  await page.until("document.querySelector('.completion-entry')?.innerText.includes('my notes.md')");
  await page.key('Tab');
  same('blanks are quoted', await page.evaluate(`${field}.value`), 'Look at @src/recover.rs and @src/open.rs and @"docs/my notes.md" ');
  await page.type('mail ada@example');
  await page.wait(250);
  same('no file in the middle of a word', await page.count('.completion-entry'), 0);
  await page.evaluate(`${field}.value = ''; localStorage.clear()`);
}

export async function shellCommandsOfOtherPages(page, agent) {
  agent.say({ type: 'bash_execution_start', id: '1', bashId: 'b1', command: 'make all' });
  agent.say({ type: 'bash_execution_update', id: '1', bashId: 'b1', delta: 'half way' });
  await page.until("document.querySelector('.shell .terminal')?.innerText.includes('$ make all\\nhalf way')");
  check('it can be stopped here, too', await page.evaluate("!document.querySelector('.stop').hidden"));
  agent.say({ type: 'bash_execution_end', id: '1', bashId: 'b1', command: 'make all', output: 'all of it', exitCode: 2, cancelled: false, truncated: false });
  await page.until("document.querySelector('.shell .remark')?.innerText === 'exit 2' && document.querySelector('.stop').hidden");
  same('one of them', await page.count('.shell'), 1);
}
