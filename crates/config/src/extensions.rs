//! Which extensions a session has: those named on the command line, those of the project where it is trusted, those of the
//! user (pi-core.md 6.3 has the order, which is that of skills). After them the hooks and custom tools of the older generations
//! and the commands of oh-my-pi, in the order of those: user, project, settings, command line (dialects.md 10.3).
//! Hook executables are found in `hooks`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use extensions::line::{Generation, Kind, Scope as ChildScope, Source};
use extensions::program::Program;
use files::{Kind as FileKind, Root};

use crate::hooks::is_script;
use crate::places::Places;
use crate::resources::{Changes, Kind as ResourceKind, Package, counts};
use crate::source::{ExtraPath, Origin as SourceOrigin, Scope, SourceInfo};

/// What a process runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    /// All TypeScript extensions.
    TypeScript,
    /// One extension in another language.
    Program(Arc<Program>),
}

/// An extension, and where it was found.
#[derive(Debug, Clone)]
pub struct Found {
    /// Its file, as its process gets it.
    pub source: Source,
    /// Its file, as clients see it.
    pub info: SourceInfo,
    /// What runs it; or why that cannot be known.
    pub runs: Result<Key, String>,
}

/// The extensions of a session in these places, in the order in which their handlers run.
#[must_use]
pub fn find(places: &Places<'_>) -> Vec<Found> {
    let mut finder = Finder {
        changes: places.settings.changes.clone(),
        ..Finder::default()
    };
    finder.extensions(places);
    finder.hooks(places);
    finder.tools(places);
    finder.commands(places);
    finder.found
}

#[derive(Default)]
struct Finder {
    changes: Vec<Changes>,
    found: Vec<Found>,
    /// One file is loaded once, by whichever name.
    seen: HashSet<PathBuf>,
}

impl Finder {
    fn extensions(&mut self, places: &Places<'_>) {
        let (choice, settings, kind) = (places.choice, places.settings, Kind::Extension);
        for path in &choice.paths {
            self.named(places, kind, path, Scope::Temporary, SourceOrigin::Cli);
        }
        let (named, packages): (Vec<&Package>, Vec<&Package>) = places
            .packages
            .iter()
            .partition(|package| package.scope == Scope::Temporary);
        named.into_iter().for_each(|package| self.package(package));
        if choice.only_named {
            return;
        }
        let of = |scope: Scope| {
            let named = settings.extensions.iter();
            named.filter(move |extra| extra.scope == scope)
        };
        if places.is_trusted() {
            for extra in of(Scope::Project) {
                self.named(places, kind, &extra.path, Scope::Project, SourceOrigin::Local);
            }
            for dir in places.project_dirs() {
                self.folder(places, kind, &dir, Scope::Project);
            }
        }
        for extra in of(Scope::User) {
            self.named(places, kind, &extra.path, Scope::User, SourceOrigin::Local);
        }
        self.folder(places, kind, places.agent_dir, Scope::User);
        packages.into_iter().for_each(|package| self.package(package));
    }

    fn hooks(&mut self, places: &Places<'_>) {
        let choice = places.choice;
        let only_named = choice.only_named || choice.no_hooks;
        self.older(
            Kind::Hook,
            places,
            &places.settings.hooks,
            &choice.hooks,
            only_named,
        );
    }

    fn tools(&mut self, places: &Places<'_>) {
        let choice = places.choice;
        let listed = &places.settings.custom_tools;
        self.older(Kind::Tool, places, listed, &choice.tools, choice.only_named);
    }

    /// Commands in TypeScript, which only oh-my-pi has.
    fn commands(&mut self, places: &Places<'_>) {
        if places.choice.generation == Generation::Omp {
            self.older(Kind::Command, places, &[], &[], places.choice.only_named);
        }
    }

    /// What the older generations had: folders of the user and of the project, settings, the command line.
    fn older(
        &mut self,
        kind: Kind,
        places: &Places<'_>,
        listed: &[ExtraPath],
        named: &[PathBuf],
        only_named: bool,
    ) {
        if !only_named {
            self.folder(places, kind, places.agent_dir, Scope::User);
            for dir in places.project_dirs() {
                self.folder(places, kind, &dir, Scope::Project);
            }
            for scope in [Scope::User, Scope::Project] {
                let may = scope == Scope::User || places.is_trusted();
                for extra in listed.iter().filter(|extra| may && extra.scope == scope) {
                    self.named(places, kind, &extra.path, scope, SourceOrigin::Local);
                }
            }
        }
        for path in named {
            self.named(places, kind, path, Scope::Temporary, SourceOrigin::Cli);
        }
    }

