//! What a first user meets: the program without arguments in a terminal, help, errors that name the next command, and progress
//! on a terminal.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::llm::{ErrorKind, Reply};

use crate::extensions::extended;
use crate::kit::{PROGRAM, World, answers, until, write_program};

/// Runs a program in a pseudo terminal: `expect` is a list of texts to wait for and what to type then. The file `done` is made
/// after the last of them. Arguments and result are JSON on stdin and stdout.
const TERMINAL: &str = r#"
import json, os, pty, select, signal, sys, time
job = json.load(sys.stdin)
pid, fd = pty.fork()
if pid == 0:
    os.chdir(job["cwd"])
    if job.get("out"):
        os.dup2(os.open(job["out"], os.O_CREAT | os.O_WRONLY, 0o600), 1)
    os.execve(job["argv"][0], job["argv"], job["env"])
seen, steps, end, at = b"", job["expect"], time.time() + 80, 0
while time.time() < end:
    # The last step also waits for a file, if one is named.
    is_due = len(steps) > 1 or not job.get("file") or os.path.exists(job["file"])
    if steps and is_due and steps[0][0].encode() in seen[at:]:
        at = len(seen)
        os.write(fd, steps.pop(0)[1].encode())
    if not steps and job.get("done"):
        open(job.pop("done"), "w").close()
    if select.select([fd], [], [], 0.05)[0]:
        try:
            piece = os.read(fd, 65536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
if time.time() >= end:
    os.kill(pid, signal.SIGKILL)
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(json.dumps({"seen": seen.decode(errors="replace"), "code": code, "left": len(steps)}))
"#;

/// The screen and the exit code.
fn terminal(world: &World, args: &[&str], more: &Value, expect: &[(&str, &str)]) -> (String, i64) {
    let mut env = json!({"TERM": "xterm", "PATH": std::env::var("PATH").unwrap()});
    for (name, value) in world.dir.env() {
        env[name.to_str().unwrap()] = value.to_str().unwrap().into();
    }
    env["TERM"] = "xterm".into();
    let argv: Vec<&str> = [PROGRAM].into_iter().chain(args.iter().copied()).collect();
    let mut job = json!({"argv": argv, "env": env, "cwd": world.dir.cwd(), "expect": expect});
    for (key, value) in more.as_object().into_iter().flatten() {
        if key == "env" {
            for (name, value) in value.as_object().unwrap() {
                job["env"][name] = value.clone();
            }
        } else {
            job[key] = value.clone();
        }
    }
    let mut python = Command::new("python3")
        .args(["-c", TERMINAL])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    python
        .stdin
        .take()
        .unwrap()
        .write_all(job.to_string().as_bytes())
        .unwrap();
    let output = python.wait_with_output().unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let seen = result["seen"].as_str().unwrap().to_owned();
    assert_eq!(result["left"], 0, "{seen}");
    (seen, result["code"].as_i64().unwrap())
}

/// The seconds that a line of progress with this label showed.
fn seconds_shown(seen: &str, label: &str) -> Vec<u64> {
    let start = format!("{label} (");
    seen.split(&start)
        .skip(1)
        .filter_map(|line| line.split_once(" s)")?.0.parse().ok())
        .collect()
}

const OFFER: &str = "Press Enter to open the web page";

#[test]
fn bare_terminal_start_explains_and_offers_page() {
    let world = World::new([]);
    let (seen, code) = terminal(&world, &[], &json!({}), &[(OFFER, "\u{3}")]);
    assert!(code != 0, "{seen}");
    for way in [
        "pinion -p",
        "pinion --mode rpc",
        "pinion --mode web --open",
        "pinion doctor",
    ] {
        assert!(seen.contains(way), "{way}: {seen}");
    }
    let (seen, code) = terminal(&world, &[], &json!({}), &[(OFFER, "\u{4}")]);
    assert_eq!(code, 0, "{seen}");
    let (seen, code) = terminal(&world, &[], &json!({}), &[(OFFER, "fix the bug\n")]);
    assert_eq!(code, 0, "{seen}");
    assert!(seen.contains("pinion -p \"fix the bug\""), "{seen}");
    assert!(world.session_files().is_empty());
}

#[test]
fn enter_key_opens_web_page() {
    let world = World::new([]);
    // The program that opens pages writes down what it was asked for.
    let bin = world.dir.root().join("bin");
    let opened = world.dir.root().join("opened");
    for name in ["xdg-open", "open"] {
        // In one step: the file is read as soon as it is there.
        let script = format!(
            "#!/bin/sh\necho \"$1\" > {0}.new && mv {0}.new {0}\n",
            opened.display()
        );
        write_program(&bin.join(name), &script);
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let (seen, _) = terminal(
        &world,
        &[],
        &json!({"env": {"PATH": path}, "file": opened}),
        &[(OFFER, "\n"), ("Token:", "\u{3}")],
    );
    let page = std::fs::read_to_string(&opened).unwrap();
    assert!(
        page.starts_with("http://127.0.0.1:") && seen.contains(page.trim()),
        "{page}: {seen}"
    );
}

#[test]
fn start_without_terminal_offers_nothing() {
    let world = World::new([]);
    let done = world.run(&[], "");
    assert_eq!((done.code, done.out.as_str()), (Some(1), ""));
    assert!(!done.err.contains(OFFER), "{}", done.err);
    for way in ["pinion -p", "--mode web --open", "--mode rpc"] {
        assert!(done.err.contains(way), "{}", done.err);
    }
}

#[test]
fn command_help_describes_that_command() {
    let world = World::new([]);
    for (name, own, other) in [
        ("auth", "auth login PROVIDER", "mcp add"),
        ("mcp", "mcp add NAME", "auth login"),
        ("models", "models update", "--web-token"),
        ("trust", "trust --list", "--web-token"),
        ("doctor", "doctor [--json]", "auth login"),
        ("schema", "schema [--json|--ts]", "--web-token"),
    ] {
        for args in [[name, "--help"], ["help", name], [name, "-h"]] {
            let done = world.run(&args, "");
            assert_eq!((done.code, done.err.as_str()), (Some(0), ""), "{args:?}");
            assert!(
                done.out.contains(own) && !done.out.contains(other),
                "{args:?}: {}",
                done.out
            );
        }
    }
    assert!(world.session_files().is_empty());
}

#[test]
fn rejected_keys_name_their_source() {
    let rejected = || World::new([Reply::error(ErrorKind::Auth)]).without_retries();
    let model = ["--model", "mock-anthropic/claude-mock", "-p", "Hi"];
    let world = rejected();
    let done = world.run(&model, "");
    assert_eq!(done.code, Some(1));
    assert!(
        done.err.contains("401") && done.err.contains("models.json"),
        "{}",
        done.err
    );
    let world = rejected();
    let key: Vec<&str> = ["--api-key", "sk-wrong"].into_iter().chain(model).collect();
    let done = world.run(&key, "");
    assert!(done.err.contains("rejected the key of --api-key"), "{}", done.err);
    assert!(!done.err.contains("sk-wrong"), "{}", done.err);
    let world = rejected();
    let auth = world.dir.agent_dir().join("auth.json");
    std::fs::write(
        &auth,
        r#"{"mock-anthropic": {"type": "api_key", "key": "sk-wrong"}}"#,
    )
    .unwrap();
    let done = world.run(&model, "");
    let named = auth.display().to_string();
    assert!(
        done.err.contains(&named) && done.err.contains("pinion auth login mock-anthropic"),
        "{}",
        done.err
    );
}

#[test]
fn rejected_key_over_rpc_names_its_source() {
    let world = World::new([Reply::error(ErrorKind::Auth)]).without_retries();
    let pi = world.start();
    let lines = pi.say("Hi");
    let error = answers(&lines)[0]["errorMessage"].as_str().unwrap().to_owned();
    let (text, advice) = error.split_once('\n').unwrap();
    assert!(text.starts_with("401 "), "{error}");
    assert!(
        advice.starts_with("mock-anthropic rejected the key in ") && advice.contains("models.json"),
        "{error}"
    );
    pi.finish();
}

#[test]
fn missing_local_server_names_file_with_address() {
    let world = World::new([]).without_retries();
    let models = world.dir.agent_dir().join("models.json");
    let file = std::fs::read_to_string(&models).unwrap();
    std::fs::write(&models, file.replace(&world.server.url(), "http://127.0.0.1:9")).unwrap();
    let done = world.run(&["--model", "mock-anthropic/claude-mock", "-p", "Hi"], "");
    assert!(done.err.contains("no server runs at 127.0.0.1:9"), "{}", done.err);
    let advice = format!("correct its \"baseUrl\" in {}", models.display());
    assert!(done.err.contains(&advice), "{}", done.err);
}

#[test]
fn refused_proxy_is_named_with_its_variable() {
    let world = World::new([]).without_retries();
    let words = [
        "HTTPS_PROXY=http://user:secret@127.0.0.1:9",
        "ANTHROPIC_API_KEY=x",
        PROGRAM,
        "--model",
        "anthropic/claude-sonnet-4-5",
        "-p",
        "Hi",
    ];
    let done = world.run_as(std::path::Path::new("/usr/bin/env"), &words, "");
    let wanted = "Connection error: connection refused: api.anthropic.com:443 through the proxy 127.0.0.1:9 (check HTTPS_PROXY)";
    assert!(
        done.err.contains(wanted) && !done.err.contains("secret"),
        "{}",
        done.err
    );
}

#[test]
fn commands_without_cluster_program_name_its_build() {
    let world = World::new([]);
    let program = std::path::Path::new(PROGRAM);
    let alone = tempfile::tempdir_in(program.parent().unwrap()).unwrap();
    let copy = alone.path().join("pinion");
    std::fs::hard_link(program, &copy).unwrap();
    for args in [
        &["worker", "--nats", "nats://127.0.0.1:9"][..],
        &["sessions", "list", "nats://127.0.0.1:9"],
        &["--mode", "rpc", "--attach", "nats://127.0.0.1:9/s"],
        &["--mode", "web", "--nats", "nats://127.0.0.1:9"],
    ] {
        let done = world.run_as(&copy, args, "");
        assert_eq!(done.code, Some(1), "{args:?}: {}", done.err);
        let build = "cargo install --locked --path crates/cluster --features nats,s3";
        assert!(
            done.err.contains("pinion-cluster") && done.err.contains(build),
            "{args:?}: {}",
            done.err
        );
    }
}

#[test]
fn web_gateway_ends_with_its_connection() {
    let world = World::new([]);
    let program = std::path::Path::new(PROGRAM);
    let alone = tempfile::tempdir_in(program.parent().unwrap()).unwrap();
    let copy = alone.path().join("pinion");
    std::fs::hard_link(program, &copy).unwrap();
    let cluster = alone.path().join("pinion-cluster");
    write_program(
        &cluster,
        "#!/bin/sh\necho \"Error: no server answers\" >&2\nexit 1\n",
    );
    let args = ["--mode", "web", "--port", "0", "--nats", "nats://127.0.0.1:9"];
    let done = world.run_as(&copy, &args, "");
    assert_eq!(done.code, Some(1), "{}", done.err);
    assert_eq!(done.err, "Error: no server answers\n");
}

#[test]
fn slow_package_manager_shows_progress_on_a_terminal() {
    let world = World::new([]);
    let bin = world.dir.root().join("bin");
    let done = world.dir.root().join("done");
    let script = format!(
        "#!/bin/sh\nuntil [ -e {} ]; do sleep 0.05; done\nexit 7\n",
        done.display()
    );
    write_program(&bin.join("npm"), &script);
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let more = json!({"env": {"PATH": path, "PI_OFFLINE": "0"}, "done": done});
    let label = "Running npm install";
    let (seen, code) = terminal(&world, &["install", "npm:x"], &more, &[(label, ""), (label, "")]);
    assert_eq!(code, 1, "{seen}");
    let seconds = seconds_shown(&seen, label);
    assert!(seconds[0] >= 1 && seconds[1] > seconds[0], "{seconds:?}: {seen}");
    assert!(seen.contains("failed with code 7"), "{seen}");
}

#[test]
fn unknown_session_error_names_directory_and_command() {
    let world = World::new([]);
    let done = world.run(&["--session", "ffffffff-none", "-p", "Hi"], "");
    assert_eq!(done.code, Some(1));
    for word in ["ffffffff-none", "sessions", "pinion --continue"] {
        assert!(done.err.contains(word), "{}", done.err);
    }
}

#[test]
fn extension_without_node_names_what_to_install() {
    let world = extended([Reply::text(["ok"])], "pi.registerFlag('plan', {});");
    let bin = world.dir.root().join("no-node");
    std::fs::create_dir(&bin).unwrap();
    let path = format!("PATH={}", bin.display());
    let words = [
        path.as_str(),
        PROGRAM,
        "--model",
        "mock-anthropic/claude-mock",
        "-p",
        "Hi",
    ];
    let done = world.run_as(std::path::Path::new("/usr/bin/env"), &words, "");
    assert!(
        done.err.contains("Node 20 or later, or Bun") && done.err.contains("--no-extensions"),
        "{}{}",
        done.out,
        done.err
    );
}

#[test]
fn slow_model_shows_progress_on_a_terminal_only() {
    let args = ["--model", "mock-anthropic/claude-mock", "-p", "Hi"];
    let label = "Waiting for Claude Mock";
    // The model answers once the terminal has shown the line.
    let shown = |world: &World, mut more: Value| {
        let done = world.dir.root().join("done");
        more["done"] = json!(done);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                until("the line on the terminal", || done.exists());
                world.server.release("answer");
            });
            terminal(world, &args, &more, &[(label, "")])
        })
    };
    let slow = || World::new([Reply::new().gate("answer").then_text(["ok"])]);
    let world = slow();
    let (seen, code) = shown(&world, json!({}));
    assert_eq!(code, 0, "{seen}");
    let (before, after) = seen.rsplit_once("\r\u{1b}[2K").unwrap();
    let seconds = seconds_shown(before, label);
    assert!(seconds[0] >= 2, "{seconds:?}: {seen}");
    assert_eq!(after.trim(), "ok", "{seen:?}");
    // The answer goes to a file, the line to the terminal.
    let world = slow();
    let out = world.dir.root().join("answer");
    let (seen, _) = shown(&world, json!({"out": out}));
    assert!(seen.contains(label), "{seen}");
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "ok\n");
    let reply = Reply::new().delay(Duration::from_millis(3500)).then_text(["ok"]);
    let world = World::new([reply]);
    let done = world.run(&args, "");
    assert_eq!((done.out.as_str(), done.err.as_str()), ("ok\n", ""));
}
