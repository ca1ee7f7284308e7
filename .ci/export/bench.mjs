// How fast a large page is: bench.mjs CHROMIUM PAGE.html. Prints figures and judges nothing.

import { DESKTOP, launch, open, until } from './browser.mjs';

const [program, page] = process.argv.slice(2);
const browser = await launch(program);
const ms = (value) => `${Math.round(value)} ms`;
try {
  await browser.send('Page.enable');
  await browser.send('Emulation.setDeviceMetricsOverride', DESKTOP);
  const times = [];
  for (let i = 0; i < 5; i += 1) times.push(await open(browser, page));
  times.sort((a, b) => a - b);
  console.log(`opens in: ${ms(times[0])} best, ${ms(times[2])} median of 5; ${await browser.evaluate("document.getElementById('count').textContent")}`);
  const frames = await browser.evaluate(`new Promise((done) => {
    const gaps = [];
    let last = performance.now();
    const step = (now) => {
      gaps.push(now - last);
      last = now;
      if (gaps.length === 300) done(gaps.sort((a, b) => b - a));
      else { scrollBy(0, 400); requestAnimationFrame(step); }
    };
    requestAnimationFrame(step);
  })`);
  console.log(`scrolls 120,000 px, frames: ${ms(frames[0])} worst, ${ms(frames[4])} 5th worst, ${ms(frames[150])} median`);
  const jump = await browser.evaluate('(() => { const begin = performance.now(); scrollTo(0, document.body.scrollHeight); return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begin)))); })()');
  await until(browser, "document.getElementById('transcript').textContent.includes('MARKER-END')");
  console.log(`jumps to the end: ${ms(jump)}`);
  const found = await browser.evaluate(`(async () => {
    const box = document.getElementById('search');
    const begin = performance.now();
    box.value = 'last-question day';
    box.dispatchEvent(new Event('input'));
    while (document.querySelectorAll('.row').length !== 1) await new Promise((done) => setTimeout(done, 5));
    return performance.now() - begin;
  })()`);
  console.log(`first search: ${ms(found)} (120 ms of it waiting for more keys)`);
  const { usedSize } = await browser.send('Runtime.getHeapUsage');
  console.log(`script memory: ${Math.round(usedSize / 1048576)} MB`);
} finally {
  await browser.close();
}
