//! Rules of `.gitignore`, `.ignore` and `.git/info/exclude` for walks over directories.
//!
//! The crate `ignore` knows what a rule means, but reads these files without a limit and waits for pipes: a repository with a link
//! from `.gitignore` to `/dev/zero` takes all memory. So its walks run without rules of their own and ask here. These files are read
//! like all others of a project: regular files only, without blocking, up to a limit.

use std::fs::FileType;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::read;

/// Bytes of a file with rules. The rules of a longer one do not count.
const RULES: u64 = 256 * 1024;

/// Bytes of a file that names the directory of a repository.
const LOCATION: u64 = 8 * 1024;

/// Which rules count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IgnoreFiles {
    /// `.gitignore`, in a repository or not.
    Git,
    /// `.ignore`, `.gitignore`, `.git/info/exclude` and the user's global rules.
    All {
        /// Rules of Git count in repositories only.
        require_git: bool,
    },
}

/// The rules that a walk finds on its way. The walk must visit a directory before its entries, as a depth-first walk does.
#[derive(Debug)]
pub struct IgnoreRules {
    files: IgnoreFiles,
    /// The directory as the walk names it, and its real path, which the rules of the directories above need.
    root: (PathBuf, PathBuf),
    global: Gitignore,
    /// The rules of the root, and of the directories on the way to the newest entry.
    levels: Mutex<Vec<(PathBuf, Level)>>,
}

/// The rules that hold in a directory: the innermost ones, then those of the directories above.
type Level = Option<Arc<Rules>>;

/// Rules of one directory.
#[derive(Debug)]
struct Rules {
    ignore: Gitignore,
    git: Gitignore,
    exclude: Gitignore,
    /// A repository begins here, and rules of Git from above end.
    is_repository: bool,
    /// A repository begins here or above.
    in_repository: bool,
    above: Level,
}

impl IgnoreRules {
    /// The rules for a walk that begins at `root`. Blocks, as a walk does.
    #[must_use]
    pub fn new(root: &Path, files: IgnoreFiles) -> Self {
        let real = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
        let above: Vec<&Path> = real.ancestors().collect();
        let level = above
            .into_iter()
            .rev()
            .fold(None, |above, dir| Rules::read(dir, files, above));
        let global = match files {
            IgnoreFiles::Git => Gitignore::empty(),
            // The user's own file; the walk's directory takes the place of the working directory, which a library does not read.
            IgnoreFiles::All { .. } => GitignoreBuilder::new(&real).build_global().0,
        };
        Self {
            files,
            root: (root.to_path_buf(), real),
            global,
            levels: Mutex::new(vec![(root.to_path_buf(), level)]),
        }
    }

    /// Returns true if the rules leave out an entry of the walk.
    #[must_use]
    pub fn ignores(&self, path: &Path, kind: Option<FileType>) -> bool {
        let (Some(dir), Ok(below)) = (path.parent(), path.strip_prefix(&self.root.0)) else {
            return false;
        };
        if below.as_os_str().is_empty() {
            return false;
        }
        let real = self.root.1.join(below);
        let level = self.level(dir, real.parent().unwrap_or(&real));
        let is_dir = kind.is_some_and(|kind| kind.is_dir());
        self.verdict(level.as_ref(), &real, is_dir)
    }

    /// The rules in a directory: read when the first of its entries comes, dropped when the walk has left it.
    fn level(&self, dir: &Path, real: &Path) -> Level {
        let mut levels = self.levels.lock().unwrap_or_else(PoisonError::into_inner);
        while levels.len() > 1 && levels.last().is_some_and(|(known, _)| !dir.starts_with(known)) {
            levels.pop();
        }
        let (known, above) = levels.last().cloned()?;
        if known == dir {
            return above;
        }
        let level = Rules::read(real, self.files, above);
        levels.push((dir.to_path_buf(), level.clone()));
        level
    }

    fn verdict(&self, level: Option<&Arc<Rules>>, path: &Path, is_dir: bool) -> bool {
        let needs_git = matches!(self.files, IgnoreFiles::All { require_git: true });
        let counts_git = !needs_git || level.is_some_and(|rules| rules.in_repository);
        let (mut ignore, mut git, mut exclude) = (Match::None, Match::None, Match::None);
        let mut is_outside = false;
        let mut next = level;
        while let Some(rules) = next {
            ignore = ignore.or(rules.ignore.matched(path, is_dir));
            if counts_git && !is_outside {
                git = git.or(rules.git.matched(path, is_dir));
                exclude = exclude.or(rules.exclude.matched(path, is_dir));
            }
            is_outside |= needs_git && rules.is_repository;
            next = rules.above.as_ref();
        }
        let global = match counts_git {
            true => self.global.matched(path, is_dir),
            false => Match::None,
        };
        ignore.or(git).or(exclude).or(global).is_ignore()
    }
}

