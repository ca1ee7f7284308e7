//! Packages: directories that bring extensions, skills and prompt templates together (pi 1.5, packages docs). Packages from npm
//! or git are used where `pinion install`, pi and the start with `-e` put them; nothing is installed or updated here.

use std::path::{Path, PathBuf};

use extensions::line::Generation;
use files::{Boundaries, Root};
use serde_json::Value;

use crate::diagnostic::Diagnostic;
use crate::resources::changes::{is_change, rules, says};
use crate::resources::kind::Kind;
use crate::resources::limits;
use crate::resources::package_source::PackageSource;
use crate::resources::place::Place;
use crate::resources::skill_files::{self, Budget};
use crate::source::{Scope, resolve_path};

/// A package as settings or the command line name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageSpec {
    /// `npm:name`, `git:host/path`, an address, or a path.
    pub source: String,
    /// Who named it.
    pub scope: Scope,
    /// What a relative path starts from.
    pub base: PathBuf,
    /// The wanted files by kind; all of a kind that is not here.
    pub only: Vec<(Kind, Vec<String>)>,
    /// False if nothing loads but the files that `only` names.
    pub autoload: bool,
    /// Changes of the project to this package of the user, by kind: an entry of the project with `autoload: false`.
    pub over: Vec<(Kind, Vec<String>)>,
}

/// A package that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// What it was named.
    pub source: String,
    /// Who named it.
    pub scope: Scope,
    /// Its directory, or its only file.
    pub root: PathBuf,
    /// Whose files it has.
    pub files: Root,
    only: Vec<(Kind, Vec<String>)>,
    autoload: bool,
    over: Vec<(Kind, Vec<String>)>,
}

/// The list for a kind.
fn list_of(lists: &[(Kind, Vec<String>)], kind: Kind) -> Option<&[String]> {
    let found = lists.iter().find(|(of, _)| *of == kind);
    found.map(|(_, list)| list.as_slice())
}

impl PackageSpec {
    /// Reads an entry of the setting `packages`. Nothing when it is none.
    pub(crate) fn parse(entry: &Value, scope: Scope, base: &Path) -> Option<Self> {
        let source = match entry {
            Value::Object(members) => members.get("source")?.as_str()?,
            other => other.as_str()?,
        };
        let mut only = Vec::new();
        for kind in Kind::ALL {
            match entry.get(kind.word()) {
                None | Some(Value::Null) => {}
                Some(Value::Array(list)) => {
                    let texts = list.iter().filter_map(Value::as_str).map(str::to_owned);
                    only.push((kind, texts.collect()));
                }
                // The user meant less than everything.
                Some(_) => return None,
            }
        }
        Some(Self {
            source: source.to_owned(),
            scope,
            base: base.to_path_buf(),
            only,
            autoload: entry.get("autoload").and_then(Value::as_bool) != Some(false),
            over: Vec::new(),
        })
    }

    /// Returns true for a source in npm or git, which has to be installed.
    #[must_use]
    pub fn is_installed(source: &str) -> bool {
        installed(source).is_some()
    }

    /// A path or package of the command line; none when it is a plain file.
    #[must_use]
    pub fn of_flag(text: &str, path: &Path) -> Option<Self> {
        (installed(text).is_some() || path.is_dir()).then(|| Self {
            source: text.to_owned(),
            scope: Scope::Temporary,
            base: path.parent().unwrap_or(path).to_path_buf(),
            only: Vec::new(),
            autoload: true,
            over: Vec::new(),
        })
    }

