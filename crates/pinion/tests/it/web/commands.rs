//! Needs of a page other than the conversation: directories and files to choose from, work of other clients, and
//! whether the server is still the same process.

use std::fs;

use serde_json::{Value, json};
use testkit::llm::Reply;

use super::Web;
use crate::kit::{World, until};

fn names(found: &Value) -> Vec<&str> {
    let files = found["files"].as_array().unwrap().iter();
    files.map(|file| file["path"].as_str().unwrap()).collect()
}

fn write(world: &World, path: &str) {
    let path = world.dir.cwd().join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "x").unwrap();
}

#[test]
fn list_directories_returns_subdirectories() {
    let world = World::new([]);
    let root = world.dir.cwd().join("places");
    for name in ["beta", "Alpha", ".hidden", "gamma/inner"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    fs::write(root.join("file.txt"), "x").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(root.join("gamma"), root.join("link")).unwrap();
    let web = Web::start(&world, &[]);
    let mut tab = web.tab();
    let listed = tab.data(json!({"type": "list_directory", "path": root}));
    let entry = |name: &str| json!({"name": name, "isDirectory": true});
    assert_eq!(
        listed,
        json!({"absolutePath": root, "entries": [entry("Alpha"), entry("beta"), entry("gamma"), entry("link")]})
    );
    // Relative to the session's directory; `..` is where the path says, not where a link leads.
    let up = tab.data(json!({"type": "list_directory", "path": "places/link/.."}));
    assert_eq!(up["absolutePath"], json!(root));
    let home = tab.data(json!({"type": "list_directory"}));
    assert_eq!(home, tab.data(json!({"type": "list_directory", "path": "~"})));
    assert_eq!(home, tab.data(json!({"type": "list_directory", "path": ""})));
    let error = |tab: &mut super::Tab, path: &str| {
        let answer = tab.ask(json!({"type": "list_directory", "path": path}));
        assert_eq!(answer["success"], false, "{answer}");
        answer["error"].as_str().unwrap().to_owned()
    };
    let gone = root.join("gone");
    assert_eq!(
        error(&mut tab, "places/gone"),
        format!("Path does not exist: {}", gone.display())
    );
    let file = root.join("file.txt");
    assert_eq!(
        error(&mut tab, "places/file.txt"),
        format!("Path is not a directory: {}", file.display())
    );
    assert!(error(&mut tab, "a\0b").starts_with("Path does not exist: "));
    web.finish();
}

#[test]
fn find_files_matches_typed_path() {
    let world = World::new([]);
    for path in [
        "src/main.rs",
        "src/web/socket.rs",
        "src/web/mod.rs",
        "docs/domain.md",
        "main/readme.md",
        "deep/a/b/c/d/mainly.txt",
        "target/main.o",
        ".github/main.yml",
        ".git/main",
    ] {
        write(&world, path);
    }
    fs::write(world.dir.cwd().join(".gitignore"), "target/\n").unwrap();
    let web = Web::start(&world, &[]);
    let mut tab = web.tab();
    let find = |tab: &mut super::Tab, query: &str| {
        let mut found = Value::Null;
        // The time of a search is limited; under load it may need a second attempt.
        until("a complete search", || {
            found = tab.data(json!({"type": "find_files", "query": query}));
            found["truncated"] == false
        });
        found
    };
    // A name with this prefix, then a name that contains it, then a path that contains it; ignored files and git's own
    // are left out.
    let found = find(&mut tab, "main");
    assert_eq!(
        names(&found),
        [
            "main",
            "src/main.rs",
            ".github/main.yml",
            "deep/a/b/c/d/mainly.txt",
            "docs/domain.md",
            "main/readme.md"
        ]
    );
    assert_eq!(found["files"][0], json!({"path": "main", "isDirectory": true}));
    assert_eq!(names(&find(&mut tab, "web/so")), ["src/web/socket.rs"]);
    assert_eq!(
        names(&find(&mut tab, "swmod")),
        ["src/web/mod.rs"],
        "letters in their order"
    );
    assert_eq!(
        names(&find(&mut tab, "src/")),
        ["src/web", "src/main.rs", "src/web/mod.rs", "src/web/socket.rs"]
    );
    assert!(
        names(&find(&mut tab, "MAIN")).is_empty(),
        "large letters mean themselves"
    );
    assert!(names(&find(&mut tab, "../")).is_empty());
    until("three files at the top", || {
        let top = tab.data(json!({"type": "find_files", "query": "", "limit": 3}));
        let is_at_top = names(&top).iter().all(|name| !name.contains('/'));
        names(&top).len() == 3 && is_at_top && top["truncated"] == true
    });
    // In the directory of another session.
    let other = world.dir.cwd().join("docs");
    tab.data(json!({"type": "open_session", "session": "docs", "cwd": other}));
    until("the file of the other directory", || {
        let found = tab.data(json!({"type": "find_files", "query": "", "session": "docs"}));
        names(&found) == ["domain.md"]
    });
    web.finish();
}

#[test]
fn find_files_ends_by_timeout_or_next_query() {
    let world = World::new([]);
    for directory in 0..40 {
        let path = world.dir.cwd().join(format!("many/{directory}/below"));
        fs::create_dir_all(&path).unwrap();
        for file in 0..500 {
            fs::write(path.join(format!("file-{file}.txt")), "").unwrap();
        }
    }
    write(&world, "wanted.txt");
    let web = Web::start(&world, &[]);
    let mut tab = web.tab();
    let first = tab.send(json!({"type": "find_files", "query": "file"}));
    // The search covers upper levels first, even if its time ends; under load it may need a second attempt.
    until("what is near", || {
        names(&tab.data(json!({"type": "find_files", "query": "wanted"}))) == ["wanted.txt"]
    });
    let first_answered = |line: &Value| line["id"] == *first;
    let seen = tab.seen.borrow().iter().any(first_answered);
    if !seen {
        tab.wait(first_answered);
    }
    until("as many as one answer may have", || {
        let many = tab.data(json!({"type": "find_files", "query": "file", "limit": 100_000}));
        names(&many).len() == 500 && many["truncated"] == true
    });
    web.finish();
}

#[test]
fn shell_commands_are_visible_to_other_clients() {
    let world = World::new([Reply::text(["ok"])]);
    let web = Web::start(&world, &[]);
    let (mut one, mut two) = (web.tab(), web.tab());
    two.data(json!({"type": "get_state"}));
    let command = "echo seen; exit 3";
    let answer = one.data(json!({"type": "bash", "command": command, "excludeFromContext": true}));
    let begun = two.wait_type("bash_execution_start");
    assert_eq!(
        (&begun["command"], &begun["excludeFromContext"]),
        (&json!(command), &json!(true))
    );
    let update = two.wait_type("bash_execution_update");
    let end = two.wait_type("bash_execution_end");
    assert!(begun["bashId"].is_string());
    assert_eq!(
        (&begun["bashId"], &begun["bashId"]),
        (&update["bashId"], &end["bashId"])
    );
    assert_eq!(update["delta"], "seen\n");
    for member in ["output", "exitCode", "cancelled", "truncated"] {
        assert_eq!(answer[member], end[member], "{member}");
    }
    assert_eq!((&end["exitCode"], &end["command"]), (&json!(3), &json!(command)));
    assert_eq!(end["excludeFromContext"], true);
    // Who comes back later, too.
    let after = begun["seq"].as_u64().unwrap() - 1;
    let mut back = web.tab_at(&format!("/ws?after={after}"));
    assert_eq!(back.wait_type("bash_execution_end")["seq"], end["seq"]);
    // Events distinguish two commands that run at the same time.
    let slow = one.send(json!({"type": "bash", "command": "sleep 30"}));
    let begun = two.wait_type("bash_execution_start");
    two.data(json!({"type": "bash", "command": "echo quick"}));
    two.data(json!({"type": "abort_bash"}));
    let ended = one.wait(|line| line["type"] == "bash_execution_end" && line["bashId"] == begun["bashId"]);
    assert_eq!(
        (&ended["cancelled"], &ended["command"]),
        (&json!(true), &json!("sleep 30"))
    );
    one.wait(|line| line["id"] == *slow && line["type"] == "response");
    web.finish();
}

#[test]
fn shell_events_reach_pi_clients_only_on_request() {
    let world = World::new([]);
    let pi = world.start();
    pi.data(json!({"type": "bash", "command": "echo one"}));
    let lines = pi.lines();
    let kinds = crate::kit::kinds(&lines);
    assert!(kinds.contains(&"bash_execution_update"));
    assert!(!kinds.contains(&"bash_execution_start") && !kinds.contains(&"bash_execution_end"));
    assert!(lines.iter().all(|line| line.get("bashId").is_none()));
    let all = ["bash_execution_start", "bash_execution_end"];
    pi.data(json!({"type": "hello", "events": all}));
    pi.data(json!({"type": "bash", "command": "echo two"}));
    let lines = pi.lines();
    let kinds = crate::kit::kinds(&lines);
    assert!(all.iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
    pi.finish();
}

#[test]
fn reconnecting_client_learns_whether_events_were_missed() {
    let world = World::new([Reply::text(["One."]), Reply::text(["Two."])]);
    let web = Web::start(&world, &[]);
    let mut one = web.tab();
    let welcome = one.data(json!({"type": "hello"}));
    let instance = welcome["instanceId"].as_str().unwrap().to_owned();
    assert!(instance.len() >= 16);
    let last = one.say("Hi").last().unwrap()["seq"].as_u64().unwrap();
    one.say("Again");
    let newest = one.data(json!({"type": "hello"}))["lastSeq"].clone();
    // A client that does not ask to resume gets no `connected`.
    let mut plain = web.tab();
    plain.data(json!({"type": "get_state"}));
    assert_eq!(plain.seen.borrow().len(), 1);
    let mut fine = web.tab_at(&format!("/ws?after={last}&instance={instance}"));
    let connected = fine.line().unwrap();
    assert_eq!(
        connected,
        json!({"type": "connected", "instanceId": instance, "isComplete": true, "lastSeq": last})
    );
    assert_eq!(fine.line().unwrap()["seq"], last + 1);
    // Positions of another process mean nothing, with any number.
    for query in [
        format!("after={last}&instance=another"),
        format!("after=99999&instance={instance}"),
        format!("instance={instance}"),
        "after=nonsense".to_owned(),
    ] {
        let mut gone = web.tab_at(&format!("/ws?{query}"));
        let connected = gone.line().unwrap();
        assert_eq!(connected["isComplete"], false, "{query}");
        assert_eq!(
            (&connected["instanceId"], &connected["lastSeq"]),
            (&json!(instance), &newest)
        );
        assert!(gone.is_quiet(), "{query}");
    }
    let replay = one.data(json!({"type": "replay", "after": last, "instance": instance}));
    assert_eq!(replay["instanceId"], json!(instance));
    assert!(replay.get("snapshot").is_none() && replay["events"].as_u64().unwrap() > 5);
    let replay = one.data(json!({"type": "replay", "after": last, "instance": "another"}));
    assert_eq!(replay["snapshot"]["state"]["messageCount"], 4);
    web.finish();
    // The next process is another one.
    let web = Web::start(&world, &[]);
    let mut tab = web.tab();
    assert_ne!(tab.data(json!({"type": "hello"}))["instanceId"], json!(instance));
    let mut back = web.tab_at(&format!("/ws?after=0&instance={instance}"));
    assert_eq!(back.line().unwrap()["isComplete"], false);
    web.finish();
}
