// Lines of a diff: read from the text that the edit tool shows (`+12 text`), or made from what an edit says it replaces; and
// which words changed between a removed and an added line. Pure: gives data, no elements.

/**
 * @typedef {{ text: string, changed: boolean }} Part
 * @typedef {{ kind: 'same'|'add'|'del'|'gap', number: string, text: string, parts?: Part[] }} Line
 */

// Beyond this, comparing costs more than it tells.
const MOST_LINES = 600;
const MOST_WORDS = 160;
const MOST_PAIRED = 60;

/** The lines of the edit tool's diff: a sign, a number, a text. @returns {Line[]} */
export function readDiff(text) {
  const lines = String(text).split('\n').map((line) => {
    const match = /^([+\- ])( *\d*) ?(.*)$/s.exec(line);
    if (!match) return { kind: 'same', number: '', text: line };
    const [, sign, number, rest] = match;
    if (sign === ' ' && !number.trim() && rest.trim() === '...') return { kind: 'gap', number: '', text: '' };
    return { kind: sign === '+' ? 'add' : sign === '-' ? 'del' : 'same', number: number.trim(), text: rest };
  });
  return withWords(tightened(lines));
}

/** The lines of a unified diff without names of files, as `get_changes` returns it. @returns {Line[]} */
export function readUnified(text) {
  const lines = [];
  let [before, after] = [1, 1];
  for (const line of String(text).replace(/\n$/, '').split('\n')) {
    const head = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
    if (head) {
      [before, after] = [Number(head[1]), Number(head[2])];
      if (lines.length) lines.push({ kind: 'gap', number: '', text: '' });
      continue;
    }
    const rest = line.slice(1);
    if (line[0] === '-') { lines.push({ kind: 'del', number: String(before), text: rest }); before += 1; }
    else if (line[0] === '+') { lines.push({ kind: 'add', number: String(after), text: rest }); after += 1; }
    else if (line[0] === ' ') { lines.push({ kind: 'same', number: String(after), text: rest }); before += 1; after += 1; }
  }
  return withWords(lines);
}

/** The lines of what one text became. @returns {Line[]} */
export function makeDiff(before, after) {
  const old = String(before).split('\n');
  const now = String(after).split('\n');
  const lines = longestCommon(old, now, MOST_LINES)
    .map(({ kind, value }) => ({ kind, number: '', text: value }));
  return withWords(lines);
}

/** How many lines were added and removed. */
export function tally(lines) {
  return {
    added: lines.filter((line) => line.kind === 'add').length,
    removed: lines.filter((line) => line.kind === 'del').length,
  };
}

/** What became of each item of two lists, by their longest common subsequence. */
function longestCommon(old, now, most) {
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail += 1;
  const same = (value) => ({ kind: 'same', value });
  const a = old.slice(head, old.length - tail);
  const b = now.slice(head, now.length - tail);
  const out = old.slice(0, head).map(same);
  if (a.length > most || b.length > most) {
    out.push(...a.map((value) => ({ kind: 'del', value })), ...b.map((value) => ({ kind: 'add', value })));
  } else out.push(...table(a, b));
  return [...out, ...old.slice(old.length - tail).map(same)];
}

function table(a, b) {
  const width = b.length + 1;
  const best = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      best[i * width + j] = a[i] === b[j]
        ? best[(i + 1) * width + j + 1] + 1
        : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
    }
  }
  const out = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { out.push({ kind: 'same', value: a[i] }); i += 1; j += 1; }
    else if (i < a.length && (j >= b.length || best[(i + 1) * width + j] >= best[i * width + j + 1])) {
      out.push({ kind: 'del', value: a[i] });
      i += 1;
    } else { out.push({ kind: 'add', value: b[j] }); j += 1; }
  }
  return out;
}

/** The places where lines were removed and others added: `[first removed, first added, end]`. */
function* blocks(lines) {
  let i = 0;
  while (i < lines.length) {
    if (lines[i].kind !== 'del') { i += 1; continue; }
    let middle = i;
    while (middle < lines.length && lines[middle].kind === 'del') middle += 1;
    let end = middle;
    while (end < lines.length && lines[end].kind === 'add') end += 1;
    if (end > middle) yield [i, middle, end];
    i = Math.max(end, i + 1);
  }
}

/** A line that is taken away and put back as it was did not change: says so, with its new number. */
function tightened(lines) {
  const out = [];
  let done = 0;
  for (const [from, middle, end] of blocks(lines)) {
    out.push(...lines.slice(done, from));
    done = end;
    let [gone, come] = [from, middle];
    for (const { kind } of longestCommon(lines.slice(from, middle).map((line) => line.text), lines.slice(middle, end).map((line) => line.text), MOST_LINES)) {
      if (kind === 'same') { out.push({ ...lines[come], kind: 'same' }); gone += 1; come += 1; }
      else if (kind === 'del') { out.push(lines[gone]); gone += 1; }
      else { out.push(lines[come]); come += 1; }
    }
  }
  return [...out, ...lines.slice(done)];
}

/** Marks the words that changed: lines go together in pairs where as many came as went, or where they are alike. */
function withWords(lines) {
  for (const [from, middle, end] of blocks(lines)) {
    if (middle - from === end - middle) {
      for (let k = 0; k < middle - from; k += 1) compareWords(lines[from + k], lines[middle + k]);
    } else if (end - from <= MOST_PAIRED) {
      let next = middle;
      for (let k = from; k < middle; k += 1) {
        for (let to = next; to < end; to += 1) {
          if (!alike(lines[k].text, lines[to].text)) continue;
          compareWords(lines[k], lines[to]);
          next = to + 1;
          break;
        }
      }
    }
  }
  return lines;
}

/** Do two lines have most of their words in common? */
function alike(a, b) {
  const words = (text) => text.match(/\w+/g) || [];
  const [old, now] = [words(a), words(b)];
  const known = new Set(old);
  return now.filter((word) => known.has(word)).length * 3 >= Math.max(old.length, now.length, 1) * 2;
}

function compareWords(removed, added) {
  const words = (text) => text.match(/\w+|\s+|[^\w\s]/gu) || [];
  const old = words(removed.text);
  const now = words(added.text);
  if (old.length > MOST_WORDS || now.length > MOST_WORDS) return;
  const steps = longestCommon(old, now, MOST_WORDS);
  const same = steps.filter((step) => step.kind === 'same' && step.value.trim()).length;
  // Lines that have hardly anything in common are easier to read without marks.
  if (same * 3 < Math.min(old.length, now.length)) return;
  removed.parts = parts(steps, 'del');
  added.parts = parts(steps, 'add');
}

function parts(steps, kind) {
  const out = [];
  for (const step of steps) {
    if (step.kind !== 'same' && step.kind !== kind) continue;
    const changed = step.kind === kind;
    const last = out[out.length - 1];
    if (last && last.changed === changed) last.text += step.value;
    else out.push({ text: step.value, changed });
  }
  return out;
}

/** A diff as text, as other programs show it. */
export function diffText(lines) {
  const signs = { add: '+', del: '-', same: ' ' };
  return lines.map((line) => (line.kind === 'gap' ? '...' : signs[line.kind] + line.text)).join('\n');
}
