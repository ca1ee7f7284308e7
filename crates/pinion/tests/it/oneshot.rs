//! One answer and the end: `-p` and `--mode json`.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::Value;
use testkit::llm::{ErrorKind, Reply};

use crate::extensions::{can_run, extended};
use crate::hooks::hook;
use crate::kit::{Done, PROGRAM, World, bash, until};

const MODEL: [&str; 4] = ["--provider", "mock-anthropic", "--model", "claude-mock"];

fn run(world: &World, args: &[&str], stdin: &str) -> Done {
    let all: Vec<&str> = MODEL.iter().chain(args).copied().collect();
    world.run(&all, stdin)
}

/// Starts the program with output that the test reads when it wants to.
fn start(world: &World, args: &[&str], stdin: &str, stdout: impl Into<Stdio>) -> Child {
    let mut command = Command::new(PROGRAM);
    command
        .args(MODEL)
        .args(args)
        .env_clear()
        .envs(world.dir.env())
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .current_dir(world.dir.cwd())
        .stdin(Stdio::piped())
        .stdout(stdout)
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    child
}

fn terminate(child: &Child) {
    kill_process(Pid::from_child(child), Signal::TERM).unwrap();
}

fn exit_code(mut child: Child) -> Option<i32> {
    let mut status = None;
    until("the end of the program", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.and_then(|status| status.code())
}

/// Reads to the end.
fn read(mut output: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut text = String::new();
        output.read_to_string(&mut text).unwrap();
        text
    })
}

/// An answer that no pipe can hold, in pieces.
fn long_answer() -> Reply {
    Reply::text(vec!["x".repeat(64 << 10); 48])
}

#[test]
fn print_mode_ends_at_signal_while_pipe_is_full() {
    let world = World::new([long_answer()]);
    let mut child = start(&world, &["-p", "Go"], "", Stdio::piped());
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut [0]).unwrap();
    terminate(&child);
    assert_eq!(exit_code(child), Some(143));
}

#[test]
fn print_mode_waits_for_nonblocking_stdout() {
    let world = World::new([long_answer()]);
    let (reader, writer) = std::io::pipe().unwrap();
    rustix::fs::fcntl_setfl(&writer, rustix::fs::OFlags::NONBLOCK).unwrap();
    let child = start(&world, &["-p", "Go"], "", writer);
    let out = read(reader);
    assert_eq!(exit_code(child), Some(0));
    assert_eq!(out.join().unwrap().len(), 48 * (64 << 10) + 1);
}

#[test]
fn json_mode_writes_queued_events_after_signal() {
    let world = World::new([bash("c", "echo $$ > new; mv new pid; exec sleep 600")]);
    // Its events fill the pipe, so that all that follow are queued.
    let prompt = "x".repeat((1 << 20) + (64 << 10));
    let mut child = start(&world, &["--mode", "json"], &prompt, Stdio::piped());
    let out = child.stdout.take().unwrap();
    let pid = world.dir.cwd().join("pid");
    until("the tool", || pid.exists());
    let pid = std::fs::read_to_string(pid).unwrap();
    let tool = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    terminate(&child);
    let out = read(out);
    until("the end of the tool", || test_kill_process(tool).is_err());
    assert_eq!(exit_code(child), Some(143));
    let out = out.join().unwrap();
    let lines: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["type"], "session");
    assert!(lines.iter().any(|line| line["type"] == "tool_execution_start"));
}

#[test]
fn print_mode_writes_last_answer() {
    let world = World::new([
        Reply::text(["I look."]).then_tool("c", "ls", serde_json::json!({})),
        Reply::text(["All ", "done."]),
    ]);
    let done = run(&world, &["-p", "Look around"], "");
    assert_eq!(
        (done.code, done.out.as_str()),
        (Some(0), "All done.\n"),
        "{}",
        done.err
    );
    assert_eq!(world.session_files().len(), 1);
}

#[test]
fn print_mode_joins_stdin_files_and_arguments() {
    let world = World::new([Reply::text(["ok"]), Reply::text(["ok again"])]);
    world.dir.write("notes.txt", "from a file").unwrap();
    let done = run(&world, &["-p", "@notes.txt", "First", "Second"], "from stdin\n");
    assert_eq!(
        (done.code, done.out.as_str()),
        (Some(0), "ok again\n"),
        "{}",
        done.err
    );
    let requests = world.server.requests();
    assert_eq!(requests.len(), 2);
    let first = requests[0].body["messages"][0]["content"].to_string();
    for part in ["from stdin", "from a file", "notes.txt", "First"] {
        assert!(first.contains(part), "{part}: {first}");
    }
    assert!(!first.contains("Second"));
}

#[test]
fn piped_prompt_needs_no_flag() {
    let world = World::new([Reply::text(["ok"])]);
    let done = run(&world, &[], "Hello");
    assert_eq!((done.code, done.out.as_str()), (Some(0), "ok\n"), "{}", done.err);
}

#[test]
fn print_mode_exit_codes_follow_outcome() {
    let failed = |reply: Reply| {
        let world = World::new([reply]).without_retries();
        run(&world, &["-p", "Go"], "")
    };
    let done = failed(Reply::error(ErrorKind::Auth));
    assert_eq!((done.code, done.out.as_str()), (Some(1), ""));
    assert!(done.err.contains("401"), "{}", done.err);
    let done = failed(Reply::text(["cut o"]).stop("length"));
    assert_eq!((done.code, done.out.as_str()), (Some(1), "cut o\n"));
    assert!(!done.err.is_empty());
    let world = World::new([]);
    let done = run(&world, &["-p"], "");
    assert_eq!(done.code, Some(1), "nothing to say");
    let done = run(&world, &["-p", "@no-such-file", "Go"], "");
    assert_eq!(done.code, Some(1));
    assert!(done.err.contains("no-such-file"), "{}", done.err);
}

