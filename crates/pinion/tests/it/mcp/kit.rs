//! A server to be tested with: this very program, started once more for one test alone, which speaks MCP over its standard
//! streams. What the test harness prints before is no message; like the noise of real servers it must do no harm.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::kit::{World, until};

/// Names the file that everything the server is sent goes into; without it nothing is served.
const LOG: &str = "MCP_KIT_LOG";
/// How it behaves.
const HOW: &str = "MCP_KIT_HOW";

/// An entry of `mcp.json` for the server; what it is sent is in the file.
pub(crate) fn entry(log: &Path, how: &str) -> Value {
    let program = std::env::current_exe().unwrap();
    json!({
        "command": program,
        "args": ["mcp::kit::serve", "--exact", "--ignored", "--nocapture", "--test-threads=1"],
        "env": {LOG: log, HOW: how},
    })
}

/// Lets a server with the behaviour `gated` answer `initialize`. `log` is the file of what it is sent.
pub(super) fn open_gate(log: &Path) {
    std::fs::write(gate(log), "").unwrap();
}

fn gate(log: &Path) -> PathBuf {
    log.with_extension("gate")
}

/// Configures servers of the user's: each name with its behaviour. Gives the files of what they are sent.
pub(crate) fn configure(world: &World, servers: &[(&str, &str)]) -> BTreeMap<String, PathBuf> {
    let mut entries = json!({});
    let mut logs = BTreeMap::new();
    for (name, how) in servers {
        let log = world.dir.root().join(format!("{name}.log"));
        entries[*name] = entry(&log, how);
        logs.insert((*name).to_owned(), log);
    }
    let path = world.dir.agent_dir().join("mcp.json");
    std::fs::write(path, json!({"mcpServers": entries}).to_string()).unwrap();
    logs
}

/// What a server was sent. It may still be writing the last line.
pub(super) fn heard(log: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    text.split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The messages of one method.
pub(super) fn of_method(log: &Path, method: &str) -> Vec<Value> {
    heard(log)
        .into_iter()
        .filter(|line| line["method"] == method)
        .collect()
}

fn say(message: &Value) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{message}").unwrap();
    out.flush().unwrap();
}

fn answer(id: &Value, result: Value) {
    say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

/// The lines that the client sends, each written down first.
struct Heard {
    lines: std::io::Lines<std::io::StdinLock<'static>>,
    log: PathBuf,
}

impl Heard {
    fn next(&mut self) -> Option<Value> {
        let line = self.lines.next()?.ok()?;
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.log)
            .unwrap();
        writeln!(file, "{line}").unwrap();
        serde_json::from_str(&line).ok()
    }

    fn until(&mut self, holds: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.next().unwrap();
            if holds(&line) {
                return line;
            }
        }
    }
}

#[test]
#[ignore = "other tests start it as a server"]
#[expect(clippy::exit, reason = "a server that ends by itself")]
fn serve() {
    let Some(log) = std::env::var_os(LOG) else { return };
    let how = std::env::var(HOW).unwrap_or_default();
    eprintln!("the kit serves");
    // Ends the line that the harness has begun.
    writeln!(std::io::stdout()).unwrap();
    let mut heard = Heard {
        lines: std::io::stdin().lines(),
        log: log.into(),
    };
    let mut grown = false;
    while let Some(message) = heard.next() {
        let (id, params) = (&message["id"], &message["params"]);
        if how == "gated" && message["method"] == "initialize" {
            until("the gate", || gate(&heard.log).exists());
        }
        match message["method"].as_str().unwrap_or_default() {
            "initialize" if how == "mute" => {}
            "initialize" if how == "dead" => {
                eprintln!("no licence");
                std::process::exit(3);
            }
            "initialize" => answer(
                id,
                json!({
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": {"tools": {"listChanged": true}, "prompts": {}, "resources": {}},
                    "serverInfo": {"name": "kit", "version": "1.0"},
                }),
            ),
            "tools/list" => answer(id, json!({"tools": tools(grown)})),
            "tools/call" => call(&mut heard, &message, &mut grown),
            "prompts/list" => {
                let argument = json!({"name": "who", "required": true});
                answer(
                    id,
                    json!({"prompts": [{"name": "greet", "description": "Greets", "arguments": [argument]}]}),
                );
            }
            "prompts/get" => {
                let text = format!("Say hello to {}.", params["arguments"]["who"].as_str().unwrap());
                let content = json!({"type": "text", "text": text});
                answer(id, json!({"messages": [{"role": "user", "content": content}]}));
            }
            "resources/list" => {
                answer(
                    id,
                    json!({"resources": [{"uri": "kit://a", "name": "a", "icons": [{"src": "x"}]}]}),
                );
            }
            "resources/read" => {
                let contents =
                    json!({"uri": params["uri"], "mimeType": "text/plain", "text": "what a holds"});
                answer(id, json!({"contents": [contents]}));
            }
            "ping" => answer(id, json!({})),
            // As JSON-RPC wants it: a client that asks for a newer revision must not wait.
            _ if !id.is_null() && !message["method"].is_null() => {
                let error = json!({"code": -32601, "message": "Method not found"});
                say(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
            _ => {}
        }
    }
}

fn tools(grown: bool) -> Value {
    let text = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    let description = if grown {
        "Says it to everybody"
    } else {
        "Says it\u{1b}[2J again"
    };
    let mut tools = vec![json!({"name": "echo", "description": description, "inputSchema": text})];
    let mut names = vec!["slow", "die", "ask", "huge", "fail", "grow"];
    if grown {
        names.push("late");
    }
    // A schema as it should not be.
    tools.extend(
        names
            .iter()
            .map(|name| json!({"name": name, "inputSchema": null})),
    );
    Value::Array(tools)
}

#[expect(clippy::exit, reason = "a server that dies")]
fn call(heard: &mut Heard, message: &Value, grown: &mut bool) {
    let (id, params) = (&message["id"], &message["params"]);
    let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    match params["name"].as_str().unwrap() {
        "echo" => {
            let token = &params["_meta"]["progressToken"];
            for done in 0..params["arguments"]["reports"].as_u64().unwrap_or(0) {
                let progress = json!({"progressToken": token, "progress": done});
                say(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}));
            }
            answer(id, text(params["arguments"]["text"].as_str().unwrap()));
        }
        "die" => std::process::exit(7),
        "fail" => answer(
            id,
            json!({"content": [{"type": "text", "text": "it is raining"}], "isError": true}),
        ),
        "huge" => answer(id, text(&"x".repeat(10 << 20))),
        "slow" => {
            let token = &params["_meta"]["progressToken"];
            let progress = json!({"progressToken": token, "progress": 1, "total": 3, "message": "digging"});
            say(&json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}));
            heard.until(|line| line["method"] == "notifications/cancelled");
        }
        "ask" => {
            let schema = json!({"type": "object", "required": ["name", "size"], "properties": {
                "name": {"type": "string", "title": "Your name"},
                "size": {"type": "string", "enum": ["s", "l"], "enumNames": ["Small", "Large"]},
            }});
            let asked = json!({"mode": "form", "message": "Who are you?", "requestedSchema": schema});
            say(&json!({"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": asked}));
            let reply = heard.until(|line| line["id"] == "q1");
            answer(id, text(&reply["result"].to_string()));
        }
        "grow" => {
            *grown = true;
            say(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
            answer(id, text("grown"));
        }
        other => answer(id, text(&format!("called {other}"))),
    }
}
