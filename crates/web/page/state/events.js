// What events other than messages and tool calls do to a session's model. Pure.

/** What the agent gives as the last error when retries end with `abort` or `abort_retry`. */
const RETRY_CANCELLED = 'Retry cancelled';

/** Methods of `extension_ui_request` that want an answer; all others only show something. */
export const QUESTIONS = new Set(['select', 'confirm', 'input', 'editor']);

/** @param {import('./session.js').Session} session @param {import('./session.js').Changes} changes */
export function applyOther(session, event, changes) {
  if (Object.hasOwn(ACTIONS, event.type)) ACTIONS[event.type](session, event, changes);
}

/** What a snapshot says besides the conversation: each part as the event that would have told it. */
export function whatStands(session, snapshot, changes) {
  const list = (name) => (Array.isArray(snapshot[name]) ? snapshot[name] : []);
  if (snapshot.retry) ACTIONS.auto_retry_start(session, snapshot.retry, changes);
  if (snapshot.queue) ACTIONS.queue_update(session, snapshot.queue, changes);
  for (const tool of list('tools')) {
    session.toolStart(tool, changes);
    if (tool.partialResult) session.toolUpdate(tool, changes);
  }
  for (const one of list('bash')) {
    const item = shell(session, one, changes);
    item.message.output = String(one.output ?? '');
  }
  for (const frame of list('shown')) uiRequest(session, frame, changes);
}

const ACTIONS = {
  agent_start(session, _event, changes) {
    session.running = true;
    session.retry = null;
    session.limit = null;
    changes.parts.add('limit');
    session.runStarted ??= session.now();
    changes.parts.add('status');
  },
  agent_end(session, event, changes) {
    if (!event.willRetry) stopped(session, changes);
    runEnded(session, event, changes);
    changes.parts.add('usage');
  },
  agent_settled(session, _event, changes) {
    stopped(session, changes);
    session.fallback = null;
    changes.parts.add('state');
  },
  model_fallback(session, event, changes) {
    session.fallback = { from: String(event.from), to: String(event.to), reason: String(event.reason ?? '') };
    session.push({ role: 'notice', message: { text: `${session.fallback.from} failed: ${session.fallback.reason}. The run continues with ${session.fallback.to}.` } }, changes);
    changes.parts.add('state');
  },
  process_start: noteProcess,
  process_end: noteProcess,
  process_output(session, event, changes) {
    const process = session.processes.get(String(event.processId));
    if (!process || !(event.outputBytes > process.outputBytes)) return;
    session.processes.set(process.processId, { ...process, outputBytes: event.outputBytes });
    changes.parts.add('output');
  },

  auto_retry_start(session, event, changes) {
    session.retry = {
      attempt: event.attempt, most: event.maxAttempts, until: session.now() + (event.delayMs || 0), error: String(event.errorMessage || ''),
    };
    session.running = true;
    changes.parts.add('status');
  },
  auto_retry_end(session, event, changes) {
    session.retry = null;
    if (!event.success) {
      stopped(session, changes);
      // The user stopped the retries: that is no failure.
      if (event.finalError === RETRY_CANCELLED) note(session, changes, 'info', 'The retry was stopped.');
      else if (event.finalError) note(session, changes, 'error', `Gave up after ${event.attempt} retries: ${event.finalError}`);
    }
    changes.parts.add('status');
  },
  summarization_retry_scheduled(session, event, changes) {
    session.retry = {
      attempt: event.attempt, most: event.maxAttempts, until: session.now() + (event.delayMs || 0), error: String(event.errorMessage || ''),
    };
    changes.parts.add('status');
  },
  summarization_retry_attempt_start: clearRetry,
  summarization_retry_finished: clearRetry,

  compaction_start: compactionStart,
  auto_compaction_start: compactionStart,
  compaction_end: compactionEnd,
  auto_compaction_end: compactionEnd,

  queue_update(session, event, changes) {
    session.queue = { steering: texts(event.steering), followUp: texts(event.followUp), items: null };
    changes.parts.add('queue');
  },
  thinking_level_changed(session, event, changes) {
    session.state = { ...session.state, thinkingLevel: event.level };
    changes.parts.add('state');
  },
  session_info_changed(session, event, changes) {
    session.state = { ...session.state, sessionName: event.name };
    changes.parts.add('state');
  },
  session_changed(_session, _event, changes) {
    changes.parts.add('stale');
  },
  entry_appended(_session, _event, changes) {
    changes.parts.add('entries');
  },

  bash_execution_start: (session, event, changes) => { shell(session, event, changes); },
  bash_execution_end: (session, event, changes) => session.shellEnded(event, changes),
  bash_execution_update(session, event, changes) {
    const item = shell(session, event, changes);
    item.message.output = (item.message.output || '') + String(event.delta ?? '');
    changes.items.add(item.key);
  },

  extension_error(session, event, changes) {
    // The answer that failed says it, where it stands.
    if (event.extensionPath === '<model>') return;
    const where = [event.extensionPath, event.event].filter(Boolean).join(', ');
    note(session, changes, 'error', where ? `${event.error} (${where})` : String(event.error));
  },
  notice: (session, event, changes) => note(session, changes, event.level, event.message),
  session_damage: (session, event, changes) => note(session, changes, 'warning', `${event.path}: ${event.message}`),
  ttsr_triggered(session, event, changes) {
    const names = (event.rules || []).map((rule) => rule.name).join(', ');
    note(session, changes, 'info', `A rule stopped the answer: ${names}`);
  },
  todo_reminder(session, event, changes) {
    note(session, changes, 'info', `Reminded of ${(event.todos || []).length} open todos (${event.attempt} of ${event.maxAttempts})`);
    changes.parts.add('refresh');
  },
  todo_auto_clear: (_session, _event, changes) => { changes.parts.add('refresh'); },

  extension_ui_request: (session, event, changes) => uiRequest(session, event, changes),
};

