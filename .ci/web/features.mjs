// Browser tests of the page's features: node features.mjs BROWSER [NAME]. BROWSER is Chromium or Firefox. Each runs on a desktop and on a phone, against the scripted
// agent of agent.mjs; pictures go into the folder that PICTURES names.

import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Agent } from './agent.mjs';
import { open } from './browser.mjs';
import { serve } from './server.mjs';
import * as connection from './tests/connection.mjs';
import * as conversation from './tests/conversation.mjs';
import * as composing from './tests/composing.mjs';
import * as composer from './tests/composer.mjs';
import * as reading from './tests/reading.mjs';
import * as sessions from './tests/sessions.mjs';
import * as asking from './tests/asking.mjs';
import * as looks from './tests/looks.mjs';
import * as access from './tests/access.mjs';
import * as around from './tests/around.mjs';
import * as turns from './tests/turns.mjs';
import * as keyboard from './tests/keyboard.mjs';
import * as limits from './tests/limits.mjs';
import * as processes from './tests/processes.mjs';
import * as undo from './tests/undo.mjs';

const [program, only] = process.argv.slice(2);
const root = join(dirname(fileURLToPath(import.meta.url)), '../../crates/web/page');
const page = await open(program);
let failed = 0;
let passed = 0;

/** Runs one test against an agent of its own; throws what went wrong. */
async function run(name, test, size) {
  const agent = new Agent();
  const server = await serve(root, { onclient: (client) => agent.join(client), token: test.token });
  try {
    await page.device(size, test.theme || 'light');
    agent.prepare = test.prepare;
    test.prepare?.(agent);
    if (test.remembered) {
      await page.goto(server.url);
      await page.ready();
      await page.evaluate(`(() => { for (const [name, value] of ${JSON.stringify(Object.entries(test.remembered))}) localStorage.setItem('pinion-' + name, JSON.stringify(value)); })()`);
    }
    await page.goto(server.url + (test.query || ''));
    if (!test.isClosed) await page.ready();
    await test(page, agent, server);
    if (page.trouble.length) throw new Error(page.trouble.join('; '));
    const strange = page.requests.filter((url) => !url.startsWith(server.url) && !url.startsWith(server.url.replace('http', 'ws')) && !/^(data|blob|about|chrome)/.test(url));
    if (strange.length) throw new Error(`asked elsewhere: ${strange}`);
  } finally {
    server.close();
  }
}

for (const size of ['desktop', 'phone']) {
  for (const [name, test] of Object.entries({ ...connection, ...conversation, ...composing, ...composer, ...reading, ...sessions, ...asking, ...looks, ...turns, ...around, ...access, ...keyboard, ...limits, ...processes, ...undo })) {
    if (only && !only.split(',').includes(name)) continue;
    // What only Chromium can be asked for: its accessibility tree, the manifest it read, a dark system.
    if (page.engine === 'firefox' && (test.chromium || test.theme === 'dark')) continue;
    // A click between two paints of a busy machine can miss its target. Twice in a row it is a fault of the page.
    for (const isLast of [false, true]) {
      try {
        await run(name, test, size);
        passed += 1;
        break;
      } catch (error) {
        failed += isLast ? 1 : 0;
        console.log(`${isLast ? 'FAILED' : 'again'} ${name} (${size}): ${error.message}`);
        await page.picture(`failed-${name}`).catch(() => {});
      }
    }
  }
}
await page.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
