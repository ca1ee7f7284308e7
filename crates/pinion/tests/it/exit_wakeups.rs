//! Ends of background processes that wake an idle session: only if the user or the host allows it, within the limits, and not for ever.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::background::{TOOLS, process, start};
use crate::extensions::{can_run, command, extended};
use crate::kit::{LONG, World, of_type, text, until};

/// A command that ends after [`go`].
const UNTIL_GO: &str = "until [ -e go ]; do sleep 0.05; done";

/// Ends the process of [`UNTIL_GO`].
fn go(world: &World) {
    std::fs::write(world.dir.cwd().join("go"), "").unwrap();
}

/// Settings with which the end of a process wakes the session.
fn wakes(world: &World) {
    world.settings(json!({"processes": {"enabled": true, "wake": true}}));
}

#[test]
fn exit_wakes_idle_session_if_user_allows() {
    let script = format!("{UNTIL_GO}; echo built; exit 3");
    let world = World::new([
        start("b", &script),
        Reply::text(["I wait"]),
        Reply::text(["I see"]),
    ]);
    wakes(&world);
    let pi = world.start();
    assert_eq!(pi.get("list_processes")["wakeups"], true);
    pi.say("Go");
    go(&world);
    pi.settled();
    let requests = world.server.requests();
    assert_eq!(requests.len(), 3);
    let told = requests[2].body["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .to_string();
    assert!(
        told.contains("Process p1 exited with code 3: until") && told.contains("built"),
        "{told}"
    );
    assert_eq!(pi.get("get_limits")["used"]["turns"], 3);
    assert_eq!(pi.roles().last().unwrap(), "assistant");
    // Once only.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(world.server.requests().len(), 3);
    pi.finish();
}

#[test]
fn exit_wakes_only_sessions_that_allow_it() {
    let world = World::new([
        start("b", UNTIL_GO),
        Reply::text(["I wait"]),
        Reply::text(["I see"]),
    ]);
    let pi = world.start_with(&TOOLS);
    pi.say("Go");
    go(&world);
    pi.wait("process_end");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(world.server.requests().len(), 2);
    // The host allows it: the model does not know of the end yet.
    assert_eq!(pi.get("list_processes")["wakeups"], false);
    pi.data(json!({"type": "set_process_wakeups", "enabled": true}));
    assert_eq!(pi.get("list_processes")["wakeups"], true);
    pi.settled();
    assert_eq!(world.server.requests().len(), 3);
    pi.finish();
}

#[test]
fn end_that_model_knows_or_wanted_wakes_nothing() {
    let world = World::new([
        start("a", "sleep 1; echo bye"),
        process("w", json!({"action": "wait", "processId": "p1"})),
        start("b", "exec sleep 60"),
        process("k", json!({"action": "kill", "processId": "p2"})),
        start("c", "exec sleep 60"),
        Reply::text(["done"]),
        Reply::text(["never"]),
    ]);
    wakes(&world);
    let pi = world.start();
    pi.say("Go");
    pi.data(json!({"type": "kill_process", "processId": "p3"}));
    std::thread::sleep(Duration::from_millis(700));
    assert_eq!(world.server.requests().len(), 6);
    pi.finish();
}

#[test]
fn wakeups_without_prompt_are_bounded() {
    let world = World::new([]);
    // Each time the model starts another process, and waits.
    world.server.set_rule(|request| match request.n % 2 {
        0 => {
            let command = format!("until [ -e go-{} ]; do sleep 0.05; done; echo again", request.n);
            start(&format!("c{}", request.n), &command)
        }
        _ => Reply::text(["I wait"]),
    });
    // Ends the process that the request of this number has started.
    let end = |number: u32| std::fs::write(world.dir.cwd().join(format!("go-{number}")), "").unwrap();
    wakes(&world);
    let pi = world.start();
    pi.say("Go");
    for number in [0, 2, 4, 6, 8] {
        end(number);
        pi.settled();
    }
    end(10);
    let told = "5 background processes have woken the session";
    until("the last wakeup", || {
        pi.lines().iter().any(|line| line.to_string().contains(told))
    });
    // Two requests for the prompt, and for each wakeup.
    assert_eq!(world.server.requests().len(), 12);
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(world.server.requests().len(), 12);
    pi.say("Go on");
    end(12);
    until("further wakeups", || world.server.requests().len() > 14);
    pi.data(json!({"type": "set_process_wakeups", "enabled": false}));
    pi.data(json!({"type": "abort"}));
    pi.finish();
}

#[test]
fn reached_limit_lets_exit_wake_nothing() {
    let world = World::new([
        start("b", UNTIL_GO),
        Reply::text(["I wait"]),
        Reply::text(["never"]),
    ]);
    wakes(&world);
    let pi = world.start_with(&["--max-turns", "2"]);
    pi.say("Go");
    go(&world);
    until("the reason", || {
        let notices = pi.lines();
        let notices = of_type(&notices, "notice")
            .iter()
            .map(ToString::to_string)
            .collect::<String>();
        notices.contains("Limit reached: 2 turns")
    });
    assert_eq!(world.server.requests().len(), 2);
    pi.finish();
}

#[test]
fn output_of_refused_wakeup_stays_unread() {
    let world = World::new([
        start("b", "until [ -e go ]; do sleep 0.05; done; echo built"),
        Reply::text(["I wait"]),
        process("r", json!({"action": "read", "processId": "p1"})),
        Reply::text(["I see"]),
    ]);
    wakes(&world);
    let pi = world.start_with(&["--max-turns", "2"]);
    pi.say("Go");
    go(&world);
    until("the refusal", || {
        let notices = pi.lines();
        let mut notices = of_type(&notices, "notice").into_iter();
        notices.any(|notice| notice.to_string().contains("Limit reached: 2 turns"))
    });
    pi.data(json!({"type": "set_limits", "limits": {}}));
    let lines = pi.say("Look");
    let read = text(&of_type(&lines, "tool_execution_end")[0]["result"]);
    assert!(read.contains("built"), "{read}");
    pi.finish();
}

#[test]
fn project_cannot_let_exit_wake_session() {
    let world = World::new([
        start("b", UNTIL_GO),
        Reply::text(["I wait"]),
        Reply::text(["never"]),
    ]);
    world.settings(json!({"processes": {"enabled": true}, "defaultProjectTrust": "always"}));
    let folder = world.dir.cwd().join(".pi");
    std::fs::create_dir_all(&folder).unwrap();
    let project = json!({"processes": {"wake": true}});
    std::fs::write(folder.join("settings.json"), project.to_string()).unwrap();
    let pi = world.start();
    pi.say("Go");
    go(&world);
    pi.wait("process_end");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(world.server.requests().len(), 2);
    pi.finish();
}

#[test]
fn exit_wakes_no_session_that_is_left() {
    let world = World::new([
        start("b", UNTIL_GO),
        Reply::text(["half"]).gate("never").then_text([" LATE"]),
        Reply::text(["never"]),
    ]);
    wakes(&world);
    let pi = world.start();
    pi.prompt("Go");
    world.server.wait_gate("never", LONG).unwrap();
    go(&world);
    pi.wait("process_end");
    // The change waits for the end of this command.
    let command = pi.send(json!({"type": "bash", "command": "touch begun; sleep 600"}));
    until("the command", || world.dir.cwd().join("begun").exists());
    pi.data(json!({"type": "new_session"}));
    assert_eq!(pi.response(&command)["data"]["cancelled"], true);
    assert_eq!(world.server.requests().len(), 2);
    assert!(pi.messages().is_empty());
    pi.finish();
}

#[test]
fn exit_before_an_abort_waits_for_the_next_prompt() {
    let world = World::new([
        start("b", UNTIL_GO),
        Reply::text(["half"]).gate("never").then_text([" LATE"]),
        Reply::text(["I go on"]),
        Reply::text(["I see"]),
    ]);
    wakes(&world);
    let pi = world.start();
    pi.prompt("Go");
    world.server.wait_gate("never", LONG).unwrap();
    go(&world);
    pi.wait("process_end");
    pi.data(json!({"type": "abort"}));
    assert_eq!(pi.state()["isStreaming"], false);
    assert_eq!(world.server.requests().len(), 2);
    pi.say("Go on");
    pi.settled();
    let requests = world.server.requests();
    assert_eq!(requests.len(), 4);
    let told = requests[3].body["messages"].to_string();
    assert!(told.contains("Process p1 exited with code 0"), "{told}");
    pi.finish();
}

#[test]
fn abort_of_extension_holds_earlier_exits_back() {
    if !can_run() {
        return;
    }
    let world = extended(
        [
            start("b", UNTIL_GO),
            Reply::text(["half"]).gate("never").then_text([" LATE"]),
            Reply::text(["never"]),
        ],
        r#"pi.registerCommand("stop", { handler: async (_args, ctx) => ctx.abort() });"#,
    );
    wakes(&world);
    let pi = world.start();
    pi.prompt("Go");
    world.server.wait_gate("never", LONG).unwrap();
    go(&world);
    pi.wait("process_end");
    command(&pi, "/stop");
    // A wakeup would begin its run before the session answers.
    until("the end of the run", || pi.state()["isStreaming"] == false);
    assert_eq!(world.server.requests().len(), 2);
    pi.finish();
}

#[test]
fn newest_omp_client_settles_after_wakeup() {
    let world = World::new([
        start("b", UNTIL_GO),
        Reply::text(["I wait"]),
        Reply::text(["I see"]),
    ]);
    wakes(&world);
    let pi = world.start_with(&["--rpc-dialect", "omp-now"]);
    pi.data(json!({"type": "prompt", "message": "Go"}));
    assert_eq!(pi.wait("prompt_result")["sessionSettled"], false);
    let pending = |state: Value| (state["hasPendingAsyncWork"].clone(), state["isSettled"].clone());
    assert_eq!(pending(pi.state()), (json!(true), json!(false)));
    go(&world);
    pi.wait("session_settled");
    assert_eq!(pending(pi.state()), (json!(false), json!(true)));
    let lines = pi.lines();
    let ends = of_type(&lines, "agent_end");
    let terminal: Vec<&Value> = ends.iter().map(|end| &end["isTerminal"]).collect();
    assert_eq!(terminal, [false, true]);
    assert_eq!(ends[0]["awaitingAsyncWork"], true);
    assert_eq!(of_type(&lines, "session_settled").len(), 1);
    pi.finish();
}

#[test]
fn newest_omp_client_settles_when_abort_holds_wakeup() {
    let world = World::new([
        start("b", UNTIL_GO),
        Reply::text(["half"]).gate("never").then_text([" LATE"]),
    ]);
    wakes(&world);
    let pi = world.start_with(&["--rpc-dialect", "omp-now"]);
    pi.data(json!({"type": "prompt", "message": "Go"}));
    world.server.wait_gate("never", LONG).unwrap();
    go(&world);
    pi.wait("process_end");
    pi.data(json!({"type": "abort"}));
    pi.wait("session_settled");
    assert_eq!(pi.state()["hasPendingAsyncWork"], false);
    pi.finish();
}

#[test]
fn running_process_keeps_newest_omp_client_waiting() {
    let world = World::new([start("b", "exec sleep 600"), Reply::text(["I wait"])]);
    wakes(&world);
    let pi = world.start_with(&["--rpc-dialect", "omp-now"]);
    pi.data(json!({"type": "prompt", "message": "Go"}));
    assert_eq!(pi.wait("prompt_result")["sessionSettled"], false);
    pi.data(json!({"type": "abort"}));
    // Its end would begin a run also after the abort.
    assert_eq!(pi.state()["hasPendingAsyncWork"], true);
    assert_eq!(of_type(&pi.lines(), "session_settled").len(), 0);
    pi.data(json!({"type": "kill_process", "processId": "p1"}));
    pi.wait("session_settled");
    assert_eq!(pi.state()["hasPendingAsyncWork"], false);
    pi.finish();
}
