//! Writes zip archives that depend on their entries alone. Without zip64: wheels are far below 4 GB.

use std::io::Write as _;

use anyhow::{Context, Result};
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

/// 1980-01-01, the first day that a zip archive knows; wheels need no better.
const DOS_DATE: u16 = 0x0021;
/// Version 2.0, for deflate; made on Unix, so that the mode counts.
const NEEDED: u16 = 20;
const MADE_BY: u16 = 3 << 8 | 20;
const DEFLATE: u16 = 8;

/// Writes an archive of files: path, mode, bytes.
pub(crate) fn zip(files: &[(String, u32, Vec<u8>)]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut directory = Vec::new();
    for (path, mode, bytes) in files {
        let mut crc = Crc::new();
        crc.update(bytes);
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes)?;
        let packed = encoder.finish()?;
        let mut common = Vec::new();
        for number in [NEEDED, 0, DEFLATE, 0, DOS_DATE] {
            common.extend(number.to_le_bytes());
        }
        common.extend(crc.sum().to_le_bytes());
        common.extend(length(packed.len())?);
        common.extend(length(bytes.len())?);
        common.extend(u16::try_from(path.len())?.to_le_bytes());
        common.extend(0_u16.to_le_bytes());
        let offset = length(out.len())?;
        out.extend(b"PK\x03\x04");
        out.extend(&common);
        out.extend(path.as_bytes());
        out.extend(packed);
        directory.extend(b"PK\x01\x02");
        directory.extend(MADE_BY.to_le_bytes());
        directory.extend(common);
        // No comment, the first disk, a binary file.
        directory.extend([0; 6]);
        directory.extend(((0o100_000 | mode) << 16).to_le_bytes());
        directory.extend(offset);
        directory.extend(path.as_bytes());
    }
    let count = u16::try_from(files.len())?.to_le_bytes();
    let (start, size) = (length(out.len())?, length(directory.len())?);
    out.extend(directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(count);
    out.extend(count);
    out.extend(size);
    out.extend(start);
    out.extend(0_u16.to_le_bytes());
    Ok(out)
}

fn length(bytes: usize) -> Result<[u8; 4]> {
    Ok(u32::try_from(bytes)
        .context("too long for a zip archive")?
        .to_le_bytes())
}
