//! Where extensions and hooks are searched: what the command line names, settings, packages, and the directories of the user
//! and of a trusted project.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use extensions::line::Generation;
use files::{Boundaries, Root};
use serde_json::{Map, Value};

use crate::resources::Package;
use crate::settings::Settings;
use crate::source::Scope;
use crate::trust::ProjectAccess;

/// What the command line says about extensions.
#[derive(Debug, Clone)]
pub struct Choice {
    /// `--extension`: files and directories, absolute.
    pub paths: Vec<PathBuf>,
    /// `--hook`, likewise: hooks of the older generations, and hook executables.
    pub hooks: Vec<PathBuf>,
    /// `--tool`, likewise: tool files of the older generations.
    pub tools: Vec<PathBuf>,
    /// Only those (`--no-extensions`).
    pub only_named: bool,
    /// Of hooks only those (`--no-hooks`).
    pub no_hooks: bool,
    /// The generation that the client belongs to.
    pub generation: Generation,
    /// True if extensions learn that a user can be asked. False for the generation of hooks (dialects.md 10.3), and with `--no-ui`.
    pub has_ui: bool,
    /// True for the extensions of a sub-agent.
    pub is_subagent: bool,
    /// Options that only an extension can know, by name; no value means it was only named.
    pub flags: BTreeMap<String, Option<String>>,
}

impl Default for Choice {
    fn default() -> Self {
        Self {
            paths: Vec::new(),
            hooks: Vec::new(),
            tools: Vec::new(),
            only_named: false,
            no_hooks: false,
            generation: Generation::Pi,
            has_ui: true,
            is_subagent: false,
            flags: BTreeMap::new(),
        }
    }
}

impl Choice {
    /// The options as extensions read them.
    #[must_use]
    pub fn flags(&self) -> Map<String, Value> {
        let value = |value: &Option<String>| value.clone().map_or(Value::Bool(true), Value::String);
        let flags = self.flags.iter();
        flags.map(|(name, given)| (name.clone(), value(given))).collect()
    }
}

/// Where is looked.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// The command line.
    pub choice: &'a Choice,
    /// The settings of the agent's own directory.
    pub settings: &'a Settings,
    /// Packages that bring extensions.
    pub packages: &'a [Package],
    /// Directory of settings, keys and sessions.
    pub agent_dir: &'a Path,
    /// The agent's own working directory.
    pub home: &'a Path,
    /// The session's.
    pub cwd: &'a Path,
    /// How far the links of a project lead.
    pub boundaries: &'a Boundaries,
}

impl Places<'_> {
    /// Whose files those of a scope are; `path` is what the scope's settings name.
    pub(crate) fn root(&self, scope: Scope, path: &Path) -> Root {
        match scope {
            Scope::Project => self.boundaries.named(self.cwd, path),
            Scope::User | Scope::Temporary => Root::user(),
        }
    }

    /// Returns true if the project may bring code, as decided for the agent's own directory.
    pub(crate) fn is_trusted(&self) -> bool {
        self.settings.project == ProjectAccess::Full && self.cwd == self.home
    }

    /// The project's directories of configuration that hold code; none when it may bring none.
    pub(crate) fn project_dirs(&self) -> Vec<PathBuf> {
        let names: &[&str] = match self.choice.generation {
            _ if !self.is_trusted() => &[],
            Generation::Omp => &[".pi", ".omp", ".xcsh"],
            _ => &[".pi"],
        };
        names.iter().map(|name| self.cwd.join(name)).collect()
    }
}
