//! The extensions in the folder `examples`, each doing its main thing in the real program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::extensions::{can_run, command, failures, notes};
use crate::kit::{Pi, World, bash, of_type, skipped, text, until, write_program};
use crate::permissions::ends;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// A world whose agent has one of the example extensions.
fn with(name: &str, replies: impl IntoIterator<Item = Reply>) -> (World, String) {
    let path = examples().join(name).canonicalize().unwrap();
    (World::new(replies), path.display().to_string())
}

pub(crate) fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        skipped(&format!("{program} cannot be started"));
    }
    found
}

/// Waits for a dialog and answers it.
fn answer(pi: &Pi, method: &str, member: &str, value: Value) -> Value {
    let asked = pi
        .agent
        .wait(
            |line| line["type"] == "extension_ui_request" && line["method"] == method,
            crate::kit::LONG,
        )
        .unwrap();
    let mut line = json!({"type": "extension_ui_response", "id": asked["id"]});
    line[member] = value;
    pi.agent.send(&line).unwrap();
    asked
}

#[test]
fn permission_gate_example_denies_when_refused() {
    if !can_run() {
        return;
    }
    let (world, gate) = with(
        "extensions/permission-gate.ts",
        [
            bash("c1", "rm -rf nothing"),
            bash("c2", "rm -rf nothing"),
            bash("c3", "echo harmless"),
            Reply::text(["done"]),
        ],
    );
    let pi = world.start_with(&["-e", &gate]);
    pi.prompt("Go");
    let asked = answer(&pi, "confirm", "confirmed", json!(false));
    assert_eq!(asked["message"], "rm -rf nothing");
    answer(&pi, "confirm", "confirmed", json!(true));
    pi.settled();
    let ends = ends(&pi);
    assert!(ends[0].0 && ends[0].1.contains("did not allow"), "{ends:?}");
    assert!(!ends[1].0, "{ends:?}");
    assert_eq!(ends[2], (false, "harmless\n".to_owned()));
    pi.finish();
}

#[test]
fn protected_paths_extension_blocks_writes() {
    if !can_run() {
        return;
    }
    let write = |id: &str, path: &str| Reply::tool(id, "write", json!({"path": path, "content": "x"}));
    let (world, gate) = with(
        "extensions/protected-paths.ts",
        [
            write("c1", ".env"),
            write("c2", "sub/../.git/config"),
            write("c3", "mine.txt"),
            write("c4", "notes.md"),
            Reply::text(["done"]),
        ],
    );
    let pi = world.start_with(&["-e", &gate, "--protect", "mine.txt, other"]);
    pi.say("Go");
    let ends = ends(&pi);
    for (end, name) in ends.iter().zip([".env", ".git", "mine.txt"]) {
        assert!(
            end.0 && end.1.starts_with(&format!("{name} is protected")),
            "{ends:?}"
        );
    }
    assert!(!ends[3].0);
    let there = |name: &str| world.dir.cwd().join(name).exists();
    assert_eq!(
        [".env", ".git", "mine.txt", "notes.md"].map(there),
        [false, false, false, true]
    );
    assert_eq!(notes(&pi.lines()).len(), 3);
    pi.finish();
}

