//! Session files: their content, how they are found again, and who may write them.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::llm::{ErrorKind, Reply};

use crate::check::{self, roles};
use crate::kit::{LONG, Pi, World, answers, bash, files_below, of_type, text, until};

/// A finished session with one exchange; its file.
fn made(world: &World) -> PathBuf {
    world.server.push(Reply::text(["remembered"]));
    let pi = world.start();
    pi.say("Remember this");
    let file = pi.file();
    pi.finish();
    file
}

fn reopened(pi: &Pi) {
    let texts: Vec<String> = pi.messages().iter().map(text).collect();
    assert_eq!(texts, ["Remember this", "remembered"]);
}

/// The messages in the whole lines of a file that the agent may be writing at the moment.
fn messages_so_far(path: &Path) -> Vec<Value> {
    let content = std::fs::read(path).unwrap();
    let end = content.iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    let lines = std::str::from_utf8(&content[..end]).unwrap().lines();
    lines
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter_map(|entry| entry.get("message").cloned())
        .collect()
}

#[test]
fn session_file_of_run_has_all_entries() {
    let world = World::new([
        bash("c1", "echo hi"),
        Reply::error(ErrorKind::Overloaded),
        Reply::text(["done"]),
    ]);
    let pi = world.start();
    pi.say("Go");
    let file = pi.file();
    let messages = pi.messages();
    pi.finish();
    let kinds: Vec<Value> = check::entries(&file)
        .iter()
        .map(|entry| entry["type"].clone())
        .collect();
    assert_eq!(kinds[..2], ["model_change", "thinking_level_change"]);
    assert_eq!(
        roles(&file),
        ["user", "assistant", "toolResult", "assistant", "assistant"],
        "the failed answer too"
    );
    assert_eq!(messages.len(), 4);
    assert_eq!(world.session_files(), std::slice::from_ref(&file));
    let mode = |path: &Path| std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(path).unwrap()) & 0o777;
    assert_eq!(mode(&file), 0o600);
    assert_eq!(mode(file.parent().unwrap()), 0o700);
}

#[test]
fn message_is_on_disk_at_its_event() {
    let world = World::new([bash("c1", "true"), Reply::text(["done"]).gate("end")]);
    let pi = world.start();
    let file = pi.file();
    pi.prompt("Go");
    for count in 1..=3 {
        let told = pi.wait("message_end")["message"].clone();
        let messages = messages_so_far(&file);
        assert!(messages.len() >= count && messages.contains(&told), "{told}");
    }
    world.server.release("end");
    pi.settled();
    pi.finish();
}

#[test]
fn session_flag_opens_path() {
    let world = World::new([]);
    let file = made(&world);
    world.server.push(Reply::text(["more"]));
    let pi = world.start_with(&["--session", file.to_str().unwrap()]);
    reopened(&pi);
    assert_eq!(pi.file(), file);
    pi.say("Go on");
    let told = world.server.requests()[1].body["messages"]
        .as_array()
        .unwrap()
        .len();
    assert_eq!(told, 3);
    pi.finish();
    assert_eq!(roles(&file), ["user", "assistant", "user", "assistant"]);
}

#[test]
fn session_flag_opens_id_prefix() {
    let world = World::new([]);
    let file = made(&world);
    let header = check::header(&file);
    let id = header["id"].as_str().unwrap();
    for args in [["--session", &id[..13]], ["--resume", &id[..13]]] {
        let pi = world.start_with(&args);
        reopened(&pi);
        assert_eq!(pi.state()["sessionId"], id);
        pi.finish();
    }
    let lost = world.run(&["--mode", "rpc", "--session", "ffffffff-none"], "");
    assert_eq!(lost.code, Some(1));
    assert!(lost.err.contains("ffffffff-none"), "{}", lost.err);
}

