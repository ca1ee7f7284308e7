// What every frame between an original page and the agent must keep to, whatever the page shows of it: the rules of the protocol's
// description and what the pages trip over. Which checks make the frames is decided elsewhere.

const DELTAS = ['start', 'text_start', 'text_delta', 'text_end', 'thinking_start', 'thinking_delta', 'thinking_end', 'toolcall_start', 'toolcall_delta',
  'toolcall_end', 'done', 'error'];
const REASONS = ['new', 'switch', 'fork', 'tree', 'reload'];
const isText = (value) => typeof value === 'string';
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const isDate = (value) => isText(value) && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(value);

const parts = {
  text: (part) => isText(part.text),
  thinking: (part) => isText(part.thinking),
  toolCall: (part) => isText(part.id) && isText(part.name) && isObject(part.arguments),
};
const isList = (content, kinds) => Array.isArray(content) && content.every((part) => kinds.includes(part.type) && parts[part.type](part));

/** A message as the pages read it; they skip roles that they do not know. */
function isMessage(message) {
  if (!isObject(message) || typeof message.timestamp !== 'number') return false;
  if (message.role === 'user') return isText(message.content) || isList(message.content, ['text']);
  if (message.role === 'assistant') return isList(message.content, ['text', 'thinking', 'toolCall']);
  if (message.role !== 'toolResult') return true;
  return isList(message.content, ['text']) && isText(message.toolCallId) && isText(message.toolName) && typeof message.isError === 'boolean';
}

const isUsage = (usage) => usage === undefined || (Number.isInteger(usage.tokens) && usage.contextWindow > 0
  && Math.abs(usage.percent - (usage.tokens / usage.contextWindow) * 100) < 0.01);

const isListed = (one) => isText(one.path) && isText(one.id) && isText(one.cwd) && ['string', 'undefined'].includes(typeof one.name)
  && isDate(one.created) && isDate(one.modified) && Number.isInteger(one.messageCount) && isText(one.firstMessage);

const answers = {
  get_state: (data) => isText(data.sessionId) && typeof data.isStreaming === 'boolean' && ['string', 'undefined'].includes(typeof data.sessionName),
  get_messages: (data) => Array.isArray(data.messages) && data.messages.every(isMessage),
  list_sessions: (data) => Array.isArray(data.sessions) && data.sessions.every(isListed)
    && data.sessions.every((one, at) => at < 2 || one.modified <= data.sessions[at - 1].modified),
  get_context_usage: (data) => isUsage(data.usage),
  switch_session: (data) => data.cancelled === false,
  new_session: (data) => data.cancelled === false,
};

const events = {
  agent_start: () => true,
  agent_end: () => true,
  message_update: (event) => isMessage(event.message) && event.message.role === 'assistant' && DELTAS.includes(event.assistantMessageEvent?.type),
  message_end: (event) => isMessage(event.message),
  tool_execution_start: (event) => isText(event.toolName),
  tool_execution_end: (event) => isText(event.toolName) && isList(event.result?.content, ['text']) && typeof event.isError === 'boolean',
  session_changed: (event) => REASONS.includes(event.reason) && isText(event.sessionId) && ['string', 'undefined'].includes(typeof event.sessionName),
  extension_ui_request: (event) => isText(event.id) && isText(event.method),
  extension_error: (event) => isText(event.error),
};

const deltas = {
  text_delta: (one) => isText(one.delta),
  thinking_delta: (one) => isText(one.delta),
  toolcall_delta: (one) => isText(one.delta),
  text_end: (one) => isText(one.content),
  thinking_end: (one) => isText(one.content),
  toolcall_end: (one) => one.toolCall?.type === 'toolCall' && parts.toolCall(one.toolCall),
};

/** What the frames of one connection break, as sentences. A frame is `{ sent, text }`. */
export function broken(frames, isOver = true) {
  const wrong = [];
  const fail = (why, text) => wrong.push(`${why}: ${text.slice(0, 300)}`);
  const asked = new Map();
  const called = new Set();
  let running = null;
  for (const { sent, text } of frames) {
    let frame;
    try { frame = JSON.parse(text); } catch { fail('not JSON', text); continue; }
    if (sent) { if (frame.id !== undefined && frame.type !== 'extension_ui_response') asked.set(frame.id, frame.type); continue; }
    if (!isObject(frame) || !isText(frame.type)) { fail('no type', text); continue; }
    if (frame.type === 'response') {
      if (asked.get(frame.id) !== frame.command) fail('an answer to nothing', text);
      asked.delete(frame.id);
      if (typeof frame.success !== 'boolean' || (!frame.success && !isText(frame.error))) fail('neither success nor error', text);
      if (frame.success && answers[frame.command] && !answers[frame.command](frame.data || {})) fail('data of another shape', text);
      continue;
    }
    if (frame.id !== undefined && frame.type !== 'extension_ui_request') fail('an event with an id', text);
    if (events[frame.type] && !events[frame.type](frame)) fail('an event of another shape', text);
    const delta = frame.assistantMessageEvent;
    if (delta && deltas[delta.type] && !deltas[delta.type](delta)) fail('a delta of another shape', text);
    if (delta?.type === 'toolcall_end') called.add(delta.toolCall.id);
    if (frame.type === 'tool_execution_start' && !called.has(frame.toolCallId) && running !== null) fail('a tool before its call', text);
    if (frame.type === 'agent_start') { if (running) fail('started twice', text); running = true; }
    if (frame.type === 'agent_end') { if (running === false) fail('ended twice', text); running = false; }
  }
  if (isOver) for (const [id, kind] of asked) wrong.push(`no answer to ${id} (${kind})`);
  return wrong;
}
