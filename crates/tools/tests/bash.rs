//! The bash tool and the user's bash command through the toolbox, with the recorded transcripts' texts.
#![expect(clippy::unwrap_used, reason = "a failing helper is meant to stop its test")]

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use pinion_tools::{
    BashRun, Progress, ToolContext, ToolOutcome, ToolRequest, Toolbox, ToolsConfig, UserBash,
};
use process::{GuardianLaunch, Reaper};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

struct Room {
    dir: tempfile::TempDir,
    toolbox: Toolbox,
}

impl Room {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut ToolsConfig)) -> Self {
        Self::with_reaper(Reaper::direct(), change)
    }

    fn with_reaper(reaper: Reaper, change: impl FnOnce(&mut ToolsConfig)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut config = ToolsConfig {
            tmp_dir: dir.path().to_path_buf(),
            env: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
            ..ToolsConfig::default()
        };
        change(&mut config);
        Self {
            dir,
            toolbox: Toolbox::new(config, reaper),
        }
    }

    async fn call(&self, name: &str, args: Value, progress: &Progress) -> ToolOutcome {
        let request = ToolRequest {
            name: name.into(),
            args: args.as_object().unwrap().clone(),
        };
        let ctx = ToolContext {
            cwd: self.dir.path().to_path_buf(),
            progress: progress.clone(),
            env: vec![("PI_SESSION_ID".into(), OsString::from("s1"))],
            ..ToolContext::default()
        };
        self.toolbox.run(request, ctx).await
    }

    async fn bash(&self, args: Value) -> (String, Option<Value>, bool) {
        let outcome = self.call("bash", args, &Progress::default()).await;
        (
            outcome.result.joined_text(),
            outcome.result.details,
            outcome.is_error,
        )
    }

    /// Runs a command that prints `output` at its start and then times out. On a busy machine the timeout can stop the shell
    /// before it prints. The command then runs again, ten times at most.
    async fn timed_out(&self, args: Value, output: &str) -> (String, Option<Value>, bool) {
        let mut found = self.bash(args.clone()).await;
        for _ in 1..10 {
            if found.0.starts_with(output) {
                break;
            }
            assert!(found.0.starts_with("Command timed out"), "{}", found.0);
            found = self.bash(args.clone()).await;
        }
        found
    }

    async fn user(&self, command: &str) -> BashRun {
        let request = UserBash {
            command: command.into(),
            cwd: self.dir.path().to_path_buf(),
            cancel: CancellationToken::new(),
            deltas: None,
            env: Vec::new(),
        };
        self.toolbox.user_bash(request).await.unwrap()
    }
}

#[tokio::test]
async fn default_timeout_stops_bash_without_timeout() {
    let room = Room::with(|config| config.bash_timeout = Some(Duration::from_millis(300)));
    let (text, _, is_error) = room
        .timed_out(json!({ "command": "echo a; sleep 30" }), "a\n")
        .await;
    assert_eq!(
        (text.as_str(), is_error),
        ("a\n\n\nCommand timed out after 0.3 seconds", true)
    );
    let own = json!({ "command": "sleep 0.6; echo b", "timeout": 20 });
    assert_eq!(room.bash(own).await.0, "b\n");
    assert_eq!(room.user("sleep 0.6; echo c").await.output, "c\n");
    assert_eq!(
        room.toolbox.limits(room.dir.path()),
        ["A command of bash without a timeout is stopped after 0.3 seconds."]
    );
}

