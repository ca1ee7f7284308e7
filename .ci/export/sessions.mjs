// Writes the sessions that .ci/export-check exports: sessions.mjs PAYLOADS.json FOLDER [MEGABYTES]. `hostile` has every payload
// in every field, `sample` a short conversation with branches, `variants` what other versions and agents write and what is
// hard to show, `old` is of version 1, `large` has so many megabytes.

import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { deflateSync } from 'node:zlib';

const [payloadFile, folder, megabytes = '4'] = process.argv.slice(2);

/** A session file in the making. Entries follow the last one unless told otherwise. */
class Session {
  constructor(name, header = {}) {
    this.file = openSync(join(folder, `${name}.jsonl`), 'w');
    this.count = 0;
    this.calls = 0;
    this.last = null;
    this.bytes = 0;
    this.line({ type: 'session', version: 3, id: '01a1fb5a-7501-7c62-bc5c-cebc5d52d56c', timestamp: '2026-11-21T10:00:00.000Z', cwd: '/home/u/shop', ...header });
  }

  line(value) {
    const text = JSON.stringify(value) + '\n';
    this.bytes += text.length;
    writeSync(this.file, text);
  }

  add(type, body, parent = this.last) {
    this.count += 1;
    const id = this.count.toString(16).padStart(8, '0');
    this.line({ type, id, parentId: parent, timestamp: new Date(Date.UTC(2026, 10, 21, 10) + this.count * 7000).toISOString(), ...body });
    this.last = id;
    return id;
  }

  user(content, parent) {
    return this.add('message', { message: { role: 'user', content: typeof content === 'string' ? [text(content)] : content, timestamp: 1 } }, parent);
  }

  assistant(content, more = {}, parent = this.last) {
    const usage = { input: 1200, output: 345, cacheRead: 18000, cacheWrite: 900, totalTokens: 20445, cost: { input: 0.004, output: 0.005, cacheRead: 0.001, cacheWrite: 0.002, total: 0.012 } };
    return this.add('message', { message: { role: 'assistant', content, api: 'anthropic-messages', provider: 'anthropic', model: 'claude-mock', usage, stopReason: 'stop', timestamp: 1, ...more } }, parent);
  }

  call(name, args) {
    this.calls += 1;
    return { type: 'toolCall', id: `call_${this.calls}`, name, arguments: args };
  }

  result(call, output, more = {}) {
    const content = typeof output === 'string' ? [text(output)] : output;
    return this.add('message', { message: { role: 'toolResult', toolCallId: call.id, toolName: call.name, content, isError: false, timestamp: 1, ...more } });
  }

  say(role, body, parent) { return this.add('message', { message: { role, ...body, timestamp: 1 } }, parent); }

  end() { closeSync(this.file); }
}

const text = (words) => ({ type: 'text', text: words });
const thinking = (words) => ({ type: 'thinking', thinking: words });

function hostile(payloads) {
  const all = payloads.join(' ');
  const session = new Session('hostile', { id: all.slice(0, 4000), cwd: all });
  session.add('session_info', { name: all });
  for (const payload of payloads) {
    const image = { type: 'image', data: payload, mimeType: payload };
    const smuggled = { type: 'image', data: 'iVBORw0KGgo=" onerror="alert(1)', mimeType: 'image/png' };
    const said = session.user([text(payload), image, smuggled]);
    session.add('label', { targetId: said, label: payload });
    session.add('model_change', { provider: payload, modelId: payload });
    session.add('thinking_level_change', { thinkingLevel: payload });
    const names = ['bash', 'read', 'write', 'edit', 'ls', 'grep', 'find', payload];
    const args = { command: payload, path: payload, content: payload, pattern: payload, glob: payload, offset: payload, limit: payload, timeout: payload, edits: [{ oldText: payload, newText: payload }], [payload]: payload };
    const calls = names.map((name) => session.call(name, args));
    session.assistant([thinking(payload), text(payload), ...calls], { provider: payload, model: payload, api: payload, stopReason: 'error', errorMessage: payload });
    for (const call of calls) session.result(call, [text(payload), image], { details: { diff: payload, fullOutputPath: payload } });
    session.result({ id: payload, name: payload }, payload, { isError: true });
    session.add('message', { message: { role: 'bashExecution', command: payload, output: payload, exitCode: 1, truncated: true, fullOutputPath: payload, timestamp: 1 } });
    session.add('compaction', { summary: payload, firstKeptEntryId: payload, tokensBefore: 1 });
    session.add('branch_summary', { summary: payload, fromId: payload });
    session.add('custom_message', { customType: payload, content: payload, display: true });
    session.add('custom', { customType: payload, data: { [payload]: payload } });
    session.add(`x${payload}`, { [payload]: payload });
    session.say('system', { content: payload, sections: { [payload]: payload }, toolsAdded: [{ name: payload, description: payload, parameters: { properties: { [payload]: { type: payload, description: payload } }, required: [payload] } }], toolsRemoved: [{ name: payload }] });
    session.say('pythonExecution', { code: payload, output: payload, exitCode: payload });
    session.say('fileMention', { files: [{ path: payload, content: payload, image }] });
    session.say(payload, { content: payload, [payload]: payload });
    session.add('usage', { kind: payload, provider: payload, model: payload, usage: { input: payload, output: 1, cost: { total: payload } } });
    session.add('context_edit', { targetId: said, replacement: payload });
    session.add('context_edit', { targetId: payload, replacement: [text(payload), image] });
    const main = session.last;
    session.user(payload, said);
    session.last = main;
  }
  session.end();
}

