// What the conversation shows: answers, reasoning, tool calls, failures, and where one is in it.

import { check, same, soon, waitFor } from '../browser.mjs';
import { runTool, sayUser, stream, user } from '../agent.mjs';
import { fill } from '../scene.mjs';

const last = "[...document.querySelectorAll('.answer')].at(-1)";

export async function everythingTogether(page) {
  await page.until("document.querySelector('.hljs-keyword')");
  await page.picture('conversation-end');
  same('links', await page.evaluate("(() => { const a = document.querySelector('.prose a'); return [a.rel, a.target]; })()"), ['noreferrer noopener', '_blank']);
  same('the table', await page.count('.prose table tr'), 4);
  check('at its end', await page.evaluate("(() => { const s = document.querySelector('#scroll'); return s.scrollHeight - s.scrollTop - s.clientHeight < 5; })()"));
  await page.evaluate("document.querySelector('#scroll').scrollTop = 0");
  await page.picture('conversation-start');
  check('no sideways scrolling', await page.evaluate('document.documentElement.scrollWidth <= innerWidth'));
  // Steps outside of the window are not drawn, and have no text then.
  await page.evaluate("document.querySelector('.tool[data-call=c4]').scrollIntoView({ block: 'center' })");
  await page.until("document.querySelector('.tool[data-call=c4] .tool-note').innerText");
  same('exit code', await page.text('.tool[data-call=c4] .tool-note'), 'exit 101');
  await page.evaluate("document.querySelector('.tool[data-call=c3]').scrollIntoView({ block: 'center' })");
  await page.until("document.querySelector('.tool[data-call=c3] .tool-note').innerText");
  same('counted lines', await page.text('.tool[data-call=c3] .tool-note'), '+2 −1');
  check('colours of the terminal', await page.count('.tool[data-call=c4] .t-fg-1') > 0);
  same('an image of a tool', await page.count('.tool[data-call=c5] img.picture'), 1);
}
everythingTogether.prepare = fill;

export async function everythingInTheDark(page) {
  await page.until("document.querySelector('.hljs-keyword')");
  await page.picture('dark-end');
  await page.evaluate("document.querySelector('#scroll').scrollTop = 0");
  await page.picture('dark-start');
}
everythingInTheDark.prepare = fill;
everythingInTheDark.theme = 'dark';

export async function anEmptySession(page) {
  await page.until("document.querySelector('.blank h1')");
  await page.picture('empty');
  await page.click('.hint');
  check('a hint becomes a draft', (await page.evaluate("document.querySelector('#field').value")).length > 5);
  await page.evaluate('localStorage.clear()');
}

export async function textStreamsIn(page, agent) {
  sayUser(agent, 'Go');
  agent.say({ type: 'agent_start' });
  stream(agent, [{ type: 'thinking', thinking: 'Let me think about it.' }, { type: 'text', text: '# Title\n\nSome *words*\n\n```js\nconst a = 1;\n' }], { end: false, chunk: 3 });
  await page.until(`${last}?.querySelector('.code code')?.textContent.includes('const a = 1')`);
  check('it says that it works', (await page.text('#status')).length > 3);
  check('a button to stop', await page.evaluate("!document.querySelector('.stop').hidden"));
  await page.picture('streaming');
  agent.say({ type: 'message_update', assistantMessageEvent: { type: 'text_delta', contentIndex: 1, delta: 'const b = 2;\n```\n\nThe *end*' } });
  await page.until(`${last}.innerText.includes('The end')`);
  const content = [{ type: 'thinking', thinking: 'Let me think about it.' }, { type: 'text', text: '# Title\n\nSome *words*\n\n```js\nconst a = 1;\nconst b = 2;\n```\n\nThe *end*' }];
  agent.say({ type: 'message_end', message: { role: 'assistant', content, stopReason: 'stop', timestamp: 1 } });
  agent.say({ type: 'agent_end', messages: [], willRetry: false });
  await page.until("document.querySelector('#status').hidden");
  same('headings', await page.text('.answer h1'), 'Title');
  await page.click('.thinking summary');
  await page.until("document.querySelector('.thinking-text').innerText === 'Let me think about it.'");
}

