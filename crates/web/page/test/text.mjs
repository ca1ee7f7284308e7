// Terminal output, diffs and what is said for people.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse, strip } from '../lib/ansi.js';
import { diffText, makeDiff, readDiff, tally } from '../lib/diff.js';
import { age, cost, duration, imageAddress, oneLine, shortPath, tokens, visible } from '../lib/format.js';

const E = '\u001b';

test('colours become styles, and end', () => {
  assert.deepEqual(parse(`a${E}[1;31mb${E}[0mc`), [
    { text: 'a', style: null }, { text: 'b', style: { bold: true, fg: 1 } }, { text: 'c', style: null }]);
  assert.deepEqual(parse(`${E}[92mx${E}[39my`)[0].style, { fg: 10 });
  assert.deepEqual(parse(`${E}[38;5;196mx`)[0].style, { fg: '#ff0000' });
  assert.deepEqual(parse(`${E}[48;2;1;2;300mx`)[0].style, { bg: '#0102ff' });
});

test('what is no colour is left out', () => {
  assert.equal(strip(`${E}]0;title\u0007a${E}[2Kb${E}[?25lc${E}(Bd\u0008e`), 'abcde');
  assert.equal(strip(`${E}]8;;https://example.org${E}\\link${E}]8;;${E}\\`), 'link');
});

test('a carriage return begins the line anew', () => {
  assert.equal(strip('10 %\r50 %\r100 %\r\nnext'), '100 %\nnext');
});

test('a style that is cut off swallows nothing but itself', () => {
  assert.equal(strip(`abc${E}[3`), 'abc3'.slice(0, 3) + strip(`${E}[3`));
});

test('the edit tool’s diff is read', () => {
  const lines = readDiff(' 1 a\n-2 old word here\n+2 new word here\n    ...\n 9 b');
  assert.deepEqual(lines.map((line) => line.kind), ['same', 'del', 'add', 'gap', 'same']);
  assert.deepEqual(lines[1].parts, [{ text: 'old', changed: true }, { text: ' word here', changed: false }]);
  assert.deepEqual(lines[2].parts, [{ text: 'new', changed: true }, { text: ' word here', changed: false }]);
  assert.deepEqual(tally(lines), { added: 1, removed: 1 });
  assert.equal(lines[0].number, '1');
});

test('a line that comes back as it was did not change', () => {
  const lines = readDiff(' 1 a\n-2 same\n-3 let b = old(1, 2);\n+2 same\n+3 fresh line here\n+4 let b = new(1, 2);\n 5 c');
  assert.deepEqual(lines.map((line) => `${line.kind} ${line.number}`), ['same 1', 'same 2', 'del 3', 'add 3', 'add 4', 'same 5']);
  assert.deepEqual(lines[2].parts.filter((part) => part.changed).map((part) => part.text), ['old']);
  assert.equal(lines[3].parts, undefined, 'a line of its own has no marks');
  assert.deepEqual(lines[4].parts.filter((part) => part.changed).map((part) => part.text), ['new']);
  assert.equal(diffText(lines).split('\n')[2], '-let b = old(1, 2);');
});

test('lines that begin with blanks keep them', () => {
  assert.equal(readDiff('+12     indented')[0].text, '    indented');
});

test('a diff is made of two texts', () => {
  const lines = makeDiff('a\nb\nc', 'a\nx\nc\nd');
  assert.deepEqual(lines.map((line) => `${line.kind} ${line.text}`), ['same a', 'del b', 'add x', 'same c', 'add d']);
});

test('many changed lines are shown as one change', () => {
  const long = Array.from({ length: 20000 }, (_, i) => `line ${i % 7} ${i}`).join('\n');
  // The table of a comparison would have 400 million cells. Lines 3 to 19995 count as changed, also those that stayed.
  const lines = makeDiff(long, long.replace(/line 3/g, 'other'));
  assert.deepEqual(tally(lines), { added: 19993, removed: 19993 });
});

test('figures', () => {
  assert.deepEqual([tokens(null), tokens(950), tokens(1234), tokens(41200), tokens(1.3e6)], ['–', '950', '1.2k', '41k', '1.3M']);
  assert.deepEqual([cost(0), cost(0.001), cost(0.184), cost(312.2)], ['$0', '<$0.01', '$0.18', '$312']);
  assert.deepEqual([duration(400), duration(12400), duration(185000), duration(3700000)], ['0.4 s', '12 s', '3 min 5 s', '1 h 1 min']);
  assert.equal(age(Date.now() - 5 * 60000, Date.now()), '5 min');
  assert.equal(shortPath('/home/ada/x'), '~/x');
  assert.equal(shortPath('/homely/ada'), '/homely/ada');
  assert.equal(oneLine('a\n b', 10), 'a b');
});

test('only pictures that a browser should decode become addresses', () => {
  assert.equal(imageAddress({ mimeType: 'image/png', data: 'AAAA' }), 'data:image/png;base64,AAAA');
  for (const mimeType of ['image/svg+xml', 'text/html', 'image/png;x="', undefined]) assert.equal(imageAddress({ mimeType, data: 'AAAA' }), null);
  assert.equal(imageAddress({ mimeType: 'image/png', data: '"onerror=1' }), null);
});

test('hidden characters can be seen, and emoji stay whole', () => {
  assert.equal(visible('a\u202eb\u00ad\u{e0041}\u061c\u3164\u001b[2K\ufffd'), 'a\\u{202e}b\\u{ad}\\u{e0041}\\u{61c}\\u{3164}\\u{1b}[2K\\u{fffd}');
  assert.equal(visible('a\u200db\ufe0f'), 'a\\u{200d}b\\u{fe0f}');
  for (const text of ['line\n\tnext', 'größer, наверх, 日本語, हिन्दी, e\u0301', '👩\u200d💻 ❤\ufe0f 👍🏽', 'non\u00a0oui']) assert.equal(visible(text), text);
  assert.equal(visible('non\u00a0oui\u3000 x', { blanks: true }), 'non\\u{a0}oui\\u{3000} x');
  assert.equal(visible(null), '');
});