#[test]
fn todo_example_keeps_list_per_session() {
    if !can_run() {
        return;
    }
    let todo = |id: &str, args: Value| Reply::tool(id, "todo", args);
    let (world, list) = with(
        "extensions/todo.ts",
        [
            todo("c1", json!({"action": "add", "text": "write"})),
            todo("c2", json!({"action": "add", "text": "test"})),
            todo("c3", json!({"action": "done", "id": 1})),
            todo("c4", json!({"action": "done", "id": 9})),
            Reply::text(["done"]),
        ],
    );
    let pi = world.start_with(&["-e", &list]);
    pi.say("Go");
    let said = ends(&pi);
    assert_eq!(said[2], (false, "[x] #1 write\n[ ] #2 test".to_owned()));
    assert!(said[3].0 && said[3].1.contains("there is no #9"), "{said:?}");
    let file = pi.file();
    let todos = |pi: &Pi| notes(&command(pi, "/todos"));
    assert_eq!(pi.get("new_session")["cancelled"], false);
    assert_eq!(todos(&pi), ["Nothing to do."]);
    pi.data(json!({"type": "switch_session", "sessionPath": file}));
    assert_eq!(todos(&pi), ["[x] #1 write\n[ ] #2 test"]);
    // A fork from before the list was made does not have it.
    let entry = pi.get("get_fork_messages")["messages"][0]["entryId"].clone();
    pi.data(json!({"type": "fork", "entryId": entry}));
    assert_eq!(todos(&pi), ["Nothing to do."]);
    assert!(failures(&pi).is_empty(), "{:?}", failures(&pi));
    pi.finish();
    // Another process finds it again.
    let pi = world.start_with(&["-e", &list, "--session", file.to_str().unwrap()]);
    assert_eq!(todos(&pi), ["[x] #1 write\n[ ] #2 test"]);
    pi.finish();
}

#[test]
fn git_checkpoint_example_restores_files() {
    if !can_run() || !has("git") {
        return;
    }
    let (world, checkpoint) = with(
        "extensions/git-checkpoint.ts",
        [
            Reply::tool("c1", "write", json!({"path": "a.txt", "content": "of the model"})),
            Reply::text(["done"]),
        ],
    );
    let cwd = world.dir.cwd();
    let git = |args: &[&str]| {
        let who = ["-c", "user.name=t", "-c", "user.email=t@example.com"];
        let done = Command::new("git")
            .args(who)
            .args(args)
            .current_dir(&cwd)
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "-q"]);
    fs::write(cwd.join("a.txt"), "first").unwrap();
    git(&["add", "."]);
    git(&["commit", "-qm", "first"]);
    fs::write(cwd.join("a.txt"), "mine").unwrap();
    for (name, value) in [("user.name", "t"), ("user.email", "t@example.com")] {
        git(&["config", name, value]);
    }
    let pi = world.start_with(&["-e", &checkpoint]);
    pi.say("Go");
    assert_eq!(fs::read_to_string(cwd.join("a.txt")).unwrap(), "of the model");
    let entry = pi.get("get_fork_messages")["messages"][0]["entryId"].clone();
    let id = pi.send(json!({"type": "fork", "entryId": entry}));
    answer(&pi, "select", "value", json!("Yes, bring them back"));
    assert_eq!(pi.response(&id)["data"]["cancelled"], false);
    assert_eq!(fs::read_to_string(cwd.join("a.txt")).unwrap(), "mine");
    assert!(failures(&pi).is_empty(), "{:?}", failures(&pi));
    pi.finish();
}

#[test]
fn python_example_asks_counts_and_cancels() {
    if !has("python3") {
        return;
    }
    let release =
        |id: &str, steps: u32| Reply::tool(id, "release", json!({"version": "1.0", "steps": steps}));
    let (world, program) = with(
        "programs/python",
        [
            release("c1", 2),
            release("c2", 1),
            Reply::text(["done"]),
            release("c3", 10_000),
        ],
    );
    let pi = world.start_with(&["-e", &program]);
    assert_eq!(notes(&command(&pi, "/hello Ann")), ["Hello Ann"]);
    let commands = pi.get("get_commands")["commands"].clone();
    assert_eq!(
        (&commands[0]["name"], &commands[0]["source"]),
        (&json!("hello"), &json!("extension"))
    );
    pi.prompt("Go");
    let asked = answer(&pi, "confirm", "confirmed", json!(true));
    assert_eq!(asked["message"], "Release version 1.0?");
    answer(&pi, "confirm", "confirmed", json!(false));
    pi.settled();
    let said = ends(&pi);
    assert_eq!(said[0], (false, "Version 1.0 is out.".to_owned()));
    assert!(said[1].0 && said[1].1.contains("does not want"), "{said:?}");
    let lines = pi.lines();
    let updates = of_type(&lines, "tool_execution_update");
    let updates: Vec<String> = updates.iter().map(|line| text(&line["partialResult"])).collect();
    assert_eq!(updates, ["2 ...", "1 ..."]);
    let request = &world.server.requests()[0].body;
    assert!(
        request["system"]
            .to_string()
            .contains("- release: Release a version")
    );
    // Cancelled while it counts.
    pi.agent.skip();
    pi.prompt("Again");
    answer(&pi, "confirm", "confirmed", json!(true));
    pi.wait("tool_execution_update");
    pi.data(json!({"type": "abort"}));
    pi.settled();
    let said = ends(&pi);
    assert!(said[2].0 && said[2].1.contains("cancelled"), "{said:?}");
    assert!(failures(&pi).is_empty(), "{:?}", failures(&pi));
    pi.finish();
}

