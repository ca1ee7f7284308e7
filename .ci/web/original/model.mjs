// A provider that answers as a test wants, piece by piece: the agent under test talks to it as to any other one. What is asked and
// answered is decided elsewhere.

import { createServer } from 'node:http';

export const WINDOW = 200000;

/** What `models.json` of the agent has to say about it. */
export const described = (url) => ({ providers: { scripted: { baseUrl: url, apiKey: 'none', api: 'openai-completions', models: [
  { id: 'one', name: 'One', reasoning: true, input: ['text'], contextWindow: WINDOW, maxTokens: 8000, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } }] } } });

/**
 * An answer is a list of `{ text }`, `{ thinking }`, `{ tool, args }`, `{ gate }` (waits until it is released), `{ status, error }` and
 * `{ tokens }` (of the prompt). Each request takes the next answer.
 */
export async function startModel() {
  const answers = [];
  const open = new Map();
  const gate = (name) => {
    if (!open.has(name)) { let release; const promise = new Promise((resolve) => { release = resolve; }); open.set(name, { promise, release }); }
    return open.get(name);
  };
  let calls = 0;
  const server = createServer(async (request, response) => {
    request.resume();
    const answer = answers.shift() || [{ status: 400, error: 'no answer is left' }];
    const refused = answer.find((part) => part.status);
    if (refused) { response.writeHead(refused.status, { 'content-type': 'application/json' }).end(JSON.stringify({ error: { message: refused.error } })); return; }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const send = (delta, reason = null, usage = undefined) => response.write(`data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'one',
      choices: [{ index: 0, delta, finish_reason: reason }], ...(usage ? { usage } : {}) })}\n\n`);
    let tools = 0;
    let tokens = 100;
    for (const part of answer) {
      if (part.text) send({ role: 'assistant', content: part.text });
      if (part.thinking) send({ role: 'assistant', reasoning_content: part.thinking });
      if (part.tokens) ({ tokens } = part);
      if (part.gate) await gate(part.gate).promise;
      if (part.tool) {
        calls += 1;
        send({ tool_calls: [{ index: tools, id: `call_${calls}`, type: 'function', function: { name: part.tool, arguments: JSON.stringify(part.args) } }] });
        tools += 1;
      }
      if (response.destroyed) return;
    }
    send({}, tools ? 'tool_calls' : 'stop', { prompt_tokens: tokens, completion_tokens: 10, total_tokens: tokens + 10 });
    response.end('data: [DONE]\n\n');
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    /** What comes next; what nobody asked for is forgotten. */
    answer: (...list) => { answers.splice(0, answers.length, ...list); },
    release: (name) => gate(name).release(),
    close() { server.close(); server.closeAllConnections(); },
  };
}