#[test]
fn empty_session_name_starts_new_session() {
    let world = World::new([]);
    made(&world);
    let elsewhere = world.dir.root().join("elsewhere");
    for args in [
        &["--session", ""][..],
        // Nor is an empty message a session of another directory.
        &["--session-dir", elsewhere.to_str().unwrap(), "--resume", ""],
    ] {
        let pi = world.start_with(args);
        assert_eq!(pi.state()["messageCount"], 0, "{args:?}");
        pi.finish();
    }
}

#[test]
fn resume_keeps_prompt_with_slash() {
    let world = World::new([]);
    let file = made(&world);
    world.server.push(Reply::text(["explained"]));
    let model = ["--provider", "mock-anthropic", "--model", "claude-mock"];
    let args: Vec<&str> = model
        .into_iter()
        .chain(["-r", "-p", "Explain src/main.rs"])
        .collect();
    let done = world.run(&args, "");
    assert_eq!(
        (done.code, done.out.as_str()),
        (Some(0), "explained\n"),
        "{}",
        done.err
    );
    assert_eq!(roles(&file), ["user", "assistant", "user", "assistant"]);
    // The path of a session is still one.
    let pi = world.start_with(&["--resume", file.to_str().unwrap()]);
    assert_eq!((pi.file(), pi.messages().len()), (file, 4));
    pi.finish();
}

#[test]
fn no_session_flag_precedes_session_flag() {
    let world = World::new([]);
    let file = made(&world);
    let before = std::fs::read(&file).unwrap();
    world.server.push(Reply::text(["ok"]));
    let pi = world.start_with(&["--no-session", "--session", file.to_str().unwrap()]);
    pi.say("Hi");
    assert_eq!(pi.messages().len(), 2);
    assert_eq!(pi.state()["sessionFile"], Value::Null);
    until("the warning", || {
        pi.agent
            .stderr()
            .contains("--session has no effect with --no-session")
    });
    pi.finish();
    assert_eq!(std::fs::read(&file).unwrap(), before);
    assert_eq!(world.session_files(), [file]);
}

#[test]
fn continue_flag_opens_latest_session() {
    let world = World::new([Reply::text(["older"])]);
    let pi = world.start();
    pi.say("Older");
    let older = pi.file();
    pi.finish();
    let early = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    std::fs::File::options()
        .append(true)
        .open(&older)
        .unwrap()
        .set_modified(early)
        .unwrap();
    let file = made(&world);
    for flag in ["--continue", "-c"] {
        let pi = world.start_with(&[flag]);
        reopened(&pi);
        assert_eq!(pi.file(), file);
        pi.finish();
    }
}

#[test]
fn continue_without_sessions_starts_new_session() {
    let world = World::new([]);
    let pi = world.start_with(&["--continue"]);
    assert_eq!(pi.state()["messageCount"], 0);
    pi.finish();
}

#[test]
fn session_dir_flag_selects_directory() {
    let world = World::new([Reply::text(["ok"])]);
    let folder = world.dir.root().join("elsewhere");
    let pi = world.start_with(&["--session-dir", folder.to_str().unwrap()]);
    pi.say("Hi");
    let file = pi.file();
    pi.finish();
    assert_eq!(files_below(&folder), [file]);
    assert!(world.session_files().is_empty());
    let pi = world.start_with(&["--session-dir", folder.to_str().unwrap(), "--continue"]);
    assert_eq!(pi.state()["messageCount"], 2);
    pi.finish();
}

#[test]
fn no_session_flag_writes_no_file() {
    let world = World::new([Reply::text(["ok"])]);
    let pi = world.start_with(&["--no-session"]);
    pi.say("Hi");
    assert_eq!(pi.state()["sessionFile"], Value::Null);
    assert_eq!(pi.messages().len(), 2);
    pi.finish();
    assert!(world.session_files().is_empty());
}