#[test]
fn shell_example_blocks_dangerous_commands() {
    let (world, program) = with(
        "programs/shell/gate.sh",
        [
            bash("c1", "rm -rf nothing"),
            bash("c2", "echo fine"),
            Reply::tool(
                "c3",
                "write",
                json!({"path": "a.txt", "content": "sudo \"toolName\":\"bash\""}),
            ),
            Reply::text(["done"]),
        ],
    );
    let pi = world.start_with(&["-e", &program]);
    pi.say("Go");
    let said = ends(&pi);
    assert_eq!(
        said[..2],
        [
            (true, "The gate does not let this command through".to_owned()),
            (false, "fine\n".to_owned())
        ]
    );
    assert!(!said[2].0, "{said:?}");
    pi.finish();
}

#[test]
fn rust_example_counts_words() {
    if !has("rustc") {
        return;
    }
    let (world, source) = with(
        "programs/rust/main.rs",
        [
            Reply::tool("c1", "read", json!({"path": "a.txt"})),
            Reply::text(["done"]),
        ],
    );
    let folder = world.dir.agent_dir().join("extensions");
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join("word-count");
    let built = Command::new("rustc")
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .output()
        .unwrap();
    assert!(built.status.success(), "{built:?}");
    fs::write(world.dir.cwd().join("a.txt"), "one \"two\"\nthree").unwrap();
    let pi = world.start();
    assert_eq!(notes(&command(&pi, "/words")), ["I count words"]);
    pi.say("Go");
    let said = ends(&pi);
    assert!(
        !said[0].0 && said[0].1.contains("three") && said[0].1.contains("(3 words)"),
        "{said:?}"
    );
    pi.finish();
}

/// A program of one file, in the user's folder.
fn put(world: &World, name: &str, source: &str) -> String {
    let path = world.dir.agent_dir().join("extensions").join(name);
    write_program(&path, source);
    path.display().to_string()
}

#[test]
fn programs_and_typescript_extensions_share_events() {
    if !can_run() {
        return;
    }
    let world = World::new([bash("c1", "echo one"), Reply::text(["done"])]);
    put(
        &world,
        "a.sh",
        r#"#!/bin/sh
while IFS= read -r line; do
  id=${line#*\"id\":}; id=${id%%[!0-9]*}
  case $line in
  '{"type":"hello"'*) echo '{"type":"ready","protocol":1}';;
  '{"type":"open"'*) echo '{"type":"result","id":'$id',"value":{"extensions":[{"events":["input","tool_call","tool_result"]}]}}';;
  *'"name":"input"'*'first'*) echo '{"type":"result","id":'$id',"value":{"action":"transform","text":"second"}}';;
  *'"name":"tool_call"'*'echo two'*) echo '{"type":"result","id":'$id',"value":{"input":{"command":"echo three"}}}';;
  *'"name":"tool_result"'*'three and'*) echo '{"type":"result","id":'$id',"value":{"content":[{"type":"text","text":"heard both"}]}}';;
  *'"id":'*) echo '{"type":"result","id":'$id'}';;
  esac