export async function growingTextIsWhatTheWholeWouldBe(page, agent) {
  const text = 'Intro\n\n- one\n- two\n\n  more of two\n- three\n\n1. a\n2. b\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> quote\n> goes on\n\n```\ncode\n\nmore\n```\n\n[ref]: https://example.org\n\nDone <b>not bold</b> & [x](https://a.example) `code`\n';
  stream(agent, [{ type: 'text', text }], { end: false, chunk: 5 });
  await page.until(`${last}?.innerText.includes('Done') && ${last}.innerText.trimEnd().endsWith('code')`);
  const clean = `(${last}.querySelector('.prose').innerText.replace(/\\s+/g, ' '))`;
  const grown = await page.evaluate(clean);
  agent.say({ type: 'message_end', message: { role: 'assistant', content: [{ type: 'text', text }], stopReason: 'stop', timestamp: 1 } });
  await page.until(`!${last}.querySelector('.growing')`);
  same('the text', await page.evaluate(clean), grown);
}

export async function toolsAtTheSameTime(page, agent) {
  agent.say({ type: 'agent_start' });
  const calls = ['a', 'b'].map((id) => ({ type: 'toolCall', id, name: 'bash', arguments: { command: `make ${id}` } }));
  stream(agent, calls, { stopReason: 'toolUse' });
  for (const call of calls) agent.say({ type: 'tool_execution_start', toolCallId: call.id, toolName: 'bash', args: call.arguments });
  agent.say({ type: 'tool_execution_update', toolCallId: 'a', toolName: 'bash', args: {}, partialResult: { content: [{ type: 'text', text: 'compiling 1 of 9' }] } });
  await page.until("document.querySelector('[data-call=a] .terminal')?.innerText.includes('1 of 9')");
  agent.say({ type: 'tool_execution_end', toolCallId: 'b', toolName: 'bash', result: { content: [{ type: 'text', text: 'b is done' }] }, isError: false, durationMs: 2100 });
  await page.until("document.querySelector('[data-call=b]').dataset.status === 'done'");
  same('the other one', await page.evaluate("document.querySelector('[data-call=a]').dataset.status"), 'running');
  await page.picture('tools-running');
  await page.click('[data-call=b] .tool-head');
  check('output on demand', (await page.text('[data-call=b] .terminal')).includes('b is done'));
}

export async function longOutputIsFolded(page, agent) {
  const call = { type: 'toolCall', id: 'l', name: 'bash', arguments: { command: 'seq 500' } };
  stream(agent, [call], { stopReason: 'toolUse' });
  runTool(agent, call, Array.from({ length: 500 }, (_, i) => i + 1).join('\n'), { isError: true });
  await page.until("document.querySelector('[data-call=l] .more')");
  check('the end', (await page.text('[data-call=l] .terminal')).includes('500') && !(await page.text('[data-call=l] .terminal')).includes('\n400\n'));
  await page.click('[data-call=l] .more');
  check('all of it', (await page.text('[data-call=l] .terminal')).includes('\n400\n'));
}

export async function failuresAndRetries(page, agent) {
  sayUser(agent, 'Try');
  agent.say({ type: 'agent_start' });
  agent.say({ type: 'message_end', message: { role: 'assistant', content: [], stopReason: 'error', errorMessage: '529 Overloaded', timestamp: 2 } });
  agent.say({ type: 'agent_end', messages: [], willRetry: true });
  agent.say({ type: 'auto_retry_start', attempt: 1, maxAttempts: 3, delayMs: 4000, errorMessage: '529 Overloaded' });
  await page.until("/Trying again in \\d s .1 of 3/.test(document.querySelector('#status').innerText)");
  await page.until("document.querySelector('.failure')?.innerText === '529 Overloaded'");
  await page.picture('retry');
  await page.click('#status .link');
  await page.until("document.querySelector('.toast.error')?.innerText.includes('Given up')");
  await soon(() => same('asked to give up', agent.asked('abort_retry').length, 1));
}

