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
                real = PathBuf::from(part);
                continue;
            }
            Some(Component::ParentDir) => {
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
                if links > limits::LINKS {
                    return path.to_path_buf();
                }
                left.extend(parts(&target));
            }
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
