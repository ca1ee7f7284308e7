//! The hooks in `examples/hooks`, as they lie there: each does what its first lines say.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::kit::{World, bash, of_type, until};
use crate::permissions::ends;

/// Installs an example for the user of this world.
fn install(world: &World, name: &str) {
    let example = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/hooks")
        .join(name);
    let hooks = world.dir.agent_dir().join("hooks");
    fs::create_dir_all(&hooks).unwrap();
    // By a process of its own, as in `write_program`.
    let copied = Command::new("cp").args([&example, &hooks]).status().unwrap();
    assert!(copied.success(), "{name}");
}

fn write(id: &str, path: &str) -> Reply {
    Reply::tool(id, "write", json!({"path": path, "content": "changed"}))
}

#[test]
fn permission_gate_hook_blocks_dangerous_commands() {
    let world = World::new([
        bash("c1", "rm -fr /tmp/nothing-at-all"),
        bash("c2", "sudo true"),
        bash("c3", "echo harmless"),
        Reply::tool(
            "c4",
            "write",
            json!({"path": "notes.txt", "content": "sudo is a word"}),
        ),
        Reply::text(["done"]),
    ]);
    install(&world, "tool_call-permission-gate.sh");
    let pi = world.start();
    pi.say("Go");
    let ends = ends(&pi);
    assert!(ends[0].0 && ends[0].1.contains("permission gate"), "{ends:?}");
    assert!(ends[1].0 && ends[1].1.contains("sudo"), "{ends:?}");
    assert_eq!(ends[2], (false, "harmless\n".to_owned()));
    assert!(!ends[3].0, "{ends:?}");
    pi.finish();
}

#[test]
fn protected_paths_hook_blocks_writes_and_links() {
    let world = World::new([
        write("c1", ".env"),
        write("c2", "sub/../.git/config"),
        write("c3", "innocent"),
        write("c4", "fine.txt"),
        Reply::tool("c5", "read", json!({"path": ".env"})),
        Reply::text(["done"]),
    ]);
    install(&world, "tool_call-protected-paths.py");
    let cwd = world.dir.cwd();
    fs::write(cwd.join(".env"), "KEY=1").unwrap();
    symlink(cwd.join(".env"), cwd.join("innocent")).unwrap();
    let pi = world.start();
    pi.say("Go");
    let ends = ends(&pi);
    let errors: Vec<bool> = ends.iter().map(|(is_error, _)| *is_error).collect();
    assert_eq!(errors, [true, true, true, false, false], "{ends:?}");
    assert_eq!(ends[0].1, ".env is protected (.env)");
    assert_eq!(fs::read_to_string(cwd.join(".env")).unwrap(), "KEY=1");
    pi.finish();
}

/// Runs git in the working directory; gives what it printed.
fn git(world: &World, args: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(args)
        .current_dir(world.dir.cwd())
        .env("HOME", world.dir.home());
    let done = git.output().unwrap();
    assert!(
        done.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn git_checkpoint_hook_saves_state_before_prompt() {
    let world = World::new([
        write("c1", "known.txt"),
        write("c2", "new.txt"),
        Reply::text(["done"]),
        Reply::text(["again"]),
    ]);
    install(&world, "before_agent_start-git-checkpoint.sh");
    let file = |name: &str| world.dir.cwd().join(name);
    git(&world, &["init", "-q"]);
    fs::write(file("known.txt"), "first").unwrap();
    git(&world, &["add", "."]);
    git(
        &world,
        &[
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@localhost",
            "commit",
            "-qm",
            "x",
        ],
    );
    fs::write(file("known.txt"), "second").unwrap();
    fs::write(file("new.txt"), "not in git").unwrap();
    let before = git(&world, &["status", "--porcelain"]);
    let head = git(&world, &["rev-parse", "HEAD"]);
    let pi = world.start();
    pi.say("Go");
    pi.say("More");
    assert!(of_type(&pi.lines(), "extension_error").is_empty());
    let id = pi.state()["sessionId"].as_str().unwrap().to_owned();
    pi.finish();
    assert_eq!(fs::read_to_string(file("new.txt")).unwrap(), "changed");
    let at = |name: &str| git(&world, &["show", &format!("refs/pinion/{id}/1:{name}")]);
    assert_eq!(
        (at("known.txt").as_str(), at("new.txt").as_str()),
        ("second", "not in git")
    );
    assert_eq!(
        git(&world, &["show", &format!("refs/pinion/{id}/2:new.txt")]),
        "changed"
    );
    assert_eq!(
        (
            git(&world, &["status", "--porcelain"]),
            git(&world, &["rev-parse", "HEAD"])
        ),
        (before, head)
    );
}

#[test]
fn notify_hook_logs_end_of_run() {
    let world = World::new([Reply::text(["a"])]);
    install(&world, "agent_end-notify.sh");
    let pi = world.start();
    pi.say("Go");
    let id = pi.state()["sessionId"].as_str().unwrap().to_owned();
    let log = || fs::read_to_string(world.dir.agent_dir().join("runs.log")).unwrap_or_default();
    // The end of the session waits for two seconds only.
    until("the log", || log().ends_with('\n'));
    pi.finish();
    let log = log();
    assert!(log.contains(&id) && log.lines().count() == 1, "{log}");
}

#[test]
fn every_hook_example_is_documented_and_loads() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/hooks");
    let list = fs::read_to_string(folder.join("README.md")).unwrap();
    let files: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let world = World::new([]);
    for file in files.iter().filter(|file| !file.ends_with("README.md")) {
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(list.contains(&format!("`{name}`")), "{name}");
        install(&world, name);
    }
    let done = world.run(&["doctor", "--json"], "");
    let report: Value = serde_json::from_str(&done.out).unwrap();
    let listed = report["extensions"]["loaded"].as_array().unwrap();
    assert_eq!(listed.len(), files.len() - 1, "{listed:?}");
    assert!(listed.iter().all(|hook| hook["problem"].is_null()), "{listed:?}");
}
