// Making and finding elements. Text only ever becomes textContent here; nothing in this file takes markup.

/** @param {any} child */
const isShown = (child) => child !== null && child !== undefined && child !== false;

/**
 * An element: `el('button.quiet', { type: 'button', onclick: f }, 'Text', child)`. Members that begin with `on` are listeners,
 * `data` and `aria` are objects, `class` is added to the classes in the tag; null and false are left out.
 * @param {string} spec tag and classes
 * @param {Record<string, any>} [props]
 * @param {...any} children nodes, texts, numbers, null, false, undefined, or arrays of them
 * @returns {any}
 */
export function el(spec, props, ...children) {
  const [tag, ...classes] = spec.split('.');
  const node = document.createElement(tag || 'div');
  if (classes.length) node.className = classes.join(' ');
  for (const [name, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name === 'class') node.className += ` ${value}`;
    else if (name === 'data') for (const [key, text] of Object.entries(value)) node.dataset[key] = text;
    else if (name === 'aria') for (const [key, text] of Object.entries(value)) node.setAttribute(`aria-${key}`, String(text));
    else if (name === 'text') node.textContent = value;
    else if (name in node && name !== 'list') node[name] = value;
    else node.setAttribute(name, value === true ? '' : String(value));
  }
  node.append(...children.flat().filter(isShown).map((child) => (typeof child === 'number' ? String(child) : child)));
  return node;
}

/** Puts other children in the place of an element's. */
export function fill(node, ...children) {
  node.replaceChildren(...children.flat().filter(isShown));
  return node;
}

/** Sets a text only when it is another one: no needless layout, no needless announcement. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

const SVG = 'http://www.w3.org/2000/svg';

/** Our icons: paths in a box of 20 by 20, drawn with lines. */
const ICONS = {
  menu: 'M3.5 6h13M3.5 10h13M3.5 14h8',
  plus: 'M10 4v12M4 10h12',
  send: 'M10 16V4.5M5 9.5l5-5 5 5',
  stop: 'M6 6h8v8H6z',
  close: 'M5 5l10 10M15 5L5 15',
  down: 'M10 4v12M5 11l5 5 5-5',
  up: 'M10 16V4M5 9l5-5 5 5',
  chevron: 'M7.5 5l5 5-5 5',
  check: 'M4 10.5l4 4 8-9',
  search: 'M9 4a5 5 0 1 1 0 10a5 5 0 0 1 0-10M12.7 12.7L16.5 16.5',
  more: 'M5 10h.01M10 10h.01M15 10h.01',
  copy: 'M7.5 7.5h8v8h-8zM12.5 7V4.5h-8v8H7',
  image: 'M3.5 4.5h13v11h-13zM4 14l4-4 3 3 2.5-2.5 3 3M12.5 7.500h.01',
  terminal: 'M4 6l4 4-4 4M10 14.500h6',
  file: 'M5.5 3.500h6l3.5 3.500v9.500h-9.500zM11.5 3.500V7H15',
  pencil: 'M4 16l.8-3.400L13 4.400l2.6 2.600L7.4 15.200z',
  search2: 'M4 5h12M4 10h7M4 15h4M13 12.500a2.2 2.2 0 1 1 0 4.4',
  folder: 'M3.5 5.500h4.500l1.5 2h7v8h-13z',
  tool: 'M12.5 4a3.5 3.5 0 0 0-3.3 4.700L4 14l2 2 5.3-5.200A3.5 3.5 0 0 0 16 7.500L13.5 9 11 6.500z',
  sun: 'M10 7a3 3 0 1 1 0 6a3 3 0 0 1 0-6M10 2.500v1.500M10 16v1.500M2.5 10H4M16 10h1.500M4.7 4.700l1 1M14.3 14.300l1 1M15.3 4.700l-1 1M5.7 14.300l-1 1',
  moon: 'M15.5 12.200A6.3 6.3 0 0 1 7.8 4.500a6 6 0 1 0 7.7 7.700z',
  help: 'M7.8 7.800a2.3 2.3 0 1 1 3.3 2.100c-.8.4-1.1.9-1.1 1.600M10 14.200h.01M10 3a7 7 0 1 1 0 14a7 7 0 0 1 0-14',
  fork: 'M6 4v5a3 3 0 0 0 3 3h2a3 3 0 0 0 3-3V7M14 4v3M10 12v4',
  tree: 'M5.5 4v10.500h4M5.5 8h4M12 6.500h3.500v3H12zM12 13h3.500v3H12z',
  export: 'M10 12V3.500M6.5 7L10 3.5 13.5 7M4 11.500v5h12v-5',
  shrink: 'M4 4l4.5 4.500M8.5 5v3.500H5M16 16l-4.5-4.500M11.5 15v-3.500H15',
  warn: 'M10 4l7 12.500H3zM10 8.500v3.500M10 14.200h.01',
  thought: 'M10 3.500a4.6 4.6 0 0 1 2.6 8.400v1.600H7.400v-1.600A4.6 4.6 0 0 1 10 3.500M8 16.500h4',
  trash: 'M4.5 6h11M8 6V4h4v2M6 6l.7 10.500h6.600L14 6',
  layers: 'M10 3.500l7 3.500-7 3.500-7-3.500zM3.500 10.500L10 13.800l6.500-3.300M3.500 13.800L10 17l6.500-3.200',
  bell: 'M5.500 13.500V9a4.500 4.500 0 0 1 9 0v4.500l1.500 1.500H4zM8.500 17h3',
  shield: 'M10 3l5.500 2v4.500c0 3.300-2.200 5.800-5.500 7.200-3.300-1.400-5.500-3.900-5.500-7.200V5z',
  undo: 'M7 5L3.5 8.500 7 12M3.5 8.500H12a4 4 0 0 1 0 8H8',
  gauge: 'M4.5 15a7 7 0 1 1 11 0M10 11.500l3-4',
  link: 'M8.5 11.500l3-3M7 9l-2 2a2.8 2.8 0 0 0 4 4l2-2M13 11l2-2a2.8 2.8 0 0 0-4-4L9 7',
};

/** @param {keyof typeof ICONS} name */
export function icon(name) {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('viewBox', '0 0 20 20');
  svg.setAttribute('class', 'icon');
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS(SVG, 'path');
  path.setAttribute('d', ICONS[name] || ICONS.tool);
  svg.append(path);
  return svg;
}

/** A button with nothing but an icon; its name is read aloud and shown when the pointer rests on it. */
export function iconButton(name, label, onclick, more = {}) {
  return el('button.icon-button', { type: 'button', title: label, aria: { label }, onclick, ...more }, icon(name));
}

/** Puts a text into the clipboard; false where the browser forbids it. */
export async function copyText(text) {
  try {
    if (navigator.clipboard) { await navigator.clipboard.writeText(text); return true; }
    // Without TLS there is no clipboard but this one.
    const area = el('textarea.offscreen', { value: text });
    (document.querySelector('dialog[open]') || document.body).append(area);
    area.select();
    const isDone = document.execCommand('copy');
    area.remove();
    return isDone;
  } catch {
    return false;
  }
}

/** Copies a text and says so on the button for a moment. */
export async function copy(text, button) {
  if (!await copyText(text) || button.classList.contains('done')) return;
  const before = [...button.childNodes];
  button.classList.add('done');
  fill(button, icon('check'));
  setTimeout(() => { button.classList.remove('done'); fill(button, ...before); }, 1200);
}
