// Checks of the first page of the fork that the protocol comes from, as it was when the protocol was described: it keeps its elements in
// a shadow tree, and takes up the newest session when it connects. Each check goes on where the one before it ended.

import { check, same } from '../browser.mjs';

export const HOST = 'pi-web-app';
/** Faults that this page does not show. */
export const BLIND = [];
/** It takes the token from its own address. */
export const ARGS = ['--web-token', 'a token/of+ours'];
const PHASES = 'globalThis.phases';

async function say(tab, text) {
  await tab.type('#prompt', text);
  if (tab.page.size === 'desktop') await tab.page.key('Enter'); else await tab.click('#send-btn');
}
const idle = (tab) => tab.until(`${tab.root}.querySelector('#send-btn') && !${tab.root}.querySelector('#prompt').disabled`);
const last = async (tab, selector) => (await tab.texts(selector)).at(-1);
const sidebar = async (tab) => { await tab.click('.btn-hamburger'); await tab.has('.sidebar.open'); };
const active = (tab) => tab.evaluate(`${tab.root}.querySelector('.session-item.active .session-item-name')?.innerText ?? null`);
const connected = async (tab) => { await tab.until(`document.querySelector('${HOST}')?.shadowRoot?.querySelector('.status-dot.on')`); await tab.until(`!${tab.root}.querySelector('#prompt').disabled`); };
const loaded = async (tab) => { await connected(tab); for (let i = 0; !tab.said.some((text) => text.includes('session state loaded')); i += 1) { check('the page loaded the session', i < 300); await tab.page.wait(50); } };
const responses = (tab, command) => tab.frames().filter((frame) => !frame.sent && frame.type === 'response' && frame.command === command);

