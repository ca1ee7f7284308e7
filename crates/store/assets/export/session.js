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
  let name = str(SESSION.name);
  for (const entry of entries) {
    if (entry.type === 'label') {
      const label = str(entry.label).trim();
      if (label) labels.set(entry.targetId, label); else labels.delete(entry.targetId);
    }
  }
  const results = new Map();
  entries.forEach((entry, i) => {
    if (roleOf(entry) === 'toolResult') {
      const key = str(entry.message.toolCallId);
      if (!results.has(key)) results.set(key, []);
      results.get(key).push(i);
    }
  });
  return { entries, indexOf, parent, children, roots, labels, name, results };
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
      if (message.role === 'bashExecution') return str(message.command) + '\n' + withoutAnsi(str(message.output));
      const texts = [textOf(message.content), str(message.errorMessage), str(message.summary), str(message.toolName), str(message.model)];
      for (const block of list(message.content)) {
        if (block && block.type === 'thinking') texts.push(str(block.thinking));
        if (block && block.type === 'toolCall') texts.push(str(block.name), Object.values(obj(block.arguments)).map(str).join('\n'));
      }
      return texts.join('\n');
    }
    case 'custom_message': return str(entry.customType) + '\n' + textOf(entry.content);
    case 'model_change': return `${str(entry.provider)}/${str(entry.modelId)} ${str(entry.model)}`;
    default: return [entry.type, entry.summary, entry.name, entry.label, entry.customType, entry.thinkingLevel].map(str).join('\n');
  }
}

/** Figures over all entries of all branches. */
function figures() {
  const sum = { user: 0, assistant: 0, tools: 0, failures: 0, input: 0, output: 0, cacheRead: 0, cacheWrite: 0, cost: 0, models: new Map(), from: '', to: '' };
  for (const entry of model.entries) {
    if (!sum.from) sum.from = entry.timestamp;
    sum.to = entry.timestamp || sum.to;
    const role = roleOf(entry);
    if (role === 'user') sum.user += 1;
    if (role === 'toolResult' && entry.message.isError) sum.failures += 1;
    if (role !== 'assistant') continue;
    const message = entry.message;
    sum.assistant += 1;
    sum.tools += toolCalls(message).length;
    const usage = obj(message.usage);
    const cost = num(obj(usage.cost).total);
    const key = `${str(message.provider)}/${str(message.model)}`;
    const one = sum.models.get(key) || { answers: 0, input: 0, output: 0, cacheRead: 0, cacheWrite: 0, cost: 0 };
    one.answers += 1;
    for (const target of [sum, one]) {
      for (const field of ['input', 'output', 'cacheRead', 'cacheWrite']) target[field] += num(usage[field]);
      target.cost += cost;
    }
    sum.models.set(key, one);
  }
  return sum;
}

/** The session as a file that the agent opens again. */
function jsonl() {
  return [SESSION.header, ...model.entries].map((line) => JSON.stringify(line)).join('\n') + '\n';
}
