//! Finds the files that hold skills below a directory (pi-core.md 6.3). Reading them is `skills`' business.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use files::{Kind, Root, is_absent};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::diagnostic::Diagnostic;
use crate::resources::limits;
use crate::resources::place::Place;

const SKILL_FILE: &str = "SKILL.md";
const IGNORE_FILES: [&str; 3] = [".gitignore", ".ignore", ".fdignore"];

/// A file that may hold a skill.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) path: PathBuf,
    /// True for a loose `*.md` file, which is a skill only if its front matter says so.
    pub(crate) loose: bool,
}

/// What searching for skills may still cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    entries: usize,
    until: Option<Instant>,
}

impl Budget {
    /// The budget of one of the user's directories.
    pub(crate) fn user() -> Self {
        Self {
            entries: limits::SKILL_ENTRIES,
            until: None,
        }
    }

    /// The budget of everything that a project brings: it must not delay the start.
    pub(crate) fn project() -> Self {
        Self {
            until: Some(Instant::now() + limits::PROJECT_SKILL_TIME),
            ..Self::user()
        }
    }

    fn is_spent(&self) -> bool {
        self.entries == 0 || self.until.is_some_and(|until| Instant::now() > until)
    }
}

/// The candidates below a place in the order of their names; none if it is not there.
pub(crate) fn find(place: &Place, budget: &mut Budget, notes: &mut Vec<Diagnostic>) -> Vec<Candidate> {
    let mut walk = Walk {
        files: &place.root,
        top: &place.path,
        loose_files: place.loose_files,
        notes,
        found: Vec::new(),
        seen: HashSet::new(),
        ignores: Vec::new(),
        budget,
    };
    walk.directory(&place.path, 0);
    if walk.budget.is_spent() {
        let message = format!(
            "searching took more than {} entries or {} s; the rest was not searched for skills",
            limits::SKILL_ENTRIES,
            limits::PROJECT_SKILL_TIME.as_secs()
        );
        walk.notes.push(Diagnostic::left_out(&place.path, message));
    }
    walk.found
}

struct Walk<'a> {
    files: &'a Root,
    top: &'a Path,
    loose_files: bool,
    notes: &'a mut Vec<Diagnostic>,
    found: Vec<Candidate>,
    /// Real paths of the directories entered: symbolic links may form circles.
    seen: HashSet<PathBuf>,
    /// The rules of the directories from the root to here.
    ignores: Vec<Gitignore>,
    budget: &'a mut Budget,
}

impl Walk<'_> {
    fn directory(&mut self, directory: &Path, depth: usize) {
        if depth > limits::SKILL_DEPTH || self.budget.is_spent() {
            return;
        }
        let (names, is_cut) = match self.files.list(directory, self.budget.entries) {
            Ok(listed) => listed,
            Err(error) if is_absent(&error) => return,
            Err(error) => {
                let message = format!("not searched for skills: {error}");
                return self.notes.push(Diagnostic::left_out(directory, message));
            }
        };
        if !self
            .files
            .real(directory)
            .is_ok_and(|real| self.seen.insert(real))
        {
            return;
        }
        self.budget.entries -= if is_cut { self.budget.entries } else { names.len() };
        let rules = self.push_rules(directory, &names);
        let skill = directory.join(SKILL_FILE);
        let is_skill = names.contains(&skill) && self.files.is_readable_or_refused(&skill);
        if is_skill && !self.ignored(&skill, false) {
            self.found.push(Candidate {
                path: skill,
                loose: false,
            });
        } else {
            for path in names {
                self.entry(path, directory, depth);
            }
        }
        self.ignores.truncate(rules);
    }

    fn entry(&mut self, path: PathBuf, directory: &Path, depth: usize) {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            return;
        };
        if name.starts_with('.') || name == "node_modules" {
            return;
        }
        let markdown = name.to_ascii_lowercase().ends_with(".md");
        if self.budget.is_spent() {
            return;
        }
        let kind = match self.files.find(&path) {
            Ok(found) => found.kind,
            // A dangling link is nothing.
            Err(error) if is_absent(&error) => return,
            Err(error) => {
                let message = format!("not searched for skills: {error}");
                return self.notes.push(Diagnostic::left_out(&path, message));
            }
        };
        if self.ignored(&path, kind == Kind::Directory) {
            return;
        }
        if kind == Kind::Directory {
            self.directory(&path, depth + 1);
        } else if markdown && kind == Kind::File && self.loose_files == (directory == self.top) {
            self.found.push(Candidate { path, loose: true });
        }
    }

    /// Adds the rules of the directory's ignore files, if any; returns how many sets there were before.
    fn push_rules(&mut self, directory: &Path, names: &[PathBuf]) -> usize {
        let before = self.ignores.len();
        let files: Vec<PathBuf> = IGNORE_FILES
            .iter()
            .map(|name| directory.join(name))
            .filter(|path| names.contains(path))
            .collect();
        if files.is_empty() {
            return before;
        }
        let mut builder = GitignoreBuilder::new(directory);
        for file in files {
            let Ok(text) = self.files.read(&file, limits::IGNORE_FILE_BYTES) else {
                continue;
            };
            for line in text.text.lines() {
                if let Err(error) = builder.add_line(None, line) {
                    self.notes
                        .push(Diagnostic::new(&file, format!("rule left out: {error}")));
                }
            }
        }
        self.ignores.extend(builder.build());
        before
    }

    /// The innermost rule that says anything decides, as in git.
    fn ignored(&self, path: &Path, is_dir: bool) -> bool {
        let verdict = self
            .ignores
            .iter()
            .rev()
            .find_map(|rules| match rules.matched(path, is_dir) {
                Match::None => None,
                Match::Ignore(_) => Some(true),
                Match::Whitelist(_) => Some(false),
            });
        verdict.unwrap_or(false)
    }
}
