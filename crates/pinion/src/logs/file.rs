//! The log file: appended to, for its owner alone.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use anyhow::{Context as _, bail};

/// Opens it, mode 0600 whoever made it.
pub(super) fn open(path: &Path) -> anyhow::Result<File> {
    let what = || format!("The log file {}", path.display());
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .with_context(what)?;
    if !file.metadata().with_context(what)?.is_file() {
        bail!("{}: it is no regular file", what());
    }
    file.set_permissions(std::fs::Permissions::from_mode(0o600))
        .with_context(what)?;
    Ok(file)
}
