// Model text as elements. This is the only file that turns text into markup: marked makes HTML of it, in which the text's own
// HTML is text, and DOMPurify lets a short list of tags through. A block that streams in is taken apart so that only its last
// part is made anew.

import { Marked } from '../vendor/marked-18.2.1.min.js';
import '../vendor/dompurify-3.4.18.min.js';
import { codeBlock, setCode } from './code.js';
import { el } from '../lib/dom.js';

const TAGS = ['p', 'br', 'hr', 'h1', 'h2', 'h3', 'h4', 'h5', 'h6', 'strong', 'em', 'del', 'code', 'pre', 'blockquote', 'ul', 'ol',
  'li', 'table', 'thead', 'tbody', 'tr', 'th', 'td', 'a', 'img', 'kbd', 'sub', 'sup'];
const ATTRIBUTES = ['href', 'title', 'src', 'alt', 'start', 'align', 'class'];
const LINK = /^(?:https?:|mailto:)/i;
const PICTURE = /^data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$/i;
/** A number with its sign, its separators and a unit: `-1,234.5`, `12 %`, `$3.10`, `4.2 ms`, `345x`. */
const NUMBER = /^[~≈<>≤≥]?\s?[+\-−±]?\s?[$€£¥]?\d[\d.,'\u00a0\u202f ]*\s?(?:%|‰|[a-zµ×]{1,3}(?:\/s)?|[KMGT]i?B)?$/i;
/** What stands for a number that is not there. */
const NOTHING = /^(?:[-–—]|n\/a|)$/i;
/** Longer texts are shown as they are. */
const MOST = 400000;

const escape = (text) => String(text).replace(/[&<>"]/g, (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[sign]);

const marked = new Marked({
  gfm: true,
  renderer: {
    html: (token) => (/^<\/?(?:br|kbd|sub|sup)\s*\/?>$/i.test(token.text.trim()) ? token.text : escape(token.text)),
    checkbox: (token) => (token.checked ? '☑ ' : '☐ '),
    code: (token) => `<pre><code class="lang-${escape(/^[\w+#.-]*/.exec(token.lang || '')[0])}">${escape(token.text)}</code></pre>`,
  },
});

/** @param {string} text @returns {DocumentFragment} */
export function markdown(text) {
  if (text.length > MOST) return plain(text);
  let html;
  try {
    html = marked.parse(text);
  } catch {
    return plain(text);
  }
  return dressed(html);
}

function plain(text) {
  const fragment = document.createDocumentFragment();
  fragment.append(el('p.plain', { text }));
  return fragment;
}

function dressed(html) {
  const fragment = globalThis.DOMPurify.sanitize(html, {
    ALLOWED_TAGS: TAGS, ALLOWED_ATTR: ATTRIBUTES, ALLOW_DATA_ATTR: false, ALLOW_ARIA_ATTR: false, RETURN_DOM_FRAGMENT: true,
    ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|data:image\/)/i,
  });
  // No text of a model may borrow the looks of the page.
  for (const node of fragment.querySelectorAll('[class]:not(pre > code)')) node.removeAttribute('class');
  for (const link of fragment.querySelectorAll('a')) dressLink(link);
  for (const picture of fragment.querySelectorAll('img')) dressPicture(picture);
  for (const code of fragment.querySelectorAll('pre > code')) {
    const lang = /^lang-([\w+#.-]+)$/.exec(code.className)?.[1] || '';
    code.parentElement.replaceWith(codeBlock(code.textContent.replace(/\n$/, ''), lang));
  }
  for (const table of fragment.querySelectorAll('table')) {
    alignNumbers(table);
    const frame = el('div.table', { tabIndex: 0 });
    table.replaceWith(frame);
    frame.append(table);
  }
  return fragment;
}

/** A column whose cells are all numbers aligns right, unless the text says how it aligns. */
function alignNumbers(table) {
  const rows = [...table.querySelectorAll('tbody tr')];
  const heads = [...table.querySelectorAll('thead th')];
  heads.forEach((head, column) => {
    const cells = rows.map((row) => row.cells[column]).filter(Boolean);
    const texts = cells.map((cell) => cell.textContent.trim());
    if (head.hasAttribute('align') || !texts.some((text) => NUMBER.test(text)) || !texts.every((text) => NUMBER.test(text) || NOTHING.test(text))) return;
    for (const cell of [head, ...cells]) cell.classList.add('number');
  });
}

function dressLink(link) {
  if (!LINK.test(link.getAttribute('href') || '')) {
    link.replaceWith(...link.childNodes);
    return;
  }
  link.target = '_blank';
  link.rel = 'noreferrer noopener';
}

/** A picture that would have to be fetched tells somebody that it was seen: it becomes a link. */
function dressPicture(picture) {
  const source = picture.getAttribute('src') || '';
  if (PICTURE.test(source)) { picture.loading = 'lazy'; return; }
  const name = picture.getAttribute('alt') || source;
  picture.replaceWith(/^https?:/i.test(source)
    ? el('a', { href: source, target: '_blank', rel: 'noreferrer noopener', text: name })
    : document.createTextNode(name));
}

/** A text that grows: finished parts stay as they are, the last one is made anew. */
export class GrowingMarkdown {
  constructor(node) {
    this.node = node;
    this.done = 0;
    this.openNodes = [];
    this.openCode = null;
  }

  /** Shows the text so far. */
  grow(text) {
    if (text.length > MOST) { this.finish(text); return; }
    const rest = text.slice(this.done);
    let tokens;
    try {
      tokens = marked.lexer(rest);
    } catch {
      this.finish(text);
      return;
    }
    let last = tokens.length - 1;
    while (last > 0 && tokens[last].type === 'space') last -= 1;
    const finished = tokens.slice(0, Math.max(0, last)).map((token) => token.raw).join('');
    // Raw texts do not add up where the lexer normalised white space; then nothing is taken as finished.
    if (finished && rest.startsWith(finished)) {
      this.clearOpen();
      this.node.append(markdown(finished));
      this.done += finished.length;
    }
    this.showOpen(tokens[last], text.slice(this.done));
  }

  showOpen(token, rest) {
    if (token?.type === 'code' && token.codeBlockStyle !== 'indented') {
      if (!this.openCode) {
        this.clearOpen();
        this.openCode = codeBlock(token.text, (token.lang || '').split(/\s/)[0], true);
        this.openNodes = [this.openCode];
        this.node.append(this.openCode);
      } else setCode(this.openCode, token.text);
      return;
    }
    this.clearOpen();
    const fragment = markdown(rest);
    this.openNodes = [...fragment.childNodes];
    this.node.append(fragment);
  }

  clearOpen() {
    for (const node of this.openNodes) node.remove();
    this.openNodes = [];
    this.openCode = null;
  }

  /** The whole text, for good. */
  finish(text) {
    this.openNodes = [];
    this.openCode = null;
    this.done = 0;
    this.node.replaceChildren(markdown(text));
  }
}
