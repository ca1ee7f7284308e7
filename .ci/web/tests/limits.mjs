// Limits of runs, fallback models, results and sub-agents.

import { check, same, soon } from '../browser.mjs';
import { command, press, tabTo } from '../dialog.mjs';
import { runTool, sayUser, stream } from '../agent.mjs';

const visible = (selector) => `document.querySelector('${selector}')?.checkVisibility()`;
export async function limitThatEndedRunIsRaised(page, agent) {
  sayUser(agent, 'Work');
  agent.say({ type: 'agent_start' });
  agent.control.limits = { maxTurns: 40, warn: true };
  agent.control.reached = { kind: 'turns', value: 40 };
  agent.say({ type: 'agent_end', messages: [], willRetry: false, limit: { kind: 'turns', value: 40 } });
  await page.until(visible('#limit'));
  same('the reason', (await page.text('#limit span')), 'Limit reached: 40 turns.');
  await page.picture('limit');
  // It is still known after a reload.
  await page.goto(await page.evaluate('location.href'));
  await page.ready();
  await page.until(visible('#limit'));
  await page.click('#limit .link');
  await page.until("document.querySelector('dialog input')?.value === '40'");
  check('what was used', (await page.text('dialog')).includes('used 184k') && (await page.text('dialog')).includes('used $0.61'));
  await page.picture('limits');
  await page.type('80');
  await press(page, 'Save and continue');
  await page.until("!document.querySelector('dialog[open]') && document.body.classList.contains('running')");
  await soon(() => same('set', agent.asked('set_limits')[0].limits, { maxTurns: 80, warn: true }));
  await soon(() => same('continued', agent.asked('continue').length, 1));
  check('no bar while it works', !await page.evaluate(visible('#limit')));
}

export async function keysSetLimits(page, agent) {
  await command(page, '/limits');
  await page.key('Tab');
  await page.type('7');
  agent.control.refusal = 'The price of offline/scripted is unknown';
  await tabTo(page, 'Save');
  await page.key('Enter');
  await page.until("document.querySelector('dialog [role=alert]').innerText.includes('price')");
  agent.control.refusal = null;
  await page.key('Enter');
  await page.until("!document.querySelector('dialog[open]')");
  await soon(() => same('set', agent.asked('set_limits')[1].limits, { maxToolCalls: 7 }));
}

export async function fallbackIsSaidAndSet(page, agent) {
  await page.click('#more');
  await page.until("[...document.querySelectorAll('.menu-entry')].some((one) => one.innerText.includes('Fallback models'))");
  await page.evaluate("[...document.querySelectorAll('.menu-entry')].find((one) => one.innerText.includes('Fallback models')).click()");
  await page.until("document.querySelectorAll('dialog option').length === 3");
  for (const name of ['other/quick', 'offline/scripted']) {
    await page.evaluate(`(() => { const list = document.querySelector('dialog select'); list.value = '${name}'; list.dispatchEvent(new Event('change')); })()`);
  }
  await page.click('[aria-label="Try offline/scripted earlier"]');
  await page.picture('fallback');
  await press(page, 'Save');
  await page.until("!document.querySelector('dialog[open]')");
  await soon(() => same('set', agent.asked('set_fallback_models')[0].models, ['offline/scripted', 'other/quick']));
  sayUser(agent, 'Work');
  agent.say({ type: 'agent_start' });
  agent.say({ type: 'model_fallback', from: 'offline/scripted', to: 'other/quick', reason: '529 Overloaded' });
  await page.until("document.querySelector('.item.notice')?.innerText.includes('529 Overloaded. The run continues with other/quick.')");
  check('the picker shows it', (await page.text('.pick.model')).includes('→ other/quick'));
  agent.say({ type: 'agent_end', messages: [], willRetry: false });
  agent.say({ type: 'agent_settled', aborted: false });
  await page.until("!document.querySelector('.pick.model').innerText.includes('→')");
}

export async function keysSetFallback(page, agent) {
  agent.control.fallback = ['other/quick'];
  await command(page, '/fallback');
  await page.until("document.querySelectorAll('.fallback-list li').length === 1");
  await page.focus('[aria-label="Remove other/quick"]');
  await page.key('Enter');
  await page.until("!document.querySelector('.fallback-list li')");
  await tabTo(page, 'Save');
  await page.key('Enter');
  await page.until("!document.querySelector('dialog[open]')");
  await soon(() => same('set', agent.asked('set_fallback_models')[0].models, []));
}

export async function resultIsAskedForAndShown(page, agent) {
  await command(page, '/result Count the tests');
  same('the message', await page.evaluate("document.querySelector('dialog textarea').value"), 'Count the tests');
  await page.evaluate("document.querySelectorAll('dialog textarea')[1].value = '{\"type\": '");
  await press(page, 'Send');
  await page.until("document.querySelector('dialog [role=alert]').innerText.includes('not JSON')");
  await page.evaluate("document.querySelectorAll('dialog textarea')[1].value = '{\"type\": \"object\"}'");
  await press(page, 'Send');
  await page.until("!document.querySelector('dialog[open]')");
  await soon(() => same('asked', [agent.asked('prompt')[0].message, agent.asked('prompt')[0].outputSchema], ['Count the tests', { type: 'object' }]));
  sayUser(agent, 'Count the tests');
  agent.say({ type: 'agent_start' });
  stream(agent, [{ type: 'text', text: 'I count.' }]);
  agent.say({ type: 'agent_end', messages: [], willRetry: false, result: { tests: 267 } });
  await page.until("document.querySelector('.item.result')?.innerText.includes('\"tests\": 267')");
  await page.picture('result');
  agent.say({ type: 'agent_end', messages: [], willRetry: false, resultError: 'No value fits the schema' });
  await page.until("[...document.querySelectorAll('.item.result')].at(-1).innerText.includes('No value fits the schema')");
  await page.evaluate('localStorage.clear()');
}