#[test]
fn session_open_elsewhere_is_refused() {
    let world = World::new([Reply::text(["ok"])]);
    let pi = world.start();
    pi.say("Hi");
    let file = pi.file();
    let second = world.run(&["--mode", "rpc", "--session", file.to_str().unwrap()], "");
    assert_eq!(second.code, Some(1));
    assert!(second.err.contains("open in another process"), "{}", second.err);
    assert_eq!(second.out, "");
    pi.finish();
    let pi = world.start_with(&["--session", file.to_str().unwrap()]);
    assert_eq!(pi.messages().len(), 2);
    pi.finish();
}

#[test]
fn file_without_session_is_not_touched() {
    let world = World::new([]);
    let path = world.dir.cwd().join("notes.jsonl");
    for content in ["These are my notes.\n", "{\"a\": 1}\n{\"b\": 2}\n"] {
        std::fs::write(&path, content).unwrap();
        let done = world.run(
            &["--mode", "rpc", "--session", "./notes.jsonl"],
            "{\"type\":\"prompt\",\"message\":\"x\"}\n",
        );
        assert_eq!(done.code, Some(1), "{}", done.err);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
    }
}

#[test]
fn session_damage_is_reported_and_rest_kept() {
    let world = World::new([]);
    let file = made(&world);
    let whole = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let (last, before) = lines.split_last().unwrap();
    let broken = format!(
        "{}\nthis is nothing\n{last}\n{{\"type\":\"message\",\"id\":\"torn",
        before.join("\n")
    );
    std::fs::write(&file, broken).unwrap();
    world.server.push(Reply::text(["more"]));
    let pi = world.start_with(&["--session", file.to_str().unwrap()]);
    reopened(&pi);
    let damage = pi.wait("session_damage");
    assert_eq!(damage["path"], file.to_str().unwrap());
    assert!(damage["tornBytes"].as_u64().unwrap() > 0, "{damage}");
    assert_eq!(damage["lines"].as_array().unwrap().len(), 1, "{damage}");
    pi.say("Go on");
    pi.agent.close_stdin();
    assert_eq!(pi.agent.wait_exit(LONG).unwrap().code(), Some(0));
    let content = std::fs::read_to_string(&file).unwrap();
    let readable = content
        .lines()
        .filter(|line| serde_json::from_str::<Value>(line).is_ok())
        .count();
    assert_eq!(readable, lines.len() + 2, "{content}");
}

#[test]
fn killed_call_gets_error_result_on_restart() {
    let world = World::new([bash("c1", "touch begun; sleep 600").then_tool("c2", "ls", json!({}))]);
    let pi = world.start();
    let file = pi.file();
    pi.prompt("Go");
    until("the tool", || world.dir.cwd().join("begun").exists());
    pi.agent.kill9().unwrap();
    pi.agent.wait_exit(LONG).unwrap();
    assert_eq!(roles(&file), ["user", "assistant"]);
    world.server.push(Reply::text(["I see."]));
    let pi = world.start_with(&["--session", file.to_str().unwrap()]);
    let held = pi.messages();
    assert_eq!(held.len(), 4, "{held:?}");
    assert!(
        held[2..]
            .iter()
            .all(|result| result["role"] == "toolResult" && result["isError"] == true)
    );
    pi.say("What happened?");
    let told = &world.server.requests()[1].body["messages"];
    let results: Vec<&Value> = told[2]["content"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|b| b["type"] == "tool_result")
        .collect();
    let ids: Vec<&Value> = results.iter().map(|result| &result["tool_use_id"]).collect();
    assert_eq!(ids, ["c1", "c2"], "{told}");
    assert!(results.iter().all(|result| result["is_error"] == true));
    pi.finish();
}

