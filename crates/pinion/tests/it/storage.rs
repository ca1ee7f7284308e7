//! Disks that are full, slow, taken away and given back, and what survives them. What the bytes of a session file mean is
//! tested in `store`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};
use testkit::driver::AgentConfig;
use testkit::llm::Reply;

use crate::check;
use crate::kit::{LONG, PROGRAM, Pi, World, answered_at, bash, of_type, skipped, text, until};

/// Lets the agent write files of at most so many bytes; none: of any size. Beyond that a write fails like on a full disk, and
/// the kernel sends `SIGXFSZ`.
fn limit_files(pi: &Pi, bytes: Option<u64>) {
    let pid = Pid::from_raw(i32::try_from(pi.agent.pid()).unwrap());
    let limit = Rlimit {
        current: bytes,
        maximum: None,
    };
    prlimit(pid, Resource::Fsize, limit).unwrap();
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len()
}

fn pending(pi: &Pi) -> u64 {
    pi.state()["storage"]["pending"].as_u64().unwrap_or(0)
}

/// The roles of the messages in a file to which the agent may be writing. An attempt that fails leaves a part of a line for a
/// moment, until it is cut off again.
fn stored_roles(path: &Path) -> Vec<Value> {
    let mut content = String::new();
    until("whole lines in the file", || {
        content = fs::read_to_string(path).unwrap_or_default();
        content.ends_with('\n')
    });
    let entries = content
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    entries
        .filter_map(|entry| entry.get("message").map(|message| message["role"].clone()))
        .collect()
}

fn bash_entries(path: &Path) -> usize {
    let roles = stored_roles(path);
    roles.iter().filter(|role| *role == "bashExecution").count()
}

fn answers_of(count: usize) -> Vec<Reply> {
    (0..count)
        .map(|number| Reply::text([format!("answer {number}")]))
        .collect()
}

/// The second answer does not fit and the disk has room again.
#[test]
fn full_disk_entries_reach_file_later() {
    for prompts_again in [false, true] {
        let world = World::new(answers_of(5));
        let pi = world.start();
        pi.say("first");
        let file = pi.file();
        // A part of the next line fits: nothing of it may stay.
        limit_files(&pi, Some(size(&file) + 100));
        pi.say("second");
        pi.say("third");
        let state = pi.state();
        assert_eq!(state["storage"]["pending"], 4, "{state}");
        assert!(!state["storage"]["error"].as_str().unwrap().is_empty(), "{state}");
        let statuses = of_type(&pi.lines(), "storage_status").len();
        assert_eq!(statuses, 1, "reported once");
        assert_eq!(stored_roles(&file), ["user", "assistant"]);
        limit_files(&pi, None);
        if prompts_again {
            pi.say("fourth");
        }
        until("the entries to reach the file", || pending(&pi) == 0);
        let lines = pi.lines();
        let statuses = of_type(&lines, "storage_status");
        assert_eq!(
            (statuses.len(), &statuses[1]["pending"]),
            (2, &json!(0)),
            "{statuses:?}"
        );
        assert!(pi.state().get("storage").is_none());
        let told = pi.messages();
        let stored = check::messages(&file);
        assert_eq!(stored, told);
        // The tree in memory is the one in the file.
        let entries = pi.get("get_entries")["entries"].clone();
        assert_eq!(Value::Array(check::entries(&file)), entries);
        pi.finish();
    }
}

