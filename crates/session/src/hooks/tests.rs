//! Running and understanding hook executables, with programs of the system.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use config::Scope;
use process::{Ended, Reaper};
use serde_json::{Value, json};

use super::running::Exit;
use super::{Answer, Facts, Hook, Hooks, answering, wants};

fn exit(code: i32, stdout: &str, stderr: &str) -> Exit {
    Exit {
        ended: Ended::Code(code),
        stdout: stdout.into(),
        stderr: stderr.into(),
    }
}

#[test]
fn hook_exit_codes_decide_result() {
    let said =
        |event: &str, code, stdout: &str, stderr: &str| answering::answer(event, exit(code, stdout, stderr));
    assert_eq!(said("tool_call", 0, " \n", "noise"), Ok(Value::Null));
    assert_eq!(
        said("tool_call", 0, r#"{"input": {}}"#, ""),
        Ok(json!({"input": {}}))
    );
    assert_eq!(
        said("tool_call", 0, r#"{"block": true}"#, "").unwrap()["reason"],
        "Tool execution was blocked by a hook"
    );
    assert_eq!(
        said("tool_call", 2, "", " not that \n"),
        Ok(json!({"block": true, "reason": "not that"}))
    );
    assert_eq!(said("session_before_fork", 2, "", "").unwrap()["cancel"], true);
    assert_eq!(said("input", 2, "", "").unwrap()["action"], "handled");
    assert_eq!(said("tool_result", 2, "", "secret").unwrap()["isError"], true);
    assert_eq!(said("user_bash", 2, "", "no").unwrap()["result"]["output"], "no");
    assert!(
        said("context", 2, "", "x")
            .unwrap_err()
            .contains("cannot be refused")
    );
    assert_eq!(
        said("tool_call", 1, "", "boom").unwrap_err(),
        "It exited with code 1: boom"
    );
    assert!(said("tool_call", 0, "[1]", "").is_err() && said("tool_call", 0, "yes", "").is_err());
    let many = format!("{{\"x\":[0{}]}}", ",0".repeat(wire::limits::MAX_VALUES));
    let error = said("tool_call", 0, &many, "").unwrap_err();
    assert_eq!(error, "It answered with more than 500000 values");
    assert_eq!(said("agent_end", 0, "anything", ""), Ok(Value::Null));
    assert!(said("agent_end", 3, "", "").is_err());
}

fn hook(event: &'static str, script: &str) -> std::sync::Arc<Hook> {
    std::sync::Arc::new(Hook {
        event,
        path: "/h".into(),
        program: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        tools: Vec::new(),
        timeout: Duration::from_secs(20),
        scope: Scope::User,
    })
}

#[test]
fn hook_for_server_gets_tools_with_cut_names() {
    let server = "s".repeat(60);
    let for_tools = |pattern: String| Hook {
        tools: vec![pattern],
        ..(*hook("tool_call", "")).clone()
    };
    let event = json!({"toolName": format!("mcp__{}_0123abcd", &server[..50])});
    assert!(wants(
        &for_tools(format!("mcp__{server}__*")),
        "tool_call",
        &event
    ));
    assert!(!wants(&for_tools("mcp__t*".to_owned()), "tool_call", &event));
}

fn facts() -> Facts {
    Facts {
        session: json!({"id": "s"}),
        agent: json!({}),
        env: vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())],
        cwd: "/".into(),
    }
}

async fn asked(event: &str, given: Value, hooks: Vec<std::sync::Arc<Hook>>) -> Answer {
    let hooks = hooks.into_iter().map(|hook| (*hook).clone()).collect();
    let hooks = Hooks::new(config::hooks::Finding {
        hooks,
        refused: Vec::new(),
    });
    let asked = hooks.asked(event, &given).unwrap();
    let name = event.to_owned();
    asked
        .ask(facts(), Reaper::direct(), name, given, Answer::default())
        .await
}

#[tokio::test]
async fn hooks_see_previous_changes_and_first_block_stops() {
    let change = hook(
        "tool_call",
        r#"read line; echo '{"input": {"command": "changed"}}'"#,
    );
    let look = hook(
        "tool_call",
        r#"read line; case "$line" in *changed*) echo seen >&2; exit 2;; esac"#,
    );
    let never = hook("tool_call", "exit 9");
    let event = json!({"type": "tool_call", "toolName": "bash", "input": {"command": "first"}});
    let answer = asked("tool_call", event, vec![change, look, never]).await;
    assert_eq!(
        answer.value,
        json!({"input": {"command": "changed"}, "block": true, "reason": "seen"})
    );
    assert!(answer.errors.is_empty());
}

