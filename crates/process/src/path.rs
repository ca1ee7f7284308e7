//! The real path of a file, by which sandbox zones and permission rules are matched.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use crate::limits;

/// Resolves every link of a path, also links whose target does not exist. A path with a cycle of links stays unchanged:
/// it cannot be opened.
#[must_use]
pub fn real_path(path: &Path) -> PathBuf {
    let mut real = PathBuf::new();
    let mut left: Vec<OsString> = parts(path);
    let mut links = 0;
    while let Some(part) = left.pop() {
        match Path::new(&part).components().next() {
            Some(Component::RootDir | Component::Prefix(_)) => {
                // The target of a link may be absolute.
                real = PathBuf::from(part);
                continue;
            }
            Some(Component::ParentDir) => {
                // Of the real directory, as in the kernel: links before it are resolved already.
                real.pop();
                continue;
            }
            Some(Component::CurDir) | None => continue,
            Some(Component::Normal(_)) => {}
        }
        let next = real.join(&part);
        match std::fs::read_link(&next) {
            Ok(target) => {
                links += 1;
                // A cycle, which the kernel refuses as well.
                if links > limits::LINKS {
                    return path.to_path_buf();
                }
                // On top of the rest: a relative target begins at the directory of the link.
                left.extend(parts(&target));
            }
            // Not a link, or not there: both are taken as they are.
            Err(_) => real = next,
        }
    }
    real
}

/// The parts of a path, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    path.components()
        .rev()
        .map(|part| part.as_os_str().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::real_path;

    #[test]
    fn parent_of_link_is_that_of_its_target() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        symlink(root.join("a/b"), root.join("link")).unwrap();
        assert_eq!(real_path(&root.join("link/../x")), root.join("a/x"));
    }

    #[test]
    fn link_to_missing_file_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        symlink("gone/file", root.join("link")).unwrap();
        assert_eq!(real_path(&root.join("link")), root.join("gone/file"));
        assert_eq!(real_path(&root.join("link/below")), root.join("gone/file/below"));
    }

    #[test]
    fn cycle_of_links_stays_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        symlink("b", &path).unwrap();
        symlink("a", dir.path().join("b")).unwrap();
        assert_eq!(real_path(&path.join("x")), path.join("x"));
    }

    #[test]
    fn root_has_no_parent() {
        assert_eq!(real_path("/../..".as_ref()), std::path::Path::new("/"));
        assert_eq!(real_path("/./".as_ref()), std::path::Path::new("/"));
    }
}