/** A small picture, so that images are really shown. */
function picture(width, height) {
  const table = Array.from({ length: 256 }, (_, n) => { let c = n; for (let k = 0; k < 8; k += 1) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1; return c >>> 0; });
  const crc = (bytes) => { let c = 0xffffffff; for (const byte of bytes) c = table[(c ^ byte) & 255] ^ (c >>> 8); return (c ^ 0xffffffff) >>> 0; };
  const chunk = (name, data) => {
    const body = Buffer.concat([Buffer.from(name), data]);
    const head = Buffer.alloc(4);
    const tail = Buffer.alloc(4);
    head.writeUInt32BE(data.length);
    tail.writeUInt32BE(crc(body));
    return Buffer.concat([head, body, tail]);
  };
  const size = Buffer.alloc(13);
  size.writeUInt32BE(width, 0);
  size.writeUInt32BE(height, 4);
  size.set([8, 2, 0, 0, 0], 8);
  const rows = Buffer.alloc(height * (1 + width * 3));
  for (let y = 0; y < height; y += 1) for (let x = 0; x < width; x += 1) rows.set([(255 * x) / width, (255 * y) / height, 160], y * (1 + width * 3) + 1 + x * 3);
  const bytes = Buffer.concat([Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]), chunk('IHDR', size), chunk('IDAT', deflateSync(rows)), chunk('IEND', Buffer.alloc(0))]);
  return { type: 'image', data: bytes.toString('base64'), mimeType: 'image/png' };
}

