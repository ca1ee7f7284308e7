// A conversation as Markdown, to take it elsewhere. Pure.

import { textOf } from './format.js';

const FENCE = '````';

/** @param {any[]} items @param {Map<string, any>} tools */
export function asMarkdown(items, tools) {
  const parts = [];
  for (const { role, message } of items) {
    if (role === 'user') parts.push(`## You\n\n${textOf(message.content)}`);
    else if (role === 'assistant') {
      for (const block of message.content) {
        if (block?.type === 'text' && block.text.trim()) parts.push(block.text.trim());
        else if (block?.type === 'toolCall') parts.push(callText(block, tools.get(block.id)));
      }
      if (message.stopReason === 'error') parts.push(`**Failed:** ${message.errorMessage || 'the provider failed'}`);
    } else if (role === 'bashExecution') parts.push(`${FENCE}\n$ ${message.command}\n${message.output || ''}\n${FENCE}`);
    else if (message.summary) parts.push(`> ${String(message.summary).replace(/\n/g, '\n> ')}`);
  }
  return `${parts.join('\n\n')}\n`;
}

function callText(block, tool) {
  const args = block.arguments || {};
  const subject = ['command', 'path', 'file_path', 'pattern'].map((name) => args[name]).find((value) => typeof value === 'string') || '';
  const result = textOf(tool?.result?.content).trim();
  return `**${block.name}** ${subject ? `\`${subject.replace(/`/g, "'")}\`` : ''}${result ? `\n\n${FENCE}\n${result.slice(0, 4000)}\n${FENCE}` : ''}`;
}
