// The tree at the side: what is in it, filters, search, and only as many rows as fit the window.

const ROW = parseInt(getComputedStyle(document.documentElement).getPropertyValue('--row'), 10) || 25;
const DEEPEST = 10;
const FILTERS = [['default', 'Default'], ['no-tools', 'No tools'], ['user', 'User'], ['labeled', 'Labeled'], ['all', 'All']];

const tree = { filter: 'default', words: [], rows: [], selected: -1, texts: [], branches: model.entries.filter((_, at) => !model.children[at].length).length };

/** Does an entry pass the filter? */
function passes(index) {
  const entry = model.entries[index];
  const role = roleOf(entry);
  if (role === 'assistant' && index !== transcript.leaf && !hasText(entry.message) && !failed(entry.message) && tree.filter !== 'all') return false;
  switch (tree.filter) {
    case 'user': return role === 'user';
    case 'labeled': return model.labels.has(entry.id);
    case 'all': return true;
    case 'no-tools': return role !== 'toolResult' && !isSetting(index);
    default: return !isSetting(index);
  }
}

const isSetting = (index) => LINES.has(model.entries[index].type) || isMinor(index);

/** Does an entry have all words that are searched for? */
function matches(index) {
  if (!tree.words.length) return true;
  if (tree.texts[index] === undefined) {
    const entry = model.entries[index];
    tree.texts[index] = (wordsOf(entry) + '\n' + str(model.labels.get(entry.id))).toLowerCase();
  }
  return tree.words.every((word) => tree.texts[index].includes(word));
}

/** The rows: visible entries below their nearest visible ancestor, further in only where branches part. */
function layOut() {
  const count = model.entries.length;
  const visible = new Uint8Array(count);
  for (let i = 0; i < count; i += 1) visible[i] = passes(i) && matches(i) ? 1 : 0;
  const below = new Map();
  const put = (home, index) => { if (!below.has(home)) below.set(home, []); below.get(home).push(index); };
  const walk = model.roots.map((index) => [index, -1]).reverse();
  while (walk.length) {
    const [index, home] = walk.pop();
    if (visible[index]) put(home, index);
    const next = visible[index] ? index : home;
    for (let i = model.children[index].length - 1; i >= 0; i -= 1) walk.push([model.children[index][i], next]);
  }
  tree.rows = [];
  const open = [];
  const enter = (home, indent, stem) => {
    const nodes = below.get(home) || [];
    const parted = nodes.length > 1 && !tree.words.length;
    for (let i = nodes.length - 1; i >= 0; i -= 1) {
      const last = i === nodes.length - 1;
      const deeper = parted && indent < DEEPEST;
      open.push({
        index: nodes[i],
        indent: indent + (deeper ? 1 : 0),
        lead: deeper ? stem + (last ? '└ ' : '├ ') : stem,
        stem: deeper ? stem + (last ? '  ' : '│ ') : stem,
      });
    }
  };
  enter(-1, 0, '');
  while (open.length) {
    const row = open.pop();
    tree.rows.push(row);
    enter(row.index, row.indent, row.stem);
  }
  byId('tree-space').style.height = `${tree.rows.length * ROW}px`;
  byId('count').textContent = `${tree.rows.length.toLocaleString('en')} / ${plural(count, 'entry')}${tree.branches > 1 ? ' · ' + plural(tree.branches, 'branch') : ''}`;
  byId('tree').classList.toggle('empty', !tree.rows.length);
}

/** The beginning of a message without the marks of Markdown. */
function gist(content) {
  const text = textOf(content);
  const skill = text.startsWith('<skill') ? SKILL.exec(text) : null;
  const words = skill ? `[${skill[1]}] ${str(skill[4])}` : text.slice(0, 600);
  return firstLine(words.replace(/```\w*|^#{1,6} |\*\*|`/gm, ''), 120);
}

