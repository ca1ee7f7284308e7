// The service worker: keeps the page's own files, so that an installed page opens and says what is wrong when the agent does not
// run. While the agent answers only the page's address goes through here, for all else would come later; the page says which
// files it has loaded, once it has time. Nothing that the agent says is kept, and no address with a query.

const SHELL = 'pinion-shell-2';
const KINDS = new Set(['document', 'script', 'style', 'image', 'manifest']);
/** Did the page that was opened last come from here? */
let isAway = false;

/** A page's address may hold a token: it is kept under its bare name. */
const PAGE = new URL('./', location.href).href;

addEventListener('install', () => skipWaiting());
addEventListener('activate', (event) => event.waitUntil((async () => {
  for (const name of await caches.keys()) if (name !== SHELL) await caches.delete(name);
  await clients.claim();
})()));

addEventListener('fetch', (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== 'GET' || url.origin !== location.origin || !KINDS.has(request.destination)) return;
  if (request.destination === 'document') event.respondWith(page(request));
  else if (isAway) event.respondWith(file(request, url.origin + url.pathname));
});

async function page(request) {
  try {
    const answer = await fetch(request);
    isAway = false;
    return answer;
  } catch (error) {
    const kept = await (await caches.open(SHELL)).match(PAGE);
    if (!kept) throw error;
    isAway = true;
    return kept;
  }
}

async function file(request, name) {
  return await (await caches.open(SHELL)).match(name) || fetch(request);
}

addEventListener('message', (event) => {
  const { keep } = event.data || {};
  if (!Array.isArray(keep)) return;
  event.waitUntil((async () => {
    const shell = await caches.open(SHELL);
    // The page itself last: without all of its files it would be of no use.
    for (const address of [...keep, PAGE]) {
      const url = new URL(address, PAGE);
      if (url.origin !== location.origin || !url.href.startsWith(PAGE) || /\/(ws|api|health|ready)(\/|$)/.test(url.pathname)) continue;
      const answer = await fetch(url.origin + url.pathname).catch(() => null);
      if (answer?.ok && answer.type === 'basic') await shell.put(url.origin + url.pathname, answer);
    }
  })());
});
