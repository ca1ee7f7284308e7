//! Decisions: who comes first, which directory they hold for, and what the file may look like.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use crate::trust::{ProjectAccess, ProjectTrust};

use super::brought::Project;
use super::{DecidedBy, Trust};

struct Place {
    root: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for dir in ["agent", "home", "code/app/sub", "code/other"] {
            fs::create_dir_all(root.path().join(dir)).unwrap();
        }
        Self { root }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(path)
    }

    fn trust(&self, command_line: Option<bool>) -> Trust {
        Trust::new(&self.at("agent"), command_line)
    }

    fn access(&self, trust: &Trust, dir: &str) -> (ProjectAccess, &'static str) {
        let decision = trust.decide(&self.at(dir), None, &mut Vec::new());
        (decision.access, decision.by.word())
    }

    fn file(&self) -> PathBuf {
        self.at("agent/trust.json")
    }
}

const FULL: ProjectAccess = ProjectAccess::Full;
const DATA: ProjectAccess = ProjectAccess::Data;
const NONE: ProjectAccess = ProjectAccess::None;

#[test]
fn closest_trust_decision_covers_directories_below() {
    let place = Place::new();
    let trust = place.trust(None);
    assert_eq!(place.access(&trust, "code/app"), (DATA, "nobody"));
    trust.file().set(&place.at("code"), Some(true)).unwrap();
    trust.file().set(&place.at("code/app/sub"), Some(false)).unwrap();
    assert_eq!(place.access(&trust, "code/app"), (FULL, "stored"));
    assert_eq!(place.access(&trust, "code/app/sub"), (NONE, "stored"));
    // A missing directory is below an existing one.
    assert_eq!(place.access(&trust, "code/app/sub/new/x"), (NONE, "stored"));
    assert_eq!(place.access(&trust, "home"), (DATA, "nobody"));
    // A name that only begins alike is another directory.
    fs::create_dir(place.at("code2")).unwrap();
    assert_eq!(place.access(&trust, "code2"), (DATA, "nobody"));
    trust.file().set(&place.at("code/app/sub"), None).unwrap();
    assert_eq!(place.access(&trust, "code/app/sub"), (FULL, "stored"));
    assert!(!place.at("agent/trust.json.lock").exists());
}

#[test]
fn trust_applies_to_link_targets() {
    let place = Place::new();
    symlink(place.at("code/app"), place.at("home/link")).unwrap();
    let trust = place.trust(None);
    trust.file().set(&place.at("home/link"), Some(true)).unwrap();
    assert_eq!(place.access(&trust, "code/app"), (FULL, "stored"));
    // To trust where the link lies says nothing about where it leads.
    trust.file().set(&place.at("home/link"), None).unwrap();
    trust.file().set(&place.at("home"), Some(true)).unwrap();
    assert_eq!(place.access(&trust, "home/link"), (DATA, "nobody"));
    // A link out of a trusted directory leads out of it, also by way of a missing directory.
    symlink(place.at("code/other"), place.at("home/out")).unwrap();
    assert_eq!(place.access(&trust, "home/out/new"), (DATA, "nobody"));
}

#[test]
fn trust_file_keeps_format_of_pi() {
    let place = Place::new();
    let app = place.at("code/app").display().to_string();
    let other = place.at("code/other").display().to_string();
    fs::write(
        place.file(),
        format!("\u{feff}{{\"{other}\": true, \"/gone\": null}}"),
    )
    .unwrap();
    let trust = place.trust(None);
    assert_eq!(place.access(&trust, "code/other"), (FULL, "stored"));
    trust.file().set(&place.at("code/app"), Some(false)).unwrap();
    let text = fs::read_to_string(place.file()).unwrap();
    assert_eq!(
        text,
        format!("{{\n  \"/gone\": null,\n  \"{app}\": false,\n  \"{other}\": true\n}}\n")
    );
}

