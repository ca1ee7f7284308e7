//! Logs: silent unless asked, never on stdout, spans for everything that takes time.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use testkit::llm::{ErrorKind, Reply};

use crate::kit::{Pi, World, bash, until};

fn replies() -> [Reply; 4] {
    [
        bash("c1", "echo hello"),
        Reply::error(ErrorKind::Overloaded),
        Reply::text(["done ", "and ", "dusted"]),
        Reply::text(["a summary"]),
    ]
}

fn run(pi: &Pi) {
    pi.say("What did I say?");
    pi.get("compact");
}

#[test]
fn log_file_has_all_spans_but_no_content() {
    let world = World::new(replies());
    world.settings(json!({"compaction": {"keepRecentTokens": 1}}));
    let path = world.dir.root().join("log.jsonl");
    let pi = Pi::spawn(world.config().args(["--log-file".as_ref(), path.as_os_str()]));
    run(&pi);
    let session = pi.state()["sessionId"].clone();
    assert_eq!(pi.agent.stderr(), "");
    pi.finish();
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let closed: Vec<&Value> = lines
        .iter()
        .filter(|line| line["message"] == "close")
        .map(|line| &line["span"])
        .collect();
    let count = |name: &str| closed.iter().filter(|span| span["name"] == name).count();
    assert_eq!(
        (
            count("chat"),
            count("execute_tool"),
            count("turn"),
            count("run"),
            count("session")
        ),
        (4, 1, 3, 2, 1),
        "{text}"
    );
    let chats: Vec<&&Value> = closed.iter().filter(|span| span["name"] == "chat").collect();
    let first = chats[0];
    assert_eq!(first["gen_ai.operation.name"], "chat");
    assert_eq!(first["gen_ai.request.model"], "claude-mock");
    assert_eq!(first["gen_ai.response.model"], "claude-mock");
    assert_eq!(first["gen_ai.response.finish_reasons"], "[\"tool_calls\"]");
    assert_eq!(
        (
            &first["gen_ai.usage.input_tokens"],
            &first["gen_ai.usage.output_tokens"]
        ),
        (&json!(100), &json!(20))
    );
    assert_eq!(first["gen_ai.conversation.id"], session);
    assert_eq!(chats[1]["error.type"], "provider_error");
    let tool = lines
        .iter()
        .find(|line| line["message"] == "close" && line["span"]["name"] == "execute_tool")
        .unwrap();
    assert_eq!(
        (
            &tool["span"]["gen_ai.tool.name"],
            &tool["span"]["gen_ai.tool.call.id"]
        ),
        (&json!("bash"), &json!("c1"))
    );
    let around: Vec<&Value> = tool["spans"]
        .as_array()
        .unwrap()
        .iter()
        .map(|span| &span["name"])
        .collect();
    assert_eq!(around, ["session", "run", "turn"]);
    for told in ["will be tried again", "compaction begins", "compaction ended"] {
        assert!(text.contains(told), "{told}: {text}");
    }
    for said in ["What did I say", "hello", "dusted", "a summary"] {
        assert!(!text.contains(said), "{said}");
    }
}

#[test]
fn stderr_logs_need_environment_variable() {
    for (name, value, logs) in [
        ("HARMLESS", "1", false),
        ("RUST_LOG", "off", false),
        ("RUST_LOG", "info", true),
        ("PINION_LOG", "pinion_session=debug", true),
        ("PINION_LOG", "pinion_llm=off", false),
    ] {
        let world = World::new([Reply::text(["ok"])]);
        let pi = Pi::spawn(world.config().env(name, value));
        pi.say("Hi");
        // What closes with the process is written, too.
        pi.agent.close_stdin();
        pi.agent.wait_exit(crate::kit::LONG).unwrap();
        pi.wait_ended();
        until("the end of stderr", || pi.agent.stderr_ended());
        let err = pi.agent.stderr();
        assert_eq!(err.contains("session"), logs, "{name}={value}: {err}");
        assert!(logs || err.is_empty(), "{name}={value}: {err}");
        assert!(pi.lines().iter().all(|line| line["type"].is_string()));
    }
    let world = World::new([Reply::text(["ok"])]);
    let pi = Pi::spawn(world.config().env("RUST_LOG", "a[b{c}]=="));
    pi.say("Hi");
    pi.warns("RUST_LOG is not understood");
    pi.finish();
}

#[test]
fn rust_log_sets_level_of_log_file() {
    let world = World::new([Reply::text(["ok"])]);
    let path = world.dir.root().join("log.jsonl");
    let args = ["--log-file".as_ref(), path.as_os_str()];
    let pi = Pi::spawn(world.config().args(args).env("RUST_LOG", "warn"));
    pi.say("Hi");
    pi.finish();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
    let folder = world.dir.root().to_str().unwrap();
    let done = world.run(&["--log-file", folder, "-p", "x"], "");
    assert_eq!(done.code, Some(1));
    assert!(done.err.contains("log file"), "{}", done.err);
}

#[test]
fn log_file_option_preserves_files_of_other_kinds() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let world = World::new([]);
    let at = |name: &str| world.dir.root().join(name);
    let mode = |name: &str| at(name).metadata().unwrap().permissions().mode() & 0o777;
    for (name, text) in [
        ("notes", "mine\n"),
        ("empty", ""),
        ("data", "{\"timestamp\": 1}\n"),
    ] {
        std::fs::write(at(name), text).unwrap();
        std::fs::set_permissions(at(name), std::fs::Permissions::from_mode(0o644)).unwrap();
    }
    symlink(at("notes"), at("link")).unwrap();
    symlink(at("gone"), at("dangling")).unwrap();
    std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    for (name, why) in [
        ("notes", "other content"),
        ("data", "other content"),
        ("link", "symbolic link"),
        ("dangling", "symbolic link"),
        ("socket", "regular file"),
    ] {
        let path = at(name).display().to_string();
        let done = world.run(&["--log-file", &path, "-p", "x"], "");
        assert_eq!(done.code, Some(1), "{name}");
        assert!(done.err.contains(why) && done.err.contains(&path), "{}", done.err);
    }
    assert_eq!(std::fs::read_to_string(at("notes")).unwrap(), "mine\n");
    assert!(!at("gone").exists());
    for name in ["empty", "new"] {
        for _ in 0..2 {
            let path = at(name).display().to_string();
            world.server.push(Reply::text(["ok"]));
            let model = ["--provider", "mock-anthropic", "--model", "claude-mock"];
            let done = world.run(&[&["--log-file", &path, "-p", "x"][..], &model].concat(), "");
            assert_eq!(done.code, Some(0), "{}", done.err);
        }
    }
    assert_eq!((mode("notes"), mode("empty"), mode("new")), (0o644, 0o644, 0o600));
}