export const core = {
  async 'connects to an empty session'({ tab, url }) {
    await tab.goto(url);
    await loaded(tab);
    same('hint', await tab.texts('.empty-hint'), ['Send a message to get started']);
    await sidebar(tab);
    same('sessions', await tab.count('.session-item'), 0);
    await tab.click('.sidebar-backdrop', '', 0.98);
  },
  async 'text appears while it is written'({ tab, model }) {
    model.answer([{ text: 'The first **half**' }, { gate: 'half' }, { text: ' and the rest.' }]);
    await say(tab, 'Tell me something');
    await tab.shows('.step-assistant', 'The first half');
    check('the rest is not there', !(await last(tab, '.step-assistant')).includes('rest'));
    await tab.has('.streaming-dot');
    await tab.has('#abort-btn');
    check('no second prompt', await tab.evaluate(`${tab.root}.querySelector('#prompt').disabled`));
    await tab.picture('original-streaming');
    model.release('half');
    await idle(tab);
    same('answer', await tab.texts('.step-assistant'), ['The first half and the rest.']);
    same('markdown', await tab.count('.step-assistant strong'), 1);
    same('question', await tab.texts('.user-msg'), ['Tell me something']);
    same('answers to the prompt', responses(tab, 'prompt').length, 1);
  },
  async 'the context ring shows what is used'({ tab, model }) {
    model.answer([{ text: 'Counted.' }, { tokens: 41990 }]);
    await say(tab, 'Count');
    await idle(tab);
    await tab.until(`${tab.root}.querySelector('.context-ring')?.getAttribute('aria-label') === '42k / 200k tokens (21%)'`);
  },
  async 'thinking comes before the answer'({ tab, model }) {
    model.answer([{ thinking: 'I have to ' }, { thinking: 'think.' }, { gate: 'thought' }, { text: 'Thought.' }]);
    await say(tab, 'Think');
    await tab.shows('.step-thinking', 'I have to think.');
    await tab.shows('.steps-toggle', '1 step');
    model.release('thought');
    await idle(tab);
    same('answer', await last(tab, '.step-assistant'), 'Thought.');
  },
  async 'a tool goes through its phases'({ tab, model, place }) {
    await tab.evaluate(`${PHASES} = []; new MutationObserver(() => { const now = [...${tab.root}.querySelectorAll('.tool-step-status')].at(-1)?.innerText.replace('···', '').trim();
      if (now && now !== ${PHASES}.at(-1)) ${PHASES}.push(now); }).observe(${tab.root}, { subtree: true, childList: true, characterData: true })`);
    model.answer([{ text: 'I look.' }, { tool: 'bash', args: { command: 'while [ ! -e go ]; do sleep 0.05; done; echo from the tool' } }], [{ text: 'Looked.' }]);
    await say(tab, 'Look');
    await tab.shows('.tool-step-status', 'Running...');
    same('tool', await last(tab, '.tool-step-name'), 'bash');
    check('its argument', (await last(tab, '.tool-step-args')).includes('echo from the tool'));
    await tab.picture('original-tool-running');
    place.put('go');
    await tab.shows('.tool-step-status', 'Done');
    await idle(tab);
    check('its output', (await last(tab, '.tool-step-result')).includes('from the tool'));
    same('phases', await tab.evaluate(PHASES), ['Calling...', 'Running...', 'Done']);
    same('answer', await last(tab, '.step-assistant'), 'Looked.');
  },
  async 'a failed tool is marked'({ tab, model }) {
    model.answer([{ tool: 'bash', args: { command: 'echo it broke; exit 3' } }], [{ text: 'It failed.' }]);
    await say(tab, 'Break');
    await tab.shows('.tool-step-result.is-error', 'it broke');
    await idle(tab);
    same('status', (await tab.texts('.tool-step-status')).at(-1), 'Error');
    await tab.picture('original-tool-error');
  },
  async 'stop ends an answer and a tool'({ tab, model, place }) {
    model.answer([{ text: 'This will be' }, { gate: 'never' }]);
    await say(tab, 'Write for ever');
    await tab.shows('.step-assistant', 'This will be');
    await tab.click('#abort-btn');
    await idle(tab);
    model.answer([{ tool: 'bash', args: { command: 'echo $$ > pid; sleep 600; echo late > late' } }], [{ text: 'Never.' }]);
    await say(tab, 'Sleep');
    await tab.shows('.tool-step-status', 'Running...');
    for (let i = 0; i < 200 && !place.has('pid'); i += 1) await tab.page.wait(50);
    await tab.click('#abort-btn');
    await idle(tab);
    same('answers to stop', responses(tab, 'abort').map((frame) => frame.success), [true, true]);
    same('errors', await tab.count('.step-error'), 0);
  },
  async 'a model that fails leaves a page that works'({ tab, model }) {
    model.answer([{ status: 400, error: 'the model is on holiday' }]);
    await say(tab, 'Fail');
    await tab.until(`${tab.root}.querySelectorAll('.user-msg').length === 8`);
    const told = await tab.hears((frame) => frame.type === 'message_end' && frame.message.stopReason === 'error');
    check('the error is told', told.at(-1).message.errorMessage.includes('the model is on holiday'));
    await idle(tab);
    model.answer([{ text: 'Back again.' }]);
    await say(tab, 'Go on');
    await tab.shows('.step-assistant', 'Back again.');
    await idle(tab);
  },
  async 'a reload shows it all again'({ tab, url }) {
    const before = [await tab.texts('.user-msg'), await tab.texts('.tool-step-name'), (await tab.texts('.step-thinking'))];
    await tab.goto(url);
    await loaded(tab);
    await tab.shows('.tool-step-result', 'from the tool');
    same('after a reload', [await tab.texts('.user-msg'), await tab.texts('.tool-step-name'), await tab.texts('.step-thinking')], before);
    same('the failed tool', (await tab.texts('.tool-step-result.is-error')).length >= 1, true);
    await tab.picture('original-history');
  },
  async 'sessions are listed and made and changed'({ tab, model }) {
    await sidebar(tab);
    same('one', await tab.texts('.session-item-name'), ['Tell me something']);
    same('active', await active(tab), 'Tell me something');
    check('its size', /^\d+ messages/.test(await last(tab, '.session-item-meta')));
    await tab.page.wait(300);
    await tab.picture('original-sessions');
    await tab.click('.btn-new-session');
    await tab.shows('.empty-hint', 'Send a message');
    model.answer([{ text: 'Fresh.' }]);
    await say(tab, 'In a new session');
    await tab.shows('.step-assistant', 'Fresh.');
    await idle(tab);
    await tab.goto(await tab.evaluate('location.href'));
    await loaded(tab);
    same('the newest is taken up', await tab.texts('.user-msg'), ['In a new session']);
    await sidebar(tab);
    same('two, newest first', await tab.texts('.session-item-name'), ['In a new session', 'Tell me something']);
    await tab.click('.session-item', 'Tell me something');
    await tab.shows('.step-assistant', 'The first half and the rest.');
    await tab.until(`${tab.root}.querySelector('.session-item.active .session-item-name')?.innerText === 'Tell me something'`);
    const kinds = tab.frames().filter((frame) => frame.type === 'session_changed' || frame.command === 'switch_session').map((frame) => [frame.type, frame.reason || frame.success]);
    same('the change is told before its answer', kinds, [['session_changed', 'switch'], ['response', true]]);
  },
};

