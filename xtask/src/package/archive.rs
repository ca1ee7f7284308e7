//! Writes tar archives (POSIX ustar) that depend on their entries alone.

use std::io::Write as _;

use anyhow::{Context, Result, bail};
use flate2::{Compression, GzBuilder};

const BLOCK: usize = 512;
/// Longest name in a ustar header without its prefix field.
const NAME: usize = 100;
/// Longest prefix.
const PREFIX: usize = 155;

/// What an entry of an archive is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Body {
    /// A file.
    File(Vec<u8>),
    /// A directory.
    Directory,
}

/// An entry of an archive.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Without a slash at either end.
    pub(crate) path: String,
    pub(crate) mode: u32,
    /// User and group.
    pub(crate) owner: u32,
    pub(crate) body: Body,
}

impl Entry {
    /// A file that belongs to root.
    pub(crate) fn file(path: impl Into<String>, mode: u32, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            path: path.into(),
            mode,
            owner: 0,
            body: Body::File(bytes.into()),
        }
    }

    /// A directory.
    pub(crate) fn directory(path: impl Into<String>, mode: u32, owner: u32) -> Self {
        Self {
            path: path.into(),
            mode,
            owner,
            body: Body::Directory,
        }
    }
}

/// Adds the directories above all entries, each once and before what lies in it, and sorts by path.
pub(crate) fn with_directories(entries: Vec<Entry>) -> Vec<Entry> {
    let mut all: std::collections::BTreeMap<String, Entry> = std::collections::BTreeMap::new();
    for entry in entries {
        let mut path = entry.path.as_str();
        while let Some((above, _)) = path.rsplit_once('/') {
            all.entry(above.to_owned())
                .or_insert_with(|| Entry::directory(above, 0o755, 0));
            path = above;
        }
        all.insert(entry.path.clone(), entry);
    }
    all.into_values().collect()
}

/// Writes a tar archive; `prefix` goes before every path.
pub(crate) fn tar(entries: &[Entry], prefix: &str, seconds: u64) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    for entry in entries {
        let (kind, bytes): (u8, &[u8]) = match &entry.body {
            Body::File(bytes) => (b'0', bytes),
            Body::Directory => (b'5', &[]),
        };
        let slash = if kind == b'5' { "/" } else { "" };
        let path = format!("{prefix}{}{slash}", entry.path);
        out.extend(header(&path, entry, kind, bytes.len(), seconds)?);
        out.extend_from_slice(bytes);
        out.resize(out.len().next_multiple_of(BLOCK), 0);
    }
    out.resize(out.len() + 2 * BLOCK, 0);
    Ok(out)
}

/// Compresses with gzip, without a name and a time.
pub(crate) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut writer = GzBuilder::new().write(Vec::new(), Compression::best());
    writer.write_all(bytes)?;
    Ok(writer.finish()?)
}

fn header(path: &str, entry: &Entry, kind: u8, size: usize, seconds: u64) -> Result<Vec<u8>> {
    let (prefix, name) = split(path)?;
    let mut out = Vec::with_capacity(BLOCK);
    field(&mut out, name, NAME);
    field(&mut out, &format!("{:07o}", entry.mode), 8);
    field(&mut out, &format!("{:07o}", entry.owner), 8);
    field(&mut out, &format!("{:07o}", entry.owner), 8);
    field(&mut out, &format!("{size:011o}"), 12);
    field(&mut out, &format!("{seconds:011o}"), 12);
    let checksum_at = out.len();
    out.extend_from_slice(b"        ");
    out.push(kind);
    // The target of a link; there are none.
    field(&mut out, "", NAME);
    out.extend_from_slice(b"ustar\x0000");
    // Names of users are left out: ids count alone.
    field(&mut out, "", 32 + 32);
    field(&mut out, &format!("{:07o}", 0), 8);
    field(&mut out, &format!("{:07o}", 0), 8);
    field(&mut out, prefix, PREFIX);
    out.resize(BLOCK, 0);
    let sum: u32 = out.iter().map(|byte| u32::from(*byte)).sum();
    let text = format!("{sum:06o}\0 ");
    for (place, byte) in out.iter_mut().skip(checksum_at).zip(text.bytes()) {
        *place = byte;
    }
    Ok(out)
}

/// Cuts a long path into prefix and name.
fn split(path: &str) -> Result<(&str, &str)> {
    if path.len() <= NAME {
        return Ok(("", path));
    }
    let cut = path
        .match_indices('/')
        .find(|(at, _)| *at <= PREFIX && path.len() - at - 1 <= NAME && path.len() > at + 1);
    match cut {
        Some((at, _)) => path
            .split_at_checked(at)
            .map(|(prefix, rest)| (prefix, rest.trim_start_matches('/')))
            .context("a cut inside a letter"),
        None => bail!("{path} is too long for a tar archive"),
    }
}

fn field(out: &mut Vec<u8>, text: &str, width: usize) {
    let end = out.len() + width;
    out.extend(text.bytes().take(width));
    out.resize(end, 0);
}
