//! Extensions that misbehave, in TypeScript and as programs. In every case the current answer ends, the next prompt
//! works, the agent stays small, and no process is left behind; an extension that was ended is named.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::llm::Reply;

use crate::extensions::can_run;
use crate::kit::{LONG, Pi, World, of_type, skipped, write_program};

/// Where its code stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Load,
    Event,
    Tool,
    Command,
    /// Of a program: instead of everything that it does.
    All,
}

/// Whether the error names the extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    /// With these words.
    With(&'static str),
    /// That depends on how fast the machine is.
    Maybe,
    /// It did no harm.
    No,
}

use Named::{Maybe, No, With};

type Case = (&'static str, At, &'static str, Named);

/// Like a loop, for as long as it may, but it leaves the core to other tests.
const BLOCK: &str = "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);";
const SLEEP: &str = "while True: time.sleep(60)";

const TYPESCRIPT: &[Case] = &[
    (
        "loops while it loads",
        At::Load,
        "for (;;);",
        With("did not answer"),
    ),
    ("loops in a handler", At::Event, BLOCK, With("did not answer")),
    ("loops in a tool", At::Tool, BLOCK, With("did not answer")),
    ("loops in a command", At::Command, BLOCK, With("did not answer")),
    (
        // It may be so busy with it that it does not answer, either.
        "eats memory",
        At::Tool,
        "const all = []; for (;;) { all.push(Buffer.alloc(1 << 22, 1)); await new Promise((go) => setImmediate(go)); }",
        With("and was ended"),
    ),
    (
        "throws while it loads",
        At::Load,
        "throw new Error('no load');",
        With("no load"),
    ),
    (
        "throws in a handler",
        At::Event,
        "throw new Error('no call');",
        With("no call"),
    ),
    ("throws in a tool", At::Tool, "throw new Error('no tool');", No),
    (
        "throws in a timer",
        At::Load,
        "setTimeout(() => { throw new Error('too late'); }, 50);",
        With("too late"),
    ),
    (
        "rejects and nobody listens",
        At::Tool,
        "Promise.reject(new Error('unheard'));",
        With("unheard"),
    ),
    (
        "prints without end",
        At::Tool,
        "for (let i = 0; i < 20000; i++) console.log('x'.repeat(100));",
        No,
    ),
    (
        "writes garbage to stdout",
        At::Tool,
        "for (let i = 0; i < 50; i++) process.stdout.write(Buffer.alloc(5000, i));",
        No,
    ),
    (
        "writes garbage to descriptor 1",
        At::Tool,
        "const { writeSync } = await import('node:fs'); for (let i = 0; i < 50; i++) writeSync(1, Buffer.alloc(500, i * 5));",
        No,
    ),
    (
        "exits",
        At::Tool,
        "process.exit(3);",
        With("process.exit is not available"),
    ),
    ("aborts", At::Tool, "process.abort();", With("signal 6")),
    (
        "kills itself",
        At::Event,
        "process.kill(process.pid, 'SIGKILL'); await new Promise(() => {});",
        With("signal 9"),
    ),
    (
        "crashes",
        At::Command,
        "process.kill(process.pid, 'SIGSEGV'); await new Promise(() => {});",
        With("signal 11"),
    ),
    (
        "leaves a child that holds its pipes",
        At::Tool,
        "const { spawn } = await import('node:child_process'); spawn('sleep', ['300'], { detached: true, stdio: 'inherit' }); process.kill(process.pid, 'SIGKILL');",
        With("signal 9"),
    ),
    (
        "never says anything again",
        At::Command,
        "const { closeSync } = await import('node:fs'); closeSync(0); closeSync(1);",
        Maybe,
    ),
    (
        "floods with calls",
        At::Command,
        "for (let i = 0; i < 200000; i++) { ctx.ui.setStatus('a', 'b' + i); if (i % 100 === 0) await new Promise((go) => setImmediate(go)); }",
        Maybe,
    ),
    (
        "floods with updates",
        At::Tool,
        "for (let i = 0; i < 50000; i++) { onUpdate({ content: [{ type: 'text', text: 'x'.repeat(200) }] }); if (i % 100 === 0) await new Promise((go) => setImmediate(go)); }",
        No,
    ),
    (
        "opens 1000 dialogs",
        At::Command,
        "await Promise.all(Array.from({ length: 1000 }, (_, i) => ctx.ui.select('q' + i, ['a'])));",
        No,
    ),
    ("never ends", At::Command, "await new Promise(() => {});", No),
];

