//! Finding hook executables by their names and by settings.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;

use super::find;
use crate::limits;
use crate::places::{Choice, Generation, Places};
use crate::settings::{Settings, SettingsSource};
use crate::trust::Trust;

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

    /// Events and names of the loaded hooks, and the refused ones with their reasons.
    fn found(&self, choice: &Choice, approved: Option<bool>) -> (Vec<String>, BTreeMap<String, String>) {
        let (agent_dir, cwd) = (self.path("agent"), self.path("cwd"));
        let (settings, notes) = Settings::load(&SettingsSource {
            agent_dir: &agent_dir,
            cwd: &cwd,
            home: None,
            trust: &Trust::new(&agent_dir, approved),
            tools: &[],
            is_omp: false,
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
fn hook_file_name_selects_event() {
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
fn folder_that_cannot_be_listed_is_refused() {
    let linked = |name: &str, target: &str| {
        let home = Home::new(&[("agent/settings.json", "{}", 0o644)]);
        fs::create_dir_all(home.path("cwd/.pi")).unwrap();
        symlink(target, home.path(name)).unwrap();
        home
    };
    let file = Home::new(&[("agent/hooks", SH, 0o755)]);
    // A loop fails for every user. A mode would not stop root.
    for (home, word) in [
        (linked("agent/hooks", "gone"), "leads nowhere"),
        (linked("agent/hooks", "hooks"), "os error"),
        (file, "os error"),
    ] {
        let (loaded, refused) = home.found(&Choice::default(), None);
        assert!(
            loaded.is_empty() && refused["hooks"].contains(word),
            "{refused:?}"
        );
        let none = Choice {
            no_hooks: true,
            ..Choice::default()
        };
        assert!(!home.found(&none, None).1.contains_key("hooks"));
    }
    let project = linked("cwd/.pi/hooks", "gone");
    let refused = |approved| project.found(&Choice::default(), approved).1;
    assert!(refused(Some(true))["hooks"].contains("leads nowhere"));
    assert!(!refused(None).contains_key("hooks") && !refused(Some(false)).contains_key("hooks"));
}

#[test]
fn folder_with_too_many_entries_is_refused() {
    let home = Home::new(&[("agent/hooks/tool_call.sh", SH, 0o755)]);
    for number in 1..limits::HOOK_ENTRIES {
        fs::write(home.path(&format!("agent/hooks/{number}.md")), "").unwrap();
    }
    let (loaded, refused) = home.found(&Choice::default(), None);
    assert_eq!(loaded, ["tool_call tool_call.sh"]);
    assert!(!refused.contains_key("hooks"), "{refused:?}");
    // Which entries are listed depends on the file system: the guard may be the last.
    fs::write(home.path("agent/hooks/0.md"), "").unwrap();
    let (_, refused) = home.found(&Choice::default(), None);
    assert!(refused["hooks"].contains("more than 2000 entries"), "{refused:?}");
}

#[test]
fn hook_settings_name_paths_and_commands() {
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
