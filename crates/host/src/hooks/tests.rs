//! Finding, running and understanding hook executables, with programs of the system.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use config::Scope;
use config::settings::{Settings, SettingsSource};
use serde_json::{Value, json};
use tempfile::TempDir;
use tools::Reaper;
use tools::reaper::Ended;

use super::running::Exit;
use super::{Answer, Facts, Hook, Hooks, answering, find};
use crate::extensions::{Choice, Generation, Places};

/// A user and a project, with files of these names, texts and modes below them.
struct Home(TempDir);

impl Home {
    fn new(files: &[(&str, &str, u32)]) -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(home.path("cwd")).unwrap();
        for (name, text, mode) in files {
            let path = home.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).unwrap();
        }
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Events and names of what is loaded, and what is not with its reason.
    fn found(&self, choice: &Choice, approved: Option<bool>) -> (Vec<String>, BTreeMap<String, String>) {
        let (agent_dir, cwd) = (self.path("agent"), self.path("cwd"));
        let (settings, notes) = Settings::load(&SettingsSource {
            agent_dir: &agent_dir,
            cwd: &cwd,
            home: None,
            trust: &config::trust::Trust::new(&agent_dir, approved),
        });
        let finding = find(&Places {
            choice,
            settings: &settings,
            packages: &[],
            agent_dir: &agent_dir,
            home: &cwd,
            cwd: &cwd,
            boundaries: &files::Boundaries::new(&agent_dir, None),
        });
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        let loaded = finding
            .hooks
            .iter()
            .map(|hook| format!("{} {}", hook.event, name(&hook.path)));
        let mut refused: BTreeMap<String, String> = finding
            .refused
            .iter()
            .map(|refused| (name(&refused.path), refused.why.clone()))
            .collect();
        refused.extend(
            notes
                .into_iter()
                .map(|note| ("settings".to_owned(), note.message)),
        );
        (loaded.collect(), refused)
    }
}

const SH: &str = "#!/bin/sh\n";

#[test]
fn names_say_which_event_a_file_is_for() {
    let home = Home::new(&[
        ("agent/hooks/tool_call-guard.sh", SH, 0o755),
        ("agent/hooks/agent_end.notify", SH, 0o644),
        ("agent/hooks/session_before_compact_x", SH, 0o755),
        ("agent/hooks/context.py", "print()", 0o644),
        ("agent/hooks/guard.sh", SH, 0o755),
        ("agent/hooks/message_update.sh", SH, 0o755),
        ("agent/hooks/inputs.sh", SH, 0o755),
        ("agent/hooks/tool_call.sh.disabled", SH, 0o755),
        ("agent/hooks/README.md", "", 0o644),
        ("agent/hooks/tool_result.ts", "export default () => {}", 0o755),
        ("agent/hooks/tool_result.js", "#!/usr/bin/env node\n", 0o755),
        ("cwd/.pi/hooks/tool_call.sh", SH, 0o755),
    ]);
    let (loaded, refused) = home.found(&Choice::default(), Some(true));
    assert_eq!(
        loaded,
        [
            "agent_end agent_end.notify",
            "session_before_compact session_before_compact_x",
            "tool_call tool_call-guard.sh",
            "tool_result tool_result.js",
            "tool_call tool_call.sh"
        ]
    );
    let names: Vec<&str> = refused.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["context.py", "guard.sh", "inputs.sh", "message_update.sh"]
    );
    assert!(refused["context.py"].contains("not executable"));
    assert!(refused["guard.sh"].contains("does not begin with the name of an event"));
    assert!(refused["message_update.sh"].contains("message_end comes once"));
    for approved in [None, Some(false)] {
        let (loaded, _) = home.found(&Choice::default(), approved);
        assert!(
            !loaded.contains(&"tool_call tool_call.sh".to_owned()),
            "{approved:?}"
        );
    }
    let omp = Home::new(&[
        ("cwd/.omp/hooks/input.sh", SH, 0o755),
        ("cwd/.xcsh/hooks/input-x.sh", SH, 0o755),
    ]);
    assert!(omp.found(&Choice::default(), Some(true)).0.is_empty());
    let choice = Choice {
        generation: Generation::Omp,
        ..Choice::default()
    };
    assert_eq!(
        omp.found(&choice, Some(true)).0,
        ["input input.sh", "input input-x.sh"]
    );
    assert!(omp.found(&choice, None).0.is_empty());
    let none = Choice {
        no_hooks: true,
        hooks: vec![
            home.path("agent/hooks/agent_end.notify"),
            home.path("agent/hooks/nothing"),
        ],
        ..Choice::default()
    };
    let (loaded, refused) = home.found(&none, Some(true));
    assert_eq!(loaded, ["agent_end agent_end.notify"]);
    assert!(refused["nothing"].contains("no such file"));
}

