//! Taking changes of files back: `get_changes`, `rewind`, `unrewind`.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::kit::{Pi, World, bash, of_type, text, until};

fn write(id: &str, path: &str, content: &str) -> Reply {
    Reply::tool(id, "write", json!({"path": path, "content": content}))
}

fn edit(id: &str, path: &str, old: &str, new: &str) -> Reply {
    let edits = json!([{"oldText": old, "newText": new}]);
    Reply::tool(id, "edit", json!({"path": path, "edits": edits}))
}

fn done() -> Reply {
    Reply::text(["Done."])
}

/// Two runs: the first writes `a.txt`, the second edits it, writes `new/b.txt` and runs a command.
fn two_runs(args: &[&str]) -> (World, Pi) {
    let world = World::new([
        write("t1", "a.txt", "one\n"),
        done(),
        edit("t2", "a.txt", "one", "two"),
        write("t3", "new/b.txt", "b\n"),
        bash("t4", "echo c > c.txt"),
        done(),
    ]);
    fs::write(at(&world, "a.txt"), "zero\n").unwrap();
    fs::set_permissions(at(&world, "a.txt"), fs::Permissions::from_mode(0o640)).unwrap();
    let pi = world.start_with(args);
    pi.say("First");
    pi.say("Second");
    (world, pi)
}

fn at(world: &World, name: &str) -> PathBuf {
    world.dir.cwd().join(name)
}

fn read(world: &World, name: &str) -> Option<String> {
    fs::read_to_string(at(world, name)).ok()
}

/// Ids of the user messages.
fn prompts(pi: &Pi) -> Vec<String> {
    let entries = pi.get("get_entries")["entries"].clone();
    let users = entries.as_array().unwrap().iter();
    let users = users.filter(|entry| entry["message"]["role"] == "user");
    users
        .map(|entry| entry["id"].as_str().unwrap().to_owned())
        .collect()
}

fn paths(list: &Value) -> Vec<String> {
    let names = list.as_array().unwrap().iter();
    let name = |file: &Value| {
        file["path"]
            .as_str()
            .unwrap()
            .rsplit('/')
            .next()
            .unwrap()
            .to_owned()
    };
    names.map(name).collect()
}

const FILES: [&str; 2] = ["--checkpoints", "files"];

