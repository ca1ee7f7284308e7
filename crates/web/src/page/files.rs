//! The files of the built-in page. A missing file stops the build; a file that is not in this list fails a test.

use std::io::Write as _;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

/// A file as it is served.
#[derive(Debug)]
pub(crate) struct File {
    /// Its path below the page's address.
    pub(crate) name: &'static str,
    /// The content.
    pub(crate) bytes: &'static [u8],
    /// The content with gzip, if that is smaller.
    pub(crate) packed: Option<Vec<u8>>,
    /// The beginning of its SHA-256, in hexadecimal digits.
    pub(crate) hash: String,
}

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_bytes!(concat!("../../page/", $name)).as_slice())),*]
    };
}

const BYTES: &[(&str, &[u8])] = &files![
    "actions.js",
    "boot.js",
    "css/base.css",
    "css/layout.css",
    "css/panels.css",
    "css/tools.css",
    "css/transcript.css",
    "icon-180.png",
    "icon-192.png",
    "icon-512.png",
    "icon.svg",
    "index.html",
    "lib/ansi.js",
    "lib/diff.js",
    "lib/dom.js",
    "lib/format.js",
    "lib/plain.js",
    "lib/store.js",
    "main.js",
    "manifest.webmanifest",
    "net/connection.js",
    "net/token.js",
    "state/app.js",
    "state/blocks.js",
    "state/control.js",
    "state/events.js",
    "state/recent.js",
    "state/search.js",
    "state/session.js",
    "state/turns.js",
    "sw.js",
    "vendor/dompurify-3.4.18.min.js",
    "vendor/dompurify-LICENSE.txt",
    "vendor/highlight-11.12.0.min.js",
    "vendor/highlight-LICENSE.txt",
    "vendor/marked-18.2.1.min.js",
    "vendor/marked-LICENSE.txt",
    "vendor/xterm-6.0.0.css",
    "vendor/xterm-6.0.0.min.js",
    "vendor/xterm-LICENSE.txt",
    "view/answer.js",
    "view/attach.js",
    "view/banner.js",
    "view/changes.js",
    "view/code.js",
    "view/complete.js",
    "view/composer.js",
    "view/dialogs.js",
    "view/diffview.js",
    "view/fallback.js",
    "view/find.js",
    "view/folders.js",
    "view/header.js",
    "view/help.js",
    "view/items.js",
    "view/limits.js",
    "view/markdown.js",
    "view/menu.js",
    "view/nomodel.js",
    "view/notify.js",
    "view/picture.js",
    "view/processes.js",
    "view/queue.js",
    "view/result.js",
    "view/sidebar.js",
    "view/status.js",
    "view/steps.js",
    "view/subagent.js",
    "view/terminal.js",
    "view/theme.js",
    "view/toasts.js",
    "view/tool.js",
    "view/toolbody.js",
    "view/transcript.js",
    "view/tree.js",
    "view/undo.js",
    "view/viewport.js",
];

/// All files. They are packed when the first one is asked for.
pub(crate) static FILES: LazyLock<Vec<File>> = LazyLock::new(|| BYTES.iter().map(file).collect());

fn file((name, bytes): &(&'static str, &'static [u8])) -> File {
    let digest = Sha256::digest(bytes);
    let hash = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    File {
        name,
        bytes,
        packed: packed(bytes).filter(|packed| packed.len() < bytes.len()),
        hash,
    }
}

fn packed(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::BYTES;

    fn names(dir: &Path, below: &str, out: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{below}{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                names(&entry.path(), &format!("{name}/"), out);
            } else if !name.ends_with(".md") && !name.contains("test") {
                out.insert(name);
            }
        }
    }

    #[test]
    fn every_page_file_is_served() {
        let mut there = BTreeSet::new();
        names(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("page"),
            "",
            &mut there,
        );
        let served: BTreeSet<String> = BYTES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(served, there);
    }
}
