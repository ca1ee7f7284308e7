//! `bash`: commands of the user.

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::check;
use crate::kit::{Pi, World, of_type, until};

#[test]
fn bash_command_returns_output_and_updates() {
    let world = World::new([]);
    let pi = world.start();
    let id = pi.send(json!({"type": "bash", "command": "echo out; echo err >&2; exit 3"}));
    let data = pi.response(&id)["data"].clone();
    assert_eq!(
        (&data["exitCode"], &data["cancelled"], &data["truncated"]),
        (&json!(3), &json!(false), &json!(false))
    );
    let output = data["output"].as_str().unwrap();
    assert!(output.contains("out\n") && output.contains("err"), "{output}");
    let lines = pi.lines();
    let updates: String = of_type(&lines, "bash_execution_update")
        .iter()
        .map(|line| line["delta"].as_str().unwrap())
        .collect();
    assert_eq!(updates, output);
    assert!(
        of_type(&lines, "bash_execution_update")
            .iter()
            .all(|line| line["id"] == id.as_str())
    );
    pi.finish();
}

#[test]
fn bash_output_reaches_model_unless_excluded() {
    let world = World::new([Reply::text(["ok"])]);
    let pi = world.start();
    pi.data(json!({"type": "bash", "command": "echo for-the-model"}));
    pi.data(json!({"type": "bash", "command": "echo not-for-it", "excludeFromContext": true}));
    assert_eq!(pi.messages().len(), 2);
    pi.say("Hi");
    let body = world.server.requests()[0].body.to_string();
    assert!(
        body.contains("for-the-model") && !body.contains("not-for-it"),
        "{body}"
    );
    let file = pi.file();
    pi.finish();
    let entries = check::entries(&file);
    let commands: Vec<&Value> = entries
        .iter()
        .filter_map(|entry| entry["message"].get("command"))
        .collect();
    assert_eq!(commands, ["echo for-the-model", "echo not-for-it"]);
}

#[test]
fn bash_commands_run_concurrently() {
    let world = World::new([]);
    let pi = world.start();
    let waits =
        pi.send(json!({"type": "bash", "command": "while [ ! -e go ]; do sleep 0.01; done; echo first"}));
    let goes = pi.send(json!({"type": "bash", "command": "touch go; echo second"}));
    assert_eq!(pi.response(&goes)["data"]["output"], "second\n");
    assert_eq!(pi.response(&waits)["data"]["output"], "first\n");
    pi.finish();
}

#[test]
fn abort_bash_ends_all_commands() {
    let world = World::new([]);
    let pi = world.start();
    let ids: Vec<String> = (0..3)
        .map(|n| pi.send(json!({"type": "bash", "command": format!("touch b{n}; echo begun; sleep 600")})))
        .collect();
    until("the commands", || {
        (0..3).all(|n| world.dir.cwd().join(format!("b{n}")).exists())
    });
    pi.data(json!({"type": "abort_bash"}));
    for id in &ids {
        let data = pi.response(id)["data"].clone();
        assert_eq!(
            (&data["cancelled"], data.get("exitCode")),
            (&json!(true), None),
            "{data}"
        );
    }
    assert_eq!(
        pi.data(json!({"type": "bash", "command": "echo later"}))["exitCode"],
        0
    );
    until("their end", || pi.agent.processes().len() <= 2);
    pi.finish();
}

#[test]
fn user_command_during_run_is_stored_afterwards() {
    let world = World::new([
        crate::kit::bash("c1", "touch begun; while [ ! -e go ]; do sleep 0.01; done"),
        Reply::text(["done"]),
        Reply::text(["later"]),
    ]);
    let pi = world.start();
    pi.prompt("Go");
    until("the tool", || world.dir.cwd().join("begun").exists());
    pi.data(json!({"type": "bash", "command": "echo between; touch go"}));
    pi.settled();
    pi.say("And now?");
    let roles: Vec<Value> = pi
        .messages()
        .iter()
        .map(|message| message["role"].clone())
        .collect();
    assert_eq!(
        roles,
        [
            "user",
            "assistant",
            "toolResult",
            "assistant",
            "bashExecution",
            "user",
            "assistant"
        ]
    );
    assert!(
        !world.server.requests()[1].body.to_string().contains("between"),
        "a call and its result stay together"
    );
    assert!(world.server.requests()[2].body.to_string().contains("between"));
    pi.finish();
}

#[test]
fn long_shell_output_is_truncated_and_saved() {
    let world = World::new([]);
    let pi = world.start();
    let data = pi.data(json!({"type": "bash", "command": "seq 1 200000"}));
    assert_eq!(data["truncated"], true);
    let output = data["output"].as_str().unwrap();
    assert!(
        output.len() < 60_000 && output.contains("200000"),
        "{} bytes",
        output.len()
    );
    let whole = std::fs::read_to_string(data["fullOutputPath"].as_str().unwrap()).unwrap();
    assert_eq!(whole.lines().count(), 200_000);
    assert!(whole.starts_with("1\n2\n"));
    pi.finish();
}

#[test]
fn long_tool_output_is_truncated() {
    let world = World::new([crate::kit::bash("c1", "seq 1 200000"), Reply::text(["done"])]);
    let pi = world.start();
    let lines = pi.say("Go");
    let end = of_type(&lines, "tool_execution_end")[0];
    let shown = end["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        shown.len() < 60_000 && shown.contains("200000"),
        "{} bytes",
        shown.len()
    );
    let path = end["result"]["details"]["fullOutputPath"].as_str().unwrap();
    assert_eq!(std::fs::read_to_string(path).unwrap().lines().count(), 200_000);
    pi.finish();
}

#[test]
fn bash_commands_over_limit_are_refused() {
    let world = World::new([]);
    let pi = world.start();
    let ids: Vec<String> = (0..65)
        .map(|_| pi.send(json!({"type": "bash", "command": "sleep 600"})))
        .collect();
    let refused = pi.response(ids.last().unwrap());
    assert_eq!(refused["success"], false, "{refused}");
    pi.data(json!({"type": "abort_bash"}));
    for id in &ids[..64] {
        assert_eq!(pi.response(id)["data"]["cancelled"], true);
    }
    pi.finish();
}

#[test]
fn shell_command_has_empty_stdin_and_no_terminal() {
    let world = World::new([]);
    let pi = world.start();
    let data =
        pi.data(json!({"type": "bash", "command": "cat; echo done; test -t 0 && echo terminal; true"}));
    assert_eq!(data["output"], "done\n");
    pi.finish();
}

#[test]
fn bash_in_missing_directory_is_refused() {
    let world = World::new([]);
    let pi: Pi = world.start();
    pi.state();
    std::fs::remove_dir_all(world.dir.cwd()).unwrap();
    let error = pi.error(json!({"type": "bash", "command": "true"}));
    assert!(error.contains("Working directory does not exist"), "{error}");
    pi.finish();
}
