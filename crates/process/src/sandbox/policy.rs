//! What a sandbox comes to for one call: which access holds where. The longest path that fits decides.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wire::state::SandboxMode;

use super::Sandbox;
use crate::path::real_path;

/// What may be done in a place. Each allows what the one before does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Access {
    /// Nothing.
    None,
    /// Reading and executing.
    Read,
    /// Writing, too.
    Write,
}

/// A directory or file with all below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Zone {
    /// Its real path.
    pub(crate) path: PathBuf,
    pub(crate) access: Access,
    /// True if the directory must be created, so that a command cannot create it with content.
    pub(crate) made: bool,
}

/// Which access holds where, and what else is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Sorted by path, each path once; the first one is `/`.
    zones: Vec<Zone>,
    pub(crate) network: bool,
    pub(crate) unix_sockets: bool,
}

/// What a program cannot do without, where not everything may be read.
const SYSTEM: [&str; 11] = [
    "/bin",
    "/etc",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/opt",
    "/proc",
    "/sbin",
    "/sys",
    "/usr",
];
/// The directory of devices. Devices that every program needs are always open.
pub(crate) const DEVICES: &str = "/dev";
/// What the model is meant to read in the agent's directory; all else there is closed.
const OPEN_IN_AGENT_DIR: [&str; 16] = [
    "AGENTS.md",
    "AGENTS.override.md",
    "APPEND_SYSTEM.md",
    "CLAUDE.md",
    "SYSTEM.md",
    "agents",
    "bin",
    "extensions",
    "git",
    "hooks",
    "npm",
    "prompts",
    "rules",
    "skills",
    "themes",
    "tools",
];
/// What a later start of the agent, or of git, would run or believe.
pub(crate) const PROJECT_CODE: [&str; 5] = [".pi", ".omp", ".xcsh", ".mcp.json", "mcp.json"];
/// What git runs even where the rest of `.git` may be written.
const GIT_CODE: [&str; 4] = [
    ".git/hooks",
    ".git/config",
    ".git/config.worktree",
    ".git/modules",
];
/// The one of these that git runs even if nothing names it.
pub(crate) const GIT_HOOKS: &str = ".git/hooks";
/// Levels below a place of code that are searched for links, and entries that are looked at.
const LINKED: (usize, usize) = (3, 512);

impl Policy {
    /// What `sandbox` comes to for a call in `cwd` that has `temp` for its temporary files. Looks at the disk.
    pub(crate) fn of(sandbox: &Sandbox, cwd: &Path, temp: &Path) -> Self {
        let mut policy = Self {
            zones: Vec::new(),
            network: sandbox.network,
            unix_sockets: sandbox.unix_sockets,
        };
        let cwd = real_path(cwd);
        // The first word about a path counts, so the strictest come first.
        let own = std::iter::once(&sandbox.agent_dir).chain(&sandbox.closed);
        for path in sandbox
            .deny_read
            .iter()
            .chain(&sandbox.denied_programs)
            .chain(own)
        {
            policy.add(path, Access::None);
        }
        if sandbox.mode != SandboxMode::ReadOnly {
            let named: Vec<PathBuf> = sandbox.writable.iter().map(|path| real_path(path)).collect();
            let roots: Vec<PathBuf> = std::iter::once(&cwd).chain(&named).cloned().collect();
            policy.protect(sandbox, &roots, &named);
            roots.iter().for_each(|root| policy.add(root, Access::Write));
        }
        // Also where nothing else may be written: programs need a place for temporary files.
        policy.add(temp, Access::Write);
        // Disks and terminals are files, too.
        policy.add(Path::new(DEVICES), Access::None);
        for name in OPEN_IN_AGENT_DIR {
            policy.add(&sandbox.agent_dir.join(name), Access::Read);
        }
        let base = match &sandbox.readable {
            None => Access::Read,
            Some(readable) => {
                let system = SYSTEM.iter().map(Path::new);
                for path in system.chain(readable.iter().map(PathBuf::as_path)).chain([&*cwd]) {
                    policy.add(path, Access::Read);
                }
                Access::None
            }
        };
        policy.add(Path::new("/"), base);
        policy.zones.sort_by(|a, b| a.path.cmp(&b.path));
        policy
    }

    /// What may be written below the roots and later runs without a sandbox is only read. Who names a place means it.
    fn protect(&mut self, sandbox: &Sandbox, roots: &[PathBuf], named: &[PathBuf]) {
        for root in roots {
            // A link in its place stays closed, since a command could lead it to a repository with hooks of its own.
            let found = root.join(".git").symlink_metadata();
            let git: &[&str] = if sandbox.git_writable && found.is_ok_and(|found| found.is_dir()) {
                &GIT_CODE
            } else {
                &[".git"]
            };
            // Only existing paths can be protected, so a missing directory of hooks is created empty.
            let can_hold = root.is_dir();
            for name in git {
                self.protect_one(&root.join(name), can_hold && *name == GIT_HOOKS, roots, named);
            }
        }
        let nested = sandbox.projects.iter();
        let nested = nested.filter(|dir| roots.iter().any(|root| dir.starts_with(root)));
        for project in roots.iter().chain(nested) {
            let can_hold = project.is_dir();
            for name in PROJECT_CODE {
                let path = project.join(name);
                self.protect_one(&path, can_hold, roots, named);
                self.protect_linked(&path, roots, named);
            }
        }
        for path in &sandbox.code {
            self.protect_one(path, false, roots, named);
            self.protect_linked(path, roots, named);
        }
    }

