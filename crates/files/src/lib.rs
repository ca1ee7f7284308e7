//! Reads configuration and texts that a project or a user brings.
//!
//! Every reader of such files asks a [`Root`]. It says whose the files are: links in the user's own files are followed, links in a
//! project's files only as long as they stay in the project (`walk`). Both kinds are regular files, are opened without blocking,
//! and are read up to a limit. Files with rules for walks (`.gitignore`) are read the same way ([`IgnoreRules`]). What the files mean, and whether a project is trusted, is the caller's business.
//! Files that are changed are replaced in one step ([`replace`]), and under the lock of pi if pi writes them, too ([`PiLock`]).

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod boundaries;
mod ignore_rules;
mod pi_lock;
mod read;
mod replace;
#[cfg(test)]
mod tests;
mod walk;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use boundaries::Boundaries;
pub use ignore_rules::{IgnoreFiles, IgnoreRules};
pub use pi_lock::PiLock;
pub use read::{Text, dangling_link, is_absent};
pub use replace::{Draft, Mode, replace};

/// Whose files are read, and where these may lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// None: the user's own files.
    project: Option<Arc<Project>>,
}

/// A directory whose files must lie in it.
#[derive(Debug, PartialEq, Eq)]
struct Project {
    /// The directory as the caller named it, absolute.
    named: PathBuf,
    /// Files and directories that no link of the project may lead to.
    private: Vec<PathBuf>,
}

/// Kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A pipe, socket or device.
    Other,
}

/// Kind and mode of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Kind of the file that links lead to.
    pub kind: Kind,
    /// Permission bits.
    pub mode: u32,
}

impl Root {
    /// Files that the user owns or named: links are followed wherever they lead.
    #[must_use]
    pub fn user() -> Self {
        Self { project: None }
    }

    fn project(named: &Path, private: Vec<PathBuf>) -> Self {
        let named = named.to_path_buf();
        Self {
            project: Some(Arc::new(Project { named, private })),
        }
    }

    /// Returns true if a path, by its name, lies in the root. The user's own files may lie anywhere.
    #[must_use]
    pub fn holds(&self, path: &Path) -> bool {
        let project = self.project.as_ref();
        project.is_none_or(|project| project.below(path).is_some())
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// If the file does not exist, cannot be opened, is not a regular file, or lies outside the root.
    pub fn open(&self, path: &Path) -> io::Result<File> {
        match &self.project {
            Some(project) => project.walk(path)?.open(),
            None => read::open(path),
        }
    }

    /// Reads at most `limit` bytes of a regular file and decodes them leniently as UTF-8.
    ///
    /// # Errors
    /// As [`Self::open`], and if reading fails.
    pub fn read(&self, path: &Path, limit: u64) -> io::Result<Text> {
        read::text(self.open(path)?, limit)
    }

    /// Reads like [`Self::read`]. Returns `None` if there is no such file.
    ///
    /// # Errors
    /// As [`Self::read`], except for a missing file or a directory of that name.
    pub fn read_if_there(&self, path: &Path, limit: u64) -> io::Result<Option<Text>> {
        match self.read(path, limit) {
            Ok(text) => Ok(Some(text)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads at most `limit` bytes of a regular file. True: the file is longer.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_bytes(&self, path: &Path, limit: u64) -> io::Result<(Vec<u8>, bool)> {
        read::bytes(self.open(path)?, limit)
    }

    /// Looks at a file without opening it.
    ///
    /// # Errors
    /// If the file does not exist or lies outside the root.
    pub fn find(&self, path: &Path) -> io::Result<Found> {
        match &self.project {
            Some(project) => Ok(project.walk(path)?.found()),
            None => Ok(read::found(&std::fs::metadata(path)?)),
        }
    }

    /// Returns true if the path leads to a regular file in the root.
    #[must_use]
    pub fn is_file(&self, path: &Path) -> bool {
        self.is(path, Kind::File)
    }

    /// Returns true if the path leads to a directory in the root.
    #[must_use]
    pub fn is_dir(&self, path: &Path) -> bool {
        self.is(path, Kind::Directory)
    }

    fn is(&self, path: &Path, kind: Kind) -> bool {
        self.find(path).is_ok_and(|found| found.kind == kind)
    }

    /// Returns true if reading the path would say something: it leads to a file, or to something that must not be read. False
    /// for directories and for what does not exist.
    #[must_use]
    pub fn is_readable_or_refused(&self, path: &Path) -> bool {
        match self.find(path) {
            Ok(found) => found.kind != Kind::Directory,
            Err(error) => !is_absent(&error),
        }
    }

    /// Lists at most `limit` entries of a directory, sorted by name, as paths below `dir`. True: there are more.
    ///
    /// # Errors
    /// If the directory does not exist, cannot be read, or lies outside the root.
    pub fn list(&self, dir: &Path, limit: usize) -> io::Result<(Vec<PathBuf>, bool)> {
        let names = match &self.project {
            Some(project) => project.walk(dir)?.list(limit)?,
            None => read::list(dir, limit)?,
        };
        let is_cut = names.len() > limit;
        let mut paths: Vec<PathBuf> = names.iter().take(limit).map(|name| dir.join(name)).collect();
        paths.sort();
        Ok((paths, is_cut))
    }

    /// Returns the real path of a file.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub fn real(&self, path: &Path) -> io::Result<PathBuf> {
        match &self.project {
            Some(project) => project.walk(path)?.real(project),
            None => path.canonicalize(),
        }
    }
}