#[test]
fn rewind_restores_files_and_conversation() {
    let (world, pi) = two_runs(&FILES);
    let users = prompts(&pi);
    let rewound = pi.data(json!({"type": "rewind", "entryId": users[1]}));
    assert_eq!(paths(&rewound["restored"]), ["a.txt", "b.txt"]);
    assert_eq!(
        (&rewound["kept"], &rewound["editorText"]),
        (&json!([]), &json!("Second"))
    );
    // What a command did is not known with this kind, and said so.
    assert_eq!(rewound["unknown"][0]["toolName"], "bash");
    assert_eq!(read(&world, "a.txt").unwrap(), "one\n");
    assert!(!at(&world, "new").exists() && at(&world, "c.txt").exists());
    assert_eq!(pi.messages().len(), 4);

    let back = pi.data(json!({"type": "unrewind"}));
    assert_eq!(paths(&back["restored"]), ["a.txt", "b.txt"]);
    assert_eq!(read(&world, "a.txt").unwrap(), "two\n");
    assert_eq!(pi.messages().len(), 12);
    let error = pi.error(json!({"type": "unrewind"}));
    assert_eq!(error, "There is no rewind to take back");

    let rewound = pi.data(json!({"type": "rewind", "entryId": users[0], "what": "files"}));
    assert_eq!(rewound["restored"].as_array().unwrap().len(), 2);
    assert_eq!(read(&world, "a.txt").unwrap(), "zero\n");
    let mode = fs::metadata(at(&world, "a.txt")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    assert_eq!(pi.messages().len(), 12, "the conversation stays");
    pi.finish();
}

#[test]
fn rewind_of_worktree_restores_what_commands_changed() {
    let (world, pi) = two_runs(&["--checkpoints", "worktree"]);
    let users = prompts(&pi);
    let all = pi.data(json!({"type": "get_changes"}));
    assert_eq!(all["checkpoints"], "worktree");
    assert_eq!(paths(&all["files"]), ["a.txt", "c.txt", "b.txt"]);
    let rewound = pi.data(json!({"type": "rewind", "entryId": users[1]}));
    assert_eq!(paths(&rewound["restored"]), ["a.txt", "c.txt", "b.txt"]);
    assert_eq!(rewound["kept"], json!([]));
    let reason = rewound["unknown"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("outside of the working directory"), "{rewound}");
    assert_eq!(read(&world, "a.txt").unwrap(), "one\n");
    assert!(!at(&world, "new").exists() && !at(&world, "c.txt").exists());
    pi.data(json!({"type": "unrewind"}));
    assert_eq!(read(&world, "c.txt").unwrap(), "c\n");
    pi.finish();
}

#[test]
fn aborted_command_in_worktree_is_undone() {
    let world = World::new([bash("t1", "echo new > made; rm kept; sleep 60"), done()]);
    fs::write(at(&world, "kept"), "content").unwrap();
    let pi = world.start_with(&["--checkpoints", "worktree"]);
    pi.prompt("Go");
    until("the command to work", || {
        at(&world, "made").exists() && !at(&world, "kept").exists()
    });
    let id = pi.send(json!({"type": "abort"}));
    assert_eq!(pi.response(&id)["success"], true);
    pi.settled();
    let users = prompts(&pi);
    let rewound = pi.data(json!({"type": "rewind", "entryId": users[0]}));
    assert_eq!(paths(&rewound["restored"]), ["kept", "made"]);
    assert_eq!(read(&world, "kept").unwrap(), "content");
    assert!(!at(&world, "made").exists());
    pi.finish();
}

#[test]
fn changes_of_turn_run_and_session() {
    let (_world, pi) = two_runs(&FILES);
    let users = prompts(&pi);
    let all = pi.data(json!({"type": "get_changes"}));
    assert_eq!(all["checkpoints"], "files");
    assert_eq!(paths(&all["files"]), ["a.txt", "b.txt"]);
    assert_eq!(all["files"][0]["diff"], "@@ -1,1 +1,1 @@\n-zero\n+two\n");
    assert_eq!(all["files"][1]["status"], "added");
    let run = pi.data(json!({"type": "get_changes", "scope": "run"}));
    assert_eq!(run["files"][0]["diff"], "@@ -1,1 +1,1 @@\n-one\n+two\n");
    let first = pi.data(json!({"type": "get_changes", "scope": "run", "entryId": users[0]}));
    assert_eq!(first["files"][0]["diff"], "@@ -1,1 +1,1 @@\n-zero\n+one\n");
    let turn = pi.data(json!({"type": "get_changes", "scope": "turn"}));
    assert_eq!(
        (&turn["files"], &turn["unknown"][0]["toolName"]),
        (&json!([]), &json!("bash"))
    );
    let error = pi.error(json!({"type": "get_changes", "scope": "turn", "entryId": "nowhere"}));
    assert_eq!(error, "Entry not found: nowhere");
    pi.finish();
}

#[test]
fn changes_by_others_are_kept_unless_forced() {
    let (world, pi) = two_runs(&FILES);
    let users = prompts(&pi);
    fs::write(at(&world, "a.txt"), "mine\n").unwrap();
    let command = json!({"type": "rewind", "entryId": users[0], "what": "files"});
    let rewound = pi.data(command.clone());
    assert_eq!(paths(&rewound["kept"]), ["a.txt"]);
    assert_eq!(rewound["kept"][0]["reason"], "changed");
    assert_eq!(read(&world, "a.txt").unwrap(), "mine\n");
    let mut forced = command;
    forced["force"] = json!(true);
    pi.data(forced);
    assert_eq!(read(&world, "a.txt").unwrap(), "zero\n");
    pi.data(json!({"type": "unrewind"}));
    assert_eq!(read(&world, "a.txt").unwrap(), "mine\n", "force loses nothing");
    pi.finish();
}

#[test]
fn rewind_survives_restart_and_leaves_links_alone() {
    let (world, pi) = two_runs(&FILES);
    let (users, file) = (prompts(&pi), pi.file());
    pi.finish();
    let outside = world.dir.root().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("b.txt"), "b\n").unwrap();
    fs::remove_dir_all(at(&world, "new")).unwrap();
    symlink(&outside, at(&world, "new")).unwrap();
    let pi = world.start_with(&["--session", file.to_str().unwrap(), "--checkpoints", "files"]);
    let rewound = pi.data(json!({"type": "rewind", "entryId": users[0], "force": true}));
    assert_eq!(paths(&rewound["kept"]), ["b.txt"]);
    assert_eq!(fs::read_to_string(outside.join("b.txt")).unwrap(), "b\n");
    assert_eq!(read(&world, "a.txt").unwrap(), "zero\n");
    pi.finish();
}

