//! `xtask package`: the files of a release, made from a program that is already built.
//!
//! Every artefact depends only on its inputs: names are sorted, times are those of the commit (`SOURCE_DATE_EPOCH`
//! overrides them), owners are root. Two runs with the same program write the same bytes. Nothing here uses the network.

mod archive;
mod contents;
mod deb;
mod elf;
mod formula;
mod licences;
mod npm;
mod oci;
mod sdk;
mod sums;
mod target;
#[cfg(test)]
mod tests;
mod wheel;
mod zip;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::args::Args;
use crate::out::say;
use contents::Contents;
use target::Target;

/// What can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `pinion-VERSION-TARGET.tar.gz`.
    Tarball,
    /// The Debian package.
    Deb,
    /// The npm packages of the program.
    Npm,
    /// The Python wheel with the program.
    Wheel,
    /// The OCI image.
    Oci,
    /// The Python client.
    SdkPython,
    /// The JavaScript client.
    SdkTypescript,
    /// The Homebrew formula, for all tarballs in the output directory.
    Formula,
    /// `install.sh` with the public key.
    Installer,
}

impl Kind {
    const ALL: [(&'static str, Self); 9] = [
        ("tarball", Self::Tarball),
        ("deb", Self::Deb),
        ("npm", Self::Npm),
        ("wheel", Self::Wheel),
        ("oci", Self::Oci),
        ("sdk-python", Self::SdkPython),
        ("sdk-typescript", Self::SdkTypescript),
        ("formula", Self::Formula),
        ("installer", Self::Installer),
    ];

    fn parse(word: &str) -> Result<Self> {
        let found = Self::ALL.iter().find(|(name, _)| *name == word);
        let Some((_, kind)) = found else {
            let names: Vec<&str> = Self::ALL.iter().map(|(name, _)| *name).collect();
            bail!("package cannot make \"{word}\", only {}", names.join(", "));
        };
        Ok(*kind)
    }
}

/// The command line of `package`.
#[derive(Debug)]
pub struct Options {
    /// The program.
    pub agent: PathBuf,
    /// A statically linked program, which the OCI image needs.
    pub static_agent: Option<PathBuf>,
    /// Where the artefacts go.
    pub out: PathBuf,
    /// The target triple of the program.
    pub target: String,
    /// The CA certificates of the OCI image.
    pub ca_bundle: PathBuf,
    /// An SSH private key that signs the checksums.
    pub signing_key: Option<PathBuf>,
    /// What to make; empty for everything.
    pub kinds: Vec<Kind>,
}

impl Options {
    /// Reads a command line.
    ///
    /// # Errors
    /// A missing option or an unknown kind.
    pub fn parse(args: &mut Args) -> Result<Self> {
        let mut options = Self {
            agent: args.required("--agent")?,
            static_agent: args.option("--static-agent")?,
            out: args.required("--out")?,
            target: args
                .option("--target")?
                .unwrap_or_else(|| "x86_64-unknown-linux-gnu".to_owned()),
            ca_bundle: args
                .option("--ca-bundle")?
                .unwrap_or_else(|| PathBuf::from("/etc/ssl/certs/ca-certificates.crt")),
            signing_key: args.option("--signing-key")?,
            kinds: Vec::new(),
        };
        while let Some(word) = args.next() {
            options.kinds.push(Kind::parse(&word)?);
        }
        Ok(options)
    }

