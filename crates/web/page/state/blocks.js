// How an answer's content grows, step by step (`assistantMessageEvent`). Pure.

/**
 * Carries out one step. Blocks get members of ours: `open` while they stream in, `began` and `took` for reasoning, `json` for
 * the text of arguments so far.
 * @param {any[]} blocks the message's content, changed in place
 * @returns {number} which block changed, or -1
 */
export function step(blocks, event, now) {
  const index = event.contentIndex;
  if (typeof index !== 'number' || index < 0 || index > 10000) return -1;
  const kind = String(event.type);
  const block = blocks[index] || (blocks[index] = started(kind, now));
  for (let i = 0; i < index; i += 1) blocks[i] ||= { type: 'text', text: '' };
  switch (kind) {
    case 'text_delta': block.text = (block.text || '') + event.delta; break;
    case 'text_end': finish(block, 'text', event.content); break;
    case 'thinking_delta': block.thinking = (block.thinking || '') + event.delta; break;
    case 'thinking_end':
      finish(block, 'thinking', event.content);
      if (block.began !== undefined) block.took = now - block.began;
      break;
    case 'toolcall_start':
      block.id = event.id ?? block.id;
      block.name = event.toolName ?? block.name;
      break;
    case 'toolcall_delta': block.json = (block.json || '') + event.delta; break;
    case 'toolcall_end':
      if (event.toolCall) Object.assign(block, event.toolCall, { type: 'toolCall' });
      delete block.json;
      block.open = false;
      break;
    default:
  }
  return index;
}

function finish(block, member, text) {
  if (typeof text === 'string') block[member] = text;
  block.open = false;
}

function started(kind, now) {
  if (kind.startsWith('thinking')) return { type: 'thinking', thinking: '', open: true, began: now };
  if (kind.startsWith('toolcall')) return { type: 'toolCall', id: '', name: '', arguments: {}, json: '', open: true };
  return { type: 'text', text: '', open: true };
}

/** Puts a finished message's content in the place of what streamed in, keeping how long reasoning took. */
export function settle(before, after) {
  return (Array.isArray(after) ? after : []).map((block, index) => {
    const old = before[index];
    return old && old.type === block.type && old.took ? { ...block, took: old.took } : { ...block };
  });
}

/** What can be read of arguments that are still arriving: the value of one string member, as far as it has come. */
export function partialMember(json, names) {
  for (const name of names) {
    const match = new RegExp(`"${name}"\\s*:\\s*"((?:[^"\\\\]|\\\\.)*)`).exec(json || '');
    if (!match) continue;
    try {
      return JSON.parse(`"${match[1]}"`);
    } catch {
      return match[1];
    }
  }
  return '';
}
