// Terminals of background processes: output, input, size, killing.

import { check, same, soon, waitFor } from '../browser.mjs';
import { print } from '../control.mjs';
import { command, press, tabTo } from '../dialog.mjs';

const SCREEN = "document.querySelector('.xterm-rows')?.innerText.replaceAll('\\u00a0', ' ') || ''";
const process = (processId, fields = {}) => ({ processId, command: 'npm run dev', pid: 4711, terminal: true, status: 'running', outputBytes: 0, startedAt: 1, ...fields });
const written = (agent) => agent.asked('write_process').map((one) => one.data).join('');

export async function terminalShowsOutputAndTakesInput(page, agent) {
  agent.control.output.p1 = '\u001b[32mlistening\u001b[0m on 3000\r\n';
  const p1 = process('p1');
  agent.control.processes.push(p1);
  agent.say({ type: 'process_start', process: p1 });
  await page.until("document.querySelector('#processes')?.innerText.trim() === '1'");
  await page.click('#processes');
  await page.until(`(${SCREEN}).includes('listening on 3000')`);
  check('colours', await page.evaluate("[...document.querySelectorAll('.xterm-rows span')].some((one) => one.innerText.startsWith('listening') && getComputedStyle(one).color !== getComputedStyle(document.querySelector('.xterm-rows')).color)"));
  // The program gets the size of the terminal.
  await waitFor('a size that the cells fit', async () => agent.asked('resize_process').at(-1)?.rows === await page.evaluate("document.querySelectorAll('.xterm-rows > div').length"));
  const size = agent.asked('resize_process').at(-1);
  check('its size', size.processId === 'p1' && size.columns > 20 && size.rows > 5);
  agent.control.onwrite = ({ data }) => print(agent, 'p1', data.replace('\r', '\r\n'));
  await page.type('rs');
  await page.key('Enter');
  await page.until(`/^rs$/m.test((${SCREEN}).replace(/ +$/gm, ''))`);
  await soon(() => same('written', written(agent), 'rs\r'));
  // Output that comes later, and colours beyond the palette, which are inline styles.
  print(agent, 'p1', '\u001b[38;2;200;30;30mred\u001b[0m line\r\n');
  await page.until(`(${SCREEN}).includes('red line')`);
  await page.picture('terminal');
  await press(page, 'Kill');
  await page.until("document.querySelector('.process-state').innerText === 'killed'");
  await soon(() => same('killed', agent.asked('kill_process').map((one) => one.processId), ['p1']));
  same('none runs', (await page.text('#processes')).trim(), '0');
  await press(page, 'Close');
  await page.until("!document.querySelector('dialog[open]')");
}

export async function terminalFollowsWindowSize(page, agent) {
  agent.control.processes.push(process('p1'));
  await command(page, '/processes');
  await page.until("document.querySelector('.xterm-rows')");
  await waitFor('a size', () => agent.asked('resize_process').length > 0);
  const before = agent.asked('resize_process').at(-1);
  await page.evaluate("document.querySelector('.process-screen').style.height = '200px'");
  await waitFor('fewer lines', () => agent.asked('resize_process').at(-1).rows < before.rows);
}

export async function processWithoutTerminalTakesLines(page, agent) {
  agent.control.output.p2 = 'one\ntwo\n';
  agent.control.processes.push(process('p1', { status: 'exited', exitCode: 3, endedAt: 9 }), process('p2', { terminal: false, command: 'cat' }));
  await command(page, '/processes');
  await page.until(`/^one *\\n+two/m.test(${SCREEN})`);
  same('the newest that runs', await page.evaluate("document.querySelector('[role=tab][aria-selected=true] b').innerText"), 'p2');
  await page.type('hello');
  await page.key('Enter');
  await waitFor('input', () => written(agent) !== '');
  await soon(() => same('a line', written(agent), 'hello\n'));
  same('no size is sent', agent.asked('resize_process').length, 0);
  await page.click('.process-tab');
  await page.until("document.querySelector('.process-state').innerText === 'exit 3'");
  check('nothing to kill', !await page.evaluate("document.querySelector('.process-head button').checkVisibility()"));
}

