// Questions of the agent and of extensions, and what they show.

import { check, same, soon } from '../browser.mjs';

const ask = (agent, fields) => agent.say({ type: 'extension_ui_request', ...fields });

export async function choosing(page, agent) {
  ask(agent, { id: 'q1', method: 'select', title: 'Run this command?\n\nrm -rf target', options: ['Yes', 'Yes, and do not ask again', 'No'], timeout: 60000 });
  await page.until("document.querySelectorAll('dialog .choice').length === 3");
  check('a clock', /in \d+ s/.test(await page.text('.dialog-clock')));
  await page.picture('question-select');
  check('focus is inside', await page.evaluate("Boolean(document.activeElement.closest('dialog'))"));
  await page.key('2');
  await page.until("!document.querySelector('dialog')");
  await soon(() => same('the answer', agent.answers[0].value, 'Yes, and do not ask again'));
}

export async function denying(page, agent) {
  const options = ['Allow once', 'Allow for this session', 'Deny'];
  ask(agent, { id: 'q1', method: 'select', title: 'Allow write?\n/tmp/a.sh\nCreates the file: 1 line, 9 bytes\nrm -rf \\u{202e}x', options, timeout: 60000 });
  await page.until("document.querySelectorAll('dialog .choice').length === 3");
  check('it says what happens without an answer', /^Denied automatically in \d+ s$/.test(await page.text('.dialog-clock')));
  same('one way to say no', await page.evaluate("[...document.querySelectorAll('dialog button')].map((one) => one.querySelector('span').innerText).join()"), options.join());
  check('the call', (await page.text('.dialog-about')).endsWith('rm -rf \\u{202e}x'));
  await page.picture('question-permission');
  await page.click('dialog input');
  await page.type('3 is wrong');
  await page.key('Enter');
  await page.until("!document.querySelector('dialog')");
  await soon(() => same('the answer', [agent.answers[0].value, agent.answers[0].reason], ['Deny', '3 is wrong']));
  ask(agent, { id: 'q2', method: 'select', title: 'Allow bash?\necho hi', options });
  await page.until("document.querySelectorAll('dialog .choice').length === 3");
  await page.key('Escape');
  await page.until("!document.querySelector('dialog')");
  await soon(() => same('Escape denies', [agent.answers[1].value, agent.answers[1].reason], ['Deny', undefined]));
}

export async function confirming(page, agent) {
  ask(agent, { id: 'q1', method: 'confirm', title: 'Delete?', message: 'All of it will be gone.' });
  ask(agent, { id: 'q2', method: 'confirm', title: 'Really?' });
  await page.until("document.querySelector('dialog')?.innerText.includes('1 more question')");
  await page.picture('question-confirm');
  await page.click('dialog .primary');
  await page.until("document.querySelector('dialog h2')?.innerText === 'Really?'");
  await page.key('Escape');
  await page.until("!document.querySelector('dialog')");
  await soon(() => same('answers', agent.answers.map((one) => [one.id, one.confirmed ?? one.cancelled]), [['q1', true], ['q2', true]]));
  await soon(() => same('the second was cancelled', agent.answers[1].cancelled, true));
}

export async function typingAnAnswer(page, agent) {
  ask(agent, { id: 'q1', method: 'input', title: 'Which branch?', placeholder: 'main' });
  await page.until("document.querySelector('dialog input')");
  await page.type('develop');
  await page.key('Enter');
  await page.until("!document.querySelector('dialog')");
  ask(agent, { id: 'q2', method: 'editor', title: 'Commit message', prefill: 'Fix it' });
  await page.until("document.querySelector('dialog textarea')?.value === 'Fix it'");
  await page.picture('question-editor');
  await page.click('dialog .primary');
  await page.until("!document.querySelector('dialog')");
  await soon(() => same('answers', agent.answers.map((one) => one.value), ['develop', 'Fix it']));
}

export async function answeredElsewhere(page, agent) {
  ask(agent, { id: 'q1', method: 'input', title: 'Anybody?' });
  await page.until("document.querySelector('dialog')");
  ask(agent, { id: 'x', method: 'cancel', targetId: 'q1' });
  await page.until("!document.querySelector('dialog')");
  same('answers', agent.answers.length, 0);
}

export async function waitingQuestionsAreShownAtOnce(page) {
  await page.until("document.querySelector('dialog h2')?.innerText === 'Since before'");
}
waitingQuestionsAreShownAtOnce.prepare = (agent) => ask(agent, { id: 'q0', method: 'confirm', title: 'Since before' });

export async function whatExtensionsShow(page, agent) {
  ask(agent, { id: '1', method: 'notify', message: 'Built in 3 s', notifyType: 'info' });
  ask(agent, { id: '2', method: 'notify', message: 'Disk is nearly full', notifyType: 'warning' });
  ask(agent, { id: '3', method: 'setStatus', statusKey: 'git', statusText: 'main, 3 changed' });
  ask(agent, { id: '4', method: 'setWidget', widgetKey: 'w', widgetLines: ['Build  ok', 'Tests  12 of 40'] });
  ask(agent, { id: '5', method: 'setTitle', title: 'Rack – building' });
  ask(agent, { id: '6', method: 'set_editor_text', text: 'Suggested words' });
  agent.say({ type: 'extension_error', extensionPath: 'ext/git.ts', event: 'turn_end', error: 'no repository' });
  await page.until("document.querySelectorAll('.toast').length === 3");
  await page.until("document.querySelector('.statuses').innerText.includes('3 changed') && document.querySelector('.widget').innerText.includes('Tests')");
  check('the title', (await page.evaluate('document.title')).includes('Rack – building'));
  same('the field', await page.evaluate("document.querySelector('#field').value"), 'Suggested words');
  await page.picture('extensions');
  await page.evaluate('localStorage.clear()');
}