#[test]
fn rewind_to_last_message_gives_its_text() {
    let (world, pi) = two_runs(&FILES);
    let (users, file) = (prompts(&pi), pi.file());
    pi.finish();
    // As if the process had ended right after the second prompt.
    let text = fs::read_to_string(&file).unwrap();
    let at = text.find(&format!("\"id\":\"{}\"", users[1])).unwrap();
    let end = at + text[at..].find('\n').unwrap() + 1;
    fs::write(&file, &text[..end]).unwrap();
    let pi = world.start_with(&["--session", file.to_str().unwrap(), "--checkpoints", "files"]);
    assert_eq!(pi.messages().len(), 5);
    let command = json!({"type": "rewind", "entryId": users[1], "what": "conversation"});
    assert_eq!(pi.data(command)["editorText"], "Second");
    assert_eq!(pi.messages().len(), 4);
    let back = pi.data(json!({"type": "unrewind"}));
    assert_eq!(back.get("editorText"), None);
    assert_eq!(pi.messages().len(), 5);
    pi.finish();
}

#[test]
fn session_without_checkpoints_stores_nothing() {
    let (world, pi) = two_runs(&[]);
    let users = prompts(&pi);
    for command in [
        json!({"type": "get_changes"}),
        json!({"type": "rewind", "entryId": users[0]}),
        json!({"type": "unrewind"}),
    ] {
        assert!(pi.error(command).starts_with("Checkpoints are off"));
    }
    let dir = pi.file().with_extension("checkpoints");
    assert!(!dir.exists());
    assert_eq!(read(&world, "a.txt").unwrap(), "two\n");
    pi.finish();
}

#[test]
fn rewind_during_run_is_refused() {
    let world = World::new([bash("t1", "sleep 30")]);
    let pi = world.start_with(&FILES);
    pi.prompt("Wait");
    pi.wait("tool_execution_start");
    let users = prompts(&pi);
    let error = pi.error(json!({"type": "rewind", "entryId": users[0]}));
    assert!(
        error.starts_with("Files cannot be rewound while a run"),
        "{error}"
    );
    pi.data(json!({"type": "abort"}));
    pi.data(json!({"type": "rewind", "entryId": users[0]}));
    pi.finish();
}

#[test]
fn deleted_session_takes_its_checkpoints_along() {
    let (_world, pi) = two_runs(&FILES);
    let file = pi.file();
    pi.data(json!({"type": "new_session"}));
    let reply = pi.data(json!({"type": "delete_session", "sessionPath": file}));
    assert!(!file.with_extension("checkpoints").exists());
    let trash = PathBuf::from(reply["trashPath"].as_str().unwrap());
    assert!(trash.with_extension("checkpoints").join("journal.jsonl").exists());
    pi.finish();
}

#[test]
fn change_without_checkpoint_is_refused() {
    let world = World::new([
        write("t1", "a.txt", "one\n"),
        done(),
        edit("t2", "a.txt", "one", "two"),
        bash("t3", "echo x > b.txt"),
        done(),
    ]);
    let pi = world.start_with(&FILES);
    pi.say("First");
    let dir = pi.file().with_extension("checkpoints");
    fs::rename(&dir, dir.with_extension("gone")).unwrap();
    fs::write(&dir, "in the way").unwrap();
    let lines = pi.say("Second");
    for end in of_type(&lines, "tool_execution_end") {
        let said = text(&end["result"]);
        assert!(
            end["isError"] == true && said.starts_with("Nothing was changed"),
            "{end}"
        );
    }
    assert_eq!(read(&world, "a.txt").unwrap(), "one\n");
    assert!(!at(&world, "b.txt").exists());
    pi.finish();
}

