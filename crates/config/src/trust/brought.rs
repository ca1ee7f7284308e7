//! What a project brings that trust is about, and what of it is held back.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use wire::Dialect;

use crate::settings::{FileState, KeyUse, Settings};
use crate::trust::ProjectAccess;

use super::limits;

/// Something that a project brings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Brought {
    /// What it is: `settings`, `extensions`, `hooks`, `tools`, `mcp`, `skills`, `prompts`, `rules`, `agents`,
    /// `themes`, `system-prompt`.
    pub kind: &'static str,
    /// The file or directory.
    pub path: PathBuf,
    /// Of settings: the keys that are left out; none when the whole file is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
}

/// What lies in a project's directory of configuration: name, kind, and whether it can run code. Texts count in a project
/// without a decision, too.
const ENTRIES: [(&str, &str, bool); 12] = [
    ("extensions", "extensions", true),
    ("hooks", "hooks", true),
    ("tools", "tools", true),
    ("mcp.json", "mcp", true),
    ("skills", "skills", false),
    ("prompts", "prompts", false),
    ("rules", "rules", false),
    ("agents", "agents", false),
    ("themes", "themes", false),
    ("SYSTEM.md", "system-prompt", false),
    ("APPEND_SYSTEM.md", "system-prompt", false),
    ("settings.json", "settings", false),
];

/// The same of `.omp`, which clients of oh-my-pi have in addition. Its `commands` may be either.
const OMP_ENTRIES: [(&str, &str, bool); 13] = [
    ("extensions", "extensions", true),
    ("hooks", "hooks", true),
    ("tools", "tools", true),
    (".mcp.json", "mcp", true),
    ("mcp.json", "mcp", true),
    ("skills", "skills", false),
    ("prompts", "prompts", false),
    ("rules", "rules", false),
    ("RULES.md", "rules", false),
    ("agents", "agents", false),
    ("SYSTEM.md", "system-prompt", false),
    ("APPEND_SYSTEM.md", "system-prompt", false),
    ("config.yml", "settings", false),
];

/// Whether skills, prompts and other texts of a project without a decision count. Its settings count in every dialect, since they
/// can make permissions stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Texts {
    /// They do.
    #[default]
    Count,
    /// They do not, as in pi 1.5 (pi-1.5-delta.md 6).
    NeedTrust,
}

impl Texts {
    /// Returns true if texts of a project count with this access.
    #[must_use]
    pub fn count(self, access: ProjectAccess) -> bool {
        match access {
            ProjectAccess::None => false,
            ProjectAccess::Data => self == Self::Count,
            ProjectAccess::Full => true,
        }
    }
}

impl From<Dialect> for Texts {
    fn from(dialect: Dialect) -> Self {
        match dialect.is_newest_pi() {
            true => Self::NeedTrust,
            false => Self::Count,
        }
    }
}

/// A project, and the user's own directories in it.
#[derive(Debug, Clone, Copy)]
pub struct Project<'a> {
    /// The session's working directory.
    pub cwd: &'a Path,
    /// The user's configuration directory: nothing in it is a project's.
    pub agent_dir: &'a Path,
    /// The user's home directory: its `.agents` is the user's own.
    pub home: Option<&'a Path>,
    /// True if files of oh-my-pi count.
    pub is_omp: bool,
}

impl Project<'_> {
    /// Returns true if it brings anything that needs trust.
    #[must_use]
    pub fn needs_trust(&self) -> bool {
        !self.without(ProjectAccess::None, Texts::Count).is_empty()
    }

    /// What counts no more with this access, by its place.
    fn without(&self, access: ProjectAccess, texts: Texts) -> Vec<Brought> {
        let drops_texts = access == ProjectAccess::None || texts == Texts::NeedTrust;
        let drops_settings = access == ProjectAccess::None;
        if access == ProjectAccess::Full {
            return Vec::new();
        }
        let (pi, omp) = (self.cwd.join(".pi"), self.cwd.join(".omp"));
        // The agent directory is the user's.
        let is_pi = !same(&pi, self.agent_dir);
        let is_omp = self.is_omp && !same(&omp, self.agent_dir);
        let of_pi = ENTRIES.iter().filter(|_| is_pi).map(|entry| (&pi, entry));
        let of_omp = OMP_ENTRIES.iter().filter(|_| is_omp).map(|entry| (&omp, entry));
        let entries = of_pi.chain(of_omp);
        let mut found: Vec<Brought> = entries
            .filter(|(_, (_, kind, runs))| match *kind {
                "settings" => drops_settings,
                _ => *runs || drops_texts,
            })
            .map(|(dir, (name, kind, _))| (dir.join(name), *kind))
            .filter(|(path, _)| is_something(path) && !self.agent_dir.starts_with(path))
            .map(|(path, kind)| brought(kind, path))
            .collect();
        let commands = omp.join("commands");
        if is_omp && has_folder(&commands) {
            found.push(brought("extensions", commands));
        } else if is_omp && drops_texts && is_something(&commands) {
            found.push(brought("prompts", commands));
        }
        let servers = self.cwd.join(".mcp.json");
        if is_something(&servers) {
            found.push(brought("mcp", servers));
        }
        if drops_texts {
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
pub fn held_back(project: &Project<'_>, settings: &Settings, texts: Texts) -> Vec<Brought> {
    let mut held = project.without(settings.project, texts);
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

/// Returns true if a directory of commands has one in TypeScript, which is a folder.
fn has_folder(commands: &Path) -> bool {
    let mut entries = fs::read_dir(commands).into_iter().flatten().flatten();
    entries.any(|entry| entry.path().is_dir())
}

fn same(a: &Path, b: &Path) -> bool {
    a == b
        || a.canonicalize()
            .is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b))
}
