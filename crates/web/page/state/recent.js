// Which session comes next when none is named: the one that was used last, or the one that was changed last.

/**
 * The handle of the session that was used last, if the agent's first session is empty and works in the same directory. Null: the
 * first session is shown. An agent that was started to resume a session shows that one.
 * @param {import('./app.js').App} app
 */
export async function lastUsed(app) {
  const id = app.lastUsed;
  app.lastUsed = null;
  const first = app.open.find((one) => !one.session);
  if (!id || !first || first.messageCount || first.sessionId === id) return null;
  const open = app.open.find((one) => one.sessionId === id);
  if (open) return open.cwd === first.cwd ? open.session : null;
  const { sessions } = await app.ask({ type: 'list_sessions' }, '');
  const listed = (sessions || []).find((one) => one.id === id && one.cwd === first.cwd);
  return listed ? app.openFile(listed.path) : null;
}

/** The handle of the session on disk that was changed last; opens it. Null: there is none. */
export async function newestOther(app) {
  const here = app.session.state.sessionId;
  const others = app.listed.filter((one) => one.id !== here && one.messageCount);
  others.sort((a, b) => Date.parse(b.modified) - Date.parse(a.modified));
  return others.length ? app.openFile(others[0].path) : null;
}
