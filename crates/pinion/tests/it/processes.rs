//! How the program ends, and that nothing stays behind.

use serde_json::json;
use testkit::driver::{Signal, processes_marked};
use testkit::llm::Reply;

use crate::kit::{LONG, Pi, World, bash, until};

/// A tool that leaves children behind in every known way. `up` appears when all are there. Their arguments contain the shell's process
/// id, because the same tool of another test runs at the same time.
const FAMILY: &str = "export M=$$; sleep 601.$M & (sleep 602.$M &) ; setsid sleep 603.$M & \
                      setsid sh -c 'setsid sleep 604.$M & sleep 605.$M' & \
                      nohup sh -c \"trap '' TERM HUP INT; sleep 606.$M; sleep 607.$M\" >/dev/null 2>&1 & \
                      while [ $(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -c \"^60[1-6]\\.$M\\$\") -lt 6 ]; do sleep 0.01; done; \
                      touch up; sleep 608.$M";

/// An agent whose tool has started children of all kinds.
fn with_family(as_tool: bool) -> (World, Pi) {
    let world = World::new([bash("c1", FAMILY)]);
    let pi = world.start();
    if as_tool {
        pi.prompt("Go");
    } else {
        pi.send(json!({"type": "bash", "command": FAMILY}));
    }
    until("the children", || world.dir.cwd().join("up").exists());
    assert!(pi.agent.processes().len() >= 8, "{:?}", pi.agent.processes());
    (world, pi)
}

fn all_gone(pi: &Pi) {
    let mark = pi.agent.mark();
    until("the end of all children", || processes_marked(mark).is_empty());
}

#[test]
fn no_process_outlives_end_of_input() {
    for as_tool in [true, false] {
        let (_world, pi) = with_family(as_tool);
        pi.agent.close_stdin();
        assert_eq!(pi.agent.wait_exit(LONG).unwrap().code(), Some(0));
        all_gone(&pi);
    }
}

#[test]
fn no_process_outlives_sigterm() {
    let (_world, pi) = with_family(true);
    pi.agent.signal(Signal::TERM).unwrap();
    assert_eq!(pi.agent.wait_exit(LONG).unwrap().code(), Some(143));
    all_gone(&pi);
}

#[test]
fn no_process_outlives_sighup() {
    let (_world, pi) = with_family(true);
    pi.agent.signal(Signal::HUP).unwrap();
    assert_eq!(pi.agent.wait_exit(LONG).unwrap().code(), Some(129));
    all_gone(&pi);
}

#[test]
fn no_process_outlives_sigint() {
    let (_world, pi) = with_family(true);
    pi.agent.signal(Signal::INT).unwrap();
    assert!(!pi.agent.wait_exit(LONG).unwrap().success());
    all_gone(&pi);
}

#[test]
fn no_process_outlives_kill_9() {
    for as_tool in [true, false] {
        let (_world, pi) = with_family(as_tool);
        pi.agent.kill9().unwrap();
        pi.agent.wait_exit(LONG).unwrap();
        all_gone(&pi);
    }
}

#[test]
fn no_tool_process_outlives_abort() {
    let (_world, pi) = with_family(true);
    pi.data(json!({"type": "abort"}));
    // The agent and its guardian stay.
    until("the end of all children", || pi.agent.processes().len() <= 2);
    pi.finish();
}

#[test]
fn no_tool_process_outlives_timeout() {
    let world = World::new([
        Reply::tool(
            "c1",
            "bash",
            json!({"command": "setsid sleep 611 & sleep 612", "timeout": 0.3}),
        ),
        Reply::text(["done"]),
    ]);
    let pi = world.start();
    let lines = pi.say("Go");
    let end = crate::kit::of_type(&lines, "tool_execution_end")[0];
    assert_eq!(end["isError"], true);
    assert!(end.to_string().contains("timed out"), "{end}");
    until("the end of all children", || pi.agent.processes().len() <= 2);
    pi.finish();
}

#[test]
fn idle_agent_ends_on_signal_and_eof() {
    for (signal, code) in [(None, 0), (Some(Signal::TERM), 143), (Some(Signal::HUP), 129)] {
        let world = World::new([]);
        let pi = world.start();
        pi.state();
        match signal {
            Some(signal) => pi.agent.signal(signal).unwrap(),
            None => pi.agent.close_stdin(),
        }
        assert_eq!(pi.agent.wait_exit(LONG).unwrap().code(), Some(code));
        all_gone(&pi);
    }
}

#[test]
fn end_of_input_does_not_wait_for_model() {
    let world = World::new([Reply::text(["half"]).gate("never")]);
    let pi = world.start();
    pi.prompt("Go");
    pi.wait_update("text_delta");
    pi.agent.close_stdin();
    assert_eq!(pi.agent.wait_exit(LONG).unwrap().code(), Some(0));
    all_gone(&pi);
}

#[test]
fn signal_ends_agent_with_unread_output() {
    let world = World::new([Reply::text_deltas(60_000, 100).batch(65_536)]);
    let pi = Pi::spawn(world.config().paused());
    pi.send(json!({"type": "prompt", "message": "Go"}));
    world.server.wait_requests(1, LONG).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    pi.agent.signal(Signal::TERM).unwrap();
    assert_eq!(pi.agent.wait_exit(LONG).unwrap().code(), Some(143));
}

/// An editor reads the file when it gets `tool_execution_start`. Here the line cannot be written until the client reads.
#[test]
fn edit_of_unread_call_leaves_file_unchanged() {
    let edits = json!({"path": "n.txt", "edits": [{"oldText": "one", "newText": "two"}]});
    let text = Reply::text(["x".repeat(400_000)]);
    let world = World::new([text.then_tool("c1", "edit", edits), Reply::text(["done"])]);
    let file = world.dir.cwd().join("n.txt");
    std::fs::write(&file, "one").unwrap();
    let pi = Pi::spawn(world.config().paused());
    pi.send(json!({"type": "prompt", "message": "Go"}));
    world.server.wait_requests(1, LONG).unwrap();
    // Enough for the call if it did not wait; a slow machine only makes the check weaker.
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one");
    pi.agent.resume_stdout();
    pi.settled();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "two");
    pi.finish();
}