#[test]
fn json_mode_exit_code_ignores_output_limit() {
    for (reply, code) in [
        (Reply::text(["cut o"]).stop("length"), 0),
        (Reply::error(ErrorKind::Auth), 1),
    ] {
        let world = World::new([reply]).without_retries();
        let done = run(&world, &["--mode", "json", "Go"], "");
        assert_eq!(done.code, Some(code), "{}", done.err);
        let ends = done.out.contains(r#""type":"agent_settled""#);
        assert!(ends, "{}", done.out);
    }
}

#[test]
fn print_mode_succeeds_after_retry() {
    let world = World::new([Reply::error(ErrorKind::Overloaded), Reply::text(["ok"])]);
    let done = run(&world, &["-p", "Go"], "");
    assert_eq!((done.code, done.out.as_str()), (Some(0), "ok\n"));
}

#[test]
fn json_mode_writes_events() {
    let world = World::new([bash("c", "echo hi"), Reply::text(["done"])]);
    let done = run(&world, &["--mode", "json", "Go"], "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    let lines: Vec<Value> = done
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["type"], "session");
    assert_eq!(lines[0]["version"], 3);
    assert_eq!(lines[1]["type"], "agent_start");
    assert!(lines.iter().any(|line| line["type"] == "tool_execution_end"));
    assert!(lines.iter().any(|line| line["type"] == "agent_end"));
    assert!(
        !lines
            .iter()
            .any(|line| line["type"] == "response" || line["type"] == "ready")
    );
}

#[test]
fn json_mode_follows_the_dialect() {
    for (dialect, repeats) in [("pi-delta", false), ("auto", true)] {
        let world = World::new([Reply::text(["All ", "done."])]);
        let done = run(&world, &["--rpc-dialect", dialect, "--mode", "json", "Go"], "");
        let lines = done.out.lines();
        let mut lines = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
        let update = lines.find(|line| line["type"] == "message_update").unwrap();
        assert_eq!(update.get("message").is_some(), repeats, "{dialect}: {update}");
    }
}

#[test]
fn handled_prompt_ends_the_program() {
    let world = World::new([Reply::text(["ok"])]);
    let handles = r#"read -r line; case "$line" in *mine*) exit 2;; esac"#;
    hook(&world, "input.sh", handles);
    let done = run(&world, &["-p", "other", "mine"], "");
    assert_eq!((done.code, done.out.as_str()), (Some(0), "ok\n"), "{}", done.err);
    assert_eq!(world.server.requests().len(), 1);
}

#[test]
fn slash_command_ends_with_its_run() {
    if !can_run() {
        return;
    }
    let world = extended(
        [Reply::text(["done"])],
        r#"
        pi.registerCommand("rest", { handler: async () => {} });
        pi.registerCommand("go", { handler: async () => { pi.sendUserMessage("Go on"); } });
        "#,
    );
    for (line, out) in [("/rest", ""), ("/go", "done\n")] {
        let done = run(&world, &["-p", line], "");
        assert_eq!((done.code, done.out.as_str()), (Some(0), out), "{}", done.err);
    }
}

#[test]
fn refused_prompt_is_the_last() {
    let world = World::new([Reply::text(["one"])]);
    let args = ["-p", "--max-turns", "1", "First", "Second", "Third"];
    let done = run(&world, &args, "");
    assert_eq!(done.code, Some(1), "{}", done.err);
    assert_eq!(done.err.matches("Limit reached").count(), 1, "{}", done.err);
}

#[test]
fn print_mode_continues_session() {
    let world = World::new([Reply::text(["one"]), Reply::text(["two"])]);
    assert_eq!(run(&world, &["-p", "First"], "").out, "one\n");
    assert_eq!(run(&world, &["-p", "--continue", "Second"], "").out, "two\n");
    assert_eq!(
        world.server.requests()[1].body["messages"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    assert_eq!(world.session_files().len(), 1);
}

#[test]
fn first_readme_command_works() {
    let world = World::new([]);
    std::fs::remove_file(world.dir.agent_dir().join("models.json")).unwrap();
    world.dir.write("a-file-to-list", "").unwrap();
    let done = world.run_as(
        Path::new(crate::kit::PROGRAM),
        &["-p", "List the files in this directory"],
        "",
    );
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(done.out.contains("a-file-to-list"), "{}", done.out);
    assert!(done.err.contains("not an AI"), "{}", done.err);
}

#[test]
#[cfg(target_os = "linux")]
fn full_disk_behind_stdout_is_a_failure() {
    let world = World::new([Reply::text(["one"]), Reply::text(["two"])]);
    for args in [&["-p", "Go"][..], &["--mode", "json", "Go"], &["schema"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        let output = Command::new(PROGRAM)
            .args(MODEL)
            .args(args)
            .env_clear()
            .envs(world.dir.env())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .current_dir(world.dir.cwd())
            .stdin(Stdio::null())
            .stdout(full.unwrap())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains("No space left on device"), "{args:?}: {said}");
    }
}
