// Images for the next message: from a button, the clipboard or dropped on the page. Large ones are made smaller, for models take
// no more anyway.

import { el, fill, iconButton } from '../lib/dom.js';
import { toast } from './toasts.js';

const MOST_BYTES = 20 * 1024 * 1024;
const MOST_IMAGES = 20;
const KINDS = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];

export class Attachments {
  constructor(onchange) {
    this.onchange = onchange;
    this.images = [];
    this.node = el('div.thumbs.attached', { hidden: true, role: 'list', aria: { label: 'Images to send' } });
    this.field = el('input', { type: 'file', accept: KINDS.join(','), multiple: true, hidden: true, onchange: () => this.take(this.field.files) });
    this.button = iconButton('image', 'Attach images', () => this.field.click());
  }

  /** Listens to pasting in the field and dropping anywhere on the page. */
  listen(field, page) {
    field.addEventListener('paste', (event) => {
      const files = [...(event.clipboardData?.files || [])].filter((file) => file.type.startsWith('image/'));
      if (files.length) { event.preventDefault(); this.take(files); }
    });
    let depth = 0;
    const isFiles = (event) => [...(event.dataTransfer?.types || [])].includes('Files');
    const mark = (on) => page.classList.toggle('dropping', on);
    page.addEventListener('dragenter', (event) => { if (isFiles(event)) { depth += 1; mark(true); } });
    page.addEventListener('dragleave', (event) => { if (isFiles(event)) { depth -= 1; mark(depth > 0); } });
    page.addEventListener('dragover', (event) => { if (isFiles(event)) event.preventDefault(); });
    page.addEventListener('drop', (event) => {
      if (!isFiles(event)) return;
      event.preventDefault();
      depth = 0;
      mark(false);
      this.take(event.dataTransfer.files);
    });
  }

  async take(files) {
    for (const file of [...files]) {
      if (!KINDS.includes(file.type)) toast('warning', `${file.name || 'This file'} is no PNG, JPEG, GIF or WebP image.`);
      else if (file.size > MOST_BYTES) toast('warning', `${file.name || 'This image'} is larger than 20 MB.`);
      else await this.add(file);
    }
    this.field.value = '';
    this.show();
  }

  async add(file) {
    // Read first: a message that is sent meanwhile takes the images that there are, and leaves another list.
    const data = await base64(file).catch(() => null);
    if (data === null) toast('warning', `${file.name || 'This image'} cannot be read.`);
    else if (this.images.length >= MOST_IMAGES) toast('warning', `At most ${MOST_IMAGES} images.`);
    else this.images.push({ mimeType: file.type, data, name: file.name || 'image' });
  }

  show() {
    fill(this.node, this.images.map((image, index) => el('div.thumb', { role: 'listitem' },
      el('img', { src: `data:${image.mimeType};base64,${image.data}`, alt: image.name }),
      iconButton('close', `Remove ${image.name}`, () => { this.images.splice(index, 1); this.show(); }))));
    this.node.hidden = !this.images.length;
    this.onchange();
  }

  /** The images as a command takes them; none are left afterwards. */
  hand() {
    const images = this.images.map(({ data, mimeType }) => ({ type: 'image', data, mimeType }));
    this.images = [];
    this.show();
    return images;
  }

  /** Puts images back that could not be sent, before those that were attached since. */
  back(images) {
    this.images = [...images.map((image) => ({ ...image, name: 'image' })), ...this.images];
    this.show();
  }
}

function base64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).split(',')[1] || '');
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
