//! Sub-agents: off unless they are named, never with more rights or limits than the session that they work for.

use std::fs;

use serde_json::{Value, json};
use testkit::llm::{Reply, Usage};

use crate::hooks::hook;
use crate::kit::{LONG, Pi, World, bash, of_type, text, until};
use crate::permissions::{choose, question};

const TASKS: [&str; 2] = ["--tools", "read,bash,write,task"];

fn task(id: &str, prompt: &str) -> Reply {
    Reply::tool(id, "task", json!({"description": "a task", "prompt": prompt}))
}

fn task_for(id: &str, agent: &str, prompt: &str) -> Reply {
    let args = json!({"description": "a task", "prompt": prompt, "agent": agent});
    Reply::tool(id, "task", args)
}

/// Adds an agent to the user's.
fn add_agent(world: &World, name: &str, text: &str) {
    let dir = world.dir.agent_dir().join("agents");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join(format!("{name}.md")), text).unwrap();
}

/// The results of the calls of `task`: texts, and whether they are errors.
fn results(lines: &[Value]) -> Vec<(String, bool)> {
    let ends = of_type(lines, "tool_execution_end");
    let ends = ends.iter().filter(|end| end["toolName"] == "task");
    ends.map(|end| (text(&end["result"]), end["isError"].as_bool().unwrap()))
        .collect()
}

fn tool_names(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[test]
fn task_is_off_unless_named() {
    let world = World::new([task("t", "Count"), Reply::text(["done"])]);
    for args in [&[][..], &["--tools", "*"]] {
        let pi = world.start_with(args);
        assert!(!pi.get("get_tools").to_string().contains("\"task\""));
        pi.finish();
    }
    let pi = world.start();
    let lines = pi.say("Go");
    assert!(results(&lines)[0].0.contains("task not found"), "{lines:#?}");
    assert!(!world.server.requests()[0].body.to_string().contains("sub-agent"));
    pi.finish();
    world.settings(json!({"subagents": {"enabled": true}}));
    let pi = world.start();
    assert!(pi.get("get_tools").to_string().contains("\"task\""));
    pi.finish();
}

#[test]
fn subagent_has_its_own_conversation_and_file() {
    let world = World::new([
        task("t", "Count the files"),
        bash("b", "echo 7"),
        Reply::text(["There are seven files."]),
        Reply::text(["It says seven."]),
    ]);
    let pi = world.start_with(&TASKS);
    let lines = pi.say("How many?");
    assert_eq!(results(&lines), [("There are seven files.".to_owned(), false)]);
    let requests = world.server.requests();
    assert_eq!(requests.len(), 4);
    let (own, last) = (&requests[1].body, &requests[3].body);
    let said = own["messages"].to_string();
    assert!(
        said.contains("Count the files") && !said.contains("How many?"),
        "{said}"
    );
    assert_eq!(tool_names(own), ["read", "bash", "write"]);
    assert!(own["system"].to_string().contains("work for another agent"));
    assert!(last["messages"].to_string().contains("There are seven files."));
    // The calls of the sub-agent are no calls of the session.
    assert_eq!(of_type(&lines, "tool_execution_end").len(), 1);
    assert_eq!(pi.roles(), ["user", "assistant", "toolResult", "assistant"]);

    let details = &pi.messages()[2]["details"];
    assert_eq!(
        (&details["status"], &details["requests"]),
        (&json!("completed"), &json!(2))
    );
    let file = details["sessionFile"].as_str().unwrap();
    let own = pi.file();
    assert!(
        file.starts_with(own.with_extension("subagents").to_str().unwrap()),
        "{file}"
    );
    assert!(
        fs::read_to_string(file)
            .unwrap()
            .contains("There are seven files.")
    );
    // What it cost is part of what the session cost.
    let stats = pi.data(json!({"type": "get_session_stats", "byModel": true}));
    let usage = &pi.messages()[2]["usage"];
    let answers = stats["byModel"][0]["tokens"]["output"].as_u64().unwrap();
    assert!(usage["output"].as_u64().unwrap() > 0 && answers > usage["output"].as_u64().unwrap());
    let listed = pi.data(json!({"type": "list_sessions"}));
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "{listed}");
    pi.finish();
}