done
"#,
    );
    put(
        &world,
        "b.ts",
        r#"export default function (pi) {
          pi.on("input", async (event) => event.text === "zeroth" ? { action: "transform", text: "first" } : undefined);
          pi.on("tool_call", async (event) => { event.input.command = event.input.command.replace("one", "two"); });
          pi.on("tool_result", async (event) => ({ content: [{ type: "text", text: event.content[0].text.trim() + " and" }] }));
        }"#,
    );
    let pi = world.start();
    pi.say("zeroth");
    assert_eq!(text(&pi.messages()[0]), "second");
    assert_eq!(ends(&pi), [(false, "heard both".to_owned())]);
    assert!(failures(&pi).is_empty(), "{:?}", failures(&pi));
    pi.finish();
}

#[test]
fn unusable_program_is_reported_and_left_out() {
    let world = World::new([Reply::text(["ok"])]);
    let gone = put(&world, "gone.sh", "#!/bin/sh\nexit 3\n");
    let missing = put(&world, "missing.sh", "#!/nonexistent/interpreter\n");
    let odd = world.dir.agent_dir().join("extensions/odd");
    fs::create_dir_all(&odd).unwrap();
    fs::write(odd.join("extension.json"), r#"{"command": []}"#).unwrap();
    let pi = world.start();
    pi.say("Go");
    let lines = pi.lines();
    let errors = of_type(&lines, "extension_error");
    let of = |path: &str| -> Vec<&str> {
        let mut own = errors.iter();
        let own = own.by_ref().filter(|error| error["extensionPath"] == path);
        own.map(|error| error["error"].as_str().unwrap()).collect()
    };
    assert!(of(&gone)[0].contains("it exited with code 3"), "{errors:?}");
    assert!(of(&missing)[0].contains("could not be started"), "{errors:?}");
    assert!(
        of(odd.to_str().unwrap())[0].contains("command is empty"),
        "{errors:?}"
    );
    pi.finish();
}

#[test]
fn crashed_program_extension_leaves_others_working() {
    let world = World::new([bash("c1", "echo hi"), Reply::text(["done"])]);
    let body = r#"#!/bin/sh
while IFS= read -r line; do
  id=${line#*\"id\":}; id=${id%%[!0-9]*}
  case $line in
  '{"type":"hello"'*) echo '{"type":"ready","protocol":1}';;
  '{"type":"open"'*) echo '{"type":"result","id":'$id',"value":{"extensions":[{"events":["EVENT"],"commands":[{"name":"NAME"}]}]}}';;
  '{"type":"event"'*) ACT;;
  *'"id":'*) echo '{"type":"result","id":'$id'}';;
  esac
done
"#;
    let named = |name: &str, event: &str, act: &str| {
        body.replace("EVENT", event)
            .replace("NAME", name)
            .replace("ACT", act)
    };
    put(
        &world,
        "a.sh",
        &named("a", "input", r#"echo '{"type":"result","id":'$id'}'"#),
    );
    let dies = put(&world, "b.sh", &named("b", "turn_end", "kill -9 $$"));
    let pi = world.start();
    let before = pi.get("get_commands")["commands"].as_array().unwrap().len();
    assert_eq!(before, 2);
    pi.say("Go");
    until("it is told", || !failures(&pi).is_empty());
    let lines = pi.lines();
    for error in of_type(&lines, "extension_error") {
        assert_eq!(error["extensionPath"], *dies);
    }
    assert_eq!(notes(&command(&pi, "/a")).len(), 0);
    assert_eq!(pi.get("get_commands")["commands"].as_array().unwrap().len(), 2);
    pi.finish();
}