/** What a row says: kind for its colour, and words. */
function rowText(index) {
  const entry = model.entries[index];
  const message = obj(entry.message);
  switch (entry.type === 'message' ? str(message.role) : entry.type) {
    case 'user': return ['user', gist(message.content) || '(image)'];
    case 'assistant': {
      const calls = toolCalls(message).map((call) => str(call.name)).join(', ');
      return ['assistant', gist(message.content) || (failed(message) ? `(${message.stopReason}) ${firstLine(str(message.errorMessage), 60)}` : calls ? `[${calls}]` : '(nothing said)')];
    }
    case 'toolResult': return [message.isError ? 'tool failed' : 'tool', toolRow(index, message)];
    case 'bashExecution': case 'pythonExecution': return ['tool', '$ ' + firstLine(str(message.command ?? message.code), 80)];
    case 'system': {
      const title = systemTitle(index);
      return ['minor', title === 'system prompt' ? title : firstLine(`${title}: ${systemChanges(message)}`, 120)];
    }
    case 'fileMention': return ['minor', filesOf(message).map((file) => file.path).join(', ')];
    case 'usage': return ['minor', `usage ${str(entry.kind)} ${str(entry.model)}`];
    case 'context_edit': return ['minor', 'context edit'];
    case 'branchSummary': return ['mark', 'branch: ' + gist(message.summary)];
    case 'compactionSummary': return ['mark', `compacted from ${short(message.tokensBefore)} tokens`];
    case 'custom': case 'hookMessage': return ['mark', `${str(message.customType)}: ${gist(message.content)}`];
    case 'compaction': return ['mark', `compacted from ${short(entry.tokensBefore)} tokens`];
    case 'branch_summary': return ['mark', 'branch: ' + gist(entry.summary)];
    case 'custom_message': return ['mark', `${str(entry.customType)}: ${gist(entry.content)}`];
    case 'model_change': return ['minor', 'model ' + (str(entry.model) || str(entry.modelId))];
    case 'thinking_level_change': return ['minor', 'reasoning ' + (str(entry.thinkingLevel) || 'default')];
    case 'label': return ['minor', 'label ' + str(entry.label)];
    case 'session_info': return ['minor', 'name ' + str(entry.name)];
    default: return ['minor', message.role ? [str(message.role), gist(message.content)].filter(Boolean).join(': ') : str(entry.customType) || str(entry.type)];
  }
}

/** A tool result by what was asked. */
function toolRow(index, message) {
  const home = transcript.anchor.get(index) ?? model.parent[index];
  const caller = home >= 0 ? model.entries[home] : null;
  const call = caller && roleOf(caller) === 'assistant' ? toolCalls(caller.message).find((one) => one.id === message.toolCallId) : null;
  const args = obj(call && call.arguments);
  const about = str(args.command ?? args.path ?? args.file_path ?? args.pattern ?? '');
  return `${str(message.toolName)} ${firstLine(about, 80)}`;
}

/** The words of a row; while searching, the place where the first word was found. */
function foundIn(index, words) {
  const [word] = tree.words;
  if (!word) return [words];
  let text = words;
  let at = text.toLowerCase().indexOf(word);
  if (at < 0) {
    text = wordsOf(model.entries[index]);
    at = text.toLowerCase().indexOf(word);
    if (at < 0) return [words];
    const from = text.lastIndexOf('\n', at - 1) + 1;
    text = text.slice(Math.max(from, at - 200), at + 200).replace(/\s+/g, ' ').trim();
    at = text.toLowerCase().indexOf(word);
  }
  if (at > 30) {
    text = '…' + text.slice(at - 20);
    at = 21;
  }
  return at < 0 ? [text] : [text.slice(0, at), el('b', 'hit', text.slice(at, at + word.length)), text.slice(at + word.length)];
}

/** Makes the rows that are in the window. */
function drawRows() {
  const box = byId('tree');
  const from = Math.max(0, Math.floor(box.scrollTop / ROW) - 8);
  const to = Math.min(tree.rows.length, from + Math.ceil(box.clientHeight / ROW) + 16);
  const made = [];
  for (let i = from; i < to; i += 1) made.push(rowNode(tree.rows[i], i));
  byId('tree-space').replaceChildren(...made);
}

function rowNode(row, at) {
  const [kind, words] = rowText(row.index);
  const label = model.labels.get(model.entries[row.index].id);
  const active = transcript.onPath.has(row.index);
  const found = foundIn(row.index, words);
  const node = el('div', `row ${kind.replace(/\w+/g, 'k-$&')}${active ? ' active' : ''}${row.index === tree.selected ? ' selected' : ''}`,
    el('span', 'lead', row.lead), el('span', 'bullet', active ? '•' : ''), label ? el('span', 'label', label) : null, el('span', 'words', ...found));
  node.style.top = `${at * ROW}px`;
  node.title = words;
  node.dataset.row = at;
  node.id = `row-${at}`;
  node.setAttribute('role', 'treeitem');
  node.setAttribute('aria-setsize', String(tree.rows.length));
  node.setAttribute('aria-posinset', String(at + 1));
  node.setAttribute('aria-level', String(row.indent + 1));
  node.setAttribute('aria-selected', String(row.index === tree.selected));
  return node;
}

