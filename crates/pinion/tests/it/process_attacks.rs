//! Nothing stays behind when a command attacks what would end it, or when agent and guardian are killed together. Processes are
//! counted by their working directory, since a command can leave everything else: its group, session, parent and environment.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::driver::Signal;
use testkit::llm::Reply;

use crate::kit::{LONG, PROGRAM, Pi, World, bash, of_type, skipped, until};

/// Children in another session, in the group, and one without session, parent and environment of the agent.
const FAMILY: &str = "setsid sleep 701 & sleep 702 & (env -i setsid -f sleep 703 >/dev/null 2>&1); ";
/// The guardian's id, once all is there.
const UP: &str = "echo $PPID > guardian; touch up; ";
/// A program that forks, leaves the session and exits, again and again, from when the file `forks` exists.
const FORKER: &str =
    "import os\nopen('forks', 'w').close()\nwhile True:\n    if os.fork(): os._exit(0)\n    os.setsid()\n";
/// Number of searches without a result before a process counts as gone: a search can miss a process that forks and exits.
const LOOKS: usize = 10;

/// Living processes with a working directory below `dir`.
fn living_in(dir: &Path) -> BTreeSet<PathBuf> {
    let is_below = |process: &PathBuf| {
        let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
        let is_zombie = stat
            .rsplit_once(')')
            .is_some_and(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']));
        !is_zombie && fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(dir))
    };
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.map(|entry| entry.path()).filter(is_below).collect()
}

/// A session whose tool runs `command`, once it is up.
fn started(command: &str) -> (World, Pi) {
    let world = World::new([bash("c1", command), Reply::text(["done"])]);
    fs::write(world.dir.cwd().join("forker.py"), FORKER).unwrap();
    let pi = world.start();
    pi.prompt("Go");
    until("the command", || world.dir.cwd().join("up").exists());
    (world, pi)
}

/// Kills the guardian, whose process id the command has written down.
fn kill_guardian(world: &World) {
    let pid = fs::read_to_string(world.dir.cwd().join("guardian")).unwrap();
    // It may have ended with its agent already.
    let _status = Command::new("kill").args(["-9", pid.trim()]).status().unwrap();
}

/// Nothing but the agent, if it lives, works in the directory of the session.
fn expect_none_left(world: &World, pi: Option<&Pi>) {
    let agent = pi.map(|pi| PathBuf::from(format!("/proc/{}", pi.agent.pid())));
    let others = || {
        let mut found = living_in(world.dir.root());
        found.retain(|process| Some(process) != agent.as_ref());
        found
    };
    until("the end of all processes", || {
        (0..LOOKS).all(|_| others().is_empty())
    });
}

/// The end of the first tool call.
fn end_of_tool(pi: &Pi) -> Value {
    pi.settled();
    of_type(&pi.lines(), "tool_execution_end")[0].clone()
}

#[test]
fn agent_and_guardian_killed_together_leave_nothing() {
    let (world, pi) = started(&format!("{FAMILY}{UP}sleep 704"));
    assert!(living_in(world.dir.root()).len() >= 5);
    // One call for both, so that neither has the time to notice. Its status says nothing: the supervisors may have ended the
    // second process before its signal was sent.
    let guardian = fs::read_to_string(world.dir.cwd().join("guardian")).unwrap();
    let agent = pi.agent.pid().to_string();
    let killed = Command::new("kill")
        .args(["-9", guardian.trim(), &agent])
        .status();
    assert!(killed.is_ok());
    pi.agent.wait_exit(LONG).unwrap();
    expect_none_left(&world, None);
}

#[test]
fn command_that_kills_its_guardian_leaves_nothing() {
    let (world, pi) = started(&format!("{FAMILY}{UP}kill -9 $PPID; sleep 704"));
    let end = end_of_tool(&pi);
    assert_eq!(end["isError"], true, "{end}");
    assert!(end.to_string().contains("guardian ended unexpectedly"), "{end}");
    expect_none_left(&world, Some(&pi));
    // The next command gets a new guardian.
    world.server.push(bash("c2", "echo again"));
    world.server.push(Reply::text(["done"]));
    let lines = pi.say("Go on");
    assert!(
        of_type(&lines, "tool_execution_end")[0]
            .to_string()
            .contains("again")
    );
    pi.finish();
}

#[test]
fn command_that_kills_two_processes_above_leaves_nothing() {
    let above = "kill -9 $PPID $(cut -d' ' -f4 /proc/$PPID/stat)";
    let (world, pi) = started(&format!("{FAMILY}{UP}{above}; sleep 704"));
    let end = end_of_tool(&pi);
    assert_eq!(end["isError"], true, "{end}");
    expect_none_left(&world, Some(&pi));
    pi.finish();
}

#[test]
fn stopped_guardian_still_aborts() {
    let once = "kill -STOP $PPID; sleep 704";
    let forever = "while :; do kill -STOP $PPID; done";
    for command in [once, forever] {
        let (world, pi) = started(&format!("{FAMILY}{UP}{command}"));
        pi.data(json!({"type": "abort"}));
        expect_none_left(&world, Some(&pi));
        pi.finish();
    }
}

#[test]
fn stopped_guardians_leave_nothing_when_agent_is_killed() {
    let all = "A=$PPID; while tr '\\0' '\\n' < /proc/$A/cmdline | grep -qx __guardian; do \
               L=\"$L $A\"; A=$(cut -d' ' -f4 /proc/$A/stat); done; kill -STOP $L";
    let (world, pi) = started(&format!("{FAMILY}{UP}{all}; touch stopped; sleep 704"));
    until("the stopped guardians", || {
        world.dir.cwd().join("stopped").exists()
    });
    pi.agent.signal(Signal::KILL).unwrap();
    pi.agent.wait_exit(LONG).unwrap();
    expect_none_left(&world, None);
}

