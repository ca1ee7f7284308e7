// Are the checks of an original page able to fail? node original-faults.mjs CHROMIUM PROGRAM FOLDER [NAME]: the agent's frames are spoilt
// one fault at a time, and some check must notice each; without a fault, all of them pass.

import { resolve } from 'node:path';
import { openTab, startAgent, world } from './original/kit.mjs';
import * as lit from './original/lit.mjs';
import * as react from './original/react.mjs';
import { FAULTS, tamper } from './original/tamper.mjs';
import { readFileSync, readdirSync } from 'node:fs';

const [chromium, program, folder, only] = process.argv.slice(2);
const dist = resolve(folder);
const isFirst = readdirSync(`${dist}/assets`).some((name) => name.endsWith('.js') && readFileSync(`${dist}/assets/${name}`, 'utf8').includes('pi-web-app'));
const suite = isFirst ? lit : react;

/** The first check that fails, and why. */
async function first(tab, what) {
  for (const [name, test] of Object.entries(suite.core)) {
    try {
      await test(what);
      const trouble = await tab.trouble();
      if (trouble.length) return `${name}: ${trouble[0]}`;
    } catch (error) {
      return `${name}: ${error.message}`;
    }
  }
  return null;
}

let missed = 0;
for (const fault of Object.keys(FAULTS)) {
  if (suite.BLIND.includes(fault) || (only && only !== fault)) continue;
  const place = await world();
  const agent = await startAgent(program, place, ['--serve-ui', dist]);
  const spoilt = await tamper(agent.url, fault);
  const tab = await openTab(chromium, suite.HOST, fault === 'nothing' ? 15000 : 3000);
  await tab.device('desktop');
  const found = await first(tab, { tab, place, model: place.model, url: spoilt.url });
  const isRight = (found === null) === (fault === 'nothing');
  if (!isRight) missed += 1;
  console.log(`${isRight ? 'ok' : 'MISSED'}: ${fault}${found ? `: ${found.slice(0, 160)}` : ''}`);
  await tab.close();
  spoilt.close();
  await agent.stop();
  place.close();
}
process.exit(missed ? 1 : 0);
