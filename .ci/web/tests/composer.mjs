// What the composer does around sending and stopping: where the page scrolls, what becomes of waiting messages and of images.

import { check, same, soon, waitFor } from '../browser.mjs';
import { sayUser, stream, user } from '../agent.mjs';

const PICTURE = 'iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAIAAAACUFjqAAAAEklEQVR42mMo+1OGBzGMSmNDAHLTvqGrtjuvAAAAAElFTkSuQmCC';
const isAtEnd = "(() => { const node = document.querySelector('#scroll'); return node.scrollHeight - node.scrollTop - node.clientHeight < 4; })()";

export async function sendScrolledUpGoesToEnd(page, agent) {
  await page.until("document.querySelectorAll('.user').length > 10");
  await page.evaluate("(() => { const node = document.querySelector('#scroll'); node.scrollTop = 0; node.dispatchEvent(new Event('scroll')); })()");
  await page.until("!document.querySelector('.jump').hidden");
  await page.focus('#field');
  await page.type('And now?');
  await page.click('.send');
  await page.until(isAtEnd);
  sayUser(agent, 'And now?');
  stream(agent, [{ type: 'text', text: 'Now this.' }]);
  await page.until(`document.querySelector('.transcript').lastElementChild.innerText.includes('Now this.') && ${isAtEnd}`);
}
sendScrolledUpGoesToEnd.prepare = (agent) => { for (let i = 0; i < 30; i += 1) { sayUser(agent, `Question ${i}`); stream(agent, [{ type: 'text', text: `Answer ${i}\n\n`.repeat(5) }]); } };

export async function stopReturnsWaitingMessages(page, agent) {
  agent.say({ type: 'agent_start' });
  await page.until("!document.querySelector('.stop').hidden");
  await page.focus('#field');
  for (const text of ['first', 'second']) {
    await page.focus('#field');
    await page.type(text);
    await page.click('.send');
    await page.until("document.querySelector('#field').value === ''");
  }
  await page.until("document.querySelectorAll('.queued').length === 2");
  await page.focus('#field');
  await page.type('typed meanwhile');
  await page.click('.stop');
  await page.until("document.querySelector('#field').value === 'first\\n\\nsecond\\n\\ntyped meanwhile'");
  await page.until("!document.querySelectorAll('.queued').length && document.querySelector('.stop').hidden");
  await soon(() => same('aborts', agent.asked('abort').length, 1));
  await page.picture('stopped-with-queue');
}

export async function restartReturnsLostQueue(page, agent, server) {
  agent.say({ type: 'agent_start' });
  await page.until("!document.querySelector('.stop').hidden");
  await page.focus('#field');
  await page.type('do not lose this');
  await page.click('.send');
  await page.until("document.querySelectorAll('.queued').length === 1");
  // Another process at the same address, with the session from disk but without its queue.
  Object.assign(agent, { instance: 'process-2', seq: 0, log: [] });
  Object.assign(agent.first, { queue: [], running: false });
  server.cut();
  // The toast goes by itself.
  await page.until("[...document.querySelectorAll('.toast')].some((one) => one.innerText.includes('restarted before it took 1 waiting message'))");
  await page.until("document.querySelector('#field').value === 'do not lose this'");
  await page.picture('queue-after-restart');
}

export async function lateFiguresHideNoRun(page, agent) {
  await waitFor('the first figures', () => agent.asked('get_session_stats').length > 0);
  const { take } = agent;
  const held = [];
  agent.take = (client, command) => {
    if (command.type === 'get_session_stats') held.push(() => take.call(agent, client, command));
    else take.call(agent, client, command);
  };
  // It makes the page ask for state and figures. The state is answered before the next run begins, the figures after that.
  agent.say({ type: 'agent_end', messages: [], willRetry: false });
  await waitFor('the question for figures', () => held.length > 0);
  agent.say({ type: 'agent_start' });
  await page.until("!document.querySelector('.stop').hidden");
  for (const answer of held) answer();
  sayUser(agent, 'after the figures');
  await page.until("document.querySelectorAll('.user').length === 1");
  check('it still runs', await page.evaluate("!document.querySelector('.stop').hidden"));
}

export async function restartKeepsDeliveredMessagesOut(page, agent, server) {
  agent.say({ type: 'agent_start' });
  await page.until("!document.querySelector('.stop').hidden");
  await page.focus('#field');
  await page.type('delivered meanwhile');
  await page.click('.send');
  await page.until("document.querySelectorAll('.queued').length === 1");
  // While the page was cut off the agent took the message, ended and was started anew.
  Object.assign(agent, { instance: 'process-2', seq: 0, log: [] });
  Object.assign(agent.first, { queue: [], running: false, messages: [user('delivered meanwhile')] });
  server.cut();
  await page.until("document.querySelectorAll('.user').length === 1 && document.querySelector('.stop').hidden");
  await page.wait(200);
  same('the field', await page.evaluate("document.querySelector('#field').value"), '');
}

