// Questions of the agent and of its extensions as real dialogs: choose, confirm, a line, a text. One at a time; a question
// that runs out or that somebody else answered goes away by itself. And dialogs of our own (`askText`, `askSure`).

import { el, fill, setText } from '../lib/dom.js';
import { visible } from '../lib/format.js';
import { readDiff } from '../lib/diff.js';
import { MOST_LINES, diffView } from './diffview.js';

/** What can be chosen when a tool call may need consent (docs/guides/permissions.md). */
const PERMISSION = ['Allow once', 'Allow for this session', 'Deny'];
const DENY = PERMISSION[2];
/** A line of the edit tool's diff: a sign and the line's number. */
const DIFF_LINE = /^[+-] *\d+ /;
/** A line around the changes: a blank in place of the sign, or dots for lines that are left out. */
const CONTEXT_LINE = /^ (?: *\d+ | *\.{3})/;

function isPermission(question) {
  const { method, options } = question;
  return method === 'select' && Array.isArray(options) && options.length === PERMISSION.length
    && PERMISSION.every((option, index) => options[index] === option);
}

/** Shows the open questions of the session, one after the other. */
export class Questions {
  /** @param {{ answer: (id: string, answer: any) => boolean }} actions */
  constructor(actions) {
    this.actions = actions;
    this.shown = null;
    this.waiting = [];
  }

  /** @param {any[]} dialogs all that are open */
  show(dialogs) {
    this.waiting = dialogs;
    if (this.shown && !dialogs.some((dialog) => dialog.id === this.shown.id)) this.hide();
    if (!this.shown && dialogs.length) this.open(dialogs[0]);
    else if (this.shown) this.tellMore();
  }

  hide() {
    const { shown } = this;
    this.shown = null;
    if (!shown) return;
    clearInterval(shown.timer);
    shown.node.close();
    shown.node.remove();
  }

  done(id, answer) {
    if (!this.actions.answer(id, answer)) return;
    this.hide();
    this.show(this.waiting.filter((dialog) => dialog.id !== id));
  }

  open(question) {
    const { id, method } = question;
    const finish = (answer) => this.done(id, answer);
    const body = isPermission(question) ? permissionBody(question, finish) : { select: selectBody, confirm: confirmBody, input: inputBody, editor: editorBody }[method](question, finish);
    // A title of several lines is a question and what it is about.
    const [head, ...rest] = visible(question.title || 'A question').split('\n');
    const title = el('h2', { id: 'question-title', text: head, dir: 'auto' });
    const about = rest.join('\n').trim();
    const clock = el('p.dialog-clock', { role: 'timer' });
    this.more = el('p.dialog-more');
    const node = el('dialog.dialog', { aria: { labelledby: 'question-title' } },
      el('form', { method: 'dialog', onsubmit: (event) => { event.preventDefault(); body.submit?.(); } }, title,
        ...(isPermission(question) && head === 'Allow edit?' ? aboutEdit(about) : aboutText(about)),
        question.message ? el('p.dialog-message', { text: visible(question.message), dir: 'auto' }) : null, ...body.nodes, clock, this.more));
    node.addEventListener('cancel', (event) => { event.preventDefault(); body.cancel ? body.cancel() : finish({ cancelled: true }); });
    document.body.append(node);
    node.showModal();
    body.focus?.();
    this.shown = { id, node };
    this.tellMore();
    if (question.timeout > 0) this.count(question, clock);
  }

  tellMore() {
    const others = this.waiting.length - 1;
    setText(this.more, others > 0 ? `${others} more ${others === 1 ? 'question' : 'questions'} after this` : '');
  }

  count(question, clock) {
    const tick = () => {
      const left = Math.ceil((question.askedAt + question.timeout - Date.now()) / 1000);
      setText(clock, isPermission(question)
        ? (left > 0 ? `Denied automatically in ${left} s` : 'Denied automatically: no answer came in time')
        : (left > 0 ? `Goes on without an answer in ${left} s` : 'No longer waiting for an answer'));
      if (left <= -1) {
        this.hide();
        this.show(this.waiting.filter((dialog) => dialog.id !== question.id));
      }
    };
    tick();
    this.shown.timer = setInterval(tick, 500);
  }
}

function aboutText(text) {
  return text ? [el('pre.dialog-about', { text, tabIndex: 0, dir: 'ltr' })] : [];
}

/** What an edit would do: its changes as a diff, everything before them as text. A diff that the view would cut stays a text. */
function aboutEdit(text) {
  const lines = text.split('\n');
  let from = lines.findIndex((line) => DIFF_LINE.test(line));
  if (from < 0 || lines.length - from > MOST_LINES) return aboutText(text);
  while (from > 0 && CONTEXT_LINE.test(lines[from - 1])) from -= 1;
  return [...aboutText(lines.slice(0, from).join('\n')), el('div.dialog-diff', { tabIndex: 0 }, diffView(readDiff(lines.slice(from).join('\n'))))];
}

