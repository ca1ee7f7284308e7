// The conversation: the branch that is shown, in pieces that are filled when the reader comes near.

const PIECE = 12;
const IDLE_CHARS = 1500000;

const transcript = {
  leaf: -1,
  path: [],
  onPath: new Set(),
  /** Entries with an element of their own, in order. */
  shown: [],
  /** Entry to the entry whose element shows it. */
  anchor: new Map(),
  /** Entry to the other entries that its element shows. */
  held: new Map(),
  /** Entry to what stands above it: a new day, other branches. */
  above: new Map(),
  /** Entry to the last change that was made to it in the model's context. */
  edits: new Map(),
  pieces: [],
};

const near = new IntersectionObserver((seen) => {
  for (const one of seen) if (one.isIntersecting) fill(transcript.pieces[Number(one.target.dataset.piece)]);
}, { rootMargin: '1600px 0px' });

/** Shows the branch that ends in a leaf. */
function showBranch(leaf) {
  if (leaf === transcript.leaf) return;
  transcript.leaf = leaf;
  transcript.path = pathTo(leaf);
  transcript.onPath = new Set(transcript.path);
  readPath();
  near.disconnect();
  transcript.pieces = [];
  const box = document.createDocumentFragment();
  for (let from = 0; from < transcript.shown.length; from += PIECE) {
    const entries = transcript.shown.slice(from, from + PIECE);
    const node = el('section', 'piece');
    const height = entries.reduce((sum, index) => sum + guess(index), 0);
    node.dataset.piece = transcript.pieces.length;
    node.style.minHeight = `${height}px`;
    node.style.containIntrinsicSize = `auto ${height}px`;
    transcript.pieces.push({ node, from, entries, filled: false });
    box.append(node);
  }
  const main = byId('transcript');
  main.replaceChildren(box);
  if (!transcript.shown.length) main.append(el('p', 'note', 'Nothing was said in this session.'));
  for (const piece of transcript.pieces) near.observe(piece.node);
  fillInIdleTime();
}

/** Which entries of the path have an element of their own, and what stands above them. */
function readPath() {
  transcript.anchor = new Map();
  transcript.above = new Map();
  transcript.held = new Map();
  transcript.edits = new Map();
  transcript.shown = [];
  const calls = new Map();
  const forks = [];
  let day = '';
  let before = -1;
  for (const index of transcript.path) {
    const entry = model.entries[index];
    const role = roleOf(entry);
    const siblings = model.parent[index] < 0 ? model.roots : model.children[model.parent[index]];
    if (siblings.length > 1) forks.push([index, siblings]);
    if (entry.type === 'context_edit' && model.indexOf.has(entry.targetId)) transcript.edits.set(model.indexOf.get(entry.targetId), entry);
    if (role === 'assistant') for (const call of toolCalls(entry.message)) calls.set(str(call.id), index);
    const joins = LINES.has(entry.type) && before >= 0 && LINES.has(model.entries[before].type) && !forks.length;
    const home = joins ? before : role === 'toolResult' ? calls.get(str(entry.message.toolCallId)) : undefined;
    transcript.anchor.set(index, home ?? index);
    if (home !== undefined) {
      transcript.held.set(home, [...(transcript.held.get(home) || []), index]);
      continue;
    }
    transcript.shown.push(index);
    before = index;
    const today = moment(entry.timestamp, DAY);
    const above = [];
    if (today && day && today !== day && !isMinor(index)) above.push(() => el('div', 'line day', el('span', '', today)));
    if (today && !isMinor(index)) day = today;
    for (const [at, others] of forks.splice(0)) above.push(() => forkLine(at, others));
    if (above.length) transcript.above.set(index, above);
  }
}

/** All entries that an element shows. */
const heldBy = (index) => [index, ...(transcript.held.get(index) || [])];

