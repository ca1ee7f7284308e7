// One entry to its element. Tools are in tools.js, the order of entries in transcript.js.

const SKILL = /^<skill name="([^"]*)" location="([^"]*)">\n([^]*?)\n<\/skill>(?:\n\n([^]*))?$/;

/** The frame of an entry: anchor, label, time and a link to it. */
function frame(index, className, ...children) {
  const entry = model.entries[index];
  const node = el('article', `entry ${className}`, ...children);
  node.dataset.index = index;
  const label = model.labels.get(entry.id);
  const marks = [label ? el('span', 'label', label) : null, ...editMarks(index)].filter(Boolean);
  if (marks.length) node.prepend(el('div', 'label-line', ...marks));
  return node;
}

/** What became of an entry in the model's context later (pi-1.5-delta.md 3): left out, or something else in its place. */
function editMarks(index) {
  return heldBy(index).filter((at) => transcript.edits.has(at)).map((at) => {
    const { replacement } = transcript.edits.get(at);
    const whose = at === index ? '' : ` (result of ${str(model.entries[at].message.toolName)})`;
    if (replacement === null || replacement === undefined) return el('span', 'edited', `later left out of the context${whose}`);
    return drawer('edited', [el('span', '', `later replaced in the context${whose}`)], () => [markdown(textOf(replacement)), ...pictures(replacement)], false);
  });
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
const line = (index, className, ...children) => frame(index, `line ${className}`, el('span', '', ...children));

/** Settings that were changed one after the other, in one line; of each kind the last counts. */
function settingsLine(index) {
  const last = new Map();
  for (const at of heldBy(index)) last.set(model.entries[at].type, model.entries[at]);
  const parts = [...last.values()].map((entry) => el('span', '', ...({
    model_change: () => ['Model ', el('b', '', str(entry.model) || `${str(entry.provider)}/${str(entry.modelId)}`)],
    thinking_level_change: () => ['Reasoning ', el('b', '', str(entry.thinkingLevel) || 'default')],
    session_info: () => ['Session named ', el('b', '', str(entry.name) || '(nothing)')],
  }[entry.type] || (() => []))()));
  return line(index, 'settings', ...parts);
}

function userMessage(index) {
  const entry = model.entries[index];
  const text = textOf(entry.message.content);
  const skill = SKILL.exec(text);
  const said = skill ? str(skill[4]) : text;
  const chip = skill ? drawer('skill', [el('span', 'tag', 'skill'), skill[1]], () => markdown(skill[3]), false) : null;
  return frame(index, 'user', byline(entry, 'User'), chip, said.trim() ? markdown(said) : null, ...pictures(entry.message.content));
}

/** Tokens and cost of a piece of model work in words; empty when there are none. */
function usageWords(usage) {
  usage = obj(usage);
  if (!num(usage.input) && !num(usage.output) && !num(usage.cacheRead)) return '';
  const parts = [`${short(usage.input)} in`, `${short(usage.output)} out` + (num(usage.reasoning) ? ` (${short(usage.reasoning)} reasoning)` : '')];
  if (num(usage.cacheRead)) parts.push(`${short(usage.cacheRead)} cached`);
  if (num(usage.cacheWrite)) parts.push(`${short(usage.cacheWrite)} written to cache`);
  if (num(obj(usage.cost).total)) parts.push(money(usage.cost.total));
  return parts.join(' · ');
}

function thinkingBlock(block) {
  const text = str(block.thinking).trim();
  if (block.redacted || !text) {
    return block.redacted ? el('div', 'note', 'Reasoning withheld by the provider') : null;
  }
  return drawer('thinking', [el('span', 'tag', 'Reasoning'), el('span', 'glimpse', firstLine(text.replace(/[*_`#]/g, ''), 90))], () => markdown(text), opened.thinking);
}

/** The result of a call of an entry on the path that is shown; some servers give calls of several answers the same id. */
function resultOf(index, call) {
  const found = heldBy(index).find((at) => roleOf(model.entries[at]) === 'toolResult' && str(model.entries[at].message.toolCallId) === str(call.id));
  return found === undefined ? null : model.entries[found].message;
}

/** What the JSON in an error says in words; empty when there is none. */
function reasonIn(why) {
  const at = why.indexOf('{');
  if (at < 0) return '';
  try {
    const told = JSON.parse(why.slice(at));
    const error = obj(told.error ?? told);
    const words = str(error.message);
    return words && `${why.slice(0, at).trim()} ${words}${error.type ? ` (${str(error.type)})` : ''}`.trim();
  } catch { return ''; }
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
    else if (block.type === 'toolCall') parts.push(toolCard(block, resultOf(index, block)));
  }
  if (failed(message)) {
    const word = message.stopReason === 'aborted' ? 'Aborted' : 'Failed';
    const why = str(message.errorMessage);
    const plain = reasonIn(why);
    parts.push(el('div', 'failure', el('b', '', word), why ? ': ' : '', plain || (why ? folding(why, 6, (text) => el('span', 'why', text)) : null),
      plain ? drawer('', [el('span', '', 'As the provider said it')], () => el('pre', 'out', why), false) : null));
  } else if (message.stopReason === 'length') parts.push(el('div', 'failure mild', el('b', '', 'Cut off'), ': the answer reached the output limit'));
  const level = str(message.thinkingLevel);
  const head = continues ? null : byline(entry, 'Assistant', (str(message.responseModel) || str(message.model)) + (level && level !== 'off' ? ` · ${level}` : ''));
  const used = usageWords(message.usage);
  return frame(index, 'assistant' + (continues ? ' continues' : ''), head, ...parts, used ? el('div', 'usage', used) : null);
}

function bashRun(index) {
  const entry = model.entries[index];
  const run = entry.message;
  const state = run.cancelled ? 'pending' : num(run.exitCode) ? 'error' : 'ok';
  const word = run.cancelled ? 'cancelled' : num(run.exitCode) ? `exit code ${run.exitCode}` : '';
  const python = run.role === 'pythonExecution';
  const head = [el('span', 'range', 'run by the user'),
    run.excludeFromContext ? el('span', 'chip', 'not shown to the model') : null, word ? el('span', 'state', word) : null];
  const text = str(run.output);
  const body = [el('div', 'command', el('span', 'prompt', python ? '>>> ' : '$ '), folding(str(run.command ?? run.code), 12, codeView(python ? 'python' : 'sh'))), text ? folding(text, 12, output) : null];
  if (run.truncated && run.fullOutputPath) body.push(el('div', 'note', `Cut here; the whole output was kept at ${str(run.fullOutputPath)}`));
  return frame(index, 'run', card(state, python ? 'python' : 'command', head, body));
}

/** A summary that stands for what came before or for another branch. */
function summary(index, title, text) {
  return frame(index, 'summary', drawer('', [el('span', 'tag', title), el('span', 'glimpse', firstLine(text.replace(/[#*_`]/g, ''), 80))], () => markdown(text), false));
}

/** Data without a form of its own; shown with the filter "All" only. */
function raw(index) {
  const entry = model.entries[index];
  const name = entry.customType ? `${str(entry.type)} · ${str(entry.customType)}` : str(entry.type) || 'entry';
  const role = roleOf(entry);
  return frame(index, 'minor summary', drawer('', [el('span', 'tag', role ? `message · ${role}` : name)], () => folding(JSON.stringify(entry, null, 2), 60, codeView('json')), false));
}

/** What the model was told before the conversation, or what was changed of it on the way. */
function systemMessage(index) {
  const { message } = model.entries[index];
  const names = (tools) => list(tools).map((tool) => str(obj(tool).name)).join(', ');
  const [added, removed] = [names(message.toolsAdded), names(message.toolsRemoved)];
  const dropped = Object.entries(obj(message.sections)).filter(([, text]) => text === null).map(([name]) => name).join(', ');
  const notes = [['Tools: ', added], ['Tools taken away: ', removed], ['Sections taken away: ', dropped]].filter(([, what]) => what);
  const prompt = promptOf(message);
  const glimpse = [prompt ? plural(prompt.split('\n').length, 'line') : '', added ? `tools ${added}` : '', removed ? `without ${removed}` : ''].filter(Boolean).join(' · ');
  const title = systemTitle(index) === 'system prompt' ? 'System' : 'System update';
  return frame(index, 'summary', drawer('', [el('span', 'tag', title), el('span', 'glimpse', glimpse)],
    () => [...notes.map(([word, what]) => el('div', 'note', word, el('b', '', what))), prompt ? folding(prompt, 200, (text) => el('pre', 'out', text)) : null], false));
}

/** Files that the user named in a message. */
function mentionedFiles(index) {
  const files = filesOf(model.entries[index].message);
  return frame(index, 'summary', drawer('', [el('span', 'tag', plural(files.length, 'mentioned file')), el('span', 'glimpse', files.map((file) => file.path).join(', '))],
    () => files.map((file) => card('plain', file.path, [], [file.content ? folding(file.content, 10, codeView(languageOf(file.path))) : null, file.image ? picture(file.image) : null])), false));
}

/** A role that this page does not know but that says something. */
function strangerMessage(index) {
  const entry = model.entries[index];
  const { content } = entry.message;
  if (!textOf(content).trim() && !pictures(content).length) return raw(index);
  return frame(index, 'custom', byline(entry, roleOf(entry) || 'unknown'), markdown(textOf(content)), ...pictures(content));
}

/** Is an entry shown with the filter "All" only? */
function isMinor(index) {
  const entry = model.entries[index];
  const message = obj(entry.message);
  if (entry.type === 'custom_message' || message.role === 'custom' || message.role === 'hookMessage') return !(entry.display ?? message.display);
  if (entry.type === 'message') return !SPEAKERS.has(message.role) && !textOf(message.content).trim() && !list(message.content).length;
  return !LINES.has(entry.type) && entry.type !== 'compaction' && entry.type !== 'branch_summary';
}

const SPEAKERS = new Set(['user', 'assistant', 'toolResult', 'system', 'fileMention', 'branchSummary', 'compactionSummary', ...RUNS]);
const LINES = new Set(['model_change', 'thinking_level_change', 'session_info']);

/** The element of an entry, or nothing when another element shows it. */
function render(index, continues) {
  const entry = model.entries[index];
  const message = obj(entry.message);
  switch (entry.type === 'message' ? 'message/' + str(message.role) : str(entry.type)) {
    case 'message/user': return userMessage(index);
    case 'message/assistant': return assistantMessage(index, continues);
    case 'message/toolResult': return frame(index, 'assistant continues', toolCard({ name: message.toolName, arguments: {} }, message));
    case 'message/bashExecution': case 'message/pythonExecution': return bashRun(index);
    case 'message/system': return systemMessage(index);
    case 'message/fileMention': return mentionedFiles(index);
    case 'message/branchSummary': case 'branch_summary':
      return summary(index, 'Summary of a branch', str(entry.summary ?? message.summary));
    case 'message/compactionSummary': case 'compaction':
      return summary(index, `Compacted from ${short(entry.tokensBefore ?? message.tokensBefore)} tokens`, str(entry.summary ?? message.summary));
    case 'message/custom': case 'message/hookMessage': case 'custom_message': {
      const content = entry.content ?? message.content;
      if (!(entry.display ?? message.display)) return raw(index);
      return frame(index, 'custom', byline(entry, str(entry.customType ?? message.customType) || 'extension'), markdown(textOf(content)), ...pictures(content));
    }
    case 'model_change': case 'thinking_level_change': case 'session_info': return settingsLine(index);
    case 'label': return line(index, 'minor', 'Label ', el('b', '', str(entry.label) || '(removed)'));
    case 'usage': return line(index, 'minor', ['Usage', str(entry.kind), `${str(entry.provider)}/${str(entry.model)}`, usageWords(entry.usage)].filter(Boolean).join(' · '));
    case 'context_edit': return line(index, 'minor', entry.replacement === null || entry.replacement === undefined ? 'A message was left out of the context' : 'A message was replaced in the context');
    default: return entry.type === 'message' ? strangerMessage(index) : raw(index);
  }
}
