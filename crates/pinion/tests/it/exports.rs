//! `export_html` and `--export`: where the file goes, what it must not contain and what it must not destroy. How the page looks
//! is tested elsewhere.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::llm::Reply;

use crate::kit::{Pi, World, bash, text};

const NASTY: &str = "</script><script>alert(1)</script><img src=\"http://evil.example/x.png\"> ![x](https://evil.example/y.png)";

/// A process with a session worth looking at.
fn talked(world: &World) -> Pi {
    world.server.push(bash("c1", "printf '\\033[31mred\\033[0m\\n'"));
    world.server.push(
        Reply::new()
            .thinking(["A THOUGHT"], "sig")
            .then_text(["# Title\n\n```rust\nfn main() {}\n```\n", NASTY]),
    );
    let pi = world.start();
    pi.say(&format!("FIND ME {NASTY}"));
    pi
}

/// Nothing in the page may reach out, and nothing that was said may become part of it.
fn harmless(page: &str) {
    let lower = page.to_lowercase();
    for sign in [
        "src=\"http",
        "src='http",
        "href=\"http",
        "url(http",
        "url(\"http",
        "@import",
        "src=\"//",
        "href=\"//",
        "<link",
    ] {
        assert!(!lower.contains(sign), "{sign}");
    }
    let policy = lower.find("content-security-policy").unwrap();
    assert!(
        policy < lower.find("<script").unwrap(),
        "before anything it must hold for"
    );
    assert!(
        lower[policy..policy + 400].contains("default-src 'none'"),
        "{}",
        &lower[policy..policy + 400]
    );
    assert!(!page.contains("<script>alert(1)") && !page.contains("evil.example/x.png\">"));
    assert_eq!(
        lower.matches("<script").count(),
        lower.matches("</script>").count()
    );
}

fn default_name(session: &Path) -> String {
    format!(
        "pi-session-{}.html",
        session.file_stem().unwrap().to_str().unwrap()
    )
}

fn finished(world: &World) -> PathBuf {
    let pi = talked(world);
    let file = pi.file();
    pi.finish();
    file
}

#[test]
fn export_html_writes_page_to_given_path() {
    let world = World::new([]);
    let pi = talked(&world);
    let held = fs::read(pi.file()).unwrap();
    for (given, at) in [
        ("out.html".to_owned(), world.dir.cwd().join("out.html")),
        (
            world.dir.root().join("abs.html").to_str().unwrap().to_owned(),
            world.dir.root().join("abs.html"),
        ),
    ] {
        let data = pi.data(json!({"type": "export_html", "outputPath": given}));
        assert_eq!(data, json!({ "path": given }), "as it was given");
        harmless(&fs::read_to_string(&at).unwrap());
        let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(&at).unwrap()) & 0o777;
        assert_eq!(mode, 0o600);
    }
    assert_eq!(
        fs::read(pi.file()).unwrap(),
        held,
        "the session is only looked at"
    );
    pi.finish();
}

#[test]
fn export_html_without_path_uses_default_name() {
    let world = World::new([]);
    let pi = talked(&world);
    let name = default_name(&pi.file());
    for command in [
        json!({"type": "export_html"}),
        json!({"type": "export_html", "outputPath": ""}),
    ] {
        assert_eq!(pi.data(command)["path"], name.as_str());
    }
    assert!(world.dir.cwd().join(&name).exists());
    pi.finish();
}

#[test]
fn export_overwrites_exports_but_no_other_file() {
    let world = World::new([]);
    let pi = talked(&world);
    let cwd = world.dir.cwd();
    let export = json!({"type": "export_html", "outputPath": "out.html"});
    pi.data(export.clone());
    let first = fs::read(cwd.join("out.html")).unwrap();
    world.server.push(Reply::text(["More to see."]));
    pi.say("More");
    pi.data(export);
    assert_ne!(fs::read(cwd.join("out.html")).unwrap(), first);
    fs::write(cwd.join("mine.html"), "<html>my own page</html>").unwrap();
    fs::write(cwd.join("empty.html"), "").unwrap();
    std::os::unix::fs::symlink("out.html", cwd.join("link.html")).unwrap();
    fs::create_dir(cwd.join("folder.html")).unwrap();
    for name in [
        "mine.html",
        "empty.html",
        "link.html",
        "folder.html",
        "no/such/folder.html",
        ".",
    ] {
        let error = pi.error(json!({"type": "export_html", "outputPath": name}));
        assert!(!error.is_empty(), "{name}");
    }
    let session = pi.file();
    let held = fs::read(&session).unwrap();
    pi.error(json!({"type": "export_html", "outputPath": session}));
    assert_eq!(fs::read(&session).unwrap(), held, "not over the session either");
    assert_eq!(
        fs::read_to_string(cwd.join("mine.html")).unwrap(),
        "<html>my own page</html>"
    );
    assert_eq!(fs::read(cwd.join("empty.html")).unwrap(), b"");
    assert!(fs::symlink_metadata(cwd.join("link.html")).unwrap().is_symlink());
    let left: Vec<String> = fs::read_dir(&cwd)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with('.') || name.contains("tmp"))
        .collect();
    assert_eq!(left, [] as [String; 0], "no remains");
    pi.finish();
}

