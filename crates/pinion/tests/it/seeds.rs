//! The examples that the five descriptions of the protocol print, as data in `seeds/`: what they show as input is taken, what
//! they show as output is written, each in its dialect. A line is `{"in": ...}` or `{"out": ...}`; `"$object"` and `"$array"`
//! stand where a description leaves something out; `node` marks what only extensions make. What waits for a part that does not exist yet says so in `pending`, and
//! fails as soon as it works but still says so.

use serde_json::{Value, json};
use testkit::llm::{ErrorKind, Reply};

use crate::auto_compaction::{full, summary};
use crate::dialect_outputs::{end, speaking, tell};
use crate::extensions::{can_run, extended};
use crate::kit::{LONG, Pi, World, bash};

const EARLY: &str = include_str!("seeds/early.jsonl");
const WEB: &str = include_str!("seeds/web.jsonl");
const HOOKS: &str = include_str!("seeds/hooks.jsonl");
const OMP: &str = include_str!("seeds/omp.jsonl");
const XCSH: &str = include_str!("seeds/xcsh.jsonl");

/// Frames that are never answered.
const FRAMES: [&str; 4] = [
    "extension_ui_response",
    "hook_ui_response",
    "host_tool_update",
    "host_tool_result",
];

/// The examples of one side: the line, and what it waits for.
fn examples(file: &str, side: &str) -> Vec<(Value, Option<String>)> {
    let rows = file
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    // What only extensions make cannot be seen without what runs them.
    rows.filter(|row| row["node"] != true || can_run())
        .filter_map(|row| {
            let pending = row["pending"].as_str().map(str::to_owned);
            row.get(side).map(|line| (line.clone(), pending))
        })
        .collect()
}

/// What takes an extension: it refuses, fails and asks.
const EXTENSION: &str = r#"
    const refuse = () => ({ cancel: true });
    pi.on("session_before_switch", refuse);
    pi.on("session_before_fork", refuse);
    pi.on("agent_start", () => { throw new Error("Provider rate limit exceeded"); });
    pi.registerCommand("ask", { handler: async (_args, ctx) => {
      await ctx.ui.confirm("Confirm", "Continue?", { timeout: 30000 });
      await ctx.ui.input("Branch name", "feature/...");
    } });
"#;

/// Returns true if the line is understood. A command may fail for its effect, but not for its form.
fn is_taken(world: &World, dialect: &str, line: &Value) -> bool {
    // What the descriptions name by a path must not be looked for outside of the test's folder.
    let root = world.dir.root().to_str().unwrap().to_owned();
    let text = line.to_string().replace("\"/path/", &format!("\"{root}/path/"));
    let text = text.replace("\"/tmp/", &format!("\"{root}/"));
    let pi = speaking(world, dialect);
    pi.agent.send_raw(format!("{text}\n").as_bytes()).unwrap();
    let kind = line["type"].as_str().unwrap();
    if dialect != "early" && !FRAMES.contains(&kind) {
        let answer = |line: &Value| line["type"] == "response" && line["command"] == kind;
        pi.agent.wait(answer, LONG).unwrap();
    }
    let lines = end(&pi);
    lines.iter().all(|line| {
        let error = line["error"].as_str().unwrap_or_default();
        !["Unknown command", "Failed to parse", "Invalid "]
            .iter()
            .any(|bad| error.starts_with(bad) && !error.starts_with("Invalid entry"))
    })
}

fn inputs(dialect: &str, file: &str) {
    let world = World::new([]);
    world.server.set_default(Reply::text(["Hello."]));
    let examples = examples(file, "in");
    assert!(!examples.is_empty());
    for (line, pending) in examples {
        let taken = is_taken(&world, dialect, &line);
        assert_eq!(taken, pending.is_none(), "{dialect}: {pending:?}: {line}");
    }
}

/// Everything that a dialect's clients get to see in sessions in which much happens.
fn written(dialect: &str) -> Vec<Value> {
    let mut lines = talk(dialect);
    lines.extend(trouble(dialect));
    lines.extend(pressure(dialect));
    if dialect != "early" {
        lines.extend(commands(dialect));
        if can_run() {
            lines.extend(extension(dialect));
        }
    }
    lines
}