const PROGRAMS: &[Case] = &[
    (
        "loops while it loads",
        At::Load,
        "while True: pass",
        With("nothing came from it"),
    ),
    ("loops in a handler", At::Event, SLEEP, With("did not answer")),
    ("loops in a tool", At::Tool, SLEEP, With("did not answer")),
    ("loops in a command", At::Command, SLEEP, With("did not answer")),
    (
        // See above.
        "eats memory",
        At::Tool,
        "a = []\n        while True: a.append(b'x' * (1 << 22)); time.sleep(0.01)",
        With("and was ended"),
    ),
    (
        "throws",
        At::Event,
        "raise ValueError('no')",
        With("exited with code 1"),
    ),
    ("exits", At::Tool, "sys.exit(0)", With("exited with code 0")),
    ("exits at once", At::All, "pass", With("exited with code 0")),
    (
        "never gets ready",
        At::All,
        "time.sleep(300)",
        With("nothing came from it"),
    ),
    (
        "never opens",
        At::All,
        "say(type='ready', protocol=1)\nfor t in sys.stdin:\n    l = json.loads(t)\n    if l['type'] == 'ping': say(type='pong', id=l['id'])",
        With("not loaded after"),
    ),
    (
        "speaks another version",
        At::All,
        "say(type='ready', protocol=7)\ntime.sleep(300)",
        With("version 7"),
    ),
    (
        "kills itself",
        At::Tool,
        "os.kill(os.getpid(), signal.SIGKILL)",
        With("signal 9"),
    ),
    (
        "crashes",
        At::Event,
        "os.kill(os.getpid(), signal.SIGSEGV)",
        With("signal 11"),
    ),
    ("aborts", At::Command, "os.abort()", With("signal 6")),
    (
        "leaves a child that holds its pipes",
        At::Tool,
        "subprocess.Popen(['sleep', '300'], start_new_session=True); os._exit(4)",
        With("exited with code 4"),
    ),
    (
        "closes its input",
        At::Tool,
        "os.close(0); time.sleep(300)",
        With(""),
    ),
    (
        "closes its output",
        At::Tool,
        "os.close(1); time.sleep(300)",
        With(""),
    ),
    (
        "prints garbage",
        At::Tool,
        "raw(b'hello\\n' * 1000); raw(bytes(range(256)) * 200); raw(b'\\n')",
        No,
    ),
    (
        "writes a line without end",
        At::Tool,
        "while True: raw(b'x' * 65536)",
        With("a line of more than"),
    ),
    (
        "nests a line deeply",
        At::Tool,
        "raw(b'{\"type\":\"result\",\"value\":' + b'[' * 200000 + b'\\n')",
        No,
    ),
    (
        "floods with calls",
        At::Command,
        "while True: say(type='call', session=s, method='ui.setStatus', params={'statusKey': 'a', 'statusText': 'b'})",
        Maybe,
    ),
    (
        "floods with messages",
        At::Command,
        "for n in range(5000): say(type='call', session=s, method='sendMessage', params={'message': {'content': 'x' * 100}, 'options': {'deliverAs': 'nextTurn'}})",
        Maybe,
    ),
    (
        "floods with updates",
        At::Tool,
        "for n in range(50000): say(type='update', id=i, value={'content': [{'type': 'text', 'text': 'x' * 200}]})",
        No,
    ),
    (
        "floods the log",
        At::Tool,
        "for n in range(30000): sys.stderr.write('x' * 100 + '\\n')",
        No,
    ),
    (
        "answers what nobody asked",
        At::Tool,
        "for n in range(10000): say(type='result', id=n + 1000000); say(type='update', id=n + 1000000); say(type='cancel', id=n)",
        No,
    ),
    (
        "answers twice",
        At::Event,
        "say(type='result', id=i); say(type='error', id=i, message='no'); say(type='result', id=i, value={'block': True})",
        No,
    ),
    (
        "mixes up types",
        At::Tool,
        "raw(b'5\\nnull\\n[]\\n{}\\n'); say(type='result', id='x'); say(type='call'); say(type='call', session=5, method=[]); say(type='changed', session=s, tools=5); say(type='failure'); say(type=7); say(type='update', id=i, value=5); say(type='call', session=s, id=1, method='ui.select', params={'options': 5}); say(type='call', session=s, method='sendMessage', params=7)",
        Maybe,
    ),
    (
        "gives results that are none",
        At::Tool,
        "say(type='result', id=i, value={'content': 5, 'details': 1})",
        No,
    ),
    (
        "opens 1000 dialogs",
        At::Command,
        "for n in range(1000): say(type='call', session=s, id=n + 1, method='ui.select', params={'title': 'q', 'options': ['a']})",
        No,
    ),
    (
        "does not end with its input",
        At::All,
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nserve()\ntime.sleep(300)",
        No,
    ),
];