#[test]
fn settings_name_paths_and_commands() {
    let settings = json!({"hooks": [
        "more",
        {"event": "tool_call", "command": ["./gate.py", "--strict"], "tools": ["bash", "w*"], "timeout": 5000},
        {"event": "agent_end", "command": ["true"]},
        {"event": "no_such", "command": ["a"]},
        {"event": "message_update", "command": ["b"]},
        {"event": "agent_end", "command": ["c"], "tools": ["bash"]},
        {"event": "agent_end", "command": "d"},
    ], "hookTimeout": 700});
    let settings = settings.to_string();
    let home = Home::new(&[
        ("agent/settings.json", &settings, 0o644),
        ("agent/more/input.sh", SH, 0o755),
        (
            "cwd/.pi/settings.json",
            r#"{"hooks": [{"event": "tool_call", "command": ["evil"]}], "hookTimeout": 1}"#,
            0o644,
        ),
    ]);
    let (loaded, refused) = home.found(&Choice::default(), None);
    assert_eq!(loaded, ["input input.sh", "tool_call gate.py", "agent_end true"]);
    assert!(refused["a"].contains("no event no_such") && refused["b"].contains("every piece"));
    assert!(refused["c"].contains("not about a tool") && refused.contains_key("settings"));
    let (loaded, _) = home.found(&Choice::default(), Some(true));
    assert_eq!(loaded.last().unwrap(), "tool_call evil");
}

fn exit(code: i32, stdout: &str, stderr: &str) -> Exit {
    Exit {
        ended: Ended::Code(code),
        stdout: stdout.into(),
        stderr: stderr.into(),
    }
}

#[test]
fn exits_mean_something() {
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
    let hooks = Hooks::new(super::Finding {
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
async fn each_sees_what_the_one_before_made_of_it_and_one_block_ends_it() {
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
async fn a_check_that_fails_blocks_and_everything_else_goes_on() {
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
async fn who_takes_too_long_is_killed_with_its_group() {
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    let script = format!("sleep 60 & echo $! > {}; wait", pid.display());
    let mut slow = (*hook("tool_call", &script)).clone();
    slow.timeout = Duration::from_millis(400);
    let answer = asked("tool_call", json!({}), vec![slow.into()]).await;
    assert_eq!(answer.errors[0].error, "Hook timed out after 400ms");
    let pid = fs::read_to_string(pid).unwrap();
    let stat = PathBuf::from(format!("/proc/{}/stat", pid.trim()));
    // Killed; perhaps nobody has asked for its end yet.
    let gone = || fs::read_to_string(&stat).map_or(true, |text| text.contains(") Z "));
    for _ in 0..500 {
        if gone() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it still runs");
}

#[tokio::test]
async fn who_says_too_much_and_who_reads_nothing_is_no_trouble() {
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
async fn those_who_are_told_hear_in_order_and_are_waited_for_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let script = format!("cat >> {}", log.display());
    let (failures, mut failed) = tokio::sync::mpsc::channel(8);
    let mut hooks = Hooks::new(super::Finding {
        hooks: vec![
            (*hook("turn_end", &script)).clone(),
            (*hook("turn_end", "exit 1")).clone(),
        ],
        refused: Vec::new(),
    });
    assert!(hooks.hear("turn_end") && !hooks.answers("turn_end") && !hooks.hear("turn_start"));
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
    assert!(hooks.hear("turn_end"));
    let mut asked = Hooks::new(super::Finding {
        hooks: vec![(*hook("input", "exit 0")).clone()],
        refused: Vec::new(),
    });
    assert!(asked.answers("input") && asked.asked("input", &json!({})).is_some());
    asked.mute();
    assert!(!asked.hear("input") && asked.asked("input", &json!({})).is_none());
}