export async function stopWithImageKeepsQueue(page, agent) {
  agent.say({ type: 'agent_start' });
  agent.first.queue = [{ id: '1', kind: 'steer', text: 'look at this', images: 1 }];
  agent.queueChanged(agent.first);
  await page.until("document.querySelectorAll('.queued').length === 1");
  await page.click('.stop');
  await page.until("document.querySelector('.stop').hidden");
  await page.wait(200);
  same('the queue was not cleared', agent.asked('clear_queue').length, 0);
}

export async function imageForTextModelIsNoted(page, agent) {
  const paste = `(() => { const bytes = Uint8Array.from(atob('${PICTURE}'), (one) => one.charCodeAt(0)); const data = new DataTransfer();
    data.items.add(new File([bytes], 'shot.png', { type: 'image/png' }));
    document.querySelector('#field').dispatchEvent(Object.defineProperty(new Event('paste', { bubbles: true, cancelable: true }), 'clipboardData', { value: data })); })()`;
  await page.evaluate(paste);
  await page.until("document.querySelectorAll('.attached .thumb').length === 1");
  check('a model with vision needs no note', await page.evaluate("document.querySelector('.blind-note').hidden"));
  agent.first.model = { ...agent.first.model, input: ['text'] };
  agent.say({ type: 'agent_end', messages: [], willRetry: false });
  await page.until("!document.querySelector('.blind-note').hidden");
  await page.picture('image-without-vision');
}

export async function panelOffersModelAndUsesIt(page, agent) {
  await page.until("!document.querySelector('#no-model').hidden && document.querySelectorAll('#no-model .hint').length === 3");
  check('says that no AI answers', (await page.text('#no-model')).includes('It is not an AI'));
  await page.picture('no-model');
  await page.evaluate("[...document.querySelectorAll('#no-model .hint')].find((node) => node.innerText.includes('API key')).dataset.test = 'key'");
  await page.click('[data-test=key]');
  await page.until("document.querySelector('#no-model code')?.innerText.startsWith('pinion auth login')");
  await page.evaluate("[...document.querySelectorAll('#no-model .hint')].find((node) => node.innerText.includes('local server')).dataset.test = 'local'");
  await page.click('[data-test=local]');
  await page.until("[...document.querySelectorAll('.toast')].some((one) => one.innerText.includes('No local server answered'))");
  agent.models = [agent.models[0], { ...agent.models[0], id: 'llama', name: 'Llama', provider: 'ollama' }];
  await page.click('[data-test=local]');
  await page.until("document.querySelector('.pick.model').innerText === 'Llama' && document.querySelector('#no-model').hidden");
  await soon(() => same('the model', agent.asked('set_model')[0].modelId, 'llama'));
}
panelOffersModelAndUsesIt.prepare = (agent) => {
  agent.models = [{ ...agent.models[0], id: 'echo', name: 'Offline echo (not an AI)' }];
  agent.first.model = agent.models[0];
};

export async function userMessageActionsAreClickable(page, agent) {
  await page.until("document.querySelectorAll('.user').length === 2");
  for (const button of ['Copy message', 'Edit in a fork']) {
    if (page.size === 'desktop') await page.hover('.user .bubble');
    await page.until(`Number(getComputedStyle(document.querySelector('.user [aria-label="${button}"]')).opacity) > 0.7`);
    // Inside the box that content-visibility may clip.
    check(`${button} is inside its message`, await page.evaluate(`(() => { const box = document.querySelector('.user').getBoundingClientRect(); const one = document.querySelector('.user [aria-label="${button}"]').getBoundingClientRect();
      return one.bottom <= box.bottom + 0.5 && one.right <= box.right + 0.5; })()`));
  }
  await page.picture('message-actions');
  await page.click('.user [aria-label="Edit in a fork"]');
  await page.until("document.querySelector('#field').value === 'text of u0'");
  await soon(() => same('forks', agent.asked('fork').length, 1));
}
userMessageActionsAreClickable.prepare = (agent) => { agent.first.messages = [user('First'), { role: 'assistant', content: [{ type: 'text', text: 'Yes.' }], stopReason: 'stop', timestamp: 1 }, user('Second')]; };
