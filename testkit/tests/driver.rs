//! The driver against small shell scripts that play an agent, and the files of a workspace.
#![expect(clippy::unwrap_used, reason = "helpers of a test may panic")]

use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::Error;
use testkit::driver::{Agent, AgentConfig, Runner, Signal, processes_marked};
use testkit::llm::{Reply, ScriptedServer};
use testkit::workspace::Workspace;

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(150);

fn shell(script: &str) -> AgentConfig {
    AgentConfig::new("sh").args(["-c", script])
}

fn echo() -> Agent {
    Agent::spawn(shell(r#"while IFS= read -r l; do printf '%s\n' "$l"; done"#)).unwrap()
}

#[test]
fn wait_moves_forward_and_responses_anywhere() {
    let agent = echo();
    for n in 1..=2 {
        agent
            .send(&json!({"type": "response", "id": format!("r{n}")}))
            .unwrap();
        agent.send(&json!({"type": "agent_end", "n": n})).unwrap();
    }
    assert_eq!(agent.wait_type("agent_end", LONG).unwrap()["n"], 1);
    assert_eq!(agent.wait_type("agent_end", LONG).unwrap()["n"], 2);
    assert_eq!(agent.response("r1", LONG).unwrap()["id"], "r1");
    assert_eq!(agent.response("r2", LONG).unwrap()["id"], "r2");
    let late = agent.wait_type("agent_end", SHORT).unwrap_err();
    assert!(matches!(late, Error::Timeout { .. }));
    assert!(late.to_string().contains(r#""n":2"#), "{late}");
    assert_eq!(agent.lines().len(), 4);
    let reply = agent.call(&json!({"type": "response", "id": "x"}), LONG).unwrap();
    assert_eq!(reply["id"], "x");
}

#[test]
fn non_json_lines_are_kept_as_text() {
    let agent = Agent::spawn(shell(r#"printf 'oops\n{}\n{"a":1}'; printf err >&2"#)).unwrap();
    assert!(agent.wait_exit(LONG).unwrap().success());
    assert_eq!(agent.wait(|v| v["a"] == 1, LONG).unwrap(), json!({"a": 1}));
    let lines = agent.lines();
    assert_eq!(*lines[0].value, json!({"$raw": "oops"}));
    assert_eq!(
        lines.iter().map(|l| l.json).collect::<Vec<_>>(),
        [false, true, true]
    );
    let end = Instant::now() + LONG;
    while agent.stderr() != "err" && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(agent.stderr(), "err");
}

#[test]
fn early_exit_is_reported_with_status() {
    let agent = Agent::spawn(shell("echo '{\"type\": \"ready\"}'; exit 3")).unwrap();
    match agent.wait_type("agent_end", LONG).unwrap_err() {
        Error::Ended { status, context, .. } => {
            assert_eq!(status.unwrap().code(), Some(3));
            assert!(context.contains("ready"));
        }
        other => panic!("{other}"),
    }
    assert!(agent.ended());
    assert!(matches!(agent.signal(Signal::TERM), Err(Error::Exited)));
}

#[test]
fn agent_environment_is_clean() {
    let config = shell("env").env("GIVEN", "yes").unmarked();
    let agent = Agent::spawn(config).unwrap();
    agent.wait_exit(LONG).unwrap();
    let _ = agent.wait(|_| false, LONG);
    let names: Vec<String> = agent
        .lines()
        .iter()
        .map(|l| {
            l.value["$raw"]
                .as_str()
                .unwrap()
                .split('=')
                .next()
                .unwrap()
                .to_owned()
        })
        // Set by the shell itself.
        .filter(|n| !matches!(n.as_str(), "PWD" | "_" | "SHLVL" | "OLDPWD"))
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.contains(&"PATH".to_owned()) && names.contains(&"GIVEN".to_owned()));
}

#[test]
fn agent_ends_on_closed_stdin_and_signals() {
    let agent = echo();
    agent.close_stdin();
    assert!(agent.wait_exit(LONG).unwrap().success());
    assert!(matches!(agent.send(&json!({})), Err(Error::StdinClosed)));

    let agent = echo();
    assert!(matches!(agent.wait_exit(SHORT), Err(Error::Timeout { .. })));
    agent.signal(Signal::TERM).unwrap();
    assert_eq!(agent.wait_exit(LONG).unwrap().signal(), Some(15));

    let agent = echo();
    agent.kill9().unwrap();
    assert_eq!(agent.wait_exit(LONG).unwrap().signal(), Some(9));
}

#[test]
fn write_to_stalled_agent_is_bounded() {
    let agent = Agent::spawn(shell("sleep 60").write_timeout(SHORT)).unwrap();
    match agent.send_raw(&vec![b'x'; 1 << 20]).unwrap_err() {
        Error::StdinBlocked { written, .. } => assert!(written > 0 && written < 1 << 20),
        other => panic!("{other}"),
    }
}

#[test]
fn paused_reader_blocks_agent() {
    // More than a pipe holds, so the agent can reach its end only if the driver reads.
    let script = r#"i=0; while [ $i -lt 5000 ]; do echo '{"pad": "0123456789012345678901234567890123456789"}'; i=$((i+1)); done"#;
    let agent = Agent::spawn(shell(script).paused()).unwrap();
    assert!(agent.wait_exit(Duration::from_millis(500)).is_err());
    assert_eq!(agent.totals(), (0, 0));
    agent.resume_stdout();
    assert!(agent.wait_exit(LONG).unwrap().success());
    assert!(agent.wait(|_| false, LONG).is_err());
    assert_eq!(agent.totals().0, 5000);
}

#[test]
fn kept_output_is_bounded() {
    let script = r#"i=0; while [ $i -lt 1000 ]; do echo "{\"n\": $i}"; i=$((i+1)); done"#;
    let agent = Agent::spawn(shell(script).keep(100)).unwrap();
    agent.wait_exit(LONG).unwrap();
    assert!(agent.wait(|_| false, LONG).is_err());
    let lines = agent.lines();
    assert!(lines.len() < 20);
    assert_eq!(lines.last().unwrap().value["n"], 999);
    assert_eq!(agent.totals().0, 1000);
}

/// True if the process exists and is no zombie.
fn lives(pid: u64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

fn gone(pid: u64) -> bool {
    let end = Instant::now() + LONG;
    while lives(pid) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    !lives(pid)
}

#[test]
fn dropped_agent_takes_children_along() {
    let agent = Agent::spawn(shell("sleep 300 & echo \"{\\\"pid\\\": $!}\"; wait")).unwrap();
    let child = agent.wait(|v| v["pid"].is_u64(), LONG).unwrap()["pid"]
        .as_u64()
        .unwrap();
    assert!(lives(child));
    let pid = u64::from(agent.pid());
    drop(agent);
    assert!(gone(child) && gone(pid));
}

#[test]
fn detached_children_are_found_by_mark() {
    // The last `:` keeps the shell from becoming `sleep`: a process has no environment for a moment while it does that.
    let script = r#"setsid sh -c 'echo "{\"pid\": $$}"; sleep 300; :' & wait"#;
    let agent = Agent::spawn(shell(script)).unwrap();
    let child = agent.wait(|v| v["pid"].is_u64(), LONG).unwrap()["pid"]
        .as_u64()
        .unwrap();
    assert!(agent.processes().contains(&u32::try_from(child).unwrap()));
    agent.kill9().unwrap();
    agent.wait_exit(LONG).unwrap();
    assert!(
        agent.processes().contains(&u32::try_from(child).unwrap()),
        "kill9 spares the children"
    );
    let mark = agent.mark().to_owned();
    drop(agent);
    assert!(gone(child));
    assert!(processes_marked(&mark).is_empty());
}

#[test]
fn step_script_drives_agent() {
    let server = ScriptedServer::start([Reply::text(["x"]).gate("g")]).unwrap();
    let workspace = Workspace::new(&server.url()).unwrap();
    let script = r#"touch started; while IFS= read -r l; do printf '%s\n' "$l"; done"#;
    let agent = Agent::spawn(workspace.agent("sh").args(["-c", script])).unwrap();
    let mut runner = Runner::new(&agent).server(&server).cwd(workspace.cwd());
    runner
        .run_json(
            r#"[{"wait_file": "started"},
                {"send": {"type": "response", "id": "1", "text": "hello"}}, {"response": "1"},
                {"wait": {"type": "response", "text": {"$contains": "ell"}, "error": {"$exists": false}}},
                {"send_raw": "[1]", "eol": "\r\n"}, {"wait": [1]}, {"release": "g"}, {"wait_requests": 0},
                {"write_files": {"made": "by the test"}}, {"wait_file": "made"},
                {"send": {"type": "ui", "id": "u-7", "data": {"ids": [1, "two"]}}},
                {"wait": {"type": "ui"}, "capture": {"ui": "id", "two": "data.ids.1"}},
                {"send": {"type": "answer", "id": "${ui}"}}, {"wait": {"id": "${ui}", "type": "answer"}},
                {"quiet": 0.05}, {"sleep": 0.01}, {"close_stdin": 1}, {"wait_exit": 20}]"#,
        )
        .unwrap();
    let failed = runner
        .run_json(r#"[{"wait": {"type": "never"}, "timeout": 0.1}]"#)
        .unwrap_err();
    assert!(matches!(failed, Error::Ended { .. }), "{failed}");
    let unknown = runner.run_json(r#"[{"sleep": 0}, {}]"#).unwrap_err();
    assert!(matches!(unknown, Error::Step { index: 1, .. }), "{unknown}");
}

#[test]
fn workspace_points_agent_at_server() {
    let workspace = Workspace::new("http://127.0.0.1:1").unwrap();
    let read = |name: &str| -> Value {
        serde_json::from_slice(&std::fs::read(workspace.agent_dir().join(name)).unwrap()).unwrap()
    };
    let models = read("models.json");
    let providers = models["providers"].as_object().unwrap();
    assert_eq!(
        providers["mock-anthropic"]["baseUrl"],
        "http://127.0.0.1:1/anthropic"
    );
    assert_eq!(
        providers["mock-openai"]["baseUrl"],
        "http://127.0.0.1:1/openai/v1"
    );
    assert_eq!(providers["mock-anthropic"]["models"][0]["contextWindow"], 200_000);
    assert_eq!(
        read("settings.json"),
        json!({"retry": {"provider": {"maxRetries": 0}}})
    );
    workspace.write("deep/er/file", "x").unwrap();
    let script = r#"printf '"%s"\n' "$HOME" "$PI_CODING_AGENT_DIR" "$(pwd)" "$(cat deep/er/file)""#;
    let agent = Agent::spawn(workspace.agent("sh").args(["-c", script])).unwrap();
    agent.wait_exit(LONG).unwrap();
    let _ = agent.wait(|_| false, LONG);
    let said: Vec<String> = agent
        .lines()
        .iter()
        .map(|l| l.value.as_str().unwrap().to_owned())
        .collect();
    let canonical = workspace.cwd().canonicalize().unwrap();
    assert_eq!(
        said[..2],
        [workspace.home(), workspace.agent_dir()].map(|p| p.display().to_string())
    );
    assert_eq!(said[2..], [canonical.display().to_string(), "x".to_owned()]);
    let root = workspace.root().to_owned();
    drop(workspace);
    assert!(!root.exists());
}