#[tokio::test]
async fn bash_results_match_recording() {
    // tool-bash, tool-bash-ansi, tool-bash-timeout
    let room = Room::new();
    let empty = || Some(json!({}));
    for (args, text, details) in [
        (
            json!({ "command": "echo out; echo err >&2; echo out" }),
            "out\nerr\nout\n",
            None,
        ),
        (
            json!({ "command": "echo failing; exit 3" }),
            "failing\n\n\nCommand exited with code 3",
            empty(),
        ),
        (json!({ "command": "true" }), "(no output)", None),
        (
            json!({ "command": "nosuchcommand_xyz 2>/dev/null" }),
            "(no output)\n\nCommand exited with code 127",
            empty(),
        ),
        (
            json!({ "command": "false" }),
            "(no output)\n\nCommand exited with code 1",
            empty(),
        ),
        (json!({ "command": "printf 'no newline'" }), "no newline", None),
        (
            json!({ "command": "printf '\\033[31mred\\033[0m \\001 a\\rb\\n'" }),
            "\u{1b}[31mred\u{1b}[0m \u{1} a\rb\n",
            None,
        ),
        (
            json!({ "command": "printf '\\377\\376 bad utf8\\n'" }),
            "\u{fffd}\u{fffd} bad utf8\n",
            None,
        ),
        (json!({ "command": "cat | wc -c" }), "0\n", None),
        (
            json!({ "command": "[ -t 0 ] && echo tty || echo notty" }),
            "notty\n",
            None,
        ),
        (
            json!({ "command": "sleep 30", "timeout": 0.3 }),
            "Command timed out after 0.3 seconds",
            empty(),
        ),
        (json!({ "command": "echo fine", "timeout": -1 }), "fine\n", None),
        (
            json!({ "command": "echo fine", "timeout": 1e300 }),
            "fine\n",
            None,
        ),
        (
            json!({ "command": "echo dying; kill -9 $$" }),
            "dying\n\n\nCommand was killed by signal 9 (SIGKILL)",
            empty(),
        ),
        (
            json!({ "command": "echo $PI_SESSION_ID ${PINION_COMMAND_ID:+marked} $HOME" }),
            "s1 marked\n",
            None,
        ),
        (
            json!({ "command": "nosuchcommand_xyz" }),
            "/bin/bash: line 1: nosuchcommand_xyz: command not found\n\n\nCommand exited with code 127",
            empty(),
        ),
    ] {
        assert_eq!(
            room.bash(args.clone()).await,
            (text.to_owned(), details.clone(), details.is_some()),
            "{args}"
        );
    }
    let long = json!({ "command": "echo before; sleep 30; echo after", "timeout": 1 });
    let text = "before\n\n\nCommand timed out after 1 seconds".to_owned();
    assert_eq!(room.timed_out(long, "before\n").await, (text, empty(), true));
    assert_eq!(std::fs::read_dir(room.dir.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn long_bash_outputs_match_recording() {
    // tool-bash-truncate-bytes
    let room = Room::new();
    let command = r#"awk 'BEGIN{s=sprintf("%300s","");gsub(/ /,"x",s);for(i=1;i<=400;i++)print i,s}'"#;
    let progress = Progress::default();
    let outcome = room.call("bash", json!({ "command": command }), &progress).await;
    let details = outcome.result.details.clone().unwrap();
    let path = details["fullOutputPath"].as_str().unwrap();
    let name = Path::new(path).file_name().unwrap().to_str().unwrap();
    assert!(
        name.starts_with("pi-bash-") && name.ends_with(".log") && name.len() == 28,
        "{name}"
    );
    let text = outcome.result.joined_text();
    assert!(text.ends_with(&format!(
        "x\n\n\n[Showing lines 234-400 of 400 (50.0KB limit). Full output: {path}]"
    )));
    assert_eq!(std::fs::read(path).unwrap().len(), 121_892);
    assert_eq!(details["truncation"]["outputBytes"], 50_935);
    // The last update shows the same end, without the notice.
    let last = progress.take().unwrap();
    assert_eq!(last.details, outcome.result.details);
    assert_eq!(last.joined_text(), details["truncation"]["content"]);

    let (text, details, _) = room
        .bash(json!({ "command": "head -c 200000 /dev/zero | tr '\\0' 'q'" }))
        .await;
    let details = details.unwrap();
    assert!(text.contains("q\n\n[Showing last 50.0KB of line 1 (line is 195.3KB). Full output: "));
    assert_eq!(details["truncation"]["lastLinePartial"], true);

    let (text, details, failed) = room.bash(json!({ "command": "seq 1 3000; exit 1" })).await;
    assert!(text.starts_with("1002\n") && text.ends_with("]\n\nCommand exited with code 1"));
    assert_eq!((details, failed), (Some(json!({})), true));
    assert_eq!(room.bash(json!({ "command": "seq 1 2000" })).await.1, None);
}

#[tokio::test]
async fn failed_command_of_newest_pi_keeps_details() {
    let room = Room::with(|config| config.dialect = wire::Dialect::PiDelta);
    let (text, details, failed) = room.bash(json!({ "command": "seq 1 3000; exit 1" })).await;
    assert!(text.ends_with("]\n\nCommand exited with code 1") && failed);
    let details = details.unwrap();
    assert_eq!(details["truncation"]["totalLines"], 3000);
    assert!(Path::new(details["fullOutputPath"].as_str().unwrap()).exists());
    let (_, details, failed) = room.bash(json!({ "command": "echo a; exit 1" })).await;
    assert_eq!((details, failed), (None, true));
}

#[tokio::test]
async fn bash_updates_show_whole_output() {
    // tool-bash-updates
    let (room, progress) = (Room::new(), Progress::default());
    let command = "echo one; while [ ! -e go1 ]; do sleep 0.02; done; echo two; while [ ! -e go2 ]; do sleep 0.02; done; echo three";
    let run = room.call("bash", json!({ "command": command }), &progress);
    let watch = async {
        let mut seen = Vec::new();
        for (text, file) in [("one\n", "go1"), ("one\ntwo\n", "go2")] {
            loop {
                let update = progress.next().await;
                seen.push((update.joined_text(), update.details));
                if seen.last().unwrap().0 == text {
                    break;
                }
            }
            std::fs::write(room.dir.path().join(file), "").unwrap();
        }
        seen
    };
    let (outcome, seen) = tokio::join!(run, watch);
    assert!(
        seen.iter()
            .all(|(text, details)| text.is_empty() || *details == Some(json!({})))
    );
    assert_eq!(outcome.result.joined_text(), "one\ntwo\nthree\n");
    assert_eq!(progress.take().unwrap().joined_text(), "one\ntwo\nthree\n");
}

#[tokio::test]
async fn background_children_do_not_delay_bash_result() {
    let room = Room::new();
    let start = std::time::Instant::now();
    assert_eq!(
        room.bash(json!({ "command": "(sleep 30 & echo bg)" })).await.0,
        "bg\n"
    );
    assert!(start.elapsed() < Duration::from_secs(10));
    let late = "(for i in 1 2 3 4 5 6; do sleep 0.04; echo $i; done) & echo first";
    // On a busy machine a child can pause for longer than its output is waited for.
    let mut texts = Vec::new();
    while texts.len() < 10
        && texts
            .last()
            .is_none_or(|text| text != "first\n1\n2\n3\n4\n5\n6\n")
    {
        texts.push(room.bash(json!({ "command": late })).await.0);
    }
    assert!(texts.len() < 10, "{texts:?}");
}

#[tokio::test]
async fn bash_uses_prefix_shell_and_directory() {
    // shell-prefix
    let room = Room::with(|config| config.shell_command_prefix = Some("X=prefixed".into()));
    assert_eq!(room.bash(json!({ "command": "echo $X" })).await.0, "prefixed\n");
    assert_eq!(room.user("echo $X").await.output, "prefixed\n");
    let room = Room::with(|config| config.shell_path = Some("/no/shell".into()));
    assert_eq!(
        room.bash(json!({ "command": "true" })).await.0,
        "Custom shell path not found: /no/shell"
    );
    let room = Room::new();
    std::fs::remove_dir_all(room.dir.path()).unwrap();
    assert!(
        room.bash(json!({ "command": "true" }))
            .await
            .0
            .starts_with("Working directory does not exist: ")
    );
}

/// Expected counts of output that is reported in full.
#[tokio::test]
async fn bash_start_failure_names_cause() {
    let room = Room::with(|config| config.shell_path = Some("/etc/passwd".into()));
    let (text, _, is_error) = room.bash(json!({ "command": "true" })).await;
    assert!(
        is_error && text.starts_with("Failed to start /etc/passwd: "),
        "{text}"
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn bash_without_guardian_names_cause() {
    let launch = GuardianLaunch {
        program: "/no/such/guardian".into(),
        args: Vec::new(),
    };
    let room = Room::with_reaper(Reaper::new(launch), |_| {});
    let (text, _, is_error) = room.bash(json!({ "command": "true" })).await;
    assert!(
        is_error && text.starts_with("The process guardian is not available: "),
        "{text}"
    );
}

#[tokio::test]
async fn concurrent_user_commands_are_aborted_separately() {
    let room = Room::new();
    let first = CancellationToken::new();
    let start = |command: &str, cancel: &CancellationToken| {
        room.toolbox.user_bash(UserBash {
            command: command.to_owned(),
            cwd: room.dir.path().to_path_buf(),
            cancel: cancel.clone(),
            deltas: None,
            env: Vec::new(),
        })
    };
    let long = start("echo partial; touch up; sleep 1000", &first);
    let short = async {
        let begun = std::time::Instant::now();
        while !room.dir.path().join("up").exists() {
            assert!(begun.elapsed() < Duration::from_secs(20));
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let done = start("echo side; exit 7", &CancellationToken::new())
            .await
            .unwrap();
        first.cancel();
        done
    };
    let (long, short) = tokio::join!(long, short);
    assert_eq!(
        (short.output.as_str(), short.exit_code, short.cancelled),
        ("side\n", Some(7), false)
    );
    let long = long.unwrap();
    assert_eq!(
        (long.output.as_str(), long.exit_code, long.cancelled),
        ("partial\n", None, true)
    );
}

fn counts(output: &str) -> wire::state::OutputCounts {
    let (lines, bytes) = (output.split('\n').count() as u64, output.len() as u64);
    wire::state::OutputCounts {
        total_lines: lines,
        total_bytes: bytes,
        output_lines: lines,
        output_bytes: bytes,
    }
}

#[tokio::test]
async fn user_commands_match_recording() {
    // bash-command, bash-exit-signals, bash-missing-command, bash-big-line, bash-big-output
    let room = Room::new();
    let run = |output: &str, exit_code| BashRun {
        output: output.into(),
        exit_code,
        cancelled: false,
        truncated: false,
        full_output_path: None,
        counts: counts(output),
    };
    for (command, expected) in [
        ("echo hello; echo err >&2", run("hello\nerr\n", Some(0))),
        ("exit 7", run("", Some(7))),
        ("", run("", Some(0))),
        ("kill -9 $$", run("", None)),
        (
            "nosuchcommand_xyz",
            run(
                "/bin/bash: line 1: nosuchcommand_xyz: command not found\n",
                Some(127),
            ),
        ),
        ("(sleep 30 & echo bg)", run("bg\n", Some(0))),
        (
            "printf '\\033[31mred\\033[0m \\001a\\rb\\377\\n'",
            run("red ab\u{fffd}\n", Some(0)),
        ),
    ] {
        assert_eq!(room.user(command).await, expected, "{command}");
    }
    let line = room.user("head -c 120000 /dev/zero | tr '\\0' 'q'").await;
    assert_eq!(
        (line.output.len(), line.truncated, line.exit_code),
        (51_200, true, Some(0))
    );
    let many = room.user("seq 1 3000").await;
    assert!(many.output.starts_with("1002\n") && many.output.len() == 9995 && many.truncated);
    assert_eq!((many.counts.total_lines, many.counts.total_bytes), (3001, 13_893));
    assert_eq!(many.counts.output_bytes, 9995);
    // The log holds the cleaned text.
    let colour = room
        .user("for i in $(seq 3000); do printf '\\033[1m%d\\033[0m\\n' $i; done")
        .await;
    let log = std::fs::read_to_string(colour.full_output_path.unwrap()).unwrap();
    assert_eq!(log, (1..=3000).map(|i| format!("{i}\n")).collect::<String>());
}

#[tokio::test]
async fn deltas_reach_slow_reader_completely() {
    let room = Room::new();
    let (deltas, mut listen) = mpsc::channel(1);
    let request = UserBash {
        command: "seq 1 60000".into(),
        cwd: room.dir.path().to_path_buf(),
        cancel: CancellationToken::new(),
        deltas: Some(deltas),
        env: Vec::new(),
    };
    let listen = async {
        let mut all = String::new();
        while let Some(delta) = listen.recv().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
            all.push_str(&delta);
        }
        all
    };
    let (run, all) = tokio::join!(room.toolbox.user_bash(request), listen);
    assert_eq!(all, (1..=60_000).map(|i| format!("{i}\n")).collect::<String>());
    assert!(run.unwrap().truncated);
}

#[tokio::test]
async fn output_of_extension_command_is_cleaned_and_logged() {
    let room = Room::new();
    let mut output = room.toolbox.user_output();
    assert_eq!(output.push(b"one\x1b[3").await, "one");
    assert_eq!(output.push(b"1m two\r\n").await, " two\n");
    assert_eq!(output.outcome(Some(3), false).output, "one two\n");
    let piece = "line\n".repeat(5_000);
    for _ in 0..4 {
        assert_eq!(output.push(piece.as_bytes()).await, piece);
    }
    assert_eq!(output.push(b"\xe2\x82").await, "");
    assert_eq!(output.finish().await, "\u{fffd}");
    let run = output.outcome(None, true);
    assert!(run.cancelled && run.truncated && run.output.len() < piece.len());
    let log = std::fs::read_to_string(run.full_output_path.unwrap()).unwrap();
    assert_eq!(log, format!("one two\n{}\u{fffd}", piece.repeat(4)));
}

#[tokio::test]
async fn abort_ends_command_with_stalled_reader() {
    let room = Room::new();
    let (deltas, listen) = mpsc::channel(1);
    let cancel = CancellationToken::new();
    let request = UserBash {
        command: "yes".into(),
        cwd: room.dir.path().to_path_buf(),
        cancel: cancel.clone(),
        deltas: Some(deltas),
        env: Vec::new(),
    };
    let stop = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        cancel.cancel();
    };
    let (run, ()) = tokio::join!(
        tokio::time::timeout(Duration::from_secs(20), room.toolbox.user_bash(request)),
        stop
    );
    assert!(run.unwrap().unwrap().cancelled);
    drop(listen);
}

#[tokio::test]
async fn toolbox_results_match_recording() {
    // tool-unknown, tool-invalid-args, tool-edit-fuzzy
    let room = Room::new();
    std::fs::write(room.dir.path().join("a.txt"), "alpha\nbeta\n").unwrap();
    std::fs::write(room.dir.path().join("42"), "the answer\n").unwrap();
    for (name, args, text, failed) in [
        (
            "teleport",
            json!({ "to": "mars" }),
            "Tool teleport not found",
            true,
        ),
        (
            "read",
            json!({}),
            "Validation failed for tool \"read\":\n  - path: must have required properties path\n\nReceived arguments:\n{}",
            true,
        ),
        ("read", json!({ "path": 42 }), "the answer\n", false),
        (
            "read",
            json!({ "path": "a.txt", "limit": "1" }),
            "alpha\n\n[1 more lines in file. Use offset=2 to continue.]",
            false,
        ),
        (
            "read",
            json!({ "path": "a.txt", "limit": null, "offset": -3, "bogus": true }),
            "alpha\nbeta\n",
            false,
        ),
        (
            "write",
            json!({ "path": null, "content": "x" }),
            "Successfully wrote 1 bytes to null",
            false,
        ),
        (
            "edit",
            json!({ "path": "a.txt", "oldText": "alpha", "newText": "A" }),
            "Successfully replaced 1 block(s) in a.txt.",
            false,
        ),
        (
            "edit",
            json!({ "path": "a.txt", "edits": "[{\"oldText\":\"A\",\"newText\":\"B\"}]" }),
            "Successfully replaced 1 block(s) in a.txt.",
            false,
        ),
        (
            "edit",
            json!({ "path": "missing.txt", "edits": [{ "oldText": "a", "newText": "b" }] }),
            "Could not edit file: missing.txt. Error code: ENOENT.",
            true,
        ),
        ("ls", json!({}), "42\na.txt\nnull", false),
        ("grep", json!({ "pattern": "^B" }), "a.txt:1: B", false),
        ("find", json!({ "pattern": "*.txt" }), "a.txt", false),
        (
            "read",
            json!({ "path": "a\u{0}b" }),
            "The path must not contain null bytes: a\\0b",
            true,
        ),
    ] {
        let outcome = room.call(name, args.clone(), &Progress::default()).await;
        assert_eq!(
            (outcome.result.joined_text().as_str(), outcome.is_error),
            (text, failed),
            "{name} {args}"
        );
    }
}

#[tokio::test]
async fn parallel_edits_of_one_file_all_apply() {
    let room = Room::new();
    let lines: String = (0..40).map(|i| format!("<{i}>\n")).collect();
    std::fs::write(room.dir.path().join("f"), lines).unwrap();
    let (a, b, progress) = (Progress::default(), Progress::default(), Progress::default());
    let edit = |i: usize| json!({ "path": "f", "edits": [{ "oldText": format!("<{i}>"), "newText": format!("[{i}]") }] });
    for i in (0..39).step_by(3) {
        let (x, y, z) = tokio::join!(
            room.call("edit", edit(i), &a),
            room.call("edit", edit(i + 1), &b),
            room.call("edit", edit(i + 2), &progress)
        );
        assert!(!x.is_error && !y.is_error && !z.is_error);
    }
    let text = std::fs::read_to_string(room.dir.path().join("f")).unwrap();
    assert_eq!((text.matches('[').count(), text.matches('<').count()), (39, 1));
}

#[tokio::test]
async fn cancelled_call_does_nothing() {
    let room = Room::new();
    let cancel = CancellationToken::new();
    cancel.cancel();
    for (name, args, text) in [
        (
            "write",
            json!({ "path": "x", "content": "" }),
            "Operation aborted",
        ),
        ("read", json!({ "path": "x" }), "Operation aborted"),
        ("bash", json!({ "command": "touch x" }), "Command aborted"),
    ] {
        let request = ToolRequest {
            name: name.into(),
            args: args.as_object().unwrap().clone(),
        };
        let ctx = ToolContext {
            cwd: room.dir.path().into(),
            cancel: cancel.clone(),
            ..ToolContext::default()
        };
        let outcome = room.toolbox.run(request, ctx).await;
        assert_eq!(
            (outcome.result.joined_text().as_str(), outcome.is_error),
            (text, true)
        );
    }
    assert!(!room.dir.path().join("x").exists());
}
