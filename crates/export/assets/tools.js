// Tool calls with their results, and everything else that folds.

const FOLD_CHARS = 3000;
const SHOWN_MOST = 300000;
const opened = { thinking: false, tools: false, cards: true };

/** A text cut after some lines; `more` says how many were left out. */
function clipped(text, lines) {
  let end = -1;
  for (let n = 0; n < lines; n += 1) {
    end = text.indexOf('\n', end + 1);
    if (end < 0) { end = text.length; break; }
  }
  const cut = Math.min(end, FOLD_CHARS, Math.max(600, lines * 140));
  if (cut >= text.trimEnd().length) return { text: text.trimEnd(), more: '' };
  let left = 0;
  for (let at = text.indexOf('\n', cut); at >= 0 && at < text.length - 1; at = text.indexOf('\n', at + 1)) left += 1;
  return { text: text.slice(0, cut), more: left ? plural(left, 'more line') : plural(text.length - cut, 'more character') };
}

/** Text of any length without markup; the browser is spared what nobody has asked for. */
function longPre(text) {
  const pre = el('pre', 'out', text.slice(0, SHOWN_MOST));
  if (text.length <= SHOWN_MOST) return pre;
  const rest = button('more', `Show all ${plural(text.length, 'character')}`, () => { pre.textContent = text; rest.remove(); });
  return el('div', '', pre, rest);
}

/** Text of which only the first lines show until somebody asks for more. `draw` makes elements from a text. */
function folding(text, lines, draw) {
  const short = clipped(text, lines);
  if (!short.more) return draw(short.text);
  const box = el('div', 'fold');
  box.setOpen = (open) => {
    const whole = text.length > SHOWN_MOST ? longPre(text) : null;
    const toggle = button('more', open ? 'show less' : `… ${short.more}`, () => box.setOpen(!open));
    toggle.setAttribute('aria-expanded', String(open));
    box.replaceChildren(open ? whole || draw(text.trimEnd()) : draw(short.text), toggle);
    box.isOpen = open;
  };
  box.setOpen(opened.tools);
  return box;
}

const output = (text) => el('pre', 'out', ansi(text));
const codeView = (language) => (text) => el('pre', 'out', highlighted(text, language));

/** The path of a file tool, with the part that was read. */
function pathLabel(args) {
  const path = str(args.path ?? args.file_path ?? args.filePath);
  const offset = num(args.offset);
  const range = offset || args.limit ? `:${offset || 1}${args.limit ? '–' + ((offset || 1) + num(args.limit) - 1) : ''}` : '';
  return [el('span', 'path', path || '…'), range ? el('span', 'range', range) : null];
}

/** What changed, from the tool's own account or else from its arguments. */
function diffOf(args, details) {
  const told = str(obj(details).diff) || str(obj(details).patch);
  if (told) return told;
  let edits = args.edits;
  if (typeof edits === 'string') { try { edits = JSON.parse(edits); } catch { edits = []; } }
  edits = list(edits).length ? list(edits) : [args];
  const lines = (sign, text) => (text ? text.split('\n').map((line) => sign + line) : []);
  return edits.map((edit) => [...lines('-', str(obj(edit).oldText ?? obj(edit).old_string)), ...lines('+', str(obj(edit).newText ?? obj(edit).new_string))].join('\n')).join('\n ⋯\n');
}

/** How many lines a diff adds and takes away. */
function diffCount(diff) {
  let added = 0;
  let removed = 0;
  for (const line of diff.split('\n')) {
    if (line[0] === '+' && !line.startsWith('+++')) added += 1;
    if (line[0] === '-' && !line.startsWith('---')) removed += 1;
  }
  return [el('span', 'plus', `+${added}`), ' ', el('span', 'minus', `−${removed}`)];
}

