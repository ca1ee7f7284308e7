//! Reading a file line by line in large blocks, without a copy per line. What a line says is decided by the caller.

use std::io::{self, Read};
use std::ops::ControlFlow;

use crate::limits::{MAX_LINE, SCAN_CHUNK};

/// Calls `each` for every line, without its line feed; the last one is given even when it has none. Lines longer than
/// [`MAX_LINE`] are left out. `buffer` may be used again for the next file. Gives the number of bytes up to and with the
/// last line feed that was read.
pub(crate) fn each_line(
    mut file: impl Read,
    buffer: &mut Vec<u8>,
    mut each: impl FnMut(&[u8]) -> ControlFlow<()>,
) -> io::Result<u64> {
    if buffer.len() < SCAN_CHUNK {
        buffer.resize(SCAN_CHUNK, 0);
    }
    let (mut filled, mut whole, mut left_out) = (0, 0, 0_u64);
    loop {
        if filled == buffer.len() {
            if filled > MAX_LINE {
                // A line that nobody wants: only its end is.
                (left_out, filled) = (left_out + filled as u64, 0);
            } else {
                buffer.resize(filled * 2, 0);
            }
        }
        let read = match file.read(buffer.get_mut(filled..).unwrap_or_default()) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        if read == 0 {
            let last = buffer.get(..filled).unwrap_or_default();
            if left_out == 0 && !last.is_empty() && last.len() <= MAX_LINE {
                // Nothing follows, so it does not matter whether the caller has seen enough.
                let _ = each(last);
            }
            return Ok(whole);
        }
        let (mut rest, mut seen) = (buffer.get(..filled + read).unwrap_or_default(), filled);
        while let Some(end) = memchr::memchr(b'\n', rest.get(seen..).unwrap_or_default()) {
            let Some((line, after)) = rest.split_at_checked(seen + end) else {
                break;
            };
            let wanted = left_out == 0 && line.len() <= MAX_LINE;
            whole += left_out + line.len() as u64 + 1;
            (rest, seen, left_out) = (after.get(1..).unwrap_or_default(), 0, 0);
            if wanted && each(line).is_break() {
                return Ok(whole);
            }
        }
        let (used, kept) = (filled + read - rest.len(), rest.len());
        buffer.copy_within(used..used + kept, 0);
        filled = kept;
    }
}
