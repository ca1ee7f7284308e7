// Code with its language, a button to copy it, and colours once the highlighter is there (it is fetched when the first code
// is shown). The highlighter's markup goes through DOMPurify like any other.

import { copy, el, icon } from '../lib/dom.js';

/** Longer code stays plain: colours would cost more than they give. */
const MOST = 60000;
let highlighter = null;

/** @param {string} text @param {string} lang @param {boolean} [isOpen] it grows: no colours yet */
export function codeBlock(text, lang, isOpen = false) {
  const code = el('code');
  code.textContent = text;
  const button = el('button.code-copy', { type: 'button', title: 'Copy', aria: { label: 'Copy code' } }, icon('copy'));
  button.addEventListener('click', () => copy(code.textContent, button));
  const block = el('div.code', {}, el('div.code-head', {}, el('span', { text: lang }), button), el('pre', { tabIndex: 0 }, code));
  if (!isOpen) colour(code, text, lang);
  return block;
}

/** Another text in a block that grows. */
export function setCode(block, text) {
  const code = block.querySelector('code');
  const node = code.firstChild;
  if (node && text.startsWith(node.data)) node.appendData(text.slice(node.data.length));
  else code.textContent = text;
}

/** The language that a file's name tells. */
export function languageOf(path) {
  const ending = /\.([A-Za-z0-9]+)$/.exec(String(path || ''))?.[1]?.toLowerCase() || '';
  const others = { rs: 'rust', py: 'python', js: 'javascript', mjs: 'javascript', ts: 'typescript', tsx: 'typescript', md: 'markdown',
    yml: 'yaml', sh: 'bash', h: 'c', hpp: 'cpp', cc: 'cpp', rb: 'ruby', kt: 'kotlin', cs: 'csharp', toml: 'ini', html: 'xml', svg: 'xml' };
  return others[ending] || ending;
}

/** Colours code in place, when there is a moment. */
export async function colour(code, text, lang) {
  const fragment = await highlighted(text, lang, () => code.textContent === text);
  if (fragment) code.replaceChildren(fragment);
}

/** Code with the colours of its language, or null: unknown language, too long, no highlighter, not wanted any more. */
export async function highlighted(text, lang, isWanted = null) {
  if (!lang || text.length > MOST) return null;
  try {
    highlighter ||= import('../vendor/highlight-11.12.0.min.js');
    const { default: hljs } = await highlighter;
    if (!hljs.getLanguage(lang)) return null;
    if (isWanted) {
      await new Promise((resolve) => { (globalThis.requestIdleCallback || setTimeout)(resolve); });
      if (!isWanted()) return null;
    }
    const { value } = hljs.highlight(text, { language: lang, ignoreIllegals: true });
    return globalThis.DOMPurify.sanitize(value, { ALLOWED_TAGS: ['span'], ALLOWED_ATTR: ['class'], RETURN_DOM_FRAGMENT: true });
  } catch { return null; /* it stays plain */ }
}
