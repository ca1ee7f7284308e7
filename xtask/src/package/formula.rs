//! The Homebrew formula, made for the tarballs that lie in the output directory.

use std::fmt::Write as _;

use anyhow::Result;

use super::sums::sha256;
use super::{Artefact, Release};

/// Blocks of a formula and the targets that they are for. On Linux, Homebrew brings a C library of its own, and the
/// static program needs none.
const BLOCKS: [(&str, &str, &[&str]); 4] = [
    ("on_macos", "on_arm", &["aarch64-apple-darwin"]),
    ("on_macos", "on_intel", &["x86_64-apple-darwin"]),
    (
        "on_linux",
        "on_arm",
        &["aarch64-unknown-linux-musl", "aarch64-unknown-linux-gnu"],
    ),
    (
        "on_linux",
        "on_intel",
        &["x86_64-unknown-linux-musl", "x86_64-unknown-linux-gnu"],
    ),
];

/// Makes the formula; none if there is no tarball.
pub(crate) fn formula(release: &Release) -> Result<Option<Artefact>> {
    let mut blocks = String::new();
    for (system, processor, triples) in BLOCKS {
        for triple in triples {
            let name = format!("pinion-{}-{triple}.tar.gz", release.version);
            let Ok(bytes) = std::fs::read(release.out.join(&name)) else {
                continue;
            };
            let _infallible = write!(
                blocks,
                "  {system} do\n    {processor} do\n      url \"{}/releases/download/v{}/{name}\"\n      sha256 \"{}\"\n    end\n  end\n\n",
                env!("CARGO_PKG_REPOSITORY"),
                release.version,
                sha256(&bytes)
            );
            break;
        }
    }
    if blocks.is_empty() {
        return Ok(None);
    }
    let text = release
        .template("packaging/homebrew/pinion.rb.in")?
        .replace("@DOWNLOADS@\n", &blocks);
    release
        .write("pinion.rb".to_owned(), text.as_bytes(), Vec::new())
        .map(Some)
}
