// For everybody: what a screen reader finds and is told, where the focus goes, every key of the help sheet.

import { check, same, soon } from '../browser.mjs';
import { sayUser, stream } from '../agent.mjs';
import { fill } from '../scene.mjs';

const CTRL = 2;
const SHIFT = 8;

export async function aScreenReaderFindsItsWay(page, agent) {
  await page.browser.send('Accessibility.enable');
  const { nodes } = await page.browser.send('Accessibility.getFullAXTree');
  const found = nodes.filter((node) => !node.ignored).map((node) => `${node.role?.value} ${node.name?.value || ''}`.trim());
  for (const one of ['main', 'log Conversation', 'textbox Message', 'button Send', 'button Session menu', 'article You', 'article Answer']) check(`${one} among ${found.slice(0, 40)}`, found.includes(one));
  if (page.size === 'desktop') for (const one of ['complementary Sessions', 'searchbox Search sessions']) check(one, found.includes(one));
  check('tool calls say how they ended', found.some((one) => one.startsWith('image done')) || found.some((one) => /Read .*done/.test(one)));
  sayUser(agent, 'Say something');
  agent.say({ type: 'agent_start' });
  stream(agent, [{ type: 'text', text: 'A few words.' }]);
  agent.say({ type: 'agent_end', messages: [], willRetry: false });
  await page.until("[...document.querySelectorAll('.offscreen[role=status]')].some((one) => one.textContent === 'A few words.')");
  await page.browser.send('Accessibility.disable');
}
aScreenReaderFindsItsWay.prepare = fill;
aScreenReaderFindsItsWay.chromium = true;

export async function focusStaysInsideAndComesBack(page, agent) {
  await page.focus('#field');
  agent.say({ type: 'extension_ui_request', id: 'q', method: 'select', title: 'Which?', options: ['a', 'b'] });
  await page.until("document.activeElement.closest('dialog')");
  for (let i = 0; i < 8; i += 1) {
    await page.key('Tab');
    check('inside', await page.evaluate("document.activeElement === document.body || Boolean(document.activeElement.closest('dialog'))"));
  }
  await page.key('Escape');
  await page.until("!document.querySelector('dialog')");
  same('back where it was', await page.evaluate('document.activeElement.id'), 'field');
  await page.focus('#more');
  await page.key('Enter');
  await page.until("document.activeElement.closest('.menu')");
  await page.key('ArrowDown');
  await page.key('Escape');
  await page.until("!document.querySelector('.menu')");
  same('back at the button', await page.evaluate('document.activeElement.id'), 'more');
}

export async function everyKeyOfTheHelpSheet(page, agent) {
  const isOpen = () => page.evaluate("document.querySelector('#side').classList.contains('open')");
  await page.focus('#field');
  const before = await isOpen();
  await page.key('b', CTRL);
  check('side bar', await isOpen() !== before);
  await page.key('b', CTRL);
  check('and back', await isOpen() === before);
  await page.key('m', CTRL | SHIFT);
  await page.until("document.querySelector('.menu:popover-open')?.getAttribute('aria-label') === 'Model'");
  await page.key('Escape');
  await page.until("!document.querySelector('.menu')");
  await page.key('o', CTRL | SHIFT);
  await page.until("document.querySelector('#name').innerText.includes('New session')");
  await soon(() => same('a new session', agent.asked('open_session').length, 1));
  await page.evaluate('document.activeElement.blur()');
  agent.say({ type: 'agent_start' }, 'h1');
  await page.until("document.body.classList.contains('running')");
  await page.key('Escape');
  await page.until("!document.body.classList.contains('running')");
  await page.key('k', CTRL);
  await page.until("document.activeElement.closest('.side-search')");
}
everyKeyOfTheHelpSheet.prepare = fill;

export async function whatToolsMayDo(page, agent) {
  agent.first.permission = 'ask';
  agent.say({ type: 'agent_end', messages: [], willRetry: false });
  await page.until("document.querySelector('.permission').innerText === 'Ask first'");
  await page.click('.permission');
  await page.until("document.querySelectorAll('.menu:popover-open .menu-entry').length === 4");
  await page.evaluate("[...document.querySelectorAll('.menu-entry')].find((node) => node.textContent.includes('Only look')).click()");
  await page.until("document.querySelector('.permission').innerText === 'Read only'");
  await soon(() => same('asked', agent.asked('set_permission_mode')[0].mode, 'read-only'));
}