#[test]
fn subagents_work_at_the_same_time() {
    let both = Reply::tool("t1", "task", json!({"description": "x", "prompt": "First part"})).then_tool(
        "t2",
        "task",
        json!({"description": "y", "prompt": "Second part"}),
    );
    let world = World::new([
        both,
        Reply::text(["one"]).gate("first").when_contains("First part"),
        Reply::text(["two"]).gate("second").when_contains("Second part"),
        Reply::text(["both"]),
    ]);
    let pi = world.start_with(&TASKS);
    pi.prompt("Go");
    world.server.wait_gate("first", LONG).unwrap();
    world.server.wait_gate("second", LONG).unwrap();
    let working = pi.get("get_subagents")["subagents"].clone();
    assert_eq!(working.as_array().unwrap().len(), 2, "{working}");
    world.server.release("second");
    world.server.release("first");
    pi.settled();
    let lines = pi.lines();
    let said: Vec<String> = results(&lines).into_iter().map(|(text, _)| text).collect();
    assert!(
        said.contains(&"one".to_owned()) && said.contains(&"two".to_owned()),
        "{said:?}"
    );
    assert_eq!(pi.get("get_subagents")["subagents"], json!([]));
    pi.finish();
}

#[test]
fn agents_are_markdown_files() {
    let world = World::new([
        task_for("t", "reviewer", "Look at it"),
        Reply::text(["fine"]),
        task_for("u", "poet", "Sing"),
        Reply::text(["done"]),
    ]);
    let reviewer =
        "---\ndescription: reviews code\ntools: read, grep, bash\nmaxTurns: 3\n---\nYou are strict.";
    add_agent(&world, "reviewer", reviewer);
    add_agent(&world, "broken", "---\ndescription: x\nmaxTurns: none\n---\n");
    let pi = world.start_with(&["--tools", "read,task"]);
    let lines = pi.say("Go");
    let results = results(&lines);
    assert_eq!(results[0], ("fine".to_owned(), false));
    assert!(results[1].1 && results[1].0.contains("agent"), "{results:?}");
    let requests = world.server.requests();
    let description = requests[0].body["tools"].to_string();
    assert!(description.contains("reviewer: reviews code") && !description.contains("broken"));
    // A definition cannot add tools that the session does not have.
    assert_eq!(tool_names(&requests[1].body), ["read"]);
    assert!(requests[1].body["system"].to_string().contains("You are strict."));
    pi.warns("broken.md");
    pi.finish();
}

#[test]
fn permissions_of_subagent_are_asked_through_session() {
    let world = World::new([
        task("t", "Touch it"),
        bash("b", "touch allowed"),
        bash("c", "touch denied"),
        Reply::text(["ok"]),
        Reply::text(["done"]),
    ]);
    let pi = world.start_with(&[&TASKS[..], &["--permission-mode", "ask"]].concat());
    pi.prompt("Go");
    let asked = question(&pi);
    let title = asked["title"].as_str().unwrap();
    assert!(
        title.starts_with("Sub-agent general: Allow bash?") && title.contains("touch allowed"),
        "{title}"
    );
    choose(&pi, &asked, "Allow once");
    let asked = question(&pi);
    choose(&pi, &asked, "Deny");
    pi.settled();
    assert!(world.dir.cwd().join("allowed").exists() && !world.dir.cwd().join("denied").exists());
    pi.finish();
}

#[test]
fn stricter_mode_binds_running_subagent() {
    let world = World::new([
        task("t", "Touch it"),
        bash("b", "touch one").gate("working"),
        bash("c", "touch two"),
        Reply::text(["ok"]),
        Reply::text(["done"]),
    ]);
    let pi = world.start_with(&TASKS);
    pi.prompt("Go");
    world.server.wait_gate("working", LONG).unwrap();
    pi.data(json!({"type": "set_permission_mode", "mode": "read-only"}));
    world.server.release("working");
    pi.settled();
    assert!(!world.dir.cwd().join("one").exists() && !world.dir.cwd().join("two").exists());
    pi.finish();
}

#[test]
fn deny_rules_bind_subagents() {
    let world = World::new([
        task("t", "Touch it"),
        bash("b", "touch denied"),
        Reply::text(["refused"]),
        Reply::text(["done"]),
    ]);
    world.settings(json!({"permissions": {"deny": ["bash(touch *)"]}}));
    let pi = world.start_with(&TASKS);
    pi.say("Go");
    assert!(!world.dir.cwd().join("denied").exists());
    assert!(
        world.server.requests()[2].body.to_string().contains("denied"),
        "the model is told"
    );
    pi.finish();
}

