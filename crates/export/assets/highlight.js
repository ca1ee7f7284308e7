// Colours for code: comments, strings, numbers, keywords. One scanner for all languages, told apart by family only.

const HIGHLIGHT_MOST = 120000;

const FAMILIES = {
  c: {
    names: 'c h cc cpp hpp cxx cs csharp java js javascript jsx mjs cjs ts typescript tsx go golang rs rust kt kotlin swift scala dart php groovy zig proto jsonc json5 json css scss less',
    comment: '\\/\\/[^\\n]*|\\/\\*[^]*?(?:\\*\\/|$)',
    string: '"(?:[^"\\\\\\n]|\\\\[^])*"?|`(?:[^`\\\\]|\\\\[^])*`?|\'(?:[^\'\\\\\\n]|\\\\[^]){0,200}\'',
    words: 'abstract as async await break case catch class const continue crate default defer do dyn else enum export extends extern final finally fn for from func function get go goto if impl implements import in instanceof interface internal let loop macro match mod module move mut namespace new of operator override package priv private protected pub public range readonly ref return sealed select self Self set static struct super switch template this throw throws trait try type typedef typeof union unsafe use using val var virtual void volatile when where while with yield',
  },
  hash: {
    names: 'py python rb ruby sh bash zsh shell console fish yaml yml toml ini conf make makefile dockerfile docker r perl pl elixir ex exs nim cmake nix tf hcl properties env powershell ps1 graphql jl julia',
    comment: '#[^\\n]*',
    string: '"""[^]*?(?:"""|$)|\'\'\'[^]*?(?:\'\'\'|$)|"(?:[^"\\\\\\n]|\\\\[^])*"?|\'(?:[^\'\\\\\\n]|\\\\[^])*\'?',
    words: 'and as assert async await begin break case class continue def del do done elif else elsif end ensure esac except export extends fi finally for from function global if import in include is lambda local module next nonlocal not or pass raise require rescue return self set source switch then try unless until when while with yield cd echo exit sudo FROM RUN COPY CMD ENTRYPOINT ENV WORKDIR ARG EXPOSE',
  },
  dash: {
    names: 'sql lua haskell hs ada elm pgsql mysql sqlite',
    comment: '--[^\\n]*|\\/\\*[^]*?(?:\\*\\/|$)',
    string: '"(?:[^"\\\\\\n]|\\\\[^])*"?|\'(?:[^\'\\\\]|\\\\[^])*\'?',
    words: 'add all alter and as asc begin between by case check column commit constraint create cross data default delete desc distinct do drop else elseif end exists foreign from full function group having if import in index inner insert instance into is join key left let limit local module nil not null of on or order outer primary references repeat return returning right rollback select set table then type union unique update using values view when where while with',
  },
  markup: {
    names: 'html xml svg vue svelte xhtml htm xsl rss plist',
    comment: '<!--[^]*?(?:-->|$)',
    string: '"[^"<>\\n]*"|\'[^\'<>\\n]*\'',
    words: '',
  },
};

const LITERALS = new Set('true false null None True False nil undefined NaN Infinity NULL'.split(' '));
const languages = new Map();
for (const [key, family] of Object.entries(FAMILIES)) {
  const tag = key === 'markup' ? '|(?<tag><\\/?[A-Za-z][\\w:.-]*|\\/?>)' : '';
  family.scan = new RegExp(`(?<comment>${family.comment})|(?<string>${family.string})${tag}|(?<number>\\b\\d[\\w.]*)|(?<word>[A-Za-z_$@][\\w$]*)`, 'g');
  family.set = new Set(family.words.split(' '));
  family.anyCase = key === 'dash';
  for (const name of family.names.split(' ')) languages.set(name, family);
}

/** The language a file name stands for. */
function languageOf(path) {
  const name = str(path).split(/[\\/]/).pop().toLowerCase();
  if (/^(dockerfile|makefile|justfile)/.test(name)) return 'make';
  const dot = name.lastIndexOf('.');
  return dot < 0 ? '' : name.slice(dot + 1);
}

