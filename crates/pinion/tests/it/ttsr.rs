//! Rules that watch answers while they stream in: found in files, triggered, told to the model, remembered (dialects.md 8).

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::check;
use crate::kit::{Pi, World, answers, kinds, of_type, text};

/// Writes a rule of the project.
fn rule(world: &World, name: &str, front: &str) {
    let file = format!("---\n{front}\n---\n\nMind {name}.\n");
    world.dir.write(format!(".pi/rules/{name}.md"), file).unwrap();
}

/// A text that would go on for ever behind what the rules look for.
fn endless(text: &str) -> Reply {
    Reply::text([text]).gate("never").then_text(["more"])
}

fn triggered(lines: &[Value]) -> Vec<&str> {
    let rules = of_type(lines, "ttsr_triggered").into_iter();
    rules
        .flat_map(|line| line["rules"].as_array().unwrap())
        .map(|rule| rule["name"].as_str().unwrap())
        .collect()
}

fn last_message(world: &World, request: usize) -> String {
    let request = world.server.requests()[request].body.clone();
    request["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .to_string()
}

#[test]
fn matched_rule_stops_answer_and_reminds_model() {
    let world = World::new([endless("We write unsafe code"), Reply::text(["Safe code."])]);
    rule(
        &world,
        "no-unsafe",
        "condition: \\bunsafe\\b\ndescription: Safe code\nalwaysApply: false",
    );
    let pi = world.start();
    let lines = pi.say("Go");
    assert_eq!(
        kinds(&lines),
        [
            "response",
            "agent_start",
            "turn_start",
            "message_start",
            "message_end",
            "message_start",
            "ttsr_triggered",
            "message_end",
            "turn_end",
            "agent_end",
            "agent_start",
            "turn_start",
            "message_start",
            "message_end",
            "turn_end",
            "agent_end",
            "agent_settled"
        ]
    );
    let path = world.dir.cwd().join(".pi/rules/no-unsafe.md");
    let path = path.to_str().unwrap();
    assert_eq!(
        *of_type(&lines, "ttsr_triggered")[0],
        json!({"type": "ttsr_triggered", "rules": [{
            "name": "no-unsafe", "path": path, "content": "Mind no-unsafe.", "alwaysApply": false,
            "description": "Safe code", "condition": ["\\bunsafe\\b"],
            "_source": {"provider": "native", "providerName": "Pinion", "path": path, "level": "project"},
        }]})
    );
    let said = answers(&lines);
    assert_eq!(
        (&said[0]["stopReason"], &said[1]["stopReason"]),
        (&json!("aborted"), &json!("stop"))
    );
    let ends = of_type(&lines, "agent_end");
    assert_eq!(
        (&ends[0]["willRetry"], &ends[1]["willRetry"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(of_type(&lines, "agent_settled")[0]["aborted"], false);
    let told = last_message(&world, 1);
    assert!(
        told.contains("system-interrupt") && told.contains("Mind no-unsafe.") && told.contains(path),
        "{told}"
    );
    let request = world.server.requests()[1].body.to_string();
    assert!(
        !request.contains("We write"),
        "what was cut off is not sent again"
    );
    assert_eq!(pi.roles(), ["user", "custom", "assistant"]);
    let kept: Vec<Value> = check::entries(&pi.file())
        .iter()
        .map(|entry| entry["type"].clone())
        .collect();
    let from = kept.iter().position(|kind| kind == "message").unwrap();
    assert_eq!(
        kept[from..],
        [
            "message",
            "message",
            "custom_message",
            "ttsr_injection",
            "message"
        ]
    );
    pi.finish();
}

#[test]
fn rule_triggers_once_per_session_across_restarts() {
    let world = World::new([
        endless("bad"),
        Reply::text(["bad again"]),
        Reply::text(["bad once more"]),
        endless("bad"),
        Reply::text(["ok"]),
    ]);
    rule(&world, "r", "condition: bad");
    let pi = world.start();
    assert_eq!(triggered(&pi.say("Go")), ["r"]);
    let file = pi.file();
    let entries = check::entries(&file);
    let entry = entries
        .iter()
        .find(|entry| entry["type"] == "ttsr_injection")
        .unwrap();
    assert_eq!(entry["injectedRules"], json!(["r"]));
    pi.finish();
    let pi = world.start_with(&["--session", file.to_str().unwrap()]);
    assert!(triggered(&pi.say("Go")).is_empty());
    pi.get("new_session");
    assert_eq!(
        triggered(&pi.say("Go")),
        ["r"],
        "another session was told nothing"
    );
    pi.finish();
}

#[test]
fn rule_triggers_again_on_other_branch() {
    let world = World::new([
        endless("bad"),
        Reply::text(["ok"]),
        endless("bad"),
        Reply::text(["ok"]),
    ]);
    rule(&world, "r", "condition: bad");
    let pi = world.start();
    pi.say("Go");
    let entries = check::entries(&pi.file());
    let user = entries
        .iter()
        .find(|entry| entry["message"]["role"] == "user")
        .unwrap();
    pi.data(json!({"type": "navigate_tree", "targetId": user["id"]}));
    let lines = pi.say("Go");
    assert_eq!(triggered(&lines), ["r"]);
    pi.finish();
}

#[test]
fn rule_repeats_after_configured_gap() {
    let world = World::new([
        endless("bad"),
        Reply::text(["bad"]),
        endless("bad"),
        Reply::text(["ok"]),
    ]);
    world.settings(json!({"ttsr": {"repeatMode": "after-gap", "repeatGap": 2}}));
    rule(&world, "r", "condition: bad");
    let pi = world.start();
    assert_eq!(triggered(&pi.say("Go")), ["r"]);
    assert_eq!(triggered(&pi.say("Go")), ["r"]);
    pi.finish();
}

#[test]
fn rule_stops_call_before_it_runs() {
    let write = |path: &str| {
        let start = format!("{{\"path\": \"{path}\", \"content\": \"fn main() {{ unsa");
        Reply::new().tool_chunks("c", "write", [start, "fe { } }\"}".to_owned()])
    };
    let world = World::new([write("notes.md"), write("src/main.rs"), Reply::text(["ok"])]);
    rule(
        &world,
        "r",
        "condition: [unsafe, transmute]\nscope: tool:write(*.rs), tool:edit(*.rs)",
    );
    let pi = world.start();
    let lines = pi.say("Go");
    assert_eq!(triggered(&lines), ["r"]);
    let calls = of_type(&lines, "tool_execution_start");
    assert_eq!((calls.len(), &calls[0]["args"]["path"]), (1, &json!("notes.md")));
    assert!(world.dir.cwd().join("notes.md").exists() && !world.dir.cwd().join("src").exists());
    pi.finish();
}

#[test]
fn rule_without_interrupt_is_reported_afterwards() {
    let world = World::new([
        Reply::text(["bad"]).then_tool("c", "bash", json!({"command": "echo bad"})),
        Reply::text(["done"]),
        Reply::text(["better"]),
    ]);
    world.settings(json!({"ttsr": {"interruptMode": "never"}}));
    rule(&world, "r", "condition: bad");
    let pi = world.start();
    let lines = pi.say("Go");
    assert!(triggered(&lines).is_empty());
    assert_eq!(of_type(&lines, "agent_start").len(), 1, "the run goes on");
    assert_eq!(of_type(&lines, "tool_execution_end")[0]["isError"], false);
    assert!(last_message(&world, 2).contains("Mind r."));
    let told: Vec<&Value> = of_type(&lines, "message_end")
        .into_iter()
        .filter(|line| line["message"]["role"] == "custom")
        .collect();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["message"]["display"], false);
    pi.finish();
}

#[test]
fn rule_interrupt_mode_overrides_setting() {
    let world = World::new([Reply::text(["bad"]), Reply::text(["ok"])]);
    rule(&world, "r", "condition: bad\ninterruptMode: tool-only");
    let pi = world.start();
    let lines = pi.say("Go");
    assert!(triggered(&lines).is_empty());
    assert_eq!(text(answers(&lines)[1]), "ok");
    pi.finish();
}

#[test]
fn kept_partial_answer_stays_in_conversation() {
    let world = World::new([endless("bad"), Reply::text(["ok"])]);
    world.settings(json!({"ttsr": {"contextMode": "keep"}}));
    rule(&world, "r", "condition: bad");
    let pi = world.start();
    pi.say("Go");
    assert_eq!(pi.roles(), ["user", "assistant", "custom", "assistant"]);
    pi.finish();
}

#[test]
fn conversation_with_rules_survives_restart() {
    for mode in ["discard", "keep"] {
        let world = World::new([endless("bad"), Reply::text(["ok"])]);
        world.settings(json!({"ttsr": {"contextMode": mode}}));
        rule(&world, "r", "condition: bad");
        let pi = world.start();
        pi.say("Go");
        let (file, roles) = (pi.file(), pi.roles());
        pi.finish();
        let pi = world.start_with(&["--session", file.to_str().unwrap()]);
        assert_eq!(pi.roles(), roles, "{mode}");
        pi.finish();
    }
}

#[test]
fn user_abort_triggers_no_rule() {
    let world = World::new([endless("bad").repeat()]);
    rule(&world, "r", "condition: nothing of this kind");
    let pi = world.start();
    pi.prompt("Go");
    pi.wait_update("text_delta");
    pi.get("abort");
    assert_eq!(pi.settled()["aborted"], true);
    assert!(triggered(&pi.lines()).is_empty());
    pi.finish();
}

/// Answers "bad" with rules in these files; returns the rules that trigger.
fn found(files: &[(&str, &str)], settings: Value, args: &[&str]) -> Vec<String> {
    let world = World::new([Reply::text(["bad"]), Reply::text(["ok"])]);
    world.settings(settings);
    for (path, front) in files {
        let path = match path.strip_prefix("agent/") {
            Some(rest) => world.dir.agent_dir().join(rest),
            None => path.into(),
        };
        world.dir.write(path, format!("---\n{front}\n---\nBody")).unwrap();
    }
    let pi = world.start_with(args);
    let lines = pi.say("Go");
    let names = triggered(&lines).into_iter().map(str::to_owned).collect();
    pi.finish();
    names
}

#[test]
fn rules_are_found_in_all_places() {
    let bad = "condition: bad";
    let all = [
        (".pi/rules/a.md", bad),
        (".omp/rules/b.mdc", bad),
        (".xcsh/rules/c.md", bad),
        ("agent/rules/d.md", bad),
        ("agent/rules/a.md", "condition: other"),
        (".pi/rules/e.txt", bad),
        (".pi/rules/f.md", "description: no condition"),
    ];
    assert_eq!(found(&all, json!({}), &[]), ["a", "b", "c", "d"]);
    assert_eq!(found(&all, json!({}), &["--no-approve"]), ["d"]);
    assert!(found(&all, json!({"ttsr": {"enabled": false}}), &[]).is_empty());
    assert!(found(&[], json!({}), &[]).is_empty());
}

#[test]
fn rule_warnings_are_reported_once() {
    let world = World::new([Reply::text(["bad"]), Reply::text(["bad"])]);
    rule(
        &world,
        "r",
        "condition: ['a(?=b)', other]\ninterruptMode: sometimes",
    );
    let pi = world.start();
    let notices = |pi: &Pi, text: &str| -> Vec<String> {
        let lines = pi.say(text);
        let notices = of_type(&lines, "notice").into_iter();
        notices
            .map(|line| line["message"].as_str().unwrap().to_owned())
            .collect()
    };
    let first = notices(&pi, "Go");
    assert!(
        first.len() == 2 && first[0].contains("interruptMode") && first[1].contains("look-around"),
        "{first:?}"
    );
    assert!(notices(&pi, "Go").is_empty());
    pi.finish();
}
