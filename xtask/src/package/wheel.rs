//! Python wheels (PEP 427): one with the program, one of pure Python.

use std::fmt::Write as _;

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use super::contents::{Contents, THIRD_PARTY};
use super::zip::zip;
use super::{Artefact, Release};

/// A wheel before its `RECORD` is made.
pub(crate) struct Wheel {
    /// The name of the distribution, with underscores.
    pub(crate) name: &'static str,
    /// Python, ABI and platform.
    pub(crate) tag: String,
    /// Lines of `METADATA`, the description included.
    pub(crate) metadata: String,
    /// True if no file of it depends on the platform.
    pub(crate) pure: bool,
    /// Path, mode, bytes.
    pub(crate) files: Vec<(String, u32, Vec<u8>)>,
}

impl Wheel {
    /// Writes the wheel.
    pub(crate) fn write(mut self, release: &Release) -> Result<Artefact> {
        let stem = format!("{}-{}", self.name, release.version);
        let info = format!("{stem}.dist-info");
        let wheel = format!(
            "Wheel-Version: 1.0\nGenerator: pinion xtask\nRoot-Is-Purelib: {}\nTag: {}\n",
            self.pure, self.tag
        );
        self.files.sort();
        self.files
            .push((format!("{info}/METADATA"), 0o644, self.metadata.into_bytes()));
        self.files
            .push((format!("{info}/WHEEL"), 0o644, wheel.into_bytes()));
        let mut record = String::new();
        for (path, _, bytes) in &self.files {
            let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(bytes));
            let _infallible = writeln!(record, "{path},sha256={hash},{}", bytes.len());
        }
        let _infallible = writeln!(record, "{info}/RECORD,,");
        self.files
            .push((format!("{info}/RECORD"), 0o644, record.into_bytes()));
        let names = self.files.iter().map(|(path, _, _)| path.clone()).collect();
        release.write(format!("{stem}-{}.whl", self.tag), &zip(&self.files)?, names)
    }
}

/// Makes the wheel with the program: pip installs it in the folder of `python`.
pub(crate) fn program(release: &Release, contents: &Contents) -> Result<Artefact> {
    let name = "pinion_agent_cli";
    let stem = format!("{name}-{}", release.version);
    let mut files = vec![(
        format!("{stem}.data/scripts/pinion"),
        0o755,
        contents.program.clone(),
    )];
    for document in ["LICENSE-MIT", "LICENSE-APACHE", THIRD_PARTY] {
        files.push((
            format!("{stem}.dist-info/licenses/{document}"),
            0o644,
            contents.document(document)?,
        ));
    }
    let metadata = metadata(
        release,
        "pinion-agent-cli",
        "Pinion, a headless coding agent that works with clients of pi --mode rpc",
        ">=3.8",
        &[],
        &release.template("packaging/python/README.md")?,
    );
    Wheel {
        name,
        tag: format!("py3-none-{}", release.target.wheel(contents.needs.glibc)),
        metadata,
        pure: false,
        files,
    }
    .write(release)
}

/// Returns the text of `METADATA`.
pub(crate) fn metadata(
    release: &Release,
    name: &str,
    summary: &str,
    python: &str,
    more: &[String],
    readme: &str,
) -> String {
    let mut out = format!(
        "Metadata-Version: 2.1\nName: {name}\nVersion: {}\nSummary: {summary}\nLicense: MIT OR Apache-2.0\n\
         Project-URL: Repository, {}\nRequires-Python: {python}\n",
        release.version,
        env!("CARGO_PKG_REPOSITORY"),
    );
    for line in more {
        out.push_str(line);
        out.push('\n');
    }
    let _infallible = write!(out, "Description-Content-Type: text/markdown\n\n{readme}");
    out
}