impl Rules {
    /// The rules of a directory on top of those above; only those above, if it has none.
    fn read(dir: &Path, files: IgnoreFiles, above: Level) -> Level {
        let is_all = files != IgnoreFiles::Git;
        let dot_git = dir.join(".git");
        let kind = is_all.then(|| dot_git.metadata().ok()).flatten();
        let is_repository = is_all && (kind.is_some() || dir.join(".jj").exists());
        let git = gitignore(dir, &dir.join(".gitignore"));
        let ignore = is_all.then(|| gitignore(dir, &dir.join(".ignore")));
        let exclude = kind.and_then(|kind| {
            let common = if kind.is_file() {
                common(&dot_git)?
            } else {
                dot_git
            };
            Some(gitignore(dir, &common.join("info/exclude")))
        });
        let (ignore, exclude) = (ignore.unwrap_or_default(), exclude.unwrap_or_default());
        if !is_repository && git.is_none() && ignore.is_none() && exclude.is_none() {
            return above;
        }
        let none = Gitignore::empty;
        Some(Arc::new(Self {
            ignore: ignore.unwrap_or_else(none),
            git: git.unwrap_or_else(none),
            exclude: exclude.unwrap_or_else(none),
            is_repository,
            in_repository: is_repository || above.as_ref().is_some_and(|above| above.in_repository),
            above,
        }))
    }
}

/// The rules in a file about the entries of a directory. None if there are none, or the file is no regular file or too long.
fn gitignore(dir: &Path, file: &Path) -> Option<Gitignore> {
    let text = text(file, RULES)?;
    let mut builder = GitignoreBuilder::new(dir);
    for line in text.lines() {
        // A rule that is none is left out, as Git does it.
        drop(builder.add_line(None, line));
    }
    builder.build().ok().filter(|rules| !rules.is_empty())
}

fn text(file: &Path, limit: u64) -> Option<String> {
    let read = read::open(file).and_then(|file| read::text(file, limit)).ok()?;
    (!read.cut).then_some(read.text)
}