export async function whatItDoesIsSaid(page, agent) {
  const status = (words) => page.until(`document.querySelector('#status').innerText.includes('${words}')`);
  const update = (event) => agent.say({ type: 'message_update', message: { role: 'assistant', content: [], timestamp: 1 }, assistantMessageEvent: event });
  sayUser(agent, 'Go');
  agent.say({ type: 'agent_start' });
  await status('Working');
  check('in the title, too', (await page.evaluate('document.title')).startsWith('●'));
  agent.say({ type: 'message_start', message: { role: 'assistant', content: [], timestamp: 1 } });
  update({ type: 'thinking_start', contentIndex: 0 });
  update({ type: 'thinking_delta', contentIndex: 0, delta: 'Hm' });
  await status('Thinking');
  update({ type: 'thinking_end', contentIndex: 0, content: 'Hm' });
  update({ type: 'text_start', contentIndex: 1 });
  update({ type: 'text_delta', contentIndex: 1, delta: 'So' });
  await status('Answering');
  update({ type: 'toolcall_start', contentIndex: 2, id: 'w', toolName: 'write' });
  update({ type: 'toolcall_delta', contentIndex: 2, delta: '{"path":"src/gear.rs","content":"fn' });
  await status('Writing a tool call');
  await page.until("document.querySelector('[data-call=w] .tool-subject')?.innerText === 'src/gear.rs'");
  agent.say({ type: 'tool_execution_start', toolCallId: 'w', toolName: 'bash', args: { command: 'make' } });
  await status('Running a command');
  agent.say({ type: 'tool_execution_start', toolCallId: 'x', toolName: 'read', args: {} });
  await status('Running 2 tools');
  await page.until("/\\d s/.test(document.querySelector('.status-time').innerText)");
  agent.say({ type: 'agent_end', messages: [], willRetry: false });
  await page.until("document.querySelector('#status').hidden && !document.title.startsWith('●')");
}

export async function aPictureIsShownLarge(page) {
  await page.until("document.querySelector('.picture-button')");
  await page.click('.picture-button');
  await page.until("document.querySelector('.picture-dialog[open] img')?.complete");
  check('large', await page.evaluate("document.querySelector('.picture-dialog img').getBoundingClientRect().width > 100"));
  await page.picture('picture');
  await page.key('Escape');
  await page.until("!document.querySelector('.picture-dialog')");
}
aPictureIsShownLarge.prepare = fill;

export async function contextAndCost(page, agent) {
  check('how full', await page.evaluate("document.querySelector('.meter').getAttribute('aria-label')") === 'Context: 43k of 200k tokens (21 %)');
  await page.click('.meter');
  await page.until("document.querySelector('.figures')");
  const figures = await page.text('.figures');
  for (const one of ['43k / 200k', '81k', '38k', '3.1k', '$0.18']) check(`${one} in ${figures}`, figures.includes(one));
  await page.evaluate("document.querySelector('.menu').hidePopover()");
  agent.first.percent = 86;
  agent.say({ type: 'agent_end', messages: [], willRetry: false });
  await page.until("document.querySelector('.meter').dataset.level === 'high'");
}

export async function compaction(page, agent) {
  let finish;
  agent.oncompact = (done) => { finish = done; };
  sayUser(agent, 'one');
  sayUser(agent, 'two');
  await page.until("document.querySelectorAll('.user').length === 2");
  await page.click('.meter');
  await page.until("document.querySelector('.menu:popover-open')");
  check('cost', (await page.text('.figures')).includes('$0.18'));
  await page.picture('context');
  await page.evaluate("[...document.querySelectorAll('.menu-entry')].find((node) => node.textContent.includes('Compact now')).click()");
  await page.until("document.querySelector('#status').innerText.includes('Compacting')");
  finish();
  await page.until("document.querySelector('.divider')");
  await page.click('.divider summary');
  await page.until("document.querySelector('.divider .prose')?.innerText.includes('We built a rack.')");
}

export async function scrollingIsNotStolen(page, agent) {
  for (let i = 0; i < 30; i += 1) { sayUser(agent, `question ${i}`); stream(agent, [{ type: 'text', text: `answer ${i}\n\nwith lines\n\nand lines` }], { chunk: 500 }); }
  await page.until("document.querySelector('#scroll').scrollTop > 500");
  await page.evaluate("document.querySelector('#scroll').scrollTop = 200");
  await page.until("!document.querySelector('.jump').hidden");
  const before = await page.evaluate("document.querySelector('#scroll').scrollTop");
  agent.say({ type: 'agent_start' });
  stream(agent, [{ type: 'text', text: 'New words '.repeat(200) }]);
  await page.wait(300);
  same('where one was', await page.evaluate("document.querySelector('#scroll').scrollTop"), before);
  await page.picture('scrolled-up');
  await page.click('.jump');
  await page.until("(() => { const s = document.querySelector('#scroll'); return s.scrollHeight - s.scrollTop - s.clientHeight < 5; })()");
  stream(agent, [{ type: 'text', text: 'More words '.repeat(200) }]);
  await page.until(`${last}?.innerText.split('More words').length === 201`);
  // It follows the end, of all of it.
  await page.until("(() => { const s = document.querySelector('#scroll'); return s.scrollHeight - s.scrollTop - s.clientHeight < 5; })()");
}

