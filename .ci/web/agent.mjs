// An agent for the page's tests that says exactly what a test wants: it keeps sessions, numbers events, answers the commands
// that the page sends, and writes down what it was asked. It is no model of the real agent beyond that.

import { CONTROL, control } from './control.mjs';

const MODEL = { id: 'scripted', name: 'Scripted 1', api: 'offline', provider: 'offline', baseUrl: '', reasoning: true, input: ['text', 'image'],
  cost: { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 }, contextWindow: 200000, maxTokens: 16384 };

export class Agent {
  constructor() {
    this.clients = new Set();
    this.commands = [];
    this.answers = [];
    this.log = [];
    this.seq = 0;
    this.keepLog = true;
    this.instance = 'process-1';
    this.files = [];
    this.folders = {};
    this.sessions = new Map();
    this.listed = [];
    this.models = [MODEL, { ...MODEL, id: 'quick', name: 'Quick 2', provider: 'other', reasoning: false }];
    this.slash = [{ name: 'review', description: 'Review the changes', source: 'prompt' }, { name: 'skill:release', description: 'How to make a release', source: 'skill' }];
    this.onprompt = () => {};
    this.onbash = null;
    this.control = control();
    this.make('', 's-first');
  }

  make(handle, sessionId, cwd = '/home/ada/rack') {
    const session = { handle, sessionId, cwd, messages: [], message: null, dialogs: [], running: false, name: undefined, queue: [], todos: [], made: 0,
      level: 'medium', model: this.models[0], percent: 21.4, tree: [] };
    this.sessions.set(handle, session);
    return session;
  }

  get first() { return this.sessions.get(''); }

  /** To be passed to the server. */
  join(client) {
    this.clients.add(client);
    client.onclose = () => this.clients.delete(client);
    client.onframe = (frame) => this.take(client, frame);
    for (const session of this.sessions.values()) for (const dialog of session.dialogs) client.send({ ...dialog, ...(session.handle ? { session: session.handle } : {}) });
  }

  /** Says an event to everybody. */
  say(event, handle = '') {
    this.seq += 1;
    const frame = { ...event, ...(handle ? { session: handle } : {}), seq: this.seq };
    if (this.keepLog) this.log.push(frame);
    this.keepMessage(event, this.sessions.get(handle));
    for (const client of this.clients) client.send(frame);
  }

  keepMessage(event, session) {
    if (event.type === 'message_end') { session.messages.push(event.message); session.message = null; }
    else if (event.type === 'message_start' && event.message.role === 'assistant') session.message = structuredClone(event.message);
    else if (event.type === 'message_update' && session.message) {
      const { contentIndex, delta, type } = event.assistantMessageEvent;
      const block = session.message.content[contentIndex] ||= type.startsWith('thinking') ? { type: 'thinking', thinking: '' } : { type: 'text', text: '' };
      if (type === 'text_delta') block.text += delta;
      if (type === 'thinking_delta') block.thinking += delta;
    } else if (event.type === 'agent_start') session.running = true;
    else if (event.type === 'agent_end' && !event.willRetry) session.running = false;
    else if (event.type === 'extension_ui_request' && ['select', 'confirm', 'input', 'editor'].includes(event.method)) session.dialogs.push(event);
    else if (event.type === 'extension_ui_request' && event.method === 'cancel') session.dialogs = session.dialogs.filter((one) => one.id !== event.targetId);
  }

  state(session) {
    return { model: session.model, thinkingLevel: session.level, isStreaming: session.running, isCompacting: false, isRetrying: false, steeringMode: 'one-at-a-time',
      followUpMode: 'one-at-a-time', interruptMode: 'wait', sessionFile: `/sessions/${session.sessionId}.jsonl`, sessionId: session.sessionId, sessionName: session.name,
      autoCompactionEnabled: true, messageCount: session.messages.length, pendingMessageCount: session.queue.length, todoPhases: session.todos,
      permissionMode: session.permission, contextUsage: { tokens: Math.round(2000 * session.percent), contextWindow: 200000, percent: session.percent } };
  }

