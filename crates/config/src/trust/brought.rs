//! What a project brings that trust is about, and what of it is held back.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::settings::{FileState, KeyUse, Settings};
use crate::trust::ProjectAccess;

use super::limits;

/// Something that a project brings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Brought {
    /// What it is: `settings`, `extensions`, `hooks`, `tools`, `mcp`, `skills`, `prompts`, `rules`, `system-prompt`.
    pub kind: &'static str,
    /// The file or directory.
    pub path: PathBuf,
    /// Of settings: the keys that are left out; none when the whole file is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
}

/// What lies in a project's directory of configuration: name, kind, and whether it can run code. Texts count in a project
/// without a decision, too.
const ENTRIES: [(&str, &str, bool); 11] = [
    ("extensions", "extensions", true),
    ("hooks", "hooks", true),
    ("tools", "tools", true),
    ("mcp.json", "mcp", true),
    ("skills", "skills", false),
    ("prompts", "prompts", false),
    ("rules", "rules", false),
    ("themes", "themes", false),
    ("SYSTEM.md", "system-prompt", false),
    ("APPEND_SYSTEM.md", "system-prompt", false),
    ("settings.json", "settings", false),
];

/// A project, and the user's own directories in it.
#[derive(Debug, Clone, Copy)]
pub struct Project<'a> {
    /// The session's working directory.
    pub cwd: &'a Path,
    /// The user's configuration directory: nothing in it is a project's.
    pub agent_dir: &'a Path,
    /// The user's home directory: its `.agents` is the user's own.
    pub home: Option<&'a Path>,
}

impl Project<'_> {
    /// Returns true if it brings anything that needs trust.
    #[must_use]
    pub fn needs_trust(&self) -> bool {
        !self.without(ProjectAccess::None).is_empty()
    }

    /// What counts no more with this access, by its place.
    fn without(&self, access: ProjectAccess) -> Vec<Brought> {
        if access == ProjectAccess::Full {
            return Vec::new();
        }
        let pi = self.cwd.join(".pi");
        if same(&pi, self.agent_dir) {
            return Vec::new();
        }
        let mut found: Vec<Brought> = ENTRIES
            .iter()
            .filter(|(_, _, runs)| *runs || access == ProjectAccess::None)
            .map(|(name, kind, _)| (pi.join(name), *kind))
            .filter(|(path, _)| is_something(path) && !self.agent_dir.starts_with(path))
            .map(|(path, kind)| brought(kind, path))
            .collect();
        let servers = self.cwd.join(".mcp.json");
        if is_something(&servers) {
            found.push(brought("mcp", servers));
        }
        if access == ProjectAccess::None {
            let home = self.home.map(|home| home.join(".agents"));
            for dir in self.cwd.ancestors().take(limits::ANCESTORS) {
                let agents = dir.join(".agents");
                let skills = agents.join("skills");
                let is_users = home.as_deref().is_some_and(|home| same(home, &agents));
                if !is_users && is_something(&skills) {
                    found.push(brought("skills", skills));
                }
                if dir.join(".git").exists() {
                    break;
                }
            }
        }
        found
    }
}

/// What a project brings that does not count, with these settings.
#[must_use]
pub fn held_back(project: &Project<'_>, settings: &Settings) -> Vec<Brought> {
    let mut held = project.without(settings.project);
    let files = settings.files.iter();
    for file in files.filter(|file| file.scope == crate::source::Scope::Project) {
        let keys: Vec<String> = file
            .keys
            .iter()
            .filter(|found| found.usage == KeyUse::Untrusted)
            .map(|found| found.key.clone())
            .collect();
        if file.state == FileState::Read && !keys.is_empty() {
            held.push(Brought {
                keys,
                ..brought("settings", file.path.clone())
            });
        }
    }
    held
}

fn brought(kind: &'static str, path: PathBuf) -> Brought {
    Brought {
        kind,
        path,
        keys: Vec::new(),
    }
}

/// A file, or a directory with something in it.
fn is_something(path: &Path) -> bool {
    match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => path.is_file(),
    }
}

fn same(a: &Path, b: &Path) -> bool {
    a == b
        || a.canonicalize()
            .is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b))
}
