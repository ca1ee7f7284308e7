//! `bash` and the conversation: how and when the model gets the user's commands, and their fate when a run, a
//! compaction or another session comes between. `shell` tests how commands run.

use serde_json::{Value, json};
use testkit::llm::{ErrorKind, Reply, Usage};

use crate::check;
use crate::kit::{LONG, Pi, World, answered_at, bash, of_type, text, until};

fn run(pi: &Pi, command: &str) -> Value {
    pi.data(json!({"type": "bash", "command": command}))
}

/// The texts of the user's side of the last request.
fn told(world: &World) -> Vec<String> {
    let requests = world.server.requests();
    let messages = requests.last().unwrap().body["messages"]
        .as_array()
        .unwrap()
        .clone();
    messages
        .iter()
        .filter(|message| message["role"] == "user")
        .flat_map(|message| message["content"].as_array().unwrap().clone())
        .filter_map(|block| block["text"].as_str().map(str::to_owned))
        .collect()
}

fn same_after_restart(world: &World, pi: Pi) {
    let (file, messages) = (pi.file(), pi.messages());
    pi.finish();
    let again = world.start_with(&["--session", file.to_str().unwrap()]);
    assert_eq!(again.messages(), messages);
    again.finish();
}

#[test]
fn shell_results_are_described_to_model() {
    let world = World::new([Reply::text(["ok"])]);
    let pi = world.start();
    run(&pi, "echo out");
    run(&pi, "true");
    run(&pi, "echo bad; exit 3");
    let id = pi.send(json!({"type": "bash", "command": "echo begun; touch begun; sleep 600"}));
    // The output must have been read before the command is killed.
    let is_output = |line: &Value| line["type"] == "bash_execution_update" && line["id"] == id.as_str();
    pi.agent.wait(is_output, LONG).unwrap();
    pi.data(json!({"type": "abort_bash"}));
    pi.response(&id);
    let long = run(&pi, "seq 1 200000");
    pi.say("Hi");
    let told = told(&world);
    assert_eq!(
        told[..4],
        [
            "Ran `echo out`\n```\nout\n\n```",
            "Ran `true`\n(no output)",
            "Ran `echo bad; exit 3`\n```\nbad\n\n```\n\nCommand exited with code 3",
            "Ran `echo begun; touch begun; sleep 600`\n```\nbegun\n\n```\n\n(command cancelled)",
        ]
    );
    let end = format!(
        "[Output truncated. Full output: {}]",
        long["fullOutputPath"].as_str().unwrap()
    );
    assert!(
        told[4].starts_with("Ran `seq 1 200000`\n```\n") && told[4].ends_with(&end),
        "{}",
        told[4]
    );
    same_after_restart(&world, pi);
}

#[test]
fn concurrent_shell_commands_have_separate_updates() {
    let world = World::new([]);
    let pi = world.start();
    // Each prints again only after all have begun.
    let ids: Vec<String> = (0..4)
        .map(|n| {
            let command = format!(
                "echo first-{n}; touch f{n}; while [ $(ls f? | wc -l) -lt 4 ]; do sleep 0.01; done; echo second-{n}; exit {n}"
            );
            pi.send(json!({"type": "bash", "command": command}))
        })
        .collect();
    for (n, id) in ids.iter().enumerate() {
        let data = pi.response(id)["data"].clone();
        assert_eq!(data["output"], format!("first-{n}\nsecond-{n}\n"));
        assert_eq!(data["exitCode"], n);
    }
    let lines = pi.lines();
    for (n, id) in ids.iter().enumerate() {
        let updates: Vec<(usize, &Value)> = lines
            .iter()
            .enumerate()
            .filter(|(_, line)| line["type"] == "bash_execution_update" && line["id"] == id.as_str())
            .collect();
        let output: String = updates
            .iter()
            .map(|(_, line)| line["delta"].as_str().unwrap())
            .collect();
        assert_eq!(output, format!("first-{n}\nsecond-{n}\n"));
        assert!(
            updates.last().unwrap().0 < answered_at(&lines, id),
            "none after the answer"
        );
    }
    assert_eq!(pi.messages().len(), 4);
    pi.finish();
}

#[test]
fn excluded_shell_command_stays_excluded_after_restart() {
    let world = World::new([Reply::text(["ok"]), Reply::text(["ok"])]);
    let pi = world.start();
    pi.data(json!({"type": "bash", "command": "echo SECRET", "excludeFromContext": true}));
    pi.say("Hi");
    let (file, messages) = (pi.file(), pi.messages());
    assert_eq!(messages[0]["excludeFromContext"], true);
    pi.finish();
    let again = world.start_with(&["--session", file.to_str().unwrap()]);
    assert_eq!(again.messages(), messages);
    again.say("And now?");
    assert!(!told(&world).join("").contains("SECRET"));
    again.finish();
}

#[test]
fn abort_and_abort_bash_are_independent() {
    let world = World::new([
        bash(
            "c1",
            "touch tool; while [ ! -e go ]; do sleep 0.01; done; echo survived",
        ),
        Reply::text(["done"]),
    ]);
    let pi = world.start();
    pi.prompt("Go");
    until("the tool", || world.dir.cwd().join("tool").exists());
    let command = pi.send(json!({"type": "bash", "command": "touch mine; sleep 600"}));
    until("the command", || world.dir.cwd().join("mine").exists());
    pi.data(json!({"type": "abort_bash"}));
    assert_eq!(pi.response(&command)["data"]["cancelled"], true);
    run(&pi, "touch go");
    assert_eq!(pi.settled()["aborted"], false);
    assert!(
        of_type(&pi.lines(), "tool_execution_end")[0]
            .to_string()
            .contains("survived")
    );
    // And the other way round.
    let command = pi.send(json!({"type": "bash", "command": "touch again; while [ ! -e on ]; do sleep 0.01; done; echo survived"}));
    until("the command", || world.dir.cwd().join("again").exists());
    world.server.push(Reply::text(["half"]).gate("never"));
    pi.prompt("Once more");
    pi.wait_update("text_delta");
    pi.data(json!({"type": "abort"}));
    std::fs::write(world.dir.cwd().join("on"), "").unwrap();
    assert_eq!(pi.response(&command)["data"]["output"], "survived\n");
    pi.finish();
}

