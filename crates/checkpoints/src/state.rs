//! What a path held at a moment: nothing, a file with content and mode, a link, a directory.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What a path held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub(crate) enum FileState {
    /// Nothing.
    Absent,
    /// A regular file.
    File {
        /// SHA-256 of the content, hexadecimal. The content is in the blob of this name.
        content: String,
        /// Bytes of the content.
        size: u64,
        /// Permission bits.
        mode: u32,
    },
    /// A symbolic link.
    Link {
        /// What it leads to, as it is written in the link.
        target: StoredPath,
    },
    /// A directory. What lies in it has paths of its own.
    Directory {
        /// Permission bits.
        mode: u32,
    },
    /// Something whose content is not kept.
    Unknown {
        /// Why it is not kept.
        reason: String,
    },
}

impl FileState {
    pub(crate) fn unknown(reason: impl Into<String>) -> Self {
        Self::Unknown {
            reason: reason.into(),
        }
    }

    /// The blob that has the content.
    pub(crate) fn blob(&self) -> Option<&str> {
        match self {
            Self::File { content, .. } => Some(content),
            _ => None,
        }
    }
}

/// A path in the journal. A path that is not UTF-8 is written as a zero byte, which no path has, and hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StoredPath(pub(crate) PathBuf);

impl From<&Path> for StoredPath {
    fn from(path: &Path) -> Self {
        Self(path.to_path_buf())
    }
}

impl Serialize for StoredPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => serializer.serialize_str(text),
            None => serializer.serialize_str(&format!("\0{}", hex(self.0.as_os_str().as_bytes()))),
        }
    }
}

impl<'de> Deserialize<'de> for StoredPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let Some(digits) = text.strip_prefix('\0') else {
            return Ok(Self(PathBuf::from(text)));
        };
        let pair = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
        let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(pair).collect();
        let bytes = bytes.ok_or_else(|| serde::de::Error::custom("a path is damaged"))?;
        Ok(Self(PathBuf::from(OsString::from_vec(bytes))))
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_survives_journal_byte_for_byte() {
        for bytes in [&b"/a/b c"[..], b"/\xff\xfe/x", "/\u{e9}\n\"".as_bytes()] {
            let path = StoredPath(PathBuf::from(OsString::from_vec(bytes.to_vec())));
            let text = serde_json::to_string(&path).unwrap();
            assert_eq!(serde_json::from_str::<StoredPath>(&text).unwrap(), path);
        }
        assert!(serde_json::from_str::<StoredPath>("\"\\u0000f\"").is_err());
    }
}
