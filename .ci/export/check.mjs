// What must hold of exported pages in a browser: check.mjs CHROMIUM FOLDER, with the pages of sessions.mjs in the folder.

import { join } from 'node:path';
import { DESKTOP, PHONE, eventually, launch, open as openPage, until } from './browser.mjs';
import { poorContrast } from './contrast.mjs';

const [program, folder] = process.argv.slice(2);
const browser = await launch(program);
const seen = { dialogs: [], requests: [], errors: [], violations: [] };
let failures = 0;

function say(ok, what, detail = '') {
  console.log(`${ok ? 'ok' : 'FAILED'}: ${what}${detail ? ` (${detail})` : ''}`);
  if (!ok) failures += 1;
}

async function open(name, rest = '') {
  for (const found of Object.values(seen)) found.length = 0;
  await openPage(browser, join(folder, `${name}.html`), rest);
}

const press = async (key) => {
  await browser.send('Input.dispatchKeyEvent', { type: 'keyDown', key, text: key.length === 1 ? key : undefined });
  await browser.send('Input.dispatchKeyEvent', { type: 'keyUp', key });
};
const idle = (ms) => browser.evaluate(`new Promise((done) => setTimeout(done, ${ms}))`);
/** Whether an expression becomes true in the page. */
const becomes = (expression) => until(browser, expression).then(() => true, () => false);
const text = "document.getElementById('transcript').textContent";
const shown = (words) => browser.evaluate(`document.getElementById('transcript').textContent.includes(${JSON.stringify(words)})`);

function watch() {
  browser.on('Page.javascriptDialogOpening', (dialog) => {
    seen.dialogs.push(dialog.message);
    browser.send('Page.handleJavaScriptDialog', { accept: true }).catch(() => { /* gone already */ });
  });
  browser.on('Network.requestWillBeSent', ({ request }) => {
    if (!/^(file|data|about):/.test(request.url)) seen.requests.push(request.url);
  });
  browser.on('Page.frameRequestedNavigation', ({ url }) => seen.requests.push(url));
  browser.on('Runtime.exceptionThrown', ({ exceptionDetails }) => seen.errors.push(exceptionDetails.exception?.description || exceptionDetails.text));
  browser.on('Audits.issueAdded', ({ issue }) => { if (issue.code === 'ContentSecurityPolicyIssue') seen.violations.push(JSON.stringify(issue.details)); });
  return Promise.all(['Page', 'Network', 'Runtime', 'Audits'].map((domain) => browser.send(`${domain}.enable`)));
}

