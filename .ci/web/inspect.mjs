// What the checks with hostile text look at: elements and attributes that are not ours, what the policy forbade, requests that
// would have left. Requests to anywhere else are held back by the browser's debugger, and written down.

import { eventually } from '../export/browser.mjs';

const ODD = `(() => {
  const fine = new Set('A ARTICLE ASIDE B BLOCKQUOTE BR BUTTON CIRCLE CODE DEL DETAILS DIALOG DIV EM FORM H1 H2 H3 H4 H5 H6 HEADER HR IMG INPUT KBD LI MAIN MARK NAV NOSCRIPT OL P PATH PRE SECTION SPAN STRONG SUB SUMMARY SUP SVG TABLE TBODY TD TEXTAREA TH THEAD TR UL'.split(' '));
  const bad = [];
  for (const node of document.body.querySelectorAll('*')) {
    if (!fine.has(node.tagName.toUpperCase())) bad.push(node.outerHTML.slice(0, 120));
    for (const { name, value } of node.attributes) {
      if (name.startsWith('on') || name === 'srcdoc' || name === 'action' || (name === 'style' && /url|expression|position/i.test(value))
        || (name === 'href' && node.tagName !== 'path' && !/^(https?:|mailto:|#field)/.test(value)) || (name === 'src' && !/^data:image\\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$/.test(value))) bad.push(name + '=' + value.slice(0, 100));
    }
    if (node.tagName === 'A' && node.getAttribute('href')[0] !== '#' && (node.rel !== 'noreferrer noopener' || node.target !== '_blank')) bad.push('a link without rel: ' + node.outerHTML.slice(0, 100));
  }
  return [...new Set(bad)];
})()`;

/** Opens everything that is folded, and has every element feel what a person's hand and the browser might do to it. */
const OPEN = `(() => {
  for (const node of document.querySelectorAll('.steps[aria-expanded=false], .tool-head[aria-expanded=false], .terminal .more, .bubble .more')) node.click();
  for (const node of document.querySelectorAll('details')) node.open = true;
})()`;
const TOUCH = `(() => {
  for (const node of document.querySelectorAll('.item *')) for (const kind of ['mouseover', 'focus', 'toggle', 'animationstart', 'error', 'load']) if (!(node instanceof HTMLDetailsElement)) node.dispatchEvent(new Event(kind));
})()`;

/** The page draws what it scrolled to 60 ms after a frame. Without frames, as in a hidden window, a time limit ends the wait. */
const PAINTED = 'new Promise((done) => { setTimeout(done, 5000); requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 80))); })';

/** @param {any} page @param {string} home the only address that may be asked */
export async function watch(page, home) {
  const origin = new URL(home).origin;
  const self = { odd: new Set(), violations: [], held: [], requests: [], trouble: [], seen: new Set(), look, glance, walk, report, keep };
  page.browser.on('Audits.issueAdded', ({ issue }) => { if (issue.code === 'ContentSecurityPolicyIssue') self.violations.push(JSON.stringify(issue.details).slice(0, 300)); });
  await page.browser.send('Audits.enable');
  page.browser.on('Fetch.requestPaused', ({ requestId, request }) => {
    const isOurs = request.url.startsWith(`${origin}/`);
    if (!isOurs) self.held.push(request.url);
    page.browser.send(isOurs ? 'Fetch.continueRequest' : 'Fetch.failRequest', isOurs ? { requestId } : { requestId, errorReason: 'Aborted' }).catch(() => {});
  });
  await page.browser.send('Fetch.enable', { patterns: [{ urlPattern: '*' }] });

  /** Looks without opening anything. */
  async function glance() { for (const found of await page.evaluate(ODD)) self.odd.add(found); }

  async function look() {
    await page.evaluate(OPEN);
    await page.wait(50);
    // What was opened may have something to open in it.
    await page.evaluate(OPEN);
    await page.wait(30);
    await page.evaluate(TOUCH);
    await glance();
  }

  /** Looks at all items from the end to the beginning. */
  async function walk() {
    let idle = 0;
    for (let i = 0; i < 400 && idle <= 6; i += 1) {
      await look();
      const before = self.seen.size;
      for (const key of await page.evaluate("[...document.querySelectorAll('.item')].map((node) => node.dataset.key)")) self.seen.add(key);
      await page.evaluate("(() => { const s = document.querySelector('#scroll'); s.scrollTop = 0; s.dispatchEvent(new Event('scroll')); })()");
      await page.evaluate(PAINTED);
      idle = before === self.seen.size ? idle + 1 : 0;
    }
  }

  /** Before the page goes to another address, which forgets what it noted. */
  function keep() {
    self.requests.push(...page.requests);
    self.trouble.push(...page.trouble);
  }

  /** Says what was found; gives how much of it was wrong. */
  async function report() {
    keep();
    const socket = origin.replace('http', 'ws');
    const strange = self.requests.filter((url) => !url.startsWith(`${origin}/`) && !url.startsWith(`${socket}/`) && !/^(data:image\/(png|jpeg|gif|webp)|blob:|about:blank|chrome)/.test(url));
    // A picture with broken data tries to load nothing, but says so.
    const trouble = self.trouble.filter((words) => !/Failed to load resource|ERR_INVALID_URL/.test(words));
    let failed = 0;
    const all = { 'nothing ran and nothing failed': trouble, 'nothing was asked elsewhere': [...strange, ...self.held], 'the policy had nothing to forbid': self.violations, 'no element or attribute but ours': [...self.odd] };
    for (const [what, found] of Object.entries(all)) {
      if (found.length) { failed += 1; console.log(`FAILED: ${what}: ${found.slice(0, 6).join('\n   ')}`); } else console.log(`ok: ${what}`);
    }
    await page.evaluate("(() => { const b = document.createElement('div'); b.setAttribute('onclick', 'alert(1)'); document.body.append(b); b.click(); const i = new Image(); i.src = 'http://127.0.0.1:9/x.png'; location.href = 'http://127.0.0.1:9/y'; })()");
    await eventually(() => self.violations.length && self.held.length);
    if (self.violations.length && self.held.length) console.log('ok: the check itself would have noticed');
    else { failed += 1; console.log(`FAILED: an inline handler (${self.violations.length}) or a request (${self.held.length}) was not noticed`); }
    return failed;
  }
  return self;
}
