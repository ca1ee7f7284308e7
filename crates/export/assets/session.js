// The session as data: its tree, paths through it, labels, figures. No elements are made here.

const SESSION = JSON.parse(byId('session-data').textContent);

const model = (() => {
  const entries = list(SESSION.entries).filter((entry) => entry && typeof entry === 'object');
  const indexOf = new Map();
  entries.forEach((entry, i) => indexOf.set(entry.id, i));
  const parent = new Int32Array(entries.length).fill(-1);
  entries.forEach((entry, i) => {
    const at = indexOf.get(entry.parentId);
    if (at !== undefined && at !== i) parent[i] = at;
  });
  // Damaged files can have circles; each entry that would close one becomes a root.
  const state = new Uint8Array(entries.length);
  for (let i = 0; i < entries.length; i += 1) {
    const walk = [];
    let at = i;
    while (at >= 0 && state[at] === 0) { state[at] = 1; walk.push(at); at = parent[at]; }
    if (at >= 0 && state[at] === 1) parent[walk[walk.length - 1]] = -1;
    for (const seen of walk) state[seen] = 2;
  }
  const children = entries.map(() => []);
  const roots = [];
  parent.forEach((at, i) => (at < 0 ? roots : children[at]).push(i));

  const labels = new Map();
  const name = str(SESSION.name);
  for (const entry of entries) {
    if (entry.type === 'label') {
      const label = str(entry.label).trim();
      if (label) labels.set(entry.targetId, label); else labels.delete(entry.targetId);
    }
  }
  return { entries, indexOf, parent, children, roots, labels, name };
})();

/** The role of a message entry; empty for all others. */
function roleOf(entry) {
  return entry.type === 'message' && entry.message ? str(entry.message.role) : '';
}

/** Indexes from a root to an entry. */
function pathTo(index) {
  const path = [];
  for (let at = index; at >= 0; at = model.parent[at]) path.push(at);
  return path.reverse();
}

/** The newest leaf below an entry. */
function leafBelow(index) {
  let newest = index;
  const open = [index];
  while (open.length) {
    const at = open.pop();
    if (model.children[at].length === 0 && (at > newest || newest === index)) newest = at;
    for (const child of model.children[at]) open.push(child);
  }
  return newest;
}

/** The leaf that is shown first. */
function firstLeaf() {
  const at = model.indexOf.get(SESSION.leafId);
  return at === undefined ? model.entries.length - 1 : at;
}

const toolCalls = (message) => list(message.content).filter((block) => block && block.type === 'toolCall');
const hasText = (message) => list(message.content).some((block) => block && block.type === 'text' && str(block.text).trim());
const failed = (message) => message.stopReason === 'error' || message.stopReason === 'aborted';

/** Everything an entry says, for searching. */
function wordsOf(entry) {
  const message = entry.message;
  switch (entry.type) {
    case 'message': {
      if (!message) return '';
      if (RUNS.has(message.role)) return str(message.command ?? message.code) + '\n' + withoutAnsi(str(message.output));
      if (message.role === 'fileMention') return filesOf(message).map((file) => file.path + '\n' + file.content).join('\n');
      if (message.role === 'system') return [systemTitle(model.indexOf.get(entry.id)), systemChanges(message), promptOf(message)].join('\n');
      const texts = [textOf(message.content), str(message.errorMessage), str(message.summary), str(message.toolName), str(message.model)];
      for (const block of list(message.content)) {
        if (block && block.type === 'thinking') texts.push(str(block.thinking));
        if (block && block.type === 'toolCall') texts.push(str(block.name), Object.values(obj(block.arguments)).map(str).join('\n'));
      }
      return texts.join('\n');
    }
    case 'custom_message': return str(entry.customType) + '\n' + textOf(entry.content);
    case 'context_edit': return 'context edit\n' + textOf(entry.replacement);
    case 'usage': return `usage ${str(entry.kind)} ${str(entry.provider)}/${str(entry.model)}`;
    case 'model_change': return `${str(entry.provider)}/${str(entry.modelId)} ${str(entry.model)}`;
    default: return [entry.type, entry.summary, entry.name, entry.label, entry.customType, entry.thinkingLevel].map(str).join('\n');
  }
}

