//! Resolves a path beneath a directory, name by name, each relative to a descriptor of the directory before it. No step follows a
//! link: the target of a link is read and resolved by the same rules. So a link that changes meanwhile opens nothing else, and the
//! rules are the same on every kernel. Unlike `RESOLVE_BENEATH` of `openat2`, an absolute link into the directory works.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::{Found, Kind, Project, read};

/// Links on the way to one file; as many as Linux follows.
const LINKS: usize = 40;
/// How a directory on the way is opened. Linux needs no permission to list it.
#[cfg(target_os = "linux")]
const ENTER: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const ENTER: OFlags = OFlags::RDONLY;

/// Where a path led.
pub(crate) struct Walked {
    /// The directory that holds the file, or the directory that the path leads to.
    dir: OwnedFd,
    /// The name in `dir`; none for a directory.
    name: Option<OsString>,
    /// The names from the root to the file.
    names: Vec<OsString>,
    stat: Stat,
}

struct Walk<'a> {
    project: &'a Project,
    top: OwnedFd,
    /// Directories entered, with their names and the state they were found in.
    entered: Vec<(OwnedFd, OsString, Stat)>,
    left: VecDeque<Part>,
    links: usize,
    private: Vec<Stat>,
}

enum Part {
    Up,
    Name(OsString),
}

impl Project {
    /// Resolves an absolute path.
    ///
    /// # Errors
    /// If nothing is there, or the path leads out of the directory or to something private.
    pub(crate) fn walk(&self, path: &Path) -> io::Result<Walked> {
        let flags = ENTER | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = rustix::fs::openat(CWD, &self.named, flags, Mode::empty())?;
        let private = self.private.iter();
        let mut walk = Walk {
            project: self,
            top,
            entered: Vec::new(),
            left: VecDeque::new(),
            links: 0,
            private: private.filter_map(|path| rustix::fs::stat(path).ok()).collect(),
        };
        let below = self.below(path).ok_or_else(|| self.outside())?;
        walk.go_on_with(&below);
        walk.run()
    }

    /// The part of a path that follows the directory, however the directory is called.
    pub(crate) fn below(&self, path: &Path) -> Option<PathBuf> {
        if let Ok(rest) = path.strip_prefix(&self.named) {
            return Some(rest.to_path_buf());
        }
        let real = self.named.canonicalize().ok()?;
        path.strip_prefix(real).ok().map(Path::to_path_buf)
    }

    fn outside(&self) -> io::Error {
        let text = format!("it leads out of {}", self.named.display());
        io::Error::new(io::ErrorKind::PermissionDenied, text)
    }
}

impl Walk<'_> {
    /// Puts the components of a path in front of the remaining ones.
    fn go_on_with(&mut self, path: &Path) {
        for part in path.components().rev() {
            match part {
                Component::ParentDir => self.left.push_front(Part::Up),
                Component::Normal(name) => self.left.push_front(Part::Name(name.to_owned())),
                Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
            }
        }
    }

    fn run(mut self) -> io::Result<Walked> {
        while let Some(part) = self.left.pop_front() {
            let name = match part {
                Part::Name(name) => name,
                Part::Up if self.entered.pop().is_some() => continue,
                Part::Up => return Err(self.project.outside()),
            };
            let here = self.entered.last().map_or(&self.top, |(dir, ..)| dir);
            let stat = rustix::fs::statat(here, &name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Symlink => {
                    let target = rustix::fs::readlinkat(here, &name, Vec::new())?;
                    self.follow(&PathBuf::from(OsString::from_vec(target.into_bytes())))?;
                }
                FileType::Directory => {
                    self.refuse_private(&stat)?;
                    let flags = ENTER | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    let dir = rustix::fs::openat(here, &name, flags, Mode::empty())?;
                    self.entered.push((dir, name, stat));
                }
                _ if !self.left.is_empty() => return Err(Errno::NOTDIR.into()),
                _ => {
                    self.refuse_private(&stat)?;
                    return Ok(self.end(Some(name), stat));
                }
            }
        }
        let stat = match self.entered.last() {
            Some((_, _, stat)) => *stat,
            None => rustix::fs::fstat(&self.top)?,
        };
        Ok(self.end(None, stat))
    }

    fn follow(&mut self, target: &Path) -> io::Result<()> {
        self.links += 1;
        if self.links > LINKS {
            return Err(Errno::LOOP.into());
        }
        if target.is_absolute() {
            let below = self.project.below(target).ok_or_else(|| self.project.outside())?;
            self.entered.clear();
            self.go_on_with(&below);
        } else {
            self.go_on_with(target);
        }
        Ok(())
    }

    /// Refuses a link to a private file of the user. A path without a link may name it.
    fn refuse_private(&self, stat: &Stat) -> io::Result<()> {
        let is_this = |private: &Stat| (private.st_dev, private.st_ino) == (stat.st_dev, stat.st_ino);
        if self.links > 0 && self.private.iter().any(is_this) {
            let text = "it leads to private files of the user";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        Ok(())
    }

    fn end(mut self, name: Option<OsString>, stat: Stat) -> Walked {
        let entered = self.entered.iter();
        let names = entered.map(|(_, name, _)| name.clone()).chain(name.clone());
        Walked {
            names: names.collect(),
            dir: self.entered.pop().map_or(self.top, |(dir, ..)| dir),
            name,
            stat,
        }
    }
}

impl Walked {
    pub(crate) fn found(&self) -> Found {
        Found {
            kind: match FileType::from_raw_mode(self.stat.st_mode) {
                FileType::RegularFile => Kind::File,
                FileType::Directory => Kind::Directory,
                _ => Kind::Other,
            },
            mode: Mode::from_raw_mode(self.stat.st_mode).bits(),
        }
    }

    pub(crate) fn open(&self) -> io::Result<File> {
        let name = match (&self.name, self.found().kind) {
            (Some(name), Kind::File) => name,
            (Some(_), _) => return Err(read::not_regular()),
            (None, _) => return Err(io::ErrorKind::IsADirectory.into()),
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.dir, name, flags, Mode::empty())?;
        read::checked(File::from(file))
    }

    /// The names in the directory, one more than `limit` at most.
    pub(crate) fn list(&self, limit: usize) -> io::Result<Vec<OsString>> {
        if self.name.is_some() {
            return Err(Errno::NOTDIR.into());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::openat(&self.dir, ".", flags, Mode::empty())?;
        let mut names = Vec::new();
        for entry in Dir::new(dir)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name));
            }
            if names.len() > limit {
                break;
            }
        }
        Ok(names)
    }

    pub(crate) fn real(&self, project: &Project) -> io::Result<PathBuf> {
        let mut path = project.named.canonicalize()?;
        path.extend(&self.names);
        Ok(path)
    }
}