#[test]
fn shell_command_during_run_is_stored_at_end() {
    let world = World::new([
        bash("c1", "touch begun; while [ ! -e go ]; do sleep 0.01; done"),
        Reply::text(["done"]),
    ]);
    let pi = world.start();
    pi.prompt("Go");
    until("the tool", || world.dir.cwd().join("begun").exists());
    run(&pi, "echo between; touch go");
    pi.settled();
    let file = pi.file();
    pi.state();
    // The process ends without a shutdown.
    pi.agent.kill9().unwrap();
    pi.agent.wait_exit(LONG).unwrap();
    assert_eq!(
        check::roles(&file),
        ["user", "assistant", "toolResult", "assistant", "bashExecution"]
    );
    world.server.push(Reply::text(["I saw it"]));
    let again = world.start_with(&["--session", file.to_str().unwrap()]);
    again.say("Did you see it?");
    assert!(told(&world).join("").contains("echo between"));
    again.finish();
}

#[test]
fn shell_command_during_retry_wait_is_stored_once() {
    let world = World::new([
        Reply::error(ErrorKind::Overloaded),
        Reply::text(["ok"]),
        Reply::text(["later"]),
    ]);
    world.settings(json!({"retry": {"baseDelayMs": 300, "provider": {"maxRetries": 0}}}));
    let pi = world.start();
    pi.prompt("Go");
    pi.wait("auto_retry_start");
    run(&pi, "echo meanwhile");
    pi.settled();
    pi.say("And?");
    assert_eq!(told(&world).join("").matches("echo meanwhile").count(), 1);
    assert_eq!(
        pi.messages()
            .iter()
            .filter(|message| message["role"] == "bashExecution")
            .count(),
        1
    );
    pi.finish();
}

#[test]
fn shell_command_during_compaction_is_stored_once() {
    let full = Usage {
        input: 190_000,
        ..Usage::default()
    };
    for tool in [true, false] {
        let first = if tool {
            bash("c1", "echo x")
        } else {
            Reply::text(["a long enough answer"])
        };
        let world = World::new([
            first.usage(full),
            Reply::new().gate("summary").then_text(["THE SUMMARY"]),
            Reply::text(["on"]),
            Reply::text(["on"]),
        ]);
        world.settings(json!({"compaction": {"keepRecentTokens": 5}}));
        let pi = world.start();
        pi.prompt("A question that is long enough");
        world.server.wait_gate("summary", LONG).unwrap();
        run(&pi, "echo meanwhile");
        world.server.release("summary");
        pi.settled();
        pi.say("And?");
        assert_eq!(
            told(&world).join("").matches("echo meanwhile").count(),
            1,
            "between turns: {tool}"
        );
        same_after_restart(&world, pi);
    }
}

#[test]
fn shell_result_during_run_stays_in_its_session() {
    let world = World::new([Reply::text(["half"]).gate("never"), Reply::text(["fresh"])]);
    let pi = world.start();
    let old = pi.file();
    pi.prompt("Go");
    pi.wait_update("text_delta");
    run(&pi, "echo meanwhile");
    pi.data(json!({"type": "new_session"}));
    assert_eq!(check::roles(&old), ["user", "assistant", "bashExecution"]);
    assert_eq!(pi.messages(), [] as [Value; 0]);
    pi.agent.skip();
    pi.say("Hi");
    assert!(!told(&world).join("").contains("meanwhile"));
    pi.finish();
}

#[test]
fn summary_covers_shell_commands() {
    let world = World::new([
        Reply::text(["One."]),
        Reply::text(["Two."]),
        Reply::text(["THE SUMMARY"]),
    ]);
    world.settings(json!({"compaction": {"keepRecentTokens": 5}}));
    let pi = world.start();
    run(&pi, "echo VISIBLE");
    pi.data(json!({"type": "bash", "command": "echo INVISIBLE", "excludeFromContext": true}));
    pi.say(&"An old question. ".repeat(20));
    pi.say("A new question, long enough.");
    pi.get("compact");
    let asked = text(&world.server.requests()[2].body["messages"][0]);
    assert!(
        asked.contains("VISIBLE") && !asked.contains("INVISIBLE"),
        "{asked}"
    );
    same_after_restart(&world, pi);
}

#[test]
fn shell_output_is_cleaned() {
    let world = World::new([]);
    let pi = world.start();
    let data = run(&pi, "printf '\\033[31mred\\033[0m\\r\\n\\001\\002plain\\377\\n'");
    let output = data["output"].as_str().unwrap();
    assert!(output.starts_with("red\nplain"), "{output:?}");
    assert!(!output.contains(['\u{1b}', '\r', '\u{1}', '\u{2}']), "{output:?}");
    pi.finish();
}

#[test]
fn shell_result_survives_end_of_input_during_run() {
    let world = World::new([Reply::text(["half"]).gate("never")]);
    let pi = world.start();
    let file = pi.file();
    pi.prompt("Go");
    pi.wait_update("text_delta");
    assert_eq!(run(&pi, "echo meanwhile")["exitCode"], 0);
    pi.agent.close_stdin();
    pi.agent.wait_exit(LONG).unwrap();
    let roles = check::roles(&file);
    assert!(roles.contains(&json!("bashExecution")), "{roles:?}");
}