/// The common directory of a repository whose `.git` is a file, as in a linked worktree.
fn common(dot_git: &Path) -> Option<PathBuf> {
    let line = |file: &Path| Some(text(file, LOCATION)?.lines().next()?.to_owned());
    let own = PathBuf::from(line(dot_git)?.strip_prefix("gitdir: ")?);
    let common = line(&own.join("commondir"))?;
    Some(if common.starts_with('.') {
        own.join(common)
    } else {
        PathBuf::from(common)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::os::unix::fs::symlink;

    use ignore::WalkBuilder;
    use tempfile::TempDir;

    use super::*;

    /// A tree with these files, and empty ones of the other names.
    fn tree(rules: &[(&str, &str)], names: &[&str]) -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        let empty = names.iter().map(|name| (*name, ""));
        for (name, text) in rules.iter().copied().chain(empty) {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    fn names(root: &Path, walk: &WalkBuilder) -> BTreeSet<String> {
        let below = |entry: ignore::DirEntry| {
            let below = entry.path().strip_prefix(root).unwrap();
            below.display().to_string()
        };
        walk.build().map(|entry| below(entry.unwrap())).collect()
    }

    /// What a walk sees with our rules.
    fn ours(root: &Path, files: IgnoreFiles) -> BTreeSet<String> {
        let rules = IgnoreRules::new(root, files);
        let mut walk = WalkBuilder::new(root);
        walk.standard_filters(false)
            .filter_entry(move |entry| !rules.ignores(entry.path(), entry.file_type()));
        names(root, &walk)
    }

    /// What a walk sees with the rules of the crate `ignore`.
    fn theirs(root: &Path, files: IgnoreFiles) -> BTreeSet<String> {
        let mut walk = WalkBuilder::new(root);
        walk.hidden(false);
        match files {
            IgnoreFiles::Git => walk
                .ignore(false)
                .git_global(false)
                .git_exclude(false)
                .require_git(false),
            IgnoreFiles::All { require_git } => walk.require_git(require_git),
        };
        names(root, &walk)
    }

    const EACH: [IgnoreFiles; 3] = [
        IgnoreFiles::Git,
        IgnoreFiles::All { require_git: false },
        IgnoreFiles::All { require_git: true },
    ];

    #[test]
    fn rules_match_those_of_the_ignore_crate() {
        let dir = tree(
            &[
                (".gitignore", "*.log\n/top.txt\nbuild/\n!keep.log\nd*/x\n[\n#no\n"),
                (".ignore", "*.tmp\n!a.log\n"),
                ("repo/.git/info/exclude", "secret*\n/sub/only.txt\n"),
                ("repo/.gitignore", "\u{feff}*.o\n!secret.keep\n"),
                ("repo/sub/.gitignore", "!b.o\ntop.txt\n"),
                ("repo/sub/inner/.git/HEAD", ""),
                ("repo/sub/inner/.gitignore", "c.txt\n"),
                ("tree/.git", "gitdir: ../main/.git/worktrees/tree\nmore\n"),
                ("main/.git/info/exclude", "excluded\n"),
                ("jj/.jj/x", ""),
                ("jj/.gitignore", "gone\n"),
            ],
            &[
                "a.log",
                "b.log",
                "keep.log",
                "top.txt",
                "sub/top.txt",
                "build/x",
                "deep/x/y",
                "deep/er/x",
                "c.tmp",
                "repo/a.o",
                "repo/b.log",
                "repo/d.tmp",
                "repo/secret",
                "repo/secret.keep",
                "repo/top.txt",
                "repo/sub/b.o",
                "repo/sub/c.o",
                "repo/sub/top.txt",
                "repo/sub/only.txt",
                "repo/sub/secret1",
                "repo/sub/inner/c.txt",
                "repo/sub/inner/b.o",
                "repo/sub/inner/top.txt",
                "repo/sub/inner/x.log",
                "repo/sub/inner/secret2",
                "tree/excluded",
                "tree/kept",
                "jj/gone",
                "jj/kept",
                "main/excluded",
            ],
        );
        let location = "gitdir: ".to_owned() + dir.path().join("main/.git/worktrees/tree").to_str().unwrap();
        fs::write(dir.path().join("tree/.git"), location).unwrap();
        fs::create_dir_all(dir.path().join("main/.git/worktrees/tree")).unwrap();
        fs::write(dir.path().join("main/.git/worktrees/tree/commondir"), "../..\n").unwrap();
        for root in ["", "repo", "repo/sub", "repo/sub/inner", "tree", "jj"] {
            let root = dir.path().join(root);
            for files in EACH {
                let (ours, theirs) = (ours(&root, files), theirs(&root, files));
                assert_eq!(ours, theirs, "{} {files:?}", root.display());
            }
        }
        let all = ours(dir.path(), IgnoreFiles::All { require_git: false });
        assert!(!all.contains("b.log") && all.contains("a.log") && !all.contains("tree/excluded"));
    }

    #[test]
    fn odd_files_of_rules_do_not_count() {
        let dir = tree(
            &[("real", "a\n")],
            &["a", "long/a", "linked/a", "zero/a", "pipe/a", "location/a"],
        );
        let at = |name: &str| dir.path().join(name);
        symlink(at("real"), at("linked/.gitignore")).unwrap();
        fs::write(at("long/.gitignore"), "a\n".repeat(200_000)).unwrap();
        for name in [".gitignore", ".ignore"] {
            symlink("/dev/zero", at("zero").join(name)).unwrap();
        }
        for name in [".gitignore", ".ignore", ".git"] {
            let made = std::process::Command::new("mkfifo")
                .arg(at("pipe").join(name))
                .status();
            assert!(made.unwrap().success());
        }
        fs::write(
            at("location/.git"),
            format!("gitdir: {}", at("pipe/.git").display()),
        )
        .unwrap();
        // A walk that waits for a pipe never ends. A walk that reads zeros takes all memory.
        let root = dir.path().to_path_buf();
        let (done, wait) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let seen = EACH.map(|files| ours(&root, files));
            done.send(seen)
        });
        let seen = wait.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
        for seen in seen {
            let has = |name: &str| seen.contains(name);
            assert!(
                ["a", "long/a", "zero/a", "pipe/a", "location/a"]
                    .into_iter()
                    .all(has),
                "{seen:?}"
            );
        }
        let git = ours(dir.path(), IgnoreFiles::Git);
        assert!(!git.contains("linked/a"), "a link to a file is read");
    }
}
