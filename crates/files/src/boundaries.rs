//! Where the root of a project is, and which files of the user are private even inside a project.

use std::path::{Path, PathBuf};

use crate::Root;

/// Directories of a home directory that hold keys.
const KEYS: [&str; 3] = [".ssh", ".gnupg", ".aws"];

/// What separates projects from the user's own files.
#[derive(Debug, Clone, Default)]
pub struct Boundaries {
    agent_dir: PathBuf,
    home: Option<PathBuf>,
    denied: Vec<PathBuf>,
}

impl Boundaries {
    /// `agent_dir` has the user's settings and keys. `home` is the user's home directory.
    #[must_use]
    pub fn new(agent_dir: &Path, home: Option<&Path>) -> Self {
        Self {
            agent_dir: agent_dir.to_path_buf(),
            home: home.map(Path::to_path_buf),
            denied: Vec::new(),
        }
    }

    /// Adds files and directories that no link of a project may lead to.
    #[must_use]
    pub fn deny(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.denied.extend(paths);
        self
    }

    /// The root for files in `dir`, which must be absolute: the repository that `dir` belongs to, so that links between its
    /// packages work; `dir` itself if there is none. A repository that contains the home or the agent directory does not count:
    /// everything of the user would belong to the project.
    #[must_use]
    pub fn project(&self, dir: &Path) -> Root {
        let is_repository = |above: &&Path| above.join(".git").symlink_metadata().is_ok();
        let repository = dir.ancestors().find(is_repository);
        let top = repository
            .filter(|top| !self.is_around_the_user(top))
            .unwrap_or(dir);
        self.beneath(top)
    }

    /// The root for a path that the settings of a trusted project in `dir` name: that of the project if the path lies in it, the
    /// user's if it does not. Trust covers what settings spell out, not where a link leads.
    #[must_use]
    pub fn named(&self, dir: &Path, path: &Path) -> Root {
        let root = self.project(dir);
        if root.holds(path) { root } else { Root::user() }
    }

    /// The root for files that must lie in `dir`.
    #[must_use]
    pub fn beneath(&self, dir: &Path) -> Root {
        let keys = self.home.iter().flat_map(|home| KEYS.map(|name| home.join(name)));
        let private = std::iter::once(self.agent_dir.clone())
            .chain(keys)
            .chain(self.denied.iter().cloned());
        Root::project(dir, private.collect())
    }

    fn is_around_the_user(&self, dir: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let top = real(dir);
        let own = self.home.iter().chain([&self.agent_dir]);
        own.map(|path| real(path)).any(|path| path.starts_with(&top))
    }
}