function selectBody(question, finish) {
  const { list, buttons } = choices((question.options || []).map(String), (option) => finish({ value: option }));
  return { nodes: [list, foot(cancelButton(finish))], focus: () => buttons[0]?.focus() };
}

// There is one way to say no: the option, with a reason if one likes. Escape means it, too.
function permissionBody(question, finish) {
  const reason = el('input', { type: 'text', maxLength: 2000, placeholder: 'Why not? (optional, the model is told)', autocomplete: 'off', aria: { label: 'Reason for denying' } });
  const deny = () => {
    const words = reason.value.trim();
    finish(words ? { value: DENY, reason: words } : { value: DENY });
  };
  const { list, buttons } = choices(question.options, (option) => (option === DENY ? deny() : finish({ value: option })));
  // An Enter that was meant for the message field must not allow anything.
  return { nodes: [list, reason], focus: () => buttons.at(-1).focus(), submit: deny, cancel: deny };
}

function choices(options, choose) {
  const buttons = options.map((option, index) => el('button.choice', { type: 'button', onclick: () => choose(option) },
    el('span', { text: visible(option), dir: 'auto' }), index < 9 ? el('kbd', { text: String(index + 1) }) : null));
  const list = el('div.choices', { role: 'group' }, ...buttons);
  list.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      buttons[(buttons.indexOf(document.activeElement) + step + buttons.length) % buttons.length]?.focus();
    } else if (/^[1-9]$/.test(event.key) && options[event.key - 1] !== undefined) choose(options[event.key - 1]);
  });
  return { list, buttons };
}

function confirmBody(_question, finish) {
  const yes = el('button.primary', { type: 'submit', text: 'Yes' });
  return {
    nodes: [foot(el('button', { type: 'button', text: 'No', onclick: () => finish({ confirmed: false }) }), yes)],
    focus: () => yes.focus(),
    submit: () => finish({ confirmed: true }),
  };
}

function inputBody(question, finish) {
  const field = el('input', { type: 'text', placeholder: question.placeholder || '', autocomplete: 'off', aria: { label: question.title || 'Answer' } });
  return {
    nodes: [field, foot(cancelButton(finish), el('button.primary', { type: 'submit', text: 'OK' }))],
    focus: () => field.focus(),
    submit: () => finish({ value: field.value }),
  };
}

function editorBody(question, finish) {
  const field = el('textarea', { rows: 12, value: question.prefill || '', aria: { label: question.title || 'Text' } });
  field.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) finish({ value: field.value });
  });
  return {
    nodes: [field, foot(cancelButton(finish), el('button.primary', { type: 'submit', text: 'OK' }))],
    focus: () => field.focus(),
    submit: () => finish({ value: field.value }),
  };
}

function cancelButton(finish) {
  return el('button', { type: 'button', text: 'Cancel', onclick: () => finish({ cancelled: true }) });
}

function foot(...buttons) {
  return el('div.dialog-foot', {}, ...buttons);
}

/** A dialog of the page's own. `make` gives its content and gets a function that ends it. */
export function openDialog(title, make, { wide = false } = {}) {
  const node = el('dialog.dialog', { class: wide ? 'wide' : '', aria: { label: title } });
  const end = () => node.close();
  fill(node, el('form', { method: 'dialog', onsubmit: (event) => event.preventDefault() }, el('h2', { text: title }), ...[make(end)].flat()));
  node.addEventListener('close', () => node.remove());
  node.addEventListener('click', (event) => { if (event.target === node) node.close(); });
  document.body.append(node);
  node.showModal();
  return node;
}

/** Asks for a line. @returns {Promise<string|null>} */
export function askText(title, value, label = 'OK', { placeholder = '', secret = false } = {}) {
  return new Promise((resolve) => {
    const field = el('input', { type: secret ? 'password' : 'text', value, placeholder, autocomplete: 'off', aria: { label: title } });
    let answer = null;
    const node = openDialog(title, (end) => {
      const ok = () => { answer = field.value; end(); };
      field.addEventListener('keydown', (event) => { if (event.key === 'Enter' && !event.isComposing) { event.preventDefault(); ok(); } });
      return [field, foot(el('button', { type: 'button', text: 'Cancel', onclick: end }), el('button.primary', { type: 'button', text: label, onclick: ok }))];
    });
    node.addEventListener('close', () => resolve(answer));
    field.focus();
    field.select();
  });
}

/** Asks whether something should really be done. @returns {Promise<boolean>} */
export function askSure(title, text, label, { danger = false } = {}) {
  return new Promise((resolve) => {
    let sure = false;
    const node = openDialog(title, (end) => [el('p.dialog-message', { text }),
      foot(el('button', { type: 'button', text: 'Cancel', onclick: end }), el('button.primary', { type: 'button', text: label, class: danger ? 'danger' : '', onclick: () => { sure = true; end(); } }))]);
    node.addEventListener('close', () => resolve(sure));
  });
}
