//! The table of calls and what becomes of them (`table.txt`), as the user would meet them: paths as a model writes them.

use std::os::unix::fs::symlink;

use process::{Reaper, real_path};
use serde_json::json;
use tools::{Toolbox, ToolsConfig};
use wire::state::PermissionMode;

use super::{Bases, Call, PermissionSettings, Policy, Verdict};

/// What a block of the table says before its calls.
#[derive(Default)]
struct Block {
    name: String,
    settings: PermissionSettings,
    granted: Vec<(String, String)>,
}

struct Table {
    root: tempfile::TempDir,
    toolbox: Toolbox,
}

impl Table {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let project = root.path().join("project");
        for dir in [
            "project/src",
            "project/secret",
            "project/private",
            "shared",
            "elsewhere",
            "home/.ssh",
            "home/other",
        ] {
            std::fs::create_dir_all(root.path().join(dir)).unwrap();
        }
        for file in ["secret/key", "private/a", ".env", "src/a"] {
            std::fs::write(project.join(file), "x").unwrap();
        }
        for (to, name) in [
            ("../../elsewhere", "src/out"),
            ("../secret", "src/in"),
            ("../../elsewhere/new", "src/dangling"),
            (".env", "env-link"),
            ("private", "to-private"),
            ("../elsewhere", "link"),
            ("../home/.ssh", "ssh-link"),
        ] {
            symlink(to, project.join(name)).unwrap();
        }
        let config = ToolsConfig {
            home: Some(root.path().join("home")),
            ..ToolsConfig::default()
        };
        Self {
            toolbox: Toolbox::new(config, Reaper::direct()),
            root,
        }
    }

    fn cwd(&self) -> std::path::PathBuf {
        self.root.path().join("project")
    }

    fn call(&self, tool: &str, argument: &str) -> Call {
        match tool {
            "other" => Call::other(argument),
            "bash" => Call::command("bash", if argument == "-" { "" } else { argument }),
            _ => {
                let path = if argument == "-" { "" } else { argument };
                let args = json!({ "path": path });
                let target = self.toolbox.target(tool, args.as_object().unwrap(), &self.cwd());
                let target = target.unwrap();
                let real = real_path(&target);
                Call::file(tool, target, real)
            }
        }
    }

    fn policy(&self, block: &Block) -> Policy {
        let (cwd, home) = (self.cwd(), self.root.path().join("home"));
        let bases = Bases {
            cwd: &cwd,
            home: Some(&home),
            real_path,
        };
        let (mut policy, notes) = Policy::new(&block.settings, None, bases);
        assert!(notes.is_empty(), "{}: {notes:?}", block.name);
        for (tool, argument) in &block.granted {
            policy.grant(&self.call(tool, argument));
        }
        policy
    }
}

impl Block {
    /// Takes a line that is no call; false when it is one.
    fn take(&mut self, key: &str, value: &str) -> bool {
        let (layer, key) = match key.strip_prefix("project-") {
            Some(key) => (&mut self.settings.project, key),
            None => (&mut self.settings.user, key),
        };
        // "ask" begins a rule as well as a call; a rule has no tool before its pattern.
        let is_call = || {
            let tool = value.split(' ').next().unwrap();
            ["bash", "read", "write", "edit", "grep", "find", "ls", "other"].contains(&tool)
                && value.contains(' ')
        };
        match key {
            "mode" => layer.mode = Some(PermissionMode::parse(value).unwrap()),
            "allow" => layer.allow.push(value.to_owned()),
            "deny" => layer.deny.push(value.to_owned()),
            "ask" if !is_call() || value.split_once('(').is_some_and(|(tool, _)| !tool.contains(' ')) => {
                layer.ask.push(value.to_owned());
            }
            "granted" => {
                let (tool, argument) = value.split_once(' ').unwrap();
                self.granted.push((tool.to_owned(), argument.to_owned()));
            }
            _ => return false,
        }
        true
    }
}

fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, letter == '\\') {
            (_, true) => match letters.next() {
                Some('n') => out.push('\n'),
                Some('r') => out.push('\r'),
                Some('t') => out.push('\t'),
                Some('\\') => out.push('\\'),
                Some(other) => out.extend(['\\', other]),
                None => out.push('\\'),
            },
            _ => out.push(letter),
        }
    }
    out
}

#[test]
fn permission_table_gives_expected_verdicts() {
    let table = Table::new();
    let text = include_str!("table.txt");
    let (mut rows, mut wrong) = (0, Vec::new());
    for part in text.split("\n== ").skip(1) {
        let (name, lines) = part.split_once('\n').unwrap();
        let mut block = Block {
            name: name.to_owned(),
            ..Block::default()
        };
        let mut policy = None;
        for line in lines.lines().filter(|line| !line.is_empty()) {
            let (word, rest) = line.split_once(' ').unwrap();
            if policy.is_none() && block.take(word, rest) {
                continue;
            }
            let policy = policy.get_or_insert_with(|| table.policy(&block));
            let (tool, argument) = rest.split_once(' ').unwrap();
            let verdict = policy.judge(&table.call(tool, &unescaped(argument)));
            let said = match verdict {
                Verdict::Run => "run",
                Verdict::Ask => "ask",
                Verdict::Refuse(_) => "refuse",
            };
            rows += 1;
            if said != word {
                wrong.push(format!("{name}: {line} -> {said}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(rows >= 120, "{rows} rows");
}