export async function keysAskForResult(page, agent) {
  await command(page, '/result Count');
  await page.until("document.activeElement?.ariaLabel === 'Message'");
  await page.key('End');
  await page.type(' the tests');
  await page.key('Tab');
  same('the schema is next', await page.evaluate('document.activeElement.ariaLabel'), 'JSON Schema');
  await page.type('x');
  await tabTo(page, 'Send');
  await page.key('Enter');
  await page.until("document.querySelector('dialog [role=alert]').innerText.includes('not JSON') && document.activeElement.ariaLabel === 'JSON Schema'");
  await page.key('Backspace');
  await tabTo(page, 'Send');
  await page.key('Enter');
  await page.until("!document.querySelector('dialog[open]')");
  await soon(() => same('asked', agent.asked('prompt').map((one) => [one.message, one.outputSchema.required]), [['Count the tests', ['answer']]]));
  sayUser(agent, 'Count the tests');
  agent.say({ type: 'agent_start' });
  stream(agent, [{ type: 'text', text: 'I count.' }]);
  agent.say({ type: 'agent_end', messages: [], willRetry: false, result: { answer: '267' } });
  await page.until("document.querySelector('.item.result')?.innerText.includes('\"answer\": \"267\"')");
  await page.focus('#field');
  for (let i = 0; i < 20 && !await page.evaluate("Boolean(document.activeElement.closest('.item.result'))"); i += 1) await page.key('Tab', 8);
  check('its copy button can be reached', await page.evaluate("Boolean(document.activeElement.closest('.item.result'))"));
}

export async function subagentConversationIsReadable(page, agent) {
  const task = { type: 'toolCall', id: 't1', name: 'task', arguments: { description: 'Count files', prompt: 'How many files are here?' } };
  const details = { index: 0, id: 'reviewer-0', agent: 'reviewer', status: 'running', task: 'How many files are here?', description: 'Count files', currentTool: 'ls', currentToolArgs: '{}',
    recentTools: [{ tool: 'grep', args: '{"pattern":"x"}' }], recentOutput: [], toolCount: 1, requests: 1, tokens: 1200, cost: 0.02, durationMs: 4000, resolvedModel: 'offline/scripted', sessionFile: '/s.jsonl' };
  agent.control.subagent = [{ role: 'user', content: 'How many files are here?', timestamp: 1 }];
  sayUser(agent, 'Count');
  agent.say({ type: 'agent_start' });
  stream(agent, [task], { stopReason: 'toolUse' });
  agent.say({ type: 'tool_execution_start', toolCallId: 't1', toolName: 'task', args: task.arguments });
  agent.say({ type: 'tool_execution_update', toolCallId: 't1', toolName: 'task', args: task.arguments, partialResult: { content: [{ type: 'text', text: 'ls {} ...' }], details } });
  await page.until("document.querySelector('.task')?.innerText.includes('1.2k tokens')");
  check('what it does', (await page.text('.task-did')).includes('grep') && (await page.text('.task-did')).includes('ls'));
  await page.picture('subagent');
  await page.click('.task .link');
  await page.until("document.querySelector('.nested .user')?.innerText.includes('How many files')");
  agent.control.subagent.push({ role: 'assistant', content: [{ type: 'toolCall', id: 'n1', name: 'ls', arguments: { path: 'src' } }], stopReason: 'toolUse', timestamp: 2 },
    { role: 'toolResult', toolCallId: 'n1', toolName: 'ls', content: [{ type: 'text', text: 'a.rs' }], isError: false, timestamp: 3 });
  const before = agent.asked('get_subagent_messages').length;
  await page.wait(1000);
  same('nothing is asked without news', agent.asked('get_subagent_messages').length, before);
  agent.say({ type: 'tool_execution_update', toolCallId: 't1', toolName: 'task', args: task.arguments, partialResult: { content: [{ type: 'text', text: 'ls {} ...' }], details } });
  await page.until("document.querySelector('.nested [data-call=n1]')?.dataset.status === 'done'");
  agent.control.subagent.push({ role: 'assistant', content: [{ type: 'text', text: 'One **file**.' }], stopReason: 'stop', timestamp: 4 });
  runTool(agent, task, 'One file.', { details: { ...details, status: 'completed', currentTool: undefined } });
  await page.until("document.querySelector('.nested strong')?.innerText === 'file'");
  await page.picture('subagent-conversation');
  await page.until("document.querySelector('dialog .remark').innerText === ''");
  await page.key('Escape');
  await page.until("!document.querySelector('dialog[open]')");
}
