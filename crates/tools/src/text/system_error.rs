//! Texts for failed system calls in the form clients of the family know: `CODE: words, call 'path'`.

use std::io;
use std::path::Path;

use rustix::io::Errno;

/// Symbolic name and words for an operating system error.
pub(crate) fn describe(error: &io::Error) -> (&'static str, &'static str) {
    let errno = error
        .raw_os_error()
        .map_or_else(|| from_kind(error.kind()), Errno::from_raw_os_error);
    match errno {
        Errno::NOENT => ("ENOENT", "no such file or directory"),
        Errno::ACCESS => ("EACCES", "permission denied"),
        Errno::PERM => ("EPERM", "operation not permitted"),
        Errno::ISDIR => ("EISDIR", "illegal operation on a directory"),
        Errno::NOTDIR => ("ENOTDIR", "not a directory"),
        Errno::EXIST => ("EEXIST", "file already exists"),
        Errno::NAMETOOLONG => ("ENAMETOOLONG", "name too long"),
        Errno::LOOP => ("ELOOP", "too many symbolic links encountered"),
        Errno::NOSPC => ("ENOSPC", "no space left on device"),
        Errno::DQUOT => ("EDQUOT", "disk quota exceeded"),
        Errno::ROFS => ("EROFS", "read-only file system"),
        Errno::FBIG => ("EFBIG", "file too large"),
        Errno::MFILE => ("EMFILE", "too many open files"),
        Errno::NFILE => ("ENFILE", "file table overflow"),
        Errno::NXIO => ("ENXIO", "no such device or address"),
        Errno::TXTBSY => ("ETXTBSY", "text file is busy"),
        Errno::BUSY => ("EBUSY", "resource busy or locked"),
        Errno::NOMEM => ("ENOMEM", "not enough memory"),
        Errno::IO => ("EIO", "i/o error"),
        Errno::INVAL => ("EINVAL", "invalid argument"),
        _ => ("UNKNOWN", "unknown error"),
    }
}

fn from_kind(kind: io::ErrorKind) -> Errno {
    match kind {
        io::ErrorKind::NotFound => Errno::NOENT,
        io::ErrorKind::PermissionDenied => Errno::ACCESS,
        io::ErrorKind::AlreadyExists => Errno::EXIST,
        io::ErrorKind::InvalidInput => Errno::INVAL,
        _ => Errno::IO,
    }
}

/// The text for a failed call on a path.
pub(crate) fn text(error: &io::Error, call: &str, path: &Path) -> String {
    let (code, words) = describe(error);
    if code == "UNKNOWN" {
        return format!("{error}, {call} '{}'", path.display());
    }
    format!("{code}: {words}, {call} '{}'", path.display())
}

/// The text for a failed call on something already open, such as `read`.
pub(crate) fn text_open(error: &io::Error, call: &str) -> String {
    let (code, words) = describe(error);
    format!("{code}: {words}, {call}")
}
