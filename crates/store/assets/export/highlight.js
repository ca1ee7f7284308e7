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

/** Lines of a diff, coloured by their sign. */
function diffLines(text) {
  const out = document.createDocumentFragment();
  for (const line of text.split('\n')) {
    const head = line.startsWith('+++') || line.startsWith('---') || line.startsWith('@@') || line.startsWith('diff ');
    const kind = head ? 'd-head' : line[0] === '+' ? 'd-add' : line[0] === '-' ? 'd-del' : 'd-same';
    out.append(el('span', 'd ' + kind, line + '\n'));
  }
  return out;
}