function sample() {
  const session = new Session('sample');
  session.add('model_change', { provider: 'anthropic', modelId: 'claude-mock' });
  session.add('thinking_level_change', { thinkingLevel: 'medium' });
  session.user('The login form loses the `next` parameter after a failed attempt. Can you find out why and fix it?\n\nSteps:\n1. Open `/login?next=/admin`\n2. Type a wrong password');
  const grep = session.call('bash', { command: 'rg -n "next" --type py | head -20', timeout: 30 });
  const ls = session.call('ls', { path: 'app/auth' });
  session.assistant([thinking('The **next** parameter is lost. Let me look at where the form is rendered.\n\n- views.py\n- the template'), text("I'll look at how the form is handled."), grep, ls], { stopReason: 'toolUse' });
  session.result(grep, `\x1b[35mapp/auth/views.py\x1b[0m:\x1b[32m12\x1b[0m: request.args.get("\x1b[1;31mnext\x1b[0m")\n${Array.from({ length: 14 }, (_, i) => `app/other_${i}.py:${i}: \x1b[38;5;208mnext\x1b[0m`).join('\n')}\nLAST-LINE-OF-GREP`);
  session.result(ls, 'forms.py\nmodels.py\nviews.py');
  const edit = session.call('edit', { path: 'app/auth/views.py', edits: [{ oldText: 'redirect("/login")', newText: 'redirect(url_for("auth.login", next=target))' }] });
  session.assistant([text('The redirect drops the query string.'), edit], { stopReason: 'toolUse' });
  session.result(edit, 'Successfully replaced 1 block(s).', { details: { diff: ' 16         if user is None:\n-17             # BUG: the query string is gone\n-18             return redirect("/login")\n+17             return redirect(url_for("auth.login", next=target))\n 19         return redirect(target or "/")' } });
  const write = session.call('write', { path: 'tests/test_login.py', content: 'import pytest\n\n\ndef test_next_survives(client):\n    """The parameter is kept."""\n    page = client.post("/login?next=/admin")\n    assert page.location.endswith("next=%2Fadmin")  # kept\n' });
  session.assistant([write], { stopReason: 'toolUse' });
  session.result(write, 'ok');
  const test = session.call('bash', { command: 'pytest -q' });
  session.assistant([test], { stopReason: 'toolUse' });
  session.result(test, '\x1b[32m.\x1b[0m\x1b[31mF\x1b[0m [100%]\n\x1b[31mE  assert 200 == 400\x1b[0m', { isError: true });
  const answer = session.assistant([text('## What was wrong\n\nThe view redirected *without* the query string, so **`next` was gone**.\n\n| Case | Before | After |\n|:-----|:------:|------:|\n| wrong password | lost | kept |\n\n```rust\nfn main() -> Result<(), Box<dyn Error>> {\n    let n: u32 = "42".parse()?; // parse\n    Ok(())\n}\n```\n\n- [x] keep the parameter\n- [ ] refuse foreign targets\n  1. check the host\n\n> See https://example.com/docs or [the guide](https://example.com/guide).')]);
  session.add('label', { targetId: answer, label: 'diagnosis' });
  session.user([text('Here is a screenshot, can you match the colours?'), picture(240, 140)]);
  const search = session.call('web_search', { query: 'flask open redirect', limit: 3 });
  session.assistant([search], { stopReason: 'toolUse' });
  session.result(search, [text('[{"title": "Open redirects"}]'), picture(120, 60)]);
  session.assistant([text('Done.')], { stopReason: 'error', errorMessage: '529 overloaded_error' });
  session.add('compaction', { summary: '## Goal\nFix the login form.', firstKeptEntryId: answer, tokensBefore: 154321 });
  session.add('message', { message: { role: 'bashExecution', command: 'git diff --stat', output: ' views.py | 3 \x1b[32m+\x1b[31m--\x1b[0m', exitCode: 0, excludeFromContext: true, timestamp: 1 } });
  session.user('<skill name="review" location="/s/SKILL.md">\n# Review\nLook at *everything*.\n</skill>\n\nPlease review the change');
  const main = session.assistant([text('مرحبا 😀 Nothing to add.')]);
  session.user('Alternatively, store it in the session', answer);
  session.assistant([text('OTHER-BRANCH works as well.')]);
  session.add('session_info', { name: 'Login form keeps next' });
  session.user('Finally: summarise', main);
  session.assistant([text('All done. MARKER-END')]);
  session.end();
}

/** What other versions and agents write, failures, and what is hard to show. */
function variants() {
  const session = new Session('variants', { title: 'Title given by xcsh', titleSource: 'auto' });
  const failure = { stopReason: 'error', errorMessage: '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_011CVaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}' };
  session.say('system', { content: '', sections: { base: 'You are a careful engineer.\nSay what you do.', project: '# AGENTS.md\nUse tabs.' }, toolsAdded: [{ name: 'bash', description: 'Runs a command.', parameters: { type: 'object', properties: { command: { type: 'string', description: 'Command line' } }, required: ['command'] } }, { name: 'read', description: 'Reads a file.' }] });
  session.add('model_change', { model: 'anthropic/claude-mock', role: 'default' });
  session.add('thinking_level_change', { thinkingLevel: null });
  session.add('session_init', { task: 'none', tools: ['bash'] });
  session.say('user', { content: 'A question that is a plain string, as extensions write it.' });
  const lost = session.assistant([text('Half an ans')], failure);
  session.add('context_edit', { targetId: lost, replacement: null });
  session.add('usage', { kind: 'title', provider: 'anthropic', model: 'claude-small', usage: { input: 800, output: 12, cost: { total: 0.0004 } } });
  const task = session.call('task', { agent: 'explore', prompt: 'Find all callers' });
  const open = session.call('bash', { command: 'sleep 1000' });
  session.assistant([{ type: 'thinking', thinking: '', redacted: true }, text('I ask a helper and wait for something.'), task, open], { stopReason: 'toolUse', thinkingLevel: 'high', usage: { input: 10, output: 20, reasoning: 15, cacheRead: 0, cacheWrite: 0, totalTokens: 30, cost: { total: 0.0001 } } });
  const nestedCalls = { complete: false, calls: [{ name: 'grep', arguments: { pattern: 'caller' }, durationMs: 12, status: 'ok' }, { name: 'read', argumentsBytes: 2, status: 'error', error: 'No such file' }] };
  const result = session.result(task, 'Three callers: a.rs, b.rs, c.rs', { usage: { input: 5000, output: 400, cost: { total: 0.02 } }, nestedCalls });
  session.add('context_edit', { targetId: result, replacement: 'Three callers.' });
  session.add('mode_change', { mode: 'plan' });
  session.add('ttsr_injection', { rules: ['no-unwrap'] });
  session.say('system', { content: '', sections: { project: null, rules: 'Write tests.' }, toolsRemoved: [{ name: 'read' }] });
  session.say('developer', { content: [text('Plan mode is on: **do not write files**.')] });
  session.say('fileMention', { files: [{ path: 'src/lib.rs', content: 'pub fn one() -> u8 {\n    1\n}\n' }, { path: 'notes.txt', content: '' }] });
  session.say('pythonExecution', { code: 'for i in range(3):\n    print(i)', output: '0\n1\n2\n', exitCode: 0, cancelled: false, truncated: false });
  session.say('oracle', { content: 'A role from the future says this.', confidence: 0.5 });
  session.say('silent', { data: [1, 2, 3] });
  session.say('bashExecution', { command: 'cargo test', output: '\x1b[1;31merror\x1b[0m: could not compile', exitCode: 101, cancelled: false, truncated: true, fullOutputPath: '/tmp/pi-bash-1.log' });
  session.say('bashExecution', { command: 'sleep 99', output: '', cancelled: true, truncated: false });
  const fork = session.assistant([text('Which way shall we go?')]);
  session.user('First way: rewrite the parser', fork);
  session.assistant([text('The rewrite has begun.')]);
  const first = session.user('Go on with the rewrite');
  session.assistant([text('It turned out to be too much.')], { stopReason: 'aborted', errorMessage: 'Operation aborted' });
  session.user('Second way: patch it', fork);
  session.assistant([text('A patch is enough. Three lines.')]);
  session.add('branch_summary', { fromId: first, summary: '## Goal\nThe parser was to be rewritten.\n\n## Outcome\nToo much work; **given up**.', details: { readFiles: [], modifiedFiles: [] } }, fork);
  session.add('custom_message', { customType: 'reminder', content: 'An extension says: *mind the gap*.', display: true });
  session.add('custom_message', { customType: 'hidden', content: 'not to be displayed', display: false });
  const edit = session.call('edit', { path: 'src/parser/expression.rs', edits: [] });
  session.user('Third way: only fix the precedence of `..`');
  session.assistant([edit], { stopReason: 'toolUse' });
  session.result(edit, 'ok', { details: { diff: '  98     }\n  99 \n-100     let precedence = table.lookup(token).unwrap_or(Precedence::Lowest);\n+100     let precedence = table.lookup(token).unwrap_or(Precedence::Range);\n 101     if precedence < minimum {\n     ...\n 240     fn range(&mut self) {\n-241         let end = self.expression(0);\n-242         Node::Range { start, end, inclusive: false, span: self.span_from(start_of_the_whole_range_expression).joined(end.span()) }\n+241         let end = self.expression(Precedence::Range as u8);\n+242         Node::Range { start, end, inclusive: self.was(Token::DotDotEq), span: self.span_from(start_of_the_whole_range_expression).joined(end.span()) }\n+243         // kept\n 244     }' } });
  const huge = session.call('bash', { command: 'cat access.log' });
  session.assistant([huge, session.call('never_answered', {})], { stopReason: 'toolUse' });
  session.result(huge, Array.from({ length: 9000 }, (_, i) => `10.0.0.${i % 256} - - "GET /item/${i}" 200 ${i * 37 % 9973}`).join('\n'), { details: { fullOutputPath: '/tmp/pi-bash-2.log' } });
  const minified = session.call('read', { path: 'dist/app.min.js', offset: 1, limit: 1 });
  session.assistant([minified], { stopReason: 'toolUse' });
  session.result(minified, 'var a=function(b){return b+1};'.repeat(7000));
  session.add('compaction', { summary: '## Progress\n- [x] precedence\n- [ ] tests', shortSummary: 'precedence fixed', firstKeptEntryId: edit.id, tokensBefore: 181234, usage: { input: 180000, output: 900, cost: { total: 0.6004 } }, fromExtension: false });
  session.assistant([text(`Some words that do not fit: ${'donaudampfschifffahrts'.repeat(12)} and https://example.com/${'a/very/long/address/'.repeat(12)}\n\n\`\`\`sql\nSELECT ${Array.from({ length: 30 }, (_, i) => `column_${i}`).join(', ')} FROM wide WHERE id = 1; -- all on one line\n\`\`\`\n\n| ${Array.from({ length: 14 }, (_, i) => `Heading ${i}`).join(' | ')} |\n|${'---|'.repeat(14)}\n| ${Array.from({ length: 14 }, (_, i) => `value ${i}`).join(' | ')} |\n\nInline \`${'x'.repeat(300)}\` too.`)], { stopReason: 'length' });
  session.user('هذا سؤال باللغة العربية عن الملف `main.rs` وكيفية إصلاحه؟\n\nשאלה בעברית: מה השתנה?\n\n- بند أول\n- بند ثان\n\n中文：请解释一下这个函数。 👩‍👩‍👧‍👦 🇺🇳 ✅');
  session.count += 14000;
  session.assistant([text('الجواب: غيّر السطر الأول.\n\n```rust\nfn main() {}\n```\n\n## Nested\n\n1. one\n   - a\n     - b\n       > quoted in a list\n2. two\n\n   ```sh\n   cargo run -- --flag "x" # comment\n   ```\n\n~~old~~ ***both*** `code` <b>not bold</b> &amp; \\*escaped\\*\n\n***\n\nLine one  \nLine two[^1]')]);
  session.add('label', { targetId: fork, label: 'cross-roads' });
  session.user('Last words. MARKER-VARIANTS');
  session.assistant([text('Bye.')]);
  session.end();
}

/** As version 1 wrote it: no ids, no tree. */
function old() {
  const session = new Session('old', { version: undefined, provider: 'anthropic', modelId: 'claude-old', thinkingLevel: 'off' });
  const add = (type, body) => session.line({ type, timestamp: '2025-06-01T10:00:00.000Z', ...body });
  const usage = { input: 10, output: 5, cacheRead: 0, cacheWrite: 0, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0.001 } };
  add('message', { message: { role: 'user', content: 'OLD-QUESTION', timestamp: 1 } });
  add('message', { message: { role: 'assistant', content: [text('OLD-ANSWER')], api: 'anthropic-messages', provider: 'anthropic', model: 'claude-old', usage, stopReason: 'stop', timestamp: 1 } });
  add('message', { message: { role: 'hookMessage', customType: 'hook', content: 'from a hook', display: true, timestamp: 1 } });
  add('compaction', { summary: 'What was before', firstKeptEntryIndex: 2, tokensBefore: 100 });
  add('message', { message: { role: 'user', content: [text('MARKER-OLD')], timestamp: 1 } });
  session.end();
}

function large() {
  const session = new Session('large');
  const words = 'the parser reads a line and gives back what it means before the next one is looked at by anybody else '.split(' ');
  const prose = (n, seed) => Array.from({ length: n }, (_, i) => words[(i * 7 + seed * 13 + (i % 5)) % words.length] + (i % 17 === 16 ? '.\n\n' : ' ')).join('');
  for (let turn = 0; session.bytes < Number(megabytes) * 1024 * 1024; turn += 1) {
    session.user(`Question ${turn}: ${prose(30, turn)}`);
    const call = session.call('bash', { command: `cargo test -p part_${turn}` });
    session.assistant([thinking(prose(120, turn)), text(`I look at **part ${turn}**.\n\n${prose(60, turn)}`), call], { stopReason: 'toolUse' });
    session.result(call, Array.from({ length: 60 }, (_, i) => `\x1b[32mtest\x1b[0m part_${turn}::case_${i} ... ok ${prose(4, i)}`.trim()).join('\n'));
    session.assistant([text(`### Part ${turn}\n\n${prose(150, turn)}\n\n\`\`\`rust\nfn part_${turn}() -> usize { ${turn} }\n\`\`\`\n\n- first ${turn}\n- second`)]);
  }
  session.user('LAST-QUESTION of a long day');
  session.assistant([text('MARKER-END')]);
  session.end();
}

hostile(JSON.parse(readFileSync(payloadFile, 'utf8')));
sample();
variants();
old();
large();
