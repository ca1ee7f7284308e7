// What a tool call shows when it is opened: a diff, a terminal, a file, pictures. Text is text here, whatever it looks like.

import { parse } from '../lib/ansi.js';
import { imagesOf, textOf, visible } from '../lib/format.js';
import { el } from '../lib/dom.js';
import { codeBlock, languageOf } from './code.js';
import { diffOf, diffView } from './diffview.js';
import { showPicture } from './picture.js';
import { taskView } from './subagent.js';

const TAIL_LINES = 20;
const MOST_SHOWN = 200000;

/** Terminal output with colours; of long output the end, the rest on demand. */
export function terminalView(output, { command = '', live = false } = {}) {
  const screen = el('pre.terminal', { tabIndex: 0 });
  if (command) screen.append(el('span.prompt', { text: '$ ' }), el('span.command', { text: command }), '\n');
  const text = String(output || '').replace(/\n$/, '').slice(-MOST_SHOWN);
  const lines = text.split('\n');
  const hidden = lines.length - TAIL_LINES;
  if (hidden > 3) {
    const more = el('button.more', { type: 'button', text: `… ${hidden} earlier lines` });
    const rest = coloured(lines.slice(-TAIL_LINES).join('\n'));
    more.addEventListener('click', () => {
      for (const node of rest) node.remove();
      more.replaceWith(...coloured(text));
    });
    screen.append(more, live ? '' : '\n', ...rest);
  } else screen.append(...coloured(text));
  return screen;
}

/** Pieces of terminal output as elements. */
export function coloured(text) {
  return parse(text).map(({ text: piece, style }) => {
    if (!style) return document.createTextNode(piece);
    const node = el('span', { text: piece });
    for (const name of ['bold', 'dim', 'italic', 'underline', 'strike', 'inverse']) if (style[name]) node.classList.add(`t-${name}`);
    paint(node, 'fg', style.fg);
    paint(node, 'bg', style.bg);
    return node;
  });
}

function paint(node, which, colour) {
  if (colour === undefined) return;
  if (typeof colour === 'number') node.classList.add(`t-${which}-${colour}`);
  else node.style.setProperty(which === 'fg' ? 'color' : 'background-color', colour);
}

/** Everything a call has to show. */
export function toolBody(tool) {
  const text = textOf(tool.result?.content);
  const images = imagesOf(tool.result?.content).map((source) => el('button.picture-button', { type: 'button', title: 'Show image', aria: { label: 'Show image' }, onclick: () => showPicture(source) },
    el('img.picture', { src: source, alt: 'Image from the tool', loading: 'lazy' })));
  const parts = [];
  const name = tool.name.toLowerCase();
  const args = tool.args || {};
  if (name === 'bash' || name === 'shell') {
    parts.push(terminalView(text, { command: visible(args.command, { blanks: true }), live: tool.status === 'running' }));
  } else if (name === 'edit') {
    const lines = diffOf(tool);
    if (lines) parts.push(diffView(lines, languageOf(args.path ?? args.file_path)));
    if (!lines || tool.status === 'error') parts.push(plain(text));
  } else if (name === 'write') {
    if (typeof args.content === 'string') parts.push(codeBlock(args.content.slice(0, MOST_SHOWN), languageOf(args.path)));
    if (tool.status === 'error') parts.push(plain(text));
  } else if (name === 'task' && tool.result?.details?.id) {
    parts.push(taskView(tool), plain(text));
  } else if (name === 'read') {
    if (tool.status !== 'done') parts.push(plain(text));
    else if (text && !images.length) parts.push(codeBlock(text.slice(0, MOST_SHOWN), languageOf(args.path ?? args.file_path)));
  } else {
    if (!['grep', 'find', 'glob', 'ls'].includes(name) && Object.keys(args).length) parts.push(argumentsView(args));
    if (text) parts.push(plain(text));
  }
  return [...parts.filter(Boolean), ...images];
}

function plain(text) {
  return text ? terminalView(text) : null;
}

function argumentsView(args) {
  const shown = (text) => visible(text, { blanks: true });
  const rows = Object.entries(args).map(([key, value]) => el('div.argument', {},
    el('span.argument-name', { text: shown(key) }),
    el('span.argument-value', { text: shown(typeof value === 'string' ? value.slice(0, 20000) : JSON.stringify(value, null, 2)?.slice(0, 20000)) })));
  return el('div.arguments', {}, ...rows);
}
