//! What can run TypeScript extensions: Node from version 20 on, or Bun. Found on a `PATH` that is handed in.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The oldest Node that will do.
const NODE: u32 = 20;

/// A JavaScript runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runtime {
    /// The executable.
    pub program: PathBuf,
    /// Arguments ahead of the main file.
    pub args: Vec<OsString>,
}

impl Runtime {
    /// How an executable is started, by its name.
    #[must_use]
    pub fn new(program: PathBuf) -> Self {
        let is_bun = program
            .file_stem()
            .is_some_and(|name| name.to_string_lossy().starts_with("bun"));
        // Bun would fetch missing packages from the network by itself.
        let args: &[&str] = if is_bun {
            &["--no-install"]
        } else {
            &["--max-old-space-size=2048"]
        };
        Self {
            program,
            args: args.iter().map(OsString::from).collect(),
        }
    }

    /// Node, else Bun, in the directories of a `PATH`.
    #[must_use]
    pub fn find(path: &OsStr) -> Option<Self> {
        let found = |name: &str| {
            std::env::split_paths(path)
                .map(|dir| dir.join(name))
                .find(|file| is_executable(file))
        };
        found("node").or_else(|| found("bun")).map(Self::new)
    }
}

fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Why a runtime that says what it is (`node 18.2.0`) will not do.
pub(crate) fn is_too_old(runtime: &str) -> Option<String> {
    let major = runtime.strip_prefix("node ")?.split('.').next()?;
    let major: u32 = major.parse().ok()?;
    (major < NODE).then(|| format!("{runtime} is too old: Node {NODE} or later is needed, or Bun"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::{Runtime, is_too_old};

    #[test]
    fn node_is_preferred_and_must_be_executable() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        let put = |file: &std::path::Path, mode| {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
            fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
        };
        let path = std::env::join_paths([&one, &two]).unwrap();
        assert_eq!(Runtime::find(&path), None);
        put(&one.join("node"), 0o644);
        put(&one.join("bun"), 0o755);
        assert_eq!(Runtime::find(&path).unwrap().args, ["--no-install"]);
        put(&two.join("node"), 0o755);
        assert_eq!(Runtime::find(&path).unwrap().program, two.join("node"));
    }

    #[test]
    fn old_node_version_is_refused() {
        assert!(is_too_old("node 18.20.1").unwrap().contains("Node 20"));
        for fine in ["node 20.0.0", "node 24.1.0", "bun 1.1.0", "", "something else"] {
            assert_eq!(is_too_old(fine), None, "{fine}");
        }
    }
}
