//! The `write` tool (pi-core.md 5.6), and putting text on disk for `edit`.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use wire::{Dialect, ToolResult};

use crate::limits;
use crate::text::{format_size, system_error};

/// Writes a file whole, with its parent directories. `shown` is the path as the model wrote it.
pub(crate) fn write(path: &Path, shown: &str, content: &str, dialect: Dialect) -> Result<ToolResult, String> {
    if let Some(parent) = path.parent() {
        make_dirs(parent)?;
    }
    put(path, content.as_bytes())?;
    Ok(result(shown, content, dialect))
}

/// Makes the parent directories of a file that the client writes. Returns false if something else than a file is there.
pub(crate) fn prepare(path: &Path, content: &str) -> Result<bool, String> {
    check_size(content.as_bytes())?;
    if let Some(parent) = path.parent() {
        make_dirs(parent)?;
    }
    Ok(std::fs::metadata(path).map_or(true, |metadata| metadata.is_file()))
}

/// The result of a call that has written a file.
pub(crate) fn result(shown: &str, content: &str, dialect: Dialect) -> ToolResult {
    if dialect.is_newest_pi() {
        return ToolResult::text(format!("Successfully wrote to {shown}"));
    }
    // The count is in UTF-16 units: clients have always been told that one.
    let units: usize = content.chars().map(char::len_utf16).sum();
    ToolResult::text(format!("Successfully wrote {units} bytes to {shown}"))
}

/// Replaces a file's content in place, so that links, owner and mode stay.
pub(crate) fn put(path: &Path, content: &[u8]) -> Result<(), String> {
    check_size(content)?;
    let failed = |error: &io::Error| system_error::text(error, "open", path);
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        // Opening a pipe without a reader would wait for ever.
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .map_err(|error| failed(&error))?;
    let meta = file.metadata().map_err(|error| failed(&error))?;
    if !meta.is_file() {
        return Err(format!("Not a regular file: {}", path.display()));
    }
    let failed = |error: &io::Error| system_error::text_open(error, "write");
    // The old content goes only after the new one has room: a full disk must not take both.
    if let Err(error) = reserve(&file, content.len()) {
        // Gives back the part that was reserved behind the end.
        let _ = file.set_len(meta.len());
        return Err(failed(&error));
    }
    let written = file
        .write_all(content)
        .and_then(|()| file.set_len(content.len() as u64));
    written.map_err(|error| failed(&error))
}

/// Reserves room for the beginning of a file. File systems that cannot do this are written to without.
///
/// # Errors
/// When the disk or the quota has no room.
#[cfg(target_os = "linux")]
fn reserve(file: &File, length: usize) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;
    match fallocate(file, FallocateFlags::KEEP_SIZE, 0, length as u64) {
        Err(error @ (Errno::NOSPC | Errno::DQUOT)) => Err(error.into()),
        _ => Ok(()),
    }
}

/// Reserves nothing on this system.
#[cfg(not(target_os = "linux"))]
fn reserve(_: &File, _: usize) -> io::Result<()> {
    Ok(())
}

fn check_size(content: &[u8]) -> Result<(), String> {
    if content.len() > limits::WRITE_MAX {
        let max = format_size(limits::WRITE_MAX as u64);
        return Err(format!("The content is larger than {max}"));
    }
    Ok(())
}

fn make_dirs(dir: &Path) -> Result<(), String> {
    let Err(error) = DirBuilder::new().recursive(true).create(dir) else {
        return Ok(());
    };
    // Name the part that is in the way, not the whole path.
    let stop = dir
        .ancestors()
        .find(|part| part.symlink_metadata().is_ok())
        .map(Path::to_path_buf);
    match stop {
        Some(stop) if stop == dir && !stop.is_dir() => Err(blocked("EEXIST: file already exists", stop)),
        Some(stop) if !stop.is_dir() => Err(blocked("ENOTDIR: not a directory", dir.to_path_buf())),
        _ => Err(system_error::text(&error, "mkdir", dir)),
    }
}

fn blocked(words: &str, path: PathBuf) -> String {
    format!("{words}, mkdir '{}'", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_results_match_recording() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let run =
            |name: &str, content| write(&at(name), name, content, Dialect::Auto).map(|r| r.joined_text());
        for (content, n) in [("hello\n", 6), ("\u{e9}\u{1f600}", 3), ("", 0)] {
            assert_eq!(
                run("new/deep/f", content).unwrap(),
                format!("Successfully wrote {n} bytes to new/deep/f")
            );
            assert_eq!(std::fs::read_to_string(at("new/deep/f")).unwrap(), content);
        }
        std::fs::create_dir(at("dir")).unwrap();
        let is_dir = format!(
            "EISDIR: illegal operation on a directory, open '{}'",
            at("dir").display()
        );
        assert_eq!(run("dir", "x").unwrap_err(), is_dir);
        std::fs::write(at("file.txt"), "f").unwrap();
        let exists = format!(
            "EEXIST: file already exists, mkdir '{}'",
            at("file.txt").display()
        );
        assert_eq!(run("file.txt/sub.txt", "x").unwrap_err(), exists);
        let not_dir = format!("ENOTDIR: not a directory, mkdir '{}'", at("file.txt/a").display());
        assert_eq!(run("file.txt/a/b", "x").unwrap_err(), not_dir);
        let long = "x".repeat(300);
        assert!(
            run(&long, "x")
                .unwrap_err()
                .starts_with("ENAMETOOLONG: name too long, open '")
        );
    }

    /// In a file system of its own, which takes namespaces that not every system gives away.
    #[cfg(target_os = "linux")]
    #[test]
    fn full_disk_leaves_file_as_it_was() {
        const DISK: &str = "FULL_DISK";
        if let Some(disk) = std::env::var_os(DISK) {
            let path = Path::new(&disk).join("file");
            std::fs::write(&path, "old").unwrap();
            let error = put(&path, &vec![b'x'; 1 << 20]).unwrap_err();
            assert_eq!(error, "ENOSPC: no space left on device, write");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
            put(&path, b"new").unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
            return;
        }
        let disk = tempfile::tempdir().unwrap();
        let name = "write::tests::full_disk_leaves_file_as_it_was";
        let script = r#"mount -t tmpfs -o size=256k none "$FULL_DISK" && exec "$0" --exact "$1""#;
        let inside = std::process::Command::new("unshare")
            .args(["-rm", "sh", "-c", script])
            .arg(std::env::current_exe().unwrap())
            .arg(name)
            .env(DISK, disk.path())
            .output();
        match inside {
            Ok(inside) if inside.status.success() => {
                // The harness succeeds, too, if it finds no test of that name.
                let said = String::from_utf8_lossy(&inside.stdout);
                assert!(said.contains("1 passed"), "{said}");
            }
            // Of the test harness, when a test fails.
            Ok(inside) if inside.status.code() == Some(101) => {
                panic!("{}", String::from_utf8_lossy(&inside.stdout));
            }
            _ => {
                // Not `eprintln!`: the harness hides what a passing test prints.
                let line = b"skipped: no namespaces for a small file system\n";
                io::Write::write_all(&mut io::stderr(), line).unwrap();
            }
        }
    }

    #[test]
    fn write_to_device_or_pipe_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&fifo)
                .status()
                .unwrap()
                .success()
        );
        assert!(put(&fifo, b"x").unwrap_err().starts_with("ENXIO"));
        assert_eq!(
            put(Path::new("/dev/null"), b"x").unwrap_err(),
            "Not a regular file: /dev/null"
        );
    }
}