fn say(pi: &Pi, text: &str) {
    pi.agent.skip();
    tell(pi, json!({"type": "prompt", "message": text}));
    pi.settled();
}

/// Text, reasoning, calls, attachments; then a compaction on request.
fn talk(dialect: &str) -> Vec<Value> {
    let call = Reply::new()
        .thinking(["Let me ", "see."], "sig")
        .then_text(["I'll list", " the files"])
        .then_tool(
            "call_123",
            "bash",
            json!({"command": "echo one; sleep 0.3; echo two"}),
        )
        .then_tool("call_124", "read", json!({"path": "README.md"}));
    let world = World::new([
        call,
        Reply::text(["Here are the files"]),
        Reply::text(["A cat."]),
        summary(),
    ]);
    world.settings(json!({"compaction": {"keepRecentTokens": 5}}));
    let pi = speaking(&world, dialect);
    say(&pi, &"List files in the current directory. ".repeat(20));
    let picture = json!({"id": "i", "type": "image", "fileName": "p.png", "mimeType": "image/png", "size": 8, "content": "iVBORw0KGgo="});
    pi.agent.skip();
    tell(
        &pi,
        json!({"type": "prompt", "message": "What is this?", "attachments": [picture]}),
    );
    pi.settled();
    tell(&pi, json!({"type": "compact"}));
    pi.agent
        .wait(
            |line| line["type"] == "compaction" || line["command"] == "compact",
            LONG,
        )
        .unwrap();
    end(&pi)
}

/// A retry that succeeds, a retry that does not, and lines that are no commands.
fn trouble(dialect: &str) -> Vec<Value> {
    let busy = || Reply::error(ErrorKind::Overloaded);
    let world = World::new([busy(), Reply::text(["At last."]), busy(), busy()]);
    world.settings(json!({"retry": {"baseDelayMs": 10, "maxRetries": 1, "provider": {"maxRetries": 0}}}));
    let pi = speaking(&world, dialect);
    say(&pi, "Hello");
    say(&pi, "Again");
    pi.agent.send_raw(b"no json\n").unwrap();
    tell(
        &pi,
        json!({"id": "e1", "type": "set_model", "provider": "invalid", "modelId": "model"}),
    );
    tell(
        &pi,
        json!({"type": "switch_session", "sessionPath": world.dir.root()}),
    );
    end(&pi)
}

/// An automatic compaction.
fn pressure(dialect: &str) -> Vec<Value> {
    let world = crate::auto_compaction::world([full(Reply::text(["a long enough answer"])), summary()]);
    let pi = speaking(&world, dialect);
    say(&pi, "A question that is long enough");
    end(&pi)
}

/// The answers.
fn commands(dialect: &str) -> Vec<Value> {
    let world = World::new([bash("c1", "true"), Reply::text(["Hi."]), Reply::text(["Later."])]);
    world.server.set_default(Reply::text(["Hello."]));
    let pi = speaking(&world, dialect);
    pi.get("get_last_assistant_text");
    pi.data(json!({"type": "set_session_name", "name": "Gears"}));
    pi.prompt("First");
    pi.settled();
    let model = pi.state()["model"].clone();
    pi.data(json!({"type": "bash", "command": "echo fine"}));
    pi.data(json!({"type": "bash", "command": "seq 1 3000"}));
    for kind in [
        "queue_message",
        "get_messages",
        "get_available_models",
        "get_session_stats",
        "get_last_assistant_text",
        "get_context_usage",
        "list_sessions",
        "cycle_thinking_level",
        "cycle_model",
        "abort",
        "abort_retry",
        "abort_bash",
        "export_html",
    ] {
        pi.data(json!({"type": kind, "message": "Additional context"}));
    }
    let messages = pi.get("get_branch_messages")["messages"].clone();
    pi.data(json!({"type": "set_model", "provider": model["provider"], "modelId": model["id"]}));
    pi.data(json!({"type": "set_thinking_level", "level": "high"}));
    pi.data(json!({"type": "set_queue_mode", "mode": "all"}));
    pi.data(json!({"type": "set_auto_compaction", "enabled": true}));
    pi.data(json!({"type": "set_auto_retry", "enabled": true}));
    let file = pi.file();
    pi.data(json!({"type": "branch", "entryId": messages[0]["entryId"]}));
    pi.get("reset");
    pi.get("new_session");
    pi.data(json!({"type": "switch_session", "sessionPath": file}));
    end(&pi)
}

