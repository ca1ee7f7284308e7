// What a snapshot does not contain: the limit that holds the session, its background processes, the ends of shell commands of other
// pages. And words for limits. Touches no element.

/** The limits in the order in which they are shown: member of the command, member of the use, and their names. */
export const LIMITS = [
  { member: 'maxTurns', kind: 'turns', name: 'Turns', unit: 'turns' },
  { member: 'maxToolCalls', kind: 'toolCalls', name: 'Tool calls', unit: 'tool calls' },
  { member: 'maxTokens', kind: 'tokens', name: 'Tokens', unit: 'tokens' },
  { member: 'maxCost', kind: 'cost', name: 'Cost in US dollars', unit: 'US dollars' },
  { member: 'maxSeconds', kind: 'seconds', name: 'Seconds', unit: 'seconds' },
  { member: 'maxRepeats', kind: 'repeats', name: 'Repeated calls', unit: 'turns with the same calls and results' },
];

/** A limit in words: `40 turns`. */
export function limitWords({ kind, value }) {
  const known = LIMITS.find((one) => one.kind === kind);
  return `${value} ${known ? known.unit : String(kind)}`;
}

/** Asks for both. An agent that does not know these commands has neither. */
export async function loadControl(app, session) {
  const quietly = (command) => app.ask(command, session.handle).catch(() => null);
  const [limits, list] = await Promise.all([quietly({ type: 'get_limits' }), quietly({ type: 'list_processes' })]);
  const changes = session.changes();
  if (limits && !session.running) session.limit = limits.reached || null;
  // An event that came meanwhile knows better.
  for (const process of list?.processes || []) if (!session.processes.has(process.processId)) session.processes.set(process.processId, process);
  changes.parts.add('limit').add('processes');
  app.emit('change', { session, changes });
}

/** A shell command of another page: nobody says when it is over, but then the conversation is longer. */
export function watchShell(app, session, id) {
  const item = session.shells.get(id);
  if (!item || !item.pending || item.message.command) return;
  clearTimeout(app.shellTimer);
  app.shellTimer = setTimeout(async () => {
    const state = await app.ask({ type: 'get_state' }, session.handle).catch(() => null);
    if (!item.pending || !session.byKey.has(item.key)) return;
    if (state && state.messageCount > session.messageCount) await app.load(session.handle).catch(() => {});
    else watchShell(app, session, id);
  }, 1500);
}
