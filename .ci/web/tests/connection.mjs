// Connecting, losing the connection, coming back; the token.

import { createServer } from 'node:http';
import { check, same, soon } from '../browser.mjs';
import { sayUser, stream } from '../agent.mjs';

const field = "document.querySelector('#field')";
/** Holds timers of the page back from this length on, so that what they would end lasts; they are kept in `held`. */
const holdTimers = (page, least) => page.evaluate(`(() => { const real = globalThis.setTimeout; globalThis.held = [];
  globalThis.setTimeout = (act, ms, ...more) => { if (!(ms >= ${least})) return real(act, ms, ...more); globalThis.held.push(act); return 0; }; })()`);

export async function nothingIsLostWhenTheConnectionBreaks(page, agent, server) {
  sayUser(agent, 'Tell me a story');
  agent.say({ type: 'agent_start' });
  stream(agent, [{ type: 'text', text: 'Once upon a time ' }], { end: false });
  await page.until("document.querySelector('.answer')?.innerText.includes('Once upon')");
  await page.focus('#field');
  await page.type('a draft that must stay');
  server.cut(true);
  await page.until("document.querySelector('.banner.shown')?.innerText.includes('lost')");
  await page.picture('connection-lost');
  agent.say({ type: 'message_update', assistantMessageEvent: { type: 'text_delta', contentIndex: 0, delta: 'there was a rack' } });
  server.cut(false);
  await page.until("document.body.dataset.phase === 'open'");
  agent.say({ type: 'message_update', assistantMessageEvent: { type: 'text_delta', contentIndex: 0, delta: ' and a pinion.' } });
  await page.until("document.querySelector('.answer')?.innerText.trim() === 'Once upon a time there was a rack and a pinion.'");
  same('the draft', await page.evaluate(`${field}.value`), 'a draft that must stay');
  await soon(() => same('one snapshot only', agent.asked('replay').length, 2));
}

export async function anEventBeforeTheReplayHidesNone(page, agent, server) {
  agent.say({ type: 'agent_start' });
  sayUser(agent, 'first');
  await page.until("document.querySelectorAll('.user').length === 1");
  server.cut(true);
  await page.until("document.querySelector('.banner.shown')");
  sayUser(agent, 'second');
  const { take } = agent;
  agent.take = (client, command) => {
    // The run goes on while the command is on its way.
    if (command.type === 'replay' && command.after !== undefined) sayUser(agent, 'third');
    take.call(agent, client, command);
  };
  server.cut(false);
  await page.until("document.querySelectorAll('.user').length === 3");
}

export async function whatIsGoneFromTheLogIsLoadedAnew(page, agent, server) {
  sayUser(agent, 'first');
  await page.until("document.querySelectorAll('.user').length === 1");
  server.cut(true);
  sayUser(agent, 'second');
  sayUser(agent, 'third');
  agent.log = [];
  server.cut(false);
  await page.until("document.querySelectorAll('.user').length === 3");
}

export async function anotherAgentAtTheSamePlaceIsNoticed(page, agent, server) {
  for (let i = 0; i < 5; i += 1) sayUser(agent, `before ${i}`);
  await page.until("document.querySelectorAll('.user').length === 5");
  server.cut(true);
  agent.log = [];
  agent.seq = 2;
  agent.first.messages = agent.first.messages.slice(0, 1);
  server.cut(false);
  await page.until("document.querySelectorAll('.user').length === 1");
  sayUser(agent, 'after');
  await page.until("document.querySelectorAll('.user').length === 2");
}

export async function aRestartedAgentIsNoticed(page, agent, server) {
  agent.listed = [{ path: '/sessions/s-first.jsonl', id: 's-first', cwd: '/home/ada/rack', name: 'Kept', created: '2026-11-20T10:00:00Z', modified: '2026-11-20T10:00:00Z', messageCount: 1, firstMessage: 'x' }];
  for (let i = 0; i < 3; i += 1) sayUser(agent, `before ${i}`);
  await page.until("document.querySelectorAll('.user').length === 3");
  await page.focus('#field');
  await page.type('a draft of before');
  server.cut(true);
  await page.until("document.querySelector('.banner.shown')");
  // Its numbers go on where those of the one before might have: only the name of the process tells.
  agent.instance = 'process-2';
  agent.listed[0].messages = agent.first.messages.slice(0, 2);
  agent.first.sessionId = 's-new';
  agent.first.messages = [];
  agent.say({ type: 'notice', level: 'info', message: 'of the other one' });
  server.cut(false);
  await page.until("document.querySelectorAll('.user').length === 2");
  await soon(() => same('the same session, from disk', agent.asked('open_session').map((one) => one.sessionPath), ['/sessions/s-first.jsonl']));
  check('the address', (await page.evaluate('location.search')).includes('s-first'));
  same('the draft', await page.evaluate(`${field}.value`), 'a draft of before');
  sayUser(agent, 'after', 'h1');
  await page.until("document.querySelectorAll('.user').length === 3");
  await page.evaluate('localStorage.clear()');
}

export async function wakingUpConnectsAtOnce(page, agent, server) {
  // No attempt is made by itself.
  await holdTimers(page, 400);
  server.cut(true);
  await page.until("document.body.dataset.phase === 'lost'");
  server.cut(false);
  await page.evaluate("dispatchEvent(new Event('online'))");
  await page.until("document.body.dataset.phase === 'open'");
}