/// What extensions ask, refuse and fail at.
fn extension(dialect: &str) -> Vec<Value> {
    let world = extended([Reply::text(["Hi."])], EXTENSION);
    let pi = speaking(&world, dialect);
    pi.prompt("First");
    pi.settled();
    let asked = pi.send(json!({"type": "prompt", "message": "/ask"}));
    for (method, member) in [("confirm", "confirmed"), ("input", "value")] {
        let question = pi.agent.wait(|line| line["method"] == method, LONG).unwrap();
        let mut answer = json!({"type": "extension_ui_response", "id": question["id"]});
        answer[member] = if member == "value" {
            json!("x")
        } else {
            json!(true)
        };
        tell(&pi, answer);
    }
    pi.response(&asked);
    let messages = pi.get("get_branch_messages")["messages"].clone();
    pi.data(json!({"type": "branch", "entryId": messages[0]["entryId"]}));
    pi.get("reset");
    pi.get("new_session");
    pi.data(json!({"type": "switch_session", "sessionPath": pi.file()}));
    end(&pi)
}

/// Has `line` at least what the example shows? Words that say what a thing is must be the same, all others need only be of
/// the same kind. Nothing may be null or absent.
fn shows(line: &Value, example: &Value, key: &str) -> bool {
    match example {
        Value::Null => line.is_null(),
        Value::Bool(_) => line == example,
        Value::Number(_) => line.is_number(),
        Value::String(word) => match word.as_str() {
            "$object" => line.is_object(),
            "$array" => line.is_array(),
            _ if ["type", "role", "method", "reason"].contains(&key) => line == example,
            // Users' text may be a string or blocks in every dialect; ours is always blocks.
            _ => line.is_string() || (key == "content" && line.is_array()),
        },
        Value::Array(examples) => line.as_array().is_some_and(|items| {
            let found = |example: &Value| items.iter().any(|item| shows(item, example, ""));
            examples.iter().all(found)
        }),
        Value::Object(members) => {
            line.is_object()
                && members
                    .iter()
                    .all(|(key, example)| shows(&line[key], example, key))
        }
    }
}

fn outputs(dialect: &str, file: &str) {
    let lines = written(dialect);
    let examples = examples(file, "out");
    let mut wrong = Vec::new();
    for (example, pending) in &examples {
        let found = lines
            .iter()
            .any(|line| line["command"] == example["command"] && shows(line, example, ""));
        if found != pending.is_none() {
            let like = lines
                .iter()
                .find(|line| line["type"] == example["type"] && line["command"] == example["command"]);
            wrong.push(format!(
                "{pending:?} {example}\n    {}",
                like.unwrap_or(&Value::Null)
            ));
        }
    }
    assert!(
        !examples.is_empty() && wrong.is_empty(),
        "{dialect}:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn seed_input_of_early_is_accepted() {
    inputs("early", EARLY);
}

#[test]
fn seed_input_of_web_is_accepted() {
    inputs("web", WEB);
}

#[test]
fn seed_input_of_hooks_is_accepted() {
    inputs("hooks", HOOKS);
}

#[test]
fn seed_input_of_omp_is_accepted() {
    inputs("omp", OMP);
}

#[test]
fn seed_input_of_xcsh_is_accepted() {
    inputs("xcsh", XCSH);
}

#[test]
fn seed_input_is_accepted_without_dialect() {
    for file in [WEB, HOOKS, OMP, XCSH] {
        inputs("auto", file);
    }
}

#[test]
fn seed_output_of_early_is_written() {
    outputs("early", EARLY);
}

#[test]
fn seed_output_of_web_is_written() {
    outputs("web", WEB);
}

#[test]
fn seed_output_of_hooks_is_written() {
    outputs("hooks", HOOKS);
}

#[test]
fn seed_output_of_omp_is_written() {
    outputs("omp", OMP);
}

#[test]
fn seed_output_of_xcsh_is_written() {
    outputs("xcsh", XCSH);
}
