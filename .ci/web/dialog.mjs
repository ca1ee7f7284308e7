// What browser tests of the page's dialogs share: opening one with a command, its buttons by their text.

/** Types a command of the page and sends it. The dialog before it has closed by then. */
export async function command(page, text) {
  await page.until("!document.querySelector('dialog[open]')");
  await page.focus('#field');
  await page.type(text);
  // A phone's Enter is a new line; with Control it sends there, too.
  await page.key('Enter', page.size === 'phone' ? 2 : 0);
  await page.until("document.querySelector('dialog[open]')");
}
export const button = (text) => `[...document.querySelectorAll('dialog button')].find((one) => one.innerText === ${JSON.stringify(text)})`;
/** Clicks a button of the dialog by its text. */
export async function press(page, text) {
  await page.until(button(text));
  await page.evaluate(`document.querySelectorAll('[data-test]').forEach((one) => one.removeAttribute('data-test')), ${button(text)}.setAttribute('data-test', '')`);
  await page.click('[data-test]');
}
/** Moves the focus with Tab until it is on a button with this text. */
export async function tabTo(page, text, most = 40) {
  for (let i = 0; i < most; i += 1) {
    if (await page.evaluate(`document.activeElement?.innerText === ${JSON.stringify(text)}`)) return;
    await page.key('Tab');
  }
  throw new Error(`Tab does not reach ${text}`);
}