#[test]
fn export_without_messages_is_refused() {
    let world = World::new([Reply::text(["ok"])]);
    let pi = world.start();
    let error = pi.error(json!({"type": "export_html"}));
    assert_eq!(error, "Nothing to export yet - start a conversation first");
    pi.finish();
    let pi = world.start_with(&["--no-session"]);
    pi.say("Hi");
    let error = pi.error(json!({"type": "export_html"}));
    assert_eq!(error, "Cannot export in-memory session to HTML");
    pi.finish();
}

#[test]
fn export_during_run_does_not_disturb_it() {
    let world = World::new([
        Reply::text(["one"]),
        Reply::text(["half"]).gate("mid").then_text([" whole"]),
    ]);
    let pi = world.start();
    pi.say("One");
    pi.agent.skip();
    pi.prompt("Two");
    pi.wait_update("text_delta");
    pi.data(json!({"type": "export_html", "outputPath": "out.html"}));
    world.server.release("mid");
    assert_eq!(pi.settled()["aborted"], false);
    assert_eq!(text(pi.messages().last().unwrap()), "half whole");
    pi.finish();
}

#[test]
fn command_line_exports_each_format() {
    let world = World::new([]);
    let session = finished(&world);
    let held = fs::read(&session).unwrap();
    let cwd = world.dir.cwd();
    for name in ["out.html", "out.md", "out.json"] {
        let done = world.run(&["--export", session.to_str().unwrap(), name], "");
        assert_eq!(done.code, Some(0), "{}", done.err);
        assert!(done.out.contains(name), "it says where: {}", done.out);
    }
    assert_eq!(fs::read(&session).unwrap(), held);
    harmless(&fs::read_to_string(cwd.join("out.html")).unwrap());
    let markdown = fs::read_to_string(cwd.join("out.md")).unwrap();
    assert!(
        markdown.contains("FIND ME") && markdown.contains("fn main() {}"),
        "{markdown}"
    );
    let value: Value = serde_json::from_str(&fs::read_to_string(cwd.join("out.json")).unwrap()).unwrap();
    assert!(value.to_string().contains("FIND ME"), "{value}");
    // Each format replaces only its own.
    fs::copy(cwd.join("out.md"), cwd.join("really-markdown.html")).unwrap();
    let done = world.run(
        &["--export", session.to_str().unwrap(), "really-markdown.html"],
        "",
    );
    assert_eq!(done.code, Some(1), "{}", done.out);
    assert_eq!(
        fs::read_to_string(cwd.join("really-markdown.html")).unwrap(),
        markdown
    );
}

#[test]
fn command_line_export_chooses_default_name() {
    let world = World::new([]);
    let session = finished(&world);
    let done = world.run(&["--export", session.to_str().unwrap()], "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    harmless(&fs::read_to_string(world.dir.cwd().join(default_name(&session))).unwrap());
}

#[test]
fn command_line_exports_session_open_elsewhere() {
    let world = World::new([]);
    let pi = talked(&world);
    let done = world.run(&["--export", pi.file().to_str().unwrap(), "out.html"], "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    pi.finish();
}

#[test]
fn command_line_refuses_unexportable_files() {
    let world = World::new([]);
    let cwd = world.dir.cwd();
    fs::write(cwd.join("notes.jsonl"), "These are my notes.\n").unwrap();
    let done = world.run(&["--export", "nowhere.jsonl"], "");
    assert_eq!(done.code, Some(1));
    assert!(
        done.err.contains("File not found: ") && done.err.contains("nowhere.jsonl"),
        "{}",
        done.err
    );
    let done = world.run(&["--export", "notes.jsonl", "out.html"], "");
    assert_eq!(done.code, Some(1), "{}", done.out);
    assert!(!cwd.join("out.html").exists());
    assert_eq!(
        fs::read_to_string(cwd.join("notes.jsonl")).unwrap(),
        "These are my notes.\n"
    );
    let session = finished(&world);
    fs::write(cwd.join("mine.md"), "# My own notes\n").unwrap();
    let done = world.run(&["--export", session.to_str().unwrap(), "mine.md"], "");
    assert_eq!(done.code, Some(1), "{}", done.out);
    assert_eq!(
        fs::read_to_string(cwd.join("mine.md")).unwrap(),
        "# My own notes\n"
    );
}

#[test]
fn export_of_old_session_does_not_migrate_file() {
    let world = World::new([]);
    let path = world.dir.cwd().join("old.jsonl");
    let header = json!({"type": "session", "id": "11111111-2222-4333-8444-555555555555", "cwd": world.dir.cwd(),
                        "timestamp": "2025-11-01T10:00:00.000Z", "provider": "p", "modelId": "m", "thinkingLevel": "off"});
    let message = json!({"role": "user", "content": "Old question", "timestamp": 1_761_991_201_000_u64});
    let entry = json!({"type": "message", "timestamp": "2025-11-01T10:00:01.000Z", "message": message});
    let content = format!("{header}\n{entry}\n");
    fs::write(&path, &content).unwrap();
    let done = world.run(&["--export", "old.jsonl", "out.md"], "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(
        fs::read_to_string(world.dir.cwd().join("out.md"))
            .unwrap()
            .contains("Old question")
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), content);
    let names: Vec<PathBuf> = fs::read_dir(world.dir.cwd())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
}