    fn named(&mut self, places: &Places<'_>, kind: Kind, path: &Path, scope: Scope, origin: SourceOrigin) {
        let base = path.parent().unwrap_or(path).to_path_buf();
        let root = places.root(scope, path);
        let found = extensions::find::at(&root, path, places.choice.generation);
        if found.is_empty() && scope == Scope::Temporary && kind != Kind::Hook {
            let nothing = Err("It holds no extension".to_owned());
            self.push(kind, path, scope, origin, &base, nothing);
        }
        for path in found {
            self.add(&root, kind, path, scope, origin, &base);
        }
    }

    /// The folder of a kind in a directory of configuration.
    fn folder(&mut self, places: &Places<'_>, kind: Kind, base: &Path, scope: Scope) {
        let name = match kind {
            Kind::Extension => "extensions",
            Kind::Hook => "hooks",
            Kind::Tool => "tools",
            Kind::Command => "commands",
        };
        let root = places.root(scope, base);
        let (dir, generation) = (base.join(name), places.choice.generation);
        let mut found = match kind {
            Kind::Command => extensions::find::commands(&root, &dir),
            _ => extensions::find::in_directory(&root, &dir, generation),
        };
        if kind == Kind::Hook && generation == Generation::Omp {
            // oh-my-pi looks for hooks only in these.
            for part in ["pre", "post"] {
                found.extend(extensions::find::in_directory(&root, &dir.join(part), generation));
            }
        }
        for path in found {
            self.add(&root, kind, path, scope, SourceOrigin::Auto, base);
        }
    }

    fn package(&mut self, package: &Package) {
        let before = self.found.len();
        for path in package.paths(ResourceKind::Extensions) {
            self.add(
                &package.files,
                Kind::Extension,
                path,
                package.scope,
                SourceOrigin::Local,
                &package.root,
            );
        }
        for found in self.found.iter_mut().skip(before) {
            found.info.source.clone_from(&package.source);
            found.info.origin = "package";
        }
    }

    fn add(
        &mut self,
        root: &Root,
        kind: Kind,
        path: PathBuf,
        scope: Scope,
        origin: SourceOrigin,
        base: &Path,
    ) {
        // A hook that is no script runs by itself.
        let is_out = match kind {
            Kind::Extension => !counts(&self.changes, ResourceKind::Extensions, scope, &path),
            Kind::Hook => !is_script(root, &path),
            // Older agents kept programs of their own in that folder.
            Kind::Tool | Kind::Command => !matches!(Program::at(root, &path), Ok(None)),
        };
        if is_out {
            return;
        }
        let real = root.real(&path).unwrap_or_else(|_| path.clone());
        if !self.seen.insert(real) {
            return;
        }
        let runs = readable(root, &path).and_then(|()| {
            Ok(match Program::at(root, &path)? {
                Some(program) => Key::Program(Arc::new(program)),
                None => Key::TypeScript,
            })
        });
        self.push(kind, &path, scope, origin, base, runs);
    }

    fn push(
        &mut self,
        kind: Kind,
        path: &Path,
        scope: Scope,
        origin: SourceOrigin,
        base: &Path,
        runs: Result<Key, String>,
    ) {
        let path = path.to_string_lossy().into_owned();
        self.found.push(Found {
            runs,
            info: SourceInfo {
                path: path.clone(),
                source: origin.word().to_owned(),
                scope,
                origin: "top-level",
                base_dir: (scope != Scope::Temporary).then(|| base.to_string_lossy().into_owned()),
            },
            source: Source {
                path,
                scope: match scope {
                    Scope::User => ChildScope::User,
                    Scope::Project => ChildScope::Project,
                    Scope::Temporary => ChildScope::Temporary,
                },
                kind,
            },
        });
    }
}

impl Found {
    /// Returns true for hooks and for what the command line names: it may be there to check calls, so the session must not go on as
    /// if nothing were to be checked when it cannot be loaded.
    #[must_use]
    pub fn is_guard(&self) -> bool {
        self.source.kind == Kind::Hook || self.source.scope == ChildScope::Temporary
    }
}

/// Whether there is something that can be loaded. What does not exist is reported when it is loaded.
fn readable(root: &Root, path: &Path) -> Result<(), String> {
    match root.find(path) {
        Ok(found) if found.kind == FileKind::Other => Err("It is not a regular file".to_owned()),
        Err(error) if !files::is_absent(&error) => Err(error.to_string()),
        _ => Ok(()),
    }
}
