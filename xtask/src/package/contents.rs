//! The files that every package of the program contains, laid out as below a prefix such as `/usr`.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::archive::{Body, Entry, gzip, tar, with_directories};
use super::elf::{self, Needs};
use super::licences;
use super::{Artefact, Release};

/// Shells and where their completions lie below a prefix.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/pinion"),
    ("zsh", "share/zsh/site-functions/_pinion"),
    ("fish", "share/fish/vendor_completions.d/pinion.fish"),
];

/// Files of the repository that go into `share/doc/pinion`.
const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// The licences of everything that is linked into the program.
pub(crate) const THIRD_PARTY: &str = "THIRD-PARTY-LICENSES.txt";

/// The files of a package.
#[derive(Debug)]
pub(crate) struct Contents {
    /// All files but the program.
    pub(crate) files: Vec<Entry>,
    /// The program.
    pub(crate) program: Vec<u8>,
    /// What it needs of the system.
    pub(crate) needs: Needs,
}

impl Contents {
    /// Collects the files. Runs the program for its manual pages and completions.
    pub(crate) fn collect(release: &Release, program: &Path) -> Result<Self> {
        let mut files = Vec::new();
        for (shell, path) in COMPLETIONS {
            files.push(Entry::file(path, 0o644, ask(program, &["completions", shell])?));
        }
        let main = ask(program, &["man"])?;
        for page in pages(&main) {
            let path = format!("share/man/man1/pinion-{page}.1");
            files.push(Entry::file(path, 0o644, ask(program, &["man", &page])?));
        }
        files.push(Entry::file("share/man/man1/pinion.1", 0o644, main));
        for name in DOCUMENTS {
            let path = format!("share/doc/pinion/{name}");
            files.push(Entry::file(path, 0o644, release.read(name)?));
        }
        let path = format!("share/doc/pinion/{THIRD_PARTY}");
        files.push(Entry::file(path, 0o644, licences::text(release)?));
        let bytes = std::fs::read(program).with_context(|| program.display().to_string())?;
        let needs = elf::needs(&bytes)?;
        Ok(Self {
            files,
            program: bytes,
            needs,
        })
    }

    /// Returns the program and all other files below a prefix.
    pub(crate) fn below(&self, prefix: &str) -> Vec<Entry> {
        let mut entries = self.files.clone();
        entries.push(Entry::file("bin/pinion", 0o755, self.program.clone()));
        for entry in &mut entries {
            entry.path = format!("{prefix}{}", entry.path);
        }
        with_directories(entries)
    }

    /// Returns one of the files in `share/doc/pinion`.
    pub(crate) fn document(&self, name: &str) -> Result<Vec<u8>> {
        let path = format!("share/doc/pinion/{name}");
        let found = self.files.iter().find(|entry| entry.path == path);
        match found.map(|entry| &entry.body) {
            Some(Body::File(bytes)) => Ok(bytes.clone()),
            _ => bail!("{name} is not among the files of the package"),
        }
    }

    /// Makes the tarball.
    pub(crate) fn tarball(&self, release: &Release) -> Result<Artefact> {
        let stem = format!("pinion-{}-{}", release.version, release.target.triple);
        let entries = self.below(&format!("{stem}/"));
        let bytes = gzip(&tar(&entries, "", release.seconds)?)?;
        release.write(format!("{stem}.tar.gz"), &bytes, names(&entries))
    }
}

/// Returns the paths of all entries that are no directories.
pub(crate) fn names(entries: &[Entry]) -> Vec<String> {
    entries
        .iter()
        .filter(|entry| entry.body != Body::Directory)
        .map(|entry| entry.path.clone())
        .collect()
}

/// Reads the commands that have a page of their own from what the main page refers to.
pub(super) fn pages(main: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(main)
        .lines()
        .filter_map(|line| line.strip_prefix(".BR pinion\\-")?.split(' ').next())
        .map(str::to_owned)
        .collect()
}

/// Runs the program and returns what it prints.
fn ask(program: &Path, words: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new(program)
        .args(words)
        .output()
        .with_context(|| format!("{} does not start", program.display()))?;
    if !output.status.success() || output.stdout.is_empty() {
        bail!(
            "{} {} failed: {}",
            program.display(),
            words.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(output.stdout)
}