/** Every payload in every field, everything unfolded, every filter, search, hover and click. */
async function checkHostile() {
  await open('hostile');
  await browser.evaluate("dispatchEvent(new Event('beforeprint'))");
  await press('t');
  await press('o');
  await browser.evaluate("document.querySelectorAll('.drawer').forEach((drawer) => drawer.setOpen(true))");
  for (const filter of [1, 2, 3, 4, 0]) await browser.evaluate(`document.querySelectorAll('#filters button')[${filter}].click()`);
  await browser.evaluate("(() => { const box = document.getElementById('search'); box.value = '<script'; box.dispatchEvent(new Event('input')); })()");
  await idle(300);
  await press('Escape');
  await browser.evaluate(`document.querySelectorAll('#transcript *').forEach((node) => {
    for (const kind of ['mouseover', 'pointerover', 'focus', 'toggle', 'animationstart']) node.dispatchEvent(new Event(kind));
  })`);
  await idle(300);
  const entries = await browser.evaluate("document.querySelectorAll('.entry').length");
  const broken = await browser.evaluate("document.querySelectorAll('.failed.entry').length");
  const odd = await browser.evaluate(`(() => {
    const fine = new Set('A ARTICLE ASIDE B BLOCKQUOTE BR BUTTON CODE DD DIV DL DT EM FOOTER H1 H2 H3 H4 H5 H6 HEADER HR IMG INPUT KBD LI MAIN NAV NOSCRIPT OL P PRE S SCRIPT SECTION SPAN STRONG TABLE TBODY TD TH THEAD TIME TR UL'.split(' '));
    const bad = [];
    if (document.scripts.length !== 2) bad.push(document.scripts.length + ' scripts');
    for (const node of document.body.querySelectorAll('*')) {
      if (!fine.has(node.tagName)) bad.push(node.tagName);
      for (const { name, value } of node.attributes) {
        if (name.startsWith('on') || (name === 'style' && /url/i.test(value)) || (name === 'href' && !/^(https?:|mailto:|#transcript)/.test(value)) || (name === 'src' && !/^data:image\\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$/.test(value))) bad.push(name + '=' + value);
      }
    }
    return bad;
  })()`);
  say(entries > 2500 && broken === 0, 'hostile session is shown whole', `${entries} entries, ${broken} not shown`);
  say(seen.dialogs.length === 0, 'no dialog', seen.dialogs.join('; '));
  say(seen.requests.length === 0, 'no request', seen.requests.slice(0, 5).join('; '));
  say(seen.violations.length === 0, 'nothing even tried what the policy forbids', seen.violations.slice(0, 3).join('; '));
  say(seen.errors.length === 0, 'no script error', seen.errors.slice(0, 3).join('; '));
  say(odd.length === 0, 'no element or attribute that the page does not make itself', odd.slice(0, 5).join('; '));
  await browser.evaluate(`[
    () => { document.body.innerHTML += '<img src=x onerror=alert(1)>'; },
    () => { const button = document.createElement('button'); button.setAttribute('onclick', 'alert(1)'); button.click(); },
    () => { const script = document.createElement('script'); script.append('alert(1)'); document.body.append(script); },
    () => { new Image().src = 'https://attacker.invalid/x'; },
  ].forEach((attack) => { try { attack(); } catch { /* refused */ } })`);
  await eventually(() => seen.violations.length >= 4);
  await idle(300);
  say(seen.dialogs.length === 0 && seen.violations.length >= 4, 'the policy holds where the script would not', `${seen.violations.length} of 4 attacks reported, none worked`);
}

async function checkUse() {
  await open('sample');
  say(await becomes(`${text}.includes('MARKER-END')`) && !(await shown('OTHER-BRANCH')), 'the branch of the leaf is shown');
  say(!(await shown('LAST-LINE-OF-GREP')), 'long output is folded');
  await press('o');
  say(await shown('LAST-LINE-OF-GREP'), 'O unfolds tools');
  say(!(await shown('views.pythe template')), 'reasoning is folded');
  await press('t');
  say(await shown('views.pythe template'), 'T unfolds reasoning');
  const parts = await browser.evaluate("['.a-f5', '.d-add', '.d-del', '.h-keyword', 'img.picture', '.code', 'table', '.label', '.usage', '.failure', '.tool.error', '.skill'].filter((one) => !document.querySelector('#transcript ' + one))");
  say(parts.length === 0, 'colours, diffs, images, tables, labels, usage are there', parts.join(' '));
  await browser.evaluate("document.querySelector('img.picture').scrollIntoView()");
  await until(browser, "(() => { const img = document.querySelector('img.picture'); return img.complete && img.naturalWidth === 240; })()");
  say(true, 'images are shown');
  await press('/');
  await browser.send('Input.insertText', { text: 'other-branch works' });
  await until(browser, "document.querySelectorAll('.row').length === 1");
  await press('Enter');
  await browser.send('Input.dispatchKeyEvent', { type: 'keyDown', key: 'Enter', windowsVirtualKeyCode: 13 });
  say(await becomes(`${text}.includes('OTHER-BRANCH') && !${text}.includes('MARKER-END')`), 'search finds other branches and goes there');
  await press('Escape');
  const row = "[...document.querySelectorAll('.row')].find((row) => row.textContent.includes('Finally: summarise'))";
  await until(browser, `Boolean(${row})`);
  await browser.evaluate(`${row}.click()`);
  say(await becomes(`${text}.includes('MARKER-END')`), 'a click in the tree changes the branch');
  const hash = await browser.evaluate('location.hash');
  await open('sample', hash.replace(/leafId=[^&]*/, 'leafId=00000000'));
  say(/targetId=/.test(hash) && await becomes("Boolean(document.querySelector('.target')?.textContent.includes('Finally: summarise'))"), 'a link leads to its message', hash);
  await browser.evaluate("document.querySelectorAll('#filters button')[3].click()");
  say(await browser.evaluate("document.querySelectorAll('.row').length") === 1, 'the filter for labels');
  const before = await browser.evaluate('getComputedStyle(document.body).backgroundColor');
  await browser.evaluate("document.getElementById('theme').click()");
  say(await browser.evaluate('getComputedStyle(document.body).backgroundColor') !== before, 'light and dark');
  const { data } = await browser.send('Page.printToPDF', {});
  say(data.length > 20000, 'prints', `${Math.round(data.length * 0.75 / 1024)} kB`);
  say(seen.errors.length + seen.requests.length + seen.violations.length === 0, 'no error, no request', [...seen.errors, ...seen.violations].slice(0, 3).join('; '));
}

