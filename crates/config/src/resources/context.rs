//! Context files: instructions for agents in the project and above (pi-core.md 6.2). How they appear in the prompt is `system_prompt`'s business.

use std::path::{Path, PathBuf};

use files::{Boundaries, Root, is_absent};

use crate::diagnostic::Diagnostic;
use crate::resources::limits;

/// Per directory the first of these that can be read counts; the override replaces its neighbours.
const NAMES: [&str; 5] = [
    "AGENTS.override.md",
    "AGENTS.md",
    "AGENTS.MD",
    "CLAUDE.md",
    "CLAUDE.MD",
];

/// A file whose text goes into every system prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextFile {
    /// Absolute when the directories given were.
    pub path: PathBuf,
    /// Its text, at most [`limits::CONTEXT_FILE_BYTES`].
    pub content: String,
}

/// In the dialect of today's oh-my-pi, this file replaces its neighbours.
const OF_OMP: &str = ".omp/AGENTS.md";

/// The context files: the one of `agent_dir` first, then from the root of the file system down to `cwd`. The one of `agent_dir` is
/// the user's own; each of the others must lie in the repository of its directory, or in the directory itself.
#[must_use]
pub fn context_files(
    agent_dir: &Path,
    cwd: &Path,
    boundaries: &Boundaries,
    is_omp: bool,
) -> (Vec<ContextFile>, Vec<Diagnostic>) {
    let mut files: Vec<ContextFile> = Vec::new();
    let mut notes = Vec::new();
    let repeated = repeated(cwd);
    let mut directories = vec![agent_dir];
    let mut ancestors: Vec<&Path> = cwd.ancestors().take(limits::ANCESTORS).collect();
    ancestors.reverse();
    directories.extend(ancestors);
    for directory in directories {
        let is_users = directory == agent_dir;
        let root = match is_users {
            true => Root::user(),
            false => boundaries.project(directory),
        };
        let first = (is_omp && !is_users).then_some(OF_OMP);
        if let Some(file) = context_file(directory, first, &root, &mut notes)
            && !files.iter().any(|known| known.path == file.path)
            && !is_at(repeated.as_deref(), directory, &file)
        {
            files.push(file);
        }
    }
    (files, notes)
}

/// Returns true if the file in this directory has this real path. The file itself may be a link to another one.
fn is_at(path: Option<&Path>, directory: &Path, file: &ContextFile) -> bool {
    let real = || Some(directory.canonicalize().ok()?.join(file.path.file_name()?));
    path.is_some_and(|path| real().as_deref() == Some(path))
}

/// The context file of a repository whose linked worktree lies inside of it and has a file of the same name: both are one file in two
/// versions, of which that of the worktree counts, as in pi 1.5.2. None if `cwd` is in no such worktree.
fn repeated(cwd: &Path) -> Option<PathBuf> {
    let line = |file: PathBuf| {
        let text = Root::user().read(&file, limits::CONTEXT_FILE_BYTES).ok()?.text;
        Some(text.lines().next()?.trim().to_owned())
    };
    let mut above = cwd.ancestors().take(limits::ANCESTORS);
    let worktree = above.find(|directory| directory.join(".git").exists())?;
    // In the worktree, `.git` is a file that names the directory with the data of the worktree.
    let own = worktree.join(line(worktree.join(".git"))?.strip_prefix("gitdir:")?.trim());
    let common = own.join(line(own.join("commondir"))?).canonicalize().ok()?;
    let (main, real) = (common.parent()?, worktree.canonicalize().ok()?);
    let is_inside = real != main && real.starts_with(main);
    // A bare repository has no working tree, so that the directory around it is another one.
    let is_checked_out = main.join(".git").canonicalize().is_ok_and(|git| git == common);
    let name = NAMES.iter().find(|name| worktree.join(name).is_file())?;
    (is_inside && is_checked_out).then(|| main.join(name))
}

fn context_file(
    directory: &Path,
    first: Option<&'static str>,
    root: &Root,
    notes: &mut Vec<Diagnostic>,
) -> Option<ContextFile> {
    first.into_iter().chain(NAMES).find_map(|name| {
        let path = directory.join(name);
        match root.read(&path, limits::CONTEXT_FILE_BYTES) {
            Ok(text) => {
                if text.cut {
                    let kib = limits::CONTEXT_FILE_BYTES / 1024;
                    notes.push(Diagnostic::new(
                        &path,
                        format!("only the first {kib} KiB are used"),
                    ));
                }
                Some(ContextFile {
                    path,
                    content: text.text,
                })
            }
            Err(error) => {
                if !is_absent(&error) {
                    notes.push(Diagnostic::left_out(
                        &path,
                        format!("could not read context file: {error}"),
                    ));
                }
                None
            }
        }
    })
}
