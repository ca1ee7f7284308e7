// Puts the page together: shortcuts, buttons, links to places, light and dark, printing.

/** The part of an address that leads to an entry on the branch that is shown. */
function hashFor(id) {
  const leaf = model.entries[transcript.leaf];
  return `#leafId=${encodeURIComponent(str(leaf && leaf.id))}&targetId=${encodeURIComponent(str(id))}`;
}

function rememberPlace(id) {
  try { history.replaceState(null, '', hashFor(id)); } catch { /* some viewers do not allow it */ }
}

/** The branch and entry that the address asks for. */
function placeAsked() {
  const asked = new URLSearchParams(location.hash.length > 1 ? location.hash.slice(1) : location.search);
  const leaf = model.indexOf.get(asked.get('leafId'));
  const target = model.indexOf.get(asked.get('targetId'));
  return { leaf: leaf ?? (target === undefined ? firstLeaf() : leafBelow(target)), target };
}

function openPlace() {
  const { leaf, target } = placeAsked();
  if (leaf >= 0) showBranch(leaf);
  layOut();
  if (target !== undefined) goTo(target, true);
  else selectRow(leaf);
}

/** Folds or unfolds everything of a kind, here and in what is filled later. */
function toggleAll(kind) {
  opened[kind] = !opened[kind];
  const here = anchorInView();
  for (const node of document.querySelectorAll({ tools: '#transcript .fold', cards: '#transcript .tool', thinking: '#transcript .thinking' }[kind])) node.setOpen(opened[kind]);
  if (kind !== 'cards') byId('toggle-' + kind).setAttribute('aria-pressed', String(opened[kind]));
  if (here) window.scrollBy(0, here.node.getBoundingClientRect().top - here.top);
}

/** The entry at the top of the window and where it is, so that it can stay there. */
function anchorInView() {
  const point = document.elementsFromPoint(window.innerWidth - 60, 120).find((node) => node.closest && node.closest('.entry'));
  const node = point && point.closest('.entry');
  return node ? { node, top: node.getBoundingClientRect().top } : null;
}

/** The user message before or after what is at the top of the window. */
function stepUser(by) {
  const here = anchorInView();
  const at = here ? transcript.shown.indexOf(Number(here.node.dataset.index)) : 0;
  for (let i = at + by; i >= 0 && i < transcript.shown.length; i += by) {
    if (roleOf(model.entries[transcript.shown[i]]) === 'user') { goTo(transcript.shown[i], true); return; }
  }
}

const system = matchMedia('(prefers-color-scheme: dark)');

/** Light or dark: what is asked for, else what the reader chose, else what the system says. */
function setTheme(asked) {
  const chosen = asked || memory.get('theme');
  document.documentElement.dataset.theme = chosen === 'light' || chosen === 'dark' ? chosen : system.matches ? 'dark' : 'light';
}

function startTheme() {
  setTheme();
  system.addEventListener('change', () => setTheme());
  byId('theme').addEventListener('click', () => {
    const next = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
    memory.set('theme', next);
    setTheme(next);
  });
}

function download() {
  const address = URL.createObjectURL(new Blob([jsonl()], { type: 'application/x-ndjson' }));
  const anchor = el('a');
  anchor.href = address;
  anchor.download = `${str(obj(SESSION.header).id).replace(/[^A-Za-z0-9_-]/g, '').slice(0, 80) || 'session'}.jsonl`;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

function resetSearch() {
  byId('search').value = '';
  tree.words = [];
  if (window.Highlight && CSS.highlights) CSS.highlights.delete('found');
  document.body.classList.remove('side-open');
  byId('search').blur();
  refilter();
}

function startKeys() {
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') { resetSearch(); return; }
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName || '');
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      h: () => document.body.classList.toggle('show-minor'),
      t: () => toggleAll('thinking'),
      o: () => toggleAll(event.shiftKey ? 'cards' : 'tools'),
      j: () => stepUser(1),
      k: () => stepUser(-1),
      '/': () => { document.body.classList.add('side-open'); byId('search').focus(); event.preventDefault(); },
    };
    const action = Object.hasOwn(actions, event.key.toLowerCase()) && actions[event.key.toLowerCase()];
    if (action) action();
  });
}

/** Paper is white and shows everything that was said; what was folded stays folded. */
function startPrinting() {
  let theme;
  window.addEventListener('beforeprint', () => {
    theme = document.documentElement.dataset.theme;
    setTheme('light');
    fillAll();
  });
  window.addEventListener('afterprint', () => setTheme(theme));
}

function start() {
  byId('app').hidden = false;
  startTheme();
  drawHeader();
  startSidebar();
  openPlace();
  startKeys();
  byId('toggle-thinking').addEventListener('click', () => toggleAll('thinking'));
  byId('toggle-tools').addEventListener('click', () => toggleAll('tools'));
  byId('download').addEventListener('click', download);
  byId('menu').addEventListener('click', () => document.body.classList.toggle('side-open'));
  byId('veil').addEventListener('click', () => document.body.classList.remove('side-open'));
  window.addEventListener('hashchange', openPlace);
  startPrinting();
  document.documentElement.dataset.ready = '1';
}

start();