    fn wants(&self, kind: Kind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }
}

/// A file that was written, and what it contains.
#[derive(Debug)]
pub struct Artefact {
    /// Its name in the output directory.
    pub name: String,
    /// Names of the files in it.
    pub contents: Vec<String>,
}

/// Makes the artefacts and returns true.
///
/// # Errors
/// A file that cannot be read or written, or a program that does not run.
pub fn run(root: &Path, options: &Options) -> Result<bool> {
    for artefact in make(root, options)? {
        let size = std::fs::metadata(options.out.join(&artefact.name))?.len();
        say(&format!("{size:>11} {}", artefact.name));
    }
    Ok(true)
}

/// Makes the artefacts and returns a list of them.
///
/// # Errors
/// As [`run`].
pub fn make(root: &Path, options: &Options) -> Result<Vec<Artefact>> {
    std::fs::create_dir_all(&options.out)?;
    let target = Target::parse(&options.target)?;
    let release = Release {
        root: root.to_owned(),
        out: options.out.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        seconds: seconds(root)?,
        target,
    };
    let mut made = Vec::new();
    let needs_program = [Kind::Tarball, Kind::Deb, Kind::Npm, Kind::Wheel, Kind::Oci];
    if needs_program.into_iter().any(|kind| options.wants(kind)) {
        programs(&release, options, &mut made)?;
    }
    if options.wants(Kind::SdkPython) {
        made.push(sdk::python(&release)?);
    }
    if options.wants(Kind::SdkTypescript) {
        made.push(sdk::typescript(&release)?);
    }
    if options.wants(Kind::Installer) {
        made.push(sums::installer(&release, options.signing_key.as_deref())?);
    }
    if options.wants(Kind::Formula) {
        made.extend(formula::formula(&release)?);
    }
    made.extend(sums::write(&release.out, options.signing_key.as_deref())?);
    Ok(made)
}

/// Makes the artefacts that contain the program.
fn programs(release: &Release, options: &Options, made: &mut Vec<Artefact>) -> Result<()> {
    let contents = Contents::collect(release, &options.agent)?;
    if options.wants(Kind::Tarball) {
        made.push(contents.tarball(release)?);
    }
    if options.wants(Kind::Deb) && release.target.debian().is_some() {
        made.push(deb::package(release, &contents)?);
    }
    if options.wants(Kind::Npm) {
        made.extend(npm::packages(release, &contents)?);
    }
    if options.wants(Kind::Wheel) {
        made.push(wheel::program(release, &contents)?);
    }
    if options.wants(Kind::Oci) && release.target.is_linux() {
        match &options.static_agent {
            Some(program) => made.push(oci::image(release, &contents, program, &options.ca_bundle)?),
            None if options.kinds.contains(&Kind::Oci) => {
                bail!("the OCI image needs a statically linked program: --static-agent PATH")
            }
            None => say("no OCI image: it needs --static-agent PATH"),
        }
    }
    Ok(())
}

/// What all artefacts have in common.
#[derive(Debug)]
pub(crate) struct Release {
    /// The repository.
    pub(crate) root: PathBuf,
    /// Where the artefacts go.
    pub(crate) out: PathBuf,
    pub(crate) version: String,
    /// The time of every file in the artefacts.
    pub(crate) seconds: u64,
    pub(crate) target: Target,
}

impl Release {
    /// Reads a file of the repository.
    pub(crate) fn read(&self, path: &str) -> Result<Vec<u8>> {
        let path = self.root.join(path);
        std::fs::read(&path).with_context(|| path.display().to_string())
    }

    /// Reads a text file of the repository and puts the version in place of `@VERSION@`.
    pub(crate) fn template(&self, path: &str) -> Result<String> {
        let text = String::from_utf8(self.read(path)?).with_context(|| path.to_owned())?;
        Ok(text.replace("@VERSION@", &self.version))
    }

    /// Writes an artefact.
    pub(crate) fn write(&self, name: String, bytes: &[u8], contents: Vec<String>) -> Result<Artefact> {
        let path = self.out.join(&name);
        std::fs::write(&path, bytes).with_context(|| path.display().to_string())?;
        Ok(Artefact { name, contents })
    }
}

/// Returns the time of the release: `SOURCE_DATE_EPOCH`, else that of the commit.
fn seconds(root: &Path) -> Result<u64> {
    if let Ok(seconds) = std::env::var("SOURCE_DATE_EPOCH") {
        return seconds.parse().context("SOURCE_DATE_EPOCH is no number");
    }
    let output = Command::new("git")
        .arg("-C")
        .arg(root)
        .args(["log", "-1", "--format=%ct"])
        .output()
        .context("git does not start; set SOURCE_DATE_EPOCH")?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    text.parse().context("git names no commit; set SOURCE_DATE_EPOCH")
}
