// What makes the page usable for everybody: contrast, names of controls, focus, sizes, one column on a phone.

import { poorContrast } from '../../export/contrast.mjs';
import { check, same, waitFor } from '../browser.mjs';
import { fill } from '../scene.mjs';

const NAMELESS = `[...document.querySelectorAll('button, input, textarea, a, [role=button], dialog, summary')].filter((node) => node.checkVisibility({ visibilityProperty: true }))
  .filter((node) => !(node.getAttribute('aria-label') || node.getAttribute('aria-labelledby') || node.textContent?.trim() || node.title || node.placeholder)).map((node) => node.outerHTML.slice(0, 100))`;

async function readable(page, where) {
  await page.wait(250);
  same(`contrast, ${where}`, await page.evaluate(`(${poorContrast})()`), []);
  same(`controls without a name, ${where}`, await page.evaluate(NAMELESS), []);
}

async function look(page, agent) {
  await page.until("document.querySelector('.hljs-keyword')");
  await page.evaluate("document.querySelectorAll('.steps[aria-expanded=false]').forEach((node) => node.click())");
  await page.evaluate("document.querySelectorAll('.changes, .changes-file').forEach((node) => { node.open = true; })");
  await page.wait(100);
  await page.evaluate("document.querySelectorAll('details').forEach((node) => { node.open = true; }); document.querySelectorAll('.tool-head[aria-expanded=false]').forEach((node) => node.click()); document.querySelector('.todos-head').click()");
  await readable(page, 'conversation');
  agent.say({ type: 'agent_start' });
  agent.say({ type: 'auto_retry_start', attempt: 1, maxAttempts: 3, delayMs: 60000, errorMessage: '529 Overloaded' });
  agent.first.queue = [{ id: '1', kind: 'steer', text: 'first', images: 0 }, { id: '2', kind: 'followUp', text: 'second', images: 1 }];
  agent.queueChanged(agent.first);
  agent.say({ type: 'notice', level: 'error', message: 'Something went wrong' });
  agent.say({ type: 'notice', level: 'warning', message: 'Something may go wrong' });
  await page.until("document.querySelector('.queued') && document.querySelectorAll('.toast').length === 2");
  await readable(page, 'busy');
  if (!await page.evaluate("document.querySelector('#side').classList.contains('open')")) await page.evaluate("document.querySelector('#menu').click()");
  await readable(page, 'side bar');
  await page.evaluate("document.querySelector('#more').click()");
  await page.until("document.querySelector('.menu:popover-open')");
  await readable(page, 'menu');
  await page.evaluate("document.querySelector('.menu').hidePopover()");
  agent.say({ type: 'extension_ui_request', id: 'q', method: 'select', title: 'Which one?\n\nrm -rf target', options: ['a', 'b'], timeout: 60000 });
  await page.until("document.querySelector('dialog .choice')");
  await readable(page, 'dialog');
  await page.evaluate('localStorage.clear()');
}

export async function lightCanBeRead(page, agent) { await look(page, agent); }
lightCanBeRead.prepare = fill;

export async function darkCanBeRead(page, agent) { await look(page, agent); }
darkCanBeRead.prepare = fill;
darkCanBeRead.theme = 'dark';

export async function theThemeCanBeChosen(page) {
  const colour = () => page.evaluate("getComputedStyle(document.documentElement).backgroundColor");
  const light = await colour();
  await page.evaluate("document.querySelector('#more').click()");
  await page.until("document.querySelector('.menu:popover-open')");
  await page.evaluate("[...document.querySelectorAll('.menu-entry')].find((one) => one.textContent.includes('Dark')).click()");
  check('it is dark', await colour() !== light);
  await page.evaluate('localStorage.clear(); delete document.documentElement.dataset.theme');
}

export async function itFitsTheWindow(page) {
  await page.until("document.querySelector('.hljs-keyword')");
  check('no sideways scrolling', await page.evaluate('document.documentElement.scrollWidth <= innerWidth && document.querySelector("#scroll").scrollWidth <= document.querySelector("#scroll").clientWidth'));
  check('lines are not too long', await page.evaluate("document.querySelector('.prose').getBoundingClientRect().width <= 800"));
  if (page.size !== 'phone') return;
  check('text fields do not make a phone zoom in', await page.evaluate("parseFloat(getComputedStyle(document.querySelector('#field')).fontSize) >= 16"));
  const small = await page.evaluate("[...document.querySelectorAll('.head button, .composer button')].filter((node) => node.checkVisibility()).map((node) => [node.title || node.className, Math.round(node.getBoundingClientRect().height)]).filter(([, height]) => height < 36)");
  same('buttons that a thumb misses', small, []);
}
itFitsTheWindow.prepare = fill;

export async function itCanBeInstalled(page, agent, server) {
  const manifest = await page.evaluate("fetch(document.querySelector('link[rel=manifest]').href).then((answer) => answer.json())");
  check('icons', manifest.icons.length >= 3 && manifest.display === 'standalone');
  for (const one of manifest.icons) check(one.src, (await page.evaluate(`fetch(${JSON.stringify(one.src)}).then((answer) => answer.headers.get('content-type'))`)).startsWith('image/'));
  const { errors } = await page.browser.send('Page.getAppManifest');
  same('what the browser says of the manifest', errors, []);
  await page.evaluate('navigator.serviceWorker.ready.then(() => 1)');
  await page.goto(server.url);
  await page.ready();
}
itCanBeInstalled.chromium = true;

export async function itOpensWithoutTheAgent(page, agent, server) {
  await page.evaluate('navigator.serviceWorker.ready.then(() => 1)');
  const isKept = "caches.keys().then((names) => Promise.all(names.map((name) => caches.open(name).then((cache) => cache.keys())))).then((all) => all.flat().some((one) => one.url.endsWith('/')))";
  await waitFor('the page is kept', () => page.evaluate(isKept));
  const kept = await page.evaluate("caches.keys().then((names) => Promise.all(names.map((name) => caches.open(name).then((cache) => cache.keys())))).then((all) => all.flat().map((one) => one.url))");
  same('nothing with a query is kept, and nothing that the agent says', kept.filter((url) => url.includes('?') || /\/(api|ws)/.test(url)), []);
  await page.goto(server.url);
  await page.ready();
  server.close();
  await page.goto(`${server.url}?session=x`);
  await page.until("document.querySelector('.banner.shown')?.innerText.includes('lost')");
  check('with its looks', await page.evaluate("getComputedStyle(document.querySelector('.composer')).borderRadius") === '18px');
  await page.picture('without-agent');
}
