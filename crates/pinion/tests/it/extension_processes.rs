//! Features that one extension process provides alone elsewhere, here with several processes: trust, models, resources,
//! keys, sessions of their own.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::extension_examples::has;
use crate::extensions::{can_run, command, failures, notes, put};
use crate::kit::{LONG, Pi, World, text, until, write_program};

/// A program: `opened` are its registrations, `lines` its code for lines other than those all programs handle.
const PROGRAM: &str = r#"#!/usr/bin/env python3
import json, os, sys
def say(**line): print(json.dumps(line), flush=True)
def note(text): say(type="call", session=session, method="ui.notify", params={"message": text})
session = None
for text in sys.stdin:
    line = json.loads(text)
    kind, method, name = line["type"], line.get("method"), line.get("name")
    params, event = line.get("params"), line.get("event")
    value = None
    if kind == "hello":
        say(type="ready", protocol=1, runtime="python")
        continue
    if kind == "ping":
        say(type="pong", id=line["id"])
        continue
    if kind == "open":
        session = line["session"]
        value = {"extensions": [json.loads(OPENED)]}
BODY
    if kind in ("open", "event", "call", "close") and "id" in line:
        say(type="result", id=line["id"], value=value)
"#;

/// Puts a program somewhere below the world's own directory.
fn program(path: &Path, opened: &Value, body: &str) -> String {
    let body: Vec<String> = body.lines().map(|line| format!("    {line}")).collect();
    let text = PROGRAM
        .replace("OPENED", &format!("{:?}", opened.to_string()))
        .replace("BODY", &body.join("\n"));
    write_program(path, &text);
    path.display().to_string()
}

fn mine(world: &World, name: &str, opened: &Value, body: &str) -> String {
    program(&world.dir.agent_dir().join("extensions").join(name), opened, body)
}

fn command_names(pi: &Pi) -> Vec<String> {
    let commands = pi.get("get_commands")["commands"].clone();
    let names = commands.as_array().unwrap().iter();
    let mut names: Vec<String> = names
        .map(|command| command["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn user_program_decides_trust_before_project_extensions_load() {
    if !can_run() || !has("python3") {
        return;
    }
    // With and without a TypeScript process that is there already.
    for with_typescript in [false, true] {
        let world = World::new([]);
        let theirs = world.dir.cwd().join(".pi/extensions");
        program(
            &theirs.join("theirs.py"),
            &json!({"commands": [{"name": "program"}]}),
            "",
        );
        fs::write(
            theirs.join("theirs.ts"),
            r#"export default function (pi) {
              pi.registerCommand("script", { handler: (args, ctx) => ctx.ui.notify("script " + args) });
              pi.on("session_start", ({ reason }, ctx) => ctx.ui.notify("theirs " + reason));
            }"#,
        )
        .unwrap();
        mine(
            &world,
            "decides.py",
            &json!({"events": ["project_trust", "session_start"], "commands": [{"name": "mine"}]}),
            "if name == 'project_trust': value = {'trusted': 'yes'}\nif name == 'session_start': note('mine')",
        );
        if with_typescript {
            put(
                &world,
                "also.ts",
                r#"
                pi.registerCommand("also", { handler: () => {} });
                pi.on("project_trust", () => ({ trusted: "undecided" }));
                pi.on("session_start", (_event, ctx) => ctx.ui.notify("also " + ctx.isProjectTrusted()));"#,
            );
        }
        let pi = world.start();
        let mut expected = vec!["mine", "program", "script"];
        let mut heard = vec!["mine", "theirs startup"];
        if with_typescript {
            expected.insert(0, "also");
            heard.insert(0, "also true");
        }
        assert_eq!(command_names(&pi), expected);
        let mut notes = notes(&pi.lines());
        notes.sort();
        assert_eq!(notes, heard);
        assert_eq!(pi.state().get("projectTrust"), None);
        command(&pi, "/script works");
        assert!(failures(&pi).is_empty(), "{:?}", failures(&pi));
        pi.finish();
    }
}

/// A provider that answers itself; the first request to the one called `dies` ends its process.
fn provider(name: &str) -> Value {
    let model = json!({"id": "m", "name": "M", "reasoning": false, "input": ["text"], "contextWindow": 9000, "maxTokens": 900,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}});
    json!({"providers": [{"name": name, "config": {"api": "own", "baseUrl": "own:", "apiKey": "own-key-0123456789",
        "streams": true, "models": [model]}}]})
}

const ANSWERS: &str = r#"if method == "provider.stream":
    mark = __file__ + ".died"
    if params["provider"] == "dies" and not os.path.exists(mark):
        open(mark, "w").close()
        os._exit(3)
    model = params["request"]["model"]
    answer = params["provider"] + " answers"
    say(type="update", id=line["id"], value={"type": "text_start", "contentIndex": 0})
    say(type="update", id=line["id"], value={"type": "text_delta", "contentIndex": 0, "delta": answer})
    value = {"role": "assistant", "content": [{"type": "text", "text": answer}], "api": model["api"], "provider": model["provider"], "model": model["id"],
        "stopReason": "stop", "timestamp": 5, "usage": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 3,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}}}"#;