#[test]
fn reload_restarts_program_extensions() {
    let world = World::new([]);
    let source = |name: &str| {
        r#"#!/bin/sh
while IFS= read -r line; do
  id=${line#*\"id\":}; id=${id%%[!0-9]*}
  session=${line#*\"session\":\"}; session=${session%%\"*}
  case $line in
  '{"type":"hello"'*) echo '{"type":"ready","protocol":1}';;
  '{"type":"open"'*) echo '{"type":"result","id":'$id',"value":{"extensions":[{"commands":[{"name":"NAME"}]}]}}';;
  '{"type":"call"'*) echo '{"type":"call","session":"'$session'","id":1,"method":"reload","params":{}}'; echo '{"type":"result","id":'$id'}';;
  esac
done
"#
        .replace("NAME", name)
    };
    put(&world, "kit.sh", &source("first"));
    let pi = world.start();
    let names = |pi: &Pi| {
        let commands = pi.get("get_commands")["commands"].clone();
        let names = commands.as_array().unwrap().iter();
        names
            .map(|command| command["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&pi), ["first"]);
    put(&world, "kit.sh", &source("second"));
    command(&pi, "/first");
    until("it is loaded anew", || names(&pi) == ["second"]);
    assert!(failures(&pi).is_empty(), "{:?}", failures(&pi));
    pi.finish();
}

#[test]
fn documented_extension_methods_exist() {
    if !has("python3") {
        return;
    }
    let page = fs::read_to_string(examples().join("../docs/reference/extension-protocol.md")).unwrap();
    let (_, section) = page.split_once("## Methods that a program can call").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let rows = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    // Those end what the test stands on; they have tests of their own.
    let methods: Vec<&str> = rows
        .filter(|name| !["shutdown", "newSession", "switchSession", "reload"].contains(name))
        .chain(["no.such"])
        .collect();
    assert!(methods.len() > 20, "{methods:?}");
    let source = r#"#!/usr/bin/env python3
import json, sys
METHODS = json.loads('METHODS_HERE')
def say(**line): print(json.dumps(line), flush=True)
waiting, missing, command = set(), [], None
for text in sys.stdin:
    line = json.loads(text)
    kind = line["type"]
    if kind == "hello": say(type="ready", protocol=1)
    elif kind == "open": say(type="result", id=line["id"], value={"extensions": [{"commands": [{"name": "try"}]}]})
    elif kind == "ping": say(type="pong", id=line["id"])
    elif kind == "call":
        command = line
        for at, method in enumerate(METHODS):
            waiting.add(at)
            params = {"timeout": 50, "title": "t", "provider": "p", "names": ["read"], "name": "n", "message": "m", "url": "u", "options": []}
            if method == "sendMessage": params = {"message": {"content": "x"}}
            say(type="call", session=line["session"], id=at, method=method, params=params)
    elif kind in ("result", "error") and line["id"] in waiting:
        waiting.remove(line["id"])
        if "not available here" in line.get("message", ""): missing.append(METHODS[line["id"]])
        # The editor has no time limit of its own.
        if waiting <= {METHODS.index("ui.editor")}:
            say(type="call", session=command["session"], method="ui.notify", params={"message": json.dumps(missing)})
            say(type="result", id=command["id"])
"#;
    let world = World::new([]);
    put(
        &world,
        "kit.py",
        &source.replace("METHODS_HERE", &json!(methods).to_string()),
    );
    let pi = world.start();
    let said = notes(&command(&pi, "/try"));
    let missing: Vec<String> = serde_json::from_str(said.last().unwrap()).unwrap();
    assert_eq!(missing, ["no.such"]);
    pi.agent.close_stdin();
    pi.agent.wait_exit(crate::kit::LONG).unwrap();
}

#[test]
fn extension_switch_to_invalid_session_is_refused() {
    if !can_run() {
        return;
    }
    let world = World::new([]);
    put(
        &world,
        "kit.ts",
        r#"export default function (pi) {
          pi.registerCommand("go", { handler: async (_args, ctx) => { await ctx.switchSession(ctx.cwd); } });
        }"#,
    );
    let pi = world.start();
    command(&pi, "/go");
    assert_eq!(failures(&pi).len(), 1, "{:?}", failures(&pi));
    command(&pi, "/go");
    pi.finish();
}
