//! Where session files live and what they are called (pi-core.md 2.1). Finding existing ones lives in `list`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Result, StoreError};
use crate::limits::{DIR_NAME, ID_IN_NAME};

/// The directory below which all sessions of an agent directory lie, one directory per working directory.
#[must_use]
pub fn sessions_root(agent_dir: &Path) -> PathBuf {
    agent_dir.join("sessions")
}

/// The directory for sessions of one working directory.
#[must_use]
pub fn session_dir(agent_dir: &Path, cwd: &str) -> PathBuf {
    sessions_root(agent_dir).join(encode_cwd(cwd))
}

/// The directory name for a working directory: `--home-u-app--` for `/home/u/app`. Not reversible: `/a-b` and `/a/b` share one.
/// Names that no file system takes are cut and end in a hash of the whole path.
#[must_use]
pub fn encode_cwd(cwd: &str) -> String {
    let bare = cwd.strip_prefix(['/', '\\']).unwrap_or(cwd);
    let name: String = bare
        .chars()
        .map(|c| if matches!(c, '/' | '\\' | ':') { '-' } else { c })
        .collect();
    if name.len() + 4 <= DIR_NAME {
        return format!("--{name}--");
    }
    let keep = name.floor_char_boundary(DIR_NAME - 4 - 17);
    let (head, _) = name.split_at_checked(keep).unwrap_or((name.as_str(), ""));
    format!("--{head}-{:016x}--", fnv1a(cwd.as_bytes()))
}

/// The name that oh-my-pi gives the directory for sessions of a working directory below the home directory (`-app` for `~/app`) or the
/// directory of temporary files (`-tmp-app`). None for other directories, whose name is that of [`encode_cwd`].
#[must_use]
pub fn omp_directory(cwd: &Path, home: Option<&Path>, tmp: &Path) -> Option<String> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let cwd = real(cwd);
    let below = |dir: &Path| {
        let rest = cwd.strip_prefix(real(dir)).ok()?.to_str()?;
        Some(rest.replace(['/', '\\', ':'], "-"))
    };
    if let Some(rest) = home.and_then(below) {
        return Some(format!("-{rest}"));
    }
    let rest = below(tmp)?;
    Some(match rest.as_str() {
        "" => "-tmp".to_owned(),
        rest => format!("-tmp-{rest}"),
    })
}

/// The file name of a session: its creation time with `:` and `.` as `-`, an underscore, its id. Characters of the id that
/// could lead out of the directory become `-`.
#[must_use]
pub fn file_name(timestamp: &str, id: &str) -> String {
    let safe = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' || c == '_' {
            c
        } else {
            '-'
        }
    };
    let time: String = timestamp.chars().take(ID_IN_NAME).map(safe).collect();
    // The id may hold dots (`--session-id`), and the name should be findable by it.
    let safe_in_id = |c: char| if c == '.' { c } else { safe(c) };
    let id: String = id.chars().take(ID_IN_NAME).map(safe_in_id).collect();
    let id = id.replace("..", "--");
    format!("{time}_{id}.jsonl")
}

/// The session id in a file name made by [`file_name`]; none for other names.
#[must_use]
pub fn id_of_file_name(path: &Path) -> Option<&str> {
    let (_, id) = path.file_stem()?.to_str()?.split_once('_')?;
    (!id.is_empty()).then_some(id)
}

/// Creates a directory and its missing parents, readable by the owner only (0700). Existing ones stay unchanged.
///
/// # Errors
/// When the system refuses, or a file of another type is in the way.
pub fn ensure_private_dir(dir: &Path) -> Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
        .create(dir)
        .map_err(|e| StoreError::io("cannot create directory", dir, e))
}

/// A hash that is the same everywhere and always (FNV-1a).
pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |h, b| {
        (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3)
    })
}