/** What other agents and versions write is there, in words that a reader understands. */
async function checkVariants() {
  await open('variants');
  await browser.evaluate("dispatchEvent(new Event('beforeprint'))");
  const missing = [];
  for (const words of ['Title given by xcsh', 'A question that is a plain string', 'later left out of the context', 'later replaced in the context', 'Overloaded (overloaded_error)', 'Reasoning withheld', 'no result', 'Plan mode is on', '2 mentioned files', 'print(i)', 'A role from the future', 'exit code 101', 'cancelled', '3 branches from here', 'Second way: patch it', 'An extension says', 'Summary of a branch', 'Compacted from 181k', 'Cut off', 'MARKER-VARIANTS', 'later replaced']) {
    if (!await browser.evaluate(`document.getElementById('page').textContent.includes(${JSON.stringify(words)})`)) missing.push(words);
  }
  say(missing.length === 0, 'other dialects, failures and branches are told', missing.join('; '));
  await browser.evaluate("[...document.querySelectorAll('.drawer')].filter((drawer) => drawer.textContent.includes('nested call')).forEach((drawer) => drawer.setOpen(true))");
  say(await shown('grep {"pattern":"caller"} 12 ms') && await shown('the record is not complete') && await shown('No such file'), 'calls of tools to other tools are shown');
  const row = await browser.evaluate("[...document.querySelectorAll('.row')].map((one) => one.textContent).find((text) => text.includes('system update'))");
  say(/system update: -project, rules, tools -read/.test(row ?? '') && await shown('System update'), 'a change of the system prompt is told', row);
  const hidden = await browser.evaluate("[...document.querySelectorAll('.minor')].filter((node) => node.checkVisibility()).length");
  await browser.evaluate("document.querySelectorAll('#filters button')[4].click()");
  const all = await browser.evaluate("[...document.querySelectorAll('.minor')].filter((node) => node.checkVisibility()).length");
  say(hidden === 0 && all >= 6, 'what says nothing to most readers is shown with the filter "All" only', `${hidden}, then ${all}`);
  say(!(await shown('Half an answer')) && await browser.evaluate("[...document.querySelectorAll('.fact')].some((fact) => fact.textContent === 'Cost$0.753')"), 'the cost is that of answers, summaries, tools and the rest', await browser.evaluate("[...document.querySelectorAll('.fact')].map((fact) => fact.textContent).find((text) => text.startsWith('Cost'))"));
  await browser.evaluate("[...document.querySelectorAll('.way')].find((way) => way.textContent.includes('Second way')).click()");
  say(await becomes(`${text}.includes('A patch is enough') && !${text}.includes('MARKER-VARIANTS')`), 'a branch is changed where it begins');
  say(seen.errors.length + seen.requests.length + seen.violations.length === 0, 'no error, no request', [...seen.errors, ...seen.violations].slice(0, 3).join('; '));
  await open('old');
  say(await becomes(`['OLD-QUESTION', 'MARKER-OLD', 'from a hook'].every((words) => ${text}.includes(words))`), 'version 1 is shown');
}