#[test]
fn broken_trust_file_decides_nothing_and_stays_unchanged() {
    let place = Place::new();
    for broken in ["{", "[]", "{\"/\": \"yes\"}", "true"] {
        fs::write(place.file(), broken).unwrap();
        let trust = place.trust(None);
        let mut notes = Vec::new();
        let decision = trust.decide(&place.at("code"), None, &mut notes);
        assert_eq!((decision.access, notes.len()), (DATA, 1), "{broken}");
        // The decision that cannot be read may be one against this project.
        let always = trust.decide(&place.at("code"), Some(ProjectTrust::Always), &mut Vec::new());
        assert_eq!((always.access, always.by.word()), (DATA, "nobody"), "{broken}");
        let never = trust.decide(&place.at("code"), Some(ProjectTrust::Never), &mut Vec::new());
        assert_eq!(never.access, NONE, "{broken}");
        assert!(trust.file().set(&place.at("code"), Some(true)).is_err());
        assert_eq!(fs::read_to_string(place.file()).unwrap(), broken);
    }
}

#[test]
fn trust_sources_have_precedence() {
    let place = Place::new();
    let stored = |trusted| place.trust(None).file().set(&place.at("code"), Some(trusted));
    stored(false).unwrap();
    let trust = place.trust(Some(true));
    assert!(!trust.is_open(&place.at("code")));
    assert_eq!(place.access(&trust, "code"), (FULL, "command-line"));
    trust.set(&place.at("code"), Some(false), DecidedBy::Client);
    assert_eq!(place.access(&trust, "code"), (NONE, "client"));
    assert_eq!(place.access(&trust, "code/app"), (FULL, "command-line"));
    trust.set(&place.at("code"), None, DecidedBy::Client);
    assert_eq!(place.access(&trust, "code"), (FULL, "command-line"));
    let trust = place.trust(None);
    assert!(trust.is_open(&place.at("code")));
    let always = Some(ProjectTrust::Always);
    let decided = trust.decide(&place.at("code"), always, &mut Vec::new());
    assert_eq!((decided.access, decided.by.word()), (NONE, "stored"));
    let decided = trust.decide(&place.at("home"), always, &mut Vec::new());
    assert_eq!((decided.access, decided.by.word()), (FULL, "setting"));
}

#[test]
fn user_directories_need_no_trust() {
    let place = Place::new();
    let home = place.at("home");
    let needs = |cwd: &str, agent: &str| {
        Project {
            cwd: &place.at(cwd),
            agent_dir: &place.at(agent),
            home: Some(&home),
            is_omp: false,
        }
        .needs_trust()
    };
    let write = |path: &str| {
        let path = place.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    };
    write("home/.pi/agent/extensions/mine.ts");
    write("home/.agents/skills/s/SKILL.md");
    assert!(!needs("home", "home/.pi/agent"));
    write("home/p/x");
    assert!(!needs("home/p", "home/.pi/agent"));
    // An empty folder brings nothing.
    fs::create_dir_all(place.at("home/p/.pi/extensions")).unwrap();
    assert!(!needs("home/p", "home/.pi/agent"));
    write("home/p/.agents/skills/t/SKILL.md");
    assert!(needs("home/p", "home/.pi/agent") && needs("home/p/deeper", "home/.pi/agent"));
    // Directories above the root of a repository are not searched.
    fs::create_dir_all(place.at("home/p/repo/.git")).unwrap();
    assert!(!needs("home/p/repo", "home/.pi/agent"));
    for file in [
        "extensions/x.ts",
        "hooks/x",
        "tools/x.ts",
        "mcp.json",
        "settings.json",
        "SYSTEM.md",
    ] {
        write(&format!("code/app/.pi/{file}"));
        assert!(needs("code/app", "agent"), "{file}");
        fs::remove_dir_all(place.at("code/app/.pi")).unwrap();
    }
    // Who keeps the agent directory in a project has it there.
    write("code/app/.pi/extensions/x.ts");
    assert!(!needs("code/app", "code/app/.pi"));
}

#[test]
fn files_of_omp_need_trust_for_its_clients() {
    let place = Place::new();
    let needs = |is_omp: bool, agent: &str| {
        Project {
            cwd: &place.at("code/app"),
            agent_dir: &place.at(agent),
            home: None,
            is_omp,
        }
        .needs_trust()
    };
    for file in [
        "config.yml",
        "mcp.json",
        "extensions/x.ts",
        "commands/x.md",
        "commands/x/index.ts",
    ] {
        let path = place.at("code/app/.omp").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
        assert!(needs(true, "agent") && !needs(false, "agent"), "{file}");
        // The user's files are in `.pi` then.
        assert!(needs(true, "code/app/.pi"), "{file}");
        assert!(!needs(true, "code/app/.omp"), "{file}");
        fs::remove_dir_all(place.at("code/app/.omp")).unwrap();
    }
}
