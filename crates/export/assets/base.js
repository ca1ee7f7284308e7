// Making elements and putting numbers, times and names into words. Knows nothing of sessions.

/** An element. Children are elements or text; there is no way to pass markup, so no text can become any. */
function el(tag, className, ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}

/** A button that does something. */
function button(className, label, action, title) {
  const node = el('button', className, label);
  node.type = 'button';
  if (title) node.title = title;
  node.addEventListener('click', action);
  return node;
}

const byId = (id) => document.getElementById(id);
const str = (value) => (typeof value === 'string' ? value : value === null || value === undefined ? '' : typeof value === 'object' ? JSON.stringify(value) : String(value));
const num = (value) => (Number.isFinite(value) ? value : 0);
const obj = (value) => (value && typeof value === 'object' && !Array.isArray(value) ? value : {});
const list = (value) => (Array.isArray(value) ? value : []);
const plural = (n, word) => `${n.toLocaleString('en')} ${n === 1 ? word : word.endsWith('y') ? word.slice(0, -1) + 'ies' : word + (word.endsWith('ch') ? 'es' : 's')}`;

/** 950, 1.2k, 34k, 5.6M */
function short(n) {
  n = num(n);
  if (n < 1000) return String(n);
  if (n < 1e6) return (n < 1e4 ? (n / 1e3).toFixed(1) : Math.round(n / 1e3)) + 'k';
  return (n / 1e6).toFixed(n < 1e7 ? 2 : 1) + 'M';
}

/** Dollars with as many digits as say something. */
function money(cost) {
  cost = num(cost);
  return '$' + (cost === 0 ? '0' : cost < 0.01 ? cost.toFixed(4) : cost < 1 ? cost.toFixed(3) : cost.toFixed(2));
}

const TIME = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: 'full' });
const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

/** A moment in the reader's own time zone; empty when it is none. */
function moment(value, format) {
  const date = new Date(value || NaN);
  return Number.isNaN(date.getTime()) ? '' : format.format(date);
}

/** How long something took: 40 s, 12 min, 3 h 5 min, 2 d 4 h. */
function lasting(ms) {
  const minutes = Math.round(ms / 60000);
  if (!(ms > 0)) return '';
  if (ms < 60000) return `${Math.max(1, Math.round(ms / 1000))} s`;
  if (minutes < 60) return `${minutes} min`;
  const [large, small, names] = minutes < 2880 ? [Math.floor(minutes / 60), minutes % 60, ['h', 'min']] : [Math.floor(minutes / 1440), Math.floor(minutes % 1440 / 60), ['d', 'h']];
  return `${large} ${names[0]}` + (small ? ` ${small} ${names[1]}` : '');
}

/** The text blocks of a content, which is text or a list of blocks. */
function textOf(content) {
  if (typeof content === 'string') return content;
  return list(content).filter((block) => block && block.type === 'text').map((block) => str(block.text)).join('\n');
}

const firstLine = (text, most) => {
  const line = text.slice(0, most * 4).trim().replace(/\s+/g, ' ');
  return line.length > most ? line.slice(0, most - 1) + '…' : line;
};

/** What the reader chose last time; browsers may refuse to keep it for files. */
const memory = {
  get(key) { try { return localStorage.getItem('pinion-export:' + key); } catch { return null; } },
  set(key, value) { try { localStorage.setItem('pinion-export:' + key, value); } catch { /* not kept */ } },
};

/** Copies a text. Where the browser offers no clipboard, as over plain HTTP, the selection of a field is copied. */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { /* the other way follows */ }
  const field = el('textarea');
  field.value = text;
  Object.assign(field.style, { position: 'fixed', opacity: '0' });
  document.body.append(field);
  field.select();
  try {
    return document.execCommand('copy');
  } catch {
    return false;
  } finally {
    field.remove();
  }
}

/** A small button that copies a text and says so. */
function copyButton(label, title, text) {
  const node = button('copy', label, async (event) => {
    event.stopPropagation();
    node.textContent = await copyText(text()) ? 'copied' : 'not allowed here';
    setTimeout(() => { node.textContent = label; }, 1200);
  }, title);
  return node;
}

/** An image, if it is one of the four kinds that models take and its data is what it should be. */
function picture(block) {
  const mime = str(block && block.mimeType);
  const data = str(block && block.data);
  if (!/^image\/(png|jpeg|gif|webp)$/.test(mime) || !data || /[^A-Za-z0-9+/=]/.test(data)) {
    return el('div', 'note', `[image that is not shown: ${firstLine(mime, 60) || 'no type'}]`);
  }
  const image = el('img', 'picture');
  image.alt = 'Image in the conversation';
  image.loading = 'lazy';
  image.decoding = 'async';
  image.title = 'Click for full size';
  image.tabIndex = 0;
  image.setAttribute('role', 'button');
  image.addEventListener('click', () => image.classList.toggle('full'));
  image.addEventListener('keydown', (event) => { if (event.key === 'Enter') image.classList.toggle('full'); });
  image.src = `data:${mime};base64,${data}`;
  return image;
}

const pictures = (content) => list(typeof content === 'string' ? [] : content).filter((block) => block && block.type === 'image').map(picture);
