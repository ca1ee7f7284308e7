//! Finds the files that hold skills below a directory (pi-core.md 6.3). Reading them is `skills`' business.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::resources::diagnostic::Diagnostic;
use crate::resources::limits;
use crate::resources::text_file::read_up_to;

const SKILL_FILE: &str = "SKILL.md";
const IGNORE_FILES: [&str; 3] = [".gitignore", ".ignore", ".fdignore"];

/// A file that may hold a skill.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) path: PathBuf,
    /// True for a loose `*.md` file, which is a skill only if its front matter says so.
    pub(crate) loose: bool,
}

/// The candidates below `root` in the order of their names; none if `root` is not there.
pub(crate) fn find(root: &Path, loose_files: bool, notes: &mut Vec<Diagnostic>) -> Vec<Candidate> {
    let mut walk = Walk {
        root,
        loose_files,
        notes,
        found: Vec::new(),
        seen: HashSet::new(),
        ignores: Vec::new(),
        budget: limits::SKILL_ENTRIES,
    };
    walk.directory(root, 0);
    if walk.budget == 0 {
        let message = format!(
            "more than {} entries; the rest was not searched for skills",
            limits::SKILL_ENTRIES
        );
        walk.notes.push(Diagnostic::new(root, message));
    }
    walk.found
}

struct Walk<'a> {
    root: &'a Path,
    loose_files: bool,
    notes: &'a mut Vec<Diagnostic>,
    found: Vec<Candidate>,
    /// Real paths of the directories entered: symbolic links may form circles.
    seen: HashSet<PathBuf>,
    /// The rules of the directories from the root to here.
    ignores: Vec<Gitignore>,
    budget: usize,
}

impl Walk<'_> {
    fn directory(&mut self, directory: &Path, depth: usize) {
        if depth > limits::SKILL_DEPTH {
            return;
        }
        let Ok(entries) = fs::read_dir(directory) else {
            return;
        };
        if !fs::canonicalize(directory).is_ok_and(|real| self.seen.insert(real)) {
            return;
        }
        let mut names: Vec<PathBuf> = entries
            .flatten()
            .take(self.budget)
            .map(|entry| entry.path())
            .collect();
        self.budget -= names.len();
        names.sort();
        let rules = self.push_rules(directory, &names);
        let skill = directory.join(SKILL_FILE);
        if names.contains(&skill) && skill.is_file() && !self.ignored(&skill, false) {
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
        // Follows links; a dangling one is neither.
        let Ok(meta) = fs::metadata(&path) else { return };
        if self.ignored(&path, meta.is_dir()) {
            return;
        }
        if meta.is_dir() {
            self.directory(&path, depth + 1);
        } else if self.loose_files && markdown && meta.is_file() && directory == self.root {
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
            let Ok(text) = read_up_to(&file, limits::IGNORE_FILE_BYTES) else {
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