fn typescript(at: At, code: &str) -> String {
    let here = |place: At| if place == at { code } else { "" };
    format!(
        r#"export default function (pi) {{
  {load}
  pi.on("tool_call", async (event, ctx) => {{ {event} }});
  pi.registerTool({{ name: "bad", label: "Bad", description: "Bad", parameters: {{ type: "object", properties: {{}} }},
    async execute(id, params, signal, onUpdate, ctx) {{ {tool} ; return {{ content: [{{ type: "text", text: "ok" }}] }}; }} }});
  pi.registerCommand("bad", {{ handler: async (args, ctx) => {{ {command} }} }});
}}
"#,
        load = here(At::Load),
        event = here(At::Event),
        tool = here(At::Tool),
        command = here(At::Command),
    )
}

fn program(at: At, code: &str) -> String {
    let here = |place: At| if place == at { code } else { "pass" };
    let serve = if at == At::All { code } else { "serve()" };
    format!(
        r#"#!/usr/bin/env python3
import json, os, signal, subprocess, sys, time
def raw(data): os.write(1, data)
def say(**line): raw((json.dumps(line) + "\n").encode())
TOOL = {{"name": "bad", "description": "Bad", "parameters": {{"type": "object", "properties": {{}}}}}}
def serve():
    {load}
    for text in sys.stdin:
        line = json.loads(text)
        kind, s, i = line["type"], line.get("session"), line.get("id")
        if kind == "hello": say(type="ready", protocol=1)
        elif kind == "open": say(type="result", id=i, value={{"extensions": [{{"tools": [TOOL], "commands": [{{"name": "bad"}}], "events": ["tool_call"]}}]}})
        elif kind == "ping": say(type="pong", id=i)
        elif kind == "event": event(s, i); say(type="result", id=i)
        elif kind == "call" and line["method"] == "tool.execute": tool(s, i); say(type="result", id=i, value={{"content": [{{"type": "text", "text": "ok"}}]}})
        elif kind == "call": command(s, i); say(type="result", id=i)
        elif kind == "close": say(type="result", id=i)
def event(s, i):
        {event}
def tool(s, i):
        {tool}
def command(s, i):
        {command}
{serve}
"#,
        load = here(At::Load),
        event = here(At::Event),
        tool = here(At::Tool),
        command = here(At::Command),
    )
}

/// The most memory that a process has held, in MiB.
fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let size = line.map(|line| line.trim().trim_end_matches(" kB").parse::<u64>().unwrap());
    size.unwrap_or_default() >> 10
}

/// Processes that have this text in their environment.
fn left(root: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let path = entry.path();
        let environment = fs::read(path.join("environ")).unwrap_or_default();
        if String::from_utf8_lossy(&environment).contains(root) {
            let command = fs::read(path.join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            if !command.is_empty() {
                found.push(format!("{} {command}", path.display()));
            }
        }
    }
    found
}