    /// Looks for it.
    ///
    /// # Errors
    /// When it is not there.
    pub fn find(&self, agent_dir: &Path, cwd: &Path, home: Option<&Path>) -> Result<Package, Diagnostic> {
        let boundaries = Boundaries::new(agent_dir, home);
        let root = match installed(&self.source) {
            Some(below) if self.scope == Scope::Project => cwd.join(".pi").join(below),
            Some(below) if self.scope == Scope::Temporary => {
                named(&self.source, &below, agent_dir, &boundaries)
            }
            Some(below) => agent_dir.join(below),
            None => resolve_path(&self.source, &self.base, home),
        };
        let source = match PackageSource::parse(&self.source) {
            Ok(source) => source,
            Err(error) => {
                let message = format!("package {} {error}", self.source);
                return Err(Diagnostic::new(&self.base, message));
            }
        };
        let files = match (self.scope, installed(&self.source)) {
            (Scope::Project, Some(_)) => boundaries.project(cwd),
            (Scope::Project, None) => boundaries.named(cwd, &root),
            // A downloaded package has no links to the user's files.
            (_, Some(_)) => boundaries.beneath(&root),
            (_, None) => Root::user(),
        };
        let found = files.find(&root);
        if let Err(error) = found.as_ref()
            && !files::is_absent(error)
        {
            return Err(Diagnostic::new(
                &root,
                format!("package {}: {error}", self.source),
            ));
        }
        if found.is_err() && source.has_password() {
            // The whole address must not be shown, and no command would install it.
            let name = source.identity(&self.base, home);
            let message = format!("package {name} is not installed: its address contains a password");
            return Err(Diagnostic::new(&root, message));
        }
        if found.is_err() {
            let how = match installed(&self.source) {
                Some(below) if self.scope == Scope::Temporary && agent_dir.join(&below).exists() => {
                    "is not installed, and the installed package of the user may be another version. \
                     Start again with network access"
                        .to_owned()
                }
                Some(_) if self.scope == Scope::Temporary => {
                    format!("is not installed. Run: pinion install {}", self.source)
                }
                Some(_) => "is not installed. Run: pinion update".to_owned(),
                None => "is not there".to_owned(),
            };
            return Err(Diagnostic::new(&root, format!("package {} {how}", self.source)));
        }
        Ok(Package {
            source: self.source.clone(),
            scope: self.scope,
            root,
            files,
            only: self.only.clone(),
            autoload: self.autoload,
            over: self.over.clone(),
        })
    }
}

/// Where a package from npm or git is installed, below the agent directory or the project's `.pi`. None for paths.
fn installed(source: &str) -> Option<PathBuf> {
    PackageSource::parse(source).ok()?.below()
}

/// Where a package of the command line is: where it was installed for the command line, else with the packages of the user if that is
/// the wanted version.
fn named(source: &str, below: &Path, agent_dir: &Path, boundaries: &Boundaries) -> PathBuf {
    let own = agent_dir.join(PackageSource::temporary_base(source)).join(below);
    let users = agent_dir.join(below);
    if own.symlink_metadata().is_err() && is_wanted(source, &users, boundaries) {
        users
    } else {
        own
    }
}

/// Returns true if the command line names this installed package. A range, a tag or a branch may mean another one.
fn is_wanted(source: &str, root: &Path, boundaries: &Boundaries) -> bool {
    match PackageSource::parse(source) {
        Ok(PackageSource::Git {
            reference: Some(_), ..
        }) => false,
        Ok(source @ PackageSource::Npm { version: Some(_), .. }) => {
            let manifest = manifest(&boundaries.beneath(root), root).unwrap_or_default();
            let version = manifest.get("version").and_then(Value::as_str);
            version.is_some() && version == source.exact_version()
        }
        _ => true,
    }
}

/// The manifest of a package.
fn manifest(files: &Root, root: &Path) -> Option<Value> {
    let text = files
        .read(&root.join("package.json"), limits::MANIFEST_BYTES)
        .ok()?;
    serde_json::from_str(&text.text).ok()
}

impl Package {
    /// Files and directories that it brings of a kind, in its own order.
    #[must_use]
    pub fn paths(&self, kind: Kind) -> Vec<PathBuf> {
        if self.files.is_file(&self.root) {
            let is_one = kind == Kind::Extensions;
            return is_one.then(|| self.root.clone()).into_iter().collect();
        }
        let found = match self.manifest(kind) {
            Some(entries) => self.listed(kind, &entries),
            None => self.usual(kind),
        };
        let own = match list_of(&self.only, kind) {
            None if self.autoload => found.clone(),
            None | Some([]) => Vec::new(),
            Some(only) => {
                let by_default = self.autoload && only.iter().all(|item| is_change(item));
                self.chosen(kind, &found, only, by_default)
            }
        };
        let Some(over) = list_of(&self.over, kind) else {
            return own;
        };
        let own = self.files_of(kind, &own);
        let rules = rules(&self.root, over);
        let mut files = self.files_of(kind, &found);
        files.retain(|file| says(&rules, &self.root, file).unwrap_or_else(|| own.contains(file)));
        files
    }