#[test]
fn abort_ends_subagents() {
    let world = World::new([
        task("t", "Sleep"),
        bash("b", "echo on > on; sleep 60"),
        Reply::text(["next"]),
    ]);
    let pi = world.start_with(&TASKS);
    pi.prompt("Go");
    until("the command", || world.dir.cwd().join("on").exists());
    pi.data(json!({"type": "abort"}));
    pi.settled();
    let lines = pi.lines();
    assert_eq!(results(&lines), [("Operation aborted".to_owned(), true)]);
    assert_eq!(pi.get("get_subagents")["subagents"], json!([]));
    assert_eq!(world.server.requests().len(), 2);
    pi.agent.skip();
    pi.say("Again");
    pi.finish();
}

#[test]
fn turns_of_subagents_count() {
    let world = World::new([
        task("t", "Work"),
        bash("b", "true"),
        bash("b", "true"),
        bash("b", "true"),
        Reply::text(["never"]),
    ]);
    let pi = world.start_with(&[&TASKS[..], &["--max-turns", "3"]].concat());
    let lines = pi.say("Go");
    assert_eq!(world.server.requests().len(), 3);
    let results = results(&lines);
    assert!(results[0].1 && results[0].0.contains("2 turns"), "{results:?}");
    let ends = of_type(&lines, "agent_end");
    assert_eq!(
        ends.last().unwrap()["limit"],
        json!({"kind": "turns", "value": 3})
    );
    assert_eq!(pi.get("get_limits")["used"]["turns"], 3);
    assert_eq!(pi.get("get_limits")["used"]["toolCalls"], 3);
    pi.finish();
}

#[test]
fn cost_is_never_passed_by_parallel_subagents() {
    // A request costs 3 (input) + 15 (output) dollars per million tokens: 0.18.
    let usage = Usage {
        input: 10_000,
        output: 10_000,
        ..Usage::default()
    };
    let mut three = Reply::new();
    for id in ["t1", "t2", "t3"] {
        three = three.then_tool(id, "task", json!({"description": "x", "prompt": "Work"}));
    }
    let world = World::new([]);
    world.server.set_rule(move |request| {
        let is_own = request.body["messages"].to_string().contains("You have a team");
        if is_own {
            three.clone().usage(usage)
        } else {
            bash("b", "true").usage(usage)
        }
    });
    let pi = world.start_with(&[&TASKS[..], &["--max-cost", "0.9"]].concat());
    let lines = pi.say("You have a team");
    assert_eq!(world.server.requests().len(), 5, "five requests use up the limit");
    let ends = of_type(&lines, "agent_end");
    assert_eq!(ends.last().unwrap()["limit"]["kind"], "cost");
    pi.finish();
}

