//! Reading a file line by line in large blocks, without a copy per line and in bounded memory. What a line says is decided by the
//! caller.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Take};
use std::ops::ControlFlow;

use crate::limits::{GLANCE_TAIL, LISTED_HEAD, LISTED_LINE, MAX_LINE, SCAN_CHUNK};

/// A line without its line feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// The beginning and the end of a line longer than [`LISTED_LINE`].
    Cut(&'a [u8], &'a [u8]),
}

/// Where lines are read from.
pub(crate) trait Source: Read {
    /// Goes on behind a hole at this place, which reads as zeros; gives how many bytes were passed over.
    fn skip_hole(&mut self) -> io::Result<u64> {
        Ok(0)
    }
}

impl Source for &File {
    #[cfg(target_os = "linux")]
    fn skip_hole(&mut self) -> io::Result<u64> {
        let at = self.stream_position()?;
        let next = match rustix::fs::seek(&**self, rustix::fs::SeekFrom::Data(at)) {
            Ok(next) => next,
            // Nothing but a hole follows.
            Err(rustix::io::Errno::NXIO) => self.seek(SeekFrom::End(0))?.max(at),
            // A file system that knows no holes.
            Err(_) => self.seek(SeekFrom::Start(at))?,
        };
        Ok(next.saturating_sub(at))
    }
}

impl Source for Take<File> {}

/// Calls `each` for every line; the last one is given even when it has no line feed. Lines longer than [`MAX_LINE`] are left
/// out. `buffer` may be used again for the next file. Gives the number of bytes up to and with the last line feed that was
/// read.
pub(crate) fn each_line(
    mut file: impl Source,
    buffer: &mut Vec<u8>,
    mut each: impl FnMut(Line<'_>) -> ControlFlow<()>,
) -> io::Result<u64> {
    if buffer.len() < SCAN_CHUNK {
        buffer.resize(SCAN_CHUNK, 0);
    }
    // Bytes of the line at the beginning of the buffer that are not in it: they came behind its head.
    let mut cut = 0;
    let (mut filled, mut whole) = (0, 0);
    loop {
        if filled >= LISTED_LINE {
            let is_blank = buffer.iter().rev().take(SCAN_CHUNK).all(|byte| *byte == 0);
            let from = filled - GLANCE_TAIL;
            buffer.copy_within(from..filled, LISTED_HEAD);
            cut += (from - LISTED_HEAD) as u64;
            filled = LISTED_HEAD + GLANCE_TAIL;
            if is_blank {
                cut += file.skip_hole()?;
            }
        } else if filled == buffer.len() {
            buffer.resize((filled * 2).min(LISTED_LINE), 0);
        }
        let read = match file.read(buffer.get_mut(filled..).unwrap_or_default()) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        if read == 0 {
            let last = buffer.get(..filled).unwrap_or_default();
            if let Some(last) = line(last, cut).filter(|_| !last.is_empty()) {
                // Nothing follows, so it does not matter whether the caller has seen enough.
                let _ = each(last);
            }
            return Ok(whole);
        }
        let (mut rest, mut seen) = (buffer.get(..filled + read).unwrap_or_default(), filled);
        while let Some(end) = memchr::memchr(b'\n', rest.get(seen..).unwrap_or_default()) {
            let Some((found, after)) = rest.split_at_checked(seen + end) else {
                break;
            };
            let wanted = line(found, cut);
            whole += cut + found.len() as u64 + 1;
            (rest, seen, cut) = (after.get(1..).unwrap_or_default(), 0, 0);
            if wanted.is_some_and(|line| each(line).is_break()) {
                return Ok(whole);
            }
        }
        let (used, kept) = (filled + read - rest.len(), rest.len());
        buffer.copy_within(used..used + kept, 0);
        filled = kept;
    }
}

/// A line of which `cut` bytes are missing behind its head; none when it is too long.
fn line(bytes: &[u8], cut: u64) -> Option<Line<'_>> {
    let length = usize::try_from(cut).ok()?.checked_add(bytes.len())?;
    match cut {
        _ if length > MAX_LINE => None,
        0 => Some(Line::Whole(bytes)),
        _ => bytes
            .split_at_checked(LISTED_HEAD)
            .map(|(head, tail)| Line::Cut(head, tail)),
    }
}