    /// A link is itself in the way; what it leads to is looked at as well.
    fn protect_one(&mut self, path: &Path, made: bool, roots: &[PathBuf], named: &[PathBuf]) {
        let real = real_path(path);
        let itself = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => real_path(parent).join(name),
            _ => real.clone(),
        };
        // In the place of a link there is nothing to make.
        let made = made && itself == real;
        for path in [real, itself] {
            // A protected path is readable, so adding one must not open a path outside the roots, or a closed one.
            let is_inside = roots.iter().any(|root| path.starts_with(root) && path != *root);
            let is_closed = self
                .zones
                .iter()
                .any(|zone| zone.access == Access::None && path.starts_with(&zone.path));
            let is_there = made || path.symlink_metadata().is_ok();
            if is_inside && is_there && !is_closed && !named.contains(&path) {
                let access = Access::Read;
                self.put(Zone { path, access, made });
            }
        }
    }

    /// What the links in a directory lead to.
    fn protect_linked(&mut self, dir: &Path, roots: &[PathBuf], named: &[PathBuf]) {
        let (mut linked, mut left) = (Vec::new(), LINKED.1);
        links_below(dir, LINKED.0, &mut left, &mut linked);
        let dir = real_path(dir);
        // Targets inside of the directory are protected with it.
        for target in linked.iter().filter(|target| !target.starts_with(&dir)) {
            self.protect_one(target, false, roots, named);
        }
    }

    /// Returns the policy with another closed place.
    pub(crate) fn without(mut self, path: &Path) -> Self {
        // `put` keeps the first word about a path.
        self.zones.retain(|zone| zone.path != path);
        self.add(path, Access::None);
        self.zones.sort_by(|a, b| a.path.cmp(&b.path));
        self
    }

    /// Returns the policy for Landlock where `mounts` covers closed places: of those only the devices remain.
    #[cfg(target_os = "linux")]
    pub(crate) fn uncovered(&self) -> Self {
        let mut policy = self.clone();
        policy
            .zones
            .retain(|zone| zone.access > Access::None || zone.path == Path::new(DEVICES));
        policy
    }

    fn add(&mut self, path: &Path, access: Access) {
        let (path, made) = (real_path(path), false);
        self.put(Zone { path, access, made });
    }

    fn put(&mut self, zone: Zone) {
        if !self.zones.iter().any(|known| known.path == zone.path) {
            self.zones.push(zone);
        }
    }

    /// What holds for a real path.
    pub fn access(&self, path: &Path) -> Access {
        self.zones
            .iter()
            // Of two zones that contain the path, the longer one is later in the order of paths.
            .rev()
            .find(|zone| path.starts_with(&zone.path))
            .map_or(Access::None, |zone| zone.access)
    }

    /// All zones, those above before those below them.
    pub(crate) fn zones(&self) -> &[Zone] {
        &self.zones
    }

    /// Returns true if a zone below a path allows less than `access`.
    pub(crate) fn has_less_below(&self, path: &Path, access: Access) -> bool {
        self.zones
            .iter()
            .any(|zone| zone.access < access && zone.path != path && zone.path.starts_with(path))
    }

    /// Returns paths that together with everything below them form the area of `access`, for Landlock, which cannot
    /// exclude a subpath: directories above a stricter place are granted child by child. Files created in these
    /// directories later are not included. Reads the disk.
    pub(crate) fn grants(&self, access: Access) -> Vec<PathBuf> {
        let mut out = Vec::new();
        for zone in self.zones.iter().filter(|zone| zone.access >= access) {
            self.grant(&zone.path, access, &mut out);
        }
        out
    }

    fn grant(&self, path: &Path, access: Access, out: &mut Vec<PathBuf>) {
        if !self.has_less_below(path, access) {
            out.push(path.to_path_buf());
            return;
        }
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            let child = entry.path();
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            // Zones speak for themselves, and a link opens nothing by itself.
            if !is_link && !self.zones.iter().any(|zone| zone.path == child) {
                self.grant(&child, access, out);
            }
        }
    }

    /// Places that must be there.
    #[cfg(target_os = "linux")]
    pub(crate) fn made(&self) -> impl Iterator<Item = &Path> {
        let made = self.zones.iter().filter(|zone| zone.made);
        made.map(|zone| zone.path.as_path())
    }

    /// The places that may be written, for people.
    pub(crate) fn writable(&self) -> Vec<&Path> {
        self.zones
            .iter()
            .filter(|zone| zone.access == Access::Write)
            .map(|zone| zone.path.as_path())
            .collect()
    }
}

/// Where links below a directory lead.
fn links_below(dir: &Path, depth: usize, left: &mut usize, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let Some(fewer) = left.checked_sub(1) else { return };
        *left = fewer;
        match entry.file_type() {
            Ok(kind) if kind.is_symlink() => out.push(real_path(&entry.path())),
            Ok(kind) if kind.is_dir() && depth > 1 => links_below(&entry.path(), depth - 1, left, out),
            _ => {}
        }
    }
}