export async function keysUseTerminal(page, agent) {
  agent.control.processes.push(process('p1'), process('p2', { command: 'htop' }));
  await command(page, '/processes');
  await page.until("document.activeElement?.classList.contains('xterm-helper-textarea')");
  await page.key('Escape');
  await page.key('Tab');
  await waitFor('two keys', () => written(agent).length >= 2);
  await soon(() => same('Escape and Tab belong to the program', written(agent), '\u001b\t'));
  check('still open', await page.evaluate("Boolean(document.querySelector('dialog[open]'))"));
  await page.key('Escape', 8);
  same('Shift+Escape leaves it', await page.evaluate('document.activeElement.innerText'), 'Kill');
  await page.key('Enter');
  await page.until("document.querySelector('.process-state').innerText === 'killed'");
  await page.focus('[role=tab][aria-selected=true]');
  await page.key('ArrowLeft');
  await page.until("document.querySelector('[role=tab][aria-selected=true] b').innerText === 'p1'");
  await page.key('Escape');
  await page.until("!document.querySelector('dialog[open]')");
}
keysUseTerminal.chromium = true;

export async function terminalFollowsEvents(page, agent) {
  print(agent, 'p1', 'one\r\n');
  agent.control.processes.push(process('p1'));
  await command(page, '/processes');
  await page.until(`(${SCREEN}).includes('one')`);
  const reads = () => agent.asked('read_process').length;
  // Without news nothing is asked.
  const before = reads();
  await page.wait(1200);
  same('no polling', reads(), before);
  await soon(() => check('the event is asked for', agent.asked('read_process').every((one) => one.notify)));
  // More than one read brings comes in several reads.
  print(agent, 'p1', `${'x'.repeat(70)}\r\n`.repeat(4000));
  print(agent, 'p1', 'end\r\n');
  await page.until(`(${SCREEN}).includes('end')`);
  same('each byte once', agent.asked('read_process').map((one) => one.fromByte), [0, 5, 131077, 262149].concat(Array(reads() - 4).fill(Buffer.byteLength(agent.control.output.p1))));
  // The last output comes with the end.
  agent.control.output.p1 += 'bye\r\n';
  Object.assign(agent.control.processes[0], { status: 'exited', exitCode: 0, endedAt: 5 });
  agent.say({ type: 'process_end', process: agent.control.processes[0] });
  await page.until(`(${SCREEN}).includes('bye') && document.querySelector('.process-state').innerText === 'exit 0'`);
}

export async function terminalGoesOnAfterLostConnection(page, agent, server) {
  print(agent, 'p1', 'one\r\n');
  agent.control.processes.push(process('p1'));
  await command(page, '/processes');
  await page.until(`(${SCREEN}).includes('one')`);
  // What is printed meanwhile has no event that this page gets.
  server.cut();
  agent.keepLog = false;
  agent.control.output.p1 += 'two\r\n';
  await page.until(`/one *\\n+two/.test(${SCREEN})`);
}

export async function wakeupsAreSwitched(page, agent) {
  agent.control.processes.push(process('p1', { terminal: false, command: 'make' }));
  await command(page, '/processes');
  const box = "document.querySelector('dialog input[type=checkbox]')";
  await page.until(box);
  same('as the session has it', await page.evaluate(`${box}.checked`), false);
  await page.click('dialog .check-row');
  await waitFor('the switch', () => agent.control.wakeups);
  await soon(() => same('set', agent.asked('set_process_wakeups').map((one) => one.enabled), [true]));
  // A refusal leaves the switch as it was.
  agent.control.refusal = 'no';
  await page.click('dialog .check-row');
  await page.until("[...document.querySelectorAll('.toast')].some((one) => one.innerText.includes('no'))");
  same('still on', await page.evaluate(`${box}.checked`), true);
}

export async function keysSwitchWakeups(page, agent) {
  agent.control.wakeups = true;
  agent.control.processes.push(process('p1', { status: 'exited', exitCode: 0 }));
  await command(page, '/processes');
  await page.until("document.querySelector('dialog input[type=checkbox]')?.checked && document.activeElement?.classList.contains('xterm-helper-textarea')");
  for (let i = 0; i < 20 && !await page.evaluate("document.activeElement?.type === 'checkbox'"); i += 1) await page.key('Tab');
  await page.key(' ');
  await waitFor('the switch', () => !agent.control.wakeups);
  await soon(() => same('set', agent.asked('set_process_wakeups').map((one) => one.enabled), [false]));
  await tabTo(page, 'Close');
  await page.key('Enter');
  await page.until("!document.querySelector('dialog[open]')");
}
