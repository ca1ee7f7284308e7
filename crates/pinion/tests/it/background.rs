//! Background processes: off unless they are named, watched by model and client, bounded, and gone with their session.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::kit::{LONG, Pi, World, bash, memory_kb, of_type, text, until};
use crate::permissions::{choose, question};
use crate::sandbox::offered;

pub(crate) const TOOLS: [&str; 2] = ["--tools", "read,bash,process"];

pub(crate) fn start(id: &str, command: &str) -> Reply {
    Reply::tool(id, "bash", json!({"command": command, "background": true}))
}

fn in_terminal(id: &str, command: &str) -> Reply {
    Reply::tool(
        id,
        "bash",
        json!({"command": command, "background": true, "pty": true}),
    )
}

pub(crate) fn process(id: &str, args: Value) -> Reply {
    Reply::tool(id, "process", args)
}

/// The results of all calls: texts, and whether they are errors.
fn results(lines: &[Value]) -> Vec<(String, bool)> {
    let ends = of_type(lines, "tool_execution_end");
    ends.iter()
        .map(|end| (text(&end["result"]), end["isError"].as_bool().unwrap()))
        .collect()
}

fn is_alive(pid: u64) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn pids(pi: &Pi) -> Vec<u64> {
    let list = pi.get("list_processes")["processes"].clone();
    let list = list.as_array().unwrap().iter();
    list.map(|one| one["pid"].as_u64().unwrap()).collect()
}

/// Starts a run with one process in the background and returns its id of the system.
fn with_process(world: &World) -> (Pi, u64) {
    let pi = world.start_with(&TOOLS);
    pi.say("Go");
    let pid = pids(&pi)[0];
    assert!(is_alive(pid));
    (pi, pid)
}

#[test]
fn processes_are_off_unless_named() {
    let world = World::new([start("b", "echo plain"), Reply::text(["done"])]);
    let pi = world.start_with(&["--tools", "*"]);
    assert!(!pi.get("get_tools").to_string().contains("\"process\""));
    pi.finish();
    let pi = world.start();
    let lines = pi.say("Go");
    // As before: an argument that the schema does not have is ignored.
    assert_eq!(results(&lines), [("plain\n".to_owned(), false)]);
    let sent = world.server.requests()[0].body["tools"].to_string();
    assert!(!sent.contains("background") && !sent.contains("\"process\""));
    assert_eq!(pi.get("list_processes")["processes"], json!([]));
    pi.finish();
    world.settings(json!({"processes": {"enabled": true}}));
    let pi = world.start();
    assert!(pi.get("get_tools").to_string().contains("background"));
    pi.finish();
}

#[test]
fn server_stays_up_while_model_tests_it() {
    let script = "echo starting; sleep 0.5; python3 -u -m http.server 0 --bind 127.0.0.1";
    let world = World::new([
        start("b", script),
        process(
            "w",
            json!({"action": "wait", "processId": "p1", "text": "Serving HTTP"}),
        ),
        bash("t", "echo tested"),
        process("k", json!({"action": "kill", "processId": "p1"})),
        process("l", json!({"action": "list"})),
        Reply::text(["done"]),
    ]);
    let pi = world.start_with(&TOOLS);
    let lines = pi.say("Go");
    let results = results(&lines);
    assert!(
        results[0].0.starts_with("Process p1 runs in the background") && !results[0].1,
        "{results:?}"
    );
    assert!(
        results[1].0.contains("the text is there]") && !results[1].1,
        "{results:?}"
    );
    assert_eq!(results[2].0, "tested\n");
    assert!(results[3].0.contains("[p1: killed]"), "{results:?}");
    assert!(
        results[4].0.contains("p1: echo starting") && results[4].0.contains("[killed]"),
        "{results:?}"
    );
    let kinds = ["process_start", "process_end"].map(|kind| of_type(&lines, kind).len());
    assert_eq!(kinds, [1, 1]);
    pi.finish();
}

