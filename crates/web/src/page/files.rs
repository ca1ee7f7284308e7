//! The files of the built-in page. The build script compresses them.

use std::borrow::Cow;
use std::io::{self, Read as _};
use std::sync::LazyLock;

use flate2::read::GzDecoder;
use sha2::{Digest as _, Sha256};

include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// A file as it is served.
#[derive(Debug)]
pub(crate) struct File {
    /// Its path below the page's address.
    pub(crate) name: &'static str,
    /// The content, with gzip if that is smaller.
    pub(crate) stored: &'static [u8],
    /// True if the content has gzip.
    pub(crate) is_packed: bool,
    /// The beginning of the SHA-256 of the stored content, in hexadecimal digits.
    pub(crate) hash: String,
}

/// All files.
pub(crate) static FILES: LazyLock<Vec<File>> = LazyLock::new(|| TABLE.iter().map(file).collect());

fn file((name, is_packed, stored): &(&'static str, bool, &'static [u8])) -> File {
    let digest = Sha256::digest(stored);
    let hash = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    File {
        name,
        stored,
        is_packed: *is_packed,
        hash,
    }
}

impl File {
    /// The content for a client that does not take gzip.
    ///
    /// # Errors
    /// When the program is damaged.
    pub(crate) fn plain(&self) -> io::Result<Cow<'static, [u8]>> {
        if !self.is_packed {
            return Ok(self.stored.into());
        }
        let mut bytes = Vec::new();
        GzDecoder::new(self.stored).read_to_end(&mut bytes)?;
        Ok(bytes.into())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::FILES;

    #[test]
    fn stored_files_unpack_to_files_of_page() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        for name in ["index.html", "icon-192.png", "vendor/xterm-6.0.0.min.js"] {
            let file = FILES.iter().find(|file| file.name == name).unwrap();
            assert!(
                file.plain().unwrap() == fs::read(page.join(name)).unwrap(),
                "{name}"
            );
        }
        let stored: usize = FILES.iter().map(|file| file.stored.len()).sum();
        let plain: usize = FILES.iter().map(|file| file.plain().unwrap().len()).sum();
        assert!(stored * 2 < plain, "{stored} of {plain} bytes");
        assert!(FILES.iter().all(|file| !file.name.ends_with(".md")));
    }
}
