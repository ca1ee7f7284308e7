//! The frames of `application/vnd.amazon.eventstream`: lengths and their checksum, headers, payload, checksum of it all.
//! Any split of the bytes gives the same events. What events mean is decided in `stream`.

use crate::answer::Fault;
use crate::framing::{Event, too_large};
use crate::limits::MAX_EVENT_BYTES;

/// Length of the frame, length of the headers, checksum of both.
const PRELUDE: usize = 12;

/// The checksum at a frame's end.
const TRAILER: usize = 4;

/// Precedes the kind of an exception in an event's name; no event is called so.
pub(crate) const EXCEPTION: char = '!';

/// The scanner.
#[derive(Debug, Default)]
pub(crate) struct FrameScanner {
    /// What came and is not yet worked off.
    buf: Vec<u8>,
    /// Where the frame under way begins in `buf`.
    at: usize,
    /// Whole frames so far.
    frames: u64,
    /// Name of the event that was handed out last.
    name: String,
    /// Its data.
    data: String,
}

impl FrameScanner {
    /// Takes the next piece of the stream.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buf.drain(..self.at.min(self.buf.len()));
        self.at = 0;
        self.buf.extend_from_slice(bytes);
    }

    /// Whole frames so far.
    pub(crate) fn frames(&self) -> u64 {
        self.frames
    }

    /// The next event, once its frame is whole. Damage is found as soon as it can be: a wrong length would make the
    /// scanner wait for bytes that never come.
    pub(crate) fn next(&mut self) -> Result<Option<Event<'_>>, Fault> {
        let rest = self.buf.get(self.at..).unwrap_or_default();
        let Some((prelude, _)) = rest.split_at_checked(PRELUDE) else {
            return Ok(None);
        };
        let (total, headers) = lengths(prelude)?;
        let Some(frame) = rest.get(..total) else {
            return Ok(None);
        };
        let (checked, sum) = frame.split_at_checked(total - TRAILER).unwrap_or_default();
        if crc32fast::hash(checked) != number(sum) {
            return Err(damaged("checksum of a message"));
        }
        let content = checked.get(PRELUDE..).unwrap_or_default();
        let (headers, payload) = content.split_at_checked(headers).unwrap_or_default();
        self.name.clear();
        self.data.clear();
        let found = read_headers(headers).ok_or_else(|| damaged("headers of a message"))?;
        found.name_into(&mut self.name);
        match found.error_message {
            Some(message) if payload.is_empty() => self.data.push_str(&String::from_utf8_lossy(message)),
            _ => self.data.push_str(&String::from_utf8_lossy(payload)),
        }
        self.at += total;
        self.frames += 1;
        Ok(Some(Event {
            name: &self.name,
            data: &self.data,
        }))
    }
}

/// Length of the frame and of its headers, once they are known to be right.
fn lengths(prelude: &[u8]) -> Result<(usize, usize), Fault> {
    let field = |at: usize| number(prelude.get(at..at + 4).unwrap_or_default());
    let checked = prelude.get(..8).unwrap_or_default();
    if crc32fast::hash(checked) != field(8) {
        return Err(damaged("checksum of a prelude"));
    }
    let total = usize::try_from(field(0)).unwrap_or(usize::MAX);
    let headers = usize::try_from(field(4)).unwrap_or(usize::MAX);
    if total > MAX_EVENT_BYTES {
        return Err(too_large());
    }
    if total < headers.saturating_add(PRELUDE + TRAILER) {
        return Err(damaged("lengths of a message"));
    }
    Ok((total, headers))
}

/// A big-endian number of four bytes.
fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |sum, byte| (sum << 8) | u32::from(*byte))
}

/// Bytes were lost or changed on the way; another attempt may help, and the words say so to those who judge it.
fn damaged(what: &str) -> Fault {
    Fault::new(format!("terminated: damaged event stream ({what} is wrong)"))
}

/// The headers that say what a frame is.
#[derive(Default)]
struct Headers<'a> {
    message_type: &'a [u8],
    event_type: &'a [u8],
    exception_type: &'a [u8],
    error_message: Option<&'a [u8]>,
}

impl Headers<'_> {
    /// The event's name: its type, or that of an exception behind [`EXCEPTION`].
    fn name_into(&self, out: &mut String) {
        let name = match self.message_type {
            b"exception" => self.exception_type,
            // Their message says it all.
            b"error" => b"",
            _ => return out.push_str(&String::from_utf8_lossy(self.event_type)),
        };
        out.push(EXCEPTION);
        out.push_str(&String::from_utf8_lossy(name));
    }
}

/// Reads headers; none when they do not fill their room exactly.
fn read_headers(mut rest: &[u8]) -> Option<Headers<'_>> {
    let mut found = Headers::default();
    while !rest.is_empty() {
        let name = take_sized(&mut rest, 1)?;
        let kind = *take(&mut rest, 1)?.first()?;
        let value = match kind {
            0 | 1 => &[],
            2 => take(&mut rest, 1)?,
            3 => take(&mut rest, 2)?,
            4 => take(&mut rest, 4)?,
            5 | 8 => take(&mut rest, 8)?,
            6 | 7 => take_sized(&mut rest, 2)?,
            9 => take(&mut rest, 16)?,
            _ => return None,
        };
        match name {
            b":message-type" => found.message_type = value,
            b":event-type" => found.event_type = value,
            b":exception-type" => found.exception_type = value,
            b":error-message" => found.error_message = Some(value),
            _ => {}
        }
    }
    Some(found)
}

/// Cuts off bytes.
fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(count)?;
    *rest = left;
    Some(taken)
}

/// Cuts off bytes whose count stands before them in `width` bytes.
fn take_sized<'a>(rest: &mut &'a [u8], width: usize) -> Option<&'a [u8]> {
    let count = number(take(rest, width)?);
    take(rest, usize::try_from(count).ok()?)
}