export async function aMessageThatCouldNotBeSentIsKept(page, agent, server) {
  agent.take = (client, command) => { if (command.type === 'prompt') server.cut(true); };
  await page.focus('#field');
  await page.type('important words');
  await page.click('.send');
  await page.until("document.querySelector('.toast.error')");
  same('the field', await page.evaluate(`${field}.value`), 'important words');
}

export async function aFailedMessageComesBeforeNewText(page, agent, server) {
  agent.take = () => {};
  await page.focus('#field');
  await page.type('first words');
  await page.click('.send');
  await page.until(`${field}.value === ''`);
  await page.focus('#field');
  await page.type('second words');
  server.cut(true);
  await page.until("document.querySelector('.toast.error')");
  same('the field', await page.evaluate(`${field}.value`), 'first words\n\nsecond words');
}

export async function aDraftOutlivesAReload(page, agent, server) {
  await page.focus('#field');
  await page.type('half a thought');
  await page.until("Object.values(localStorage).some((one) => one.includes('half a thought'))");
  await page.goto(server.url);
  await page.ready();
  await page.until(`${field}.value === 'half a thought'`);
  await page.evaluate("localStorage.clear()");
}

export async function theTokenLeavesTheAddress(page, agent, server) {
  const address = await page.evaluate('location.href');
  check(`no token in ${address}`, !address.includes('token') && !address.includes('secret'));
  check('no token in the document', !(await page.evaluate('document.documentElement.outerHTML')).includes('secret'));
  await page.goto(server.url);
  await page.ready();
  await soon(() => check('it was kept for a reload', agent.asked('replay').length === 2));
  const cached = await page.evaluate("caches.keys().then((names) => Promise.all(names.map((name) => caches.open(name).then((cache) => cache.keys())))).then((all) => all.flat().map((one) => one.url).join(' '))");
  check('no token in what the service worker keeps', !cached.includes('secret'));
}
theTokenLeavesTheAddress.token = 'secret-1';
theTokenLeavesTheAddress.query = '?token=secret-1';

export async function aWrongTokenIsAskedFor(page) {
  await page.until("document.querySelector('dialog[open] input')");
  await page.picture('token');
  await page.type('secret-2');
  await page.key('Enter');
  await page.ready();
}
aWrongTokenIsAskedFor.token = 'secret-2';
aWrongTokenIsAskedFor.query = '?token=wrong';
aWrongTokenIsAskedFor.isClosed = true;

export async function otherAddressesAreNotTaken(page, agent, server) {
  const own = server.url.replace('http', 'ws');
  const sockets = page.requests.filter((url) => url.startsWith('ws'));
  check(`it connects to its own agent only: ${sockets}`, sockets.length > 0 && sockets.every((url) => url.startsWith(own)));
}
// WebDriver BiDi does not report sockets.
otherAddressesAreNotTaken.chromium = true;
otherAddressesAreNotTaken.query = '?ws=ws%3A%2F%2F127.0.0.1%3A9%2Fws&gatewayUrl=ws%3A%2F%2Fevil.example%2Fws&server=http%3A%2F%2Fevil.example&base=%2F%2Fevil.example';

export async function noOtherPageFramesIt(page, agent, server) {
  const other = createServer((request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end(request.url === '/' ? `<iframe src="${server.url}"></iframe>` : '');
  });
  await new Promise((resolve) => { other.listen(0, '127.0.0.1', resolve); });
  const shown = agent.asked('replay').length;
  const asked = server.asked.length;
  await page.goto(`http://127.0.0.1:${other.address().port}/`);
  await page.wait(1000);
  other.close();
  // The browser asks for the page, reads that it must not be framed, and takes nothing of it. (Whether the service worker of the
  // page that was open before is a newer one it asks by itself.)
  same('what was asked for', server.asked.slice(asked).filter((path) => !['/icon.svg', '/sw.js'].includes(path)), ['/']);
  await soon(() => same('conversations shown in a frame', agent.asked('replay').length, shown));
  for (const list of [page.requests, page.trouble]) list.length = 0;
}
// Firefox does not end to load a page whose frame it refused.
noOtherPageFramesIt.chromium = true;

export async function everyStateOfTheConnectionIsSaid(page, agent, server) {
  const banner = (words) => page.until(`document.querySelector('.banner.shown')?.innerText.includes(${JSON.stringify(words)})`);
  const spoken = (words) => page.until(`[...document.querySelectorAll('.offscreen[role=status]')].some((one) => one.textContent.includes(${JSON.stringify(words)}))`);
  check('nothing to say', await page.evaluate("!document.querySelector('.banner.shown')"));
  await holdTimers(page, 400);
  server.end(1001);
  await banner('The agent has ended.');
  await spoken('The agent has ended.');
  check('when it is tried again', /Next attempt in \d+ s|Trying/.test(await page.text('.banner')));
  check('nothing can be sent', await page.evaluate("document.querySelector('.send').disabled"));
  await page.picture('connection-ended');
  server.refuse(503);
  await page.click('.banner .link');
  await banner('too many clients');
  server.refuse(401);
  await page.evaluate("document.querySelector('.banner .link')?.click()");
  await banner('wants a token');
  await page.until("document.querySelector('dialog[open] input')");
  server.refuse(0);
  server.silence(true);
  await page.goto(server.url);
  await banner('Connecting');
  await page.picture('connecting');
  await holdTimers(page, 1500);
  server.silence(false);
  server.cut(false);
  await page.until("document.querySelector('.banner.back')?.innerText.includes('Connected again')");
  await page.picture('connected-again');
  await spoken('Connected again');
  await page.evaluate('globalThis.held.forEach((act) => act())');
  await page.until("!document.querySelector('.banner.shown')");
}
