// The head of the page: what session this is, its figures, system prompt and tools.

function fact(name, value, title) {
  const node = el('div', 'fact', el('dt', '', name), el('dd', '', value));
  if (title) node.title = title;
  return node;
}

/** The name to show: what it was called, else where it ran. */
function sessionTitle() {
  const folder = str(obj(SESSION.header).cwd).split(/[\\/]/).filter(Boolean).pop();
  return model.name.trim() || str(obj(SESSION.header).title).trim() || folder || 'Session';
}

function costTable(sum) {
  const rows = [...sum.models].map(([name, one]) => el('tr', '', el('td', '', name.replace(/^\//, '')),
    ...[one.answers ? one.answers.toLocaleString('en') : '–', short(one.input), short(one.output), short(one.cacheRead), short(one.cacheWrite), money(one.cost)].map((cell) => el('td', 'right', cell))));
  const head = el('tr', '', ...['Model', 'Answers', 'In', 'Out', 'Cache read', 'Cache write', 'Cost'].map((cell, i) => el('th', i ? 'right' : '', cell)));
  return el('div', 'table', el('table', '', el('thead', '', head), el('tbody', '', ...rows)));
}

/** Parameters of a tool, one per line. */
function parameters(schema) {
  const required = new Set(list(schema.required).map(str));
  const rows = Object.entries(obj(schema.properties)).map(([name, about]) => el('li', '', el('code', '', name),
    el('span', 'range', [str(obj(about).type), required.has(name) ? 'required' : ''].filter(Boolean).join(', ')), ' ', str(obj(about).description)));
  return rows.length ? el('ul', 'parameters', ...rows) : null;
}

function toolList(tools) {
  return tools.map((tool) => el('div', 'tool-about', el('h3', '', str(obj(tool).name)), el('p', '', str(obj(tool).description)), parameters(obj(obj(tool).parameters))));
}

function drawHeader() {
  const header = obj(SESSION.header);
  const sum = figures();
  const title = sessionTitle();
  const told = toldOf(pathTo(firstLeaf()));
  const span = moment(sum.from, DATE) && moment(sum.to, DATE) ? `${moment(sum.from, DATE)} – ${moment(sum.to, DATE)}` : '';
  const names = [...sum.models].filter(([, one]) => one.answers).map(([name]) => name.split('/').slice(1).join('/'));
  const facts = el('dl', 'facts',
    fact('Date', moment(header.timestamp, DATE) || '–', str(header.timestamp)),
    fact('Duration', lasting(new Date(sum.to) - new Date(sum.from)) || '–', span),
    fact('Folder', str(header.cwd) || '–'),
    fact(names.length > 1 ? 'Models' : 'Model', names.join(', ') || '–'),
    fact('Messages', `${sum.user.toLocaleString('en')} user, ${sum.assistant.toLocaleString('en')} assistant`),
    fact('Tool calls', sum.tools.toLocaleString('en') + (sum.failures ? ` (${sum.failures} failed)` : '')),
    fact('Tokens', `${short(sum.input)} in, ${short(sum.output)} out` + (sum.cacheRead + sum.cacheWrite ? `, ${short(sum.cacheRead)} cached` : '')),
    fact('Cost', money(sum.cost)));
  const more = el('div', 'more-info');
  if (sum.models.size) more.append(drawer('info', [el('span', '', 'Usage by model')], () => costTable(sum), false));
  const { prompt, tools } = told;
  if (prompt) more.append(drawer('info', [el('span', '', 'System prompt'), el('span', 'glimpse', plural(prompt.split('\n').length, 'line'))], () => folding(prompt, 200, (text) => el('pre', 'out', text)), false));
  if (tools.length) more.append(drawer('info', [el('span', '', plural(tools.length, 'tool')), el('span', 'glimpse', tools.map((tool) => str(obj(tool).name)).join(', '))], () => toolList(tools), false));
  const id = el('div', 'id', el('code', '', str(header.id)), copyButton('copy', 'Copy the session id', () => str(header.id)));
  byId('header').append(el('h1', '', title), id, facts, more);
  byId('bar-title').textContent = title;
  const keys = [['T', 'reasoning'], ['O', 'tool output'], ['⇧O', 'tool cards'], ['H', 'hidden entries'], ['J', 'next question'], ['K', 'previous'], ['/', 'search'], ['Esc', 'reset']];
  byId('footer').append(
    el('div', 'keys', ...keys.map(([key, what]) => el('span', '', el('kbd', '', key), ' ' + what))),
    el('div', '', [plural(model.entries.length, 'entry'), span].filter(Boolean).join(' · ')),
    button('more', 'Download the session (JSONL)', download));
}