/// What went wrong.
fn misbehave(file: &str, source: &str, named: Named) -> Result<(), String> {
    let world = World::new([
        Reply::tool("c1", "bad", json!({})),
        Reply::text(["done"]),
        Reply::text(["again"]),
        Reply::text(["more"]),
    ]);
    let path = world.dir.agent_dir().join("extensions").join(file);
    write_program(&path, source);
    // A long line has to be read to its limit first, which takes a busy machine longer than two seconds. An extension that does no
    // harm may be slow on such a machine, too.
    let silence = if named == With("a line of more than") || named == No {
        "60"
    } else {
        "2"
    };
    let config = world
        .config()
        .env("PINION_EXTENSION_SILENCE", silence)
        .env("PINION_EXTENSION_MEMORY", "400");
    let pi = Pi::spawn(config);
    pi.say("Go");
    // Where there is no such command, it would be something said to the model.
    let commands = pi.get("get_commands").to_string();
    if commands.contains("\"bad\"") {
        pi.send(json!({"type": "prompt", "message": "/bad"}));
    }
    let again = pi.say("Again");
    let told = |words: &str| {
        let lines = pi.lines();
        of_type(&lines, "extension_error").iter().any(|error| {
            error["extensionPath"] == *path.to_str().unwrap()
                && error["error"].as_str().unwrap().contains(words)
        })
    };
    let end = Instant::now() + LONG;
    let mut outcome = Ok(());
    if let With(words) = named {
        while !told(words) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
        if !told(words) {
            outcome = Err(format!("it is not named with {words:?}: {:?}", errors(&pi)));
        }
    }
    if named == No && told("") {
        outcome = Err(format!("it did no harm: {:?}", errors(&pi)));
    }
    if !again.iter().any(|line| line["type"] == "agent_end") {
        outcome = Err("the next prompt was not answered".to_owned());
    }
    let memory = peak(pi.agent.pid());
    if memory > 250 {
        outcome = Err(format!("the agent held {memory} MiB"));
    }
    pi.agent.close_stdin();
    let status = pi.agent.wait_exit(LONG).unwrap();
    if status.code() != Some(0) {
        outcome = Err(format!("the agent ended with {status:?}: {}", pi.agent.stderr()));
    }
    let root = world.dir.root().display().to_string();
    let end = Instant::now() + LONG;
    while !left(&root).is_empty() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    let left = left(&root);
    if left.is_empty() {
        outcome
    } else {
        Err(format!("there is still {left:?}"))
    }
}

fn errors(pi: &Pi) -> Vec<String> {
    let lines = pi.lines();
    of_type(&lines, "extension_error")
        .iter()
        .map(ToString::to_string)
        .collect()
}

/// Runs cases side by side; says which ones failed. With `BAD=WORDS` only those whose name has these words.
fn all(cases: &[Case], file: &str, source: fn(At, &str) -> String) {
    let only = std::env::var("BAD").ok();
    let cases = cases
        .iter()
        .filter(|case| only.as_deref().is_none_or(|only| case.0.contains(only)));
    let queue: Mutex<VecDeque<&Case>> = Mutex::new(cases.collect());
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some((name, at, code, named)) = queue.lock().unwrap().pop_front() else {
                        break;
                    };
                    let tried = std::panic::catch_unwind(|| misbehave(file, &source(*at, code), *named));
                    let outcome = tried.unwrap_or_else(|_| Err("it panicked, see above".to_owned()));
                    if let Err(error) = outcome {
                        failed.lock().unwrap().push(format!("{name}: {error}"));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn misbehaving_typescript_extensions_are_contained() {
    if can_run() {
        all(TYPESCRIPT, "bad.ts", typescript);
    }
}

#[test]
fn misbehaving_program_extensions_are_contained() {
    if Path::new("/proc/self/environ").exists() {
        all(PROGRAMS, "bad.py", program);
    } else {
        skipped("/proc does not show environments");
    }
}

#[test]
fn hanging_extension_among_several_is_named() {
    if !can_run() {
        return;
    }
    let world = World::new([Reply::tool("c1", "bad", json!({})), Reply::text(["done"])]);
    let folder = world.dir.agent_dir().join("extensions");
    fs::create_dir_all(&folder).unwrap();
    let idle = "export default function (pi) { pi.on('turn_end', async () => {}); pi.registerCommand('fine', { handler: async () => {} }); }";
    fs::write(folder.join("a.ts"), idle).unwrap();
    fs::write(folder.join("b.ts"), typescript(At::Event, BLOCK)).unwrap();
    fs::write(folder.join("c.ts"), idle).unwrap();
    let pi = Pi::spawn(world.config().env("PINION_EXTENSION_SILENCE", "3"));
    pi.say("Go");
    let named = errors(&pi);
    assert_eq!(named.len(), 1, "{named:?}");
    assert!(named[0].contains("/b.ts\""), "{named:?}");
    // The others are there again.
    let commands = pi.get("get_commands").to_string();
    for name in ["\"fine:1\"", "\"fine:2\""] {
        assert!(commands.contains(name), "{commands}");
    }
    pi.finish();
}
