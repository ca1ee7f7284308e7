// One entry to its element. Tools are in tools.js, the order of entries in transcript.js.

const SKILL = /^<skill name="([^"]*)" location="([^"]*)">\n([^]*?)\n<\/skill>(?:\n\n([^]*))?$/;

/** The frame of an entry: anchor, label, time and a link to it. */
function frame(index, className, ...children) {
  const entry = model.entries[index];
  const node = el('article', `entry ${className}`, ...children);
  node.dataset.index = index;
  const label = model.labels.get(entry.id);
  if (label) node.prepend(el('div', 'label-line', el('span', 'label', label)));
  return node;
}

/** Name, time and the button that copies a link. */
function byline(entry, who, extra) {
  const time = moment(entry.timestamp, TIME);
  const stamp = time ? el('time', '', time) : null;
  if (stamp) stamp.title = moment(entry.timestamp, DATE);
  return el('div', 'byline', el('span', 'who', who), extra ? el('span', 'extra', extra) : null,
    copyButton('link', 'Copy a link to this message', () => location.href.split('#')[0] + hashFor(entry.id)), stamp);
}

/** One line between messages. */
const line = (index, ...children) => frame(index, 'line', el('span', '', ...children));

function userMessage(index) {
  const entry = model.entries[index];
  const text = textOf(entry.message.content);
  const skill = SKILL.exec(text);
  const said = skill ? str(skill[4]) : text;
  const chip = skill ? drawer('skill', [el('span', 'tag', 'skill'), skill[1]], () => markdown(skill[3]), false) : null;
  return frame(index, 'user', byline(entry, 'User'), chip, said.trim() ? markdown(said) : null, ...pictures(entry.message.content));
}

/** Tokens and cost of one answer, in small print. */
function usageLine(message) {
  const usage = obj(message.usage);
  if (!num(usage.input) && !num(usage.output) && !num(usage.cacheRead)) return null;
  const parts = [`${short(usage.input)} in`, `${short(usage.output)} out`];
  if (num(usage.cacheRead)) parts.push(`${short(usage.cacheRead)} cached`);
  if (num(usage.cacheWrite)) parts.push(`${short(usage.cacheWrite)} written to cache`);
  if (num(obj(usage.cost).total)) parts.push(money(usage.cost.total));
  return el('div', 'usage', parts.join(' · '));
}

function thinkingBlock(block) {
  const text = str(block.thinking).trim();
  if (block.redacted || !text) {
    return block.redacted ? el('div', 'note', 'Reasoning withheld by the provider') : null;
  }
  return drawer('thinking', [el('span', 'tag', 'Reasoning'), el('span', 'glimpse', firstLine(text.replace(/[*_`#]/g, ''), 90))], () => markdown(text), opened.thinking);
}

/** The result of a call on the path that is shown, else any. */
function resultOf(call) {
  const found = model.results.get(str(call.id)) || [];
  const index = found.find((at) => transcript.onPath.has(at));
  return index === undefined ? null : model.entries[index].message;
}

function assistantMessage(index, continues) {
  const entry = model.entries[index];
  const message = entry.message;
  const parts = [];
  const blocksOf = typeof message.content === 'string' ? [{ type: 'text', text: message.content }] : list(message.content);
  for (const block of blocksOf) {
    if (!block) continue;
    if (block.type === 'text' && str(block.text).trim()) parts.push(markdown(str(block.text)));
    else if (block.type === 'thinking') parts.push(thinkingBlock(block));
    else if (block.type === 'toolCall') parts.push(toolCard(block, resultOf(block)));
  }
  if (failed(message)) {
    const word = message.stopReason === 'aborted' ? 'Aborted' : 'Failed';
    const why = str(message.errorMessage);
    parts.push(el('div', 'failure', el('b', '', word), why ? ': ' : '', why ? folding(why, 6, (text) => el('span', 'why', text)) : null));
  } else if (message.stopReason === 'length') parts.push(el('div', 'note', 'Ended at the output limit'));
  const head = continues ? null : byline(entry, 'Assistant', str(message.responseModel) || str(message.model));
  return frame(index, 'assistant' + (continues ? ' continues' : ''), head, ...parts, usageLine(message));
}

function bashRun(index) {
  const entry = model.entries[index];
  const run = entry.message;
  const state = run.cancelled ? 'pending' : num(run.exitCode) ? 'error' : 'ok';
  const word = run.cancelled ? 'cancelled' : num(run.exitCode) ? `exit code ${run.exitCode}` : '';
  const head = el('div', 'tool-head', el('span', 'tool-name', 'command'), el('span', 'range', 'run by the user'),
    run.excludeFromContext ? el('span', 'tag', 'not shown to the model') : null, word ? el('span', 'state', word) : null);
  const text = str(run.output);
  const body = [el('div', 'command', el('span', 'prompt', '$ '), folding(str(run.command), 12, codeView('sh'))), text ? folding(text, 12, output) : null];
  if (run.truncated && run.fullOutputPath) body.push(el('div', 'note', `Cut here; the whole output was kept at ${str(run.fullOutputPath)}`));
  return frame(index, 'run', el('div', `tool ${state}`, head, ...body));
}

/** A summary that stands for what came before or for another branch. */
function summary(index, title, text) {
  return frame(index, 'summary', drawer('', [el('span', 'tag', title), el('span', 'glimpse', firstLine(text.replace(/[#*_`]/g, ''), 80))], () => markdown(text), false));
}

/** Data without a form of its own; shown with the filter "All" only. */
function raw(index) {
  const entry = model.entries[index];
  const name = entry.customType ? `${str(entry.type)} · ${str(entry.customType)}` : str(entry.type) || 'entry';
  return frame(index, 'minor', drawer('', [el('span', 'tag', name)], () => folding(JSON.stringify(entry, null, 2), 60, codeView('json')), false));
}

/** The element of an entry, or nothing when another element shows it. */
function render(index, continues) {
  const entry = model.entries[index];
  const message = obj(entry.message);
  switch (entry.type === 'message' ? 'message/' + str(message.role) : str(entry.type)) {
    case 'message/user': return userMessage(index);
    case 'message/assistant': return assistantMessage(index, continues);
    case 'message/toolResult': return frame(index, 'assistant continues', toolCard({ name: message.toolName, arguments: {} }, message));
    case 'message/bashExecution': return bashRun(index);
    case 'message/branchSummary': case 'branch_summary':
      return summary(index, 'Summary of a branch', str(entry.summary ?? message.summary));
    case 'message/compactionSummary': case 'compaction':
      return summary(index, `Compacted from ${short(entry.tokensBefore ?? message.tokensBefore)} tokens`, str(entry.summary ?? message.summary));
    case 'message/custom': case 'message/hookMessage': case 'custom_message': {
      const content = entry.content ?? message.content;
      if (!(entry.display ?? message.display)) return raw(index);
      return frame(index, 'custom', byline(entry, str(entry.customType ?? message.customType) || 'extension'), markdown(textOf(content)), ...pictures(content));
    }
    case 'model_change': return line(index, 'Model ', el('b', '', str(entry.model) || `${str(entry.provider)}/${str(entry.modelId)}`));
    case 'thinking_level_change': return line(index, 'Reasoning ', el('b', '', str(entry.thinkingLevel) || 'default'));
    case 'session_info': return line(index, 'Session named ', el('b', '', str(entry.name) || '(nothing)'));
    case 'label': return frame(index, 'minor line', el('span', '', 'Label ', el('b', '', str(entry.label) || '(removed)')));
    default: return raw(index);
  }
}
