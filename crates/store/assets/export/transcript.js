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
  transcript.anchor = new Map();
  transcript.shown = [];
  const calls = new Map();
  for (const index of transcript.path) {
    const entry = model.entries[index];
    const role = roleOf(entry);
    if (role === 'assistant') for (const call of toolCalls(entry.message)) calls.set(str(call.id), index);
    const home = role === 'toolResult' ? calls.get(str(entry.message.toolCallId)) : undefined;
    if (home !== undefined) transcript.anchor.set(index, home);
    else {
      transcript.anchor.set(index, index);
      transcript.shown.push(index);
    }
  }
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

/** Makes the elements of a piece. */
function fill(piece) {
  if (!piece || piece.filled) return;
  piece.filled = true;
  near.unobserve(piece.node);
  const made = piece.entries.map((index, i) => {
    const before = transcript.shown[piece.from + i - 1];
    const continues = before !== undefined && ['assistant', 'toolResult'].includes(roleOf(model.entries[before])) && !model.labels.has(model.entries[index].id);
    try {
      return render(index, continues);
    } catch (error) {
      // One odd entry must not take the others with it.
      return frame(index, 'minor line failed', el('span', '', `This entry could not be shown (${error.message})`));
    }
  });
  piece.node.replaceChildren(...made.filter(Boolean));
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
