//! Which extensions a session has: those named on the command line, those of the project where it is trusted, those of the
//! user (pi-core.md 6.3 has the order, which is that of skills).

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use door::line::{Kind, Scope as ChildScope, Source};
use door::program::Program;
use serde_json::{Map, Value};

use crate::agent::Agent;
use crate::resources::{Origin as SourceOrigin, Scope, SourceInfo};
use crate::settings::ProjectAccess;

use super::Key;

/// What the command line says about extensions.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// `--extension`: files and directories, absolute.
    pub paths: Vec<PathBuf>,
    /// Only those (`--no-extensions`).
    pub only_named: bool,
    /// Options that only an extension can know, by name; no value means it was only named.
    pub flags: BTreeMap<String, Option<String>>,
}

impl Choice {
    /// The options as extensions read them.
    pub(crate) fn flags(&self) -> Map<String, Value> {
        let value = |value: &Option<String>| value.clone().map_or(Value::Bool(true), Value::String);
        let flags = self.flags.iter();
        flags.map(|(name, given)| (name.clone(), value(given))).collect()
    }
}

/// An extension, and where it was found.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) source: Source,
    pub(crate) info: SourceInfo,
    /// What runs it; or why that cannot be known.
    pub(crate) runs: Result<Key, String>,
}

/// The extensions of a session that works in `cwd`, in the order in which their handlers run.
pub(crate) fn find(agent: &Agent, cwd: &Path) -> Vec<Found> {
    let choice = &agent.options.extensions;
    let mut finder = Finder::default();
    for path in &choice.paths {
        finder.named(path, Scope::Temporary, SourceOrigin::Cli);
    }
    if choice.only_named {
        return finder.found;
    }
    let settings = &agent.settings;
    let of = |scope: Scope| {
        let named = settings.extensions.iter();
        named.filter(move |extra| extra.scope == scope)
    };
    // Whether a project may bring code was decided for the agent's own directory.
    if settings.project == ProjectAccess::Full && cwd == agent.cwd {
        for extra in of(Scope::Project) {
            finder.named(&extra.path, Scope::Project, SourceOrigin::Local);
        }
        finder.directory(&cwd.join(".pi"), Scope::Project);
    }
    for extra in of(Scope::User) {
        finder.named(&extra.path, Scope::User, SourceOrigin::Local);
    }
    finder.directory(&agent.agent_dir, Scope::User);
    finder.found
}

#[derive(Default)]
struct Finder {
    found: Vec<Found>,
    /// One file is loaded once, by whichever name.
    seen: HashSet<PathBuf>,
}

impl Finder {
    fn named(&mut self, path: &Path, scope: Scope, origin: SourceOrigin) {
        let base = path.parent().unwrap_or(path).to_path_buf();
        for path in door::find::at(path) {
            self.add(path, scope, origin, &base);
        }
    }

    /// The folder `extensions` of a directory of configuration.
    fn directory(&mut self, base: &Path, scope: Scope) {
        for path in door::find::in_directory(&base.join("extensions")) {
            self.add(path, scope, SourceOrigin::Auto, base);
        }
    }

    fn add(&mut self, path: PathBuf, scope: Scope, origin: SourceOrigin, base: &Path) {
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        if !self.seen.insert(real) {
            return;
        }
        let runs = Program::at(&path).map(|program| match program {
            Some(program) => Key::Program(Arc::new(program)),
            None => Key::TypeScript,
        });
        let path = path.to_string_lossy().into_owned();
        self.found.push(Found {
            runs,
            info: SourceInfo {
                path: path.clone(),
                source: origin,
                scope,
                origin: "top-level",
                base_dir: Some(base.to_string_lossy().into_owned()),
            },
            source: Source {
                path,
                scope: match scope {
                    Scope::User => ChildScope::User,
                    Scope::Project => ChildScope::Project,
                    Scope::Temporary => ChildScope::Temporary,
                },
                kind: Kind::Extension,
            },
        });
    }
}
