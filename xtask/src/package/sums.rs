//! Checksums of a release, their signature, and the installer that checks both.
//!
//! The signature is one of OpenSSH (`ssh-keygen -Y`): `ssh-keygen` is a part of macOS and of nearly every Linux system,
//! unlike minisign, and LibreSSL's `openssl` cannot check Ed25519.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use sha2::{Digest as _, Sha256};

use super::{Artefact, Release};

/// Who signs, and what for; `install.sh` has the same words.
const IDENTITY: &str = "release@pinion";
const NAMESPACE: &str = "pinion-release";
/// The file with the checksums.
pub(crate) const SUMS: &str = "SHA256SUMS";

/// Returns the SHA-256 of some bytes, in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .fold(String::new(), |mut text, byte| {
            let _infallible = write!(text, "{byte:02x}");
            text
        })
}

/// Writes the checksums of all files in the output directory, and signs them if there is a key.
pub(crate) fn write(out: &Path, key: Option<&Path>) -> Result<Vec<Artefact>> {
    let signature = format!("{SUMS}.sig");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(out)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_file() && name != SUMS && name != signature {
            names.push(name);
        }
    }
    names.sort();
    let mut text = String::new();
    for name in names {
        let _infallible = writeln!(text, "{}  {name}", sha256(&std::fs::read(out.join(&name))?));
    }
    let path = out.join(SUMS);
    std::fs::write(&path, text)?;
    let mut made = vec![plain(SUMS)];
    // An old signature would not fit the new sums.
    let old = out.join(&signature);
    if old.exists() {
        std::fs::remove_file(&old)?;
    }
    if let Some(key) = key {
        let status = Command::new("ssh-keygen")
            .args(["-q", "-Y", "sign", "-n", NAMESPACE, "-f"])
            .arg(key)
            .arg(&path)
            .status()
            .context("ssh-keygen does not start")?;
        if !status.success() {
            bail!("ssh-keygen did not sign {}", path.display());
        }
        made.push(plain(&signature));
    }
    Ok(made)
}

/// Writes `install.sh`, with the public key if there is one. Without a key the installer refuses to work unless told
/// to do without a signature.
pub(crate) fn installer(release: &Release, key: Option<&Path>) -> Result<Artefact> {
    let signer = match key {
        None => String::new(),
        Some(key) => {
            let output = Command::new("ssh-keygen").args(["-y", "-f"]).arg(key).output()?;
            if !output.status.success() {
                bail!("{} is no private key of OpenSSH", key.display());
            }
            let text = String::from_utf8(output.stdout)?;
            let words: Vec<&str> = text.split_whitespace().take(2).collect();
            format!("{IDENTITY} namespaces=\"{NAMESPACE}\" {}", words.join(" "))
        }
    };
    let text = release
        .template("packaging/install.sh")?
        .replace("@SIGNER@", &signer);
    release.write("install.sh".to_owned(), text.as_bytes(), Vec::new())
}

fn plain(name: &str) -> Artefact {
    Artefact {
        name: name.to_owned(),
        contents: Vec::new(),
    }
}
