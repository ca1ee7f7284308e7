// Takes pictures of an exported page, to be looked at: shoot.mjs CHROMIUM PAGE.html FOLDER. Desktop and phone, light and
// dark, top and somewhere further down.

import { writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { launch, open } from './browser.mjs';

const [program, page, folder] = process.argv.slice(2);
const browser = await launch(program);
try {
  await browser.send('Page.enable');
  for (const [device, width, height] of [['desktop', 1360, 900], ['phone', 390, 844]]) {
    for (const theme of ['light', 'dark']) {
      await browser.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: device === 'phone' });
      await browser.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: theme }] });
      await browser.send('Emulation.setTouchEmulationEnabled', { enabled: device === 'phone' });
      await open(browser, page);
      const shoot = async (name) => {
        await browser.evaluate('new Promise((done) => setTimeout(done, 300))');
        const { data } = await browser.send('Page.captureScreenshot', { format: 'png' });
        writeFileSync(join(folder, `${basename(page, '.html')}-${device}-${theme}-${name}.png`), Buffer.from(data, 'base64'));
      };
      await shoot('1');
      await browser.evaluate(`scrollBy(0, ${height - 120})`);
      await shoot('2');
      await browser.evaluate(`scrollBy(0, ${height - 120})`);
      await shoot('3');
      await browser.evaluate('scrollTo(0, document.body.scrollHeight)');
      await shoot('end');
      if (device === 'phone') {
        await browser.evaluate("document.getElementById('menu').click()");
        await shoot('menu');
      }
    }
  }
} finally {
  await browser.close();
}