  take(client, command) {
    this.commands.push(command);
    if (command.type === 'extension_ui_response') {
      this.answers.push(command);
      for (const session of this.sessions.values()) session.dialogs = session.dialogs.filter((one) => one.id !== command.id);
      this.say({ type: 'extension_ui_request', id: command.id, method: 'cancel', targetId: command.id }, command.session || '');
      return;
    }
    const session = this.sessions.get(command.session || '');
    const respond = (fields) => client.send({ id: command.id, type: 'response', command: command.type, ...(command.session ? { session: command.session } : {}), ...fields });
    const ok = (data) => respond({ success: true, ...(data ? { data } : {}) });
    const no = (error) => respond({ success: false, error });
    if (!session) { no('There is no such session'); return; }
    const act = COMMANDS[command.type];
    if (act) act(this, session, command, ok, no, client);
    else no(`Unknown command: ${command.type}`);
  }

  asked(type) { return this.commands.filter((command) => command.type === type); }

  queueChanged(session) {
    const texts = (kind) => session.queue.filter((item) => item.kind === kind).map((item) => item.text);
    this.say({ type: 'queue_update', steering: texts('steer'), followUp: texts('followUp') }, session.handle);
  }
}

const COMMANDS = {
  ...CONTROL,
  get_state: (agent, session, _command, ok) => ok(agent.state(session)),
  get_messages: (_agent, session, _command, ok) => ok({ messages: session.messages }),
  get_session_stats: (_agent, session, _command, ok) => ok({ sessionFile: null, sessionId: session.sessionId, userMessages: 1, assistantMessages: 1, toolCalls: 0, toolResults: 0,
    totalMessages: session.messages.length, tokens: { input: 41200, output: 3100, cacheRead: 38000, cacheWrite: 2100, total: 84400 }, cost: 0.1842 }),
  replay(agent, session, command, ok, no, client) {
    const isOurs = !command.instance || command.instance === agent.instance;
    if (typeof command.after === 'number' && isOurs) {
      if (command.after > agent.seq) { no(`No event has the number ${command.after} yet`); return; }
      const missed = agent.log.filter((frame) => frame.seq > command.after);
      if (missed.length === agent.seq - command.after) {
        ok({ events: missed.length, lastSeq: agent.seq, instanceId: agent.instance });
        for (const frame of missed) client.send(frame);
        return;
      }
    }
    ok({ events: 0, lastSeq: agent.seq, instanceId: agent.instance, snapshot: { state: agent.state(session), messages: session.messages, message: session.message,
      ...(session.dialogs.length ? { dialogs: session.dialogs } : {}), ...session.stands } });
  },
  list_open_sessions: (agent, _session, _command, ok) => ok({ sessions: [...agent.sessions.values()].map((one) => ({ ...(one.handle ? { session: one.handle } : {}),
    sessionId: one.sessionId, sessionFile: `/sessions/${one.sessionId}.jsonl`, sessionName: one.name, cwd: one.cwd, isStreaming: one.running, messageCount: one.messages.length })) }),
  list_sessions: (agent, _session, _command, ok) => ok({ sessions: agent.listed }),
  open_session(agent, _session, command, ok) {
    const listed = agent.listed.find((one) => one.path === command.sessionPath);
    agent.made = (agent.made || 0) + 1;
    const made = agent.make(`h${agent.made}`, listed ? listed.id : `s-new-${agent.made}`, listed?.cwd || command.cwd);
    if (listed) { made.name = listed.name; made.messages = listed.messages || []; }
    ok({ session: made.handle, sessionId: made.sessionId, sessionFile: listed?.path || null, cwd: made.cwd });
  },
  close_session(agent, session, _command, ok) {
    agent.sessions.delete(session.handle);
    agent.say({ type: 'session_closed', reason: 'closed', sessionId: session.sessionId }, session.handle);
    ok();
  },
  delete_session(agent, _session, command, ok, no) {
    if ([...agent.sessions.values()].some((one) => command.sessionPath === `/sessions/${one.sessionId}.jsonl`)) { no(`The session is open: ${command.sessionPath}`); return; }
    agent.listed = agent.listed.filter((one) => one.path !== command.sessionPath);
    ok({ sessionPath: command.sessionPath, trashPath: '/sessions/.trash/x.jsonl' });
  },
  get_commands: (agent, _session, _command, ok) => ok({ commands: agent.slash }),
  get_available_models: (agent, _session, _command, ok) => ok({ models: agent.models }),
  get_available_thinking_levels: (_agent, _session, _command, ok) => ok({ levels: ['off', 'low', 'medium', 'high'] }),
  set_model(agent, session, command, ok) { session.model = agent.models.find((model) => model.id === command.modelId); ok(session.model); },
  set_thinking_level(agent, session, command, ok) { session.level = command.level; ok(); agent.say({ type: 'thinking_level_changed', level: command.level }, session.handle); },
  set_permission_mode(_agent, session, command, ok) { session.permission = command.mode; ok({ permissionMode: command.mode }); },
  set_auto_compaction: (_agent, _session, _command, ok) => ok(),
  set_session_name(agent, session, command, ok, no) {
    if (!command.name.trim()) { no('Session name cannot be empty'); return; }
    session.name = command.name;
    ok();
    agent.say({ type: 'session_info_changed', name: command.name }, session.handle);
  },
  set_entry_label: (_agent, _session, _command, ok) => ok(),
  prompt(agent, session, command, ok) {
    if (session.running && !agent.takesAtOnce) {
      session.made += 1;
      const kind = command.streamingBehavior || 'steer';
      session.queue.push({ id: `q${session.made}`, kind, text: command.message, images: (command.images || []).length });
      ok({ disposition: 'queued', id: `q${session.made}` });
      agent.queueChanged(session);
      return;
    }
    ok({ disposition: 'started' });
    agent.onprompt(command, session);
  },
  get_login_providers: (_agent, _session, _command, ok) => ok({ providers: [{ id: 'github-copilot', name: 'GitHub Copilot', available: true, authenticated: false }] }),
  get_queue: (_agent, session, _command, ok) => ok({ items: session.queue }),
  edit_queued(agent, session, command, ok, no) {
    const item = session.queue.find((one) => one.id === command.queuedId);
    if (!item) { no('That message does not wait any more'); return; }
    item.text = command.message;
    ok();
    agent.queueChanged(session);
  },
  clear_queue(agent, session, _command, ok) {
    const texts = (kind) => session.queue.filter((item) => item.kind === kind).map((item) => item.text);
    const data = { steering: texts('steer'), followUp: texts('followUp') };
    session.queue = [];
    ok(data);
    agent.queueChanged(session);
  },
  remove_queued(agent, session, command, ok) { session.queue = session.queue.filter((one) => one.id !== command.queuedId); ok(); agent.queueChanged(session); },
  abort(agent, session, _command, ok) { agent.onabort?.(); if (session.running) agent.say({ type: 'agent_end', messages: [], willRetry: false }, session.handle); ok(); },
  abort_retry(agent, session, _command, ok) {
    ok();
    agent.say({ type: 'auto_retry_end', success: false, attempt: 1, finalError: 'Given up' }, session.handle);
    session.running = false;
  },
  abort_bash: (agent, _session, _command, ok) => { agent.onabortbash?.(); ok(); },
  bash(agent, session, command, ok) {
    if (agent.onbash) { agent.onbash(command, ok, session); return; }
    agent.say({ type: 'bash_execution_update', id: command.id, delta: `ran ${command.command}\n` }, session.handle);
    const result = { output: `ran ${command.command}\n`, exitCode: 0, cancelled: false, truncated: false };
    session.messages.push({ role: 'bashExecution', command: command.command, ...result, timestamp: Date.now() });
    ok(result);
  },
  find_files: (agent, _session, command, ok) => {
    const wanted = command.query.toLowerCase();
    ok({ files: agent.files.filter((file) => file.path.toLowerCase().includes(wanted)).slice(0, command.limit), truncated: false });
  },
  list_directory: (agent, _session, command, ok, no) => {
    const path = command.path === '~' || !command.path ? '/home/ada' : command.path;
    if (agent.folders[path]) ok({ absolutePath: path, entries: agent.folders[path].map((name) => ({ name, isDirectory: true })) });
    else no(`Path does not exist: ${path}`);
  },
  compact(agent, session, command, ok) {
    agent.say({ type: 'auto_compaction_start', reason: 'manual' }, session.handle);
    const finish = () => {
      session.messages = [{ role: 'compactionSummary', summary: 'We built a **rack**.', tokensBefore: 120000, timestamp: 1 }, ...session.messages.slice(-1)];
      agent.say({ type: 'auto_compaction_end', reason: 'manual', result: { summary: 'x', firstKeptEntryId: 'e1', tokensBefore: 1, details: {} }, aborted: false, willRetry: false }, session.handle);
      ok({ summary: 'We built a rack.', firstKeptEntryId: 'e1', tokensBefore: 120000, details: {} });
    };
    // A test that looks at a compaction under way says when it ends.
    if (agent.oncompact) agent.oncompact(finish);
    else finish();
  },
  get_tree: (_agent, session, _command, ok) => ok({ tree: session.tree, leafId: session.leaf || null }),
  navigate_tree: (_agent, session, command, ok) => { session.wentTo = command.targetId; ok({ cancelled: false, editorText: 'Try it otherwise' }); },
  get_fork_messages: (_agent, session, _command, ok) => ok({ messages: session.messages.filter((one) => one.role === 'user')
    .map((one, index) => ({ entryId: `u${index}`, text: typeof one.content === 'string' ? one.content : one.content[0].text })) }),
  fork(agent, session, command, ok) {
    session.sessionId = 's-fork';
    session.messages = [];
    agent.say({ type: 'session_changed', reason: 'fork', sessionId: 's-fork', messageCount: 0 }, session.handle);
    ok({ text: `text of ${command.entryId}`, cancelled: false });
  },
  clone: (_agent, _session, _command, ok) => ok({ cancelled: false }),
  export_html: (_agent, _session, _command, ok) => ok({ path: 'session.html' }),
};

