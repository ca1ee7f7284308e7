//! Putting an export at its path: whole or not at all, and never over something that is not an export of ours.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use crate::error::{ExportError, Result};
use crate::limits::{EXPORT_BUFFER, EXPORT_PROBE};
use crate::{ExportInput, Format};

/// Writes an export and gives its path back. The file is readable by the owner only (0600). An older export of the same
/// format at the path is replaced; anything else that is there, links and devices included, stays as it is.
///
/// # Errors
/// [`ExportError::NotAnExport`], [`ExportError::NotAFile`], or [`ExportError::NoFolder`] and [`ExportError::Io`] when the file
/// cannot be written; nothing is left behind then.
pub fn write_file(path: &Path, format: Format, input: &ExportInput<'_>) -> Result<PathBuf> {
    let before = look(path, format)?;
    let failed = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound => ExportError::NoFolder {
            path: path.to_path_buf(),
        },
        _ => ExportError::Io {
            action: "cannot write",
            path: path.to_path_buf(),
            source: e,
        },
    };
    // A name of its own: the target's name with something added could be too long.
    let temporary = path.with_file_name(format!(".pinion-export-{}", uuid::Uuid::new_v4().simple()));
    let file = create(&temporary).map_err(failed)?;
    let done = fill(file, format, input)
        .map_err(failed)
        .and_then(|()| match before {
            There::Nothing => publish_new(&temporary, path, format),
            There::Export => fs::rename(&temporary, path).map_err(failed),
        });
    if let Err(error) = done {
        // Report the first error, not that of the clean-up.
        drop(fs::remove_file(&temporary));
        return Err(error);
    }
    Ok(path.to_path_buf())
}

/// The file at a path before an export replaces it.
enum There {
    Nothing,
    Export,
}

fn look(path: &Path, format: Format) -> Result<There> {
    let not_a_file = || ExportError::NotAFile {
        path: path.to_path_buf(),
    };
    let is_folder = path
        .as_os_str()
        .to_string_lossy()
        .ends_with(std::path::is_separator);
    if path.file_name().is_none() || is_folder {
        return Err(not_a_file());
    }
    let failed = |source| ExportError::Io {
        action: "cannot look at",
        path: path.to_path_buf(),
        source,
    };
    let kind = match fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(There::Nothing),
        other => other.map_err(failed)?.file_type(),
    };
    if !kind.is_file() {
        return Err(not_a_file());
    }
    let mut beginning = Vec::new();
    let mut file = open_plain(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(not_a_file());
    }
    (&mut file)
        .take(EXPORT_PROBE)
        .read_to_end(&mut beginning)
        .map_err(failed)?;
    if format.is_export(&beginning) {
        Ok(There::Export)
    } else {
        Err(ExportError::NotAnExport {
            path: path.to_path_buf(),
        })
    }
}

/// Opens for reading without following a link and without waiting for the other end of a FIFO, which may have been put at
/// the path since it was looked at.
fn open_plain(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
        std::os::unix::fs::OpenOptionsExt::custom_flags(
            &mut options,
            i32::try_from(flags.bits()).unwrap_or_default(),
        );
    }
    options.open(path)
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn fill(file: File, format: Format, input: &ExportInput<'_>) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(EXPORT_BUFFER, file);
    format.write(input, &mut out)?;
    out.flush()?;
    // Some file systems say only now that the disk is full.
    out.get_ref().sync_all()
}

/// Gives a complete file its name, unless something has got it meanwhile.
fn publish_new(temporary: &Path, path: &Path, format: Format) -> Result<()> {
    let failed = |source| ExportError::Io {
        action: "cannot write",
        path: path.to_path_buf(),
        source,
    };
    match fs::hard_link(temporary, path) {
        Ok(()) => fs::remove_file(temporary).map_err(failed),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Err(ExportError::NotAnExport {
            path: path.to_path_buf(),
        }),
        // A file system without links: look again as late as possible.
        Err(_) => {
            look(path, format)?;
            fs::rename(temporary, path).map_err(failed)
        }
    }
}
