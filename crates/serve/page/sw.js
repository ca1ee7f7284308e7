// The service worker: keeps the page's own files, so that an installed page opens and says what is wrong when the agent does not
// run. The network always comes first; nothing that the agent says is kept, and no address with a query.

const SHELL = 'pinion-shell-1';
const KINDS = new Set(['document', 'script', 'style', 'image', 'manifest']);

addEventListener('install', () => skipWaiting());
addEventListener('activate', (event) => event.waitUntil((async () => {
  for (const name of await caches.keys()) if (name !== SHELL) await caches.delete(name);
  await clients.claim();
})()));

addEventListener('fetch', (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== 'GET' || url.origin !== location.origin || !KINDS.has(request.destination)) return;
  // A page's address may hold a token: it is kept under its bare name.
  const name = request.destination === 'document' ? new URL('./', location.href).href : url.origin + url.pathname;
  event.respondWith((async () => {
    const shell = await caches.open(SHELL);
    try {
      const answer = await fetch(request);
      if (answer.ok && answer.type === 'basic') event.waitUntil(shell.put(name, answer.clone()));
      return answer;
    } catch (error) {
      const kept = await shell.match(name);
      if (kept) return kept;
      throw error;
    }
  })());
});