#[test]
fn kill_9_loses_no_announced_message() {
    for delay in [0, 20, 60, 150] {
        let world = World::new([]);
        world.server.set_rule(|request| match request.n {
            n if n % 4 == 3 => Reply::text(["enough"]),
            n => bash(&format!("c{n}"), "echo x; sleep 0.01"),
        });
        let pi = world.start();
        let file = pi.file();
        pi.prompt("Go");
        pi.wait("message_end");
        std::thread::sleep(std::time::Duration::from_millis(delay));
        pi.agent.kill9().unwrap();
        pi.agent.wait_exit(LONG).unwrap();
        pi.wait_ended();
        let lines = pi.lines();
        let told: Vec<&Value> = of_type(&lines, "message_end")
            .into_iter()
            .map(|line| &line["message"])
            .collect();
        let second = world.start_with(&["--session", file.to_str().unwrap()]);
        let held = second.messages();
        for message in &told {
            assert!(held.contains(message), "lost: {message}");
        }
        second.say("Go on");
        second.finish();
    }
}

#[test]
fn new_session_ends_run_and_clears_state() {
    let world = World::new([Reply::text(["half"]).gate("never"), Reply::text(["fresh"])]);
    let pi = world.start();
    let first = pi.file();
    let id = pi.state()["sessionId"].clone();
    pi.prompt("Go");
    pi.wait_update("text_delta");
    pi.data(json!({"type": "steer", "message": "Dropped"}));
    assert_eq!(pi.data(json!({"type": "new_session"}))["cancelled"], false);
    let state = pi.state();
    assert_ne!(state["sessionId"], id);
    assert_eq!(
        (&state["messageCount"], &state["pendingMessageCount"]),
        (&json!(0), &json!(0))
    );
    let lines = pi.lines();
    let at = |fits: &dyn Fn(&Value) -> bool| lines.iter().position(fits).unwrap();
    assert!(at(&|line| line["type"] == "agent_settled") < at(&|line| line["command"] == "new_session"));
    pi.agent.skip();
    pi.say("Hello");
    assert_eq!(
        world.server.requests()[1].body["messages"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let second = pi.file();
    assert_ne!(first, second);
    pi.finish();
    assert_eq!(roles(&first), ["user", "assistant"]);
    assert_eq!(roles(&second), ["user", "assistant"]);
}

#[test]
fn new_session_stores_parent_and_unlocks_old() {
    let world = World::new([Reply::text(["one"]), Reply::text(["two"])]);
    let pi = world.start();
    pi.say("Hi");
    let first = pi.file();
    pi.data(json!({"type": "new_session", "parentSession": first}));
    pi.say("Hi");
    assert_eq!(
        check::header(&pi.file())["parentSession"],
        first.to_str().unwrap()
    );
    let other = world.start_with(&["--session", first.to_str().unwrap()]);
    assert_eq!(other.messages().len(), 2);
    other.finish();
    pi.finish();
}

#[test]
fn commands_after_new_session_apply_to_it() {
    let world = World::new([Reply::text(["half"]).gate("never"), Reply::text(["fresh"])]);
    let pi = world.start();
    pi.prompt("Go");
    pi.wait_update("text_delta");
    pi.send(json!({"type": "new_session"}));
    let named = pi.send(json!({"type": "set_session_name", "name": "New"}));
    let prompt = pi.send(json!({"type": "prompt", "message": "Hello"}));
    assert_eq!(pi.response(&named)["success"], true);
    assert_eq!(pi.response(&prompt)["data"]["disposition"], "started");
    pi.settled();
    pi.settled();
    assert_eq!(pi.state()["sessionName"], "New");
    assert_eq!(pi.messages().len(), 2);
    pi.finish();
}

#[test]
fn version_2_file_is_migrated_with_backup() {
    let world = World::new([Reply::text(["more"])]);
    let path = world.dir.root().join("old.jsonl");
    let cwd = world.dir.cwd();
    let lines = [
        json!({"type": "session", "version": 2, "id": "11111111-2222-4333-8444-555555555555", "timestamp": "2025-11-01T10:00:00.000Z", "cwd": cwd}),
        json!({"type": "message", "id": "aaaaaaaa", "parentId": null, "timestamp": "2025-11-01T10:00:01.000Z",
               "message": {"role": "user", "content": "Old question", "timestamp": 1_761_991_201_000_u64}}),
    ];
    let mut file = std::fs::File::create(&path).unwrap();
    for line in lines {
        writeln!(file, "{line}").unwrap();
    }
    drop(file);
    let before = std::fs::read(&path).unwrap();
    let pi = world.start_with(&["--session", path.to_str().unwrap()]);
    assert_eq!(pi.messages().len(), 1);
    let lines = pi.say("Go on");
    assert_eq!(text(answers(&lines)[0]), "more");
    pi.finish();
    assert_eq!(
        check::entries(&path)
            .iter()
            .filter(|entry| entry["type"] == "message")
            .count(),
        3
    );
    let copies = files_below(world.dir.root())
        .into_iter()
        .filter(|file| file.to_string_lossy().contains("old.jsonl."));
    assert!(
        copies
            .into_iter()
            .any(|copy| std::fs::read(copy).unwrap() == before),
        "no copy of the old file"
    );
}

#[test]
fn session_restores_model_and_thinking_level() {
    let world = World::new([Reply::text(["ok"])]);
    let pi = world.start();
    pi.data(json!({"type": "set_model", "provider": "mock-openai", "modelId": "gpt-mock"}));
    pi.data(json!({"type": "set_thinking_level", "level": "high"}));
    pi.say("Hi");
    let file = pi.file();
    pi.finish();
    let config =
        world
            .dir
            .agent(crate::kit::PROGRAM)
            .args(["--mode", "rpc", "--session", file.to_str().unwrap()]);
    let pi = Pi::spawn(config);
    let state = pi.state();
    assert_eq!(
        (&state["model"]["id"], &state["thinkingLevel"]),
        (&json!("gpt-mock"), &json!("high"))
    );
    pi.finish();
}

/// A session file without ids, as agents before version 2 wrote it.
fn v1_file(world: &World, name: &str, header: &Value, level: Option<&str>) -> PathBuf {
    let path = world.dir.root().join(name);
    let mut head = json!({"type": "session", "id": format!("id-of-{name}"), "cwd": world.dir.cwd(), "timestamp": "2025-11-01T10:00:00.000Z"});
    for (key, value) in header.as_object().unwrap() {
        head[key] = value.clone();
    }
    let change = level.map(|level| json!({"type": "thinking_level_change", "timestamp": "2025-11-01T10:00:00.500Z", "thinkingLevel": level}));
    let question = json!({"type": "message", "timestamp": "2025-11-01T10:00:01.000Z",
        "message": {"role": "user", "content": [{"type": "text", "text": "Old question"}], "timestamp": 1_761_991_201_000_u64}});
    let lines: Vec<String> = [Some(head), change, Some(question)]
        .into_iter()
        .flatten()
        .map(|line| line.to_string() + "\n")
        .collect();
    std::fs::write(&path, lines.concat()).unwrap();
    path
}

#[test]
fn v1_session_keeps_its_thinking_level() {
    // pi 0.74.2 reads the entry, and not the header, which agents before it wrote.
    let early = json!({"provider": "mock-anthropic", "modelId": "claude-mock", "thinkingLevel": "high"});
    for (name, header, entry, level, budget) in [
        ("entry.jsonl", json!({}), Some("low"), "low", 2048),
        ("header.jsonl", early, None, "high", 16384),
        ("none.jsonl", json!({}), None, "medium", 8192),
    ] {
        let world = World::new([Reply::text(["New."])]);
        let file = v1_file(&world, name, &header, entry);
        let pi = world.start();
        pi.data(json!({"type": "switch_session", "sessionPath": file}));
        assert_eq!(pi.state()["thinkingLevel"], level, "{name}");
        assert_eq!(text(&pi.messages()[0]), "Old question");
        pi.say("Next");
        let asked = &world.server.requests()[0].body;
        assert_eq!(asked["thinking"]["budget_tokens"], budget, "{name}");
        pi.finish();
    }
}