    /// The places that it brings for a kind.
    pub(crate) fn places(&self, kind: Kind) -> impl Iterator<Item = Place> {
        let place = |path| Place {
            package: Some(self.source.clone()),
            ..Place::auto(self.files.clone(), path, &self.root, self.scope)
        };
        self.paths(kind).into_iter().map(place)
    }

    fn manifest(&self, kind: Kind) -> Option<Vec<String>> {
        let manifest = manifest(&self.files, &self.root)?;
        let list = manifest.get("pi")?.get(kind.word())?.as_array()?;
        Some(list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
    }

    /// The usual directory; for extensions also what the directory is by itself.
    fn usual(&self, kind: Kind) -> Vec<PathBuf> {
        let dir = self.root.join(kind.word());
        match kind {
            Kind::Extensions if self.files.is_dir(&dir) => {
                extensions::find::at(&self.files, &dir, Generation::Pi)
            }
            Kind::Extensions => extensions::find::at(&self.files, &self.root, Generation::Pi),
            _ if self.files.is_dir(&dir) => vec![dir],
            _ => Vec::new(),
        }
    }

    fn listed(&self, kind: Kind, entries: &[String]) -> Vec<PathBuf> {
        let is_change = |entry: &String| is_change(entry);
        let is_pattern = |entry: &String| entry.contains(['*', '?', '[', '{']);
        let (changes, entries): (Vec<String>, Vec<String>) = entries.iter().cloned().partition(is_change);
        let (patterns, plain): (Vec<String>, Vec<String>) = entries.into_iter().partition(is_pattern);
        let mut found: Vec<PathBuf> = Vec::new();
        for entry in plain {
            let path = resolve_path(&entry, &self.root, None);
            match kind {
                Kind::Extensions if self.files.find(&path).is_ok() => {
                    found.extend(extensions::find::at(&self.files, &path, Generation::Pi));
                }
                _ => found.push(path),
            }
        }
        if !patterns.is_empty() {
            let mut files = Vec::new();
            self.below(&self.root, 0, &mut files);
            let rules = rules(&self.root, &patterns);
            found.extend(
                files
                    .into_iter()
                    .filter(|file| says(&rules, &self.root, file) == Some(true)),
            );
        }
        // What leads out of the package is not the package's.
        found.retain(|path| path.starts_with(&self.root) && self.files.find(path).is_ok());
        if changes.is_empty() {
            found
        } else {
            self.chosen(kind, &found, &changes, true)
        }
    }

    /// What a list of paths and patterns leaves of it. `by_default` says whether files stay that no pattern matches.
    fn chosen(&self, kind: Kind, found: &[PathBuf], list: &[String], by_default: bool) -> Vec<PathBuf> {
        let rules = rules(&self.root, list);
        let mut files = self.files_of(kind, found);
        files.retain(|file| says(&rules, &self.root, file).unwrap_or(by_default));
        files
    }

    /// The single files in the found paths.
    fn files_of(&self, kind: Kind, found: &[PathBuf]) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = Vec::new();
        for path in found {
            match kind {
                _ if self.files.is_file(path) => files.push(path.clone()),
                Kind::Skills => {
                    let place = Place::auto(self.files.clone(), path.clone(), &self.root, self.scope);
                    let candidates = skill_files::find(&place, &mut Budget::user(), &mut Vec::new());
                    files.extend(candidates.into_iter().map(|candidate| candidate.path));
                }
                _ => self.below(path, 0, &mut files),
            }
        }
        files
    }

    /// The files below a directory, by name, without installed dependencies.
    fn below(&self, dir: &Path, depth: usize, out: &mut Vec<PathBuf>) {
        if depth > limits::SKILL_DEPTH || out.len() > limits::SKILL_ENTRIES {
            return;
        }
        let listed = self.files.list(dir, limits::SKILL_ENTRIES);
        for path in listed.unwrap_or_default().0 {
            let name = path.file_name().unwrap_or_default();
            let is_hidden = name.to_string_lossy().starts_with('.') || name == "node_modules";
            // Links are not followed: they may form circles.
            match path.symlink_metadata() {
                Ok(found) if found.is_dir() && !is_hidden => self.below(&path, depth + 1, out),
                Ok(found) if found.is_file() && !is_hidden => out.push(path),
                _ => {}
            }
        }
    }
}