/** With a second tab. */
export const strict = {
  async 'a second tab joins the run'({ tab, second, url, model }) {
    model.answer([{ text: 'Before' }, { gate: 'joined' }, { text: ' and after.' }]);
    await say(tab, 'A long one');
    await tab.shows('.step-assistant', 'Before');
    await second.goto(url);
    await loaded(second);
    same('no change of session', second.frames().filter((frame) => frame.type === 'switch_session').length, 0);
    model.release('joined');
    await tab.shows('.step-assistant', 'Before and after.');
    await idle(tab);
    await second.shows('.step-assistant', 'and after.');
    same('answers are for who asked', second.frames().filter((frame) => frame.command === 'prompt').length, 0);
  },
  async 'a second tab joins the first run of a new session'({ tab, second, url, model }) {
    await second.goto('about:blank');
    await sidebar(tab);
    await tab.click('.btn-new-session');
    await tab.shows('.empty-hint', 'Send a message');
    model.answer([{ text: 'Newborn' }, { gate: 'born' }, { text: ' and grown.' }]);
    await say(tab, 'A new one');
    await tab.shows('.step-assistant', 'Newborn');
    await second.goto(url);
    await loaded(second);
    same('it stays', second.frames().filter((frame) => frame.sent).map((frame) => frame.type).includes('switch_session'), false);
    same('what was asked', await second.texts('.user-msg'), ['A new one']);
    model.release('born');
    await tab.shows('.step-assistant', 'Newborn and grown.');
    await idle(tab);
    await second.goto('about:blank');
  },
  async 'a prompt during a run is refused once'({ tab, second, url, model }) {
    model.answer([{ text: 'Busy' }, { gate: 'busy' }]);
    await say(tab, 'Be busy');
    await tab.shows('.step-assistant', 'Busy');
    await second.goto(url);
    await loaded(second);
    await say(second, 'Me too');
    await second.shows('.step-error', 'already processing');
    // Once by who asked, once by who listens: the page does that with every refusal.
    same('shown', await second.count('.step-error'), 2);
    const refused = responses(second, 'prompt');
    same('answers', refused.map((frame) => frame.success), [false]);
    check('its words', refused[0].error.startsWith("Agent is already processing. Specify streamingBehavior ('steer' or 'followUp')"));
    model.release('busy');
    await idle(tab);
    same('the other tab hears nothing of it', await tab.count('.step-error'), 0);
    await second.goto('about:blank');
  },
  async 'a change of session ends the run for all'({ tab, second, url, model }) {
    model.answer([{ text: 'Going' }, { gate: 'gone' }]);
    await say(tab, 'Go on');
    await tab.shows('.step-assistant', 'Going');
    await second.goto(url);
    await loaded(second);
    await sidebar(second);
    await second.click('.session-item', 'In a new session');
    await second.shows('.user-msg', 'In a new session');
    await idle(tab);
    const seen = tab.frames().filter((frame) => ['agent_end', 'session_changed'].includes(frame.type)).slice(-2);
    same('the end before the change', seen.map((frame) => frame.type), ['agent_end', 'session_changed']);
    await sidebar(tab);
    same('the first tab knows', await active(tab), 'In a new session');
    await tab.click('.sidebar-backdrop', '', 0.98);
  },
};

/** On an agent with an extension. */
export const EXTENSION = `export default function (pi) {
  pi.registerCommand('boom', { handler: async () => { throw new Error('the extension broke'); } });
  pi.registerCommand('ask', { handler: async (_args, ctx) => {
    const sure = await ctx.ui.confirm('Sure?', 'Really do it?');
    const name = await ctx.ui.input('Your name');
    const kind = await ctx.ui.select('Which kind?', ['red', 'blue']);
    const none = await ctx.ui.input('Nothing');
    ctx.ui.setEditorText('words');
    ctx.ui.notify(['heard', sure, name, kind, none].join(' '), 'info');
  } });
}
`;

export const extended = {
  async 'a token in the address lets in, another one does not'({ tab, url }) {
    await tab.goto(url.replace(/token=.*/, 'token=wrong'));
    await tab.until(`document.querySelector('${HOST}')?.shadowRoot?.querySelector('.status-dot')`);
    await tab.page.wait(500);
    same('with a wrong token', await tab.count('.status-dot.on'), 0);
    tab.forget();
    await tab.goto(url);
    await loaded(tab);
  },
  async 'the newest session is taken up after a restart'({ tab }) {
    same('first question', (await tab.texts('.user-msg'))[0], 'A new one');
    same('asked for', tab.frames().filter((frame) => frame.sent).map((frame) => frame.type), ['get_state', 'list_sessions', 'switch_session', 'get_state', 'list_sessions',
      'get_messages', 'get_context_usage']);
  },
  async 'questions of extensions become dialogs'({ tab }) {
    const asked = [];
    tab.page.answer = ({ type, message }) => { asked.push([type, message]); return message === 'Nothing' ? { accept: false } : { accept: true, promptText: message === 'Your name' ? 'Ada' : 'blue' }; };
    await say(tab, '/ask');
    await tab.shows('.step-system', 'heard true Ada blue');
    same('questions', asked, [['confirm', 'Really do it?'], ['prompt', 'Your name'], ['prompt', 'Which kind?'], ['prompt', 'Nothing']]);
    check('no answer is none', /blue\s*$/.test(await last(tab, '.step-system')));
    await tab.shows('.step-system', 'Extension updated editor text');
    tab.page.answer = null;
  },
  async 'an error of an extension is told once'({ tab }) {
    await say(tab, '/boom');
    await tab.shows('.step-error', 'the extension broke');
    await tab.page.wait(300);
    same('errors', (await tab.texts('.step-error')).length, 1);
  },
};
