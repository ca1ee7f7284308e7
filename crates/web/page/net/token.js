// The token and the agent's addresses. `boot.js` has moved the token from the page's address into this tab's storage. There is
// no way to name another host.

const KEY = 'pinion-token';

/** How long the reason of a refusal is waited for, in milliseconds. */
const REFUSAL_WAIT = 10000;

/** For browsers whose storage is off. */
let inMemory = globalThis.pinionToken || '';

/** @returns {string} */
export function token() {
  try {
    return sessionStorage.getItem(KEY) || '';
  } catch {
    return inMemory;
  }
}

export function remember(text) {
  inMemory = text;
  try {
    if (text) sessionStorage.setItem(KEY, text);
    else sessionStorage.removeItem(KEY);
  } catch { /* storage is off: this page's memory has it */ }
}

/** A path below the page's own address. */
function below(path) {
  return new URL(path, `${location.origin}${location.pathname.replace(/[^/]*$/, '')}`);
}

/** Where the socket is. */
export function socketAddress() {
  const url = below('ws');
  url.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
  if (token()) url.searchParams.set('token', token());
  return url.href;
}

/** Why the socket was refused: browsers do not say, so the same is asked by plain HTTP. */
export async function refusal() {
  const headers = { 'content-type': 'application/json' };
  if (token()) headers.authorization = `Bearer ${token()}`;
  // The agent answers this command also while its sessions wait for something.
  const answer = await fetch(below('api/command'), { method: 'POST', headers, body: '{"type":"list_open_sessions"}', cache: 'no-store',
    signal: AbortSignal.timeout(REFUSAL_WAIT) });
  if (answer.status === 401 || answer.status === 403) return 'denied';
  if (answer.status === 503 || answer.status === 429) return 'busy';
  return null;
}
