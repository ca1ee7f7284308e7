// Telling somebody who looks elsewhere: a mark in the title, and, where the user asked for it, the system's notifications. The
// browser is asked for leave only from the click that turns them on.

import { keep, recall } from '../lib/store.js';
import { toast } from './toasts.js';

const can = () => 'Notification' in globalThis && isSecureContext;

/** Can it be turned on here at all? */
export function canNotify() {
  return can() && Notification.permission !== 'denied';
}

/** Is it on? */
export function notifies() {
  return can() && Notification.permission === 'granted' && recall('notify', false) === true;
}

/** Turns it on or off; to be called from a click. */
export async function setNotifies(on) {
  if (!on) { keep('notify', null); return; }
  const answer = Notification.permission === 'default' ? await Notification.requestPermission() : Notification.permission;
  if (answer === 'granted') {
    keep('notify', true);
    toast('info', 'You will be told when a run is over or asks something while you look elsewhere.');
  } else toast('warning', 'The browser does not allow notifications of this page.');
}

/** Says something, if nobody looks at the page. */
export function tell(title, body, onclick = null) {
  if (!document.hidden || !notifies()) return;
  try {
    // Browsers know `renotify`; the declarations of the DOM do not.
    const options = { body, tag: 'pinion', renotify: true, icon: './icon-192.png' };
    const note = new Notification(title, options);
    note.onclick = () => { globalThis.focus(); onclick?.(); note.close(); };
  } catch { /* phones only take them from a service worker */
    navigator.serviceWorker?.ready.then((worker) => worker.showNotification(title, { body, tag: 'pinion', icon: './icon-192.png' })).catch(() => {});
  }
}