#[test]
fn models_of_several_programs_reach_their_process() {
    if !has("python3") {
        return;
    }
    let world = World::new([]);
    // The process may take longer to come back on a busy machine.
    world.settings(json!({"retry": {"baseDelayMs": 1500, "maxRetries": 4}}));
    mine(&world, "dies.py", &provider("dies"), ANSWERS);
    mine(&world, "lives.py", &provider("lives"), ANSWERS);
    let config = world.dir.agent(crate::kit::PROGRAM);
    let pi = Pi::spawn(config.args(["--mode", "rpc", "--model", "lives/m"]));
    assert_eq!(pi.state()["model"]["provider"], "lives");
    let last = |pi: &Pi| text(pi.messages().last().unwrap());
    pi.say("Who?");
    assert_eq!(last(&pi), "lives answers");
    pi.data(json!({"type": "set_model", "provider": "dies", "modelId": "m"}));
    // Its process ends over the request, which is tried again when it is back.
    pi.say("And who?");
    assert_eq!(last(&pi), "dies answers");
    assert_eq!(failures(&pi).len(), 1, "{:?}", failures(&pi));
    pi.data(json!({"type": "set_model", "provider": "lives", "modelId": "m"}));
    pi.say("Once more?");
    assert_eq!(last(&pi), "lives answers");
    pi.finish();
    let mut list = std::process::Command::new(crate::kit::PROGRAM);
    list.args(["--list-models"]).env_clear().envs(world.dir.env());
    list.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let out = list.current_dir(world.dir.cwd()).output().unwrap();
    let listed = String::from_utf8(out.stdout).unwrap();
    assert!(listed.contains("lives") && listed.contains("dies"), "{listed}");
}

#[test]
fn resources_of_several_programs_are_joined() {
    if !can_run() || !has("python3") {
        return;
    }
    let prompt = |dir: &Path, name: &str| {
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join(format!("{name}.md")), "Do it.").unwrap();
    };
    for with_typescript in [false, true] {
        let world = World::new([]);
        let extensions = world.dir.agent_dir().join("extensions");
        prompt(&extensions.join("one-brings"), "one");
        prompt(&extensions.join("two-brings"), "two");
        mine(
            &world,
            "one.py",
            &json!({"events": ["resources_discover"]}),
            "if name == 'resources_discover': value = {'promptPaths': ['./one-brings']}",
        );
        let mut expected = vec!["one"];
        if with_typescript {
            put(
                &world,
                "two.ts",
                r#"pi.on("resources_discover", () => ({ promptPaths: ["./two-brings"] }));"#,
            );
            expected.push("two");
        }
        let pi = world.start();
        assert_eq!(command_names(&pi), expected);
        pi.finish();
    }
}

#[test]
fn shortcuts_and_sessions_belong_to_their_process() {
    if !can_run() || !has("python3") {
        return;
    }
    let world = World::new([Reply::text(["from beside"])]);
    put(
        &world,
        "first.ts",
        r#"pi.registerShortcut("ctrl+1", { handler: (ctx) => ctx.ui.notify("first key") });
        pi.registerCommand("first", { handler: () => {}, getArgumentCompletions: () => [{ value: "a", label: "a" }] });"#,
    );
    mine(
        &world,
        "second.py",
        &json!({"shortcuts": [{"shortcut": "ctrl+2"}], "commands": [{"name": "second"}]}),
        r#"if method == "shortcut.run": note("second key")
if method == "command.complete": value = {"items": [{"value": "b", "label": "b"}]}
if method == "command.run":
    call = lambda id, method, **params: say(type="call", session=session, id=id, method=method, params=params)
    call(1, "session.create", session="mine", noTools="all")
if kind == "result" and line["id"] == 1:
    note("tools " + str(len(line["value"]["activeTools"])))
    call(2, "session.command", session="mine", command={"type": "prompt", "message": "Hello"})
if name == "session_event" and event["session"] == "mine" and "event" in event and event["event"]["type"] == "agent_end":
    note(event["event"]["messages"][-1]["content"][0]["text"])"#,
    );
    let pi = world.start();
    for (keys, said) in [("ctrl+1", "first key"), ("ctrl+2", "second key")] {
        pi.data(json!({"type": "run_shortcut", "shortcut": keys}));
        assert_eq!(notes(&pi.lines()).last().unwrap(), said);
    }
    for (name, item) in [("first", "a"), ("second", "b")] {
        let items =
            pi.data(json!({"type": "complete_arguments", "name": name, "prefix": ""}))["items"].clone();
        assert_eq!(items[0]["value"], item);
    }
    command(&pi, "/second");
    let said = |line: &Value| line["message"] == "from beside";
    pi.agent.wait(said, LONG).unwrap();
    assert!(notes(&pi.lines()).contains(&"tools 0".to_owned()));
    assert!(failures(&pi).is_empty(), "{:?}", failures(&pi));
    pi.finish();
}

#[test]
fn extension_that_never_loads_does_not_block_others() {
    if !can_run() || !has("python3") {
        return;
    }
    let world = World::new([Reply::text(["ok"])]);
    let slow = mine(&world, "slow.py", &json!({}), "if kind == 'open': continue");
    let brought = world.dir.agent_dir().join("extensions/brought");
    fs::create_dir_all(&brought).unwrap();
    fs::write(brought.join("brought.md"), "Do it.").unwrap();
    put(
        &world,
        "quick.ts",
        r#"pi.on("session_start", (_event, ctx) => ctx.ui.notify("begun"));
        pi.on("resources_discover", () => ({ promptPaths: ["./brought"] }));"#,
    );
    let pi = world.start();
    let begun = |line: &Value| line["message"] == "begun";
    pi.agent.wait(begun, LONG).unwrap();
    assert!(failures(&pi).is_empty(), "{:?}", failures(&pi));
    // The command waits for the extension that does not load, but only for a limited time.
    until("the prompt is there", || command_names(&pi) == ["brought"]);
    let told = pi.wait("extension_error");
    assert_eq!(told["extensionPath"], slow);
    pi.say("/brought");
    assert_eq!(failures(&pi).len(), 1, "{:?}", failures(&pi));
    pi.finish();
}