#[test]
fn client_is_asked_only_after_the_checkpoint() {
    let world = World::new([
        Reply::tool("t1", "generate", json!({})),
        done(),
        Reply::tool("t2", "generate", json!({})),
        done(),
    ]);
    let pi = world.start_with(&["--checkpoints", "worktree"]);
    let tool = json!({"name": "generate", "description": "Generates", "parameters": {"type": "object"}});
    pi.data(json!({"type": "set_host_tools", "tools": [tool]}));
    pi.prompt("First");
    let call = pi.wait("host_tool_call");
    fs::write(at(&world, "made"), "by the client").unwrap();
    let result = json!({"content": [{"type": "text", "text": "made"}]});
    let frame = json!({"type": "host_tool_result", "id": call["id"], "result": result});
    pi.agent.send(&frame).unwrap();
    pi.settled();
    assert_eq!(paths(&pi.data(json!({"type": "get_changes"}))["files"]), ["made"]);
    let dir = pi.file().with_extension("checkpoints");
    fs::rename(&dir, dir.with_extension("gone")).unwrap();
    fs::write(&dir, "in the way").unwrap();
    let lines = pi.say("Second");
    let end = of_type(&lines, "tool_execution_end")[0];
    assert!(
        end["isError"] == true && text(&end["result"]).starts_with("Nothing was changed"),
        "{end}"
    );
    assert!(of_type(&lines, "host_tool_call").is_empty(), "{lines:?}");
    pi.finish();
}

#[test]
fn change_behind_dangling_link_is_undone() {
    let world = World::new([write("t1", "link", "through\n"), done()]);
    symlink("real.txt", at(&world, "link")).unwrap();
    let pi = world.start_with(&FILES);
    pi.say("Go");
    assert_eq!(read(&world, "real.txt").unwrap(), "through\n");
    let rewound = pi.data(json!({"type": "rewind", "entryId": prompts(&pi)[0]}));
    assert_eq!(paths(&rewound["restored"]), ["real.txt"]);
    assert!(!at(&world, "real.txt").exists());
    pi.finish();
}

fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t",
            "-c",
            "init.templateDir=",
        ])
        .args(args)
        .current_dir(dir)
        .envs([
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_SYSTEM", "/dev/null"),
        ])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// What git says of the files, without a change of its index.
fn status(dir: &Path) -> String {
    git(
        dir,
        &[
            "--no-optional-locks",
            "status",
            "--porcelain=v2",
            "--branch",
            "--ignored",
            "--untracked-files=all",
        ],
    )
}

#[test]
fn undo_restores_git_status_and_leaves_repository() {
    let world = World::new([
        write("t1", "tracked.txt", "new\n"),
        write("t2", "staged.txt", "changed\n"),
        write("t3", "dir/untracked.txt", "b\n"),
        done(),
    ]);
    let dir = world.dir.cwd();
    git(&dir, &["init", "-q", "-b", "main"]);
    fs::write(at(&world, "tracked.txt"), "old\n").unwrap();
    git(&dir, &["add", "."]);
    git(&dir, &["commit", "-qm", "first"]);
    fs::write(at(&world, "staged.txt"), "staged\n").unwrap();
    git(&dir, &["add", "."]);
    let before = status(&dir);
    let files = crate::kit::files_below(&dir.join(".git"));
    let repository: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).unwrap()).collect();

    let pi = world.start_with(&FILES);
    pi.say("Go");
    let after = status(&dir);
    assert!(after.contains("dir/untracked.txt") && after != before, "{after}");
    pi.data(json!({"type": "rewind", "entryId": prompts(&pi)[0]}));
    assert_eq!(status(&dir), before);
    pi.data(json!({"type": "unrewind"}));
    assert_eq!(status(&dir), after);
    pi.finish();
    assert_eq!(crate::kit::files_below(&dir.join(".git")), files);
    let now: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    assert!(now == repository, "the repository has changed");
}