/** Headline and body by tool: each gives `{ head: nodes, body: elements }`. `text` is what the model got back. */
const TOOLS = {
  bash(args, text) {
    const command = str(args.command);
    const line = el('div', 'command', el('span', 'prompt', '$ '), folding(command, 12, codeView('sh')));
    return { head: args.timeout ? [el('span', 'range', `timeout ${str(args.timeout)} s`)] : [], body: [line, text ? folding(text, 5, output) : null] };
  },
  read(args, text) {
    return { head: pathLabel(args), body: [text ? folding(text, 10, codeView(languageOf(args.path ?? args.file_path))) : null] };
  },
  write(args, text, result) {
    const content = str(args.content);
    const failure = result && result.isError && text ? output(text) : null;
    const count = el('span', 'range', plural(content ? content.trimEnd().split('\n').length : 0, 'line'));
    return { head: [...pathLabel(args), count], body: [content ? folding(content, 10, codeView(languageOf(args.path ?? args.file_path))) : null, failure] };
  },
  edit(args, text, result) {
    const diff = diffOf(args, result && result.details);
    const view = (part) => el('pre', 'out diff', diffLines(part));
    return { head: [...pathLabel(args), el('span', 'range', ...diffCount(diff))], body: [diff ? folding(diff, 40, view) : null, result && result.isError && text ? output(text) : null] };
  },
  ls(args, text) {
    return { head: pathLabel({ path: args.path || '.' }), body: [text ? folding(text, 20, output) : null] };
  },
  grep(args, text) {
    const where = [args.path, args.glob].map(str).filter(Boolean).join(' ');
    return { head: [el('span', 'path', `/${str(args.pattern)}/`), where ? el('span', 'range', 'in ' + where) : null], body: [text ? folding(text, 15, output) : null] };
  },
  find(args, text) {
    return { head: [el('span', 'path', str(args.pattern)), args.path ? el('span', 'range', 'in ' + str(args.path)) : null], body: [text ? folding(text, 20, output) : null] };
  },
};

function otherTool(args, text) {
  const given = Object.keys(args).length ? folding(JSON.stringify(args, null, 2), 12, codeView('json')) : null;
  return { head: [], body: [given, text ? folding(text, 10, output) : null] };
}

/** Calls that a tool made to other tools, as pi records them: their results are in no session file. */
function nestedCalls(result) {
  const nested = obj(result && result.nestedCalls);
  const calls = list(nested.calls).map(obj);
  if (!calls.length) return null;
  const marks = new Map([['ok', '✓'], ['error', '✗'], ['unfinished', '…']]);
  const words = calls.map((call) => {
    const args = call.arguments ? JSON.stringify(call.arguments) : `[${plural(num(call.argumentsBytes), 'byte')} of arguments]`;
    const time = Number.isFinite(call.durationMs) ? ` ${call.durationMs} ms` : '';
    const error = str(call.error).split('\n').filter(Boolean).map((part) => `\n    ${part}`).join('');
    return `${marks.get(str(call.status)) || '?'} ${str(call.name)} ${args}${time}${error}`;
  });
  const title = [el('span', '', plural(calls.length, 'nested call')), nested.complete ? null : el('span', 'glimpse', 'the record is not complete')];
  return drawer('', title, () => folding(words.join('\n'), 40, output), false);
}

/** A tool call and, when there is one, its result. */
function toolCard(call, result) {
  const name = str(call.name);
  const args = obj(call.arguments);
  const view = Object.hasOwn(TOOLS, name) ? TOOLS[name] : otherTool;
  const { head, body } = view(args, result ? textOf(result.content) : '', result);
  const state = !result ? 'pending' : result.isError ? 'error' : 'ok';
  const words = { pending: 'no result', error: 'failed', ok: '' }[state];
  const used = result ? usageWords(result.usage) : '';
  const full = str(result && obj(result.details).fullOutputPath);
  const title = [...head, used ? el('span', 'range', used) : null, words ? el('span', 'state', words) : null];
  return card(state, name || 'tool', title, [...body, ...(result ? pictures(result.content) : []), nestedCalls(result),
    full ? el('div', 'note', `Cut here; the whole output was kept at ${full}`) : null]);
}

/** The box of a tool call: its head folds the rest away. */
function card(state, name, head, parts) {
  const body = el('div', 'tool-body', ...parts);
  const fold = button('tool-name', [el('span', 'chevron', '›'), name], () => box.setOpen(!box.isOpen));
  const title = el('div', 'tool-head', fold, ...head);
  const box = el('div', `tool ${state}`, title, body);
  box.setOpen = (open) => {
    box.classList.toggle('shut', !open);
    fold.setAttribute('aria-expanded', String(open));
    box.isOpen = open;
  };
  // The whole head is the handle, unless the reader is marking a part of it.
  title.addEventListener('click', (event) => { if (!fold.contains(event.target) && !String(getSelection())) box.setOpen(!box.isOpen); });
  box.setOpen(opened.cards);
  return box;
}

/** A block that shows only its headline until opened. `fill` makes the body when it is needed. */
function drawer(className, title, fill, open) {
  const head = button('drawer-head', [el('span', 'chevron', '›'), ...title], () => box.setOpen(!box.isOpen));
  const body = el('div', 'drawer-body');
  const box = el('div', `drawer ${className}`, head, body);
  box.setOpen = (next) => {
    if (next && !body.hasChildNodes()) body.append(...[fill()].flat().filter(Boolean));
    box.classList.toggle('open', next);
    head.setAttribute('aria-expanded', String(next));
    box.isOpen = next;
  };
  box.setOpen(open);
  return box;
}
