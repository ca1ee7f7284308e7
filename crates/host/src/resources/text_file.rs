//! Bounded reading of text files. What the text means is the caller's business.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

/// The beginning of a file, or all of it.
pub(crate) struct Text {
    /// Decoded leniently as UTF-8, without a byte order mark.
    pub(crate) text: String,
    /// True when the file is longer than the limit.
    pub(crate) cut: bool,
}

/// Reads at most `limit` bytes of a regular file. Anything but a regular file is an error, so that a pipe cannot block us.
pub(crate) fn read_up_to(path: &Path, limit: u64) -> io::Result<Text> {
    let meta = fs::metadata(path)?;
    if meta.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !meta.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let cut = bytes.len() > limit;
    bytes.truncate(limit);
    Ok(Text {
        text: decode(bytes, cut),
        cut,
    })
}

/// Like [`read_up_to`], but a missing file is `None`.
pub(crate) fn read_if_there(path: &Path, limit: u64) -> io::Result<Option<Text>> {
    match read_up_to(path, limit) {
        Ok(text) => Ok(Some(text)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// True when the error says that there is no such file (a directory of that name counts as none).
pub(crate) fn is_absent(error: &io::Error) -> bool {
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | IsADirectory)
}

fn decode(mut bytes: Vec<u8>, cut: bool) -> String {
    // A cut may fall into a character; half of one is not worth a replacement sign.
    if cut
        && let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    let text =
        String::from_utf8(bytes).unwrap_or_else(|bad| String::from_utf8_lossy(bad.as_bytes()).into_owned());
    match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    }
}
