// Checks of the later page of the fork: it goes on writing during a run, runs shell commands, picks directories and thinking levels, and
// may live at another address than the agent. Each check goes on where the one before it ended.

import { mkdirSync } from 'node:fs';
import { check, same } from '../browser.mjs';

export const HOST = null;
export const ARGS = [];
/** Faults that this page does not show: it hides thoughts, and sorts sessions itself. */
export const BLIND = ['no thinking', 'oldest session first'];
export { EXTENSION } from './lit.mjs';

const PROMPT = 'footer textarea';
const SEND = '[aria-label="Send"]';
const STOP = 'footer button:has(svg.lucide-square)';
const TOOL = 'button:has(> svg.lucide-chevron-right)';

async function say(tab, text) {
  await tab.type(PROMPT, text);
  if (tab.page.size === 'desktop') await tab.page.key('Enter'); else await tab.click(SEND);
}
const idle = (tab) => tab.until(`!document.querySelector(${JSON.stringify(STOP)}) && document.querySelector(${JSON.stringify(SEND)})`);
const text = (tab) => tab.evaluate('document.body.innerText');
const shows = (tab, words) => tab.until(`document.body.innerText.includes(${JSON.stringify(words)})`);
const count = async (tab, words) => (await text(tab)).split(words).length - 1;
const connected = async (tab) => { await tab.until("document.querySelector('header')?.innerText.includes('Connected')"); await tab.until("new URLSearchParams(location.search).has('session')"); };
const draft = (tab) => tab.evaluate(`document.querySelector(${JSON.stringify(PROMPT)}).value`);
const sidebar = async (tab) => { await tab.click('[aria-label="Open sidebar"]'); await tab.page.wait(350); };
const listed = (tab) => tab.evaluate("[...document.querySelectorAll('aside button')].slice(1).map((node) => node.innerText.replace(/^—/, '').trim())");
const sent = (tab, kind) => tab.frames().filter((frame) => frame.sent && frame.type === kind);
const answers = (tab, kind) => tab.frames().filter((frame) => !frame.sent && frame.command === kind);