/** Selects an entry and brings its row into the window of the tree. */
function selectRow(index) {
  tree.selected = index;
  const at = tree.rows.findIndex((row) => row.index === index);
  const box = byId('tree');
  if (at >= 0 && (at * ROW < box.scrollTop || (at + 1) * ROW > box.scrollTop + box.clientHeight)) {
    box.scrollTop = Math.max(0, at * ROW - box.clientHeight / 2);
  }
  drawRows();
  if (at >= 0) box.setAttribute('aria-activedescendant', `row-${at}`); else box.removeAttribute('aria-activedescendant');
}

/** Shows the branch of an entry down to its newest leaf, and the entry. */
function goTo(index, quiet) {
  if (!transcript.onPath.has(index)) {
    showBranch(leafBelow(index));
    layOut();
  }
  selectRow(index);
  scrollToEntry(index);
  markWords(index);
  if (!quiet) {
    document.body.classList.remove('side-open');
    rememberPlace(model.entries[index].id);
  }
}

/** Paints the words that were searched for, where the browser can. */
function markWords(index) {
  if (!window.Highlight || !CSS.highlights) return;
  CSS.highlights.delete('found');
  const node = tree.words.length ? elementOf(index) : null;
  if (!node) return;
  for (const fold of node.querySelectorAll('.fold, .drawer, .tool')) fold.setOpen(true);
  const ranges = [];
  const texts = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  while (texts.nextNode() && ranges.length < 500) {
    const text = texts.currentNode.data.toLowerCase();
    for (const word of tree.words) {
      for (let at = text.indexOf(word); at >= 0 && ranges.length < 500; at = text.indexOf(word, at + word.length)) {
        if (at + word.length > texts.currentNode.data.length) break;
        const range = new Range();
        range.setStart(texts.currentNode, at);
        range.setEnd(texts.currentNode, at + word.length);
        ranges.push(range);
      }
    }
  }
  CSS.highlights.set('found', new Highlight(...ranges));
}

function refilter() {
  layOut();
  byId('tree').scrollTop = 0;
  selectRow(tree.selected);
}

/** The next or previous row from the one that is selected. */
function step(by) {
  const at = tree.rows.findIndex((row) => row.index === tree.selected);
  const row = tree.rows[at < 0 ? (by > 0 ? 0 : tree.rows.length - 1) : Math.min(tree.rows.length - 1, Math.max(0, at + by))];
  if (row) goTo(row.index, true);
}

function startSidebar() {
  const filters = byId('filters');
  for (const [key, name] of FILTERS) {
    const one = button('', name, () => {
      tree.filter = key;
      document.body.classList.toggle('show-minor', key === 'all');
      for (const other of filters.children) other.setAttribute('aria-pressed', String(other === one));
      refilter();
    });
    one.setAttribute('aria-pressed', String(key === tree.filter));
    filters.append(one);
  }
  const search = byId('search');
  let timer = 0;
  search.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      tree.words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      refilter();
    }, 120);
  });
  search.addEventListener('keydown', (event) => {
    const by = { Enter: event.shiftKey ? -1 : 1, ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    step(by);
  });
  const box = byId('tree');
  let asked = false;
  box.addEventListener('scroll', () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; drawRows(); });
  });
  new ResizeObserver(drawRows).observe(box);
  box.addEventListener('click', (event) => {
    const row = event.target.closest('.row');
    if (row) goTo(tree.rows[Number(row.dataset.row)].index);
  });
  box.addEventListener('keydown', (event) => {
    const page = Math.max(1, Math.floor(box.clientHeight / ROW) - 1);
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -tree.rows.length, End: tree.rows.length }[event.key];
    if (by) {
      event.preventDefault();
      step(by);
    } else if (event.key === 'Enter' && tree.selected >= 0) goTo(tree.selected);
  });
  startGrip();
}

/** The edge that can be dragged. */
function startGrip() {
  const width = (px) => document.documentElement.style.setProperty('--side', `${Math.min(720, Math.max(240, px))}px`);
  const kept = Number(memory.get('sidebar-width'));
  if (kept) width(kept);
  const grip = byId('grip');
  const keep = (px) => { width(px); memory.set('sidebar-width', Math.round(px)); };
  grip.addEventListener('keydown', (event) => {
    const by = { ArrowLeft: -20, ArrowRight: 20 }[event.key];
    if (!by) return;
    event.preventDefault();
    keep(byId('sidebar').offsetWidth + by);
  });
  grip.addEventListener('pointerdown', (event) => {
    grip.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  grip.addEventListener('pointermove', (event) => {
    if (!grip.hasPointerCapture(event.pointerId)) return;
    keep(event.clientX);
  });
  grip.addEventListener('dblclick', () => keep(340));
}