/** Model work of an entry: an answer, or what summaries, tools and extensions used besides. */
function workOf(entry) {
  const message = obj(entry.message);
  if (roleOf(entry) === 'assistant') return { model: `${str(message.provider)}/${str(message.model)}`, usage: obj(message.usage), answer: 1 };
  if (entry.type === 'usage') return { model: `${str(entry.provider)}/${str(entry.model)}`, usage: obj(entry.usage), answer: 0 };
  const usage = roleOf(entry) === 'toolResult' ? message.usage : entry.type === 'compaction' || entry.type === 'branch_summary' ? entry.usage : null;
  return usage ? { model: entry.message ? '/inside tools' : '/summaries', usage: obj(usage), answer: 0 } : null;
}

/** Figures over all entries of all branches. */
function figures() {
  const sum = { user: 0, assistant: 0, tools: 0, failures: 0, input: 0, output: 0, cacheRead: 0, cacheWrite: 0, cost: 0, models: new Map(), from: '', to: '' };
  model.entries.forEach((entry) => {
    if (!sum.from) sum.from = entry.timestamp;
    sum.to = entry.timestamp || sum.to;
    const role = roleOf(entry);
    if (role === 'user') sum.user += 1;
    if (role === 'toolResult' && entry.message.isError) sum.failures += 1;
    if (role === 'assistant') {
      sum.assistant += 1;
      sum.tools += toolCalls(entry.message).length;
    }
    const work = workOf(entry);
    if (!work) return;
    const cost = num(obj(work.usage.cost).total);
    const one = sum.models.get(work.model) || { answers: 0, input: 0, output: 0, cacheRead: 0, cacheWrite: 0, cost: 0 };
    one.answers += work.answer;
    for (const target of [sum, one]) {
      for (const field of ['input', 'output', 'cacheRead', 'cacheWrite']) target[field] += num(work.usage[field]);
      target.cost += cost;
    }
    sum.models.set(work.model, one);
  });
  return sum;
}

/** Messages that are commands of the user with their output. */
const RUNS = new Set(['bashExecution', 'pythonExecution']);

/** The files of a `fileMention` message. */
const filesOf = (message) => list(message.files).map((file) => ({ path: str(obj(file).path), content: str(obj(file).content), image: obj(file).image }));

/** The prompt that a system message holds: its sections, else its content. */
function promptOf(message) {
  const sections = Object.values(obj(message.sections)).map(str).filter(Boolean);
  return sections.length ? sections.join('\n\n') : textOf(message.content);
}

/** What a system message is: the first on its branch has the prompt, later ones change it. */
function systemTitle(index) {
  for (let at = model.parent[index]; at >= 0; at = model.parent[at]) {
    const entry = model.entries[at];
    if (roleOf(entry) === 'system' || (entry.type === 'compaction' && entry.systemMessage)) return 'system update';
  }
  return 'system prompt';
}

/** What a system message sets, by name; a minus for what it takes away. */
function systemChanges(message) {
  const sections = Object.entries(obj(message.sections)).map(([name, text]) => (text === null ? '-' : '') + name);
  const tools = [['+', message.toolsAdded], ['-', message.toolsRemoved]]
    .flatMap(([sign, changed]) => list(changed).map((tool) => sign + str(obj(tool).name)));
  return [textOf(message.content) ? 'instructions' : '', ...sections, tools.length ? `tools ${tools.join(' ')}` : ''].filter(Boolean).join(', ');
}

/** System prompt and tools: given with the session, or what the system messages on a path come to. */
function toldOf(path) {
  const sections = new Map();
  const tools = new Map();
  let whole = '';
  for (const index of path) {
    if (roleOf(model.entries[index]) !== 'system') continue;
    const { message } = model.entries[index];
    for (const [name, text] of Object.entries(obj(message.sections))) if (text === null) sections.delete(name); else sections.set(name, str(text));
    whole = textOf(message.content) || whole;
    for (const tool of list(message.toolsRemoved)) tools.delete(str(obj(tool).name));
    for (const tool of list(message.toolsAdded)) tools.set(str(obj(tool).name), tool);
  }
  return {
    prompt: str(SESSION.systemPrompt) || [...sections.values()].filter(Boolean).join('\n\n') || whole,
    tools: list(SESSION.tools).length ? SESSION.tools : [...tools.values()],
  };
}

/** The session as a file that the agent opens again. */
function jsonl() {
  return [SESSION.header, ...model.entries].map((line) => JSON.stringify(line)).join('\n') + '\n';
}
