// A conversation with everything in it, to look at and to take pictures of.

import { crc32, deflateSync } from 'node:zlib';
import { runTool, sayUser, stream } from './agent.mjs';

/** A small chart as a PNG, made here so that no file of pictures is needed. */
function chart() {
  const [width, height] = [360, 150];
  const rows = Buffer.alloc((width * 3 + 1) * height, 250);
  for (let y = 0; y < height; y += 1) {
    rows[y * (width * 3 + 1)] = 0;
    for (let x = 0; x < width; x += 1) {
      const bar = Math.floor(x / 30);
      const isBar = x % 30 > 6 && height - y < 24 + ((bar * 37) % 11) * 11 && height - y > 6;
      if (isBar) rows.set(bar === 7 ? [0xb3, 0x26, 0x1e] : [0x0b, 0x6a, 0x67], y * (width * 3 + 1) + 1 + x * 3);
    }
  }
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(body));
    return Buffer.concat([length, body, sum]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2, 0, 0, 0], 8);
  return Buffer.concat([Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]), chunk('IHDR', head), chunk('IDAT', deflateSync(rows)), chunk('IEND', Buffer.alloc(0))]).toString('base64');
}

export function fill(agent) {
  const now = Date.now();
  const session = agent.first;
  session.name = 'Parser: torn lines';
  session.todos = [{ id: 'p1', name: 'Parser', tasks: [
    { id: 't1', content: 'Find where torn lines are dropped', status: 'completed' },
    { id: 't2', content: 'Keep whole entries before the tear', status: 'in_progress' },
    { id: 't3', content: 'Tell the client what was cut off', status: 'pending' }] }];
  agent.listed = [
    ['s-first', 'Parser: torn lines', '/home/ada/rack', 5, 24], ['a1', 'Speed up the session list', '/home/ada/rack', 70, 112], ['a2', undefined, '/home/ada/rack', 1500, 38, 'Why does the export leave out images that were pasted?'],
    ['b1', 'Release 0.4', '/home/ada/gears/site', 3000, 61], ['b2', undefined, '/home/ada/gears/site', 9000, 7, 'Make the page readable on a phone'], ['c1', 'Try the new tokenizer', '/home/ada/lab', 40000, 204],
  ].map(([id, name, cwd, minutes, count, first]) => ({ path: `/sessions/${id}.jsonl`, id, cwd, name, created: new Date(now - minutes * 60000).toISOString(),
    modified: new Date(now - minutes * 60000).toISOString(), messageCount: count, firstMessage: first || 'Hello', allMessagesText: '' }));

  sayUser(agent, 'The store loses the last message when the process dies in the middle of a write. Can you find out why, and fix it?');
  const read = { type: 'toolCall', id: 'c1', name: 'read', arguments: { path: '/home/ada/rack/crates/store/src/recover.rs' } };
  const grep = { type: 'toolCall', id: 'c2', name: 'grep', arguments: { pattern: 'fn recover|torn', path: 'crates/store' } };
  stream(agent, [{ type: 'thinking', thinking: 'A torn tail is cut at the last line feed. If the line before the tear is whole but lacks its line feed, it is dropped as well.\n\nLet me look at recover.rs.' },
    { type: 'text', text: 'I’ll look at how the log is recovered, and who calls it.' }, read, grep], { stopReason: 'toolUse' });
  runTool(agent, read, 'pub fn recover(bytes: &[u8]) -> Recovered {\n    let end = bytes.iter().rposition(|byte| *byte == b\'\\n\').map_or(0, |at| at + 1);\n    Recovered { kept: &bytes[..end], torn: bytes.len() - end }\n}\n', { durationMs: 4 });
  runTool(agent, grep, 'crates/store/src/recover.rs:1:pub fn recover(bytes: &[u8]) -> Recovered {\ncrates/store/src/open.rs:48:    let found = recover(&bytes);', { durationMs: 31 });
  const edit = { type: 'toolCall', id: 'c3', name: 'edit', arguments: { path: '/home/ada/rack/crates/store/src/recover.rs', edits: [{ oldText: 'a', newText: 'b' }] } };
  const test = { type: 'toolCall', id: 'c4', name: 'bash', arguments: { command: 'cargo test -p store recover' } };
  stream(agent, [{ type: 'text', text: 'That is it: a whole entry **without its final line feed** counts as torn. I’ll keep it when it parses.' }, edit, test], { stopReason: 'toolUse' });
  runTool(agent, edit, 'Successfully replaced 1 block(s) in recover.rs.', { durationMs: 12, details: { firstChangedLine: 2, diff: ' 1 pub fn recover(bytes: &[u8]) -> Recovered {\n-2     let end = bytes.iter().rposition(|byte| *byte == b\'\\n\').map_or(0, |at| at + 1);\n-3     Recovered { kept: &bytes[..end], torn: bytes.len() - end }\n+2     let last = bytes.iter().rposition(|byte| *byte == b\'\\n\').map_or(0, |at| at + 1);\n+3     let end = if is_entry(&bytes[last..]) { bytes.len() } else { last };\n+4     Recovered { kept: &bytes[..end], torn: bytes.len() - end }\n 5 }' } });
  runTool(agent, test, '\u001b[1m\u001b[32m   Compiling\u001b[0m store v0.1.0\n\u001b[1m\u001b[32m    Finished\u001b[0m `test` profile in 6.41s\n\nrunning 3 tests\ntest recover::keeps_whole_entries ... \u001b[32mok\u001b[0m\ntest recover::cuts_torn_tail ... \u001b[31mFAILED\u001b[0m\ntest recover::empty ... \u001b[32mok\u001b[0m\n\ntest result: \u001b[31mFAILED\u001b[0m. 2 passed; 1 failed\n\n\nCommand exited with code 101', { isError: true, durationMs: 7400 });
  stream(agent, [{ type: 'text', text: 'One test expected the old behaviour. Here is what changes:\n\n| File ends with | before | now |\n|---|---|---|\n| whole entry, line feed | kept | kept |\n| whole entry, no line feed | **lost** | kept |\n| half an entry | cut | cut |\n\n```rust\nfn is_entry(tail: &[u8]) -> bool {\n    // A torn entry never parses: its last brace is missing.\n    serde_json::from_slice::<Entry>(tail).is_ok()\n}\n```\n\n1. `recover` keeps a whole entry even without its line feed.\n2. The next append begins with one.\n\n> The file is never rewritten, only appended to.\n\nShall I adapt the test, too? See [the notes](https://example.org/notes).' }]);
  sayUser(agent, 'Yes. And show me how long recovery takes now.');
  const at = (path) => `/home/ada/rack/crates/store/${path}`;
  const calls = [
    ['d1', 'read', { path: at('tests/recover.rs') }, 'fn cuts_torn_tail() {'], ['d2', 'grep', { pattern: 'torn' }, 'tests/recover.rs:14: torn'],
    ['d3', 'edit', { path: at('tests/recover.rs') }, 'Done', { diff: ' 13 #[test]\n-14 fn cuts_torn_tail() {\n-15     assert_eq!(recover(ENTRY).torn, ENTRY.len());\n+14 fn keeps_entry_without_line_feed() {\n+15     assert_eq!(recover(ENTRY).torn, 0);\n 16 }' }],
    ['d4', 'edit', { path: at('src/append.rs') }, 'Done', { diff: ' 30 fn append(&mut self, entry: &Entry) -> Result<()> {\n+31     if !self.ends_with_line_feed { self.file.write_all(b"\\n")?; }\n 32     let line = to_line(entry)?;' }],
    ['d5', 'write', { path: at('benches/recover.rs'), content: 'use store::recover;\n\nfn main() {\n    time(|| recover(LARGE));\n}\n' }, 'Written'],
    ['d6', 'bash', { command: 'cargo test -p store && cargo bench -p store' }, 'test result: ok. 3 passed'],
  ];
  stream(agent, [{ type: 'thinking', thinking: 'The test expects the old behaviour.' }], { stopReason: 'toolUse' });
  for (const [id, name, args, result, details] of calls) {
    const call = { type: 'toolCall', id, name, arguments: args };
    stream(agent, [call], { stopReason: 'toolUse' });
    runTool(agent, call, result, { details, durationMs: 900 });
  }
  stream(agent, [{ type: 'text', text: 'All three tests pass. Here is how long it takes:' }], { stopReason: 'toolUse' });
  const shot = { type: 'toolCall', id: 'c5', name: 'read', arguments: { path: 'target/recover.png' } };
  stream(agent, [shot], { stopReason: 'toolUse' });
  runTool(agent, shot, 'Read image file [image/png]', { images: [{ type: 'image', data: chart(), mimeType: 'image/png' }], durationMs: 3 });
  stream(agent, [{ type: 'text', text: 'Done: the entry is kept, the next append begins with a line feed, and recovery takes **no longer** than before.' }]);
}
