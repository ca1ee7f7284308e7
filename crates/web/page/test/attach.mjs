// Attached images: one that is still being read when a message is sent.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Attachments } from '../view/attach.js';

test('an image that is read while a message is sent stays for the next one', async () => {
  // A reader that ends when the test says so.
  globalThis.FileReader = class {
    readAsDataURL(file) {
      file.end = () => { this.result = `data:image/png;base64,${file.data}`; this.onload(); };
    }
  };
  const attached = Object.assign(Object.create(Attachments.prototype), { images: [], show() {} });
  const file = { type: 'image/png', size: 3, name: 'a.png', data: 'QUJD' };
  const adding = attached.add(file);
  assert.deepEqual(attached.hand(), []);
  file.end();
  await adding;
  assert.deepEqual(attached.hand().map((image) => image.data), ['QUJD']);
});
