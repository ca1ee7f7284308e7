//! Reads `@file` arguments into the text and the images that precede the first message (pi-core.md 6.6). Shrinking images
//! is the caller's business.

use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use files::Root;
use wire::ImageContent;

use super::error::UsageError;

/// Bytes of one file, text or image.
pub(crate) const FILE_BYTES: u64 = 32 * 1024 * 1024;

/// What the files contribute to the first message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FileParts {
    /// Goes in front of the message, without a separator.
    pub(crate) text: String,
    /// In the order of the arguments, as large as they were.
    pub(crate) images: Vec<ImageContent>,
}

/// Reads the files in order. Empty files are left out.
///
/// # Errors
/// For the first file that is missing or cannot be read.
pub(crate) fn read_files(names: &[String], cwd: &Path, home: Option<&Path>) -> Result<FileParts, UsageError> {
    let mut parts = FileParts::default();
    for name in names {
        let path = locate(name, cwd, home);
        let bytes = read(&path)?;
        if bytes.is_empty() {
            continue;
        }
        let shown = path.display();
        match image_type(&bytes) {
            Some(mime) => {
                let data = STANDARD.encode(&bytes);
                parts.images.push(ImageContent {
                    data,
                    mime_type: mime.to_owned(),
                    extra: wire::Extra::default(),
                });
                parts.text.push_str(&format!("<file name=\"{shown}\"></file>\n"));
            }
            None => {
                let text = String::from_utf8_lossy(&bytes);
                let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
                parts
                    .text
                    .push_str(&format!("<file name=\"{shown}\">\n{text}\n</file>\n"));
            }
        }
    }
    Ok(parts)
}

/// Reads a file that an option names, as `@file` does.
///
/// # Errors
/// It is not there, no regular file, or too large.
pub(crate) fn read_named(name: &str, cwd: &Path, home: Option<&Path>) -> Result<Vec<u8>, UsageError> {
    read(&locate(name, cwd, home))
}

fn read(path: &Path) -> Result<Vec<u8>, UsageError> {
    let unreadable = |reason: String| UsageError::FileUnreadable {
        path: path.to_path_buf(),
        reason,
    };
    // The user named it, so links are followed; a pipe would be waited for without end.
    let (bytes, is_cut) = Root::user()
        .read_bytes(path, FILE_BYTES)
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                UsageError::FileNotFound(path.to_path_buf())
            }
            io::ErrorKind::IsADirectory => unreadable("it is a directory".to_owned()),
            io::ErrorKind::InvalidInput => unreadable(
                "it is not a regular file. Pipe its content to the standard input instead".to_owned(),
            ),
            _ => unreadable(error.to_string()),
        })?;
    if is_cut {
        return Err(unreadable(format!(
            "it is larger than {} MiB",
            FILE_BYTES / (1024 * 1024)
        )));
    }
    Ok(bytes)
}

/// The path rules of the tools (pi-core.md 5.1): `~`, relative to `cwd`; where no such file exists, with plain blanks in
/// place of the special ones that come with pasted names.
fn locate(name: &str, cwd: &Path, home: Option<&Path>) -> PathBuf {
    let exact = absolute(name, cwd, home);
    if exact.exists() {
        return exact;
    }
    let plain: String = name
        .chars()
        .map(|c| match c {
            '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
            other => other,
        })
        .collect();
    absolute(&plain, cwd, home)
}

fn absolute(name: &str, cwd: &Path, home: Option<&Path>) -> PathBuf {
    let joined = match (name.strip_prefix('~'), home) {
        (Some(""), Some(home)) => home.to_path_buf(),
        (Some(rest), Some(home)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => cwd.join(name),
    };
    // `components` drops `.`; `..` stays, since a link may stand before it.
    joined.components().collect()
}

/// The image type by content (pi-core.md 5.2); animated PNGs do not count.
fn image_type(bytes: &[u8]) -> Option<&'static str> {
    if bytes.starts_with(&[0xff, 0xd8, 0xff]) && bytes.get(3) != Some(&0xf7) {
        return Some("image/jpeg");
    }
    if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        return Some("image/gif");
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return Some("image/webp");
    }
    let png = bytes.starts_with(b"\x89PNG\r\n\x1a\n") && bytes.get(12..16) == Some(b"IHDR");
    (png && !animated(bytes)).then_some("image/png")
}

/// Walks the chunks of a PNG: `acTL` before the pixels means frames.
fn animated(bytes: &[u8]) -> bool {
    let mut at = 8_usize;
    loop {
        let chunk = bytes.get(at..).unwrap_or_default();
        let Some((length, rest)) = chunk.split_first_chunk::<4>() else {
            return false;
        };
        match rest.get(..4) {
            Some(b"acTL") => return true,
            Some(b"IDAT") | None => return false,
            Some(_) => {}
        }
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        at = at.saturating_add(length).saturating_add(12);
    }
}