#[test]
fn full_disk_entries_are_written_before_exit() {
    for by_signal in [false, true] {
        let world = World::new(answers_of(3));
        let pi = world.start();
        pi.say("first");
        let file = pi.file();
        limit_files(&pi, Some(size(&file)));
        // Long enough for the pauses between the attempts to grow.
        pi.say("second");
        pi.say("third");
        assert!(pending(&pi) > 0);
        limit_files(&pi, None);
        if by_signal {
            let pid = Pid::from_raw(i32::try_from(pi.agent.pid()).unwrap()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        } else {
            pi.agent.close_stdin();
        }
        pi.agent.wait_exit(LONG).unwrap();
        let roles = check::roles(&file);
        assert_eq!(roles.len(), 6, "{roles:?}");
    }
}

#[test]
fn full_disk_at_first_prompt_loses_nothing() {
    let world = World::new(answers_of(2));
    let pi = world.start();
    limit_files(&pi, Some(10));
    pi.say("first");
    let file = pi.file();
    assert!(pending(&pi) >= 2);
    // Later attempts write a part again and cut it off.
    until("nothing in the file", || {
        fs::metadata(&file).ok().is_none_or(|file| file.len() == 0)
    });
    limit_files(&pi, None);
    until("the session to reach the file", || pending(&pi) == 0);
    assert_eq!(check::roles(&file), ["user", "assistant"]);
    pi.finish();
}

#[test]
fn unstored_bash_command_is_not_a_success() {
    let world = World::new(answers_of(1));
    let pi = world.start();
    pi.say("first");
    let file = pi.file();
    limit_files(&pi, Some(size(&file) + 2_000));
    let mut successes = 0;
    for number in 0..20 {
        let command = json!({"type": "bash", "command": format!("echo {number}")});
        let response = pi.ask(command);
        if response["success"] == true {
            successes += 1;
            assert_eq!(bash_entries(&file), successes, "stored when answered");
        } else {
            let error = response["error"].as_str().unwrap();
            assert!(error.contains("session file"), "{error}");
        }
    }
    assert!((1..20).contains(&successes), "{successes}");
    assert_eq!(bash_entries(&file), successes);
    limit_files(&pi, None);
    until("the commands to reach the file", || pending(&pi) == 0);
    assert_eq!(bash_entries(&file), 20);
    pi.finish();
}

/// A command whose only effect is an entry fails and leaves nothing behind.
#[test]
fn full_disk_fails_commands_that_only_store() {
    let world = World::new(answers_of(1));
    let pi = world.start();
    pi.say("first");
    let file = pi.file();
    let before = fs::read(&file).unwrap();
    limit_files(&pi, Some(size(&file)));
    let entry = check::entries(&file)[0]["id"].clone();
    for command in [
        json!({"type": "set_session_name", "name": "a name"}),
        json!({"type": "set_entry_label", "targetId": entry, "label": "here"}),
    ] {
        let error = pi.error(command);
        assert!(!error.is_empty());
    }
    assert_eq!(fs::read(&file).unwrap(), before);
    assert!(pi.state().get("sessionName").is_none());
    limit_files(&pi, None);
    pi.data(json!({"type": "set_session_name", "name": "a name"}));
    assert_eq!(pi.state()["sessionName"], "a name");
    pi.finish();
}

/// `SIGXFSZ` ends no mode, and children have its default.
#[test]
fn file_size_limit_ends_no_process() {
    let world = World::new([
        bash("c1", "head -c 5000 /dev/zero > big; echo code $?"),
        Reply::text(["done"]),
    ]);
    let pi = world.start();
    limit_files(&pi, Some(1_000));
    let lines = pi.say("go");
    let output = text(&of_type(&lines, "tool_execution_end")[0]["result"]);
    // 128 + SIGXFSZ: the command was ended by it.
    assert!(output.contains("code 153"), "{output}");
    limit_files(&pi, None);
    until("the session to reach the file", || pending(&pi) == 0);
    pi.finish();
    let world = World::new(answers_of(1));
    let script = format!(
        "ulimit -S -f 1; exec {PROGRAM} -p --provider mock-anthropic --model claude-mock '{}'",
        "x".repeat(4_000)
    );
    let done = world.run_as(Path::new("/bin/sh"), &["-c", &script], "");
    assert_eq!(
        (done.code, done.out.trim()),
        (Some(0), "answer 0"),
        "{}",
        done.err
    );
}

#[test]
fn removed_session_directory_is_recreated() {
    let world = World::new(answers_of(3));
    let pi = world.start();
    pi.say("first");
    let file = pi.file();
    fs::remove_dir_all(world.dir.agent_dir().join("sessions")).unwrap();
    pi.say("second");
    assert_eq!(
        check::roles(&file),
        ["user", "assistant", "user", "assistant"],
        "the whole session"
    );
    // Something else is in its place for a while.
    let dir = file.parent().unwrap();
    fs::remove_dir_all(dir).unwrap();
    fs::write(dir, "in the way").unwrap();
    pi.say("third");
    assert_eq!(pending(&pi), 2);
    fs::remove_file(dir).unwrap();
    until("the entries to reach the file", || pending(&pi) == 0);
    assert_eq!(check::roles(&file).len(), 6);
    pi.finish();
}

#[test]
fn session_change_on_full_disk_loses_nothing() {
    let world = World::new(answers_of(3));
    let pi = world.start();
    pi.say("first");
    let file = pi.file();
    limit_files(&pi, Some(size(&file)));
    pi.say("second");
    // To another session, back to the one with unwritten entries, and away again.
    pi.data(json!({"type": "new_session"}));
    assert!(pi.state().get("storage").is_none());
    pi.data(json!({"type": "switch_session", "sessionPath": file}));
    assert_eq!((pi.messages().len(), pending(&pi)), (4, 2));
    pi.data(json!({"type": "new_session"}));
    assert_eq!(check::roles(&file), ["user", "assistant"]);
    pi.agent.skip();
    limit_files(&pi, None);
    until("the entries to reach the file", || stored_roles(&file).len() == 4);
    let whole = |line: &Value| line["type"] == "storage_status" && line["pending"] == 0;
    pi.agent.wait(whole, LONG).unwrap();
    pi.say("third");
    pi.data(json!({"type": "switch_session", "sessionPath": file}));
    assert_eq!(pi.messages().len(), 4);
    pi.finish();
}

/// Another program puts a file in the place of this one.
fn replace_file(path: &Path, content: &[u8]) {
    let other = path.with_extension("new");
    fs::write(&other, content).unwrap();
    fs::rename(&other, path).unwrap();
}

#[test]
fn switching_to_replaced_file_keeps_unwritten_entries() {
    let world = World::new(answers_of(2));
    let pi = world.start();
    pi.say("first");
    let file = pi.file();
    let content = fs::read(&file).unwrap();
    replace_file(&file, &content);
    pi.say("second");
    assert_eq!(pending(&pi), 2);
    let error = pi.error(json!({"type": "switch_session", "sessionPath": file}));
    assert!(error.contains("2 of its entries could not be written"), "{error}");
    assert_eq!((pi.messages().len(), pending(&pi)), (4, 2));
    assert_eq!(fs::read(&file).unwrap(), content);
    pi.data(json!({"type": "new_session"}));
    pi.finish();
}

#[test]
fn failed_switch_to_replaced_file_keeps_the_session_in_it() {
    for in_place in [false, true] {
        let world = World::new(answers_of(2));
        let pi = world.start();
        pi.say("first");
        let file = pi.file();
        if in_place {
            fs::write(&file, "notes\n").unwrap();
        } else {
            replace_file(&file, b"notes\n");
        }
        let error = pi.error(json!({"type": "switch_session", "sessionPath": file}));
        assert!(error.contains("not a valid pi session"), "{error}");
        assert_eq!(pi.file(), file);
        // Clients learn that what follows is in no file.
        pi.say("second");
        assert_eq!((pi.messages().len(), pending(&pi)), (4, 2));
        assert_eq!(fs::read_to_string(&file).unwrap(), "notes\n");
        pi.data(json!({"type": "new_session"}));
        pi.finish();
    }
}

#[test]
fn switching_opens_a_shortened_file_again() {
    let world = World::new(answers_of(2));
    let pi = world.start();
    pi.say("first");
    let file = pi.file();
    let content = fs::read_to_string(&file).unwrap();
    let answer = content.lines().last().unwrap();
    fs::write(&file, content.strip_suffix(&format!("{answer}\n")).unwrap()).unwrap();
    pi.data(json!({"type": "switch_session", "sessionPath": file}));
    assert_eq!(pi.messages().len(), 1);
    pi.say("second");
    assert_eq!(check::roles(&file), ["user", "user", "assistant"]);
    // The first answer was told and is in no file any more, which `finish` would report.
    pi.agent.close_stdin();
    pi.agent.wait_exit(LONG).unwrap();
}

#[test]
fn switching_refuses_a_file_without_session() {
    for content in ["", "\n", " \n\n\t\n"] {
        let world = World::new(answers_of(2));
        let pi = world.start();
        pi.say("first");
        let before = pi.file();
        let empty = world.dir.cwd().join("empty.jsonl");
        fs::write(&empty, content).unwrap();
        let error = pi.error(json!({"type": "switch_session", "sessionPath": empty}));
        assert!(error.contains("not a valid pi session"), "{error}");
        let error = pi.error(json!({"type": "open_session", "sessionPath": empty}));
        assert!(error.contains("not a valid pi session"), "{error}");
        assert_eq!(pi.file(), before);
        pi.say("second");
        assert_eq!(fs::read_to_string(&empty).unwrap(), content);
        pi.finish();
    }
}

/// Returns true if strace works here; otherwise reports the test as skipped.
fn has_strace() -> bool {
    let run = Command::new("strace")
        .args(["-f", "-o", "/dev/null", "true"])
        .output();
    let works = run.is_ok_and(|output| output.status.success());
    if !works {
        skipped("strace cannot be started");
    }
    works
}

/// The agent under strace.
fn traced(world: &World, options: &[&str], args: &[&str]) -> AgentConfig {
    let inner = world.config();
    let config = world.dir.agent("strace").args(["-f", "-qq"]);
    config
        .args(options.iter().copied())
        .arg(PROGRAM)
        .args(inner.args)
        .args(args.iter().copied())
}

/// The first write to the first session's file takes eight seconds: meanwhile another session is opened, runs a turn and
/// stores it.
#[test]
fn slow_disk_delays_only_its_session() {
    if !has_strace() {
        return;
    }
    let world = World::new(answers_of(2));
    let slow = world.dir.root().join("slow.jsonl");
    let slow = slow.to_str().unwrap();
    let inject = "inject=write:delay_enter=8000000:when=1";
    let options = ["-o", "/dev/null", "-P", slow, "-e", "trace=write", "-e", inject];
    let pi = Pi::spawn(traced(&world, &options, &["--session", slow]));
    pi.data(json!({"type": "open_session", "session": "quick"}));
    let first = pi.send(json!({"type": "prompt", "message": "first"}));
    let id = pi.send(json!({"type": "prompt", "session": "quick", "message": "second"}));
    pi.agent
        .wait(
            |line| line["type"] == "agent_settled" && line["session"] == "quick",
            LONG,
        )
        .unwrap();
    pi.agent
        .wait(
            |line| line["type"] == "agent_settled" && line.get("session").is_none(),
            LONG,
        )
        .unwrap();
    let lines = pi.lines();
    let at = |quick: bool, kind: &str| {
        let is_its = |line: &Value| line.get("session").is_some() == quick && line["type"] == kind;
        lines.iter().position(is_its).unwrap()
    };
    assert!(answered_at(&lines, &id) < at(false, "message_end"));
    assert!(
        at(true, "agent_settled") < answered_at(&lines, &first),
        "a prompt is stored before it is acknowledged: {lines:?}"
    );
    assert!(
        at(true, "agent_settled") < at(false, "message_end"),
        "the quick session ends before the slow one is told of its first message: {lines:?}"
    );
    assert_eq!(check::roles(Path::new(slow)), ["user", "assistant"]);
    pi.finish();
}

/// Calls of a kind in the output of strace.
fn calls(path: &Path, name: &str) -> usize {
    let log = fs::read_to_string(path).unwrap();
    log.lines()
        .filter(|line| line.contains(&format!(" {name}(")))
        .count()
}

/// What `fdatasync` costs a turn: one or two calls, also with tools, and none without the setting.
#[test]
fn durability_disk_syncs_once_or_twice_a_turn() {
    if !has_strace() {
        return;
    }
    for by in ["nothing", "setting", "option", "session"] {
        let tools = Reply::tool("c1", "bash", json!({"command": "echo 1"}))
            .then_tool("c2", "bash", json!({"command": "echo 2"}))
            .then_tool("c3", "bash", json!({"command": "echo 3"}));
        let world = World::new([Reply::text(["one"]), tools, Reply::text(["two"])]);
        if by == "setting" {
            world.settings(json!({"durability": "disk"}));
        }
        let log: PathBuf = world.dir.root().join("strace");
        let options = ["-o", log.to_str().unwrap(), "-e", "trace=fdatasync,fsync"];
        let args: &[&str] = if by == "option" {
            &["--durability", "disk"]
        } else {
            &[]
        };
        let pi = Pi::spawn(traced(&world, &options, args));
        if by == "session" {
            pi.data(json!({"type": "new_session", "durability": "disk"}));
        }
        pi.say("first");
        let first = calls(&log, "fdatasync");
        pi.say("second");
        let second = calls(&log, "fdatasync") - first;
        let state = pi.state();
        pi.finish();
        if by == "nothing" {
            assert_eq!((first, second), (0, 0));
            assert!(state.get("storage").is_none(), "{state}");
        } else {
            assert!((1..=2).contains(&first), "{by}: {first}");
            // Two requests to the model.
            assert!((2..=4).contains(&second), "{by}: {second}");
            assert_eq!(
                state["storage"],
                json!({"durability": "disk", "pending": 0}),
                "{by}"
            );
            assert!(calls(&log, "fsync") >= 1, "{by}: the directory");
        }
    }
}

/// A project decides nothing about the disk of the user.
#[test]
fn durability_of_a_project_is_ignored() {
    let world = World::new(answers_of(1));
    let folder = world.dir.cwd().join(".pi");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("settings.json"), r#"{"durability": "disk"}"#).unwrap();
    let pi = world.start_with(&["--approve"]);
    pi.say("first");
    assert!(pi.state().get("storage").is_none());
    pi.finish();
}