export async function aLongConversationIsAWindow(page) {
  check('few items in the document', await page.count('.item') < 200);
  await waitFor('the first message', async () => {
    await page.evaluate("document.querySelector('#scroll').scrollTop = 0");
    return page.evaluate("document.querySelector('.item').innerText.includes('question 0.')");
  });
  check('still few', await page.count('.item') < 200);
  await page.click('.jump');
  await page.until("[...document.querySelectorAll('.item')].at(-1).innerText.includes('answer 1999')");
}
aLongConversationIsAWindow.prepare = (agent) => {
  for (let i = 0; i < 2000; i += 1) agent.first.messages.push({ ...user(`question ${i}.`), timestamp: i }, { role: 'assistant', content: [{ type: 'text', text: `answer ${i}` }], stopReason: 'stop', timestamp: i });
};

const big = (agent) => {
  for (let i = 0; i < 2500; i += 1) {
    agent.first.messages.push({ ...user(`question ${i}.`), timestamp: i }, { role: 'assistant', content: [{ type: 'text', text: `answer ${i}` },
      ...(i === 77 ? [{ type: 'toolCall', id: 'deep', name: 'bash', arguments: { command: 'make' } }] : [])], stopReason: 'stop', timestamp: i });
    if (i === 77) agent.first.messages.push({ role: 'toolResult', toolCallId: 'deep', toolName: 'bash', content: [{ type: 'text', text: 'a needle in the output' }], isError: false, timestamp: i });
  }
};

export async function searchingALongConversation(page) {
  await page.focus('#field');
  await page.key('f', 2);
  await page.until("!document.querySelector('.find').hidden && document.activeElement === document.querySelector('.find input')");
  await page.type('question 1203.');
  await page.until("document.querySelector('.find-told').innerText === '1 of 1'");
  const inView = (words) => `[...document.querySelectorAll('.item')].some((node) => node.innerText.includes(${JSON.stringify(words)}) && node.getBoundingClientRect().top > 0 && node.getBoundingClientRect().bottom < innerHeight)`;
  await page.until(inView('question 1203.'));
  await page.until("CSS.highlights.get('found-here')?.size === 1");
  await page.picture('find');
  await page.evaluate("(() => { const field = document.querySelector('.find input'); field.value = 'NEEDLE'; field.dispatchEvent(new Event('input')); })()");
  await page.until("document.querySelector('[data-call=deep] .terminal')?.innerText.includes('a needle')");
  check('few items in the document', await page.count('.item') < 200);
  await page.evaluate("(() => { const field = document.querySelector('.find input'); field.value = 'answer 24'; field.dispatchEvent(new Event('input')); })()");
  await page.until("document.querySelector('.find-told').innerText === '111 of 111'");
  await page.key('Enter');
  await page.until("document.querySelector('.find-told').innerText === '1 of 111'");
  await page.until(inView('answer 24'));
  await page.key('Escape');
  await page.until("document.querySelector('.find').hidden && document.activeElement.id === 'field'");
  await page.click('.jump');
  await page.until("[...document.querySelectorAll('.item')].at(-1).innerText.includes('answer 2499')");
}
searchingALongConversation.prepare = big;

export async function beginningAndEnd(page) {
  await page.until("document.querySelectorAll('.item').length > 20");
  await page.focus('#field');
  await page.key('ArrowUp', 2);
  await page.until("document.querySelector('.item').innerText.includes('question 0.')");
  await page.key('ArrowDown', 2);
  await page.until("[...document.querySelectorAll('.item')].at(-1).innerText.includes('answer 2499')");
  check('at its end', await page.evaluate("(() => { const s = document.querySelector('#scroll'); return s.scrollHeight - s.scrollTop - s.clientHeight < 5; })()"));
}
beginningAndEnd.prepare = big;
