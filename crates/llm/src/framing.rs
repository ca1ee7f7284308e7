//! How a body is cut into events: server-sent events, or the binary frames of AWS. Knows nothing of what they mean.

use crate::answer::Fault;
use crate::bedrock::frames::FrameScanner;
use crate::limits::MAX_EVENT_BYTES;
use crate::sse::SseScanner;

/// One event; borrowed from the scanner until the next call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event<'a> {
    /// Its kind; empty when the stream does not say.
    pub(crate) name: &'a str,
    /// Mostly JSON.
    pub(crate) data: &'a str,
}

/// A scanner of one kind.
#[derive(Debug)]
pub(crate) enum Framing {
    /// Server-sent events.
    Sse(SseScanner),
    /// `application/vnd.amazon.eventstream`.
    Aws(FrameScanner),
}

impl Framing {
    /// For server-sent events.
    pub(crate) fn sse() -> Self {
        Self::Sse(SseScanner::default())
    }

    /// For the frames of AWS.
    pub(crate) fn aws() -> Self {
        Self::Aws(FrameScanner::default())
    }

    /// Takes the next piece of the body.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        match self {
            Self::Sse(scanner) => scanner.push(bytes),
            Self::Aws(scanner) => scanner.push(bytes),
        }
    }

    /// The next complete event, if there is one. A stream that is damaged or has too large an event cannot go on.
    pub(crate) fn next(&mut self) -> Result<Option<Event<'_>>, Fault> {
        match self {
            Self::Sse(scanner) => match scanner.next() {
                Ok(event) => Ok(event.map(|event| Event {
                    name: event.name,
                    data: event.data,
                })),
                Err(_) => Err(too_large()),
            },
            Self::Aws(scanner) => scanner.next(),
        }
    }

    /// How much came that counts as a sign of life: lines or frames.
    pub(crate) fn lines(&self) -> u64 {
        match self {
            Self::Sse(scanner) => scanner.lines(),
            Self::Aws(scanner) => scanner.frames(),
        }
    }
}

/// An event beyond the limit.
pub(crate) fn too_large() -> Fault {
    Fault::new(format!(
        "An event of the stream is larger than {MAX_EVENT_BYTES} bytes"
    ))
}