/** A text as an answer that streams in. */
export function stream(agent, blocks, { handle = '', chunk = 24, end = true, stopReason = 'stop', errorMessage } = {}) {
  const base = { role: 'assistant', api: 'offline', provider: 'offline', model: 'scripted', usage: USAGE, stopReason, timestamp: Date.now() };
  const update = (event) => agent.say({ type: 'message_update', message: { role: 'assistant', content: [], timestamp: base.timestamp }, assistantMessageEvent: event, usage: USAGE }, handle);
  agent.say({ type: 'message_start', message: { ...base, content: [] } }, handle);
  blocks.forEach((block, contentIndex) => {
    if (block.type === 'toolCall') {
      update({ type: 'toolcall_start', contentIndex, id: block.id, toolName: block.name });
      update({ type: 'toolcall_delta', contentIndex, delta: JSON.stringify(block.arguments) });
      update({ type: 'toolcall_end', contentIndex, toolCall: block });
      return;
    }
    const name = block.type;
    const text = block[name];
    update({ type: `${name}_start`, contentIndex });
    for (let i = 0; i < text.length; i += chunk) update({ type: `${name}_delta`, contentIndex, delta: text.slice(i, i + chunk) });
    if (end) update({ type: `${name}_end`, contentIndex, content: text });
  });
  if (end) agent.say({ type: 'message_end', message: { ...base, content: blocks, ...(errorMessage ? { errorMessage } : {}) } }, handle);
}

const USAGE = { input: 1200, output: 300, cacheRead: 0, cacheWrite: 0, totalTokens: 1500, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0.01 } };

/** A tool call's run, and its result as a message. */
export function runTool(agent, call, text, { isError = false, details, images = [], handle = '', durationMs = 1240 } = {}) {
  const content = [{ type: 'text', text }, ...images];
  agent.say({ type: 'tool_execution_start', toolCallId: call.id, toolName: call.name, args: call.arguments }, handle);
  agent.say({ type: 'tool_execution_end', toolCallId: call.id, toolName: call.name, result: { content, details }, isError, durationMs }, handle);
  const message = { role: 'toolResult', toolCallId: call.id, toolName: call.name, content, details, isError, timestamp: Date.now() };
  agent.say({ type: 'message_start', message }, handle);
  agent.say({ type: 'message_end', message }, handle);
}

export function user(text, images = []) {
  return { role: 'user', content: [{ type: 'text', text }, ...images], timestamp: Date.now() };
}

/** Says a user's message. */
export function sayUser(agent, text, handle = '') {
  const message = user(text);
  agent.say({ type: 'message_start', message }, handle);
  agent.say({ type: 'message_end', message }, handle);
}