/** Keys and what a screen reader is told. */
async function checkKeys() {
  await open('sample');
  const key = async (name) => { await browser.send('Input.dispatchKeyEvent', { type: 'rawKeyDown', key: name }); await browser.send('Input.dispatchKeyEvent', { type: 'keyUp', key: name }); };
  await browser.evaluate("document.getElementById('tree').focus()");
  await key('Home');
  const first = await browser.evaluate("document.getElementById('tree').getAttribute('aria-activedescendant')");
  await key('ArrowDown');
  const second = await browser.evaluate("document.querySelector('#' + document.getElementById('tree').getAttribute('aria-activedescendant')).getAttribute('aria-selected')");
  say(first === 'row-0' && second === 'true', 'keys walk the tree');
  const names = await browser.evaluate("[...document.querySelectorAll('button, input, [role]')].filter((node) => node.checkVisibility() && !node.textContent.trim() && !node.getAttribute('aria-label') && !node.alt).map((node) => node.outerHTML.slice(0, 80))");
  say(names.length === 0, 'everything that can be used has a name', names.join('; '));
  await press('h');
  const minor = await browser.evaluate("document.body.classList.contains('show-minor')");
  await press('h');
  say(minor && await browser.evaluate("!document.body.classList.contains('show-minor')"), 'H shows hidden entries and hides them again');
  await browser.evaluate("document.querySelector('.tool-head').click()");
  say(await browser.evaluate("!document.querySelector('.tool .tool-body').checkVisibility() && document.querySelector('.tool-name').getAttribute('aria-expanded') === 'false'"), 'a tool card folds');
}

/** Contrast in both colour schemes, and nothing wider than a phone. */
async function checkLooks() {
  for (const name of ['sample', 'variants']) {
    for (const value of ['light', 'dark']) {
      await browser.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value }] });
      await open(name);
      // Kept from the test of the button.
      await browser.evaluate(`document.documentElement.dataset.theme = '${value}'`);
      await browser.evaluate("dispatchEvent(new Event('afterprint')); document.querySelectorAll('.drawer').forEach((drawer) => drawer.setOpen(true)); document.querySelectorAll('#filters button')[4].click()");
      await browser.evaluate(`document.documentElement.dataset.theme = '${value}'`);
      await idle(500);
      // A busy browser may still be blending colours.
      await until(browser, "document.getAnimations().every((one) => one.playState !== 'running' || one.effect?.getComputedTiming().iterations === Infinity)");
      const poor = await browser.evaluate(`(${poorContrast})()`);
      say(poor.length === 0, `${name}, ${value}: text has the contrast of WCAG AA`, poor.slice(0, 5).join('; '));
    }
    await browser.send('Emulation.setDeviceMetricsOverride', PHONE);
    await open(name);
    await browser.evaluate("dispatchEvent(new Event('beforeprint')); document.querySelectorAll('.drawer').forEach((drawer) => drawer.setOpen(true))");
    await press('o');
    await idle(300);
    const wide = await browser.evaluate('document.documentElement.scrollWidth');
    const out = await browser.evaluate(`[...document.querySelectorAll('#page *')].filter((node) => node.checkVisibility() && node.getBoundingClientRect().right > 391 && !node.closest('.code, .table')).slice(0, 3).map((node) => node.className || node.tagName)`);
    say(wide <= 390 && out.length === 0, `${name}: fits a phone`, `${wide} px wide${out.length ? ', outside: ' + out.join(', ') : ''}`);
    await browser.send('Emulation.setDeviceMetricsOverride', DESKTOP);
  }
}

/** A long session works like a short one; how fast is for bench.mjs. */
async function checkLarge() {
  await open('large');
  await browser.evaluate('scrollTo(0, document.body.scrollHeight)');
  await until(browser, "document.getElementById('transcript').textContent.includes('MARKER-END')");
  const made = await browser.evaluate("document.querySelectorAll('#tree .row').length");
  say(made < 200, 'a long session opens and goes to its end', `${await browser.evaluate("document.getElementById('count').textContent")}, ${made} rows made`);
  await browser.evaluate("(() => { const box = document.getElementById('search'); box.value = 'last-question day'; box.dispatchEvent(new Event('input')); })()");
  await until(browser, "document.querySelectorAll('.row').length === 1");
  say(true, 'and is searched');
}

try {
  await watch();
  await browser.send('Emulation.setDeviceMetricsOverride', DESKTOP);
  await checkHostile();
  await checkUse();
  await checkVariants();
  await checkKeys();
  await checkLooks();
  await checkLarge();
} finally {
  await browser.close();
}
process.exitCode = failures ? 1 : 0;
