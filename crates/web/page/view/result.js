// Results that fit a JSON Schema: a dialog that asks for one, and what the agent returned.

import { codeBlock } from './code.js';
import { openDialog } from './dialogs.js';
import { el } from '../lib/dom.js';
import { recall, keep } from '../lib/store.js';

const EXAMPLE = '{\n  "type": "object",\n  "properties": { "answer": { "type": "string" } },\n  "required": ["answer"]\n}';

/** The result of a run, or why there is none. */
export class ResultView {
  constructor(item) {
    const { value, error } = item.message;
    this.node = el('article.item.result', { data: { key: item.key }, aria: { label: 'Result' } }, el('h3', { text: error ? 'No result' : 'Result' }),
      error ? el('p.remark.bad', { text: error }) : codeBlock(JSON.stringify(value, null, 2), 'json'));
  }

  update() {}
}

/** Asks for a message and a schema. `send` gets both; it throws what the agent refuses. @param {(message: string, schema: any) => Promise<unknown>} send */
export function askForResult(send, message = '') {
  const words = el('textarea', { rows: 3, value: message, aria: { label: 'Message' }, placeholder: 'What should the result contain?' });
  const schema = el('textarea', { rows: 9, value: recall('schema', '') || EXAMPLE, spellcheck: false, aria: { label: 'JSON Schema' } });
  const trouble = el('p.folders-trouble', { role: 'alert' });
  openDialog('Ask for a result', (end) => {
    const ok = async () => {
      trouble.textContent = '';
      let parsed;
      try {
        parsed = JSON.parse(schema.value);
      } catch (error) { trouble.textContent = `The schema is not JSON: ${error.message}`; schema.focus(); return; }
      if (!words.value.trim()) { trouble.textContent = 'The message is empty.'; words.focus(); return; }
      try {
        await send(words.value, parsed);
        keep('schema', schema.value === EXAMPLE ? null : schema.value);
        end();
      } catch (error) { trouble.textContent = error.message; }
    };
    return [el('p.dialog-message', { text: 'The run ends with a value that fits this JSON Schema, or says why it has none.' }), words, schema, trouble,
      el('div.dialog-foot', {}, el('button', { type: 'button', text: 'Cancel', onclick: end }), el('button.primary', { type: 'button', text: 'Send', onclick: ok }))];
  }, { wide: true });
  words.focus();
}