#[test]
fn forking_process_dies_with_agent() {
    for with_guardian in [false, true] {
        let (world, pi) = started(&format!("{UP}python3 forker.py >/dev/null 2>&1; sleep 704"));
        until("the forking process", || world.dir.cwd().join("forks").exists());
        pi.agent.kill9().unwrap();
        if with_guardian {
            kill_guardian(&world);
        }
        pi.agent.wait_exit(LONG).unwrap();
        expect_none_left(&world, None);
    }
}

#[test]
fn aborted_command_leaves_no_forking_process() {
    let (world, pi) = started(&format!(
        "{FAMILY}{UP}python3 forker.py >/dev/null 2>&1; sleep 704"
    ));
    until("the forking process", || world.dir.cwd().join("forks").exists());
    pi.data(json!({"type": "abort"}));
    expect_none_left(&world, Some(&pi));
    pi.finish();
}

/// Four of the attacks above, 50 times each.
#[test]
#[ignore = "takes minutes; see docs/project/robustness.md"]
fn two_hundred_attacks_leave_nothing() {
    for _ in 0..50 {
        agent_and_guardian_killed_together_leave_nothing();
        command_that_kills_its_guardian_leaves_nothing();
        command_that_kills_two_processes_above_leaves_nothing();
        aborted_command_leaves_no_forking_process();
    }
}

/// An ordinary user that owns the folders of a world; none without root.
const NOBODY: u32 = 65_534;

/// A shell script that starts the program as an ordinary user in a folder of that user; none where the test has no rights to.
fn as_nobody() -> Option<(tempfile::TempDir, Command)> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if !is_root {
        skipped("only root can become another user");
        return None;
    }
    let home = tempfile::tempdir().unwrap();
    // The build directory need not be open to others.
    let program = home.path().join("pinion");
    // By a process of its own: a child that another test forks while this process writes the copy would keep it from being executed.
    let copied = Command::new("cp").arg(PROGRAM).arg(&program).status().unwrap();
    assert!(copied.success());
    std::os::unix::fs::chown(home.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let mut command = Command::new("bash");
    command
        .uid(NOBODY)
        .gid(NOBODY)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", home.path())
        .env("PROGRAM", program)
        .current_dir(home.path());
    Some((home, command))
}

#[test]
fn tool_cannot_write_to_descriptors_of_agent() {
    let Some((home, mut command)) = as_nobody() else {
        return;
    };
    let tool = "A=$PPID; while tr '\\0' '\\n' < /proc/$A/cmdline | grep -qx __guardian; do \
                A=$(cut -d' ' -f4 /proc/$A/stat); done; \
                for p in $A $PPID; do for f in /proc/$p/fd/*; do echo FORGED > $f; done; \
                cat /proc/$p/environ | grep -c HOME; cat /proc/$p/mem; done; echo tried $A";
    let mut agent = command
        .args(["-c", "exec \"$PROGRAM\" --mode rpc --no-session 2> err"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = agent.stdin.take().unwrap();
    writeln!(input, "{}", json!({"id": "b", "type": "bash", "command": tool})).unwrap();
    let lines = BufReader::new(agent.stdout.take().unwrap()).lines();
    let mut lines = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let answer = lines.find(|line| line["type"] == "response" && line["id"] == "b");
    let said = || std::fs::read_to_string(home.path().join("err"));
    let answer = answer.unwrap_or_else(|| panic!("no response: {:?}", said()))["data"]["output"].to_string();
    assert!(answer.contains(&format!("tried {}", agent.id())), "{answer}");
    assert_eq!(answer.matches("Permission denied").count(), 6, "{answer}");
    drop(input);
    // Each further line is one of the protocol, too.
    assert_eq!(lines.filter(|line| !line.is_object()).count(), 0);
    agent.wait().unwrap();
}

#[test]
fn limits_on_processes_and_files_give_errors() {
    for limit in ["ulimit -u 1", "ulimit -u 3", "ulimit -n 8", "ulimit -n 16"] {
        for mode in [
            "--mode rpc",
            "-p hi",
            "--mode json hi",
            "--mode web --port 0",
            "doctor",
        ] {
            let Some((home, mut command)) = as_nobody() else {
                return;
            };
            let commands = [
                json!({"id": "s", "type": "get_state"}),
                json!({"id": "b", "type": "bash", "command": "true"}),
            ];
            fs::write(
                home.path().join("in"),
                commands.map(|line| format!("{line}\n")).concat(),
            )
            .unwrap();
            let script = format!("{limit}; exec \"$PROGRAM\" {mode} < in > out 2> err");
            let mut child = command.args(["-c", &script]).spawn().unwrap();
            let end = Instant::now() + LONG;
            let status = loop {
                if let Some(status) = child.try_wait().unwrap() {
                    break status;
                }
                if Instant::now() > end {
                    child.kill().unwrap();
                    panic!("{limit}, {mode}: does not end");
                }
                std::thread::sleep(Duration::from_millis(10));
            };
            let said = fs::read_to_string(home.path().join("err")).unwrap_or_default();
            assert_eq!(status.code(), Some(1), "{limit}, {mode}: {said}");
            assert!(said.starts_with("Error: Only "), "{limit}, {mode}: {said}");
        }
    }
}