export const core = {
  async 'connects to an empty session'({ tab, url }) {
    await tab.goto(url);
    await connected(tab);
    await shows(tab, 'New session');
  },
  async 'text appears while it is written'({ tab, model }) {
    model.answer([{ text: 'The first **half**' }, { gate: 'half' }, { text: ' and the rest.' }]);
    await say(tab, 'Tell me something');
    await shows(tab, 'The first half');
    check('the rest is not there', !(await text(tab)).includes('and the rest'));
    await tab.has(STOP);
    model.release('half');
    await idle(tab);
    await shows(tab, 'The first half and the rest.');
    same('answers', await count(tab, 'and the rest.'), 1);
    same('markdown', await tab.count('strong'), 1);
  },
  async 'the context ring shows what is used'({ tab, model }) {
    model.answer([{ thinking: 'Hm.' }, { text: 'Counted.' }, { tokens: 41990 }]);
    await say(tab, 'Count');
    await shows(tab, 'Counted.');
    await idle(tab);
    for (let i = 0; answers(tab, 'get_context_usage').at(-1)?.data.usage.tokens !== 42000; i += 1) { check('the usage is asked for', i < 100); await tab.page.wait(50); }
    await tab.click('[aria-label="Context usage"]');
    await shows(tab, '42,000');
    await shows(tab, '21%');
    await tab.click('[aria-label="Context usage"]');
  },
  async 'a tool goes through its phases'({ tab, model, place }) {
    model.answer([{ text: 'I look.' }, { tool: 'bash', args: { command: 'while [ ! -e go ]; do sleep 0.05; done; echo from the tool' } }], [{ text: 'Looked.' }]);
    await say(tab, 'Look');
    await tab.has(`${TOOL} svg.lucide-loader-circle`);
    check('what is run', (await text(tab)).includes('Shell'));
    await tab.picture('original-later-tool');
    place.put('go');
    await tab.has(`${TOOL} svg.lucide-circle-check`);
    await shows(tab, 'Looked.');
    await idle(tab);
    await tab.click(TOOL);
    await shows(tab, '\nfrom the tool');
  },
  async 'a failed tool is marked, with its exit code'({ tab, model }) {
    model.answer([{ tool: 'bash', args: { command: 'seq 1 30; echo it broke; exit 3' } }], [{ text: 'It failed.' }]);
    await say(tab, 'Break');
    await tab.has(`${TOOL} svg.lucide-circle-x`);
    await shows(tab, 'It failed.');
    await idle(tab);
    await tab.click(TOOL, 'it broke');
    await shows(tab, '(11 earlier lines)');
    same('the exit code apart from the output', await tab.evaluate("[...document.querySelectorAll('pre > span')].at(-1)?.innerText"), 'Command exited with code 3');
    await tab.picture('original-later-error');
  },
  async 'a message during a run is scheduled and steers'({ tab, model }) {
    model.answer([{ text: 'Working' }, { gate: 'steer' }, { tool: 'bash', args: { command: 'true' } }], [{ text: 'Steered.' }]);
    await say(tab, 'Work');
    await shows(tab, 'Working');
    await say(tab, 'Turn left');
    await shows(tab, 'Steering: Turn left');
    same('how', sent(tab, 'prompt').at(-1).streamingBehavior, 'steer');
    await tab.picture('original-later-scheduled');
    model.release('steer');
    await shows(tab, 'Steered.');
    await idle(tab);
    check('no longer scheduled', !(await text(tab)).includes('Steering:'));
    same('said once', await count(tab, 'Turn left'), 1);
  },
  async 'what is scheduled comes back into the field'({ tab, model }) {
    model.answer([{ text: 'Going' }, { gate: 'back' }, { text: ' home.' }]);
    await say(tab, 'Go');
    await shows(tab, 'Going');
    await say(tab, 'Not that');
    await shows(tab, 'Steering: Not that');
    await tab.click('button', 'Restore to editor');
    await tab.until(`document.querySelector(${JSON.stringify(PROMPT)}).value === 'Not that'`);
    const cleared = await tab.hears((frame) => frame.command === 'clear_queue');
    same('cleared', [cleared[0].success, cleared[0].data.steering], [true, ['Not that']]);
    model.release('back');
    await shows(tab, 'Going home.');
    await idle(tab);
    same('never said', (await tab.frames()).filter((frame) => frame.type === 'message_start' && JSON.stringify(frame.message).includes('Not that')).length, 0);
    await tab.evaluate(`document.querySelector(${JSON.stringify(PROMPT)}).select()`);
    await tab.page.key('Backspace');
    same('the field', await draft(tab), '');
  },
  async 'stop ends a run'({ tab, model }) {
    model.answer([{ text: 'This will be' }, { gate: 'never' }]);
    await say(tab, 'Write for ever');
    await shows(tab, 'This will be');
    await tab.click(STOP);
    await idle(tab);
    same('stopped', answers(tab, 'abort').map((frame) => frame.success), [true]);
  },
  async 'the thinking level is changed'({ tab }) {
    await tab.click('[aria-label="Select thinking level"]');
    await tab.click('footer button', 'Deep reasoning');
    await tab.until("document.querySelector('[aria-label=\"Select thinking level\"]').innerText.trim() === 'high'");
    same('answer', (await tab.hears((frame) => frame.command === 'set_thinking_level')).map((frame) => frame.success), [true]);
  },
  async 'a shell command is run'({ tab }) {
    await tab.type(PROMPT, '!');
    await tab.until(`document.querySelector(${JSON.stringify(PROMPT)}).placeholder.includes('shell')`);
    await tab.type(PROMPT, 'echo "from a shell"; exit 4');
    if (tab.page.size === 'desktop') await tab.page.key('Enter'); else await tab.page.key('Enter', 4);
    await shows(tab, '$ echo "from a shell"; exit 4');
    const done = await tab.hears((frame) => frame.command === 'bash');
    same('result', [done[0].data.output.trim(), done[0].data.exitCode, done[0].data.cancelled, done[0].data.truncated], ['from a shell', 4, false, false]);
  },
  async 'a new session in another directory'({ tab, place, model }) {
    // It begins at home: the list that it knows is older than the session.
    mkdirSync(place.at('home', 'gears', 'small'), { recursive: true });
    mkdirSync(place.at('home', '.hidden'));
    await sidebar(tab);
    await tab.click('aside button', 'New session');
    await tab.has('[data-testid="dir-entry-gears"]');
    same('entries', await tab.evaluate("[...document.querySelectorAll('[data-testid^=dir-entry]')].map((node) => node.innerText.trim())"), ['gears']);
    await tab.picture('original-later-directories');
    await tab.click('[data-testid="dir-entry-gears"]');
    await tab.has('[data-testid="dir-entry-small"]');
    await tab.click('[data-testid="directory-select-btn"]');
    await tab.hasNo('[data-testid="directory-picker"]');
    await tab.hears((frame) => frame.command === 'new_session' && frame.success);
    model.answer([{ tool: 'bash', args: { command: 'pwd' } }], [{ text: 'There.' }]);
    await say(tab, 'Where are you?');
    await shows(tab, 'There.');
    await idle(tab);
    await tab.click(TOOL);
    await shows(tab, '/home/gears');
  },
  async 'a reload shows it all again, and a change of session too'({ tab }) {
    await tab.goto(await tab.evaluate('location.href'));
    await connected(tab);
    await shows(tab, 'There.');
    await sidebar(tab);
    same('sessions', await listed(tab), ['Where are you?', 'Tell me something']);
    await tab.click('aside button', 'Tell me something');
    await shows(tab, 'The first half and the rest.');
    await shows(tab, 'Steered.');
    check('the other session is gone', !(await text(tab)).includes('There.'));
    const kinds = tab.frames().filter((frame) => frame.type === 'session_changed' || frame.command === 'switch_session').map((frame) => [frame.type, frame.reason || frame.success]);
    same('the change is told before its answer', kinds, [['session_changed', 'switch'], ['response', true]]);
    await tab.picture('original-later-history');
  },
};