/** Code as coloured text. What is very long or of no known language stays plain. */
function highlighted(code, language) {
  const out = document.createDocumentFragment();
  const name = str(language).toLowerCase();
  if (name === 'diff' || name === 'patch') return diffLines(code);
  const family = languages.get(name);
  if (!family || code.length > HIGHLIGHT_MOST) {
    out.append(code);
    return out;
  }
  let from = 0;
  let plain = '';
  const put = (kind, text) => {
    if (plain) out.append(plain);
    plain = '';
    out.append(el('span', 'h-' + kind, text));
  };
  for (const match of code.matchAll(family.scan)) {
    plain += code.slice(from, match.index);
    const text = match[0];
    const { comment, string, number, tag } = match.groups;
    const after = match.index + text.length;
    if (comment !== undefined) put('comment', text);
    else if (string !== undefined) put(/^\s*:/.test(code.slice(after, after + 4)) ? 'key' : 'string', text);
    else if (number !== undefined) put('number', text);
    else if (tag !== undefined) put('keyword', text);
    else if (LITERALS.has(text)) put('number', text);
    else if (family.set.has(family.anyCase ? text.toLowerCase() : text)) put('keyword', text);
    else if (code[after] === '(') put('call', text);
    else if (/^[A-Z][a-z]/.test(text)) put('type', text);
    else plain += text;
    from = after;
  }
  plain += code.slice(from);
  if (plain) out.append(plain);
  return out;
}

/** Lines of a diff: sign and number in the margin, what changed within a line marked. */
function diffLines(text) {
  const lines = text.split('\n').map(diffLine);
  pairChanges(lines);
  const out = document.createDocumentFragment();
  for (const { kind, margin, code, mark } of lines) {
    const [from, to] = mark || [0, 0];
    const words = mark ? [code.slice(0, from), el('span', 'd-mark', code.slice(from, to)), code.slice(to)] : [code];
    out.append(el('span', 'd d-' + kind, el('span', 'd-margin', margin), el('span', 'd-code', ...words, '\n')));
  }
  return out;
}

/** A line of a diff: git's form, or the agent's with the number behind the sign. */
function diffLine(text) {
  if (/^(\+\+\+ |--- |@@|diff |index [0-9a-f])/.test(text)) return { kind: 'head', margin: '', code: text };
  const kind = text[0] === '+' ? 'add' : text[0] === '-' ? 'del' : 'same';
  const numbered = /^([+ -] *\d+)(?: (.*))?$/.exec(text);
  if (numbered) return { kind, margin: numbered[1] + ' ', code: numbered[2] || '' };
  return { kind, margin: text.slice(0, 1), code: text.slice(1) };
}

/** Marks what differs where as many lines were added as were taken away just before. */
function pairChanges(lines) {
  for (let at = 0; at < lines.length; at += 1) {
    let middle = at;
    while (middle < lines.length && lines[middle].kind === 'del') middle += 1;
    let end = middle;
    while (end < lines.length && lines[end].kind === 'add') end += 1;
    for (let i = 0; i < Math.min(middle - at, end - middle); i += 1) markChange(lines[at + i], lines[middle + i]);
    at = Math.max(at, end - 1);
  }
}

/** Marks the words between what two lines begin and end with alike; not when that is too little. */
function markChange(before, after) {
  const [a, b] = [before.code, after.code];
  const most = Math.min(a.length, b.length);
  if (a === b || most > 2000) return;
  const word = /[\p{L}\p{N}_]/u;
  let head = 0;
  while (head < most && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < most - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  while (head > 0 && word.test(a[head - 1]) && (word.test(a[head] || '') || word.test(b[head] || ''))) head -= 1;
  while (tail > 0 && word.test(a[a.length - tail]) && (word.test(a[a.length - tail - 1] || '') || word.test(b[b.length - tail - 1] || ''))) tail -= 1;
  if ((a.slice(0, head) + a.slice(a.length - tail)).replace(/\s/g, '').length < most / 4) return;
  before.mark = [head, a.length - tail];
  after.mark = [head, b.length - tail];
}
