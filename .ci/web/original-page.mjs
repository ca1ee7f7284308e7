// A page of the fork that the protocol comes from, built elsewhere and unmodified, on the agent itself:
//     node original-page.mjs CHROMIUM PROGRAM FOLDER [desktop|phone]
// It is served by the agent, and looked at on a desktop and on a phone; every frame between the two is held against the rules.

import { readFileSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { elsewhere, openTab, startAgent, world } from './original/kit.mjs';
import * as lit from './original/lit.mjs';
import * as react from './original/react.mjs';

const [chromium, program, folder, only] = process.argv.slice(2);
const dist = resolve(folder);
const code = readdirSync(join(dist, 'assets')).filter((name) => name.endsWith('.js')).map((name) => readFileSync(join(dist, 'assets', name), 'utf8')).join('\n');
const suite = code.includes('pi-web-app') ? lit : code.includes('Restore to editor') ? react : null;
if (!suite) { console.log(`skipped: ${folder} has no page that is known here`); process.exit(0); }

let [passed, failed] = [0, 0];
/** Runs checks one after the other; what goes wrong in one is told, and the next one has its turn. */
async function run(size, checks, what) {
  for (const [name, test] of Object.entries(checks)) {
    try {
      await test(what);
      const trouble = [...await what.tab.trouble(), ...await what.second?.trouble() || []];
      if (trouble.length) throw new Error([...new Set(trouble)].slice(0, 4).join('\n    '));
      passed += 1;
    } catch (error) {
      failed += 1;
      console.log(`FAILED ${name} (${size}): ${error.message}`);
      await what.tab.picture(`failed-${name.replaceAll(' ', '-')}`).catch(() => {});
    }
    for (const tab of [what.tab, what.second]) { tab?.page.trouble.splice(0); tab?.said.splice(0); }
  }
}

for (const size of ['desktop', 'phone']) {
  if (only && only !== size) continue;
  const place = await world();
  let agent = await startAgent(program, place, ['--serve-ui', dist]);
  const tab = await openTab(chromium, suite.HOST);
  await tab.device(size);
  const what = { tab, place, model: place.model, url: agent.url, program };
  await run(size, suite.core, what);
  const second = await openTab(chromium, suite.HOST);
  await second.device(size);
  await run(size, suite.strict, { ...what, second });
  await second.close();
  await tab.goto('about:blank');
  await agent.stop();
  tab.forget();
  place.put('extension.mjs', suite.EXTENSION);
  agent = await startAgent(program, place, ['--serve-ui', dist, ...suite.ARGS, '-e', 'extension.mjs']);
  await run(size, suite.extended, { ...what, url: agent.url });
  if (suite.crossed) {
    await tab.goto('about:blank');
    await agent.stop();
    tab.forget();
    const [named, other] = [await elsewhere(dist), await elsewhere(dist)];
    agent = await startAgent(program, place, ['--web-token', 'secret', '--web-allowed-origin', named.origin]);
    const socket = agent.url.replace('http', 'ws').replace('/?', '/ws?');
    await run(size, suite.crossed, { ...what, socket, origin: named.origin, stranger: other.origin });
    named.close();
    other.close();
  }
  await tab.close();
  if (await agent.stop() !== 0) { failed += 1; console.log(`FAILED (${size}): the agent did not end in order: ${agent.errors()}`); }
  place.close();
}
console.log(`the original page: ${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
