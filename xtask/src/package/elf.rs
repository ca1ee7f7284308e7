//! Reads from a program what it needs of the system: shared libraries and the version of glibc.
//!
//! Only 64-bit little-endian ELF, which all our Linux targets use.

use anyhow::{Context, Result, bail};

const DYNAMIC: u32 = 6;
const VERNEED: u32 = 0x6fff_fffe;
const DT_NEEDED: u64 = 1;
const SECTION: usize = 64;

/// What a program needs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Names of shared libraries; none for a static program.
    pub(crate) libraries: Vec<String>,
    /// The highest version of glibc whose symbols it uses.
    pub(crate) glibc: Option<(u32, u32)>,
}

/// Reads what a program needs; nothing for a program that is not ELF (macOS).
pub(crate) fn needs(bytes: &[u8]) -> Result<Needs> {
    let mut needs = Needs::default();
    if !bytes.starts_with(b"\x7fELF") {
        return Ok(needs);
    }
    if bytes.get(4..6) != Some(&[2, 1]) {
        bail!("the program is not a 64-bit little-endian ELF file");
    }
    let table = usize::try_from(u64_at(bytes, 0x28)?)?;
    let count = usize::from(u16_at(bytes, 0x3c)?);
    let section = |index: usize| {
        bytes
            .get(table + index * SECTION..)
            .context("a section is cut off")
    };
    for index in 0..count {
        let header = section(index)?;
        let kind = u32_at(header, 4)?;
        if kind != DYNAMIC && kind != VERNEED {
            continue;
        }
        let body = contents(bytes, header)?;
        let strings = contents(bytes, section(usize::try_from(u32_at(header, 0x28)?)?)?)?;
        if kind == DYNAMIC {
            needs.libraries = libraries(body, strings)?;
        } else {
            needs.glibc = glibc(body, strings)?;
        }
    }
    Ok(needs)
}

fn libraries(table: &[u8], strings: &[u8]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in table.chunks_exact(16) {
        if u64_at(entry, 0)? == DT_NEEDED {
            found.push(text(strings, usize::try_from(u64_at(entry, 8)?)?)?.to_owned());
        }
    }
    found.sort();
    Ok(found)
}

/// Walks the version needs: one record for each library, each with a chain of versions.
fn glibc(table: &[u8], strings: &[u8]) -> Result<Option<(u32, u32)>> {
    let mut highest = None;
    let mut at = 0;
    loop {
        let count = u16_at(table, at + 2)?;
        let mut version = at + usize::try_from(u32_at(table, at + 8)?)?;
        for _ in 0..count {
            let name = text(strings, usize::try_from(u32_at(table, version + 8)?)?)?;
            highest = highest.max(parse(name));
            version += usize::try_from(u32_at(table, version + 12)?)?;
        }
        match u32_at(table, at + 12)? {
            0 => return Ok(highest),
            next => at += usize::try_from(next)?,
        }
    }
}

/// Parses `GLIBC_2.34`; `GLIBC_2.2.5` counts as 2.2.
fn parse(name: &str) -> Option<(u32, u32)> {
    let mut numbers = name.strip_prefix("GLIBC_")?.split('.');
    let major = numbers.next()?.parse().ok()?;
    Some((major, numbers.next()?.parse().ok()?))
}

fn contents<'a>(bytes: &'a [u8], header: &[u8]) -> Result<&'a [u8]> {
    let offset = usize::try_from(u64_at(header, 0x18)?)?;
    let size = usize::try_from(u64_at(header, 0x20)?)?;
    let rest = bytes.get(offset..).context("a section is cut off")?;
    rest.get(..size).context("a section is cut off")
}

fn text(strings: &[u8], at: usize) -> Result<&str> {
    let rest = strings.get(at..).context("a name is cut off")?;
    let end = rest
        .iter()
        .position(|byte| *byte == 0)
        .context("a name has no end")?;
    Ok(std::str::from_utf8(rest.get(..end).unwrap_or_default())?)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N]> {
    let rest = bytes.get(at..).context("a number is cut off")?;
    rest.first_chunk().copied().context("a number is cut off")
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16> {
    array(bytes, at).map(u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Result<u64> {
    array(bytes, at).map(u64::from_le_bytes)
}