/** Where the conversation was taken up again from the same point: one button for each way it went. */
function forkLine(index, siblings) {
  const ways = siblings.map((at, i) => {
    const node = button('way', [el('span', 'way-no', String(i + 1)), el('span', 'way-words', branchWords(at))], () => goTo(at), `Branch ${i + 1} of ${siblings.length}`);
    node.setAttribute('aria-current', String(at === index));
    return node;
  });
  return el('nav', 'fork', el('span', 'fork-title', `${siblings.length} branches from here`), ...ways);
}

/** What a branch begins with, in a few words. */
function branchWords(index) {
  let at = index;
  for (let left = 20; left > 0 && at !== undefined; left -= 1) {
    if (roleOf(model.entries[at]) === 'user') return rowText(at)[1];
    [at] = model.children[at];
  }
  return rowText(index)[1];
}

/** About how high an entry will be, in pixels. */
function guess(index) {
  const entry = model.entries[index];
  const message = obj(entry.message);
  const role = roleOf(entry);
  if (role === 'user') return 90 + Math.min(4000, textOf(message.content).length / 4);
  if (role === 'assistant') return 50 + Math.min(6000, textOf(message.content).length / 4) + toolCalls(message).length * 170;
  if (role) return 160;
  return 34;
}

const above = (index) => (transcript.above.get(index) || []).map((make) => make());

/** Does an entry go on with the answer before it, so that it needs no headline of its own? */
function continues(at) {
  const index = transcript.shown[at];
  if (model.labels.has(model.entries[index].id) || transcript.above.has(index)) return false;
  let before = at - 1;
  while (before >= 0 && isMinor(transcript.shown[before])) before -= 1;
  return before >= 0 && ['assistant', 'toolResult'].includes(roleOf(model.entries[transcript.shown[before]]));
}

/** Makes the elements of a piece. */
function fill(piece) {
  if (!piece || piece.filled) return;
  piece.filled = true;
  near.unobserve(piece.node);
  const made = piece.entries.map((index, i) => {
    try {
      return [...above(index), render(index, continues(piece.from + i))];
    } catch (error) {
      // One odd entry must not take the others with it.
      return frame(index, 'minor line failed', el('span', '', `This entry could not be shown (${error.message})`));
    }
  });
  piece.node.replaceChildren(...made.flat().filter(Boolean));
  piece.node.style.minHeight = '';
}

/** Fills the beginning of what is left while nothing else is to be done, so that the browser's own search finds it. */
function fillInIdleTime() {
  const leaf = transcript.leaf;
  let chars = 0;
  let next = 0;
  const later = window.requestIdleCallback || ((work) => setTimeout(work, 50));
  const work = () => {
    if (leaf !== transcript.leaf) return;
    while (next < transcript.pieces.length && transcript.pieces[next].filled) next += 1;
    const piece = transcript.pieces[next];
    if (!piece || chars > IDLE_CHARS) return;
    for (const index of piece.entries) chars += 200 + textOf(obj(model.entries[index].message).content).length;
    fill(piece);
    later(work);
  };
  later(work);
}

const fillAll = () => transcript.pieces.forEach(fill);

/** The element that shows an entry of the branch. */
function elementOf(index) {
  const home = transcript.anchor.get(index);
  const piece = home === undefined ? undefined : transcript.pieces[Math.floor(transcript.shown.indexOf(home) / PIECE)];
  if (!piece) return null;
  const at = transcript.pieces.indexOf(piece);
  [piece, transcript.pieces[at - 1], transcript.pieces[at + 1]].forEach(fill);
  return piece.node.querySelector(`[data-index="${home}"]`);
}

/** Brings an entry into view and makes it glow once. */
function scrollToEntry(index) {
  const node = elementOf(index);
  if (!node) return;
  if (node.classList.contains('minor')) document.body.classList.add('show-minor');
  let left = 6;
  const settle = () => {
    // What lies above may get its real height only now.
    node.scrollIntoView({ block: 'start' });
    left -= 1;
    if (left > 0) requestAnimationFrame(settle);
  };
  settle();
  for (const old of document.querySelectorAll('.target')) old.classList.remove('target');
  node.classList.add('target');
}
