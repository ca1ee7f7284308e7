//! Tests of grep, find and ls on a small tree, with the recorded transcripts' texts.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::*;
use crate::args::Args;
use tokio_util::sync::CancellationToken;

struct Tree(tempfile::TempDir);

impl Tree {
    /// The files of tool-grep and tool-find.
    fn new() -> Self {
        Self::with(&[
            ("src/a.js", "const foo = 1;\nlet bar = foo;\nFOO upper\n"),
            ("src/b.txt", "nothing\nfoo in text\n"),
            (".hidden", "foo hidden\n"),
            (".gitignore", "ignored.txt\n"),
            ("ignored.txt", "foo ignored\n"),
            ("node_modules/x.js", "foo dep\n"),
        ])
    }

    fn with(files: &[(&str, &str)]) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        for (name, content) in files {
            let path = tree.at(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        tree
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn grep(&self, args: Value) -> Result<ToolResult, String> {
        let args = Args::new(args.as_object().unwrap().clone());
        let root = args
            .opt_str("path")
            .map_or(self.0.path().to_path_buf(), |path| self.at(path));
        grep::grep(&root, &grep::Query::of(&args), &CancellationToken::new())
    }

    fn find(&self, root: &str, pattern: &str, limit: usize) -> Result<ToolResult, String> {
        let root = self.at(root);
        let names = Names::new(None, &root);
        find::find(&root, pattern, limit, &names, &CancellationToken::new())
    }

    fn ls(&self, path: &str, limit: usize) -> Result<ToolResult, String> {
        let path = self.at(path);
        ls::ls(&path, limit, &Names::new(None, &path), &CancellationToken::new())
    }
}

#[test]
fn grep_matches_recording() {
    let tree = Tree::new();
    for (args, text) in [
        (
            json!({ "pattern": "bar", "path": "src" }),
            "a.js:2: let bar = foo;",
        ),
        (json!({ "pattern": "zzz" }), "No matches found"),
        (
            json!({ "pattern": "foo", "path": "src/a.js", "ignoreCase": true }),
            "a.js:1: const foo = 1;\na.js:2: let bar = foo;\na.js:3: FOO upper",
        ),
        (
            json!({ "pattern": "foo", "glob": "*.txt", "path": "src" }),
            "b.txt:2: foo in text",
        ),
        (
            json!({ "pattern": "in text", "glob": "././src/*.txt" }),
            "src/b.txt:2: foo in text",
        ),
        (
            json!({ "pattern": "foo", "glob": "!./*.js", "path": "src" }),
            "b.txt:2: foo in text",
        ),
        (
            json!({ "pattern": "let bar", "path": "src/a.js", "context": 1 }),
            "a.js-1- const foo = 1;\na.js:2: let bar = foo;\na.js-3- FOO upper",
        ),
        (
            json!({ "pattern": "= 1;", "literal": true, "path": "src/a.js" }),
            "a.js:1: const foo = 1;",
        ),
    ] {
        let result = tree.grep(args.clone()).unwrap();
        assert_eq!(
            (result.joined_text().as_str(), &result.details),
            (text, &None),
            "{args}"
        );
    }
    let limited = tree
        .grep(json!({ "pattern": "foo", "path": "src/a.js", "limit": 1 }))
        .unwrap();
    assert_eq!(
        limited.joined_text(),
        "a.js:1: const foo = 1;\n\n[1 matches limit reached. Use limit=2 for more, or refine pattern]"
    );
    assert_eq!(limited.details, Some(json!({ "matchLimitReached": 1 })));
    let missing = tree
        .grep(json!({ "pattern": "foo", "path": "nodir" }))
        .unwrap_err();
    assert_eq!(missing, format!("Path not found: {}", tree.at("nodir").display()));
}

#[test]
fn grep_sees_hidden_files_and_honours_gitignore() {
    let tree = Tree::new();
    let names = |tree: &Tree| -> Vec<String> {
        let text = tree.grep(json!({ "pattern": "foo" })).unwrap().joined_text();
        let mut names: Vec<_> = text
            .lines()
            .map(|line| line.split(':').next().unwrap().to_owned())
            .collect();
        names.dedup();
        names
    };
    assert_eq!(
        names(&tree),
        [
            ".hidden",
            "ignored.txt",
            "node_modules/x.js",
            "src/a.js",
            "src/b.txt"
        ]
    );
    std::fs::create_dir(tree.at(".git")).unwrap();
    std::fs::write(tree.at(".git/config"), "foo").unwrap();
    assert_eq!(
        names(&tree),
        [".hidden", "node_modules/x.js", "src/a.js", "src/b.txt"]
    );
}

#[test]
fn grep_glob_names_ignored_files() {
    let tree = Tree::new();
    std::fs::create_dir(tree.at(".git")).unwrap();
    let text = tree
        .grep(json!({ "pattern": "foo", "glob": "*.txt" }))
        .unwrap()
        .joined_text();
    let names: Vec<_> = text.lines().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(names, ["ignored.txt", "src/b.txt"]);
}

#[test]
fn searches_never_wait_for_pipes_with_rules() {
    let tree = Tree::new();
    for name in ["src/.gitignore", "src/.ignore", "src/.git"] {
        let made = std::process::Command::new("mkfifo").arg(tree.at(name)).status();
        assert!(made.unwrap().success());
    }
    std::os::unix::fs::symlink("/dev/zero", tree.at(".ignore")).unwrap();
    let (done, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let found = tree.find(".", "*.js", 9).unwrap().joined_text();
        let matched = tree.grep(json!({ "pattern": "foo" })).unwrap().joined_text();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        let completed = complete::complete(tree.0.path(), "a.js", 9, until, &CancellationToken::new());
        done.send((found, matched, completed.files.len()))
    });
    let (found, matched, completed) = wait.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
    assert!(
        found.contains("src/a.js") && matched.contains("src/a.js"),
        "{found} {matched}"
    );
    assert_eq!(completed, 1);
}

#[test]
fn grep_limits_are_reported() {
    let long = format!("\u{e9}{}\r\n", "x".repeat(600));
    let tree = Tree::with(&[
        ("long", &long),
        ("bin", "foo\0bar\n"),
        ("many", &"hit\n".repeat(300)),
        ("ctx", "1\nhit\n3\nhit\n5\n6\n"),
    ]);
    let cut = tree.grep(json!({ "pattern": "x", "path": "long" })).unwrap();
    let expected = format!(
        "long:1: \u{e9}{}... [truncated]\n\n[Some lines truncated to 500 chars. Use read tool to see full lines]",
        "x".repeat(499)
    );
    assert_eq!(
        (cut.joined_text(), cut.details),
        (expected, Some(json!({ "linesTruncated": true })))
    );
    assert_eq!(
        tree.grep(json!({ "pattern": "foo" })).unwrap().joined_text(),
        "No matches found"
    );
    let many = tree
        .grep(json!({ "pattern": "hit", "path": "many" }))
        .unwrap()
        .joined_text();
    assert!(many.ends_with(
        "many:100: hit\n\n[100 matches limit reached. Use limit=200 for more, or refine pattern]"
    ));
    let context = tree
        .grep(json!({ "pattern": "hit", "path": "ctx", "context": 1 }))
        .unwrap()
        .joined_text();
    assert_eq!(context, "ctx-1- 1\nctx:2: hit\nctx-3- 3\nctx:4: hit\nctx-5- 5");
    let one = tree
        .grep(json!({ "pattern": "hit", "path": "ctx", "context": 1, "limit": 1 }))
        .unwrap()
        .joined_text();
    assert!(
        one.starts_with("ctx-1- 1\nctx:2: hit\nctx-3- 3\n\n[1 matches"),
        "{one}"
    );
    let exact = tree
        .grep(json!({ "pattern": "hit", "path": "ctx", "context": 1, "limit": 2 }))
        .unwrap();
    assert_eq!((exact.joined_text(), exact.details), (context, None));
    assert!(
        tree.grep(json!({ "pattern": "(" }))
            .unwrap_err()
            .starts_with("rg: regex parse error:\n")
    );
    assert!(
        tree.grep(json!({ "pattern": "x", "glob": "[" }))
            .unwrap_err()
            .starts_with("rg: error parsing glob '[': ")
    );
    let wide = Tree::with(&[("w", &format!("{}\n", "y".repeat(400)).repeat(200))]);
    let wide = wide.grep(json!({ "pattern": "y", "limit": 1000 })).unwrap();
    assert!(wide.joined_text().ends_with("\n\n[50.0KB limit reached]"));
    assert_eq!(wide.details.unwrap()["truncation"]["truncatedBy"], "bytes");
}

#[test]
fn grep_searches_named_file_behind_null_byte() {
    let tree = Tree::with(&[("bin", "foo\0\nbar\n")]);
    let named = tree.grep(json!({ "pattern": "bar", "path": "bin" })).unwrap();
    assert!(named.joined_text().ends_with(": bar"), "{named:?}");
    let found = tree.grep(json!({ "pattern": "bar" })).unwrap();
    assert_eq!(found.joined_text(), "No matches found");
}

/// As pi 1.5.2 shows it.
#[test]
fn grep_limit_shows_near_matches_as_context() {
    let tree = Tree::with(&[("ctx", "1\nhit\n3\nhit\n5\n6\n")]);
    let near = tree
        .grep(json!({ "pattern": "hit", "context": 2, "limit": 1 }))
        .unwrap()
        .joined_text();
    assert!(
        near.starts_with("ctx-1- 1\nctx:2: hit\nctx-3- 3\nctx-4- hit\n\n[1 matches"),
        "{near}"
    );
}

#[test]
fn find_matches_recording() {
    let tree = Tree::new();
    for (root, pattern, text) in [
        ("", "a.js", "src/a.js"),
        ("", "*.zzz", "No files found matching pattern"),
        ("src", "*.txt", "b.txt"),
        ("", "src/**/*.js", "src/a.js"),
        ("", "*.txt", "src/b.txt"),
        ("", "SRC", "No files found matching pattern"),
        ("", "s*c", "src/"),
        ("", ".h*", ".hidden"),
    ] {
        let result = tree.find(root, pattern, 1000).unwrap();
        assert_eq!(
            (result.joined_text().as_str(), &result.details),
            (text, &None),
            "{pattern}"
        );
    }
    assert_eq!(
        tree.find("nodir", "x", 9).unwrap_err(),
        format!("Path not found: {}", tree.at("nodir").display())
    );
    let limited = tree.find("", "*.js", 1).unwrap();
    assert_eq!(
        limited.joined_text(),
        "node_modules/x.js\n\n[1 results limit reached. Use limit=2 for more, or refine pattern]"
    );
    assert_eq!(limited.details, Some(json!({ "resultLimitReached": 1 })));
    let exact = tree.find("src", "a.js", 1).unwrap();
    assert_eq!((exact.joined_text().as_str(), exact.details), ("a.js", None));
}

#[test]
fn find_in_repository_ignores_rules_above() {
    let tree = Tree::with(&[
        (".gitignore", "*\n"),
        ("repo/.gitignore", "b.js\n"),
        ("repo/a.js", ""),
        ("repo/b.js", ""),
    ]);
    std::fs::create_dir(tree.at("repo/.git")).unwrap();
    assert_eq!(tree.find("repo", "*.js", 9).unwrap().joined_text(), "a.js");
}

#[test]
fn find_without_pattern_lists_everything() {
    let tree = Tree::with(&[("a.txt", ""), ("sub/b.js", "")]);
    let found = tree.find("", "", 10).unwrap();
    assert_eq!(found.joined_text(), "a.txt\nsub/\nsub/b.js");
}

#[test]
fn ls_matches_recording() {
    let tree = Tree::with(&[
        ("b.txt", "b"),
        ("A.txt", "a"),
        (".dot", "d"),
        ("sub/x", "x"),
        ("sub/inner/y", "y"),
    ]);
    std::fs::create_dir(tree.at("empty")).unwrap();
    std::os::unix::fs::symlink("nowhere", tree.at("dangling")).unwrap();
    for (path, text) in [
        ("", ".dot\nA.txt\nb.txt\nempty/\nsub/"),
        ("sub", "inner/\nx"),
        ("empty", "(empty directory)"),
    ] {
        assert_eq!(tree.ls(path, 500).unwrap(), ToolResult::text(text));
    }
    assert_eq!(
        tree.ls("nodir", 9).unwrap_err(),
        format!("Path not found: {}", tree.at("nodir").display())
    );
    assert_eq!(
        tree.ls("b.txt", 9).unwrap_err(),
        format!("Not a directory: {}", tree.at("b.txt").display())
    );
    let limited = tree.ls("", 2).unwrap();
    assert_eq!(
        limited.joined_text(),
        ".dot\nA.txt\n\n[2 entries limit reached. Use limit=4 for more]"
    );
    assert_eq!(limited.details, Some(json!({ "entryLimitReached": 2 })));
    assert_eq!(tree.ls("", 5).unwrap().details, None);
}

#[test]
fn searches_can_be_aborted() {
    let (tree, cancel) = (Tree::new(), CancellationToken::new());
    cancel.cancel();
    let names = Names::new(None, tree.0.path());
    let args = Args::new(json!({ "pattern": "foo" }).as_object().unwrap().clone());
    assert_eq!(
        grep::grep(tree.0.path(), &grep::Query::of(&args), &cancel).unwrap_err(),
        ABORTED
    );
    assert_eq!(
        find::find(tree.0.path(), "*", 9, &names, &cancel).unwrap_err(),
        ABORTED
    );
    assert_eq!(ls::ls(tree.0.path(), 9, &names, &cancel).unwrap_err(), ABORTED);
}
