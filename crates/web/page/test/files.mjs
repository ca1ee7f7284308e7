// The page's files: everything that is asked for is there and comes from here. crates/web/build.rs puts all of them into the program.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const all = readdirSync(root, { recursive: true }).map((name) => String(name).replaceAll('\\', '/')).filter((name) => statSync(join(root, name)).isFile());
const served = all.filter((name) => !name.endsWith('.md') && !name.includes('test'));
const read = (name) => readFileSync(join(root, name), 'utf8');
const ours = served.filter((name) => /\.(js|css|html)$/.test(name) && !name.startsWith('vendor/'));

test('every import and every link leads to a file', () => {
  for (const name of ours) {
    for (const [, target] of read(name).matchAll(/(?:from |import\(?\s*|href=|src=|url\()["'](\.[^"']*)["']/g)) {
      if (target === './') continue;
      const path = relative(root, normalize(join(root, dirname(name), target)));
      assert.ok(existsSync(join(root, path)), `${name} asks for ${target}`);
    }
  }
});

test('the browser is told of all modules at once', () => {
  const told = [...read('index.html').matchAll(/modulepreload" href="\.\/([^"]+)"/g)].map((match) => match[1]).sort();
  const modules = served.filter((name) => name.endsWith('.js') && !['boot.js', 'sw.js', 'main.js'].includes(name) && !/highlight|xterm/.test(name)).sort();
  assert.deepEqual(told, modules);
});

test('nothing comes from elsewhere, and nothing is inline', () => {
  for (const name of ours) {
    const text = read(name).replaceAll('http://www.w3.org/2000/svg', '').replace('https?:', '');
    for (const [address] of text.matchAll(/["'(](?:https?:)?\/\/[a-z0-9][^"')]*/gi)) assert.fail(`${name} names ${address}`);
  }
  const html = read('index.html');
  assert.doesNotMatch(html, /\sstyle=|\son\w+=|<style|<script(?![^>]*src=)/);
});

test('markup is made in two files only', () => {
  for (const name of ours.filter((one) => one.endsWith('.js'))) {
    assert.doesNotMatch(read(name), /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/, name);
    if (!['view/markdown.js', 'view/code.js'].includes(name)) assert.doesNotMatch(read(name), /DOMPurify/, name);
  }
});

test('files are small and say what lives in them', () => {
  for (const name of ours.filter((one) => !one.endsWith('.html'))) {
    const lines = read(name).split('\n');
    assert.ok(lines.length <= 400, `${name} has ${lines.length} lines`);
    assert.match(lines[0], /^(\/\/|\/\*) /, `${name} has no first comment`);
  }
});

test('other people’s code is what was published', () => {
  const table = read('vendor/README.md');
  for (const name of served.filter((one) => one.startsWith('vendor/') && one.endsWith('.js'))) {
    const hash = createHash('sha256').update(readFileSync(join(root, name))).digest('hex');
    assert.ok(table.includes(`| ${name.slice(7)} |`) && table.includes(hash), name);
  }
});

test('the table of features names every browser test, and no other', () => {
  const folder = join(root, '../../../.ci/web/tests');
  const tests = readdirSync(folder).flatMap((name) => [...readFileSync(join(folder, name), 'utf8').matchAll(/^export async function (\w+)/gm)].map((match) => match[1]));
  const rows = read('README.md').split('\n').filter((line) => line.startsWith('|') && line.includes('`')).slice(7);
  const named = new Set(rows.flatMap((line) => [...line.split('|')[2].matchAll(/`([a-z]\w+)`/g)].map((match) => match[1])));
  assert.deepEqual([...named].sort(), [...new Set(tests)].sort());
});