/** What a run that is over says besides its messages: the limit that ended it, and its result. */
function runEnded(session, event, changes) {
  if (event.limit) {
    session.limit = event.limit;
    changes.parts.add('limit');
  }
  if (event.result === undefined && !event.resultError) return;
  session.push({ role: 'result', message: event.resultError ? { error: String(event.resultError) } : { value: event.result } }, changes);
}

function noteProcess(session, event, changes) {
  if (!event.process?.processId) return;
  session.processes.set(String(event.process.processId), event.process);
  changes.parts.add('processes');
}

function stopped(session, changes) {
  session.running = false;
  session.runStarted = null;
  session.retry = null;
  if (session.stream) {
    session.stream.streaming = false;
    changes.items.add(session.stream.key);
    session.stream = null;
  }
  for (const tool of session.tools.values()) {
    if (tool.status === 'calling' || tool.status === 'running') {
      tool.status = 'stopped';
      changes.tools.add(tool.id);
    }
  }
  changes.parts.add('status');
  changes.parts.add('settled');
}

function clearRetry(session, _event, changes) {
  session.retry = null;
  changes.parts.add('status');
}

function compactionStart(session, event, changes) {
  session.compacting = event.reason || 'manual';
  changes.parts.add('status');
}

function compactionEnd(session, event, changes) {
  session.compacting = null;
  if (event.errorMessage) note(session, changes, 'error', `The conversation could not be compacted: ${event.errorMessage}`);
  else if (event.aborted) note(session, changes, 'info', 'Compacting was stopped.');
  // The older part of the conversation is a summary now.
  if (event.result) changes.parts.add('stale');
  changes.parts.add('status');
}

/** The item of a shell command that runs; of another page's it begins here. */
function shell(session, event, changes) {
  const id = session.shellName(event);
  let item = session.shells.get(id);
  if (!item) {
    item = session.push({ role: 'bashExecution', pending: true, shell: id,
      message: { command: String(event.command ?? ''), output: '', excludeFromContext: event.excludeFromContext } }, changes);
    session.shells.set(id, item);
    changes.parts.add('status');
  }
  return item;
}

/** Something to show for a moment, or until it is dismissed. */
function note(session, changes, level, text) {
  changes.notes = [...(changes.notes || []), { level: String(level || 'info'), text: String(text ?? '') }];
  changes.parts.add('notes');
}

function uiRequest(session, event, changes) {
  switch (event.method) {
    case 'select':
    case 'confirm':
    case 'input':
    case 'editor':
      if (!session.dialogs.some((dialog) => dialog.id === event.id)) session.dialogs.push({ ...event, askedAt: session.now() });
      changes.parts.add('dialogs');
      break;
    case 'cancel':
      session.dialogs = session.dialogs.filter((dialog) => dialog.id !== event.targetId);
      changes.parts.add('dialogs');
      break;
    case 'notify': note(session, changes, event.notifyType, event.message); break;
    case 'setStatus':
      set(session.statuses, event.statusKey, event.statusText);
      changes.parts.add('widgets');
      break;
    case 'setWidget':
      set(session.widgets, event.widgetKey, event.widgetLines
        && { lines: texts(event.widgetLines), below: event.widgetPlacement === 'belowEditor' });
      changes.parts.add('widgets');
      break;
    case 'setTitle':
      session.title = event.title ? String(event.title) : null;
      changes.parts.add('state');
      break;
    case 'set_editor_text':
      changes.editorText = String(event.text ?? '');
      changes.parts.add('editor');
      break;
    case 'open_url':
      changes.openUrl = { url: String(event.launchUrl || event.url || ''), text: String(event.instructions || event.url || '') };
      changes.parts.add('notes');
      break;
    default:
  }
}

function set(map, key, value) {
  if (value === undefined || value === null || value === '') map.delete(String(key));
  else map.set(String(key), typeof value === 'string' ? value : value);
}

function texts(list) {
  return Array.isArray(list) ? list.map(String) : [];
}