/** With a second tab. */
export const strict = {
  async 'a second tab joins the run'({ tab, second, url, model }) {
    model.answer([{ text: 'Before' }, { gate: 'joined' }, { text: ' and after.' }]);
    await say(tab, 'A long one');
    await shows(tab, 'Before');
    await second.goto(url);
    await connected(second);
    await shows(second, 'A long one');
    same('no change of session', sent(second, 'switch_session').length, 0);
    model.release('joined');
    await shows(tab, 'Before and after.');
    await idle(tab);
    await shows(second, 'and after.');
    same('answers are for who asked', answers(second, 'prompt').length, 0);
  },
  async 'a change of session ends the run for all'({ tab, second, model }) {
    model.answer([{ text: 'Underway' }, { gate: 'gone' }]);
    await say(tab, 'Set off');
    await shows(tab, 'Underway');
    await sidebar(second);
    await second.click('aside button', 'Where are you?');
    await shows(second, 'There.');
    await idle(tab);
    await shows(tab, 'There.');
    const seen = tab.frames().filter((frame) => ['agent_end', 'session_changed'].includes(frame.type)).slice(-2);
    same('the end before the change', seen.map((frame) => frame.type), ['agent_end', 'session_changed']);
  },
};

/** On an agent with an extension; the page knows no tokens. */
export const extended = {
  async 'the session in the address is taken up after a restart'({ tab, url }) {
    await tab.goto(url);
    await connected(tab);
    await shows(tab, 'Underway');
    same('asked for', sent(tab, 'switch_session').length, 1);
  },
  async 'questions of extensions become dialogs'({ tab }) {
    const asked = [];
    tab.page.answer = ({ type, message }) => { asked.push([type, message]); return message === 'Nothing' ? { accept: false } : { accept: true, promptText: message === 'Your name' ? 'Ada' : 'blue' }; };
    await say(tab, '/ask');
    await shows(tab, 'heard true Ada blue');
    same('questions', asked, [['confirm', 'Really do it?'], ['prompt', 'Your name'], ['prompt', 'Which kind?'], ['prompt', 'Nothing']]);
    tab.page.answer = null;
  },
  async 'an error of an extension is told once'({ tab }) {
    await say(tab, '/boom');
    await shows(tab, 'the extension broke');
    await tab.page.wait(300);
    same('errors', await count(tab, 'the extension broke'), 1);
  },
};

/** The page at another address than the agent, which lets that one in and no other. */
export const crossed = {
  async 'from another origin that was named'({ tab, origin, socket, model }) {
    await tab.goto(`${origin}/?ws=${encodeURIComponent(socket)}`);
    await connected(tab);
    model.answer([{ text: 'From afar.' }]);
    await say(tab, 'Hello over there');
    await shows(tab, 'From afar.');
    await idle(tab);
  },
  async 'not from one that was not named'({ tab, stranger, socket }) {
    await tab.goto(`${stranger}/?ws=${encodeURIComponent(socket)}`);
    await tab.until("document.querySelector('header')");
    await tab.page.wait(500);
    check('not connected', (await text(tab)).includes('Disconnected'));
    tab.forget();
  },
  async 'not without the token'({ tab, origin, socket }) {
    await tab.goto(`${origin}/?ws=${encodeURIComponent(socket.replace(/\?.*/, ''))}`);
    await tab.until("document.querySelector('header')");
    await tab.page.wait(500);
    check('not connected', (await text(tab)).includes('Disconnected'));
    tab.forget();
  },
};