#[tokio::test]
async fn failing_check_blocks_call_failing_filter_does_not() {
    let answer = asked(
        "tool_call",
        json!({}),
        vec![hook("tool_call", "echo no >&2; exit 1")],
    )
    .await;
    assert_eq!(answer.value["block"], true);
    assert_eq!(answer.errors.len(), 1);
    let fails = hook("context", "exit 1");
    let works = hook("context", r#"echo '{"messages": []}'"#);
    let answer = asked("context", json!({"messages": [1]}), vec![fails, works]).await;
    assert_eq!((answer.value, answer.errors.len()), (json!({"messages": []}), 1));
}

#[tokio::test]
async fn hook_exceeding_timeout_is_killed_with_its_group() {
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    let script = format!("sleep 60 & echo $! > {}; wait", pid.display());
    let mut slow = (*hook("tool_call", &script)).clone();
    slow.timeout = Duration::from_millis(400);
    let slow = std::sync::Arc::new(slow);
    let mut started = String::new();
    // On a busy machine the timeout can stop the shell before it starts its child.
    for _ in 0..10 {
        let answer = asked("tool_call", json!({}), vec![slow.clone()]).await;
        assert_eq!(answer.errors[0].error, "Hook timed out after 400ms");
        started = fs::read_to_string(&pid).unwrap_or_default();
        if started.ends_with('\n') {
            break;
        }
    }
    let pid = started;
    assert!(pid.ends_with('\n'), "the hook never started its child");
    let stat = PathBuf::from(format!("/proc/{}/stat", pid.trim()));
    // Killed; perhaps it was not waited for yet.
    let gone = || fs::read_to_string(&stat).map_or(true, |text| text.contains(") Z "));
    for _ in 0..3_000 {
        if gone() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it still runs");
}

#[tokio::test]
async fn hook_output_is_bounded_and_unread_input_ignored() {
    let big = json!({"text": "x".repeat(3 << 20)});
    let loud = hook("input", "head -c 1000000 /dev/zero >&2; exit 1");
    let answer = asked(
        "input",
        big,
        vec![loud, hook("input", "echo '{\"text\": \"short\"}'")],
    )
    .await;
    assert_eq!(answer.value["text"], "short");
    assert!(answer.errors[0].error.len() < 20_000);
}

#[tokio::test]
async fn listening_hooks_run_in_order_until_shutdown() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let script = format!("cat >> {}", log.display());
    let (failures, mut failed) = tokio::sync::mpsc::channel(8);
    let mut hooks = Hooks::new(config::hooks::Finding {
        hooks: vec![
            (*hook("turn_end", &script)).clone(),
            (*hook("turn_end", "exit 1")).clone(),
        ],
        refused: Vec::new(),
    });
    assert!(
        hooks.has_listener("turn_end") && !hooks.answers("turn_end") && !hooks.has_listener("turn_start")
    );
    let reaper = Reaper::direct();
    for turn in 0..5 {
        hooks.tell(
            "turn_end",
            &json!({"turnIndex": turn}),
            &facts(),
            &reaper,
            &failures,
        );
    }
    hooks.finish().await;
    let lines = fs::read_to_string(log).unwrap();
    let turns: Vec<u64> = lines
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["event"]["turnIndex"]
                .as_u64()
                .unwrap()
        })
        .collect();
    assert_eq!(turns, [0, 1, 2, 3, 4]);
    assert_eq!(failed.recv().await.unwrap().error, "It exited with code 1");
    hooks.mute();
    assert!(hooks.has_listener("turn_end"));
    let mut asked = Hooks::new(config::hooks::Finding {
        hooks: vec![(*hook("input", "exit 0")).clone()],
        refused: Vec::new(),
    });
    assert!(asked.answers("input") && asked.asked("input", &json!({})).is_some());
    asked.mute();
    assert!(!asked.has_listener("input") && asked.asked("input", &json!({})).is_none());
}