#[test]
fn waits_end_by_text_port_exit_and_time() {
    let listen = "import socket,time; s=socket.socket(); s.bind(('127.0.0.1',0)); s.listen(); print('port',s.getsockname()[1],flush=True); time.sleep(60)";
    let world = World::new([
        start("a", &format!("python3 -c \"{listen}\"")),
        process("w", json!({"action": "wait", "processId": "p1", "text": "port "})),
        start("b", "sleep 0.4; echo bye; exit 3"),
        process("x", json!({"action": "wait", "processId": "p2"})),
        process(
            "y",
            json!({"action": "wait", "processId": "p1", "text": "never", "timeout": 0.3}),
        ),
        process("z", json!({"action": "wait", "processId": "p2", "text": "never"})),
        process("v", json!({"action": "wait", "processId": "p9"})),
        Reply::text(["done"]),
    ]);
    let pi = world.start_with(&TOOLS);
    let lines = pi.say("Go");
    let results = results(&lines);
    assert!(results[1].0.contains("the text is there]"), "{results:?}");
    assert!(
        results[3].0.contains("bye") && results[3].0.ends_with("[p2: exited with code 3]"),
        "{results:?}"
    );
    assert!(
        results[4].1 && results[4].0.contains("not within 0.3 seconds"),
        "{results:?}"
    );
    assert!(
        results[5].1 && results[5].0.contains("it ended before"),
        "{results:?}"
    );
    assert!(
        results[6].1
            && results[6]
                .0
                .contains("There is no process \"p9\". Processes: p1, p2")
    );
    // The port that it printed accepts connections.
    let read = pi.data(json!({"type": "read_process", "processId": "p1"}));
    let port: u64 = read["text"]
        .as_str()
        .unwrap()
        .trim()
        .rsplit(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    world.server.push(process(
        "p",
        json!({"action": "wait", "processId": "p1", "port": port, "timeout": 60}),
    ));
    world.server.push(Reply::text(["done"]));
    let lines = pi.say("Again");
    assert!(text(&of_type(&lines, "tool_execution_end")[0]["result"]).contains("accepts connections]"));
    pi.finish();
}

#[test]
fn model_and_client_write_and_read() {
    let world = World::new([
        start("b", "while read -r line; do echo \"got $line\"; done"),
        process(
            "i",
            json!({"action": "write", "processId": "p1", "input": "one\n"}),
        ),
        process(
            "w",
            json!({"action": "wait", "processId": "p1", "text": "got one"}),
        ),
        Reply::text(["done"]),
    ]);
    let pi = world.start_with(&TOOLS);
    let lines = pi.say("Go");
    assert!(
        results(&lines)[2].0.starts_with("got one"),
        "{:?}",
        results(&lines)
    );
    pi.data(json!({"type": "write_process", "processId": "p1", "data": "two\n"}));
    let mut read = json!(null);
    until("the second line", || {
        read = pi.data(json!({"type": "read_process", "processId": "p1"}));
        read["text"].as_str().unwrap().contains("got two")
    });
    assert_eq!(read["text"], "got one\ngot two\n");
    let more = json!({"type": "read_process", "processId": "p1", "fromByte": 8, "maxBytes": 4});
    let more = pi.data(more);
    assert_eq!(
        (&more["text"], &more["fromByte"], &more["nextByte"]),
        (&json!("got "), &json!(8), &json!(12))
    );
    let error = pi.error(json!({"type": "resize_process", "processId": "p1", "columns": 80, "rows": 24}));
    assert_eq!(error, "Process p1 has no terminal");
    let killed = pi.data(json!({"type": "kill_process", "processId": "p1"}));
    assert_eq!(killed["status"], "killed");
    let error = pi.error(json!({"type": "write_process", "processId": "p1", "data": "x"}));
    assert_eq!(error, "Process p1 has ended");
    pi.finish();
}

#[test]
fn terminals_have_size_and_control_keys() {
    use_terminal(&TOOLS, "");
}

#[test]
fn terminals_work_in_the_sandbox() {
    let (landlock, _) = offered();
    if landlock == 0 {
        return;
    }
    let args = [&TOOLS[..], &["--sandbox", "workspace-write"]].concat();
    use_terminal(&args, "(echo > ../outside) 2>/dev/null || echo confined; ");
}

/// Starts a program in a terminal and uses it as one. `first` runs before the program.
fn use_terminal(args: &[&str], first: &str) {
    // The size is printed last: the traps are set once the test has seen it.
    let command = "test -t 0 && test -t 1 && echo is a terminal; trap 'echo interrupted; exit 7' INT; \
                   trap 'stty size' WINCH; stty size; while true; do sleep 0.1; done";
    let world = World::new([
        in_terminal("b", &format!("{first}{command}")),
        process(
            "w",
            json!({"action": "wait", "processId": "p1", "text": "30 120"}),
        ),
        Reply::text(["done"]),
        process(
            "i",
            json!({"action": "write", "processId": "p1", "input": "\u{3}"}),
        ),
        process("x", json!({"action": "wait", "processId": "p1"})),
        Reply::text(["done"]),
    ]);
    let pi = world.start_with(args);
    let lines = pi.say("Go");
    let said = format!("{:?}", results(&lines));
    assert!(
        said.contains("is a terminal") && said.contains("30 120"),
        "{said}"
    );
    assert_eq!(said.contains("confined"), !first.is_empty(), "{said}");
    pi.data(json!({"type": "resize_process", "processId": "p1", "columns": 77, "rows": 11}));
    until("the new size", || {
        let read = pi.data(json!({"type": "read_process", "processId": "p1"}));
        read["text"].as_str().unwrap().contains("11 77")
    });
    let lines = pi.say("Interrupt it");
    let said = format!("{:?}", results(&lines));
    assert!(
        said.contains("interrupted") && said.contains("exited with code 7"),
        "{said}"
    );
    pi.finish();
}

#[test]
fn process_survives_abort_and_ends_with_session() {
    let world = World::new([start("b", "exec sleep 600"), bash("s", "touch on; sleep 60")]);
    let pi = world.start_with(&TOOLS);
    pi.prompt("Go");
    until("the second call", || world.dir.cwd().join("on").exists());
    pi.data(json!({"type": "abort"}));
    pi.settled();
    let pid = pids(&pi)[0];
    assert!(is_alive(pid), "an abort ends the run, not its servers");
    pi.data(json!({"type": "new_session"}));
    until("its end", || !is_alive(pid));
    assert_eq!(pi.get("list_processes")["processes"], json!([]));
    world.server.push(start("d", "exec sleep 600"));
    world.server.push(Reply::text(["done"]));
    pi.agent.skip();
    pi.prompt("Again");
    until("the process", || !pids(&pi).is_empty());
    let pid = pids(&pi)[0];
    pi.agent.close_stdin();
    pi.agent.wait_exit(LONG).unwrap();
    until("its end", || !is_alive(pid));
}

#[test]
fn nothing_is_left_after_kill() {
    let world = World::new([
        start("b", "setsid sleep 600 & exec sleep 600"),
        Reply::text(["done"]),
    ]);
    let (pi, pid) = with_process(&world);
    rustix_kill(pi.agent.pid());
    until("its end", || !is_alive(pid));
}

fn rustix_kill(pid: u32) {
    let done = std::process::Command::new("kill")
        .args(["-9", &pid.to_string()])
        .status();
    assert!(done.unwrap().success());
}

#[test]
fn processes_are_bounded_in_number() {
    let mut all = Reply::new();
    for n in 0..60 {
        all = all.then_tool(
            format!("b{n}"),
            "bash",
            json!({"command": "exec sleep 600", "background": true}),
        );
    }
    let world = World::new([all, Reply::text(["done"])]);
    let pi = world.start_with(&TOOLS);
    let lines = pi.say("Go");
    let results = results(&lines);
    let refused = results
        .iter()
        .filter(|(text, _)| text.starts_with("50 background processes run already"));
    assert_eq!((refused.count(), pids(&pi).len()), (10, 50));
    pi.finish();
}

#[test]
fn floods_cost_bounded_memory() {
    let mut all = Reply::new();
    for n in 0..50 {
        all = all.then_tool(
            format!("b{n}"),
            "bash",
            json!({"command": "exec yes 0123456789", "background": true}),
        );
    }
    let world = World::new([Reply::text(["first"]), all, Reply::text(["done"])]);
    let pi = world.start_with(&TOOLS);
    pi.say("Warm up");
    let before = memory_kb(pi.agent.pid(), "RssAnon");
    pi.say("Go");
    let end = std::time::Instant::now() + Duration::from_secs(2);
    let mut most = 0;
    while std::time::Instant::now() < end {
        pi.state();
        most = most.max(memory_kb(pi.agent.pid(), "RssAnon"));
    }
    until("more output than is kept", || {
        let read = pi.data(json!({"type": "read_process", "processId": "p7", "maxBytes": 22}));
        most = most.max(memory_kb(pi.agent.pid(), "RssAnon"));
        read["droppedBytes"].as_u64().unwrap() > 0
    });
    let grown = most.saturating_sub(before) / 1024;
    assert!(grown <= 64, "{grown} MB for fifty floods");
    let pids = pids(&pi);
    pi.finish();
    until("the end of all", || !pids.iter().any(|pid| is_alive(*pid)));
}

/// Reads the output from a position on and asks for an event.
fn read_and_wait(id: &str, from: u64) -> Value {
    json!({"type": "read_process", "processId": id, "fromByte": from, "notify": true})
}

#[test]
fn output_event_follows_each_read_that_asks() {
    let world = World::new([
        start("b", "while read -r line; do echo \"got $line\"; done"),
        Reply::text(["done"]),
    ]);
    let pi = world.start_with(&TOOLS);
    pi.say("Go");
    let write = |data: &str| pi.data(json!({"type": "write_process", "processId": "p1", "data": data}));
    let has = |text: &str| {
        until("the output", || {
            let read = pi.data(json!({"type": "read_process", "processId": "p1"}));
            read["text"].as_str().unwrap().ends_with(text)
        });
    };
    // No read has asked for an event yet.
    write("one\n");
    has("got one\n");
    // Two lines, and one event for both: the second read asked for none.
    let read = pi.data(read_and_wait("p1", 0));
    assert_eq!(read["nextByte"], 8);
    write("two\n");
    let told = pi.wait("process_output");
    assert_eq!(
        (&told["processId"], &told["outputBytes"]),
        (&json!("p1"), &json!(16))
    );
    write("three\n");
    has("got three\n");
    // Two reads at once are one request.
    pi.data(read_and_wait("p1", 16));
    pi.data(read_and_wait("p1", 26));
    write("four\n");
    assert_eq!(pi.wait("process_output")["outputBytes"], 35);
    pi.data(read_and_wait("p1", 35));
    pi.data(json!({"type": "kill_process", "processId": "p1"}));
    pi.wait("process_end");
    assert_eq!(of_type(&pi.lines(), "process_output").len(), 2);
    pi.finish();
}

#[test]
fn floods_cause_one_event_per_read() {
    let mut all = Reply::new();
    for n in 0..50 {
        let flood = json!({"command": "exec yes 0123456789", "background": true});
        all = all.then_tool(format!("b{n}"), "bash", flood);
    }
    let world = World::new([all, Reply::text(["done"])]);
    let pi = world.start_with(&TOOLS);
    pi.say("Go");
    let mut heard = 0;
    for round in 1..=3 {
        for n in 1..=50 {
            let read =
                json!({"type": "read_process", "processId": format!("p{n}"), "maxBytes": 22, "notify": true});
            pi.data(read);
        }
        until("an event of each", || {
            heard = of_type(&pi.lines(), "process_output").len();
            heard == round * 50
        });
    }
    // They go on printing.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(of_type(&pi.lines(), "process_output").len(), heard);
    pi.finish();
}

#[test]
fn rules_judge_commands_and_input() {
    let world = World::new([
        start("a", "touch denied-1"),
        start("b", "exec sh"),
        process(
            "i",
            json!({"action": "write", "processId": "p1", "input": "touch denied-2\n"}),
        ),
        process("j", json!({"action": "write", "processId": "p1", "input": "tou"})),
        process(
            "k",
            json!({"action": "write", "processId": "p1", "input": "ch denied-3\n"}),
        ),
        process(
            "l",
            json!({"action": "write", "processId": "p1", "input": "\necho > allowed\n"}),
        ),
        Reply::text(["done"]),
    ]);
    world.settings(json!({"permissions": {"deny": ["bash(touch *)"]}}));
    let pi = world.start_with(&TOOLS);
    let lines = pi.say("Go");
    let results = results(&lines);
    let errors: Vec<bool> = results.iter().map(|(_, is_error)| *is_error).collect();
    assert_eq!(errors, [true, false, true, false, true, false], "{results:?}");
    until("the allowed line", || world.dir.cwd().join("allowed").exists());
    assert!(!world.dir.cwd().join("denied-1").exists() && !world.dir.cwd().join("denied-2").exists());
    pi.finish();
}

#[test]
fn inputs_of_one_answer_are_judged_together() {
    let write = |input: &str| json!({"action": "write", "processId": "p1", "input": input});
    let world = World::new([
        start("b", "exec sh"),
        Reply::tool("i", "process", write("tou")).then_tool("j", "process", write("ch denied\n")),
        process("k", write("\necho > allowed\n")),
        Reply::text(["done"]),
    ]);
    world.settings(json!({"permissions": {"deny": ["bash(touch *)"]}}));
    let pi = world.start_with(&TOOLS);
    let results = results(&pi.say("Go"));
    let is_refused = |(text, is_error): &(String, bool)| *is_error && text.contains("has changed the line");
    assert!(results.iter().any(is_refused), "{results:?}");
    // The shell reads in order: it has read all inputs that were written before.
    until("the allowed line", || world.dir.cwd().join("allowed").exists());
    assert!(!world.dir.cwd().join("denied").exists());
    pi.finish();
}

#[test]
fn carriage_return_in_terminal_ends_judged_line() {
    let write = |input: &str| json!({"action": "write", "processId": "p1", "input": input});
    let world = World::new([
        in_terminal("b", "exec sh"),
        process("i", write("true\rtouch denied\r")),
        process("j", write("echo > allowed\r")),
        Reply::text(["done"]),
    ]);
    world.settings(json!({"permissions": {"deny": ["bash(touch *)"]}}));
    let pi = world.start_with(&TOOLS);
    let lines = pi.say("Go");
    let results = results(&lines);
    let errors: Vec<bool> = results.iter().map(|(_, is_error)| *is_error).collect();
    assert_eq!(errors, [false, true, false], "{results:?}");
    until("the allowed line", || world.dir.cwd().join("allowed").exists());
    assert!(!world.dir.cwd().join("denied").exists());
    pi.finish();
}

#[test]
fn editing_keys_do_not_bypass_rules() {
    let write = |input: &str| json!({"action": "write", "processId": "p1", "input": input});
    let world = World::new([
        in_terminal("b", "exec sh"),
        process("i", write("true \u{15}touch denied\n")),
        process("j", write("touchy\u{7f} denied\n")),
        process("k", write("tou")),
        process("l", write("\u{4}")),
        process("m", write("\necho > allowed\n")),
        Reply::text(["done"]),
    ]);
    world.settings(json!({"permissions": {"deny": ["bash(touch *)"]}}));
    let pi = world.start_with(&TOOLS);
    let results = results(&pi.say("Go"));
    let errors: Vec<bool> = results.iter().map(|(_, is_error)| *is_error).collect();
    assert_eq!(errors, [false, true, true, false, true, false], "{results:?}");
    // The shell reads in order.
    until("the allowed line", || world.dir.cwd().join("allowed").exists());
    assert!(!world.dir.cwd().join("denied").exists());
    pi.finish();
}

/// A program may have a terminal of its own, such as `ssh -tt`, which ends lines at a carriage return.
#[test]
fn carriage_return_without_terminal_may_end_judged_line() {
    let write = |input: &str| json!({"action": "write", "processId": "p1", "input": input});
    let world = World::new([
        start("b", "exec cat"),
        process("i", write("true\r")),
        process("j", write("touch denied\r")),
        Reply::text(["done"]),
    ]);
    world.settings(json!({"permissions": {"deny": ["bash(touch *)"]}}));
    let pi = world.start_with(&TOOLS);
    let results = results(&pi.say("Go"));
    let errors: Vec<bool> = results.iter().map(|(_, is_error)| *is_error).collect();
    assert_eq!(errors, [false, false, true], "{results:?}");
    pi.finish();
}

#[test]
fn input_is_asked_about() {
    let world = World::new([
        start("b", "exec sh"),
        process(
            "i",
            json!({"action": "write", "processId": "p1", "input": "echo > asked\n"}),
        ),
        process("r", json!({"action": "read", "processId": "p1"})),
        Reply::text(["done"]),
    ]);
    let pi = world.start_with(&[&TOOLS[..], &["--permission-mode", "ask"]].concat());
    pi.prompt("Go");
    choose(&pi, &question(&pi), "Allow once");
    let asked = question(&pi);
    assert!(
        asked["title"].as_str().unwrap().contains("echo > asked"),
        "{asked}"
    );
    choose(&pi, &asked, "Deny");
    pi.settled();
    assert!(!world.dir.cwd().join("asked").exists());
    pi.finish();
}

#[test]
fn command_that_fails_at_once_is_an_error() {
    let world = World::new([]);
    let pi = world.start_with(&TOOLS);
    let (mut number, mut failed) = (0, (String::new(), false));
    // A busy machine may run the command for longer than the call waits; then it is started again.
    until("a command that fails at once", || {
        number += 1;
        world.server.push(start("b", "echo no such thing; exit 4"));
        world.server.push(Reply::text(["done"]));
        failed = results(&pi.say("Go")).remove(0);
        !failed.0.contains("runs in the background")
    });
    let text = format!("no such thing\n\nProcess p{number} exited with code 4");
    assert_eq!(failed, (text, true));
    world
        .server
        .push(Reply::tool("p", "bash", json!({"command": "true", "pty": true})));
    world.server.push(Reply::text(["done"]));
    assert_eq!(
        results(&pi.say("Go")),
        [("pty needs background: true".to_owned(), true)]
    );
    pi.finish();
}

/// A program that listens on a free port, says which, and stays.
const LISTENER: &str = "import socket,time; s=socket.socket(); s.bind(('127.0.0.1',0)); s.listen(); \
                        open('port','w').write(str(s.getsockname()[1])); print('ready',flush=True); time.sleep(60)";

/// Waits of the process `p1` for a port, at most so many seconds.
fn wait_for_port(port: u16, seconds: f64) -> Reply {
    let args = json!({"action": "wait", "processId": "p1", "port": port, "timeout": seconds});
    process("w", args)
}

#[test]
fn port_of_process_is_waited_for() {
    // The program is a grandchild: its shell waits for it.
    let script = format!("true; python3 -c \"{LISTENER}\"; true");
    let world = World::new([
        start("a", &script),
        process("r", json!({"action": "wait", "processId": "p1", "text": "ready"})),
        Reply::text(["started"]),
    ]);
    let pi = world.start_with(&TOOLS);
    pi.say("Go");
    let port = std::fs::read_to_string(world.dir.cwd().join("port")).unwrap();
    let port: u16 = port.parse().unwrap();
    world.server.push(wait_for_port(port, 60.0));
    world.server.push(Reply::text(["done"]));
    let results = results(&pi.say("Wait"));
    assert!(
        results[0]
            .0
            .ends_with(&format!("port {port} accepts connections]"))
            && !results[0].1,
        "{results:?}"
    );
    pi.finish();
}

#[test]
fn port_of_another_process_is_not_met() {
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    let world = World::new([
        start("a", "sleep 60"),
        wait_for_port(port, 0.5),
        Reply::text(["done"]),
    ]);
    let pi = world.start_with(&TOOLS);
    let results = results(&pi.say("Go"));
    assert!(
        results[1].1 && results[1].0.contains("not within 0.5 seconds"),
        "{results:?}"
    );
    other.set_nonblocking(true).unwrap();
    assert!(other.accept().is_err(), "the agent connected");
    pi.finish();
}

#[test]
fn port_wait_without_network_is_refused() {
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    let world = World::new([
        start("a", "sleep 60"),
        wait_for_port(port, 0.5),
        Reply::text(["done"]),
    ]);
    let pi = world.start_with(&["--tools", "read,bash,process", "--sandbox", "workspace-write"]);
    let results = results(&pi.say("Go"));
    assert!(
        results[1].1 && results[1].0.contains("The sandbox has no network"),
        "{results:?}"
    );
    other.set_nonblocking(true).unwrap();
    assert!(other.accept().is_err(), "the agent connected");
    pi.finish();
}
