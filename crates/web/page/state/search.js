// Where words stand in a conversation, whether or not they are in the document just now. Pure.

import { textOf } from '../lib/format.js';

const MOST = 2000;

/** Everything an item says, piece by piece: `[where, text]`, where is a block's index or a tool call's id. */
export function piecesOf(item, tools) {
  const { message, role } = item;
  if (role === 'assistant') {
    return message.content.flatMap((block, index) => {
      if (block?.type === 'text') return [[index, block.text || '']];
      if (block?.type === 'thinking') return [[index, block.thinking || '']];
      return block?.type === 'toolCall' ? [[block.id, toolText(tools.get(block.id))]] : [];
    });
  }
  if (role === 'tool') return [[message.toolCallId, toolText(tools.get(message.toolCallId))]];
  if (role === 'bashExecution') return [[0, `${message.command || ''}\n${message.output || ''}`]];
  return [[0, message.summary ? String(message.summary) : textOf(message.content)]];
}

function toolText(tool) {
  if (!tool) return '';
  const args = Object.values(tool.args || {}).filter((value) => typeof value === 'string');
  return [...args, textOf(tool.result?.content), typeof tool.result?.details?.diff === 'string' ? tool.result.details.diff : ''].join('\n');
}

/**
 * The items in which a text stands, in their order, each with the places in it.
 * @returns {{ key: number, places: (number|string)[] }[]}
 */
export function find(session, words) {
  const wanted = words.trim().toLowerCase();
  if (!wanted) return [];
  const found = [];
  for (const item of session.items) {
    const places = piecesOf(item, session.tools).filter(([, text]) => text.toLowerCase().includes(wanted)).map(([place]) => place);
    if (places.length) found.push({ key: item.key, places });
    if (found.length >= MOST) break;
  }
  return found;
}