#[test]
fn subscribed_client_gets_nested_events() {
    let world = World::new([
        task("t", "Count the files"),
        bash("b", "echo 7"),
        Reply::text(["seven"]),
        Reply::text(["done"]),
    ]);
    let pi = world.start_with(&TASKS);
    pi.data(json!({"type": "set_subagent_subscription", "level": "events"}));
    let lines = pi.say("Go");
    let cycle = of_type(&lines, "subagent_lifecycle");
    let statuses: Vec<&Value> = cycle.iter().map(|event| &event["payload"]["status"]).collect();
    assert_eq!(statuses, ["started", "completed"]);
    let nested = of_type(&lines, "subagent_event");
    assert!(
        nested
            .iter()
            .all(|event| event["payload"]["parentToolCallId"] == "t")
    );
    let kinds: Vec<&Value> = nested
        .iter()
        .map(|event| &event["payload"]["event"]["type"])
        .collect();
    for kind in [
        "agent_start",
        "tool_execution_start",
        "message_end",
        "agent_settled",
    ] {
        assert!(kinds.contains(&&json!(kind)), "{kind}: {kinds:?}");
    }
    assert!(!of_type(&lines, "subagent_progress").is_empty());
    let id = cycle[0]["payload"]["id"].clone();
    let read = pi.data(json!({"type": "get_subagent_messages", "subagentId": id}));
    let roles: Vec<&Value> = read["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["role"])
        .collect();
    assert_eq!(roles, ["user", "assistant", "toolResult", "assistant"]);
    let next = read["nextByte"].clone();
    let more = pi.data(json!({"type": "get_subagent_messages", "subagentId": id, "fromByte": next}));
    assert_eq!((&more["messages"], &more["nextByte"]), (&json!([]), &next));
    let again = json!({"type": "get_subagent_messages", "subagentId": id, "fromByte": 1_000_000_000});
    assert_eq!(pi.data(again)["reset"], true);
    pi.finish();
}

#[test]
fn unsubscribed_client_gets_progress_of_call() {
    let world = World::new([
        task("t", "Count the files"),
        bash("b", "while [ ! -e go ]; do sleep 0.01; done"),
        Reply::text(["seven"]),
        Reply::text(["done"]),
    ]);
    let pi = world.start_with(&TASKS);
    pi.prompt("Go");
    let is_progress = |line: &Value| {
        line["type"] == "tool_execution_update" && text(&line["partialResult"]).contains("bash")
    };
    pi.agent.wait(is_progress, LONG).unwrap();
    fs::write(world.dir.cwd().join("go"), "").unwrap();
    pi.settled();
    assert!(
        pi.lines()
            .iter()
            .all(|line| !line["type"].as_str().unwrap().starts_with("subagent"))
    );
    pi.finish();
}

#[test]
fn changes_of_subagent_are_undone() {
    let world = World::new([
        task("t", "Write it"),
        Reply::tool("w", "write", json!({"path": "a.txt", "content": "new"})),
        Reply::text(["written"]),
        Reply::text(["done"]),
    ]);
    fs::write(world.dir.cwd().join("a.txt"), "old").unwrap();
    let pi = world.start_with(&[&TASKS[..], &["--checkpoints", "files"]].concat());
    pi.say("Go");
    assert_eq!(fs::read_to_string(world.dir.cwd().join("a.txt")).unwrap(), "new");
    let entries = pi.get("get_entries")["entries"].clone();
    let first = entries
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["message"]["role"] == "user");
    let id = first.unwrap()["id"].clone();
    pi.data(json!({"type": "rewind", "entryId": id, "what": "files"}));
    assert_eq!(fs::read_to_string(world.dir.cwd().join("a.txt")).unwrap(), "old");
    pi.finish();
}

#[test]
fn failures_of_subagent_are_told() {
    let world = World::new([
        task("t", "Work"),
        Reply::error(testkit::llm::ErrorKind::Auth),
        Reply::text(["done"]),
    ])
    .without_retries();
    let pi = world.start_with(&TASKS);
    let lines = pi.say("Go");
    let results = results(&lines);
    assert!(results[0].1 && !results[0].0.is_empty(), "{results:?}");
    pi.finish();
}

/// The session of the sub-agent begins no run then, so that nothing would end the call.
#[test]
fn task_that_a_hook_handles_fails() {
    let world = World::new([task("t", "Count it"), Reply::text(["done"])]);
    let body = r#"read -r line; case "$line" in *"Count it"*) echo '{"action": "handled"}';; esac"#;
    hook(&world, "input.sh", body);
    let pi = world.start_with(&TASKS);
    let results = results(&pi.say("Go"));
    assert!(
        results[0].1 && results[0].0.contains("has handled"),
        "{results:?}"
    );
    assert_eq!(pi.get("get_subagents")["subagents"], json!([]));
    assert_eq!(world.server.requests().len(), 2);
    pi.finish();
}

/// The program ends while a sub-agent works.
#[test]
fn subagents_end_with_the_program() {
    let world = World::new([task("t", "Sleep"), bash("b", "echo $$ > pid; exec sleep 600")]);
    let pi: Pi = world.start_with(&TASKS);
    pi.prompt("Go");
    let pid = world.dir.cwd().join("pid");
    until("the command", || {
        fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n'))
    });
    let pid = fs::read_to_string(pid).unwrap();
    pi.agent.close_stdin();
    pi.agent.wait_exit(LONG).unwrap();
    let proc = format!("/proc/{}", pid.trim());
    until("the end of the command", || !std::path::Path::new(&proc).exists());
}
